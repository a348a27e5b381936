"""The ledger of a round: requests, answers, and what went wrong."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from searchlab.evaluation.metrics import latency

_MOST_NOTED = 50


class Ledger:
    """Counts of requests and answers, and the promises that were broken.

    Attributes:
        requests: Number of answers.
        acknowledged: Account -> searches that were answered.
        unknown: Account -> searches whose connection broke: they may have been counted or not.
        answers: (route, status) -> how often it was the answer.
        broken: Descriptions of promises that were not kept.
        events: Name -> how often something else happened.
        latencies_s: Seconds of each answer.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.acknowledged: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.answers: Counter[tuple[str, int]] = Counter()
        self.events: Counter[str] = Counter()
        self.broken: list[str] = []
        self.latencies_s: list[float] = []

    def note(self, route: str, status: int) -> None:
        """Count an answer."""
        self.requests += 1
        self.answers[route, status] += 1

    def report_broken(self, message: str) -> None:
        """Record and print a promise that was not kept."""
        if len(self.broken) < _MOST_NOTED:
            self.broken.append(message)
            sys.stdout.write(f"BROKEN: {message}\n")

    @property
    def asked(self) -> set[str]:
        """Routes that were asked."""
        return {route for route, _ in self.answers}

    def counts(self) -> dict[str, float]:
        """Return the figures of the round."""
        return {
            "requests": self.requests,
            "searches acknowledged": self.acknowledged.total(),
            "searches broken off": self.unknown.total(),
            **dict(sorted(self.events.items())),
            **{name: round(value, 2) for name, value in latency(self.latencies_s or [0.0]).items()},
        }

    def tables(self) -> dict[str, Any]:
        """Return the tables of the round: statuses, answers by route, broken promises."""
        statuses: Counter[int] = Counter()
        for (_, status), count in self.answers.items():
            statuses[status] += count
        answers = sorted(self.answers.items())
        return {
            "statuses": {str(status): count for status, count in sorted(statuses.items())},
            "answers": {f"{name} {status}": count for (name, status), count in answers},
            "broken": self.broken,
        }
