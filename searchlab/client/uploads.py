"""Converts pictures, given as a path, bytes or a PIL image, to bytes to upload."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image


def picture_bytes(image: str | os.PathLike[str] | bytes | Image) -> bytes:
    """Read a file, return bytes unchanged, or encode a PIL image, rotated upright.

    Raises:
        InputError: The image is of another type, or empty.
        OSError: The file cannot be read.
    """
    if isinstance(image, bytes | bytearray | memoryview):
        data = bytes(image)
    elif isinstance(image, str | os.PathLike):
        data = Path(image).read_bytes()
    elif hasattr(image, "save") and hasattr(image, "mode"):
        data = _encode(image)
    else:
        msg = f"image must be a path, bytes or a PIL image, got {type(image).__name__}"
        raise InputError(msg)
    if not data:
        msg = "image must hold a picture, got no bytes"
        raise InputError(msg)
    return data


def _encode(image: Image) -> bytes:
    from searchlab.photos.images.decode import as_rgb

    # What the library itself would see: upright, in sRGB, 16 bits brought to 8, on white.
    stream = io.BytesIO()
    as_rgb(image).save(stream, format="JPEG", quality=95)
    return stream.getvalue()
