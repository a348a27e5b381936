"""Search by scanning lists, the nearest first, until what is left cannot be expected to matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from searchlab._numba import F32, F64, I64, inner, kernel, reads
from searchlab.search.indexes.ivf._kernels.codes import dot, estimate_error, prefetch, round_query
from searchlab.search.indexes.ivf._kernels.heaps import offer, select_rows
from searchlab.search.indexes.ivf._kernels.lists import (
    AHEAD,
    BUCKETS,
    CENTRES,
    CODES,
    SURE,
    WORDS,
    collect,
    score_lists,
    sort_into_buckets,
)

_ROOT_HALF = math.sqrt(0.5)
# Rows scored between two decisions whether to stop; fewer where the lists have no more.
_BATCH = 64
# Rows over which the share of allowed ones is averaged.
_MEMORY = 2_048
# The usual variance counts as this many rows beside those that were scored.
_PRIOR = 32


@inner
def _count_expected(
    masses: Any,
    variances: Any,
    first: Any,
    best: Any,
    width: Any,
    kth: Any,
    ratio: Any,
    most: Any,
) -> Any:
    """Return how many rows above the k-th score are to be expected in the buckets left.

    The count stops once it is above `most`.
    """
    total = 0.0
    for number in range(first, BUCKETS):
        mass = masses[number]
        if mass > 0:
            deviation = math.sqrt(max(ratio * variances[number] / mass, 1e-12))
            z = (kth - (best - number * width)) / deviation
            if z < 8:
                total += mass * 0.5 * math.erfc(z * _ROOT_HALF)
            if total > most:
                break
    return total


@kernel(
    *CODES,
    *CENTRES,
    reads(F32),
    WORDS,
    I64,
    I64,
    I64,
    F64,
    F64,
    F64,
    F64,
    F64,
    F64,
    F64,
)
def scan(
    codes: Any,
    scales: Any,
    rows: Any,
    offsets: Any,
    centres: Any,
    centre_scales: Any,
    spreads: Any,
    query: Any,
    words: Any,
    n_allowed: Any,
    n_wanted: Any,
    keep: Any,
    error: Any,
    missed: Any,
    usual: Any,
    near: Any,
    near_stretch: Any,
    far: Any,
    far_stretch: Any,
) -> Any:
    """Find the best rows of the lists worth looking at.

    The lists are visited in the order of their centres' scores. A row's score is its centre's plus
    a residual, which is taken to be normal. Its variance is a share of the list's spread, and the
    share is learnt from the rows scored so far. The search ends when fewer than `missed` rows that
    belong to the best `n_wanted` are to be expected in all lists that are left.

    Args:
        codes: (n, length) uint8, list by list.
        scales: (n,) float32 step of each code.
        rows: (n,) int32 row number of each code.
        offsets: (n_lists + 1,) int64, where each list starts.
        centres: (n_lists, length) uint8 codes of the lists' means.
        centre_scales: (n_lists,) float32 step of each centre's code.
        spreads: (n_lists,) float32, mean squared distance of a list's rows to its mean.
        query: (dim,) float32.
        words: uint64 words of the bitmap of rows that may be found; none where all may.
        n_allowed: Rows that may be found.
        n_wanted: Rows wanted.
        keep: Most rows to return, at least `n_wanted`.
        error: Mean distance of a row to its code.
        missed: How many of the best `n_wanted` rows a search may be expected to miss.
        usual: Variance of a residual as a share of its list's spread, before a row is scored.
        near: Cosine with the best centre from which on a query is like the rows.
        near_stretch: What the variance is then multiplied by, as tails are longer than normal.
        far: Cosine with the best centre up to which a query is of another kind.
        far_stretch: What the variance is then multiplied by.

    Returns:
        int64 rows in no order, the best `n_wanted` and those that may belong to them but for
        rounding; and how many rows were scored.
    """
    code, step, zero = round_query(query, codes.shape[1])
    scores = score_lists(centres, centre_scales, code, step, zero)
    order, bucket, best, width = sort_into_buckets(scores)
    norm = math.sqrt(float((query * query).sum()))
    nearness = (best / max(norm, 1e-30) - far) / max(near - far, 1e-6)
    stretch = far_stretch + (near_stretch - far_stretch) * min(max(nearness, 0.0), 1.0)
    masses = np.zeros(BUCKETS)
    variances = np.zeros(BUCKETS)
    longest = 0
    for cluster in range(scores.size):
        size = offsets[cluster + 1] - offsets[cluster]
        longest = max(longest, size)
        masses[bucket[cluster]] += size
        variances[bucket[cluster]] += size * spreads[cluster]
    batch = np.empty(longest + _BATCH, dtype=np.int64)
    centre_of = np.empty(longest + _BATCH, dtype=np.float32)
    kept_scores = np.empty(min(keep, n_allowed), dtype=np.float32)
    kept_rows = np.empty(min(keep, n_allowed), dtype=np.int64)
    top_scores = np.empty(min(n_wanted, n_allowed), dtype=np.float32)
    top_rows = np.empty(min(n_wanted, n_allowed), dtype=np.int64)
    n_kept = n_top = n_scored = n_visited = 0
    left, left_allowed = rows.size, n_allowed
    density = n_allowed / max(rows.size, 1)
    squares, expected_squares = _PRIOR * usual, np.float64(_PRIOR)
    while left_allowed > 0 and n_visited < order.size:
        count = n_passed = 0
        while n_visited < order.size and count < _BATCH and n_passed < _MEMORY:
            cluster = order[n_visited]
            n_visited += 1
            start, stop = offsets[cluster], offsets[cluster + 1]
            before = count
            count = collect(rows, start, stop, words, batch, count)
            centre_of[before:count] = scores[cluster]
            expected_squares += (count - before) * spreads[cluster]
            n_passed += stop - start
            masses[bucket[cluster]] -= stop - start
            variances[bucket[cluster]] -= (stop - start) * spreads[cluster]
        for number in range(min(AHEAD, count)):
            prefetch(codes, batch[number])
        for number in range(count):
            if number + AHEAD < count:
                prefetch(codes, batch[number + AHEAD])
            place = batch[number]
            score = np.float32(dot(codes, place, code) - zero) * step * scales[place]
            residual = score - centre_of[number]
            squares += residual * residual
            if n_kept < kept_scores.size or score >= kept_scores[0]:
                n_kept = offer(kept_scores, kept_rows, n_kept, score, np.int64(rows[place]))
                n_top = offer(top_scores, top_rows, n_top, score, np.int64(rows[place]))
        n_scored += count
        left -= n_passed
        left_allowed -= count
        if n_top < top_scores.size or n_visited == order.size:
            continue
        # The allowed rows may lie in few clusters: the next lists likely hold such a share of them
        # as the last ones did, and a list is not taken to hold less than all lists left on average.
        density += (count / max(n_passed, 1) - density) * min(1.0, n_passed / _MEMORY)
        share = min(1.0, max(density, left_allowed / max(left, 1)))
        ratio = stretch * squares / expected_squares
        first, enough = bucket[order[n_visited]], missed / share
        above = _count_expected(masses, variances, first, best, width, top_scores[0], ratio, enough)
        if above < enough:
            break
    floor = top_scores[0] if n_top == top_scores.size and n_top else -np.inf
    floor -= SURE * estimate_error(query, code, step, error)
    return select_rows(kept_scores, kept_rows, n_kept, floor), n_scored
