"""Points: what came of each fault, on record as soon as it is known."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.common.recording import on_record, record
from searchlab.evaluation.provenance.manifest import make_manifest, models_of

_TIMES = ("recover_s", "longest_s")


@dataclass
class Point:
    """One fault.

    Attributes:
        figures: Counts, and seconds: `recover_s` until all was as before, `longest_s` that anybody
            waited for an answer.
        broken: Promises that were not kept, in words.
    """

    figures: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def require(self, kept: object, promise: str) -> None:
        """Note a promise unless it was kept."""
        if not kept:
            self.broken.append(promise)


class Record:
    """The points of a run, with those of an earlier run of the same code that was interrupted."""

    def __init__(
        self,
        options: argparse.Namespace,
        benchmark: str,
        name: str,
        parameters: Mapping[str, Any],
    ) -> None:
        """Read what is on record; nothing with `--force`."""
        self._options, self._parameters = options, dict(parameters)
        self._benchmark, self._name = benchmark, name
        earlier = on_record(options, benchmark, name) or {}
        self._rows: list[dict[str, Any]] = earlier.get("points", [])

    @property
    def broken(self) -> list[str]:
        """Promises that were not kept, each with its point."""
        return [
            f"{row['kind']} {row['seed']}: {one}" for row in self._rows for one in row["broken"]
        ]

    def left(self, kind: str, count: int) -> list[int]:
        """Return the seeds of the points of a kind that are not on record."""
        done = {row["seed"] for row in self._rows if row["kind"] == kind}
        first = 1_000 * self._options.seed
        return [seed for seed in range(first, first + count) if seed not in done]

    def measure(self, kind: str, count: int, make: Callable[[int], Point]) -> None:
        """Make the points of a kind that are not on record, and record each as it is known."""
        for seed in self.left(kind, count):
            point = make(seed)
            self._rows.append({"kind": kind, "seed": seed, **point.figures, "broken": point.broken})
            self._write()
            shown = ", ".join(f"{name} {value:g}" for name, value in point.figures.items())
            sys.stdout.write(f"{kind} {seed}: {shown}\n")
            sys.stdout.writelines(f"    BROKEN: {one}\n" for one in point.broken)
            sys.stdout.flush()

    def figures(self) -> dict[str, float]:
        """Return the figures of each kind: counts added, of times the median and the most."""
        figures: dict[str, float] = {}
        for kind in dict.fromkeys(row["kind"] for row in self._rows):
            rows = [row for row in self._rows if row["kind"] == kind]
            figures[f"{kind}.points"] = len(rows)
            figures[f"{kind}.broken"] = sum(len(row["broken"]) for row in rows)
            names = dict.fromkeys(name for row in rows for name in row)
            for name in names.keys() - {"kind", "seed", "broken"}:
                values = [row[name] for row in rows if name in row]
                if name in _TIMES:
                    figures[f"{kind}.{name}.median"] = round(statistics.median(values), 2)
                    figures[f"{kind}.{name}.most"] = round(max(values), 2)
                else:
                    figures[f"{kind}.{name}"] = sum(values)
        return dict(sorted(figures.items()))

    def _write(self) -> None:
        values = {
            "parameters": self._parameters | {"processors": os.cpu_count()},
            "metrics": self.figures(),
            "points": self._rows,
            "manifest": make_manifest(
                self._benchmark, models=models_of("mini"), seed=self._options.seed
            ),
        }
        record(self._options, self._benchmark, self._name, values)
