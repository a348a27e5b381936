"""ColorGrid: shades sorted into small cells of OKLab, to find those near one shade quickly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.photos.colors import Lab
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.stored_arrays import check_dtypes, check_rows, check_starts

_DTYPES: Final = {"starts": np.int64, "rows": np.int32, "lab": np.float32, "cells": np.uint8}
# Axes: a, b, lightness, times 255. Every 24-bit shade lies in this box; lightness runs fastest,
# as most photos lie along it.
_AXES: Final = [1, 2, 0]
_CORNER: Final = (-60.0, -80.0, 0.0)
_SHAPE: Final = (32, 32, 64)
_CELL: Final = 4.125
_N_CELLS: Final = 32 * 32 * 64  # So that 16 bits hold the number of a cell.
# Many times the rounding error of float32: shades of cells this near to the border are measured.
_SLACK: Final = 0.01
# Rows whose cells are compared in the time of flipping one bit.
_COMPARED: Final = 10


class ColorGrid:
    """Rows sorted by the cell that their shade lies in.

    All rows of a cell that lies wholly within the distance are near: rows of a few such cells are
    marked one by one, those of many by comparing every row's cell. Shades in cells at the border
    are measured, by the float32 sums of `colors.within_hex`, so that the answer is the same.
    """

    def __init__(self, n: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `arrays` returned; `from_lab` makes them.

        Args:
            n: Number of rows.
            arrays: From the method `arrays`.

        Raises:
            DataError: The arrays are of another number of rows, or name others.
        """
        check_dtypes(arrays, _DTYPES)
        self._n = n
        names = ("starts", "rows", "lab", "cells")
        self._starts, self._rows, self._lab, cells = (arrays[name] for name in names)
        lengths = tuple(len(arrays[name]) for name in names)
        if lengths != (_N_CELLS + 1, n, 3 * _whole(n), 2 * _whole(n)):
            msg = f"arrays of {lengths} for a grid of {n} shades"
            raise DataError(msg)
        self._cells: NDArray[np.uint16] = cells.view("<u2")
        check_rows(self._rows, n)
        check_starts(self._starts, n)

    @classmethod
    def from_lab(cls, lab: Lab) -> ColorGrid:
        """Sort (n, 3) float32 OKLab into cells."""
        n = len(lab)
        cells = np.zeros(_whole(n), dtype="<u2")
        for axis, corner, size in zip(_AXES, _CORNER, _SHAPE, strict=True):
            place = np.floor((lab[:, axis] * 255.0 - corner) / _CELL).astype(np.int32)
            cells[:n] = cells[:n] * size + np.clip(place, 0, size - 1)
        rows = np.argsort(cells[:n], kind="stable").astype(np.int32)
        starts = np.zeros(_N_CELLS + 1, dtype=np.int64)
        np.cumsum(np.bincount(cells[:n], minlength=_N_CELLS), out=starts[1:])
        blocks = np.zeros((_whole(n), 3), dtype=np.float32)
        blocks[:n] = lab[rows]
        arrays: dict[str, NDArray[Any]] = {
            "starts": starts,
            "rows": rows,
            "lab": blocks.reshape(-1, 64, 3).transpose(0, 2, 1).reshape(-1),
            "cells": cells.view(np.uint8),
        }
        return cls(n, arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file must hold, one-dimensional arrays by name."""
        cells = self._cells.view(np.uint8)
        return {"starts": self._starts, "rows": self._rows, "lab": self._lab, "cells": cells}

    def near(
        self,
        point: NDArray[np.float32],
        tolerance: float,
        limit: np.float32,
        among: Bitmap | None = None,
    ) -> Bitmap:
        """Find the rows near a point.

        Args:
            point: (3,) float32 OKLab.
            tolerance: Largest distance, in units of `colors.distance`.
            limit: The same as a squared distance, from `colors.squared_limit`.
            among: The rows that may be found; all if left out.
        """
        from searchlab.search.filters._kernels.oklab import (
            BORDER,
            INSIDE,
            OTHERS,
            flip_near,
            keep_cells,
            runs_near,
        )

        lightness, a, b = (255.0 * x for x in point.tolist())
        place = (a - _CORNER[0], b - _CORNER[1], lightness - _CORNER[2])
        centre, most = _in_steps(place, tolerance - _SLACK)
        runs = np.empty(4 * _SHAPE[0] * _SHAPE[1], dtype=np.int64)
        radius = tolerance + _SLACK
        written, n_touched, n_inside = runs_near(
            self._starts, _SHAPE, place, _CELL, radius, centre, most, runs
        )
        runs, n_others = runs[:written], self._n - n_touched
        if _COMPARED * min(n_inside, n_others) > self._n:
            which, rows = BORDER, Bitmap.full(self._n)
            keep_cells(self._cells, centre, most, rows.words)
        elif n_inside <= n_others:
            which, rows = INSIDE, Bitmap.empty(self._n)
        else:
            which, rows = OTHERS, Bitmap.full(self._n)
        flip_near(self._lab, self._rows, point, limit, runs, which, rows.words)
        if among is not None:
            np.bitwise_and(rows.words, among.words, out=rows.words)
        return rows


def _in_steps(place: tuple[float, float, float], radius: float) -> tuple[tuple[int, int, int], int]:
    """Return what `keep_cells` needs to keep none but cells wholly within a radius of a place."""
    from searchlab.search.filters._kernels.simd import ROUND, STEPS

    a, b, lightness = (round(x * (STEPS / _CELL) - STEPS / 2) for x in place)
    # Distances are to the middles of cells; their corners are farther by half a diagonal.
    reach = (radius / _CELL - math.sqrt(0.75)) * STEPS - 1
    # Each of three squares was rounded down by less than one.
    most = int(reach * reach / ROUND) - 3 if reach > 0 else -1
    return (a, b, lightness), max(most, -1)


def _whole(n: int) -> int:
    return -(-n // 64) * 64
