"""Heaps of the best rows so far; the root is the worst, so most rows cost one comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from searchlab._numba import inner


@inner
def offer(scores: Any, rows: Any, count: Any, score: Any, row: Any) -> Any:
    """Put a row into a heap if it is among the best; of equal scores the lower row is better.

    Args:
        scores: (size,) scores in the heap, the worst first.
        rows: (size,) row numbers of these scores.
        count: Rows in the heap.
        score: Score of the new row.
        row: Number of the new row.

    Returns:
        Rows in the heap afterwards.
    """
    size = scores.size
    if count < size:
        place = count
        while place:
            above = (place - 1) >> 1
            if scores[above] < score or (scores[above] == score and rows[above] > row):
                break
            scores[place], rows[place] = scores[above], rows[above]
            place = above
        scores[place], rows[place] = score, row
        return count + 1
    if size == 0 or score < scores[0] or (score == scores[0] and row > rows[0]):
        return count
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (
            scores[other] < scores[below]
            or (scores[other] == scores[below] and rows[other] > rows[below])
        ):
            below = other
        if score < scores[below] or (score == scores[below] and row > rows[below]):
            break
        scores[place], rows[place] = scores[below], rows[below]
        place = below
    scores[place], rows[place] = score, row
    return count


@inner
def select_rows(scores: Any, rows: Any, count: Any, floor: Any) -> Any:
    """Return the rows of a heap with a score of at least `floor`, int64 in no order."""
    selected = np.empty(count, dtype=np.int64)
    size = 0
    for number in range(count):
        if scores[number] >= floor:
            selected[size] = rows[number]
            size += 1
    return selected[:size]


@inner
def holds_all(scores: Any, count: Any, floor: Any, n_offered: Any) -> Any:
    """Return whether a heap holds all that was offered with a score of at least `floor`."""
    return count < scores.size or count == n_offered or scores[0] < floor
