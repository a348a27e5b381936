"""Which rows are worth scoring by their whole codes: those whose heads say so."""

from __future__ import annotations

from typing import Any

import numpy as np

from searchlab._numba import inner
from searchlab.search.filters._kernels.bits import lowest, popcount
from searchlab.search.indexes.ivf._kernels.codes import prefetch
from searchlab.search.indexes.ivf._kernels.heads import (
    ROWS,
    multiply_head,
    read_lengths,
    screen_rows,
)
from searchlab.search.indexes.ivf._kernels.lifts import TAKEN
from searchlab.search.indexes.ivf._kernels.lists import find_allowed

# Rows between the one that is looked at and the one whose head is fetched.
_AHEAD = 12


@inner
def screen_list(
    rows: Any,
    start: Any,
    stop: Any,
    words: Any,
    marked: Any,
    lifts: Any,
    heads: Any,
    following: Any,
    query: Any,
    zero: Any,
    scale: Any,
    by_step: Any,
    by_tail: Any,
    least: Any,
    sums: Any,
    batch: Any,
    count: Any,
) -> Any:
    """Append the places of a list that may be found, and may reach a score, to a batch.

    Rows with a lift are appended whatever their heads say.

    Args:
        rows: (n,) int32, row of each place.
        start: First place of the list.
        stop: Place behind its last.
        words: uint64 words of the bitmap of rows that may be found; none where all may.
        marked: What `mark_places` made of it.
        lifts: (n,) uint16 of `lay_down`; none where nothing has a gain.
        heads: (n + ROWS - 1, BYTES) uint8.
        following: First place of the list that is looked at next.
        query: (2 * BYTES,) int8 of `round_head`.
        zero: What `round_head` returned beside it.
        scale: Likewise.
        by_step: As `screen_rows` takes it.
        by_tail: Likewise.
        least: Likewise.
        sums: Likewise.
        batch: (size,) int64, written to from `count` on.
        count: Places in the batch already.

    Returns:
        Places in the batch afterwards, rows of the list that may be found, and rows whose squares
        were added to the sums.
    """
    n_allowed = n_read = 0
    for place in range(start, stop, ROWS):
        size = min(ROWS, stop - place)
        passing = np.int32((1 << size) - 1)
        if words.size:
            passing = find_allowed(rows, place, size, words, marked)
        lifted = np.int32(0)
        if lifts.size:
            for number in range(size):
                lift = lifts[place + number]
                lifted |= np.int32(lift > 0) << number
                passing &= ~(np.int32(lift == TAKEN) << number)
            lifted &= passing
        if not passing:
            continue
        n_allowed += int(popcount(np.uint64(passing)))
        n_read += ROWS
        for number in range(0, ROWS, 2):
            prefetch(heads, following + place - start + number)
        may = screen_rows(heads, place, query, zero, scale, by_step, by_tail, least, sums)
        left = np.uint64((may | lifted) & passing)
        while left:
            batch[count] = place + np.int64(lowest(left))
            count += 1
            left &= left - np.uint64(1)
    return count, n_allowed, n_read


@inner
def screen_places(
    lifts: Any,
    heads: Any,
    query: Any,
    zero: Any,
    scale: Any,
    by_step: Any,
    by_tail: Any,
    least: Any,
    sums: Any,
    batch: Any,
    first: Any,
    count: Any,
) -> Any:
    """Keep those of a batch's last places that may reach a score; few rows that lie apart.

    Args:
        lifts: (n,) uint16 of `lay_down`; none where nothing has a gain.
        heads: As `screen_list` takes it, and likewise what follows.
        query: Likewise.
        zero: Likewise.
        scale: Likewise.
        by_step: Likewise.
        by_tail: Likewise.
        least: Likewise.
        sums: Likewise.
        batch: (size,) int64 places, written to.
        first: Number of the first place to look at.
        count: Places in the batch.

    Returns:
        Places in the batch afterwards.
    """
    for number in range(first, min(first + _AHEAD, count)):
        prefetch(heads, batch[number])
    kept = first
    for number in range(first, count):
        if number + _AHEAD < count:
            prefetch(heads, batch[number + _AHEAD])
        place = batch[number]
        product = np.float32(multiply_head(heads, place, query)) - zero
        step, tail = read_lengths(heads, place)
        score = product * scale * step
        sums[0] += score * score
        sums[ROWS] += tail * tail
        if score + by_step * step + by_tail * tail >= least or (lifts.size and lifts[place] > 0):
            batch[kept] = place
            kept += 1
    return kept
