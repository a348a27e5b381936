"""Search photos by text (4.1) and by picture (4.2), and photos similar to one (4.3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from litestar import Request, Response, get, post
from litestar.params import FromPath

from searchlab.api import searches
from searchlab.api.accounts.idempotency import RequestClaim, claim
from searchlab.api.http.context import RequestContext, caller_of, context_of, services_of
from searchlab.api.http.uploads import hash_picture, read_picture
from searchlab.api.searches import FirstPage, cap_similar
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.wire.envelope import JsonAnswer, enclose_parts
from searchlab.api.wire.errors import Invalid, invalid
from searchlab.api.wire.operations import Operation
from searchlab.api.wire.parameters import read, select_fields
from searchlab.api.wire.requests import Conditions, ImageSearch, NextPage, Similar, TextSearch
from searchlab.api.wire.schema import Detail, Pagination, Photo
from searchlab.search.filters.photo_filter import EVERY_PHOTO, PhotoFilter
from searchlab.search.queries import Query, Slice

_SEARCH = "/api/v1/search/photos"

AnyRequest = Request[Any, Any, Any]

# Filters have conditions of our own too, which the API does not offer.
_CONDITIONS = tuple(
    field.name
    for field in dataclasses.fields(PhotoFilter)
    if field.name in Conditions.__struct_fields__
)
_NO_CONDITIONS = {name: getattr(EVERY_PHOTO, name) for name in _CONDITIONS}


class _PageRequest(NamedTuple):
    """What every request says: its cursor, empty for the first page, and the selected fields."""

    cursor: str
    fields: tuple[str, ...]


def _read_page(request: AnyRequest) -> _PageRequest:
    parameters = read(NextPage, request)
    fields = select_fields(parameters.fields, context_of(request).plan)
    return _PageRequest(parameters.cursor or "", fields)


def _make_filter(parameters: Conditions) -> PhotoFilter:
    conditions = {name: getattr(parameters, name) for name in _CONDITIONS}
    return EVERY_PHOTO if conditions == _NO_CONDITIONS else PhotoFilter(**conditions)


async def _answer_page(
    request: AnyRequest,
    page: _PageRequest,
    operation: str,
    read_first: Callable[[], FirstPage],
    claimed: RequestClaim | None = None,
) -> Response[bytes]:
    """Answer the page that a cursor leads to, or the first one.

    Args:
        request: A request to one of the search operations.
        page: Its cursor and fields.
        operation: Name that cursors are bound to, together with the account.
        read_first: Reads the rest of a request without a cursor.
        claimed: The claim on its `Idempotency-Key`; the answer is recorded when it is counted.
    """
    context = context_of(request)
    first = page.cursor or read_first()
    ranked = await searches.rank(request, first, operation)
    with context.measure("serialise"):
        body = _encode(context, *ranked, page.fields)
    await searches.count(request, ranked, claimed=claimed, body=body)
    return JsonAnswer(body)


def _encode(
    context: RequestContext, snapshot: ServedSnapshot, ranked: Slice, fields: tuple[str, ...]
) -> bytes:
    photos = snapshot.photos.records(
        ranked.rows.tolist(), ranked.scores.tolist(), fields=fields, base_url=context.base_url
    )
    has_more = ranked.next_cursor is not None
    pagination = Pagination(ranked.per_page, has_more, ranked.next_cursor)
    return enclose_parts(context, photos, pagination=pagination)


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


def _read_text_search(request: AnyRequest) -> FirstPage:
    parameters = read(TextSearch, request)
    conditions = _make_filter(parameters)
    if parameters.q is None and conditions.is_empty:
        msg = "a search must have q or a filter, got neither"
        if "photo_id" in request.query_params:
            msg += "; POST searches by photo_id"
        raise invalid(("query", "q"), msg)
    query = Query(
        text=parameters.q,
        filter=conditions,
        sort_by=parameters.sort_by,
        score_threshold=_threshold(parameters),
        limit=parameters.limit,
    )
    return FirstPage(query, parameters.per_page)


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
    with services.slots.bodies.holding(caller_of(request).account_id) as take:
        if not page.cursor:
            parameters = read(ImageSearch, request)
            picture = await read_picture(request, services.settings, take)
        async with claim(request, await hash_picture(request, picture)) as claimed:
            if claimed.replay is not None:
                return claimed.replay
            read_first = partial(_read_image_search, request, parameters, picture)
            return await _answer_page(request, page, "image", read_first, claimed)


def _read_image_search(
    request: AnyRequest, parameters: ImageSearch, picture: bytes | None
) -> FirstPage:
    embedded = context_of(request).picture if picture is None else None
    image = picture if embedded is None else embedded.stand_in
    if (image is None) == (parameters.photo_id is None):
        came = "neither" if image is None else "both"
        msg = f"a search must bring either the part image or photo_id, got {came}"
        raise Invalid([Detail(("query", "photo_id"), msg, "one_of")])
    limit, per_page = parameters.limit, parameters.per_page
    query = Query(
        text=parameters.q,
        image=image,
        photo_id=parameters.photo_id,
        text_alpha=parameters.text_alpha,
        filter=_make_filter(parameters),
        sort_by=parameters.sort_by,
        score_threshold=_threshold(parameters),
        limit=cap_similar(request, limit, per_page) if image is None else limit,
    )
    if embedded is None:
        return FirstPage(query, per_page)
    embedded.check_model(services_of(request).live_library.current.engine.config.model_id)
    return FirstPage(query, per_page, reference=embedded.vector)


def _threshold(parameters: TextSearch | ImageSearch) -> float | None:
    """Return the least score; by date it is 0 if unset, for both orders show the same photos."""
    if parameters.score_threshold is None and parameters.sort_by == "newest":
        return 0.0
    return parameters.score_threshold


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

    def read_first() -> FirstPage:
        parameters = read(Similar, request)
        services_of(request).live_library.current.row_of(photo_id)
        limit = cap_similar(request, parameters.limit, parameters.per_page)
        return FirstPage(Query(photo_id=photo_id, limit=limit), parameters.per_page)

    return await _answer_page(request, _read_page(request), f"similar:{photo_id}", read_first)


ROUTES = [search_by_text, search_by_image, similar_photos]
