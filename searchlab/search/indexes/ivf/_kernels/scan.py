"""Search by scanning lists, the nearest first, until what is left cannot be expected to matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from searchlab._numba import F32, F64, I64, inner, kernel, reads
from searchlab.search.indexes.ivf._kernels.codes import dot, doubt, prefetch, rounded
from searchlab.search.indexes.ivf._kernels.heaps import at_least, offer
from searchlab.search.indexes.ivf._kernels.lists import (
    AHEAD,
    BUCKETS,
    CENTRES,
    CODES,
    SURE,
    WORDS,
    collect,
    into_buckets,
    score_lists,
)

_ROOT_HALF = math.sqrt(0.5)
# Rows scored between two looks at whether to stop; fewer where the lists give no more.
_BATCH = 64
# Rows looked at over which the share of allowed ones is averaged.
_MEMORY = 2_048
# Rows that the usual variance counts for beside those that were scored.
_PRIOR = 32


@inner
def _expected(
    masses: Any,
    variances: Any,
    first: Any,
    best: Any,
    width: Any,
    kth: Any,
    ratio: Any,
    most: Any,
) -> Any:
    # Rows above the k-th score to be expected in the buckets left, counted up to `most`.
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
        centre_scales: (n_lists,) float32.
        spreads: (n_lists,) float32, mean squared distance of a list's rows to its mean.
        query: (dim,) float32.
        words: Of the bitmap of rows that may be found; none where all may.
        n_allowed: Rows that may be found.
        n_wanted: Rows wanted.
        keep: Rows returned at most, at least `n_wanted`.
        error: Usual distance of a row to its code.
        missed: Rows of the best `n_wanted` that may be expected to be missed.
        usual: Variance of a residual as a share of its list's spread, before a row is scored.
        near: Cosine with the best centre from which on a query is like the rows.
        near_stretch: What the variance is then multiplied by, as tails are longer than normal.
        far: Cosine with the best centre up to which a query is of another kind.
        far_stretch: What the variance is then multiplied by.

    Returns:
        int64 rows in no order, all that rounding may have put behind the best `n_wanted`; and how
        many rows were scored.
    """
    code, step, zero = rounded(query, codes.shape[1])
    scores = score_lists(centres, centre_scales, code, step, zero)
    order, bucket, best, width = into_buckets(scores)
    norm = math.sqrt(float((query * query).sum()))
    nearness = (best / max(norm, 1e-30) - far) / max(near - far, 1e-6)
    stretch = far_stretch + (near_stretch - far_stretch) * min(max(nearness, 0.0), 1.0)
    masses = np.zeros(BUCKETS)
    variances = np.zeros(BUCKETS)
    longest = 0
    for one in range(scores.size):
        size = offsets[one + 1] - offsets[one]
        longest = max(longest, size)
        masses[bucket[one]] += size
        variances[bucket[one]] += size * spreads[one]
    batch = np.empty(longest + _BATCH, dtype=np.int64)
    centre_of = np.empty(longest + _BATCH, dtype=np.float32)
    kept_scores = np.empty(min(keep, n_allowed), dtype=np.float32)
    kept_rows = np.empty(min(keep, n_allowed), dtype=np.int64)
    top_scores = np.empty(min(n_wanted, n_allowed), dtype=np.float32)
    top_rows = np.empty(min(n_wanted, n_allowed), dtype=np.int64)
    n_kept = top = scored = visited = 0
    left, left_allowed = rows.size, n_allowed
    density = n_allowed / max(rows.size, 1)
    squares, expected_squares = _PRIOR * usual, np.float64(_PRIOR)
    while left_allowed > 0 and visited < order.size:
        count = looked = 0
        while visited < order.size and count < _BATCH and looked < _MEMORY:
            one = order[visited]
            visited += 1
            start, stop = offsets[one], offsets[one + 1]
            before = count
            count = collect(rows, start, stop, words, batch, count)
            centre_of[before:count] = scores[one]
            expected_squares += (count - before) * spreads[one]
            looked += stop - start
            masses[bucket[one]] -= stop - start
            variances[bucket[one]] -= (stop - start) * spreads[one]
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
                top = offer(top_scores, top_rows, top, score, np.int64(rows[place]))
        scored += count
        left -= looked
        left_allowed -= count
        if top < top_scores.size or visited == order.size:
            continue
        # A filter may go with the clusters, or against them: what the last lists held is likely
        # of the next, and no list that is left can be expected to hold less than all that are.
        density += (count / max(looked, 1) - density) * min(1.0, looked / _MEMORY)
        share = min(1.0, max(density, left_allowed / max(left, 1)))
        ratio = stretch * squares / expected_squares
        first, enough = bucket[order[visited]], missed / share
        above = _expected(masses, variances, first, best, width, top_scores[0], ratio, enough)
        if above < enough:
            break
    floor = top_scores[0] if top == top_scores.size and top else -np.inf
    floor -= SURE * doubt(query, code, step, error)
    return at_least(kept_scores, kept_rows, n_kept, floor), scored
