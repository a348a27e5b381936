"""Ranking by content where scoring all photos is not enough or too much.

An approximate head has fixed depths, whatever is asked for, so that the order of the first photos
does not depend on how far a reader pages.
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
    wanted: int,
    *,
    plan: QueryPlan,
    config: Config,
    allowed: Bitmap | None = None,
) -> Nearest:
    """Rank photos by content.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        wanted: Photos, at most as many as are allowed.
        plan: How.
        config: With the `depth` of the head.
        allowed: Rows that may be found; all if left out.

    Returns:
        `wanted` rows and their cosines. A photo that the search missed stands behind the head, with
        no higher a cosine than the last one before it.
    """
    head = Nearest(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
    for depth in _depths(index, config):
        head = _append_new(head, _search(index, vector, depth, plan, allowed))
        if len(head.rows) >= wanted:
            break
    else:
        head = _append_new(head, index.nearest(vector, wanted, allowed=allowed))
    # What a search missed would otherwise rise above what stands before it.
    scores = np.minimum.accumulate(head.scores[:wanted])
    return Nearest(head.rows[:wanted], scores)


def rank_above(
    index: VectorIndex,
    vector: Embeddings,
    wanted: int,
    *,
    curve: Curve,
    threshold: float,
    allowed: Bitmap | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find the best photos whose score, rounded, reaches a threshold; exactly.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        wanted: Photos at most.
        curve: From cosines to scores.
        threshold: 0 to 1.
        allowed: Rows that may be found; all if left out.

    Returns:
        Rows, best first, and their scores.
    """
    # Twice the rounding of a score below the threshold, and then what float32 rounds.
    least = curve.cosine(threshold - 10.0**-DIGITS)
    least -= 1e-6 * max(1.0, abs(least))
    nearest = index.nearest(vector, wanted, allowed=allowed, at_least=least)
    scores = curve.relevance(nearest.scores)
    near = scores >= threshold
    return nearest.rows[near], scores[near]


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
