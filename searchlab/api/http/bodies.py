"""Bodies: the bytes of a request as they arrive, within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

from litestar import Request
from litestar.exceptions import InternalServerException

from searchlab.api.wire.errors import HttpProblem, Invalid, invalid
from searchlab.errors import quote

# Most seconds between two pieces of a body, for a whole picture, and for a whole JSON body.
_IDLE_S, _WHOLE_S, JSON_S = 20.0, 180.0, 10.0
# Small pieces are joined to this size, so that the parser has as little work however a body is cut.
_CHUNK_BYTES = 64 * 1024
# Each piece costs time, so beyond the first few they must have this size on average.
_FEW_PIECES, _LEAST_PIECE = 1_000, 512
_DISCARD_S = 10.0

AnyRequest = Request[Any, Any, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]


def check_content(request: AnyRequest, kind: str, must: str) -> dict[str, str]:
    """Check what a body is said to be: of one kind, and not compressed.

    Args:
        request: Whose body it is.
        kind: Media type that is wanted.
        must: What the body must be, in words.

    Returns:
        The parameters of its Content-Type.

    Raises:
        HttpProblem: It is of another kind, or compressed (415).
    """
    came, parameters = request.content_type
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding in {"", "identity"} and came == kind:
        return parameters
    got = quote(came) if coding in {"", "identity"} else f"{quote(came)} in {quote(coding)}"
    msg = f"the body must be {must}, got {got}"
    raise HttpProblem(msg, "UNSUPPORTED_MEDIA_TYPE")


class IncomingBody:
    """The bytes of a request, within limits of size and time."""

    def __init__(
        self, request: AnyRequest, max_bytes: int, *, whole_s: float | None = None
    ) -> None:
        """Take the body of a request.

        Args:
            request: A request whose body has not been read.
            max_bytes: Largest allowed size.
            whole_s: Seconds that the whole body may take; as for a picture if left out.
        """
        self._headers = request.headers
        self._stream = request.stream()
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._n_pieces = 0
        self._whole_s = _WHOLE_S if whole_s is None else whole_s
        self._deadline = asyncio.get_running_loop().time() + self._whole_s

    def check_announced(self) -> None:
        """Refuse a body whose Content-Length says that it is too large.

        Raises:
            HttpProblem: It is too large (413).
        """
        announced = self._headers.get("content-length", "")
        # 18 digits are enough to exceed any limit, and converting longer numbers would cost time.
        if announced.isascii() and announced.isdigit() and int(announced[:18]) > self._max_bytes:
            raise self._too_large()

    def _too_large(self) -> HttpProblem:
        msg = f"the body must have at most {self._max_bytes:,} bytes, got more"
        return HttpProblem(msg, "PAYLOAD_TOO_LARGE")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body in chunks of about 64 KiB, whatever the sizes of its pieces.

        Raises:
            HttpProblem: It is too large (413).
            Invalid: It takes too long, comes in tiny pieces, or the connection ends within it.
        """
        chunk = bytearray()
        while piece := await self._next():
            if self._n_bytes > self._max_bytes:
                raise self._too_large()
            if _are_tiny(self._n_pieces, self._n_bytes):
                msg = f"body must come in pieces of {_LEAST_PIECE} bytes and more, got smaller ones"
                raise invalid(("body",), msg, "pieces")
            chunk += piece
            if len(chunk) >= _CHUNK_BYTES:
                yield bytes(chunk)
                chunk.clear()
        if chunk:
            yield bytes(chunk)

    async def _next(self) -> bytes:
        until = min(self._deadline, asyncio.get_running_loop().time() + _IDLE_S)
        try:
            async with asyncio.timeout_at(until):
                async for piece in self._stream:
                    if piece:
                        self._n_bytes += len(piece)
                        self._n_pieces += 1
                        return piece
        except TimeoutError:
            msg = f"body must come within {self._whole_s:g} s and never pause for {_IDLE_S:g} s"
            raise invalid(("body",), msg, "timeout") from None
        except InternalServerException:  # how Litestar reports a connection that has ended
            raise invalid(("body",), "body must come whole, got a part of it") from None
        return b""


async def discard_rest(receive: Receive, most: int) -> None:
    """Read on for a while and discard the bytes: many senders read an answer only then.

    Args:
        receive: Gives the messages of a request whose body was not read to its end.
        most: Bytes after which the rest is left.
    """
    n_bytes = n_pieces = 0
    with suppress(HttpProblem, TimeoutError):
        async with asyncio.timeout(_DISCARD_S):
            while n_bytes < most and not _are_tiny(n_pieces, n_bytes):
                message = await receive()
                if not message.get("more_body", False):
                    return
                n_bytes += len(message.get("body", b""))
                n_pieces += 1


def _are_tiny(n_pieces: int, n_bytes: int) -> bool:
    return n_pieces > _FEW_PIECES + n_bytes // _LEAST_PIECE


async def read_whole(
    request: AnyRequest,
    max_bytes: int,
    *,
    take: Callable[[int], None] = lambda _: None,
    whole_s: float | None = None,
) -> bytes:
    """Read a body of at most `max_bytes` bytes.

    Args:
        request: A request whose body has not been read.
        max_bytes: Largest allowed size.
        take: Called with the number of bytes about to be kept; may raise to refuse them.
        whole_s: Seconds that it may take; as for a picture if left out.

    Raises:
        HttpProblem: It is too large (413).
        Invalid: It takes too long, comes in tiny pieces, or the connection ends within it.
    """
    body = IncomingBody(request, max_bytes, whole_s=whole_s)
    body.check_announced()
    pieces: list[bytes] = []
    try:
        async for chunk in body.chunks():
            take(len(chunk))
            pieces.append(chunk)
    except (HttpProblem, Invalid):
        pieces.clear()  # the rest is read on before the answer
        raise
    return b"".join(pieces)
