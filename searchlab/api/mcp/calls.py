"""Calls: asks operations of the API within the process, in the name of a tool's caller.

A tool has no way of its own to search, count or store: it sends a request to the same routes as
everybody, past the network and the header `x-api-key`. So parameters, quotas, counts, cursors and
errors are those of the API by construction.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote as percent_encode
from urllib.parse import urlencode

import msgspec
from litestar import Request

from searchlab.api.http.context import attach, context_of
from searchlab.api.http.multiparts import PART
from searchlab.api.wire.errors import KINDS, HttpProblem, Invalid, invalid
from searchlab.api.wire.schema import Detail, Pagination, Refusal
from searchlab.errors import quote

AnyRequest = Request[Any, Any, Any]


class _Failure(msgspec.Struct):
    code: str
    message: str
    details: dict[str, Any] = {}


class _Envelope(msgspec.Struct):
    data: Any = None
    error: _Failure | None = None
    pagination: Pagination | None = None


class Reply(NamedTuple):
    """What an operation answered: the envelope's `data` and `pagination`."""

    data: Any
    pagination: Pagination | None


class TypedBody(NamedTuple):
    """A request's body and its content type."""

    content: bytes = b""
    media_type: str = ""


NO_BODY = TypedBody()


def json_body(document: Mapping[str, Any]) -> TypedBody:
    """Encode a JSON body."""
    return TypedBody(msgspec.json.encode(document), "application/json")


def picture_body(picture: bytes) -> TypedBody:
    """Encode a picture as the part `image` of a form."""
    boundary = secrets.token_hex(16)  # so that no picture can hold it
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{PART}"; filename="{PART}"\r\n\r\n'
    )
    content = head.encode() + picture + f"\r\n--{boundary}--\r\n".encode()
    return TypedBody(content, f"multipart/form-data; boundary={boundary}")


def path_of(*parts: str | float) -> str:
    """Join the parts of an operation's path, each of which stays one part.

    Raises:
        Invalid: A part has a slash, or is empty.
    """
    texts = [_write(part) for part in parts]
    for part in texts:
        if not part or "/" in part:
            msg = f"an identifier must be one that an answer has shown, got {quote(part)}"
            raise invalid(("arguments",), msg, "identifier")
    return "/".join(["/api/v1", *texts])


class Calls:
    """Asks operations for the caller of one request to the tool server."""

    def __init__(self, request: AnyRequest) -> None:
        """Take the request to `/mcp`, whose caller is known and admitted."""
        self.request = request

    async def get(self, path: str, query: Iterable[tuple[str, str]] = ()) -> Reply:
        """Ask with GET; see `_ask`."""
        return await self._ask("GET", path, query=query)

    async def post(
        self,
        path: str,
        body: TypedBody,
        query: Iterable[tuple[str, str]] = (),
        *,
        idempotency_key: str | None = None,
    ) -> Reply:
        """Ask with POST; see `_ask`."""
        headers: list[tuple[str, str]] = []
        if idempotency_key is not None:  # any text, where a header takes few characters
            hashed = sha256(idempotency_key.encode("utf-8", "surrogatepass")).hexdigest()
            headers.append(("idempotency-key", hashed))
        return await self._ask("POST", path, query=query, body=body, headers=headers)

    async def delete(self, path: str) -> Reply:
        """Ask with DELETE; see `_ask`."""
        return await self._ask("DELETE", path)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Iterable[tuple[str, str]] = (),
        body: TypedBody = NO_BODY,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Reply:
        """Send a request to the API's own routes.

        Args:
            method: HTTP method.
            path: Path of the operation, not encoded.
            query: Its parameters.
            body: Its body.
            headers: More headers.

        Raises:
            Invalid: The API refuses the values (422).
            HttpProblem: Any other failure.
        """
        host = self.request.headers.get("host", "")
        sent = [("host", host), ("content-length", str(len(body.content))), *headers]
        if body.media_type:
            sent.append(("content-type", body.media_type))
        outer = self.request.scope
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": outer.get("asgi", {"version": "3.0"}),
            "http_version": "1.1",
            "scheme": outer["scheme"],
            "server": outer.get("server"),
            "client": outer.get("client"),
            "method": method,
            "path": path,
            "raw_path": percent_encode(path).encode(),
            "root_path": "",
            "query_string": _encode_query(query),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent],
            "state": {},
        }
        attach(scope, context_of(self.request))
        answer = _Answer(body.content)
        app: Any = self.request.app
        await app(scope, answer.receive, answer.send)
        return answer.read()


def _encode_query(query: Iterable[tuple[str, str]]) -> bytes:
    # Lone surrogates, which JSON can carry, become bytes that the API refuses.
    return urlencode(list(query), errors="surrogatepass").encode()


class _Answer:
    """The two ends of a request within the process."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._status = 500
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []

    async def receive(self) -> dict[str, Any]:
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {
                bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1")
                for name, value in message["headers"]
            }
        else:
            self._pieces.append(message.get("body", b""))

    def read(self) -> Reply:
        content = b"".join(self._pieces)
        if self._status == 422:
            raise Invalid(msgspec.json.decode(content, type=Refusal).detail)
        envelope = msgspec.json.decode(content, type=_Envelope)
        if envelope.error is None:
            return Reply(envelope.data, envelope.pagination)
        failure, wait = envelope.error, self._headers.get("retry-after")
        code = failure.code if failure.code in KINDS else "INTERNAL_ERROR"
        raise HttpProblem(
            failure.message,
            code,
            details=failure.details,
            headers={} if wait is None else {"Retry-After": wait},
        )


def query_of(arguments: Mapping[str, Any], names: Iterable[str]) -> list[tuple[str, str]]:
    """Write arguments as parameters of a query; those that are null or left out are not sent.

    Args:
        arguments: As they came in JSON.
        names: Those that the operation takes.

    Raises:
        Invalid: One is an object, or a list of anything but plain values.
    """
    pairs = []
    for name in names:
        value = arguments.get(name)
        if value is None:
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict | list) or one is None:
                msg = f"{name} must be a plain value or a list of them, got {quote(value)}"
                raise Invalid([Detail(("arguments", name), msg, "type_error")])
            pairs.append((name, _write(one)))
    return pairs


def _write(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one kind of numbers
    return value if isinstance(value, str) else repr(value)
