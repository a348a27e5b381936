"""Search by looking at every allowed row: what is cheapest where few are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, F64, I64, inner, kernel, reads
from searchlab.search.filters._kernels.bits import lowest, popcount
from searchlab.search.indexes.ivf._kernels.codes import dot, estimate_error, prefetch, round_query
from searchlab.search.indexes.ivf._kernels.heaps import holds_all, offer, select_rows
from searchlab.search.indexes.ivf._kernels.lists import CODES, SURE, WORDS

# Rows between the one that is scored and the one that is prefetched.
_AHEAD = 12


@inner
def list_places(words: Any, positions: Any, count: Any) -> Any:
    """List the places of the rows in a bitmap, in the order of the rows; (count,) int64."""
    places = np.empty(count, dtype=np.int64)
    written = 0
    for number in range(words.size):
        word = words[number]
        while word:
            places[written] = positions[64 * number + np.int64(lowest(word))]
            written += 1
            word &= word - np.uint64(1)
    return places


@inner
def list_gains(words: Any, count: Any, gained: Any, steps: Any, gains: Any) -> Any:
    """List what the rows in a bitmap gain, in their order; (count,) float32.

    Args:
        words: uint64 words of the bitmap.
        count: Rows in it.
        gained: (n_gained,) int64 rows with a gain, ascending, all of them in the bitmap.
        steps: (n_gained,) int64 their steps.
        gains: (n_steps,) float32 gain of each step.
    """
    listed = np.zeros(count, dtype=np.float32)
    before, number = np.int64(0), 0
    for place in range(gained.size):
        row = gained[place]
        while number < row >> 6:
            before += np.int64(popcount(words[number]))
            number += 1
        below = words[number] & ((np.uint64(1) << np.uint64(row & 63)) - np.uint64(1))
        listed[before + np.int64(popcount(below))] = gains[steps[place]]
    return listed


@kernel(
    *CODES,
    reads(types.int32),
    reads(F32),
    WORDS,
    I64,
    I64,
    I64,
    F64,
    reads(I64),
    reads(I64),
    reads(F32),
)
def gather(
    codes: Any,
    scales: Any,
    rows: Any,
    positions: Any,
    query: Any,
    words: Any,
    n_allowed: Any,
    n_wanted: Any,
    keep: Any,
    error: Any,
    gained: Any,
    steps: Any,
    gains: Any,
) -> Any:
    """Find the best of all allowed rows by cosine and gain, as the codes score them.

    Args:
        codes: (n, length) uint8, list by list.
        scales: (n,) float32 step of each code.
        rows: (n,) int32 row number of each code.
        positions: (n,) int32, where each row's code is.
        query: (dim,) float32.
        words: uint64 words of the bitmap of rows that may be found.
        n_allowed: Rows in it.
        n_wanted: Rows wanted.
        keep: Most rows to return, at least `n_wanted`.
        error: Mean distance of a row to its code.
        gained: (n_gained,) int64 allowed rows with a gain, ascending.
        steps: (n_gained,) int64 their steps.
        gains: (n_steps,) float32 gain of each step.

    Returns:
        int64 rows in no order: the best `n_wanted`, and those that may belong to them but for
        rounding; and whether that is all of these, which `keep` may be too few for.
    """
    code, step, zero = round_query(query, codes.shape[1])
    places = list_places(words, positions, n_allowed)
    lifts = list_gains(words, n_allowed, gained, steps, gains)
    kept_scores = np.empty(min(keep, n_allowed), dtype=np.float32)
    kept_rows = np.empty(min(keep, n_allowed), dtype=np.int64)
    top_scores = np.empty(min(n_wanted, n_allowed), dtype=np.float32)
    top_rows = np.empty(min(n_wanted, n_allowed), dtype=np.int64)
    n_kept = n_top = 0
    for number in range(min(_AHEAD, n_allowed)):
        prefetch(codes, places[number])
    for number in range(n_allowed):
        if number + _AHEAD < n_allowed:
            prefetch(codes, places[number + _AHEAD])
        place = places[number]
        score = np.float32(dot(codes, place, code) - zero) * step * scales[place]
        score += lifts[number]
        if n_kept < kept_scores.size or score >= kept_scores[0]:
            n_kept = offer(kept_scores, kept_rows, n_kept, score, np.int64(rows[place]))
            n_top = offer(top_scores, top_rows, n_top, score, np.int64(rows[place]))
    floor = top_scores[0] if n_top else -np.inf
    floor -= SURE * estimate_error(query, code, step, error)
    complete = holds_all(kept_scores, n_kept, floor, n_allowed)
    return select_rows(kept_scores, kept_rows, n_kept, floor), complete
