"""Several systems: the best of them against the others, and groups that cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.evaluation.significance.paired import paired_test
from searchlab.evaluation.significance.scores import check_scores, codes

_FLIPS_OF_A_PAIR = 100  # the least adjusted p-value is 1 / 100, however many systems there are


def holm(p_values: Sequence[float], *, n_tests: int | None = None) -> list[float]:
    """Adjust p-values for the number of tests, in the order given.

    Args:
        p_values: P-values of the tests that were done.
        n_tests: Number of tests that were possible, if these were selected by looking at the data;
            the others count as tests without a significant result.

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
    """Test the best of several systems against the others.

    The leader was selected by its scores: of equal systems, the luckiest one leads. So any pair
    could have been tested, and the correction counts all pairs, not only those that were.

    Args:
        leader: (n_queries,) scores of the system with the best mean.
        others: (n_queries,) scores of each other system.
        samples: Sign flips of a test; many systems get more, as they need smaller p-values.
        seed: Seed of the tests.
        groups: (n_queries,) groups of the macro average.
        clusters: (n_queries,) clusters whose signs are flipped as one.

    Returns:
        P-values with Holm's correction, in the order of `others`.
    """
    n_pairs = math.comb(len(others) + 1, 2)
    samples = max(samples, _FLIPS_OF_A_PAIR * n_pairs)
    p_values = [
        paired_test(leader, other, samples=samples, seed=seed, groups=groups, clusters=clusters)
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
    """Sort systems into groups whose members do not differ significantly from their leader.

    The best remaining system leads a group; `leader_tests` compares it with all worse ones, and
    those that do not differ significantly join its group. They are "not shown to be worse than the
    leader", not "equal": members may differ from one another.

    Args:
        values: System -> (n_queries,) scores of the same queries in the same order.
        alpha: Greatest chance of calling any system worse that is equal to a leader.
        samples: Sign flips of a test, as for `leader_tests`.
        seed: Seed of the tests.
        groups: (n_queries,) groups of the macro average.
        clusters: (n_queries,) clusters whose signs are flipped as one.

    Returns:
        Groups from best to worst, each from best to worst; equal means in the order of names.
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
    # Rounded, so that equal systems do not swap places because of rounding errors.
    return round(float(means.mean()), 12)
