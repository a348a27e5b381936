"""SQLite databases of a library: copied while they are used, and read through for damage."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote as quote_url

from searchlab.errors import DataError

_WAIT_S = 30


def copy_database(source: Path, target: Path) -> None:
    """Copy a SQLite database in one transaction, while others read and write either of the two.

    Args:
        source: A database; its disk need not be one that can be written.
        target: A new file, or a database in use, whose content is replaced.

    Raises:
        DataError: One of them is damaged, or cannot be read or written.
    """
    is_new = not target.exists()
    if is_new:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            closing(_open_to_read(source)) as reading,
            closing(sqlite3.connect(target, timeout=_WAIT_S)) as writing,
        ):
            writing.execute("PRAGMA synchronous=FULL")
            reading.backup(writing)
            if is_new:  # one file, without a journal beside it
                writing.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        if is_new:
            target.unlink(missing_ok=True)
        msg = f"{source} must be a database that can be copied to {target}, got: {error}"
        raise DataError(msg) from error


def check_database(path: Path, *, remedy: str) -> None:
    """Read a whole database and compare its pages, rows and indexes with each other.

    Args:
        path: A SQLite database, which others may use meanwhile.
        remedy: What to do where it is damaged, for the message.

    Raises:
        DataError: It is damaged, or cannot be read.
    """
    try:
        with closing(_open_to_read(path)) as reading:
            [(found,), *_] = reading.execute("PRAGMA integrity_check(1)").fetchall()
    except sqlite3.Error as error:
        found = str(error)
    if found != "ok":
        found = found.splitlines()[-1]  # below a heading
        msg = f"{path} must be a sound database, got: {found}; {remedy}"
        raise DataError(msg)


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Open a database to read it; even a reader writes beside it, where the disk lets it."""
    if os.access(path.parent, os.W_OK) or path.with_name(f"{path.name}-wal").exists():
        return sqlite3.connect(path, timeout=_WAIT_S)
    return sqlite3.connect(f"file:{quote_url(str(path))}?immutable=1", uri=True)
