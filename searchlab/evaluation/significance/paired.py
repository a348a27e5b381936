"""The paired permutation test of two systems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError
from searchlab.evaluation.significance.scores import check_scores, chunks, codes


def permutation_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    samples: int = 10_000,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> float:
    """Test whether two systems differ in the mean: paired, two-sided, by sign flips.

    Under the null hypothesis either system could have produced either score, so the sign of each
    query's (or cluster's) difference is a coin. All flips are enumerated where there are no more
    than `samples` of them; otherwise they are drawn, and the observed one is counted in.

    Args:
        a: (n_queries,) scores of one system.
        b: (n_queries,) scores of the other, of the same queries.
        samples: Flips drawn.
        seed: Of the drawing.
        groups: Compare macro averages over these.
        clusters: Flipped together.

    Returns:
        The p-value, above 0 and at most 1.

    Raises:
        InputError: Different shapes, no values, or one that is not finite.

    References:
        Smucker, Allan and Carterette, A comparison of statistical significance tests for
        information retrieval evaluation, CIKM 2007.
        Phipson and Smyth, Permutation p-values should never be zero, SAGMB 9, 2010.
    """
    pulls = contributions(a, b, groups=groups, clusters=clusters)
    slack = 1e-12 * max(1.0, float(np.abs(pulls).max()))
    pulls = pulls[np.abs(pulls) > slack]
    observed = abs(float(pulls.sum()))
    if 2 ** min(len(pulls), 60) <= samples:
        flips = np.arange(2 ** len(pulls))[:, None] >> np.arange(len(pulls)) & 1
        return float(np.mean(np.abs((1 - 2.0 * flips) @ pulls) >= observed - slack))
    extreme = sum(
        int(np.count_nonzero(np.abs(signs @ pulls) >= observed - slack))
        for signs in _signs(len(pulls), samples, seed)
    )
    return (extreme + 1) / (samples + 1)


def contributions(
    a: ArrayLike,
    b: ArrayLike,
    *,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Return what each cluster adds to the difference of two means.

    Args:
        a: (n_queries,) scores of one system.
        b: (n_queries,) scores of the other, of the same queries.
        groups: The means are macro averages over these.
        clusters: Added up together; every query is its own if left out.

    Returns:
        (n_clusters,) shares, by sorted name; their sum is the difference.

    Raises:
        InputError: Different shapes, no values, or one that is not finite.
    """
    first, second = check_scores("a", a), check_scores("b", b)
    if len(first) != len(second):
        msg = f"a and b must hold the same queries, got {len(first)} and {len(second)} scores"
        raise InputError(msg)
    names, group_of = codes("groups", groups, len(first), default="all")
    _, unit_of = codes("clusters", clusters, len(first))
    shares = 1 / (len(names) * np.bincount(group_of))
    pulls = np.bincount(unit_of, weights=(first - second) * shares[group_of])
    return np.asarray(pulls, dtype=np.float64)


def _signs(length: int, samples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    for start, stop in chunks(samples, length):
        n_coins = (stop - start) * length
        bits = np.frombuffer(rng.bytes((n_coins + 7) // 8), dtype=np.uint8)
        coins = np.unpackbits(bits, count=n_coins).reshape(stop - start, length)
        yield 1.0 - 2.0 * coins.astype(np.float64)
