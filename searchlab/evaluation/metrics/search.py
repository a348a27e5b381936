"""Measures of an index: recall against exact search, and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError

if TYPE_CHECKING:
    from searchlab.search.indexes.protocol import Neighbors


def recall_at_k(answers: Neighbors, exact: Neighbors, *, tolerance: float = 1e-6) -> float:
    """Return the share of the true k nearest that an index found, ties counted as found.

    A returned row counts if it scores at least as high as the true k-th neighbour, so two equally
    near photos are never a miss; a row that is returned twice counts once. If exact search has
    fewer than k answers, only those must be found.

    Args:
        answers: (n_queries, k) answers of the index under test.
        exact: (n_queries, k) answers of `ExactIndex` to the same queries.
        tolerance: Slack for float32 rounding, in cosine units.

    Returns:
        Mean over queries, 0 to 1; a query without a neighbour counts as 1.

    Raises:
        InputError: The two have different shapes, or there are no queries.

    References:
        Aumueller et al., ANN-Benchmarks, Information Systems 87, 2020.
    """
    return float(recall_of_each(answers, exact, tolerance=tolerance).mean())


def recall_of_each(
    answers: Neighbors, exact: Neighbors, *, tolerance: float = 1e-6
) -> NDArray[np.float64]:
    """Return what `recall_at_k` is the mean of, (n_queries,) float64; arguments are the same."""
    if answers.rows.shape != exact.rows.shape or answers.rows.size == 0:
        msg = (
            "answers and exact must have the same shape (n_queries, k), at least (1, 1), "
            f"got {answers.rows.shape} and {exact.rows.shape}"
        )
        raise InputError(msg)
    n_true = (exact.rows >= 0).sum(axis=1)  # (n_queries,)
    kth = np.where(exact.rows >= 0, exact.scores, np.inf).min(axis=1)
    near = (answers.rows >= 0) & (answers.scores >= kth[:, None] - tolerance)
    order = np.argsort(answers.rows, axis=1, kind="stable")
    in_order = np.take_along_axis(answers.rows, order, axis=1)
    first = np.ones_like(near)
    first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    hits = (np.take_along_axis(near, order, axis=1) & first).sum(axis=1)
    shares = np.minimum(hits, n_true) / np.maximum(n_true, 1)
    each: NDArray[np.float64] = np.where(n_true > 0, shares, 1.0)
    return each


def latency(seconds: ArrayLike) -> dict[str, float]:
    """Return the median, 95th and 99th percentile of durations, in milliseconds.

    Args:
        seconds: One duration for each query.

    Raises:
        InputError: There are no durations.
    """
    values = np.asarray(seconds, dtype=np.float64)
    if values.size == 0:
        msg = "seconds must hold at least one duration, got none"
        raise InputError(msg)
    p50, p95, p99 = np.percentile(values, [50, 95, 99]) * 1000
    return {"p50_ms": float(p50), "p95_ms": float(p95), "p99_ms": float(p99)}
