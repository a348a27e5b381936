"""The API's operations: each function describes one request, which either client can send."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import quote

import msgspec

from searchlab.api.wire import schema
from searchlab.client.calls import Call, PageCall
from searchlab.client.records import Envelope, Photo
from searchlab.client.uploads import picture_bytes
from searchlab.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

Words = str | Sequence[str]

_reads = msgspec.json.Decoder
_PHOTOS = _reads(Envelope[list[Photo]])
_PHOTO = _reads(Envelope[Photo])
_COLORS = _reads(Envelope[list[schema.Color]])
_SOURCES = _reads(Envelope[list[schema.Source]])
_ORIENTATIONS = _reads(Envelope[list[schema.OrientationName]])
_LICENSES = _reads(Envelope[list[schema.License]])
_PHOTOGRAPHERS = _reads(Envelope[list[schema.Photographer]])
_COLLECTIONS = _reads(Envelope[list[schema.Collection]])
_COLLECTION = _reads(Envelope[schema.Collection])
_FULL_COLLECTION = _reads(Envelope[schema.CollectionWithPhotos])
_ENTRY = _reads(Envelope[schema.CollectionPhoto])
_DELETED = _reads(Envelope[schema.Deleted])
_USAGE = _reads(Envelope[schema.Usage])
_MONTHLY = _reads(Envelope[schema.MonthlyUsage])
_DAILY = _reads(Envelope[schema.DailyUsage])
_BY_KEY = _reads(Envelope[schema.UsageByKey])


class Filters(TypedDict, total=False):
    """The parameters of every search beside its words and picture.

    A word or several may be given for `orientation`, `source`, `license_type` and `fields`.
    """

    color_name: str | None
    color_hex: str | None
    color_tolerance: int | None
    orientation: Words | None
    source: Words | None
    license_type: Words | None
    photographer: str | None
    after_date: str | datetime.date | None
    sort_by: str | None
    score_threshold: float | None
    limit: int | None
    per_page: int | None
    fields: Words | None


# -- searches ---------------------------------------------------------------------------------


def search(
    q: str | None = None, *, cursor: str | None = None, **filters: Unpack[Filters]
) -> PageCall:
    """Search by words, in many languages, by filters, or by both."""
    params = _params({"q": q, "cursor": cursor}, filters)
    return PageCall(method="GET", path="/search/photos", answers=_PHOTOS, params=params)


def search_by_image(
    image: str | os.PathLike[str] | bytes | Image | None = None,
    q: str | None = None,
    *,
    photo_id: str | None = None,
    text_alpha: float | None = None,
    cursor: str | None = None,
    idempotency_key: str | None = None,
    **filters: Unpack[Filters],
) -> PageCall:
    """Search by a picture (a path, its bytes, or a PIL image), or by an indexed photo's id.

    `q` steers the match, with the weight `text_alpha` (0 to 10). With an `idempotency_key`, a
    repeated request gets the first answer again and counts once against the plan.
    """
    own = {"q": q, "photo_id": photo_id, "text_alpha": text_alpha, "cursor": cursor}
    return PageCall(
        method="POST",
        path="/search/photos",
        answers=_PHOTOS,
        params=_params(own, filters),
        image=None if image is None else picture_bytes(image),
        idempotency_key=idempotency_key,
    )


def similar(
    photo_id: str,
    *,
    per_page: int | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    fields: Words | None = None,
) -> PageCall:
    """Find the photos that look like an indexed one."""
    own = {"per_page": per_page, "limit": limit, "cursor": cursor}
    params = _params(own, {"fields": fields})
    path = f"/photos/{_segment('photo_id', photo_id)}/similar"
    return PageCall(method="GET", path=path, answers=_PHOTOS, params=params)


def photo(photo_id: str, *, fields: Words | None = None) -> Call[Photo]:
    """Get one photo."""
    path = f"/photos/{_segment('photo_id', photo_id)}"
    return Call(method="GET", path=path, answers=_PHOTO, params=_params({}, {"fields": fields}))


# -- facets -----------------------------------------------------------------------------------


def colors() -> Call[list[schema.Color]]:
    """List the names that `color_name` takes."""
    return Call(method="GET", path="/facets/colors", answers=_COLORS)


def sources() -> Call[list[schema.Source]]:
    """List the names that `source` takes."""
    return Call(method="GET", path="/facets/sources", answers=_SOURCES)


def orientations() -> Call[list[schema.OrientationName]]:
    """List the names that `orientation` takes."""
    return Call(method="GET", path="/facets/orientations", answers=_ORIENTATIONS)


def licenses() -> Call[list[schema.License]]:
    """List the names that `license_type` takes."""
    return Call(method="GET", path="/facets/licenses", answers=_LICENSES)


def suggest_photographers(q: str, *, limit: int | None = None) -> Call[list[schema.Photographer]]:
    """Find photographers by any part of their name or username."""
    path = "/facets/photographers/suggest"
    params = _params({"q": q, "limit": limit}, {})
    return Call(method="GET", path=path, answers=_PHOTOGRAPHERS, params=params)


def photographer(username: str) -> Call[list[schema.Photographer]]:
    """Get the profiles of a username, one for each upstream library; none if it is unknown."""
    path = f"/facets/photographers/{_segment('username', username)}"
    return Call(method="GET", path=path, answers=_PHOTOGRAPHERS)


# -- collections ------------------------------------------------------------------------------


def collections() -> Call[list[schema.Collection]]:
    """List the account's collections."""
    return Call(method="GET", path="/collections", answers=_COLLECTIONS)


def create_collection(
    name: str,
    *,
    description: str | None = None,
    is_public: bool = False,
    idempotency_key: str | None = None,
) -> Call[schema.Collection]:
    """Create a collection without photos."""
    return Call(
        method="POST",
        path="/collections",
        answers=_COLLECTION,
        json={"name": name, "description": description, "is_public": is_public},
        idempotency_key=idempotency_key,
    )


def collection(collection_id: int) -> Call[schema.CollectionWithPhotos]:
    """Get a collection with its photos."""
    path = f"/collections/{_number('collection_id', collection_id)}"
    return Call(method="GET", path=path, answers=_FULL_COLLECTION)


def delete_collection(collection_id: int) -> Call[schema.Deleted]:
    """Delete a collection and every entry saved in it; the photos stay."""
    path = f"/collections/{_number('collection_id', collection_id)}"
    return Call(method="DELETE", path=path, answers=_DELETED)


def add_photo(
    collection_id: int, photo: str | Photo, *, idempotency_key: str | None = None
) -> Call[schema.CollectionPhoto]:
    """Save a photo, given as a record or by its id, in a collection."""
    return Call(
        method="POST",
        path=f"/collections/{_number('collection_id', collection_id)}/photos",
        answers=_ENTRY,
        json=_entry(photo),
        idempotency_key=idempotency_key,
    )


def remove_photo(collection_id: int, photo_id: str) -> Call[schema.Deleted]:
    """Take a photo out of a collection."""
    number, segment = _number("collection_id", collection_id), _segment("photo_id", photo_id)
    path = f"/collections/{number}/photos/{segment}"
    return Call(method="DELETE", path=path, answers=_DELETED)


# -- usage ------------------------------------------------------------------------------------


def usage() -> Call[schema.Usage]:
    """Get the requests of this month and what the plan leaves."""
    return Call(method="GET", path="/usage", answers=_USAGE)


def monthly_usage(months: int | None = None) -> Call[schema.MonthlyUsage]:
    """Count the requests of the last months, 1 to 24, the most recent first."""
    params = _params({"months": months}, {})
    return Call(method="GET", path="/usage/monthly", answers=_MONTHLY, params=params)


def daily_usage(days: int | None = None) -> Call[schema.DailyUsage]:
    """Count the requests of the last days, 1 to 90, the oldest first."""
    params = _params({"days": days}, {})
    return Call(method="GET", path="/usage/daily", answers=_DAILY, params=params)


def usage_by_key() -> Call[schema.UsageByKey]:
    """Count the requests of each key of the account, of each connected app, and of the pages."""
    return Call(method="GET", path="/usage/by-key", answers=_BY_KEY)


# -- parts of requests ------------------------------------------------------------------------


def _params(own: Mapping[str, Any], filters: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    unknown = sorted(set(filters) - Filters.__optional_keys__)
    if unknown:
        msg = f"got an unexpected keyword argument {unknown[0]!r}"
        raise TypeError(msg)
    pairs = []
    for name, value in {**own, **filters}.items():
        if value is None:
            continue
        values = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        texts = [str(each) for each in values]
        pairs += [(name, ",".join(texts))] if name == "fields" else [(name, t) for t in texts]
    return tuple(pairs)


def _segment(name: str, value: str) -> str:
    if not isinstance(value, str) or not value:
        msg = f"{name} must be a string that is not empty, got {value!r}"
        raise InputError(msg)
    if value in {".", ".."}:  # would be resolved as a relative path
        return value.replace(".", "%2E")
    try:
        return quote(value, safe="")
    except UnicodeEncodeError:
        msg = f"{name} must be Unicode without lone surrogates, got {value!r}"
        raise InputError(msg) from None


def _number(name: str, value: int) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        msg = f"{name} must be an integer, got {value!r}"
        raise InputError(msg)
    return str(value)


def _entry(photo: str | Photo) -> dict[str, str]:
    if isinstance(photo, str):
        return {"photo_id": photo}
    entry = {
        "photo_id": photo.photo_id,
        "photo_thumbnail_url": _lasting_thumbnail(photo),
        "photo_source": (photo.source or "")[: schema.MAX_PHOTO_TEXT],
        "photo_photographer": (photo.photographer_full_name or "")[: schema.MAX_PHOTO_TEXT],
    }
    return {name: value for name, value in entry.items() if value}


def _lasting_thumbnail(photo: Photo) -> str:
    """Return a photo's thumbnail at its library; empty where the server itself has the picture.

    The server moves, and its pictures change: without a link it fills in the current one.
    """
    url = photo.urls.thumb if photo.urls else ""
    is_its_own = f"/media/{photo.photo_id}/" in url.partition("?")[0]
    return "" if is_its_own or len(url) > schema.MAX_ADDRESS else url
