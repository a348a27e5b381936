"""What an account has used: by month, by day, by key; the specification's records."""

from __future__ import annotations

from datetime import date
from typing import Any

import sqlalchemy as sa

from searchlab.api.accounts.database import Database
from searchlab.api.accounts.tables import api_keys, usage_days, usage_months
from searchlab.api.accounts.values import as_timestamp, days_back, month_of, months_back


def month(database: Database, account_id: int, today: date, *, limit: int) -> dict[str, Any]:
    """Return the current month's record.

    Args:
        database: Where.
        account_id: Whose.
        today: The day, in UTC.
        limit: Searches that the account's plan allows in a month.
    """
    period = month_of(today)
    mine = (usage_months.c.account_id == account_id) & (usage_months.c.month == period)
    with database.reading() as connection:
        used = connection.scalar(sa.select(usage_months.c.requests).where(mine)) or 0
    return {
        "period": period,
        "requests": {"used": used, "limit": limit, "remaining": max(0, limit - used)},
    }


def monthly(database: Database, account_id: int, months: int, today: date) -> dict[str, Any]:
    """Return the record of the last months (1 to 24), the current one first, idle ones too."""
    shown = months_back(today, months)
    found = dict(_pairs(database, usage_months, usage_months.c.month, account_id, shown))
    records = [{"month": month, "requests": found.get(month, 0)} for month in shown]
    return {"period_months": months, "records": records}


def daily(database: Database, account_id: int, days: int, today: date) -> dict[str, Any]:
    """Return the record of the last days (1 to 90), the oldest first, idle ones too."""
    shown = days_back(today, days)
    found = dict(_pairs(database, usage_days, usage_days.c.day, account_id, shown))
    records = [{"date": day.isoformat(), "requests": found.get(day, 0)} for day in shown]
    return {"period_days": days, "records": records}


def by_key(database: Database, account_id: int, today: date) -> dict[str, Any]:
    """Return the record of each key in force, and of the revoked ones used this month.

    So the keys' numbers of this month add up to the account's.
    """
    of_key = (usage_days.c.key_id == api_keys.c.id) & (usage_days.c.account_id == account_id)
    this_month = usage_days.c.day.between(today.replace(day=1), today)
    requests = sa.func.coalesce(sa.func.sum(usage_days.c.requests), 0)
    of_today = sa.case((usage_days.c.day == today, usage_days.c.requests), else_=0)
    query = (
        sa.select(
            api_keys.c.id,
            api_keys.c.name,
            api_keys.c.created_at,
            api_keys.c.last_used_at,
            requests.label("this_month"),
            sa.func.coalesce(sa.func.sum(of_today), 0).label("today"),
        )
        .join_from(api_keys, usage_days, of_key & this_month, isouter=True)
        .where(api_keys.c.account_id == account_id)
        .group_by(api_keys.c.id)
        .having(api_keys.c.revoked_at.is_(None) | (requests > 0))
        .order_by(api_keys.c.created_at, api_keys.c.id)
    )
    with database.reading() as connection:
        keys = [
            {
                "key_id": row.id,
                "name": row.name,
                "created_at": as_timestamp(row.created_at),
                "last_used_at": as_timestamp(row.last_used_at),
                "requests_this_month": int(row.this_month),
                "requests_today": int(row.today),
            }
            for row in connection.execute(query)
        ]
    return {"keys": keys}


def _pairs(
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
