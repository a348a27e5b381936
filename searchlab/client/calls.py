"""Call: the description of one request, which a client sends, and the type of its answer."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import httpx
import msgspec

from searchlab.client.failures import ServerError, UnreachableError, failure_of
from searchlab.client.records import Envelope, Photo
from searchlab.client.retries import Retries
from searchlab.errors import InputError, quote

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A successful answer and the headers that came with it."""

    envelope: Envelope[T]
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(Generic[T]):
    """A request of the API.

    Attributes:
        method: `GET`, `POST` or `DELETE`.
        path: Below `/api/v1`, with its parameters in place.
        answers: Decodes the body of a successful answer.
        params: Query parameters in order; a repeatable one comes several times.
        json: Body of a POST; None for none.
        image: Bytes of the picture to upload; None for none.
        idempotency_key: Lets the server recognise a repeated POST; generated if left out, except
            for searches, which change nothing.
    """

    method: str
    path: str
    answers: msgspec.json.Decoder[Envelope[T]]
    params: tuple[tuple[str, str], ...] = ()
    json: Mapping[str, Any] | None = None
    image: bytes | None = None
    idempotency_key: str | None = None

    @property
    def changes_something(self) -> bool:
        """Whether doing it twice has another effect than doing it once."""
        return self.method == "POST"

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Build the HTTP request; the server recognises it when it is sent again.

        Raises:
            InputError: A value in it cannot be sent over HTTP.
        """
        key = self.idempotency_key
        if key is None and self.changes_something:
            key = str(uuid.uuid4())
        if key is not None and not re.fullmatch(r"[!-~]{1,255}", key):
            msg = (
                "idempotency_key must be 1 to 255 visible ASCII characters, without spaces, got "
                f"{quote(key)}"
            )
            raise InputError(msg)
        headers = {} if key is None else {"Idempotency-Key": key}
        try:
            return http.build_request(
                self.method,
                f"/api/v1{self.path}",
                params=self.params,
                headers=headers,
                json=self.json,
                files=None if self.image is None else {"image": self.image},
            )
        except (UnicodeEncodeError, httpx.InvalidURL) as error:
            msg = f"{self.path} must be asked with what HTTP can carry: {error}"
            raise InputError(msg) from None

    def judge(
        self, outcome: httpx.Response | httpx.RequestError, *, sent: int, retries: Retries
    ) -> Answer[T] | float:
        """Return the answer, or the seconds to wait before the request is sent again.

        Args:
            outcome: The response, or the error in place of one.
            sent: How often the request was sent so far.
            retries: How often it may be sent again.

        Raises:
            ApiError: The API refused, failed or could not be reached.
        """
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            return self._read(outcome)
        # A DELETE whose answer was lost may have succeeded; a second one would then answer 404.
        wait = retries.wait(outcome, sent=sent, repeatable=self.method != "DELETE")
        if wait is not None:
            return wait
        if isinstance(outcome, httpx.Response):
            raise failure_of(outcome)
        times = "once" if sent == 1 else f"{sent} times"
        msg = f"{outcome.request.url.copy_with(raw_path=b'/')} must answer, asked {times}: "
        raise UnreachableError(msg + (str(outcome) or type(outcome).__name__)) from outcome

    def _read(self, response: httpx.Response) -> Answer[T]:
        try:
            return Answer(self.answers.decode(response.content), response.headers)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            msg = f"{response.request.url.path} must be answered as version 1 is: {error}"
            raise ServerError(msg, status=response.status_code) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCall(Call[list[Photo]]):
    """A request whose answer is a page of photos."""

    @property
    def changes_something(self) -> bool:
        """Searches change nothing."""
        return False

    def after(self, cursor: str) -> Self:
        """Describe the request for the page that a cursor leads to.

        The cursor holds the query, the picture and the filters, but not `fields`.
        """
        fields = tuple(pair for pair in self.params if pair[0] == "fields")
        params = (*fields, ("cursor", cursor))
        return replace(self, params=params, image=None, idempotency_key=None)
