"""Agreement: how far judges give the same grades, over all judges and for each two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from searchlab.errors import InputError
from searchlab.evaluation.judging.coefficients import (
    PairAgreement,
    alphas,
    bootstrap_statistic,
    count_coincidences,
    equal_shares,
    grade_values,
    kappas,
)
from searchlab.evaluation.judging.html import agreement_html
from searchlab.evaluation.judging.pools import Pair
from searchlab.evaluation.significance import Interval

Grades: TypeAlias = Mapping[str, Mapping[Pair, int]]
"""judge -> (query_id, photo_id) -> grade."""


@dataclass(frozen=True, eq=False, repr=False)
class JudgeAgreement:
    """How far judges agree.

    Attributes:
        alpha: Krippendorff's alpha for ordered grades, over all judges; NaN where it is undefined.
        n_pairs: Number of query-photo pairs that at least two judges have graded.
        pairs: Agreement of each two judges who have graded a pair in common.
    """

    alpha: Interval
    n_pairs: int
    pairs: tuple[PairAgreement, ...]

    def __repr__(self) -> str:
        lines = [f"Krippendorff's alpha {self.alpha} over {self.n_pairs:,} pairs"]
        for pair in self.pairs:
            first, second = pair.judges
            lines.append(
                f"{first} and {second}, {pair.n_pairs:,} pairs: kappa {pair.kappa}, "
                f"weighted {pair.kappa_quadratic}, equal {pair.percent}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return agreement_html(self.alpha, self.n_pairs, self.pairs)


def agreement(grades: Grades, *, samples: int = 2000, seed: int = 0) -> JudgeAgreement:
    """Compare the grades of several judges, with 95 % intervals.

    Args:
        grades: Grades of at least two judges; pairs that a judge has not graded are missing.
        samples: Number of bootstrap resamples of queries.
        seed: Seed of the resampling.

    Raises:
        InputError: No two judges have graded the same pair.
    """
    shared = shared_units(grades)
    if not shared:
        msg = (
            f"judges must have graded a pair in common, got none by {', '.join(grades) or 'no-one'}"
        )
        raise InputError(msg)
    values = grade_values(shared.values())
    clusters = [pair.query_id for pair in shared]
    tables = np.stack([count_coincidences(unit.values(), values) for unit in shared.values()])
    alpha = bootstrap_statistic(
        tables, clusters, lambda t: alphas(t, values, "ordinal"), samples, seed
    )
    pairs = []
    for first, second in combinations(grades, 2):
        both = {pair: unit for pair, unit in shared.items() if first in unit and second in unit}
        if not both:
            continue
        counts = np.zeros((len(both), len(values), len(values)))
        for table, unit in zip(counts, both.values(), strict=True):
            table[values.index(unit[first]), values.index(unit[second])] = 1
        clusters = [pair.query_id for pair in both]
        percent, kappa, quadratic = (
            bootstrap_statistic(counts, clusters, statistic, samples, seed)
            for statistic in (equal_shares, kappas, lambda t: kappas(t, values))
        )
        confusion = counts.sum(axis=0).astype(np.int64)
        pairs.append(
            PairAgreement((first, second), len(both), percent, kappa, quadratic, confusion, values)
        )
    return JudgeAgreement(alpha, len(shared), tuple(pairs))


def shared_units(grades: Grades) -> dict[Pair, dict[str, int]]:
    """Collect the pairs that at least two judges have graded: pair -> judge -> grade, sorted."""
    units: dict[Pair, dict[str, int]] = {}
    for judge, by_pair in grades.items():
        for pair, grade in by_pair.items():
            units.setdefault(Pair(*pair), {})[judge] = grade
    return {pair: units[pair] for pair in sorted(units) if len(units[pair]) > 1}


def disagreements(grades: Grades, *, least: int = 2) -> list[tuple[Pair, dict[str, int]]]:
    """List the pairs whose grades differ by `least` or more, for judges to discuss, worst first."""
    far_apart = [
        (pair, unit)
        for pair, unit in shared_units(grades).items()
        if max(unit.values()) - min(unit.values()) >= least
    ]
    return sorted(far_apart, key=lambda f: (min(f[1].values()) - max(f[1].values()), f[0]))
