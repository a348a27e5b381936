"""ETag and 304: an answer whose data did not change is not sent again."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from litestar import Request, Response

from searchlab.api.wire.envelope import succeed

CACHE_CONTROL = "private, max-age=60"


def answer_cached(request: Request[Any, Any, Any], data: msgspec.Raw) -> Response[Any]:
    """Answer with an ETag over the data alone, or 304 if the caller has the same data already.

    The tag is weak, since `meta` differs from answer to answer.
    """
    tag = f'W/"{hashlib.blake2b(bytes(data), digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": CACHE_CONTROL, "Vary": "x-api-key"}
    if names_tag(request, tag):
        return Response(None, status_code=304, headers=headers)
    return succeed(request, data, headers=headers)


def names_tag(request: Request[Any, Any, Any], tag: str) -> bool:
    """Say whether the headers `If-None-Match` name a tag, as weak tags are compared."""
    lines = request.headers.getall("if-none-match", [])
    tags = {part.strip().removeprefix("W/") for line in lines for part in line.split(",")}
    return "*" in tags or tag.removeprefix("W/") in tags
