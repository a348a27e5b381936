"""Which rows of which lists are to be scored: order of the lists, rows that pass a bitmap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, I64, inner, reads
from searchlab.search.filters._kernels.bits import lowest, popcount
from searchlab.search.filters._kernels.simd import TOGETHER, sixteen_bits
from searchlab.search.indexes.ivf._kernels.codes import dot

# Types of the arrays of `ivf.lists.Lists`, in the order in which every kernel takes them.
CODES = (reads(types.uint8, 2), reads(F32), reads(types.int32))
CENTRES = (reads(I64), reads(types.uint8, 2), reads(F32), reads(F32))
HEADS = (reads(F32, 2), reads(types.uint8, 2))
WORDS = reads(types.uint64)
AHEAD = 6
"""Rows between the one that is scored and the one that is prefetched."""

SURE = 4.0
"""Standard deviations of rounding within which a row is scored again by its float32 vector."""

BUCKETS = 256

# Rows of the nearest lists by which it is told whether a filter has to do with a query: first so
# many, then four times as many, up to the last number or an eighth of all. The number that it lets
# through may differ by a fifth, and by three standard deviations of a draw at random; where fewer
# are to be expected than the least, that tells nothing.
_FIRST_LOOKED_AT = 512
_LAST_LOOKED_AT = 8_192
_ALIKE = 0.2
_CHANCE = 3.0
_TELLING = 16

# A bitmap is laid out in the order of the lists if at most one row in so many may be found.
_MANY = 5


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
        # Also of scores that are not finite, as of damaged centres.
        number = max(0, min(int((best - scores[one]) / width), BUCKETS - 1))
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
def mark_places(words: Any, positions: Any, n_allowed: Any) -> Any:
    """Lay a bitmap of few rows out in the order of the lists, so that a list's lie side by side.

    Args:
        words: uint64 words of the bitmap of rows that may be found; none where all may.
        positions: (n,) int32 place of each row.
        n_allowed: Rows in it.

    Returns:
        uint64 words of the bitmap of places, with one word more; none where all rows or many may be
        found, since testing those that a scan comes by then costs less.
    """
    if words.size == 0 or n_allowed * _MANY > positions.size:
        return np.zeros(0, dtype=np.uint64)
    marked = np.zeros((positions.size >> 6) + 2, dtype=np.uint64)
    for number in range(words.size):
        word = words[number]
        while word:
            place = np.int64(positions[64 * number + np.int64(lowest(word))])
            marked[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
            word &= word - np.uint64(1)
    return marked


@inner
def find_allowed(rows: Any, place: Any, size: Any, words: Any, marked: Any) -> Any:
    """Tell which of up to 16 rows from a place on may be found, as bits of an int32.

    Args:
        rows: (n,) int32, row of each place.
        place: First place.
        size: Rows, at most 16.
        words: uint64 words of the bitmap of rows; none where all may be found.
        marked: What `mark_places` made of it.
    """
    every = np.int32((1 << size) - 1)
    if words.size == 0:
        return every
    if marked.size:
        shift = np.uint64(place & 63)
        bits = marked[place >> 6] >> shift
        if shift > 48:
            bits |= marked[(place >> 6) + 1] << (np.uint64(64) - shift)
        return np.int32(bits & np.uint64(every))
    if size == TOGETHER:
        return sixteen_bits(rows, place, words)
    allowed = np.int32(0)
    for number in range(size):
        allowed |= np.int32(holds(words, np.int64(rows[place + number]))) << number
    return allowed


@inner
def is_even(rows: Any, offsets: Any, order: Any, words: Any, marked: Any, n_allowed: Any) -> Any:
    """Tell whether a filter lets through as many rows of the nearest lists as of all.

    Args:
        rows: (n,) int32, row of each place.
        offsets: (n_lists + 1,) int64, where each list starts.
        order: (n_lists,) int64 lists, the nearest first.
        words: uint64 words of the bitmap of rows that may be found.
        marked: What `mark_places` made of it.
        n_allowed: Rows in it.
    """
    n_seen = n_found = 0
    most = min(_LAST_LOOKED_AT, rows.size // 8)
    enough = _FIRST_LOOKED_AT
    told = False
    for cluster in order:
        start, stop = offsets[cluster], offsets[cluster + 1]
        for place in range(start, stop, TOGETHER):
            found = find_allowed(rows, place, min(TOGETHER, stop - place), words, marked)
            n_found += int(popcount(np.uint64(found)))
        n_seen += stop - start
        if n_seen >= min(enough, most):
            expected = n_seen * n_allowed / max(rows.size, 1)
            if abs(n_found - expected) > _ALIKE * expected + _CHANCE * math.sqrt(expected):
                return False
            told = told or expected >= _TELLING
            enough *= 4
        if n_seen >= most:
            break
    return told


@inner
def collect(
    rows: Any, start: Any, stop: Any, words: Any, marked: Any, batch: Any, count: Any
) -> Any:
    """Append the places of a list whose rows pass a bitmap to a batch.

    Args:
        rows: (n,) int32, row of each place.
        start: First place of the list.
        stop: Place behind its last.
        words: uint64 words of the bitmap; none where all rows pass.
        marked: What `mark_places` made of it.
        batch: (size,) int64, written to from `count` on.
        count: Places in the batch already.

    Returns:
        Places in the batch afterwards.
    """
    if words.size == 0:
        for place in range(start, stop):
            batch[count + place - start] = place
        return count + stop - start
    if marked.size:
        for number in range(start >> 6, ((stop - 1) >> 6) + 1 if stop > start else 0):
            word = marked[number]
            while word:
                marked_place = 64 * number + np.int64(lowest(word))
                word &= word - np.uint64(1)
                batch[count] = marked_place
                count += int(start <= marked_place < stop)
        return count
    for place in range(start, stop):
        batch[count] = place
        count += holds(words, np.int64(rows[place]))
    return count
