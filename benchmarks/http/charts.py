"""Charts of latency: what a client waits for, over connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import LogLocator, NullFormatter

from searchlab.evaluation.charts import chart, look, save_chart


def draw_latency(
    rows: Sequence[Mapping[str, Any]], path: Path, *, by: str, title: str
) -> list[Path]:
    """Draw a line for each endpoint or filter: median to 99th percentile, by connections.

    Args:
        rows: What `measure_in_turn` returned.
        path: File to write, without a suffix.
        by: The label that distinguishes the rows, such as `"endpoint"` or `"filter"`.
        title: Title of the chart.

    Returns:
        The PNG and the SVG.
    """
    counts = sorted({row["connections"] for row in rows})
    medians = {row[by]: row["p50_ms"] for row in rows if row["connections"] == counts[0]}
    names = sorted(medians, key=lambda name: medians[name])  # the slowest on top
    height = 1.6 + 0.24 * len(names) * max(1, len(counts) ** 0.5)
    with chart(8.5, height) as (figure, axes):
        step = 0.8 / len(counts)
        for place, count in enumerate(counts):
            style = look(place)
            rows_at_count = [row for row in rows if row["connections"] == count]
            shift = (place - (len(counts) - 1) / 2) * step
            heights = [names.index(row[by]) + shift for row in rows_at_count]
            lows, highs = ([row[name] for row in rows_at_count] for name in ("p50_ms", "p99_ms"))
            axes.hlines(heights, lows, highs, color=style["color"], linewidth=1.4)
            label = f"{count} connection{'s' if count > 1 else ''}"
            for values, marker, name in ((lows, style["marker"], label), (highs, "|", None)):
                axes.plot(
                    values,
                    heights,
                    linestyle="",
                    marker=marker,
                    color=style["color"],
                    markersize=7,
                    label=name,
                )
        axes.set_yticks(range(len(names)), names)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("ms that a client waits, log scale: median (marker) to 99th percentile (|)")
        axes.set_title(title, loc="left")
        figure.legend(loc="outside lower center", ncols=len(counts))
        return save_chart(figure, path)
