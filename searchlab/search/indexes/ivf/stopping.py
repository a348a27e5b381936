"""When a scan may stop, as numbers that were measured on a library's own rows and texts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError

STRETCHES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 5.6)
"""Factors of the variance of residuals whose recall is measured."""

RECALLS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Recalls for which it is measured how many rows a scan must read."""

DEPTH = 20
"""Neighbours that are looked for when it is measured."""
THINNED = 10
"""One row in so many passes the filters that it is measured with."""

MISSED = 0.01
"""Share of the neighbours that may be expected in the lists left, with every stretch."""

# Used where none of the stretches reaches the recall target.
_LONGEST = 8.0
# Share of what may be missed that is left to the number of rows read; the rest to the stretch.
_BY_ROWS = 0.75
# No scan for a recall of .99 ends by its share alone before, and others likewise by what they may
# miss: where rows have near twins, the rows that it was measured with find their neighbours far
# sooner than new queries do.
_LEAST_SHARE = 0.15
# Rows that are read in no time; a share of fewer is none.
_SOON = 20_000
_HEADER = 6
# Filters that are measured with, by their place.
_WHOLE, _AT_RANDOM, _HARDEST = range(3)
_N_FILTERS = 3


@dataclass(frozen=True)
class Stopping:
    """Measured variances, recalls and shares, from which the end of a scan follows.

    Attributes:
        usual: Variance of residuals as a share of a list's spread, before a row is scored.
        near: Cosine with the best centre from which on a query is like the photos.
        far: Cosine with the best centre up to which a query is like a text.
        reached: (2, 3, n_stretches) float32 recall by each of `STRETCHES`, for photos and for
            texts: without a filter, with one that draws rows at random, and with the hardest. One
            that draws a tenth is as good as no filter where ten times as many are wanted.
        shares: (2, 3, n_recalls) float32 share of the allowed rows to be read for each of
            `RECALLS`, for photos and for texts, with the same filters.
        along: (2,) float32 share of the longest product of two tails that neighbours nearly never
            exceed, for photos and for texts.
        n_texts: Queries by text that were measured; 0 where they were made from photos.
    """

    usual: float
    near: float
    far: float
    reached: NDArray[np.float32]
    shares: NDArray[np.float32]
    along: NDArray[np.float32]
    n_texts: int = 0

    @property
    def is_measured(self) -> bool:
        """Whether there were enough rows to measure anything."""
        return bool(self.reached.any())

    def bands(
        self, recall: float, *, filtered: bool, n_allowed: int, depth: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the `bands` that `scan_lists` takes.

        Args:
            recall: Share of the true neighbours to find, above 0 to 1.
            filtered: Whether there is a filter.
            n_allowed: Rows that may be found.
            depth: Which neighbour among all rows the last one wanted is about: as many as are
                wanted, over the share of the rows that may be found.
        """
        # What is rarer among rows drawn at random lies as deep as more of all rows do.
        steps = math.log(max(depth, DEPTH) / DEPTH) / math.log(THINNED)
        part = np.float32(min(steps, 1.0))
        bands = []
        for cosine, reached, shares, along in zip(
            (self.near, self.far), self.reached, self.shares, self.along, strict=True
        ):
            even = reached[_WHOLE] + (reached[_AT_RANDOM] - reached[_WHOLE]) * part
            kinds = [(even, shares[_AT_RANDOM])]
            kinds.append((reached[_HARDEST], shares[_HARDEST]) if filtered else kinds[0])
            rows = []
            for curve, deeper in kinds:
                share = self._share_for(shares[_WHOLE], deeper, recall, steps)
                by_rows = _BY_ROWS if _SOON < share * n_allowed < n_allowed else 0.0
                stretch = _stretch_for(curve, _spare(recall, 1 - by_rows))
                rows.append([cosine, stretch, share if by_rows else 1.0, along])
            bands.append(np.array(rows))
        near, far = bands
        return near, far

    def _share_for(
        self,
        whole: NDArray[np.float32],
        thinned: NDArray[np.float32],
        recall: float,
        steps: float,
    ) -> float:
        """Return the share of allowed rows after which a scan ends, whatever is left.

        It is measured at two depths, one step apart; between and beyond them it goes by the
        logarithm.
        """
        if not self.is_measured or recall >= 1:
            return 1.0
        wanted = _spare(recall, _BY_ROWS)
        levels = [*(_spare(each, _BY_ROWS) for each in RECALLS), 1.0]
        near, deep = (float(np.interp(wanted, levels, [*each, 1.0])) for each in (whole, thinned))
        least = _LEAST_SHARE * MISSED / (1 - recall)
        return min(1.0, max(least, near + max(deep - near, 0.0) * steps))

    def missed(self, recall: float) -> float:
        """Return the `missed` that `scan_lists` takes; arguments are those of `bands`."""
        return MISSED if self.is_measured else 1 - recall

    def pack(self) -> NDArray[np.float32]:
        """Return all numbers in one array, (n_numbers,) float32."""
        numbers = np.array([self.usual, self.near, self.far, self.n_texts], dtype=np.float32)
        arrays = (self.along, self.reached.reshape(-1), self.shares.reshape(-1))
        return np.concatenate([numbers, *arrays])

    @classmethod
    def unpack(cls, numbers: NDArray[np.float32], dim: int) -> Stopping:
        """Rebuild from what `pack` returned; an empty array stands for lists without measurements.

        Raises:
            InputError: The array has another length.
        """
        n_reached, n_shares = (2 * _N_FILTERS * len(each) for each in (STRETCHES, RECALLS))
        if not len(numbers):
            # Twice the variance of residuals that are alike in all directions: safe, but slow.
            nothing = np.zeros((2, _N_FILTERS, len(STRETCHES)), dtype=np.float32)
            all_rows = np.ones((2, _N_FILTERS, len(RECALLS)), dtype=np.float32)
            return cls(2 / dim, 1.0, 0.0, nothing, all_rows, np.ones(2, dtype=np.float32))
        if len(numbers) != _HEADER + n_reached + n_shares:
            wanted = _HEADER + n_reached + n_shares
            msg = f"its stopping holds {len(numbers)} numbers, not {wanted}"
            raise InputError(msg)
        usual, near, far = map(float, numbers[:3])
        reached, shares = np.split(numbers[_HEADER:], [n_reached])
        return cls(
            usual,
            near,
            far,
            reached.reshape(2, _N_FILTERS, -1),
            shares.reshape(2, _N_FILTERS, -1),
            numbers[4:_HEADER],
            int(numbers[3]),
        )


def find_shares(
    places: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Return the share of rows to be read for each of `RECALLS`.

    Args:
        places: (n_neighbours,) share of the rows that are read when the list of a neighbour was.
    """
    levels = [_spare(recall, _BY_ROWS) for recall in RECALLS]
    return np.quantile(places, levels, method="higher").astype(np.float32)


def _spare(recall: float, share: float) -> float:
    """Return the recall that is left where a share of what may be missed is."""
    return 1 - share * (1 - recall)


def _stretch_for(curve: NDArray[np.float32], recall: float) -> float:
    reached = np.maximum.accumulate(curve)
    if recall > reached[-1]:
        return _LONGEST
    return float(np.interp(recall, reached, STRETCHES))
