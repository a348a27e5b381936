"""The colours of a picture as a few clusters in OKLab, and how much of it each covers.

A picture is scaled down first, so that noise and texture blur as they do for the eye. Transparent
pixels do not count, nor does the white background of a cut-out: near-white pixels that are
connected to the rim, where the rim is mostly white. A picture that is white all over stays white.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.photos.colors import Lab, distance, srgb_to_oklab

__all__ = ["Clusters", "Pixels", "cluster", "find_clusters", "read_pixels"]

_SIDE: Final = 48  # The picture is scaled down until its longer side has this many pixels.
_CLUSTERS: Final = 24
_STRETCH: Final = 1.7  # Of hue and chroma over lightness: a shadow changes no colour word.
_ROUNDS: Final = 6
_APART: Final = 11.0  # Starts of clusters are at least this far apart, in units of `distance`.


class Pixels(NamedTuple):
    """The pixels of a picture that count.

    Attributes:
        lab: (n, 3) float32 OKLab.
        area: (n,) float64, the share of the picture that each is, summing to 1.
        down: (n,) float64, -1 at the upper rim to 1 at the lower.
        across: (n,) float64, -1 at the left rim to 1 at the right.
    """

    lab: Lab
    area: NDArray[np.float64]
    down: NDArray[np.float64]
    across: NDArray[np.float64]


class Clusters(NamedTuple):
    """The colours of a picture, the largest first.

    Attributes:
        centres: (n, 3) float32 OKLab, the mean of each.
        areas: (n,) float64, shares of the picture, summing to 1.
        middles: (n,) float64, shares of its middle, summing to 1.
    """

    centres: Lab
    areas: NDArray[np.float64]
    middles: NDArray[np.float64]


def find_clusters(image: Image.Image, alpha: Image.Image | None = None) -> Clusters:
    """Find the colours of a picture.

    Args:
        image: RGB, at least 1 x 1.
        alpha: Opacity, mode "L", the size of `image`.
    """
    pixels = read_pixels(image, alpha)
    members = cluster(pixels.lab, pixels.area, most=_CLUSTERS, stretch=_STRETCH)
    areas = np.bincount(members, pixels.area)
    centres = np.stack([np.bincount(members, pixels.area * plane) for plane in pixels.lab.T])
    middle = pixels.area * np.exp(-2.0 * (pixels.down**2 + pixels.across**2))
    middles = np.bincount(members, middle) / middle.sum()
    order = np.argsort(-areas, kind="stable")
    return Clusters(
        (centres / areas).T.astype(np.float32)[order], areas[order] / areas.sum(), middles[order]
    )


def read_pixels(image: Image.Image, alpha: Image.Image | None = None) -> Pixels:
    """Scale a picture down, and leave out what is transparent or the background of a cut-out."""
    pixels, opacity = _downsample(image, alpha)
    height, width = opacity.shape
    weight = np.where(_find_background(pixels), 0.0, opacity).ravel()
    if weight.sum() < 0.01 * weight.size:  # Nothing but background, or next to nothing.
        weight = opacity.ravel()
        if not weight.any():
            weight = np.ones(weight.size)
    is_counted = weight > 0
    down = (np.arange(height) + 0.5) / height * 2 - 1
    across = (np.arange(width) + 0.5) / width * 2 - 1
    return Pixels(
        srgb_to_oklab(pixels.reshape(-1, 3)[is_counted]),
        weight[is_counted] / weight[is_counted].sum(),
        np.repeat(down, width)[is_counted],
        np.tile(across, height)[is_counted],
    )


def _downsample(
    image: Image.Image, alpha: Image.Image | None
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Return (height, width, 3) pixels and (height, width) opacity, 0 to 1."""
    scale = min(1.0, _SIDE / max(image.size))
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    small = image.resize(size, Image.Resampling.BOX, reducing_gap=2.0)
    pixels = np.asarray(small)
    if alpha is None:
        return pixels, np.ones((size[1], size[0]))
    opacity = np.asarray(alpha.resize(size, Image.Resampling.BOX)) / 255.0
    return pixels, np.where(opacity >= 0.5, opacity, 0.0)


def _find_background(pixels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Mask the white around a cut-out, (height, width); nothing if the rim is not mostly white."""
    white = pixels.min(axis=2) >= 244
    rim = np.concatenate([white[0], white[-1], white[:, 0], white[:, -1]])
    if rim.mean() < 0.6:
        return np.zeros_like(white)
    ground = np.zeros_like(white)
    ground[0], ground[-1], ground[:, 0], ground[:, -1] = (
        white[0],
        white[-1],
        white[:, 0],
        white[:, -1],
    )
    while True:  # Grow by one pixel into the white, until nothing changes.
        grown = _grow(ground) & white
        if (grown == ground).all():
            fringe = _grow(
                ground
            )  # The colour of the pixels next to the background is mixed with it.
            # A thin object would be all fringe, so its fringe is left.
            return fringe if (~fringe).sum() > 0.5 * (~ground).sum() else ground
        ground = grown


def _grow(region: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Add the pixels next to a region, (height, width)."""
    grown = region.copy()
    grown[1:] |= region[:-1]
    grown[:-1] |= region[1:]
    grown[:, 1:] |= region[:, :-1]
    grown[:, :-1] |= region[:, 1:]
    return grown


def cluster(
    lab: Lab, area: NDArray[np.float64], *, most: int, stretch: float = 1.0
) -> NDArray[np.int64]:
    """Put colours into clusters by a weighted k-means from starts far apart.

    Args:
        lab: (n, 3) float32 OKLab, n at least 1.
        area: (n,) float64, what each counts.
        most: Clusters at most; fewer where colours are alike.
        stretch: How much more a difference of hue or chroma counts than one of lightness.

    Returns:
        (n,) int64, the number of each one's cluster; none of them is empty.
    """
    places = lab * np.array([1.0, stretch, stretch], dtype=np.float32)
    mean = np.average(places, axis=0, weights=area).astype(np.float32)
    starts = [int(distance(places, mean).argmin())]
    nearest = distance(places, places[starts[0]])
    voice = np.sqrt(area)
    while len(starts) < min(most, len(places)):
        # Weighted, so that no start is a lone pixel.
        furthest = int((nearest * voice).argmax())
        if nearest[furthest] < _APART:
            break
        starts.append(furthest)
        nearest = np.minimum(nearest, distance(places, places[furthest]))
    centres = places[starts]
    for _ in range(_ROUNDS):
        members = _find_nearest(places, centres)
        total = np.bincount(members, area, minlength=len(centres))
        sums = np.stack(
            [np.bincount(members, area * plane, minlength=len(centres)) for plane in places.T]
        )
        is_used = total > 0
        centres = (sums[:, is_used] / total[is_used]).T.astype(np.float32)
    return np.asarray(np.cumsum(is_used)[members] - 1, dtype=np.int64)


def _find_nearest(places: Lab, centres: Lab) -> NDArray[np.int64]:
    total = np.zeros((len(centres), len(places)), dtype=np.float32)
    for axis in range(3):  # Not by a product of matrices, whose last bits differ by machine.
        step = centres[:, axis, None] - places[:, axis]
        step *= step
        total += step
    return np.asarray(total.argmin(axis=0), dtype=np.int64)
