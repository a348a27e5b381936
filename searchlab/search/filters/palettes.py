"""Palettes: how much of each photo is of a colour, from the colours that its palette lists.

A condition names a family or a shade, and a least percent of the picture: `red`, `red:30`,
`#1f6f8b:10`. The percents of all palette colours within the tolerance count together. A family and
a shade are met just as by `colors.within_name` and `colors.within_hex`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, InputError, quote
from searchlab.photos.colors import (
    FAMILY_NAMES,
    MAX_TOLERANCE,
    family_tolerances,
    parse_hex,
    shades_to_oklab,
    squared_limit,
    within_hex,
    within_name,
)
from searchlab.photos.table import MAX_PALETTE, PhotoTable
from searchlab.search.filters.bitmaps import COMPILED_FROM
from searchlab.search.filters.color_grid import ColorGrid
from searchlab.search.filters.stored_arrays import check_dtypes

_PERCENT: Final = re.compile(r"[1-9][0-9]?|100", re.ASCII)
_WORD = 64


class PaletteColor(NamedTuple):
    """A colour that a photo must have.

    Attributes:
        color: A family, or `#` and six hex digits.
        percent: Least share of the picture, 1 to 100.
    """

    color: str
    percent: int = 1

    @classmethod
    def parse(cls, text: str) -> PaletteColor:
        """Read `red`, `red:30` or `#1f6f8b:30%`.

        Raises:
            InputError: It is none of these.
        """
        color, colon, percent = text.partition(":")
        number = percent.removesuffix("%")
        is_known = color in FAMILY_NAMES
        if not is_known and not color.startswith("#"):
            families = ", ".join(FAMILY_NAMES)
            msg = f"palette must name one of {families}, or a shade as #1f6f8b; got {quote(text)}"
            raise InputError(msg)
        if not is_known:
            parse_hex(color, name="palette")
        if colon and not _PERCENT.fullmatch(number):
            msg = (
                "palette must give the least percent of the picture from 1 to 100, as in red:30; "
                f"got {quote(text)}"
            )
            raise InputError(msg)
        return cls(color, int(number) if colon else 1)

    def __str__(self) -> str:
        return self.color if self.percent == 1 else f"{self.color}:{self.percent}"


def cover_plainly(table: PhotoTable, color: str, tolerance: int) -> NDArray[np.uint8]:
    """Sum up how much of each photo is of a colour; the plain way, without facets.

    Args:
        table: The photos.
        color: A family, or `#` and six hex digits.
        tolerance: 0 to 255.

    Returns:
        (n_photos,) percents, a little above 100 at most.
    """
    within = within_hex if color.startswith("#") else within_name
    covered = np.zeros(len(table), dtype=np.uint8)
    for place in range(MAX_PALETTE):
        shades, percents = table.palette_color(place)
        covered += percents * within(shades, color, tolerance=tolerance)
    return covered


class Palettes:
    """The palettes of a table, prepared so that a colour is looked up in milliseconds.

    Attributes:
        table: The photos.
    """

    def __init__(self, table: PhotoTable, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `arrays` returned; `from_table` makes them.

        Raises:
            DataError: They are of another number of photos.
        """
        check_dtypes(arrays, {"tolerances": np.uint8})
        self.table = table
        self._arrays = dict(arrays)
        n = len(table)
        if len(arrays["tolerances"]) != len(FAMILY_NAMES) * MAX_PALETTE * n:
            msg = f"palettes of {n} photos with {len(arrays['tolerances'])} tolerances"
            raise DataError(msg)
        self._tolerances = arrays["tolerances"].reshape(len(FAMILY_NAMES), MAX_PALETTE, n)
        # Colours lie one place of the palette after the other, each beginning at a word of bits.
        self._stride = -(-n // _WORD) * _WORD
        self._grid = None
        if n >= COMPILED_FROM:
            grid = {name.removeprefix("grid_"): array for name, array in arrays.items()}
            self._grid = ColorGrid(MAX_PALETTE * self._stride, grid)

    @classmethod
    def from_table(cls, table: PhotoTable) -> Palettes:
        """Prepare the palettes of a table."""
        n = len(table)
        stride = -(-n // _WORD) * _WORD
        shades = np.zeros((MAX_PALETTE, stride), dtype=np.uint32)
        for place in range(MAX_PALETTE):
            shades[place, :n] = table.palette_color(place)[0]
        tolerances = [family_tolerances(shades_to_oklab(some[:n])) for some in shades]
        arrays: dict[str, NDArray[Any]] = {"tolerances": np.stack(tolerances, axis=1).reshape(-1)}
        if n >= COMPILED_FROM:
            grid = ColorGrid.from_lab(shades_to_oklab(shades.reshape(-1)))
            arrays |= {f"grid_{name}": array for name, array in grid.arrays().items()}
        return cls(table, arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file must hold, one-dimensional arrays by name."""
        return self._arrays

    def cover(self, color: str, tolerance: int) -> NDArray[np.uint8]:
        """Sum up how much of each photo is of a colour; just as `cover_plainly`.

        Args:
            color: A family, or `#` and six hex digits.
            tolerance: 0 to 255.

        Returns:
            (n_photos,) percents, a little above 100 at most.
        """
        if not color.startswith("#"):
            family = self._tolerances[FAMILY_NAMES.index(color)]
            return self._sum(family[place] <= tolerance for place in range(MAX_PALETTE))
        if self._grid is None or tolerance in (0, MAX_TOLERANCE):
            return cover_plainly(self.table, color, tolerance)
        near = self._grid.near(_point(color), tolerance, squared_limit(tolerance)).mask()
        starts = range(0, MAX_PALETTE * self._stride, self._stride)
        return self._sum(near[start : start + len(self.table)] for start in starts)

    def _sum(self, masks: Iterable[NDArray[np.bool_]]) -> NDArray[np.uint8]:
        covered = np.zeros(len(self.table), dtype=np.uint8)
        for place, mask in enumerate(masks):
            covered += self.table.palette_color(place)[1] * mask
        return covered


@lru_cache(maxsize=1024)
def _point(shade: str) -> NDArray[np.float32]:
    point: NDArray[np.float32] = shades_to_oklab(np.array([parse_hex(shade)], dtype=np.uint32))[0]
    return point
