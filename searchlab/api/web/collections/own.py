"""An account's own collections: made, described, filled and deleted, with the API's services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from litestar import Request, Response, get, post
from litestar.enums import MediaType
from sqlalchemy.engine import Connection

from searchlab.api.accounts.collections import FullError
from searchlab.api.accounts.values import MAX_ID
from searchlab.api.http.context import context_of, services_of
from searchlab.api.snapshots.saved_photos import save_photo
from searchlab.api.web.collections.shown import (
    COLLECTIONS_A_PAGE,
    cards_of,
    contents_of,
    covers_of,
    read_part,
)
from searchlab.api.web.forms import FormFields, read_form
from searchlab.api.web.grid import are_remote
from searchlab.api.web.session_cookies import safe_next
from searchlab.api.web.templates import redirect, respond
from searchlab.api.web.visitor import require_sign_in
from searchlab.api.wire.parameters import query_value
from searchlab.api.wire.schema import MAX_DESCRIPTION, MAX_NAME
from searchlab.errors import ConflictError, ForbiddenError, InputError, NotFoundError, quote

AnyRequest = Request[Any, Any, Any]
T = TypeVar("T")
LIMITS = {"name": MAX_NAME, "description": MAX_DESCRIPTION}
NEW = "new"


# -- reading and changing ---------------------------------------------------------------------


def collection_id_of(text: str) -> int:
    """Read the number of a collection in an address or a form.

    Raises:
        NotFoundError: It is no such number, or not as it is written in the collection's address.
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= 19 and not text.startswith("0")
    if not (is_number and int(text) <= MAX_ID):
        msg = f"collection_id must be that of a collection of yours, got {quote(text)}"
        raise NotFoundError(msg)
    return int(text)


async def list_own(request: AnyRequest) -> list[dict[str, Any]]:
    """List the visitor's collections, oldest first, for a form that adds a photo to one."""
    visitor, services = require_sign_in(request), services_of(request)
    return await services.in_database(services.collections.list, visitor.account_id)


async def _get_own(request: AnyRequest) -> dict[str, Any]:
    visitor, services = require_sign_in(request), services_of(request)
    number = collection_id_of(request.path_params["collection_id"])
    return await services.in_database(
        services.collections.get, visitor.account_id, number, only_own=True
    )


async def _change(request: AnyRequest, change: Callable[[Connection, int], T]) -> T:
    """Make a change in one transaction; another account's collection is as if there were none."""
    visitor, services = require_sign_in(request), services_of(request)

    def work() -> T:
        with services.database.writing() as connection:
            return change(connection, visitor.account_id)

    try:
        return await services.in_database(work)
    except FullError:
        raise
    except ForbiddenError:
        msg = "collection_id must be that of a collection of yours, got another"
        raise NotFoundError(msg) from None


# -- all of them ------------------------------------------------------------------------------


@get("/collections")
async def show_all(request: AnyRequest) -> Response[bytes]:
    """Show the visitor's collections, the newest first, with their covers."""
    collections = (await list_own(request))[::-1]
    part = read_part(request, len(collections), COLLECTIONS_A_PAGE)
    shown = collections[part.start : part.stop]
    covers = covers_of(request, [c["cover_photo_id"] for c in shown if c["cover_photo_id"]])
    return respond(
        request,
        "collections/all.html",
        remote_pictures=are_remote(cover.src for cover in covers.values()),
        collections=shown,
        covers=covers,
        total=len(collections),
        part=part,
    )


@get("/collections/new")
async def show_new(request: AnyRequest) -> Response[bytes]:
    """Show the form of a new collection."""
    require_sign_in(request)
    return _show_form(request, {"name": "", "description": "", "is_public": False})


@post("/collections/new", status_code=200)
async def create(request: AnyRequest) -> Response[bytes]:
    """Make a collection, and show it."""
    require_sign_in(request)
    values = _read_values(await read_form(request))
    store = services_of(request).collections
    try:
        made = await _change(request, lambda c, account: store.create(c, account, **values))
    except (InputError, FullError) as error:
        return _show_form(request, values, problem=str(error), status=422)
    return redirect(request, f"/collections/{made['id']}")


def _show_form(
    request: AnyRequest,
    values: dict[str, Any],
    *,
    collection: dict[str, Any] | None = None,
    problem: str = "",
    status: int = 200,
) -> Response[bytes]:
    return respond(
        request,
        "collections/form.html",
        status=status,
        values=values,
        collection=collection,
        problem=problem,
        limits=LIMITS,
    )


def _read_values(form: FormFields) -> dict[str, Any]:
    # Browsers send line breaks as two characters and count them as one.
    description = form.first("description").replace("\r\n", "\n").strip()
    return {
        "name": form.first("name").strip(),
        "description": description or None,
        "is_public": form.first("is_public") == "yes",
    }


# -- one of them ------------------------------------------------------------------------------


@get("/collections/{collection_id:str}")
async def show_one(request: AnyRequest) -> Response[bytes]:
    """Show a collection of the visitor's, and what can be changed."""
    contents = contents_of(request, await _get_own(request))
    return respond(request, "collections/one.html", **contents)


@get("/collections/{collection_id:str}/edit")
async def show_edit(request: AnyRequest) -> Response[bytes]:
    """Show the form with the name, description and openness of a collection."""
    collection = await _get_own(request)
    return _show_form(request, collection, collection=collection)


@post("/collections/{collection_id:str}/edit", status_code=200)
async def edit(request: AnyRequest) -> Response[bytes]:
    """Change name, description and openness."""
    collection = await _get_own(request)
    values, number = _read_values(await read_form(request)), collection["id"]
    store = services_of(request).collections
    try:
        await _change(request, lambda c, account: store.describe(c, account, number, **values))
    except InputError as error:
        return _show_form(request, values, collection=collection, problem=str(error), status=422)
    return redirect(request, f"/collections/{number}")


@post("/collections/{collection_id:str}/cover", status_code=200)
async def choose_cover(request: AnyRequest) -> Response[bytes]:
    """Make a photo the cover."""
    number, form = _number(request), await read_form(request)
    store, photo_id = services_of(request).collections, form.first("photo_id")
    await _change(request, lambda c, account: store.choose_cover(c, account, number, photo_id))
    return redirect(request, _back(number, form))


@post("/collections/{collection_id:str}/remove", status_code=200)
async def remove(request: AnyRequest) -> Response[bytes]:
    """Remove a photo; one that another window has removed already is no failure."""
    number, form = _number(request), await read_form(request)
    store, photo_id = services_of(request).collections, form.first("photo_id")

    try:
        await _change(request, lambda c, account: store.remove_photo(c, account, number, photo_id))
    except NotFoundError:
        await _get_own(request)  # raises where the collection is what there is none of
    return redirect(request, _back(number, form))


@get("/collections/{collection_id:str}/delete")
async def confirm_delete(request: AnyRequest) -> Response[bytes]:
    """Ask whether to delete a collection."""
    return respond(request, "collections/delete.html", collection=await _get_own(request))


@post("/collections/{collection_id:str}/delete", status_code=200)
async def delete(request: AnyRequest) -> Response[bytes]:
    """Delete a collection; the photos stay in the library."""
    number, store = _number(request), services_of(request).collections
    await _change(request, lambda c, account: store.delete(c, account, number))
    return redirect(request, "/collections")


def _number(request: AnyRequest) -> int:
    require_sign_in(request)
    return collection_id_of(request.path_params["collection_id"])


def _back(number: int, form: FormFields) -> str:
    page = form.first("page")
    is_page = page.isascii() and page.isdigit() and len(page) <= 9
    return f"/collections/{number}?page={page}" if is_page else f"/collections/{number}"


# -- adding a photo ---------------------------------------------------------------------------


@get("/collections/add")
async def show_add(request: AnyRequest) -> Response[bytes]:
    """Ask which collection a photo goes to; search results lead here."""
    photo_id = query_value(request, "photo_id")
    services_of(request).live_library.current.row_of(photo_id)
    after = query_value(request, "next") or _came_from(request)
    return await _show_add(request, photo_id, after)


def _came_from(request: AnyRequest) -> str:
    """Return path and query of the page of this server that led here; empty without one."""
    base_url, page = context_of(request).base_url, request.headers.get("referer", "")
    if not page.startswith(f"{base_url}/") or page.startswith(f"{base_url}/collections/add"):
        return ""
    return safe_next(page.removeprefix(base_url))


async def _show_add(
    request: AnyRequest,
    photo_id: str,
    after: str,
    *,
    chosen: str = "",
    name: str = "",
    problem: str = "",
    status: int = 200,
) -> Response[bytes]:
    (card,) = cards_of(request, [photo_id]).values()
    return respond(
        request,
        "collections/add.html",
        status=status,
        remote_pictures=are_remote([card.src]),
        collections=(await list_own(request))[::-1],
        card=card,
        after=safe_next(after) if after else "",
        chosen=chosen,
        name=name,
        problem=problem,
        limits=LIMITS,
    )


@post("/collections/add", status_code=200)
async def add(request: AnyRequest) -> Response[bytes]:
    """Add a photo to a collection, or to a new one, and go back to where the form was.

    A script that stays there is told in a sentence what was done.
    """
    require_sign_in(request)
    form, services = await read_form(request), services_of(request)
    photo_id, chosen, after = form.first("photo_id"), form.first("collection"), form.first("next")
    snapshot, store = services.live_library.current, services.collections
    snapshot.row_of(photo_id)
    number = None if chosen == NEW else collection_id_of(chosen)

    def put_in(connection: Connection, account_id: int) -> int:
        target = number
        if target is None:
            target = store.create(connection, account_id, name=form.first("name").strip())["id"]
        save_photo(store, connection, account_id, target, photo_id=photo_id, snapshot=snapshot)
        return int(target)

    told = "Added to"
    try:
        target = await _change(request, put_in)
    except ConflictError:  # it is in there already, which is what was asked for
        target, told = number or 0, "It is already in"
    except (InputError, FullError) as error:
        name, problem = form.first("name"), str(error)
        return await _show_add(
            request, photo_id, after, chosen=chosen, name=name, problem=problem, status=422
        )
    if form.first("stay"):
        names = {one["id"]: one["name"] for one in await list_own(request)}
        text = f"{told} {names.get(target, 'your collection')}."
        return Response(
            text.encode(), media_type=MediaType.TEXT, headers={"Cache-Control": "no-store"}
        )
    return redirect(request, safe_next(after) if after else f"/collections/{target}")


ROUTES = [
    show_all,
    show_new,
    create,
    show_add,
    add,
    show_one,
    show_edit,
    edit,
    choose_cover,
    remove,
    confirm_delete,
    delete,
]
