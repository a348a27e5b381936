"""Lookup by hash: from 64-bit hashes of texts to entries, in a little over four bytes each.

Entries lie in the order of their hashes. The first bits of a hash say in which bucket of some
sixteen entries it is, and of the rest 32 bits are kept: a text that is not there is taken for one
that is once in some 250 million lookups, in a library of any size. Where that matters, the texts
are compared too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError

_PER_BUCKET = 16
_MOST_BITS = 32


class Hashed:
    """Places of entries by hash.

    Attributes:
        firsts: (2 ** bits + 1,) uint32 place of the first entry of each bucket, and their number.
        rests: (n,) uint32, ascending within a bucket.
    """

    def __init__(self, firsts: NDArray[np.uint32], rests: NDArray[np.uint32]) -> None:
        """Take the parts.

        Raises:
            DataError: They do not fit together.
        """
        n_buckets = len(firsts) - 1
        self._bits = max(0, n_buckets.bit_length() - 1)
        sound = (
            n_buckets == 1 << self._bits
            and self._bits <= _MOST_BITS
            and firsts[0] == 0
            and firsts[-1] == len(rests)
            and bool((firsts[1:] >= firsts[:-1]).all())
        )
        if not sound:
            msg = f"buckets that do not fit {len(rests)} entries"
            raise DataError(msg)
        self.firsts, self.rests = firsts, rests

    @classmethod
    def of(cls, hashes: NDArray[np.uint64]) -> Hashed:
        """Lay down hashes, (n,) ascending."""
        bits = min(_MOST_BITS, max(0, (len(hashes) - 1) // _PER_BUCKET).bit_length())
        # By halves, since a shift by all 64 bits is none.
        buckets = (hashes >> np.uint64(32)) >> np.uint64(32 - bits)
        firsts = np.searchsorted(buckets, np.arange((1 << bits) + 1, dtype=np.uint64))
        rests = (hashes >> np.uint64(32 - bits)).astype(np.uint32)
        return cls(firsts.astype(np.uint32), rests)

    def __len__(self) -> int:
        return len(self.rests)

    def places(self, hashed: int) -> slice:
        """Return where the entries of a hash are."""
        bucket = hashed >> (64 - self._bits)
        first, last = self.firsts.item(bucket), self.firsts.item(bucket + 1)
        rest = np.uint32(hashed >> (32 - self._bits) & 0xFFFFFFFF)
        within: NDArray[Any] = self.rests[first:last]
        return slice(
            first + int(within.searchsorted(rest)),
            first + int(within.searchsorted(rest, side="right")),
        )
