"""The tables of a report for terminals, and as plain text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from searchlab.evaluation.comparison import Comparison
from searchlab.evaluation.reporting.leaderboard import (
    language_columns,
    language_rows,
    leaderboard_caption,
    leaderboard_columns,
    leaderboard_rows,
)

if TYPE_CHECKING:
    from rich.table import Table

_TEXT_WIDTH = 200
_PLACE = "#"  # what `diff`, `power` and `promote` take
_LEFT_OUT_IF_NARROW = ("p", "langs", "p95 ms", "build s")


def leaderboard_table(comparison: Comparison, *, narrow: bool = False) -> Table:
    """Lay out quality, speed and size, each system with its place, which commands take.

    Args:
        comparison: The compared results.
        narrow: Whether to fit into 80 characters: intervals below the means, and fewer columns.
    """
    headings = leaderboard_columns(comparison)
    left_out = _LEFT_OUT_IF_NARROW if narrow else ()
    shown = [column for column, name in enumerate(headings) if name not in left_out]
    columns = [_PLACE, *(headings[column] for column in shown)]
    caption = leaderboard_caption(comparison, columns)
    rows = [
        [str(place), *(cells[column] for column in shown)]
        for place, cells in enumerate(leaderboard_rows(comparison), start=1)
    ]
    if narrow:
        rows = [
            [place, rank, system.replace(",", ", "), *(one.replace(" [", "\n[") for one in cells)]
            for place, rank, system, *cells in rows
        ]
        columns = [name.replace(" ", "\n", 1) for name in columns]
    styles = ["bold" if result is comparison.chosen else "" for result in comparison.results]
    table = draw_table(comparison.title, columns, rows, styles)
    table.caption = caption
    return table


def language_table(comparison: Comparison) -> Table:
    """Lay out the headline metric for each language; `*` marks the best of a row."""
    rows = language_rows(comparison)
    title = f"{comparison.results[0].headline} by language; * is the best of a row"
    return draw_table(title, language_columns(comparison), rows, [""] * len(rows))


def plain_text(comparison: Comparison, *, languages: bool = False) -> str:
    """Return the tables without colour, for logs and plain terminals."""
    more = [language_table(comparison)] if languages else []
    return print_plain_text([leaderboard_table(comparison), *more])


def print_plain_text(tables: Sequence[Table]) -> str:
    """Return tables as text without colour."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(
        file=file, width=_TEXT_WIDTH, no_color=True, color_system=None, force_jupyter=False
    )
    for table in tables:
        console.print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def draw_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]
) -> Table:
    """Lay out cells below headings, each row in a style of its own."""
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
