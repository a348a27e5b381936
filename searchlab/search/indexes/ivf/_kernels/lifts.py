"""Gains inside a scan: which rows are scored first, and what is left of the others by gain."""

from __future__ import annotations

from typing import Any

import numpy as np

from searchlab._numba import inner
from searchlab.search.indexes.ivf._kernels.lists import collect

TAKEN = np.uint16(65_535)
"""Lift of a row that is scored already."""

GROUPS = 16
"""Groups of steps, so that a scan may leave out small gains before it ends."""


@inner
def sort_by_gain(steps: Any, n_steps: Any) -> Any:
    """Sort what has a gain, the largest first; (n_gained,) int64 numbers, ascending among equals.

    Args:
        steps: (n_gained,) int64 gains as steps, from 1 to `n_steps` - 1.
        n_steps: Steps that there are, at most 65,535.
    """
    ends = np.zeros(n_steps + 1, dtype=np.int64)
    for step in steps:
        ends[step] += 1
    for step in range(n_steps - 1, -1, -1):
        ends[step] += ends[step + 1]
    order = np.empty(steps.size, dtype=np.int64)
    for number in range(steps.size):
        place = ends[steps[number] + 1]
        order[place] = number
        ends[steps[number] + 1] += 1
    return order


@inner
def lay_down(rows: Any, steps: Any, positions: Any, order: Any, n_taken: Any, least: Any) -> Any:
    """Lay down gains in the order of the codes.

    Args:
        rows: (n_gained,) int64 rows with a gain.
        steps: (n_gained,) int64 their gains as steps.
        positions: (n,) int32, where each row's code is.
        order: From `sort_by_gain`.
        n_taken: Rows, the first ones of `order`, that are scored already.
        least: Smaller steps are left out.

    Returns:
        (n,) uint16 step of each place, 0 where it is left out or nothing is gained, and `TAKEN`
        where the row is scored already.
    """
    lifts = np.zeros(positions.size, dtype=np.uint16)
    for number in range(rows.size):
        if steps[number] >= least:
            lifts[positions[rows[number]]] = steps[number]
    for number in order[:n_taken]:
        lifts[positions[rows[number]]] = TAKEN
    return lifts


@inner
def group_steps(counts: Any, n_without: Any) -> Any:
    """Cut the steps that are left into groups of equal width; group 0 is of rows without a gain.

    Args:
        counts: (n_steps,) int64 rows of each step.
        n_without: Rows without a gain.

    Returns:
        (n_steps,) group of each step; (n_groups,) rows of each group; (n_groups,) first step of
        each; and (n_groups,) last step of each.
    """
    highest = counts.size - 1
    while highest > 0 and counts[highest] == 0:
        highest -= 1
    n_groups = 1 + min(highest, GROUPS)
    group_of = np.zeros(counts.size, dtype=np.int64)
    left = np.zeros(n_groups, dtype=np.int64)
    firsts, lasts = np.zeros(n_groups, dtype=np.int64), np.zeros(n_groups, dtype=np.int64)
    left[0] = n_without
    for step in range(1, highest + 1):
        group = 1 + (step - 1) * (n_groups - 1) // highest
        group_of[step] = group
        left[group] += counts[step]
        if firsts[group] == 0:
            firsts[group] = step
        lasts[group] = step
    return group_of, left, firsts, lasts


@inner
def collect_lifted(
    rows: Any,
    start: Any,
    stop: Any,
    words: Any,
    marked: Any,
    lifts: Any,
    least: Any,
    batch: Any,
    count: Any,
) -> Any:
    """Append the places of a list that have a lift of at least `least` to a batch.

    Args:
        rows: (n,) int32, row of each place.
        start: First place of the list.
        stop: Place behind its last.
        words: uint64 words of the bitmap of rows that may be found; none where all may.
        marked: What `mark_places` made of it.
        lifts: (n,) uint16 of `lay_down`, of rows that may be found; none where nothing has a gain.
        least: Least step; 0 also for rows without a gain, if they may be found.
        batch: (size,) int64, written to from `count` on.
        count: Places in the batch already.

    Returns:
        Places in the batch afterwards.
    """
    if lifts.size == 0:
        return collect(rows, start, stop, words, marked, batch, count)
    if least:
        for place in range(start, stop):
            batch[count] = place
            count += np.int64(lifts[place] >= least) & np.int64(lifts[place] != TAKEN)
        return count
    before = count
    after = collect(rows, start, stop, words, marked, batch, count)
    for number in range(before, after):
        place = batch[number]
        batch[count] = place
        count += np.int64(lifts[place] != TAKEN)
    return count
