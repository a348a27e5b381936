"""Four ways to answer conditions over columns of photos: searchlab's, numpy's, pandas', Arrow's.

A way gets the photos once and may prepare anything. It then selects the photos that meet a
`PhotoFilter` (`select`), counts the licences of the selected photos (`counts`) and lists the newest
20 of them (`newest`). `to_mask` turns a selection into a mask, so that all can be compared. All of
them keep shades as OKLab.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from searchlab.photos.colors import (
    DEFAULT_TOLERANCE,
    family_margin,
    parse_hex,
    shades_to_oklab,
    squared_limit,
    within_hex,
)
from searchlab.photos.photo import day_number
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.photo_filter import PhotoFilter

PAGE = 20
_LISTED = ("orientation", "source", "license_type")


class Searchlab:
    """Bitmaps, sorted days and a colour grid."""

    def __init__(self, facets: Facets) -> None:
        self.facets = facets

    def select(self, conditions: PhotoFilter) -> Bitmap | None:
        """Select the photos that meet the conditions."""
        return conditions.allowed(self.facets)

    def counts(self, allowed: Bitmap) -> np.ndarray:
        """Count each licence."""
        # In the server every query makes a new bitmap, so here too its rows are counted each time.
        return self.facets.counts("license_type", Bitmap(allowed.words, allowed.n))

    def newest(self, allowed: Bitmap) -> np.ndarray:
        """List the newest."""
        return self.facets.newest(Bitmap(allowed.words, allowed.n), PAGE)

    def to_mask(self, allowed: Bitmap) -> np.ndarray:
        """Turn an answer into a mask."""
        return allowed.mask()


class _Columns:
    """What the other three ways share: a mask for each condition, joined by "and"."""

    def __init__(self, table: PhotoTable) -> None:
        self.table = table

    def select(self, conditions: PhotoFilter) -> Any:
        """Select the photos that meet the conditions."""
        selected = None
        for mask in self._masks(conditions):
            selected = mask if selected is None else self._both(selected, mask)
        return selected

    def _masks(self, conditions: PhotoFilter) -> Any:
        accepted = {name: getattr(conditions, name) for name in _LISTED}
        if conditions.photographer is not None:
            accepted["photographer_username"] = (conditions.photographer,)
        if conditions.color_name is not None and conditions.color_tolerance == DEFAULT_TOLERANCE:
            accepted["color_name"] = (conditions.color_name,)
        elif conditions.color_name is not None:
            yield self._margin_at_most(
                conditions.color_name, conditions.color_tolerance - DEFAULT_TOLERANCE
            )
        for name, values in accepted.items():
            if values:
                names = self.table.codes(name).values
                yield self._any_of(name, [names.index(value) for value in values])
        if conditions.after_date is not None:
            yield self._since(day_number(conditions.after_date, name="after_date"))
        if conditions.color_hex is not None:
            yield self._near(conditions.color_hex, conditions.color_tolerance)

    @cached_property
    def lab(self) -> np.ndarray:
        return shades_to_oklab(self.table.shades)

    def to_mask(self, allowed: Any) -> np.ndarray:
        """Turn an answer into a mask."""
        return np.asarray(allowed)


class Numpy(_Columns):
    """Boolean masks over arrays, `bincount` and a partial sort."""

    def _both(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return one & other

    def _any_of(self, name: str, codes: list[int]) -> np.ndarray:
        column = self.table.codes(name).rows
        mask = column == codes[0]
        for code in codes[1:]:
            mask |= column == code
        return mask

    def _since(self, day: int) -> np.ndarray:
        return self.table.uploaded_days >= day

    def _near(self, shade: str, tolerance: int) -> np.ndarray:
        return within_hex(self.table.shades, shade, tolerance=tolerance, lab=self.lab)

    def _margin_at_most(self, family: str, limit: int) -> np.ndarray:
        return family_margin(self.lab, family) <= limit

    def counts(self, allowed: np.ndarray) -> np.ndarray:
        """Count each licence."""
        codes = self.table.codes("license_type")
        return np.bincount(codes.rows[allowed], minlength=len(codes.values))

    def newest(self, allowed: np.ndarray) -> np.ndarray:
        """List the newest."""
        rows = np.flatnonzero(allowed)
        # One number per row, by which newer days come first, then lower rows.
        keys = rows - self.table.uploaded_days[rows].astype(np.int64) * len(self.table)
        first = np.argpartition(keys, PAGE)[:PAGE] if len(keys) > PAGE else np.arange(len(keys))
        return rows[first[np.argsort(keys[first])]]


class Pandas(Numpy):
    """Categorical columns of a data frame."""

    def __init__(self, table: PhotoTable) -> None:
        import pandas as pd

        super().__init__(table)
        names = (*_LISTED, "photographer_username", "color_name")
        self.columns = {
            name: pd.Series(pd.Categorical.from_codes(codes.rows, codes.values))
            for name, codes in ((name, table.codes(name)) for name in names)
        }
        self.days = pd.Series(np.array(table.uploaded_days))
        self.planes = [pd.Series(np.ascontiguousarray(self.lab[:, axis])) for axis in range(3)]

    def _any_of(self, name: str, codes: list[int]) -> Any:
        values = [self.table.codes(name).values[code] for code in codes]
        column = self.columns[name]
        return column == values[0] if len(values) == 1 else column.isin(values)

    def _since(self, day: int) -> Any:
        return self.days >= day

    def _near(self, shade: str, tolerance: int) -> Any:
        steps = [plane - value for plane, value in zip(self.planes, _point(shade), strict=True)]
        total = steps[0] * steps[0] + steps[1] * steps[1] + steps[2] * steps[2]
        return total <= squared_limit(tolerance)

    def counts(self, allowed: Any) -> np.ndarray:
        """Count each licence."""
        counts = self.columns["license_type"][allowed].value_counts()
        return counts.reindex(self.table.codes("license_type").values).to_numpy()

    def newest(self, allowed: Any) -> np.ndarray:
        """List the newest."""
        return self.days[allowed].nlargest(PAGE, keep="first").index.to_numpy()


class Arrow(_Columns):
    """Arrow arrays and the functions of `pyarrow.compute`."""

    def __init__(self, table: PhotoTable) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        super().__init__(table)
        self.pa, self.pc = pa, pc
        names = (*_LISTED, "photographer_username", "color_name")
        self.columns = {name: pa.array(table.codes(name).rows) for name in names}
        self.days = pa.array(table.uploaded_days)
        self.planes = [pa.array(np.ascontiguousarray(self.lab[:, axis])) for axis in range(3)]

    def _both(self, one: Any, other: Any) -> Any:
        return self.pc.and_(one, other)

    def _any_of(self, name: str, codes: list[int]) -> Any:
        if len(codes) == 1:
            return self.pc.equal(self.columns[name], self.pa.scalar(codes[0], self.pa.int32()))
        return self.pc.is_in(self.columns[name], value_set=self.pa.array(codes, self.pa.int32()))

    def _since(self, day: int) -> Any:
        return self.pc.greater_equal(self.days, self.pa.scalar(day, self.pa.int32()))

    def _near(self, shade: str, tolerance: int) -> Any:
        squares = []
        for plane, value in zip(self.planes, _point(shade), strict=True):
            step = self.pc.subtract(plane, self.pa.scalar(value, self.pa.float32()))
            squares.append(self.pc.multiply(step, step))
        total = self.pc.add(self.pc.add(squares[0], squares[1]), squares[2])
        return self.pc.less_equal(total, self.pa.scalar(squared_limit(tolerance)))

    def _margin_at_most(self, family: str, limit: int) -> Any:
        return self.pa.array(family_margin(self.lab, family) <= limit)

    def counts(self, allowed: Any) -> np.ndarray:
        """Count each licence."""
        pairs = self.pc.value_counts(self.columns["license_type"].filter(allowed))
        counts = np.zeros(len(self.table.codes("license_type").values), dtype=np.int64)
        counts[pairs.field("values").to_numpy()] = pairs.field("counts").to_numpy()
        return counts

    def newest(self, allowed: Any) -> np.ndarray:
        """List the newest."""
        rows = self.pc.indices_nonzero(allowed)
        table = self.pa.table({"row": rows, "day": self.days.filter(allowed)})
        order = [("day", "descending"), ("row", "ascending")]
        first = self.pc.select_k_unstable(table, PAGE, sort_keys=order)
        return rows.take(first).to_numpy().astype(np.int64)

    def to_mask(self, allowed: Any) -> np.ndarray:
        """Turn an answer into a mask."""
        return allowed.to_numpy(zero_copy_only=False)


def _point(shade: str) -> np.ndarray:
    return shades_to_oklab(np.array([parse_hex(shade)], dtype=np.uint32))[0]


OTHERS: dict[str, Callable[[PhotoTable], Any]] = {
    "numpy": Numpy,
    "pandas": Pandas,
    "pyarrow": Arrow,
}
