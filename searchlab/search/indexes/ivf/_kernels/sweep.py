"""Exact search over codes: every row that could be among the best, by what rounding can hide."""

from __future__ import annotations

from typing import Any

import numpy as np

from searchlab._numba import F32, F64, I64, kernel, reads
from searchlab.search.indexes.ivf._kernels.codes import dot, prefetch, round_query
from searchlab.search.indexes.ivf._kernels.heaps import offer
from searchlab.search.indexes.ivf._kernels.lists import AHEAD, CODES, WORDS, collect

_BATCH = 256


@kernel(
    *CODES,
    reads(F32),
    reads(I64),
    reads(I64),
    reads(F32),
    reads(F32),
    WORDS,
    I64,
    I64,
    F64,
    F64,
    F64,
)
def sweep(
    codes: Any,
    scales: Any,
    rows: Any,
    errors: Any,
    offsets: Any,
    order: Any,
    ceilings: Any,
    query: Any,
    words: Any,
    n_allowed: Any,
    n_wanted: Any,
    least: Any,
    longest: Any,
    slack: Any,
) -> Any:
    """Find every allowed row that could be among the best `n_wanted`.

    A row's cosine lies within (norm of query) x (error of row) + (error of query) x (norm of code)
    + slack of its score. A row is out when it cannot reach what `n_wanted` others are sure of.

    Args:
        codes: (n, length) uint8, list by list.
        scales: (n,) float32 step of each code.
        rows: (n,) int32 row number of each code.
        errors: (n,) float32, never less than the distance of a row to its code.
        offsets: (n_lists + 1,) int64, where each list starts.
        order: (n_lists,) int64, lists in the order in which to visit them.
        ceilings: (n_lists,) float32, a cosine that no row of the list exceeds.
        query: (dim,) float32.
        words: uint64 words of the bitmap of rows that may be found; none where all may.
        n_allowed: Rows that may be found.
        n_wanted: Rows wanted, at least 1.
        least: Cosine that a row must have.
        longest: A norm that no code exceeds.
        slack: What the rounding of float32 sums may add.

    Returns:
        int64 rows in no order, and how many rows were scored.
    """
    code, step, zero = round_query(query, codes.shape[1])
    norm = off = 0.0
    for place in range(query.size):
        value = np.float64(query[place])
        rest = value - np.float64(step) * code[place]
        norm += value * value
        off += rest * rest
    norm = np.sqrt(norm)
    common = np.sqrt(off) * longest + slack
    longest_list = 0
    for cluster in range(offsets.size - 1):
        longest_list = max(longest_list, offsets[cluster + 1] - offsets[cluster])
    batch = np.empty(longest_list + _BATCH, dtype=np.int64)
    sure_scores = np.empty(min(n_wanted, n_allowed), dtype=np.float64)
    sure_rows = np.empty(min(n_wanted, n_allowed), dtype=np.int64)
    possible_rows = np.empty(n_allowed, dtype=np.int64)
    possible_scores = np.empty(n_allowed, dtype=np.float64)
    n_sure = n_possible = n_scored = n_visited = 0
    floor = least
    while n_visited < order.size and n_scored < n_allowed:
        count = 0
        while n_visited < order.size and count < _BATCH:
            cluster = order[n_visited]
            n_visited += 1
            if ceilings[cluster] >= floor:
                count = collect(rows, offsets[cluster], offsets[cluster + 1], words, batch, count)
        for number in range(min(AHEAD, count)):
            prefetch(codes, batch[number])
        for number in range(count):
            if number + AHEAD < count:
                prefetch(codes, batch[number + AHEAD])
            place = batch[number]
            product = np.float64(dot(codes, place, code) - zero)
            score = product * np.float64(step) * np.float64(scales[place])
            within = norm * errors[place] + common
            if score + within < floor:
                continue
            possible_rows[n_possible] = rows[place]
            possible_scores[n_possible] = score + within
            n_possible += 1
            if n_wanted < n_allowed:
                surely = score - within
                n_sure = offer(sure_scores, sure_rows, n_sure, surely, np.int64(rows[place]))
                if n_sure == n_wanted:
                    floor = max(least, sure_scores[0])
        n_scored += count
    n_left = 0
    for number in range(n_possible):
        if possible_scores[number] >= floor:
            possible_rows[n_left] = possible_rows[number]
            n_left += 1
    return possible_rows[:n_left], n_scored
