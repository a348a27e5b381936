"""Tools for collections: the same as the API's operations, one each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from searchlab.api.mcp.answers import (
    MOST_BYTES,
    NOTICE,
    ToolAnswer,
    cited,
    clean,
    cut,
    shorten,
    take_part,
)
from searchlab.api.mcp.calls import json_body, path_of
from searchlab.api.mcp.library_tools import NextStart, Notice, Start
from searchlab.api.mcp.tool import IdempotencyKey, Tool, ToolCall, arguments_of, schema_of
from searchlab.api.oauth.scopes import READ_COLLECTIONS, WRITE_COLLECTIONS
from searchlab.api.wire.parameters import convert
from searchlab.api.wire.requests import NewCollection
from searchlab.api.wire.schema import Collection, CollectionPhoto, CollectionWithPhotos, Deleted

CollectionId = Annotated[int, Meta(description="`id` of a collection.", examples=[7])]


class _Listing(msgspec.Struct, kw_only=True):
    start: Start = 1


class _One(msgspec.Struct, kw_only=True):
    collection_id: CollectionId


class _Reading(_One, kw_only=True):
    start: Start = 1


class _Repeatable(msgspec.Struct, kw_only=True):
    idempotency_key: IdempotencyKey | None = None


class _Entry(_One, kw_only=True):
    photo_id: Annotated[str, Meta(description="`photo_id` of a photo.")]


class OwnCollections(msgspec.Struct, kw_only=True):
    """Collections of the account."""

    notice: Notice
    collections: list[Collection]
    next_start: NextStart


class CollectionAnswer(msgspec.Struct, kw_only=True):
    """A collection."""

    notice: Notice
    collection: Collection


class OpenCollection(msgspec.Struct, kw_only=True):
    """A collection and a part of its photos."""

    notice: Notice
    collection: CollectionWithPhotos
    next_start: NextStart


class NewEntry(msgspec.Struct, kw_only=True):
    """An entry of a collection."""

    notice: Notice
    entry: CollectionPhoto


def _describe(collection: Mapping[str, Any]) -> str:
    count = collection["photos_count"]
    shown = "public" if collection["is_public"] else "private"
    note = f": {cited(collection['description'])}" if collection["description"] else ""
    return (
        f"collection_id {collection['id']}, {cited(collection['name'])}, {shown}, "
        f"{count} photo{'' if count == 1 else 's'}{note}"
    )


def describe_entry(entry: Mapping[str, Any]) -> str:
    """Describe an entry of a collection in a line."""
    by = f" by {cited(entry['photo_photographer'], 60)}" if entry["photo_photographer"] else ""
    return f"photo_id {cut(entry['photo_id'], 100)}{by}, {cut(entry['photo_source'], 60)}"


async def _list(call: ToolCall) -> ToolAnswer:
    own = convert(_Listing, call.arguments, "arguments")
    reply = await call.api.get(path_of("collections"))
    part = take_part(reply.data, _describe, start=own.start)
    data = {"notice": NOTICE, "collections": part.entries, "next_start": part.next_start}
    head = f"{len(reply.data)} collection{'' if len(reply.data) == 1 else 's'}."
    return ToolAnswer(data, "\n".join([head, NOTICE, *part.lines, *part.more]))


async def _create(call: ToolCall) -> ToolAnswer:
    own = convert(_Repeatable, call.arguments, "arguments")
    body = {name: one for name, one in call.arguments.items() if name in _NEW}
    reply = await call.api.post(
        path_of("collections"), json_body(body), idempotency_key=own.idempotency_key
    )
    collection = shorten(clean(reply.data), MOST_BYTES // 2)
    return ToolAnswer(
        {"notice": NOTICE, "collection": collection}, f"Made {_describe(collection)}."
    )


async def _get(call: ToolCall) -> ToolAnswer:
    own = convert(_Reading, call.arguments, "arguments")
    reply = await call.api.get(path_of("collections", own.collection_id))
    summary = {name: one for name, one in reply.data.items() if name != "photos"}
    collection = shorten(clean(summary), _SUMMARY_BYTES)
    part = take_part(
        reply.data["photos"], describe_entry, start=own.start, most=MOST_BYTES - 2 * _SUMMARY_BYTES
    )
    data = {
        "notice": NOTICE,
        "collection": collection | {"photos": part.entries},
        "next_start": part.next_start,
    }
    return ToolAnswer(data, "\n".join([_describe(collection), NOTICE, *part.lines, *part.more]))


async def _delete(call: ToolCall) -> ToolAnswer:
    own = convert(_One, call.arguments, "arguments")
    reply = await call.api.delete(path_of("collections", own.collection_id))
    return ToolAnswer(reply.data, f"Deleted collection {own.collection_id}.")


async def _add(call: ToolCall) -> ToolAnswer:
    own = convert(_Repeatable, call.arguments, "arguments")
    entry = convert(_Entry, call.arguments, "arguments")
    reply = await call.api.post(
        path_of("collections", entry.collection_id, "photos"),
        json_body({"photo_id": entry.photo_id}),
        idempotency_key=own.idempotency_key,
    )
    saved = shorten(clean(reply.data), MOST_BYTES // 2)
    text = f"Added to collection {entry.collection_id}: {describe_entry(saved)}"
    return ToolAnswer({"notice": NOTICE, "entry": saved}, text)


async def _remove(call: ToolCall) -> ToolAnswer:
    own = convert(_Entry, call.arguments, "arguments")
    reply = await call.api.delete(path_of("collections", own.collection_id, "photos", own.photo_id))
    return ToolAnswer(reply.data, f"Removed {own.photo_id} from collection {own.collection_id}.")


_NEW: Final = NewCollection.__struct_fields__
_SUMMARY_BYTES: Final = 4_000
TOOLS: Final = (
    Tool(
        name="list_collections",
        title="List collections",
        description="List the account's collections, oldest first, without their photos.",
        scope=READ_COLLECTIONS,
        arguments=arguments_of(_Listing),
        answer=schema_of(OwnCollections),
        run=_list,
    ),
    Tool(
        name="get_collection",
        title="Get a collection",
        description="Show a collection of the account, or a public one of another, with its "
        "photos.",
        scope=READ_COLLECTIONS,
        arguments=arguments_of(_Reading),
        answer=schema_of(OpenCollection),
        run=_get,
    ),
    Tool(
        name="create_collection",
        title="Create a collection",
        description="Create an empty collection in the account. Each call makes one more.",
        scope=WRITE_COLLECTIONS,
        arguments=arguments_of(NewCollection, _Repeatable),
        answer=schema_of(CollectionAnswer),
        run=_create,
        reads_only=False,
        repeatable=False,
    ),
    Tool(
        name="add_to_collection",
        title="Add a photo to a collection",
        description="Put a photo of the library into a collection of the account. The first one "
        "becomes its cover.",
        scope=WRITE_COLLECTIONS,
        arguments=arguments_of(_Entry, _Repeatable),
        answer=schema_of(NewEntry),
        run=_add,
        reads_only=False,
    ),
    Tool(
        name="remove_from_collection",
        title="Remove a photo from a collection",
        description="Take a photo out of a collection of the account; the photo itself stays.",
        scope=WRITE_COLLECTIONS,
        arguments=arguments_of(_Entry),
        answer=schema_of(Deleted),
        run=_remove,
        reads_only=False,
        destroys=True,
    ),
    Tool(
        name="delete_collection",
        title="Delete a collection",
        description="Delete a collection of the account and every entry in it, for good. Ask the "
        "person first; the photos themselves stay.",
        scope=WRITE_COLLECTIONS,
        arguments=arguments_of(_One),
        answer=schema_of(Deleted),
        run=_delete,
        reads_only=False,
        destroys=True,
    ),
)
