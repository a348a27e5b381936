"""Charts of the steering study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from searchlab.evaluation.charts import with_intervals
from searchlab.search.queries import DEFAULT_TEXT_ALPHA
from searchlab.studies.steering.conflicts import METRIC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SERIES = (
    ("look_kept", "look kept"),
    ("text_obeyed", "text obeyed"),
    ("balance", "balance (harmonic mean)"),
)


def draw_steering(axes: Axes, curve: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draw look kept and text obeyed over `text_alpha`, with the default marked.

    Args:
        axes: Axes to draw on.
        curve: Rows `curve` of `searchlab.studies.steering.study.measure`.
        title: Title of the axes.
    """
    x = [row["text_alpha"] for row in curve]
    for number, (name, label) in enumerate(_SERIES):
        means, lows, highs = ([row[name][end] for row in curve] for end in ("mean", "low", "high"))
        with_intervals(axes, x, means, lows, highs, label=label, number=number)
    _finish(axes)
    axes.set(ylim=(0, 1.1), title=title, ylabel="share of what one alone reaches")


def draw_agreeing(axes: Axes, rows: Sequence[Mapping[str, Any]], *, title: str) -> None:
    """Draw nDCG@10 over `text_alpha` for words that do describe the photo."""
    mixed = [row for row in rows if row["text_alpha"] is not None]
    x = [row["text_alpha"] for row in mixed]
    means, lows, highs = ([row[METRIC][end] for row in mixed] for end in ("mean", "low", "high"))
    with_intervals(axes, x, means, lows, highs, label="photo and words", number=0)
    alone = rows[-1][METRIC]["mean"]
    axes.axhline(alone, color="#d55e00", linestyle="--", label="words alone")
    axes.axhline(means[0], color="#009e73", linestyle="-.", label="photo alone")
    _finish(axes)
    # Leaves room for the legend above the curves.
    axes.set(ylim=(0, 1.5 * max(highs)), title=title, ylabel=METRIC)


def _finish(axes: Axes) -> None:
    label = f"default {DEFAULT_TEXT_ALPHA:g}"
    axes.axvline(DEFAULT_TEXT_ALPHA, color="#000000", linestyle=":", linewidth=1, label=label)
    axes.set_xlabel("text_alpha")
    axes.set_xlim(0, 10)
    axes.legend()
