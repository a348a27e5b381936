"""A judging session: one judge and a list of things to judge; every choice goes to a journal.

What a session shows and takes is plain values, so that a widget, a test and a simulated judge use
it alike. It goes on where the journal ends.
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

Pictures: TypeAlias = Callable[[str], bytes]
"""photo_id -> the bytes of a picture that browsers show, empty where there is none."""


class JudgingSession(ABC):
    """A judge at work.

    Attributes:
        journal: Where every choice goes at once.
        items: What is judged, in the order shown.
        listeners: Called whenever another thing is shown.
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
        """Open the judge's journal and go to the first thing that is not judged."""
        self.items = tuple(items)
        self.journal: Journal = open_journal(journal, what=self.what, pool_id=pool_id, judge=judge)
        self._pictures = pictures
        self._numbers = {item: number for number, item in enumerate(self.items)}
        self.listeners: list[Callable[[], None]] = []
        self.number = self._next_open(0)
        self._shown_at = time.perf_counter()

    @property
    @abstractmethod
    def choices(self) -> Mapping[int | str, str]:
        """What may be chosen, by the value that is recorded, with its name."""

    @abstractmethod
    def scene(self, item: Item) -> dict[str, Any]:
        """What is shown of a thing to judge: `query`, `lang`, and pictures as bytes."""

    @property
    def current(self) -> Item | None:
        """What is being judged; None when all is done."""
        return self.items[self.number] if self.number < len(self.items) else None

    @property
    def n_done(self) -> int:
        """Things chosen for or skipped."""
        return len(self.journal.latest.keys() & self._numbers.keys())

    @property
    def n_skipped(self) -> int:
        """Things skipped; they count as not judged."""
        return sum(entry.choice is None for entry in self.journal.latest.values())

    @property
    def is_done(self) -> bool:
        """Whether nothing is left that was neither judged nor skipped."""
        return self.n_done == len(self.items)

    def choose(self, choice: Choice) -> None:
        """Record a choice for what is shown, and go on to the next that is open.

        Raises:
            InputError: It is no choice of this session, or all is done.
        """
        fits = any(type(choice) is type(value) and choice == value for value in self.choices)
        if self.current is None or not (choice is None or fits):
            known = ", ".join(map(str, self.choices))
            msg = f"a choice must be one of {known} for what is shown, got {quote(choice)}"
            raise InputError(msg)
        seconds = time.perf_counter() - self._shown_at
        self.journal.record(self.current, choice, seconds=seconds)
        self._go(self._next_open(self.number + 1))

    def skip(self) -> None:
        """Go on without a choice; what was skipped is not shown again by itself."""
        self.choose(None)

    def undo(self) -> None:
        """Take the last choice back, and show what it was about; nothing to undo is no error."""
        entry = self.journal.undo()
        if entry is not None and entry.item in self._numbers:
            self._go(self._numbers[entry.item])

    def move(self, steps: int) -> None:
        """Look at an earlier or a later thing without judging; choosing there replaces."""
        self._go(min(max(self.number + steps, 0), len(self.items)))

    def act(self, message: Mapping[str, Any]) -> None:
        """Do what a widget asks: `do` is choose, skip, undo, back or next.

        A choice names the `number` it is about, so that a key that was pressed twice is not taken
        for the next picture, which nobody has seen yet.
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
        """All that a widget shows, as plain values and bytes."""
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

    def picture(self, photo_id: str) -> bytes:
        """Bytes of a picture, empty where there is none."""
        return self._pictures(photo_id)

    def __str__(self) -> str:
        skipped = f", {self.n_skipped} skipped" if self.n_skipped else ""
        chosen = [e.seconds for e in self.journal.latest.values() if e.choice is not None]
        # A simulated judge takes no time worth telling.
        pace = f", {median(chosen):.1f} s each" if chosen and median(chosen) >= 0.1 else ""
        who = f"{self.what} by {self.journal.judge}"
        return f"{who}: {self.n_done} of {len(self.items)}{skipped}{pace}"

    def _next_open(self, start: int) -> int:
        known = self.journal.latest
        n_items = len(self.items)
        around = chain(range(start, n_items), range(min(start, n_items)))
        return next((n for n in around if self.items[n] not in known), n_items)

    def _go(self, number: int) -> None:
        self.number = number
        self._shown_at = time.perf_counter()
        for show in self.listeners:
            show()
