"""Grants: what accounts have allowed clients; one that ended is refused at once everywhere."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.keyring import change_access
from searchlab.api.accounts.tables import accounts, oauth_codes, oauth_grants, oauth_tokens
from searchlab.api.accounts.values import is_storable
from searchlab.errors import NotFoundError, quote

IDLE_LIFE = timedelta(days=90)
"""Time without use after which a grant ends."""
MAX_GRANTS = 100
"""Most grants of one account; one more ends the one that was idle for longest."""
GRANT_PREFIX = "grant_"
_KEPT = timedelta(days=31)  # of a grant that ended: the usage of the month names it


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRecord:
    """A grant as its account sees it.

    Attributes:
        grant_id: Public identifier.
        client_id: Identifies the client.
        name: Name of the client.
        redirect_uri: Where the code was sent.
        scopes: What is allowed, separated by spaces.
        created_at: When it began, UTC.
        last_used_at: When it was used last, within seconds; None if never.
    """

    grant_id: str
    client_id: str
    name: str
    redirect_uri: str
    scopes: str
    created_at: datetime
    last_used_at: datetime | None


def revoke_grant_of(
    database: Database,
    account_id: int,
    grant_id: str,
    *,
    clock: Callable[[], datetime] = utc_now,
) -> None:
    """End a grant of an account; every process refuses its tokens at once.

    Raises:
        NotFoundError: The account has no such grant that lasts.
    """
    if is_storable(grant_id):
        mine = (oauth_grants.c.account_id == account_id) & (oauth_grants.c.id == grant_id)
        with change_access(database) as connection:
            if end_grants(connection, mine, clock()):
                return
    msg = f"grant_id must be that of an app that is connected, got {quote(grant_id)}"
    raise NotFoundError(msg)


def is_connected(
    database: Database, grant_id: str, *, clock: Callable[[], datetime] = utc_now
) -> bool:
    """Say whether a grant lasts."""
    mine = are_lasting(clock()) & (oauth_grants.c.id == grant_id)
    query = sa.select(oauth_grants.c.id).where(mine)
    return database.look_up(lambda connection: connection.scalar(query)) is not None


def list_grants(
    database: Database, account_id: int, *, clock: Callable[[], datetime] = utc_now
) -> list[GrantRecord]:
    """List an account's grants that last, the newest first."""
    lasting = are_lasting(clock()) & (oauth_grants.c.account_id == account_id)
    query = _RECORDS.where(lasting).order_by(oauth_grants.c.created_at.desc(), oauth_grants.c.id)
    with database.reading() as connection:
        return [GrantRecord(**row) for row in connection.execute(query).mappings()]


def scopes_of_client(
    database: Database,
    account_id: int,
    *,
    client_id: str,
    resource: str,
    clock: Callable[[], datetime] = utc_now,
) -> list[str]:
    """List what a client may do already for an account, on this resource; empty if nothing."""
    mine = are_lasting(clock()) & (oauth_grants.c.account_id == account_id)
    mine &= (oauth_grants.c.client_id == client_id) & (oauth_grants.c.resource == resource)
    query = sa.select(oauth_grants.c.scopes).where(mine)
    with database.reading() as connection:
        held = " ".join(connection.scalars(query))
    return list(dict.fromkeys(held.split()))


def end_grants_of_client(connection: Connection, client_id: str, now: datetime) -> None:
    """End all grants of a client, and forget its codes, within a transaction."""
    connection.execute(oauth_codes.delete().where(oauth_codes.c.client_id == client_id))
    end_grants(connection, oauth_grants.c.client_id == client_id, now)


def delete_expired_grants(connection: Connection, now: datetime) -> None:
    """Delete codes and tokens that are expired, and grants that ended a month ago."""
    for table in (oauth_codes, oauth_tokens):
        connection.execute(table.delete().where(table.c.expires_at <= now - timedelta(days=1)))
    old = oauth_grants.c.expires_at <= now - _KEPT
    old |= oauth_grants.c.revoked_at <= now - _KEPT
    theirs = oauth_tokens.c.grant_id.in_(sa.select(oauth_grants.c.id).where(old))
    connection.execute(oauth_tokens.delete().where(theirs))
    connection.execute(oauth_grants.delete().where(old))


def open_grant(connection: Connection, code: Any, now: datetime) -> str:
    """Make the grant of a redeemed code within a transaction, or widen the one that there is.

    An app is connected once, however often it asks: what it is allowed adds up under one
    identifier. Tokens of before go on allowing what they did.

    Args:
        connection: Open transaction.
        code: Row of the code, whose client has proved that it asked.
        now: The current time.

    Returns:
        Its `grant_id`.
    """
    # Wait for other transactions that connect apps to it.
    account = sa.select(accounts.c.id).where(accounts.c.id == code.account_id)
    connection.execute(account.with_for_update(key_share=True))
    same = (oauth_grants.c.account_id == code.account_id) & are_lasting(now)
    same &= oauth_grants.c.client_id == code.client_id
    same &= oauth_grants.c.resource == code.resource
    query = sa.select(oauth_grants).where(same).order_by(oauth_grants.c.created_at.desc()).limit(1)
    found = connection.execute(query.with_for_update()).one_or_none()
    shown = {"name": code.client_name, "redirect_uri": code.redirect_uri}
    if found is not None:
        scopes = " ".join(dict.fromkeys([*found.scopes.split(), *code.scopes.split()]))
        changed = {**shown, "scopes": scopes, "expires_at": now + IDLE_LIFE}
        its_own = oauth_grants.c.id == found.id
        connection.execute(oauth_grants.update().where(its_own).values(changed))
        return str(found.id)
    make_room(connection, code.account_id, now)
    grant_id = f"{GRANT_PREFIX}{secrets.token_hex(8)}"
    values = {
        **shown,
        "id": grant_id,
        "account_id": code.account_id,
        "client_id": code.client_id,
        "scopes": code.scopes,
        "resource": code.resource,
        "created_at": now,
        "expires_at": now + IDLE_LIFE,
    }
    connection.execute(oauth_grants.insert().values(values))
    return grant_id


def make_room(connection: Connection, account_id: int, now: datetime) -> None:
    """End the grants of an account that were idle for longest, if it has too many for one more."""
    mine = (oauth_grants.c.account_id == account_id) & are_lasting(now)
    latest = sa.func.coalesce(oauth_grants.c.last_used_at, oauth_grants.c.created_at).desc()
    newest = sa.select(oauth_grants.c.id).where(mine).order_by(latest).limit(MAX_GRANTS - 1)
    lasting = connection.scalars(newest).all()
    end_grants(connection, mine & oauth_grants.c.id.not_in(lasting), now)


def end_grants(connection: Connection, which: sa.ColumnElement[bool], now: datetime) -> int:
    """End the grants that a condition names, within a transaction; returns how many there were."""
    lasting = which & oauth_grants.c.revoked_at.is_(None)
    return connection.execute(oauth_grants.update().where(lasting).values(revoked_at=now)).rowcount


def are_lasting(now: datetime) -> sa.ColumnElement[bool]:
    """Return the condition that a grant lasts: neither revoked nor unused for too long."""
    return oauth_grants.c.revoked_at.is_(None) & (oauth_grants.c.expires_at > now)


_RECORDS = sa.select(
    oauth_grants.c.id.label("grant_id"),
    *(oauth_grants.c.client_id, oauth_grants.c.name, oauth_grants.c.redirect_uri),
    *(oauth_grants.c.scopes, oauth_grants.c.created_at, oauth_grants.c.last_used_at),
)
