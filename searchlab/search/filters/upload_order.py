"""UploadOrder: the photos from the newest to the oldest, and bitmaps of those since any day."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.search.filters.bitmaps import COMPILED_FROM, Bitmap
from searchlab.search.filters.stored_arrays import check_dtypes, check_rows, check_starts

_DTYPES: Final = {"rows": np.int32, "distinct": np.int32, "ends": np.int64, "marks": np.uint64}
# Parts into which the order is cut; a bitmap is stored at the end of each.
_PARTS: Final = 32
# Steps of a walk through the order in the time of sorting one row.
_STEPS_A_ROW: Final = 50


class UploadOrder:
    """A column of days, sorted.

    The photos since a day are the first ones of the order. Bitmaps of its first 1/32, 2/32 and so
    on are stored, so that the bitmap since any day is the nearest of them with at most 1/64 of the
    rows flipped.

    Attributes:
        rows: (n_rows,) int32, newest first, those of one day ascending.
    """

    def __init__(self, days: NDArray[np.int32], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `arrays` returned; `from_days` makes them.

        Args:
            days: (n_rows,) int32 since 1970-01-01.
            arrays: From the method `arrays`.

        Raises:
            DataError: The arrays are of another number of rows.
        """
        check_dtypes(arrays, _DTYPES)
        self._days = days
        self.rows: NDArray[np.int32] = arrays["rows"]
        self._distinct, self._ends = arrays["distinct"], arrays["ends"]
        n_words = -(-len(days) // 64)
        lengths = (len(self.rows), len(self._ends), len(arrays["marks"]))
        if lengths != (len(days), len(self._distinct), (_PARTS + 1) * n_words):
            msg = f"arrays of {lengths} for an order of {len(days)} rows"
            raise DataError(msg)
        self._marks = arrays["marks"].reshape(_PARTS + 1, n_words)
        self._stops = _stops(len(days))
        check_rows(self.rows, len(days), each_once=True)
        check_starts(np.concatenate([[0], self._ends]), len(days))
        if Bitmap.has_strays(self._marks, len(days)):
            msg = f"bitmaps of more than {len(days)} rows"
            raise DataError(msg)

    @classmethod
    def from_days(cls, days: NDArray[np.int32]) -> UploadOrder:
        """Sort (n_rows,) int32 days since 1970-01-01."""
        rows = np.argsort(-days.astype(np.int64), kind="stable").astype(np.int32)
        ordered = days[rows]
        is_last = np.ones(len(days), dtype=np.bool_)
        is_last[:-1] = ordered[1:] != ordered[:-1]
        last = np.flatnonzero(is_last)
        marks = [Bitmap.of_rows(rows[:stop], len(days)).words for stop in _stops(len(days))]
        arrays: dict[str, NDArray[Any]] = {
            "rows": rows,
            "distinct": ordered[last],
            "ends": last + 1,
            "marks": np.concatenate(marks),
        }
        return cls(days, arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file must hold, one-dimensional arrays by name."""
        return {
            "rows": self.rows,
            "distinct": self._distinct,
            "ends": self._ends,
            "marks": self._marks.reshape(-1),
        }

    def since(self, day: int) -> Bitmap:
        """Return the rows of a day, in days since 1970-01-01, and of later ones."""
        n = len(self.rows)
        # numpy searches only ascending arrays, and these days descend.
        later = bisect_right(self._distinct, -day, key=lambda distinct: -int(distinct))
        count = int(self._ends[later - 1]) if later else 0
        mark = int(np.abs(self._stops - count).argmin())
        first, last = sorted((count, int(self._stops[mark])))
        if n < COMPILED_FROM:
            return Bitmap(self._marks[mark], n) ^ Bitmap.of_rows(self.rows[first:last], n)
        from searchlab.search.filters._kernels.bits import flip_rows

        words = self._marks[mark].copy()
        flip_rows(self.rows[first:last], words)
        return Bitmap(words, n)

    def newest(self, allowed: Bitmap | None, stop: int, start: int = 0) -> NDArray[np.int64]:
        """Return the allowed rows from place `start` up to `stop`, newest first, ties by row.

        Args:
            allowed: The rows that may be returned; all if left out.
            stop: Place behind the last one wanted; there may be fewer.
            start: Place of the first one wanted, 0 or more.
        """
        if allowed is None:
            return self.rows[start:stop].astype(np.int64)
        n, count = len(self.rows), allowed.count
        stop = min(stop, count)
        if stop <= start:
            return np.zeros(0, dtype=np.int64)
        if _STEPS_A_ROW * count < stop * n // count:
            few = allowed.rows()
            order = np.argsort(-self._days[few].astype(np.int64), kind="stable")
            return few[order[start:stop]]
        if n < COMPILED_FROM:
            ordered = self.rows[allowed.mask()[self.rows]]
            return ordered[start:stop].astype(np.int64)
        from searchlab.search.filters._kernels.bits import walk_rows

        rows = np.empty(stop - start, dtype=np.int64)
        walk_rows(self.rows, allowed.words, start, rows)
        return rows


def _stops(n: int) -> NDArray[np.int64]:
    return np.arange(_PARTS + 1, dtype=np.int64) * n // _PARTS
