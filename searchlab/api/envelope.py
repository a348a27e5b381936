"""The envelope: one shape for every JSON answer but a failed validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.enums import MediaType

from searchlab.api.exchange import Exchange, exchange_of
from searchlab.api.problems import Invalid, Problem
from searchlab.api.schema import Pagination

ENCODER = msgspec.json.Encoder()


def enclose(
    exchange: Exchange,
    *,
    success: bool,
    data: Any = None,
    error: Mapping[str, Any] | None = None,
    pagination: Pagination | None = None,
) -> bytes:
    """Encode an envelope; `took_ms` is the time until now."""
    return ENCODER.encode(
        {
            "success": success,
            "data": data,
            "meta": {"request_id": exchange.request_id, "took_ms": exchange.took_ms},
            "error": error,
            "pagination": pagination,
        }
    )


def succeed(
    request: Request[Any, Any, Any],
    data: Any,
    *,
    pagination: Pagination | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response[bytes]:
    """Answer 200 with `data`, which may be or hold `msgspec.Raw`."""
    exchange = exchange_of(request)
    with exchange.timed("serialise"):
        body = enclose(exchange, success=True, data=data, pagination=pagination)
    return Response(body, status_code=200, media_type=MediaType.JSON, headers=dict(headers or {}))


def encode_failure(exchange: Exchange, problem: Problem | Invalid) -> tuple[int, bytes]:
    """Encode what went wrong as status and body."""
    if isinstance(problem, Invalid):
        details = [detail._asdict() for detail in problem.details]
        return 422, ENCODER.encode({"detail": details})
    error = {
        "code": problem.kind.code,
        "message": problem.message,
        "details": problem.details,
    }
    return problem.kind.status, enclose(exchange, success=False, error=error)
