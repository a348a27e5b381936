"""Metrics: what Prometheus reads, summed over the workers of one server.

With `prometheus_client` each worker counts in memory-mapped files of its own, in the folder that
PROMETHEUS_MULTIPROC_DIR names; the worker that answers adds them up, those of killed workers too.
The variable is read when the library is imported, so the server sets it for its workers; without it
a process counts for itself alone.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from searchlab import __version__
from searchlab.api.settings import METRICS_ENVIRONMENT

BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SNAPSHOT_INFO = "searchlab_snapshot_info"
_GAUGE_FILE = "gauge_livesum_"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_Cell: TypeAlias = "memoryview[float] | array[float]"  # of one double

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counters of one worker, and their sums over all workers.

    Only the event loop's thread counts, except where a method says otherwise.

    Attributes:
        in_flight: Requests that this worker is working on.
        waiting: Requests that wait for their clients to send or to take bytes.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "searchlab_requests",
            "Requests answered.",
            ["route", "method", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "searchlab_request_seconds",
            "Time from a request's first byte to its answer.",
            ["route", "method"],
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._searches, self._refusals, self._swaps = (
            _CellsByLabel(Counter(f"searchlab_{name}", text, [label], registry=registry))
            for name, text, label in (
                ("searches", "Searches answered, by the way they were planned.", "mode"),
                ("refusals", "Requests refused, by the reason.", "reason"),
                ("swaps", "New snapshots seen while serving, by what came of them.", "outcome"),
            )
        )
        self._in_flight, self._waiting = (
            _cell_of(Gauge(name, text, multiprocess_mode="livesum", registry=registry)._value)
            for name, text in (
                ("searchlab_requests_in_flight", "Requests being worked on."),
                (
                    "searchlab_requests_waiting",
                    "Requests that wait for their clients to send or to take bytes.",
                ),
            )
        )
        self._snapshots = Gauge(
            _SNAPSHOT_INFO,
            "Workers that answer from a snapshot under a configuration.",
            ["snapshot", "config", "version"],
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._photos = Gauge(
            "searchlab_photos",
            "Photos in the library.",
            multiprocess_mode="livemax",
            registry=registry,
        )
        self._replicas = Gauge(
            "searchlab_shard_replicas",
            "Replicas of a shard that answer.",
            ["shard"],
            multiprocess_mode="livemin",
            registry=registry,
        )
        self._shard_seconds = Histogram(
            "searchlab_shard_seconds",
            "Time until a shard answered a question.",
            ["shard"],
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._series: dict[tuple[str, str, int], tuple[_Cell, list[_Cell], _Cell]] = {}
        self._snapshot: tuple[str, str, str] | None = None
        self.in_flight = self.waiting = 0

    def start_request(self) -> None:
        """Count a request that has arrived."""
        self.in_flight += 1
        self._in_flight[0] = self.in_flight

    def count_waiting(self, change: int) -> None:
        """Count a request that begins (1) or ends (-1) to wait for its client."""
        self.in_flight -= change
        self.waiting += change
        self._in_flight[0] = self.in_flight
        self._waiting[0] = self.waiting

    def finish_request(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that is answered.

        Args:
            route: Template of its path, not the path, which would make endless series.
            method: HTTP method.
            status: HTTP status.
            seconds: From the first byte to the answer.
        """
        self.in_flight -= 1
        self._in_flight[0] = self.in_flight
        method = method if method in METHODS else "OTHER"
        key = (route, method, status // 100)
        series = self._series.get(key)
        if series is None:  # cached, since looking up labels takes longer than counting
            count: Any = self._requests.labels(route, method, f"{status // 100}xx")
            times: Any = self._seconds.labels(route, method)
            buckets = [_cell_of(bucket) for bucket in times._buckets]
            series = self._series[key] = (_cell_of(count._value), buckets, _cell_of(times._sum))
        requests, buckets, seconds_sum = series
        requests[0] += 1
        buckets[bisect_left(BUCKETS_S, seconds)][0] += 1
        seconds_sum[0] += seconds

    def count_search(self, mode: str) -> None:
        """Count an answered search by the mode of its plan: exact, graph or browse."""
        self._searches[mode][0] += 1

    def count_refusal(self, reason: str) -> None:
        """Count a refused request by its reason, such as quota, rate, overload or key."""
        self._refusals[reason][0] += 1

    def count_swap(self, outcome: str) -> None:
        """Count a new snapshot by its outcome: done or failed."""
        self._swaps[outcome][0] += 1

    def describe_snapshot(self, snapshot_id: str, config_id: str, n_photos: int) -> None:
        """Record the snapshot and configuration that this worker answers from."""
        if self._snapshot is not None:
            self._snapshots.labels(*self._snapshot).set(0)
        self._snapshot = (snapshot_id, config_id, __version__)
        self._snapshots.labels(*self._snapshot).set(1)
        self._photos.set(n_photos)

    def describe_shards(self, n_answering: Sequence[int]) -> None:
        """Record how many replicas of each shard answer; in any thread."""
        for number, n_replicas in enumerate(n_answering, start=1):
            self._replicas.labels(f"{number}").set(n_replicas)

    def observe_shard(self, shard: int, seconds: float) -> None:
        """Count an answer of a shard, whose number is from 0; in any thread."""
        self._shard_seconds.labels(f"{shard + 1}").observe(seconds)

    def expose(self) -> bytes:
        """Return the sums over all workers in the text format of Prometheus."""
        return bytes(generate_latest(self._exposition))

    @cached_property
    def _exposition(self) -> CollectorRegistry:
        exposition = CollectorRegistry(auto_describe=False)
        exposition.register(_Sums(self._registry))
        return exposition


class _CellsByLabel(dict[str, _Cell]):
    """The cells of a counter with one label, each looked up when it is first counted."""

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self._counter = counter

    def __missing__(self, label: str) -> _Cell:
        counter: Any = self._counter.labels(label)
        cell = self[label] = _cell_of(counter._value)
        return cell


def _cell_of(value: Any) -> _Cell:
    """Return the double in which prometheus_client stores a value, to write it directly.

    The library's own methods take a lock, read the process id and look up the place by name, for
    each of the five values that a request changes; counting would take nine times as long.
    """
    if hasattr(value, "cell"):  # all classes of status share the histogram of their route
        cell: _Cell = value.cell
        return cell
    if value._multiprocess:
        # A file that grows is mapped anew; the earlier mapping stays valid, on the same pages.
        start = value._file._positions[value._key]
        cell = memoryview(value._file._m)[start : start + 8].cast("d")
    else:
        cell = array("d", [0.0])
    value.cell = cell
    value.get = partial(cell.__getitem__, 0)
    return cell


class _Sums(Collector):
    """The metrics of one worker's registry summed over all workers, with their descriptions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._folder = os.environ.get(METRICS_ENVIRONMENT)

    def collect(self) -> Iterator[Metric]:
        pids = self._find_workers()
        own = {metric.name: metric for metric in self._registry.collect()}
        sums = own
        if self._folder:
            summing: Any = MultiProcessCollector(None, self._folder)  # type: ignore[no-untyped-call]
            sums = {metric.name: metric for metric in summing.collect()}
        for name, described in own.items():
            metric = sums.get(name, described)
            metric.documentation = described.documentation
            if name == _SNAPSHOT_INFO:  # those that no worker serves any more are left out
                metric.samples = [sample for sample in metric.samples if sample.value]
            yield metric
        yield GaugeMetricFamily("searchlab_workers", "Workers that live.", value=len(pids))
        resident = GaugeMetricFamily(
            "searchlab_worker_resident_bytes", "Memory of each worker.", labels=["worker"]
        )
        for number, pid in enumerate(pids):
            size = _resident_bytes(pid)
            if size is not None:
                resident.add_metric([str(number)], size)
        yield resident

    def _find_workers(self) -> list[int]:
        """List the living workers, and remove what dead ones counted as in flight."""
        if not self._folder:
            return [os.getpid()]
        files = Path(self._folder).glob(f"{_GAUGE_FILE}*.db")
        pids = sorted(int(file.stem.removeprefix(_GAUGE_FILE)) for file in files)
        for pid in pids:
            if not _lives(pid):
                mark_process_dead(pid, self._folder)  # type: ignore[no-untyped-call]
        return [pid for pid in pids if _lives(pid)]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _resident_bytes(pid: int) -> int | None:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):  # gone, or a system without it
        return None
    return int(pages) * _PAGE_BYTES
