"""BlockFilter: in which blocks of a long text a pattern may begin.

Of each block it knows which runs of two to four bytes and which whole lines begin in it, each by
two hashes into 65,536 bits (a Bloom filter). It may name a block that does not have the pattern,
but never misses one that has it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_BLOCK_BYTES = 4_096
_MAX_BLOCKS = 4_096
_SHORTEST, _LONGEST = 2, 4
_CHECKED = 32  # bytes at the head of a pattern that are looked up
_LINE = 10


class BlockFilter:
    """A Bloom filter for each block of a text; at most 32 MiB for all of them."""

    def __init__(self, text: NDArray[np.uint8]) -> None:
        """Read a text, (n_bytes,), which begins and ends with an end of line."""
        self._length = len(text)
        self._size = max(_BLOCK_BYTES, -(-len(text) // _MAX_BLOCKS))
        n_blocks = -(-len(text) // self._size)
        ends = np.flatnonzero(text == _LINE)
        lines = _hashes(_lines(text, ends))
        line_starts = np.searchsorted(ends, np.arange(n_blocks + 1) * self._size)
        bits = np.zeros((-(-n_blocks // 8), 2**16), dtype=np.uint8)
        for group, row in enumerate(bits):
            eight_blocks = np.zeros((8, 2**16), dtype=np.bool_)
            for is_set, block in zip(eight_blocks, range(8 * group, n_blocks), strict=False):
                start = block * self._size
                for run in _runs(text[start : start + self._size + _CHECKED]):
                    is_set[_hashes(run)] = True
                is_set[lines[:, line_starts[block] : line_starts[block + 1]]] = True
            row[:] = np.packbits(eight_blocks, axis=0)[0]
        self._bits = np.ascontiguousarray(bits.T)  # (65536, n_blocks / 8)

    def stretches(self, pattern: bytes) -> Iterator[tuple[int, int]]:
        """Yield the stretches of the text, in order, in which a pattern may begin."""
        if len(pattern) < _SHORTEST:
            yield 0, self._length
            return
        head = np.frombuffer(pattern[:_CHECKED], dtype=np.uint8)
        hashes = _hashes(_runs(head)[-1]).ravel()
        if pattern.count(_LINE) == 2 and pattern[0] == pattern[-1] == _LINE:
            whole = np.frombuffer(pattern, dtype=np.uint8)
            hashes = np.append(hashes, _hashes(_lines(whole, np.array([0, len(whole) - 1]))))
        is_possible = np.unpackbits(np.bitwise_and.reduce(self._bits[hashes], axis=0))
        changes = np.diff(is_possible.view(np.int8), prepend=0, append=0)
        edges = np.flatnonzero(changes) * self._size
        for start, stop in edges.reshape(-1, 2).tolist():
            yield start, min(stop, self._length)


def _runs(text: NDArray[np.uint8]) -> list[NDArray[np.uint32]]:
    """Read the runs of two, three and four bytes that begin at each place as numbers."""
    runs = [text.astype(np.uint32)]
    for length in range(1, min(_LONGEST, len(text))):
        later = text[length:].astype(np.uint32) << np.uint32(8 * length)
        runs.append(runs[-1][: len(later)] | later)
    return runs[_SHORTEST - 1 :]


def _lines(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Make a number of each line's first and last bytes and its length."""
    lengths = np.diff(ends).astype(np.uint32)
    numbers = lengths * np.uint32(0x9E3779B1)
    for step in range(1, _LONGEST):
        # Within the line, also where it is short.
        first, last = np.minimum(ends[:-1] + step, ends[1:]), np.maximum(ends[1:] - step, ends[:-1])
        numbers = (numbers ^ text[first]) * np.uint32(0x85EBCA6B)
        numbers = (numbers ^ text[last]) * np.uint32(0xC2B2AE35)
    return numbers


def _hashes(numbers: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """Hash (n,) numbers twice, (2, n)."""
    mixed = numbers * np.uint32(0x9E3779B1)
    mixed = (mixed ^ mixed >> np.uint32(15)) * np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    return np.stack([mixed, mixed >> np.uint32(16)]).astype(np.uint16)
