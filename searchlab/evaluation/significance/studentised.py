"""The symmetric studentised bootstrap: how far a mean of few clusters can be trusted.

With few clusters a percentile interval is too narrow: it takes the spread of the sample for that of
the population, and scores with many zeros are skewed. Here each resample is measured by its own
standard error, robust to clusters, so that the two errors grow together. Of the intervals that were
tried on scores of real queries (percentile, BCa, Student's t, equal-tailed and symmetric
studentised ones), the symmetric ones cover most evenly; `benchmarks/small_samples` measures them.

References:
    Hall, On symmetric bootstrap confidence intervals, JRSS B 50, 1988.
    Liang and Zeger, Longitudinal data analysis using generalized linear models, Biometrika 73,
    1986.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEW = 100
"""Means of fewer clusters than this are studentised."""

# A resample of a few nearly constant clusters may have almost no spread of its own; its deviation
# is then measured by this share of the sample's standard error.
_LEAST_SHARE = 0.25
_NOTHING = 1e-12


class Studentised:
    """A macro average over groups, resampled, and the standard error of each resample.

    The mean of a group is the sum of its scores over its number of queries; the average counts
    every group the same, and one with a single group is a plain mean.

    Args:
        scores: (n_clusters, n_groups) sums of the scores of a cluster's queries.
        counts: (n_clusters, n_groups) numbers of these queries.
        times: (samples, n_clusters) how often a resample holds each cluster.
    """

    def __init__(
        self,
        scores: NDArray[np.float64],
        counts: NDArray[np.float64],
        times: NDArray[np.float64],
    ) -> None:
        n_groups = scores.shape[1]
        totals = np.asarray(counts.sum(axis=0), dtype=np.float64)
        means = scores.sum(axis=0) / totals
        self.mean = float(means.mean())
        residuals = scores - counts * means
        spread = float(np.sqrt(np.square(residuals @ (1 / totals)).sum()))
        self.standard_error: float = spread / n_groups
        drawn = times @ counts  # (samples, n_groups)
        # A group that is missing from a resample keeps its mean.
        weights = np.where(drawn > 0, 1 / np.maximum(drawn, 1), 0.0)
        shifts = (times @ residuals) * weights
        errors = weights @ residuals.T - (weights * shifts) @ counts.T  # (samples, n_clusters)
        own = np.sqrt(np.einsum("sc,sc,sc->s", times, errors, errors)) / n_groups
        least = max(_LEAST_SHARE * self.standard_error, _NOTHING)
        self._deviations = np.abs(shifts.mean(axis=1)) / np.maximum(own, least)

    @property
    def is_constant(self) -> bool:
        """Whether the clusters do not differ, so that nothing can be said of their spread."""
        return self.standard_error <= _NOTHING * max(1.0, abs(self.mean))

    def half_width(self, confidence: float) -> float:
        """Return half the width of the interval around the mean; 0 if the clusters do not differ.

        Args:
            confidence: Share of intervals that cover the true mean, above 0 and below 1.
        """
        if self.is_constant:
            return 0.0
        return float(np.quantile(self._deviations, confidence)) * self.standard_error

    def p_value(self) -> float:
        """Return the chance of a mean this far from 0 if the true one is 0; above 0, at most 1."""
        if self.is_constant:
            return 1 / (len(self._deviations) + 1) if self.mean else 1.0
        extreme = np.count_nonzero(self._deviations >= abs(self.mean) / self.standard_error)
        return (int(extreme) + 1) / (len(self._deviations) + 1)
