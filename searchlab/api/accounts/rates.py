"""Rates: limits how fast one key may send requests, exactly over all workers of a machine.

The generic cell rate algorithm: a key's whole state is one instant, the time at which it will have
its full burst again. All workers share these instants in one memory-mapped file, 16 bytes per key,
under an advisory lock that the system releases if its holder dies. A key that has its full burst
again is in the same state as a new one, so another key may take its slot.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import math
import mmap
import os
import struct
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.plans import Plan
from searchlab.errors import DataError, InputError

_BUCKETS = 4096
_SLOTS = 16  # in each bucket
_SLOT = struct.Struct("<Qq")  # hash of the key, the instant in nanoseconds
_BUCKET = struct.Struct("<" + "Qq" * _SLOTS)
_FILE_BYTES = _BUCKETS * _BUCKET.size
_SECOND = 1_000_000_000
_LONGEST_WINDOW_S = 100_000_000  # instants are 64-bit numbers of nanoseconds
_MONTH_S = 2_592_000  # 30 days: the IETF draft wants a fixed number of seconds
_KNOWN_PLACES = 65_536


class Verdict(NamedTuple):
    """The decision on one request of a key.

    Attributes:
        allowed: Whether this request is within the rate; one that is not uses up nothing.
        remaining: Requests that the key could send at once after this one.
        reset_s: Seconds until it has its full burst again.
        retry_after_s: Seconds until the next request is allowed; 0 if this one is.
        burst: Requests that it may send at once.
        window_s: Seconds in which the full burst comes back.
    """

    allowed: bool
    remaining: int
    reset_s: float
    retry_after_s: float
    burst: int
    window_s: int


class Rates:
    """A token bucket for each key: `burst` requests at once, `per_second` in the long run.

    Workers that open the same file share their counts; without a file a process counts alone.
    """

    def __init__(self, path: Path | None, per_second: float, burst: int) -> None:
        """Open the shared file; creates it if it does not exist.

        Args:
            path: The file that the workers of a machine share; None for this process alone.
            per_second: Requests a second in the long run, above 0.
            burst: Requests at once, 1 or more; all of them back within 100 million seconds.

        Raises:
            InputError: The rate or the burst is out of range.
            DataError: The file cannot be created, or has another size than ours.
        """
        if not 0 < per_second < math.inf:
            msg = f"per_second must be above 0, got {per_second!r}"
            raise InputError(msg)
        if not 1 <= burst <= per_second * _LONGEST_WINDOW_S:
            msg = f"burst must be 1 or more and in reach of {per_second!r} a second, got {burst!r}"
            raise InputError(msg)
        self._step = max(1, round(_SECOND / per_second))
        self._full = burst * self._step
        self._burst = burst
        self._window_s = max(1, math.ceil(burst / per_second))
        # The file lock excludes other processes; this one excludes other threads of this process.
        self._own = threading.Lock()
        self._places: dict[str, tuple[int, int]] = {}
        self._file: int | None = None
        if path is None:
            self._map = mmap.mmap(-1, _FILE_BYTES)
        else:
            self._file, self._map = _open(path)

    def check(self, key_id: str, now: float | None = None, *, take: bool = True) -> Verdict:
        """Decide on one request of a key, and take it from its bucket if it is allowed.

        Args:
            key_id: Public identifier of the key.
            now: Seconds by a clock that all workers share; that of the machine, which nobody can
                set, if left out.
            take: Whether to take it; else this only tells whether it would be allowed.

        Returns:
            Whether it is allowed, and what is left.
        """
        with self._own:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                at = time.monotonic_ns() if now is None else round(now * _SECOND)
                place, hashed, full_at = self._find(key_id, at)
                # However wrong the stored instant is, no key waits longer than a full burst takes.
                full_at = min(max(full_at, at), at + self._full)
                wait = full_at + self._step - self._full - at
                if wait <= 0 and take:
                    full_at += self._step
                _SLOT.pack_into(self._map, place, hashed, full_at)
            finally:
                if self._file is not None:
                    fcntl.flock(self._file, fcntl.LOCK_UN)
        allowed = wait <= 0
        return Verdict(
            allowed,
            (at + self._full - full_at) // self._step,
            (full_at - at) / _SECOND,
            0.0 if allowed else wait / _SECOND,
            self._burst,
            self._window_s,
        )

    def _find(self, key_id: str, at: int) -> tuple[int, int, int]:
        known = self._places.get(key_id)
        if known is not None:
            place, hashed = known
            stored_hash, full_at = _SLOT.unpack_from(self._map, place)
            if stored_hash == hashed:
                return place, hashed, full_at
        digest = hashlib.blake2b(key_id.encode(errors="replace"), digest_size=8).digest()
        hashed = int.from_bytes(digest, "little") or 1
        bucket = hashed % _BUCKETS * _BUCKET.size
        slots = _BUCKET.unpack_from(self._map, bucket)
        hashes, instants = slots[::2], slots[1::2]
        if hashed in hashes:
            slot, full_at = hashes.index(hashed), instants[hashes.index(hashed)]
        else:
            # The slot of a key with its full burst; if all 16 are busy, of the one nearest to it.
            slot, full_at = instants.index(min(instants)), at
        if len(self._places) >= _KNOWN_PLACES:
            self._places.clear()
        place = bucket + slot * _SLOT.size
        self._places[key_id] = (place, hashed)
        return place, hashed, full_at

    def close(self) -> None:
        """Close the file."""
        self._map.close()
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _open(path: Path) -> tuple[int, mmap.mmap]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        msg = f"{path} must be a file that can be written, got: {error.strerror}"
        raise DataError(msg) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        if size == 0:
            os.ftruncate(file, _FILE_BYTES)
        elif size != _FILE_BYTES:
            msg = f"{path} must hold {_FILE_BYTES} bytes, got {size}; stop all servers, delete it"
            raise DataError(msg)
        mapped = mmap.mmap(file, _FILE_BYTES)
        fcntl.flock(file, fcntl.LOCK_UN)
    except (DataError, OSError):
        os.close(file)
        raise
    return file, mapped


def rate_headers(
    verdict: Verdict, plan: Plan, used: int, now: float | None = None
) -> list[tuple[bytes, bytes]]:
    """Make the headers of the IETF draft that show a caller its limits and what is left of them.

    `Retry-After` is added only if the rate limit refuses; a used-up month is handled elsewhere.

    Args:
        verdict: Result of `Rates.check`.
        plan: Plan of the caller.
        used: Searches of the account in this month.
        now: Seconds since the epoch; the clock's if left out.

    Returns:
        `RateLimit-Policy`, `RateLimit` and, on a refusal, `Retry-After`.
    """
    quota = plan.requests_per_month
    left = max(0, quota - used)
    month_s = seconds_left_in_month(now)
    burst = f'"burst";r={verdict.remaining};t={math.ceil(verdict.reset_s)}'
    headers = [
        (b"ratelimit-policy", _policy(verdict.burst, verdict.window_s, quota)),
        (b"ratelimit", f'{burst}, "month";r={left};t={month_s}'.encode()),
    ]
    if not verdict.allowed:
        headers.append((b"retry-after", retry_after(verdict.retry_after_s)))
    return headers


def retry_after(seconds: float) -> bytes:
    """Format a time to wait for `Retry-After`: whole seconds, at least one."""
    return str(max(1, math.ceil(seconds))).encode()


@lru_cache(maxsize=64)
def _policy(burst: int, window_s: int, quota: int) -> bytes:
    return f'"burst";q={burst};w={window_s}, "month";q={quota};w={_MONTH_S}'.encode()


def seconds_left_in_month(now: float | None = None) -> int:
    """Return the seconds until the next calendar month begins (UTC), at least one."""
    at = utc_now.seconds() if now is None else now
    return max(1, math.ceil(_month_end(int(at // 86_400)) - at))


@lru_cache(maxsize=4)
def _month_end(day: int) -> float:
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=day)
    following = (date.replace(day=1) + datetime.timedelta(days=32)).replace(day=1)
    return (following - datetime.date(1970, 1, 1)).days * 86_400.0
