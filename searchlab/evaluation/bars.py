"""Bars of long work in a terminal, and lines of text that are printed there as they are."""

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
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from searchlab.progress import Progress, Step

_JOINERS = "\u200c\u200d"  # a part of words and of emoji


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
        print_plain(self._console, text)


def bars_in_a_terminal() -> Progress:
    """Return bars on standard error where it is a terminal, and else what shows nothing."""
    console = Console(stderr=True, force_jupyter=False)
    return ConsoleProgress(console) if console.is_terminal else Progress()


def print_plain(console: Console, text: str) -> None:
    """Print text as it is, and let no line be broken where somebody may copy from it."""
    text = "\n".join(map(escape, text.split("\n")))
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def escape(text: str) -> str:
    r"""Escape control characters of terminals, which the name of a file may contain.

    >>> escape("a\x1b[31m夜")
    'a\\x1b[31m夜'
    """
    return "".join(c if c.isprintable() or c in _JOINERS else repr(c)[1:-1] for c in text)
