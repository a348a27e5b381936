"""Failures as pages: what went wrong and what to do, for who came with a browser.

A path where pages are answers with one always. Elsewhere a browser, which asks for HTML by name,
gets one too, and a program the envelope.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from litestar.connection import ASGIConnection
from litestar.enums import MediaType

from searchlab.api.http.context import context_of
from searchlab.api.web.templates import page_headers, render
from searchlab.api.wire.envelope import encode_failure
from searchlab.api.wire.errors import HttpProblem, Invalid
from searchlab.api.wire.parameters import query_value

_PROGRAMS: Final = frozenset(
    {
        ".well-known",
        "api",
        "health",
        "mcp",
        "media",
        "metrics",
        "oauth",
        "openapi.json",
        "ready",
        "v1",
    }
)
_PEOPLE: Final = frozenset(
    {
        "account",
        "c",
        "collections",
        "connect",
        "judge",
        "photographers",
        "photos",
        "picture",
        "sign-in",
        "sign-out",
    }
)
_TITLES_OF_CODES: Final = {"QUOTA_EXCEEDED": "This month's searches are used up"}
_TITLES: Final = {
    400: "This request cannot be read",
    401: "Please sign in first",
    403: "This is not yours to open",
    404: "There is no such page",
    405: "This page cannot do that",
    409: "This was done already",
    410: "This search has grown old",
    413: "This is too large",
    415: "This is of a kind that cannot be read",
    422: "Something in this address does not fit",
    429: "That was a lot at once",
    500: "Something broke on our side",
    503: "The server is busy",
}


_SEARCHES: Final = {"/", "/picture"}


def is_page(path: str) -> bool:
    """Say whether a path may be for people.

    >>> is_page("/photos/x"), is_page("/api/v1/nothing"), is_page("//api/v1"), is_page("/apis")
    (True, False, False, True)
    """
    return _first_part(path) not in _PROGRAMS


def _first_part(path: str) -> str:
    return path.lstrip("/").split("/", 1)[0]


class FailureReport(NamedTuple):
    """An answer that reports a problem."""

    status: int
    body: bytes
    media_type: MediaType
    headers: Mapping[str, str]


def report(
    request: ASGIConnection[Any, Any, Any, Any], problem: HttpProblem | Invalid
) -> FailureReport:
    """Report a problem: as a page to people, in the envelope to programs."""
    path = request.scope["path"]
    wants_page = path == "/" or _first_part(path) in _PEOPLE
    wants_page = wants_page or "text/html" in request.headers.get("accept", "")
    if wants_page and is_page(path):
        return _render(request, problem)
    status, body = encode_failure(context_of(request), problem)
    extra = problem.headers if isinstance(problem, HttpProblem) else {}
    return FailureReport(status, body, MediaType.JSON, extra)


def _render(
    request: ASGIConnection[Any, Any, Any, Any], problem: HttpProblem | Invalid
) -> FailureReport:
    if isinstance(problem, Invalid):
        status, messages, code = 422, [detail.msg for detail in problem.details], ""
        headers: Mapping[str, str] = {}
    else:
        status, messages, code = problem.kind.status, [problem.message], problem.kind.code
        headers = problem.headers
    names = {name.lower(): value for name, value in headers.items()}
    values = {
        "status": status,
        "title": _title(request, status, code),
        "messages": messages,
        "code": code,
        "again_at": _again_at(names.get("retry-after")),
        "request_id": context_of(request).request_id,
        "back": _back(request),
    }
    sent = page_headers() | {"Cache-Control": "no-store"} | dict(headers)
    return FailureReport(status, render(request, "failure.html", values), MediaType.HTML, sent)


def _title(request: ASGIConnection[Any, Any, Any, Any], status: int, code: str) -> str:
    if status == 422 and request.scope["path"] in _SEARCHES:
        return "This search cannot be run"
    return _TITLES_OF_CODES.get(code) or _TITLES.get(status, HTTPStatus(status).phrase)


def _back(request: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the address of the search, with the words that somebody searched for."""
    words = ""
    if request.scope["path"] == "/":
        with suppress(Invalid):  # the query itself may be what is reported
            words = query_value(request, "q")
    return f"/?{urlencode({'q': words})}" if words else "/"


def _again_at(wait: str | None) -> datetime.datetime | None:
    if wait is None or not wait.isdigit():
        return None
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=int(wait[:9]))
    return at.replace(microsecond=0)
