"""The order of photos where colour is all that is asked for: nearest first.

By a shade, photos come by the distance of their dominant colour from it. By a family, those that
are of it come first, then those that a wider tolerance lets in, by the tolerance that each needs.
So a smaller tolerance gives the first photos of a larger one, for a family from 20 on. By the
palette alone, those come first that have most of its colours. Ties are in the order of rows, which
is that of `photo_id`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchlab.photos.colors import (
    DEFAULT_TOLERANCE,
    MAX_TOLERANCE,
    distance,
    parse_hex,
    shades_to_oklab,
)
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.photo_filter import PhotoFilter

_WIDENED: Final = (2, 4, 8, 16, 32, 64, 128, MAX_TOLERANCE)
_FEW: Final = 4_096  # Rows that are compared at once, without looking for the near ones first.


def describe_color_order(conditions: PhotoFilter) -> str:
    """Say in words by what the photos are ordered."""
    if conditions.color_hex is not None:
        return f"distance from {conditions.color_hex}"
    if conditions.color_name is not None:
        return f"the tolerance that they need to be {conditions.color_name}"
    return "how much of them is of these colours"


def rank_by_color(
    conditions: PhotoFilter, facets: Facets, allowed: Bitmap | None, start: int, stop: int
) -> NDArray[np.int64]:
    """Rank photos by how near they come to the colours of a filter.

    Args:
        conditions: A filter with a condition on colours.
        facets: Those of the photos.
        allowed: The photos to rank; all if left out.
        start: Place of the first one wanted.
        stop: Place behind the last one wanted; there may be fewer.

    Returns:
        (m,) rows, in order.
    """
    allowed = Bitmap.full(len(facets)) if allowed is None else allowed
    stop = min(stop, allowed.count)
    if stop <= start:
        return np.zeros(0, dtype=np.int64)
    if conditions.color_hex is not None:
        rows, away = _measure_near(facets, conditions.color_hex, allowed, stop)
        return _take_least(rows, away, start, stop)
    if conditions.color_name is not None and conditions.color_tolerance <= DEFAULT_TOLERANCE:
        return allowed.part(start, stop)
    rows = allowed.rows()
    if conditions.color_name is not None:
        needed = facets.family_tolerances(conditions.color_name)[rows]
        return _take_least(rows, np.maximum(needed, DEFAULT_TOLERANCE), start, stop)
    covered = np.zeros(len(rows), dtype=np.int64)
    for color, _ in conditions.palette_colors:
        covered += facets.cover(color, conditions.color_tolerance)[rows]
    return _take_least(rows, -covered, start, stop)


def _measure_near(
    facets: Facets, shade: str, allowed: Bitmap, n_wanted: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return allowed rows among which the nearest are, as many as wanted, and their distances."""
    near = allowed
    if allowed.count > _FEW:
        for tolerance in _WIDENED:
            near = facets.within_hex(shade, tolerance, allowed)
            if near.count >= n_wanted:
                break
    rows = near.rows()
    point = shades_to_oklab(np.array([parse_hex(shade)], dtype=np.uint32))[0]
    return rows, distance(shades_to_oklab(facets.table.shades[rows]), point)


def _take_least(
    rows: NDArray[np.int64], values: NDArray[np.generic], start: int, stop: int
) -> NDArray[np.int64]:
    """Return the rows at places `start` to `stop` by value, then row, without sorting them all."""
    most = np.partition(values, stop - 1)[stop - 1]
    least = np.flatnonzero(values <= most)
    return rows[least[np.argsort(values[least], kind="stable")[start:stop]]]
