"""A collection of made-up photos that changes: what paging is tried on.

Photos cluster as real ones do, and some look exactly like another one. Between two states photos
leave and others come; at times everything is embedded anew by another version of the model.
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
_TURN = 0.15  # how far another version of the model sees things differently


@dataclass(frozen=True, eq=False)
class CollectionState:
    """A collection at one moment.

    Attributes:
        photos: (n_photos,) int64 numbers, ascending; a number is never given to another photo.
        looks: (n_photos, dim) what is to be seen in them.
        turn: (dim, dim) how the model of this moment sees it.
        version: Of the model, from 0.
    """

    photos: Photos
    looks: NDArray[np.float64]
    turn: NDArray[np.float64]
    version: int

    @cached_property
    def vectors(self) -> Embeddings:
        """(n_photos, dim) unit rows."""
        return unit_rows(self.looks @ self.turn)

    def seen(self, looks: NDArray[np.float64]) -> Embeddings:
        """Embed what is looked for, (n, dim), by the model of this moment."""
        return unit_rows(looks @ self.turn)


def history(
    n_photos: int, n_states: int, *, changes: float, swaps: float, seed: int
) -> tuple[list[CollectionState], NDArray[np.float64]]:
    """Draw a collection and what becomes of it, one state for each page turn.

    Args:
        n_photos: In every state.
        n_states: At least 1.
        changes: Share of the photos that leave between two pages; as many come.
        swaps: Chance that between two pages everything is embedded anew by another model.
        seed: Of everything.

    Returns:
        The states, and the (20, dim) centres about which photos cluster.

    Raises:
        InputError: A number out of range.
    """
    if n_photos < 2 or n_states < 1 or not (0 <= changes <= 1 and 0 <= swaps <= 1):
        msg = (
            "n_photos must be 2 or more, n_states 1 or more, changes and swaps 0 to 1, got "
            f"{n_photos}, {n_states}, {changes} and {swaps}"
        )
        raise InputError(msg)
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((_CLUSTERS, DIM))

    def drawn(n: int) -> NDArray[np.float64]:
        return centres[rng.integers(_CLUSTERS, size=n)] + 0.8 * rng.standard_normal((n, DIM))

    looks = drawn(n_photos)
    copies = rng.random(n_photos) < _COPIES
    looks[copies] = looks[rng.integers(n_photos, size=int(copies.sum()))]
    states = [CollectionState(np.arange(n_photos), looks, np.eye(DIM), 0)]
    next_number = n_photos
    for _ in range(n_states - 1):
        before = states[-1]
        turn, version = before.turn, before.version
        stay = np.ones(n_photos, dtype=np.bool_)
        # Rounded at random, so that a tenth of a photo is one photo every tenth time.
        n_gone = min(n_photos, int(changes * n_photos + rng.random()))
        stay[rng.choice(n_photos, n_gone, replace=False)] = False
        came = np.arange(next_number, next_number + n_gone)
        next_number += n_gone
        if rng.random() < swaps:
            turn = turn + _TURN * rng.standard_normal((DIM, DIM))
            version += 1
        photos = np.concatenate([before.photos[stay], came])
        looks = np.concatenate([before.looks[stay], drawn(n_gone)])
        states.append(CollectionState(photos, looks, turn, version))
    return states, centres
