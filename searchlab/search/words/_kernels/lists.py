"""Reading lists of postings as they lie in bytes, a block at a time; parts of the kernels.

What a list has come to is kept in a row of numbers beside the documents of its block. Bytes may be
damaged: no read leaves them, documents ascend, and none is beyond the last one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from searchlab._numba import inner

U64 = types.uint64
LISTED = 64  # documents of a block of a list
_PADDING = 16  # bytes after all lists, which may be read and mean nothing
_MOST_BITS = 32  # of a gap
_LAST_SHIFT = 28  # of a varint
# What is kept of a list: the document that it has come to, or the number of documents where it has
# ended; which of its postings that is; how many there are, the set of fields that they share, and
# where its parts begin.
N_KEPT = 7
DOC, PLACE, COUNT, COMMON, _SKIPS, _GAPS, FIELDS = range(N_KEPT)


@inner
def _varint(data: Any, at: Any, stop: Any) -> Any:
    """Return a number and the byte after it, which is -1 where there is none."""
    value, shift = types.int64(0), types.int64(0)
    while at < stop and shift <= _LAST_SHIFT:
        byte = types.int64(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return value, types.int64(-1)


@inner
def _u32(data: Any, at: Any) -> Any:
    low = types.int64(data[at]) | types.int64(data[at + 1]) << 8
    return low | types.int64(data[at + 2]) << 16 | types.int64(data[at + 3]) << 24


@inner
def _fill(data: Any, one: Any, listed: Any, block: Any, doc: Any, n_docs: Any) -> Any:
    """List the documents of a block, the first of which comes after `doc`; whether it is sound."""
    at = one[_GAPS] + (_u32(data, one[_SKIPS] + 8 * block - 4) if block else 0)
    count = min(LISTED, one[COUNT] - block * LISTED)
    if at > one[FIELDS]:
        return False
    if count == LISTED:
        size = one[_GAPS] + _u32(data, one[_SKIPS] + 8 * block + 4) - at
        bits = size >> 3
        if size < 0 or size & 7 or bits > _MOST_BITS or at + size > one[FIELDS]:
            return False
        if bits == 8:  # as many words of very many photos have it
            for number in range(LISTED):
                doc += types.int64(data[U64(at + number)]) + 1
                listed[U64(number)] = doc
            return doc < n_docs
        words, place = data.view(np.uint64), U64(at << 3)
        step, mask = U64(bits), (U64(1) << U64(bits)) - U64(1)
        for number in range(LISTED):
            word, low = place >> U64(6), place & U64(63)
            # By halves, since a shift by all 64 bits is none.
            high = (words[word + U64(1)] << U64(1)) << (U64(63) - low)
            doc += types.int64((words[word] >> low | high) & mask) + 1
            listed[U64(number)] = doc
            place += step
    else:
        for number in range(count):
            gap, at = _varint(data, at, one[FIELDS])
            if at < 0:
                return False
            doc += gap + 1
            listed[number] = doc
    return doc < n_docs


@inner
def begin_list(data: Any, begin: Any, end: Any, n_docs: Any, one: Any, listed: Any) -> Any:
    """Read the head of a list and its first block; whether it can be a list."""
    if begin < 0 or begin >= end or end > len(data) - _PADDING:
        return False
    one[COMMON] = data[begin]
    count, at = _varint(data, begin + 1, end)
    if at < 0 or count < 1 or count > n_docs:
        return False
    one[COUNT], one[_SKIPS], one[_GAPS] = count, at, at + 8 * (count // LISTED)
    one[FIELDS] = end - (count if one[COMMON] == 0 else 0)
    if one[_GAPS] > one[FIELDS]:
        return False
    sound = _fill(data, one, listed, types.int64(0), types.int64(-1), n_docs)
    one[PLACE], one[DOC] = 0, listed[0]
    return sound


@inner
def fields_at(data: Any, one: Any, place: Any) -> Any:
    return data[one[FIELDS] + place] if one[COMMON] == 0 else types.uint8(one[COMMON])


@inner
def block_end_of(one: Any, place: Any) -> Any:
    """Return where the block ends that a posting is in."""
    return min(one[COUNT], (place | (LISTED - 1)) + 1)


@inner
def next_block(data: Any, one: Any, listed: Any, place: Any, doc: Any, n_docs: Any) -> Any:
    """List the block that begins with posting `place`, after `doc`; its first document.

    It is `n_docs` where the list has ended, and below 0 where it is damaged.
    """
    if place == one[COUNT]:
        return n_docs
    sound = _fill(data, one, listed, place >> 6, doc, n_docs)
    return listed[0] if sound else types.int64(-1)


@inner
def bytes_before(data: Any, one: Any, place: Any, stop: Any) -> Any:
    """Return where the block lies that begins with posting `place`, if it is one of bytes.

    And if it is whole and ends before document `stop`; else -1.
    """
    if place + LISTED > one[COUNT]:
        return types.int64(-1)
    skip = one[_SKIPS] + 8 * (place >> 6)
    at = one[_GAPS] + (_u32(data, skip - 4) if place else 0)
    size = one[_GAPS] + _u32(data, skip + 4) - at
    is_of_bytes = size == LISTED and at + size <= one[FIELDS]
    return at if is_of_bytes and _u32(data, skip) < stop else types.int64(-1)


@inner
def skip_to(data: Any, one: Any, listed: Any, n_docs: Any, wanted: Any) -> Any:
    """Go on to the first document of at least `wanted`; whether the list is sound so far."""
    if one[DOC] >= wanted:
        return True
    place, count = one[PLACE], one[COUNT]
    block = place >> 6
    if listed[min(count - block * LISTED, LISTED) - 1] < wanted:
        # A skip says with which document a block ends: the last block that follows a lower one.
        low, step, last = block + 1, 1, count >> 6
        if low > last:
            one[DOC] = n_docs
            return True
        while low + step <= last and _u32(data, one[_SKIPS] + 8 * (low + step - 1)) < wanted:
            low += step
            step *= 2
        high = min(low + step, last + 1)
        while high - low > 1:
            middle = (low + high) >> 1
            if _u32(data, one[_SKIPS] + 8 * (middle - 1)) < wanted:
                low = middle
            else:
                high = middle
        place = low * LISTED - 1
        if place + 1 == count:
            one[DOC] = n_docs
            return True
        doc = _u32(data, one[_SKIPS] + 8 * (low - 1))
        if not _fill(data, one, listed, low, doc, n_docs):
            return False
        block = low
    upto = min(count, (block + 1) * LISTED)
    low, high = place + 1, upto
    while low < high:
        middle = (low + high) >> 1
        if listed[middle & (LISTED - 1)] < wanted:
            low = middle + 1
        else:
            high = middle
    one[PLACE] = min(low, count - 1)
    if low == count:
        one[DOC] = n_docs
        return True
    one[DOC] = listed[low & (LISTED - 1)]
    return low < upto
