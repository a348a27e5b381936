"""A million vectors of photos: mixtures of two real photos each, by the default model.

What is real about them: both ends of each mixture are vectors of photos, so that rows lie where
photos lie, crowd where photos crowd, and are as far from captions as photos are. What is not: many
rows share an end, so that neighbours are more alike than those of as many photos would be. Queries
are real: photos that no mixture was made of, and captions of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from searchlab.models.protocol import Embeddings, unit_rows

NAME = re.compile(r"mixed-([1-9][0-9]*)(k|M)")
SOURCES = ("web-photos", "flickr8k-train", "flickr8k")
"""Collections that the photos are of; of the last only those that are no test photos."""
_LEAST = 0.5
_BLOCK = 65_536


def count_rows(name: str) -> int:
    """Return how many rows a name that matches `NAME` asks for."""
    match = NAME.fullmatch(name)
    assert match is not None
    return int(match[1]) * {"k": 1_000, "M": 1_000_000}[match[2]]


def mix_vectors(photos: Embeddings, n: int, *, seed: int) -> Embeddings:
    """Mix photos two by two.

    Args:
        photos: (n_photos, dim) unit rows.
        n: Rows to make.
        seed: Seed of the pairs and of their weights.

    Returns:
        (n, dim) float32 unit rows: of each pair, one photo has a weight of .5 to 1, the other the
        rest.
    """
    rng = np.random.default_rng([seed, 7])
    rows = np.empty((n, photos.shape[1]), dtype=np.float32)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        one, other = rng.integers(len(photos), size=(2, size))
        weights = rng.uniform(_LEAST, 1, size=(size, 1)).astype(np.float32)
        mixed = weights * photos[one] + (1 - weights) * photos[other]
        rows[start : start + size] = unit_rows(mixed)
    return rows


def hold_out(
    captions: Sequence[Sequence[str]], n: int, *, seed: int
) -> tuple[list[int], list[int], list[str]]:
    """Keep photos apart as queries, and a caption of each.

    Args:
        captions: The captions of each photo, of any languages.
        n: Photos to keep apart.
        seed: Seed of the choice.

    Returns:
        Numbers of the photos to mix, of those kept apart, and a caption of each of these.
    """
    rng = np.random.default_rng([seed, 8])
    order = rng.permutation(len(captions)).tolist()
    apart = [number for number in order if captions[number]][:n]
    kept = set(apart)
    texts = [captions[number][int(rng.integers(len(captions[number])))] for number in apart]
    return [number for number in range(len(captions)) if number not in kept], apart, texts
