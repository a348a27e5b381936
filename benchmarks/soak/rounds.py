"""Rounds of a soak: each is kept as it ends, and all together are the record."""

from __future__ import annotations

import argparse
import datetime
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.common.recording import record
from searchlab.evaluation.provenance.manifest import commit, machine, make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path, read_measurement
from searchlab.evaluation.provenance.registry import code_of

_MOST_SHOWN = 50


class Record:
    """The rounds that are on record, and the tables that they add up to.

    Attributes:
        rounds: One row each, oldest first: its seed, commit, machine, length and figures.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        benchmark: str,
        name: str,
        parameters: Mapping[str, Any],
    ) -> None:
        """Read what is on record; with `--force`, and without a record, there is nothing yet.

        Args:
            options: The command line of a benchmark.
            benchmark: A name in `STUDIES`.
            name: Of the record.
            parameters: Those that are recorded.

        Raises:
            DataError: The record is damaged.
        """
        self._options, self._parameters = options, parameters
        self._benchmark, self._name = benchmark, name
        path = measurement_path(options.out, benchmark, options.dataset, name)
        is_new = options.force or not path.exists()
        values = {} if is_new else read_measurement(path)
        self.rounds: list[dict[str, Any]] = values.get("rounds", [])
        self._tables = {table: Counter(values.get(table, {})) for table in ("statuses", "answers")}
        self._broken: list[str] = values.get("broken", [])

    @property
    def requests(self) -> int:
        """Requests of all rounds."""
        return sum(int(one["requests"]) for one in self.rounds)

    @property
    def seconds(self) -> float:
        """Seconds of all rounds."""
        return sum(float(one["seconds"]) for one in self.rounds)

    @property
    def asked(self) -> set[str]:
        """What was asked, without the status of the answer."""
        return {name.rpartition(" ")[0] for name in self._tables["answers"]}

    @property
    def broken(self) -> list[str]:
        """Promises that were broken, each with the round that it was in."""
        return self._broken

    def next_seed(self) -> int:
        """Return a seed that no round had."""
        return int(self._options.seed) + len(self.rounds)

    def add(
        self,
        figures: Mapping[str, float],
        tables: Mapping[str, Any],
        *,
        seconds: float,
        more: Mapping[str, Any],
    ) -> None:
        """Add a round that has ended, and write the record.

        Args:
            figures: Its counts and other figures.
            tables: `statuses` and `answers`, which are counts, and `broken`.
            seconds: How long it was.
            more: Further tables of the whole record.
        """
        number = len(self.rounds) + 1
        about = {
            "round": number,
            "seed": self.next_seed(),
            "commit": commit(),
            "code": code_of(self._benchmark),
            "machine": machine(),
            "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 1),
        }
        self.rounds.append(about | dict(figures))
        for table, counts in self._tables.items():
            counts.update(tables.get(table, {}))
        self._broken += [f"round {number}: {what}" for what in tables["broken"]][:_MOST_SHOWN]
        self._write(more)

    def figures(self) -> dict[str, float]:
        """Return the figures of all rounds together."""
        return sum_up(self.rounds)

    def _write(self, more: Mapping[str, Any]) -> None:
        figures = self.figures()
        values = {
            "parameters": dict(self._parameters),
            "metrics": figures,
            "counts": [{"what": name, "count": value} for name, value in figures.items()],
            "rounds": self.rounds,
            **{table: dict(sorted(counts.items())) for table, counts in self._tables.items()},
            "broken": self._broken,
            **more,
            "manifest": make_manifest(self._benchmark, seed=self._options.seed),
        }
        record(self._options, self._benchmark, self._name, values)


def sum_up(rounds: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Sum up rows of rounds: counts are added, of latencies the median round counts, else the most.

    >>> sum_up([{"requests": 10, "seconds": 2.0, "p50_ms": 4.0, "most s to end": 3.0},
    ...         {"requests": 20, "seconds": 1.0, "p50_ms": 6.0, "most s to end": 1.0}])
    {'rounds': 2, 'requests': 30, 'seconds': 3.0, 'requests a second': 10.0, 'p50_ms': 5.0, \
'most s to end': 3.0}
    """
    names = dict.fromkeys(
        name
        for one in rounds
        for name, value in one.items()
        if isinstance(value, int | float) and name not in {"round", "seed", "requests", "seconds"}
    )
    requests = sum(one["requests"] for one in rounds)
    seconds = round(sum(one["seconds"] for one in rounds), 1)
    figures: dict[str, float] = {"rounds": len(rounds), "requests": requests, "seconds": seconds}
    figures["requests a second"] = round(requests / max(seconds, 1e-9), 1)
    for name in names:
        values = [one[name] for one in rounds if name in one]
        if name.endswith("_ms"):
            figures[name] = round(float(np.median(values)), 2)
        elif "MiB" in name or name.startswith("most "):
            figures[name] = max(values)
        else:
            figures[name] = sum(values)
    return figures


def show(figures: Mapping[str, float]) -> None:
    """Print figures, a line each."""
    for name, value in figures.items():
        sys.stdout.write(f"{name:<40}{value:>12,}\n")


def end_on_sigterm() -> None:
    """Let SIGTERM end the soak as Ctrl-C does, and so the server that it has started."""
    interrupt: Callable[..., Any] = signal.default_int_handler
    signal.signal(signal.SIGTERM, interrupt)
