"""Health and metrics of a server, for other machines; outside the API and without a key."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
import sqlalchemy as sa
from litestar import Request, Response, get
from litestar.enums import MediaType

from searchlab import __version__
from searchlab.api.http.context import Services, services_of
from searchlab.api.wire.errors import HttpProblem
from searchlab.errors import SearchlabError

_DATABASE_TIMEOUT_S = 2.0


class Health(msgspec.Struct, frozen=True):
    """The state of a server.

    Attributes:
        status: `ok`, or `not ready`, which is answered with HTTP status 503.
        ready: Whether it can answer: the library is open and warm, and the database is reachable.
        version: Version of searchlab.
        snapshot_id: Name of the snapshot that is searched.
        config_id: Configuration of the search.
        n_photos: Number of photos in the snapshot.
    """

    status: Literal["ok", "not ready"]
    ready: bool
    version: str
    snapshot_id: str
    config_id: str
    n_photos: Annotated[int, msgspec.Meta(ge=0)]


@get(["/health", "/ready"], name="health", summary="Whether this server can answer")
async def health(request: Request[Any, Any, Any]) -> Response[Health]:
    """Return the state of the server, with status 503 while it cannot answer."""
    services = services_of(request)
    engine = services.live_library.current.engine
    ready = await _reaches_database(services)
    body = Health(
        status="ok" if ready else "not ready",
        ready=ready,
        version=__version__,
        snapshot_id=engine.snapshot_id,
        config_id=engine.config.config_id,
        n_photos=len(engine.table),
    )
    headers = {"cache-control": "no-store"} | ({} if ready else {"retry-after": "1"})
    return Response(
        body, status_code=200 if ready else 503, media_type=MediaType.JSON, headers=headers
    )


async def _reaches_database(services: Services) -> bool:
    def ask() -> bool:
        look_up = services.database.look_up
        return bool(look_up(lambda connection: connection.execute(sa.select(1)).scalar()))

    # In a thread of its own, so that the result shows the database and not how busy we are.
    try:
        async with asyncio.timeout(_DATABASE_TIMEOUT_S):
            return await services.health_threads.run(ask)
    except (HttpProblem, SearchlabError, TimeoutError):
        return False


@get("/metrics", sync_to_thread=True, summary="Figures of all workers for Prometheus")
def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Return the sums over the workers of this server in the text format of Prometheus."""
    from prometheus_client import CONTENT_TYPE_LATEST

    return Response(
        services_of(request).metrics.expose(),
        media_type=CONTENT_TYPE_LATEST,
        headers={"cache-control": "no-store"},
    )


ROUTES = [health, metrics]
