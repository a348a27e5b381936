"""Ranges: send a file, or the part of it that a header `Range` names, while it is read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from typing import Any, Final, Protocol

from litestar.types import Receive, Scope, Send

from searchlab.library.renditions import CHUNK, Source

# A piece that is not taken within this time is not waited for: it holds a file and memory.
_TAKEN_S: Final = 30.0
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)


class PieceReader(Protocol):
    """Reads pieces of files."""

    def read(self, source: Source, at: int, *, n_bytes: int) -> Awaitable[bytes]:
        """Read a piece from a place; at least one byte."""


def parse_range(header: str | None, size: int) -> range | None:
    """Find the bytes that a header `Range` asks for.

    Args:
        header: The header.
        size: Of the file, in bytes.

    Returns:
        The bytes, none at all where the file is too short; None for all of it, also where the
        header is not understood.
    """
    match = _RANGE.fullmatch(header.replace(" ", "")) if header else None
    if match is None or match[0] == "bytes=-":
        return None
    if not match[1]:
        return range(max(0, size - int(match[2])), size)
    first, last = int(match[1]), int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return None
    return range(first, min(last + 1, size)) if first < size else range(0)


class PictureAnswer:
    """The answer with a picture, with a part of it, or with 304 where it has not changed."""

    def __init__(
        self,
        reader: PieceReader,
        source: Source | None,
        *,
        headers: dict[str, str],
        span: range | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Prepare to send.

        Args:
            reader: Of the source's pieces.
            source: The picture; closed in the end. None where the caller has it already.
            headers: Of the answer.
            span: Which of its bytes; all of them if None, none at all if it is empty.
            facts: Of the log line; gets `cut_short` when it is not sent to its end.
        """
        self._reader = reader
        self._source = source
        self._headers = dict(headers)
        self._facts = {} if facts is None else facts
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
        """Send; to one who does not go on reading, not to the end."""
        headers = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
        start: Any = {"type": "http.response.start", "status": self._status, "headers": headers}
        last: Any = {"type": "http.response.body", "body": b"", "more_body": False}
        try:
            await send(start)
            body = None if scope.get("method") == "HEAD" else self._source
            if body is not None and not await self._send_body(body, send):
                self._facts["cut_short"] = True
                return  # An answer without its end: the server closes the connection.
            await send(last)
        finally:
            if self._source is not None:
                self._source.close()

    async def _send_body(self, source: Source, send: Send) -> bool:
        """Send the pieces; returns whether all were taken."""
        at, end = self._span.start, self._span.stop
        while at < end:
            piece = await self._reader.read(source, at, n_bytes=min(CHUNK, end - at))
            at += len(piece)
            body: Any = {"type": "http.response.body", "body": piece, "more_body": True}
            try:
                async with asyncio.timeout(_TAKEN_S):
                    await send(body)
            except TimeoutError:
                return False
        return True
