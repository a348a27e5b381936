"""Facets: precomputed sets of photos, from which filters are answered.

Every set is a bitmap or becomes one in microseconds: the values of the coded columns
(`searchlab.search.filters.value_sets`), the days (`searchlab.search.filters.upload_order`), the
shades near one (`searchlab.search.filters.color_grid`), the families of colours and the palettes
(`searchlab.search.filters.palettes`). All of it is
some 210 bytes a photo, made once for a snapshot and opened by memory map.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, damaged_file
from searchlab.photos.colors import (
    FAMILY_NAMES,
    MAX_TOLERANCE,
    Lab,
    family_tolerances,
    parse_hex,
    shades_to_oklab,
    squared_limit,
    within_hex,
)
from searchlab.photos.columns import open_columns, save_columns
from searchlab.photos.table import CODED_COLUMNS, PhotoTable
from searchlab.search.filters.bitmaps import COMPILED_FROM, Bitmap
from searchlab.search.filters.color_grid import ColorGrid
from searchlab.search.filters.palettes import Palettes
from searchlab.search.filters.stored_arrays import check_dtypes
from searchlab.search.filters.upload_order import UploadOrder
from searchlab.search.filters.value_sets import ValueSets


class Facets:
    """Sets of photos by value, by day and by colour.

    For a table in memory each set is computed when it is first needed.

    Attributes:
        table: The photos.
    """

    def __init__(self, table: PhotoTable) -> None:
        self.table = table
        self._stored: Mapping[str, NDArray[Any]] | None = None
        self._values: dict[str, ValueSets] = {}
        if self._is_large:
            # Imported here, so that no request waits for numba.
            from searchlab.search.filters._kernels import bits  # noqa: F401

    @property
    def _is_large(self) -> bool:
        return len(self.table) >= COMPILED_FROM

    @classmethod
    def open(cls, path: Path, table: PhotoTable) -> Facets:
        """Open what `save` wrote, by memory map.

        Args:
            path: The file.
            table: The photos that it was made of.

        Raises:
            DataError: The file is missing, cut short, or not of this table.
        """
        facets = cls(table)
        facets._stored = open_columns(path)
        try:
            facets._make_all()
        except (KeyError, ValueError, DataError) as error:
            raise damaged_file(path, f"hold the facets of {len(table)} photos", error) from error
        return facets

    def save(self, path: Path) -> None:
        """Make what is not made yet, and write all of it as one file of columns."""
        arrays = {
            f"{part}.{name}": array
            for part, made in self._make_all().items()
            for name, array in made.arrays().items()
        }
        save_columns(path, {**arrays, "families": self._families.reshape(-1)})

    def __len__(self) -> int:
        return len(self.table)

    def any_of(self, name: str, values: Sequence[str]) -> Bitmap:
        """Return the photos with one of some values of a coded column; unknown ones match none."""
        known = self.table.codes(name).values
        places = [bisect_left(known, value) for value in values]
        pairs = zip(places, values, strict=True)
        return self._sets(name).any_of([p for p, v in pairs if known[p : p + 1] == [v]])

    def counts(self, name: str, allowed: Bitmap | None = None) -> NDArray[np.int64]:
        """Count the allowed photos of each value of a coded column; (n_values,) int64."""
        return self._sets(name).counts(allowed)

    def since(self, day: int) -> Bitmap:
        """Return the photos of a day, in days since 1970-01-01, and of later ones."""
        return self._order.since(day)

    def until(self, day: int) -> Bitmap:
        """Return the photos of a day, in days since 1970-01-01, and of earlier ones."""
        return Bitmap.full(len(self)) - self.since(day + 1)

    def newest(self, allowed: Bitmap | None, stop: int, start: int = 0) -> NDArray[np.int64]:
        """Return the allowed rows from place `start` up to `stop`, newest first, ties by row."""
        return self._order.newest(allowed, stop, start)

    def within_hex(self, shade: str, tolerance: int, among: Bitmap | None = None) -> Bitmap:
        """Return the photos within a tolerance of a shade; just as `colors.within_hex`.

        Args:
            shade: `#rrggbb`.
            tolerance: 0 to 255.
            among: The photos that may be found; all if left out.
        """
        shades, n = self.table.shades, len(self)
        if not self._is_large or tolerance == MAX_TOLERANCE:
            lab = self._lab if 0 < tolerance < MAX_TOLERANCE else None
            matching = Bitmap.of_mask(within_hex(shades, shade, tolerance=tolerance, lab=lab))
            return matching if among is None else matching & among
        number = parse_hex(shade)
        matching = self._grid.near(_point(number), tolerance, squared_limit(tolerance), among)
        if tolerance:
            return matching
        numbers = matching.rows()
        return Bitmap.of_rows(numbers[shades[numbers] == number], n)

    def within_name(self, family: str, tolerance: int) -> Bitmap:
        """Return the photos of a family of colours; just as `colors.within_name`."""
        return Bitmap.of_mask(self.family_tolerances(family) <= tolerance)

    def family_tolerances(self, family: str) -> NDArray[np.uint8]:
        """Return the smallest tolerance at which each photo is of a family; (n,) uint8."""
        return np.asarray(self._families[FAMILY_NAMES.index(family)])

    def cover(self, color: str, tolerance: int) -> NDArray[np.uint8]:
        """Return how much of each photo is of a colour, as `Palettes.cover` does; (n,) percents."""
        return self._palettes.cover(color, tolerance)

    def _make_all(self) -> dict[str, ValueSets | UploadOrder | ColorGrid | Palettes]:
        parts: dict[str, ValueSets | UploadOrder | ColorGrid | Palettes]
        parts = {name: self._sets(name) for name in CODED_COLUMNS}
        parts["uploaded"] = self._order
        parts["palette"] = self._palettes
        if self._is_large:
            parts["shade"] = self._grid
        _ = self._families
        return parts

    def _part(self, part: str) -> dict[str, NDArray[Any]] | None:
        if self._stored is None:
            return None
        named = ((name.partition("."), array) for name, array in self._stored.items())
        return {name: array for (first, _, name), array in named if first == part}

    def _sets(self, name: str) -> ValueSets:
        if name not in self._values:
            codes, stored = self.table.codes(name), self._part(name)
            self._values[name] = (
                ValueSets.from_codes(codes.rows, len(codes.values))
                if stored is None
                else ValueSets(codes.rows, len(codes.values), stored)
            )
        return self._values[name]

    @cached_property
    def _order(self) -> UploadOrder:
        stored = self._part("uploaded")
        if stored is None:
            return UploadOrder.from_days(self.table.uploaded_days)
        return UploadOrder(self.table.uploaded_days, stored)

    @cached_property
    def _lab(self) -> Lab:
        return shades_to_oklab(self.table.shades)

    @cached_property
    def _grid(self) -> ColorGrid:
        stored = self._part("shade")
        if stored is None:
            return ColorGrid.from_lab(shades_to_oklab(self.table.shades))
        return ColorGrid(len(self), stored)

    @cached_property
    def _palettes(self) -> Palettes:
        stored = self._part("palette")
        return Palettes.from_table(self.table) if stored is None else Palettes(self.table, stored)

    @cached_property
    def _families(self) -> NDArray[np.uint8]:
        if self._stored is None:
            return family_tolerances(shades_to_oklab(self.table.shades))
        check_dtypes(self._stored, {"families": np.uint8})
        return self._stored["families"].reshape(len(FAMILY_NAMES), len(self))


@lru_cache(maxsize=1024)
def _point(shade: int) -> NDArray[np.float32]:
    point: NDArray[np.float32] = shades_to_oklab(np.array([shade], dtype=np.uint32))[0]
    return point
