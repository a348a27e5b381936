"""How much work it takes to decode a picture, told by its structure before anything is decoded."""

from __future__ import annotations

import re
import struct
from typing import Final, NamedTuple

from searchlab.photos.images.headers import MAX_PARTS, declared_size

_MARKER: Final = re.compile(rb"[^\xff]*\xff+([^\x00\xff])", re.DOTALL)
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
# Time per pixel compared with a pass over a JPEG.
_PASSES: Final = {"PNG": 2, "WEBP": 2, "AVIF": 4}


class Effort(NamedTuple):
    """What a decoder has to do.

    Attributes:
        pixels: Width times height.
        passes: Times that it goes over them; a pass over a JPEG takes 10 ns a pixel or less.
    """

    pixels: int
    passes: int


def decoding_effort(content: bytes, kind: str) -> Effort:
    """Read how much work a picture is; a progressive JPEG is passed over once for each scan.

    Little more than its first bytes are read, in a few milliseconds; damage is left to the decoder.

    Args:
        content: The whole file.
        kind: Its format, one of JPEG, PNG, WEBP and AVIF.

    Returns:
        No pixels where the structure is damaged.
    """
    try:
        if kind == "JPEG":
            return _jpeg_effort(content)
        return Effort(_pixels(content, kind), _PASSES[kind])
    except (KeyError, IndexError, struct.error):
        return Effort(0, 1)


def _pixels(content: bytes, kind: str) -> int:
    if kind == "PNG":
        width, height = struct.unpack_from(">II", content, 16)
        return int(width * height)
    width, height = avif_size(content) if kind == "AVIF" else declared_size(content, kind)
    return width * height


def avif_size(content: bytes) -> tuple[int, int]:
    """Return the width and height of the largest item of an AVIF or HEIF file.

    A grid declares its own size beside its tiles'.
    """
    largest, at = (0, 0), 0
    for _ in range(MAX_PARTS):
        at = content.find(b"ispe", at) + 4
        if at < 4 or at + 12 > len(content):
            break
        width, height = struct.unpack_from(">II", content, at + 4)
        largest = max(largest, (width, height), key=lambda size: size[0] * size[1])
    return largest


def _jpeg_effort(content: bytes) -> Effort:
    at = 2
    for _ in range(MAX_PARTS):
        marker = _MARKER.match(content, at)
        if marker is None or marker[1] == b"\xda":
            break
        at = marker.end()
        if marker[1][0] in _FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 3)
            # Two bytes that no scan can hold; those of a thumbnail count as well.
            return Effort(width * height, max(1, content.count(b"\xff\xda")))
        at += struct.unpack_from(">H", content, at)[0]
    return Effort(0, 1)
