"""The exceptions of the client, one for each family of HTTP statuses.

    ApiError (SearchlabError)
    ├── UnreachableError                          no answer came
    ├── BadRequestError (InputError)              400, 413, 415 and the 4xx not named here
    │   └── ValidationError                       422; `.errors` says where
    ├── AuthenticationError                       401
    ├── PermissionDeniedError (ForbiddenError)    403; another account's, or a limit is reached
    ├── MissingError (NotFoundError)              404
    ├── AlreadyThereError (ConflictError)         409
    ├── UnfinishedError                           409 with the code REQUEST_IN_FLIGHT
    ├── LimitError (QuotaError)                   429; `.retry_after` in seconds
    └── ServerError                               5xx, and answers that are not the API's

Each class in parentheses is the one that the library itself raises in such a case, so code around a
search needs one `except`, whether the photos are on this machine or behind the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from searchlab.api.wire.schema import Detail
from searchlab.client.retries import retry_after
from searchlab.errors import (
    ConflictError,
    ForbiddenError,
    InputError,
    NotFoundError,
    QuotaError,
    SearchlabError,
)

if TYPE_CHECKING:
    import httpx


class ApiError(SearchlabError):
    """The API refused, failed or could not be reached.

    Attributes:
        status: HTTP status; 0 if no answer came.
        code: The API's code of the error; empty if it sent none.
        message: What went wrong.
        details: Further values, such as the accepted names of `fields`; None if there are none.
        request_id: Id of the request in the server's log; empty if it sent none.
        retry_after: Seconds that the server asks to wait; None if it does not.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "",
        details: Any = None,
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        request = f"request {request_id}" if request_id else ""
        notes = ", ".join(filter(None, (code, f"HTTP {status}" if status else "", request)))
        super().__init__(f"{message} ({notes})" if notes else message)
        self.message = message
        self.status = status
        self.code = code
        self.details = details
        self.request_id = request_id
        self.retry_after = retry_after


class UnreachableError(ApiError):
    """No answer came: no connection, or none in time."""


class BadRequestError(ApiError, InputError):
    """The API cannot use what was sent."""


class ValidationError(BadRequestError):
    """One or more parameters are invalid.

    Attributes:
        errors: Each failure, with the place of the value in the request.
    """

    @property
    def errors(self) -> list[Detail]:
        """Each failure, with the place of the value in the request."""
        return _read_details(self.details)


class AuthenticationError(ApiError):
    """The API key is missing, unknown or revoked."""


class PermissionDeniedError(ApiError, ForbiddenError):
    """The collection belongs to another account, or a limit of the account is reached."""


class MissingError(ApiError, NotFoundError):
    """There is no such photo, collection or path, or the collection is another account's."""


class AlreadyThereError(ApiError, ConflictError):
    """The photo is in the collection already."""


class UnfinishedError(ApiError):
    """The same request, sent before, is not answered yet, so it is not known if it succeeds."""


class LimitError(ApiError, QuotaError):
    """Too many requests, in this second or in this month."""


class ServerError(ApiError):
    """The server failed, or something between it and here answered instead."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: MissingError,
    409: AlreadyThereError,
    422: ValidationError,
    429: LimitError,
}

_BY_CODE: dict[str, type[ApiError]] = {"REQUEST_IN_FLIGHT": UnfinishedError}


def failure_of(response: httpx.Response) -> ApiError:
    """Make the exception for a response without success, whatever its body is."""
    status = response.status_code
    body = _object(response.content)
    error, meta = _part(body, "error"), _part(body, "meta")
    family = BadRequestError if 400 <= status < 500 else ServerError
    code = str(error.get("code") or "")
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, family)
    details = body.get("detail") if status == 422 and "detail" in body else error.get("details")
    message = error.get("message") or "; ".join(map(_line, _read_details(details)))
    return kind(
        str(message or f"{response.request.url.path} answered without saying what is wrong"),
        status=status,
        code=code,
        details=details,
        request_id=str(meta.get("request_id") or response.headers.get("x-request-id", "")),
        retry_after=retry_after(response),
    )


def _object(content: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _part(body: dict[str, Any], name: str) -> dict[str, Any]:
    part = body.get(name)
    return part if isinstance(part, dict) else {}


def _read_details(details: Any) -> list[Detail]:
    try:
        return msgspec.convert(details, type=list[Detail])
    except msgspec.ValidationError:
        return []


def _line(detail: Detail) -> str:
    return f"{'.'.join(map(str, detail.loc))}: {detail.msg}"
