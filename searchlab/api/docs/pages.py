"""The reference for people: Swagger UI with a form for each operation, and a page of all errors.

The pages load nothing from other servers: their files lie in `static`, and their Content Security
Policy allows no other script or style, neither inline nor from outside.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Request, Response, get
from litestar.datastructures import CacheControlHeader
from litestar.enums import MediaType
from litestar.static_files import create_static_files_router
from markupsafe import Markup, escape

from searchlab import __version__
from searchlab.api.docs.openapi import EncodedDocument, build_document
from searchlab.api.http.context import context_of
from searchlab.api.wire.errors import KINDS, Kind

STATIC = Path(__file__).with_name("static")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' http: https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_CODE = re.compile(r"`([^`]+)`")
_INVALID = Kind(
    "",
    422,
    "A value is missing, of the wrong type, out of range, or cannot be combined with another.",
    '{"detail": [{"loc": ["query", "per_page"], "msg": "per_page must be an integer <= 100, '
    'got 101", "type": "out_of_range"}]}',
    "`loc` says where, `msg` says what must hold. This body alone has no envelope and no code.",
)
# The HTTP server refuses these before our code runs.
_WITHOUT_BODY = (
    (431, "The request line and the headers have more than 128 KiB together."),
    (431, "There are more than 100 headers, of any size."),
    (400, "The request line or a header cannot be read as HTTP at all."),
)


def _mark_code(text: str) -> Markup:
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


@cache
def render_page(name: str) -> str:
    """Render the page `errors`, from the table of problems, or the page `reference`."""
    templates = Environment(
        loader=PackageLoader("searchlab.api.docs"), autoescape=True, undefined=StrictUndefined
    )
    templates.filters["code"] = _mark_code
    # Relative to the page, so that it also works where a proxy puts the service under a path.
    root = "../" if name == "errors" else ""
    return templates.get_template(f"{name}.html").render(
        root=root,
        assets=f"{root}docs/static/{__version__}",
        kinds=sorted([*KINDS.values(), _INVALID], key=lambda kind: kind.status),
        without_body=_WITHOUT_BODY,
    )


def _answer_page(name: str) -> Response[str]:
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return Response(render_page(name), media_type=MediaType.HTML, headers=headers)


@get("/openapi.json", sync_to_thread=False)
def openapi_document(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Return the OpenAPI document."""
    state = request.app.state
    if "openapi" not in state:
        state.openapi = EncodedDocument(build_document(request.app))
    document = state.openapi.place(base_url=context_of(request).base_url)
    # Without `base_url` in the settings, the document's address depends on the header Host.
    headers = {"Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*", "Vary": "Host"}
    return Response(document, media_type=MediaType.JSON, headers=headers)


@get("/docs", sync_to_thread=False)
def reference() -> Response[str]:
    """Show the reference."""
    return _answer_page("reference")


@get("/docs/errors", sync_to_thread=False)
def errors() -> Response[str]:
    """Show every error."""
    return _answer_page("errors")


_ASSETS = create_static_files_router(
    f"/docs/static/{__version__}", [STATIC], cache_control=CacheControlHeader(max_age=3600)
)
ROUTES: list[Any] = [openapi_document, reference, errors, _ASSETS]
