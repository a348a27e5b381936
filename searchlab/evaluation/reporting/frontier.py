"""Frontier: quality, latency, memory and languages of systems, and which no other system beats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from searchlab.evaluation.charts import chart, look
from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.significance import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FrontierPoint:
    """A system on the four axes.

    Attributes:
        name: Name of the system.
        rank: Number of its group of equals by quality, from 1.
        quality: Headline metric, mean over languages, with its interval.
        ms: Median milliseconds to embed and rank a new query.
        mib: Size of the index in MiB.
        by_language: Mean of each language, best first.
        languages: Number of languages that reach half of the leader's mean over languages.
        is_efficient: Whether no other system is at least as good in rank, time, size and languages,
            and better in one of them.
    """

    name: str
    rank: int
    quality: Interval
    ms: float
    mib: float
    by_language: tuple[float, ...]
    languages: int
    is_efficient: bool = False


def frontier(comparison: Comparison) -> list[FrontierPoint]:
    """Place the systems of a report on the four axes, best first.

    Quality counts by rank group, so a difference that is not significant counts nothing.
    """
    level = comparison.results[0].intervals[comparison.results[0].headline].macro.mean / 2
    points = []
    names = comparison.names
    for rank, group in enumerate(comparison.groups, start=1):
        for result in group:
            intervals = result.intervals[result.headline]
            means = sorted((lang.mean for lang in intervals.groups.values()), reverse=True)
            points.append(
                FrontierPoint(
                    name=names[result.config_id],
                    rank=rank,
                    quality=intervals.macro,
                    ms=(
                        result.metrics["text_ms"] + result.metrics["p50_ms"]
                        if result.is_timed
                        else 0.0  # the same for all, so that time decides nothing
                    ),
                    mib=result.metrics["size_mib"],
                    by_language=tuple(means),
                    languages=sum(mean >= level for mean in means),
                )
            )
    return [
        FrontierPoint(
            **{**vars(one), "is_efficient": not any(_dominates(other, one) for other in points)}
        )
        for one in points
    ]


def _dominates(a: FrontierPoint, b: FrontierPoint) -> bool:
    """Tell whether `a` is never worse than `b` and once better, in the digits that are shown."""
    costs = [(p.rank, round(p.ms, 2), round(p.mib, 1), -p.languages) for p in (a, b)]
    return all(x <= y for x, y in zip(*costs, strict=True)) and costs[0] != costs[1]


@contextmanager
def frontier_chart(comparison: Comparison) -> Iterator[Figure]:
    """Draw quality against latency (the area is memory), and quality over languages.

    Yields:
        The figure, to be used within the block.
    """
    points = frontier(comparison)
    first = comparison.results[0]
    with chart(10.5, 4.6 + 0.12 * len(points), columns=2) as (figure, (left, right)):
        for number, point in enumerate(points):
            _draw(left, point, number, most=max(p.mib for p in points))
            places = range(1, len(point.by_language) + 1)
            step = max(1, len(places) // 8)
            every = (number * step // len(points), step)
            right.plot(places, point.by_language, markevery=every, **look(number))
        left.set_xscale("log")
        left.xaxis.set_major_formatter("{x:g}")
        left.xaxis.set_minor_formatter("{x:.2g}")
        left.tick_params(axis="x", which="minor", labelsize=8)
        left.margins(x=0.18, y=0.12)
        left.set_ylim(bottom=0)
        left.set_xlabel("milliseconds to embed and rank a new query, median (log)")
        left.set_ylabel(f"{first.headline}, mean over languages, 95 % interval")
        left.set_title("Quality × latency × memory (area)", fontsize=10)
        right.set_ylim(bottom=0)
        right.xaxis.get_major_locator().set_params(integer=True)
        right.set_xlabel("languages, each system's best first")
        right.set_ylabel(first.headline)
        right.set_title("Quality × languages", fontsize=10)
        handles, labels = left.get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)
        for handle in legend.legend_handles:
            handle.set_sizes([45])  # type: ignore[union-attr]
        efficient = sum(point.is_efficient for point in points)
        figure.suptitle(
            f"{first.dataset}: {efficient} of {len(points)} systems are on the frontier",
            fontsize=11,
        )
        yield figure


def _draw(axes: Axes, point: FrontierPoint, number: int, *, most: float) -> None:
    style = look(number)
    color = style["color"]
    low, high = point.quality.mean - point.quality.low, point.quality.high - point.quality.mean
    axes.errorbar(
        [point.ms], [point.quality.mean], yerr=[[low], [high]], color=color, capsize=3, linewidth=1
    )
    # The area grows with memory, from a least size at which a small index can be seen.
    area = 60 + 500 * point.mib / (most or 1)
    axes.scatter(
        [point.ms],
        [point.quality.mean],
        s=area,
        color=color if point.is_efficient else "white",
        edgecolors=color,
        linewidths=1.5,
        alpha=0.85,
        marker=style["marker"],
        label=f"{point.name}, {point.mib:.1f} MiB{'' if point.is_efficient else ' (beaten)'}",
        zorder=3,
    )


def frontier_caption(comparison: Comparison) -> str:
    """Say how to read the chart and the table."""
    first = comparison.results[0]
    return (
        f"Filled marks are on the frontier: no other system is at least as good in rank, time, "
        f"memory and languages, and better in one. Quality counts by groups of equals, as in the "
        f"leaderboard. A language counts where {first.headline} reaches half of the leader's mean "
        "over languages."
    )


FRONTIER_COLUMNS = ("system", "rank", "quality", "ms", "MiB", "languages", "frontier")


def frontier_rows(comparison: Comparison) -> list[list[str]]:
    """Return the cells of the frontier as a table; columns are `FRONTIER_COLUMNS`."""
    return [
        [
            point.name,
            str(point.rank),
            str(point.quality),
            f"{point.ms:.2f}" if comparison.results[0].is_timed else "–",
            f"{point.mib:.1f}",
            f"{point.languages} of {len(point.by_language)}",
            "yes" if point.is_efficient else "",
        ]
        for point in frontier(comparison)
    ]
