"""How far measured means can be trusted: intervals, paired tests, and groups of equals.

Queries are not always independent: five captions of one photo, or one label in eighty languages,
ask nearly the same thing. `clusters` names what belongs together, and is resampled and sign-flipped
as one; ignoring it would make intervals several times too narrow. `groups`, such as languages, make
the mean a macro average: every group counts the same, however many queries it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError

_CELLS = 4_000_000  # random numbers held at once


class Interval(NamedTuple):
    """A mean and the interval it lies in.

    Attributes:
        mean: The estimate; over groups, where there are any, the mean of their means.
        low: Lower end.
        high: Upper end.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class GroupedIntervals:
    """One metric, averaged in three ways.

    Attributes:
        macro: The mean of the groups' means.
        micro: The mean over all queries.
        groups: The mean of each group, in sorted order.
    """

    macro: Interval
    micro: Interval
    groups: dict[str, Interval]


def bootstrap_interval(
    values: ArrayLike,
    *,
    confidence: float = 0.95,
    samples: int = 2000,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> Interval:
    """Estimate a mean and its percentile bootstrap interval over queries.

    Args:
        values: (n_queries,) scores. With fewer than some twenty queries the interval is too
            narrow, and with a single one it has no width.
        confidence: Share of intervals that cover the true mean, above 0 and below 1.
        samples: Resamples.
        seed: Of the resampling.
        groups: (n_queries,) name of each query's group; the mean is the macro average. Queries are
            resampled within groups.
        clusters: (n_queries,) queries of one name are resampled together, across groups.

    Raises:
        InputError: Wrong shapes, no values, or one that is not finite.

    References:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
        Sakai, Evaluating evaluation metrics based on the bootstrap, SIGIR 2006.
        Field and Welsh, Bootstrapping clustered data, JRSS B 69, 2007.
    """
    found = bootstrap_intervals(
        {"value": values},
        confidence=confidence,
        samples=samples,
        seed=seed,
        groups=groups,
        clusters=clusters,
    )
    return found["value"].macro


def bootstrap_intervals(
    values: Mapping[str, ArrayLike],
    *,
    confidence: float = 0.95,
    samples: int = 2000,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> dict[str, GroupedIntervals]:
    """Estimate several metrics of the same queries from the same resamples.

    Args:
        values: Metric -> (n_queries,) scores.
        confidence: As for `bootstrap_interval`, like all that follow.
        samples: Resamples.
        seed: Of the resampling.
        groups: Macro average over these.
        clusters: Resampled together.

    Returns:
        For each metric the macro and micro average, and the mean of every group.
    """
    if not (0 < confidence < 1 and samples >= 1):
        msg = f"confidence must lie between 0 and 1, samples above 0, got {confidence}, {samples}"
        raise InputError(msg)
    columns = {name: _checked(name, scores) for name, scores in values.items()}
    if not columns:
        return {}
    n_queries = len(next(iter(columns.values())))
    names, group_of = _codes("groups", groups, n_queries, default="all")
    _, unit_of = _codes("clusters", clusters, n_queries)
    # Rows are what is drawn; columns are sums for each metric and group, and at the end counts.
    parts = [*columns.values(), np.ones(n_queries)]
    shape = (int(unit_of.max()) + 1, len(names))
    table = np.zeros((shape[0], len(parts), shape[1]))
    for part, column in enumerate(parts):
        if len(column) != n_queries:
            msg = f"all values must have the same length, got {n_queries} and {len(column)}"
            raise InputError(msg)
        cells = unit_of * len(names) + group_of
        sums = np.bincount(cells, weights=column, minlength=shape[0] * shape[1])
        table[:, part] = sums.reshape(shape)
    strata = group_of if clusters is None else np.zeros(len(table), dtype=np.intp)
    drawn = _resampled(table.reshape(len(table), -1), strata, samples, seed)
    drawn = drawn.reshape(samples, len(parts), len(names))
    whole = table.sum(axis=0, keepdims=True)  # (1, n_parts, n_groups)
    ends = [50 * (1 - confidence), 50 * (1 + confidence)]
    result = {}
    for part, name in enumerate(columns):
        means = whole[:, part] / whole[:, -1]  # (1, n_groups)
        points = _averages(whole[:, part], whole[:, -1], means)
        clouds = _averages(drawn[:, part], drawn[:, -1], means)
        macro, micro, *each = (
            Interval(float(point[0]), *map(float, np.percentile(cloud, ends)))
            for point, cloud in zip(points.T[:, :1], clouds.T, strict=True)
        )
        result[name] = GroupedIntervals(macro, micro, dict(zip(names, each, strict=True)))
    return result


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
    first, second = _checked("a", a), _checked("b", b)
    if len(first) != len(second):
        msg = f"a and b must hold the same queries, got {len(first)} and {len(second)} scores"
        raise InputError(msg)
    names, group_of = _codes("groups", groups, len(first), default="all")
    _, unit_of = _codes("clusters", clusters, len(first))
    shares = 1 / (len(names) * np.bincount(group_of))
    pulls = np.bincount(unit_of, weights=(first - second) * shares[group_of])
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


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for the number of tests, in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]

    References:
        Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6, 1979.
    """
    order = sorted(range(len(p_values)), key=lambda position: p_values[position])
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for step, position in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - step) * p_values[position]))
        adjusted[position] = least
    return adjusted


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

    The best remaining system leads; it is tested against all behind it, with Holm's correction
    over these tests, and those that do not differ from it join it. A group says "not shown to be
    worse than its leader", not "equal": members may differ from one another.

    Args:
        values: System -> (n_queries,) scores of the same queries in the same order.
        alpha: Chance of calling any two equals different, for each leader.
        samples: Flips of a test.
        seed: Of the tests.
        groups: Macro average over these.
        clusters: Flipped together.

    Returns:
        Groups from best to worst, each from best to worst; of equal means by name.
    """
    scores = {name: _checked(name, column) for name, column in values.items()}
    means = {name: _macro(column, groups) for name, column in scores.items()}
    remaining = sorted(scores, key=lambda name: (-means[name], name))
    result = []
    while remaining:
        leader, *others = remaining
        p_values = holm(
            [
                permutation_test(
                    scores[leader],
                    scores[other],
                    samples=samples,
                    seed=seed,
                    groups=groups,
                    clusters=clusters,
                )
                for other in others
            ]
        )
        tied = {name for name, p in zip(others, p_values, strict=True) if p >= alpha}
        result.append([leader, *(name for name in others if name in tied)])
        remaining = [name for name in others if name not in tied]
    return result


def _macro(scores: NDArray[np.float64], groups: Sequence[str] | None) -> float:
    names, codes = _codes("groups", groups, len(scores), default="all")
    sums = np.bincount(codes, weights=scores, minlength=len(names))
    # Rounded, so that equal systems do not swap places by the order of a sum.
    return round(float((sums / np.bincount(codes)).mean()), 12)


def _averages(
    sums: NDArray[np.float64], counts: NDArray[np.float64], whole: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Turn (n, n_groups) sums and counts into (n, 2 + n_groups) macro, micro and group means."""
    # A small group may be missing from a resample of clusters. It then keeps its mean of the
    # `whole`: to leave it out would shift the macro average, for the small are often the poor.
    means = np.where(counts > 0, sums / np.maximum(counts, 1), whole)
    return np.column_stack([means.mean(axis=1), sums.sum(axis=1) / counts.sum(axis=1), means])


def _resampled(
    table: NDArray[np.float64], strata: NDArray[np.intp], samples: int, seed: int
) -> NDArray[np.float64]:
    """Draw rows with replacement within strata; (samples, n_columns) sums of what was drawn."""
    rng = np.random.default_rng(seed)
    result = np.zeros((samples, table.shape[1]))
    for stratum in np.unique(strata):
        rows = table[strata == stratum]
        for start, stop in _chunks(samples, len(rows)):
            n = stop - start
            drawn = rng.integers(0, len(rows), size=(n, len(rows)))
            drawn += np.arange(n)[:, None] * len(rows)
            times = np.bincount(drawn.ravel(), minlength=n * len(rows)).reshape(n, len(rows))
            result[start:stop] += times.astype(np.float64) @ rows
    return result


def _signs(length: int, samples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    for start, stop in _chunks(samples, length):
        n_coins = (stop - start) * length
        bits = np.frombuffer(rng.bytes((n_coins + 7) // 8), dtype=np.uint8)
        coins = np.unpackbits(bits, count=n_coins).reshape(stop - start, length)
        yield 1.0 - 2.0 * coins.astype(np.float64)


def _chunks(samples: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, _CELLS // width)
    for start in range(0, samples, step):
        yield start, min(start + step, samples)


def _checked(name: str, values: ArrayLike) -> NDArray[np.float64]:
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        msg = f"{name} must be finite scores of shape (n_queries,), got shape {scores.shape}"
        raise InputError(msg)
    return scores


def _codes(
    what: str, labels: Sequence[str] | None, n_queries: int, *, default: str | None = None
) -> tuple[list[str], NDArray[np.intp]]:
    """Number labels from 0; without labels every query is its own, or all share the default."""
    if labels is None:
        if default is None:
            return [], np.arange(n_queries)
        return [default], np.zeros(n_queries, dtype=np.intp)
    if len(labels) != n_queries:
        msg = f"{what} must name each of the {n_queries} queries, got {len(labels)} names"
        raise InputError(msg)
    names, codes = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    return [str(name) for name in names], codes.astype(np.intp)
