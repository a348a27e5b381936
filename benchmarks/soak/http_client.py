"""A lean HTTP client: one kept connection, a tenth of the CPU that a full client costs.

A soak sends a million requests from the machine that serves them, so what the client takes is
missing there.
"""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

_BOUNDARY = "soak-------------------------------cut"
_MOST_BYTES = 2**26
_BODILESS = frozenset({204, 304})


class NotConnected(Exception):  # noqa: N818 - the name says what happened
    """No connection could be opened, so nothing was sent."""


class BrokenConnection(Exception):  # noqa: N818 - the name says what happened
    """The connection ended, or fell silent, before the whole answer was there."""


class Answer(msgspec.Struct, frozen=True):
    """An answer.

    Attributes:
        status: HTTP status.
        headers: In lower case; of several of one name the last.
        content: The whole body.
    """

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        """Decode the body."""
        return msgspec.json.decode(self.content)


class HttpClient:
    """Sends one request after the other; the connection is opened when it is needed."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str] | None = None, *, timeout_s: float = 60
    ) -> None:
        """Prepare to ask a server.

        Args:
            base_url: Its address, `http://HOST:PORT`.
            headers: Sent with every request.
            timeout_s: Seconds within which an answer must be there.
        """
        parts = urlsplit(base_url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._timeout_s = timeout_s
        self._headers = {"host": parts.netloc, **(headers or {})}
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        writer, self._reader, self._writer = self._writer, None, None
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        picture: bytes | None = None,
        content: bytes = b"",
    ) -> Answer:
        """Send a request and wait for the whole answer; redirects are not followed.

        Args:
            method: In capitals.
            path: Path, and query unless `params` give it.
            params: Query.
            headers: Besides those of every request.
            json: Sent as JSON, if not None.
            form: Sent as a page sends its form.
            picture: Sent as the part `image` of a multipart form.
            content: Sent as it is.

        Raises:
            NotConnected: The server cannot be reached; nothing was sent.
            BrokenConnection: The request may have been received or not.
        """
        lines = self._headers | dict(headers or {})
        if json is not None:
            content = json_module.dumps(json).encode()
            lines["content-type"] = "application/json"
        elif form is not None:
            content = urlencode(form).encode()
            lines["content-type"] = "application/x-www-form-urlencoded"
        elif picture is not None:
            content = _encode_picture(picture)
            lines["content-type"] = f"multipart/form-data; boundary={_BOUNDARY}"
        if content or method in {"POST", "PUT"}:
            lines["content-length"] = str(len(content))
        target = f"{path}?{urlencode(params)}" if params else path
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        reader, writer = await self._connect()
        try:
            async with asyncio.timeout(self._timeout_s):
                writer.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + content)
                return await self._read(reader, method)
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            await self.close()
            raise BrokenConnection(repr(error)) from error
        except asyncio.CancelledError:
            await self.close()
            raise

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # The server closes connections that idle; that shows here before anything is sent.
        if self._reader is not None and self._reader.at_eof():
            await self.close()
        if self._reader is None or self._writer is None:
            try:
                async with asyncio.timeout(self._timeout_s):
                    self._reader, self._writer = await asyncio.open_connection(
                        self._host, self._port, limit=_MOST_BYTES
                    )
            except (OSError, TimeoutError) as error:
                raise NotConnected(repr(error)) from error
        return self._reader, self._writer

    async def _read(self, reader: asyncio.StreamReader, method: str) -> Answer:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split(" ", 2)[1])
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        content = b""
        if method == "HEAD" or status in _BODILESS:
            pass
        elif "content-length" in headers:
            content = await reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            content = await _read_chunks(reader)
        else:
            content = await reader.read(_MOST_BYTES)
            headers["connection"] = "close"
        if headers.get("connection") == "close":
            await self.close()
        return Answer(status, headers, content)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks = []
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        chunks.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return b"".join(chunks)


def _encode_picture(picture: bytes) -> bytes:
    head = f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="image"; filename="a.jpg"\r\n'
    return f"{head}\r\n".encode() + picture + f"\r\n--{_BOUNDARY}--\r\n".encode()
