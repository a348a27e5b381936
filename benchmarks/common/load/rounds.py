"""Measure many requests in turn, round after round, so that all meet the same machine."""

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
    """A request to measure, and the processes that answer it.

    Attributes:
        request: The request.
        pids: Processes whose CPU time counts.
        labels: What distinguishes its row from others, such as `{"endpoint": "a photo"}`.
        most_connections: Most connections over which the server promises an answer; None for any.
    """

    request: LoadRequest
    pids: Sequence[int]
    labels: Mapping[str, str]
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
        targets: What to load; each is warmed up first, for a second.
        rounds: How many rounds.
        connections: Numbers of connections; those above a target's `most_connections` are left out.
        seconds: Length of each load.
        progress: Shows each load.

    Returns:
        A row for each target and number of connections: its labels, `connections`, latencies in ms,
        `cpu_us` of the server per request, `requests_per_s` that clients got, and
        `requests_per_core_s`, which one core of the server could answer; `errors` and `requests`
        are sums over all rounds.
    """
    loads = [
        (number, count)
        for number, target in enumerate(targets)
        for count in connections
        if target.most_connections is None or count <= target.most_connections
    ]
    rows_of: dict[tuple[int, int], list[dict[str, float]]] = {key: [] for key in loads}
    with progress.step("asking", rounds * len(loads), unit="loads") as step:
        for target in targets:
            step.note(f"warming up: {' '.join(target.labels.values())}")
            load(target.request, connections=_WARM_CONNECTIONS, seconds=min(1.0, seconds))
        for number, count in loads * rounds:
            step.note(" ".join(targets[number].labels.values()))
            row = measure_target(targets[number], connections=count, seconds=seconds)
            rows_of[number, count].append(row)
            step.advance(1)
    return [
        {**targets[number].labels, "connections": count, **take_medians(rows)}
        for (number, count), rows in rows_of.items()
    ]


def measure_target(target: Target, *, connections: int, seconds: float) -> dict[str, float]:
    """Load a target once, and measure what it costs."""
    before = sum(map(cpu_seconds, target.pids))
    outcome = asdict(load(target.request, connections=connections, seconds=seconds))
    cpu_s = sum(map(cpu_seconds, target.pids)) - before
    requests, duration_s = outcome.pop("requests"), outcome.pop("seconds")
    errors = outcome.pop("refused") + outcome.pop("failed")
    answered = max(1, requests)
    return {
        **outcome,
        "cpu_us": 1e6 * cpu_s / answered,
        "requests_per_s": requests / duration_s,
        "requests_per_core_s": answered / max(cpu_s, 0.01),
        "errors": errors,
        "requests": requests,
    }


def take_medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure, rounded to three decimals; counts are added up."""
    sums = {name: int(sum(row[name] for row in rows)) for name in ("errors", "requests")}
    return {
        name: sums[name]
        if name in sums
        else round(float(statistics.median(row[name] for row in rows)), 3)
        for name in rows[0]
    }


def with_ratios(rows: Sequence[Mapping[str, Any]], *, by: str, base: str) -> list[dict[str, Any]]:
    """Add `cpu_ratio` and `p99_ratio`, relative to the base's row with as many connections.

    Args:
        rows: What `measure_in_turn` returned.
        by: The label that distinguishes them.
        base: The label's value in the rows whose ratios are 1.
    """
    bases = {row["connections"]: row for row in rows if row[by] == base}

    def ratio(row: Mapping[str, Any], figure: str) -> float:
        return round(row[figure] / max(bases[row["connections"]][figure], 1e-9), 3)

    return [
        {**row, "cpu_ratio": ratio(row, "cpu_us"), "p99_ratio": ratio(row, "p99_ms")}
        for row in rows
    ]


def flatten(rows: Sequence[Mapping[str, Any]], *, by: str) -> dict[str, float]:
    """Give each figure of the rows a name, such as `a photo.16.p50_ms`."""
    return {
        f"{row[by]}.{row['connections']}.{figure}": row[figure] for row in rows for figure in _FLAT
    }
