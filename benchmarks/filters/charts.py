"""Charts of `bench_filters.py`: speed and recall, short pages, and what the planner chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.index_charts import system_look
from searchlab.evaluation.charts import chart, save_chart
from searchlab.studies.filters.atlas import RELATIONS

_TITLES = {
    "uncorrelated": "photos from anywhere",
    "aligned": "photos near the query",
    "opposed": "photos far from the query",
}


def _cells(system: Mapping[str, Any], relation: str, n: int, kind: str) -> list[Mapping[str, Any]]:
    # No filter at all stands at the left end of every line.
    place = (kind, relation)
    cells = [c for c in system["cells"] if (_kind(c), c["relation"]) == place]
    return [c for c in cells if c["n_conditions"] in (0, n)]


def _kind(cell: Mapping[str, Any]) -> str:
    # Older records have no `queries`: all their queries were photos.
    return str(cell.get("queries", "image"))


def _percent(share: float) -> str:
    return f"{100 * share:g}"


def draw_speed(
    systems: Mapping[str, Mapping[str, Any]], folder: Path, *, kind: str = "image"
) -> list[Path]:
    """Draw median time and recall against selectivity, for each relation, one condition."""
    systems = {n: s for n, s in systems.items() if any(_kind(cell) == kind for cell in s["cells"])}
    if not systems:
        return []
    with chart(12, 7.5, rows=2, columns=3, sharex=True, sharey="row") as (figure, axes):
        for column, relation in enumerate(RELATIONS):
            for number, (name, system) in enumerate(systems.items()):
                cells = _cells(system, relation, 1, kind)
                shares = [100 * cell["share"] for cell in cells]
                for row, figure_name in enumerate(("p50_ms", "recall")):
                    values = [cell[figure_name] for cell in cells]
                    axes[row][column].plot(shares, values, label=name, **system_look(number))
            axes[0][column].set(
                xscale="log", yscale="log", title=f"Filter keeps {_TITLES[relation]}"
            )
            axes[1][column].set_xlabel("photos that the filter keeps (%)")
        axes[0][0].invert_xaxis()
        axes[0][0].set_xticks([100, 10, 1, 0.1, 0.01], ["100", "10", "1", "0.1", "0.01"])
        axes[0][0].set_ylabel("median of a query (ms), lower is better")
        axes[1][0].set_ylabel("recall@10 against exact, higher is better")
        axes[1][0].set_ylim(-0.03, 1.03)
        like = "photos" if kind == "image" else "captions"
        figure.suptitle(
            f"Queries like {like}, one condition, from none to one photo in ten thousand"
        )
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center")
        return save_chart(figure, folder / ("speed" if kind == "image" else f"speed_{kind}"))


def draw_short(systems: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw the share of short answers for each system, relation and selectivity."""
    shares = _shares(systems)
    with chart(12, 1.6 + 0.36 * len(systems), columns=3, sharey=True) as (figure, axes):
        for axis, relation in zip(axes, RELATIONS, strict=True):
            table = np.array(
                [
                    [_mean_of(system, relation, share, "short") for share in shares]
                    for system in systems.values()
                ]
            )
            _heat(axis, table, [_hundredths(value) for value in table.ravel()], top=1)
            axis.set_xticks(range(len(shares)), [_percent(s) for s in shares], rotation=60)
            axis.set_yticks(range(len(systems)), list(systems))
            axis.set(title=f"Filter keeps {_TITLES[relation]}", xlabel="photos kept (%)")
        figure.suptitle("How many answers in a hundred are short of what the filter allows?")
        return save_chart(figure, folder / "short")


def draw_plans(systems: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw the planner's choice in every cell, and its time over that of the faster way."""
    needed = ("searchlab-planned", "searchlab-exact", "searchlab-graph")
    if not all(name in systems for name in needed):
        return []
    planned, exact, graph = (key_cells(systems[name]) for name in needed)
    if not planned.keys() == exact.keys() == graph.keys():
        return []
    planned, exact, graph = (
        {place[1:]: cell for place, cell in one.items() if place[0] == "image"}
        for one in (planned, exact, graph)
    )
    shares = _shares(systems)
    lines = [(relation, n) for relation in RELATIONS for n in (1, 2, 3)]
    ratios, words = np.ones((len(lines), len(shares))), []
    for row, (relation, n) in enumerate(lines):
        for column, share in enumerate(shares):
            place = (relation, share, n if share < 1 else 0)
            best = min(exact[place]["p50_ms"], graph[place]["p50_ms"])
            ratios[row, column] = planned[place]["p50_ms"] / best
            words.append(f"{planned[place]['plan']}\n{ratios[row, column]:.1f}")
    with chart(11, 5.6) as (figure, axis):
        _heat(axis, np.log2(np.maximum(ratios, 1)), words, top=3)
        axis.set_xticks(range(len(shares)), [_percent(share) for share in shares])
        labels = [f"{relation}, {n} condition{'s' * (n > 1)}" for relation, n in lines]
        axis.set_yticks(range(len(lines)), labels)
        axis.set_xlabel("photos that the filter keeps (%)")
        axis.set_title(
            "What the planner chooses, and its time over that of the faster way (1 is best)"
        )
        return save_chart(figure, folder / "plans")


def _hundredths(value: float) -> str:
    if np.isnan(value):
        return "?"
    return f"{100 * value:.0f}" if value else "·"


def _heat(axis: Any, table: np.ndarray, words: Sequence[str], *, top: float) -> None:
    axis.imshow(table, cmap="Blues", vmin=0, vmax=top, aspect="auto")
    axis.grid(visible=False)
    for place, word in enumerate(words):
        row, column = divmod(place, table.shape[1])
        dark = table[row, column] > 0.55 * top
        axis.text(
            column, row, word, ha="center", va="center", fontsize=8, color="w" if dark else "k"
        )


def key_cells(system: Mapping[str, Any]) -> dict[tuple[str, str, float, int], Mapping[str, Any]]:
    """Key the cells of a system by kind of query, relation, share and number of conditions."""
    return {(_kind(c), c["relation"], c["share"], c["n_conditions"]): c for c in system["cells"]}


def _shares(systems: Mapping[str, Mapping[str, Any]]) -> list[float]:
    return sorted(
        {c["share"] for system in systems.values() for c in system["cells"]}, reverse=True
    )


def _mean_of(system: Mapping[str, Any], relation: str, share: float, of: str) -> float:
    place = (relation, share)
    values = [c[of] for c in system["cells"] if (c["relation"], c["share"]) == place]
    return float(np.mean(values)) if values else float("nan")
