"""Values in the tables: texts that every database can store, and times in UTC."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from searchlab.errors import InputError, quote

MAX_ID = 2**63 - 1
_CORRECTION_S = 60.0  # a step of this size at most is how clocks are corrected
_BELIEVED_AFTER_S = 600.0
# Of Linux, where it goes on while the machine sleeps.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_LOG = logging.getLogger(__name__)


def _read_steady() -> float:
    return time.clock_gettime(_STEADY)


class SettledClock:
    """A clock that believes a jump only when it has lasted.

    The machine's clock may be set years forward for a moment, and back again: quotas, answers that
    are kept for a day and usage that is kept for months must not notice. So this clock goes on by a
    clock that cannot be set, follows small corrections at once, and larger ones after a while.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = _read_steady,
    ) -> None:
        """Start with what the machine's clock says now.

        Args:
            wall: Seconds since 1970, by a clock that may be set.
            steady: Seconds by a clock that only goes on, also while the machine sleeps.
        """
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self._doubted: tuple[float, float] | None = None

    def __call__(self) -> datetime:
        """Return the current moment, aware, in UTC."""
        now = self._steady()
        offset = self._wall() - now
        if abs(offset - self._offset) <= _CORRECTION_S:
            self._offset, self._doubted = offset, None
        elif self._doubted is None or abs(offset - self._doubted[0]) > _CORRECTION_S:
            self._doubted = (offset, now)
            _LOG.warning(
                "the machine's clock jumped by %.0f s; that is believed once it has lasted %.0f s",
                offset - self._offset,
                _BELIEVED_AFTER_S,
            )
        elif now - self._doubted[1] >= _BELIEVED_AFTER_S:
            self._offset, self._doubted = offset, None
        return datetime.fromtimestamp(now + self._offset, UTC)


utc_now: Final[Callable[[], datetime]] = SettledClock()
"""The clock: the current moment, aware, in UTC."""


def months_back(today: date, months: int) -> list[str]:
    """List the last months, the current one first.

    >>> months_back(date(2024, 2, 29), 3)
    ['2024-02', '2024-01', '2023-12']
    """
    last = today.year * 12 + today.month - 1
    return [f"{n // 12:04d}-{n % 12 + 1:02d}" for n in range(last, last - months, -1)]


def days_back(today: date, days: int) -> list[date]:
    """List the last days, the current one last.

    >>> [day.isoformat() for day in days_back(date(2024, 3, 1), 2)]
    ['2024-02-29', '2024-03-01']
    """
    return [today - timedelta(days=n) for n in range(days - 1, -1, -1)]


def is_storable(text: str) -> bool:
    """Tell whether every database can store a text: no NUL, no half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def storable(value: object, name: str, *, least: int = 0, most: int) -> str:
    """Check that a value is a text that can be stored, and return it unchanged.

    Args:
        value: The value.
        name: Its name in messages.
        least: Fewest code points.
        most: Most code points.

    Raises:
        InputError: It is no text, is too short or too long, or holds NUL or a lone surrogate.
    """
    if not isinstance(value, str):
        msg = f"{name} must be a text, got {quote(value)}"
        raise InputError(msg)
    if not least <= len(value) <= most:
        msg = f"{name} must have {least} to {most:,} characters, got {len(value):,}"
        raise InputError(msg)
    if not is_storable(value):
        msg = f"{name} must hold no NUL and no lone surrogate, got {quote(value)}"
        raise InputError(msg)
    return value


def as_timestamp(moment: datetime | None) -> str | None:
    """Write a moment as ISO 8601 with the offset of UTC; None stays None."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


class UtcMoment(sa.types.TypeDecorator[datetime]):
    """A moment that comes back aware and in UTC, whatever the database or its time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> Any:
        """Return what is stored of an aware time; for SQLite, which has no offsets, it is UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            msg = f"a moment must have a time zone, got {value.isoformat()}"
            raise InputError(msg)
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        """Return the moment in UTC."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
