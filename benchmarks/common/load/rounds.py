"""Many requests measured in turn, round after round, so that all meet the same machine."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.common.load.closed_loop import LoadRequest, load
from benchmarks.common.load.processes import cpu_seconds
from searchlab.progress import Progress

_WARM_CONNECTIONS = 16
_FLAT = (
    "cpu_ratio",
    "p99_ratio",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "cpu_us",
    "requests_per_s",
    "requests_per_core_s",
)


@dataclass(frozen=True)
class Target:
    """What is measured under one name.

    Attributes:
        request: The request.
        pids: Processes whose CPU time counts.
        about: What tells its row from others, such as `{"endpoint": "a photo"}`.
        most_connections: Over which the server promises an answer; None for any number.
    """

    request: LoadRequest
    pids: Sequence[int]
    about: Mapping[str, str]
    most_connections: int | None = None


def measure_in_turn(
    targets: Sequence[Target],
    *,
    rounds: int,
    connections: Sequence[int],
    seconds: float,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Load every target over every number of connections, in turn; the median round counts.

    Args:
        targets: Warmed up first, a second each.
        rounds: How often.
        connections: How many at once; those beyond a target's `most_connections` are left out.
        seconds: Of each load.
        progress: Told about each load.

    Returns:
        A row for each target and number of connections: `about`, `connections`, latencies in ms,
        `cpu_us` of the server for a request, `requests_per_s` that clients got and
        `requests_per_core_s`, which one core of the server could answer; `errors` of all rounds
        together, `requests` likewise.
    """
    loads = [
        (number, count)
        for number, target in enumerate(targets)
        for count in connections
        if target.most_connections is None or count <= target.most_connections
    ]
    rows_of: dict[tuple[int, int], list[dict[str, float]]] = {one: [] for one in loads}
    with progress.step("asking", rounds * len(loads), unit="loads") as step:
        for target in targets:
            step.note(f"warming up: {' '.join(target.about.values())}")
            load(target.request, connections=_WARM_CONNECTIONS, seconds=min(1.0, seconds))
        for number, count in loads * rounds:
            step.note(" ".join(targets[number].about.values()))
            row = measure_target(targets[number], connections=count, seconds=seconds)
            rows_of[number, count].append(row)
            step.advance(1)
    return [
        {**targets[number].about, "connections": count, **middle(rows)}
        for (number, count), rows in rows_of.items()
    ]


def measure_target(target: Target, *, connections: int, seconds: float) -> dict[str, float]:
    """Load a target once, and say what it cost."""
    before = sum(map(cpu_seconds, target.pids))
    outcome = asdict(load(target.request, connections=connections, seconds=seconds))
    spent = sum(map(cpu_seconds, target.pids)) - before
    requests, took = outcome.pop("requests"), outcome.pop("seconds")
    errors = outcome.pop("refused") + outcome.pop("failed")
    answered = max(1, requests)
    return {
        **outcome,
        "cpu_us": 1e6 * spent / answered,
        "requests_per_s": requests / took,
        "requests_per_core_s": answered / max(spent, 0.01),
        "errors": errors,
        "requests": requests,
    }


def middle(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure, to three digits behind the point; counts are added up."""
    sums = {name: int(sum(row[name] for row in rows)) for name in ("errors", "requests")}
    return {
        name: sums[name]
        if name in sums
        else round(float(statistics.median(row[name] for row in rows)), 3)
        for name in rows[0]
    }


def with_ratios(rows: Sequence[Mapping[str, Any]], *, by: str, base: str) -> list[dict[str, Any]]:
    """Add `cpu_ratio` and `p99_ratio`: to the row that `base` names, over as many connections.

    Args:
        rows: Of `measure_in_turn`.
        by: What tells them apart.
        base: One of its values, which gets 1.
    """
    bases = {row["connections"]: row for row in rows if row[by] == base}

    def over(row: Mapping[str, Any], figure: str) -> float:
        return round(row[figure] / max(bases[row["connections"]][figure], 1e-9), 3)

    return [
        {**row, "cpu_ratio": over(row, "cpu_us"), "p99_ratio": over(row, "p99_ms")} for row in rows
    ]


def flatten(rows: Sequence[Mapping[str, Any]], *, by: str) -> dict[str, float]:
    """Name the figures of rows, such as `a photo.16.p50_ms`."""
    return {
        f"{row[by]}.{row['connections']}.{figure}": row[figure] for row in rows for figure in _FLAT
    }
