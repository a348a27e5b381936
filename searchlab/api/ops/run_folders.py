"""Run folder: where the workers of one server share counters while it runs."""

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
# A folder in memory, if the system has one: counters need no disk.
_MEMORY = Path("/dev/shm")


@contextmanager
def run_folder(base: Path | None = None) -> Iterator[Path]:
    """Make a folder that only this user can read, and remove it at the end.

    Folders that killed servers left behind are removed as well.

    Args:
        base: Parent folder; one in memory, or the system's temporary folder, if left out.
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
    # A folder without a lock file is just being made; another user's cannot be opened.
    with suppress(OSError):
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
