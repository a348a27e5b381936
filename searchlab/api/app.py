"""create_app: builds a worker's application, which opens its services at start and closes them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from litestar import Litestar, Request, Response, Router
from litestar.datastructures import State
from litestar.routes import HTTPRoute

from searchlab.api.accounts.collections import Collections
from searchlab.api.accounts.database import POOL_SIZE, open_database, sqlite_url
from searchlab.api.accounts.keyring import KeyRing
from searchlab.api.accounts.meter import Meter
from searchlab.api.accounts.migrations import migrate
from searchlab.api.accounts.rates import Rates
from searchlab.api.accounts.replays import Replays
from searchlab.api.accounts.sessions import Sessions
from searchlab.api.accounts.visitors import AnonymousVisitors
from searchlab.api.docs import pages as reference
from searchlab.api.http.addresses import Proxies
from searchlab.api.http.client_waits import ClientWaits
from searchlab.api.http.context import Services, context_of
from searchlab.api.http.decode_slots import DecodeSlots
from searchlab.api.http.decoders import Decoders
from searchlab.api.http.heads import App
from searchlab.api.http.middleware import Middleware, require_key
from searchlab.api.http.recent_secrets import RecentSecrets
from searchlab.api.http.renditions import Renditions
from searchlab.api.http.sends import Sends
from searchlab.api.http.threads import Threads
from searchlab.api.mcp.routes import Tools
from searchlab.api.mcp.routes import routes as tool_routes
from searchlab.api.oauth import endpoints, metadata
from searchlab.api.oauth.clients import CLIENTS_AT_ONCE, CLIENTS_PER_SECOND
from searchlab.api.oauth.documents import ClientDocuments
from searchlab.api.oauth.tokens import Tokens
from searchlab.api.ops.logs import Log, forward_library_logs
from searchlab.api.ops.metrics import Metrics
from searchlab.api.ops.readiness import Readiness
from searchlab.api.routes import collections, facets, media, photos, search, system, usage
from searchlab.api.settings import Settings
from searchlab.api.snapshots.live_library import LiveLibrary, ServedSnapshot
from searchlab.api.snapshots.shards import open_shards
from searchlab.api.web import pages
from searchlab.api.web.failures import report
from searchlab.api.web.sign_in import SIGN_INS_AT_ONCE, SIGN_INS_PER_SECOND
from searchlab.api.wire.errors import HttpProblem, is_shortage, problem_of

# Keys that are not in force which an address may send: a second continuously, and at once.
_WRONG_KEYS = (2.0, 100)


def create_app(settings: Settings | None = None) -> Middleware:
    """Build the ASGI application of one worker.

    Args:
        settings: Read from the environment, where `searchlab serve` puts them, if left out.

    Raises:
        InputError: `settings` is left out and the environment holds none.
    """
    settings = settings or Settings.from_env()
    log = Log(settings.log_format, access=settings.access_log)
    forward_library_logs(log)
    operations = [*search.ROUTES, *photos.ROUTES, *facets.ROUTES]
    operations += [*collections.ROUTES, *usage.ROUTES]
    app = Litestar(
        route_handlers=[
            Router("/", route_handlers=operations, before_request=require_key),
            *(*system.ROUTES, *media.ROUTES, *reference.ROUTES, *pages.ROUTES, *tool_routes()),
            *(*metadata.ROUTES, *endpoints.ROUTES),
        ],
        exception_handlers={Exception: _refuse},
        lifespan=[_open_services(settings, log)],
        openapi_config=None,
        logging_config=None,
        state=State({"log": log}),
        request_max_body_size=None,  # each operation bounds its own body
    )
    return Middleware(cast(App, app), state=app.state, log=log, methods=_list_methods(app))


def _list_methods(app: Litestar) -> dict[str, bytes]:
    """List the methods of each path; Litestar's own OPTIONS knows those of one handler only."""
    methods: dict[str, set[str]] = {}
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                methods.setdefault(route.path_format, set()).update(map(str, handler.http_methods))
    for names in methods.values():
        if "GET" in names:
            names.add("HEAD")
    return {path: ", ".join(sorted(names)).encode() for path, names in methods.items()}


def _open_services(settings: Settings, log: Log) -> Any:
    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(log.close)
            services = await asyncio.to_thread(_open, settings, stack)
            app.state.services = services

            def on_swap(snapshot: ServedSnapshot) -> None:
                _report(services.metrics, snapshot)
                services.metrics.count_swap("done")
                log.event("new snapshot in force", snapshot=snapshot.engine.snapshot_id)

            def on_failure(error: Exception) -> None:
                services.metrics.count_swap("failed")
                log.error("a new snapshot cannot be opened; the old one goes on", error)

            watching = asyncio.create_task(
                services.live_library.watch(settings.poll_s, on_swap=on_swap, on_failure=on_failure)
            )
            app.state.tools = Tools(settings)
            stack.push_async_callback(app.state.tools.close)
            yield
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    return lifespan


def _open(settings: Settings, stack: AsyncExitStack) -> Services:
    # First, so that no database is created where there is no library.
    shards = open_shards(settings, stack) if settings.on else None
    live_library = LiveLibrary(
        settings.data,
        show_places=settings.show_places,
        open_vectors=None if shards is None else shards.open_vectors,
    )
    stack.callback(live_library.close)
    shared = Path(settings.run_folder) if settings.run_folder else None
    database = open_database(
        settings.database_url or sqlite_url(settings.data), notes=shared and shared / "database"
    )
    stack.callback(database.close)
    migrate(database)
    anonymous = AnonymousVisitors(database, settings.visitors)
    anonymous.check()
    threads = _start_threads(stack, waits_elsewhere=shards is not None)
    keys = KeyRing(database)
    stack.callback(keys.close)
    sessions = Sessions(database)
    stack.callback(sessions.close)
    tokens = Tokens(database)
    stack.callback(tokens.close)
    meter = Meter(database)
    stack.callback(meter.close)
    rates = Rates(shared and shared / "rates", settings.rate_per_second, settings.rate_burst)
    stack.callback(rates.close)
    wrong_keys = Rates(shared and shared / "wrong-keys", *_WRONG_KEYS)
    stack.callback(wrong_keys.close)
    sign_in_rates = Rates(shared and shared / "sign-ins", SIGN_INS_PER_SECOND, SIGN_INS_AT_ONCE)
    stack.callback(sign_in_rates.close)
    client_rates = Rates(shared and shared / "clients", CLIENTS_PER_SECOND, CLIENTS_AT_ONCE)
    stack.callback(client_rates.close)
    replays = Replays(database)
    stack.callback(replays.close)
    metrics = Metrics()
    _report(metrics, live_library.current)
    if shards is not None:
        shards.report_to(metrics)
    slots = DecodeSlots(settings.decode_slots, timeout_s=settings.decode_timeout_s)
    stack.callback(slots.close)
    decoders = Decoders(settings.decode_timeout_s)
    stack.callback(decoders.close)
    renditions = Renditions(live_library, show_places=settings.show_places)
    stack.callback(renditions.close)
    return Services(
        settings=settings,
        live_library=live_library,
        database=database,
        keys=keys,
        sessions=sessions,
        tokens=tokens,
        meter=meter,
        rates=rates,
        wrong_keys=wrong_keys,
        recent_secrets=RecentSecrets(),
        sign_in_rates=sign_in_rates,
        client_rates=client_rates,
        client_documents=ClientDocuments(),
        replays=replays,
        collections=Collections(database),
        anonymous=anonymous,
        slots=slots,
        decoders=decoders,
        renditions=renditions,
        metrics=metrics,
        readiness=Readiness(
            database,
            settings.data,
            threads["health_threads"],
            more_problems=(lambda: ()) if shards is None else shards.problems,
        ),
        client_waits=ClientWaits(metrics, settings.max_in_flight),
        sends=Sends(),
        proxies=Proxies(settings.trusted_proxy_header, settings.trusted_proxies),
        **threads,
    )


def _start_threads(stack: AsyncExitStack, *, waits_elsewhere: bool) -> dict[str, Threads]:
    cores = os.cpu_count() or 1
    # A search on other machines mostly waits.
    searching = max(cores, 16) if waits_elsewhere else cores
    threads_of = {
        "database_threads": Threads("database", POOL_SIZE, waiting=128),
        "key_threads": Threads("keys", 4, waiting=256),
        "document_threads": Threads("documents", 2, waiting=16),
        "search_threads": Threads("search", searching, waiting=256),
        "health_threads": Threads("health", 1, waiting=64),
    }
    for threads in threads_of.values():
        stack.callback(threads.close)
    return threads_of


def _report(metrics: Metrics, snapshot: ServedSnapshot) -> None:
    engine = snapshot.engine
    metrics.describe_snapshot(engine.snapshot_id, engine.config.config_id, len(engine.table))


def _refuse(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    problem = problem_of(error, method=request.method, path=request.scope["path"])
    failure = report(request, problem)
    if failure.status >= 500 and not isinstance(error, HttpProblem):
        request_id = context_of(request).request_id
        request.app.state.log.error(
            "a request failed", error, request_id=request_id, trace=not is_shortage(error)
        )
    status, body, media_type, headers = failure
    return Response(body, status_code=status, media_type=media_type, headers=dict(headers))
