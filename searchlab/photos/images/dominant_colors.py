"""The colours a person would name in a picture: one dominant shade and a small palette.

The mean colour of a picture is mud, and its largest flat area is often just the background. So the
pixels are clustered in OKLab, and the clusters vote for their colour families: strong colours,
light and the middle of the picture count a little more than greys, shadows and the rim. The shade
is that of the winning family's largest cluster.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.photos.colors import (
    distance,
    format_hex,
    nearest_family,
    oklab_to_shades,
    srgb_to_oklab,
)

__all__ = ["Palette", "dominant_and_palette"]

Palette = tuple[tuple[str, float], ...]

_SIDE: Final = 48  # The picture is scaled down until its longer side has this many pixels.
_CLUSTERS: Final = 12
_ROUNDS: Final = 6
_PALETTE: Final = 5
_MERGE: Final = 22.0  # Shades of a palette are at least this far apart, in units of `distance`.
_LEAST: Final = 0.02  # Clusters with a smaller share come from edges, and are left out.


def dominant_and_palette(
    image: Image.Image, alpha: Image.Image | None = None
) -> tuple[str, Palette]:
    """Find the shade that stands for a picture, and its palette.

    Transparent pixels do not count, nor does the white background of a cut-out: near-white pixels
    that are connected to the rim, where the rim is mostly white. A picture that is white all over
    stays white.

    Args:
        image: RGB, at least 1 x 1.
        alpha: Opacity, mode "L", of the same size as `image`; opaque if left out.

    Returns:
        The dominant shade, and up to five shades with their shares, largest first; shares sum to 1.
    """
    pixels, opacity = _downsample(image, alpha)
    height, width = opacity.shape
    weight = np.where(_find_background(pixels), 0.0, opacity).ravel()
    if weight.sum() < 0.01 * weight.size:  # Nothing but background, or next to nothing.
        weight = opacity.ravel()
        if not weight.any():
            weight = np.ones(weight.size)
    weight = weight * _weigh_places(height, width).ravel()
    counted = weight > 0
    lab = srgb_to_oklab(pixels.reshape(-1, 3)[counted])
    centres, shares = _find_clusters(lab, weight[counted] / weight[counted].sum())
    dominant = int(oklab_to_shades(_main_color(centres, shares))[0])
    return format_hex(dominant), _make_palette(centres, shares)


def _downsample(
    image: Image.Image, alpha: Image.Image | None
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Return (height, width, 3) pixels and (height, width) opacity, 0 to 1."""
    scale = min(1.0, _SIDE / max(image.size))
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    # Each pixel is an average: noise and texture blur as they do for the eye.
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
        grown = ground.copy()
        grown[1:] |= ground[:-1]
        grown[:-1] |= ground[1:]
        grown[:, 1:] |= ground[:, :-1]
        grown[:, :-1] |= ground[:, 1:]
        grown &= white
        if (grown == ground).all():
            return _with_fringe(ground)
        ground = grown


def _with_fringe(ground: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Add the pixels next to the background, whose colour is mixed with it."""
    fringe = ground.copy()
    fringe[1:] |= ground[:-1]
    fringe[:-1] |= ground[1:]
    fringe[:, 1:] |= ground[:, :-1]
    fringe[:, :-1] |= ground[:, 1:]
    # A thin object would be all fringe, so its fringe is left.
    return fringe if (~fringe).sum() > 0.5 * (~ground).sum() else ground


def _weigh_places(height: int, width: int) -> NDArray[np.float64]:
    """Return what each pixel counts, (height, width): 1 in the middle, 0.5 in the corners."""
    down = (np.arange(height) + 0.5) / height * 2 - 1
    across = (np.arange(width) + 0.5) / width * 2 - 1
    return 1.0 - 0.25 * (down[:, None] ** 2 + across[None, :] ** 2)


def _find_clusters(
    lab: NDArray[np.float32], weight: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Run a weighted k-means from starts far apart; return centres and shares, largest first."""
    first = int(distance(lab, np.average(lab, axis=0, weights=weight).astype(np.float32)).argmin())
    starts = [first]
    nearest = distance(lab, lab[first])
    while len(starts) < min(_CLUSTERS, len(lab)):
        # Weighted, so that no start is a lone pixel.
        furthest = int((nearest * np.sqrt(weight)).argmax())
        if nearest[furthest] < _MERGE / 2:
            break
        starts.append(furthest)
        nearest = np.minimum(nearest, distance(lab, lab[furthest]))
    centres = lab[starts]
    for _ in range(_ROUNDS):
        near = np.stack([distance(lab, centre) for centre in centres]).argmin(axis=0)
        total = np.bincount(near, weight, minlength=len(centres))
        sums = np.stack(
            [np.bincount(near, weight * lab[:, i], minlength=len(centres)) for i in range(3)],
            axis=1,
        )
        is_used = total > 0
        centres = (sums[is_used] / total[is_used, None]).astype(np.float32)
    shares = total[is_used]
    order = np.argsort(-shares, kind="stable")
    return centres[order], shares[order].astype(np.float64)


def _main_color(centres: NDArray[np.float32], shares: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest cluster, (1, 3), of the family with the most votes."""
    chroma = np.hypot(centres[:, 1], centres[:, 2])
    light = centres[:, 0]
    # A grey counts a third of a strong colour, and a shade that is nearly black half of that.
    voice = 0.3 + 0.7 * np.clip(chroma / 0.12, 0, 1)
    voice *= 0.5 + 0.5 * np.clip((light - 0.15) / 0.2, 0, 1)
    votes = shares * voice
    family = nearest_family(centres)
    winner = np.bincount(family, votes).argmax()
    best = int(np.where(family == winner, votes, -1.0).argmax())
    return centres[best : best + 1]


def _make_palette(centres: NDArray[np.float32], shares: NDArray[np.float64]) -> Palette:
    """Join clusters that look alike, and keep the five largest."""
    joined: list[tuple[NDArray[np.float32], float]] = []
    for centre, share in zip(centres, shares.tolist(), strict=True):
        for i, (other, weight) in enumerate(joined):
            if distance(centre[None], other)[0] < _MERGE:
                joined[i] = (other, weight + share)
                break
        else:
            joined.append((centre, share))
    joined = sorted(joined, key=lambda entry: -entry[1])[:_PALETTE]
    joined = [entry for entry in joined if entry[1] >= min(_LEAST, joined[0][1])]
    names = [format_hex(int(oklab_to_shades(centre[None])[0])) for centre, _ in joined]
    whole = sum(share for _, share in joined)
    return tuple((name, share / whole) for name, (_, share) in zip(names, joined, strict=True))
