"""The metrics, for many queries at once, on arrays of grades in the order of the answers.

Sums run from the first rank to the last, so that a query scores the same to the last bit, whichever
queries stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RankedGrades:
    """The grades of answers, and those of the best possible answers.

    Attributes:
        found: (n_queries, depth) float64 grades of the answers, in their order; 0 where an answer
            is not relevant, or where there is none.
        ideal: (n_queries, any width) float64 grades of all relevant photos, the highest first; 0
            where there are no more. Of at least the cut-off where a query has as many.
        n_relevant: (n_queries,) numbers of relevant photos, at least 1.
    """

    found: NDArray[np.float64]
    ideal: NDArray[np.float64]
    n_relevant: NDArray[np.int64]


def ndcg(grades: RankedGrades, k: int) -> NDArray[np.float64]:
    """Return the discounted sum of grades, as a share of the best possible one; (n_queries,)."""
    return np.asarray(_discounted(grades.found[:, :k]) / _discounted(grades.ideal[:, :k]))


def ndcg_exp(grades: RankedGrades, k: int) -> NDArray[np.float64]:
    """Return the same with a gain of 2^grade - 1; (n_queries,)."""
    found, ideal = (np.exp2(one[:, :k]) - 1 for one in (grades.found, grades.ideal))
    return np.asarray(_discounted(found) / _discounted(ideal))


def recall(grades: RankedGrades, k: int) -> NDArray[np.float64]:
    """Return the share of the relevant photos among the first k; (n_queries,)."""
    n_hits: NDArray[np.int64] = _hits(grades, k).sum(axis=1)
    return n_hits / grades.n_relevant


def success(grades: RankedGrades, k: int) -> NDArray[np.float64]:
    """Return 1 where one of the first k is relevant, else 0; (n_queries,)."""
    return np.asarray(_hits(grades, k).any(axis=1), dtype=np.float64)


def mrr(grades: RankedGrades, k: int) -> NDArray[np.float64]:
    """Return 1 / rank of the first relevant photo, 0 behind the first k; (n_queries,)."""
    hits = _hits(grades, k)
    if not hits.shape[1]:
        return np.zeros(len(hits))
    return np.asarray(np.where(hits.any(axis=1), 1 / (1 + hits.argmax(axis=1)), 0.0))


def average_precision(grades: RankedGrades, k: int) -> NDArray[np.float64]:
    """Return the sum of the precision at each relevant photo, over all relevant ones; (n,)."""
    hits = _hits(grades, k)
    precisions = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    return np.asarray(_sum(np.where(hits, precisions, 0.0)) / grades.n_relevant)


def precision(grades: RankedGrades, k: int) -> NDArray[np.float64]:
    """Return the number of relevant photos among the first k, divided by k; (n_queries,)."""
    n_hits: NDArray[np.int64] = _hits(grades, k).sum(axis=1)
    return n_hits / k


def _hits(grades: RankedGrades, k: int) -> NDArray[np.bool_]:
    return grades.found[:, :k] > 0


def _discounted(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    return _sum(gains / np.log2(np.arange(2, gains.shape[1] + 2)))


def _sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up rows from the left; zeros at the end change nothing."""
    if not values.shape[1]:
        return np.zeros(len(values))
    return np.asarray(np.cumsum(values, axis=1)[:, -1])
