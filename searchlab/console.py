"""What a person sees in a terminal: progress on standard error, results on standard output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from searchlab.ingest import IndexReport
from searchlab.progress import Progress, Step
from searchlab.queries import Hit, Page

_SHOWN_PROBLEMS = 50


class _Rate(ProgressColumn):
    """Units a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        unit = task.fields["unit"]
        return Text(f"{speed:.1f} {unit}/s" if speed and unit else "")


class ConsoleProgress(Progress):
    """Shows each step of long work as a bar with rate, time left and a remark."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def step(self, name: str, total: int | None = None, *, unit: str = "") -> Iterator[Step]:
        """Show one step until it ends; see `Progress.step`."""
        bars = Bars(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._console,
        )
        with bars:
            task = bars.add_task(name, total=total, unit=unit, note="")
            yield Step(
                advance=lambda count: bars.advance(task, count),
                note=lambda text: bars.update(task, note=text),
            )
            done = bars.tasks[0].completed
            bars.update(task, total=total if total is not None else max(done, 1))
            bars.update(task, completed=bars.tasks[0].total, note="")

    def say(self, text: str) -> None:
        """Print a line between the bars."""
        _print(self._console, text)


def page_table(page: Page) -> Table:
    """Lay out a page of results for a terminal."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("#", justify="right")
    table.add_column("score", no_wrap=True)
    table.add_column("colour", no_wrap=True)
    table.add_column("photo, credit, thumbnail", overflow="fold")
    for place, hit in enumerate(page, start=page.start):
        photo = hit.photo
        lines = [photo.source_description or photo.alt_description, photo.attribution["plain"]]
        lines.append(photo.photo_id if hit.thumbnail is None else str(hit.thumbnail))
        about = Text("\n".join(lines))
        table.add_row(str(place), _score(hit.relevance_score), _chip(hit), about)
    return table


def _score(score: float) -> Text:
    filled = round(8 * score)
    return Text(f"{score:.3f} " + "█" * filled + "░" * (8 - filled))


def _chip(hit: Hit) -> Text:
    chip = Text("  ", style=f"on {hit.photo.color_hex}")
    return chip.append(f" {hit.photo.color_name}", style="not on default")


def print_report(report: IndexReport, console: Console) -> None:
    """Print what indexing did: the skipped files in one list, then the sum."""
    for problem in report.problems[:_SHOWN_PROBLEMS]:
        where = problem.where.replace("\n", "\\n")
        _print(console, f"skipped {where}: {problem.reason}")
    if len(report.problems) > _SHOWN_PROBLEMS:
        _print(console, f"... and {len(report.problems) - _SHOWN_PROBLEMS:,} more")
    for folder in report.missing:
        _print(console, f"{folder} shows no photo now; its photos are kept (--forget drops them)")
    counts = f"{report.added} added, {report.removed} removed, {report.copies} copies left out"
    skipped = f", {len(report.problems)} skipped" if report.problems else ""
    _print(console, f"{report.n_photos:,} photos: {counts}{skipped}")


def _print(console: Console, text: str) -> None:
    # A file's name may hold what steers a terminal.
    text = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
