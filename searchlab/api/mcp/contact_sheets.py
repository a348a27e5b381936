"""Contact sheets: the photos of an answer as one small numbered picture."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Final, NamedTuple

import blurhash
from PIL import Image, ImageDraw, ImageFont, ImageOps

from searchlab.api.http.context import Services
from searchlab.api.wire.errors import HttpProblem
from searchlab.errors import SearchlabError
from searchlab.library.renditions import SIDES
from searchlab.photos.photo import Photo

MOST_PICTURES: Final = 9
_ACROSS: Final = 3
_WIDTH: Final = 768
_GAP: Final = 6
_BAND: Final = 30
_QUALITY: Final = 80
_BLURRED: Final = (32, 24)
# White pictures end as visibly on it as black ones do.
_GROUND: Final = "#9a9a9a"
_UNSEEN: Final = "colours only, see its link"


class _Tile(NamedTuple):
    picture: Image.Image
    is_seen: bool


async def make_sheet(services: Services, photos: Sequence[Photo | None]) -> bytes:
    """Make a JPEG of photos, numbered from 1 in rows of three, 768 pixels wide.

    Each is shown whole, with its number above it; one alone has none. A photo whose picture lies at
    its library, or is gone, is shown by its colours, and its number says so: this server fetches
    nothing from elsewhere.

    Args:
        services: The worker's, which read and make pictures.
        photos: 1 to `MOST_PICTURES`; None for one that the library has no more.

    Raises:
        HttpProblem: Too many pictures are being made already (503).
    """
    across = min(_ACROSS, len(photos))
    side = (_WIDTH - _GAP * (across - 1)) // across
    size = min((name for name in SIDES if SIDES[name] >= side), key=lambda name: SIDES[name])
    files = await asyncio.gather(*(_read(services, photo, size) for photo in photos))
    return await services.search_threads.run(_compose, photos, files, side)


async def _read(services: Services, photo: Photo | None, size: str) -> bytes | None:
    if photo is None:
        return None
    renditions = services.renditions
    try:
        with closing(await renditions.open(photo, size)) as source:
            content = b""
            while len(content) < source.size:
                content += await renditions.read(source, len(content), n_bytes=source.size)
            return content
    except HttpProblem:
        raise
    except (SearchlabError, OSError):
        return None


def _compose(photos: Sequence[Photo | None], files: Sequence[bytes | None], side: int) -> bytes:
    tiles = [_open(photo, file, side) for photo, file in zip(photos, files, strict=True)]
    sheet = tiles[0].picture if len(tiles) == 1 else _lay_out(tiles, side)
    file = io.BytesIO()
    sheet.save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()


def _lay_out(tiles: Sequence[_Tile], side: int) -> Image.Image:
    rows = [tiles[first : first + _ACROSS] for first in range(0, len(tiles), _ACROSS)]
    heights = [_BAND + max(tile.picture.height for tile in row) for row in rows]
    across = min(_ACROSS, len(tiles))
    size = (across * (side + _GAP) - _GAP, sum(heights) + _GAP * (len(rows) - 1))
    sheet = Image.new("RGB", size, _GROUND)
    draw, top = ImageDraw.Draw(sheet), 0
    for first, (row, height) in enumerate(zip(rows, heights, strict=True)):
        for place, tile in enumerate(row):
            left = place * (side + _GAP)
            inset = (side - tile.picture.width) // 2
            sheet.paste(tile.picture, (left + inset, top + _BAND))
            _write_number(draw, (left, top), first * _ACROSS + place + 1, is_seen=tile.is_seen)
        top += height + _GAP
    return sheet


def _write_number(
    draw: ImageDraw.ImageDraw, at: tuple[int, int], number: int, *, is_seen: bool
) -> None:
    left, top = at
    draw.rectangle((left, top, left + _BAND - 1, top + _BAND - 1), fill="black")
    middle = top + _BAND // 2
    font = ImageFont.load_default(22)
    draw.text((left + _BAND // 2, middle), str(number), fill="white", font=font, anchor="mm")
    if not is_seen:
        small = ImageFont.load_default(16)
        draw.text((left + _BAND + 8, middle), _UNSEEN, fill="black", font=small, anchor="lm")


def _open(photo: Photo | None, content: bytes | None, side: int) -> _Tile:
    if content is not None:
        with suppress(OSError):  # what was stored is damaged
            whole = Image.open(io.BytesIO(content)).convert("RGB")
            return _Tile(ImageOps.contain(whole, (side, side)), is_seen=True)
    if photo is None:
        return _Tile(Image.new("RGB", (side, side // 2), "white"), is_seen=False)
    scale = side / max(photo.width, photo.height)
    size = max(1, round(scale * photo.width)), max(1, round(scale * photo.height))
    try:
        blurred: Image.Image = blurhash.decode(photo.blur_hash, *_BLURRED)
    except (ValueError, blurhash.BlurhashDecodeError):
        blurred = Image.new("RGB", (1, 1), photo.color_hex)
    return _Tile(blurred.resize(size), is_seen=False)
