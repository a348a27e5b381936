"""A judging session: one judge and a list of items to judge; every choice goes to a journal.

A session shows and takes plain values, so that a widget, a test and a simulated judge can use it in
the same way. It continues where the journal ends.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, TypeAlias

from searchlab.errors import InputError, quote
from searchlab.evaluation.judging.journal import Choice, Item, Journal, open_journal

Picture: TypeAlias = bytes | str
"""The bytes of a picture in a format of browsers, or its address; empty if there is none."""
Pictures: TypeAlias = Callable[[str], Picture]
"""photo_id -> its picture."""


class JudgingSession(ABC):
    """A list of items, and a judge who chooses a grade or a preference for each.

    Attributes:
        what: `grades` or `preferences`.
        journal: Journal that every choice is written to at once.
        items: The items to judge, in the order shown.
        number: Place in `items` of the item that is shown; the length of `items` after the last.
        listeners: Functions to call whenever another item is shown.
    """

    what: ClassVar[str]

    def __init__(
        self,
        items: Sequence[Item],
        journal: Path | str,
        *,
        pool_id: str,
        judge: str,
        pictures: Pictures,
    ) -> None:
        """Open the judge's journal and go to the first item that is not judged."""
        self.items = tuple(items)
        self.journal: Journal = open_journal(journal, what=self.what, pool_id=pool_id, judge=judge)
        self._pictures = pictures
        self._numbers = {item: number for number, item in enumerate(self.items)}
        self.listeners: list[Callable[[], None]] = []
        self.number = self.next_open(0)
        self._shown_at = time.perf_counter()

    @property
    @abstractmethod
    def choices(self) -> Mapping[int | str, str]:
        """The possible choices: recorded value -> name."""

    @abstractmethod
    def scene(self, item: Item) -> dict[str, Any]:
        """Return what is shown of an item: `query`, `lang`, and pictures."""

    @property
    def current(self) -> Item | None:
        """The item that is shown; None when all is done."""
        return self.items[self.number] if self.number < len(self.items) else None

    @property
    def n_done(self) -> int:
        """Number of items that were judged or skipped."""
        return len(self.journal.latest.keys() & self._numbers.keys())

    @property
    def n_skipped(self) -> int:
        """Number of items that were skipped; they count as not judged."""
        return sum(entry.choice is None for entry in self.journal.latest.values())

    @property
    def is_done(self) -> bool:
        """Whether every item was judged or skipped."""
        return self.n_done == len(self.items)

    def choose(self, choice: Choice, *, seconds: float | None = None) -> None:
        """Record a choice for the item that is shown, and go on to the next open one.

        Args:
            choice: One of `choices`; None to skip.
            seconds: How long the judge looked; since the item was shown here, if left out.

        Raises:
            InputError: It is not one of `choices`, or all is done.
        """
        fits = any(type(choice) is type(value) and choice == value for value in self.choices)
        if self.current is None or not (choice is None or fits):
            known = ", ".join(map(str, self.choices))
            msg = f"a choice must be one of {known} for what is shown, got {quote(choice)}"
            raise InputError(msg)
        if seconds is None:
            seconds = time.perf_counter() - self._shown_at
        self.journal.record(self.current, choice, seconds=seconds)
        self.go(self.next_open(self.number + 1))

    def skip(self) -> None:
        """Go on without a choice; a skipped item is not shown again by itself."""
        self.choose(None)

    def resume(self) -> None:
        """Go on after what other windows and processes have recorded, at the first open item."""
        self.journal.refresh()
        self.go(self.next_open(0))

    def undo(self) -> None:
        """Take the last choice back, and show its item; does nothing if there is no choice."""
        entry = self.journal.undo()
        if entry is not None and entry.item in self._numbers:
            self.go(self._numbers[entry.item])

    def move(self, steps: int) -> None:
        """Show an earlier (below 0) or later item; a choice there replaces its former one."""
        self.go(self.number + steps)

    def go(self, number: int) -> None:
        """Show the item at a place, or the nearest place that there is."""
        self.number = min(max(number, 0), len(self.items))
        self._shown_at = time.perf_counter()
        for show in self.listeners:
            show()

    def next_open(self, start: int) -> int:
        """Return the place of the first open item from `start` on, then from the beginning.

        It is the length of `items` if all are done.
        """
        judged = self.journal.latest
        n_items = len(self.items)
        numbers = chain(range(start, n_items), range(min(start, n_items)))
        return next((n for n in numbers if self.items[n] not in judged), n_items)

    def act(self, message: Mapping[str, Any]) -> None:
        """Do what a widget requests: `do` is choose, skip, undo, back or next.

        A choice has the `number` of its item, so that a key that was pressed twice does not count
        for the next item, which the judge has not seen yet.

        Raises:
            InputError: `do` or the choice is unknown.
        """
        do, number = message.get("do"), message.get("number")
        if do in ("choose", "skip") and number != self.number:
            return
        if do == "choose":
            self.choose(message.get("choice"))
        elif do == "skip":
            if self.current is not None:
                self.skip()
        elif do == "undo":
            self.undo()
        elif do in ("back", "next"):
            self.move(1 if do == "next" else -1)
        else:
            msg = f"do must be choose, skip, undo, back or next, got {quote(do)}"
            raise InputError(msg)

    def view(self) -> dict[str, Any]:
        """Return everything that a widget or a page shows, as plain values and pictures."""
        item = self.current
        entry = None if item is None else self.journal.latest.get(item)
        return {
            "what": self.what,
            "number": self.number,
            "total": len(self.items),
            "done": self.n_done,
            "skipped": self.n_skipped,
            "choices": [[value, name] for value, name in self.choices.items()],
            "chosen": None if entry is None else entry.choice,
            "judged": entry is not None,
            "scene": None if item is None else self.scene(item),
        }

    def picture(self, photo_id: str) -> Picture:
        """Return a picture; empty if there is none."""
        return self._pictures(photo_id)

    def __str__(self) -> str:
        skipped = f", {self.n_skipped} skipped" if self.n_skipped else ""
        seconds = [e.seconds for e in self.journal.latest.values() if e.choice is not None]
        # The pace of a simulated judge is not worth showing.
        pace = f", {median(seconds):.1f} s each" if seconds and median(seconds) >= 0.1 else ""
        who = f"{self.what} by {self.journal.judge}"
        return f"{who}: {self.n_done} of {len(self.items)}{skipped}{pace}"
