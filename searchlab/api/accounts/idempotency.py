"""Idempotent POSTs: repetitions with one `Idempotency-Key` get the first answer again."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from litestar import Request, Response
from litestar.enums import MediaType
from sqlalchemy.engine import Connection

from searchlab.api.accounts.replays import Attempt, Replay
from searchlab.api.http.context import Services, caller_of, context_of, services_of
from searchlab.api.wire.errors import HttpProblem, invalid
from searchlab.errors import InputError, SearchlabError, quote

IDEMPOTENCY_KEY = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
# The event loop keeps weak references only, so running tasks are held here.
_RELEASING: set[asyncio.Task[None]] = set()


@dataclass(frozen=True)
class RequestClaim:
    """A request's hold on its `Idempotency-Key`.

    Attributes:
        replay: The first answer, if there is one; the request must then do nothing else.
        make_record: Takes status and body, and returns a function that records the answer in the
            transaction of the change; returns None if no key was sent.
    """

    replay: Response[bytes] | None
    make_record: Callable[[int, bytes], Callable[[Connection], None] | None]


@asynccontextmanager
async def claim(request: Request[Any, Any, Any], content: bytes) -> AsyncIterator[RequestClaim]:
    """Hold the request's `Idempotency-Key` while the block acts on the request.

    A block that raises gives the key back: nothing was done, so the request may be tried again.

    Args:
        request: A request with or without the header.
        content: The body or its hash; a repetition must have the same content and query.

    Raises:
        Invalid: The key is malformed, or was used with another request before.
        InFlightError: The first request with this key is not answered yet.
    """
    keys = request.headers.getall(IDEMPOTENCY_KEY, [])
    if not keys:
        yield RequestClaim(None, lambda _status, _body: None)
        return
    if len(keys) > 1:
        msg = f"{IDEMPOTENCY_KEY} must be given once, got {len(keys)} times"
        raise invalid(("header", IDEMPOTENCY_KEY), msg, "idempotency_key")
    (key,) = keys
    if not _KEY.fullmatch(key):
        msg = f"{IDEMPOTENCY_KEY} must be 1 to 255 visible ASCII characters, got {quote(key)}"
        raise invalid(("header", IDEMPOTENCY_KEY), msg, "idempotency_key")
    services = services_of(request)
    query = request.scope["query_string"]
    attempt = Attempt(
        account_id=caller_of(request).account_id,
        method=request.method,
        path=request.scope["path"],
        key=key,
        fingerprint=hashlib.sha256(b"%d:" % len(query) + query + content).digest(),
    )
    try:
        replay = await _begin(services, attempt)
    except InputError as error:
        raise invalid(("header", IDEMPOTENCY_KEY), str(error), "idempotency_key") from None
    if replay is not None:
        context_of(request).headers[b"idempotency-replayed"] = b"true"
        answer = Response(replay.body, status_code=replay.status, media_type=MediaType.JSON)
        yield RequestClaim(answer, lambda _status, _body: None)
        return

    def make_record(status: int, body: bytes) -> Callable[[Connection], None]:
        return lambda connection: services.replays.finish(
            connection, attempt, status=status, body=body
        )

    try:
        yield RequestClaim(None, make_record)
    except BaseException:
        await asyncio.shield(_give_back(services, attempt))
        raise


async def _begin(services: Services, attempt: Attempt) -> Replay | None:
    beginning = asyncio.ensure_future(services.in_database(services.replays.begin, attempt))
    try:
        return await asyncio.shield(beginning)
    except asyncio.CancelledError:
        # The thread goes on and may still claim the key for a request that is gone.
        _let_run(_give_back(services, attempt, after=beginning))
        raise


def _let_run(work: Any) -> None:
    task: asyncio.Task[None] = asyncio.ensure_future(work)
    _RELEASING.add(task)
    task.add_done_callback(_RELEASING.discard)


async def _give_back(
    services: Services, attempt: Attempt, *, after: asyncio.Future[Replay | None] | None = None
) -> None:
    # If the key cannot be given back now, its lease runs out within a minute.
    with suppress(SearchlabError, HttpProblem):
        if after is not None and await after is not None:
            return
        await services.in_database(services.replays.forget, attempt)
