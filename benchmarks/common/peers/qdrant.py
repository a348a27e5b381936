"""Qdrant's local mode: numpy and Python inside the client, exact, without an index."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from benchmarks.common.peers import Peer
from searchlab.models.protocol import Embeddings
from searchlab.studies.filters.atlas import PlainFilter


class QdrantPeer(Peer):
    """A collection in memory; the client itself says that it is for tests and small data."""

    efforts = ()
    filters = "must-conditions on the payload, checked photo by photo in Python"

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Upload all points."""
        self._client = QdrantClient(":memory:")
        parameters = models.VectorParams(size=vectors.shape[1], distance=models.Distance.DOT)
        self._client.create_collection("photos", vectors_config=parameters)
        names, values = list(columns), [column.tolist() for column in columns.values()]
        payload = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that more than 20,000 points are many
            self._client.upload_collection(
                "photos", vectors=vectors, payload=payload or None, ids=range(len(vectors))
            )

    def search(self, query: Embeddings, k: int) -> Any:
        """Score every point."""
        return self.search_filtered(query, k, None)

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Score the points whose payload meets the conditions."""
        conditions = None if condition is None else _filter(condition)
        answer = self._client.query_points(
            "photos", query=query, limit=k, query_filter=conditions, with_payload=False
        )
        return np.array([point.id for point in answer.points], dtype=np.int64)

    def close(self) -> None:
        """Close the client."""
        self._client.close()


def _filter(condition: PlainFilter) -> Any:
    days = models.Range(gte=condition.first_day)
    must: list[Any] = [models.FieldCondition(key=condition.day, range=days)]
    for name, codes in (("source", condition.sources), ("license", condition.licenses)):
        if codes:
            any_of = models.MatchAny(any=list(codes))
            must.append(models.FieldCondition(key=name, match=any_of))
    return models.Filter(must=must)
