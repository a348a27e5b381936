"""The reference for people: a form for each operation, all errors, tools, security.

The pages load nothing from other servers: their files lie in `static`, and their Content Security
Policy allows no other script or style, neither inline nor from outside.

A viewer such as Swagger UI is 1.4 MB of scripts: where they do not run there is nothing to read.
Here all is rendered by the server, and scripts are needed only to send a request from a form.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Request, Response, get
from litestar.enums import MediaType
from litestar.response import Redirect
from markupsafe import Markup, escape

from searchlab.api.docs.mcp_clients import list_clients
from searchlab.api.docs.openapi import EncodedDocument, build_document
from searchlab.api.docs.promises import PROMISES
from searchlab.api.docs.reading import read_document, read_schemas
from searchlab.api.docs.security import NOT_PROMISED, PEOPLE
from searchlab.api.http.context import context_of
from searchlab.api.http.static_files import hash_files, serve_files
from searchlab.api.mcp.catalog import TOOLS
from searchlab.api.mcp.routes import is_installed
from searchlab.api.oauth.scopes import SCOPES
from searchlab.api.settings import MCP_PATH
from searchlab.api.wire.errors import KINDS, Kind

STATIC = Path(__file__).with_name("static")
_ASSETS = f"docs/static/{hash_files(STATIC)}"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' http: https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_CODE = re.compile(r"`([^`]+)`")
_WORDS = re.compile(r"(\w+)")
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
    (431, "The request line and the headers have some 128 KiB or more together."),
    (414, "The path and the query have 64 KiB or more."),
    (431, "There are more than 100 headers, of any size."),
    (400, "The request line or a header cannot be read as HTTP at all."),
)


def _mark_code(text: str) -> Markup:
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _mark_breaks(path: str) -> Markup:
    """Let a path be broken before a slash, where it does not fit."""
    return Markup("<wbr>/").join(path.split("/"))


def _link_schemas(kind: str, schemas: Collection[str]) -> Markup:
    """Let the names of schemas in a kind lead to them."""
    words = (
        Markup('<a href="#schema-{0}">{0}</a>').format(word) if word in schemas else escape(word)
        for word in _WORDS.split(kind)
    )
    return Markup().join(words)


@lru_cache(maxsize=64)
def render_page(name: str, *, address: str = "") -> str:
    """Render the page `errors`, `security` or `mcp` from the tables of what they show.

    Args:
        name: The page.
        address: That of the tool server, which the page `mcp` shows.
    """
    return _render(
        name,
        # Relative to the page, so that it also works where a proxy puts the service under a path.
        root="../",
        kinds=sorted([*KINDS.values(), _INVALID], key=lambda kind: kind.status),
        without_body=_WITHOUT_BODY,
        people=PEOPLE,
        promises=PROMISES,
        not_promised=NOT_PROMISED,
        address=address,
        clients=list_clients(address),
        scopes=SCOPES,
        tools=list(TOOLS.values()),
        has_tools=is_installed(),
    )


def render_reference(document: dict[str, Any]) -> str:
    """Render the page of all operations from the OpenAPI document."""
    info = document["info"]
    return _render(
        "reference",
        root="",
        openapi=document["openapi"],
        info=info,
        # The template leads to the pages of errors and security itself.
        about=[part for part in info["description"].split("\n\n") if "](/" not in part],
        key=document["components"]["securitySchemes"]["ApiKey"],
        sections=read_document(document),
        schemas=read_schemas(document),
    )


def _render(name: str, *, root: str, **shown: Any) -> str:
    templates = Environment(
        loader=PackageLoader("searchlab.api.docs"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "code": _mark_code,
        "breakable": _mark_breaks,
        "link_schemas": _link_schemas,
    }
    assets = f"{root}{_ASSETS}"
    return templates.get_template(f"{name}.html").render(root=root, assets=assets, **shown)


def _drop_slash(request: Request[Any, Any, Any]) -> Redirect | None:
    """Lead from `/docs/` to `/docs`: what a page links to is relative to its address."""
    path = (request.scope.get("raw_path") or b"").split(b"?", 1)[0].decode("ascii")
    if not path.endswith("/"):
        return None
    return Redirect(f"../{path.rstrip('/').rpartition('/')[2]}", status_code=308)


def _answer_page(page: str) -> Response[str]:
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return Response(page, media_type=MediaType.HTML, headers=headers)


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


@get("/docs", before_request=_drop_slash, sync_to_thread=False)
def reference(request: Request[Any, Any, Any]) -> Response[str]:
    """Show the reference."""
    state = request.app.state
    if "reference" not in state:
        state.reference = render_reference(build_document(request.app))
    return _answer_page(state.reference)


@get("/docs/errors", before_request=_drop_slash, sync_to_thread=False)
def errors() -> Response[str]:
    """Show every error."""
    return _answer_page(render_page("errors"))


@get("/docs/mcp", before_request=_drop_slash, sync_to_thread=False)
def tools(request: Request[Any, Any, Any]) -> Response[str]:
    """Show how programs of language models are connected, and what they can do."""
    services = request.app.state.get("services")
    mcp_url = services.settings.mcp_url if services else ""
    page = render_page("mcp", address=f"{mcp_url or context_of(request).base_url}{MCP_PATH}")
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache", "Vary": "Host"}
    return Response(page, media_type=MediaType.HTML, headers=headers)


@get("/docs/security", before_request=_drop_slash, sync_to_thread=False)
def security() -> Response[str]:
    """Show who may do what, and what is promised."""
    return _answer_page(render_page("security"))


_FILES = serve_files(f"/{_ASSETS}", STATIC)
ROUTES: list[Any] = [openapi_document, reference, errors, tools, security, _FILES]
