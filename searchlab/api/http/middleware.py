"""Middleware: the ASGI layer before Litestar, the same for every request.

It gives each request its id and start time, checks the key before anything else, applies the rate
limit, and on the way back adds headers, a log line and metrics. Any exception from within becomes a
clean error answer, and its traceback goes to the log alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State

from searchlab.api.accounts.keyring import Caller, is_secret
from searchlab.api.accounts.plans import PLANS
from searchlab.api.accounts.rates import rate_headers
from searchlab.api.http.admission import admit, look_up
from searchlab.api.http.bodies import Message, Receive, discard_rest
from searchlab.api.http.context import RequestContext, Services, attach, context_of
from searchlab.api.http.cross_origin import FOR_ALL, CrossOrigin
from searchlab.api.http.heads import App, Send, answer_heads
from searchlab.api.ops.logs import Log
from searchlab.api.settings import API_PREFIX, MCP_PATH
from searchlab.api.snapshots.encoded_photos import MEDIA_PREFIX
from searchlab.api.web.failures import report
from searchlab.api.wire.errors import KINDS, HttpProblem, is_shortage, overloaded, problem_of

MAX_HEADER_BYTES = 16 * 1024
MAX_TARGET_BYTES = 32 * 1024
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._\-]{1,253})(?::[0-9]{0,5})?", re.ASCII)
_SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"server", b"searchlab"),
]
# A full worker still answers these: refusing health checks would make it look dead.
_ALWAYS = frozenset({"/health", "/ready", "/metrics"})
# Beside the API; pages of allowed origins may ask these, too.
_FOR_PROGRAMS = ("/mcp", "/oauth/", "/.well-known/")
# Public, and the same for everybody: pages of any site may read it.
_FOR_EVERYBODY = "/.well-known/"
# Answers of the API hold nothing that a browser should run; pages have policies of their own.
_LOCKED = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_NOT_STORED = (b"cache-control", b"no-store")
_USUAL = (*_SECURITY, _LOCKED, _NOT_STORED)
_USUAL_NAMES = frozenset(name for name, _ in _USUAL)


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
            app: Litestar's application, which answers.
            state: State of that application; holds `services` once the worker is ready.
            log: Gets a line for each request.
            methods: Value of the header `Allow`, by path template.
        """
        self._app = app
        self._answer = answer_heads(app)
        self._methods = methods
        self._state = state
        self._log = log

    @property
    def methods(self) -> Mapping[str, bytes]:
        """Value of the header `Allow`, by path template."""
        return self._methods

    @property
    def services(self) -> Services:
        """The services that the worker has opened."""
        services: Services = self._state["services"]
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
        await handled.run(self._answer)


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
        self._context = RequestContext()
        self._status = 0
        self._size = 0
        self._origin: bytes | None = None
        # The router reads several slashes as one, so `//api/...` needs a key like `/api/...`.
        self._path = f"/{scope['path'].lstrip('/')}"
        self._under_api = self._path.startswith(API_PREFIX)
        self._from_anywhere = self._under_api or self._path.startswith(_FOR_PROGRAMS)
        self._is_for_everybody = self._path.startswith(_FOR_EVERYBODY)
        # Answers that count, and that hold nothing for a browser to run or to keep.
        self._for_programs = self._under_api or self._path == MCP_PATH
        self._keys: list[bytes] = []
        self._body_left = False
        self._reads_on = True  # to the end of a body that is refused

    async def run(self, app: App) -> None:
        scope, metrics = self._scope, self._services.metrics
        attach(scope, self._context)
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
            except Exception as error:  # the last place where an error can still be answered
                if self._status:
                    raise
                await self._fail(error)
        except Exception as error:  # half an answer is sent already, so only the log gets this
            self._log.error("the answer broke off", error, request_id=self._context.request_id)
            raise
        finally:
            self._note()

    def _enter(self) -> list[tuple[bytes, bytes]] | None:
        """Check the headers; returns the headers of the answer if it is a preflight request."""
        scope, services, context = self._scope, self._services, self._context
        size, n_hosts, host, requested = 0, 0, b"", b""
        for name, value in scope["headers"]:
            size += len(name) + len(value) + 4
            if name == b"x-api-key":
                self._keys.append(value)
            elif name == b"host":
                host = value
                n_hosts += 1
            elif name == b"origin":
                self._origin = value
            elif name == b"access-control-request-method":
                requested = value
            elif name == b"expect":
                self._reads_on = False  # with `100-continue` nothing is on its way yet
            elif name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
                self._body_left = True
        # Before anything is refused: a page that says so has links, too.
        context.base_url = services.settings.base_url or _address(scope, host)
        if size > MAX_HEADER_BYTES:
            msg = f"headers must have at most {MAX_HEADER_BYTES:,} bytes, got {size:,}"
            raise HttpProblem(msg, "HEADERS_TOO_LARGE")
        # Where the header is missing, the server puts an empty one in its place.
        if n_hosts > 1 or (not host and scope["http_version"] == "1.1"):
            msg = f"a request must have one header Host, got {n_hosts if host else 'none'}"
            raise HttpProblem(msg, "BAD_REQUEST")
        if host and not _is_host(host):
            msg = "Host must be a name or an address, and a port up to 65535, got something else"
            raise HttpProblem(msg, "BAD_REQUEST")
        target = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if target > MAX_TARGET_BYTES:
            msg = f"path and query must have at most {MAX_TARGET_BYTES:,} bytes, got {target:,}"
            raise HttpProblem(msg, "URI_TOO_LONG")
        if self._from_anywhere and scope["method"] == "OPTIONS" and requested and self._origin:
            return self._cross_origin().preflight(self._origin)
        self._check_room()
        return None

    def _check_room(self) -> None:
        services = self._services
        if self._path in _ALWAYS:
            return
        may_wait = self._body_left or self._path.startswith(MEDIA_PREFIX)
        busy = services.metrics.in_flight > services.settings.max_in_flight
        if busy or (may_wait and services.client_waits.is_full):
            services.metrics.count_refusal("overload")
            self._reads_on = False
            raise overloaded()

    async def _admit(self) -> None:
        """Check the key, read what its account has used, and apply the rate limit."""
        services = self._services
        secret = self._keys[0].decode("latin-1") if len(self._keys) == 1 else ""
        caller = services.keys.recall(secret)
        if caller is None and is_secret(secret):
            caller = await look_up(services, self._scope, services.keys.find, secret)
        if caller is None:
            raise _unauthorized(services)
        await admit(services, self._context, caller)

    def _cross_origin(self) -> CrossOrigin:
        if self._is_for_everybody:
            return FOR_ALL
        return CrossOrigin(self._services.settings.cors_origins)

    async def _receive_on(self) -> Message:
        if self._body_left:
            with self._services.client_waits.receiving((self._context.caller or _NOBODY).key_id):
                try:
                    message = await self._receive()
                except asyncio.CancelledError:
                    self._reads_on = False  # it was waited for in vain
                    raise
        else:
            message = await self._receive()
        self._reads_on = True
        if not message.get("more_body", False):
            self._body_left = False
        return message

    async def _send_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._start(message)
            return
        self._size += len(message.get("body", b""))
        if message.get("more_body", False):  # only then does the server wait for the client
            with self._services.client_waits.sending():
                await self._send(message)
        else:
            await self._send(message)

    async def _start(self, message: Message) -> None:
        if message["status"] >= 400 and self._body_left and self._reads_on:
            await discard_rest(self._receive_on, 2 * self._services.settings.max_upload_bytes)
        headers = self._headers(message["status"], message["headers"])
        self._status = message["status"]
        await self._send(
            {"type": "http.response.start", "status": self._status, "headers": headers}
        )

    def _headers(
        self, status: int, answered: Iterable[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        context, headers = self._context, [*answered]
        if self._scope["method"] == "OPTIONS" and "path_template" in self._scope:
            allowed = self._methods.get(self._scope["path_template"], b"OPTIONS")
            headers = [(n, allowed if n == b"allow" else v) for n, v in headers]
        names = {name.lower() for name, _ in headers}
        headers += context.headers.items()
        headers.append((b"x-request-id", context.request_id.encode()))
        if self._for_programs and not self._body_left and _USUAL_NAMES.isdisjoint(names):
            headers += _USUAL  # what all that follows comes to for most answers
        else:
            headers += [pair for pair in _SECURITY if pair[0] not in names]
            if (self._for_programs or status >= 400) and _LOCKED[0] not in names:
                headers.append(_LOCKED)
            if self._body_left:  # unread bytes of this body would be taken for the next request
                headers.append((b"connection", b"close"))
            if _NOT_STORED[0] not in names and (self._for_programs or status >= 400):
                headers.append(_NOT_STORED)
        if self._for_programs:
            headers += [pair for pair in self._limits() if pair[0] not in names]
            if context.timings:
                headers.append((b"server-timing", _write_timings(context)))
        if self._is_for_everybody or (self._from_anywhere and self._origin is not None):
            headers += self._cross_origin().headers(self._origin or b"")
        return headers

    def _limits(self) -> list[tuple[bytes, bytes]]:
        # No database here: an answer that is on its way must not fail for a missing number.
        context = self._context
        if context.caller is None or context.verdict is None or context.used is None:
            return []
        return rate_headers(context.verdict, PLANS[context.caller.plan], context.used)

    async def _fail(self, error: Exception) -> None:
        failure = report(ASGIConnection(self._scope), problem_of(error))
        if failure.status >= 500 and not isinstance(error, HttpProblem):
            # Where memory or threads are short, many fail for one reason.
            trace = not is_shortage(error)
            self._log.error(
                "a request failed", error, request_id=self._context.request_id, trace=trace
            )
        headers = [(name.lower().encode(), text.encode()) for name, text in failure.headers.items()]
        charset = "; charset=utf-8" if failure.media_type.startswith("text/") else ""
        headers.append((b"content-type", f"{failure.media_type.value}{charset}".encode()))
        headers.append((b"content-length", str(len(failure.body)).encode()))
        await self._start({"status": failure.status, "headers": headers})
        self._size = len(failure.body)
        await self._send({"type": "http.response.body", "body": failure.body})

    def _note(self) -> None:
        context, scope, services = self._context, self._scope, self._services
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
            snapshot=context.snapshot_id or services.live_library.current.engine.snapshot_id,
            facts=context.facts,
        )


_NOBODY = Caller(account_id=0, key_id="", plan="")


async def require_key(request: Request[Any, Any, Any]) -> None:
    """Refuse a request whose key `Middleware` did not check; runs before each operation of the API.

    Raises:
        HttpProblem: The key was not checked (401).
    """
    # Not a guard of Litestar's, which copies the handler for each guard at every request.
    if context_of(request).caller is None:
        raise _unauthorized(request.app.state.services)


def _unauthorized(services: Services) -> HttpProblem:
    """Count a request without a valid key, and make the problem to raise."""
    services.metrics.count_refusal("key")
    challenge = {"WWW-Authenticate": 'ApiKey header="x-api-key"'}
    return HttpProblem(KINDS["UNAUTHORIZED"].example, "UNAUTHORIZED", headers=challenge)


@lru_cache(maxsize=64)
def _is_host(host: bytes) -> bool:
    text = host.decode("latin-1")
    try:
        _ = urlsplit(f"//{text}").port  # raises if it is too large, or brackets hold no address
    except ValueError:
        return False
    return _HOST.fullmatch(text) is not None


def _address(scope: Any, host: bytes) -> str:
    if _is_host(host):
        return f"{scope['scheme']}://{host.decode('latin-1')}"
    name, port = scope.get("server") or ("127.0.0.1", 80)
    name = f"[{name}]" if ":" in name else name  # an address of IPv6
    return f"{scope['scheme']}://{name}" + ("" if port is None else f":{port}")


def _write_timings(context: RequestContext) -> bytes:
    timings = {**context.timings, "total": context.took_ms}
    return _timings_format(tuple(timings)) % tuple(timings.values())


@lru_cache(maxsize=64)
def _timings_format(parts: tuple[str, ...]) -> bytes:
    return ", ".join(f"{part};dur=%.3f" for part in parts).encode()
