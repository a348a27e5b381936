"""Postings in bytes: which documents have a term, and in which fields.

A list of postings is

    fields    one byte, a set of fields as bits; 0 where the postings differ in them
    count     how many documents, as a varint
    skips     for each whole block of 64 documents: its last document, and where what follows the
              block begins, in bytes after the skips; two uint32, little-endian
    gaps      how many documents each leaves out after the one before: those of a whole block in as
              many bits each as the largest needs, the first one lowest, but in 8 where these are
              5 to 7, which are read faster; the rest as varints
    fields    one byte a document, only where they differ

A varint is seven bits a byte, the lowest first, and the eighth is set in all bytes but the last. A
block is read 8 bytes at a time, so padding follows the last list. Decoded documents ascend,
whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError

BLOCK: Final = 64
WORD: Final = 8
"""Bytes that the kernel reads at once; all bytes together are a multiple."""

PADDING: Final = 2 * WORD
"""Bytes that follow the last list at least."""

_BYTES_A_BIT = BLOCK // 8  # of a block
_MOST_BITS = 32
_LONGEST = 5  # bytes of a varint
_AT_ONCE = 2**20  # postings that are encoded together
_STEPS = tuple(np.uint32(1 << 7 * size) for size in range(1, _LONGEST))


class ListHead(NamedTuple):
    """How a list of postings begins.

    Attributes:
        fields: Of all its documents, as bits; 0 where they differ.
        length: Documents.
        skips: Where the skips begin.
        gaps: Where the gaps begin.
        stop: Where they end.
    """

    fields: int
    length: int
    skips: int
    gaps: int
    stop: int


def read_head(data: NDArray[np.uint8], begin: int, end: int, n_docs: int) -> ListHead:
    """Read how the list between two places of `data` begins.

    Raises:
        DataError: It cannot be a list over so many documents.
    """
    if 0 <= begin < end <= len(data) - PADDING:
        head = data[begin : min(end, begin + 1 + _LONGEST)].tobytes()
        count, size = 0, 1
        for size, byte in enumerate(head[1:], start=2):
            count |= (byte & 127) << 7 * (size - 2)
            if byte < 128:
                break
        skips = begin + size
        gaps = skips + 8 * (count // BLOCK)
        stop = end if head[0] else end - count
        if 1 <= count <= n_docs and gaps <= stop:
            return ListHead(head[0], count, skips, gaps, stop)
    raise damaged()


def decode(
    data: NDArray[np.uint8], begin: int, end: int, n_docs: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Read the list between two places of `data`.

    Returns:
        (count,) uint32 documents, ascending, and (count,) uint8 their fields as bits.

    Raises:
        DataError: It cannot be a list over so many documents.
    """
    head = read_head(data, begin, end, n_docs)
    ends = data[head.skips : head.gaps].reshape(-1, 8)[:, 4:].copy().view("<u4")[:, 0]
    tail = head.gaps + int(ends[-1]) if len(ends) else head.gaps
    if tail > head.stop:
        raise damaged()
    gaps = _varints(data[tail : head.stop], head.length % BLOCK)
    if len(ends):
        gaps = np.concatenate([_unpacked(data, head.gaps, ends.astype(np.int64)), gaps])
    docs = np.cumsum(gaps + 1) - 1
    if docs[-1] >= n_docs:
        raise damaged()
    if head.fields:
        return docs.astype(np.uint32), np.full(head.length, head.fields, dtype=np.uint8)
    return docs.astype(np.uint32), np.asarray(data[head.stop : end])


def _unpacked(data: NDArray[np.uint8], first: int, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Read the gaps of blocks that begin at `first` and end so many bytes after it."""
    sizes = np.diff(ends, prepend=0)
    bits = sizes // _BYTES_A_BIT
    if (sizes % _BYTES_A_BIT).any() or bits.min() < 0 or bits.max() > _MOST_BITS:
        raise damaged()
    firsts = (8 * (first + ends - sizes))[:, None]
    places = firsts + np.multiply.outer(bits, np.arange(BLOCK))
    words = np.zeros(places.shape, dtype=np.uint64)
    for byte in range(_LONGEST):
        words |= data[(places >> 3) + byte].astype(np.uint64) << np.uint64(8 * byte)
    words >>= (places & 7).astype(np.uint64)
    masks = (np.uint64(1) << bits.astype(np.uint64)) - np.uint64(1)
    return np.asarray((words & masks[:, None]).astype(np.int64).reshape(-1))


def _varints(data: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
    lasts = np.flatnonzero(data < 128)
    if len(lasts) != count or (lasts[-1] if count else -1) != len(data) - 1:
        raise damaged()
    if len(data) == count:
        return data.astype(np.int64)
    sizes = np.diff(lasts, prepend=-1)
    if sizes.max() > _LONGEST:
        raise damaged()
    firsts = lasts + 1 - sizes
    shifts = 7 * (np.arange(len(data)) - np.repeat(firsts, sizes))
    return np.asarray(np.add.reduceat((data & 127).astype(np.int64) << shifts, firsts))


def damaged() -> DataError:
    """Return the error that says so."""
    return DataError("postings must be documents and their fields, got other bytes")


def encode(
    counts: NDArray[np.int64], docs: NDArray[np.uint32], fields: NDArray[np.uint8]
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Write lists, some at a time.

    Args:
        counts: (n_terms,) documents of each list, 1 and more.
        docs: (n_postings,) documents of all lists end to end, ascending within each.
        fields: (n_postings,) sets of fields as bits, 1 and more.

    Yields:
        Bytes of some lists, and how many each of them takes; at last the padding, for no list.
    """
    ends = np.cumsum(counts)
    first, total = 0, 0
    while first < len(counts):
        start = int(ends[first] - counts[first])
        last = max(first + 1, int(np.searchsorted(ends, start + _AT_ONCE, side="right")))
        some = slice(start, int(ends[last - 1]))
        data, lengths = _encode(counts[first:last], docs[some], fields[some])
        yield data, lengths
        first, total = last, total + len(data)
    yield np.zeros(PADDING + -total % WORD, dtype=np.uint8), np.zeros(0, dtype=np.int64)


def _encode(
    counts: NDArray[np.int64], docs: NDArray[np.uint32], fields: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    firsts = np.cumsum(counts) - counts
    gaps = docs - np.concatenate([docs[:1], docs[:-1]]) - np.uint32(1)
    gaps[firsts] = docs[firsts]
    numbers = np.arange(len(docs)) - np.repeat(firsts, counts)
    n_blocks = counts // BLOCK
    in_block = numbers < np.repeat(n_blocks * BLOCK, counts)
    blocks = gaps[in_block].reshape(-1, BLOCK)
    block_bits = np.frexp(blocks.max(axis=1, initial=0).astype(np.float64))[1].astype(np.int64)
    block_bits[(block_bits > 4) & (block_bits < 8)] = 8
    block_sizes = block_bits * _BYTES_A_BIT
    list_of_block = np.repeat(np.arange(len(counts)), n_blocks)
    sizes = _sizes_of(gaps)  # of varints
    sizes[in_block] = 0
    packed = np.bincount(list_of_block, block_sizes, minlength=len(counts)).astype(np.int64)
    tails = np.add.reduceat(sizes, firsts)

    common = np.minimum.reduceat(fields, firsts)
    common[common != np.maximum.reduceat(fields, firsts)] = 0
    skips = 1 + _sizes_of(counts)  # where each part of a list begins in it
    at_gaps = skips + 8 * n_blocks
    at_tail = at_gaps + packed
    at_fields = at_tail + tails
    lengths = at_fields + np.where(common == 0, counts, 0)
    lists = np.cumsum(lengths) - lengths

    data = np.empty(int(lengths.sum()), dtype=np.uint8)
    data[lists] = common
    _put_varints(data, lists + 1, counts)
    rests = ~in_block
    begins = np.cumsum(sizes) - sizes
    places = np.repeat(lists + at_tail - begins[firsts], counts) + begins
    _put_varints(data, places[rests], gaps[rests])
    mixed = np.repeat(common == 0, counts)
    data[(np.repeat(lists + at_fields, counts) + numbers)[mixed]] = fields[mixed]
    if len(blocks):
        ends = np.cumsum(block_sizes)
        firsts_of_lists = np.cumsum(n_blocks) - n_blocks
        before = (ends - block_sizes)[np.minimum(firsts_of_lists, len(ends) - 1)]
        ends -= before[list_of_block]
        place = np.arange(len(blocks)) - firsts_of_lists[list_of_block]
        marks = np.empty((len(blocks), 2), dtype="<u4")
        marks[:, 0] = docs[firsts[list_of_block] + BLOCK * (place + 1) - 1]
        marks[:, 1] = ends
        at_marks = (lists + skips)[list_of_block] + 8 * place
        data[at_marks[:, None] + np.arange(8)] = marks.view(np.uint8)
        at_blocks = (lists + at_gaps)[list_of_block] + ends - block_sizes
        _put_blocks(data, at_blocks, blocks, block_bits)
    return data, lengths


def _sizes_of(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the bytes of each as a varint."""
    sizes = np.ones(len(values), dtype=np.int64)
    for step in _STEPS:
        sizes += values >= step
    return sizes


def _put_varints(
    data: NDArray[np.uint8], places: NDArray[np.int64], values: NDArray[np.integer]
) -> None:
    while len(values):
        more = values >= 128
        data[places] = (values & 127) | (more.astype(values.dtype) << 7)
        places, values = places[more] + 1, values[more] >> 7


def _put_blocks(
    data: NDArray[np.uint8],
    places: NDArray[np.int64],
    blocks: NDArray[np.uint32],
    bits: NDArray[np.int64],
) -> None:
    """Write blocks of gaps at some places, each in its number of bits."""
    for n_bits in np.unique(bits[bits > 0]).tolist():
        some = bits == n_bits
        ones = blocks[some][:, :, None] >> np.arange(n_bits, dtype=np.uint32) & np.uint32(1)
        packed = np.packbits(
            ones.astype(np.uint8).reshape(len(ones), -1), axis=1, bitorder="little"
        )
        data[places[some][:, None] + np.arange(packed.shape[1])] = packed
