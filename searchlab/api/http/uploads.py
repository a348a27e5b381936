"""Uploads: a picture in a multipart body, read within limits and looked at off the event loop.

Bytes are counted as they come, the format is told by the first ones, size and make by the frame of
the file; only what has passed all that is decoded, by a bounded number of threads, for a bounded
time.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable
from typing import Final

from PIL import Image

from searchlab.api.accounts.idempotency import IDEMPOTENCY_KEY
from searchlab.api.http.bodies import AnyRequest, Body
from searchlab.api.http.decode_slots import DecodeSlots
from searchlab.api.http.multiparts import Form, boundary_of
from searchlab.api.settings import Settings
from searchlab.api.wire.errors import HttpProblem, Invalid
from searchlab.models.protocol import Embeddings
from searchlab.photos.images.decode import WORKING_SIDE, check_format, open_rgb
from searchlab.search.engine import SearchEngine
from searchlab.search.queries import Query

# What a decoder needs about 1 GB for, at the worst; a JPEG can be read at an eighth of its size.
MAX_UPLOAD_PIXELS: Final = {
    "JPEG": 128_000_000,
    "PNG": 40_000_000,
    "WEBP": 40_000_000,
    "AVIF": 40_000_000,
}


async def read_picture(request: AnyRequest, settings: Settings, slots: DecodeSlots) -> bytes | None:
    """Read the part `image` of a multipart/form-data body.

    Args:
        request: Its body may be of any size and kind.
        settings: `max_upload_bytes` bounds the whole body.
        slots: Where the bytes that are read at once are counted.

    Returns:
        A JPEG, PNG, WebP or AVIF file by its first bytes; None where there is no body, or a form
        without any part.

    Raises:
        HttpProblem: Too many bytes (413), another content type (415), no room at the moment (503).
        ImageError: The file is of no accepted format.
        Invalid: The body is broken, or has not one part `image`.
    """
    body = Body(request, settings.max_upload_bytes)
    try:
        with slots.buffering() as take:
            picture = await _read(request, body, take)
    except (HttpProblem, Invalid):
        await body.drain()
        raise
    if picture is not None:
        check_format(picture, MAX_UPLOAD_PIXELS)
    return picture


async def _read(request: AnyRequest, body: Body, take: Callable[[int], None]) -> bytes | None:
    body.check_announced()
    chunks = body.chunks()
    first = await anext(chunks, b"")
    if not first:
        return None
    form = Form(boundary_of(request), take)
    form.feed(first)
    async for chunk in chunks:
        form.feed(chunk)
    return await asyncio.to_thread(form.picture)


async def hash_picture(request: AnyRequest, picture: bytes | None) -> bytes:
    """Hash a picture off the event loop; empty where the request needs no hash.

    Args:
        request: Needs one if it has the header `Idempotency-Key`.
        picture: As it was read; None counts as empty.
    """
    if IDEMPOTENCY_KEY not in request.headers:
        return b""
    return await asyncio.to_thread(lambda: hashlib.sha256(picture or b"").digest())


def open_upload(content: bytes, *, side: int) -> Image.Image:
    """Decode an untrusted picture within the limits of uploads.

    Args:
        content: A file.
        side: Pixels that the short side must keep where the decoder can leave out some.

    Returns:
        RGB in sRGB, upright.

    Raises:
        ImageError: The picture is refused.
    """
    format = check_format(content, MAX_UPLOAD_PIXELS)
    limit = MAX_UPLOAD_PIXELS[format]
    picture = open_rgb(content, min_side=side, formats=[format], max_pixels=limit).image
    picture.info.clear()  # It is upright already: what EXIF says of that is no longer true.
    return picture


def embed_reference(engine: SearchEngine, query: Query) -> Embeddings | None:
    """Embed the picture of a query, which is untrusted where it comes as bytes.

    As `SearchEngine.reference_vector`, within the limits of uploads.

    Returns:
        (dim,) embedding; None if the query brings no picture.

    Raises:
        ImageError: The picture is refused.
        NotFoundError: `photo_id` is not indexed.
    """
    if isinstance(query.image, bytes):
        picture = open_upload(query.image, side=max(WORKING_SIDE, engine.model.input_size))
        query = dataclasses.replace(query, image=picture)
    return engine.reference_vector(query)
