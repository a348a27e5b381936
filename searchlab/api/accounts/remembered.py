"""Remembered: what the database said of a secret, until any process changes keys or sessions.

The file FILE.generation beside a SQLite file tells all processes at once when they change. It holds
one number of 8 bytes: odd during a change, and even and new after it.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from sqlalchemy.engine import Connection

from searchlab.api.accounts.database import Database
from searchlab.api.accounts.locks import exclusive
from searchlab.errors import ConflictError, DataError

T = TypeVar("T")

_REMEMBERED_S = 5.0
_MOST_REMEMBERED = 10_000


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


class _Known(NamedTuple, Generic[T]):
    answer: T
    generation: int
    until: float


class Remembered(Generic[T]):
    """Whom secrets belong to; what is revoked or ended is forgotten at once by every worker.

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
        self._known: dict[bytes, _Known[T]] = {}
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
        self._known[digest] = _Known(answer, generation, time.monotonic() + _REMEMBERED_S)

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
