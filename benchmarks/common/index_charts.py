"""Charts of `bench_index.py`: recall against time, and what a build costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from searchlab.evaluation.charts import COLORS, MARKERS, chart, look, save_chart
from searchlab.studies.index.recall import pareto

_TICKS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
# A recall of 1 has no place on a logarithmic scale of misses, so it is drawn here.
_NO_MISSES = 5e-4


def system_look(number: int) -> dict[str, Any]:
    """Return the look of one of up to 49 systems; the first, ours, is drawn above the others."""
    shift = number + number // len(COLORS)
    first = {"linewidth": 2.6, "zorder": 5} if number == 0 else {}
    return look(number) | {"marker": MARKERS[shift % len(MARKERS)]} | first


def draw_recall(systems: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw recall@10 against the median time of a query, for both kinds of queries."""
    with chart(11, 5.2, columns=2, sharey=True, sharex=True) as (figure, axes):
        for axis, kind in zip(axes, ("image", "text"), strict=True):
            all_points = []
            for number, (name, system) in enumerate(systems.items()):
                points = [p for p in system["points"] if (p["queries"], p["k"]) == (kind, 10)]
                all_points += points
                # Points with more effort than full recall takes are left out.
                best = pareto(points)
                axis.plot(
                    [max(1 - point["recall"], _NO_MISSES) for point in best],
                    [point["p50_ms"] for point in best],
                    label=name,
                    **system_look(number),
                )
            front = pareto(all_points)
            axis.plot(
                [max(1 - point["recall"], _NO_MISSES) for point in front],
                [point["p50_ms"] for point in front],
                color="#bbbbbb",
                linewidth=7,
                solid_capstyle="round",
                zorder=0,
                label="best of all",
            )
            axis.set(xscale="log", yscale="log", xlabel="recall@10, more to the right")
            axis.set_xticks([1 - tick for tick in _TICKS] + [_NO_MISSES])
            axis.set_xticklabels([f"{tick:g}" for tick in _TICKS] + ["1"])
            axis.minorticks_off()
            axis.set_title(f"Queries like {'photos' if kind == 'image' else 'captions'}")
        axes[0].invert_xaxis()
        axes[0].set_ylabel("median of a single query (ms), lower is better")
        figure.suptitle("How long does it take to find how many of the true ten nearest?")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center")
        return save_chart(figure, folder / "recall")


def draw_costs(systems: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw the time of a build against the memory that the index takes."""
    with chart(9, 5) as (figure, axis):
        for number, (name, system) in enumerate(systems.items()):
            build_s, memory = (max(system["metrics"][m], 1e-3) for m in ("build_s", "memory_mib"))
            style = system_look(number) | {"markersize": 10, "linestyle": ""}
            face = "none" if number >= len(COLORS) else None
            axis.plot([memory], [build_s], label=name, markerfacecolor=face, **style)
        axis.set(xscale="log", yscale="log")
        axis.set_xlabel("memory of the index, vectors included (MiB)")
        axis.set_ylabel("build on one processor (s)")
        axis.set_title("What an index costs before the first query: left and low is better")
        figure.legend(loc="outside right center")
        return save_chart(figure, folder / "costs")
