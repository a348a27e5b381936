"""Paired tests of two systems: by sign flips, and by sign flips and the bootstrap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError
from searchlab.evaluation.significance.scores import check_samples, check_scores, chunks, codes
from searchlab.evaluation.significance.studentised import FEW, Studentised


def paired_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    samples: int = 10_000,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> float:
    """Test whether two systems differ in the mean, also if their differences are lopsided.

    Sign flips take it that a gain is as likely as a loss of the same size. Where one system gains
    much on few queries and loses a little on many, they call equal means different too often if
    there are few clusters. So with fewer than 100 the p-value is the larger one of those of
    `permutation_test` and of the studentised bootstrap, which takes nothing of the kind. No test
    can know of gains that none of a few queries shows.

    Args:
        a: (n_queries,) scores of one system.
        b: (n_queries,) scores of the other, of the same queries.
        samples: Number of combinations of signs, and of resamples.
        seed: Seed of the drawing.
        groups: (n_queries,) groups of the macro average.
        clusters: (n_queries,) clusters whose signs are flipped as one, and that are drawn as one.

    Returns:
        The p-value, above 0 and at most 1.

    Raises:
        InputError: Shapes differ, there are no values, or one is not finite.
    """
    p_value = permutation_test(a, b, samples=samples, seed=seed, groups=groups, clusters=clusters)
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    resampled = resample_differences(differences, samples, seed, groups=groups, clusters=clusters)
    return p_value if resampled is None else max(p_value, resampled.p_value())


def resample_differences(
    differences: NDArray[np.float64],
    samples: int,
    seed: int,
    *,
    groups: Sequence[str] | None,
    clusters: Sequence[str] | None,
) -> Studentised | None:
    """Resample the differences of two systems; None if there are 100 clusters or more."""
    scores, counts = sums_of(differences, groups=groups, clusters=clusters)
    n = len(scores)
    if n >= FEW:
        return None
    return Studentised(scores, counts, _times_drawn(n, samples, seed))


@lru_cache(maxsize=1)  # a leader is tested against many others by the same draws
def _times_drawn(n: int, samples: int, seed: int) -> NDArray[np.float64]:
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=samples)
    times = drawn.astype(np.float64)
    times.flags.writeable = False
    return times


def sums_of(
    values: NDArray[np.float64],
    *,
    groups: Sequence[str] | None,
    clusters: Sequence[str] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (n_clusters, n_groups) sums of values, and the number of values in each."""
    names, group_of = codes("groups", groups, len(values), default="all")
    _, unit_of = codes("clusters", clusters, len(values))
    shape = int(unit_of.max()) + 1, len(names)
    cells = unit_of * len(names) + group_of
    length = shape[0] * shape[1]
    sums = np.asarray(np.bincount(cells, weights=values, minlength=length), dtype=np.float64)
    counts = np.asarray(np.bincount(cells, minlength=length), dtype=np.float64)
    return sums.reshape(shape), counts.reshape(shape)


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
    query's (or cluster's) difference is random. `paired_test` does not rest on that alone. If there
    are at most `samples` combinations of signs, all are enumerated; otherwise random ones are
    drawn, and the observed one is counted in.

    Args:
        a: (n_queries,) scores of one system.
        b: (n_queries,) scores of the other, of the same queries.
        samples: Number of combinations to draw.
        seed: Seed of the drawing.
        groups: (n_queries,) groups of the macro average.
        clusters: (n_queries,) clusters whose signs are flipped as one.

    Returns:
        The p-value, above 0 and at most 1.

    Raises:
        InputError: Shapes differ, there are no values, or one is not finite.

    References:
        Smucker, Allan and Carterette, A comparison of statistical significance tests for
        information retrieval evaluation, CIKM 2007.
        Phipson and Smyth, Permutation p-values should never be zero, SAGMB 9, 2010.
    """
    check_samples(samples)
    shares = contributions(a, b, groups=groups, clusters=clusters)
    slack = 1e-12 * max(1.0, float(np.abs(shares).max()))
    shares = shares[np.abs(shares) > slack]
    observed = abs(float(shares.sum()))
    if 2 ** min(len(shares), 60) <= samples:
        flips = np.arange(2 ** len(shares))[:, None] >> np.arange(len(shares)) & 1
        return float(np.mean(np.abs((1 - 2.0 * flips) @ shares) >= observed - slack))
    extreme = sum(
        int(np.count_nonzero(np.abs(signs @ shares) >= observed - slack))
        for signs in _signs(len(shares), samples, seed)
    )
    return (extreme + 1) / (samples + 1)


def contributions(
    a: ArrayLike,
    b: ArrayLike,
    *,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Return the share of each cluster in the difference of two means.

    Args:
        a: (n_queries,) scores of one system.
        b: (n_queries,) scores of the other, of the same queries.
        groups: (n_queries,) groups of the macro averages.
        clusters: (n_queries,) clusters whose differences are added up; every query is a cluster if
            left out.

    Returns:
        (n_clusters,) shares, in the order of the sorted names; their sum is the difference.

    Raises:
        InputError: Shapes differ, there are no values, or one is not finite.
    """
    first, second = check_scores("a", a), check_scores("b", b)
    if len(first) != len(second):
        msg = f"a and b must hold the same queries, got {len(first)} and {len(second)} scores"
        raise InputError(msg)
    names, group_of = codes("groups", groups, len(first), default="all")
    _, unit_of = codes("clusters", clusters, len(first))
    weights = 1 / (len(names) * np.bincount(group_of))  # (n_groups,) weight of one query
    shares = np.bincount(unit_of, weights=(first - second) * weights[group_of])
    return np.asarray(shares, dtype=np.float64)


def _signs(length: int, samples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    for start, stop in chunks(samples, length):
        n_coins = (stop - start) * length
        bits = np.frombuffer(rng.bytes((n_coins + 7) // 8), dtype=np.uint8)
        coins = np.unpackbits(bits, count=n_coins).reshape(stop - start, length)
        yield 1.0 - 2.0 * coins.astype(np.float64)
