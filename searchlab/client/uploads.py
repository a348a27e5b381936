"""Converts pictures, given as a path, bytes or a PIL image, to bytes to upload."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

# Modes that PNG stores without loss; pictures of other modes are sent as JPEG.
_PNG_MODES = frozenset({"1", "LA", "P", "RGBA", "I;16"})


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
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    stream = io.BytesIO()
    if upright.mode in _PNG_MODES:
        upright.save(stream, format="PNG")
    else:
        upright.convert("L" if upright.mode == "L" else "RGB").save(
            stream, format="JPEG", quality=95
        )
    return stream.getvalue()
