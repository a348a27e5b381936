"""The colours a person would name in a picture: one dominant shade and a small palette.

The mean colour of a picture is mud, and its largest flat area is often just the background. So
clusters of its colours vote for their colour families: a vote is worth more the larger the cluster,
the stronger its colour and the nearer it lies to the middle, and less where it is grey, black,
beige or brown. How much is learnt from photos whose colour was judged by eye; the study is
`searchlab.studies.color.dominant`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.photos.colors import (
    FAMILY_NAMES,
    Lab,
    distance,
    format_hex,
    nearest_family,
    oklab_to_shades,
)
from searchlab.photos.images.color_clusters import Clusters, find_clusters

__all__ = [
    "MAX_COLORS",
    "VOTE_WEIGHTS",
    "Palette",
    "describe_clusters",
    "dominant_and_palette",
]

Palette = tuple[tuple[str, float], ...]

MAX_COLORS: Final = 5
"""Colours of a palette at most."""

_NEUTRAL: Final = ("black", "white", "gray", "beige", "brown")
VOTE_WEIGHTS: Final[dict[str, float]] = {
    "area": 0.82,
    "pale": 0.18,
    "coloured": 1.74,
    "strong": 0.2,
    "middle": 0.17,
    "black": -0.24,
    "white": 0.33,
    "gray": -1.23,
    "beige": -0.78,
    "brown": -0.44,
}
"""What each column of `describe_clusters` adds to the logarithm of a cluster's vote.

Learnt by `python -m benchmarks.color.bench_dominant_color --fit`, which prints this table.
"""

_MERGE: Final = 22.0  # Shades of a palette are at least this far apart, in units of `distance`.
_LEAST: Final = 0.02  # Colours with a smaller share come from edges, and are left out.


def dominant_and_palette(
    image: Image.Image, alpha: Image.Image | None = None
) -> tuple[str, Palette]:
    """Find the shade that stands for a picture, and its palette.

    Args:
        image: RGB, at least 1 x 1.
        alpha: Opacity, mode "L", the size of `image`; opaque if left out.

    Returns:
        The dominant shade, and up to five shades with their shares of the picture, largest first;
        every part of the picture counts for the shade that is nearest to it, so that shares sum
        to 1.
    """
    clusters = find_clusters(image, alpha)
    votes = _count_votes(clusters)
    shade = int(oklab_to_shades(_main_color(clusters, votes))[0])
    return format_hex(shade), _make_palette(clusters, votes)


def describe_clusters(clusters: Clusters) -> NDArray[np.float64]:
    """Say of each cluster what its vote depends on.

    Returns:
        (n, n_weights) float64, the columns in the order of `VOTE_WEIGHTS`: the logarithm of its
        area; three ranges of chroma, each from 0 to 1; the logarithm of how much more of the middle
        it covers than of the whole; and whether it is of each neutral family.
    """
    chroma = np.hypot(clusters.centres[:, 1], clusters.centres[:, 2]).astype(np.float64)
    families = nearest_family(clusters.centres)
    return np.stack(
        [
            np.log(clusters.areas),
            np.clip(chroma / 0.06, 0, 1),
            np.clip((chroma - 0.06) / 0.08, 0, 1),
            np.clip((chroma - 0.14) / 0.1, 0, 1),
            np.log((clusters.middles + 0.003) / (clusters.areas + 0.003)),
            *((families == FAMILY_NAMES.index(name)).astype(np.float64) for name in _NEUTRAL),
        ],
        axis=1,
    )


def _count_votes(clusters: Clusters) -> NDArray[np.float64]:
    # Summed column by column, without BLAS, so that every machine counts alike.
    columns = zip(describe_clusters(clusters).T, VOTE_WEIGHTS.values(), strict=True)
    return np.asarray(np.exp(sum(column * weight for column, weight in columns)))


def _main_color(clusters: Clusters, votes: NDArray[np.float64]) -> Lab:
    """Return the shade, (1, 3), of the winning family: its best cluster and those alike."""
    families = nearest_family(clusters.centres)
    winner = np.bincount(families, votes).argmax()
    best = int(np.where(families == winner, votes, -1.0).argmax())
    shade = clusters.centres[best : best + 1]
    alike = (families == winner) & (distance(clusters.centres, shade[0]) < _MERGE)
    areas = clusters.areas[alike, None]
    mean = ((clusters.centres[alike] * areas).sum(axis=0) / areas.sum()).astype(np.float32)[None]
    return mean if nearest_family(mean)[0] == winner else shade


def _make_palette(clusters: Clusters, votes: NDArray[np.float64]) -> Palette:
    """Keep the clusters with most votes that do not look alike; others count for the nearest."""
    chosen: list[int] = []
    for place in np.argsort(-votes, kind="stable").tolist():
        others = clusters.centres[chosen]
        near = distance(others, clusters.centres[place]) < _MERGE
        if len(chosen) < MAX_COLORS and not near.any():
            chosen.append(place)
    while True:
        centres = clusters.centres[chosen]
        nearest = np.stack([distance(clusters.centres, centre) for centre in centres]).argmin(
            axis=0
        )
        shares = np.bincount(nearest, clusters.areas, minlength=len(chosen))
        if shares.min() >= _LEAST or len(chosen) == 1:
            break
        del chosen[int(shares.argmin())]
    names = [format_hex(shade) for shade in oklab_to_shades(centres).tolist()]
    order = np.argsort(-shares, kind="stable").tolist()
    return tuple((names[place], float(shares[place])) for place in order)
