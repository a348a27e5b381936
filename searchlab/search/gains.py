"""Gains: what photos gain over their cosine by what is written about them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from searchlab.config.calibration import Curve
from searchlab.config.word_weights import WordWeights
from searchlab.search.words.matches import WordMatches

SCORED_ONE_BY_ONE = 200
"""Photos of the largest gains that are scored without looking for the nearest among them."""

_STEPS = 32  # of a log-odds, in which gains are counted, so that few of them differ
_SPREAD = 2.0  # no two cosines are further apart


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
        steps = matches.precision * np.float32(weights.precision * _STEPS)
        steps += np.float32(weights.coverage * _STEPS)
        steps *= matches.coverage**weights.sharpness
        rounded = np.rint(steps).astype(np.int64)
        values = _values(weights.coverage + weights.precision, curve.slope)
        rounded[matches.whole] += len(values) // 2
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

    def of_all(self, n_photos: int) -> NDArray[np.float64]:
        """Return what every photo gains, 0 where nothing; (n_photos,) float64."""
        gained = np.zeros(n_photos)
        gained[self.rows] = self.values[self.steps]
        return gained

    def groups(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield all rows, ascending, and their gains: first the largest, few; then ever more."""
        if len(self.rows) <= SCORED_ONE_BY_ONE:
            if len(self.rows):
                yield self.rows, self.values[self.steps]
            return
        counts = np.bincount(self.steps, minlength=len(self.values))
        above = np.cumsum(counts[::-1])[::-1]  # rows of this step or a larger one
        size, end = SCORED_ONE_BY_ONE, len(counts)
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


@lru_cache(maxsize=64)
def _values(most: float, slope: float) -> NDArray[np.float64]:
    """Return the gain of each step; from the middle on, those of what is just the query."""
    last = math.ceil(most * _STEPS) + 1
    values = np.arange(2 * last + 1) / (_STEPS * slope)
    values[last:] += _SPREAD
    values.setflags(write=False)
    return values


NO_GAINS = Gains(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(1))
"""Of a ranking by vectors alone."""
