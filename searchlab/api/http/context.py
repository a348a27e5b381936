"""RequestContext: what is known about one request; Services: what a worker answers with."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from searchlab.api.accounts.plans import PLANS, Plan

if TYPE_CHECKING:
    from litestar import Request
    from litestar.connection import ASGIConnection

    from searchlab.api.accounts.collections import Collections
    from searchlab.api.accounts.database import Database
    from searchlab.api.accounts.keyring import Caller, KeyRing
    from searchlab.api.accounts.meter import Meter
    from searchlab.api.accounts.rates import Rates, Verdict
    from searchlab.api.accounts.replays import Replays
    from searchlab.api.accounts.sessions import Sessions
    from searchlab.api.accounts.visitors import AnonymousVisitors
    from searchlab.api.http.addresses import Proxies
    from searchlab.api.http.client_waits import ClientWaits
    from searchlab.api.http.decode_slots import DecodeSlots
    from searchlab.api.http.decoders import Decoders
    from searchlab.api.http.recent_secrets import RecentSecrets
    from searchlab.api.http.renditions import Renditions
    from searchlab.api.http.sends import Sends
    from searchlab.api.http.threads import Threads
    from searchlab.api.oauth.documents import ClientDocuments
    from searchlab.api.oauth.tokens import Tokens
    from searchlab.api.ops.metrics import Metrics
    from searchlab.api.ops.readiness import Readiness
    from searchlab.api.settings import Settings
    from searchlab.api.snapshots.live_library import LiveLibrary
    from searchlab.search.searched_pictures import SearchedPicture

P = ParamSpec("P")
T = TypeVar("T")

_KEY = "searchlab.context"


def _request_id() -> str:
    # A UUID of version 4. It is no secret, so the slower secure random source is not needed.
    digits = f"{random.getrandbits(128):032x}"
    variant = "89ab"[random.getrandbits(2)]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class _Measuring:
    """Adds the time that a block takes to a part; costs less than a generator that does so."""

    __slots__ = ("_part", "_started", "_timings")

    def __init__(self, timings: dict[str, float], part: str) -> None:
        self._timings = timings
        self._part = part

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        passed = (time.perf_counter() - self._started) * 1e3
        self._timings[self._part] = self._timings.get(self._part, 0.0) + passed


@dataclass(slots=True)
class RequestContext:
    """One request and its answer.

    Attributes:
        request_id: UUID, also in the header X-Request-Id and in the log.
        started: `time.perf_counter()` when it arrived.
        base_url: Address that links in the answer start with.
        caller: Account and key; None outside the API.
        verdict: Decision of the rate limit; None outside the API.
        used: Searches of the account this month, as far as this request knows.
        timings: Milliseconds by part of the work, for `Server-Timing`.
        headers: Headers to add to the answer, by lower-case name.
        snapshot_id: Snapshot that was searched; empty if none was.
        facts: Values to add to the log line.
        picture: One that was embedded before, which a search by picture uses if none is uploaded.
    """

    request_id: str = field(default_factory=_request_id)
    started: float = field(default_factory=time.perf_counter)
    base_url: str = ""
    caller: Caller | None = None
    verdict: Verdict | None = None
    used: int | None = None
    timings: dict[str, float] = field(default_factory=dict)
    headers: dict[bytes, bytes] = field(default_factory=dict)
    snapshot_id: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    picture: SearchedPicture | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the caller's account.

        Raises:
            RuntimeError: No key was checked, which never happens on a route of the API.
        """
        if self.caller is None:
            msg = "a route of the API must be asked with a key, got none"
            raise RuntimeError(msg)
        return PLANS[self.caller.plan]

    @property
    def took_ms(self) -> float:
        """Milliseconds since the request arrived."""
        return round((time.perf_counter() - self.started) * 1e3, 3)

    def measure(self, part: str) -> _Measuring:
        """Add the time that the block takes to a part of `Server-Timing`."""
        return _Measuring(self.timings, part)


@dataclass(frozen=True, kw_only=True)
class Services:
    """The parts of one worker that answer requests; opened at its start, closed at its end.

    Each kind of slow work has its own threads: a database that hangs delays no search, and neither
    of them delays the health check.
    """

    settings: Settings
    live_library: LiveLibrary
    database: Database
    keys: KeyRing
    sessions: Sessions
    tokens: Tokens
    meter: Meter
    rates: Rates
    wrong_keys: Rates
    recent_secrets: RecentSecrets
    sign_in_rates: Rates
    client_rates: Rates
    client_documents: ClientDocuments
    replays: Replays
    collections: Collections
    anonymous: AnonymousVisitors
    slots: DecodeSlots
    decoders: Decoders
    renditions: Renditions
    metrics: Metrics
    readiness: Readiness
    client_waits: ClientWaits
    sends: Sends
    proxies: Proxies
    database_threads: Threads
    key_threads: Threads
    document_threads: Threads
    search_threads: Threads
    health_threads: Threads

    async def in_database(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work(*args, **kwargs)` in one of the threads for the database.

        Raises:
            HttpProblem: Too many calls are waiting already (503).
        """
        return await self.database_threads.run(work, *args, **kwargs)


def attach(scope: Any, context: RequestContext) -> None:
    """Store the context in an ASGI scope."""
    scope.setdefault("state", {})[_KEY] = context


def context_of(request: ASGIConnection[Any, Any, Any, Any]) -> RequestContext:
    """Return the context of a request."""
    context: RequestContext = request.scope["state"][_KEY]
    return context


def caller_of(request: Request[Any, Any, Any]) -> Caller:
    """Return the caller of a request to the API.

    Raises:
        RuntimeError: No key was checked, which never happens on a route of the API.
    """
    caller = context_of(request).caller
    if caller is None:
        msg = "a route of the API must be asked with a key, got none"
        raise RuntimeError(msg)
    return caller


def services_of(request: Request[Any, Any, Any]) -> Services:
    """Return the services of the worker that got the request."""
    # By key, since Litestar looks up attributes of a state much more slowly.
    services: Services = request.app.state["services"]
    return services
