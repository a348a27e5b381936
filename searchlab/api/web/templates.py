"""Templates: one Jinja environment, and the answers that are rendered with it.

Every page may load scripts and styles of its own service alone, neither inline nor from elsewhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Response
from litestar.connection import ASGIConnection
from litestar.enums import MediaType

from searchlab.api.http.context import context_of
from searchlab.api.http.static_files import hash_files, serve_files
from searchlab.api.web.visitor import is_visitor_known, visitor_of

STATIC: Final = Path(__file__).with_name("static")
_USUAL = "http://127.0.0.1:8000"  # for which the command line makes its links
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:{images}; "
    "connect-src 'self'; form-action 'self'; manifest-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_HEADERS = {
    "Referrer-Policy": "same-origin",  # stricter ones make browsers send `Origin: null` with forms
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
    "Vary": "Cookie",
}


# In the address, so that browsers keep the files for ever and get new ones after an update.
_ASSETS: Final = f"/static/{hash_files(STATIC)}"
STATIC_ROUTES: Final[list[Any]] = [serve_files(_ASSETS, STATIC)]
TEMPLATES: Final = Environment(
    loader=PackageLoader("searchlab.api.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
TEMPLATES.globals["zip"] = zip


def root_of(request: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the path that every address of a page starts with; empty without `base_url`."""
    return urlsplit(context_of(request).base_url).path


def render(
    request: ASGIConnection[Any, Any, Any, Any], template: str, values: Mapping[str, Any]
) -> bytes:
    """Render a template, which knows `root`, `assets`, `path`, the visitor and more besides."""
    root, base_url = root_of(request), context_of(request).base_url
    html = TEMPLATES.get_template(template).render(
        root=root,
        assets=f"{root}{_ASSETS}",
        path=request.scope["path"],
        link_options="" if base_url == _USUAL else f" --base-url {shlex.quote(base_url)}",
        visitor=visitor_of(request),
        visitor_is_known=is_visitor_known(request),
        **values,
    )
    return html.encode()


def page_headers(*, remote_pictures: bool = False) -> dict[str, str]:
    """Return the headers that every page has.

    Args:
        remote_pictures: Whether it shows pictures that lie at the photo libraries.
    """
    images = " https: http:" if remote_pictures else ""
    return {**_HEADERS, "Content-Security-Policy": _POLICY.format(images=images)}


def respond(
    request: ASGIConnection[Any, Any, Any, Any],
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    remote_pictures: bool = False,
    **values: Any,
) -> Response[bytes]:
    """Answer with a page.

    Args:
        request: What is answered.
        template: Its file in `templates/`, which extends `layout.html`.
        status: HTTP status.
        headers: More headers, which win over those of every page.
        remote_pictures: Whether it shows pictures that lie at the photo libraries.
        **values: What the template names.
    """
    sent = page_headers(remote_pictures=remote_pictures) | dict(headers or {})
    content = render(request, template, {**values, "remote_pictures": remote_pictures})
    return Response(content, status_code=status, media_type=MediaType.HTML, headers=sent)


def redirect(
    request: ASGIConnection[Any, Any, Any, Any],
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
) -> Response[bytes]:
    """Send the browser to a page of this server by GET (303).

    Args:
        request: What is answered.
        path: Path and query of the page, never what a request named.
        headers: More headers.
    """
    sent = page_headers() | {"Location": f"{root_of(request)}{path}"} | dict(headers or {})
    return Response(b"", status_code=303, media_type=MediaType.HTML, headers=sent)
