"""PhotoFilter: which photos may be found, as a bitmap, as a mask and in words; counts of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, quote
from searchlab.photos.colors import (
    DEFAULT_TOLERANCE,
    FAMILIES,
    MAX_TOLERANCE,
    parse_hex,
    within_hex,
    within_name,
)
from searchlab.photos.photo import ORIENTATIONS, day_number
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.palettes import PaletteColor, cover_plainly

FREE_LICENSE = "free"
_DATES = ("after_date", "before_date")
_CONDITIONS = (
    *("color_name", "color_hex", "palette", "orientation", "source", "license_type"),
    *("photographer", *_DATES),
)


@dataclass(frozen=True, kw_only=True)
class PhotoFilter:
    """Conditions on photos: any value within a condition, all conditions together.

    Attributes:
        color_name: A family of colours; not together with `color_hex`.
        color_hex: `#` and six hex digits.
        color_tolerance: 0 (strict) to 255 (all photos), measured from the shade or from the border
            of the family.
        palette: Colours that the photo must have, all of them: a family or a shade, and after a
            colon the least percent of the picture, as in `red`, `red:30`, `#1f6f8b:10`. The
            tolerance is that of `color_tolerance`.
        orientation: Any of landscape, portrait, square.
        source: Any of the table's sources.
        license_type: Any of the table's licences, or `free`.
        photographer: Exact username; empty is the same as none.
        after_date: `YYYY-MM-DD`; that day and later.
        before_date: `YYYY-MM-DD`; that day and earlier.

    Raises:
        InputError: A value that no photo could ever meet, or two colours at once.
    """

    color_name: str | None = None
    color_hex: str | None = None
    color_tolerance: int = DEFAULT_TOLERANCE
    palette: tuple[str, ...] = ()
    orientation: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    license_type: tuple[str, ...] = ()
    photographer: str | None = None
    after_date: str | None = None
    before_date: str | None = None

    def __post_init__(self) -> None:
        for name in ("palette", "orientation", "source", "license_type"):
            object.__setattr__(self, name, _values(name, getattr(self, name)))
        object.__setattr__(self, "palette", tuple(str(color) for color in self.palette_colors))
        for name in ("color_name", "color_hex", "photographer", *_DATES):
            if not isinstance(getattr(self, name), str | None):
                msg = f"{name} must be a string, got {quote(getattr(self, name))}"
                raise InputError(msg)
        if self.photographer is not None and not self.photographer.strip():
            object.__setattr__(self, "photographer", None)
        if self.color_name is not None and self.color_hex is not None:
            msg = (
                "color_name and color_hex cannot be combined, "
                f"got {quote(self.color_name)} and {quote(self.color_hex)}; keep one"
            )
            raise InputError(msg)
        if self.color_name is not None:
            _check_known("color_name", (self.color_name,), list(FAMILIES))
        if self.color_hex is not None:
            parse_hex(self.color_hex, name="color_hex")
        tolerance = self.color_tolerance
        if (
            isinstance(tolerance, bool)
            or not isinstance(tolerance, int)
            or not 0 <= tolerance <= MAX_TOLERANCE
        ):
            limits = f"from 0 to {MAX_TOLERANCE}"
            msg = f"color_tolerance must be an integer {limits}, got {quote(tolerance)}"
            raise InputError(msg)
        _check_known("orientation", self.orientation, list(ORIENTATIONS))
        first, last = self._days()
        if first is not None and last is not None and first > last:
            got = f"{self.before_date} and {self.after_date}"
            msg = f"before_date must be the day of after_date or later, got {got}"
            raise InputError(msg)

    def _days(self) -> tuple[int | None, int | None]:
        first, last = (
            None if (day := getattr(self, name)) is None else day_number(day, name=name)
            for name in _DATES
        )
        return first, last

    @property
    def palette_colors(self) -> list[PaletteColor]:
        """The conditions on the palette."""
        return [PaletteColor.parse(text) for text in self.palette]

    @property
    def has_color(self) -> bool:
        """Whether a condition is on colours."""
        return bool(self.color_name or self.color_hex or self.palette)

    @property
    def is_empty(self) -> bool:
        """Whether no condition is set; a tolerance alone is no condition."""
        return not any(getattr(self, name) not in (None, ()) for name in _CONDITIONS)

    def _conditions(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in _CONDITIONS}
        return {n: v for n, v in values.items() if v is not None and v != ()}

    def allowed(self, facets: Facets) -> Bitmap | None:
        """Find the photos that meet every condition.

        Args:
            facets: The facets of the photos.

        Returns:
            The rows of these photos; None where no condition is set.

        Raises:
            InputError: A source or licence that no photo has.
        """
        self._check_known_to(facets.table)
        sets = [facets.any_of(name, values) for name, values in self._listed()]
        if self.photographer is not None:
            sets.append(facets.any_of("photographer_username", (self.photographer,)))
        first, last = self._days()
        if first is not None:
            sets.append(facets.since(first))
        if last is not None:
            sets.append(facets.until(last))
        if self.color_name is not None and self.color_tolerance == DEFAULT_TOLERANCE:
            sets.append(facets.any_of("color_name", (self.color_name,)))
        elif self.color_name is not None:
            sets.append(facets.within_name(self.color_name, self.color_tolerance))
        for color, percent in self.palette_colors:
            sets.append(Bitmap.of_mask(facets.cover(color, self.color_tolerance) >= percent))
        rows = Bitmap.all_of(sets, len(facets)) if sets else None
        if self.color_hex is not None:
            # Last, as shades are compared for each query, and only those of the rows left.
            rows = facets.within_hex(self.color_hex, self.color_tolerance, rows)
        return rows

    def mask(self, table: PhotoTable) -> NDArray[np.bool_]:
        """Say for each photo whether it meets every condition; the plain way, without facets.

        Args:
            table: The photos.

        Returns:
            (n_photos,) bool.

        Raises:
            InputError: A source or licence that no photo has.
        """
        self._check_known_to(table)
        mask = np.ones(len(table), dtype=np.bool_)
        for name, values in self._listed():
            mask &= _any_of(table, name, values)
        if self.photographer is not None:
            mask &= _any_of(table, "photographer_username", (self.photographer,))
        first, last = self._days()
        if first is not None:
            mask &= table.uploaded_days >= first
        if last is not None:
            mask &= table.uploaded_days <= last
        if self.color_name is not None:
            mask &= self._family_mask(table, self.color_name)
        if self.color_hex is not None:
            mask &= within_hex(table.shades, self.color_hex, tolerance=self.color_tolerance)
        for color, percent in self.palette_colors:
            mask &= cover_plainly(table, color, self.color_tolerance) >= percent
        return mask

    def _listed(self) -> list[tuple[str, tuple[str, ...]]]:
        names = ("orientation", "source", "license_type")
        return [(name, getattr(self, name)) for name in names if getattr(self, name)]

    def _check_known_to(self, table: PhotoTable) -> None:
        for name, values in self._listed():
            if name != "orientation" and not _are_known(table, name, values):
                _check_known(name, values, known_values(table, name))

    def _family_mask(self, table: PhotoTable, family: str) -> NDArray[np.bool_]:
        if self.color_tolerance == DEFAULT_TOLERANCE:
            return _any_of(table, "color_name", (family,))
        return within_name(table.shades, family, tolerance=self.color_tolerance)

    def describe(self) -> str:
        """Say in words what the filter lets through.

        >>> PhotoFilter(orientation=("landscape", "square"), after_date="2020-01-31").describe()
        'orientation is landscape or square, and uploaded on or after 2020-01-31'
        """
        parts = []
        if self.color_name is not None:
            width = "" if self.color_tolerance == DEFAULT_TOLERANCE else self._width()
            parts.append(f"colour is {self.color_name}{width}")
        if self.color_hex is not None:
            parts.append(f"colour is within {self.color_tolerance} of {self.color_hex}")
        for color, percent in self.palette_colors:
            where = "in it" if percent == 1 else f"on {percent} % of it or more"
            width = "" if self.color_tolerance == DEFAULT_TOLERANCE else self._width()
            parts.append(f"{color} is {where}{width}")
        for name in ("orientation", "source", "license_type"):
            if getattr(self, name):
                parts.append(f"{name.replace('_type', '')} is {' or '.join(getattr(self, name))}")
        if self.photographer is not None:
            parts.append(f"photographer is {' '.join(self.photographer.split())}")
        if self.after_date is not None:
            parts.append(f"uploaded on or after {self.after_date}")
        if self.before_date is not None:
            parts.append(f"uploaded on or before {self.before_date}")
        return ", and ".join(parts) or "any photo"

    def _width(self) -> str:
        kind = "narrowed" if self.color_tolerance < DEFAULT_TOLERANCE else "widened"
        return f" ({kind} to tolerance {self.color_tolerance})"

    def to_dict(self) -> dict[str, Any]:
        """Return the conditions that are set, as plain values."""
        values = {n: list(v) if isinstance(v, tuple) else v for n, v in self._conditions().items()}
        if self.color_tolerance != DEFAULT_TOLERANCE:
            values["color_tolerance"] = self.color_tolerance
        return values


def known_values(table: PhotoTable, name: str) -> list[str]:
    """List the values that a filter on a coded column accepts, sorted.

    For licences, `free` is always among them: the upstream libraries' own free licences.
    """
    values = set(table.codes(name).values)
    return sorted(values | {FREE_LICENSE} if name == "license_type" else values)


def facet_counts(
    photos: Facets | PhotoTable, name: str, allowed: Bitmap | NDArray[np.bool_] | None = None
) -> dict[str, int]:
    """Count the photos of each value of a coded column, most frequent first.

    Of licences, `free` is counted even where no photo has it.

    Args:
        photos: The facets of the photos, or their table.
        name: One of `CODED_COLUMNS`.
        allowed: The photos to count, a bitmap or (n_photos,) bool; all if left out.
    """
    if isinstance(photos, Facets):
        bitmap = Bitmap.of_mask(allowed) if isinstance(allowed, np.ndarray) else allowed
        table, counts = photos.table, photos.counts(name, bitmap)
    else:
        table, codes = photos, photos.codes(name).rows
        mask = allowed.mask() if isinstance(allowed, Bitmap) else allowed
        counted_codes = codes if mask is None else codes[mask]
        counts = np.bincount(counted_codes, minlength=len(table.codes(name).values))
    by_value = dict.fromkeys(known_values(table, name), 0)
    by_value |= dict(zip(table.codes(name).values, counts.tolist(), strict=True))
    return dict(sorted(by_value.items(), key=lambda pair: (-pair[1], pair[0])))


def _any_of(table: PhotoTable, name: str, wanted_values: Sequence[str]) -> NDArray[np.bool_]:
    codes = table.codes(name)
    allowed = np.array([value in wanted_values for value in codes.values], dtype=np.bool_)
    if not len(allowed):
        return np.zeros(len(table), dtype=np.bool_)
    return allowed[codes.rows]


def _values(name: str, raw: Any) -> tuple[str, ...]:
    words = (raw,) if isinstance(raw, str) else raw or ()
    if not isinstance(words, Iterable) or not all(isinstance(value, str) for value in words):
        msg = f"{name} must be words, got {quote(raw)}"
        raise InputError(msg)
    return tuple(dict.fromkeys(words))


def _are_known(table: PhotoTable, name: str, values: Sequence[str]) -> bool:
    # Without `known_values`, as sorting that list costs more than the whole filter.
    always_known = (FREE_LICENSE,) if name == "license_type" else ()
    return all(value in table.codes(name).values or value in always_known for value in values)


def _check_known(name: str, values: Sequence[str], known: Sequence[str]) -> None:
    for value in values:
        if value not in known:
            listed = ", ".join(known[:30]) + (" ..." if len(known) > 30 else "")
            msg = f"{name} must be one of {listed}; got {quote(value)}"
            raise InputError(msg)


EVERY_PHOTO = PhotoFilter()
"""No condition at all; one for every query without any, since checking its values takes time."""
