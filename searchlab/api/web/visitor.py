"""Who looks at a page: found once for each request, by the session's cookie."""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection

from searchlab.api.accounts.sessions import is_session
from searchlab.api.accounts.visitors import Visitor
from searchlab.api.http.admission import look_up
from searchlab.api.http.context import services_of
from searchlab.api.web.session_cookies import secret_of
from searchlab.api.wire.errors import HttpProblem

__all__ = [
    "Visitor",
    "find_visitor",
    "forget_visitor",
    "is_visitor_known",
    "require_sign_in",
    "sign_in_first",
    "visitor_of",
]

_KEY = "searchlab.visitor"
# No browser asks for a cookie by itself, but an answer 401 must say what is missing.
_CHALLENGE = 'Cookie realm="searchlab"'


async def find_visitor(request: Request[Any, Any, Any]) -> Visitor | None:
    """Find the visitor of a page and remember it for `visitor_of`."""
    services = services_of(request)
    anonymous = services.anonymous
    visitor = await _find_signed_in(request)
    if visitor is None and anonymous.are_welcome:
        visitor = anonymous.recall() or await services.in_database(anonymous.find)
    request.scope.setdefault("state", {})[_KEY] = visitor
    return visitor


async def _find_signed_in(request: Request[Any, Any, Any]) -> Visitor | None:
    services, secret = services_of(request), secret_of(request)
    if not is_session(secret):
        return None
    sessions = services.sessions
    known = sessions.recall(secret)
    return known or await look_up(services, request.scope, sessions.find, secret)


def visitor_of(request: ASGIConnection[Any, Any, Any, Any]) -> Visitor | None:
    """Return the visitor of a page; None for who is not signed in, and outside the pages."""
    visitor: Visitor | None = request.scope.get("state", {}).get(_KEY)
    return visitor


def forget_visitor(request: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Let what is left of a request be nobody's, as its account is gone."""
    request.scope.setdefault("state", {})[_KEY] = None


def is_visitor_known(request: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Whether it was found out who looks; not so where there is no page."""
    return _KEY in request.scope.get("state", {})


def require_sign_in(request: Request[Any, Any, Any]) -> Visitor:
    """Return the visitor, whose own account it is.

    Raises:
        HttpProblem: Nobody is signed in (401).
    """
    visitor = visitor_of(request)
    if visitor is None or not visitor.is_signed_in:
        raise sign_in_first(what="this page is")
    return visitor


def sign_in_first(*, what: str) -> HttpProblem:
    """Make the problem of who is not signed in, as in `sign_in_first(what="this page is")`."""
    msg = f"{what} for who is signed in; open a one-time link to sign in"
    return HttpProblem(msg, "UNAUTHORIZED", headers={"WWW-Authenticate": _CHALLENGE})
