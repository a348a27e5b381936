"""MilvusIndex: Milvus proposes the rows, a server or Milvus Lite in a file.

A file of Milvus Lite belongs to one process at a time. The token of a server comes from the
environment variable MILVUS_TOKEN.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, MissingExtraError, UnavailableError
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.foreign.foreign_index import ForeignIndex
from searchlab.search.indexes.foreign.tables import PREFIX, REMEDY, Engine, Owned, Table

TOKEN = "MILVUS_TOKEN"
_Answer = TypeVar("_Answer")

_OWNERS = f"{PREFIX}tables"  # a collection of what is known of the others
_BATCH = 1_000
_TIMEOUT_S = 10.0
_NO_COLLECTION = 100  # Milvus' code
_LEAST_DIM = 2  # Milvus takes no shorter vectors


class MilvusIndex(ForeignIndex):
    """Nearest rows as the `HNSW` index of Milvus proposes them.

    References:
        https://milvus.io
    """

    mode = "milvus"
    promises_not = "no recall, no full page under a filter, and no two loads with one graph"
    most_dim = 32_768
    most_links = 200

    @classmethod
    def check(cls) -> None:
        """Look for pymilvus.

        Raises:
            MissingExtraError: It is not installed.
        """
        try:
            import pymilvus  # noqa: F401 - only whether it is there
        except ImportError as error:
            msg = f"milvus must have pymilvus, got {error}; pip install 'searchlab[milvus]'"
            raise MissingExtraError(msg) from error

    @staticmethod
    def connect(address: str) -> Engine:
        """Return the Milvus at an address; see `ForeignIndex.connect`."""
        MilvusIndex.check()
        return _at(address)


class MilvusCollections(Engine):
    """Collections of a Milvus, behind one client that all threads share."""

    name = "milvus"
    most_rows = 10_000

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._client: Any = None
        self._lock = threading.Lock()

    def write(self, table: Table, vectors: Embeddings, **settings: int) -> None:
        """Insert the rows in batches, build the graph, load it; see `Engine.write`."""
        from pymilvus import DataType

        # Noted first, so that a collection whose writer was killed is known, and dropped one day.
        self._note(table.name, Owned(table.fingerprint, "", time.time()))

        def _write(client: Any) -> None:
            schema = client.create_schema(auto_id=False)
            schema.add_field("row", DataType.INT64, is_primary=True)
            dim = max(vectors.shape[1], _LEAST_DIM)
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dim)
            graph = client.prepare_index_params()
            links = {"M": settings["M"], "efConstruction": settings["ef_construction"]}
            graph.add_index("vector", index_type="HNSW", metric_type="IP", params=links)
            client.create_collection(
                table.name, schema=schema, index_params=graph, consistency_level="Strong"
            )
            for start in range(0, len(vectors), _BATCH):
                block = _widened(vectors[start : start + _BATCH])
                records = [{"row": start + n, "vector": row} for n, row in enumerate(block)]
                client.insert(table.name, records)
            client.flush(table.name)
            client.load_collection(table.name)

        try:
            self._run(_write)
        except BaseException:
            self.drop(table.name)
            raise

    def check(self, table: Table, probes: NDArray[np.int64]) -> Embeddings:
        """Compare the number of rows, and return some; see `Engine.check`."""
        if "://" not in self._uri and not Path(self._uri).exists():
            msg = f"{self._uri} must be the file of Milvus Lite, got no file; {REMEDY}"
            raise DataError(msg)
        owned = self.list_tables().get(table.name)
        if owned is None or owned.fingerprint != table.fingerprint:
            got = "none" if owned is None else "another one"
            msg = f"Milvus must hold the collection {table.name}, got {got}; {REMEDY}"
            raise DataError(msg)

        def _read(client: Any) -> tuple[int, dict[int, Any]]:
            client.load_collection(table.name)
            (counted,) = client.query(table.name, filter="", output_fields=["count(*)"])
            ids = probes.tolist()
            found = client.get(table.name, ids=ids, timeout=_TIMEOUT_S) if ids else []
            return counted["count(*)"], {int(one["row"]): one["vector"] for one in found}

        count, rows = self._run(_read)
        if count != table.n_rows or len(rows) != len(probes):
            msg = f"{table.name} must hold {table.n_rows:,} rows, got {count:,}; {REMEDY}"
            raise DataError(msg)
        return np.array([rows[row] for row in probes.tolist()], dtype=np.float32)

    def search(self, table: Table, query: Embeddings, k: int, ef: int) -> NDArray[np.int64]:
        """Ask the graph; see `Engine.search`."""

        def _ask(client: Any) -> NDArray[np.int64]:
            answer = client.search(
                table.name,
                data=[_widened(query[np.newaxis])[0]],
                limit=k,
                search_params={"params": {"ef": ef}},
                timeout=_TIMEOUT_S,
            )
            return np.array([hit["row"] for hit in answer[0]], dtype=np.int64)

        return self._run(_ask)

    def own(self, table: Table, library: str) -> None:
        """Note it; see `Engine.own`."""
        self._note(table.name, Owned(table.fingerprint, library, time.time()))

    def list_tables(self) -> dict[str, Owned]:
        """Read what was noted; see `Engine.list_tables`."""

        def _read(client: Any) -> list[Any]:
            if not client.has_collection(_OWNERS):
                return []
            client.load_collection(_OWNERS)
            fields = ["name", "owned"]
            return list(client.query(_OWNERS, filter="name != ''", output_fields=fields))

        pairs = [(str(one["name"]), Owned.of_json(one["owned"])) for one in self._run(_read)]
        return {name: owned for name, owned in pairs if owned is not None}

    def drop(self, name: str) -> None:
        """Drop it, then what was noted of it; see `Engine.drop`."""

        def _drop(client: Any) -> None:
            if client.has_collection(name):
                client.drop_collection(name)
            if client.has_collection(_OWNERS):
                client.delete(_OWNERS, ids=[name])

        self._run(_drop)

    def _note(self, name: str, owned: Owned) -> None:
        from pymilvus import DataType

        def _write(client: Any) -> None:
            if not client.has_collection(_OWNERS):
                schema = client.create_schema(auto_id=False)
                schema.add_field("name", DataType.VARCHAR, is_primary=True, max_length=64)
                schema.add_field("owned", DataType.VARCHAR, max_length=1_000)
                # A collection must have vectors.
                schema.add_field("unused", DataType.FLOAT_VECTOR, dim=_LEAST_DIM)
                flat = client.prepare_index_params()
                flat.add_index("unused", index_type="FLAT", metric_type="IP")
                client.create_collection(
                    _OWNERS, schema=schema, index_params=flat, consistency_level="Strong"
                )
            unused = [0.0] * _LEAST_DIM
            record = {"name": name, "owned": owned.to_json(), "unused": unused}
            client.upsert(_OWNERS, [record])

        self._run(_write)

    def _run(self, work: Callable[[Any], _Answer]) -> _Answer:
        import grpc
        from pymilvus.exceptions import MilvusException

        try:
            return work(self._connected())
        except (MilvusException, grpc.RpcError, OSError, ConnectionError) as error:
            if getattr(error, "code", None) == _NO_COLLECTION:
                msg = f"Milvus must hold the snapshot's collection, got: {error}; {REMEDY}"
                raise DataError(msg) from error
            msg = f"Milvus must answer, got: {error}; start it, or close what else has its file"
            raise UnavailableError(msg) from error

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                from pymilvus import MilvusClient

                self._client = MilvusClient(
                    self._uri, token=os.environ.get(TOKEN, ""), timeout=_TIMEOUT_S
                )
            return self._client


@functools.cache
def _at(uri: str) -> MilvusCollections:
    # One for all indexes of a process, since a file of Milvus Lite is opened once.
    return MilvusCollections(uri)


def _widened(vectors: Embeddings) -> Embeddings:
    """Return rows of two numbers at least, the added ones 0, which changes no product."""
    missing = max(0, _LEAST_DIM - vectors.shape[1])
    return np.pad(vectors, ((0, 0), (0, missing))) if missing else np.asarray(vectors)
