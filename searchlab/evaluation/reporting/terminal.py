"""Terminal: the tables of a report laid out for a screen of characters, and as plain text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from searchlab.evaluation.reports import Report

_TEXT_WIDTH = 200
_LEFT_OUT_IF_NARROW = ("p", "langs", "p95 ms", "build s")


def leaderboard(report: Report, *, narrow: bool = False) -> Table:
    """Lay out quality, speed and size.

    Args:
        report: What to lay out.
        narrow: Fit into 80 columns: intervals below the means, and some columns less.
    """
    left_out = _LEFT_OUT_IF_NARROW if narrow else ()
    shown = [name for name in report.columns if name not in left_out]
    kept = [place for place, name in enumerate(report.columns) if name not in left_out]
    rows = [[cells[place] for place in kept] for cells in report.rows()]
    if narrow:
        rows = [
            [rank, system.replace(",", ", "), *(cell.replace(" [", "\n[") for cell in cells)]
            for rank, system, *cells in rows
        ]
    columns = [report.columns[place] for place in kept]
    if narrow:
        columns = [name.replace(" ", "\n", 1) for name in columns]
    styles = ["bold" if result is report.chosen else "" for result in report.results]
    table = _table(report.title, columns, rows, styles)
    table.caption = report.caption_of(shown)
    return table


def language_table(report: Report) -> Table:
    """Lay out the headline metric for each language; `*` marks the best of a row."""
    rows = report.language_rows()
    title = f"{report.results[0].headline} by language; * is the best of a row"
    return _table(title, report.language_columns, rows, [""] * len(rows))


def plain_text(report: Report, *, languages: bool = False) -> str:
    """Return the tables without colour, for logs and terminals that have none."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(file=file, width=_TEXT_WIDTH, no_color=True, color_system=None)
    console.print(leaderboard(report))
    if languages:
        console.print(language_table(report))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]
) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", caption_justify="left", box=None)
    for name in columns:
        left = name in ("system", "language")
        table.add_column(
            Text(name), justify="left" if left else "right", overflow="fold", no_wrap=name == "rank"
        )
    for cells, style in zip(rows, styles, strict=True):
        table.add_row(*(Text(cell) for cell in cells), style=style)
    return table
