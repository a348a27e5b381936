"""Search photos by text (4.1) and by picture (4.2), and photos similar to one (4.3)."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from litestar import Request, Response, get, post
from litestar.params import FromPath

from searchlab.api.accounts.idempotency import Claim, claim
from searchlab.api.accounts.quota import check_quota, count_search, plan_of
from searchlab.api.http.context import caller_of, context_of, services_of
from searchlab.api.http.uploads import fingerprint_of, read_picture, reference_of
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.wire.envelope import Answer, enclose
from searchlab.api.wire.errors import Detail, Invalid
from searchlab.api.wire.operations import Operation
from searchlab.api.wire.parameters import read
from searchlab.api.wire.requests import Conditions, ImageSearch, NextPage, Similar, TextSearch
from searchlab.api.wire.schema import Pagination, Photo
from searchlab.api.wire.selection import select_fields
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query, Slice

_SEARCH = "/api/v1/search/photos"


_CONDITIONS = tuple(field.name for field in dataclasses.fields(PhotoFilter))
_ANY_PHOTO = PhotoFilter()
_UNASKED = {name: getattr(_ANY_PHOTO, name) for name in _CONDITIONS}


def _filter(asked: Conditions) -> PhotoFilter:
    conditions = {name: getattr(asked, name) for name in _CONDITIONS}
    return _ANY_PHOTO if conditions == _UNASKED else PhotoFilter(**conditions)


def _audience(request: Request[Any, Any, Any], operation: str) -> str:
    return f"{caller_of(request).account_id}:{operation}"


async def _first_page(
    request: Request[Any, Any, Any],
    snapshot: ServedSnapshot,
    query: Query,
    per_page: int,
    operation: str,
    *,
    reference: Embeddings | None = None,
) -> Slice:
    work = partial(
        snapshot.engine.slice,
        query,
        per_page=per_page,
        audience=_audience(request, operation),
        live=snapshot.live,
        reference=reference,
    )
    if snapshot.is_short(query, per_page):
        return work()
    return await services_of(request).search_threads.run(work)


async def _next_page(
    request: Request[Any, Any, Any], cursor: str, operation: str
) -> tuple[ServedSnapshot, Slice]:
    services, audience = services_of(request), _audience(request, operation)
    here = services.live_library.library.open_cursor(cursor, audience=audience)
    snapshot = await services.live_library.at(here.snapshot_id)
    work = partial(snapshot.engine.slice, cursor=here, audience=audience, live=snapshot.live)
    if snapshot.is_short(here.query, here.position + here.per_page):
        return snapshot, work()
    return snapshot, await services.search_threads.run(work)


async def _answer(
    request: Request[Any, Any, Any],
    snapshot: ServedSnapshot,
    found: Slice,
    fields: tuple[str, ...],
    claimed: Claim | None = None,
) -> Response[bytes]:
    context, services = context_of(request), services_of(request)
    context.timings.update(found.timings)
    plan, engine = found.plan, snapshot.engine
    context.headers |= {
        "X-Searchlab-Config": engine.config.config_id,
        "X-Searchlab-Snapshot": engine.snapshot_id,
        "X-Searchlab-Plan": (
            f"{plan.mode}; candidates={plan.n_allowed}; selectivity={plan.selectivity:.6f}"
        ),
    }
    context.facts |= {"plan_mode": plan.mode, "results": len(found.rows)}
    with context.timed("serialise"):
        photos = snapshot.photos.records(
            found.rows.tolist(), found.scores.tolist(), fields=fields, base_url=context.base_url
        )
        more = found.next_cursor is not None
        body = enclose(
            context,
            success=True,
            data=photos,
            pagination=Pagination(found.per_page, more, found.next_cursor),
        )
    await count_search(request, None if claimed is None else claimed.keeping(200, body))
    services.metrics.count_search(plan.mode)
    return Answer(body)


@get(
    _SEARCH,
    opt=Operation(
        operation_id="searchPhotosByText",
        summary="Search photos by text and filters",
        description="At least one of `q` and the filters is required.",
        parameters=TextSearch,
        data=list[Photo],
        paginated=True,
        problems=("INVALID_FIELDS", "CURSOR_EXPIRED", "QUOTA_EXCEEDED"),
    ).opt,
)
async def search_by_text(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Search photos by text and filters."""
    going_on = read(NextPage, request)
    fields = select_fields(going_on.fields, plan_of(request))
    if going_on.cursor:
        check_quota(request)
        snapshot, found = await _next_page(request, going_on.cursor, "text")
        return await _answer(request, snapshot, found, fields)
    asked = read(TextSearch, request)
    query = Query(
        text=asked.q,
        filter=_filter(asked),
        sort_by=asked.sort_by,
        score_threshold=asked.score_threshold,
        limit=asked.limit,
    )
    check_quota(request)
    snapshot = services_of(request).live_library.current
    found = await _first_page(request, snapshot, query, asked.per_page, "text")
    return await _answer(request, snapshot, found, fields)


@post(
    _SEARCH,
    status_code=200,
    opt=Operation(
        operation_id="searchPhotosByImage",
        summary="Search photos by a picture, or by an indexed photo",
        description="Either a picture in the part `image`, or `photo_id`. For later pages send "
        "just `cursor`; it remembers picture and filters.",
        parameters=ImageSearch,
        picture=True,
        data=list[Photo],
        paginated=True,
        replayable=True,
        problems=(
            "INVALID_FIELDS",
            "NOT_FOUND",
            "CURSOR_EXPIRED",
            "PAYLOAD_TOO_LARGE",
            "UNSUPPORTED_MEDIA_TYPE",
            "QUOTA_EXCEEDED",
        ),
    ).opt,
)
async def search_by_image(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Search photos by a picture, or by an indexed photo."""
    going_on = read(NextPage, request)
    fields = select_fields(going_on.fields, plan_of(request))
    asked = None if going_on.cursor else read(ImageSearch, request)
    picture = None
    if asked is not None:
        services = services_of(request)
        picture = await read_picture(request, services.settings, services.slots)
    async with claim(request, await fingerprint_of(request, picture)) as claimed:
        if claimed.replay is not None:
            return claimed.replay
        if asked is None:
            check_quota(request)
            snapshot, found = await _next_page(request, going_on.cursor or "", "image")
        else:
            snapshot, found = await _first_by_image(request, asked, picture)
        return await _answer(request, snapshot, found, fields, claimed)


async def _first_by_image(
    request: Request[Any, Any, Any], asked: ImageSearch, picture: bytes | None
) -> tuple[ServedSnapshot, Slice]:
    if (picture is None) == (asked.photo_id is None):
        came = "neither" if picture is None else "both"
        msg = f"a search must bring either the part image or photo_id, got {came}"
        raise Invalid([Detail(("query", "photo_id"), msg, "one_of")])
    services = services_of(request)
    query = Query(
        text=asked.q,
        image=picture,
        photo_id=asked.photo_id,
        text_alpha=asked.text_alpha,
        filter=_filter(asked),
        sort_by=asked.sort_by,
        score_threshold=asked.score_threshold,
        limit=_capped(request, asked.limit, asked.per_page, by_photo=picture is None),
    )
    check_quota(request)
    snapshot, reference = services.live_library.current, None
    if picture is None:
        snapshot.row_of(asked.photo_id or "")
    else:
        with context_of(request).timed("decode"):
            reference = await services.slots.run(reference_of, snapshot.engine, query)
    found = await _first_page(
        request, snapshot, query, asked.per_page, "image", reference=reference
    )
    return snapshot, found


def _capped(
    request: Request[Any, Any, Any], limit: int | None, per_page: int, *, by_photo: bool
) -> int | None:
    if not by_photo or plan_of(request).similar_paged:
        return limit
    return min(per_page, limit or per_page)


@get(
    "/api/v1/photos/{photo_id:str}/similar",
    opt=Operation(
        operation_id="similarPhotos",
        summary="Photos similar to an indexed one",
        description="What the search by `photo_id` alone returns. Some plans see one page.",
        parameters=Similar,
        data=list[Photo],
        paginated=True,
        problems=("INVALID_FIELDS", "NOT_FOUND", "CURSOR_EXPIRED", "QUOTA_EXCEEDED"),
    ).opt,
)
async def similar_photos(
    request: Request[Any, Any, Any], photo_id: FromPath[str]
) -> Response[bytes]:
    """Photos similar to an indexed one."""
    going_on = read(NextPage, request)
    fields = select_fields(going_on.fields, plan_of(request))
    operation = f"similar:{photo_id}"
    if going_on.cursor:
        check_quota(request)
        snapshot, found = await _next_page(request, going_on.cursor, operation)
        return await _answer(request, snapshot, found, fields)
    asked = read(Similar, request)
    services_of(request).live_library.current.row_of(photo_id)
    limit = _capped(request, asked.limit, asked.per_page, by_photo=True)
    query = Query(photo_id=photo_id, limit=limit)
    check_quota(request)
    snapshot = services_of(request).live_library.current
    snapshot.row_of(photo_id)
    found = await _first_page(request, snapshot, query, asked.per_page, operation)
    return await _answer(request, snapshot, found, fields)


ROUTES = [search_by_text, search_by_image, similar_photos]
