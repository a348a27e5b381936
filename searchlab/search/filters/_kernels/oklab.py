"""Kernels on colours: which rows lie within a distance of one shade.

Sums are in float32 and in the order of `searchlab.photos.colors`, and nothing is fused, so that
every decision is the same bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types, uint64

from searchlab._numba import F32, F64, I64, inner, kernel, reads, writes
from searchlab.search.filters._kernels.bits import lowest
from searchlab.search.filters._kernels.simd import ROUND, STEPS, cell_bits, near_bits

_U16, _U64 = types.uint16, types.uint64
_CENTRE = types.UniTuple(types.int16, 3)
_TRIPLE, _PLACE = types.UniTuple(I64, 3), types.UniTuple(F64, 3)


@inner
def _square(place: Any, centre: Any) -> Any:
    away = place * STEPS - types.int64(centre)
    return away * away // ROUND


@kernel(reads(I64), _TRIPLE, _PLACE, F64, F64, _CENTRE, I64, writes(I64))
def runs_near(
    starts: Any, shape: Any, point: Any, cell: Any, outside: Any, centre: Any, limit: Any, runs: Any
) -> Any:
    """Find the runs of cells that a ball touches; cells along the last axis are consecutive.

    Args:
        starts: (n_cells + 1,) int64, where the rows of each cell start.
        shape: Cells along each axis.
        point: Three float64, the middle of the ball, from the corner of the first cell.
        cell: Side of a cell.
        outside: Radius of the ball; cells wholly beyond it are left out.
        centre: As for `keep_cells`; all rows of the cells that it keeps lie in the ball.
        limit: As for `keep_cells`.
        runs: Written to, four numbers a run: where its rows start, where those inside start and
            stop, and where it stops. There is room for each pair of the first two axes.

    Returns:
        How many numbers were written, how many rows the runs have, and how many of them inside.
    """
    n_rows = n_inside = 0
    written = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            near = 0.0
            for step in (point[0] - i * cell, point[1] - j * cell):
                near += max(-step, step - cell, 0.0) ** 2
            if near > outside * outside:
                continue
            reach = np.sqrt(outside * outside - near)
            first = max(int(np.floor((point[2] - reach) / cell)), 0)
            last = min(int(np.floor((point[2] + reach) / cell)) + 1, shape[2])
            low, high = first, first
            left = limit - (_square(i, centre[0]) + _square(j, centre[1]))
            if left >= 0:
                # The largest number of steps whose square, rounded down, is within the limit.
                steps = int(np.sqrt((left + 1) * ROUND - 1))
                low = max(-((steps - centre[2]) // STEPS), first)
                high = max(min((centre[2] + steps) // STEPS + 1, last), low)
            column = (i * shape[1] + j) * shape[2]
            if first < last and starts[column + first] < starts[column + last]:
                runs[written] = starts[column + first]
                runs[written + 1] = starts[column + min(low, last)]
                runs[written + 2] = starts[column + min(high, last)]
                runs[written + 3] = starts[column + last]
                n_rows += runs[written + 3] - runs[written]
                n_inside += runs[written + 2] - runs[written + 1]
                written += 4
    return written, n_rows, n_inside


@kernel(reads(_U16), _CENTRE, types.int16, writes(_U64))
def keep_cells(cells: Any, centre: Any, limit: Any, words: Any) -> None:
    """Take the rows whose cells do not lie near a point out of a bitmap.

    Args:
        cells: (64 n_words,) uint16, the cell of each row; see `simd.cell_bits`.
        centre: Three int16, as for `simd.cell_bits`.
        limit: int16, as for `simd.cell_bits`.
        words: (n_words,) uint64 of the bitmap, written to.
    """
    for place in range(len(words)):
        words[place] &= cell_bits(cells, place, centre, limit)


@inner
def _flip(rows: Any, start: Any, stop: Any, words: Any) -> None:
    for place in range(start, stop):
        row = uint64(rows[place])
        words[row >> uint64(6)] ^= uint64(1) << (row & uint64(63))


@inner
def _between(start: Any, stop: Any) -> Any:
    """Return the bits from one place, 63 at most, up to another, 1 at least."""
    upper = ~uint64(0) >> uint64(max(64 - stop, 0))
    return upper & (~uint64(0) << uint64(max(start, 0)))


INSIDE, OTHERS, BORDER = 0, 1, 2
"""What `flip_near` flips: all rows near, all others, or the rows near in cells at the border."""


@kernel(reads(F32), reads(types.int32), reads(F32), F32, reads(I64), I64, writes(_U64))
def flip_near(
    lab: Any, rows: Any, point: Any, limit: Any, runs: Any, which: Any, words: Any
) -> None:
    """Flip the bits of the rows near a point, or of others.

    Args:
        lab: (192 n_blocks,) float32 OKLab of the rows, sorted by cell; see `simd.near_bits`.
        rows: (n,) int32, their numbers.
        point: (3,) float32.
        limit: Largest squared distance that is near.
        runs: From `runs_near`.
        which: `INSIDE`, `OTHERS` or `BORDER`.
        words: uint64 words of the bitmap, written to.
    """
    middle = point[0], point[1], point[2]
    turned = ~uint64(0) if which == OTHERS else uint64(0)
    end = 0
    for run in range(0, len(runs), 4):
        if which == OTHERS:
            _flip(rows, end, runs[run], words)
        elif which == INSIDE:
            _flip(rows, runs[run + 1], runs[run + 2], words)
        for side in (run, run + 2):
            start, stop = runs[side], runs[side + 1]
            for block in range(start >> 6, (stop + 63) >> 6):
                bits = near_bits(lab, block, middle, limit) ^ turned
                bits &= _between(start - block * 64, stop - block * 64)
                while bits:
                    row = uint64(rows[block * 64 + types.int64(lowest(bits))])
                    words[row >> uint64(6)] ^= uint64(1) << (row & uint64(63))
                    bits &= bits - uint64(1)
        end = runs[run + 3]
    if which == OTHERS:
        _flip(rows, end, len(rows), words)
