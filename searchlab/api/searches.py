"""Searches: ranks a page and counts it, the same for the API and for the pages of people.

A search is refused before anything is computed if the account's monthly quota is used up, and
counted before its answer leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import numpy as np
from litestar import Request
from numpy.typing import NDArray

from searchlab.api.accounts.idempotency import RequestClaim
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.rates import seconds_left_in_month
from searchlab.api.http.context import Services, caller_of, context_of, services_of
from searchlab.api.http.uploads import embed_reference, make_turn
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.wire.errors import HttpProblem
from searchlab.errors import QuotaError
from searchlab.models.protocol import Embeddings
from searchlab.photos.images.blur_hash import blur_hash
from searchlab.search.queries import Query, Slice
from searchlab.search.searched_pictures import SearchedPicture

AnyRequest = Request[Any, Any, Any]


class FirstPage(NamedTuple):
    """A request without a cursor.

    Attributes:
        query: What is searched for.
        per_page: Page size.
        page: Which page of the ranking, from 1. Pages by number leave out photos that are gone
            without filling up, so that none of them repeats a photo.
        snapshot: The snapshot that is searched; the current one if left out.
        reference: (dim,) embedding of the query's picture, if it was computed before.
    """

    query: Query
    per_page: int
    page: int = 1
    snapshot: ServedSnapshot | None = None
    reference: Embeddings | None = None


class RankedPage(NamedTuple):
    """A page and the snapshot whose rows it names."""

    snapshot: ServedSnapshot
    part: Slice


def cap_similar(request: AnyRequest, limit: int | None, per_page: int) -> int | None:
    """Limit a search by an indexed photo to one page, unless the plan allows more."""
    if context_of(request).plan.similar_paged:
        return limit
    return min(per_page, limit or per_page)


async def rank(request: AnyRequest, first: FirstPage | str, operation: str) -> RankedPage:
    """Rank a page, if the account's quota allows one more search.

    Args:
        request: A request with a caller.
        first: What is searched for, or the cursor of a page.
        operation: Name that cursors are bound to, together with the account.

    Raises:
        HttpProblem: The quota is used up (429).
        SearchlabError: The query or the cursor is refused.
    """
    context = context_of(request)
    _check_quota(request)
    audience = f"{caller_of(request).account_id}:{operation}"
    if isinstance(first, str):
        ranked = await _rank_next(request, first, audience)
    else:
        ranked = await _rank_first(request, first, audience)
    engine, plan = ranked.snapshot.engine, ranked.part.plan
    context.timings.update(ranked.part.timings)
    context.snapshot_id = engine.snapshot_id
    context.headers |= _headers(
        engine.config.config_id, engine.snapshot_id, plan.mode, plan.n_allowed, plan.selectivity
    )
    context.facts |= {"plan_mode": plan.mode, "results": len(ranked.part.rows)}
    return ranked


@lru_cache(maxsize=256)
def _headers(
    config_id: str, snapshot_id: str, mode: str, n_allowed: int, selectivity: float
) -> Mapping[bytes, bytes]:
    plan = f"{mode}; candidates={n_allowed}; selectivity={selectivity:.6f}"
    return {
        b"x-searchlab-config": config_id.encode(),
        b"x-searchlab-snapshot": snapshot_id.encode(),
        b"x-searchlab-plan": plan.encode(),
    }


async def _rank_first(request: AnyRequest, first: FirstPage, audience: str) -> RankedPage:
    services = services_of(request)
    snapshot, query = first.snapshot or services.live_library.current, first.query
    reference = first.reference
    if query.photo_id is not None:
        snapshot.row_of(query.photo_id)
    if query.image is not None and reference is None:
        with context_of(request).measure("decode"):
            turn = await make_turn(caller_of(request), query.image)
            reference = await services.slots.run_turn(
                turn, embed_reference, snapshot.engine, query, services.decoders
            )
    by_number = first.page > 1 or first.snapshot is not None
    ranking = partial(
        snapshot.engine.slice,
        query,
        per_page=first.per_page,
        page=first.page,
        audience=audience,
        live=None if by_number else snapshot.live,
        reference=reference,
    )
    part = await _run(request, snapshot, query, first.page * first.per_page, ranking)
    return RankedPage(snapshot, _without_gone(part, snapshot.live) if by_number else part)


async def _rank_next(request: AnyRequest, token: str, audience: str) -> RankedPage:
    services = services_of(request)
    cursor = services.live_library.library.open_cursor(token, audience=audience)
    snapshot = await services.live_library.at(cursor.snapshot_id)
    ranking = partial(snapshot.engine.slice, cursor=cursor, audience=audience, live=snapshot.live)
    end = cursor.position + cursor.per_page
    return RankedPage(snapshot, await _run(request, snapshot, cursor.query, end, ranking))


async def _run(
    request: AnyRequest,
    snapshot: ServedSnapshot,
    query: Query,
    end: int,
    ranking: Callable[[], Slice],
) -> Slice:
    if snapshot.is_short(query, end):
        return ranking()
    return await services_of(request).search_threads.run(ranking)


def _without_gone(part: Slice, live: NDArray[np.bool_] | None) -> Slice:
    if live is None:
        return part
    present = live[part.rows]
    return replace(part, rows=part.rows[present], scores=part.scores[present])


async def embed_picture(services: Services, caller: Caller, content: bytes) -> SearchedPicture:
    """Embed a picture that is searched by later; the picture itself is stored nowhere.

    Raises:
        ImageError: It is refused.
        HttpProblem: There is no room for it at the moment (503).
        Invalid: It takes too long.
    """
    engine = services.live_library.current.engine

    def embed() -> SearchedPicture:
        picture = services.decoders.decode(content, engine.model.input_size)
        vector = cast(Embeddings, engine.reference_vector(Query(image=picture)))
        return SearchedPicture(
            vector=vector, blur_hash=blur_hash(picture), model_id=engine.config.model_id
        )

    return await services.slots.run_turn(await make_turn(caller, content), embed)


# -- the monthly quota ------------------------------------------------------------------------


def _check_quota(request: AnyRequest) -> None:
    """Refuse a search, before anything is computed, if the account's monthly quota is used up."""
    context = context_of(request)
    if context.used is not None and context.used >= context.plan.requests_per_month:
        raise _quota_exceeded(request)


async def count(
    request: AnyRequest,
    ranked: RankedPage,
    *,
    claimed: RequestClaim | None = None,
    body: bytes = b"",
) -> None:
    """Count a search; returns when the count is committed, so that no answer leaves uncounted.

    Args:
        request: The request that searched.
        ranked: What it got.
        claimed: The claim on its `Idempotency-Key`; the answer is recorded with the count.
        body: The answer to record.

    Raises:
        HttpProblem: The quota is used up (429).
        DataError: The count cannot be written.
    """
    context, services = context_of(request), services_of(request)
    limit = context.plan.requests_per_month
    also = None if claimed is None else claimed.make_record(200, body)
    try:
        with context.measure("count"):
            context.used = await services.meter.count(caller_of(request), limit=limit, also=also)
    except QuotaError:
        context.used = limit
        raise _quota_exceeded(request) from None
    services.metrics.count_search(ranked.part.plan.mode)


def _quota_exceeded(request: AnyRequest) -> HttpProblem:
    services_of(request).metrics.count_refusal("quota")
    plan = context_of(request).plan
    msg = (
        f"the plan {plan.name} allows {plan.requests_per_month:,} searches a month, got one more; "
        "wait for the next month (UTC), or change the plan"
    )
    wait = str(max(1, seconds_left_in_month()))
    details = {"plan": plan.name, "limit": plan.requests_per_month}
    return HttpProblem(msg, "QUOTA_EXCEEDED", details=details, headers={"Retry-After": wait})
