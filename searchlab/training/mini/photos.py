"""The photos that `mini` is taught on, and those of each collection that are kept apart."""

from __future__ import annotations

from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.training.mini.corpora import read_tsv

SPARED = 600
"""Number of photos of each collection that settings were chosen on; no tower is tuned on them."""


class TrainingPhotos(NamedTuple):
    """Photos in the order of their rows.

    Attributes:
        files: Files by id; the spared ones come first, a photo of each collection in turn.
        collections: (n_photos,) number of the collection that each photo is of.
        n_spared: How many photos no tower is tuned on.
    """

    files: dict[str, Path]
    collections: NDArray[np.int8]
    n_spared: int

    def rows(self, count: int) -> int:
        """Return how many of the first rows hold `count` photos of each collection."""
        return count * len(np.unique(self.collections))


def training_photos(datasets: Path) -> list[dict[str, Path]]:
    """Map ids to files for each collection that is there; never a photo of a test or a judge.

    The first is Flickr8k's training photos; `web-photos` follows where it is at hand.
    """
    flickr8k = _list_photos(datasets / "flickr8k-train")
    for row in read_tsv(datasets / "flickr8k" / "photos.tsv"):
        if row["split"] == "train":
            flickr8k[row["photo_id"]] = datasets / "flickr8k" / row["file"]
    web = datasets / "web-photos"
    return [flickr8k, *([_list_photos(web)] if web.exists() else [])]


def order_photos(collections: list[dict[str, Path]]) -> TrainingPhotos:
    """Put the photos of some collections in one order, drawn at random but always the same."""
    rng = np.random.default_rng(0)
    drawn = []
    for photos in collections:
        ids = list(photos)
        drawn.append([ids[number] for number in rng.permutation(len(ids))])
    spared = [
        photo
        for photos in zip_longest(*(ids[:SPARED] for ids in drawn))
        for photo in photos
        if photo is not None
    ]
    others = list(chain.from_iterable(ids[SPARED:] for ids in drawn))
    order = [*spared, *(others[number] for number in rng.permutation(len(others)))]
    collection_of = {photo: n for n, photos in enumerate(collections) for photo in photos}
    return TrainingPhotos(
        {photo: collections[collection_of[photo]][photo] for photo in order},
        np.array([collection_of[photo] for photo in order], dtype=np.int8),
        len(spared),
    )


def draw_batches(
    photos: NDArray[np.int64],
    collections: NDArray[np.int8],
    batch: int,
    rng: np.random.Generator,
) -> list[NDArray[np.int64]]:
    """Draw batches of photos of one collection each: what tells collections apart is no lesson.

    Args:
        photos: Rows of the photos to draw from.
        collections: Number of the collection of every row.
        batch: Photos of a batch. What is left over of a collection is not drawn; a collection that
            has fewer is drawn as one.
        rng: Draws.
    """
    batches = []
    for number in np.unique(collections[photos]):
        own = rng.permutation(photos[collections[photos] == number])
        last = max(0, len(own) - batch)
        batches += [own[at : at + batch] for at in range(0, last + 1, batch)]
    return [batches[number] for number in rng.permutation(len(batches))]


def _list_photos(folder: Path) -> dict[str, Path]:
    return {row["photo_id"]: folder / row["file"] for row in read_tsv(folder / "photos.tsv")}
