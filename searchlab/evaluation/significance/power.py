"""Power: which differences between two systems a set of queries can show.

A test that finds no difference says little if it could hardly have found one. The spread of the
differences query by query yields the least difference that the paired permutation test would find
four times in five, and the number of queries that a given difference needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError
from searchlab.evaluation.significance.paired import contributions, resample_differences

ALPHA = 0.05
POWER = 0.8
_LEAST = 1e-9


@dataclass(frozen=True)
class Power:
    """What a paired test of two systems on a set of queries can show.

    Attributes:
        difference: Observed difference of the (macro) means, first minus second.
        standard_error: Standard error of that difference, robust to clusters of queries.
        concentration: Sum of the squared weights of the clusters in the mean: 1 / n_clusters if
            all weigh the same, more if few of them dominate the mean.
        n_queries: Number of queries.
        n_clusters: Number of independent clusters, such as the photos that queries are about.
        alpha: Chance that the test finds a difference if there is none.
        target: Chance of finding a difference from which it counts as detectable.
        lopsided_limit: Standard errors from which the bootstrap part of `paired_test` finds a
            difference; 0 from 100 clusters on, where only signs are flipped.
    """

    difference: float
    standard_error: float
    concentration: float
    n_queries: int
    n_clusters: int
    alpha: float = ALPHA
    target: float = POWER
    lopsided_limit: float = 0.0

    @property
    def detectable(self) -> float:
        """The least true difference that is found with the target power; infinite if none is."""
        return self._detectable(1.0)

    def of(self, difference: float) -> float:
        """Return the chance, 0 to 1, that the test finds a true difference of this size."""
        if math.isinf(self.detectable):
            return 0.0
        from scipy.stats import t

        freedom = self._freedom(1.0)
        limit = self._detectable(1.0) - float(t.ppf(self.target, freedom)) * self.standard_error
        return float(t.cdf((abs(difference) - limit) / self.standard_error, freedom))

    def queries_for(self, difference: float) -> int:
        """Return how many queries, of the same mixture, find a difference with the target power.

        Raises:
            InputError: The difference is not finite, or so close to zero that no set of queries
                could show it.
        """
        if not math.isfinite(difference) or abs(difference) < _LEAST:
            msg = (
                f"difference must be a number other than 0, of {_LEAST:g} or more, got {difference}"
            )
            raise InputError(msg)
        low, high = 0.0, 1.0  # times as many queries as there are
        while self._detectable(high) > abs(difference):
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            if self._detectable(middle) > abs(difference):
                low = middle
            else:
                high = middle
        return max(1, math.ceil(round(self.n_queries * high, 6)))

    def clusters_for(self, difference: float) -> int:
        """Return how many clusters the queries of `queries_for` must have."""
        share = self.queries_for(difference) / self.n_queries
        return max(1, math.ceil(share * self.n_clusters))

    def explain(self, difference: float | None = None, *, about: str = "clusters") -> str:
        """Say in words what can be shown.

        Args:
            difference: Difference to show; the observed one if left out.
            about: Name of the clusters, in the plural.

        Raises:
            InputError: The given difference is not finite, or too close to zero.
        """
        target = _percent(self.target)
        set_size = f"{self.n_queries:,} queries about {self.n_clusters:,} {about}"
        lines = [
            f"observed difference {self.difference:+.4f}, standard error "
            f"{self.standard_error:.4f}, from {set_size}"
        ]
        if math.isinf(self.detectable):
            which = f"{self.n_clusters:,} {about} are too few, or too few of them carry the mean"
            lines.append(f"no difference can be shown with these queries: {which}")
        else:
            lines.append(
                f"a true difference of {self.detectable:.4f} would be found with a power of "
                f"{target} (test at {_percent(self.alpha)}); smaller ones would often be missed"
            )
        goal = self.difference if difference is None else difference
        if difference is not None or abs(goal) >= _LEAST:
            takes = (
                f"takes about {self.queries_for(goal):,} queries about "
                f"{self.clusters_for(goal):,} {about}, of the same mixture"
            )
            size = f"one of {abs(goal):.4f}"
            lines.append(
                f"to find {size} with a power of {target} {takes}"
                if math.isinf(self.detectable)
                else f"{size} would be found in {_chance(self.of(goal))} of such sets; "
                f"for {target} it {takes}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; `detectable` is None if no difference is detectable."""
        size = self.detectable
        return {**asdict(self), "detectable": None if math.isinf(size) else size}

    def _detectable(self, times: float) -> float:
        """Return the detectable difference with `times` as many queries."""
        # With n clusters the most extreme flip has p = 2 / 2^n, so too few can show nothing.
        if 2.0 ** (1 - times * self.n_clusters) > self.alpha:
            return math.inf
        from scipy.stats import t

        z_test = NormalDist().inv_cdf(1 - self.alpha / 2)
        # The spread was estimated, so that what is needed beyond the limit follows Student's t.
        t_power = float(t.ppf(self.target, self._freedom(times)))
        # Random signs flip the difference itself too, so the spread of the flipped sums grows with
        # what was observed: T^2 > z^2 (SE^2 + T^2 concentration), solved for T.
        rest = 1 - z_test**2 * self.concentration / times
        if rest <= 0:
            return math.inf
        by_flips = z_test / math.sqrt(rest)
        # How lopsided a mean is fades with the number of queries.
        by_resamples = z_test + max(0.0, self.lopsided_limit - z_test) / times
        return self.standard_error / math.sqrt(times) * (max(by_flips, by_resamples) + t_power)

    def _freedom(self, times: float) -> float:
        """Return the degrees of freedom with `times` as many queries: the clusters that count."""
        return max(1.0, times * min(self.n_clusters, 1 / self.concentration) - 1)


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _chance(power: float) -> str:
    if power > 0.99:
        return "over 99 %"
    return "under 1 %" if power < 0.01 else f"{100 * power:.0f} %"


def power_of(
    a: ArrayLike,
    b: ArrayLike,
    *,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    alpha: float = ALPHA,
    target: float = POWER,
) -> Power:
    """Estimate what `paired_test` can show on these queries, from the scores of two systems.

    The sum of a cluster's differences, weighed as in the macro average, is one piece of evidence.
    Its spread around the value that the groups' means predict gives the standard error (Liang and
    Zeger's, with the factor n / (n - 1)); the test's own limit comes from the spread of the sums
    under random signs, which is wider by the difference itself, and with few clusters from the
    studentised bootstrap, where that asks for more.

    Args:
        a: (n_queries,) scores of one system.
        b: (n_queries,) scores of the other, of the same queries.
        groups: (n_queries,) groups of the macro averages.
        clusters: (n_queries,) clusters; each is one piece of evidence.
        alpha: Level of the test, above 0 and below 1.
        target: Required power, above 0 and below 1.

    Raises:
        InputError: Shapes differ, a level is out of range, there are fewer than two clusters, or
            both systems score the same on every query, so that nothing can be estimated.

    References:
        Webber, Moffat and Zobel, Statistical power in retrieval experimentation, CIKM 2008.
        Sakai, Topic set size design, Information Retrieval Journal 19, 2016.
        Liang and Zeger, Longitudinal data analysis using generalized linear models, Biometrika 73,
        1986.
    """
    if not (0 < alpha < 1 and 0 < target < 1):
        msg = f"alpha and target must lie between 0 and 1, got {alpha} and {target}"
        raise InputError(msg)
    shares = contributions(a, b, groups=groups, clusters=clusters)
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    labels = np.zeros(len(differences), dtype=np.intp)
    if groups is not None:
        _, labels = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    expected = (np.bincount(labels, weights=differences) / np.bincount(labels))[labels]
    residuals = contributions(differences, expected, groups=groups, clusters=clusters)
    ones = np.ones_like(differences)
    weights = contributions(ones, 0 * ones, groups=groups, clusters=clusters)
    n_clusters = len(shares)
    largest = np.abs(differences).max()
    if n_clusters < 2 or not largest > 0:
        msg = (
            "power must be estimated from two systems that differ on some of the queries of at "
            f"least two clusters, got {n_clusters} and differences up to {largest:g}"
        )
        raise InputError(msg)
    variance = float(np.square(residuals).sum()) * n_clusters / (n_clusters - 1)
    return Power(
        difference=float(shares.sum()),
        standard_error=max(math.sqrt(variance), 1e-12),
        concentration=float(np.square(weights).sum()),
        n_queries=len(differences),
        n_clusters=n_clusters,
        alpha=alpha,
        target=target,
        lopsided_limit=_lopsided_limit(differences, groups, clusters, alpha),
    )


def _lopsided_limit(
    differences: NDArray[np.float64],
    groups: Sequence[str] | None,
    clusters: Sequence[str] | None,
    alpha: float,
) -> float:
    resampled = resample_differences(differences, 2000, 0, groups=groups, clusters=clusters)
    if resampled is None or resampled.is_constant:
        return 0.0
    return float(resampled.half_width(1 - alpha) / resampled.standard_error)
