"""Small pictures of known corners, as the bytes of their files."""

import io
import struct
import zlib
from pathlib import Path

import pillow_heif
import pytest
from PIL import Image, ImageCms

from searchlab.errors import ImageError
from searchlab.photos.images.decode import open_rgb

pillow_heif.register_heif_opener()  # so that Pillow writes HEIF

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 160, 60), (40, 60, 200), (255, 255, 255)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def corners(width: int = 48, height: int = 32) -> Image.Image:
    """Red above left, green above right, blue below left, white below right."""
    image = Image.new("RGB", (width, height), WHITE)
    image.paste(RED, (0, 0, width // 2, height // 2))
    image.paste(GREEN, (width // 2, 0, width, height // 2))
    image.paste(BLUE, (0, height // 2, width // 2, height))
    return image


def at_corners(image: Image.Image) -> list[tuple[int, ...]]:
    width, height = image.size
    x, y = width // 4, height // 4
    return [image.getpixel(p) for p in [(x, y), (3 * x, y), (x, 3 * y), (3 * x, 3 * y)]]


def chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def reason(source: Path | bytes, **options: object) -> str:
    with pytest.raises(ImageError) as caught:
        open_rgb(source, **options)
    assert str(caught.value)
    return caught.value.reason


def swapping_profile() -> bytes:
    """An RGB profile whose red and blue primaries are swapped."""
    content = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    tags = {bytes(content[at : at + 4]): at for at in range(132, 132 + 12 * content[131], 12)}
    red, blue = tags[b"rXYZ"], tags[b"bXYZ"]
    content[red + 4 : red + 12], content[blue + 4 : blue + 12] = (
        *(content[blue + 4 : blue + 12], content[red + 4 : red + 12]),
    )
    return bytes(content).replace("sRGB".encode("utf-16-be"), "SWAP".encode("utf-16-be"))
