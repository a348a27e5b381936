"""What a person sees in a terminal: progress on standard error, results on standard output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from searchlab.cli.options import count
from searchlab.library.ingest import IndexReport
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress, Step
from searchlab.search.queries import Hit, Page

_SHOWN_PROBLEMS = 50


class _Rate(ProgressColumn):
    """Column with the speed of a step in units per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        unit = task.fields["unit"]
        if not (speed and unit):
            return Text("")
        return Text(
            f"{speed:,.0f} {unit}/s" if speed >= 10 else f"{speed:.1f} {unit}/s", no_wrap=True
        )


class ConsoleProgress(Progress):
    """Shows each step of long work as a bar with its speed, the time left and a remark."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def step(self, name: str, total: int | None = None, *, unit: str = "") -> Iterator[Step]:
        """Show one step until it ends; see `Progress.step`."""
        bars = Bars(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
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


def print_page(page: Page, console: Console) -> None:
    """Print results, each with score, colour, credit and the paths of photo and thumbnail.

    Lines are not wrapped, so that a path can be copied even from a narrow terminal.
    """
    for place, hit in enumerate(page, start=page.start):
        photo = hit.photo
        head = Text(f"{place:3}  ").append_text(_score(hit.relevance_score)).append("  ")
        head.append_text(_chip(hit)).append(
            f"  {photo.source_description or photo.alt_description}"
        )
        console.print(head, highlight=False, soft_wrap=True)
        for name, value in (
            ("credit", photo.attribution["plain"]),
            ("photo", photo.file or photo.source_image_url),
            ("thumbnail", "" if hit.thumbnail is None else str(hit.thumbnail)),
            ("photo_id", photo.photo_id),
        ):
            if value:
                _print(console, f"     {name:9}  {value}")
    if page.has_more:
        _print(console, "more follow: raise --per-page, or go on with --cursor (--json prints it)")


def _score(score: float) -> Text:
    filled = round(8 * score)
    return Text(f"{score:.3f} " + "█" * filled + "░" * (8 - filled))


def _chip(hit: Hit) -> Text:
    chip = Text("  ", style=f"on {hit.photo.color_hex}")
    return chip.append(f" {hit.photo.color_name}", style="not on default")


def print_problems(problems: Sequence[Skipped], console: Console) -> None:
    """Print what was skipped, cut to a readable length."""
    for problem in problems[:_SHOWN_PROBLEMS]:
        where = problem.where.replace("\n", "\\n")
        _print(console, f"skipped {where}: {problem.reason}")
    if len(problems) > _SHOWN_PROBLEMS:
        _print(console, f"... and {len(problems) - _SHOWN_PROBLEMS:,} more")


def print_report(report: IndexReport, console: Console) -> None:
    """Print the result of indexing: a list of the skipped files, then the counts."""
    print_problems(report.problems, console)
    for folder in report.missing:
        _print(console, f"{folder} shows no photo now; its photos are kept (--forget drops them)")
    copies = "1 copy" if report.copies == 1 else f"{report.copies} copies"
    counts = f"{report.added} added, {report.removed} removed, {copies} left out"
    skipped = f", {len(report.problems)} skipped" if report.problems else ""
    _print(console, f"{count(report.n_photos, 'photo')}: {counts}{skipped}")


def _print(console: Console, text: str) -> None:
    # The name of a file may contain control characters of terminals.
    text = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
