"""Media: the pictures that the `urls` of photo records lead to, without a key, cached for ever.

An address names a photo and a size, never a file. The content type follows from the first bytes of
the picture, and the headers keep browsers from running anything in it.
"""

from __future__ import annotations

from typing import Any, Final

from litestar import Request, route
from litestar.types import ASGIApp

from searchlab.api.http.caching import names_tag
from searchlab.api.http.context import context_of, services_of
from searchlab.api.http.ranges import PictureAnswer, parse_range
from searchlab.api.snapshots.encoded_photos import version_of
from searchlab.errors import NotFoundError, quote
from searchlab.photos.photo import URL_SIZES

TYPES: Final = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "AVIF": "image/avif",
    "HEIF": "image/heif",
    "GIF": "image/gif",
    "TIFF": "image/tiff",
}
FOREVER: Final = "public, max-age=31536000, immutable"
FOR_A_WHILE: Final = "public, max-age=300"
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@route(
    ["/media/{photo_id:str}", "/media/{photo_id:str}/{size:str}"],
    http_method=["GET", "HEAD"],
    status_code=200,
    include_in_schema=False,
)
async def send_picture(request: Request[Any, Any, Any]) -> ASGIApp:
    """Send a picture of a photo, in the size that the path names, else the original."""
    services = services_of(request)
    renditions, sends = services.renditions, services.sends
    photo = renditions.photo(request.path_params["photo_id"])
    size = request.path_params.get("size", "full")
    if size not in URL_SIZES:
        msg = f"size must be one of {', '.join(URL_SIZES)}, got {quote(size)}"
        raise NotFoundError(msg)
    versioned = f"v={version_of(photo)}".encode() in request.scope["query_string"].split(b"&")
    tag = f'"{photo.sha256}-{renditions.variant(photo, size)}"'
    headers = {"ETag": tag, "Cache-Control": FOREVER if versioned else FOR_A_WHILE}
    if names_tag(request, tag):
        return PictureAnswer(renditions, None, headers=headers, sends=sends)
    source = await renditions.open(photo, size)
    kind = TYPES.get(source.kind)
    if kind is None:  # the file was damaged or replaced since it was indexed
        source.close()
        msg = f"the picture of photo {photo.photo_id} must be one that is known, got other bytes"
        raise NotFoundError(msg)
    ending = "jpg" if source.kind == "JPEG" else source.kind.lower()
    headers |= {
        "Content-Type": kind,
        "Content-Disposition": f'inline; filename="{photo.photo_id}-{size}.{ending}"',
        "Content-Security-Policy": _POLICY,
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Accept-Ranges": "bytes",
    }
    condition = request.headers.get("if-range")
    whole = condition is not None and condition != tag
    range_header = None if whole or request.method == "HEAD" else request.headers.get("range")
    span, facts = parse_range(range_header, source.size), context_of(request).facts
    address = services.proxies.client_of(request.scope)
    return PictureAnswer(
        renditions, source, headers=headers, sends=sends, address=address, span=span, facts=facts
    )


ROUTES: Final = [send_picture]
