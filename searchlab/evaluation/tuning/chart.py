"""The measurements of an index as a chart, a table and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchlab.config import Config
from searchlab.config.indexes import load_index
from searchlab.config.operating_points import Expected
from searchlab.errors import count
from searchlab.evaluation.charts import chart, look, save_chart
from searchlab.evaluation.tuning.index_costs import Measured

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_RELATIONS = {"random": "photos kept at random", "aligned": "whole regions kept"}
_LOOKS = {"random": look(0), "aligned": look(1), "none": look(6)}
_EXACT = look(2)


def draw(measured: Measured, config: Config, path: Path) -> list[Path]:
    """Draw costs against the strictness of filters, and recall against cost, as PNG and SVG.

    Args:
        measured: Measurements that have rows.
        config: Configuration of the index, with the `recall` to reach.
        path: File to write, without a suffix.

    Returns:
        The two files.
    """
    kinds = list(dict.fromkeys(row["kind"] for row in measured.rows))
    width = 1 + 4 * len(kinds)
    with chart(width, 8, columns=len(kinds), rows=2, squeeze=False) as (figure, axes):
        for column, kind in enumerate(kinds):
            rows = [row for row in measured.rows if row["kind"] == kind]
            expected = expect_unfiltered(measured, config, kind)
            _draw_costs(axes[0, column], rows, expected)
            effort = load_index(config.index).describe_effort(expected.effort)
            axes[0, column].set_title(f"{kind} queries, {effort}")
            _draw_recalls(axes[1, column], rows, config.recall)
        axes[0, 0].set_ylabel("median of a query (ms), lower is better")
        axes[1, 0].set_ylabel(f"recall of the first {measured.tuning.k}, higher is better")
        legend: dict[str, Artist] = {}
        for axis in axes.flat:
            lines, labels = axis.get_legend_handles_labels()
            legend |= dict(zip(labels, lines, strict=True))
        figure.legend(list(legend.values()), list(legend), loc="outside lower center", ncols=2)
        figure.suptitle(
            f"{config.index} index, {measured.tuning.n_photos:,} photos, "
            f"{measured.tuning.n_queries} queries of each kind, one thread"
        )
        return save_chart(figure, path)


def _draw_costs(axis: Axes, rows: Sequence[Mapping[str, Any]], expected: Expected) -> None:
    some = [row for row in rows if row["effort"] == expected.effort]
    whole = [row for row in some if row["filter"] == "none"]
    for relation, label in _RELATIONS.items():
        line = whole + [row for row in some if row["filter"] == relation]
        sizes = [row["n_allowed"] for row in line]
        costs = [row["ms"] for row in line]
        axis.plot(sizes, costs, label=f"search, {label}", **_LOOKS[relation])
        style = _EXACT | {"linestyle": "-" if relation == "random" else ":"}
        costs = [row["exact_ms"] for row in line]
        axis.plot(sizes, costs, label=f"scoring all, {label}", **style)
    limit = expected.exact_below
    if limit:
        at = (limit, 0.02)
        axis.axvline(limit, color="#555555", linewidth=1, linestyle="--")
        side = "left" if limit < max(row["n_allowed"] for row in rows) else "right"
        axis.annotate(f" {limit:,} ", at, xycoords=("data", "axes fraction"), ha=side)
    axis.set(xscale="log", yscale="log", xlabel="photos that the filter keeps")


def _draw_recalls(axis: Axes, rows: Sequence[Mapping[str, Any]], least: float) -> None:
    efforts = sorted({row["effort"] for row in rows})
    for relation, label in ({"none": "without a filter"} | _RELATIONS).items():
        line = [
            [row for row in rows if row["filter"] == relation and row["effort"] == effort]
            for effort in efforts
        ]
        if not line[0]:
            continue
        worst = [min(row["recall"] for row in some) for some in line]
        spent = [max(row["ms"] for row in some) for some in line]
        axis.plot(spent, worst, label=f"search, {label}", **_LOOKS[relation])
        if relation == "none":
            for effort, x, y in zip(efforts, spent, worst, strict=True):
                axis.annotate(f"{effort:g}", (x, y), (0, 6), textcoords="offset points", fontsize=7)
    axis.axhline(least, color="#555555", linewidth=1, linestyle="--")
    bottom = min(least, *(row["recall"] for row in rows))
    axis.set_ylim(bottom - 0.1 * (1 - bottom), 1 + 0.1 * (1 - bottom))
    axis.set(xscale="log", xlabel="median of a query (ms), under the dearest filter")
    low, high = axis.get_xlim()
    ticks = [first * 10.0**power for power in range(-4, 5) for first in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)


def expect_unfiltered(measured: Measured, config: Config, kind: str) -> Expected:
    """Return the effort that the planner takes for a query without a filter, and its recall."""
    expected = measured.tuning.expected(kind, 1.0, least=config.recall)
    if expected is None:
        msg = f"{kind} queries must have been measured"
        raise LookupError(msg)
    return expected


def table(measured: Measured) -> str:
    """Lay out the recall and the cost of each effort, as lines of text."""
    lines = [
        f"{'queries':8}{'effort':>8}{'recall':>9}{'under filters':>15}{'ms':>9}{'ms at most':>12}"
        f"{'scoring all costs no more up to':>34}"
    ]
    for reach in measured.tuning.reaches:
        rows = [r for r in measured.rows if (r["kind"], r["effort"]) == (reach.kind, reach.effort)]
        whole = next(row for row in rows if row["filter"] == "none")
        lines.append(
            f"{reach.kind:8}{reach.effort:>8g}{whole['recall']:>9.4f}{min(reach.recalls):>15.4f}"
            f"{whole['ms']:>9.3f}{max(row['ms'] for row in rows):>12.3f}"
            f"{f'{reach.exact_below:,} photos':>34}"
        )
    return "\n".join(lines)


def verdict(measured: Measured, config: Config) -> str:
    """Say in a sentence what the planner will do."""
    n_photos = measured.tuning.n_photos
    photos = count(n_photos, "photo")
    if not load_index(config.index).approximate:
        return (
            f"the exact index scores all of {photos} and misses nothing: there is nothing to tune"
        )
    kinds = list(dict.fromkeys(reach.kind for reach in measured.tuning.reaches))
    ways = {kind: expect_unfiltered(measured, config, kind) for kind in kinds}
    if all(way.exact_below >= n_photos for way in ways.values()):
        return f"with {photos} scoring them all is best, and misses nothing"
    parts = []
    for kind, way in ways.items():
        if way.exact_below >= n_photos:
            parts.append(f"{kind} queries score all photos")
            continue
        some = [row for row in measured.rows if (row["kind"], row["effort"]) == (kind, way.effort)]
        whole = next(row for row in some if row["filter"] == "none")
        parts.append(
            f"{kind} queries search with effort {way.effort:g} from {way.exact_below:,} photos on, "
            f"expected recall {way.recall:.3f} in {whole['ms']:.2f} ms against "
            f"{whole['exact_ms']:.2f} ms for scoring all"
        )
    return "; ".join(parts)
