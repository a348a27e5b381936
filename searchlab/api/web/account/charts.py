"""Bar charts as plain numbers, which a template draws as SVG and lists as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEIGHT = 100.0
_LEAST = 1.5  # so that one search is seen beside thousands


@dataclass(frozen=True, slots=True)
class UsageBar:
    """One period.

    Attributes:
        title: The period in words.
        value: Its number.
        x: Left edge; each bar has a width of 1, with its gap.
        height: From 0 to `HEIGHT`.
    """

    title: str
    value: int
    x: int
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart whose lower left corner is the origin.

    Attributes:
        bars: From the left.
        top: Value of the upper edge.
        ends: Titles of the first and the last bar.
        total: Sum of the values.
        most: The highest bar, the latest of several; None if all are 0.
    """

    bars: tuple[UsageBar, ...]
    top: int
    ends: tuple[str, str]
    total: int
    most: UsageBar | None


def bar_chart(periods: Sequence[tuple[str, int]]) -> Chart:
    """Lay out a chart of one or more periods and their numbers, the oldest first."""
    top = round_up(max(value for _, value in periods))
    bars = tuple(
        UsageBar(title, value, x, max(_LEAST, value / top * HEIGHT) if value else 0.0)
        for x, (title, value) in enumerate(periods)
    )
    most = max(bars, key=lambda bar: (bar.value, bar.x))
    total = sum(bar.value for bar in bars)
    ends = (bars[0].title, bars[-1].title)
    return Chart(bars, top, ends, total, most if most.value else None)


def round_up(number: int) -> int:
    """Return the next number that reads well on an axis, and whose half is whole.

    >>> [round_up(n) for n in (0, 3, 5, 11, 41, 556, 999, 1_001)]
    [4, 4, 6, 20, 60, 600, 1000, 2000]
    """
    step = 1
    while True:
        for factor in (4, 6, 8, 10, 20):
            if number <= factor * step:
                return factor * step
        step *= 10
