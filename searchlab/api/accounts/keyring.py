"""KeyRing: from the header `x-api-key` to whose it is, at every request."""

from __future__ import annotations

import time
from typing import NamedTuple

from searchlab.api.accounts.accounts import Caller, find_caller, is_secret, secret_sha256
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.locks import Generation

_KEPT_S = 5.0
_MOST_KEPT = 10_000


class _Known(NamedTuple):
    caller: Caller
    generation: int
    until: float


class KeyRing:
    """Finds callers by their secret; a key that was revoked is refused at once, everywhere.

    SQLite: an answer is remembered for as long as the generation of the keys stays the same, a
    number in memory that all processes of the machine share, and for seconds at most.
    PostgreSQL: each answer is one indexed lookup. A generation kept there would have to be read
    each time as well, at the same price.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, _Known] = {}
        self._generation = None if database.file is None else Generation(database.file)

    def remembered(self, secret: str) -> Caller | None:
        """Return whose secret it is if that is known without asking the database, else None."""
        if self._generation is None or not is_secret(secret):
            return None
        return self._in_force(secret_sha256(secret), self._generation)

    def find(self, secret: str) -> Caller | None:
        """Return whose secret it is; None when it is nobody's, or revoked.

        Raises:
            DataError: The database cannot be reached.
        """
        if not is_secret(secret):
            return None
        if self._generation is None:
            return self._database.look_up(lambda connection: find_caller(connection, secret))
        digest = secret_sha256(secret)
        if known := self._in_force(digest, self._generation):
            return known
        self._generation = generation = self._generation.current()
        if generation.read() % 2:
            generation.heal()
        # Read before the database is: what changes in between makes the answer worthless.
        before = generation.read()
        caller = self._database.look_up(lambda connection: find_caller(connection, secret))
        self._remember(digest, caller, generation=before)
        return caller

    def _in_force(self, digest: bytes, generation: Generation) -> Caller | None:
        known = self._known.get(digest)
        if (
            known is not None
            and known.generation == generation.read()
            and time.monotonic() < known.until
        ):
            return known.caller
        return None

    def _remember(self, digest: bytes, caller: Caller | None, *, generation: int) -> None:
        if caller is None or generation % 2:
            self._known.pop(digest, None)
            return
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[digest] = _Known(caller, generation, time.monotonic() + _KEPT_S)

    def close(self) -> None:
        """Forget what is remembered."""
        self._known.clear()
        if self._generation is not None:
            self._generation.close()
