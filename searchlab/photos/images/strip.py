"""A picture file without what its owner, camera and programs wrote into it besides the picture.

JPEG, PNG and WebP keep their picture to the last bit, their colour profile and which way is up.
Other formats become JPEG.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Final

from searchlab.photos.images.decode import check_format, open_rgb
from searchlab.photos.images.headers import exif_orientation

_QUALITY: Final = 92
_MARKER: Final = re.compile(rb"[^\xff]*\xff+([^\xff])", re.DOTALL)
_SCAN_END: Final = re.compile(rb"\xff(?=[^\x00\xd0-\xd7\xff])", re.DOTALL)
_BARE: Final = frozenset((0x00, 0x01, *range(0xD0, 0xD9)))
_PNG_KEPT: Final = frozenset(
    b"tRNS gAMA cHRM sRGB iCCP cICP mDCV cLLI sBIT bKGD hIST pHYs acTL fcTL fdAT".split()
)
_WEBP_KEPT: Final = frozenset((b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"))


def without_metadata(content: bytes) -> bytes:
    """Return the picture of a file and nothing else that is written in it.

    Raises:
        ImageError: It is no picture, or one that cannot be decoded.
    """
    kind = check_format(content)
    strip = {"JPEG": _jpeg, "PNG": _png, "WEBP": _webp}.get(kind)
    if strip is not None:
        try:
            return strip(content)
        except (IndexError, struct.error):  # Cut short: what can be decoded of it is written anew.
            pass
    encoded = io.BytesIO()
    open_rgb(content).image.save(encoded, "JPEG", quality=_QUALITY)
    return encoded.getvalue()


def _turned(orientation: int) -> bytes:
    """Return an EXIF block that says nothing but the orientation; empty for an upright picture."""
    if orientation == 1:
        return b""
    return b"MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x0112, 3, 1, orientation, 0, 0)


def _jpeg(content: bytes) -> bytes:
    segments, orientation = [], 0
    for code, segment in _jpeg_segments(content):
        if not orientation and code == 0xE1 and segment[4:10] == b"Exif\0\0":
            orientation = exif_orientation(segment[4:])  # of several, decoders read the first
        # Beside the picture itself: JFIF, colour profile, and how Adobe writes colours.
        is_profile = code == 0xE2 and segment[4:16] == b"ICC_PROFILE\0"
        if code in (0xE0, 0xEE) or is_profile or not (0xE1 <= code <= 0xEF or code == 0xFE):
            segments.append(segment)
    exif = _turned(orientation or 1)
    if exif:
        head = struct.pack(">BBH", 0xFF, 0xE1, len(exif) + 8)
        segments.insert(0, head + b"Exif\0\0" + exif)
    return b"\xff\xd8" + b"".join(segments) + b"\xff\xd9"


def _jpeg_segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Walk over the segments up to the end of the picture; scans have their data behind them."""
    at = 2
    while (marker := _MARKER.match(content, at)) is not None:
        at, code = marker.end(), marker[1][0]
        if code == 0xD9:  # Telephones put whole films behind it.
            return
        if code in _BARE:
            continue
        end = at + struct.unpack_from(">H", content, at)[0]
        if code == 0xDA:
            scan_end = _SCAN_END.search(content, end)
            end = len(content) if scan_end is None else scan_end.start()
        yield code, b"\xff" + content[at - 1 : end]
        at = end


def _png(content: bytes) -> bytes:
    chunks, at, orientation = [], 8, 1
    while at < len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        end = at + 12 + length
        if kind == b"eXIf":
            orientation = exif_orientation(content[at + 8 : end - 4])
        if kind[:1].isupper() or kind in _PNG_KEPT:
            chunks.append(content[at:end])
        at = end
        if kind == b"IEND":
            break
    exif = _turned(orientation)
    if exif:
        chunks.insert(1, _png_chunk(b"eXIf", exif))
    return content[:8] + b"".join(chunks)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def _webp(content: bytes) -> bytes:
    chunks, at, orientation = [], 12, 1
    end = min(len(content), 8 + struct.unpack_from("<I", content, 4)[0])
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", content, at)
        after = at + 8 + length + length % 2
        if kind == b"EXIF":
            orientation = exif_orientation(content[at + 8 : at + 8 + length])
        if kind in _WEBP_KEPT:
            chunks.append(content[at:after])
        at = after
    exif = _turned(orientation)
    if chunks[0].startswith(b"VP8X"):
        flags = chunks[0][8] & ~0x0C | (0x08 if exif else 0)
        chunks[0] = chunks[0][:8] + bytes([flags]) + chunks[0][9:]
        if exif:
            chunks.append(b"EXIF" + struct.pack("<I", len(exif)) + exif)
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body
