"""Middleware: the ASGI layer before Litestar, the same for every request.

It gives the request its id and clock, asks for the key before anything else is looked at, holds
the rate, and on the way back adds the headers, the log line and the metrics. What escapes from
within becomes a clean answer, and its traceback goes to the log alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias, TypeVar

from litestar import Request
from litestar.datastructures import State

from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.plans import PLANS
from searchlab.api.accounts.rates import rate_headers
from searchlab.api.http.context import RequestContext, Services, attach, context_of
from searchlab.api.http.cross_origin import CrossOrigin
from searchlab.api.ops.logs import Log
from searchlab.api.settings import API_PREFIX
from searchlab.api.snapshots.encoded_photos import MEDIA_PREFIX
from searchlab.api.wire.envelope import encode_failure
from searchlab.api.wire.errors import KINDS, HttpProblem, overloaded, problem_of

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Any, Receive, Send], Awaitable[None]]
Subject = TypeVar("Subject")
Reply = TypeVar("Reply")

MAX_HEADER_BYTES = 16 * 1024
MAX_TARGET_BYTES = 32 * 1024
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._\-]{1,253})(?::[0-9]{1,5})?", re.ASCII)
_SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"server", b"searchlab"),
]
# What tells that a full worker is well is never sent away: it would be taken for dead.
_ALWAYS = frozenset({"/health", "/ready", "/metrics"})
_ADMISSION_S = 3.0
# Answers of the API hold nothing that a browser should run; the pages under /docs say otherwise.
_LOCKED = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")


class Middleware:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: App,
        *,
        state: State,
        log: Log,
        methods: Mapping[str, bytes],
    ) -> None:
        """Wrap an application.

        Args:
            app: What answers, Litestar's.
            state: The application's; holds `services` once the worker is ready.
            log: Takes a line for each request.
            methods: What `Allow` says of each path, by its template.
        """
        self._app = app
        self._methods = methods
        self._state = state
        self._log = log

    @property
    def services(self) -> Services:
        """What the worker has opened."""
        services: Services = self._state.services
        return services

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        handled = _Request(self.services, self._log, self._methods, scope, receive, send)
        await handled.run(self._app)


class _Request:
    """One request on its way in and out."""

    def __init__(
        self,
        services: Services,
        log: Log,
        methods: Mapping[str, bytes],
        scope: Any,
        receive: Receive,
        send: Send,
    ) -> None:
        self._services = services
        self._log = log
        self._methods = methods
        self._scope = scope
        self._receive = receive
        self._send = send
        self._exchange = RequestContext()
        self._status = 0
        self._size = 0
        self._origin: bytes | None = None
        # The router takes several slashes for one: what it would find under /api/ needs a key.
        self._path = f"/{scope['path'].lstrip('/')}"
        self._under_api = self._path.startswith(API_PREFIX)
        self._keys: list[bytes] = []
        self._body_left = False

    async def run(self, app: App) -> None:
        scope, metrics = self._scope, self._services.metrics
        attach(scope, self._exchange)
        metrics.start_request()
        try:
            try:
                preflight = self._enter()
                if preflight is not None:
                    await self._start({"status": 204, "headers": preflight})
                    await self._send({"type": "http.response.body", "body": b""})
                else:
                    if self._under_api:
                        await self._admit()
                    await app(scope, self._receive_on, self._send_on)
            except Exception as error:  # the last place that can still answer
                if self._status:
                    raise
                await self._fail(error)
        except Exception as error:  # half an answer is out, so only the log can be told
            self._log.error("the answer broke off", error, request_id=self._exchange.request_id)
            raise
        finally:
            self._note()

    def _enter(self) -> list[tuple[bytes, bytes]] | None:
        """Look at the headers; returns the answer to a preflight request."""
        scope, services, context = self._scope, self._services, self._exchange
        size, host, requested = 0, b"", b""
        for name, value in scope["headers"]:
            size += len(name) + len(value) + 4
            if name == b"x-api-key":
                self._keys.append(value)
            elif name == b"host":
                host = value
            elif name == b"origin":
                self._origin = value
            elif name == b"access-control-request-method":
                requested = value
            elif name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
                self._body_left = True
        if size > MAX_HEADER_BYTES:
            msg = f"headers must have at most {MAX_HEADER_BYTES:,} bytes, got {size:,}"
            raise HttpProblem(msg, "HEADERS_TOO_LARGE")
        target = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if target > MAX_TARGET_BYTES:
            msg = f"path and query must have at most {MAX_TARGET_BYTES:,} bytes, got {target:,}"
            raise HttpProblem(msg, "URI_TOO_LONG")
        context.base_url = services.settings.base_url or _address(scope, host)
        if self._under_api and scope["method"] == "OPTIONS" and requested and self._origin:
            answer = self._cross_origin().preflight(self._origin)
            self._origin = None  # answered here, headers and all
            return answer
        self._check_room()
        return None

    def _check_room(self) -> None:
        services = self._services
        if self._path in _ALWAYS:
            return
        dawdles = self._body_left or self._path.startswith(MEDIA_PREFIX)
        busy = services.metrics.in_flight > services.settings.max_in_flight
        if busy or (dawdles and services.client_waits.is_full):
            services.metrics.count_refusal("overload")
            raise overloaded()

    async def _admit(self) -> None:
        """Find out whose request it is, what it has used, and whether it comes too fast."""
        services, context = self._services, self._exchange
        secret = self._keys[0].decode("latin-1") if len(self._keys) == 1 else ""
        caller = services.keys.recall(secret)
        if caller is None and secret:
            caller = await self._ask(services.keys.find, secret)
        if caller is None:
            raise _unauthorized(services)
        context.caller = caller
        services.meter.touch(caller)
        if caller.plan not in PLANS:
            plans = ", ".join(PLANS)
            msg = f"the account's plan must be one of {plans}, got {caller.plan}; change the plan"
            raise HttpProblem(msg, "FORBIDDEN")
        context.used = services.meter.peek(caller)
        if context.used is None:
            context.used = await self._ask(services.meter.read_used, caller)
        context.verdict = services.rates.check(caller.key_id)
        if not context.verdict.allowed:
            services.metrics.count_refusal("rate")
            rate = services.settings.rate_per_second
            msg = (
                f"a key may send {rate:g} requests a second, got more; wait for Retry-After seconds"
            )
            raise HttpProblem(msg, "RATE_LIMITED")

    async def _ask(self, question: Callable[[Subject], Reply], about: Subject) -> Reply:
        # The database may hang for as long as it likes; the other requests go on meanwhile.
        try:
            async with asyncio.timeout(_ADMISSION_S):
                return await self._services.key_threads.run(question, about)
        except TimeoutError:
            self._services.metrics.count_refusal("overload")
            raise overloaded() from None

    def _cross_origin(self) -> CrossOrigin:
        return CrossOrigin(self._services.settings.cors_origins)

    async def _receive_on(self) -> Message:
        if self._body_left:
            with self._services.client_waits.receiving((self._exchange.caller or _NOBODY).key_id):
                message = await self._receive()
        else:
            message = await self._receive()
        if not message.get("more_body", False):
            self._body_left = False
        return message

    async def _send_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._start(message)
            return
        self._size += len(message.get("body", b""))
        if message.get("more_body", False):  # only then the server waits until it is taken
            with self._services.client_waits.sending():
                await self._send(message)
        else:
            await self._send(message)

    async def _start(self, message: Message) -> None:
        headers = self._headers(message["status"], message["headers"])
        self._status = message["status"]
        await self._send(
            {"type": "http.response.start", "status": self._status, "headers": headers}
        )

    def _headers(
        self, status: int, answered: Iterable[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        context, headers = self._exchange, [*answered]
        if self._scope["method"] == "OPTIONS" and "path_template" in self._scope:
            allowed = self._methods.get(self._scope["path_template"], b"OPTIONS")
            headers = [(n, allowed if n == b"allow" else v) for n, v in headers]
        headers += [(n.lower().encode(), v.encode()) for n, v in context.headers.items()]
        names = {name.lower() for name, _ in headers}
        headers.append((b"x-request-id", context.request_id.encode()))
        headers += _SECURITY
        if self._under_api or status >= 400:
            headers.append(_LOCKED)
        if self._body_left:  # nobody will read it, so the next request could not be told from it
            headers.append((b"connection", b"close"))
        if b"cache-control" not in names and (self._under_api or status >= 400):
            headers.append((b"cache-control", b"no-store"))
        if self._under_api:
            headers += [pair for pair in self._limits() if pair[0] not in names]
            if context.timings:
                headers.append((b"server-timing", _write_timings(context)))
            if self._origin is not None:
                headers += self._cross_origin().headers(self._origin)
        return headers

    def _limits(self) -> list[tuple[bytes, bytes]]:
        # Asks nobody: an answer that is on its way must not fail for want of a number.
        context = self._exchange
        if context.caller is None or context.verdict is None or context.used is None:
            return []
        return rate_headers(context.verdict, PLANS[context.caller.plan], context.used)

    async def _fail(self, error: Exception) -> None:
        problem = problem_of(error)
        status, body = encode_failure(self._exchange, problem)
        if status >= 500 and not isinstance(error, HttpProblem):
            self._log.error("a request failed", error, request_id=self._exchange.request_id)
        extra = problem.headers if isinstance(problem, HttpProblem) else {}
        headers = [(name.lower().encode(), value.encode()) for name, value in extra.items()]
        headers.append((b"content-type", b"application/json"))
        headers.append((b"content-length", str(len(body)).encode()))
        await self._start({"status": status, "headers": headers})
        self._size = len(body)
        await self._send({"type": "http.response.body", "body": body})

    def _note(self) -> None:
        context, scope, services = self._exchange, self._scope, self._services
        took_ms = context.took_ms
        route = str(scope.get("path_template") or "unknown")
        services.metrics.finish_request(
            route=route, method=scope["method"], status=self._status, seconds=took_ms / 1e3
        )
        caller = context.caller or _NOBODY
        self._log.request(
            request_id=context.request_id,
            method=scope["method"],
            path=scope["path"],
            route=route,
            status=self._status,
            took_ms=took_ms,
            size=self._size,
            key_id=caller.key_id,
            account_id=caller.account_id,
            plan=caller.plan,
            snapshot=context.headers.get("X-Searchlab-Snapshot")
            or services.live_library.current.engine.snapshot_id,
            facts=context.facts,
        )


_NOBODY = Caller(account_id=0, key_id="", plan="")


async def require_key(request: Request[Any, Any, Any]) -> None:
    """Refuse, before any operation of the API, a request whose key was not checked above.

    Raises:
        HttpProblem: It was not (401).
    """
    # Not one of Litestar's guards: for each it copies the handler, at every request.
    if context_of(request).caller is None:
        raise _unauthorized(request.app.state.services)


def _unauthorized(services: Services) -> HttpProblem:
    """Make the answer to a request without a key in force."""
    services.metrics.count_refusal("key")
    challenge = {"WWW-Authenticate": 'ApiKey header="x-api-key"'}
    return HttpProblem(KINDS["UNAUTHORIZED"].example, "UNAUTHORIZED", headers=challenge)


def _address(scope: Any, host: bytes) -> str:
    text = host.decode("latin-1")
    if not _HOST.fullmatch(text):
        name, port = scope.get("server") or ("127.0.0.1", 80)
        text = f"{name}:{port}"
    return f"{scope['scheme']}://{text}"


def _write_timings(context: RequestContext) -> bytes:
    parts = [f"{name};dur={spent:.3f}" for name, spent in context.timings.items()]
    return ", ".join([*parts, f"total;dur={context.took_ms:.3f}"]).encode()
