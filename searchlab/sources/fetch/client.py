"""PoliteClient: calls an API at its pace, waits when told to, and caches answers for a day."""

from __future__ import annotations

import email.utils
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import httpx

from searchlab import __version__
from searchlab.errors import InputError, NotFoundError, QuotaError, SearchlabError, quote
from searchlab.files import write_atomically
from searchlab.sources.fetch.addresses import PinnedTransport
from searchlab.sources.source import ApiRequest, Source

CONTACT: Final = "SEARCHLAB_CONTACT"
_MAX_ANSWER: Final = 32 * 2**20
_ATTEMPTS: Final = 5
_REMAINING: Final = ("x-ratelimit-remaining", "ratelimit-remaining", "x-rate-limit-remaining")
_RESET: Final = ("x-ratelimit-reset", "ratelimit-reset", "x-rate-limit-reset")
_TIMEOUT: Final = httpx.Timeout(30.0, connect=10.0)


def open_client(transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Open a client that says who it is; `SEARCHLAB_CONTACT` adds an address to write to."""
    contact = os.environ.get(CONTACT, "")
    agent = f"searchlab/{__version__}" + (f" ({contact})" if contact.isascii() and contact else "")
    return httpx.Client(
        transport=transport or PinnedTransport(),
        headers={"User-Agent": agent},
        timeout=_TIMEOUT,
        trust_env=False,
    )


class PoliteClient:
    """Answers of one library's API.

    Answers are stored on disk and reused for a day, so that an interrupted walk goes on where it
    stopped. The key never gets into a file, a message or a redirect.
    """

    def __init__(
        self,
        source: Source,
        client: httpx.Client,
        cache: Path,
        *,
        key: str = "",
        cache_s: float = 86_400,
        max_wait_s: float = 900,
        say: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Make a client of a library's API.

        Args:
            source: The library.
            client: Sends the requests.
            cache: Folder in which answers are stored.
            key: The user's key for the API.
            cache_s: Seconds for which a stored answer is used again; 0 for never.
            max_wait_s: Longest wait in seconds; a library that wants a longer one ends the walk.
            say: Called with a message about each longer wait.
            clock: Returns the seconds since 1970.
            sleep: Waits some seconds.

        Raises:
            InputError: The key has characters that no key has.
        """
        if not key.isascii() or not key.isprintable():
            msg = "a key must be printable ASCII, got something else"
            raise InputError(msg)
        self.source = source
        self._client, self._cache, self._key = client, cache, key
        self._cache_s, self._max_wait_s = cache_s, max_wait_s
        self._say, self._clock, self._sleep = say, clock, sleep
        self._next = 0.0

    def answer(self, api_request: ApiRequest) -> Any:
        """Return the parsed JSON that a request is answered with.

        Raises:
            NotFoundError: The API has nothing there.
            QuotaError: It wants a longer wait than is allowed; the same command goes on later.
            InputError: It needs a key and there is none, or it refuses the key.
            SearchlabError: It cannot be reached, or answers with an error or without JSON.
        """
        path = self._cache / f"{_hash_of(api_request)}.json"
        if path.is_file() and self._clock() - path.stat().st_mtime < self._cache_s:
            try:
                return json.loads(path.read_bytes())
            except (ValueError, RecursionError):
                path.unlink()
        body = self._request(api_request)
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            msg = f"{self.source.title} must answer with JSON, got {quote(body[:60])}"
            raise SearchlabError(msg) from error
        self._check(answer)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, body)
        return answer

    def wait(self, response: httpx.Response, attempt: int) -> None:
        """Wait as long as a server wants that answered 429 or 503.

        Args:
            response: Its answer; without a `Retry-After` header, the wait doubles each time.
            attempt: How many times the request was sent, from 1.

        Raises:
            QuotaError: It wants a longer wait than is allowed.
        """
        seconds = _retry_after(response, self._clock())
        self._pause(2.0**attempt if seconds is None else seconds)

    def _request(self, api_request: ApiRequest) -> bytes:
        key = self.source.key
        if key is not None and key.needed and not self._key:
            msg = f"{self.source.title} must be asked with a key, got none; get one at "
            msg += f"{key.where} and set {key.variable}, or pass it with --key"
            raise InputError(msg)
        for attempt in range(1, _ATTEMPTS + 1):
            self._pause(self._next - self._clock())
            try:
                response, body = self._send(api_request)
            except httpx.TransportError as error:
                if attempt == _ATTEMPTS:
                    got = str(error) or type(error).__name__
                    msg = f"{self.source.title} cannot be reached, got: {got}; is this machine "
                    msg += "connected? The same command goes on from here"
                    raise SearchlabError(msg) from error
                self._try_again(f"{self.source.title} cannot be reached", attempt)
                continue
            self._schedule_next(response)
            status = response.status_code
            is_quota_used_up = _number(response.headers, _REMAINING) == 0
            if status == 200:
                return body
            may_try_again = attempt < _ATTEMPTS
            if status in (429, 503) or (status == 403 and is_quota_used_up):
                if may_try_again:
                    self.wait(response, attempt)
            elif status in (401, 403):
                variable = self.source.key.variable if self.source.key else "the key"
                msg = f"{self.source.title} refuses the key ({status}); check {variable} or --key"
                raise InputError(msg)
            elif status >= 500:
                if may_try_again:
                    self._try_again(f"{self.source.title} answered {status}", attempt)
            else:
                msg = f"{self.source.title} answered {status} to {api_request.url}"
                raise NotFoundError(msg)
        msg = f"{self.source.title} answered {status} {_ATTEMPTS} times; try again later"
        raise SearchlabError(msg)

    def _send(self, api_request: ApiRequest) -> tuple[httpx.Response, bytes]:
        key = self.source.key
        params, headers = dict(api_request.params), {"Accept": "application/json"}
        if key is not None and self._key:
            if key.header:
                headers[key.header] = f"{key.before}{self._key}"
            else:
                params[key.param] = self._key
        request = self._client.build_request("GET", api_request.url, params=params, headers=headers)
        # Without redirects: the key is for this address only.
        response = self._client.send(request, stream=True, follow_redirects=False)
        try:
            parts, n_bytes = [], 0
            for chunk in response.iter_bytes():
                n_bytes += len(chunk)
                if n_bytes > _MAX_ANSWER:
                    msg = f"{self.source.title} must answer in at most {_MAX_ANSWER:,} bytes"
                    raise SearchlabError(msg)
                parts.append(chunk)
        finally:
            response.close()
        return response, b"".join(parts)

    def _schedule_next(self, response: httpx.Response) -> None:
        now = self._clock()
        self._next = now + self.source.pause_s
        if _number(response.headers, _REMAINING) == 0:
            reset = _number(response.headers, _RESET)
            if reset is not None:  # seconds from now, or since 1970
                self._next = max(self._next, reset if reset > 10**9 else now + reset)

    def _pause(self, seconds: float) -> None:
        if seconds > self._max_wait_s:
            msg = f"{self.source.title} allows no request for {seconds / 60:,.0f} minutes; "
            raise QuotaError(msg + "run the same command then, and it goes on from here")
        if seconds > 0:
            if seconds > 10:
                self._say(f"{self.source.title} asks to wait for {seconds:,.0f} s")
            self._sleep(seconds)

    def _try_again(self, why: str, attempt: int) -> None:
        self._say(f"{why}; trying again in {2**attempt} s")
        self._sleep(2.0**attempt)

    def _check(self, answer: Any) -> None:
        # Some APIs answer 200 to what they refuse.
        if not isinstance(answer, Mapping):
            return
        if answer.get("stat") == "fail" or isinstance(answer.get("error"), Mapping | str):
            refusal = answer.get("message") or answer.get("error")
            msg = f"{self.source.title} refuses the request: {quote(refusal)}"
            raise SearchlabError(msg)


def _hash_of(api_request: ApiRequest) -> str:
    text = json.dumps([api_request.url, sorted(api_request.params.items())])
    return hashlib.sha256(text.encode()).hexdigest()


def _number(headers: httpx.Headers, names: tuple[str, ...]) -> float | None:
    for name in names:
        match = re.match(r"\s*(\d{1,12})", headers.get(name, ""))
        if match:
            return float(match[1])
    # The one header of the IETF's draft: `"default";r=0;t=30`.
    match = re.search(r";\s*r=(\d{1,12})\s*;\s*t=(\d{1,12})", headers.get("ratelimit", ""))
    if match is None:
        return None
    return float(match[1] if names is _REMAINING else match[2])


def _retry_after(response: httpx.Response, now: float) -> float | None:
    wait = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,12}", wait):
        return float(wait)
    try:
        until = email.utils.parsedate_to_datetime(wait)
        if until.tzinfo is None:  # the oldest of the three forms does not name it
            until = until.replace(tzinfo=UTC)
        return max(0.0, until.timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return None
