"""Copies of the server's database: taken while it serves, and put back while it serves."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from searchlab.api.accounts.database import Database, open_database
from searchlab.api.accounts.keyring import Generation
from searchlab.api.accounts.migrations import migrate
from searchlab.errors import InputError
from searchlab.files import sync_folder
from searchlab.library.databases import copy_database


def copy_accounts(database: Database, target: Path) -> None:
    """Copy accounts, keys, usage, collections and replays as they are at one moment.

    Raises:
        InputError: It is not SQLite, whose own tools make copies.
        DataError: It is damaged, or the target cannot be written.
    """
    copy_database(_file_of(database), target)


def restore_accounts(database: Database, source: Path) -> None:
    """Put a copy in place of what is stored; servers that run answer from it at once.

    Keys that were made since the copy are refused from then on.

    Args:
        database: Of this library; its file may be gone.
        source: From `copy_accounts`; of this version or an older one.

    Raises:
        InputError: It is not SQLite.
        DataError: The copy or the database is damaged, or cannot be read or written.
    """
    file = _file_of(database)
    partial = file.with_name(f"{file.name}.restored")
    partial.unlink(missing_ok=True)
    try:
        copy_database(source, partial)
        with closing(open_database(f"sqlite:///{partial}")) as copy:
            migrate(copy)
        with closing(Generation(file)) as generation, generation.change():
            if file.exists():
                copy_database(partial, file)
            else:
                # What is left beside it belongs to a file that is gone.
                for side in ("-wal", "-shm"):
                    file.with_name(file.name + side).unlink(missing_ok=True)
                partial.replace(file)
                sync_folder(file.parent)
    finally:
        for side in ("", "-wal", "-shm", ".lock", ".generation"):
            partial.with_name(partial.name + side).unlink(missing_ok=True)


def _file_of(database: Database) -> Path:
    if database.file is None:
        msg = f"the database must be SQLite's, got {database.name}; copy it with pg_dump"
        raise InputError(msg)
    return database.file
