"""Ranking by content where scoring all photos is not enough or too much.

The first part of an approximate ranking is searched to fixed depths, for any page, so that the
order of the first photos does not depend on how far a reader pages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.config.calibration import DIGITS, Curve
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.protocol import Nearest, VectorIndex
from searchlab.search.queries import QueryPlan

# Neighbours that a first page of the usual size needs, and a few more.
_FIRST = 24


def rank_approximately(
    index: VectorIndex,
    vector: Embeddings,
    n_wanted: int,
    *,
    plan: QueryPlan,
    config: Config,
    allowed: Bitmap | None = None,
) -> Nearest:
    """Rank photos by content.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        n_wanted: Photos, at most as many as are allowed.
        plan: Effort of the search, and how many photos are allowed.
        config: Gives `depth`, how many photos the index ranks.
        allowed: Rows that may be found; all if left out.

    Returns:
        `n_wanted` rows and their cosines, which never rise: photos that the search missed come
        after those that it found, with at most the cosine of the row before.
    """
    head = Nearest(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
    for depth in _depths(index, config):
        head = _append_new(head, _search(index, vector, depth, plan, allowed))
        if len(head.rows) >= n_wanted:
            break
    else:
        head = _append_new(head, index.nearest(vector, n_wanted, allowed=allowed))
    # A photo that the search missed may be nearer than those before it: scores must not rise.
    scores = np.minimum.accumulate(head.scores[:n_wanted])
    return Nearest(head.rows[:n_wanted], scores)


def rank_above(
    index: VectorIndex,
    vector: Embeddings,
    n_wanted: int,
    *,
    curve: Curve,
    threshold: float,
    allowed: Bitmap | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find the best photos whose score, rounded, reaches a threshold; exactly.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        n_wanted: Photos at most.
        curve: From cosines to scores.
        threshold: 0 to 1.
        allowed: Rows that may be found; all if left out.

    Returns:
        Rows, best first, and their scores.
    """
    # Scores are rounded: take the cosine of a slightly lower score, less what float32 rounds.
    least = curve.cosine(threshold - 10.0**-DIGITS)
    least -= 1e-6 * max(1.0, abs(least))
    nearest = index.nearest(vector, n_wanted, allowed=allowed, at_least=least)
    scores = curve.relevance(nearest.scores)
    reaches = scores >= threshold
    return nearest.rows[reaches], scores[reaches]


def _depths(index: VectorIndex, config: Config) -> tuple[int, ...]:
    in_two = index.costs_by_depth and config.depth > _FIRST
    return (_FIRST, config.depth) if in_two else (config.depth,)


def _search(
    index: VectorIndex, vector: Embeddings, k: int, plan: QueryPlan, allowed: Bitmap | None
) -> Nearest:
    neighbors = index.search(vector[np.newaxis], k, allowed=allowed, effort=plan.effort)
    filled = min(k, plan.n_allowed)
    return Nearest(neighbors.rows[0, :filled], neighbors.scores[0, :filled])


def _append_new(head: Nearest, more: Nearest) -> Nearest:
    if not len(head.rows):
        return more
    new = ~np.isin(more.rows, head.rows)
    rows = np.concatenate([head.rows, more.rows[new]])
    return Nearest(rows, np.concatenate([head.scores, more.scores[new]]))
