"""Kernels on packed bits: counting, listing, marking and walking the rows of a bitmap.

Row r is bit r % 64 of word r // 64, the lowest first. Row numbers are trusted: one that is out of
range reads or writes where it must not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from searchlab._numba import I64, kernel, reads, writes
from searchlab.search.filters._kernels.simd import add_shared

I32, U64 = types.int32, types.uint64


@intrinsic
def popcount(_context: Any, word: Any) -> Any:
    """Count the bits of a uint64."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate


@intrinsic
def lowest(_context: Any, word: Any) -> Any:
    """Return the position of the lowest bit of a uint64 that is set; 64 if none is."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return word(word), generate


@kernel(reads(U64))
def count_rows(words: Any) -> Any:
    """Count the rows of a bitmap."""
    total = uint64(0)
    for word in words:
        total += popcount(word)
    return types.int64(total)


@kernel(reads(U64), writes(I64))
def list_rows(words: Any, rows: Any) -> None:
    """Write the rows of a bitmap, ascending, into an array of the right length."""
    count = 0
    for place in range(len(words)):
        word = words[place]
        while word:
            rows[count] = (place << 6) + types.int64(lowest(word))
            word &= word - uint64(1)
            count += 1


@kernel(reads(I64), writes(U64))
def mark_rows(rows: Any, words: Any) -> None:
    """Put rows into a bitmap."""
    for row in rows:
        number = uint64(row)
        words[number >> uint64(6)] |= uint64(1) << (number & uint64(63))


@kernel(reads(I32), writes(U64))
def flip_rows(rows: Any, words: Any) -> None:
    """Flip rows of a bitmap: take out those that are in it, and put in the others."""
    for row in rows:
        number = uint64(row)
        words[number >> uint64(6)] ^= uint64(1) << (number & uint64(63))


@kernel(reads(U64), reads(U64), writes(I64))
def count_shared(sets: Any, words: Any, counts: Any) -> None:
    """Count for each of several bitmaps, laid end to end, the rows that it shares with one."""
    n_words = len(words)
    for which in range(len(counts)):
        total = uint64(0)
        start = which * n_words
        for place in range(n_words):
            total += popcount(sets[start + place] & words[place])
        counts[which] = total


@kernel(reads(U64), reads(U64), writes(I64))
def count_sliced(planes: Any, words: Any, counts: Any) -> None:
    """Add to the count of each number the rows of a bitmap that have it.

    Args:
        planes: (n_planes * n_words,) uint64, three or more bitmaps laid end to end: the rows whose
            number has the lowest bit set, those with the next one, and so on. None are needed where
            nothing is counted.
        words: (n_words,) uint64, of the bitmap.
        counts: (n_numbers,) int64, added to; numbers from there on are not counted.
    """
    n_words, n_groups = len(words), (len(counts) + 7) >> 3
    if not (n_words and n_groups):
        return
    n_planes = len(planes) // n_words
    sums = np.zeros(64 * n_groups, dtype=np.uint64)
    whole = n_words & ~7
    for place in range(0, whole, 8):
        add_shared(planes, n_words, words, place, n_groups, sums)
    if whole < n_words:
        rest = np.zeros((n_planes + 1) * 8, dtype=np.uint64)
        for place in range(whole, n_words):
            rest[n_planes * 8 + place - whole] = words[place]
            for bit in range(n_planes):
                rest[bit * 8 + place - whole] = planes[bit * n_words + place]
        add_shared(rest[: n_planes * 8], 8, rest[n_planes * 8 :], 0, n_groups, sums)
    for number in range(len(counts)):
        counts[number] += types.int64(sums[8 * number : 8 * number + 8].sum())


@kernel(reads(I32), reads(I64), reads(U64), writes(I64))
def count_listed(rows: Any, starts: Any, words: Any, counts: Any) -> None:
    """Add to each count the rows of a list that are in a bitmap; the lists lie end to end."""
    for which in range(len(counts)):
        total = uint64(0)
        for place in range(starts[which], starts[which + 1]):
            row = uint64(rows[place])
            total += words[row >> uint64(6)] >> (row & uint64(63)) & uint64(1)
        counts[which] += total


@kernel(reads(U64), reads(I32), writes(I64))
def count_codes(words: Any, codes: Any, counts: Any) -> None:
    """Add to each code's count the rows of a bitmap that have it; codes out of range have none."""
    for place in range(len(words)):
        word = words[place]
        while word:
            code = codes[(place << 6) + types.int64(lowest(word))]
            if 0 <= code < len(counts):
                counts[code] += 1
            word &= word - uint64(1)


@kernel(reads(I32), reads(U64), I64, writes(I64))
def walk_rows(order: Any, words: Any, skipped: Any, rows: Any) -> None:
    """Write the rows of a bitmap in a given order, without the first few, until `rows` is full.

    The bitmap must have enough rows for that.
    """
    count = -skipped
    for row in order:
        if count == len(rows):
            break
        number = uint64(row)
        if words[number >> uint64(6)] >> (number & uint64(63)) & uint64(1):
            if count >= 0:
                rows[count] = row
            count += 1
