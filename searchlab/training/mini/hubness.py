"""Rank photos lower that lie near to all queries.

In spaces of many components some rows, called hubs, are among the nearest of far too many queries.
So photos are not ranked by their cosine but by their share of the probability (inverted softmax:
Smith et al., ICLR 2017), that is by the cosine less a share of how near the photo lies to captions
in general. That depends on the photo alone, so it becomes a component of the photo's row, which is
multiplied with `COMMON` in every text's row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch.nn import functional

from searchlab.models.mini.text import COMMON
from searchlab.training.mini.heads import Floats, PhotoHead, unit
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.student import PieceTable, Student, pack_texts
from searchlab.training.mini.text_examples import TextExamples

CAPTIONS = 9000  # Captions of each collection of photos that stand for all queries.
CENTRES = 256  # Centres of these captions; the network holds them.
SHARPNESS = 8.0  # Sharpness of the softmax.
SHARE = 0.6  # Share of the softmax's logarithm that is subtracted from a photo's cosines.
WEIGHT = (1 - COMMON**2) ** 0.5 / COMMON  # Makes the last component of a difference of cosines.


class DampedHead(torch.nn.Module):
    """A photo head with one more component, negative for photos near to captions in general.

    Args:
        head: Maps features and logits to (n, DIM) unit rows.
        centres: (n_centres, DIM) unit rows of typical captions.
        shares: (n_centres,) shares of the captions, which sum to 1.
    """

    centres: torch.Tensor
    logarithms: torch.Tensor
    mean: torch.Tensor

    def __init__(
        self, head: torch.nn.Module, centres: Floats, shares: NDArray[np.floating]
    ) -> None:
        super().__init__()
        self.head = head
        columns = np.ascontiguousarray(centres.T)
        self.register_buffer("centres", torch.from_numpy(columns))
        self.register_buffer("logarithms", torch.from_numpy(np.log(shares).astype(np.float32)))
        self.register_buffer("mean", torch.zeros(()))

    def nearness(self, rows: torch.Tensor) -> torch.Tensor:
        """Return soft maxima, (n, 1), of the cosines of (n, DIM) rows with the captions."""
        logits = SHARPNESS * (rows @ self.centres) + self.logarithms
        return torch.logsumexp(logits, dim=1, keepdim=True) / SHARPNESS

    @torch.no_grad()
    def balance(self, photos: Readings) -> None:
        """Make the last component zero on average over some photos."""
        rows = self.head(torch.from_numpy(photos.features), torch.from_numpy(photos.logits))
        self.mean.fill_(self.nearness(rows).mean())

    def forward(self, features: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Return (n, DIM + 1) unit rows."""
        rows = self.head(features, logits)
        last = SHARE * WEIGHT * (self.mean - self.nearness(rows))
        return functional.normalize(torch.cat([rows, last], dim=1), dim=1)


def damp_hubs(
    head: PhotoHead,
    student: Student,
    table: PieceTable,
    lessons: TextExamples,
    photos: Readings,
    collections: NDArray[np.int8],
    *,
    seed: int,
) -> DampedHead:
    """Make a head that ranks hubs lower: photos that lie near to every caption.

    Args:
        head: The photo head.
        student: The mixer that reads the captions.
        table: The pieces' vectors.
        lessons: Holds the captions.
        photos: Readings of the photos over which the last component is zero on average.
        collections: (n_photos,) number of the collection of each photo. Each has an equal say,
            and in each of them every language: queries are of neither kind alone.
        seed: Seed of the captions drawn and of their centres.
    """
    rng = np.random.default_rng(seed)
    numbers = [
        number
        for collection in np.unique(collections)
        for number in _draw_captions(
            [
                lessons.captions.get(photos.ids[photo], {})
                for photo in np.flatnonzero(collections == collection)
            ],
            rng,
        )
    ]
    captions = [lessons.rows[number] for number in numbers]
    packed = pack_texts(captions)
    with torch.no_grad():
        rows = student(table.take(packed), packed).numpy()
    means = KMeans(min(CENTRES, len(rows)), n_init=1, random_state=seed).fit(rows)
    counts = np.bincount(means.labels_, minlength=len(means.cluster_centers_))
    has_captions = counts > 0  # A centre may have none where several captions are equal.
    centres = unit(means.cluster_centers_[has_captions])
    damped = DampedHead(head, centres, counts[has_captions] / len(rows)).eval()
    damped.balance(photos)
    return damped


def _draw_captions(
    captions: Sequence[Mapping[str, list[int]]], rng: np.random.Generator
) -> list[int]:
    """Draw the numbers of some captions, as many of each language where it has them."""
    languages = sorted({language for own in captions for language in own})
    sample: list[int] = []
    for language in languages:
        numbers = [n for own in captions for n in own.get(language, [])]
        count = min(CAPTIONS // len(languages), len(numbers))
        sample += rng.choice(numbers, count, replace=False).tolist()
    return sample
