"""The lock beside a SQLite file, which a process holds while it migrates it or changes keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from searchlab.errors import ConflictError, DataError

_PATIENCE_S = 60.0


@contextmanager
def exclusive(file: Path, *, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Hold the lock beside a database file during the block; a holder that dies frees it.

    Raises:
        ConflictError: Another process holds it for longer than `patience_s` seconds.
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
