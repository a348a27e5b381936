"""Where judges work: one photo after the other, or all photos of a query in a grid.

What is recorded, undone and shown next is decided by `JudgingSession`; the address of a page names
the place, so that it can be left and opened again. Neither score, nor rank, nor configuration is on
these pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from litestar import Request, Response, get, post

from searchlab.api.accounts.clock import utc_now
from searchlab.api.http.context import services_of
from searchlab.api.web.forms import FormFields, read_form
from searchlab.api.web.grid import are_remote
from searchlab.api.web.judging.sessions import (
    HumanJudge,
    address_pictures,
    judge_of,
    sessions_of,
)
from searchlab.api.web.templates import page_headers, redirect, respond
from searchlab.api.web.visitor import require_sign_in
from searchlab.api.wire.parameters import query_value
from searchlab.errors import ConflictError, InputError, quote
from searchlab.evaluation.judging.grading import Grading
from searchlab.evaluation.judging.journal import Choice
from searchlab.evaluation.judging.pools import Pair
from searchlab.evaluation.judging.session import JudgingSession

AnyRequest = Request[Any, Any, Any]
PHOTOS_A_PAGE: Final = 60
LONGEST_LOOK_S: Final = 3_600.0
"""Somebody who looked for longer than that was away."""

_PLACE = re.compile(r"\d{1,9}", re.ASCII)
_SKIP = "skip"
_FIELD = "g"
T = TypeVar("T")


async def in_session(
    request: AnyRequest, name: str, judge: HumanJudge, work: Callable[[Grading], T]
) -> T:
    """Call `work` with the session of a judge, in a thread, since it waits for the disk."""
    sessions = sessions_of(request)

    def hold() -> T:
        with sessions.session(name, judge) as session:
            return work(session)

    return await services_of(request).in_database(hold)


# -- one by one -------------------------------------------------------------------------------


@get("/judge/{name:str}/one")
async def show_one(request: AnyRequest) -> Response[bytes]:
    """Show one photo to grade: the next open one, or the one at the place `n`."""
    name = request.path_params["name"]
    judge = judge_of(require_sign_in(request), query_value(request, "judge"))
    place = read_place(query_value(request, "n"))

    def look(session: Grading) -> dict[str, Any]:
        if place is not None:
            session.go(place)
        view = session.view()
        following = session.items[session.number + 1 : session.number + 2]
        next_photo = Pair(*following[0]).photo_id if following else ""
        query = "" if session.current is None else Pair(*session.current).query_id
        places = session.pool.places
        grid = list(places).index(query) if query else 0
        return view | {"next_photo": next_photo, "grid": grid, "pool_id": session.pool.pool_id}

    view = await in_session(request, name, judge, look)
    picture, scene = address_pictures(request, "regular"), view["scene"]
    shown: dict[str, Any] = {
        "asked": scene and picture(scene["asked"] or ""),
        "picture": scene and picture(scene["sides"][0][0]),
        "next_picture": view["next_photo"] and picture(view["next_photo"]),
    }
    title = (await _task_title(request, name)) | {"judge": judge, "at": judge_query(judge)}
    return respond(
        request,
        "judging/one.html",
        remote_pictures=are_remote(shown.values()),
        view=view,
        shown_at=read_clock(),
        **title,
        **shown,
    )


@post("/judge/{name:str}/one", status_code=200)
async def judge_one(request: AnyRequest) -> Response[bytes]:
    """Record one choice, or take the last one back, and go on to the next open photo."""
    name, form = request.path_params["name"], await read_form(request)
    judge = judge_of(require_sign_in(request), form.first("judge"))
    view, do = form.first("view", "one"), form.first("do")
    place, choice = read_place(form.first("n")), read_choice(form.first("choice"))

    def work(session: Grading) -> int:
        check_pool(session, form)
        if do == "undo":
            session.undo()
        elif place is not None and form.first("choice"):
            session.go(place)
            record(session, choice, seconds=read_seconds(form))
        else:
            msg = "a form must hold a choice and its place n, or do=undo, got neither"
            raise InputError(msg)
        return session.number

    number = await in_session(request, name, judge, work)
    if view == "stay":
        return Response(b"", status_code=204, headers=page_headers())
    address = f"/judge/{name}/one?{urlencode(known(n=number, judge=judge.name))}"
    if view == "grid":
        address = await _grid_address(request, name, judge, number)
    return redirect(request, address)


# -- the grid ---------------------------------------------------------------------------------


@get("/judge/{name:str}/grid")
async def show_grid(request: AnyRequest) -> Response[bytes]:
    """Show the photos of one query: the next with an open photo, or the one of the number `q`."""
    name = request.path_params["name"]
    judge = judge_of(require_sign_in(request), query_value(request, "judge"))
    wanted, part = (read_place(query_value(request, key)) for key in ("q", "part"))

    def look(session: Grading) -> dict[str, Any]:
        queries = list(session.pool.places)
        if wanted is None:
            open_at = session.current
            number = len(queries) if open_at is None else queries.index(open_at[0])
        else:
            number = min(wanted, len(queries))
        return _read_grid(session, number, part)

    view = await in_session(request, name, judge, look)
    picture = address_pictures(request, "small")
    photos = [photo | {"picture": picture(photo["photo_id"])} for photo in view.pop("photos")]
    asked = picture(view["asked"]) if view["asked"] else ""
    title = (await _task_title(request, name)) | {"judge": judge, "at": judge_query(judge)}
    return respond(
        request,
        "judging/grid.html",
        remote_pictures=are_remote([asked, *(photo["picture"] for photo in photos)]),
        view=view | {"asked": asked},
        photos=photos,
        shown_at=read_clock(),
        **title,
    )


def _read_grid(session: Grading, number: int, part: int | None) -> dict[str, Any]:
    pool, latest = session.pool, session.journal.latest
    queries, view = list(pool.places), session.view()
    shared = {name: view[name] for name in ("total", "done", "skipped", "choices")}
    shared |= {"query_number": number, "n_queries": len(queries), "pool_id": pool.pool_id}
    if number >= len(queries):
        return shared | {"query": None, "asked": "", "photos": [], "part": 0, "n_parts": 1}
    query, places = pool.queries[queries[number]], pool.places[queries[number]]
    n_parts = -(-len(places) // PHOTOS_A_PAGE)
    open_part = next((i for i, p in enumerate(places) if pool.pairs[p] not in latest), 0)
    part = min(open_part // PHOTOS_A_PAGE if part is None else part, n_parts - 1)
    photos = []
    for place in places[part * PHOTOS_A_PAGE : (part + 1) * PHOTOS_A_PAGE]:
        entry = latest.get(pool.pairs[place])
        chosen = None if entry is None else _SKIP if entry.choice is None else entry.choice
        photos.append({"place": place, "photo_id": pool.pairs[place].photo_id, "chosen": chosen})
    first_place = part * PHOTOS_A_PAGE
    return shared | {
        "query": query,
        "asked": query.photo_id or "",
        "photos": photos,
        "part": part,
        "n_parts": n_parts,
        "n_photos": len(places),
        "first_place": first_place,
    }


@post("/judge/{name:str}/grid", status_code=200)
async def judge_grid(request: AnyRequest) -> Response[bytes]:
    """Record the choices of a grid that differ from what the journal holds, and go on."""
    name, form = request.path_params["name"], await read_form(request)
    judge = judge_of(require_sign_in(request), form.first("judge"))
    choices = {
        read_place(field.removeprefix(_FIELD)): read_choice(values[0])
        for field, values in form.items()
        if field.startswith(_FIELD) and _PLACE.fullmatch(field.removeprefix(_FIELD))
    }

    after = read_place(form.first("after")) or 0  # the last photo of the sheet, graded or not

    def work(session: Grading) -> int:
        check_pool(session, form)
        latest, items = session.journal.latest, session.items
        new: dict[int, Choice] = {}
        for place, choice in choices.items():
            if place is None or place >= len(items) or choice not in {None, *session.choices}:
                msg = f"a form must grade photos of this task, got {quote(choice)} for {place}"
                raise InputError(msg)
            entry = latest.get(items[place])
            if entry is None or entry.choice != choice:
                new[place] = choice
        seconds = read_seconds(form) / max(1, len(new))
        for place, choice in sorted(new.items()):
            session.go(place)
            session.choose(choice, seconds=seconds)
        return session.next_open(after + 1)

    number = await in_session(request, name, judge, work)
    return redirect(request, await _grid_address(request, name, judge, number))


async def _grid_address(request: AnyRequest, name: str, judge: HumanJudge, place: int) -> str:
    def look(session: Grading) -> dict[str, Any]:
        queries = list(session.pool.places)
        if place >= len(session.items):
            return {"q": len(queries)}
        query_id = session.pool.pairs[place].query_id
        number, around = queries.index(query_id), session.pool.places[query_id]
        return {"q": number, "part": around.index(place) // PHOTOS_A_PAGE or None}

    values = await in_session(request, name, judge, look)
    return f"/judge/{name}/grid?{urlencode(known(**values, judge=judge.name))}"


# -- what came --------------------------------------------------------------------------------


def record(session: JudgingSession, choice: Choice, *, seconds: float) -> None:
    """Record a choice for the item that is shown, once however often its form was sent."""
    entries = session.journal.entries
    item = session.current
    if entries and (entries[-1].item, entries[-1].choice) == (item, choice):
        # A form that was sent twice is one choice, which one undo takes back.
        session.go(session.next_open(session.number + 1))
        return
    session.choose(choice, seconds=seconds)


def check_pool(session: JudgingSession, form: FormFields) -> None:
    """Check that a form is of the task as it is now.

    Raises:
        ConflictError: The task was made anew under its name.
    """
    if form.first("pool") != session.journal.pool_id:
        msg = (
            "the task must be the one that the page was of, got one that was made anew under its "
            "name; open it again"
        )
        raise ConflictError(msg)


def read_place(text: str | None) -> int | None:
    """Read the place of an item; None if there is none."""
    if not text:
        return None
    if not _PLACE.fullmatch(text):
        msg = f"a place must be a number from 0, got {quote(text)}"
        raise InputError(msg)
    return int(text)


def read_choice(text: str) -> Choice:
    """Read a choice of a form; None to skip."""
    if text in ("", _SKIP):
        return None
    return int(text) if _PLACE.fullmatch(text) else text


def read_clock() -> str:
    """Return the seconds that a form says it was shown at.

    By the service's clock: it believes no jump of the machine's, as a monotonic one would not, and
    goes on through a restart, after which the form may come.
    """
    return f"{utc_now().timestamp():.3f}"


def read_seconds(form: FormFields) -> float:
    """Return how long the judge looked at what the form was about."""
    try:
        passed = float(read_clock()) - float(form.first("shown_at"))
    except ValueError:
        return 0.0
    return min(max(passed, 0.0), LONGEST_LOOK_S) if passed == passed else 0.0


def known(**values: Any) -> dict[str, Any]:
    """Return what an address needs: what is neither empty nor None."""
    return {name: value for name, value in values.items() if value not in (None, "")}


def judge_query(judge: HumanJudge) -> str:
    """Return the part of a query that names the judge, to put behind another part."""
    return f"&{urlencode({'judge': judge.name})}" if judge.name else ""


async def _task_title(request: AnyRequest, name: str) -> dict[str, Any]:
    sessions = sessions_of(request)
    task = await services_of(request).in_database(sessions.task, name)
    return {"name": task.name, "title": task.title}


ROUTES = [show_one, judge_one, show_grid, judge_grid]
