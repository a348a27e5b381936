"""Search by scanning lists, the nearest first, until what is left cannot be expected to matter.

A row's score is its cosine and what it gains. What is left is counted by groups of gains: rows
without one are left out first, then those of small gains, and the scan ends with the last group.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, F64, I64, inner, kernel, reads
from searchlab.search.indexes.ivf._kernels.codes import dot, estimate_error, prefetch, round_query
from searchlab.search.indexes.ivf._kernels.heads import COMPONENTS, ROWS, project, round_head
from searchlab.search.indexes.ivf._kernels.heaps import holds_all, offer, select_rows
from searchlab.search.indexes.ivf._kernels.lifts import (
    TAKEN,
    collect_lifted,
    group_steps,
    lay_down,
    sort_by_gain,
)
from searchlab.search.indexes.ivf._kernels.lists import (
    AHEAD,
    BUCKETS,
    CENTRES,
    CODES,
    HEADS,
    SURE,
    WORDS,
    is_even,
    mark_places,
    score_lists,
    sort_into_buckets,
)
from searchlab.search.indexes.ivf._kernels.screening import screen_list, screen_places

_ROOT_HALF = math.sqrt(0.5)
# Rows scored between two decisions whether to stop; fewer where the lists have no more.
_BATCH = 64
# Rows over which the share of allowed ones is averaged.
_MEMORY = 2_048
# The usual variance counts as this many rows beside those that were scored.
_PRIOR = 32
# Standard deviations of the rounding of heads within which a row is scored by its whole code.
_AWAY = 3.0 * math.sqrt(1 / 12)
# Share of rows that may be found from which on heads are read on end.
_DENSE = 0.2
# Rows that may be read between two decisions, as a share of those read before, if that is more.
_PACE = 1 / 16
# Rows of the largest gains that are scored before the lists, and then at a time.
_AT_ONCE = 512
# Scoring a row where it lies costs as much as looking through this many of the lists.
_DIRECT_COSTS = 128
# Texts predict what pictures show: how much likelier a row with a gain may be near the query
# than others, before the nearest lists were looked at.
_LIKELIER = 8.0
# Where a share of the rows was read, up to thirty times as many as are wanted are to be expected in
# the others by the usual count, which counts too many; over real and made photos. Of a filter that
# leaves out just what is near the query it is a thousand times, and a third or more of all that are
# left: there the count is right.
_FAR_TOO_MANY = 100.0
_FAR_TOO_LARGE = 0.25


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
    *HEADS,
    reads(F32),
    WORDS,
    I64,
    I64,
    I64,
    F64,
    F64,
    F64,
    reads(F64, 2),
    reads(F64, 2),
    reads(types.int32),
    reads(I64),
    reads(I64),
    reads(F32),
)
def scan(
    codes: Any,
    scales: Any,
    rows: Any,
    offsets: Any,
    centres: Any,
    centre_scales: Any,
    spreads: Any,
    axes: Any,
    heads: Any,
    query: Any,
    words: Any,
    n_allowed: Any,
    n_wanted: Any,
    keep: Any,
    error: Any,
    missed: Any,
    usual: Any,
    near: Any,
    far: Any,
    positions: Any,
    gained: Any,
    steps: Any,
    gains: Any,
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
        axes: (dim, COMPONENTS) float32 of `heads.Heads`.
        heads: (n + ROWS - 1, BYTES) uint8 of `heads.Heads`.
        query: (dim,) float32.
        words: uint64 words of the bitmap of rows that may be found; none where all may.
        n_allowed: Rows that may be found.
        n_wanted: Rows wanted.
        keep: Most rows to return, at least `n_wanted`.
        error: Mean distance of a row to its code.
        missed: How many of the best `n_wanted` rows a search may be expected to miss.
        usual: Variance of a residual as a share of its list's spread, before a row is scored.
        near: (2, 4) float64, for a query like the rows, where a filter lets through as many rows of
            the nearest lists as of others, and where it does not: the cosine with the best centre
            from which on it is one; what the variance is then multiplied by, as tails are longer
            than normal; the share of the allowed rows after which the scan ends; and the share of
            the longest product of two tails that a row is allowed beyond its head.
        far: (2, 4) float64, the same for a query of another kind, and the cosine up to which it is.
        positions: (n,) int32, where each row's code is.
        gained: (n_gained,) int64 rows with a gain, all of which may be found.
        steps: (n_gained,) int64 their gains as steps.
        gains: (n_steps,) float32 gain of each step, ascending from 0.

    Returns:
        int64 rows in no order, the best `n_wanted` and those that may belong to them but for
        rounding; how many rows were scored; and whether the best are among them. They may not be
        where so many rows score alike that `keep` leaves some out, nor where far more are to be
        expected in the lists left when a share of all was read: then no row is returned.
    """
    code, step, zero = round_query(query, codes.shape[1])
    scores = score_lists(centres, centre_scales, code, step, zero)
    order, bucket, best, width = sort_into_buckets(scores)
    norm = math.sqrt(float((query * query).sum()))
    head = project(axes, query)
    head_norm = math.sqrt(float((head * head).sum()))
    head_code, head_scale, head_zero, _ = round_head(head)
    sums = np.zeros(2 * ROWS, dtype=np.float32)
    tail_norm = math.sqrt(max(norm * norm - head_norm * head_norm, 0.0))
    by_step = np.float32(_AWAY * head_norm)
    # As if tails lay in all directions alike.
    share_of_tails = tail_norm * tail_norm / max(query.size - COMPONENTS, 1)
    marked = mark_places(words, positions, n_allowed)
    uneven = 0
    if words.size and not is_even(rows, offsets, order, words, marked, n_allowed):
        uneven = 1
    least_near, least_far = near[uneven, 0], far[uneven, 0]
    nearness = (best / max(norm, 1e-30) - least_far) / max(least_near - least_far, 1e-6)
    band = far[uneven] + (near[uneven] - far[uneven]) * min(max(nearness, 0.0), 1.0)
    stretch, most_read = band[1], band[2] * n_allowed
    by_tail = np.float32(band[3] * tail_norm)
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
    n_kept = n_top = n_visited = 0
    by_gain = sort_by_gain(steps, gains.size)
    counts = np.zeros(gains.size, dtype=np.int64)
    for number in by_gain[_AT_ONCE:]:
        counts[steps[number]] += 1
    group_of, left_of, firsts, lasts = group_steps(counts, n_allowed - gained.size)
    lifts = np.zeros(0, dtype=np.uint16)
    group, spent = 0, 0.0
    n_scored = n_direct = 0
    left, left_allowed = rows.size, n_allowed
    density = left_allowed / max(rows.size, 1)
    squares, expected_squares = _PRIOR * usual, np.float64(_PRIOR)
    while left_allowed > 0:
        while n_top == top_scores.size and group < left_of.size:
            # The allowed rows may lie in few clusters: the next lists likely hold such a share of
            # them as the last ones did, and a list is not taken to hold less than all lists left on
            # average.
            share = max(density, left_allowed / max(left, 1)) * left_of[group] / left_allowed
            if group and rows.size - left < _MEMORY:
                share *= _LIKELIER
            share = min(1.0, max(share, 1e-12))
            ratio = stretch * squares / expected_squares
            # Each group but the last may be left out for half of what may still be missed.
            is_last = left_of[group] == left_allowed
            enough = (missed - spent) * (1.0 if is_last else 0.5) / share
            far_too_many = min(_FAR_TOO_MANY * n_wanted, _FAR_TOO_LARGE * left_allowed) / share
            may_end = group == 0 and n_scored >= most_read
            above = _count_expected(
                masses,
                variances,
                bucket[order[min(n_visited, order.size - 1)]],
                best,
                width,
                top_scores[0] - gains[lasts[group]],
                ratio,
                max(enough, far_too_many) if may_end else enough,
            )
            if above >= enough and not may_end:
                break
            if above >= max(enough, far_too_many):
                return top_rows[:0], n_scored, False
            spent += min(above, enough) * share
            density *= 1.0 - left_of[group] / left_allowed
            left_allowed -= left_of[group]
            group += 1
        if group == left_of.size:
            break
        is_first = n_direct == 0 and gained.size > 0
        if is_first or (group > 0 and left_allowed * _DIRECT_COSTS < left):
            # The largest gains, and few rows however they lie, are scored one by one.
            until = min(n_direct + _AT_ONCE, gained.size)
            for number in range(n_direct, until):
                if number + 2 * AHEAD < until:
                    prefetch(codes, positions[gained[by_gain[number + 2 * AHEAD]]])
                row, lift = gained[by_gain[number]], steps[by_gain[number]]
                place = positions[row]
                if lifts.size and lifts[place] == TAKEN:
                    continue
                score = np.float32(dot(codes, place, code) - zero) * step * scales[place]
                score += gains[lift]
                n_kept = offer(kept_scores, kept_rows, n_kept, score, row)
                n_top = offer(top_scores, top_rows, n_top, score, row)
                n_scored += 1
                left_allowed -= 1
                if not is_first:
                    left_of[group_of[lift]] -= 1
            n_direct = until
            if n_direct == gained.size and group > 0:
                break
            continue
        if n_visited == order.size:
            break
        if gained.size and not lifts.size:
            lifts = lay_down(gained, steps, positions, by_gain, n_direct, firsts[group])
        count = n_passed = n_found = n_lifted = 0
        until_passed = max(_MEMORY, (rows.size - left) * _PACE)
        until_found = max(_BATCH, n_scored * _PACE)
        floor = top_scores[0] if n_top == top_scores.size else np.float32(-np.inf)
        while (
            n_visited < order.size
            and count < _BATCH
            and n_found < until_found
            and n_passed < until_passed
        ):
            cluster = order[n_visited]
            n_visited += 1
            start, stop = offsets[cluster], offsets[cluster + 1]
            before = count
            least = floor - scores[cluster]
            sums[:] = 0
            if group or density < _DENSE:
                count = collect_lifted(
                    rows, start, stop, words, marked, lifts, firsts[group], batch, count
                )
                n_in_list = n_read = count - before
            if group:
                centre_of[before:count] = scores[cluster]
            elif density < _DENSE:
                count = screen_places(
                    lifts,
                    heads,
                    head_code,
                    head_zero,
                    head_scale,
                    by_step,
                    by_tail,
                    least,
                    sums,
                    batch,
                    before,
                    count,
                )
            else:
                count, n_in_list, n_read = screen_list(
                    rows,
                    start,
                    stop,
                    words,
                    marked,
                    lifts,
                    heads,
                    offsets[order[min(n_visited, order.size - 1)]],
                    head_code,
                    head_zero,
                    head_scale,
                    by_step,
                    by_tail,
                    least,
                    sums,
                    batch,
                    count,
                )
            squares += sums[:ROWS].sum() + share_of_tails * sums[ROWS:].sum()
            expected_squares += n_read * spreads[cluster]
            n_found += n_in_list
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
            if group:
                residual = score - centre_of[number]
                squares += residual * residual
            if lifts.size and lifts[place]:
                lift = np.int64(lifts[place])
                score += gains[lift]
                left_of[group_of[lift]] -= 1
                n_lifted += 1
                lifts[place] = TAKEN
            if n_kept < kept_scores.size or score >= kept_scores[0]:
                n_kept = offer(kept_scores, kept_rows, n_kept, score, np.int64(rows[place]))
                n_top = offer(top_scores, top_rows, n_top, score, np.int64(rows[place]))
        left_of[0] -= n_found - n_lifted
        n_scored += n_found
        left -= n_passed
        left_allowed -= n_found
        density += (n_found / max(n_passed, 1) - density) * min(1.0, n_passed / _MEMORY)
    worst = top_scores[0] if n_top == top_scores.size and n_top else -np.inf
    worst -= SURE * estimate_error(query, code, step, error)
    complete = holds_all(kept_scores, n_kept, worst, n_scored)
    return select_rows(kept_scores, kept_rows, n_kept, worst), n_scored, complete
