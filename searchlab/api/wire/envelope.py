"""The envelope: one shape for every JSON answer but a failed validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from litestar import Request, Response

from searchlab.api.http.context import RequestContext, context_of
from searchlab.api.wire.errors import HttpProblem, Invalid
from searchlab.api.wire.schema import Pagination

ENCODER = msgspec.json.Encoder()
_NONE: Mapping[str, str] = MappingProxyType({})


class JsonAnswer(Response[bytes]):
    """An answer with status 200 whose JSON is already encoded, and is sent unchanged.

    Litestar builds its own responses anew for every request, which takes as long as a search.
    """

    def __init__(self, body: bytes, *, headers: Mapping[str, str] = _NONE) -> None:
        self.content = body
        self.status_code = 200
        self._sent = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        self._sent += [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Return this object itself, which is an ASGI application."""
        return self

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the answer."""
        await send({"type": "http.response.start", "status": 200, "headers": self._sent})
        await send({"type": "http.response.body", "body": self.content, "more_body": False})


def enclose(
    context: RequestContext,
    *,
    success: bool,
    data: Any = None,
    error: Mapping[str, Any] | None = None,
    pagination: Pagination | None = None,
) -> bytes:
    """Encode an envelope; `meta.took_ms` is the time from the request's start until now."""
    return ENCODER.encode(
        {
            "success": success,
            "data": data,
            "meta": {"request_id": context.request_id, "took_ms": context.took_ms},
            "error": error,
            "pagination": pagination,
        }
    )


def enclose_parts(
    context: RequestContext, data: Sequence[bytes], *, pagination: Pagination
) -> bytes:
    """Encode an envelope whose `data` is JSON in parts; joins them once, since pages are long."""
    # Nothing before `data` is null.
    head, tail = enclose(context, success=True, pagination=pagination).split(b"null", maxsplit=1)
    return b"".join([head, *data, tail])


def succeed(
    request: Request[Any, Any, Any],
    data: Any,
    *,
    pagination: Pagination | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response[bytes]:
    """Answer 200 with `data`, which may be or hold `msgspec.Raw`."""
    context = context_of(request)
    with context.measure("serialise"):
        body = enclose(context, success=True, data=data, pagination=pagination)
    return JsonAnswer(body, headers=headers or {})


def encode_failure(context: RequestContext, problem: HttpProblem | Invalid) -> tuple[int, bytes]:
    """Return the HTTP status and the JSON body that report a problem."""
    if isinstance(problem, Invalid):
        return 422, ENCODER.encode({"detail": problem.details})
    error = {
        "code": problem.kind.code,
        "message": problem.message,
        "details": problem.details,
    }
    return problem.kind.status, enclose(context, success=False, error=error)
