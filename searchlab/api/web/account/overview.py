"""Overview: all that the dashboard shows of an account, read at once."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from searchlab.api.accounts import usage
from searchlab.api.accounts.accounts import KeyRecord, list_keys
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.grants import GrantRecord, list_grants
from searchlab.api.accounts.plans import PLANS, Plan
from searchlab.api.accounts.sessions import SessionRecord, list_sessions
from searchlab.api.accounts.visitors import Visitor
from searchlab.api.web.account.charts import Chart, bar_chart

_DAYS, _MONTHS = 30, 12


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What the dashboard shows.

    Attributes:
        plan: The account's plan.
        month: Name of the current month.
        used: Searches in it.
        left: Searches that the plan still allows in it.
        renews_on: First day of the next month, UTC.
        days: Chart of the last days.
        months: Chart of the last months.
        by_key: Name, searches of the month and of today, the largest first; those with none left
            out.
        keys: Keys in force, the newest first.
        revoked: Keys that were revoked, the latest first.
        sessions: Sessions that last, the latest first.
        grants: Connected apps, the newest first.
    """

    plan: Plan
    month: str
    used: int
    left: int
    renews_on: datetime.date
    days: Chart
    months: Chart
    by_key: Sequence[tuple[str, int, int]]
    keys: Sequence[KeyRecord]
    revoked: Sequence[KeyRecord]
    sessions: Sequence[SessionRecord]
    grants: Sequence[GrantRecord]


def read_overview(database: Database, visitor: Visitor, now: datetime.datetime) -> Overview:
    """Read the overview of a visitor's account.

    Raises:
        DataError: The database cannot be reached.
    """
    plan, account_id, today = PLANS[visitor.plan], visitor.account_id, now.date()
    month = usage.read_month(database, account_id, today, limit=plan.requests_per_month)
    days = usage.read_days(database, account_id, _DAYS, today)["records"]
    months = usage.read_months(database, account_id, _MONTHS, today)["records"]
    keys = list_keys(database, visitor.account)
    revoked = [key for key in keys if key.revoked_at is not None]
    return Overview(
        plan=plan,
        month=f"{today:%B}",
        used=month["requests"]["used"],
        left=month["requests"]["remaining"],
        renews_on=(today.replace(day=1) + datetime.timedelta(days=32)).replace(day=1),
        days=bar_chart([(_day(record["date"]), record["requests"]) for record in days]),
        months=bar_chart([(_month(r["month"]), r["requests"]) for r in reversed(months)]),
        by_key=_by_key(database, account_id, now),
        keys=[key for key in reversed(keys) if key.revoked_at is None],
        revoked=sorted(revoked, key=lambda key: str(key.revoked_at), reverse=True),
        sessions=list_sessions(database, account_id),
        grants=list_grants(database, account_id),
    )


def _by_key(
    database: Database, account_id: int, now: datetime.datetime
) -> Sequence[tuple[str, int, int]]:
    keys: list[dict[str, Any]] = usage.read_keys(database, account_id, now)["keys"]
    rows = [(key["name"], key["requests_this_month"], key["requests_today"]) for key in keys]
    return sorted((row for row in rows if row[1]), key=lambda row: -row[1])


def _day(text: str) -> str:
    day = datetime.date.fromisoformat(text)
    return f"{day.day} {day:%B}"


def _month(text: str) -> str:
    return f"{datetime.date.fromisoformat(f'{text}-01'):%B %Y}"
