"""PgvectorIndex: PostgreSQL with the extension pgvector proposes the rows.

A table is written in one transaction, so that it is there as a whole or not at all. Passwords come
from libpq's own places: ~/.pgpass, PGPASSFILE or PGPASSWORD.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, MismatchError, MissingExtraError, UnavailableError
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.foreign.foreign_index import ForeignIndex
from searchlab.search.indexes.foreign.tables import PREFIX, REMEDY, Engine, Owned, Table, is_ours

_Answer = TypeVar("_Answer")
# Connections of a parent process, kept so that no finalizer here ends them for it.
_inherited: list[Any] = []

_BATCH = 4_096
_KEPT_OPEN = 4  # connections that wait for the next search
_CONNECT_S = 5
_ANSWER_MS = 10_000  # a search that takes longer is given up
_MOST_EF = 1_000  # the extension takes no more
_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"


class PgvectorIndex(ForeignIndex):
    """Nearest rows as the `hnsw` index of pgvector proposes them.

    References:
        https://github.com/pgvector/pgvector
    """

    mode = "pgvector"
    promises_not = "no recall, no full page under a filter, and no two graphs alike"
    most_dim = 2_000
    most_links = 100

    @classmethod
    def check(cls) -> None:
        """Look for psycopg.

        Raises:
            MissingExtraError: It is not installed.
        """
        try:
            import psycopg  # noqa: F401 - only whether it is there
        except ImportError as error:
            msg = f"pgvector must have psycopg, got {error}; pip install 'searchlab[postgres]'"
            raise MissingExtraError(msg) from error

    @staticmethod
    def connect(address: str) -> Engine:
        """Return the database at a URL; see `ForeignIndex.connect`."""
        PgvectorIndex.check()
        return _database(address)


class PostgresTables(Engine):
    """Tables of a PostgreSQL database, over connections that threads take and give back."""

    name = "pgvector"
    most_rows = 10_000

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()
        weakref.finalize(self, _close_all, self._idle)

    def write(self, table: Table, vectors: Embeddings, **settings: int) -> None:
        """Copy the rows in and build the graph, in one transaction; see `Engine.write`."""

        def _write(connection: Any) -> None:
            with connection.transaction():
                connection.execute("SET LOCAL statement_timeout = 0")
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                connection.execute(
                    f"CREATE TABLE {table.name} "
                    f"(row integer PRIMARY KEY, vector vector({vectors.shape[1]}) NOT NULL)"
                )
                _copy(connection, table.name, vectors)
                connection.execute(
                    f"CREATE INDEX ON {table.name} USING hnsw (vector vector_ip_ops) "
                    f"WITH (m = {settings['M']}, ef_construction = {settings['ef_construction']})"
                )
                _comment(connection, table.name, "", table.fingerprint)
            connection.execute(f"ANALYZE {table.name}")

        self._run(_write, again=False)

    def check(self, table: Table, probes: NDArray[np.int64]) -> Embeddings:
        """Compare the number of rows, and return some; see `Engine.check`."""
        owned = self.list_tables().get(table.name)
        if owned is None or owned.fingerprint != table.fingerprint:
            got = "none" if owned is None else "another one"
            msg = f"the database must hold the table {table.name}, got {got}; {REMEDY}"
            raise DataError(msg)

        def _read(connection: Any) -> tuple[int, dict[int, Any]]:
            with connection.transaction():
                connection.execute("SET LOCAL statement_timeout = 0")
                (count,) = connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()
                wanted = f"SELECT row, vector::real[] FROM {table.name} WHERE row = ANY(%s)"
                return count, dict(connection.execute(wanted, (probes.tolist(),)).fetchall())

        count, rows = self._run(_read)
        if count != table.n_rows or len(rows) != len(probes):
            msg = f"the table {table.name} must hold {table.n_rows:,} rows, got {count:,}; {REMEDY}"
            raise DataError(msg)
        return np.array([rows[row] for row in probes.tolist()], dtype=np.float32)

    def search(self, table: Table, query: Embeddings, k: int, ef: int) -> NDArray[np.int64]:
        """Ask the graph, going on where its first view holds too few; see `Engine.search`."""
        text = "[" + ",".join(map(str, query.tolist())) + "]"
        statement = f"SELECT row FROM {table.name} ORDER BY vector <#> %s::vector LIMIT {int(k)}"

        def _ask(connection: Any) -> NDArray[np.int64]:
            connection.execute(
                "SELECT set_config('hnsw.ef_search', %s, false)", (str(min(ef, _MOST_EF)),)
            )
            cursor = connection.execute(statement, (text,), prepare=True)
            return np.array([row for (row,) in cursor], dtype=np.int64)

        return self._run(_ask)

    def own(self, table: Table, library: str) -> None:
        """Write it into the table's comment; see `Engine.own`."""
        self._run(lambda connection: _comment(connection, table.name, library, table.fingerprint))

    def list_tables(self) -> dict[str, Owned]:
        """Read the comments of the tables; see `Engine.list_tables`."""
        statement = (
            "SELECT relname, obj_description(oid, 'pg_class') FROM pg_class "
            "WHERE relkind = 'r' AND starts_with(relname::text, %s) AND pg_table_is_visible(oid)"
        )
        found = self._run(lambda connection: connection.execute(statement, (PREFIX,)).fetchall())
        pairs = [(str(name), Owned.of_json(text)) for name, text in found]
        return {name: owned for name, owned in pairs if owned is not None and is_ours(name)}

    def drop(self, name: str) -> None:
        """Drop it; a search under way ends first; see `Engine.drop`."""
        from psycopg import sql

        drop = sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name))
        self._run(lambda connection: connection.execute(drop))

    # -- connections ----------------------------------------------------------------------------

    def _run(self, work: Callable[[Any], _Answer], *, again: bool = True) -> _Answer:
        """Do something over a connection, once more over a new one where a kept one had ended."""
        import psycopg

        kept = self._take()
        try:
            connection = kept or self._connect()
        except psycopg.Error as error:
            msg = (
                f"the database of pgvector must answer, got: {_first_line(error)}; start it, or "
                "give a password in ~/.pgpass, PGPASSFILE or PGPASSWORD"
            )
            raise UnavailableError(msg) from error
        try:
            answer = work(connection)
        except psycopg.errors.UndefinedTable as error:
            self._give_back(connection)
            msg = f"the database must hold the table, got: {_first_line(error)}; {REMEDY}"
            raise DataError(msg) from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            connection.close()
            if kept is not None and again:
                with self._lock:
                    _close_all(self._idle)
                return self._run(work, again=False)
            msg = f"the database of pgvector must answer, got: {_first_line(error)}; try again"
            raise UnavailableError(msg) from error
        except psycopg.Error as error:
            connection.close()
            msg = (
                f"the database must let searchlab use pgvector, got: {_first_line(error)}; "
                "install the extension, grant CREATE"
            )
            raise MismatchError(msg) from error
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return answer

    def _connect(self) -> Any:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        usual: dict[str, Any] = {
            "application_name": "searchlab",
            "connect_timeout": _CONNECT_S,
            "tcp_user_timeout": _ANSWER_MS,
        }
        connection = psycopg.connect(**usual | conninfo_to_dict(self._url), autocommit=True)
        connection.execute(f"SET statement_timeout = {_ANSWER_MS}")
        # The module is loaded with the first value of its type, and only then has settings.
        if connection.execute("SELECT to_regtype('vector') IS NOT NULL").fetchone() == (True,):
            connection.execute("SELECT '[1]'::vector")
            connection.execute("SET hnsw.iterative_scan = relaxed_order")
        return connection

    def _take(self) -> Any | None:
        with self._lock:
            if self._pid != os.getpid():  # a connection must not be used on both sides of a fork
                _inherited.extend(self._idle)
                self._idle.clear()
                self._pid = os.getpid()
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Any) -> None:
        with self._lock:
            if len(self._idle) < _KEPT_OPEN and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()


@functools.cache
def _database(url: str) -> PostgresTables:
    return PostgresTables(url)


def _close_all(connections: list[Any]) -> None:
    while connections:
        connections.pop().close()


def _copy(connection: Any, name: str, vectors: Embeddings) -> None:
    """Send the rows in PostgreSQL's binary form, a batch at a time."""
    dim = vectors.shape[1]
    parts: list[tuple[Any, ...]] = [("fields", ">i2"), ("row_bytes", ">i4"), ("row", ">i4")]
    parts += [("vector_bytes", ">i4"), ("dim", ">i2"), ("unused", ">i2")]
    parts += [("vector", ">f4", (dim,))]
    with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(_HEAD)
        for start in range(0, len(vectors), _BATCH):
            rows = np.arange(start, min(start + _BATCH, len(vectors)))
            records = np.zeros(len(rows), dtype=parts)
            records["fields"], records["row_bytes"], records["row"] = 2, 4, rows
            records["vector_bytes"], records["dim"] = 4 + 4 * dim, dim
            records["vector"] = vectors[start : start + _BATCH]
            copy.write(records.tobytes())
        copy.write(_END)


def _comment(connection: Any, name: str, library: str, fingerprint: str) -> None:
    from psycopg import sql

    text = Owned(fingerprint, library, time.time()).to_json()
    connection.execute(
        sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(name), sql.Literal(text))
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
