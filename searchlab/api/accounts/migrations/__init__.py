"""Migrations: bring a database to this version; several processes may do so at once."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from searchlab.api.accounts.database import Database
from searchlab.api.accounts.locks import exclusive
from searchlab.api.accounts.tables import VERSION
from searchlab.errors import DataError
from searchlab.files import sync_folder

if TYPE_CHECKING:
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

_ADVISORY_LOCK = 0x5EA4C41AB  # an arbitrary number that no other program is likely to use


def read_steps() -> ScriptDirectory:
    """Return the steps that ship with this version."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(Path(__file__).parent))


def migrate(database: Database, *, to: str = "head") -> None:
    """Bring the tables to this version; does nothing if they are. Several processes may call it.

    All missing steps run in one transaction.

    Args:
        database: The database.
        to: An earlier version to stop at, to test the later steps.

    Raises:
        DataError: The database is of a newer version, or cannot be reached or written.
    """
    if database.version() == VERSION:
        return  # without a lock, and without importing alembic, which is slow
    with ExitStack() as stack:
        if database.file is not None:
            stack.enter_context(exclusive(database.file))
            _prepare(database, database.file)
        connection = stack.enter_context(database.writing())
        if database.file is None:  # the same patience as the file lock of SQLite
            connection.exec_driver_sql("SET LOCAL lock_timeout = '60s'")
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
        steps = read_steps()
        _check_known(database, connection, steps)
        _upgrade(connection, steps, to)


def _prepare(database: Database, file: Path) -> None:
    # WAL is a property of the file. Switching to it fails at once, whatever the timeout, while
    # another process has the file open; under the lock no process has. Nor may this one: closing
    # any handle of a file gives up all locks that SQLite has on it.
    database.close()
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        sync_folder(file.parent)
    except OSError as error:
        msg = f"{file} must be a file that can be written, got: {error.strerror or error}"
        raise DataError(msg) from error
    with database.translate_errors(), database.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        driver.execute("PRAGMA journal_mode=WAL")


def _check_known(database: Database, connection: sa.Connection, steps: ScriptDirectory) -> None:
    from alembic.runtime.migration import MigrationContext
    from alembic.util.exc import CommandError

    for revision in MigrationContext.configure(connection).get_current_heads():
        try:
            steps.get_revision(revision)
        except CommandError:
            msg = (
                f"{database.name} must be of version {steps.get_current_head()} or older, "
                f"got {revision!r}; a newer searchlab has used it, install that one"
            )
            raise DataError(msg) from None


def _upgrade(connection: sa.Connection, steps: ScriptDirectory, to: str) -> None:
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    def list_missing(revision: Any, _context: MigrationContext) -> Any:
        return steps._upgrade_revs(to, revision)

    context = MigrationContext.configure(connection, opts={"fn": list_missing})
    with Operations.context(context):
        context.run_migrations()
