"""How much memory it takes to decode a picture, told by its structure before anything is decoded.

Small files can hold huge pictures, so that a folder of them would take all memory: what one picture
may take is bounded here, and whoever decodes several at once adds up what they take.
"""

from __future__ import annotations

import ctypes
import io
import re
import struct
from contextlib import suppress
from typing import Final

from PIL import Image, TiffImagePlugin

from searchlab.photos.images.effort import avif_size
from searchlab.photos.images.headers import MAX_PARTS, declared_size

MAX_DECODING_BYTES: Final = 640 * 2**20
"""Most memory for one picture: 157 megapixels of PNG, 55 of HEIF, 51 of TIFF, 41 of WebP."""
WHOLE_PIXELS: Final = 16_000_000
"""Larger pictures are made smaller before colours and opacity are worked out, which take copies."""
BYTES_A_PIXEL: Final = {"PNG": 4, "GIF": 4, "TIFF": 12, "WEBP": 15, "AVIF": 11, "HEIF": 11}
"""What the decoder of a format holds at once for each pixel, measured."""
_COPIES: Final = 16  # bytes a pixel of what is made of a decoded picture, at most
_OPAQUE_COPIES: Final = 8
_DRAFTS: Final = (8, 4, 2, 1)
_MARKER: Final = re.compile(rb"[^\xff]*\xff+([^\x00\xff])", re.DOTALL)
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_PROGRESSIVE: Final = frozenset((0xC2, 0xC6, 0xCA, 0xCE))


def reduction(width: int, height: int, min_side: int) -> int:
    """Return by what a large picture is divided as soon as it is decoded.

    Args:
        width: In pixels.
        height: In pixels.
        min_side: Pixels that the short side keeps at least.

    >>> reduction(4_000, 4_000, 400), reduction(9_000, 9_000, 400), reduction(400, 400_000, 400)
    (1, 3, 1)
    """
    factor = 1
    while width * height > WHOLE_PIXELS * factor**2:
        if min(width, height) < (factor + 1) * max(1, min_side):
            break
        factor += 1
    return factor


def decoding_bytes(content: bytes, kind: str, min_side: int | None = None) -> int:
    """Estimate the memory that decoding a picture takes, at most.

    Args:
        content: The whole file.
        kind: Its format.
        min_side: As in `open_rgb`.

    Returns:
        Bytes; 0 where the structure is damaged or the format is none that is decoded, which is
        left to the decoder.
    """
    if kind != "JPEG" and kind not in BYTES_A_PIXEL:
        return 0
    try:
        if kind == "JPEG":
            return _jpeg_bytes(content, min_side)
        width, height = _size(content, kind)
    except (KeyError, IndexError, struct.error):
        return 0
    copies = _OPAQUE_COPIES if kind == "PNG" and _is_opaque(content) else _COPIES
    return _with_copies(width, height, BYTES_A_PIXEL[kind] * width * height, copies, min_side)


def _with_copies(width: int, height: int, loaded: int, copies: int, min_side: int | None) -> int:
    factor = 1 if min_side is None else reduction(width, height, min_side)
    pixels = width * height // factor**2
    if factor == 1:
        return loaded + copies * pixels
    return max(loaded + 4 * pixels, (4 + copies) * pixels)


def _size(content: bytes, kind: str) -> tuple[int, int]:
    if kind == "PNG":
        width, height = struct.unpack_from(">II", content, 16)
        return width, height
    if kind in {"AVIF", "HEIF"}:
        return avif_size(content)
    if kind == "TIFF":
        return _tiff_size(content)
    return declared_size(content, kind)


def _tiff_size(content: bytes) -> tuple[int, int]:
    try:
        with TiffImagePlugin.TiffImageFile(io.BytesIO(content)) as image:
            return image.size
    except Exception:  # Whatever damaged bytes lead it to; the decoder will say it.
        return 0, 0


def _is_opaque(content: bytes) -> bool:
    return content[25] in {0, 2} and b"tRNS" not in content[:4096]


def _jpeg_bytes(content: bytes, min_side: int | None) -> int:
    """A JPEG of several scans is held as a whole; one of a single scan flows through."""
    at, width, height, samples, n_parts = 2, 0, 0, 0.0, 0
    is_held = False
    for _ in range(MAX_PARTS):
        marker = _MARKER.match(content, at)
        if marker is None:
            break
        at, code = marker.end(), marker[1][0]
        if code in _FRAMES:
            height, width, n_parts = struct.unpack_from(">HHB", content, at + 3)
            factors = [content[at + 9 + 3 * part] for part in range(n_parts)]
            most = max(f >> 4 for f in factors) * max(f & 15 for f in factors)
            samples = sum((f >> 4) * (f & 15) for f in factors) / max(1, most)
            is_held = code in _PROGRESSIVE
        if code == 0xDA:
            is_held = is_held or content[at + 2] < n_parts
            break
        at += struct.unpack_from(">H", content, at)[0]
    side = min(width, height)
    draft = next(d for d in _DRAFTS if d == 1 or (min_side and side >= d * min_side))
    held = int(2 * samples * width * height) if is_held else 0
    return held + (4 + _OPAQUE_COPIES) * (width // draft) * (height // draft)


def reduce_large(image: Image.Image, min_side: int | None) -> Image.Image:
    """Make a large picture smaller by a whole factor; other pictures are returned as they are."""
    factor = 1 if min_side is None else reduction(*image.size, min_side)
    if factor == 1:
        return image
    if image.mode in {"L", "RGB"} and "transparency" not in image.info:
        return image.reduce(factor)
    # Palettes and colours that stand for transparency cannot be mixed, and opacity would need
    # another copy.
    size = (image.width // factor, image.height // factor)
    return image.resize(size, Image.Resampling.NEAREST)


def give_memory_back() -> None:
    """Return to the system what the allocator keeps of memory that was freed, in all threads."""
    with suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
