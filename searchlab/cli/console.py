"""What a person sees in a terminal: progress on standard error, results on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from searchlab.cli.skipped import skipped_lines
from searchlab.errors import count
from searchlab.evaluation.bars import ConsoleProgress as ConsoleProgress
from searchlab.evaluation.bars import escape as escape
from searchlab.evaluation.bars import print_plain as print_plain

if TYPE_CHECKING:
    from searchlab.library.ingest import IndexReport
    from searchlab.photos.sidecar import Skipped


def print_problems(problems: Sequence[Skipped], console: Console, *, every: bool = False) -> None:
    """Print what was skipped: a line a kind of file, or every file."""
    for line in skipped_lines(problems, every=every):
        print_plain(console, line)


def print_report(report: IndexReport, console: Console, *, every: bool = False) -> None:
    """Print the result of indexing: what was skipped, every file if asked for, then the counts."""
    print_problems(report.problems, console, every=every)
    for folder in report.missing:
        print_plain(
            console,
            f"{folder}: no photo was read there, so its photos are kept (--forget drops them)",
        )
    copies = "1 copy" if report.copies == 1 else f"{report.copies} copies"
    counts = f"{report.added} added, {report.removed} removed, {copies} left out"
    skipped = f", {len(report.problems)} skipped" if report.problems else ""
    if report.changed:
        files = count(report.changed, "file")
        print_plain(
            console,
            f"{files} with another picture or source: such photos have new ids, collections and "
            "judgments the old ones",
        )
    print_plain(console, f"{count(report.n_photos, 'photo')}: {counts}{skipped}")
