"""ExactIndex: every allowed row is scored; the oracle of all other indexes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchlab.indexes.protocol import Neighbors, check_search
from searchlab.models.protocol import Embeddings

# Matrix products round differently with their shape; rows this near to the k-th are scored again.
_MARGIN = 1e-5
_BLOCK = 65_536
_GATHER_BELOW = 0.25


class ExactIndex:
    """Nearest rows by scoring all of them.

    A first pass by matrix product finds the candidates, and `cosines` scores these again, so that
    a row's cosine never depends on which other rows were looked at.
    """

    approximate = False

    def __init__(self, vectors: Embeddings) -> None:
        self.vectors = vectors

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def size_bytes(self) -> int:
        """Bytes of the vectors."""
        return int(self.vectors.nbytes)

    def search(
        self, queries: Embeddings, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbors:
        """Find the k best rows of each query; see `VectorIndex.search`."""
        check_search(self.vectors, queries, k, allowed)
        rows = None if allowed is None else np.flatnonzero(allowed)
        answers = empty_neighbors(len(queries), k)
        for answer_rows, answer_scores, query in zip(*answers, queries, strict=True):
            found, scores = nearest_rows(self.vectors, query, k, rows=rows)
            answer_rows[: len(found)] = found
            answer_scores[: len(found)] = scores
        return answers

    def save(self, folder: Path) -> None:
        """Write nothing: the vectors are all there is."""


def empty_neighbors(n_queries: int, k: int) -> Neighbors:
    """Return answers of the right shape with every slot unfilled."""
    rows = np.full((n_queries, k), -1, dtype=np.int64)
    return Neighbors(rows, np.full((n_queries, k), -np.inf, dtype=np.float32))


def cosines(vectors: Embeddings, query: Embeddings) -> NDArray[np.float32]:
    """Score rows one by one, each in the same order of operations.

    Args:
        vectors: (n, dim) unit rows.
        query: (dim,) unit row.

    Returns:
        (n,) float32; the score of a row is the same to the last bit, whatever rows come with it.
    """
    return np.asarray(np.einsum("ij,j->i", vectors, query, optimize=False))


def _rough_scores(
    vectors: Embeddings, query: Embeddings, rows: NDArray[np.int64] | None
) -> NDArray[np.float32]:
    # Gathering a row costs some four times what scoring it in place does.
    gather = rows is not None and len(rows) < _GATHER_BELOW * len(vectors)
    scores = np.empty(len(rows) if rows is not None and gather else len(vectors), dtype=np.float32)
    for start in range(0, len(scores), _BLOCK):
        block = slice(start, start + _BLOCK)
        scores[block] = vectors[rows[block] if rows is not None and gather else block] @ query
    return scores if rows is None or gather else scores[rows]


def nearest_rows(
    vectors: Embeddings, query: Embeddings, k: int, *, rows: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the k best among some rows, or among all, ties by row.

    Args:
        vectors: (n_photos, dim) unit rows.
        query: (dim,) unit row.
        k: Rows wanted.
        rows: Ascending positions to look at; all if left out.

    Returns:
        min(k, rows) positions and cosines, best first.
    """
    count = len(vectors) if rows is None else len(rows)
    candidates = np.arange(count)
    if not k:
        candidates = candidates[:0]
    elif k < count:
        rough = _rough_scores(vectors, query, rows)
        bound = np.partition(rough, count - k)[count - k]
        candidates = np.flatnonzero(rough >= bound - _MARGIN)
    found = candidates if rows is None else rows[candidates]
    scores = np.empty(len(found), dtype=np.float32)
    for start in range(0, len(found), _BLOCK):
        scores[start : start + _BLOCK] = cosines(vectors[found[start : start + _BLOCK]], query)
    best = np.lexsort((found, -scores))[:k]
    return found[best], scores[best]
