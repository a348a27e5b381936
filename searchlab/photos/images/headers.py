"""What the bytes of a picture tell before it is decoded: format, orientation, size, complexity."""

from __future__ import annotations

import re
import struct
from typing import Final

from searchlab.photos.images.heif import decoding_excess

__all__ = ["FORMATS", "declared_size", "excess", "exif_orientation", "sniff"]

# The formats that searchlab decodes, in the order in which messages list them.
FORMATS: Final = ("JPEG", "PNG", "WEBP", "AVIF", "HEIF", "GIF", "TIFF")

_PREFIXES: Final = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),  # The 64-bit kind.
    (b"MM\0+", "TIFF"),
    # Pictures that are recognised only to be refused by name.
    (b"BM", "BMP"),
    (b"8BPS", "PSD"),
    (b"%PDF", "PDF"),
    (b"%!PS", "EPS"),
    (b"\0\0\1\0", "ICO"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\0\0\0\x0cJXL ", "JPEG XL"),
    (b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"<svg", "SVG"),
)
_AVIF_BRANDS: Final = {b"avif", b"avis"}
_HEIF_BRANDS: Final = {
    *(b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1")
}


def sniff(content: bytes) -> str | None:
    """Name the format of a picture by its first bytes; None where they are no picture's."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "WEBP"
    if content[4:8] == b"ftyp":
        brands = _brands(content)
        if brands & _AVIF_BRANDS:
            return "AVIF"
        return "HEIF" if brands & _HEIF_BRANDS else None
    return next((name for prefix, name in _PREFIXES if content.startswith(prefix)), None)


def _brands(content: bytes) -> set[bytes]:
    """Return the brand and the compatible brands of an ISO media file."""
    end = min(struct.unpack_from(">I", content)[0], 256, len(content))
    return {content[8:12], *(content[at : at + 4] for at in range(16, end - 3, 4))}


def declared_size(content: bytes, kind: str) -> tuple[int, int]:
    """Return the width and height that a WebP or GIF declares, in pixels.

    Returns:
        (0, 0) if the header is cut short, and for other formats, whose decoders reserve no memory
        when they are opened.
    """
    try:
        return {"WEBP": _webp_size, "GIF": _gif_size}[kind](content)
    except (KeyError, IndexError, struct.error):
        return 0, 0


def _webp_size(content: bytes) -> tuple[int, int]:
    kind = content[12:16]
    if kind == b"VP8X":
        low, high, more = struct.unpack_from("<HHH", content, 24)
        return (low | (high & 0xFF) << 16) + 1, (high >> 8 | more << 8) + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", content, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", content, 26)
    return width & 0x3FFF, height & 0x3FFF


def _gif_size(content: bytes) -> tuple[int, int]:
    """Return the size of the screen, or of the first frame where that reaches beyond it."""
    width, height, flags = struct.unpack_from("<HHB", content, 6)
    at = 13 + (3 << (flags & 7) + 1 if flags & 128 else 0)
    while content[at] != 0x2C:  # Until the first frame.
        at += 1
        if content[at - 1] == 0x21:  # An extension: its label, then blocks up to an empty one.
            at += 1
            while content[at]:
                at += 1 + content[at]
            at += 1
    x, y, across, down = struct.unpack_from("<HHHH", content, at + 1)
    return max(width, x + across), max(height, y + down)


MAX_PARTS: Final = 65_536
"""Segments, chunks or boxes of one file; the finest that encoders write stay far below."""
MAX_SCANS: Final = 100
"""Passes over a progressive JPEG, each of which visits every block; encoders make about ten."""
_MAX_FILL: Final = 65_536  # Pillow reads what stands between segments byte by byte.
_MAX_LISTED: Final = 65_536  # libavif finds each item by going through all of them.
_MARKER = re.compile(rb"[^\xff]*\xff+([^\xff])", re.DOTALL)
_SCAN_END = re.compile(rb"\xff(?=[^\x00\xd0-\xd7\xff])", re.DOTALL)
_BARE: Final = frozenset((0x00, 0x01, *range(0xD0, 0xD9)))


def excess(content: bytes, kind: str) -> str | None:
    """Say what a file has too many of for a decoder to get through in reasonable time.

    Only the structure of a file is read: a few bytes of each of its parts. Damage is left to the
    decoder.

    Args:
        content: The whole file.
        kind: Its format.

    Returns:
        Words such as "more than 100 scans"; None where nothing is too many.
    """
    try:
        return _EXCESSES[kind](content)
    except (KeyError, IndexError, struct.error):
        return None


def _jpeg_excess(content: bytes) -> str | None:
    at, parts, scans, fill = 2, 0, 0, 0
    while (marker := _MARKER.match(content, at)) is not None:
        fill += marker.end() - at - 2
        at, code = marker.end(), marker[1][0]
        parts += 1
        if fill > _MAX_FILL:
            return f"more than {_MAX_FILL:,} bytes between its segments"
        if parts > MAX_PARTS:
            return f"more than {MAX_PARTS:,} segments"
        if code == 0xD9:
            return None
        if code in _BARE:
            continue
        at += struct.unpack_from(">H", content, at)[0]
        if code == 0xDA:
            scans += 1
            if scans > MAX_SCANS:
                return f"more than {MAX_SCANS} scans"
            end = _SCAN_END.search(content, at)
            if end is None:
                return None
            at = end.start()
    return None


def _png_excess(content: bytes) -> str | None:
    at = 8
    for _ in range(MAX_PARTS):
        if content[at + 4 : at + 8] in {b"IEND", b""}:
            return None
        at += 12 + int(struct.unpack_from(">I", content, at)[0])
    return f"more than {MAX_PARTS:,} chunks"


def _avif_excess(content: bytes) -> str | None:
    listed = boxes = 0
    inside = [(0, len(content), False)]
    while inside:
        at, end, is_meta = inside.pop()
        while at + 8 <= end:
            size, kind = struct.unpack_from(">I4s", content, at)
            if size == 1 and at + 16 <= end:
                size = int(struct.unpack_from(">Q", content, at + 8)[0])
            size = end - at if size == 0 or size > end - at else size
            if size < 8:
                break
            boxes += 1
            if boxes > MAX_PARTS:
                return f"more than {MAX_PARTS:,} boxes"
            if kind in {b"moov", b"trak", b"iprp"}:
                inside.append((at + 8, at + size, is_meta))
            elif kind == b"meta":
                listed += size
                inside.append((at + 12, at + size, True))
            elif kind == b"ipco" and is_meta:  # Colour profiles, which may well be large.
                listed -= size
            at += size
    return f"more than {_MAX_LISTED:,} bytes about its items" if listed > _MAX_LISTED else None


def _heif_excess(content: bytes) -> str | None:
    return _avif_excess(content) or decoding_excess(content)


_EXCESSES: Final = {
    "JPEG": _jpeg_excess,
    "PNG": _png_excess,
    "AVIF": _avif_excess,
    "HEIF": _heif_excess,
}


def exif_orientation(exif: bytes) -> int:
    """Read the orientation, 1 to 8, from an EXIF block; 1 where it has none that makes sense.

    Only this entry of the first directory is read, so that damage elsewhere does not matter.
    """
    exif = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None or len(exif) < 8:
        return 1
    start = struct.unpack_from(order + "I", exif, 4)[0]
    if start + 2 > len(exif):
        return 1
    count = struct.unpack_from(order + "H", exif, start)[0]
    for at in range(start + 2, min(start + 2 + 12 * count, len(exif) - 11), 12):
        tag, kind = struct.unpack_from(order + "HH", exif, at)
        if tag == 0x0112:
            # Meant to be a short; some cameras wrote a byte or a long.
            code = {1: "B", 3: "H", 4: "I"}.get(kind)
            value = struct.unpack_from(order + code, exif, at + 8)[0] if code else 1
            return value if 1 <= value <= 8 else 1
    return 1
