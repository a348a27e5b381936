"""A photo's page: the picture, all that others are shown of it, its credit, and similar photos."""

from __future__ import annotations

from typing import Any, NamedTuple

from litestar import Request, Response, get
from litestar.params import FromPath

from searchlab.api import searches
from searchlab.api.http.context import services_of
from searchlab.api.searches import FirstPage, cap_similar
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.web.grid import (
    Card,
    address_of,
    blur_address,
    caption_of,
    credit_of,
    make_cards,
    ratio_class,
    sources_of,
)
from searchlab.api.web.search_state import SearchState
from searchlab.api.web.templates import respond, root_of
from searchlab.api.web.visitor import Visitor, sign_in_first, visitor_of
from searchlab.api.wire.errors import HttpProblem
from searchlab.library.renditions import SIDES
from searchlab.photos.licenses import RESTRICTIONS, license_label, license_url, restrictions
from searchlab.photos.photo import Photo
from searchlab.search.queries import Query

AnyRequest = Request[Any, Any, Any]

_SIMILAR = 12
_MOST_COLLECTIONS = 30


@get("/photos/{photo_id:str}")
async def show_photo(request: AnyRequest, photo_id: FromPath[str]) -> Response[bytes]:
    """Show a photo."""
    visitor = visitor_of(request)
    if visitor is None:
        raise sign_in_first(what="photos are")
    services, root = services_of(request), root_of(request)
    snapshot = services.live_library.current
    photo = snapshot.engine.table.photo(snapshot.row_of(photo_id))
    similar, quota_note = await _find_similar(request, snapshot, photo_id)
    return respond(
        request,
        "photo.html",
        remote_pictures=snapshot.facets.has_remote_pictures.get(),
        photo=photo,
        title=photo.source_description.strip() or photo.alt_description,
        alt=caption_of(photo),
        credit=credit_of(photo),
        ratio_class=ratio_class(photo.width / photo.height),
        blur=blur_address(photo.blur_hash, photo.width / photo.height),
        src=address_of(snapshot, photo, "regular", root),
        sources=sources_of(snapshot, photo, tuple(SIDES), root),
        full=address_of(snapshot, photo, "full", root),
        facts=_list_facts(photo, show_places=services.settings.show_places),
        license_name=license_label(photo.license_type),
        license_link=license_url(photo.license_type),
        cautions=sorted(RESTRICTIONS[word] for word in restrictions(photo.license_type)),
        colors=_list_colors(photo),
        similar=similar,
        similar_address=SearchState(photo_id=photo_id).address,
        quota_note=quota_note,
        collections=await _list_collections(request, visitor),
    )


async def _find_similar(
    request: AnyRequest, snapshot: ServedSnapshot, photo_id: str
) -> tuple[list[Card], str]:
    """Search similar photos, which counts as it does in the API; the page goes without if used up.

    Returns:
        The photos, and why there are none.
    """
    query = Query(photo_id=photo_id, limit=cap_similar(request, _SIMILAR, _SIMILAR))
    first = FirstPage(query=query, per_page=_SIMILAR, snapshot=snapshot)
    try:
        ranked = await searches.rank(request, first, "page")
        await searches.count(request, ranked)
    except HttpProblem as problem:
        if problem.kind.code != "QUOTA_EXCEEDED":
            raise
        return [], problem.message
    part, root = ranked.part, root_of(request)
    return make_cards(snapshot, part.rows.tolist(), root=root, scores=part.scores.tolist()), ""


async def _list_collections(request: AnyRequest, visitor: Visitor) -> list[dict[str, Any]]:
    if not visitor.is_signed_in:
        return []
    services = services_of(request)
    listed = await services.in_database(services.collections.list, visitor.account_id)
    return sorted(listed, key=lambda one: one["updated_at"], reverse=True)[:_MOST_COLLECTIONS]


class _Fact(NamedTuple):
    """A line of the table; `address` leads to a search for it or to a page elsewhere."""

    name: str
    value: str
    address: str = ""
    is_elsewhere: bool = False


def _list_facts(photo: Photo, *, show_places: bool) -> list[_Fact]:
    megapixels = photo.width * photo.height / 1e6
    size = f"{photo.width:,} × {photo.height:,}"
    if megapixels >= 0.1:
        size += f" ({megapixels:.1f} megapixels)"
    by_photographer = ""
    if photo.photographer_username:
        by_photographer = SearchState(photographer=photo.photographer_username).address
    facts = [
        _Fact("Photographer", photo.photographer_full_name, by_photographer),
        _Fact("Username", photo.photographer_username, by_photographer),
        _Fact("Profile", photo.photographer_url, photo.photographer_url, True),
        _Fact("Published", photo.uploaded_on, SearchState(after_date=photo.uploaded_on).address),
        _Fact("Size", size),
        _Fact(
            "Orientation", photo.orientation, SearchState(orientation=(photo.orientation,)).address
        ),
        _Fact("Source", photo.source, SearchState(source=(photo.source,)).address),
        _Fact("At the source", photo.source_image_url, photo.source_image_url, True),
        _Fact("Identifier there", photo.source_photo_id),
        _Fact("Description", photo.description),
        _Fact("In short", photo.alt_description),
        _Fact("Identifier", photo.photo_id),
    ]
    if show_places:
        facts += [
            _Fact("Place", photo.place),
            _Fact("Keywords", ", ".join(photo.tags)),
            _Fact("File", photo.file),
        ]
    return [fact for fact in facts if fact.value]


class _Color(NamedTuple):
    """A colour of the photo, and the search for it; `percent` is None for the dominant one."""

    shade: str
    percent: int | None
    address: str


def _list_colors(photo: Photo) -> list[_Color]:
    main = SearchState(color_hex=photo.color_hex).address
    others = [
        _Color(shade, percent, SearchState(palette=(shade,)).address)
        for shade, percent in photo.palette
    ]
    return [_Color(photo.color_hex, None, main), *others]


ROUTES = [show_photo]
