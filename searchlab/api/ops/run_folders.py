"""Run folder: where the workers of one server share counters, for as long as it runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "searchlab-serve-"
_LOCK = "in-use"
# In memory where the system has such a place: counters need no disk.
_MEMORY = Path("/dev/shm")


@contextmanager
def run_folder(base: Path | None = None) -> Iterator[Path]:
    """Make a folder that only this user can read, and remove it at the end.

    What a server left behind that was killed is removed as well.

    Args:
        base: Where to make it; the system's place for such things if left out.
    """
    base = base or _base()
    for leftover in base.glob(f"{_PREFIX}*"):
        _remove_if_unused(leftover)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _base() -> Path:
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        return _MEMORY
    return Path(tempfile.gettempdir())


def _remove_if_unused(folder: Path) -> None:
    # One without a lock file is being made at this moment; one of somebody else cannot be opened.
    with suppress(OSError):
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
