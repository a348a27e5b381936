"""The leaderboard as HTML, with bars for the intervals and lines between the groups of equals."""

from __future__ import annotations

import html

from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.reporting.leaderboard import (
    leaderboard_caption,
    leaderboard_columns,
    leaderboard_rows,
)
from searchlab.evaluation.reporting.markup import note, piece, table


def leaderboard_html(comparison: Comparison) -> str:
    """Render a leaderboard for a notebook."""
    title = f"<h3>{html.escape(comparison.title)}</h3>"
    return piece(title + leaderboard_section(comparison))


def leaderboard_section(comparison: Comparison) -> str:
    """Render the leaderboard with its caption: a bar shows the interval, and its mark the mean.

    Lines separate the groups; the row of the system to serve is bold and has a star. The hash names
    a result where commands take one, and its file ends with it.
    """
    headline = comparison.results[0].headline
    top = max(result.intervals[headline].macro.high for result in comparison.results) or 1.0
    firsts = {group[0].config_id for group in comparison.groups[1:]}
    rows, classes = [], []
    for result, (rank, system, *cells) in zip(
        comparison.results, leaderboard_rows(comparison), strict=True
    ):
        mean, low, high = (100 * max(0.0, x) / top for x in result.intervals[headline].macro)
        bar = (
            f'<div class="track"><i style="left:{low:.1f}%;width:{max(0.5, high - low):.1f}%"></i>'
            f'<b style="left:calc({mean:.1f}% - 1px)"></b></div>'
        )
        rows.append([rank, system, bar, *cells, result.config_id])
        chosen = "chosen" if result is comparison.chosen else ""
        first = "first" if result.config_id in firsts else ""
        classes.append(f"{chosen} {first}".strip())
    columns = leaderboard_columns(comparison)
    rank, system, *others = columns
    bars = f"{headline}, 0 to {top:.2f}"
    body = table(
        [rank, system, bars, *others, "hash"], rows, left=["system"], classes=classes, raw=[bars]
    )
    return body + note(leaderboard_caption(comparison, columns))
