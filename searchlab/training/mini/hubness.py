"""Hold back photos that lie near to whatever is asked.

In spaces of many components some rows are among the nearest of far too many queries: hubs. Instead
of a photo's cosine its share of the probability is ranked (inverted softmax: Smith et al., ICLR
2017), that is the cosine less a share of how near the photo lies to captions in general. That
depends on the photo alone, so it becomes a component of its row, which meets `COMMON` in every
text's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch.nn import functional

from searchlab.models.mini.text import COMMON
from searchlab.training.mini.heads import Floats, PhotoHead, unit
from searchlab.training.mini.photo_tower import Readings
from searchlab.training.mini.student import Student, Table, pack_texts
from searchlab.training.mini.text_examples import TextExamples

A_LANGUAGE = 1500  # Captions of each language that stand for whatever is asked,
CENTRES = 256  # and their centres, which the network keeps.
SHARPNESS = 16.0  # Of the softmax.
SHARE = 0.75  # Of its logarithm that is taken off a photo's cosines.
WEIGHED = (1 - COMMON**2) ** 0.5 / COMMON  # Brings a difference of cosines to the last component.


class DampedHead(torch.nn.Module):
    """A photo head whose rows end in how much less than others a photo lies near to captions.

    Args:
        head: From features and logits to (n, DIM) unit rows.
        centres: (n_centres, DIM) unit rows of typical captions.
        shares: (n_centres,) shares of the captions, of sum 1.
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
        """(n, 1) soft means, towards the largest, of (n, DIM) rows' cosines with the captions."""
        near = SHARPNESS * (rows @ self.centres) + self.logarithms
        return torch.logsumexp(near, dim=1, keepdim=True) / SHARPNESS

    @torch.no_grad()
    def balance(self, photos: Readings) -> None:
        """Let the last component be zero on average over some photos."""
        rows = self.head(torch.from_numpy(photos.features), torch.from_numpy(photos.logits))
        self.mean.fill_(self.nearness(rows).mean())

    def forward(self, features: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """(n, DIM + 1) unit rows."""
        rows = self.head(features, logits)
        back = SHARE * WEIGHED * (self.mean - self.nearness(rows))
        return functional.normalize(torch.cat([rows, back], dim=1), dim=1)


def damp_hubs(
    head: PhotoHead,
    student: Student,
    table: Table,
    lessons: TextExamples,
    photos: Readings,
    *,
    seed: int,
) -> DampedHead:
    """Make a head that ranks hubs lower: photos that lie near to every caption.

    Args:
        head: The photo head.
        student: The mixer that reads the captions.
        table: The pieces' vectors.
        lessons: Holds the captions.
        photos: The photos over which the last component is balanced.
        seed: Of the captions drawn and of their centres.
    """
    captions = [
        lessons.rows[n] for n in _some_of_each(lessons.captions, np.random.default_rng(seed))
    ]
    packed = pack_texts(captions)
    with torch.no_grad():
        rows = student(table.take(packed), packed).numpy()
    means = KMeans(min(CENTRES, len(rows)), n_init=1, random_state=seed).fit(rows)
    counts = np.bincount(means.labels_, minlength=len(means.cluster_centers_))
    used = counts > 0  # Captions that are alike leave centres without any.
    damped = DampedHead(head, unit(means.cluster_centers_[used]), counts[used] / len(rows)).eval()
    damped.balance(photos)
    return damped


def _some_of_each(
    captions: Mapping[str, Mapping[str, list[int]]], rng: np.random.Generator
) -> list[int]:
    """Numbers of some captions of each language."""
    languages = sorted({language for own in captions.values() for language in own})
    drawn: list[int] = []
    for language in languages:
        numbers = [n for own in captions.values() for n in own.get(language, [])]
        drawn += rng.choice(numbers, min(A_LANGUAGE, len(numbers)), replace=False).tolist()
    return drawn
