"""What the pages show of a collection: its photos as they are now, page by page, and credits."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final, NamedTuple

from litestar import Request

from searchlab.api.http.context import context_of, services_of
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.web.grid import Card, are_remote, make_cards, page_address, sources_of
from searchlab.api.web.templates import root_of
from searchlab.api.web.visitor import visitor_of
from searchlab.api.wire.parameters import query_value
from searchlab.errors import InputError, NotFoundError, quote
from searchlab.photos.photo import web_url

AnyRequest = Request[Any, Any, Any]
PHOTOS_A_PAGE: Final = 60
COLLECTIONS_A_PAGE: Final = 24


class ListPage(NamedTuple):
    """One page of a longer list.

    Attributes:
        number: Number of the page, from 1.
        n_pages: Number of pages, at least 1.
        start: Place of its first entry in the list.
        stop: Place after its last entry.
    """

    number: int
    n_pages: int
    start: int
    stop: int


class Cover(NamedTuple):
    """The picture of a collection; its addresses are empty where there is none."""

    src: str
    sources: str


class Credit(NamedTuple):
    """Credit of a photo.

    Attributes:
        plain: As text to copy.
        html: As HTML to copy.
        address: The photo's page here for a visitor, and at its library for anybody else; empty
            where there is none.
    """

    plain: str
    html: str
    address: str


def read_part(request: AnyRequest, n_entries: int, per_page: int) -> ListPage:
    """Read which page of a list is asked for; one behind the last is the last.

    Raises:
        InputError: `page` is no number from 1.
    """
    text = query_value(request, "page", "1")
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        msg = f"page must be a number from 1, got {quote(text)}"
        raise InputError(msg)
    n_pages = max(1, -(-n_entries // per_page))
    number = min(int(text), n_pages)
    return ListPage(number, n_pages, (number - 1) * per_page, number * per_page)


def contents_of(request: AnyRequest, collection: dict[str, Any]) -> dict[str, Any]:
    """Return what the page of a collection shows, as templates name it.

    Args:
        request: Names the page of its photos.
        collection: As the store has it, with all of its photos.

    Returns:
        Its fields, the entries of this page, the cards of those that are in the library, the
        entries of those that are gone, the address to share, and whether pictures lie elsewhere.
    """
    entries = collection["photos"]
    part = read_part(request, len(entries), PHOTOS_A_PAGE)
    shown = entries[part.start : part.stop]
    cards = cards_of(request, [entry["photo_id"] for entry in shown])
    return {
        "collection": {name: value for name, value in collection.items() if name != "photos"},
        "part": part,
        "shown": shown,
        "cards": list(cards.values()),
        "gone": [entry for entry in shown if entry["photo_id"] not in cards],
        "share_url": f"{context_of(request).base_url}/c/{collection['id']}",
        "remote_pictures": are_remote(card.src for card in cards.values()),
    }


def cards_of(request: AnyRequest, photo_ids: Sequence[str]) -> dict[str, Card]:
    """Describe photos for a grid, by their ids; those that left the library are missing.

    A public collection needs no account, but the page of a photo does: without a visitor the
    pictures lead to what anybody may open.
    """
    snapshot = services_of(request).live_library.current
    rows = _rows(snapshot, photo_ids)
    is_visited = visitor_of(request) is not None
    cards = make_cards(snapshot, list(rows.values()), root=root_of(request), to_pages=is_visited)
    return dict(zip(rows, cards, strict=True))


def covers_of(request: AnyRequest, photo_ids: Sequence[str]) -> dict[str, Cover]:
    """Return the pictures of covers, by photo_id."""
    snapshot, root = services_of(request).live_library.current, root_of(request)
    rows = _rows(snapshot, photo_ids)
    photos = snapshot.engine.table.photos(list(rows.values()))
    return {
        photo.photo_id: Cover(
            snapshot.photos.link(photo.urls["thumb"], photo.sha256, base_url=root),
            sources_of(snapshot, photo, ("thumb", "regular"), root),
        )
        for photo in photos
    }


def credits_of(request: AnyRequest, entries: Sequence[dict[str, Any]]) -> list[Credit]:
    """Return the credits of saved photos, in their order; of those that are gone what was saved.

    A photo that says neither whom it is by nor where it is from has none.
    """
    snapshot = services_of(request).live_library.current
    rows = _rows(snapshot, [entry["photo_id"] for entry in entries])
    photos = snapshot.engine.table.photos(list(rows.values()))
    is_visited, root = visitor_of(request) is not None, root_of(request)
    credits = {
        photo.photo_id: Credit(
            photo.attribution["plain"],
            photo.attribution["html"],
            page_address(photo, root) if is_visited else web_url(photo.source_image_url),
        )
        for photo in photos
    }
    listed = [credits.get(entry["photo_id"]) or _saved_credit(entry) for entry in entries]
    return [credit for credit in listed if credit.plain]


def _saved_credit(entry: dict[str, Any]) -> Credit:
    plain = f"Photo by {entry['photo_photographer'] or entry['photo_source']}"
    return Credit(plain, escape(plain), "")


def _rows(snapshot: ServedSnapshot, photo_ids: Sequence[str]) -> dict[str, int]:
    rows = {}
    for photo_id in photo_ids:
        try:
            rows[photo_id] = snapshot.row_of(photo_id)
        except NotFoundError:
            continue
    return rows
