"""Apps: clients that are registered here, by an account's owner or by themselves.

None of them has a secret: what a person installs cannot keep one. Who may receive a code is decided
by the redirect address, and who may redeem it by the verifier.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.accounts import check_visible
from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.grants import end_grants_of_client
from searchlab.api.accounts.keyring import change_access
from searchlab.api.accounts.tables import accounts, oauth_clients
from searchlab.api.accounts.values import is_storable
from searchlab.errors import ConflictError, InputError, NotFoundError, quote

UNUSED_LIFE = timedelta(days=7)
"""How long a client that registered itself lasts until somebody allows it something."""
USED_LIFE = timedelta(days=365)
"""How long it lasts after somebody did."""
MAX_APPS = 50
"""Most apps that an account registers."""
MAX_SELF_REGISTERED = 10_000
"""Most clients that registered themselves; one more replaces the oldest that nobody allowed."""
_CAME_ITSELF = oauth_clients.c.account_id.is_(None)
_APP_ID = re.compile(r"app_[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppRecord:
    """A client that is registered here.

    Attributes:
        client_id: Identifies it.
        name: Its name, as people see it.
        redirect_uris: Where codes for it may be sent.
        created_at: When it was registered, UTC.
        expires_at: When it ends unless somebody allows it something; None for never.
    """

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None


def propose_app_id() -> str:
    """Make an id for an app that is not registered yet."""
    return f"app_{secrets.token_hex(8)}"


def register_app(
    database: Database,
    account_id: int,
    *,
    name: str,
    redirect_uris: Sequence[str],
    client_id: str,
    clock: Callable[[], datetime] = utc_now,
) -> AppRecord:
    """Register an app of an account, under an id that its form was given; it never expires.

    Args:
        database: Where apps are stored.
        account_id: The account.
        name: Name of the app, 1 to 100 visible characters.
        redirect_uris: Checked by `check_redirect_uri`.
        client_id: Made by `propose_app_id`.
        clock: Returns the current time.

    Raises:
        InputError: The name is malformed, the id is none of ours, or there are too many apps.
        ConflictError: There is an app with this id: the form was sent twice.
    """
    if not _APP_ID.fullmatch(client_id):
        msg = f"client_id must be one that the form was given, got {quote(client_id)}"
        raise InputError(msg)
    record = AppRecord(
        client_id=client_id,
        name=check_visible(name, "name"),
        redirect_uris=tuple(redirect_uris),
        created_at=clock(),
        expires_at=None,
    )
    with database.writing() as connection:
        # Lock the account, so that no other transaction counts before this app exists.
        mine = accounts.c.id == account_id
        connection.execute(sa.select(accounts.c.id).where(mine).with_for_update())
        if _count(connection, oauth_clients.c.account_id == account_id) >= MAX_APPS:
            msg = f"an account must have at most {MAX_APPS} apps, got one more; delete one first"
            raise InputError(msg)
        values = _values(record) | {"account_id": account_id}
        made = database.insert(oauth_clients).values(values).on_conflict_do_nothing()
        if connection.scalar(made.returning(oauth_clients.c.id)) is None:
            msg = f"this form must be sent once, got it again; {client_id} was registered before"
            raise ConflictError(msg)
    return record


def register_client(
    database: Database,
    *,
    name: str,
    redirect_uris: Sequence[str],
    clock: Callable[[], datetime] = utc_now,
) -> AppRecord | None:
    """Register a client that asks for it; it expires.

    Args:
        database: Where clients are stored.
        name: Name of the client, 1 to 100 visible characters.
        redirect_uris: Checked by `check_redirect_uri`.
        clock: Returns the current time.

    Returns:
        The client; None if there are too many, all of them allowed something.

    Raises:
        InputError: The name is malformed.
    """
    now = clock()
    record = AppRecord(
        client_id=propose_app_id(),
        name=check_visible(name, "client_name"),
        redirect_uris=tuple(redirect_uris),
        created_at=now,
        expires_at=now + UNUSED_LIFE,
    )
    with database.writing() as connection:
        delete_expired_clients(connection, now)
        if _count(connection, _CAME_ITSELF) >= MAX_SELF_REGISTERED and not _replace(
            connection, now
        ):
            return None
        connection.execute(oauth_clients.insert().values(_values(record)))
    return record


def _replace(connection: Connection, now: datetime) -> bool:
    """Delete the oldest client that nobody has allowed anything; says whether there was one.

    Or a stranger who registers thousands could keep everybody else from registering for a week.
    """
    unused = _CAME_ITSELF & (oauth_clients.c.expires_at <= now + UNUSED_LIFE)
    oldest = sa.select(oauth_clients.c.id).where(unused)
    oldest = oldest.order_by(oauth_clients.c.expires_at, oauth_clients.c.id).limit(1)
    gone = oauth_clients.delete().where(oauth_clients.c.id == oldest.scalar_subquery())
    return connection.execute(gone).rowcount > 0


def find_client(
    database: Database, client_id: str, *, clock: Callable[[], datetime] = utc_now
) -> AppRecord | None:
    """Return the client of an id; None if there is none, or it has expired."""
    if not _APP_ID.fullmatch(client_id):
        return None
    query = sa.select(oauth_clients).where(oauth_clients.c.id == client_id, _lasting(clock()))
    row = database.look_up(lambda connection: connection.execute(query).one_or_none())
    return None if row is None else _record(row)


def note_consent(
    database: Database, client_id: str, *, clock: Callable[[], datetime] = utc_now
) -> None:
    """Let a client that registered itself last for longer, since somebody allowed it something."""
    which = (oauth_clients.c.id == client_id) & oauth_clients.c.expires_at.is_not(None)
    with database.writing() as connection:
        connection.execute(
            oauth_clients.update().where(which).values(expires_at=clock() + USED_LIFE)
        )


def list_apps(database: Database, account_id: int) -> list[AppRecord]:
    """List the apps that an account has registered, the newest first."""
    query = sa.select(oauth_clients).where(oauth_clients.c.account_id == account_id)
    query = query.order_by(oauth_clients.c.created_at.desc(), oauth_clients.c.id)
    with database.reading() as connection:
        return [_record(row) for row in connection.execute(query)]


def delete_app(
    database: Database,
    account_id: int,
    client_id: str,
    *,
    clock: Callable[[], datetime] = utc_now,
) -> None:
    """Delete an app of an account; whatever anybody has allowed it ends at once.

    Raises:
        NotFoundError: The account has no such app.
    """
    if is_storable(client_id):
        mine = (oauth_clients.c.id == client_id) & (oauth_clients.c.account_id == account_id)
        with change_access(database) as connection:
            if connection.execute(oauth_clients.delete().where(mine)).rowcount:
                end_grants_of_client(connection, client_id, clock())
                return
    msg = f"client_id must be that of an app of yours, got {quote(client_id)}"
    raise NotFoundError(msg)


def delete_expired_clients(connection: Connection, now: datetime) -> None:
    """Delete the clients that have expired."""
    connection.execute(oauth_clients.delete().where(oauth_clients.c.expires_at <= now))


def _count(connection: Connection, which: sa.ColumnElement[bool]) -> int:
    query = sa.select(sa.func.count()).select_from(oauth_clients).where(which)
    return int(connection.scalar(query) or 0)


def _lasting(now: datetime) -> sa.ColumnElement[bool]:
    return oauth_clients.c.expires_at.is_(None) | (oauth_clients.c.expires_at > now)


def _values(record: AppRecord) -> dict[str, Any]:
    return {
        "id": record.client_id,
        "name": record.name,
        "redirect_uris": "\n".join(record.redirect_uris),
        "created_at": record.created_at,
        "expires_at": record.expires_at,
    }


def _record(row: Any) -> AppRecord:
    return AppRecord(
        client_id=row.id,
        name=row.name,
        redirect_uris=tuple(row.redirect_uris.split("\n")),
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
