"""Uploads: a picture in a multipart body, read within limits and looked at off the event loop.

Bytes are counted as they come, the format is told by the first ones, size and make by the frame of
the file; only what has passed all that is decoded, by a bounded number of threads, for a bounded
time.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from PIL import Image

from searchlab.api.bodies import AnyRequest, Body
from searchlab.api.multiparts import PART, Form, boundary_of
from searchlab.api.problems import Invalid, Problem, invalid
from searchlab.api.settings import Settings
from searchlab.engine import SearchEngine
from searchlab.images import WORKING_SIDE, check_format, open_rgb
from searchlab.models.protocol import Embeddings
from searchlab.queries import Query

# What a decoder needs about 1 GB for, at the worst; a JPEG can be read at an eighth of its size.
MAX_UPLOAD_PIXELS: Final = {
    "JPEG": 128_000_000,
    "PNG": 40_000_000,
    "WEBP": 40_000_000,
    "AVIF": 40_000_000,
}
_MAX_BUFFERED = 256 * 2**20
_WAITING_PER_SLOT = 8

P = ParamSpec("P")
T = TypeVar("T")


def overloaded(message: str) -> Problem:
    """Make the answer to what there is no room for at the moment."""
    return Problem(message, "OVERLOADED", headers={"Retry-After": "2"})


def _late(message: str) -> Exception:
    return invalid(("body", PART), message, "timeout")


class DecodeSlots:
    """Places for work on pictures: so many at once, so many waiting, for so long."""

    def __init__(
        self,
        count: int,
        timeout_s: float,
        *,
        wait_s: float = 2.0,
        waiting: int | None = None,
        max_buffered: int = _MAX_BUFFERED,
        late: Callable[[str], Exception] = _late,
    ) -> None:
        """Make the places.

        Args:
            count: Pictures that are worked on at once.
            timeout_s: Seconds that one may take.
            wait_s: Seconds that a request waits for a place.
            waiting: Requests that may wait at once; eight a place if left out.
            max_buffered: Bytes of bodies that may be half read at once, of all requests together.
            late: Makes what is raised when work takes too long; 422 if left out.
        """
        self._late = late
        self._timeout_s = timeout_s
        self._wait_s = wait_s
        self._most_waiting = _WAITING_PER_SLOT * count if waiting is None else waiting
        self._max_buffered = max_buffered
        self._waiting = 0
        self._buffered = 0
        self._free = asyncio.Semaphore(count)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="pictures")

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do work in a thread of its own.

        A place stays taken until the thread is done, even where nobody waits for it any more: a
        decoder cannot be stopped from outside.

        Raises:
            Problem: No place is free, or there is not enough memory (503).
            Invalid: It takes too long, or what `late` makes of that.
        """
        await self._take()
        try:
            call = partial(work, *args, **kwargs)
            future = asyncio.get_running_loop().run_in_executor(self._threads, call)
        except BaseException:
            self._free.release()
            raise
        future.add_done_callback(self._give_back)
        done, _ = await asyncio.wait({future}, timeout=self._timeout_s)
        if not done:
            msg = f"a picture must be read within {self._timeout_s:g} s, got one that takes longer"
            raise self._late(msg)
        try:
            return future.result()
        except MemoryError:
            msg = "the server must have the memory that the picture needs, got less; send a smaller"
            raise overloaded(msg) from None

    async def _take(self) -> None:
        if self._free.locked() and self._waiting >= self._most_waiting:
            msg = "the server must have a free place for a picture, got too many that wait"
            raise overloaded(msg)
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            msg = f"a place for a picture must get free within {self._wait_s:g} s, got none"
            raise overloaded(msg) from None
        finally:
            self._waiting -= 1

    def _give_back(self, future: asyncio.Future[Any]) -> None:
        self._free.release()
        if not future.cancelled():
            future.exception()  # seen, also where nobody waits for it any more

    @contextmanager
    def buffering(self) -> Iterator[Callable[[int], None]]:
        """Count the bytes of a body while it is read; the function given raises 503 beyond."""
        mine = 0

        def take(n_bytes: int) -> None:
            nonlocal mine
            if self._buffered + n_bytes > self._max_buffered:
                msg = "the server must have room for the body, got too many at once"
                raise overloaded(msg)
            self._buffered += n_bytes
            mine += n_bytes

        try:
            yield take
        finally:
            self._buffered -= mine

    def close(self) -> None:
        """Take on no more work; what is being done is finished in its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)


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
        Problem: Too many bytes (413), another content type (415), no room at the moment (503).
        ImageError: The file is of no accepted format.
        Invalid: The body is broken, or has not one part `image`.
    """
    body = Body(request, settings.max_upload_bytes)
    try:
        with slots.buffering() as take:
            picture = await _read(request, body, take)
    except (Problem, Invalid):
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
    return form.picture()


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
    found = check_format(content, MAX_UPLOAD_PIXELS)
    limit = MAX_UPLOAD_PIXELS[found]
    picture = open_rgb(content, min_side=side, formats=[found], max_pixels=limit).image
    picture.info.clear()  # It is upright already: what EXIF says of that is no longer true.
    return picture


def reference_of(engine: SearchEngine, query: Query) -> Embeddings | None:
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
