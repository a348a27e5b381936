"""Usage of accounts by month, day and key: writes, reads, and deletes it when it is old."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection

from searchlab.api.accounts.database import Database
from searchlab.api.accounts.grants import GRANT_PREFIX, are_lasting
from searchlab.api.accounts.tables import (
    accounts,
    api_keys,
    oauth_grants,
    usage_days,
    usage_months,
)
from searchlab.api.accounts.values import as_timestamp, days_back, months_back
from searchlab.api.accounts.visitors import PAGES_KEY, PAGES_NAME

KEPT_DAYS = 90
KEPT_MONTHS = 24
_DOUBTED_DAYS = 31
"""For so many days with searches the date may be wrong, and nothing of a record is lost."""
_DOUBTED_MONTHS = 2  # which that many days may lie in


Writing = Connection | sqlite3.Connection
"""A transaction of `Database.writing` or `writing_alone`."""


class UsageCounts:
    """Writes counts within transactions of its callers."""

    def __init__(self, database: Database) -> None:
        self._add_month = _add_or_insert(database, usage_months, "account_id", "month").returning(
            usage_months.c.requests
        )
        self._add_day = _add_or_insert(database, usage_days, "account_id", "day", "key_id")
        # The same two for SQLite's own connection.
        self._month_text = str(self._add_month.compile(dialect=sqlite.dialect()))
        self._day_text = str(self._add_day.compile(dialect=sqlite.dialect()))

    def add_to_month(self, connection: Writing, account_id: int, month: str, requests: int) -> int:
        """Add searches to an account's month; returns the new total."""
        total: int
        if isinstance(connection, sqlite3.Connection):
            row = (account_id, month, requests)
            (total,) = connection.execute(self._month_text, row).fetchone()
        else:
            values = {"account_id": account_id, "month": month, "requests": requests}
            total = connection.execute(self._add_month, values).scalar_one()
        return total

    def set_month(self, connection: Writing, account_id: int, month: str, used: int) -> None:
        """Set the searches of an account's month, whose row `add_to_month` has locked."""
        if isinstance(connection, sqlite3.Connection):
            connection.execute(_SET_TEXT, (used, account_id, month))
        else:
            values = {"of_account": account_id, "of_month": month, "now": used}
            connection.execute(_SET_USED, values)

    def add_to_day(
        self, connection: Writing, day: date, by_key: Mapping[tuple[int, str], int]
    ) -> None:
        """Add searches to a day.

        Args:
            connection: Open transaction.
            day: The day in UTC.
            by_key: Searches by account and key.
        """
        counted = sorted(by_key.items())
        if isinstance(connection, sqlite3.Connection):
            connection.executemany(
                self._day_text,
                [(account, day.isoformat(), key, requests) for (account, key), requests in counted],
            )
        elif counted:
            rows = [
                {"account_id": account_id, "day": day, "key_id": key_id, "requests": requests}
                for (account_id, key_id), requests in counted
            ]
            connection.execute(self._add_day, rows)

    def mark_used(self, connection: Connection, used_at: Mapping[str, datetime]) -> None:
        """Set when keys were last used, unless a later time is stored."""
        rows = [{"of_key": key_id, "at": moment} for key_id, moment in sorted(used_at.items())]
        for touch, are_grants in ((_TOUCH_KEYS, False), (_TOUCH_GRANTS, True)):
            theirs = [row for row in rows if _is_grant(str(row["of_key"])) == are_grants]
            if theirs:
                connection.execute(touch, theirs)

    def delete_old(self, connection: Connection, today: date) -> None:
        """Delete the days and months that are too old for any record, or of deleted accounts.

        A wrong date must not take what a record shows by the right one. So whatever the date is,
        the last days and months that have searches stay, a month of days more than records show.
        """
        connection.execute(_OLD_DAYS, {"first": days_back(today, KEPT_DAYS)[0]})
        connection.execute(_OLD_MONTHS, {"first": months_back(today, KEPT_MONTHS)[-1]})
        for table in (usage_days, usage_months):
            living = sa.exists().where(accounts.c.id == table.c.account_id)
            connection.execute(table.delete().where(~living))


def _add_or_insert(database: Database, table: sa.Table, *key: str) -> sqlite.Insert:
    statement = database.insert(table)
    return statement.on_conflict_do_update(
        index_elements=key,
        set_={"requests": table.c.requests + statement.excluded.requests},
    )


def look_up_used(database: Database, account_id: int, month: str) -> int:
    """Return the searches of an account's month, in the fewest round trips.

    Raises:
        DataError: The database cannot be reached.
    """
    values = {"of_account": account_id, "of_month": month}
    used: int = database.look_up(lambda connection: connection.scalar(_USED, values)) or 0
    return used


def read_month(database: Database, account_id: int, today: date, *, limit: int) -> dict[str, Any]:
    """Return the current month's record.

    Args:
        database: Where usage is stored.
        account_id: The account.
        today: The current day in UTC.
        limit: Searches that the account's plan allows in a month.
    """
    period = f"{today:%Y-%m}"
    mine = (usage_months.c.account_id == account_id) & (usage_months.c.month == period)
    with database.reading() as connection:
        used = connection.scalar(sa.select(usage_months.c.requests).where(mine)) or 0
    return {
        "period": period,
        "requests": {"used": used, "limit": limit, "remaining": max(0, limit - used)},
    }


def read_months(database: Database, account_id: int, months: int, today: date) -> dict[str, Any]:
    """Return the record of the last months (1 to 24), the current one first, idle ones too."""
    shown = months_back(today, months)
    requests = dict(_read_pairs(database, usage_months, usage_months.c.month, account_id, shown))
    records = [{"month": month, "requests": requests.get(month, 0)} for month in shown]
    return {"period_months": months, "records": records}


def read_days(database: Database, account_id: int, days: int, today: date) -> dict[str, Any]:
    """Return the record of the last days (1 to 90), the oldest first, idle ones too."""
    shown = days_back(today, days)
    requests = dict(_read_pairs(database, usage_days, usage_days.c.day, account_id, shown))
    records = [{"date": day.isoformat(), "requests": requests.get(day, 0)} for day in shown]
    return {"period_days": days, "records": records}


def read_keys(database: Database, account_id: int, now: datetime) -> dict[str, Any]:
    """Return the record of each key in force, and of those that ended and were used this month.

    What the account has allowed a client stands there as a key, too, and so do its pages, once they
    were searched this month. So the counts of the keys this month add up to the account's.
    """
    today = now.date()
    with database.reading() as connection:
        rows = [
            row
            for table, in_force in (
                (api_keys, api_keys.c.revoked_at.is_(None)),
                (oauth_grants, are_lasting(now)),
            )
            for row in connection.execute(_of_keys(table, in_force, account_id, today))
        ]
        rows += connection.execute(_of_pages(account_id, today))
    keys = [
        {
            "key_id": row.id,
            "name": row.name,
            "created_at": as_timestamp(row.created_at),
            "last_used_at": as_timestamp(row.last_used_at),
            "requests_this_month": int(row.this_month),
            "requests_today": int(row.today),
        }
        for row in sorted(rows, key=lambda row: (row.created_at, row.id))
    ]
    return {"keys": keys}


def _of_keys(
    table: sa.Table, in_force: sa.ColumnElement[bool], account_id: int, today: date
) -> sa.Select[Any]:
    of_key = (usage_days.c.key_id == table.c.id) & (usage_days.c.account_id == account_id)
    return (
        sa.select(
            *(table.c.id, table.c.name, table.c.created_at, table.c.last_used_at),
            *_sums(today),
        )
        .join_from(table, usage_days, of_key & _of_month(today), isouter=True)
        .where(table.c.account_id == account_id)
        .group_by(table.c.id)
        .having(in_force | (sa.func.sum(usage_days.c.requests) > 0))
    )


def _of_pages(account_id: int, today: date) -> sa.Select[Any]:
    """Select the record of an account's pages, which are as old as it; none without a search."""
    of_pages = (usage_days.c.key_id == PAGES_KEY) & (usage_days.c.account_id == accounts.c.id)
    return (
        sa.select(
            sa.literal(PAGES_KEY).label("id"),
            sa.literal(PAGES_NAME).label("name"),
            accounts.c.created_at,
            sa.null().label("last_used_at"),  # only days are kept of it
            *_sums(today),
        )
        .join_from(accounts, usage_days, of_pages & _of_month(today))
        .where(accounts.c.id == account_id)
        .group_by(accounts.c.id)
    )


def _of_month(today: date) -> sa.ColumnElement[bool]:
    return usage_days.c.day.between(today.replace(day=1), today)


def _sums(today: date) -> tuple[sa.Label[Any], sa.Label[Any]]:
    of_today = sa.case((usage_days.c.day == today, usage_days.c.requests), else_=0)
    return (
        sa.func.coalesce(sa.func.sum(usage_days.c.requests), 0).label("this_month"),
        sa.func.coalesce(sa.func.sum(of_today), 0).label("today"),
    )


def _read_pairs(
    database: Database,
    table: sa.Table,
    period: sa.Column[Any],
    account_id: int,
    shown: list[Any],
) -> list[tuple[Any, int]]:
    query = (
        sa.select(period, sa.func.sum(table.c.requests))
        .where(table.c.account_id == account_id, period.between(min(shown), max(shown)))
        .group_by(period)
    )
    with database.reading() as connection:
        return [(key, int(requests)) for key, requests in connection.execute(query)]


_USED = sa.select(usage_months.c.requests).where(
    usage_months.c.account_id == sa.bindparam("of_account"),
    usage_months.c.month == sa.bindparam("of_month"),
)
_SET_USED = (
    usage_months.update()
    .where(
        usage_months.c.account_id == sa.bindparam("of_account"),
        usage_months.c.month == sa.bindparam("of_month"),
    )
    .values(requests=sa.bindparam("now"))
)
_SET_TEXT = str(_SET_USED.compile(dialect=sqlite.dialect()))


def _is_grant(key_id: str) -> bool:
    return key_id.startswith(GRANT_PREFIX)


def _touch(table: sa.Table) -> sa.Update:
    return (
        table.update()
        .where(
            table.c.id == sa.bindparam("of_key"),
            table.c.last_used_at.is_(None) | (table.c.last_used_at < sa.bindparam("at")),
        )
        .values(last_used_at=sa.bindparam("at"))
    )


_TOUCH_KEYS, _TOUCH_GRANTS = _touch(api_keys), _touch(oauth_grants)


def _delete_old(period: sa.Column[Any], n_kept: int) -> sa.Delete:
    last = sa.select(period).distinct().order_by(period.desc()).limit(1).offset(n_kept - 1)
    # None, so that nothing is deleted, where there are fewer.
    first_kept = sa.select(last.subquery().c[0]).scalar_subquery()
    return period.table.delete().where(period < sa.bindparam("first"), period < first_kept)


_OLD_DAYS = _delete_old(usage_days.c.day, KEPT_DAYS + _DOUBTED_DAYS)
_OLD_MONTHS = _delete_old(usage_months.c.month, KEPT_MONTHS + _DOUBTED_MONTHS)
