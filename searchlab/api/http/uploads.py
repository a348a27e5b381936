"""Uploads: a picture in a multipart body, read within limits and decoded off the event loop.

Bytes are counted while they arrive; the first ones show the format, and the file's headers the size
in pixels and the work they take. Only a file that passes these checks is decoded, when it is its
account's turn, in another process, within bounded time and memory.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable
from typing import Final

from searchlab.api.accounts.idempotency import IDEMPOTENCY_KEY
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.plans import PLANS
from searchlab.api.http.bodies import AnyRequest, IncomingBody
from searchlab.api.http.decoders import Decoders
from searchlab.api.http.decoding import MAX_UPLOAD_PIXELS, check_effort
from searchlab.api.http.fair_queue import Turn
from searchlab.api.http.multiparts import MultipartForm, boundary_of
from searchlab.api.settings import Settings
from searchlab.api.wire.errors import HttpProblem, Invalid
from searchlab.models.protocol import Embeddings
from searchlab.photos.images.decode import check_format
from searchlab.search.engine import SearchEngine
from searchlab.search.queries import Query


async def read_picture(
    request: AnyRequest, settings: Settings, take: Callable[[int], None]
) -> bytes | None:
    """Read the part `image` of a multipart/form-data body.

    Args:
        request: A request with a body of any size and type.
        settings: `max_upload_bytes` bounds the whole body.
        take: Called with the number of bytes about to be kept; may raise to refuse them.

    Returns:
        The bytes of a file that begins as a JPEG, PNG, WebP or AVIF; None if there is no body, or a
        form without any part.

    Raises:
        HttpProblem: Too many bytes (413), another content type (415), no room at the moment (503).
        ImageError: The file has no accepted format.
        Invalid: The body is broken, or does not have exactly one part `image`.
    """
    body = IncomingBody(request, settings.max_upload_bytes)
    try:
        picture = await _read(request, body, take)
    except (HttpProblem, Invalid) as error:
        # Its frames hold what has come, and the rest is read on before the answer.
        raise error.with_traceback(None) from None
    if picture is not None:
        check_format(picture, MAX_UPLOAD_PIXELS)
    return picture


async def _read(
    request: AnyRequest, body: IncomingBody, take: Callable[[int], None]
) -> bytes | None:
    body.check_announced()
    chunks = body.chunks()
    first = await anext(chunks, b"")
    if not first:
        return None
    form = MultipartForm(boundary_of(request), take)
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


# More effort than this, about half a second, and not all slots may be taken by such pictures.
_LARGE_EFFORT: Final = 64_000_000
# Files up to this size are looked through without another thread.
_SHORT_BYTES: Final = 256 * 1024


async def make_turn(caller: Caller, picture: object) -> Turn:
    """Make the turn in which a picture of a caller will be decoded.

    Raises:
        ImageError: It would take too much work.
    """
    effort = 0
    if isinstance(picture, bytes):
        is_short = len(picture) <= _SHORT_BYTES
        effort = (
            check_effort(picture) if is_short else await asyncio.to_thread(check_effort, picture)
        )
    share = PLANS[caller.plan].share
    return Turn(caller.account_id, share, is_large=effort > _LARGE_EFFORT)


def embed_reference(engine: SearchEngine, query: Query, decoders: Decoders) -> Embeddings | None:
    """Embed the picture of a query; like `SearchEngine.reference_vector`, but bytes are untrusted.

    Returns:
        (dim,) embedding; None if the query has no picture.

    Raises:
        ImageError: The picture is refused.
        TooSlowError: Decoding takes too long.
        TooBusyError: Others take the time that it would need.
        NotFoundError: `photo_id` is not indexed.
    """
    if isinstance(query.image, bytes):
        picture = decoders.decode(query.image, engine.model.input_size)
        query = dataclasses.replace(query, image=picture)
    return engine.reference_vector(query)
