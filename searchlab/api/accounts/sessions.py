"""Sessions: who is signed in in which browser. An ended session is refused at once everywhere.

A one-time link makes a session: its token and the session's secret are 256 random bits each, of
which only hashes are stored. A link works once, within ten minutes. A session lasts until it is
ended, is not used for a month, or is a year old.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.accounts import check_visible
from searchlab.api.accounts.administration import no_account
from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.keyring import Remembered, change_access, hash_secret
from searchlab.api.accounts.tables import accounts, sessions, sign_in_links
from searchlab.api.accounts.values import is_storable
from searchlab.api.accounts.visitors import Visitor
from searchlab.errors import SearchlabError

LINK_LIFE = timedelta(minutes=10)
IDLE_LIFE = timedelta(days=30)
LONGEST_LIFE = timedelta(days=365)
LINK_PREFIX = "sll_"
SESSION_PREFIX = "sls_"
MAX_SESSIONS = 100
"""Most sessions of one account; one more ends the one that was idle for longest."""
_SECRET_LENGTH = 47
_SEEN_EVERY = timedelta(minutes=1)
_KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session without its secret.

    Attributes:
        session_id: Public identifier.
        browser: Browser and system in words, as it said at sign-in.
        created_at: When it began, UTC.
        last_seen_at: When it was used last, within a minute or so.
        expires_at: When it ends unless it is used.
        ended_at: When it was ended; None while it lasts.
    """

    session_id: str
    browser: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    ended_at: datetime | None


class Sessions:
    """Finds visitors by the secret in their cookie, as `KeyRing` finds callers by their key."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock
        self._remembered = Remembered(database, self._ask)

    def recall(self, secret: str) -> Visitor | None:
        """Return who is signed in if it is known without asking the database, else None."""
        return self._remembered.recall(hash_secret(secret)) if is_session(secret) else None

    def find(self, secret: str) -> Visitor | None:
        """Return who is signed in; None for an unknown, ended or expired session.

        Raises:
            DataError: The database cannot be reached.
        """
        return self._remembered.find(hash_secret(secret)) if is_session(secret) else None

    def close(self) -> None:
        """Forget all remembered visitors."""
        self._remembered.close()

    def _ask(self, connection: Connection, digest: bytes) -> Visitor | None:
        now = self._clock()
        row = connection.execute(_FIND, {"digest": digest, "now": now}).one_or_none()
        if row is None or not hmac.compare_digest(row.secret_sha256, digest):
            return None
        if now - row.last_seen_at >= _SEEN_EVERY:
            self._note_seen(row.id, now, min(now + IDLE_LIFE, row.created_at + LONGEST_LIFE))
        return Visitor(row.account_id, row.name, row.plan, row.id)

    def _note_seen(self, session_id: str, now: datetime, expires_at: datetime) -> None:
        mine = (sessions.c.id == session_id) & sessions.c.ended_at.is_(None)
        seen = sessions.update().where(mine).values(last_seen_at=now, expires_at=expires_at)
        with suppress(SearchlabError), self._database.writing() as connection:
            connection.execute(seen)


def create_link(
    database: Database, account: str, *, clock: Callable[[], datetime] = utc_now
) -> tuple[str, datetime]:
    """Make a token that signs in once, within ten minutes.

    Args:
        database: Where accounts are stored.
        account: Name of the account.
        clock: Returns the current time.

    Returns:
        The token, which cannot be shown again, and when it expires.

    Raises:
        NotFoundError: There is no such account.
    """
    name, token, now = check_visible(account, "account"), _new_secret(LINK_PREFIX), clock()
    with database.writing() as connection:
        account_id = connection.scalar(sa.select(accounts.c.id).where(accounts.c.name == name))
        if account_id is None:
            raise no_account(account)
        values = {
            "token_sha256": hash_secret(token),
            "account_id": account_id,
            "created_at": now,
            "expires_at": now + LINK_LIFE,
        }
        connection.execute(sign_in_links.insert().values(values))
    return token, now + LINK_LIFE


def account_of_link(
    database: Database, token: str, *, clock: Callable[[], datetime] = utc_now
) -> str | None:
    """Return the account that a token would sign in to, without spending it; None if to none."""
    if not _has_shape(token, LINK_PREFIX):
        return None
    query = sa.select(accounts.c.name).join_from(sign_in_links, accounts)
    unspent = _unspent(token, clock())
    return database.look_up(lambda connection: connection.scalar(query.where(unspent)))


def sign_in(
    database: Database,
    token: str,
    *,
    browser: str,
    replaced: str = "",
    clock: Callable[[], datetime] = utc_now,
) -> str | None:
    """Spend a token and begin a session; of many attempts at once with one token, one succeeds.

    Args:
        database: Where links and sessions are stored.
        token: The token of a link.
        browser: Browser and system in words.
        replaced: Secret of the session that the browser had until now, which is ended.
        clock: Returns the current time.

    Returns:
        The secret of the new session; None if the token is unknown, spent or expired.

    Raises:
        DataError: The database cannot be written.
    """
    if not _has_shape(token, LINK_PREFIX):
        return None
    now, secret = clock(), _new_secret(SESSION_PREFIX)
    unspent = _unspent(token, now)
    # Looked up first: guesses must not make all workers forget whom they know.
    known = sa.select(sign_in_links.c.account_id).where(unspent)
    if database.look_up(lambda connection: connection.scalar(known)) is None:
        return None
    with change_access(database) as connection:
        spend = sign_in_links.update().where(unspent).values(used_at=now)
        account_id = connection.scalar(spend.returning(sign_in_links.c.account_id))
        if account_id is None:
            return None
        if is_session(replaced):
            _end(connection, sessions.c.secret_sha256 == hash_secret(replaced), now)
        _make_room(connection, account_id, now)
        values = {
            "id": f"ses_{secrets.token_hex(8)}",
            "account_id": account_id,
            "secret_sha256": hash_secret(secret),
            "browser": browser,
            "created_at": now,
            "last_seen_at": now,
            "expires_at": now + IDLE_LIFE,
        }
        connection.execute(sessions.insert().values(values))
        delete_expired(connection, now)
    return secret


def list_sessions(
    database: Database, account_id: int, *, clock: Callable[[], datetime] = utc_now
) -> list[SessionRecord]:
    """List an account's sessions that last, the one that was used last first."""
    lasting = _lasting(clock()) & (sessions.c.account_id == account_id)
    query = _RECORDS.where(lasting).order_by(sessions.c.last_seen_at.desc(), sessions.c.id)
    with database.reading() as connection:
        return [SessionRecord(**row) for row in connection.execute(query).mappings()]


def end_sessions(
    database: Database,
    account_id: int,
    session_id: str | None = None,
    *,
    clock: Callable[[], datetime] = utc_now,
) -> int:
    """End one session of an account, or all; every process refuses them at once.

    Args:
        database: Where sessions are stored.
        account_id: The account; sessions of others are left alone.
        session_id: The session; all of the account if left out.
        clock: Returns the current time.

    Returns:
        The number of sessions that were ended.
    """
    which = sessions.c.account_id == account_id
    if session_id is not None:
        if not is_storable(session_id):
            return 0
        which &= sessions.c.id == session_id
    with change_access(database) as connection:
        return _end(connection, which, clock())


def delete_expired(connection: Connection, now: datetime) -> None:
    """Delete links that are expired, and sessions that ended or expired a month ago."""
    connection.execute(sign_in_links.delete().where(sign_in_links.c.expires_at <= now))
    old = (sessions.c.expires_at <= now - _KEPT) | (sessions.c.ended_at <= now - _KEPT)
    connection.execute(sessions.delete().where(old))


def _unspent(token: str, now: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(
        sign_in_links.c.token_sha256 == hash_secret(token),
        sign_in_links.c.used_at.is_(None),
        sign_in_links.c.expires_at > now,
    )


def _make_room(connection: Connection, account_id: int, now: datetime) -> None:
    mine = (sessions.c.account_id == account_id) & _lasting(now)
    newest = sa.select(sessions.c.id).where(mine).order_by(sessions.c.last_seen_at.desc())
    kept = connection.scalars(newest.limit(MAX_SESSIONS - 1)).all()
    _end(connection, mine & sessions.c.id.not_in(kept), now)


def _end(connection: Connection, which: sa.ColumnElement[bool], now: datetime) -> int:
    lasting = which & sessions.c.ended_at.is_(None)
    return connection.execute(sessions.update().where(lasting).values(ended_at=now)).rowcount


def _lasting(now: datetime) -> sa.ColumnElement[bool]:
    return sessions.c.ended_at.is_(None) & (sessions.c.expires_at > now)


def _new_secret(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(32)


def _has_shape(text: str, prefix: str) -> bool:
    return len(text) == _SECRET_LENGTH and text.startswith(prefix) and text.isascii()


def is_session(text: str) -> bool:
    """Tell whether a text has the shape of a session's secret."""
    return _has_shape(text, SESSION_PREFIX)


_RECORDS = sa.select(
    sessions.c.id.label("session_id"),
    *(sessions.c.browser, sessions.c.created_at, sessions.c.last_seen_at),
    *(sessions.c.expires_at, sessions.c.ended_at),
)
_FIND = (
    sa.select(
        *(sessions.c.id, sessions.c.account_id, sessions.c.secret_sha256),
        *(sessions.c.created_at, sessions.c.last_seen_at, accounts.c.name, accounts.c.plan),
    )
    .join_from(sessions, accounts)
    .where(
        sessions.c.secret_sha256 == sa.bindparam("digest"),
        sessions.c.ended_at.is_(None),
        sessions.c.expires_at > sa.bindparam("now", type_=sessions.c.expires_at.type),
    )
)
