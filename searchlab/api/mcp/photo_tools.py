"""Tools that find and show photos."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from searchlab.api.http.context import caller_of, services_of
from searchlab.api.mcp.answers import MOST_BYTES, NOTICE, ToolAnswer, cited, clean, shorten
from searchlab.api.mcp.calls import NO_BODY, Reply, path_of, picture_body, query_of
from searchlab.api.mcp.photo_answers import (
    FOUND_FIELDS,
    PerPage,
    ShowPictures,
    answer_page,
    describe_photo,
    page_schema,
    photo_schema,
    show_photos,
)
from searchlab.api.mcp.pictures import LIFETIME_S, make_address, read_picture_argument
from searchlab.api.mcp.tool import Tool, ToolCall, arguments_of, schema_of
from searchlab.api.oauth.scopes import SEARCH
from searchlab.api.wire.errors import invalid
from searchlab.api.wire.parameters import convert
from searchlab.api.wire.requests import ImageSearch, Similar, TextSearch
from searchlab.errors import CursorError
from searchlab.photos.photo import PHOTO_FIELDS

_CURSOR = Annotated[
    str,
    Meta(
        description="`pagination.next_cursor` of the page before, to get the next one. It holds "
        "the whole search; of other arguments only `show_pictures` counts beside it."
    ),
]


class _Paging(msgspec.Struct, kw_only=True):
    per_page: PerPage = 9
    cursor: _CURSOR | None = None
    show_pictures: ShowPictures = False


class _Search(_Paging, kw_only=True):
    picture: (
        Annotated[
            str,
            Meta(
                description="A picture to search by: the base64 of a small JPEG, PNG, WebP or AVIF "
                "file, or the text that the address of `get_upload_address` answered to a file."
            ),
        ]
        | None
    ) = None
    photo_id: (
        Annotated[str, Meta(description="A photo of this library to search by, not a picture.")]
        | None
    ) = None
    photographer: (
        Annotated[str, Meta(description="Exact username; `suggest_photographers` finds it.")] | None
    ) = None


class _OnePhoto(msgspec.Struct, kw_only=True):
    photo_id: Annotated[str, Meta(description="`photo_id` of a photo in an answer.")]


class _Photo(_OnePhoto, kw_only=True):
    show_pictures: ShowPictures = False


class UploadAddress(msgspec.Struct, kw_only=True):
    """Where a picture can be sent to."""

    address: Annotated[str, Meta(description="Takes the bytes of one file by PUT, without a key.")]
    expires_at: str
    command: Annotated[str, Meta(description="A command that sends `photo.jpg` there.")]


def _fields(fields: tuple[str, ...] = FOUND_FIELDS) -> tuple[str, str]:
    return "fields", ",".join(fields)


async def _search(call: ToolCall) -> ToolAnswer:
    arguments = call.arguments
    own = convert(_Search, arguments, "arguments")
    if own.cursor is not None:
        reply = await _next_page(call, own.cursor)
    elif own.picture is not None and own.photo_id is not None:
        msg = "search_photos must be given a picture or a photo_id, got both; leave one out"
        raise invalid(("arguments", "photo_id"), msg)
    elif own.picture is not None or own.photo_id is not None:
        body = NO_BODY
        if own.picture is not None:
            content = read_picture_argument(call.api.request, own.picture.strip())
            body = NO_BODY if content is None else picture_body(content)
        reply = await call.api.post(
            _SEARCH, body, [*_query(arguments, own, ImageSearch), _fields()]
        )
    else:
        reply = await call.api.get(_SEARCH, [*_query(arguments, own, TextSearch), _fields()])
    return await answer_page(call.api.request, reply, show_pictures=own.show_pictures)


def _query(
    arguments: dict[str, Any], own: _Paging, struct: type[msgspec.Struct]
) -> list[tuple[str, str]]:
    names = [name for name in struct.__struct_fields__ if name not in {"fields", "cursor"}]
    return query_of(arguments | {"per_page": own.per_page}, names)


async def _next_page(call: ToolCall, cursor: str) -> Reply:
    query = [("cursor", cursor), _fields()]
    library = services_of(call.api.request).live_library.library
    try:
        library.open_cursor(cursor, audience=f"{caller_of(call.api.request).account_id}:text")
    except CursorError:
        return await call.api.post(_SEARCH, NO_BODY, query)
    return await call.api.get(_SEARCH, query)


async def _similar(call: ToolCall) -> ToolAnswer:
    own = convert(_Paging, call.arguments, "arguments")
    path = path_of("photos", call.arguments["photo_id"], "similar")
    arguments = call.arguments | {"per_page": own.per_page}
    reply = await call.api.get(
        path, [*query_of(arguments, ("per_page", "limit", "cursor")), _fields()]
    )
    return await answer_page(call.api.request, reply, show_pictures=own.show_pictures)


async def _get(call: ToolCall) -> ToolAnswer:
    own = convert(_Photo, call.arguments, "arguments")
    reply = await call.api.get(path_of("photos", own.photo_id), [_fields(PHOTO_FIELDS)])
    photo = shorten(clean(reply.data), MOST_BYTES // 2)
    blocks = await show_photos(call.api.request, [photo]) if own.show_pictures else ()
    credit = cited(photo["attribution"]["plain"], 500)
    text = f"{NOTICE}\n{describe_photo(1, photo)}\nThe credit to print: {credit}"
    return ToolAnswer({"notice": NOTICE, "photo": photo}, text, blocks)


async def _get_address(call: ToolCall) -> ToolAnswer:
    address, until = make_address(call.api.request)
    command = f"curl -T photo.jpg '{address}'"
    data = {"address": address, "expires_at": until, "command": command}
    text = (
        f"Send a picture with: {command}\nThe answer has `data.picture`: give it to search_photos "
        f"as `picture`. The address is good for {LIFETIME_S // 60} minutes."
    )
    return ToolAnswer(data, text)


_SEARCH: Final = path_of("search", "photos")
_PAGED = "Pages have up to 20 photos; call again with `cursor` for the next one."
TOOLS: Final = (
    Tool(
        name="search_photos",
        title="Search photos",
        description="Find free-licence stock photos by what they show (`q`, whole sentences and "
        "any language), by a picture, by a photo of the library, by filters, or by several of "
        f"these together. Give at least one of them. Counts one search. {_PAGED}",
        scope=SEARCH,
        arguments=arguments_of(ImageSearch, _Search, without=["fields"]),
        answer=page_schema(),
        run=_search,
    ),
    Tool(
        name="similar_photos",
        title="Similar photos",
        description="Find photos that look like one of the library, which is not among them. "
        f"Counts one search. {_PAGED}",
        scope=SEARCH,
        arguments=arguments_of(_OnePhoto, Similar, _Paging, without=["fields"]),
        answer=page_schema(),
        run=_similar,
    ),
    Tool(
        name="get_photo",
        title="Get a photo",
        description="Show all that is known of a photo: links to the picture in five sizes, "
        "licence, photographer and the credit to print beside it. Counts no search.",
        scope=SEARCH,
        arguments=arguments_of(_Photo),
        answer={
            "type": "object",
            "properties": {
                "notice": {"const": NOTICE},
                "photo": photo_schema(PHOTO_FIELDS, whole=True),
            },
            "required": ["notice", "photo"],
        },
        run=_get,
    ),
    Tool(
        name="get_upload_address",
        title="Get an address for a picture",
        description="Get an address that takes a picture file by PUT, to search by it with "
        "`search_photos`. For files that are too large to write into a call. Nothing is stored.",
        scope=SEARCH,
        arguments=arguments_of(),
        answer=schema_of(UploadAddress),
        run=_get_address,
    ),
)
