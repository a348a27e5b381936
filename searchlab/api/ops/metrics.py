"""Measures: what Prometheus reads, summed over the workers of one server.

Each worker counts in a memory-mapped file of its own, so that counting takes no lock and no
system call, and whichever worker is asked adds up the files. A worker holds its file under an
advisory lock; when it dies, the one that takes its place goes on in the same file. So nothing
that was counted is lost and no file of a dead worker is left over.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
import tempfile
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from searchlab.errors import DataError

Name = tuple[str, ...]

BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
IN_FLIGHT = ("in_flight",)
WAITING = ("waiting",)
_GAUGES = (IN_FLIGHT, WAITING)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

# A file: one record about the worker, then one a series: its name as JSON, then its numbers.
_NAME_BYTES = 256
_VALUES = len(BUCKETS_S) + 2  # one a bucket, the one without end, the sum of seconds
_RECORD = _NAME_BYTES + 8 * _VALUES
_SERIES = 511
_FILE_BYTES = (1 + _SERIES) * _RECORD
_MOST_WORKERS = 1024
_NUMBER = struct.Struct("<d")
_NUMBERS = struct.Struct(f"<{_VALUES}d")
_OVERFLOW = ("overflow",)


class Measures:
    """Counters of one worker, and the sum over all.

    Not for several threads at once: the event loop's thread counts.

    Attributes:
        in_flight: Requests that this worker is working on.
        waiting: Requests that wait for their clients to send or to take bytes.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Take a file that no living worker holds.

        Args:
            folder: What the workers of one server share; None to count alone.

        Raises:
            DataError: It cannot be written.
        """
        self._alone = tempfile.TemporaryDirectory(prefix="searchlab-") if folder is None else None
        self._folder = Path(self._alone.name) if self._alone else Path(str(folder))
        self._file, self._map = _claim(self._folder)
        self._places: dict[Name, int] = {}
        for number, name in enumerate(_names(self._map), start=1):
            self._places[name] = number * _RECORD + _NAME_BYTES
        self._about: dict[str, Any] = {"pid": os.getpid()}
        self._write_about()
        self.in_flight = self.waiting = 0
        self._write(IN_FLIGHT, 0)
        self._write(WAITING, 0)

    def started(self) -> None:
        """Count a request that has come."""
        self.in_flight += 1
        self._write(IN_FLIGHT, self.in_flight)

    def waits(self, change: int) -> None:
        """Count a request that begins to wait for its client (1), or goes on (-1)."""
        self.in_flight -= change
        self.waiting += change
        self._write(IN_FLIGHT, self.in_flight)
        self._write(WAITING, self.waiting)

    def finished(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that is answered.

        Args:
            route: Template of its path, so that there are only so many.
            method: HTTP method.
            status: HTTP status.
            seconds: From the first byte to the answer.
        """
        self.in_flight -= 1
        self._write(IN_FLIGHT, self.in_flight)
        method = method if method in METHODS else "OTHER"
        place = self._place(("requests", route, method, f"{status // 100}xx"))
        self._add(place + 8 * bisect_left(BUCKETS_S, seconds), 1)
        self._add(place + 8 * (_VALUES - 1), seconds)

    def searched(self, mode: str) -> None:
        """Count an answered search by the way it was planned: exact, graph or browse."""
        self._add(self._place(("searches", mode)), 1)

    def refused(self, reason: str) -> None:
        """Count a refusal: quota, rate, overload or key."""
        self._add(self._place(("refusals", reason)), 1)

    def swapped(self, outcome: str) -> None:
        """Count a new snapshot by what came of it: done or failed."""
        self._add(self._place(("swaps", outcome)), 1)

    def serving(self, snapshot_id: str, config_id: str, n_photos: int) -> None:
        """Say what this worker answers from now on."""
        self._about |= {"snapshot": snapshot_id, "config": config_id, "n_photos": n_photos}
        self._write_about()

    def close(self) -> None:
        """Let the file go to the next worker."""
        for name in _GAUGES:
            self._write(name, 0)
        self._map.close()
        os.close(self._file)
        if self._alone is not None:
            self._alone.cleanup()

    def expose(self) -> bytes:
        """Return the sums over all workers in the text format of Prometheus."""
        from searchlab.api.ops.exposition import exposition

        return exposition(self.totals(), self.workers())

    def totals(self) -> dict[Name, list[float]]:
        """Return the numbers of each series, summed over the workers' files."""
        sums: dict[Name, list[float]] = {}
        for content in self._contents():
            lives = _about(content) is not None
            for number, name in enumerate(_names(content), start=1):
                if name in _GAUGES and not lives:
                    continue  # what a dead worker was working on, nobody is
                values = _NUMBERS.unpack_from(content, number * _RECORD + _NAME_BYTES)
                before = sums.get(name, [0.0] * _VALUES)
                sums[name] = [one + other for one, other in zip(before, values, strict=True)]
        return sums

    def workers(self) -> list[dict[str, Any]]:
        """Return what each living worker says of itself: pid, snapshot, config, n_photos."""
        return [about for about in map(_about, self._contents()) if about is not None]

    def _contents(self) -> Iterator[bytes]:
        for path in sorted(self._folder.glob("worker-*.counts")):
            content = path.read_bytes()
            if len(content) == _FILE_BYTES:
                yield content

    def _write_about(self) -> None:
        _put_name(self._map, 0, (json.dumps(self._about),))

    def _place(self, name: Name) -> int:
        place = self._places.get(name)
        if place is None:
            number = len(self._places) + 1
            # Routes are few, so all should find room; the last record takes what does not.
            full = number >= _SERIES or len(json.dumps(name)) > _NAME_BYTES - 2
            if full and name != _OVERFLOW:
                return self._place(_OVERFLOW)
            _put_name(self._map, number, name)
            place = self._places[name] = number * _RECORD + _NAME_BYTES
        return place

    def _add(self, place: int, amount: float) -> None:
        _NUMBER.pack_into(self._map, place, _NUMBER.unpack_from(self._map, place)[0] + amount)

    def _write(self, name: Name, value: float) -> None:
        _NUMBER.pack_into(self._map, self._place(name), value)


def _claim(folder: Path) -> tuple[int, mmap.mmap]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(_MOST_WORKERS):
            path = folder / f"worker-{number:03d}.counts"
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                continue
            os.ftruncate(file, _FILE_BYTES)
            return file, mmap.mmap(file, _FILE_BYTES)
    except OSError as error:
        msg = f"{folder} must be a folder that can be written, got: {error.strerror}"
        raise DataError(msg) from error
    msg = f"{folder} must have room for one more worker, got {_MOST_WORKERS} that live"
    raise DataError(msg)


def _put_name(content: mmap.mmap, number: int, name: Name) -> None:
    text = json.dumps(name).encode()
    start = number * _RECORD
    # The length last: a reader sees the whole name or none.
    content[start : start + 2] = bytes(2)
    content[start + 2 : start + 2 + len(text)] = text
    content[start : start + 2] = len(text).to_bytes(2, "little")


def _name_at(content: bytes | mmap.mmap, number: int) -> Name | None:
    start = number * _RECORD
    length = int.from_bytes(content[start : start + 2], "little")
    try:
        return tuple(json.loads(content[start + 2 : start + 2 + length])) if length else None
    except ValueError:  # read while it was being written
        return None


def _names(content: bytes | mmap.mmap) -> Iterator[Name]:
    for number in range(1, _SERIES + 1):
        name = _name_at(content, number)
        if name is None:
            return
        yield name


def _about(content: bytes) -> dict[str, Any] | None:
    """What a worker says of itself; None where it is dead."""
    record = _name_at(content, 0)
    if record is None:
        return None
    about: dict[str, Any] = json.loads(record[0])
    try:
        os.kill(about["pid"], 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return about
