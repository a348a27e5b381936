"""Indexes behind one protocol: exact search, hnswlib's graph and the clustered scan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.exact import ExactIndex
from searchlab.search.indexes.hnsw import HnswIndex
from searchlab.search.indexes.protocol import Nearest, Neighbors, VectorIndex

__all__ = [
    "INDEXES",
    "ExactIndex",
    "HnswIndex",
    "Nearest",
    "Neighbors",
    "VectorIndex",
    "open_index",
    "updated_index",
]


def _hnsw(vectors: Embeddings, config: Config, labels: NDArray[np.int64]) -> VectorIndex:
    return HnswIndex(
        vectors,
        M=config.M,
        ef_construction=config.ef_construction,
        ef_search=config.ef_search,
        seed=config.seed,
        threads=config.build_threads,
        labels=labels,
    )


def _clustered(vectors: Embeddings, config: Config, labels: NDArray[np.int64]) -> VectorIndex:
    # numba takes a second to import, and no other index needs it.
    from searchlab.search.indexes.ivf.index import ClusteredIndex

    return ClusteredIndex(
        vectors, labels=labels, n_lists=config.n_lists, recall=config.recall, seed=config.seed
    )


INDEXES: dict[str, Callable[[Embeddings, Config, NDArray[np.int64]], VectorIndex]] = {
    "exact": lambda vectors, _config, _labels: ExactIndex(vectors),
    "hnsw": _hnsw,
    "clustered": _clustered,
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
    if config.index == "clustered":
        from searchlab.search.indexes.ivf.index import ClusteredIndex

        return ClusteredIndex.open(
            folder,
            vectors,
            labels=labels,
            n_lists=config.n_lists,
            recall=config.recall,
            seed=config.seed,
        )
    return HnswIndex.open(
        folder,
        vectors,
        labels=labels,
        M=config.M,
        ef_construction=config.ef_construction,
        ef_search=config.ef_search,
        seed=config.seed,
        threads=config.build_threads,
    )


def updated_index(
    before: VectorIndex, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
) -> VectorIndex:
    """Return the index of a changed library, which takes over what it can of the one before.

    The one before must not be searched afterwards.

    Args:
        before: Built with the same `Config.index_id`.
        vectors: (n_photos, dim) unit rows of the changed library.
        config: How it is searched may have changed.
        labels: (n_photos,) labels; one that was there before must carry the same vector.
    """
    if isinstance(before, HnswIndex):
        return before.updated(vectors, labels, ef_search=config.ef_search)
    if config.index == "clustered":
        from searchlab.search.indexes.ivf.index import ClusteredIndex

        if isinstance(before, ClusteredIndex):
            return before.updated(vectors, labels, recall=config.recall)
    return INDEXES[config.index](vectors, config, labels)
