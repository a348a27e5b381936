"""Photos in answers of tools: short records, a line for each, and pictures on request."""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from searchlab.api.http.context import context_of, services_of
from searchlab.api.mcp.answers import (
    MOST_BYTES,
    NOTICE,
    ToolAnswer,
    cited,
    count_bytes,
    cut,
    fit_all,
)
from searchlab.api.mcp.calls import AnyRequest, Reply
from searchlab.api.mcp.contact_sheets import MOST_PICTURES, make_sheet
from searchlab.api.mcp.tool import schema_of
from searchlab.api.snapshots.encoded_photos import MEDIA_PREFIX
from searchlab.api.wire.errors import invalid
from searchlab.api.wire.schema import Pagination, Photo
from searchlab.errors import NotFoundError
from searchlab.photos.photo import Photo as StoredPhoto
from searchlab.photos.table import PhotoTable

MOST_PHOTOS: Final = 20
"""Most photos on a page of a tool."""
FOUND_FIELDS: Final = (
    *("photo_id", "urls", "source_image_url", "width", "height", "orientation"),
    *("color_name", "source", "license_type", "photographer_username", "photographer_full_name"),
    *("source_description", "description", "alt_description", "relevance_score", "uploaded_on"),
    "attribution",
)
"""The fields of a photo in a list; `get_photo` shows all of them."""
_HEAD_BYTES = 800
_LINKED: Final = "regular"
# What a link says besides takes no more room than this.
_LARGEST: Final = {"mimeType": "image/vnd.microsoft.icon", "size": 10**9}

ShowPictures = Annotated[
    bool,
    Meta(
        description=f"Also send pictures: the first {MOST_PICTURES} photos on one numbered contact "
        "sheet, and a link to each of them. Ask for it when you or the person should look at them."
    ),
]
PerPage = Annotated[
    int, Meta(ge=1, le=MOST_PHOTOS, description="Photos on a page; a cursor keeps its own.")
]


_KEPT: Final = {"urls": "regular", "attribution": "plain"}  # of fields that are objects


def photo_schema(fields: Sequence[str], *, whole: bool) -> dict[str, Any]:
    """Describe a photo's record with some of its fields; in a list, of links and credit one."""
    known = schema_of(Photo)["properties"]
    properties = {name: known[name] for name in fields}
    for name, inner in () if whole else _KEPT.items():
        kept = {inner: properties[name]["properties"][inner]}
        properties[name] = {"type": "object", "properties": kept, "required": [inner]}
    return {"type": "object", "properties": properties, "required": list(fields)}


def page_schema() -> dict[str, Any]:
    """Describe the structured content of a page of photos."""
    return {
        "type": "object",
        "properties": {
            "notice": {"const": NOTICE},
            "photos": {"type": "array", "items": photo_schema(FOUND_FIELDS, whole=False)},
            "pagination": schema_of(Pagination),
        },
        "required": ["notice", "photos", "pagination"],
    }


async def answer_page(request: AnyRequest, reply: Reply, *, show_pictures: bool) -> ToolAnswer:
    """Answer with a page of photos that the API has found.

    Args:
        request: The request to the tool server.
        reply: A page with the fields `FOUND_FIELDS`.
        show_pictures: Whether to add the contact sheet and the links.

    Raises:
        Invalid: The page has more photos than a tool shows, as one of another client's cursor may.
    """
    if reply.pagination is None or len(reply.data) > MOST_PHOTOS:
        msg = f"cursor must be one of a tool, whose pages have at most {MOST_PHOTOS} photos, "
        raise invalid(("arguments", "cursor"), f"{msg}got one of the HTTP API; search again")
    pagination = msgspec.to_builtins(reply.pagination)
    cursor_bytes = 2 * count_bytes(pagination)
    part = fit_all(
        [_in_list(photo) for photo in reply.data],
        describe_linked if show_pictures else describe_photo,
        most=MOST_BYTES - _HEAD_BYTES - cursor_bytes,
    )
    data = {"notice": NOTICE, "photos": part.entries, "pagination": pagination}
    describe = _describe_pictured if show_pictures else describe_photo
    lines = [_head(reply), NOTICE]
    lines += [describe(number, photo) for number, photo in enumerate(part.entries, 1)]
    if reply.pagination.next_cursor is not None:
        lines.append(f"More with the same tool and cursor={reply.pagination.next_cursor}")
    blocks = await show_photos(request, part.entries) if show_pictures else ()
    return ToolAnswer(data, "\n".join(lines), blocks)


def _head(reply: Reply) -> str:
    count = len(reply.data)
    if not count:
        return "No photo fits. Drop a filter, lower score_threshold, or say it in other words."
    more = "there are more" if reply.pagination and reply.pagination.has_more else "no further page"
    return f"{count} photo{'s' if count > 1 else ''}; {more}."


def _in_list(photo: Mapping[str, Any]) -> dict[str, Any]:
    return {**photo, **{name: {inner: photo[name][inner]} for name, inner in _KEPT.items()}}


def describe_photo(number: int, photo: Mapping[str, Any], *, linked: bool = False) -> str:
    """Describe a photo in a line, with its address unless a link beside it has that."""
    title = photo["source_description"].strip() or photo["alt_description"]
    credit = photo["photographer_full_name"] or photo["photographer_username"]
    by = f" by {cited(credit, 60)}" if credit else ""
    return (
        f"{number}. {cited(title)}{by}, {cut(photo['source'], 40)}, "
        f"licence {cut(photo['license_type'], 40)}, {photo['width']}x{photo['height']}, "
        f"score {photo['relevance_score']:.2f}, photo_id {photo['photo_id']} "
        f"{'' if linked else photo['urls'][_LINKED]}".rstrip()
    )


def describe_linked(number: int, photo: Mapping[str, Any]) -> str:
    """Describe a photo in a line, and after it the link that it may have, which takes room too."""
    line = _describe_pictured(number, photo)
    if number > MOST_PICTURES:
        return line
    return line + msgspec.json.encode(_link(number, photo) | _LARGEST).decode()


def _describe_pictured(number: int, photo: Mapping[str, Any]) -> str:
    return describe_photo(number, photo, linked=number <= MOST_PICTURES)


def _link(number: int, photo: Mapping[str, Any]) -> dict[str, Any]:
    title = photo["source_description"].strip() or photo["alt_description"].strip()
    return {
        "type": "resource_link",
        "uri": photo["urls"][_LINKED],
        "name": photo["photo_id"],
        "title": f"{number}. {cut(title, 60) or 'A photo'}",
        "description": cut(photo["attribution"]["plain"], 120),
    }


def _media_type(address: str, base_url: str) -> str | None:
    """Return the type of the picture at an address, as far as that says it; None if unknown."""
    if address.startswith(base_url + MEDIA_PREFIX):
        return "image/webp"  # as is every size but the original
    kind, encoding = mimetypes.guess_type(urlsplit(address).path)
    return kind if kind and encoding is None and kind.startswith("image/") else None


async def show_photos(request: AnyRequest, photos: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Make what shows photos: the contact sheet of the first ones, and a link to each of these.

    Args:
        request: The request to the tool server.
        photos: Their records, in the order in which they are numbered.
    """
    photos = photos[:MOST_PICTURES]
    if not photos:
        return []
    services, base_url = services_of(request), context_of(request).base_url
    snapshot = services.live_library.current
    rows = [_find(snapshot.engine.table, photo["photo_id"]) for photo in photos]
    sheet = await make_sheet(services, rows)
    sizes = await services.renditions.count_bytes(rows, _LINKED)
    blocks = [{"type": "image", "data": b64encode(sheet).decode(), "mimeType": "image/jpeg"}]
    for number, (photo, n_bytes) in enumerate(zip(photos, sizes, strict=True), 1):
        known = {"mimeType": _media_type(photo["urls"][_LINKED], base_url), "size": n_bytes}
        told = {name: value for name, value in known.items() if value is not None}
        if photo["urls"][_LINKED]:
            blocks.append(_link(number, photo) | told)
    return blocks


def _find(table: PhotoTable, photo_id: str) -> StoredPhoto | None:
    """Find a photo; None if it is gone, as one may be on a page of an older snapshot."""
    try:
        return table.photo(table.row_of(photo_id))
    except NotFoundError:
        return None
