"""Charts of `bench_scale.py`: how costs grow, and what filters cost at the largest size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.index_charts import system_look
from benchmarks.scale.cells import FILTERS, REAL_FILTERS
from benchmarks.scale.summary import OURS, PLANNED, Forecast
from searchlab.evaluation.charts import chart, save_chart

_PANELS = {
    "build_cpu_s": "processor seconds to build",
    "memory_mib": "memory (MiB)",
    "p50_ms image none": "query like a photo, median (ms)",
    "p50_ms text none": "query like a caption, median (ms)",
}


def _points_of(
    rows: Sequence[Mapping[str, Any]], system: str, cost: str
) -> list[tuple[float, float]]:
    return [(r["n_photos"], r[cost]) for r in rows if r["system"] == system and r.get(cost, 0) > 0]


def draw_costs(
    rows: Sequence[Mapping[str, Any]], laws: Sequence[Mapping[str, Any]], folder: Path
) -> list[Path]:
    """Draw each cost against the number of photos, and the forecast of ours with its interval."""
    systems = list(dict.fromkeys(row["system"] for row in rows))
    with chart(12, 8, rows=2, columns=2, sharex=True) as (figure, axes):
        for axis, (cost, title) in zip(axes.ravel(), _PANELS.items(), strict=True):
            values: list[float] = []
            for number, system in enumerate(systems):
                points = _points_of(rows, system, cost)
                if points:
                    axis.plot(*zip(*points, strict=True), label=system, **system_look(number))
                    values += [value for _, value in points]
            for law in laws:
                if (law["system"], law["cost"]) == (OURS, cost):
                    values.append(_draw_forecast(axis, law))
            axis.set(xscale="log", yscale="log", title=title)
            if values:  # the end of a very wide interval is not shown
                axis.set_ylim(min(values) / 3, 3 * max(values))
        for axis in axes[1]:
            axis.set_xlabel("photos")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center")
        figure.suptitle(
            "What a larger collection costs, at a recall@20 of .99 (thin: extrapolated, 95 %)"
        )
        return save_chart(figure, folder / "costs")


def _draw_forecast(axis: Any, fit: Mapping[str, Any]) -> float:
    forecast = Forecast.of(fit)
    ns = np.geomspace(forecast.n, PLANNED[-1], 20)
    means, lows, highs = zip(*(forecast.at(n) for n in ns), strict=True)
    color = system_look(0)["color"]
    axis.plot(ns, means, color=color, linewidth=1, linestyle=":")
    if math.isfinite(highs[-1]):
        axis.fill_between(ns, lows, highs, color=color, alpha=0.12, linewidth=0)
    return float(means[-1])


def draw_filters(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw the time at equal recall under every filter, at the largest size of each system."""
    systems = list(dict.fromkeys(row["system"] for row in rows))
    largest = max((row["n_photos"] for row in rows), default=0)
    names = [
        one.name
        for one in dict.fromkeys((*FILTERS, *REAL_FILTERS))
        if any(f"p50_ms {kind} {one.name}" in row for row in rows for kind in ("image", "text"))
    ]
    with chart(12, 5.4, columns=2, sharey=True) as (figure, axes):
        for axis, kind in zip(axes, ("image", "text"), strict=True):
            for number, system in enumerate(systems):
                row = next(
                    (r for r in rows if (r["system"], r["n_photos"]) == (system, largest)), {}
                )
                points = [(place, row.get(f"p50_ms {kind} {n}")) for place, n in enumerate(names)]
                reached = [(place, value) for place, value in points if value is not None]
                if reached:
                    style = system_look(number) | {"linestyle": "", "markersize": 8}
                    axis.plot(*zip(*reached, strict=True), label=system, **style)
            axis.set_yscale("log")
            axis.set_xticks(range(len(names)), names, rotation=40, ha="right")
            axis.set_title(f"Queries like {'photos' if kind == 'image' else 'captions'}")
        axes[0].set_ylabel("median of a query (ms) at recall@20 of .99")
        figure.suptitle(f"{largest:,} rows, by what the filter keeps; no mark: .99 not reached")
        by_name: dict[str, Any] = {}
        for axis in axes:
            handles, labels = axis.get_legend_handles_labels()
            by_name |= dict(zip(labels, handles, strict=True))
        if by_name:
            figure.legend(by_name.values(), by_name.keys(), loc="outside right center")
        return save_chart(figure, folder / "filters")
