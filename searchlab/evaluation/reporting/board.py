"""Board: the leaderboard of a report as HTML, its intervals drawn, its groups of equals apart."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from searchlab.evaluation.reporting.markup import note, piece, table

if TYPE_CHECKING:
    from searchlab.evaluation.reports import Report


def board_html(report: Report) -> str:
    """Render a leaderboard to stand in a notebook."""
    title = f"<h3>{html.escape(report.title)}</h3>"
    return piece(title + board_table(report) + note(report.caption))


def board_table(report: Report) -> str:
    """Render the leaderboard's table: a bar is the interval, its mark the mean.

    A line parts the groups; the row to serve is bold and has a star.
    """
    headline = report.results[0].headline
    top = max(result.intervals[headline].macro.high for result in report.results) or 1.0
    firsts = {group[0].config_id for group in report.groups[1:]}
    rows, classes = [], []
    for result, (rank, system, *cells) in zip(report.results, report.rows(), strict=True):
        mean, low, high = (100 * max(0.0, x) / top for x in result.intervals[headline].macro)
        bar = (
            f'<div class="track"><i style="left:{low:.1f}%;width:{max(0.5, high - low):.1f}%"></i>'
            f'<b style="left:calc({mean:.1f}% - 1px)"></b></div>'
        )
        rows.append([rank, system, bar, *cells])
        chosen = "chosen" if result is report.chosen else ""
        first = "first" if result.config_id in firsts else ""
        classes.append(f"{chosen} {first}".strip())
    rank, system, *others = report.columns
    drawn = f"{headline}, 0 to {top:.2f}"
    return table(
        [rank, system, drawn, *others], rows, left=["system"], classes=classes, raw=[drawn]
    )
