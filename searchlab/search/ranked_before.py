"""Rankings that somebody pages through: a later page is cut from them, not searched for again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_PHOTOS: Final = 2_000_000
"""Photos of all rankings that are kept, at 16 bytes each."""


class Ranked(NamedTuple):
    """The beginning of a ranking.

    Attributes:
        rows: (m,) int64 photos, best first.
        scores: (m,) float64 relevance scores.
        n_asked: Photos that were asked for; there may be fewer.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    n_asked: int


class RankedBefore:
    """How queries were ranked beyond their first page; safe for several threads.

    First pages are not looked up here: what they cost does not depend on what was asked before.
    """

    def __init__(self, most_photos: int = MOST_PHOTOS) -> None:
        """Begin with nothing.

        Args:
            most_photos: Photos to keep at most; the rankings read longest ago go first.
        """
        self._most_photos = most_photos
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Ranked] = OrderedDict()
        self._n_photos = 0

    def rank(
        self, key: Hashable, n_wanted: int, n_ahead: int, rank: Callable[[int], Ranked]
    ) -> Ranked:
        """Return what is kept of a ranking, or rank and keep it.

        Args:
            key: All that the ranking depends on but its length.
            n_wanted: Photos that are needed.
            n_ahead: Photos to rank where fewer are kept than are needed; no fewer than these.
            rank: Ranks as many photos as it is given.
        """
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept.n_asked >= n_wanted:
                self._kept.move_to_end(key)
                return kept
        ranked = rank(n_ahead)
        for values in ranked[:2]:
            values.flags.writeable = False  # whoever pages on reads the same arrays
        self._keep(key, ranked)
        return ranked

    def _keep(self, key: Hashable, ranked: Ranked) -> None:
        if len(ranked.rows) > self._most_photos:
            return
        with self._lock:
            if key in self._kept:
                self._n_photos -= len(self._kept.pop(key).rows)
            self._kept[key] = ranked
            self._n_photos += len(ranked.rows)
            while self._n_photos > self._most_photos:
                self._n_photos -= len(self._kept.popitem(last=False)[1].rows)
