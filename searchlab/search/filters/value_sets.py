"""ValueSets: which rows have each value of a coded column, as bitmaps and as lists of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError
from searchlab.search.filters.bitmaps import COMPILED_FROM, Bitmap
from searchlab.search.filters.stored_arrays import check_dtypes, check_rows, check_starts

# A list of fewer rows than that is counted as fast as a bitmap, and is four times smaller at most.
_DENSE: Final = 128
_DTYPES: Final = {
    "sizes": np.int64,
    "places": np.int32,
    "starts": np.int64,
    "bits": np.uint64,
    "rows": np.int32,
}
# Up to this many bitmaps are counted one by one, which is as fast as by planes.
_FEW: Final = 5
# In columns with more values than that, planes count only the values that have a bitmap.
_MANY: Final = 128
# Words that are counted for one value each in the time of one row that is looked up.
_WORDS_A_ROW: Final = 20


class ValueSets:
    """The rows of each value of one column.

    A value that at least one row in 128 has is stored as a bitmap, a rarer one as an ascending list
    of rows. So a column of a million photographers takes no more room than its row numbers, and no
    column takes more than 17 bytes a row. For counting, the values are numbered and these numbers
    are stored bit by bit: a plane is the bitmap of the rows whose value's number has that bit set.

    Attributes:
        sizes: (n_values,) int64, rows of each value.
    """

    def __init__(
        self,
        codes: NDArray[np.int32],
        n_values: int,
        arrays: Mapping[str, NDArray[Any]],
        *,
        with_planes: bool = True,
    ) -> None:
        """Take over what `arrays` returned; `from_codes` makes them.

        Args:
            codes: (n_rows,) int32, each row's value as a position among the column's values.
            n_values: Values that the column has.
            arrays: From the method `arrays`.
            with_planes: Whether the planes are among the arrays; they are computed if not.

        Raises:
            DataError: The arrays are of another column.
        """
        check_dtypes(arrays, _DTYPES | ({"planes": np.uint64} if with_planes else {}))
        self._codes = codes
        self.sizes = arrays["sizes"]
        self._places, self._starts, self._rows = (arrays[n] for n in ("places", "starts", "rows"))
        self._dense = np.flatnonzero(self._places >= 0)
        n_words, n_dense = -(-len(codes) // 64), len(self._dense)
        self._is_listed = not _FEW < n_values <= _MANY
        self._counted = n_dense if self._is_listed else n_values
        lengths = tuple(len(arrays[name]) for name in ("sizes", "places", "starts", "bits"))
        if lengths != (n_values, n_values, n_values + 1, n_dense * n_words):
            msg = f"arrays of {lengths} for {n_values} values of {len(codes)} rows"
            raise DataError(msg)
        self._bits = arrays["bits"].reshape(n_dense, n_words)
        self._planes = arrays["planes"] if with_planes else self._slice_codes()
        if len(self._planes) != self._n_planes * n_words:
            msg = f"{len(self._planes)} words for {self._n_planes} planes of {len(codes)} rows"
            raise DataError(msg)
        check_rows(self._rows, len(codes))
        check_starts(self._starts, len(self._rows))
        if not np.array_equal(self._places[self._dense], np.arange(n_dense)) or Bitmap.has_strays(
            self._bits, len(codes)
        ):
            msg = f"bitmaps of other values, or of more than {len(codes)} rows"
            raise DataError(msg)

    @classmethod
    def from_codes(cls, codes: NDArray[np.int32], n_values: int) -> ValueSets:
        """Sort the rows of a column by their values.

        Args:
            codes: (n_rows,) int32, 0 to `n_values` - 1.
            n_values: Values that there are.
        """
        sizes = np.bincount(codes, minlength=n_values).astype(np.int64)
        dense = _DENSE * sizes >= max(len(codes), 1)
        places = np.where(dense, np.cumsum(dense) - 1, -1).astype(np.int32)
        bits = [Bitmap.of_mask(codes == code).words for code in np.flatnonzero(dense)]
        rare = np.flatnonzero(~dense[codes]) if n_values else np.zeros(0, dtype=np.int64)
        starts = np.zeros(n_values + 1, dtype=np.int64)
        np.cumsum(np.where(dense, 0, sizes), out=starts[1:])
        arrays: dict[str, NDArray[Any]] = {
            "sizes": sizes,
            "places": places,
            "bits": np.concatenate([np.zeros(0, dtype=np.uint64), *bits]),
            "starts": starts,
            "rows": rare[np.argsort(codes[rare], kind="stable")].astype(np.int32),
        }
        return cls(codes, n_values, arrays, with_planes=False)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file must hold, one-dimensional arrays by name."""
        return {
            "sizes": self.sizes,
            "places": self._places,
            "bits": self._bits.reshape(-1),
            "starts": self._starts,
            "rows": self._rows,
            "planes": self._planes,
        }

    def any_of(self, values: Iterable[int]) -> Bitmap:
        """Return the rows that have one of some values, each given by its number."""
        n = len(self._codes)
        dense = [value for value in values if self._places[value] >= 0]
        lists = [self._list(value) for value in values if self._places[value] < 0]
        sets = [Bitmap(self._bits[self._places[value]], n) for value in dense]
        if lists:
            sets.append(Bitmap.of_rows(np.concatenate(lists), n))
        return Bitmap.any_of(sets, n)

    def counts(self, allowed: Bitmap | None = None) -> NDArray[np.int64]:
        """Count the rows of each value, (n_values,) int64; all rows if `allowed` is left out."""
        if allowed is None:
            return self.sizes
        if len(self._codes) < COMPILED_FROM:
            return np.bincount(self._codes[allowed.rows()], minlength=len(self.sizes))
        from searchlab.search.filters._kernels.bits import (
            count_codes,
            count_listed,
            count_shared,
            count_sliced,
        )

        counts = np.zeros(len(self.sizes), dtype=np.int64)
        n_looked_up = len(self._rows) if self._is_listed else 0
        n_compared = len(allowed.words) * self._counted
        if allowed.count < n_looked_up + n_compared // _WORDS_A_ROW:
            count_codes(allowed.words, self._codes, counts)
            return counts
        counted = np.zeros(self._counted, dtype=np.int64)
        if self._n_planes:
            count_sliced(self._planes, allowed.words, counted)
        else:
            count_shared(self._bits.reshape(-1), allowed.words, counted)
        if not self._is_listed:
            return counted
        counts[self._dense] = counted
        count_listed(self._rows, self._starts, allowed.words, counts)
        return counts

    @property
    def _n_planes(self) -> int:
        if self._counted <= _FEW:
            return 0
        # Rows of values that are not counted have the number after the last one.
        return (self._counted if self._is_listed else self._counted - 1).bit_length()

    def _slice_codes(self) -> NDArray[np.uint64]:
        if not self._n_planes:
            return np.zeros(0, dtype=np.uint64)
        numbers = self._codes
        if self._is_listed:
            numbers = np.where(self._places >= 0, self._places, self._counted)[numbers]
        masks = ((numbers >> bit & 1).astype(np.bool_) for bit in range(self._n_planes))
        return np.concatenate([Bitmap.of_mask(mask).words for mask in masks])

    def _list(self, value: int) -> NDArray[np.int32]:
        return self._rows[self._starts[value] : self._starts[value + 1]]
