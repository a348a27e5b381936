"""Indexes behind one protocol: exact search and hnswlib's graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.indexes.exact import ExactIndex
from searchlab.indexes.hnsw import HnswIndex
from searchlab.indexes.protocol import Neighbors, VectorIndex
from searchlab.models.protocol import Embeddings

__all__ = ["INDEXES", "ExactIndex", "HnswIndex", "Neighbors", "VectorIndex", "open_index"]


def _hnsw(vectors: Embeddings, config: Config, labels: NDArray[np.int64]) -> VectorIndex:
    return HnswIndex(
        vectors,
        M=config.M,
        ef_construction=config.ef_construction,
        ef_search=config.ef_search,
        seed=config.seed,
        labels=labels,
    )


INDEXES: dict[str, Callable[[Embeddings, Config, NDArray[np.int64]], VectorIndex]] = {
    "exact": lambda vectors, _config, _labels: ExactIndex(vectors),
    "hnsw": _hnsw,
}


def open_index(
    folder: Path, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
) -> VectorIndex:
    """Open the index that a snapshot holds.

    Raises:
        DataError: Its files are missing, damaged or of other vectors.
    """
    if config.index == "exact":
        return ExactIndex(vectors)
    return HnswIndex.open(
        folder,
        vectors,
        labels=labels,
        M=config.M,
        ef_construction=config.ef_construction,
        ef_search=config.ef_search,
        seed=config.seed,
    )
