"""Indexes behind one class: exact search, the graph of hnswlib, and the IVF index.

`searchlab.config.indexes` lists them; a new one is a `VectorIndex` and one line there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.indexes import INDEXES, load_index
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
    "build_index",
    "index_class",
    "open_index",
    "update_index",
]


def index_class(config: Config) -> type[VectorIndex]:
    """Return the class of the index that a config names."""
    index: type[VectorIndex] = load_index(config.index)
    return index


def build_index(
    vectors: Embeddings, config: Config, labels: NDArray[np.int64] | None = None
) -> VectorIndex:
    """Build the index that a config names.

    Args:
        vectors: (n_photos, dim) unit rows.
        config: Names the index and how it is built.
        labels: (n_photos,) int64 numbers that stay the same when photos come and go; the rows if
            left out.
    """
    labels = np.arange(len(vectors)) if labels is None else labels
    return index_class(config).build(vectors, config, labels=labels)


def open_index(
    folder: Path, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
) -> VectorIndex:
    """Open the index that a snapshot holds.

    Raises:
        DataError: Its files are missing, damaged or of other vectors.
    """
    return index_class(config).open(folder, vectors, config, labels=labels)


def update_index(
    before: VectorIndex, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
) -> VectorIndex:
    """Return the index of a changed library, which takes over what it can of the one before.

    The one before must not be searched afterwards.

    Args:
        before: Index of the library before, built with the same `Config.index_id`.
        vectors: (n_photos, dim) unit rows of the changed library.
        config: How it is searched may have changed.
        labels: (n_photos,) labels; one that was there before must carry the same vector.
    """
    if isinstance(before, index_class(config)):
        return before.update(vectors, labels, config)
    return build_index(vectors, config, labels)
