"""Merging what a photo shows and what is written about it into one ranking.

A photo's score is the cosine of its vector and the query, and a gain where words of the query are
written about it. Photos without a gain are ranked by the vector index alone; those with one are few
or can be bounded, so that the best of both are found without scoring every photo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import Curve
from searchlab.config.word_weights import WordWeights
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.exact import cosines_of
from searchlab.search.indexes.protocol import VectorIndex
from searchlab.search.words.index import WordMatches

_SCORED_ONE_BY_ONE = 1_000  # photos of the largest gains
_SPREAD = 2.0  # no two cosines are further apart


class Scored(NamedTuple):
    """Photos by score, best first.

    Attributes:
        rows: (n,) int64 positions.
        scores: (n,) float32 cosines, or float64 with what words add to them.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Gains:
    """What some photos gain over their cosine.

    Attributes:
        rows: (n,) int64, ascending; photos that may be found.
        values: (n,) float64 above 0, in units of the cosine.
    """

    rows: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of_words(cls, matches: WordMatches, weights: WordWeights, curve: Curve) -> Gains:
        """Turn what words found into gains under one curve from cosines to scores."""
        coverage, precision = (
            share.astype(np.float64) for share in (matches.coverage, matches.precision)
        )
        logits = coverage * (weights.coverage + weights.precision * precision)
        most = (weights.coverage + weights.precision) / curve.slope
        values = logits / curve.slope + np.where(matches.whole, _SPREAD + most, 0.0)
        gained = values > 0
        return cls(matches.rows[gained], values[gained])

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each of some rows gains, 0 where nothing; (n_rows,) float64."""
        if not len(self.rows):
            return np.zeros(len(rows))
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[places] == rows, self.values[places], 0.0)


NO_GAINS = Gains(np.zeros(0, dtype=np.int64), np.zeros(0))
"""Of a ranking by vectors alone."""


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
    by_vector = Scored(*index.nearest(vector, n_wanted, allowed=allowed, at_least=at_least))
    if not n_wanted:
        return by_vector
    return add_written(index, vector, by_vector, n_wanted, gains, at_least=at_least)


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
    descending = np.argsort(-gains.values, kind="stable")
    start, size = 0, _SCORED_ONE_BY_ONE
    while start < len(descending):
        group = np.sort(descending[start : start + size])
        rows, values = gains.rows[group], gains.values[group]
        # Who is to be among the best must beat the last of as many as are wanted.
        least = float(best.scores[-1]) if len(best.rows) == n_wanted else at_least
        if size == _SCORED_ONE_BY_ONE:
            written = Scored(rows, cosines_of(index.vectors, vector, rows))
        else:
            written = _best_of_group(index, vector, n_wanted, rows, values, least)
        new = ~np.isin(written.rows, best.rows)
        rows = np.concatenate([best.rows, written.rows[new]])
        more = written.scores[new].astype(np.float64) + gains.of(written.rows[new])
        best = _best(Scored(rows, np.concatenate([best.scores, more])), 0.0, n_wanted)
        start, size = start + size, 4 * size
    reaches = best.scores >= at_least
    return Scored(best.rows[reaches], best.scores[reaches])


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
