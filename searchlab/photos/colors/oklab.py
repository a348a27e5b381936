"""OKLab: shades and light to a space where equal steps look equal, and back.

A shade is 24 bits, `0xRRGGBB`.

References:
    Bjoern Ottosson, A perceptual color space for image processing, 2020.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Shades = NDArray[np.uint32]
Lab = NDArray[np.float32]

_CHUNK = 16_384  # Rows at a time, so that what is worked on stays in the cache.

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


def shades_from_rgb(rgb: NDArray[np.uint8]) -> Shades:
    """Pack (n, 3) uint8 sRGB into (n,) uint32 shades `0xRRGGBB`."""
    wide = rgb.astype(np.uint32)
    return (wide[:, 0] << np.uint32(16)) | (wide[:, 1] << np.uint32(8)) | wide[:, 2]


def shades_to_oklab(shades: Shades) -> Lab:
    """Convert (n,) uint32 shades to (n, 3) float32 OKLab, each coordinate contiguous in memory."""
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
