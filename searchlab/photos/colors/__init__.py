"""Colours: hex <-> OKLab, one perceptual distance, and the families that people name.

A shade is 24 bits, `0xRRGGBB`, in a uint32 column; its OKLab coordinates (float32) follow from it,
so a table needs to store nothing else. `distance` is the Euclidean distance in OKLab times 255:
from black to white it is 255, and most people call shades within 20 of each other by one word.

A family is a set of prototype shades (`searchlab.photos.colors.families`). The margin of a shade
to a family is its distance to the family's nearest prototype minus its distance to the nearest
prototype of any other family: negative inside the family, positive outside. A tolerance t lets
through margin <= t - 20. So 20 is exactly `color_name(shade) == name`, less narrows to the core,
more widens, 255 lets everything in, and a smaller tolerance always gives a subset.

Sums are always made in one order and without BLAS, so a shade alone and the same shade among a
million give the same bits, and rounding can never make the filter and the name disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, quote
from searchlab.photos.colors.families import FAMILIES, PROTOTYPES
from searchlab.photos.colors.oklab import (
    Lab,
    Shades,
    linear_to_srgb,
    oklab_to_shades,
    oklab_to_srgb,
    shades_from_rgb,
    shades_to_oklab,
    srgb_to_linear,
    srgb_to_oklab,
)

__all__ = [
    "DEFAULT_TOLERANCE",
    "FAMILIES",
    "FAMILY_NAMES",
    "MAX_TOLERANCE",
    "Lab",
    "Shades",
    "color_name",
    "distance",
    "family_margin",
    "family_tolerances",
    "format_hex",
    "hex_distance",
    "linear_to_srgb",
    "nearest_family",
    "oklab_to_shades",
    "oklab_to_srgb",
    "parse_hex",
    "shades_from_rgb",
    "shades_to_oklab",
    "squared_limit",
    "srgb_to_linear",
    "srgb_to_oklab",
    "within_hex",
    "within_name",
]

DEFAULT_TOLERANCE: Final = 20
MAX_TOLERANCE: Final = 255
FAMILY_NAMES: Final[tuple[str, ...]] = tuple(FAMILIES)

_HEX = re.compile(r"#[0-9a-fA-F]{6}", re.ASCII)
_CHUNK = 16_384  # Rows at a time, so that what is worked on stays in the cache.
_FEW = 256

# -- hex --------------------------------------------------------------------------------------


def parse_hex(text: str, *, name: str = "a colour") -> int:
    """Read `#rrggbb` as a 24-bit shade.

    Raises:
        InputError: It is not `#` and six hex digits; the message calls it `name`.
    """
    if not isinstance(text, str) or _HEX.fullmatch(text) is None:
        msg = f"{name} must be '#' and six hex digits such as '#1a2b3c', got {quote(text)}"
        raise InputError(msg)
    return int(text[1:], 16)


def format_hex(shade: int) -> str:
    """Write a 24-bit shade as `#rrggbb`."""
    return f"#{int(shade):06x}"


# -- distance ---------------------------------------------------------------------------------


def _squared(lab: Lab, point: Lab) -> NDArray[np.float32]:
    """Return the squared OKLab distances, (n,), of (n, 3) rows to one (3,) point."""
    total: NDArray[np.float32] = lab[:, 0] - point[0]
    total *= total
    for axis in (1, 2):
        step = lab[:, axis] - point[axis]
        step *= step
        total += step
    return total


def distance(lab: Lab, other: Lab) -> NDArray[np.float32]:
    """Return the distance between OKLab rows: Euclidean times 255, so black to white is 255.

    Args:
        lab: (n, 3) float32.
        other: (n, 3) or (3,) float32.

    Returns:
        (n,) float32.
    """
    step = np.asarray(lab, dtype=np.float32) - np.asarray(other, dtype=np.float32)
    step *= step
    total: NDArray[np.float32] = step[:, 0] + step[:, 1] + step[:, 2]
    return np.sqrt(total) * np.float32(255)


def hex_distance(first: str, second: str) -> float:
    """Return the distance between two `#rrggbb` shades, 0 to 255.

    Raises:
        InputError: One of them is not `#` and six hex digits.
    """
    lab = shades_to_oklab(np.array([parse_hex(first), parse_hex(second)], dtype=np.uint32))
    return float(distance(lab[:1], lab[1])[0])


# -- families ---------------------------------------------------------------------------------


def _prototypes() -> tuple[Lab, list[int]]:
    """Return OKLab of all prototypes, family by family, and the row at which each family starts."""
    shades = [parse_hex(h) for name in FAMILY_NAMES for h in PROTOTYPES[name]]
    counts = [len(PROTOTYPES[name]) for name in FAMILY_NAMES]
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return shades_to_oklab(np.array(shades, dtype=np.uint32)), starts


_PROTOTYPE_LAB, _STARTS = _prototypes()


def _family_squared(lab: Lab) -> NDArray[np.float32]:
    """Return (n_families, n) squared distances of (n, 3) rows to a family's nearest prototype."""
    if len(lab) <= _FEW:  # All prototypes in one step; the same sums, and so the same bits.
        total = _PROTOTYPE_LAB[:, :1] - lab[:, 0]  # (n_prototypes, n)
        total *= total
        for axis in (1, 2):
            step = _PROTOTYPE_LAB[:, axis : axis + 1] - lab[:, axis]
            step *= step
            total += step
        return np.minimum.reduceat(total, _STARTS, axis=0)
    nearest = np.full((len(FAMILY_NAMES), len(lab)), np.inf, dtype=np.float32)
    stops = [*_STARTS[1:], len(_PROTOTYPE_LAB)]
    for row, start, stop in zip(nearest, _STARTS, stops, strict=True):
        for prototype in _PROTOTYPE_LAB[start:stop]:
            np.minimum(row, _squared(lab, prototype), out=row)
    return nearest


def nearest_family(lab: Lab) -> NDArray[np.uint8]:
    """Return each row's family as a position in `FAMILY_NAMES`; a tie goes to the earlier family.

    Args:
        lab: (n, 3) float32 OKLab.

    Returns:
        (n,) uint8.
    """
    lab = np.asarray(lab, dtype=np.float32)
    families = np.empty(len(lab), dtype=np.uint8)
    for start in range(0, len(lab), _CHUNK):
        stop = start + _CHUNK
        families[start:stop] = _family_squared(lab[start:stop]).argmin(axis=0)
    return families


def family_margin(lab: Lab, name: str) -> NDArray[np.float32]:
    """Return the distance to a family's nearest prototype minus that to any other family's.

    It is at most 0 exactly for the shades that `nearest_family` puts into the family, and never
    more than 235, so that tolerance 255 lets every shade in.

    Args:
        lab: (n, 3) float32 OKLab.
        name: One of `FAMILY_NAMES`.

    Returns:
        (n,) float32, in units of `distance`.

    Raises:
        InputError: No family has that name.
    """
    family = _family_index(name)
    lab = np.asarray(lab, dtype=np.float32)
    margin = np.empty(len(lab), dtype=np.float32)
    for start in range(0, len(lab), _CHUNK):
        squared = _family_squared(lab[start : start + _CHUNK])
        margin[start : start + _CHUNK] = _margins(squared)[family]
    return margin


def family_tolerances(lab: Lab) -> NDArray[np.uint8]:
    """Find the smallest whole tolerance at which `within_name` lets a shade into each family.

    Args:
        lab: (n, 3) float32 OKLab.

    Returns:
        (n_families, n) uint8, in the order of `FAMILY_NAMES`.
    """
    lab = np.asarray(lab, dtype=np.float32)
    least = np.empty((len(FAMILY_NAMES), len(lab)), dtype=np.uint8)
    for start in range(0, len(lab), _CHUNK):
        squared = _family_squared(lab[start : start + _CHUNK])
        margins = np.ceil(_margins(squared))
        least[:, start : start + _CHUNK] = np.maximum(margins + np.float32(DEFAULT_TOLERANCE), 0)
    return least


def _margins(squared: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the margins to all families, (n_families, n), from the squared distances to them."""
    roots, nearest = np.sqrt(squared), squared.argmin(axis=0)[np.newaxis]
    best = np.take_along_axis(roots, nearest, axis=0)
    # The sign tells the nearest family, even if the roots of different squares round to one number.
    margins = np.maximum((roots - best) * np.float32(255), np.finfo(np.float32).tiny)
    np.put_along_axis(roots, nearest, np.float32(np.inf), axis=0)
    won = np.minimum((best - roots.min(axis=0)) * np.float32(255), 0)
    np.put_along_axis(margins, nearest, won, axis=0)
    most = np.float32(MAX_TOLERANCE - DEFAULT_TOLERANCE)
    return np.asarray(np.minimum(margins, most))


def _family_index(name: str) -> int:
    if name not in FAMILIES:
        msg = f"color_name must be one of {', '.join(FAMILY_NAMES)}, got {quote(name)}"
        raise InputError(msg)
    return FAMILY_NAMES.index(name)


@lru_cache(maxsize=65_536)
def _shade_name(shade: int) -> str:
    lab = shades_to_oklab(np.array([shade], dtype=np.uint32))
    return FAMILY_NAMES[int(nearest_family(lab)[0])]


def color_name(shade: str) -> str:
    """Name the family of a `#rrggbb` shade.

    Raises:
        InputError: It is not `#` and six hex digits.
    """
    return _shade_name(parse_hex(shade))


def color_names(shades: Iterable[str]) -> dict[str, str]:
    """Name the families of many `#rrggbb` shades at once; see `color_name`."""
    distinct = list(dict.fromkeys(shades))
    numbers = np.array([parse_hex(shade) for shade in distinct], dtype=np.uint32)
    families = nearest_family(shades_to_oklab(numbers)).tolist()
    return {shade: FAMILY_NAMES[family] for shade, family in zip(distinct, families, strict=True)}


# -- filters ----------------------------------------------------------------------------------


def _check_tolerance(tolerance: float) -> np.float32:
    if not 0 <= tolerance <= MAX_TOLERANCE:  # Also false for NaN.
        msg = f"color_tolerance must be 0 to {MAX_TOLERANCE}, got {tolerance!r}"
        raise InputError(msg)
    return np.float32(tolerance)


@lru_cache(maxsize=1024)
def squared_limit(tolerance: float) -> np.float32:
    """Return the largest squared OKLab distance that `within_hex` counts as within a tolerance.

    Roots and products are rounded, but keep their order, so a comparison of squares decides the
    same as one of distances.
    """
    up, down = np.float32(np.inf), np.float32(-np.inf)
    limit: np.float32 = np.square(np.float32(tolerance) / np.float32(255))
    while np.sqrt(limit) * np.float32(255) > np.float32(tolerance):
        limit = np.nextafter(limit, down)
    while np.sqrt(np.nextafter(limit, up)) * np.float32(255) <= np.float32(tolerance):
        limit = np.nextafter(limit, up)
    return limit


def within_hex(
    shades: Shades,
    shade: str,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    lab: Lab | None = None,
) -> NDArray[np.bool_]:
    """Mask the shades that lie within the tolerance of one shade, inclusive.

    Args:
        shades: (n,) uint32.
        shade: `#rrggbb`; the centre.
        tolerance: 0 is that very shade and no other, 255 is everything.
        lab: `shades_to_oklab(shades)`, if the caller has it already.

    Returns:
        (n,) bool.

    Raises:
        InputError: The shade is malformed or the tolerance out of range.
    """
    centre = parse_hex(shade)
    _check_tolerance(tolerance)
    if tolerance == 0:
        return np.asarray(shades == np.uint32(centre))
    if tolerance == MAX_TOLERANCE:  # White may lie an ulp farther than 255 from black.
        return np.ones(len(shades), dtype=np.bool_)
    lab = shades_to_oklab(shades) if lab is None else lab
    point = shades_to_oklab(np.array([centre], dtype=np.uint32))[0]
    most = squared_limit(tolerance)
    mask = np.empty(len(lab), dtype=np.bool_)
    for start in range(0, len(lab), _CHUNK):
        np.less_equal(_squared(lab[start : start + _CHUNK], point), most, out=mask[start:][:_CHUNK])
    return mask


def within_name(
    shades: Shades,
    name: str,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    lab: Lab | None = None,
) -> NDArray[np.bool_]:
    """Mask the shades of a family, or only of its core, or also of its surroundings.

    Args:
        shades: (n,) uint32.
        name: One of `FAMILY_NAMES`.
        tolerance: 20 is exactly the family, less its core, more its surroundings, 255 everything.
        lab: `shades_to_oklab(shades)`, if the caller has it already.

    Returns:
        (n,) bool.

    Raises:
        InputError: No family has that name or the tolerance is out of range.
    """
    limit = _check_tolerance(tolerance) - np.float32(DEFAULT_TOLERANCE)
    lab = shades_to_oklab(shades) if lab is None else lab
    return family_margin(lab, name) <= limit
