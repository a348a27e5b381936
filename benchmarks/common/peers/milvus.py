"""Milvus Lite: a server inside the process, its data on disk, asked as any Milvus is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymilvus import DataType, MilvusClient

from benchmarks.common.peers import BATCH, Peer
from searchlab.models.protocol import Embeddings
from searchlab.studies.filters.atlas import PlainFilter


class MilvusPeer(Peer):
    """A collection with an `HNSW` index over inner products."""

    filters = "a boolean expression"

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Insert in batches, build the index, load the collection."""
        self._client = MilvusClient(str(folder / "milvus.db"))
        schema = self._client.create_schema(auto_id=False)
        schema.add_field("row", DataType.INT64, is_primary=True)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=vectors.shape[1])
        for name in columns:
            schema.add_field(name, DataType.INT64)
        index = self._client.prepare_index_params()
        links = {"M": self.M, "efConstruction": self.ef_construction}
        index.add_index("vector", index_type="HNSW", metric_type="IP", params=links)
        self._client.create_collection("photos", schema=schema, index_params=index)
        for start in range(0, len(vectors), BATCH):
            stop = min(start + BATCH, len(vectors))
            records = [
                {"row": row, "vector": vectors[row]}
                | {name: int(values[row]) for name, values in columns.items()}
                for row in range(start, stop)
            ]
            self._client.insert("photos", records)
        self._client.flush("photos")
        self._client.load_collection("photos")
        self._ef = 100

    def set_effort(self, effort: int) -> None:
        """Set `ef`."""
        self._ef = effort

    def _query(self, query: Embeddings, k: int, expression: str) -> Any:
        # The server refuses an ef below k.
        answer = self._client.search(
            "photos",
            data=[query],
            limit=k,
            filter=expression,
            search_params={"params": {"ef": max(self._ef, k)}},
        )
        return np.array([hit["row"] for hit in answer[0]], dtype=np.int64)

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask the collection."""
        return self._query(query, k, "")

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Ask the collection with an expression."""
        if condition is None:
            return self.search(query, k)
        terms = [f"{condition.day} >= {condition.first_day}"]
        for name, codes in (("source", condition.sources), ("license", condition.licenses)):
            if codes:
                terms.append(f"{name} in {list(codes)}")
        return self._query(query, k, " and ".join(terms))

    def close(self) -> None:
        """Close the client, which stops the server."""
        self._client.close()
