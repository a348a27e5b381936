"""KeyRing: finds the caller of each request by the header `x-api-key`.

Whom a secret belongs to is remembered until any process changes keys or sessions. The file
FILE.generation beside a SQLite file tells all processes at once when they change. It holds one
number of 8 bytes: odd during a change, and even and new after it.
"""

from __future__ import annotations

import hashlib
import hmac
import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.database import Database
from searchlab.api.accounts.locks import exclusive
from searchlab.api.accounts.tables import accounts, api_keys
from searchlab.errors import ConflictError, DataError

T = TypeVar("T")

_REMEMBERED_S = 5.0
_MOST_REMEMBERED = 10_000
SECRET_PREFIX = "sl_"
SECRET_LENGTH = 46


@dataclass(frozen=True, slots=True)
class Caller:
    """The account and the key behind a request.

    Attributes:
        account_id: The account, which owns collections, usage and cursors.
        key_id: Public identifier of the key.
        plan: Name of the account's plan.
    """

    account_id: int
    key_id: str
    plan: str


def hash_secret(secret: str) -> bytes:
    """Hash a secret for storage; 256 random bits need neither a salt nor a slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def is_secret(text: str) -> bool:
    """Tell whether a text has the shape of a key's secret."""
    return len(text) == SECRET_LENGTH and text.startswith(SECRET_PREFIX) and text.isascii()


# -- what is remembered of a secret -------------------------------------------------------------


class Generation:
    """A number that all processes see at once, read in a fraction of a microsecond.

    An answer of the database under an even number stays valid while the number is the same. A
    process that dies in the middle of a change leaves an odd number: every request then asks the
    database, until `heal` finds that no process changes anything.
    """

    def __init__(self, file: Path) -> None:
        """Map the file beside a database file into memory; creates it if it does not exist.

        Raises:
            DataError: The folder cannot be written.
        """
        self._file = file
        self._path = file.with_name(f"{file.name}.generation")
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if os.fstat(handle).st_size < 8:
                    os.ftruncate(handle, 8)
                self._inode = os.fstat(handle).st_ino
                self._map = mmap.mmap(handle, 8)
            finally:
                os.close(handle)
        except OSError as error:
            msg = f"{self._path} must be a file that can be written, got: {error.strerror or error}"
            raise DataError(msg) from error
        # One aligned load or store of 8 bytes is atomic.
        self._value = memoryview(self._map).cast("Q")

    def read(self) -> int:
        """Return the number."""
        return self._value[0]

    def current(self) -> Generation:
        """Return this object, or a new one if the file was replaced, as by a restored backup."""
        try:
            replaced = self._path.stat().st_ino != self._inode
        except OSError:
            replaced = True
        return Generation(self._file) if replaced else self

    @contextmanager
    def change(self) -> Iterator[None]:
        """Mark a change: the number is odd during the block, and even and new after it."""
        with exclusive(self._file):
            self._value[0] |= 1
            try:
                yield
            finally:
                self._value[0] += 1

    def heal(self) -> None:
        """Make an odd number even, if the process that left it is dead."""
        try:
            with exclusive(self._file, patience_s=0):
                if self._value[0] & 1:
                    self._value[0] += 1
        except ConflictError:
            return  # another process is in the middle of a change

    def close(self) -> None:
        """Unmap the file."""
        self._value.release()
        self._map.close()


class _KnownOwner(NamedTuple, Generic[T]):
    answer: T
    generation: int
    until: float


class Remembered(Generic[T]):
    """Cached owners of secrets; every worker forgets at once what is revoked or ended.

    SQLite: an answer is remembered while the `Generation`, which all processes of the machine
    share, stays the same, and for five seconds at most.
    PostgreSQL: each question is one indexed lookup. A generation stored there would have to be read
    at each request too, at the same price.
    """

    def __init__(self, database: Database, ask: Callable[[Connection, bytes], T | None]) -> None:
        """Remember nothing yet.

        Args:
            database: Where the secrets' hashes are stored.
            ask: Finds the owner of a secret by its hash, with one SELECT.
        """
        self._database = database
        self._ask = ask
        self._known: dict[bytes, _KnownOwner[T]] = {}
        self._generation = None if database.file is None else Generation(database.file)

    def recall(self, digest: bytes) -> T | None:
        """Return the owner of a secret if it is known without asking the database, else None."""
        if self._generation is None:
            return None
        known = self._known.get(digest)
        if (
            known is not None
            and known.generation == self._generation.read()
            and time.monotonic() < known.until
        ):
            return known.answer
        return None

    def find(self, digest: bytes) -> T | None:
        """Return the owner of a secret, from memory or from the database; None if there is none.

        Raises:
            DataError: The database cannot be reached.
        """
        if self._generation is None:
            return self._look_up(digest)
        answer = self.recall(digest)
        if answer is not None:
            return answer
        self._generation = generation = self._generation.current()
        if generation.read() % 2:
            generation.heal()
        # Read before the database, so that a change in between makes the remembered answer invalid.
        number = generation.read()
        answer = self._look_up(digest)
        self._remember(digest, answer, generation=number)
        return answer

    def _look_up(self, digest: bytes) -> T | None:
        return self._database.look_up(lambda connection: self._ask(connection, digest))

    def _remember(self, digest: bytes, answer: T | None, *, generation: int) -> None:
        if answer is None or generation % 2:
            self._known.pop(digest, None)
            return
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[digest] = _KnownOwner(answer, generation, time.monotonic() + _REMEMBERED_S)

    def close(self) -> None:
        """Forget everything."""
        self._known.clear()
        if self._generation is not None:
            self._generation.close()


@contextmanager
def change_access(database: Database) -> Iterator[Connection]:
    """Open a transaction that changes keys, plans or sessions; all workers then forget theirs."""
    with ExitStack() as stack:
        if database.file is not None:
            generation = stack.enter_context(closing(Generation(database.file)))
            stack.enter_context(generation.change())
        yield stack.enter_context(database.writing())


# -- keys ---------------------------------------------------------------------------------------


def _find_caller(connection: Connection, digest: bytes) -> Caller | None:
    row = connection.execute(_FIND, {"digest": digest}).one_or_none()
    if row is None or not hmac.compare_digest(row.secret_sha256, digest):
        return None
    return Caller(row.account_id, row.id, row.plan)


_FIND = (
    sa.select(api_keys.c.id, api_keys.c.account_id, api_keys.c.secret_sha256, accounts.c.plan)
    .join_from(api_keys, accounts)
    .where(api_keys.c.secret_sha256 == sa.bindparam("digest"), api_keys.c.revoked_at.is_(None))
)


class KeyRing:
    """Finds callers by their secret; a revoked key is refused at once by every worker."""

    def __init__(self, database: Database) -> None:
        self._remembered = Remembered(database, _find_caller)

    def recall(self, secret: str) -> Caller | None:
        """Return the owner of a secret if it is known without asking the database, else None."""
        return self._remembered.recall(hash_secret(secret)) if is_secret(secret) else None

    def find(self, secret: str) -> Caller | None:
        """Return the owner of a secret; None for an unknown or revoked key.

        Raises:
            DataError: The database cannot be reached.
        """
        return self._remembered.find(hash_secret(secret)) if is_secret(secret) else None

    def close(self) -> None:
        """Forget all remembered callers."""
        self._remembered.close()
