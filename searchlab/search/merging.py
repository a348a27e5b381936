"""Merging what a photo shows and what is written about it into one ranking.

A photo's score is the cosine of its vector and the query, and a gain where words of the query are
written about it. Photos without a gain are ranked by the vector index alone; those with one are few
or can be bounded, so that the best of both are found without scoring every photo.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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

_SCORED_ONE_BY_ONE = 200  # photos of the largest gains
_MANY = 0.02  # a good part of a library
_STEPS = 32  # of a log-odds, in which gains are counted, so that few of them differ
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
        steps: (n,) int64 above 0, the gain of each as a place in `values`.
        values: (n_values,) float64, ascending from 0, in units of the cosine.
    """

    rows: NDArray[np.int64]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of_words(cls, matches: WordMatches, weights: WordWeights, curve: Curve) -> Gains:
        """Turn what words found into gains under one curve from cosines to scores.

        Log-odds are rounded to thirty-seconds.
        """
        most = weights.coverage + weights.precision
        steps = matches.precision * np.float32(weights.precision * _STEPS)
        steps += np.float32(weights.coverage * _STEPS)
        steps *= matches.coverage**weights.sharpness
        rounded = np.rint(steps).astype(np.int64)
        last = math.ceil(most * _STEPS) + 1
        rounded[matches.whole] += last
        values = np.arange(2 * last + 1) / (_STEPS * curve.slope)
        values[last:] += _SPREAD
        gained = rounded > 0
        if gained.all():
            return cls(matches.rows, rounded, values)
        return cls(matches.rows[gained], rounded[gained], values)

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each of some rows gains, 0 where nothing; (n_rows,) float64."""
        if not len(self.rows):
            return np.zeros(len(rows))
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[places] == rows, self.values[self.steps[places]], 0.0)

    def groups(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield all rows, ascending, and their gains: first the largest, few; then ever more."""
        counts = np.bincount(self.steps, minlength=len(self.values))
        above = np.cumsum(counts[::-1])[::-1]  # rows of this step or a larger one
        size, end = _SCORED_ONE_BY_ONE, len(counts)
        while end > 1:
            # As many steps as make a group of this size, at least one.
            taken = 0 if end == len(counts) else int(above[end])
            start = end - 1
            while start > 1 and above[start - 1] - taken <= size:
                start -= 1
            if above[start] > taken:
                some = (self.steps >= start) & (self.steps < end)
                yield self.rows[some], self.values[self.steps[some]]
            end, size = start, 4 * size


NO_GAINS = Gains(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(1))
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
    for rows, values in gains.groups():
        # Who is to be among the best must beat the last of as many as are wanted.
        least = float(best.scores[-1]) if len(best.rows) == n_wanted else at_least
        if len(rows) <= _SCORED_ONE_BY_ONE:
            written = Scored(rows, cosines_of(index.vectors, vector, rows))
        else:
            written = _best_of_group(index, vector, n_wanted, rows, values, least)
        best = _join(best, written, gains, n_wanted)
    reaches = best.scores >= at_least
    return Scored(best.rows[reaches], best.scores[reaches])


def add_written_roughly(
    index: VectorIndex,
    vector: Embeddings,
    by_vector: Scored,
    n_wanted: int,
    gains: Gains,
    *,
    effort: float | None,
) -> Scored:
    """Merge the nearest photos with the best of those that have a gain, at the cost of a search.

    The few largest gains are all looked at. Where these are fewer than wanted, the nearest of the
    next group are searched for; if a good part of the library is in it, `by_vector` holds enough of
    them already. What has a smaller gain counts where it is in `by_vector`.

    Args:
        index: The vectors.
        vector: (dim,) unit row of the query.
        by_vector: The best that a search by cosine alone found.
        n_wanted: Photos at most, 1 or more.
        gains: Of photos that are allowed.
        effort: Of the search; the index's own if None.
    """
    if not len(gains.rows):
        return by_vector
    best = _best(by_vector, gains.of(by_vector.rows), n_wanted)
    n_seen = 0
    for rows, _ in gains.groups():
        n_seen += len(rows)
        if len(rows) <= _SCORED_ONE_BY_ONE:
            written = Scored(rows, cosines_of(index.vectors, vector, rows))
        elif len(rows) > _MANY * len(index.vectors):
            break
        else:
            some = Bitmap.of_rows(rows, len(index.vectors))
            near = index.search(vector[np.newaxis], n_wanted, allowed=some, effort=effort)
            filled = min(n_wanted, len(rows))
            written = Scored(near.rows[0, :filled], near.scores[0, :filled])
        best = _join(best, written, gains, n_wanted)
        if n_seen >= n_wanted:
            break
    return best


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
