"""Progress of long work, for whoever waits for it; silent unless a console listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One piece of long work while it runs.

    Attributes:
        advance: Called with the number of units done since the last call.
        note: Called with a short remark that replaces the one before.
    """

    advance: Callable[[int], None]
    note: Callable[[str], None]


class Progress:
    """Listens to long work and shows nothing; the command line shows it."""

    @contextmanager
    def step(self, name: str, total: int | None = None, *, unit: str = "") -> Iterator[Step]:
        """Announce a piece of work.

        Args:
            name: What is done, in a few words.
            total: Units of work; unknown if left out.
            unit: What is counted, for the rate.

        Yields:
            The step, to which the work reports.
        """
        yield Step(advance=lambda _count: None, note=lambda _text: None)

    def say(self, text: str) -> None:
        """Show a message on a line of its own."""
