"""What can go wrong, in one table: code, status, meaning, example and fix.

Only a failed validation (422) has the specification's bare `{detail: [...]}`; everything else comes
in the envelope's `error`. Routes raise exceptions, and this module alone maps them to statuses.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from litestar.exceptions import HTTPException

from searchlab import errors
from searchlab.api.accounts.collections import FullError
from searchlab.api.accounts.database import BusyError, UnstorableError
from searchlab.api.accounts.file_watch import UnreachableDatabaseError
from searchlab.api.accounts.issuing import TooManyTokensError
from searchlab.api.accounts.replays import InFlightError
from searchlab.api.wire.schema import Detail
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query

INTERNAL = "INTERNAL_ERROR"


class Kind(NamedTuple):
    """One row of the table.

    Attributes:
        code: Value of `error.code`.
        status: The HTTP status.
        meaning: When this error is sent.
        example: A typical message.
        fix: What the caller can do.
    """

    code: str
    status: int
    meaning: str
    example: str
    fix: str


KINDS = {
    row[0]: Kind(*row)
    for row in (
        (
            "BAD_REQUEST",
            400,
            "The request cannot be read as HTTP of this API.",
            "a request must have one header Host, got none",
            "Send what the reference of the operation shows.",
        ),
        (
            "INVALID_FIELDS",
            400,
            "`fields` names something that is no field of a photo, or a field that the plan does "
            "not allow.",
            "fields must be names among photo_id, source_photo_id, ..., got 'photographer'",
            "Use the names in `error.details.accepted`.",
        ),
        (
            "UNAUTHORIZED",
            401,
            "The header `x-api-key` is missing, or does not hold a valid key.",
            "x-api-key must hold a key in force",
            "Send the key exactly as `searchlab keys create` showed it, or create a new one.",
        ),
        (
            "FORBIDDEN",
            403,
            "The collection exists, but belongs to another account, or the account has no "
            "known plan.",
            "collection 7 must be your own to be changed, got one of another account",
            "Create a collection of your own.",
        ),
        (
            "LIMIT_REACHED",
            403,
            "The account has as many collections, or the collection as many photos, as it may.",
            "an account must have at most 1,000 collections, got one more; delete one first",
            "Delete what is no longer needed.",
        ),
        (
            "NOT_FOUND",
            404,
            "No such photo, collection, entry or path.",
            "photo_id must name an indexed photo, got 'abc'",
            "Check the identifier; photos and collections may have been deleted.",
        ),
        (
            "METHOD_NOT_ALLOWED",
            405,
            "The path is known, the method is not.",
            "'/api/v1/usage' must be asked with GET, HEAD, OPTIONS, got 'PUT'",
            "Use a method of the header `Allow`.",
        ),
        (
            "CONFLICT",
            409,
            "The photo is in the collection already.",
            "photo_id must be new to collection 7, got '0f3d2c1b-5a4e-5c6d-8b7a-9f8e7d6c5b4a', "
            "which is in it",
            "Nothing needs to be done.",
        ),
        (
            "REQUEST_IN_FLIGHT",
            409,
            "A request with this `Idempotency-Key` is still being worked on.",
            "Idempotency-Key must not be in use, got one whose first request is not answered yet",
            "Send the same request again after `Retry-After` seconds.",
        ),
        (
            "CURSOR_EXPIRED",
            410,
            "The state of the library that the cursor pages through is no longer kept.",
            "cursor must belong to a snapshot that is kept; search again",
            "Start again from the first page.",
        ),
        (
            "PAYLOAD_TOO_LARGE",
            413,
            "The body has too many bytes, or the picture too many pixels.",
            "the body must have at most 20,971,520 bytes, got more",
            "Scale the picture down; 1,000 pixels a side are plenty.",
        ),
        (
            "URI_TOO_LONG",
            414,
            "The path and query have too many bytes.",
            "path and query must have at most 32,768 bytes, got 40,000",
            "Leave out what the cursor already holds.",
        ),
        (
            "UNSUPPORTED_MEDIA_TYPE",
            415,
            "The operation does not accept a body of this type, or one that is compressed.",
            "the body must be application/json, got 'application/json' in 'gzip'",
            "Send JSON as application/json, and JPEG, PNG, WebP or AVIF pictures as "
            "multipart/form-data in a part `image`; compress neither.",
        ),
        (
            "RATE_LIMITED",
            429,
            "The key has sent too many requests in a short time.",
            "a key may send 200 requests a second, got more",
            "Wait for `Retry-After` seconds.",
        ),
        (
            "QUOTA_EXCEEDED",
            429,
            "The plan's searches of this month are used up.",
            "the plan free allows 5,000 searches a month, got one more",
            "Wait for the next month (UTC), or change the plan.",
        ),
        (
            "HEADERS_TOO_LARGE",
            431,
            "The headers have too many bytes. More than 100 headers, or a request that is not "
            "HTTP, are refused by the server below the API, without a body.",
            "headers must have at most 16,384 bytes, got 20,000",
            "Send fewer or shorter headers.",
        ),
        (
            INTERNAL,
            500,
            "Something is wrong on our side; the server's log has the details under the request's "
            "id.",
            "the request could not be answered",
            "Try again later, and report `meta.request_id`.",
        ),
        (
            "OVERLOADED",
            503,
            "The server has more requests than it can work on, cannot reach its database or a part "
            "of its library, or is not ready yet.",
            "the server must be free to answer, got one that is not; send it again",
            "Wait for `Retry-After` seconds.",
        ),
    )
}


class HttpProblem(Exception):  # noqa: N818 - it is an answer
    """A problem that is answered in the envelope's `error`.

    Attributes:
        kind: Its row of the table.
        message: What must hold, what came and what to do.
        details: Further values for programs.
        headers: Headers to add to the answer.
    """

    def __init__(
        self,
        message: str,
        code: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = KINDS[code]
        self.message = message
        self.details = dict(details or {})
        self.headers = dict(headers or {})


class Invalid(Exception):  # noqa: N818 - it is an answer
    """A failed validation: 422 and the bare `{detail: [...]}`."""

    def __init__(self, details: Sequence[Detail]) -> None:
        super().__init__("; ".join(detail.msg for detail in details))
        self.details = list(details)


def invalid(loc: tuple[str | int, ...], msg: str, kind: str = "value_error") -> Invalid:
    """Make a failed validation of one value."""
    return Invalid([Detail(loc, msg, kind)])


def overloaded(message: str = "") -> HttpProblem:
    """Make the problem (503) for a request that there is no room for at the moment."""
    message = message or KINDS["OVERLOADED"].example
    return HttpProblem(message, "OVERLOADED", headers={"Retry-After": "1"})


# The nearest base class of an exception decides; a test checks that every exception has a code.
CODES: dict[type[Exception], str] = {
    errors.SearchlabError: INTERNAL,
    errors.InputError: "",
    errors.CursorError: "",
    errors.ExpiredCursorError: "CURSOR_EXPIRED",
    errors.ImageError: "",
    errors.NotFoundError: "NOT_FOUND",
    errors.ConflictError: "CONFLICT",
    InFlightError: "REQUEST_IN_FLIGHT",
    BusyError: "OVERLOADED",
    UnreachableDatabaseError: "OVERLOADED",
    UnstorableError: INTERNAL,  # the API checks values first, so a failure here is our fault
    FullError: "LIMIT_REACHED",
    errors.ForbiddenError: "FORBIDDEN",
    errors.QuotaError: "QUOTA_EXCEEDED",
    errors.UnavailableError: "OVERLOADED",
    errors.MissingExtraError: INTERNAL,
    errors.MismatchError: INTERNAL,
    errors.DataError: INTERNAL,
}
"""The code of each exception; an empty one stands for a failed validation."""

_NO_ROOM = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE}
)
STATUSES = {400: "BAD_REQUEST", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}
STATUSES |= {413: "PAYLOAD_TOO_LARGE", 415: "UNSUPPORTED_MEDIA_TYPE"}
# The library's messages begin with the parameter's name; `text` is `q` in the specification.
_PARAMETERS = {field.name: field.name for kind in (PhotoFilter, Query) for field in fields(kind)}
_PARAMETERS |= {"text": "q", "cursor": "cursor", "per_page": "per_page"}
_PICTURES = {
    "unsupported format": "UNSUPPORTED_MEDIA_TYPE",
    "not an image": "UNSUPPORTED_MEDIA_TYPE",
    "too many bytes": "PAYLOAD_TOO_LARGE",
    "too many pixels": "PAYLOAD_TOO_LARGE",
}


def problem_of(error: Exception, *, method: str = "", path: str = "") -> HttpProblem | Invalid:
    """Turn any exception into the problem that the caller sees; internal details are left out.

    Args:
        error: What was raised.
        method: That of the request, where it is known.
        path: What it asked for.
    """
    if isinstance(error, HttpProblem | Invalid):
        return error
    if isinstance(error, HTTPException) and error.status_code in STATUSES:
        return _explain_refusal(error, method, path)
    if isinstance(error, errors.ImageError):
        code = _PICTURES.get(error.reason)
        return (
            invalid(("body", "image"), str(error))
            if code is None
            else HttpProblem(str(error), code)
        )
    if is_shortage(error) or is_out_of_room(error):
        return overloaded()
    code = next((CODES[kind] for kind in type(error).__mro__ if kind in CODES), INTERNAL)
    if code == "":
        return invalid(_place(str(error)), str(error))
    # Messages of server errors may name files and hosts, so they go to the log alone.
    message = KINDS[code].example if KINDS[code].status >= 500 else str(error)
    wait = {"Retry-After": "1"} if code in {"REQUEST_IN_FLIGHT", "OVERLOADED"} else {}
    if isinstance(error, InFlightError | TooManyTokensError):
        wait = {"Retry-After": str(error.retry_after_s)}
    return HttpProblem(message, code, headers=wait)


def _explain_refusal(error: HTTPException, method: str, path: str) -> HttpProblem:
    """Put into words what was refused before any route was called."""
    kind = KINDS[STATUSES[error.status_code]]
    message, what = kind.meaning, errors.quote(path)
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if "allow" in headers:  # made from a set, whose order differs from process to process
        allowed = {*headers["allow"].split(", ")}
        if "GET" in allowed:
            allowed.add("HEAD")  # which is answered wherever GET is
        headers["allow"] = ", ".join(sorted(allowed))
    if "allow" in headers and path:
        message = f"{what} must be asked with {headers['allow']}, got {errors.quote(method)}"
    elif kind.code == "NOT_FOUND" and path:
        message = f"the path must be one of those at /docs, got {what}"
    return HttpProblem(message, kind.code, headers=headers)


def is_shortage(error: BaseException) -> bool:
    """Whether an exception says that the system gives this process no more memory or threads."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    )


def is_out_of_room(error: BaseException) -> bool:
    """Whether an exception, or what it was made from, says that nothing can be written now.

    Functions that take a path say of such a file that it cannot be used, which here is nobody's
    input.
    """
    causes = (error, error.__cause__)
    return any(isinstance(one, OSError) and one.errno in _NO_ROOM for one in causes)


def _place(message: str) -> tuple[str, ...]:
    name = _PARAMETERS.get(message.split(" ", 1)[0])
    return ("query",) if name is None else ("query", name)
