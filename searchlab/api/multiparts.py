"""Multipart bodies: the one part `image`, read as it comes, within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from litestar import Request
from litestar.exceptions import InternalServerException
from multipart import (  # type: ignore[import-untyped]
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
)

from searchlab.api.problems import Detail, Invalid, Problem, invalid
from searchlab.api.requests import ImageSearch
from searchlab.errors import shown

PART: Final = "image"
MAX_PARTS: Final = 16
MAX_PART_HEADER_BYTES: Final = 4_096

# A pause between two pieces of a body, and the whole of it.
_IDLE_S, _WHOLE_S = 20.0, 180.0
# Once a body is refused, this much more of it is read, so that the sender gets to read the answer.
_DRAINED_BODIES, _DRAIN_S = 4, 10.0
_QUERY_PARAMETERS: Final = frozenset(ImageSearch.__struct_fields__)

AnyRequest = Request[Any, Any, Any]


class Body:
    """The bytes of a request, within limits of size and time."""

    def __init__(self, request: AnyRequest, max_bytes: int) -> None:
        """Take the body of a request.

        Args:
            request: Whose body has not been read.
            max_bytes: Size of the largest body.
        """
        self._headers = request.headers
        self._stream = request.stream()
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._ended = False
        self._deadline = asyncio.get_running_loop().time() + _WHOLE_S

    def check_announced(self) -> None:
        """Refuse a body that says by itself that it is too large.

        Raises:
            Problem: It does (413).
        """
        announced = self._headers.get("content-length", "")
        # The least that is too much is as good as any, and a number of any length is no trouble.
        if announced.isascii() and announced.isdigit() and int(announced[:18]) > self._max_bytes:
            raise self._too_large()

    def _too_large(self) -> Problem:
        msg = f"the body must have at most {self._max_bytes:,} bytes, got more; scale it down"
        return Problem(msg, "PAYLOAD_TOO_LARGE")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the non-empty pieces of the body.

        Raises:
            Problem: It is too large (413).
            Invalid: It takes too long, or the connection ends within it.
        """
        while chunk := await self._next():
            self._n_bytes += len(chunk)
            if self._n_bytes > self._max_bytes:
                raise self._too_large()
            yield chunk

    async def _next(self) -> bytes:
        until = min(self._deadline, asyncio.get_running_loop().time() + _IDLE_S)
        try:
            async with asyncio.timeout_at(until):
                async for chunk in self._stream:
                    if chunk:
                        return chunk
        except TimeoutError:
            self._ended = True
            msg = f"body must come within {_WHOLE_S:g} s and never pause for {_IDLE_S:g} s"
            raise invalid(("body",), msg, "timeout") from None
        except InternalServerException:  # Litestar's word for a connection that has ended.
            self._ended = True
            raise invalid(("body",), "body must come whole, got a part of it") from None
        self._ended = True
        return b""

    async def drain(self) -> None:
        """Read on for a while without keeping anything, for a sender that only then listens."""
        unread = self._n_bytes == 0 and "expect" in self._headers  # It waits for a word to begin.
        if self._ended or unread:
            return
        most = self._n_bytes + _DRAINED_BODIES * self._max_bytes
        with suppress(Invalid, TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                while self._n_bytes < most and (chunk := await self._next()):
                    self._n_bytes += len(chunk)


class Form:
    """A multipart/form-data body as it comes; keeps the part `image` and only counts the others."""

    def __init__(self, boundary: bytes, take: Callable[[int], None]) -> None:
        """Begin a form.

        Args:
            boundary: What separates its parts.
            take: Told how many bytes are about to be kept.
        """
        self._parser = PushMultipartParser(
            boundary, max_segment_count=MAX_PARTS, max_header_size=MAX_PART_HEADER_BYTES
        )
        self._take = take
        self._names: list[str] = []
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next piece.

        Raises:
            Invalid: The form is broken, or has too many parts or too long headers.
        """
        with _multipart_errors():
            for event in self._parser.parse(chunk):
                if isinstance(event, MultipartSegment):
                    self._names.append(event.name)
                elif event and self._names[-1] == PART:
                    self._take(len(event))
                    self._pieces.append(bytes(event))

    def picture(self) -> bytes | None:
        """Return the part, once all has come; None where the form has no part at all.

        Raises:
            Invalid: The form is broken, or has not one part `image` with something in it.
        """
        with _multipart_errors():
            self._parser.close()
        problems = [
            Detail(("body", name), f"{name} must be in the URL's query, got a part", "value_error")
            for name in dict.fromkeys(self._names)
            if name in _QUERY_PARAMETERS
        ]
        where, count = ("body", PART), self._names.count(PART)
        if count > 1:
            msg = f"{PART} must be one picture, got {count} parts of that name"
            problems.append(Detail(where, msg, "value_error"))
        elif self._names and not count and not problems:
            msg = f"{PART} must be a part of the body, got {shown(', '.join(self._names))}"
            problems.append(Detail(where, msg, "missing"))
        elif count and not self._pieces:
            msg = f"{PART} must hold a picture, got an empty part"
            problems.append(Detail(where, msg, "value_error"))
        if problems:
            raise Invalid(problems)
        return b"".join(self._pieces) if count else None


@contextmanager
def _multipart_errors() -> Iterator[None]:
    try:
        yield
    except MultipartError as error:
        msg = f"body must be well-formed multipart/form-data, got: {str(error)[:100]}"
        raise invalid(("body",), msg) from None


def boundary_of(request: AnyRequest) -> bytes:
    """Check the headers of a body, and find what separates its parts.

    Raises:
        Problem: It is no multipart/form-data (415).
        Invalid: Nothing separates its parts.
    """
    kind, options = request.content_type
    coding = request.headers.get("content-encoding", "identity")
    if kind != "multipart/form-data" or coding.strip().lower() not in {"", "identity"}:
        got = shown(kind) if coding == "identity" else f"{shown(kind)} in {shown(coding)}"
        msg = f"body must be multipart/form-data with a part {PART}, got {got}"
        raise Problem(msg, "UNSUPPORTED_MEDIA_TYPE")
    boundary = options.get("boundary", "")
    if not boundary:
        msg = "body must be well-formed multipart/form-data, got a Content-Type without a boundary"
        raise invalid(("body",), msg)
    return boundary.encode("latin-1", "replace")
