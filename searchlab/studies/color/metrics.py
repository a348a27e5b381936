"""Colour metrics to compare searchlab's own with: CIEDE2000 as the reference, and simple ones.

CIEDE2000 is the colour difference that the CIE recommends. It was fitted to people's judgments of
small differences, up to about 5 units between surface colours; a trained eye just notices 1. For
larger differences it still orders shades sensibly, but its numbers mean less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import COLOR_METRIC
from searchlab.photos.colors import Shades, shades_to_oklab, srgb_to_linear

Coordinates = NDArray[np.float64]

# Linear sRGB -> XYZ, from sRGB's primaries and D65 (IEC 61966-2-1 rounds to four digits); rows sum
# to the white, so that every gray has a* = b* = 0.
_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = _TO_XYZ.sum(axis=1)
_POW7 = 25.0**7


def _rgb(shades: Shades) -> NDArray[np.uint8]:
    shades = np.asarray(shades, dtype=np.uint32)
    return np.stack([shades >> 16, shades >> 8, shades], axis=1).astype(np.uint8)


def shades_to_cielab(shades: Shades) -> Coordinates:
    """Convert (n,) uint32 shades to (n, 3) CIELAB under D65: L* 0 to 100, a* and b* about 0."""
    light = srgb_to_linear(_rgb(shades)) @ _TO_XYZ.T / _WHITE
    linear = light / (3 * (6 / 29) ** 2) + 4 / 29
    x, y, z = np.where(light > (6 / 29) ** 3, np.cbrt(light), linear).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def ciede2000(first: Any, second: Any) -> NDArray[np.float64]:
    """Return the CIEDE2000 difference of CIELAB colours, with all weights 1.

    Args:
        first: (..., 3) CIELAB colours.
        second: (..., 3) CIELAB colours, of a shape that broadcasts.

    Returns:
        (...) float64 differences, 0 or more.

    References:
        Sharma, Wu and Dalal, The CIEDE2000 color-difference formula: implementation notes,
        supplementary test data, and mathematical observations, Color Research and Application
        30(1), 2005; the equations are numbered as there.
    """
    lightness_1, a_1, b_1 = np.moveaxis(np.asarray(first, dtype=np.float64), -1, 0)
    lightness_2, a_2, b_2 = np.moveaxis(np.asarray(second, dtype=np.float64), -1, 0)
    # Eq. 2 to 7: a* is stretched near gray, then chroma and hue in degrees.
    mean_chroma = (np.hypot(a_1, b_1) + np.hypot(a_2, b_2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean_chroma**7 / (mean_chroma**7 + _POW7))
    chroma_1, chroma_2 = np.hypot(stretch * a_1, b_1), np.hypot(stretch * a_2, b_2)
    hue_1 = np.degrees(np.arctan2(b_1, stretch * a_1)) % 360
    hue_2 = np.degrees(np.arctan2(b_2, stretch * a_2)) % 360
    gray = chroma_1 * chroma_2 == 0
    # Eq. 8 to 11.
    d_lightness = lightness_2 - lightness_1
    d_chroma = chroma_2 - chroma_1
    turn = hue_2 - hue_1
    d_hue = np.where(gray, 0, turn - 360 * (turn > 180) + 360 * (turn < -180))
    d_big_hue = 2 * np.sqrt(chroma_1 * chroma_2) * np.sin(np.radians(d_hue / 2))
    # Eq. 12 to 14: the mean hue lies on the shorter arc.
    lightness, chroma = (lightness_1 + lightness_2) / 2, (chroma_1 + chroma_2) / 2
    total = hue_1 + hue_2
    over = np.where(total < 360, total + 360, total - 360)
    hue = np.where(gray, total, np.where(np.abs(turn) > 180, over, total) / 2)
    # Eq. 15 to 21: weights of lightness, chroma and hue, and the rotation in the blue region.
    t = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    off_middle = (lightness - 50) ** 2
    by_lightness = d_lightness / (1 + 0.015 * off_middle / np.sqrt(20 + off_middle))
    by_chroma = d_chroma / (1 + 0.045 * chroma)
    by_hue = d_big_hue / (1 + 0.015 * chroma * t)
    blue = np.radians(30 * np.exp(-(((hue - 275) / 25) ** 2)))
    rotation = -2 * np.sqrt(chroma**7 / (chroma**7 + _POW7)) * np.sin(2 * blue)
    # Eq. 22. Rounding may make the sum slightly negative.
    squared = by_lightness**2 + by_chroma**2 + by_hue**2 + rotation * by_chroma * by_hue
    return np.asarray(np.sqrt(np.maximum(squared, 0)))


def _oklab(shades: Shades) -> Coordinates:
    return shades_to_oklab(shades).astype(np.float64) * 255


METRICS: dict[str, Callable[[Shades], Coordinates]] = {
    COLOR_METRIC: _oklab,
    "oklab-255, a and b doubled": lambda shades: _oklab(shades) * (1.0, 2.0, 2.0),
    "cielab": shades_to_cielab,
    "srgb": lambda shades: _rgb(shades).astype(np.float64),
}
"""Name -> (n, 3) coordinates in which the metric is the Euclidean distance; ours comes first."""


def euclid(points: Coordinates, point: Coordinates) -> NDArray[np.float64]:
    """Return the (n,) distances of (n, 3) points to a (3,) point."""
    return np.asarray(np.sqrt(((points - point) ** 2).sum(axis=1)))
