"""Uploads: a picture in a multipart body, read within limits and decoded off the event loop.

Bytes are counted while they arrive; the first ones show the format, and the file's headers the size
in pixels. Only a file that passes these checks is decoded, by a bounded number of threads, within a
bounded time.
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

# With these a decoder needs about 1 GB at worst; a JPEG can be decoded at an eighth of its size.
MAX_UPLOAD_PIXELS: Final = {
    "JPEG": 128_000_000,
    "PNG": 40_000_000,
    "WEBP": 40_000_000,
    "AVIF": 40_000_000,
}


async def read_picture(request: AnyRequest, settings: Settings, slots: DecodeSlots) -> bytes | None:
    """Read the part `image` of a multipart/form-data body.

    Args:
        request: A request with a body of any size and type.
        settings: `max_upload_bytes` bounds the whole body.
        slots: Counts the bytes that all requests hold.

    Returns:
        The bytes of a file that begins as a JPEG, PNG, WebP or AVIF; None if there is no body, or a
        form without any part.

    Raises:
        HttpProblem: Too many bytes (413), another content type (415), no room at the moment (503).
        ImageError: The file has no accepted format.
        Invalid: The body is broken, or does not have exactly one part `image`.
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
    """Hash a picture off the event loop.

    Args:
        request: Needs a hash only if it has the header `Idempotency-Key`.
        picture: Bytes of the file; None counts as empty.

    Returns:
        32 bytes of SHA-256; no bytes if the request needs no hash.
    """
    if IDEMPOTENCY_KEY not in request.headers:
        return b""
    return await asyncio.to_thread(lambda: hashlib.sha256(picture or b"").digest())


def open_upload(content: bytes, *, side: int) -> Image.Image:
    """Decode an untrusted picture within the limits of uploads.

    Args:
        content: Bytes of the file.
        side: Least pixels of the short side, for decoders that can shrink while they read.

    Returns:
        RGB in sRGB, rotated upright.

    Raises:
        ImageError: The picture is refused.
    """
    format = check_format(content, MAX_UPLOAD_PIXELS)
    limit = MAX_UPLOAD_PIXELS[format]
    picture = open_rgb(content, min_side=side, formats=[format], max_pixels=limit).image
    picture.info.clear()  # it is upright already, so the orientation in EXIF is no longer true
    return picture


def embed_reference(engine: SearchEngine, query: Query) -> Embeddings | None:
    """Embed the picture of a query; like `SearchEngine.reference_vector`, but bytes are untrusted.

    Returns:
        (dim,) embedding; None if the query has no picture.

    Raises:
        ImageError: The picture is refused.
        NotFoundError: `photo_id` is not indexed.
    """
    if isinstance(query.image, bytes):
        picture = open_upload(query.image, side=max(WORKING_SIDE, engine.model.input_size))
        query = dataclasses.replace(query, image=picture)
    return engine.reference_vector(query)
