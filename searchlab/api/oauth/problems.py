"""Problems of OAuth: answers in the form that its clients read (RFC 6749, section 5.2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.enums import MediaType

from searchlab.api.wire.errors import HttpProblem, Invalid, problem_of

NO_STORE: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class RefusalCode(StrEnum):
    """The codes that clients know (RFC 6749, 7591, 8707, OpenID Connect)."""

    ACCESS_DENIED = "access_denied"
    INVALID_CLIENT = "invalid_client"
    INVALID_CLIENT_METADATA = "invalid_client_metadata"
    INVALID_GRANT = "invalid_grant"
    INVALID_REDIRECT_URI = "invalid_redirect_uri"
    INVALID_REQUEST = "invalid_request"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    REQUEST_NOT_SUPPORTED = "request_not_supported"
    REQUEST_URI_NOT_SUPPORTED = "request_uri_not_supported"
    SERVER_ERROR = "server_error"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    UNSUPPORTED_RESPONSE_TYPE = "unsupported_response_type"


_CODES: Final = {
    403: RefusalCode.ACCESS_DENIED,
    429: RefusalCode.TEMPORARILY_UNAVAILABLE,
    503: RefusalCode.TEMPORARILY_UNAVAILABLE,
}


class OAuthProblem(Exception):  # noqa: N818 - it is an answer
    """A refusal that a client reads.

    Attributes:
        error: Its code, such as `invalid_grant`.
        description: What must hold, what came and what to do.
        status: HTTP status.
    """

    def __init__(self, error: RefusalCode, description: str, status: int = 400) -> None:
        super().__init__(f"{error}: {description}")
        self.error, self.description, self.status = error, description, status


def answer_problem(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Answer with any exception of a route that programs use; details of our own stay out."""
    headers: dict[str, str] = {}
    if not isinstance(error, OAuthProblem):
        problem = problem_of(error)
        if isinstance(problem, Invalid):
            error = OAuthProblem(RefusalCode.INVALID_REQUEST, str(problem))
        else:
            if problem.kind.status >= 500 and not isinstance(error, HttpProblem):
                request.app.state.log.error("a request failed", error)
            error, headers = _translate(problem), problem.headers
    if error.error == RefusalCode.INVALID_CLIENT:  # which RFC 6749 asks of such a refusal
        headers = headers | {"WWW-Authenticate": 'Basic realm="searchlab", error="invalid_client"'}
    body = {"error": error.error, "error_description": _plain(error.description)}
    return Response(
        msgspec.json.encode(body),
        status_code=error.status,
        media_type=MediaType.JSON,
        headers=NO_STORE | headers,
    )


def _translate(problem: HttpProblem) -> OAuthProblem:
    status = problem.kind.status
    usual = RefusalCode.INVALID_REQUEST if status < 500 else RefusalCode.SERVER_ERROR
    return OAuthProblem(_CODES.get(status, usual), problem.message, status)


def _plain(text: str) -> str:
    """Leave what RFC 6749 allows in a description: printable ASCII without quotes."""
    plain = text.encode("ascii", "replace").decode().replace('"', "'").replace("\\", "/")
    return "".join(char if char.isprintable() else "?" for char in plain)[:500]
