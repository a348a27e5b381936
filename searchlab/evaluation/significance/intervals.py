"""Bootstrap intervals of means, and of macro averages over groups.

A mean of 100 clusters or more has a percentile interval. Percentile intervals of fewer are too
narrow, so these are studentised (`searchlab.evaluation.significance.studentised`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError
from searchlab.evaluation.significance.scores import check_samples, check_scores, chunks, codes
from searchlab.evaluation.significance.studentised import FEW, Studentised


class Interval(NamedTuple):
    """A mean and the interval it lies in.

    Attributes:
        mean: The estimate; with groups, the mean of the groups' means.
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a record, in which the groups are languages."""
        return {
            "macro": _rounded(self.macro),
            "micro": _rounded(self.micro),
            "langs": {lang: _rounded(interval) for lang, interval in self.groups.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GroupedIntervals:
        """Read what `to_dict` returned."""
        langs = {lang: Interval(*interval) for lang, interval in values["langs"].items()}
        return cls(Interval(*values["macro"]), Interval(*values["micro"]), langs)


def _rounded(interval: Interval) -> list[float]:
    return [round(value, 6) for value in interval]


def bootstrap_interval(
    values: ArrayLike,
    *,
    confidence: float = 0.95,
    samples: int = 2000,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
) -> Interval:
    """Estimate a mean and its bootstrap interval over queries.

    The interval is that of percentiles, or studentised where there are fewer than 100 clusters; it
    never leaves the range of the scores.

    Args:
        values: (n_queries,) scores. If nearly all of a few are 0, the interval is too narrow, and
            with a single one it has no width.
        confidence: Share of intervals that cover the true mean, above 0 and below 1.
        samples: Number of resamples.
        seed: Seed of the resampling.
        groups: (n_queries,) name of each query's group; the mean is the macro average. Queries are
            resampled within their group, so that the interval is too narrow where groups have few
            queries. Clusters, even if each query is one, are resampled across groups and widen it;
            where every group has a single query, neither gives it any width.
        clusters: (n_queries,) name of each query's cluster; a cluster is resampled as one, across
            groups.

    Raises:
        InputError: Shapes differ, there are no values, or one is not finite.

    References:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
        Hall, On symmetric bootstrap confidence intervals, JRSS B 50, 1988.
        Sakai, Evaluating evaluation metrics based on the bootstrap, SIGIR 2006.
        Field and Welsh, Bootstrapping clustered data, JRSS B 69, 2007.
    """
    intervals = bootstrap_intervals(
        {"value": values},
        confidence=confidence,
        samples=samples,
        seed=seed,
        groups=groups,
        clusters=clusters,
    )
    return intervals["value"].macro


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
        confidence: As for `bootstrap_interval`, like all arguments that follow.
        samples: Number of resamples.
        seed: Seed of the resampling.
        groups: (n_queries,) groups of the macro average.
        clusters: (n_queries,) clusters that are resampled as one.

    Returns:
        For each metric the macro and micro average, and the mean of every group.
    """
    check_samples(samples)
    if not 0 < confidence < 1:
        msg = f"confidence must lie between 0 and 1, got {confidence}"
        raise InputError(msg)
    columns = {name: check_scores(name, scores) for name, scores in values.items()}
    if not columns:
        return {}
    n_queries = len(next(iter(columns.values())))
    names, group_of = codes("groups", groups, n_queries, default="all")
    _, unit_of = codes("clusters", clusters, n_queries)
    # A row for each resampled unit; columns are sums for each metric and group, then counts.
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
    sizes = np.count_nonzero(table[:, -1], axis=0)  # (n_groups,) clusters of each
    is_of_few = np.asarray((table[:, -1][:, sizes < FEW] > 0).any(axis=1) | (len(table) < FEW))
    drawn, times = _resample(table.reshape(len(table), -1), strata, is_of_few, samples, seed)
    resamples = drawn.reshape(samples, len(parts), len(names))
    whole = table.sum(axis=0, keepdims=True)  # (1, n_parts, n_groups)
    ends = [50 * (1 - confidence), 50 * (1 + confidence)]
    few = table[is_of_few]
    result = {}
    for part, (name, column) in enumerate(columns.items()):
        means = whole[:, part] / whole[:, -1]  # (1, n_groups)
        points = _averages(whole[:, part], whole[:, -1], means)
        clouds = _averages(resamples[:, part], resamples[:, -1], means)
        intervals = [
            Interval(float(point[0]), *map(float, np.percentile(cloud, ends)))
            for point, cloud in zip(points.T[:, :1], clouds.T, strict=True)
        ]
        bounds = float(column.min()), float(column.max())
        scores, counts = few[:, part], few[:, -1]  # (n_few, n_groups)
        if len(table) < FEW:
            together = scores.sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True)
            for place, columns_of in enumerate(((scores, counts), together)):
                wide = Studentised(*columns_of, times).half_width(confidence)
                intervals[place] = _around(intervals[place].mean, wide, bounds)
        for group in np.flatnonzero(sizes < FEW):
            its = counts[:, group] > 0
            one = Studentised(scores[its][:, [group]], counts[its][:, [group]], times[:, its])
            wide = one.half_width(confidence)
            intervals[2 + group] = _around(intervals[2 + group].mean, wide, bounds)
        macro, micro, *each = intervals
        result[name] = GroupedIntervals(macro, micro, dict(zip(names, each, strict=True)))
    return result


def _around(mean: float, half_width: float, bounds: tuple[float, float]) -> Interval:
    least, greatest = bounds
    low, high = max(mean - half_width, least), min(mean + half_width, greatest)
    return Interval(mean, min(low, mean), max(high, mean))  # a rounded mean may lie just outside


def _averages(
    sums: NDArray[np.float64], counts: NDArray[np.float64], whole: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Turn (n, n_groups) sums and counts into (n, 2 + n_groups) macro, micro and group means."""
    # A small group may be missing from a resample of clusters. It then keeps its mean over all
    # queries: leaving it out would shift the macro average, as small groups often score lower.
    means = np.where(counts > 0, sums / np.maximum(counts, 1), whole)
    return np.column_stack([means.mean(axis=1), sums.sum(axis=1) / counts.sum(axis=1), means])


def _resample(
    table: NDArray[np.float64],
    strata: NDArray[np.intp],
    is_of_few: NDArray[np.bool_],
    samples: int,
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw rows with replacement within strata.

    Returns:
        (samples, n_columns) sums of the rows drawn, and (samples, n_few) how often each row of
        `is_of_few` was drawn.
    """
    rng = np.random.default_rng(seed)
    sums = np.zeros((samples, table.shape[1]))
    drawn = np.zeros((samples, int(is_of_few.sum())), dtype=np.float64)
    place = np.cumsum(is_of_few) - 1
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        rows, few = table[members], is_of_few[members]
        for start, stop in chunks(samples, len(rows)):
            n = stop - start
            draws = rng.integers(0, len(rows), size=(n, len(rows)))
            draws += np.arange(n)[:, None] * len(rows)
            times = np.bincount(draws.ravel(), minlength=n * len(rows)).reshape(n, len(rows))
            sums[start:stop] += times.astype(np.float64) @ rows
            drawn[start:stop, place[members[few]]] = times[:, few]
    return sums, drawn
