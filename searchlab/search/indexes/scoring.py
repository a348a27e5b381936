"""Scoring rows one by one, and ordering them: the last step of every search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchlab.models.protocol import Embeddings

MARGIN = 1e-5
"""Rows this near to the k-th are scored again: products round differently with their shape."""

# Rows gathered at a time: few enough to be scored while they lie in the cache.
_GATHERED = 256
# Scores up to which a plain sort is faster.
_FEW = 500


def cosines(vectors: Embeddings, query: Embeddings) -> NDArray[np.float32]:
    """Score rows one by one, each in the same order of operations.

    Args:
        vectors: (n, dim) unit rows.
        query: (dim,) unit row.

    Returns:
        (n,) float32; the score of a row is the same to the last bit, whatever rows come with it.
    """
    # Contiguous, as the order of operations depends on the stride.
    query = np.ascontiguousarray(query)
    return np.asarray(np.einsum("ij,j->i", vectors, query, optimize=False))


def cosines_of(
    vectors: Embeddings, query: Embeddings, rows: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Score some rows out of all, as `cosines` does.

    Args:
        vectors: (n_photos, dim) unit rows.
        query: (dim,) unit row.
        rows: (n,) positions, in any order; ascending ones are read fastest.

    Returns:
        (n,) float32 in the order of `rows`.
    """
    if len(rows) <= _GATHERED:
        return cosines(vectors[rows], query)
    scores = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _GATHERED):
        block = slice(start, start + _GATHERED)
        scores[block] = cosines(vectors[rows[block]], query)
    return scores


def best_first(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Order positions by score, the highest first, ties by position.

    The same as a stable sort of the negated scores, but several times faster for many of them:
    score and position are sorted as one integer.

    Args:
        scores: (n,) float32 without NaN, n below 2 ** 32.

    Returns:
        (n,) int64 positions.
    """
    if len(scores) <= _FEW:
        return np.argsort(-scores, kind="stable")
    # Adding 0 makes a minus zero plain, so that the two are a tie.
    bits = (scores + np.float32(0)).view(np.int32)
    ascending = np.where(bits < 0, bits ^ np.int32(0x7FFF_FFFF), bits)
    keys = (~ascending).astype(np.int64) << 32 | np.arange(len(scores))
    keys.sort()
    return np.asarray(keys & 0xFFFF_FFFF)
