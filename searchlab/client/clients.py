"""Client and AsyncClient: the same operations, blocking or awaited."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from searchlab import __version__
from searchlab.client import operations
from searchlab.client.calls import Answer, Call, PageCall
from searchlab.client.pages import AsyncPage, Page, page_parts
from searchlab.client.records import Photo
from searchlab.client.retries import Retries
from searchlab.errors import InputError, quote

T = TypeVar("T")
P = ParamSpec("P")
AnyClient = TypeVar("AnyClient")
AnyCall = TypeVar("AnyCall")

_ADDRESS = "SEARCHLAB_BASE_URL"
_KEY = "SEARCHLAB_API_KEY"
_LOCAL = "http://127.0.0.1:8000"


def _method(
    describe: Callable[P, AnyCall], run: Callable[[AnyClient, AnyCall], T]
) -> Callable[Concatenate[AnyClient, P], T]:
    """Make a client's method from a function that describes a request, and a way to send it."""

    @functools.wraps(describe)
    def method(self: AnyClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(self, describe(*args, **kwargs))

    method.__signature__ = _signature(describe)  # type: ignore[attr-defined]
    return method


def _signature(describe: Callable[..., Any]) -> inspect.Signature:
    # For help and completion: `self` first, and each filter by its name instead of **filters.
    kind = inspect.Parameter
    parameters = [kind("self", kind.POSITIONAL_ONLY)]
    for parameter in inspect.signature(describe).parameters.values():
        if parameter.kind is not kind.VAR_KEYWORD:
            parameters.append(parameter)
            continue
        for name, hint in operations.Filters.__annotations__.items():
            text = hint.__forward_arg__
            parameters.append(kind(name, kind.KEYWORD_ONLY, default=None, annotation=text))
    return inspect.Signature(parameters)


class _Base:
    """The options of both clients, checked."""

    _open: Callable[[], Any]
    _http: Any
    _pid: int

    def __init__(
        self, base_url: str, api_key: str, *, timeout: float, retries: int, max_wait: float
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._retries = Retries(most=retries, max_wait_s=max_wait)
        self._options: dict[str, Any] = {
            "base_url": _check_address(self.base_url),
            "headers": {
                "x-api-key": _check_key(api_key),
                "accept": "application/json",
                "user-agent": f"searchlab/{__version__}",
            },
            "timeout": timeout,
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    def _leave_parents(self) -> None:
        """Open connections of its own in a process that was forked: answers would be mixed up."""
        if os.getpid() != self._pid:
            self._http, self._pid = self._open(), os.getpid()

    @classmethod
    def from_env(cls, **options: Any) -> Self:
        """Make a client from `SEARCHLAB_API_KEY` and `SEARCHLAB_BASE_URL` in the environment.

        Without `SEARCHLAB_BASE_URL` the server is port 8000 of this machine.

        Args:
            options: Other arguments of the client.

        Raises:
            InputError: There is no key in the environment.
        """
        api_key = os.environ.get(_KEY, "")
        if not api_key:
            msg = f"{_KEY} must hold an API key, got none; make one with `searchlab keys create`"
            raise InputError(msg)
        return cls(os.environ.get(_ADDRESS) or _LOCAL, api_key, **options)


class Client(_Base):
    """Sends requests and waits for their answers; threads and forks may share one client.

    `search`, `search_by_image` and `similar` return a page, `search_all` iterates over the photos
    of all pages, the rest return records. Every method raises an `ApiError` if the API refuses,
    fails or cannot be reached.

    Args:
        base_url: Address of the server, without `/api/v1`.
        api_key: The key, as `searchlab keys create` showed it.
        timeout: Seconds to connect, and to wait for each part of an answer.
        retries: How often a request is sent again when the server is busy or cannot be reached.
        max_wait: Most seconds to wait before a retry; if the server asks for more, the call fails.
        transport: Takes the requests instead of the network, as in tests.

    Raises:
        InputError: The address or the key is malformed.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        max_wait: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(base_url, api_key, timeout=timeout, retries=retries, max_wait=max_wait)
        self._open = lambda: httpx.Client(**self._options, transport=transport)
        self._http, self._pid = self._open(), os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _answer(self, call: Call[T]) -> Answer[T]:
        self._leave_parents()
        request = call.request(self._http)
        sent = 0
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = self._http.send(request)
            except httpx.RequestError as error:
                outcome = error
            sent += 1
            verdict = call.judge(outcome, sent=sent, retries=self._retries)
            if isinstance(verdict, Answer):
                return verdict
            time.sleep(verdict)

    def _data(self, call: Call[T]) -> T:
        return self._answer(call).envelope.data

    def _page(self, call: PageCall) -> Page:
        parts = page_parts(call, self._answer(call))
        return Page(**parts, follow=lambda cursor: self._page(call.after(cursor)))

    def _photos(self, call: PageCall) -> Iterator[Photo]:
        return self._page(call).all_photos()

    search = _method(operations.search, _page)
    search_all = _method(operations.search, _photos)
    search_by_image = _method(operations.search_by_image, _page)
    similar = _method(operations.similar, _page)
    photo = _method(operations.photo, _data)
    colors = _method(operations.colors, _data)
    sources = _method(operations.sources, _data)
    orientations = _method(operations.orientations, _data)
    licenses = _method(operations.licenses, _data)
    suggest_photographers = _method(operations.suggest_photographers, _data)
    photographer = _method(operations.photographer, _data)
    collections = _method(operations.collections, _data)
    create_collection = _method(operations.create_collection, _data)
    collection = _method(operations.collection, _data)
    delete_collection = _method(operations.delete_collection, _data)
    add_photo = _method(operations.add_photo, _data)
    remove_photo = _method(operations.remove_photo, _data)
    usage = _method(operations.usage, _data)
    monthly_usage = _method(operations.monthly_usage, _data)
    daily_usage = _method(operations.daily_usage, _data)
    usage_by_key = _method(operations.usage_by_key, _data)


class AsyncClient(_Base):
    """The same operations to be awaited; tasks of one event loop may share one client.

    Args:
        base_url: Address of the server, without `/api/v1`.
        api_key: The key, as `searchlab keys create` showed it.
        timeout: Seconds to connect, and to wait for each part of an answer.
        retries: How often a request is sent again when the server is busy or cannot be reached.
        max_wait: Most seconds to wait before a retry; if the server asks for more, the call fails.
        transport: Takes the requests instead of the network, as in tests.

    Raises:
        InputError: The address or the key is malformed.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        max_wait: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(base_url, api_key, timeout=timeout, retries=retries, max_wait=max_wait)
        self._open = lambda: httpx.AsyncClient(**self._options, transport=transport)
        self._http, self._pid = self._open(), os.getpid()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _answer(self, call: Call[T]) -> Answer[T]:
        self._leave_parents()
        request = call.request(self._http)
        sent = 0
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = await self._http.send(request)
            except httpx.RequestError as error:
                outcome = error
            sent += 1
            verdict = call.judge(outcome, sent=sent, retries=self._retries)
            if isinstance(verdict, Answer):
                return verdict
            await asyncio.sleep(verdict)

    async def _data(self, call: Call[T]) -> T:
        return (await self._answer(call)).envelope.data

    async def _page(self, call: PageCall) -> AsyncPage:
        parts = page_parts(call, await self._answer(call))
        return AsyncPage(**parts, follow=lambda cursor: self._page(call.after(cursor)))

    async def _photos(self, call: PageCall) -> AsyncIterator[Photo]:
        page = await self._page(call)
        async for photo in page.all_photos():
            yield photo

    search = _method(operations.search, _page)
    search_all = _method(operations.search, _photos)
    search_by_image = _method(operations.search_by_image, _page)
    similar = _method(operations.similar, _page)
    photo = _method(operations.photo, _data)
    colors = _method(operations.colors, _data)
    sources = _method(operations.sources, _data)
    orientations = _method(operations.orientations, _data)
    licenses = _method(operations.licenses, _data)
    suggest_photographers = _method(operations.suggest_photographers, _data)
    photographer = _method(operations.photographer, _data)
    collections = _method(operations.collections, _data)
    create_collection = _method(operations.create_collection, _data)
    collection = _method(operations.collection, _data)
    delete_collection = _method(operations.delete_collection, _data)
    add_photo = _method(operations.add_photo, _data)
    remove_photo = _method(operations.remove_photo, _data)
    usage = _method(operations.usage, _data)
    monthly_usage = _method(operations.monthly_usage, _data)
    daily_usage = _method(operations.daily_usage, _data)
    usage_by_key = _method(operations.usage_by_key, _data)


def _check_address(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
        msg = f"base_url must be like http://127.0.0.1:8000, got {quote(base_url)}"
        raise InputError(msg)
    return base_url


def _check_key(api_key: str) -> str:
    # The message does not repeat the key: it may be a valid one with a line break added.
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        msg = "api_key must be the key as it was shown when it was made, got another text"
        raise InputError(msg)
    return api_key
