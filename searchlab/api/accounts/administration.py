"""Accounts as a whole: made, listed, moved to another plan, closed with all that is theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from searchlab.api.accounts.accounts import DEFAULT_PLAN, check_plan, check_visible
from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.grants import end_grants_of_client
from searchlab.api.accounts.keyring import change_access
from searchlab.api.accounts.tables import (
    METADATA,
    accounts,
    api_keys,
    collection_photos,
    collections,
    oauth_clients,
    sessions,
    usage_months,
)
from searchlab.errors import ConflictError, NotFoundError, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRecord:
    """An account, and how much belongs to it.

    Attributes:
        account_id: Its number, never given twice.
        name: Its name.
        plan: Its plan.
        created_at: When it was made, UTC.
        keys: Keys in force.
        sessions: Sessions that last.
        collections: Collections.
        requests: Searches of this month.
    """

    account_id: int
    name: str
    plan: str
    created_at: datetime
    keys: int
    sessions: int
    collections: int
    requests: int


def create_account(
    database: Database,
    account: str,
    *,
    plan: str = DEFAULT_PLAN,
    clock: Callable[[], datetime] = utc_now,
) -> AccountRecord:
    """Make an account without keys.

    Args:
        database: Where accounts are stored.
        account: Its name, 1 to 100 visible characters.
        plan: One of `PLAN_NAMES`.
        clock: Returns the current time.

    Raises:
        InputError: The name is malformed, or there is no such plan.
        ConflictError: There is an account of this name.
    """
    name = check_visible(account, "account")
    made = (
        database.insert(accounts)
        .values(name=name, plan=check_plan(plan), created_at=clock())
        .on_conflict_do_nothing()
        .returning(accounts.c.id)
    )
    with database.writing() as connection:
        if connection.scalar(made) is None:
            msg = f"account must be a new name, got {quote(account)}, which an account has"
            raise ConflictError(msg)
    return find_account(database, name, clock=clock)


def list_accounts(
    database: Database, *, clock: Callable[[], datetime] = utc_now
) -> list[AccountRecord]:
    """List all accounts by name."""
    with database.reading() as connection:
        rows = connection.execute(_records(clock()).order_by(accounts.c.name)).mappings()
        return [AccountRecord(**row) for row in rows]


def find_account(
    database: Database, account: str, *, clock: Callable[[], datetime] = utc_now
) -> AccountRecord:
    """Return the account of a name.

    Raises:
        NotFoundError: There is none.
    """
    name = check_visible(account, "account")
    with database.reading() as connection:
        query = _records(clock()).where(accounts.c.name == name)
        row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise no_account(account)
    return AccountRecord(**row)


def no_account(account: str) -> NotFoundError:
    """Make the error for a name that no account has."""
    msg = (
        f"account must be the name of an account, got {quote(account)}; "
        "see `searchlab accounts list`, or make it with `searchlab accounts create`"
    )
    return NotFoundError(msg)


def change_plan(database: Database, account: str, plan: str) -> None:
    """Move an account to another plan; every process goes by it at once.

    Raises:
        InputError: There is no such plan.
        NotFoundError: There is no such account.
    """
    mine = accounts.c.name == check_visible(account, "account")
    with change_access(database) as connection:
        change = accounts.update().where(mine).values(plan=check_plan(plan))
        if connection.execute(change).rowcount == 0:
            raise no_account(account)


def close_account(database: Database, account: str) -> dict[str, int]:
    """Delete an account with all that belongs to it; keys and sessions are refused at once.

    Args:
        database: Where accounts are stored.
        account: Name of the account.

    Returns:
        The number of deleted rows of each table.

    Raises:
        NotFoundError: There is no such account.
    """
    mine = accounts.c.name == check_visible(account, "account")
    with change_access(database) as connection:
        # Months first, as the meter locks them before anything else of an account.
        months = usage_months.c.account_id.in_(sa.select(accounts.c.id).where(mine))
        connection.execute(sa.select(usage_months.c.month).where(months).with_for_update())
        account_id = connection.scalar(sa.select(accounts.c.id).where(mine).with_for_update())
        if account_id is None:
            raise no_account(account)
        apps = sa.select(oauth_clients.c.id).where(oauth_clients.c.account_id == account_id)
        client_ids = connection.scalars(apps).all()
        theirs = sa.select(collections.c.id).where(collections.c.account_id == account_id)
        entries = collection_photos.c.collection_id.in_(theirs)
        deleted = {"collection_photos": _delete(connection, collection_photos, entries)}
        for table in reversed(METADATA.sorted_tables):  # also tables that are added later
            if "account_id" in table.c:
                which = table.c.account_id == account_id
                deleted[table.name] = _delete(connection, table, which)
        for client_id in client_ids:  # others may have connected its apps
            end_grants_of_client(connection, client_id, utc_now())
        deleted["accounts"] = _delete(connection, accounts, accounts.c.id == account_id)
    return deleted


def _delete(connection: sa.Connection, table: sa.Table, which: sa.ColumnElement[bool]) -> int:
    return connection.execute(table.delete().where(which)).rowcount


def _records(now: datetime) -> sa.Select[Any]:
    lasting = sessions.c.ended_at.is_(None) & (sessions.c.expires_at > now)
    requests = sa.select(usage_months.c.requests).where(
        usage_months.c.account_id == accounts.c.id, usage_months.c.month == f"{now:%Y-%m}"
    )
    return sa.select(
        accounts.c.id.label("account_id"),
        *(accounts.c.name, accounts.c.plan, accounts.c.created_at),
        _count(api_keys, api_keys.c.revoked_at.is_(None)).label("keys"),
        _count(sessions, lasting).label("sessions"),
        _count(collections, sa.true()).label("collections"),
        sa.func.coalesce(requests.scalar_subquery(), 0).label("requests"),
    )


def _count(table: sa.Table, which: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    count = sa.select(sa.func.count()).select_from(table)
    return count.where(table.c.account_id == accounts.c.id, which).scalar_subquery()
