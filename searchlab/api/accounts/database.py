"""Database: SQLite beside the library, or PostgreSQL by URL, behind the same interface.

A transaction is committed when its block ends, and rolled back when the block raises. Exceptions of
the drivers become our own errors here and nowhere else; no message contains a password.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url

from searchlab.api.accounts.file_watch import FileWatch, UnreachableDatabaseError
from searchlab.errors import DataError, InputError, MissingExtraError, NotFoundError, SearchlabError

BUSY_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5
POOL_SIZE = 8

_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
# 40001 serialization failure, 40P01 deadlock, 55P03 lock not available: certainly rolled back.
_ROLLED_BACK = ("40001", "40P01", "55P03")
_SQLITE_BUSY = (5, 6)
_READ_ONLY = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_NO_TABLE = ("42P01", "42703")

T = TypeVar("T")


class BusyError(DataError):
    """Other transactions lock the database for too long; nothing was changed, try again."""


class UnstorableError(InputError):
    """A value that the database cannot store; callers must check values before they store them."""


class Database:
    """An open database.

    Attributes:
        engine: SQLAlchemy's engine; its pool is shared by all threads.
        name: Its name in messages, without a password.
        file: The file of SQLite; None for PostgreSQL.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        name: str,
        file: Path | None,
        lookups: Engine | None = None,
        watch: FileWatch | None = None,
    ) -> None:
        self.engine = engine
        self.name = name
        self.file = file
        self._watch = watch
        self._writer = engine.execution_options(begin="IMMEDIATE")
        self._quick_writer = engine.execution_options(begin="IMMEDIATE", synchronous="NORMAL")
        self._reader = engine if file is not None else engine.execution_options(**_READ_ONLY)
        self._lookups = lookups or engine
        self._writing = threading.Lock()

    def __repr__(self) -> str:
        return f"<Database {self.name}>"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that only reads, and sees one state of the data throughout.

        Raises:
            DataError: The database cannot be reached, is damaged or not migrated.
        """
        with self.translate_errors(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Connection]:
        """Open a transaction that writes; on SQLite there is one at a time, and others wait.

        Args:
            durable: Whether it must outlive a power cut once it is committed. On SQLite one that
                need not waits for no disk, and is durable with the next one that must.

        Raises:
            BusyError: Others lock the database for too long; nothing was changed.
            UnreachableDatabaseError: The database cannot be reached or written.
            UnstorableError: The database cannot store a text or number.
        """
        writer = self._writer if durable else self._quick_writer
        with self._turn(), self.translate_errors():
            with writer.begin() as connection:
                opened = connection.info.get("node")
                yield connection
            if self._watch is not None:
                self._watch.confirm(opened)

    @contextmanager
    def writing_alone(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction as `writing(durable=False)` does, on SQLite's own connection.

        That takes a third of the time, which counts where it is done for each search.

        Raises:
            SearchlabError: As `writing`.
        """
        with self._turn(), self.translate_errors():
            held = self.engine.raw_connection()
            try:
                own = cast(sqlite3.Connection, held.driver_connection)
                own.execute("PRAGMA synchronous=NORMAL")
                own.execute("BEGIN IMMEDIATE")
                yield own
                own.execute("COMMIT")
                opened = held.info.get("node")
            finally:
                held.close()  # which rolls back what was not committed
            if self._watch is not None:
                self._watch.confirm(opened)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        # SQLite's writers poll with pauses of up to 0.1 s; threads of one process need not.
        if self.file is None:
            yield
            return
        if not self._writing.acquire(timeout=BUSY_TIMEOUT_S):
            msg = f"{self.name} must be free, got one that another thread holds; try again"
            raise BusyError(msg)
        try:
            yield
        finally:
            self._writing.release()

    def prove_write(self, *, patience_s: float = 1.0) -> None:
        """Write something that changes nothing, to see whether the database takes writes.

        Args:
            patience_s: Seconds to wait for a lock.

        Raises:
            BusyError: It is locked.
            DataError: It cannot be reached or written.
        """
        if self.file is None:
            with self.translate_errors(), self._writer.begin() as connection:
                connection.exec_driver_sql("UPDATE alembic_version SET version_num = version_num")
            return
        self.look_up(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
        # With a connection of its own, which waits less long.
        watch = self._watch or FileWatch(self.file, None)
        with self.translate_errors(), closing(watch.connect(patience_s)) as own:
            own.isolation_level = None
            own.execute("BEGIN IMMEDIATE")
            _count_up(own.execute)
            own.execute("COMMIT")

    def make_durable(self, connection: Connection) -> None:
        """Let a transaction take to the disk what was committed before it without waiting for one.

        Args:
            connection: Of `writing()`.
        """
        if self.file is not None:
            _count_up(connection.exec_driver_sql)

    def look_up(self, ask: Callable[[Connection], T]) -> T:
        """Run one query in the fewest round trips; a second time if the connection was lost.

        Args:
            ask: Executes one SELECT; on PostgreSQL outside any transaction.

        Raises:
            DataError: The database cannot be reached.
        """
        with self.translate_errors():
            try:
                return self._ask(ask)
            except exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                return self._ask(ask)

    def _ask(self, ask: Callable[[Connection], T]) -> T:
        with self._lookups.connect() as connection:
            return ask(connection)

    def insert(self, table: sa.Table) -> sqlite.Insert:
        """Start an INSERT that can say what to do if the row exists (ON CONFLICT)."""
        # The classes of both dialects have the same methods, so one type serves for both.
        return sqlite.insert(table) if self.file is not None else postgresql.insert(table)  # type: ignore[return-value]

    def version(self) -> str | None:
        """Return the version of the tables; None if they do not exist yet.

        Raises:
            DataError: The database cannot be reached, or is damaged; or it was open and is gone.
        """
        if self._watch is not None:
            self._watch.check()
        if self.file is not None and not self.file.exists():
            return None
        with self.reading() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()
        self._lookups.dispose()

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn the driver's exceptions in the block into our own errors."""
        try:
            yield
        except (UnicodeEncodeError, OverflowError) as error:  # raised bare by SQLite's driver
            msg = f"values must be such that {self.name} takes them, got: {error}"
            raise UnstorableError(msg) from error
        except exc.TimeoutError:
            msg = f"{self.name} must have a free connection, got all in use; try again"
            raise BusyError(msg) from None
        except exc.DBAPIError as error:
            raise self._error_of(error) from error
        except sqlite3.Error as error:  # of SQLite's own connection
            is_operational = isinstance(error, sqlite3.OperationalError)
            kind = exc.OperationalError if is_operational else exc.DatabaseError
            raise self._error_of(kind("", None, error)) from error
        except exc.PendingRollbackError as error:
            msg = f"{self.name} must stay connected, got a connection that was lost; try again"
            raise UnreachableDatabaseError(msg) from error
        except exc.StatementError as error:  # a value of a type that the driver cannot take
            msg = f"values must be such that {self.name} takes them, got: {error.orig}"
            raise UnstorableError(msg) from error

    def _error_of(self, error: exc.DBAPIError) -> SearchlabError:
        lines = str(error.orig).strip().splitlines()
        reason = lines[0].strip() if lines else "no reason"
        if self.engine.url.password:
            reason = reason.replace(str(self.engine.url.password), "***")
        state = str(getattr(error.orig, "sqlstate", None) or "")
        code = getattr(error.orig, "sqlite_errorcode", None) or 0
        if state in _ROLLED_BACK or code % 256 in _SQLITE_BUSY:
            msg = f"{self.name} must be free, got: {reason}; another process holds it, try again"
            return BusyError(msg)
        if isinstance(error, exc.DataError):
            msg = f"values must be such that {self.name} takes them, got: {reason}"
            return UnstorableError(msg)
        if state in _NO_TABLE or reason.startswith(("no such table", "no such column")):
            msg = f"{self.name} must have the tables of this version, got: {reason}; migrate it"
        elif isinstance(error, exc.OperationalError) or error.connection_invalidated:
            check = "the URL, and that the server runs" if self.file is None else "its folder"
            msg = (
                f"{self.name} must be a database that can be reached and written, "
                f"got: {reason}; check {check}"
            )
            return UnreachableDatabaseError(msg)
        else:
            msg = f"{self.name} must take what is written to it, got: {reason}"
        return DataError(msg)


def _count_up(execute: Callable[[str], Any]) -> None:
    # SQLite leaves out a write that changes nothing, so a number that nobody reads is counted up.
    (number,) = execute("PRAGMA user_version").fetchone()
    execute(f"PRAGMA user_version = {(number + 1) % 2**30}")


def sqlite_url(folder: Path) -> str:
    """Return the URL of the database in a folder."""
    return URL.create("sqlite", database=str(folder.absolute() / "api.db")).render_as_string()


def open_database(url: str, *, notes: Path | None = None) -> Database:
    """Open a database without connecting to it yet; `migrate` creates its tables.

    Args:
        url: `sqlite:////path/api.db` or `postgresql://user:password@host:5432/name`.
        notes: File in which the processes of a server keep which file of SQLite they have open.

    Raises:
        InputError: The URL is malformed, or names another kind of database.
        MissingExtraError: PostgreSQL's driver is not installed.
        NotFoundError: The folder of the SQLite file does not exist.
    """
    address = _parse(url)
    if address.drivername.startswith("sqlite"):
        return _open_sqlite(address, notes)
    return _open_postgresql(address)


def _parse(url: str) -> URL:
    # The messages do not repeat the URL: with a typo, any part of it may be the password.
    form = "sqlite:////PATH or postgresql://USER:PASSWORD@HOST:PORT/NAME"
    try:
        address = make_url(url)
    except (exc.ArgumentError, ValueError):
        msg = f"the database's URL must have the form {form}, got another"
        raise InputError(msg) from None
    if address.drivername not in _DRIVERS:
        kinds = "sqlite, postgresql"
        msg = f"the database's URL must begin with one of {kinds}, got {address.drivername!r}"
        raise InputError(msg)
    if "@" in (address.host or ""):
        msg = (
            f"the database's URL must have the form {form} with one @, got more; "
            "write %40 for @ in a password"
        )
        raise InputError(msg)
    return address.set(drivername=_DRIVERS[address.drivername])


def _open_sqlite(address: URL, notes: Path | None) -> Database:
    if not address.database or address.database == ":memory:" or address.host or address.query:
        msg = "the database's URL must name a file, as in sqlite:////PATH, got none or more"
        raise InputError(msg)
    file = Path(address.database).absolute()
    if not file.parent.is_dir():
        msg = f"the database must lie in a folder, got {file.parent}, which is none"
        raise NotFoundError(msg)
    watch = FileWatch(file, notes)
    engine = sa.create_engine(
        address.set(database=str(file)),
        creator=lambda: watch.connect(BUSY_TIMEOUT_S),
        pool_size=POOL_SIZE,
        max_overflow=-1,
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver begins no transaction by itself
        for pragma in ("foreign_keys=ON", "synchronous=FULL", "temp_store=MEMORY"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        mode = options.get("begin", "DEFERRED")
        if mode != "DEFERRED":
            connection.exec_driver_sql(f"PRAGMA synchronous={options.get('synchronous', 'FULL')}")
        connection.exec_driver_sql(f"BEGIN {mode}")

    watch.attach(engine)
    return Database(engine, name=str(file), file=file, watch=watch)


def _on_connect(engine: Engine, statement: str) -> None:
    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.execute(statement)
        connection.commit()


def _open_postgresql(address: URL) -> Database:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        msg = "PostgreSQL must have its driver, got none; pip install 'searchlab[postgres]'"
        raise MissingExtraError(msg) from error
    usual = {
        "application_name": "searchlab",
        "connect_timeout": CONNECT_TIMEOUT_S,
        "tcp_user_timeout": int(BUSY_TIMEOUT_S * 1000),
    }
    options: dict[str, Any] = {
        # Those in the URL take precedence, and SQLAlchemy reads them from there.
        "connect_args": {name: one for name, one in usual.items() if name not in address.query},
        "pool_timeout": BUSY_TIMEOUT_S,
        "hide_parameters": True,
    }
    engine = sa.create_engine(address, pool_size=POOL_SIZE, pool_pre_ping=True, **options)
    # No ping before each look-up: `look_up` repeats a query whose connection was lost.
    lookups = sa.create_engine(address, pool_size=2, isolation_level="AUTOCOMMIT", **options)
    timeout_ms = int(BUSY_TIMEOUT_S * 1000)
    _on_connect(engine, f"SET lock_timeout = {timeout_ms}")
    _on_connect(lookups, f"SET statement_timeout = {timeout_ms}")
    hosts = address.host or address.query.get("host") or "localhost"
    host = hosts if isinstance(hosts, str) else ",".join(hosts)
    name = f"postgresql://{host}/{address.database or ''}"
    return Database(engine, name=name, file=None, lookups=lookups)
