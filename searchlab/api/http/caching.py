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
    if names_tag(request.headers.get("if-none-match"), tag):
        return Response(None, status_code=304, headers=headers)
    return succeed(request, data, headers=headers)


def names_tag(if_none_match: str | None, tag: str) -> bool:
    """Say whether the header `If-None-Match` names a tag, as weak tags are compared.

    >>> names_tag('"a", W/"b"', 'W/"b"'), names_tag("*", '"a"'), names_tag(None, '"a"')
    (True, True, False)
    """
    if if_none_match is None:
        return False
    tags = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
    return "*" in tags or tag.removeprefix("W/") in tags
