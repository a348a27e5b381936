"""Checks and numbers the scores and labels of queries, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError, quote

_CELLS = 4_000_000  # random numbers held at once


def check_scores(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return (n_queries,) scores as float64.

    Raises:
        InputError: The shape is another, there are no values, or one is not finite.
    """
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{name} must be finite scores of shape (n_queries,), got {quote(values)}"
        raise InputError(msg) from error
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        msg = f"{name} must be finite scores of shape (n_queries,), got shape {scores.shape}"
        raise InputError(msg)
    return scores


def codes(
    what: str, labels: Sequence[str] | None, n_queries: int, *, default: str | None = None
) -> tuple[list[str], NDArray[np.intp]]:
    """Number labels from 0; without labels every query has its own, or all share the default.

    Args:
        what: Name of the argument in messages.
        labels: (n_queries,) names.
        n_queries: Required number of labels.
        default: Label of all queries if there are no labels.

    Returns:
        The sorted names, and (n_queries,) the number of each query's name.

    Raises:
        InputError: The number of labels is another.
    """
    if labels is None:
        if default is None:
            return [], np.arange(n_queries)
        return [default], np.zeros(n_queries, dtype=np.intp)
    if len(labels) != n_queries:
        msg = f"{what} must name each of the {n_queries} queries, got {len(labels)} names"
        raise InputError(msg)
    names, numbers = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    return [str(name) for name in names], numbers.astype(np.intp)


def chunks(samples: int, width: int) -> Iterator[tuple[int, int]]:
    """Cut `samples` rows of `width` values into ranges (start, stop) that fit into memory."""
    step = max(1, _CELLS // width)
    for start in range(0, samples, step):
        yield start, min(start + step, samples)


def check_samples(samples: object) -> None:
    """Check a number of resamples or combinations.

    Raises:
        InputError: It is no integer from 1.
    """
    if isinstance(samples, bool) or not isinstance(samples, Integral) or samples < 1:
        msg = f"samples must be an integer from 1, got {quote(samples)}"
        raise InputError(msg)
