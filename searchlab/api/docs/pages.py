"""The reference for people: a page with a form for each operation, and a page of every error.

Both are whole in one answer and load nothing from elsewhere; their policy allows just the script
and the style that stand in them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from litestar import Litestar, Request, Response, get
from litestar.enums import MediaType
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from searchlab.api.docs.openapi import EncodedDocument, build_document
from searchlab.api.http.context import context_of
from searchlab.api.wire.errors import KINDS, Kind

_CODE = re.compile(r"`([^`]+)`")
_INVALID = Kind(
    "",
    422,
    "A value is missing, of the wrong type, out of range, or cannot be combined with another.",
    '{"detail": [{"loc": ["query", "per_page"], "msg": "per_page must be an integer <= 100, '
    'got 101", "type": "out_of_range"}]}',
    "`loc` says where, `msg` says what must hold. This body alone has no envelope and no code.",
)
# What no line of ours can answer, since it does not get so far.
_BEFORE_US = (
    (431, "The request line and the headers have more than 128 KiB together."),
    (431, "There are more than 100 headers, of any size."),
    (400, "The request line or a header cannot be read as HTTP at all."),
)


def handlers_of(app: Litestar) -> list[HTTPRouteHandler]:
    """List the HTTP handlers of an application, each once."""
    found = {
        id(handler): handler
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        if handler.http_methods != {"OPTIONS"}
    }
    return list(found.values())


@cache
def errors_page() -> str:
    """Explain every error code, from the table that the answers come from."""
    kinds = sorted([*KINDS.values(), _INVALID], key=lambda kind: kind.status)
    table = "".join(_error(kind) for kind in kinds)
    bare = "".join(f"<li>{status}: {_marked(when)}</li>" for status, when in _BEFORE_US)
    return _page(
        "Errors",
        "<main><h1>Errors</h1><p>Everything that fails has the envelope of everything else, with "
        "<code>success</code> false, <code>data</code> null and <code>error</code> holding "
        "<code>code</code>, <code>message</code> and <code>details</code>. A failed validation "
        f'alone has a body of its own.</p>{table}<h2 id="server">Answers without a body</h2>'
        "<p>What cannot be taken for a request is answered by the HTTP server: the status alone, "
        f"without a body and a request id, and the end of the connection.</p><ul>{bare}</ul>"
        "</main>",
    )


def _error(kind: Kind) -> str:
    name = kind.code or "failed validation"
    return (
        f'<h2 id="{escape(kind.code or "422")}">{kind.status} <code>{escape(name)}</code></h2>'
        f"<p>{_marked(kind.meaning)}</p><pre>{escape(kind.example)}</pre>"
        f"<p><strong>What to do.</strong> {_marked(kind.fix)}</p>"
    )


def _marked(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))


@cache
def reference_page() -> str:
    """Return the page that reads the OpenAPI document and sends requests."""
    return _page("Reference", f"<main></main><script>{_static('docs.js')}</script>")


def _page(title: str, body: str) -> str:
    key = (
        '<label>x-api-key <input id="key" type="password" size="24" autocomplete="off" '
        'placeholder="sl_…"></label>'
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: searchlab'
        '</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<style>{_static('docs.css')}</style></head><body>"
        '<header><strong>searchlab</strong><a href="/docs">Reference</a>'
        '<a href="/docs/errors">Errors</a><a href="/openapi.json">openapi.json</a>'
        f"{key if title == 'Reference' else ''}</header>{body}</body></html>"
    )


@cache
def _static(name: str) -> str:
    return files("searchlab.api.docs").joinpath("static", name).read_text(encoding="utf-8")


@cache
def _policy() -> str:
    sources = {
        kind: base64.b64encode(hashlib.sha256(_static(name).encode()).digest()).decode()
        for kind, name in (("script-src", "docs.js"), ("style-src", "docs.css"))
    }
    allowed = [f"{kind} 'sha256-{digest}'" for kind, digest in sources.items()]
    rest = ["connect-src 'self'", "img-src 'self' http: https: data:", "base-uri 'none'"]
    rest += ["form-action 'none'", "frame-ancestors 'none'"]
    return "; ".join(["default-src 'none'", *allowed, *rest])


def _html(page: str) -> Response[str]:
    headers = {"Content-Security-Policy": _policy(), "Cache-Control": "no-cache"}
    return Response(page, media_type=MediaType.HTML, headers=headers)


@get("/openapi.json", sync_to_thread=False)
def openapi_document(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Return the OpenAPI document."""
    state = request.app.state
    if "openapi" not in state:
        state.openapi = EncodedDocument(build_document(handlers_of(request.app)))
    document = state.openapi.placed(base_url=context_of(request).base_url)
    # Without an address in the settings, the document's is the one that it was asked for at.
    headers = {"Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*", "Vary": "Host"}
    return Response(document, media_type=MediaType.JSON, headers=headers)


@get("/docs", sync_to_thread=False)
def reference() -> Response[str]:
    """Show the reference."""
    return _html(reference_page())


@get("/docs/errors", sync_to_thread=False)
def errors() -> Response[str]:
    """Show every error."""
    return _html(errors_page())


ROUTES = [openapi_document, reference, errors]
