"""Public collections, which anybody may open who has the address."""

from __future__ import annotations

from typing import Any, Final

from litestar import Response, get

from searchlab.api.http.context import services_of
from searchlab.api.web.collections.own import collection_id_of
from searchlab.api.web.collections.shown import (
    AnyRequest,
    Credit,
    contents_of,
    credits_of,
)
from searchlab.api.web.templates import page_headers, respond
from searchlab.errors import NotFoundError, quote

_FILES: Final = ("credits.txt", "credits.html")


async def _get_public(request: AnyRequest) -> dict[str, Any]:
    services, text = services_of(request), request.path_params["collection_id"]
    try:
        number = collection_id_of(text)
        return await services.in_database(services.collections.get_public, number)
    except NotFoundError:
        # The same words for a private collection and for none at all.
        msg = f"there must be a public collection at this address, got none at {quote(text)}"
        raise NotFoundError(msg) from None


@get("/c/{collection_id:str}")
async def show_public(request: AnyRequest) -> Response[bytes]:
    """Show a public collection with the credits of its photos."""
    contents = contents_of(request, await _get_public(request))
    credits = credits_of(request, contents["shown"])
    return respond(request, "collections/public.html", credits=credits, **contents)


@get("/c/{collection_id:str}/{file:str}")
async def send_credits(request: AnyRequest) -> Response[bytes]:
    """Send the credits of all photos of a public collection, as text or as HTML to paste."""
    file = request.path_params["file"]
    if file not in _FILES:
        msg = f"file must be one of {', '.join(_FILES)}, got {quote(file)}"
        raise NotFoundError(msg)
    collection = await _get_public(request)
    lines = credit_lines(credits_of(request, collection["photos"]), as_html=file.endswith("html"))
    headers = page_headers() | {"Content-Disposition": f'attachment; filename="{file}"'}
    # As plain text in both cases: it is to be pasted, not to be run here.
    content = "".join(f"{line}\n" for line in lines).encode()
    return Response(content, media_type="text/plain", headers=headers)


def credit_lines(credits: list[Credit], *, as_html: bool) -> list[str]:
    """Return the credits to copy, one a line."""
    return [" ".join((c.html if as_html else c.plain).split()) for c in credits]


ROUTES = [show_public, send_credits]
