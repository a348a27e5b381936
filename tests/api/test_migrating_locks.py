"""A process that migrates keeps SQLite's locks: without them others take its journal away."""

import subprocess
import sys

import sqlalchemy as sa

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.tables import accounts

_LOOK = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT 1 FROM accounts')"


def test_a_database_is_still_locked_after_its_tables_were_brought_up_to_date(tmp_path):
    database = open_database(sqlite_url(tmp_path))
    try:
        migrate(database, to="0002")
        assert names_in(database) == []  # from now on a connection waits in the pool
        migrate(database)
        with database.writing() as connection:
            row = {"name": "ann", "plan": "free", "created_at": utc_now()}
            connection.execute(accounts.insert(), row)
        file = tmp_path / "api.db"
        subprocess.run([sys.executable, "-c", _LOOK, str(file)], check=True)
        assert file.with_name("api.db-wal").exists()
        assert names_in(database) == ["ann"]
    finally:
        database.close()


def names_in(database):
    with database.reading() as connection:
        return list(connection.scalars(sa.select(accounts.c.name)))
