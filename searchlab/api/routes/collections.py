"""Named collections of photos, owned by the caller's account (4.5 and the rules of 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.params import FromPath
from sqlalchemy.engine import Connection

from searchlab.api.accounts.collections import MAX_COLLECTIONS, MAX_PHOTOS
from searchlab.api.accounts.idempotency import claim
from searchlab.api.http.context import caller_of, context_of, services_of
from searchlab.api.snapshots.saved_photos import add_thumbnail, save_photo
from searchlab.api.wire.envelope import JsonAnswer, enclose, succeed
from searchlab.api.wire.errors import invalid
from searchlab.api.wire.operations import Operation
from searchlab.api.wire.parameters import read_body, read_path
from searchlab.api.wire.requests import NewCollection, NewCollectionPhoto, OneCollection
from searchlab.api.wire.schema import Collection, CollectionPhoto, CollectionWithPhotos, Deleted
from searchlab.errors import quote
from searchlab.photos.photo import web_url

_COLLECTIONS = "/api/v1/collections"
_ONE = f"{_COLLECTIONS}/{{collection_id:str}}"


def _id(request: Request[Any, Any, Any]) -> int:
    return read_path(OneCollection, request).collection_id


async def _read(request: Request[Any, Any, Any], read: Callable[[], Any]) -> Response[bytes]:
    """Read the database in a thread and encode there too, since a list may be long."""

    def work() -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(read()))

    return succeed(request, await services_of(request).in_database(work))


async def _change(
    request: Request[Any, Any, Any], change: Callable[[Connection], dict[str, Any]]
) -> Response[bytes]:
    """Make a change in one transaction, and answer with what it returns."""
    services = services_of(request)

    def work() -> dict[str, Any]:
        with services.database.writing() as connection:
            return change(connection)

    return succeed(request, await services.in_database(work))


async def _change_once(
    request: Request[Any, Any, Any],
    body: msgspec.Struct,
    change: Callable[[Connection], dict[str, Any]],
) -> Response[bytes]:
    """Make a change and record the answer in one transaction, so that a repetition does nothing."""
    services, context = services_of(request), context_of(request)
    async with claim(request, msgspec.json.encode(body)) as claimed:
        if claimed.replay is not None:
            return claimed.replay

        def work() -> bytes:
            with services.database.writing() as connection:
                answer = enclose(context, success=True, data=change(connection))
                record = claimed.make_record(200, answer)
                if record is not None:
                    record(connection)
            return answer

        answer = await services.in_database(work)
    return JsonAnswer(answer)


@get(
    _COLLECTIONS,
    opt=Operation(
        operation_id="listCollections",
        summary="List the account's collections",
        description="Without their photos, oldest first.",
        data=list[Collection],
    ).opt,
)
async def list_collections(request: Request[Any, Any, Any]) -> Response[bytes]:
    """List the account's collections."""
    store, account_id = services_of(request).collections, caller_of(request).account_id
    return await _read(request, lambda: store.list(account_id))


@post(
    _COLLECTIONS,
    status_code=200,
    opt=Operation(
        operation_id="createCollection",
        summary="Create a collection",
        description=f"An account may have {MAX_COLLECTIONS:,}.",
        body=NewCollection,
        data=Collection,
        replayable=True,
        problems=("LIMIT_REACHED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"),
    ).opt,
)
async def create_collection(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Create a collection."""
    new = await read_body(NewCollection, request)
    store, account_id = services_of(request).collections, caller_of(request).account_id

    def change(connection: Connection) -> dict[str, Any]:
        return store.create(
            connection,
            account_id,
            name=new.name,
            description=new.description,
            is_public=new.is_public,
        )

    return await _change_once(request, new, change)


@get(
    _ONE,
    opt=Operation(
        operation_id="getCollection",
        summary="Get a collection with its photos",
        description="One of the account, or another account's public one.",
        data=CollectionWithPhotos,
        problems=("NOT_FOUND",),
    ).opt,
)
async def get_collection(
    request: Request[Any, Any, Any], collection_id: FromPath[str]
) -> Response[bytes]:
    """Get a collection with its photos."""
    services, account_id, number = services_of(request), caller_of(request).account_id, _id(request)
    snapshot, base_url = services.live_library.current, context_of(request).base_url

    def read() -> dict[str, Any]:
        collection = services.collections.get(account_id, number)
        entries = [add_thumbnail(entry, snapshot, base_url) for entry in collection["photos"]]
        return collection | {"photos": entries}

    return await _read(request, read)


@delete(
    _ONE,
    status_code=200,
    opt=Operation(
        operation_id="deleteCollection",
        summary="Delete a collection and every entry in it",
        data=Deleted,
        problems=("FORBIDDEN", "NOT_FOUND"),
    ).opt,
)
async def delete_collection(
    request: Request[Any, Any, Any], collection_id: FromPath[str]
) -> Response[bytes]:
    """Delete a collection and every entry in it."""
    store, account_id = services_of(request).collections, caller_of(request).account_id
    number = _id(request)
    return await _change(request, lambda c: store.delete(c, account_id, number))


@post(
    f"{_ONE}/photos",
    status_code=200,
    opt=Operation(
        operation_id="addCollectionPhoto",
        summary="Add a photo to a collection",
        description=f"The first photo becomes the cover. A collection may have {MAX_PHOTOS:,}.",
        body=NewCollectionPhoto,
        data=CollectionPhoto,
        replayable=True,
        problems=(
            "FORBIDDEN",
            "LIMIT_REACHED",
            "NOT_FOUND",
            "CONFLICT",
            "PAYLOAD_TOO_LARGE",
            "UNSUPPORTED_MEDIA_TYPE",
        ),
    ).opt,
)
async def add_photo(
    request: Request[Any, Any, Any], collection_id: FromPath[str]
) -> Response[bytes]:
    """Add a photo to a collection."""
    number = _id(request)
    new = await read_body(NewCollectionPhoto, request)
    url, source, name = new.photo_thumbnail_url, new.photo_source, new.photo_photographer
    if url is not None and not web_url(url):
        # Other accounts may read a public collection and show this link.
        msg = f"photo_thumbnail_url must be an http or https URL, got {quote(url)}"
        raise invalid(("body", "photo_thumbnail_url"), msg, "url")
    services, account_id = services_of(request), caller_of(request).account_id
    snapshot, base_url = services.live_library.current, context_of(request).base_url

    def change(connection: Connection) -> dict[str, Any]:
        # Looked up here: a recorded answer is sent again even when the photo is gone.
        entry = save_photo(
            services.collections,
            connection,
            account_id,
            number,
            photo_id=new.photo_id,
            snapshot=snapshot,
            url=url,
            source=source,
            photographer=name,
        )
        return add_thumbnail(entry, snapshot, base_url)

    return await _change_once(request, new, change)


@delete(
    f"{_ONE}/photos/{{photo_id:str}}",
    status_code=200,
    opt=Operation(
        operation_id="removeCollectionPhoto",
        summary="Remove a photo from a collection",
        description="When it was the cover, the oldest photo left becomes it.",
        data=Deleted,
        problems=("FORBIDDEN", "NOT_FOUND"),
    ).opt,
)
async def remove_photo(
    request: Request[Any, Any, Any], collection_id: FromPath[str], photo_id: FromPath[str]
) -> Response[bytes]:
    """Remove a photo from a collection."""
    store, account_id = services_of(request).collections, caller_of(request).account_id
    number = _id(request)
    return await _change(request, lambda c: store.remove_photo(c, account_id, number, photo_id))


ROUTES = [
    list_collections,
    create_collection,
    get_collection,
    delete_collection,
    add_photo,
    remove_photo,
]
