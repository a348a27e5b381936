"""Colours: hex <-> OKLab, one perceptual distance, and the families that people name.

A shade is 24 bits, `0xRRGGBB`, in a uint32 column; its OKLab coordinates (float32) follow from it,
so a table needs to store nothing else. `distance` is Euclid in OKLab times 255: black to white is
255, and shades within 20 of each other get the same colour word from most people.

A family is a set of prototype shades (`searchlab.color_families`). The margin of a shade to a
family is its distance to the family's nearest prototype minus its distance to the nearest
prototype of any other family: negative inside the family, positive outside. A tolerance t lets
through margin <= t - 20. So 20 is exactly `color_name(shade) == name`, less narrows to the core,
more widens, 255 lets everything in, and a smaller tolerance always gives a subset.

Sums are kept in one order and free of BLAS, so a shade alone and the same shade among a million
give the same bits, and no rounding can separate the filter from the name.

References:
    Bjoern Ottosson, A perceptual color space for image processing, 2020.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchlab.color_families import FAMILIES, PROTOTYPES
from searchlab.errors import InputError, shown

__all__ = [
    "DEFAULT_TOLERANCE",
    "FAMILIES",
    "FAMILY_NAMES",
    "MAX_TOLERANCE",
    "color_name",
    "distance",
    "family_margin",
    "format_hex",
    "hex_distance",
    "linear_to_srgb",
    "nearest_family",
    "oklab_to_shades",
    "oklab_to_srgb",
    "parse_hex",
    "shades_from_rgb",
    "shades_to_oklab",
    "srgb_to_linear",
    "srgb_to_oklab",
    "within_hex",
    "within_name",
]

Shades = NDArray[np.uint32]
Lab = NDArray[np.float32]

DEFAULT_TOLERANCE: Final = 20
MAX_TOLERANCE: Final = 255
FAMILY_NAMES: Final[tuple[str, ...]] = tuple(FAMILIES)

_HEX = re.compile(r"#[0-9a-fA-F]{6}", re.ASCII)
_CHUNK = 16_384  # Rows at a time, so that what is worked on stays in the cache.
_FEW = 256

# Ottosson's matrices: linear sRGB -> cone response, its cube root -> OKLab.
_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
_FROM_LMS = np.linalg.inv(_TO_LMS)
_FROM_LAB = np.linalg.inv(_TO_LAB)


_LINEAR_8BIT: Final[NDArray[np.float64]] = np.array(
    [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in np.arange(256) / 255.0]
)


# -- shades and OKLab -------------------------------------------------------------------------


def parse_hex(text: str, *, name: str = "a colour") -> int:
    """Read `#rrggbb` as a 24-bit shade.

    Raises:
        InputError: It is not `#` and six hex digits; the message calls it `name`.
    """
    if not isinstance(text, str) or _HEX.fullmatch(text) is None:
        msg = f"{name} must be '#' and six hex digits such as '#1a2b3c', got {shown(text)}"
        raise InputError(msg)
    return int(text[1:], 16)


def format_hex(shade: int) -> str:
    """Write a 24-bit shade as `#rrggbb`."""
    return f"#{int(shade):06x}"


def shades_from_rgb(rgb: NDArray[np.uint8]) -> Shades:
    """Pack (n, 3) uint8 sRGB into (n,) uint32 shades `0xRRGGBB`."""
    wide = rgb.astype(np.uint32)
    return (wide[:, 0] << np.uint32(16)) | (wide[:, 1] << np.uint32(8)) | wide[:, 2]


def shades_to_oklab(shades: Shades) -> Lab:
    """Convert (n,) uint32 shades to (n, 3) float32 OKLab, one contiguous plane a coordinate."""
    shades = np.asarray(shades, dtype=np.uint32)
    lab = np.empty((3, len(shades)), dtype=np.float32).T
    for start in range(0, len(shades), _CHUNK):
        part = shades[start : start + _CHUNK]
        red = _LINEAR_8BIT[part >> 16 & 255]
        green = _LINEAR_8BIT[part >> 8 & 255]
        blue = _LINEAR_8BIT[part & 255]
        lab[start : start + _CHUNK] = _linear_to_oklab(red, green, blue)
    return lab


def srgb_to_linear(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Convert uint8 sRGB of any shape to light, 0 to 1."""
    return _LINEAR_8BIT[rgb]


def linear_to_srgb(linear: NDArray[np.floating]) -> NDArray[np.float64]:
    """Convert light of any shape to sRGB 0 to 1, clipped to the gamut."""
    light = np.clip(linear.astype(np.float64), 0.0, 1.0)
    return np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)


def srgb_to_oklab(rgb: NDArray[np.uint8]) -> Lab:
    """Convert (n, 3) uint8 sRGB to (n, 3) float32 OKLab."""
    return _linear_to_oklab(*(_LINEAR_8BIT[rgb[:, channel]] for channel in range(3)))


def _linear_to_oklab(
    red: NDArray[np.float64], green: NDArray[np.float64], blue: NDArray[np.float64]
) -> Lab:
    # In float64 and rounded once: cube roots that differ in the last place on two machines
    # still give the same float32.
    cones = [np.cbrt(m[0] * red + m[1] * green + m[2] * blue) for m in _TO_LMS]
    lab = np.empty((3, len(red)), dtype=np.float32)
    for axis, m in enumerate(_TO_LAB):
        lab[axis] = m[0] * cones[0] + m[1] * cones[1] + m[2] * cones[2]
    return lab.T


def oklab_to_srgb(lab: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Convert (n, 3) OKLab to the nearest (n, 3) uint8 sRGB, clipped to the gamut channel-wise."""
    cones = (lab.astype(np.float64) @ _FROM_LAB.T) ** 3
    return np.rint(linear_to_srgb(cones @ _FROM_LMS.T) * 255.0).astype(np.uint8)


def oklab_to_shades(lab: NDArray[np.floating]) -> Shades:
    """Convert (n, 3) OKLab to the nearest (n,) uint32 shades."""
    return shades_from_rgb(oklab_to_srgb(lab))


# -- distance ---------------------------------------------------------------------------------


def _squared(lab: Lab, point: Lab) -> NDArray[np.float32]:
    """Squared OKLab distance, (n,), of (n, 3) rows to one (3,) point."""
    total: NDArray[np.float32] = lab[:, 0] - point[0]
    total *= total
    for axis in (1, 2):
        step = lab[:, axis] - point[axis]
        step *= step
        total += step
    return total


def distance(lab: Lab, other: Lab) -> NDArray[np.float32]:
    """Distance between OKLab rows: Euclid times 255, black to white is 255.

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
    """Distance between two `#rrggbb` shades, 0 to 255."""
    lab = shades_to_oklab(np.array([parse_hex(first), parse_hex(second)], dtype=np.uint32))
    return float(distance(lab[:1], lab[1])[0])


# -- families ---------------------------------------------------------------------------------


def _prototypes() -> tuple[Lab, list[int]]:
    """OKLab of all prototypes, one family after the other, and the row at which each starts."""
    shades = [parse_hex(h) for name in FAMILY_NAMES for h in PROTOTYPES[name]]
    counts = [len(PROTOTYPES[name]) for name in FAMILY_NAMES]
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return shades_to_oklab(np.array(shades, dtype=np.uint32)), starts


_PROTOTYPE_LAB, _STARTS = _prototypes()


def _family_squared(lab: Lab) -> NDArray[np.float32]:
    """Squared distance of (n, 3) rows to the nearest prototype of each family, (n_families, n)."""
    if len(lab) <= _FEW:  # One step for all prototypes; the same sums, and so the same bits.
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
    """Family of each row as a position in `FAMILY_NAMES`; a tie goes to the earlier family.

    Args:
        lab: (n, 3) float32 OKLab.

    Returns:
        (n,) uint8.
    """
    lab = np.asarray(lab, dtype=np.float32)
    found = np.empty(len(lab), dtype=np.uint8)
    for start in range(0, len(lab), _CHUNK):
        stop = start + _CHUNK
        found[start:stop] = _family_squared(lab[start:stop]).argmin(axis=0)
    return found


def family_margin(lab: Lab, name: str) -> NDArray[np.float32]:
    """Distance to the family's nearest prototype minus that to any other family's nearest.

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
        mine = squared.argmin(axis=0) == family
        own = np.sqrt(squared[family])
        squared[family] = np.inf
        part = (own - np.sqrt(squared.min(axis=0))) * np.float32(255)
        # The sign says who won, also where roots of different squares round to one number.
        part = np.where(mine, np.minimum(part, 0), np.maximum(part, np.finfo(np.float32).tiny))
        margin[start : start + _CHUNK] = part
    return np.minimum(margin, np.float32(MAX_TOLERANCE - DEFAULT_TOLERANCE))


def _family_index(name: str) -> int:
    if name not in FAMILIES:
        msg = f"color_name must be one of {', '.join(FAMILY_NAMES)}, got {shown(name)}"
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


# -- filters ----------------------------------------------------------------------------------


def _check_tolerance(tolerance: float) -> np.float32:
    if not 0 <= tolerance <= MAX_TOLERANCE:  # Also false for NaN.
        msg = f"color_tolerance must be 0 to {MAX_TOLERANCE}, got {tolerance!r}"
        raise InputError(msg)
    return np.float32(tolerance)


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
        lab: `shades_to_oklab(shades)` where the caller keeps it, to save converting again.

    Returns:
        (n,) bool.

    Raises:
        InputError: The shade is malformed or the tolerance out of range.
    """
    centre = parse_hex(shade)
    limit = _check_tolerance(tolerance)
    if tolerance == 0:
        return np.asarray(shades == np.uint32(centre))
    if tolerance == MAX_TOLERANCE:  # White may lie an ulp farther than 255 from black.
        return np.ones(len(shades), dtype=np.bool_)
    lab = shades_to_oklab(shades) if lab is None else lab
    point = shades_to_oklab(np.array([centre], dtype=np.uint32))[0]
    mask = np.empty(len(lab), dtype=np.bool_)
    for start in range(0, len(lab), _CHUNK):
        part = np.sqrt(_squared(lab[start : start + _CHUNK], point)) * np.float32(255)
        mask[start : start + _CHUNK] = part <= limit
    return mask


def within_name(
    shades: Shades,
    name: str,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    lab: Lab | None = None,
) -> NDArray[np.bool_]:
    """Mask the shades of a family, its core or its surroundings.

    Args:
        shades: (n,) uint32.
        name: One of `FAMILY_NAMES`.
        tolerance: 20 is exactly the family, less its core, more its surroundings, 255 everything.
        lab: `shades_to_oklab(shades)` where the caller keeps it, to save converting again.

    Returns:
        (n,) bool.

    Raises:
        InputError: No family has that name or the tolerance is out of range.
    """
    limit = _check_tolerance(tolerance) - np.float32(DEFAULT_TOLERANCE)
    lab = shades_to_oklab(shades) if lab is None else lab
    return family_margin(lab, name) <= limit
