"""Kernels on colours: which rows lie within a distance of one shade.

Sums are in float32 and in the order of `searchlab.colors`, and nothing is fused, so that every
decision is the same bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types, uint64

from searchlab.kernels.compiling import F32, F64, I64, inner, kernel, reads, writes


@kernel(reads(I64), types.UniTuple(I64, 3), reads(F64), F64, F64, F64, writes(I64))
def runs_near(
    starts: Any, shape: Any, centre: Any, cell: Any, inside: Any, outside: Any, runs: Any
) -> Any:
    """Find the runs of cells that a ball touches; the cells along the last axis lie together.

    Args:
        starts: (n_cells + 1,) int64, where the rows of each cell start.
        shape: Cells along each axis.
        centre: (3,) float64 of the ball, from the corner of the first cell.
        cell: Side of a cell.
        inside: Cells wholly within this radius need no look at their rows.
        outside: Cells wholly out of this radius are left out.
        runs: Written to, four numbers a run: where its rows start, where those inside start and
            stop, and where it stops. There is room for each pair of the first two axes.

    Returns:
        How many numbers were written.
    """
    written = 0
    for i in range(shape[0]):
        for j in range(shape[1]):
            off = centre[0] - i * cell, centre[1] - j * cell
            near, far = 0.0, 0.0
            for step in off:
                near += max(-step, step - cell, 0.0) ** 2
                far += max(step, cell - step) ** 2
            if near > outside * outside:
                continue
            reach = np.sqrt(outside * outside - near)
            first = max(int(np.floor((centre[2] - reach) / cell)), 0)
            last = min(int(np.floor((centre[2] + reach) / cell)) + 1, shape[2])
            low, high = first, first
            if inside > 0 and far <= inside * inside:
                reach = np.sqrt(inside * inside - far)
                low = max(int(np.ceil((centre[2] - reach) / cell)), first)
                high = max(min(int(np.floor((centre[2] + reach) / cell)), last), low)
            column = (i * shape[1] + j) * shape[2]
            if first < last and starts[column + first] < starts[column + last]:
                runs[written] = starts[column + first]
                runs[written + 1] = starts[column + min(low, last)]
                runs[written + 2] = starts[column + min(high, last)]
                runs[written + 3] = starts[column + last]
                written += 4
    return written


@inner
def _is_near(lab: Any, place: Any, point: Any, limit: Any) -> Any:
    x, y, z = (
        lab[3 * place] - point[0],
        lab[3 * place + 1] - point[1],
        lab[3 * place + 2] - point[2],
    )
    return (x * x + y * y) + z * z <= limit


@inner
def _flip(rows: Any, start: Any, stop: Any, words: Any) -> None:
    for place in range(start, stop):
        row = uint64(rows[place])
        words[row >> uint64(6)] ^= uint64(1) << (row & uint64(63))


_AT_ONCE = 256
_SORTED = (reads(F32), reads(types.int32))
_BALL = (reads(F32), F32, reads(I64))
_WORDS = types.uint64


@kernel(*_SORTED, *_BALL, types.boolean, writes(_WORDS))
def flip_near(
    lab: Any, rows: Any, point: Any, limit: Any, runs: Any, others: Any, words: Any
) -> None:
    """Flip the bits of the rows near a point, or of all other rows.

    Args:
        lab: (3 n,) float32 OKLab of the rows, sorted by cell.
        rows: (n,) int32, their numbers.
        point: (3,) float32.
        limit: Largest squared distance that is near.
        runs: From `runs_near`.
        others: Whether to flip those that are not near.
        words: Of the bitmap, written to.
    """
    end = 0
    for run in range(0, len(runs), 4):
        if others:
            _flip(rows, end, runs[run], words)
        else:
            _flip(rows, runs[run + 1], runs[run + 2], words)
        for side in (run, run + 2):
            for place in range(runs[side], runs[side + 1]):
                flipped = uint64(_is_near(lab, place, point, limit) != others)
                row = uint64(rows[place])
                words[row >> uint64(6)] ^= flipped << (row & uint64(63))
        end = runs[run + 3]
    if others:
        _flip(rows, end, len(rows), words)


@kernel(*_SORTED, *_BALL, reads(_WORDS), writes(_WORDS))
def put_near(
    lab: Any, rows: Any, point: Any, limit: Any, runs: Any, among: Any, words: Any
) -> None:
    """Put those of a few rows into a bitmap that lie near a point.

    Args:
        lab: (3 n,) float32 OKLab of all rows, sorted by cell.
        rows: (n,) int32, their numbers.
        point: (3,) float32.
        limit: Largest squared distance that is near.
        runs: From `runs_near`.
        among: The bitmap of the few.
        words: Of the bitmap, written to.
    """
    hits = np.empty(_AT_ONCE, dtype=np.int64)
    for run in range(0, len(runs), 4):
        for part in range(3):
            for start in range(runs[run + part], runs[run + part + 1], _AT_ONCE):
                stop = min(start + _AT_ONCE, runs[run + part + 1])
                # Without branches: a wrong guess would wait for memory, one hit after the other.
                n_hits = uint64(0)
                for place in range(start, stop):
                    row = uint64(rows[place])
                    hits[n_hits] = place
                    n_hits += among[row >> uint64(6)] >> (row & uint64(63)) & uint64(1)
                for place in hits[: types.int64(n_hits)]:
                    row = uint64(rows[place])
                    near = uint64(part == 1 or _is_near(lab, place, point, limit))
                    words[row >> uint64(6)] |= near << (row & uint64(63))
