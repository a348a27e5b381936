"""Exposition: the counters of `measures` as the metrics that Prometheus reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from searchlab import __version__
from searchlab.api.ops.metrics import BUCKETS_S, IN_FLIGHT, WAITING, Name

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def exposition(
    totals: Mapping[Name, Sequence[float]], workers: Sequence[Mapping[str, Any]]
) -> bytes:
    """Write the text format of Prometheus.

    Args:
        totals: From `Measures.totals`.
        workers: From `Measures.workers`.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Summed(totals, workers))
    return bytes(generate_latest(registry))


class _Summed(Collector):
    def __init__(
        self, totals: Mapping[Name, Sequence[float]], workers: Sequence[Mapping[str, Any]]
    ) -> None:
        self._totals = totals
        self._workers = workers

    def collect(self) -> Iterator[Metric]:
        yield from self._requests()
        for family, text, label in (
            ("searches", "Searches answered, by the way they were planned.", "mode"),
            ("refusals", "Requests refused, by the reason.", "reason"),
            ("swaps", "New snapshots seen while serving, by what came of them.", "outcome"),
        ):
            counter = CounterMetricFamily(f"searchlab_{family}", text, labels=[label])
            for name, values in self._series(family):
                counter.add_metric([name[1]], values[0])
            yield counter
        yield GaugeMetricFamily(
            "searchlab_requests_in_flight",
            "Requests being worked on.",
            value=self._totals.get(IN_FLIGHT, [0.0])[0],
        )
        yield GaugeMetricFamily(
            "searchlab_requests_waiting",
            "Requests that wait for their clients to send or to take bytes.",
            value=self._totals.get(WAITING, [0.0])[0],
        )
        yield from self._about_workers()

    def _series(self, family: str) -> list[tuple[Name, Sequence[float]]]:
        return sorted((name, found) for name, found in self._totals.items() if name[0] == family)

    def _requests(self) -> Iterator[Metric]:
        counts = CounterMetricFamily(
            "searchlab_requests", "Requests answered.", labels=["route", "method", "status"]
        )
        seconds: dict[tuple[str, str], list[float]] = {}
        for (_, route, method, status), values in self._series("requests"):
            counts.add_metric([route, method, status], sum(values[:-1]))
            before = seconds.get((route, method), [0.0] * len(values))
            seconds[route, method] = [a + b for a, b in zip(before, values, strict=True)]
        yield counts
        latency = HistogramMetricFamily(
            "searchlab_request_seconds",
            "Time from a request's first byte to its answer.",
            labels=["route", "method"],
        )
        for labels, (*buckets, total_s) in sorted(seconds.items()):
            ends = [*map(str, BUCKETS_S), "+Inf"]
            rising = [sum(buckets[: n + 1]) for n in range(len(buckets))]
            latency.add_metric(list(labels), list(zip(ends, rising, strict=True)), total_s)
        yield latency

    def _about_workers(self) -> Iterator[Metric]:
        snapshots = GaugeMetricFamily(
            "searchlab_snapshot_info",
            "Workers that answer from a snapshot under a configuration.",
            labels=["snapshot", "config", "version"],
        )
        shown: dict[tuple[str, str], int] = {}
        n_photos = 0
        for about in self._workers:
            if "snapshot" in about:
                key = (about["snapshot"], about["config"])
                shown[key] = shown.get(key, 0) + 1
                n_photos = max(n_photos, about["n_photos"])
        for (snapshot, config), count in sorted(shown.items()):
            snapshots.add_metric([snapshot, config, __version__], count)
        yield snapshots
        yield GaugeMetricFamily("searchlab_photos", "Photos in the library.", value=n_photos)
        yield GaugeMetricFamily("searchlab_workers", "Workers that live.", value=len(self._workers))
        resident = GaugeMetricFamily(
            "searchlab_worker_resident_bytes", "Memory of each worker.", labels=["worker"]
        )
        for number, about in enumerate(self._workers):
            size = _resident_bytes(about["pid"])
            if size is not None:
                resident.add_metric([str(number)], size)
        yield resident


def _resident_bytes(pid: int) -> int | None:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):  # gone, or a system without it
        return None
    return int(pages) * _PAGE_BYTES
