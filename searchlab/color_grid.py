"""ColorGrid: shades sorted into small cells of OKLab, to find those near one without the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.bitmaps import Bitmap
from searchlab.colors import Lab
from searchlab.errors import DataError

# Axes: a, b, lightness, times 255. Every 24-bit shade lies in this box; lightness runs fastest,
# as most photos lie along it.
_AXES: Final = [1, 2, 0]
_CORNER: Final = np.array([-60.0, -80.0, 0.0])
_SHAPE: Final = (33, 33, 64)
_CELL: Final = 4.0
_N_CELLS: Final = 33 * 33 * 64
# Many times what float32 may be off by: cells so near to the border are looked into.
_SLACK: Final = 0.01
# Looking each row up among others pays where at most one in so many is there.
_FEW: Final = 3


class ColorGrid:
    """Rows sorted by the cell that their shade lies in, and their OKLab in that order.

    Cells wholly within a distance are taken as they are. Shades in cells at its border are measured
    one by one, by the float32 sums of `colors.within_hex`, so that the answer is just the same.
    """

    def __init__(self, n: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `arrays` returned; `from_lab` makes them.

        Raises:
            DataError: They are of another number of rows.
        """
        self._n = n
        self._starts, self._rows, self._lab = (arrays[name] for name in ("starts", "rows", "lab"))
        lengths = (len(self._starts), len(self._rows), len(self._lab))
        if lengths != (_N_CELLS + 1, n, 3 * n):
            msg = f"a grid of {n} shades in arrays of {lengths}"
            raise DataError(msg)

    @classmethod
    def from_lab(cls, lab: Lab) -> ColorGrid:
        """Sort (n, 3) float32 OKLab into cells."""
        cells = np.zeros(len(lab), dtype=np.int32)
        for axis, corner, size in zip(_AXES, _CORNER, _SHAPE, strict=True):
            place = np.floor((lab[:, axis] * 255.0 - corner) / _CELL).astype(np.int32)
            cells = cells * np.int32(size) + np.clip(place, 0, size - 1)
        rows = np.argsort(cells, kind="stable").astype(np.int32)
        starts = np.zeros(_N_CELLS + 1, dtype=np.int64)
        np.cumsum(np.bincount(cells, minlength=_N_CELLS), out=starts[1:])
        arrays: dict[str, NDArray[Any]] = {
            "starts": starts,
            "rows": rows,
            "lab": lab[rows].reshape(-1),
        }
        return cls(len(lab), arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file must hold, one-dimensional arrays by name."""
        return {"starts": self._starts, "rows": self._rows, "lab": self._lab}

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
            tolerance: As a distance of `searchlab.colors`.
            limit: The same as a squared distance, from `colors.squared_limit`.
            among: The rows that may be found, all if left out; few are faster than all.
        """
        from searchlab.kernels.shades import flip_near, put_near, runs_near

        centre = point[_AXES] * 255.0 - _CORNER
        runs = np.empty(4 * _SHAPE[0] * _SHAPE[1], dtype=np.int64)
        radii = tolerance - _SLACK, tolerance + _SLACK
        runs = runs[: runs_near(self._starts, _SHAPE, centre, _CELL, *radii, runs)]
        if among is not None and _FEW * among.count < self._n:
            found = Bitmap.empty(self._n)
            put_near(self._lab, self._rows, point, limit, runs, among.words, found.words)
            return found
        n_touched = int((runs[3::4] - runs[::4]).sum())
        n_inside = int((runs[2::4] - runs[1::4]).sum())
        others = self._n - n_inside < n_touched
        found = Bitmap.full(self._n) if others else Bitmap.empty(self._n)
        flip_near(self._lab, self._rows, point, limit, runs, others, found.words)
        return found if among is None else found & among
