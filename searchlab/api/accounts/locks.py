"""What processes beside one SQLite file share: a lock, and the generation of its keys.

FILE.lock         held by who migrates, or changes keys
FILE.generation   8 bytes; even, and another number after every change of keys; odd during one
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from searchlab.errors import ConflictError, DataError

_PATIENCE_S = 60.0


@contextmanager
def exclusive(file: Path, *, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Hold the lock beside a database file; it is freed when its holder dies.

    Raises:
        ConflictError: Somebody else holds it for longer than `patience_s`.
        DataError: The folder cannot be written.
    """
    path = file.with_name(f"{file.name}.lock")
    lock = FileLock(path, timeout=patience_s, is_singleton=False)
    try:
        lock.acquire()
    except Timeout as error:
        msg = f"{path} must be free, got one that another process holds; wait for it to end"
        raise ConflictError(msg) from error
    except OSError as error:
        msg = f"{file.parent} must be a folder that can be written, got: {error.strerror or error}"
        raise DataError(msg) from error
    try:
        yield
    finally:
        lock.release()


class Generation:
    """A number that all processes see at once, read in a fraction of a microsecond.

    An answer learnt under an even number stands as long as the number is the same. A process that
    dies in the middle of a change leaves an odd number: answers are then asked for each time,
    until `heal` finds that nobody is changing anything.
    """

    def __init__(self, file: Path) -> None:
        """Map the file beside a database file; it is made if need be.

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
        # One aligned load or store of 8 bytes; it is never seen half done.
        self._value = memoryview(self._map).cast("Q")

    def read(self) -> int:
        """Return the number."""
        return self._value[0]

    def current(self) -> Generation:
        """Return itself, or another one if the file was replaced, as by a restored backup."""
        try:
            replaced = self._path.stat().st_ino != self._inode
        except OSError:
            replaced = True
        return Generation(self._file) if replaced else self

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Mark a change of keys: odd before the block, even and new after it."""
        with exclusive(self._file):
            self._value[0] |= 1
            try:
                yield
            finally:
                self._value[0] += 1

    def heal(self) -> None:
        """Make an odd number even if its writer is dead."""
        try:
            with exclusive(self._file, patience_s=0):
                if self._value[0] & 1:
                    self._value[0] += 1
        except ConflictError:
            return  # somebody is at it

    def close(self) -> None:
        """Unmap the file."""
        self._value.release()
        self._map.close()
