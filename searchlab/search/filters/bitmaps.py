"""Bitmap: a set of rows as bits, so that conditions over a million photos cost microseconds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError

_BITS = 64
COMPILED_FROM: Final = 50_000
"""From this many rows on, compiled loops are worth the import of numba; below, numpy does all."""


class Bitmap:
    """A set of rows out of `n`; it never changes.

    Row r is bit r % 64 of word r // 64, the lowest first.

    Attributes:
        n: Rows that there are.
        words: (ceil(n / 64),) uint64; bits beyond `n` are 0. May be memory-mapped.
    """

    def __init__(self, words: NDArray[np.uint64], n: int) -> None:
        """Take over the words, which must not be written to afterwards.

        Raises:
            InputError: They are not as many as `n` rows need.
        """
        if words.shape != (-(-n // _BITS),) or words.dtype != np.uint64:
            msg = f"words must be ({-(-n // _BITS)},) uint64, got {words.shape} {words.dtype}"
            raise InputError(msg)
        self.n = n
        self.words = words

    @staticmethod
    def has_strays(words: NDArray[np.uint64], n: int) -> bool:
        """Say whether bitmaps, (..., ceil(n / 64)) uint64, have bits set from row `n` on."""
        return bool(n % _BITS and (words[..., -1] >> np.uint64(n % _BITS)).any())

    @classmethod
    def full(cls, n: int) -> Bitmap:
        """Return the set of all rows."""
        words = np.full(-(-n // _BITS), ~np.uint64(0))
        if n % _BITS:
            words[-1] = (1 << n % _BITS) - 1
        return cls(words, n)

    @classmethod
    def empty(cls, n: int) -> Bitmap:
        """Return the set of no rows."""
        return cls(np.zeros(-(-n // _BITS), dtype=np.uint64), n)

    @classmethod
    def of_mask(cls, mask: NDArray[np.bool_]) -> Bitmap:
        """Return the rows where a mask is true; (n,) bool."""
        packed = np.packbits(mask, bitorder="little")
        words = np.zeros(-(-len(mask) // _BITS), dtype="<u8")
        words.view(np.uint8)[: len(packed)] = packed
        return cls(words.astype(np.uint64, copy=False), len(mask))

    @classmethod
    def of_rows(cls, rows: ArrayLike, n: int) -> Bitmap:
        """Return the set of some rows, in any order.

        Raises:
            InputError: A row is not from 0 to `n` - 1.
        """
        some = np.asarray(rows, dtype=np.int64)
        if len(some) and not 0 <= some.min() <= some.max() < n:
            msg = f"rows must be from 0 to {n - 1}, got {some.min()} to {some.max()}"
            raise InputError(msg)
        if n >= COMPILED_FROM:
            from searchlab.search.filters._kernels.bits import mark_rows

            words = np.zeros(-(-n // _BITS), dtype=np.uint64)
            mark_rows(some, words)
            return cls(words, n)
        mask = np.zeros(n, dtype=np.bool_)
        mask[some] = True
        return cls.of_mask(mask)

    @classmethod
    def any_of(cls, sets: Iterable[Bitmap], n: int) -> Bitmap:
        """Return the rows that are in at least one of some sets; of none the empty set."""
        return cls._combine(np.bitwise_or, list(sets)) or cls.empty(n)

    @classmethod
    def all_of(cls, sets: Iterable[Bitmap], n: int) -> Bitmap:
        """Return the rows that are in every one of some sets; of none the set of all rows."""
        return cls._combine(np.bitwise_and, list(sets)) or cls.full(n)

    @classmethod
    def _combine(cls, join: np.ufunc, sets: list[Bitmap]) -> Bitmap | None:
        if len(sets) < 2:
            return sets[0] if sets else None
        words = join(sets[0].words, sets[0]._like(sets[1]))
        for other in sets[2:]:
            join(words, sets[0]._like(other), out=words)
        return cls(words, sets[0].n)

    @cached_property
    def count(self) -> int:
        """How many rows are in the set."""
        if self.n >= COMPILED_FROM:
            from searchlab.search.filters._kernels.bits import count_rows

            return int(count_rows(self.words))
        return int(np.bitwise_count(self.words).sum(dtype=np.int64))

    def mask(self) -> NDArray[np.bool_]:
        """Return (n,) bool."""
        return _unpack(self.words)[: self.n].view(np.bool_)

    def rows(self) -> NDArray[np.int64]:
        """Return the rows in the set, ascending."""
        if self.n >= COMPILED_FROM:
            from searchlab.search.filters._kernels.bits import list_rows

            rows = np.empty(self.count, dtype=np.int64)
            list_rows(self.words, rows)
            return rows
        return np.flatnonzero(self.mask())

    def part(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the rows at places `start` to `stop` of `rows()`, reading no others."""
        if stop <= start:
            return np.zeros(0, dtype=np.int64)
        counts = np.cumsum(np.bitwise_count(self.words), dtype=np.int64)
        first, last = np.searchsorted(counts, (start, stop - 1), side="right").tolist()
        before = int(counts[first - 1]) if first else 0
        words = self.words[first : last + 1]
        places = np.flatnonzero(Bitmap(words, len(words) * _BITS).mask())
        return np.asarray(places[start - before : stop - before] + first * _BITS)

    def cut(self, start: int, stop: int) -> Bitmap:
        """Return the set of the rows from `start` to `stop`, as a set over these alone."""
        n, shift = stop - start, np.uint64(start % _BITS)
        first, n_words = start // _BITS, -(-n // _BITS)
        words = self.words[first : first + n_words] >> shift
        if shift:
            above = self.words[first + 1 : first + 1 + n_words] << (np.uint64(_BITS) - shift)
            words[: len(above)] |= above
        if n % _BITS:
            words[-1] &= np.uint64((1 << n % _BITS) - 1)
        return Bitmap(words, n)

    def holds(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some rows are in the set; (n_rows,) bool."""
        bits = self.words[rows // _BITS] >> (rows % _BITS).astype(np.uint64)
        return np.asarray(bits & np.uint64(1), dtype=np.bool_)

    def without(self, row: int) -> Bitmap:
        """Return the set without one row."""
        words = self.words.copy()
        words[row // _BITS] &= ~np.uint64(1 << row % _BITS)
        return Bitmap(words, self.n)

    def __contains__(self, row: int) -> bool:
        return bool(int(self.words[row // _BITS]) >> row % _BITS & 1)

    def __and__(self, other: Bitmap) -> Bitmap:
        return Bitmap(self.words & self._like(other), self.n)

    def __or__(self, other: Bitmap) -> Bitmap:
        return Bitmap(self.words | self._like(other), self.n)

    def __xor__(self, other: Bitmap) -> Bitmap:
        return Bitmap(self.words ^ self._like(other), self.n)

    def __sub__(self, other: Bitmap) -> Bitmap:
        return Bitmap(self.words & ~self._like(other), self.n)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bitmap):
            return NotImplemented
        return self.n == other.n and np.array_equal(self.words, other.words)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Bitmap({self.count:,} of {self.n:,} rows)"

    def _like(self, other: Bitmap) -> NDArray[np.uint64]:
        if other.n != self.n:
            msg = f"bitmaps must be over the same rows, got {self.n} and {other.n}"
            raise InputError(msg)
        return other.words


def _unpack(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), bitorder="little")
