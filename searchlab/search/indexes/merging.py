"""Merging what a photo shows and what is written about it into one ranking.

A photo's score is the cosine of its vector and the query, and a gain where words of the query are
written about it. Photos without a gain are ranked by the vector index alone; those with one are few
or can be bounded, so that the best of both are found without scoring every photo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.scoring import MARGIN, cosines_of
from searchlab.search.words.matches import SCORED_ONE_BY_ONE, Gains

if TYPE_CHECKING:
    from searchlab.search.indexes.protocol import VectorIndex  # circle: it merges by these

_SCANNED = 16_384  # photos up to which all are scored at once: that costs less than merging


class Scored(NamedTuple):
    """Photos by score, best first.

    Attributes:
        rows: (n,) int64 positions.
        scores: (n,) float32 cosines, or float64 with what words add to them.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.floating]


def nearest(
    index: VectorIndex,
    vector: Embeddings,
    n_wanted: int,
    gains: Gains,
    *,
    allowed: Bitmap | None = None,
    at_least: float = -np.inf,
) -> Scored:
    """Find the best photos by cosine and gain, exactly; ties by row.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        n_wanted: Photos at most.
        gains: Of photos that are allowed.
        allowed: Rows that may be found; all if left out.
        at_least: Least score of a result.
    """
    if n_wanted and len(gains.rows) and len(index) <= _SCANNED:
        return _scan(index, vector, n_wanted, gains, allowed, at_least)
    by_vector = Scored(*index.nearest(vector, n_wanted, allowed=allowed, at_least=at_least))
    if not n_wanted:
        return by_vector
    return add_written(index, vector, by_vector, n_wanted, gains, at_least=at_least)


def _scan(
    index: VectorIndex,
    vector: Embeddings,
    n_wanted: int,
    gains: Gains,
    allowed: Bitmap | None,
    at_least: float,
) -> Scored:
    """Find the best of few photos in one pass; a product finds who may be among them."""
    vectors, gained = index.vectors, gains.of_all(len(index))
    rows = np.arange(len(index)) if allowed is None else allowed.rows()
    if 2 * n_wanted < len(rows):
        rough = ((vectors @ vector) + gained)[rows]
        bound = np.partition(rough, len(rows) - n_wanted)[len(rows) - n_wanted]
        rows = rows[rough >= max(float(bound), at_least) - MARGIN]
    best = _best(Scored(rows, cosines_of(vectors, vector, rows)), gained[rows], n_wanted)
    if at_least == -np.inf:
        return best
    reaches = best.scores >= at_least
    return Scored(best.rows[reaches], best.scores[reaches])


def add_written(
    index: VectorIndex,
    vector: Embeddings,
    by_vector: Scored,
    n_wanted: int,
    gains: Gains,
    *,
    at_least: float = -np.inf,
) -> Scored:
    """Merge the nearest photos with those that have a gain.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        by_vector: The best by cosine alone: `n_wanted`, or all that there are.
        n_wanted: Photos at most, 1 or more.
        gains: Of photos that are allowed.
        at_least: Least score of a result.

    Returns:
        The best by cosine and gain, ties by row, among `by_vector` and all photos with a gain.
    """
    if not len(gains.rows):
        return by_vector
    best = _best(by_vector, gains.of(by_vector.rows), n_wanted)
    for rows, values in gains.groups():
        # Who is to be among the best must beat the last of as many as are wanted.
        least = float(best.scores[-1]) if len(best.rows) == n_wanted else at_least
        if len(rows) <= SCORED_ONE_BY_ONE:
            written = Scored(rows, cosines_of(index.vectors, vector, rows))
        else:
            written = _best_of_group(index, vector, n_wanted, rows, values, least)
        best = _join(best, written, gains, n_wanted)
    reaches = best.scores >= at_least
    return Scored(best.rows[reaches], best.scores[reaches])


def nearly_nearest(
    index: VectorIndex,
    vector: Embeddings,
    n_wanted: int,
    gains: Gains,
    *,
    allowed: Bitmap | None = None,
    effort: float | None = None,
) -> Scored:
    """Find the best photos by cosine and gain, but for what a search may miss; ties by row.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        n_wanted: Photos at most, 1 or more.
        gains: Of photos that are allowed.
        allowed: Rows that may be found; all if left out.
        effort: Of the search; the index's own if None.
    """
    if not len(gains.rows):
        near = index.search(vector[np.newaxis], n_wanted, allowed=allowed, effort=effort)
        filled = near.rows[0] >= 0
        return Scored(near.rows[0, filled], near.scores[0, filled])
    rows = index.candidates(vector, n_wanted, gains, allowed=allowed, effort=effort)
    similar = Scored(rows, cosines_of(index.vectors, vector, rows))
    return _best(similar, gains.of(rows), n_wanted)


def _join(best: Scored, written: Scored, gains: Gains, n_wanted: int) -> Scored:
    new = ~np.isin(written.rows, best.rows)
    more = written.scores[new].astype(np.float64) + gains.of(written.rows[new])
    rows = np.concatenate([best.rows, written.rows[new]])
    return _best(Scored(rows, np.concatenate([best.scores, more])), 0.0, n_wanted)


def _best_of_group(
    index: VectorIndex,
    vector: Embeddings,
    n_wanted: int,
    rows: NDArray[np.int64],
    values: NDArray[np.float64],
    at_least: float,
) -> Scored:
    """Return all photos of a group that may be among its best by cosine and gain."""
    some = Bitmap.of_rows(rows, len(index.vectors))
    most, spread = float(values.max()), float(np.ptp(values))
    least = at_least - most
    nearest_few = index.nearest(vector, n_wanted, allowed=some, at_least=least)
    if len(nearest_few.rows) < n_wanted or not spread:
        return Scored(*nearest_few)
    least = max(least, float(nearest_few.scores[-1]) - spread)
    return Scored(*index.nearest(vector, len(rows), allowed=some, at_least=least))


def _best(photos: Scored, gained: NDArray[np.float64] | float, n_wanted: int) -> Scored:
    scores = photos.scores.astype(np.float64) + gained
    order = np.lexsort((photos.rows, -scores))[:n_wanted]
    return Scored(photos.rows[order], scores[order])
