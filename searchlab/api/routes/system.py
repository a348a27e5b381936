"""Health and metrics of a server, for other machines; outside the API and without a key."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, Response, get
from litestar.enums import MediaType

from searchlab import __version__
from searchlab.api.http.context import services_of


class Health(msgspec.Struct, frozen=True):
    """The state of a server.

    Attributes:
        status: `ok`, or `not ready`, which `/ready` answers with HTTP status 503.
        ready: Whether it can do its work: the library is open, and the database takes writes.
        problems: What is wrong, if it is not ready.
        version: Version of searchlab.
        snapshot_id: Name of the snapshot that is searched.
        config_id: Configuration of the search.
        n_photos: Number of photos in the snapshot.
    """

    status: Literal["ok", "not ready"]
    ready: bool
    problems: list[str]
    version: str
    snapshot_id: str
    config_id: str
    n_photos: Annotated[int, msgspec.Meta(ge=0)]


@get("/health", name="health", summary="Whether this server lives")
async def health(request: Request[Any, Any, Any]) -> Response[Health]:
    """Return the state of the server as far as it is known, always with status 200."""
    return _describe(request, services_of(request).readiness.problems, is_answer=False)


@get("/ready", name="ready", summary="Whether this server can do its work")
async def ready(request: Request[Any, Any, Any]) -> Response[Health]:
    """Return the state of the server, with status 503 while it cannot search and count."""
    return _describe(request, await services_of(request).readiness.check(), is_answer=True)


def _describe(
    request: Request[Any, Any, Any], problems: tuple[str, ...], *, is_answer: bool
) -> Response[Health]:
    engine = services_of(request).live_library.current.engine
    body = Health(
        status="not ready" if problems else "ok",
        ready=not problems,
        problems=list(problems),
        version=__version__,
        snapshot_id=engine.snapshot_id,
        config_id=engine.config.config_id,
        n_photos=len(engine.table),
    )
    failed = bool(problems) and is_answer
    headers = {"cache-control": "no-store"} | ({"retry-after": "1"} if failed else {})
    return Response(
        body, status_code=503 if failed else 200, media_type=MediaType.JSON, headers=headers
    )


@get("/metrics", sync_to_thread=True, summary="Figures of all workers for Prometheus")
def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Return the sums over the workers of this server in the text format of Prometheus."""
    from prometheus_client import CONTENT_TYPE_LATEST

    return Response(
        services_of(request).metrics.expose(),
        media_type=CONTENT_TYPE_LATEST,
        headers={"cache-control": "no-store"},
    )


ROUTES = [health, ready, metrics]
