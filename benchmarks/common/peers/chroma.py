"""Chroma on disk: its graph, and metadata in SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.config import Settings
from numpy.typing import NDArray

from benchmarks.common.peers import BATCH, Peer
from searchlab.models.protocol import Embeddings
from searchlab.studies.filters.atlas import PlainFilter


class ChromaPeer(Peer):
    """A persistent collection; conditions are its `where`."""

    filters = "`where` on the metadata"

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Add in batches; the graph grows along."""
        client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
        graph = {"space": "ip", "max_neighbors": self.M, "ef_construction": self.ef_construction}
        self._photos: Any = client.create_collection(
            "photos", embedding_function=None, configuration={"hnsw": graph | {"num_threads": 1}}
        )
        for start in range(0, len(vectors), BATCH):
            rows = range(start, min(start + BATCH, len(vectors)))
            metadata: Any = [
                {name: int(values[row]) for name, values in columns.items()} for row in rows
            ]
            self._photos.add(
                ids=[str(row) for row in rows],
                embeddings=vectors[start : rows.stop],
                metadatas=metadata if columns else None,
            )

    def set_effort(self, effort: int) -> None:
        """Set `ef_search`."""
        self._photos.modify(configuration={"hnsw": {"ef_search": effort}})

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask the collection."""
        return self.search_filtered(query, k, None)

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Ask for a batch in one call."""
        answer = self._photos.query(query_embeddings=queries, n_results=k, include=[])
        return [np.array(ids, dtype=np.int64) for ids in answer["ids"]]

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Ask the collection with a `where`."""
        answer = self._photos.query(
            query_embeddings=query[np.newaxis],
            n_results=k,
            where=None if condition is None else _where(condition),
            include=[],
        )
        return np.array(answer["ids"][0], dtype=np.int64)


def _where(condition: PlainFilter) -> dict[str, Any]:
    terms: list[dict[str, Any]] = [{condition.day: {"$gte": condition.first_day}}]
    for name, codes in (("source", condition.sources), ("license", condition.licenses)):
        if codes:
            terms.append({name: {"$in": list(codes)}})
    return terms[0] if len(terms) == 1 else {"$and": terms}
