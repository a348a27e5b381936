"""A changing collection of made-up photos, for measurements of paging.

Photos cluster as real ones do, and some look exactly like another one. Between two states some
photos leave and others come; sometimes another version of the model embeds everything again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings, unit_rows

Photos = NDArray[np.int64]

DIM = 32
_CLUSTERS = 20
_COPIES = 0.05  # share of photos that look exactly like another one
_TURN = 0.15  # size of the difference between two versions of the model


@dataclass(frozen=True, eq=False)
class CollectionState:
    """A collection at one moment.

    Attributes:
        photos: (n_photos,) int64 numbers, ascending; a number is never used for another photo.
        looks: (n_photos, dim) contents of the photos, before the model.
        turn: (dim, dim) the model of this moment, which maps looks to vectors.
        version: Version of the model, from 0.
    """

    photos: Photos
    looks: NDArray[np.float64]
    turn: NDArray[np.float64]
    version: int

    @cached_property
    def vectors(self) -> Embeddings:
        """The vectors of the photos, (n_photos, dim) unit rows."""
        return unit_rows(self.looks @ self.turn)

    def embed(self, looks: NDArray[np.float64]) -> Embeddings:
        """Embed (n, dim) looks with the model of this moment."""
        return unit_rows(looks @ self.turn)


def history(
    n_photos: int, n_states: int, *, changes: float, swaps: float, seed: int
) -> tuple[list[CollectionState], NDArray[np.float64]]:
    """Draw a collection and its changes, one state for each page.

    Args:
        n_photos: Number of photos in every state.
        n_states: Number of states, at least 1.
        changes: Share of the photos that leave between two pages; as many come.
        swaps: Chance that the model changes between two pages.
        seed: Seed of all random choices.

    Returns:
        The states, and the (20, dim) centres of the clusters of photos.

    Raises:
        InputError: A number is out of range.
    """
    if n_photos < 2 or n_states < 1 or not (0 <= changes <= 1 and 0 <= swaps <= 1):
        msg = (
            "n_photos must be 2 or more, n_states 1 or more, changes and swaps 0 to 1, got "
            f"{n_photos}, {n_states}, {changes} and {swaps}"
        )
        raise InputError(msg)
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((_CLUSTERS, DIM))

    def draw(n: int) -> NDArray[np.float64]:
        return centres[rng.integers(_CLUSTERS, size=n)] + 0.8 * rng.standard_normal((n, DIM))

    looks = draw(n_photos)
    copies = rng.random(n_photos) < _COPIES
    looks[copies] = looks[rng.integers(n_photos, size=int(copies.sum()))]
    states = [CollectionState(np.arange(n_photos), looks, np.eye(DIM), 0)]
    next_number = n_photos
    for _ in range(n_states - 1):
        before = states[-1]
        turn, version = before.turn, before.version
        stay = np.ones(n_photos, dtype=np.bool_)
        # Rounded randomly, so that a tenth of a photo is one photo in a tenth of the cases.
        n_gone = min(n_photos, int(changes * n_photos + rng.random()))
        stay[rng.choice(n_photos, n_gone, replace=False)] = False
        new = np.arange(next_number, next_number + n_gone)
        next_number += n_gone
        if rng.random() < swaps:
            turn = turn + _TURN * rng.standard_normal((DIM, DIM))
            version += 1
        photos = np.concatenate([before.photos[stay], new])
        looks = np.concatenate([before.looks[stay], draw(n_gone)])
        states.append(CollectionState(photos, looks, turn, version))
    return states, centres
