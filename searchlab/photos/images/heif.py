"""How much work a HEIF file is for its decoder, told from its boxes before it is decoded.

A HEIF file is a list of items that refer to each other: a photo is a grid of tiles, each of which
may itself be made of others, and any number of items may share the same bytes, properties and
metadata. libheif holds every item to the size that it declares and to a number of items; how often
one is used it does not count, so that a few kilobytes could take hours or all memory. That is
counted here.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

MAX_DECODED: Final = 512_000_000
"""Pixels that are decoded for one picture, tiles and opacity included; four times its largest."""
_MAX_COPIED: Final = 50 * 2**20  # bytes of metadata and colour profiles that are handed out
_MAX_DEPTH: Final = 8  # of parts that are made of parts


def boxes(content: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Walk over the boxes of an ISO media file from `at` to `end`, without looking inside.

    Yields:
        The kind of a box, and where its content begins and ends.
    """
    while at + 8 <= end:
        size, kind = struct.unpack_from(">I4s", content, at)
        head = 8
        if size == 1 and at + 16 <= end:
            size, head = int(struct.unpack_from(">Q", content, at + 8)[0]), 16
        size = end - at if size == 0 or size > end - at else size
        if size < head:
            return
        yield kind, at + head, at + size
        at += size


def decoding_excess(content: bytes) -> str | None:
    """Say what a HEIF file has too much of; None where all is well or it is damaged.

    Raises:
        struct.error: It is cut short within a box.
    """
    whole = _Items()
    metas = 0
    for kind, at, end in boxes(content, 0, len(content)):
        if kind == b"meta":
            metas += 1
            whole.read(content[at + 4 : end], len(content))
    if metas > 1:
        return "more than one list of items"
    if sum(whole.lengths.values()) > len(content):
        return "items that share their bytes"
    copied = sum(whole.lengths[item] * times for item, times in whole.described.items())
    if copied + whole.profiles > _MAX_COPIED:
        return f"more than {_MAX_COPIED:,} bytes of metadata"
    if whole.decoded(whole.primary) > MAX_DECODED:
        return f"more than {MAX_DECODED:,} pixels in its parts"
    return None


class _Items:
    """The items of a file.

    Attributes:
        primary: Number of the one that is the picture.
        lengths: Bytes of each.
        described: How many items each block of metadata is said to describe.
        profiles: Bytes of all properties, each counted for every item that has it.
    """

    def __init__(self) -> None:
        self.primary = -1
        self.lengths: Counter[int] = Counter()
        self.described: Counter[int] = Counter()
        self.profiles = 0
        self._parts: defaultdict[int, list[int]] = defaultdict(list)
        self._pixels: Counter[int] = Counter()

    def read(self, meta: bytes, file_bytes: int) -> None:
        """Take in the content of a `meta` box of a file of so many bytes."""
        for kind, at, end in boxes(meta, 0, len(meta)):
            if kind == b"pitm":
                self.primary = _number(meta, at + 4, 4 if meta[at] else 2)
            elif kind == b"iloc":
                self._read_places(meta[at:end], file_bytes)
            elif kind == b"iref":
                self._read_references(meta[at:end])
            elif kind == b"iprp":
                self._read_properties(meta[at:end])

    def _read_places(self, iloc: bytes, file_bytes: int) -> None:
        version, sizes, more = iloc[0], iloc[4], iloc[5]
        n_base, n_offset, n_length = more >> 4, sizes >> 4, sizes & 15
        n_index = more & 15 if version else 0
        n_id = 4 if version > 1 else 2
        at = 6 + n_id
        for _ in range(_number(iloc, 6, n_id)):
            item = _number(iloc, at, n_id)
            at += n_id + (2 if version else 0) + 2
            base = _number(iloc, at, n_base)
            n_extents = _number(iloc, at + n_base, 2)
            at += n_base + 2
            if not n_length:  # libheif takes that for 0 bytes
                at += n_extents * (n_index + n_offset)
                continue
            for _ in range(n_extents):
                start = base + _number(iloc, at + n_index, n_offset)
                length = _number(iloc, at + n_index + n_offset, n_length)
                at += n_index + n_offset + n_length
                if start + length <= file_bytes:  # what lies beyond is never read
                    self.lengths[item] += length

    def _read_references(self, iref: bytes) -> None:
        n_id = 4 if iref[0] else 2
        for kind, at, _ in boxes(iref, 4, len(iref)):
            item = _number(iref, at, n_id)
            n_others = _number(iref, at + n_id, 2)
            first = at + n_id + 2
            others = [_number(iref, first + n * n_id, n_id) for n in range(n_others)]
            if kind == b"dimg":
                self._parts[item] += others
            elif kind == b"cdsc":
                self.described[item] += n_others
            elif kind == b"auxl":
                for other in others:
                    self._parts[other].append(item)

    def _read_properties(self, iprp: bytes) -> None:
        inside = list(boxes(iprp, 0, len(iprp)))
        known = [(0, 0)]  # bytes and pixels; they are counted from 1
        for kind, at, end in inside:
            if kind == b"ipco":
                known += [
                    (last - first, _pixels(iprp, first) if name == b"ispe" else 0)
                    for name, first, last in boxes(iprp, at, end)
                ]
        for kind, at, end in inside:
            if kind == b"ipma":
                self._read_owners(iprp[at:end], known)

    def _read_owners(self, ipma: bytes, known: list[tuple[int, int]]) -> None:
        n_id, n_index = (4 if ipma[0] else 2), 1 + (ipma[3] & 1)
        at = 8
        for _ in range(_number(ipma, 4, 4)):
            item, n_here = _number(ipma, at, n_id), _number(ipma, at + n_id, 1)
            at += n_id + 1
            for _ in range(n_here):
                number = _number(ipma, at, n_index) & (0x7FFF if n_index == 2 else 0x7F)
                at += n_index
                n_bytes, pixels = known[number] if number < len(known) else known[0]
                self.profiles += n_bytes
                self._pixels[item] = max(self._pixels[item], pixels)

    def decoded(self, item: int) -> int:
        """Count the pixels that are decoded for an item, up to some more than `MAX_DECODED`."""
        known: dict[tuple[int, int], int] = {}

        def count(item: int, depth: int) -> int:
            if depth == 0:
                return MAX_DECODED + 1
            if (item, depth) not in known:
                total = max(1, self._pixels[item])
                for part, times in Counter(self._parts.get(item, ())).items():
                    total += times * count(part, depth - 1)
                known[item, depth] = min(total, MAX_DECODED + 1)
            return known[item, depth]

        return count(item, _MAX_DEPTH)


def _pixels(content: bytes, at: int) -> int:
    return _number(content, at + 4, 4) * _number(content, at + 8, 4)


def _number(content: bytes, at: int, n_bytes: int) -> int:
    if at + n_bytes > len(content):
        msg = "cut short"
        raise struct.error(msg)
    return int.from_bytes(content[at : at + n_bytes], "big")
