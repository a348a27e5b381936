"""The ledger of a soak: what was asked and answered, and what went wrong."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from searchlab.evaluation.metrics import latency

_MOST_NOTED = 50


class Ledger:
    """What was asked and answered.

    Attributes:
        acknowledged: Searches that each account got an answer to.
        unknown: Searches whose connection broke: counted or not, nobody can tell.
        answers: How often each operation gave each status.
        broken: Promises that were not kept.
        events: What else happened, by name.
        took_s: Seconds of each answer.
    """

    def __init__(self) -> None:
        self.acknowledged: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.answers: Counter[tuple[str, int]] = Counter()
        self.events: Counter[str] = Counter()
        self.broken: list[str] = []
        self.took_s: list[float] = []

    def blame(self, message: str) -> None:
        """Note a promise that was not kept."""
        if len(self.broken) < _MOST_NOTED:
            self.broken.append(message)
            sys.stdout.write(f"BROKEN: {message}\n")

    @property
    def requests(self) -> int:
        """Answers that came."""
        return self.answers.total()

    def counts(self) -> dict[str, float]:
        """Return the figures that go on record."""
        return {
            "requests": self.requests,
            "searches acknowledged": self.acknowledged.total(),
            "searches broken off": self.unknown.total(),
            **dict(sorted(self.events.items())),
            **{name: round(value, 2) for name, value in latency(self.took_s or [0.0]).items()},
        }

    def tables(self) -> dict[str, Any]:
        """Return what else goes on record: statuses, answers by operation, broken promises."""
        statuses: Counter[int] = Counter()
        for (_, status), count in self.answers.items():
            statuses[status] += count
        answers = sorted(self.answers.items())
        return {
            "statuses": {str(status): count for status, count in sorted(statuses.items())},
            "answers": {f"{name} {status}": count for (name, status), count in answers},
            "broken": self.broken,
        }
