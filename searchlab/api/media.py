"""Media: the pictures that the `urls` of photo records lead to, without a key, cached for ever.

An address names a photo and a size, never a file; what is sent has the type of its own first bytes,
and can run nothing in a browser.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from litestar import Request, route
from litestar.types import ASGIApp, Receive, Scope, Send

from searchlab.api.caching import knows
from searchlab.api.exchange import services_of
from searchlab.api.shelf import Shelf
from searchlab.api.uploads import DecodeSlots, overloaded
from searchlab.errors import DataError, NotFoundError, shown
from searchlab.photos import URL_SIZES, Photo
from searchlab.renditions import CHUNK, RenditionFiles, Source
from searchlab.scan import Root
from searchlab.snapshots import read_roots

TYPES: Final = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "AVIF": "image/avif",
    "GIF": "image/gif",
    "TIFF": "image/tiff",
}
FOREVER: Final = "public, max-age=31536000, immutable"
FOR_A_WHILE: Final = "public, max-age=300"
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_READERS: Final = 4
_VERSION_LENGTH: Final = 8
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)

T = TypeVar("T")


class Renditions:
    """Finds pictures, makes what is not there yet, each once, a few at a time."""

    def __init__(self, shelf: Shelf, *, slots: DecodeSlots | None = None) -> None:
        """Serve the pictures of a shelf.

        Args:
            shelf: The photos, and the library that they lie in.
            slots: Places to make pictures in; two that many may wait for if left out.
        """
        self._shelf = shelf
        self._folder = shelf.library.folder
        self._files = RenditionFiles(self._folder)
        self._slots = slots or DecodeSlots(2, timeout_s=30, wait_s=20, waiting=400, late=overloaded)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="media")
        self._making: dict[tuple[str, str], asyncio.Task[bytes]] = {}
        self._roots: tuple[str, tuple[Root, ...]] = ("", ())

    def photo(self, photo_id: str) -> Photo:
        """Find a photo that is still there.

        Raises:
            NotFoundError: There is none of this id.
        """
        shown_now = self._shelf.current
        return shown_now.engine.table.photo(shown_now.row_of(photo_id))

    async def open(self, photo: Photo, size: str) -> Source:
        """Open a picture of a photo; the caller closes it.

        Args:
            photo: Of the snapshot in force.
            size: One of `URL_SIZES`.

        Raises:
            NotFoundError: The picture is gone, or not what was indexed any more.
            Problem: There is no room to make it (503).
        """
        snapshot_id = self._shelf.current.engine.snapshot_id
        if size == "full":
            return await self._aside(lambda: self._original(photo, snapshot_id))
        found = await self._aside(lambda: self._files.find(photo, size))
        return found or Source(await self._made(photo, size, snapshot_id=snapshot_id))

    async def read(self, source: Source, at: int, *, n_bytes: int) -> bytes:
        """Read a piece of a picture, off the event loop."""
        if source.at_hand(at):
            return source.read(at, n_bytes)
        return await self._aside(lambda: source.read(at, n_bytes))

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def _original(self, photo: Photo, snapshot_id: str) -> Source:
        return self._files.original(photo, self._roots_of(snapshot_id))

    def _roots_of(self, snapshot_id: str) -> tuple[Root, ...]:
        known, roots = self._roots
        if known == snapshot_id:
            return roots
        place = self._folder / "snapshots" / snapshot_id
        try:
            self._roots = (snapshot_id, read_roots(place))
        except DataError:
            if place.exists():
                raise
            return ()  # dropped in this very moment
        return self._roots[1]

    async def _made(self, photo: Photo, size: str, *, snapshot_id: str) -> bytes:
        key = (photo.sha256, size)
        task = self._making.get(key)
        if task is None:
            task = asyncio.create_task(self._make(photo, size, snapshot_id=snapshot_id))
            self._making[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        return await asyncio.shield(task)  # Whoever goes away leaves the others their picture.

    async def _make(self, photo: Photo, size: str, *, snapshot_id: str) -> bytes:
        return await self._slots.run(
            lambda: self._files.make(photo, size, roots=self._roots_of(snapshot_id))
        )

    def _finish(self, key: tuple[str, str], task: asyncio.Task[bytes]) -> None:
        del self._making[key]
        if not task.cancelled():
            task.exception()  # seen, also where nobody waits for it any more

    def close(self) -> None:
        """Take on no more work."""
        self._slots.close()
        self._readers.shutdown(wait=False, cancel_futures=True)


class Sent:
    """The answer that sends a picture, the part of it that was asked for, or word of no change."""

    def __init__(
        self,
        renditions: Renditions,
        source: Source | None,
        *,
        headers: dict[str, str],
        span: range | None = None,
    ) -> None:
        """Prepare to send.

        Args:
            renditions: Reads.
            source: The picture; closed in the end. None where the caller has it already.
            headers: Of the answer.
            span: Which of its bytes; all of them if None, none at all if it is empty.
        """
        self._renditions = renditions
        self._source = source
        self._headers = dict(headers)
        self._span = range(0)
        self._status = 304
        if source is not None:
            self._span = range(source.size) if span is None else span
            self._status = 200 if span is None else 206 if span else 416
            self._headers["Content-Length"] = str(len(self._span))
            if span is not None:
                part = f"{span.start}-{span.stop - 1}" if span else "*"
                self._headers["Content-Range"] = f"bytes {part}/{source.size}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send."""
        headers = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
        start: Any = {"type": "http.response.start", "status": self._status, "headers": headers}
        last: Any = {"type": "http.response.body", "body": b"", "more_body": False}
        try:
            await send(start)
            if self._source is not None and scope.get("method") != "HEAD":
                await self._send_body(self._source, send)
            await send(last)
        finally:
            if self._source is not None:
                self._source.close()

    async def _send_body(self, source: Source, send: Send) -> None:
        at, end = self._span.start, self._span.stop
        while at < end:
            piece = await self._renditions.read(source, at, n_bytes=min(CHUNK, end - at))
            at += len(piece)
            body: Any = {"type": "http.response.body", "body": piece, "more_body": True}
            await send(body)


def _span(wanted: str | None, size: int) -> range | None:
    """The bytes that a `Range` header asks for; None for all, also where it is not understood."""
    found = _RANGE.fullmatch(wanted.replace(" ", "")) if wanted else None
    if found is None or found[0] == "bytes=-":
        return None
    if not found[1]:
        return range(max(0, size - int(found[2])), size)
    first, last = int(found[1]), int(found[2]) if found[2] else size - 1
    if found[2] and last < first:
        return None
    return range(first, min(last + 1, size)) if first < size else range(0)


@route(
    ["/media/{photo_id:str}", "/media/{photo_id:str}/{size:str}"],
    http_method=["GET", "HEAD"],
    status_code=200,
    include_in_schema=False,
)
async def send_picture(request: Request[Any, Any, Any]) -> ASGIApp:
    """Send a picture of a photo, in the size that is named, else as it was indexed."""
    renditions = services_of(request).renditions
    photo = renditions.photo(request.path_params["photo_id"])
    size = request.path_params.get("size", "full")
    if size not in URL_SIZES:
        msg = f"size must be one of {', '.join(URL_SIZES)}, got {shown(size)}"
        raise NotFoundError(msg)
    version = f"v={photo.sha256[:_VERSION_LENGTH]}".encode()
    versioned = version in request.scope["query_string"].split(b"&")
    tag = f'"{photo.sha256}-{size}"'
    headers = {"ETag": tag, "Cache-Control": FOREVER if versioned else FOR_A_WHILE}
    if knows(request.headers.get("if-none-match"), tag):
        return Sent(renditions, None, headers=headers)
    source = await renditions.open(photo, size)
    kind = TYPES.get(source.kind)
    if kind is None:  # What is no picture any more, by whatever damage, is not sent as one.
        source.close()
        msg = f"the picture of photo {photo.photo_id} must be one that is known, got other bytes"
        raise NotFoundError(msg)
    ending = "jpg" if source.kind == "JPEG" else source.kind.lower()
    headers |= {
        "Content-Type": kind,
        "Content-Disposition": f'inline; filename="{photo.photo_id}-{size}.{ending}"',
        "Content-Security-Policy": _POLICY,
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Accept-Ranges": "bytes",
    }
    condition = request.headers.get("if-range")
    whole = condition is not None and condition != tag
    wanted = None if whole or request.method == "HEAD" else request.headers.get("range")
    return Sent(renditions, source, headers=headers, span=_span(wanted, source.size))


ROUTES: Final = [send_picture]
