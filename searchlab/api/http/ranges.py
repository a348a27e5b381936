"""Ranges: send a file piece by piece, or the part of it that a header `Range` names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

from litestar.types import Receive, Scope, Send

from searchlab.api.http.sends import Sends
from searchlab.library.renditions import CHUNK, RenditionSource

# A client that takes a piece no faster than this is given up: it holds a file and memory.
_TAKEN_S: Final = 30.0
_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})", re.ASCII | re.IGNORECASE)


class PieceReader(Protocol):
    """Reads pieces of files."""

    def read(self, source: RenditionSource, at: int, *, n_bytes: int) -> Awaitable[bytes]:
        """Read up to `n_bytes` bytes from the offset `at` on; at least one."""


def parse_range(header: str | None, size: int) -> range | None:
    """Find the bytes that a header `Range` asks for.

    Args:
        header: Value of the header, if there is one.
        size: Size of the file in bytes.

    Returns:
        The offsets, an empty range if the file is too short; None for the whole file, also when the
        header is not understood.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        return range(max(0, size - int(match[2])), size)
    first, last = int(match[1]), int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None
    return range(first, min(last + 1, size)) if first < size else range(0)


class PictureAnswer:
    """An ASGI answer: a picture, a part of it, or 304 if it has not changed."""

    def __init__(
        self,
        reader: PieceReader,
        source: RenditionSource | None,
        *,
        headers: dict[str, str],
        sends: Sends,
        address: str = "",
        span: range | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Prepare to send.

        Args:
            reader: Reads pieces of the source.
            source: The picture, closed after sending; None if the client has it already (304).
            headers: Headers of the answer.
            sends: Bounds the answers that do not fit in one piece.
            address: Who asks, as `Proxies.client_of` says.
            span: Offsets of the bytes to send; all of them if None, status 416 if empty.
            facts: Values for the log line; gets `cut_short` if sending stops before the end.
        """
        self._reader = reader
        self._source = source
        self._headers = dict(headers)
        self._sends, self._address = sends, address
        self._facts = {} if facts is None else facts
        self._span = range(0)
        self._status = 304
        if source is not None:
            self._span = range(source.size) if span is None else span
            self._status = 200 if span is None else 206 if span else 416
            self._headers["Content-Length"] = str(len(self._span))
            if self._status == 416:  # about this request alone, not about the picture
                self._headers["Cache-Control"] = "no-store"
                self._headers.pop("ETag", None)
            if span is not None:
                part = f"{span.start}-{span.stop - 1}" if span else "*"
                self._headers["Content-Range"] = f"bytes {part}/{source.size}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer; stops when the client does not go on reading.

        Raises:
            HttpProblem: Too many large answers are on their way already (503).
        """
        headers = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
        start: Any = {"type": "http.response.start", "status": self._status, "headers": headers}
        last: Any = {"type": "http.response.body", "body": b"", "more_body": False}
        body = None if scope.get("method") == "HEAD" else self._source
        in_pieces = body is not None and len(self._span) > CHUNK
        counted: AbstractContextManager[None] = (
            self._sends.sending(self._address) if in_pieces else nullcontext()
        )
        try:
            with counted:
                await send(start)
                gone = asyncio.ensure_future(_wait_for_end(receive)) if in_pieces else None
                try:
                    if body is not None and not await self._send_body(body, send, gone):
                        self._facts["cut_short"] = True
                        return  # without the last message, so that the server closes the connection
                finally:
                    if gone is not None:
                        gone.cancel()
                await send(last)
        finally:
            if self._source is not None:
                self._source.close()

    async def _send_body(
        self, source: RenditionSource, send: Send, gone: asyncio.Future[None] | None
    ) -> bool:
        """Send the pieces; returns whether the client took them all."""
        at, end = self._span.start, self._span.stop
        while at < end:
            n_bytes = min(self._sends.piece_bytes, end - at)
            piece = await self._reader.read(source, at, n_bytes=n_bytes)
            at += len(piece)
            body: Any = {"type": "http.response.body", "body": piece, "more_body": True}
            try:
                async with asyncio.timeout(_TAKEN_S):
                    await send(body)
            except TimeoutError:
                return False
            if gone is not None and gone.done():
                return False
        return True


async def _wait_for_end(receive: Receive) -> None:
    # The server takes pieces of an answer that nobody reads any more as fast as they come.
    while (await receive())["type"] != "http.disconnect":
        pass
