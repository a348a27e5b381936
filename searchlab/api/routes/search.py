"""Search photos by text (4.1) and by picture (4.2), and photos similar to one (4.3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from litestar import Request, Response, get, post
from litestar.params import FromPath

from searchlab.api.accounts.idempotency import Claim, claim
from searchlab.api.accounts.rates import seconds_left_in_month
from searchlab.api.http.context import RequestContext, caller_of, context_of, services_of
from searchlab.api.http.uploads import embed_reference, hash_picture, read_picture
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.wire.envelope import JsonAnswer, enclose
from searchlab.api.wire.errors import HttpProblem, Invalid
from searchlab.api.wire.operations import Operation
from searchlab.api.wire.parameters import read, select_fields
from searchlab.api.wire.requests import Conditions, ImageSearch, NextPage, Similar, TextSearch
from searchlab.api.wire.schema import Detail, Pagination, Photo
from searchlab.errors import QuotaError
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query, Slice

_SEARCH = "/api/v1/search/photos"

AnyRequest = Request[Any, Any, Any]

# Filters have conditions of our own too, which the API does not offer.
_CONDITIONS = tuple(
    field.name
    for field in dataclasses.fields(PhotoFilter)
    if field.name in Conditions.__struct_fields__
)
_ANY_PHOTO = PhotoFilter()
_NO_CONDITIONS = {name: getattr(_ANY_PHOTO, name) for name in _CONDITIONS}


class _First(NamedTuple):
    """A request for a first page, which comes without a cursor."""

    query: Query
    per_page: int


class _Page(NamedTuple):
    """What every request says: its cursor, empty for the first page, and the selected fields."""

    cursor: str
    fields: tuple[str, ...]


def _read_page(request: AnyRequest) -> _Page:
    parameters = read(NextPage, request)
    fields = select_fields(parameters.fields, context_of(request).plan)
    return _Page(parameters.cursor or "", fields)


def _make_filter(parameters: Conditions) -> PhotoFilter:
    conditions = {name: getattr(parameters, name) for name in _CONDITIONS}
    return _ANY_PHOTO if conditions == _NO_CONDITIONS else PhotoFilter(**conditions)


async def _answer_page(
    request: AnyRequest,
    page: _Page,
    operation: str,
    read_first: Callable[[], _First],
    claimed: Claim | None = None,
) -> Response[bytes]:
    """Answer the page that a cursor leads to, or the first one.

    Args:
        request: A request to one of the search operations.
        page: Its cursor and fields.
        operation: Name that cursors are bound to, together with the account.
        read_first: Reads the rest of a request without a cursor.
        claimed: The claim on its `Idempotency-Key`; the answer is recorded when it is counted.
    """
    context, services = context_of(request), services_of(request)
    audience = f"{caller_of(request).account_id}:{operation}"
    first = None if page.cursor else read_first()
    _check_quota(request)
    if first is None:
        snapshot, ranked = await _rank_next(request, page.cursor, audience)
    else:
        snapshot, ranked = await _rank_first(request, first, audience)
    context.timings.update(ranked.timings)
    plan = ranked.plan
    context.headers |= {
        "X-Searchlab-Config": snapshot.engine.config.config_id,
        "X-Searchlab-Snapshot": snapshot.engine.snapshot_id,
        "X-Searchlab-Plan": (
            f"{plan.mode}; candidates={plan.n_allowed}; selectivity={plan.selectivity:.6f}"
        ),
    }
    context.facts |= {"plan_mode": plan.mode, "results": len(ranked.rows)}
    with context.measure("serialise"):
        body = _encode(context, snapshot, ranked, page.fields)
    await _count_search(request, claimed, body)
    services.metrics.count_search(plan.mode)
    return JsonAnswer(body)


async def _rank_first(
    request: AnyRequest, first: _First, audience: str
) -> tuple[ServedSnapshot, Slice]:
    services = services_of(request)
    snapshot, reference = services.live_library.current, None
    query, per_page = first
    if query.photo_id is not None:
        snapshot.row_of(query.photo_id)
    if query.image is not None:
        with context_of(request).measure("decode"):
            reference = await services.slots.run(embed_reference, snapshot.engine, query)
    rank = partial(
        snapshot.engine.slice,
        query,
        per_page=per_page,
        audience=audience,
        live=snapshot.live,
        reference=reference,
    )
    if snapshot.is_short(query, per_page):
        return snapshot, rank()
    return snapshot, await services.search_threads.run(rank)


async def _rank_next(
    request: AnyRequest, token: str, audience: str
) -> tuple[ServedSnapshot, Slice]:
    services = services_of(request)
    cursor = services.live_library.library.open_cursor(token, audience=audience)
    snapshot = await services.live_library.at(cursor.snapshot_id)
    rank = partial(snapshot.engine.slice, cursor=cursor, audience=audience, live=snapshot.live)
    if snapshot.is_short(cursor.query, cursor.position + cursor.per_page):
        return snapshot, rank()
    return snapshot, await services.search_threads.run(rank)


def _encode(
    context: RequestContext, snapshot: ServedSnapshot, ranked: Slice, fields: tuple[str, ...]
) -> bytes:
    photos = snapshot.photos.records(
        ranked.rows.tolist(), ranked.scores.tolist(), fields=fields, base_url=context.base_url
    )
    has_more = ranked.next_cursor is not None
    pagination = Pagination(ranked.per_page, has_more, ranked.next_cursor)
    return enclose(context, success=True, data=photos, pagination=pagination)


# -- the monthly quota ------------------------------------------------------------------------


def _check_quota(request: AnyRequest) -> None:
    """Refuse a search, before anything is computed, if the account's monthly quota is used up."""
    context = context_of(request)
    if context.used is not None and context.used >= context.plan.requests_per_month:
        raise _quota_exceeded(request)


async def _count_search(request: AnyRequest, claimed: Claim | None, body: bytes) -> None:
    """Count a search; returns when the count is committed, so that no answer leaves uncounted."""
    context = context_of(request)
    limit = context.plan.requests_per_month
    also = None if claimed is None else claimed.make_record(200, body)
    try:
        with context.measure("count"):
            meter = services_of(request).meter
            context.used = await meter.count(caller_of(request), limit=limit, also=also)
    except QuotaError:
        context.used = limit
        raise _quota_exceeded(request) from None


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


# -- the operations ---------------------------------------------------------------------------


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
async def search_by_text(request: AnyRequest) -> Response[bytes]:
    """Search photos by text and filters."""
    read_first = partial(_read_text_search, request)
    return await _answer_page(request, _read_page(request), "text", read_first)


def _read_text_search(request: AnyRequest) -> _First:
    parameters = read(TextSearch, request)
    query = Query(
        text=parameters.q,
        filter=_make_filter(parameters),
        sort_by=parameters.sort_by,
        score_threshold=_threshold(parameters),
        limit=parameters.limit,
    )
    return _First(query, parameters.per_page)


@post(
    _SEARCH,
    status_code=200,
    opt=Operation(
        operation_id="searchPhotosByImage",
        summary="Search photos by a picture, or by an indexed photo",
        description="Either a picture in the part `image`, or `photo_id`. For later pages send "
        "only `cursor`, which holds the picture and the filters.",
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
async def search_by_image(request: AnyRequest) -> Response[bytes]:
    """Search photos by a picture, or by an indexed photo."""
    page, services = _read_page(request), services_of(request)
    parameters, picture = ImageSearch(), None
    if not page.cursor:
        parameters = read(ImageSearch, request)
        picture = await read_picture(request, services.settings, services.slots)
    async with claim(request, await hash_picture(request, picture)) as claimed:
        if claimed.replay is not None:
            return claimed.replay
        read_first = partial(_read_image_search, request, parameters, picture)
        return await _answer_page(request, page, "image", read_first, claimed)


def _read_image_search(
    request: AnyRequest, parameters: ImageSearch, picture: bytes | None
) -> _First:
    if (picture is None) == (parameters.photo_id is None):
        came = "neither" if picture is None else "both"
        msg = f"a search must bring either the part image or photo_id, got {came}"
        raise Invalid([Detail(("query", "photo_id"), msg, "one_of")])
    limit, per_page = parameters.limit, parameters.per_page
    query = Query(
        text=parameters.q,
        image=picture,
        photo_id=parameters.photo_id,
        text_alpha=parameters.text_alpha,
        filter=_make_filter(parameters),
        sort_by=parameters.sort_by,
        score_threshold=_threshold(parameters),
        limit=_cap_similar(request, limit, per_page) if picture is None else limit,
    )
    return _First(query, per_page)


def _threshold(parameters: TextSearch | ImageSearch) -> float | None:
    """Return the least score; by date it is 0 if unset, for both orders show the same photos."""
    if parameters.score_threshold is None and parameters.sort_by == "newest":
        return 0.0
    return parameters.score_threshold


def _cap_similar(request: AnyRequest, limit: int | None, per_page: int) -> int | None:
    """Limit a search by an indexed photo to one page, unless the plan allows more."""
    if context_of(request).plan.similar_paged:
        return limit
    return min(per_page, limit or per_page)


@get(
    "/api/v1/photos/{photo_id:str}/similar",
    opt=Operation(
        operation_id="similarPhotos",
        summary="Photos similar to an indexed one",
        description="The same as the search by `photo_id` alone. Some plans get one page only.",
        parameters=Similar,
        data=list[Photo],
        paginated=True,
        problems=("INVALID_FIELDS", "NOT_FOUND", "CURSOR_EXPIRED", "QUOTA_EXCEEDED"),
    ).opt,
)
async def similar_photos(request: AnyRequest, photo_id: FromPath[str]) -> Response[bytes]:
    """Photos similar to an indexed one."""

    def read_first() -> _First:
        parameters = read(Similar, request)
        services_of(request).live_library.current.row_of(photo_id)
        limit = _cap_similar(request, parameters.limit, parameters.per_page)
        return _First(Query(photo_id=photo_id, limit=limit), parameters.per_page)

    return await _answer_page(request, _read_page(request), f"similar:{photo_id}", read_first)


ROUTES = [search_by_text, search_by_image, similar_photos]
