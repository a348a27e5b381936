"""Pillow's Lanczos resize of RGB pictures, many pixels at a time and the same to the last bit.

There are two passes, along the rows and then down the columns. Each sums bytes by weights of 22
bits and rounds to bytes. Pillow sums pixel by pixel. Here a pass sums over many pixels at a time:
in the second pass those of a row; in the first those of a few rows that were laid side by side.

References:
    Duchon, Lanczos filtering in one and two dimensions, 1979. The arithmetic is that of Pillow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from searchlab._numba import F64, I64, inner, kernel, reads, writes

I32, U8, U32 = types.int32, types.uint8, types.uint32

_BITS = 22
_REACH = 3.0
_ROWS = 32  # rows laid side by side: few enough for the fastest caches

Pixels = NDArray[np.uint32]
"""(height, width) pixels of four bytes: red, green, blue, and one that does not count."""


@inner
def _lanczos(x: Any) -> Any:
    if not -_REACH <= x < _REACH:
        return 0.0
    if x == 0.0:
        return 1.0
    wide, narrow = x / _REACH * math.pi, x * math.pi
    return math.sin(narrow) / narrow * (math.sin(wide) / wide)


@kernel(I64, F64, writes(I32), writes(I32), writes(I32, 2))
def _weigh(n_in: Any, extent: Any, first: Any, count: Any, weights: Any) -> None:
    """Find what each of the new pixels is summed from: `count` old ones from `first` on."""
    scale = extent / len(first)
    stretch = max(scale, 1.0)
    support = _REACH * stretch
    raw = np.empty(weights.shape[1], dtype=np.float64)
    for x in range(len(first)):
        centre = (x + 0.5) * scale
        start = max(int(centre - support + 0.5), 0)
        stop = min(int(centre + support + 0.5), n_in)
        total = 0.0
        for j in range(stop - start):
            raw[j] = _lanczos((j + start - centre + 0.5) * (1.0 / stretch))
            total += raw[j]
        for j in range(stop - start):
            share = raw[j] / total if total != 0.0 else raw[j]
            share *= 1 << _BITS
            weights[x, j] = int(share - 0.5) if share < 0 else int(share + 0.5)
        first[x] = start
        count[x] = stop - start


@inner
def _round(total: Any) -> Any:
    return np.uint8(min(max(total >> _BITS, 0), 255))


@kernel(reads(U32, 2), reads(I32), reads(I32), reads(I32, 2), writes(U32, 2))
def _across(pixels: Any, first: Any, count: Any, weights: Any, resized: Any) -> None:
    """Resize every row; (n_rows, width) to (n_rows, len(first))."""
    n_rows, n_in = pixels.shape
    block = np.zeros((n_in, _ROWS), dtype=np.uint32)
    columns = block.view(np.uint8)  # (n_in, 4 * _ROWS)
    made = np.empty(_ROWS, dtype=np.uint32)
    made_bytes = made.view(np.uint8)
    sums = np.empty(4 * _ROWS, dtype=np.int32)
    for top in range(0, n_rows, _ROWS):
        n = min(_ROWS, n_rows - top)
        for x in range(n_in):
            for row in range(n):
                block[x, row] = pixels[top + row, x]
        for x in range(len(first)):
            sums[:] = 1 << (_BITS - 1)
            for j in range(count[x]):
                weight = weights[x, j]
                column = columns[first[x] + j]
                for i in range(4 * _ROWS):
                    sums[i] += weight * np.int32(column[i])
            for i in range(4 * _ROWS):
                made_bytes[i] = _round(sums[i])
            for row in range(n):
                resized[top + row, x] = made[row]


@kernel(reads(U8, 2), I64, reads(I32), reads(I32), reads(I32, 2), writes(U8, 2))
def _down(lines: Any, top: Any, first: Any, count: Any, weights: Any, resized: Any) -> None:
    """Resize every column of bytes; `lines` begin with row `top`."""
    n = lines.shape[1]
    sums = np.empty(n, dtype=np.int32)
    for y in range(len(first)):
        sums[:] = 1 << (_BITS - 1)
        for j in range(count[y]):
            weight = weights[y, j]
            line = lines[first[y] + j - top]
            for i in range(n):
                sums[i] += weight * np.int32(line[i])
        for i in range(n):
            resized[y, i] = _round(sums[i])


def lanczos(
    pixels: Pixels, size: tuple[int, int], extent: tuple[float, float]
) -> NDArray[np.uint8]:
    """Resize a picture.

    Args:
        pixels: (height, width) uint32, C-contiguous, at least 1 x 1.
        size: New width and height, at least 1.
        extent: Width and height of what is resized, from the corner at the top left on; up to
            those of the picture, of whose last row and column a part may be left out.

    Returns:
        (new height, 4 * new width) uint8: four bytes a pixel.
    """
    (width, height), (n_down, n_across) = size, pixels.shape
    first, count, weights = _weights(n_down, extent[1], height)
    top, bottom = int(first[0]), int(first[-1] + count[-1])
    wide = np.empty((bottom - top, width), dtype=np.uint32)
    # Rows that no new row is summed from are left out.
    _across(pixels[top:bottom], *_weights(n_across, extent[0], width), wide)
    resized = np.empty((height, 4 * width), dtype=np.uint8)
    _down(wide.view(np.uint8), top, first, count, weights, resized)
    return resized


def _weights(
    n_in: int, extent: float, n_out: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return `first`, `count` and `weights` of `_weigh`, for the columns or rows of a picture."""
    most = math.ceil(_REACH * max(extent / n_out, 1.0)) * 2 + 1
    first, count = np.empty(n_out, dtype=np.int32), np.empty(n_out, dtype=np.int32)
    weights = np.zeros((n_out, most), dtype=np.int32)
    _weigh(n_in, extent, first, count, weights)
    return first, count, weights
