"""Several systems: the best of them against the others, and groups that cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.evaluation.significance.paired import permutation_test
from searchlab.evaluation.significance.scores import check_scores, codes

_FLIPS_OF_A_PAIR = 100  # the least adjusted p-value is 1 / 100, however many systems there are


def holm(p_values: Sequence[float], *, n_tests: int | None = None) -> list[float]:
    """Adjust p-values for the number of tests, in the order given.

    Args:
        p_values: Of the tests that were looked at.
        n_tests: How many there could have been, where these were picked by looking at the data; the
            others count as though they had shown nothing.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]

    References:
        Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6, 1979.
    """
    order = sorted(range(len(p_values)), key=lambda position: p_values[position])
    adjusted = [0.0] * len(p_values)
    n_tests = len(p_values) if n_tests is None else n_tests
    least = 0.0
    for step, position in enumerate(order):
        least = max(least, min(1.0, (n_tests - step) * p_values[position]))
        adjusted[position] = least
    return adjusted


def leader_tests(
    leader: ArrayLike,
    others: Sequence[ArrayLike],
    *,
    samples: int = 10_000,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> list[float]:
    """Test the best of several systems against the others; p-values with Holm's correction.

    The leader was found by looking at the scores: of equal systems, the luckiest leads. So any pair
    could have been tested, and the correction is over all pairs, not only those that were.

    Args:
        leader: (n_queries,) scores of the system with the best mean.
        others: (n_queries,) scores of each other system.
        samples: Flips of a test; more where so many systems need a smaller p-value to differ.
        seed: Of the tests.
        groups: Compare macro averages over these.
        clusters: Flipped together.
    """
    n_pairs = math.comb(len(others) + 1, 2)
    samples = max(samples, _FLIPS_OF_A_PAIR * n_pairs)
    p_values = [
        permutation_test(
            leader, other, samples=samples, seed=seed, groups=groups, clusters=clusters
        )
        for other in others
    ]
    return holm(p_values, n_tests=n_pairs)


def tie_groups(
    values: Mapping[str, ArrayLike],
    *,
    alpha: float = 0.05,
    samples: int = 10_000,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> list[list[str]]:
    """Sort systems into groups that the data cannot tell from their leader.

    The best remaining system leads; it is tested against all behind it by `leader_tests`, and those
    that do not differ from it join it. A group says "not shown to be worse than its leader", not
    "equal": members may differ from one another.

    Args:
        values: System -> (n_queries,) scores of the same queries in the same order.
        alpha: Chance of calling any of a leader's equals worse than it, at most.
        samples: Flips of a test, as for `leader_tests`.
        seed: Of the tests.
        groups: Macro average over these.
        clusters: Flipped together.

    Returns:
        Groups from best to worst, each from best to worst; of equal means by name.
    """
    scores = {name: check_scores(name, column) for name, column in values.items()}
    means = {name: _macro(column, groups) for name, column in scores.items()}
    remaining = sorted(scores, key=lambda name: (-means[name], name))
    result = []
    while remaining:
        leader, *others = remaining
        p_values = leader_tests(
            scores[leader],
            [scores[other] for other in others],
            samples=samples,
            seed=seed,
            groups=groups,
            clusters=clusters,
        )
        tied = {name for name, p in zip(others, p_values, strict=True) if p >= alpha}
        result.append([leader, *(name for name in others if name in tied)])
        remaining = [name for name in others if name not in tied]
    return result


def _macro(scores: NDArray[np.float64], groups: Sequence[str] | None) -> float:
    _, group_of = codes("groups", groups, len(scores), default="all")
    means = np.bincount(group_of, weights=scores) / np.bincount(group_of)
    # Rounded, so that equal systems do not swap places by the order of a sum.
    return round(float(means.mean()), 12)
