"""Coefficients of agreement: whether a grade means the same to several judges, beyond chance.

All figures are computed from small tables of counts, grade by grade, so the bootstrap adds up the
tables of resampled queries. Grades of photos of one query are not independent, so queries are
resampled, not pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.evaluation.significance import Interval

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
Tables: TypeAlias = NDArray[np.float64]

LEVELS = ("nominal", "ordinal", "interval")
MAX_GRADES = 100


@dataclass(frozen=True, eq=False)
class PairAgreement:
    """How far two judges agree on the pairs that both have graded.

    Attributes:
        judges: Their names.
        n_pairs: Number of pairs that both have graded.
        percent: Share of equal grades, 0 to 1.
        kappa: Cohen's kappa: 1 for full agreement, 0 for chance; NaN if both judges gave the same
            grade to every pair.
        kappa_quadratic: Kappa with each disagreement weighed by its square.
        confusion: (n_grades, n_grades) counts; rows are the first judge's grades.
        grades: Grade of each row and column.
    """

    judges: tuple[str, str]
    n_pairs: int
    percent: Interval
    kappa: Interval
    kappa_quadratic: Interval
    confusion: NDArray[np.int64]
    grades: tuple[int, ...]


def cohen_kappa(first: Sequence[int], second: Sequence[int], *, quadratic: bool = False) -> float:
    """Return the agreement of two judges beyond chance.

    Args:
        first: Grades of one judge.
        second: Grades of the other judge, of the same pairs in the same order.
        quadratic: Whether to weigh a disagreement by the square of its size, for ordered grades.

    Returns:
        At most 1; 0 for chance; NaN if only one grade occurs.

    Raises:
        InputError: The lengths differ, or there is no grade.

    References:
        Cohen, A coefficient of agreement for nominal scales, EPM 20, 1960; Weighted kappa,
        Psychological Bulletin 70, 1968.
    """
    if len(first) != len(second) or not len(first):
        msg = f"both judges must grade the same pairs, got {len(first)} and {len(second)} grades"
        raise InputError(msg)
    values = grade_values([{"": grade} for grade in (*first, *second)])
    table = np.zeros((1, len(values), len(values)))
    for a, b in zip(first, second, strict=True):
        table[0, values.index(a), values.index(b)] += 1
    return float(kappas(table, values if quadratic else None)[0])


def krippendorff_alpha(units: Sequence[Sequence[int]], *, level: Level = "ordinal") -> float:
    """Return the agreement of any number of judges beyond chance; grades may be missing.

    Args:
        units: The grades of each pair, in any order; pairs with fewer than two are ignored.
        level: Distance of two grades: `nominal` (equal or not), `ordinal` (the number of given
            grades between them), `interval` (their difference).

    Returns:
        At most 1; 0 for chance; NaN if only one grade occurs.

    Raises:
        InputError: The level is unknown, or no pair has two grades.

    References:
        Krippendorff, Computing Krippendorff's alpha-reliability, 2011.
        Hayes and Krippendorff, Answering the call for a standard reliability measure for coding
        data, Communication Methods and Measures 1, 2007.
    """
    rated = [dict(enumerate(unit)) for unit in units if len(unit) > 1]
    if level not in LEVELS or not rated:
        msg = (
            f"level must be one of {', '.join(LEVELS)} and a pair must have two grades, got "
            f"{level!r} and {len(rated)} such pairs"
        )
        raise InputError(msg)
    values = grade_values(rated)
    table = sum(count_coincidences(unit.values(), values) for unit in rated)
    return float(alphas(np.asarray(table)[None], values, level)[0])


def grade_values(units: Iterable[Mapping[Any, int]]) -> tuple[int, ...]:
    """Return the grades that occur, sorted.

    Raises:
        InputError: There are more than `MAX_GRADES`.
    """
    values = sorted({grade for unit in units for grade in unit.values()})
    if len(values) > MAX_GRADES:
        msg = f"grades must take at most {MAX_GRADES} values, got {len(values)}"
        raise InputError(msg)
    return tuple(values)


def count_coincidences(unit: Iterable[int], values: Sequence[int]) -> Tables:
    """Count the ordered pairs of grades of one unit, (n_grades, n_grades); each grade weighs 1."""
    grades = [values.index(grade) for grade in unit]
    counts = np.bincount(grades, minlength=len(values)).astype(np.float64)
    table: Tables = (np.outer(counts, counts) - np.diag(counts)) / (len(grades) - 1)
    return table


def equal_shares(tables: Tables) -> Tables:
    """Return (n,) shares of equal grades of (n, n_grades, n_grades) counts."""
    shares: Tables = np.trace(tables, axis1=1, axis2=2) / tables.sum(axis=(1, 2))
    return shares


def kappas(tables: Tables, values: Sequence[int] | None = None) -> Tables:
    """Return (n,) kappas of (n, n_grades, n_grades) counts; with values, weighed by squares."""
    n_grades = tables.shape[1]
    distances = 1 - np.eye(n_grades)
    if values is not None:
        distances = np.subtract.outer(values, values).astype(np.float64) ** 2
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    observed = (tables * distances).sum(axis=(1, 2))
    chance = np.einsum("ni,nj,ij->n", rows, columns, distances) / tables.sum(axis=(1, 2))
    return _one_minus_ratio(observed, chance)


def alphas(tables: Tables, values: Sequence[int], level: Level) -> Tables:
    """Return (n,) alphas of (n, n_grades, n_grades) coincidences."""
    counts = tables.sum(axis=2)  # (n, n_grades)
    total = counts.sum(axis=1)
    n_grades = len(values)
    if level == "ordinal":
        # Number of given grades between two grades, with half of those at both ends.
        middle = np.cumsum(counts, axis=1) - counts / 2
        distances = (middle[:, :, None] - middle[:, None, :]) ** 2
    else:
        gaps = np.subtract.outer(values, values).astype(np.float64) ** 2
        distances = (gaps if level == "interval" else 1 - np.eye(n_grades))[None]
    observed = (tables * distances).sum(axis=(1, 2))
    expected = counts[:, :, None] * counts[:, None, :]
    chance = (expected * distances).sum(axis=(1, 2)) / np.maximum(total - 1, 1)
    return _one_minus_ratio(observed, chance)


def _one_minus_ratio(observed: Tables, chance: Tables) -> Tables:
    safe = np.where(chance > 0, chance, np.nan)
    figures: Tables = 1 - observed / safe
    return figures


def bootstrap_statistic(
    tables: Tables,
    clusters: Sequence[str],
    statistic: Callable[[Tables], Tables],
    samples: int,
    seed: int,
) -> Interval:
    """Estimate a statistic of summed tables, and its percentile bootstrap interval.

    The ends are NaN where nothing can be said of them, as of a single cluster.

    Args:
        tables: (n_units, n_grades, n_grades) counts.
        clusters: (n_units,) names; units of one name are resampled together.
        statistic: (n, n_grades, n_grades) summed counts -> (n,) values.
        samples: Number of resamples.
        seed: Seed of the resampling.
    """
    names, cluster_of = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    sums = np.zeros((len(names), *tables.shape[1:]))
    np.add.at(sums, cluster_of, tables)
    times = np.random.default_rng(seed).multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=samples
    )
    resamples = np.einsum("sc,cij->sij", times.astype(np.float64), sums)
    cloud = statistic(resamples)
    cloud = cloud[np.isfinite(cloud)]  # undefined for resamples in which only one grade occurs
    whole = float(statistic(tables.sum(axis=0)[None])[0])
    if not len(cloud) or len(names) == 1:
        return Interval(whole, float("nan"), float("nan"))
    return Interval(whole, *map(float, np.percentile(cloud, [2.5, 97.5])))
