"""Standings: systems by their scores of the same queries, and which of them can be told apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.evaluation.significance.leaders import leader_tests, tie_groups
from searchlab.evaluation.significance.power import Power, power_of
from searchlab.evaluation.significance.scores import check_scores

ALPHA = 0.05


class Standings:
    """Systems in groups of equals, with what the queries can show of each.

    Attributes:
        alpha: Greatest chance of calling any system worse that is equal to a leader.
    """

    def __init__(
        self,
        scores: Mapping[str, ArrayLike],
        *,
        langs: Sequence[str] | None = None,
        clusters: Sequence[str] | None = None,
        alpha: float = ALPHA,
        seed: int = 0,
    ) -> None:
        """Take the scores; what they show is computed when it is asked for.

        Args:
            scores: System -> (n_queries,) scores of the same queries in the same order.
            langs: (n_queries,) groups of the macro average; a plain mean if left out.
            clusters: (n_queries,) queries that belong together; each stands alone if left out.
            alpha: Greatest chance of calling any system worse that is equal to a leader.
            seed: Seed of the tests.

        Raises:
            InputError: Scores are not finite.
        """
        self.alpha = alpha
        self._scores = {name: check_scores(name, column) for name, column in scores.items()}
        self._langs = langs
        self._clusters = clusters
        self._seed = seed

    @cached_property
    def groups(self) -> list[list[str]]:
        """Systems in groups, best first; members cannot be told apart from their group's first."""
        return tie_groups(
            self._scores,
            alpha=self.alpha,
            seed=self._seed,
            groups=self._langs,
            clusters=self._clusters,
        )

    @cached_property
    def order(self) -> list[str]:
        """All systems, by group and then by mean, best first."""
        return [name for group in self.groups for name in group]

    @cached_property
    def ranks(self) -> dict[str, int]:
        """System -> number of its group, from 1."""
        return {name: rank for rank, group in enumerate(self.groups, start=1) for name in group}

    @cached_property
    def p_values(self) -> dict[str, float]:
        """System -> p-value of the paired test against the leader, with Holm's correction."""
        leader, *others = self.order
        p_values = leader_tests(
            self._scores[leader],
            [self._scores[other] for other in others],
            seed=self._seed,
            groups=self._langs,
            clusters=self._clusters,
        )
        return dict(zip(others, p_values, strict=True))

    @cached_property
    def powers(self) -> dict[str, Power]:
        """System -> power of the test against the leader; without systems of equal scores.

        At the level of the first step of Holm's correction, which a single difference must pass.
        """
        leader, *others = self.order
        level = self.alpha / max(1, math.comb(len(self.order), 2))
        best = self._scores[leader]
        return {
            other: power_of(
                best,
                self._scores[other],
                groups=self._langs,
                clusters=self._clusters,
                alpha=level,
            )
            for other in others
            if self._n_clusters > 1 and _differ(best, self._scores[other])
        }

    @property
    def detectable(self) -> tuple[float, float] | None:
        """The least difference from the leader that can be shown, over the systems tied with it.

        The least and the greatest over these systems; over all systems if none is tied, and None
        if there is nothing to estimate it from.
        """
        tied = [name for name in self.groups[0] if name in self.powers]
        sizes = [self.powers[name].detectable for name in tied or self.powers]
        return (min(sizes), max(sizes)) if sizes else None

    @property
    def _n_clusters(self) -> int:
        each = next(iter(self._scores.values())) if self._clusters is None else self._clusters
        return len(each) if self._clusters is None else len(set(self._clusters))


def _differ(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    return bool((a != b).any())
