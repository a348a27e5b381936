"""Which rows of which lists are to be scored: order of the lists, rows that pass a bitmap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, I64, inner, reads
from searchlab.search.indexes.ivf._kernels.codes import dot

# Types of the arrays of `ivf.lists.Lists`, in the order in which every kernel takes them.
CODES = (reads(types.uint8, 2), reads(F32), reads(types.int32))
CENTRES = (reads(I64), reads(types.uint8, 2), reads(F32), reads(F32))
WORDS = reads(types.uint64)
AHEAD = 6
"""Rows between the one that is scored and the one that is prefetched."""

SURE = 4.0
"""Standard deviations of rounding within which a row is scored again by its float32 vector."""

BUCKETS = 256


@inner
def score_lists(centres: Any, centre_scales: Any, code: Any, step: Any, zero: Any) -> Any:
    """Score the centre of every list by a query of `round_query`; (n_lists,) float32."""
    scores = np.empty(centres.shape[0], dtype=np.float32)
    for number in range(centres.shape[0]):
        product = np.float32(dot(centres, number, code) - zero)
        scores[number] = product * step * centre_scales[number]
    return scores


@inner
def sort_into_buckets(scores: Any) -> Any:
    """Sort lists by score, the best first, as finely as 256 buckets go.

    Returns:
        (n_lists,) lists in order, (n_lists,) bucket of each list, the best score, and the width of
        a bucket.
    """
    best, worst = scores.max(), scores.min()
    width = max((best - worst) / np.float32(BUCKETS - 1), np.float32(1e-12))
    bucket = np.empty(scores.size, dtype=np.int64)
    starts = np.zeros(BUCKETS + 1, dtype=np.int64)
    for one in range(scores.size):
        number = min(int((best - scores[one]) / width), BUCKETS - 1)
        bucket[one] = number
        starts[number + 1] += 1
    for number in range(BUCKETS):
        starts[number + 1] += starts[number]
    order = np.empty(scores.size, dtype=np.int64)
    for one in range(scores.size):
        order[starts[bucket[one]]] = one
        starts[bucket[one]] += 1
    return order, bucket, best, width


@inner
def holds(words: Any, row: Any) -> Any:
    """Tell whether a bitmap holds a row, as 0 or 1."""
    return np.int64((words[row >> 6] >> np.uint64(row & 63)) & np.uint64(1))


@inner
def collect(rows: Any, start: Any, stop: Any, words: Any, batch: Any, count: Any) -> Any:
    """Append the places of a list whose rows pass a bitmap to a batch.

    Args:
        rows: (n,) int32, row of each place.
        start: First place of the list.
        stop: Place behind its last.
        words: uint64 words of the bitmap; none where all rows pass.
        batch: (size,) int64, written to from `count` on.
        count: Places in the batch already.

    Returns:
        Places in the batch afterwards.
    """
    if words.size == 0:
        for place in range(start, stop):
            batch[count + place - start] = place
        return count + stop - start
    for place in range(start, stop):
        batch[count] = place
        count += holds(words, np.int64(rows[place]))
    return count
