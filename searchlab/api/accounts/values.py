"""Values in the tables: texts that every database can store, and times in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from searchlab.errors import InputError, quote

MAX_ID = 2**63 - 1


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
