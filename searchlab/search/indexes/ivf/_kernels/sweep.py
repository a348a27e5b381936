"""Exact search over codes: every row that could be among the best, by what rounding can hide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, F64, I64, kernel, reads
from searchlab.search.indexes.ivf._kernels.codes import dot, prefetch, round_query
from searchlab.search.indexes.ivf._kernels.heads import (
    COMPONENTS,
    MIDDLE,
    ROWS,
    project,
    round_head,
)
from searchlab.search.indexes.ivf._kernels.heaps import offer
from searchlab.search.indexes.ivf._kernels.lists import (
    AHEAD,
    CODES,
    HEADS,
    WORDS,
    mark_places,
)
from searchlab.search.indexes.ivf._kernels.screening import screen_list

_BATCH = 256
# Norm of a head of steps that are all as far off as rounding goes, and of the longest head.
_MOST_OFF = 0.5 * math.sqrt(COMPONENTS)
_LONGEST = MIDDLE * math.sqrt(COMPONENTS)
# Share of the query's square by which its tail is lengthened, for what float32 rounds.
_SLACK = 1e-5


@kernel(
    *CODES,
    reads(F32),
    reads(types.int32),
    reads(I64),
    *HEADS,
    reads(I64),
    reads(F32),
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
    positions: Any,
    offsets: Any,
    axes: Any,
    heads: Any,
    order: Any,
    products: Any,
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
        positions: (n,) int32, where each row's code is.
        offsets: (n_lists + 1,) int64, where each list starts.
        axes: (dim, COMPONENTS) float32 of `heads.Heads`.
        heads: (n + ROWS - 1, BYTES) uint8 of `heads.Heads`.
        order: (n_lists,) int64, lists in the order in which to visit them.
        products: (n_lists,) float32 cosine of each list's centre with the query.
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
    head = project(axes, query)
    head_code, head_scale, head_zero, head_off = round_head(head)
    head_squares = 0.0
    for value in head:
        head_squares += np.float64(value) * np.float64(value)
    by_step = np.float32(_MOST_OFF * np.sqrt(head_squares) + _LONGEST * head_off)
    by_tail = np.float32(np.sqrt(max(norm * norm - head_squares, 0.0) + _SLACK * norm * norm))
    sums = np.zeros(2 * ROWS, dtype=np.float32)
    marked = mark_places(words, positions, n_allowed)
    no_lifts = np.zeros(0, dtype=np.uint16)
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
            if ceilings[cluster] < floor:
                continue
            start, stop = offsets[cluster], offsets[cluster + 1]
            count, n_found, _ = screen_list(
                rows,
                start,
                stop,
                words,
                marked,
                no_lifts,
                heads,
                offsets[order[min(n_visited, order.size - 1)]],
                head_code,
                head_zero,
                head_scale,
                by_step,
                by_tail,
                np.float32(floor - products[cluster] - 4 * slack),
                sums,
                batch,
                count,
            )
            n_scored += n_found
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
    n_left = 0
    for number in range(n_possible):
        if possible_scores[number] >= floor:
            possible_rows[n_left] = possible_rows[number]
            n_left += 1
    return possible_rows[:n_left], n_scored
