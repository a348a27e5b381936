"""Replays: the first answer to a POST with an `Idempotency-Key`, sent again to its repetitions.

A request claims its key before it acts, and records its answer in the transaction of its action, so
either both are stored or neither. A claim whose owner died is free at once on SQLite, where one
process can tell that another one has ended, and else after its lease; an owner that was merely slow
then finds its claim gone, and its action is rolled back.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.lives import Life
from searchlab.api.accounts.tables import replays
from searchlab.errors import ConflictError, InputError, SearchlabError

LEASE = timedelta(seconds=60)
KEPT = timedelta(hours=24)
_PRUNED_EVERY_S = 600.0
_PRUNED_AT_ONCE = 200
_LEVEL = 1  # pages of photos shrink to a sixth at any level, and higher ones take longer


class InFlightError(ConflictError):
    """The first request with this key is not answered yet.

    Attributes:
        retry_after_s: Seconds after which the key is free at the latest, if its owner has died.
    """

    retry_after_s: int = 1


@dataclass(frozen=True, slots=True)
class Replay:
    """An answer that was sent before.

    Attributes:
        status: HTTP status.
        body: Body, as it was sent.
        content_type: Content type, as it was sent.
    """

    status: int
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that tries to be the first with its key.

    Texts may have any length and content, since only their hashes are stored.

    Attributes:
        account_id: Account of the caller.
        method: HTTP method.
        path: Path, without query.
        key: The header `Idempotency-Key`.
        fingerprint: What must be the same in a repetition, such as a hash of query and body.
        owner: Random text that distinguishes this request from its repetitions.
    """

    account_id: int
    method: str
    path: str
    key: str
    fingerprint: str | bytes
    owner: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def scope(self) -> bytes:
        """Hash of account, method, path and key, which a repetition shares."""
        return _digest(str(self.account_id), self.method, self.path, self.key)

    @property
    def print(self) -> bytes:
        """Hash of the fingerprint, as stored."""
        return _digest(self.fingerprint)


class Replays:
    """Successful answers of the last 24 hours, by account, method, path and key."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock
        self._pruned_at = 0.0
        self._gate = threading.Lock()
        self._life = None if database.file is None else Life(database.file)

    def begin(self, attempt: Attempt) -> Replay | None:
        """Claim a key; None means that the caller owns it now and must `finish` or `forget`.

        Returns:
            The answer that was given before, if there is one.

        Raises:
            InFlightError: Another request owns the key and is not done.
            InputError: The key was used with another fingerprint.
        """
        self._prune()
        now = self._clock()
        mine: dict[str, Any] = {
            "account_id": attempt.account_id,
            "fingerprint": attempt.print,
            "owner": self._owner_of(attempt),
            "claimed_at": now,
            "created_at": now,
        }
        first = (
            self._database.insert(replays)
            .values(scope=attempt.scope, **mine)
            .on_conflict_do_nothing()
            .returning(replays.c.scope)
        )
        here = replays.c.scope == attempt.scope
        with self._database.writing() as connection:
            row = None
            while row is None:  # an old answer may be deleted between the two statements
                if connection.execute(first).first() is not None:
                    return None
                existing = sa.select(replays).where(here).with_for_update()
                row = connection.execute(existing).one_or_none()
            if row.created_at > now - KEPT:
                if row.fingerprint != attempt.print:
                    msg = (
                        "Idempotency-Key must come with the same request again, "
                        "got one that was used with another; take a new key"
                    )
                    raise InputError(msg)
                if row.status is not None:
                    return Replay(row.status, zlib.decompress(row.body), row.content_type)
                if row.claimed_at > now - LEASE and not self._is_dead(row.owner):
                    raise self._in_flight(row.claimed_at + LEASE - now)
            fresh = mine | {"status": None, "body": None, "content_type": None}
            connection.execute(replays.update().where(here).values(fresh))
        return None

    def finish(
        self,
        connection: Connection,
        attempt: Attempt,
        *,
        status: int,
        body: bytes,
        content_type: str = "application/json",
    ) -> None:
        """Record the answer, in the transaction of the action.

        Raises:
            InFlightError: The lease has run out and another request owns the key; the
                transaction must be rolled back.
        """
        done = replays.update().where(self._is_claim_of(attempt))
        packed = zlib.compress(body, _LEVEL)
        answer = {"status": status, "body": packed, "content_type": content_type}
        if connection.execute(done.values(answer)).rowcount != 1:
            msg = "Idempotency-Key must still be this request's, got one taken over by another"
            raise InFlightError(msg)

    def forget(self, attempt: Attempt) -> None:
        """Give the key back after an action that failed; recorded answers stay."""
        with self._database.writing() as connection:
            connection.execute(replays.delete().where(self._is_claim_of(attempt)))

    def close(self) -> None:
        """Free what this process has claimed."""
        if self._life is not None:
            self._life.close()

    def _owner_of(self, attempt: Attempt) -> str:
        return f"{self._life.name if self._life else ''}{attempt.owner}"

    def _is_dead(self, owner: str) -> bool:
        return self._life is not None and self._life.is_over(owner[: Life.length])

    def _in_flight(self, lease: timedelta) -> InFlightError:
        # Where nobody can tell whether the owner lives, what is certain is when its lease ends.
        wait_s = 1 if self._life is not None else max(1, math.ceil(lease.total_seconds()))
        when = "in a second" if wait_s == 1 else f"in {wait_s} seconds at the latest"
        msg = (
            "Idempotency-Key must not be in use, got one whose first request is not answered yet; "
            f"send it again {when}"
        )
        error = InFlightError(msg)
        error.retry_after_s = wait_s
        return error

    def _is_claim_of(self, attempt: Attempt) -> sa.ColumnElement[bool]:
        return sa.and_(
            replays.c.scope == attempt.scope,
            replays.c.owner == self._owner_of(attempt),
            replays.c.status.is_(None),
        )

    def _prune(self) -> None:
        """Delete some old answers; while there are more, each new key deletes some of them.

        So no transaction is long, and old answers are deleted faster than new ones are added.
        """
        with self._gate:
            if time.monotonic() - self._pruned_at < _PRUNED_EVERY_S and self._pruned_at:
                return
            self._pruned_at = time.monotonic()
        old = (
            sa.select(replays.c.scope)
            .where(replays.c.created_at < self._clock() - KEPT)
            .order_by(replays.c.created_at)
            .limit(_PRUNED_AT_ONCE)
        )
        with suppress(SearchlabError), self._database.writing() as connection:
            n_deleted = connection.execute(
                replays.delete().where(replays.c.scope.in_(old))
            ).rowcount
            if n_deleted == _PRUNED_AT_ONCE:
                self._pruned_at = 0.0


def _digest(*parts: str | bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)  # so that ab, c differs from a, bc
    return digest.digest()
