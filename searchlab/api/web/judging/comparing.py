"""Where judges compare two rankings, and learn at the end which was which.

Until all is judged, nothing on these pages says which system is on which side.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar
from urllib.parse import urlencode

from litestar import Request, Response, get, post

from searchlab.api.http.context import services_of
from searchlab.api.web.forms import read_form
from searchlab.api.web.grid import are_remote
from searchlab.api.web.judging.grading import (
    check_pool,
    judge_query,
    known,
    read_choice,
    read_clock,
    read_place,
    read_seconds,
    record,
)
from searchlab.api.web.judging.sessions import HumanJudge, address_pictures, judge_of
from searchlab.api.web.templates import redirect, respond
from searchlab.api.web.visitor import require_sign_in
from searchlab.api.wire.parameters import query_value
from searchlab.errors import InputError
from searchlab.evaluation.judging.comparisons import open_comparison
from searchlab.evaluation.judging.preferences import BlindComparison

AnyRequest = Request[Any, Any, Any]
T = TypeVar("T")
_KEYS = {"left": "1", "tie": "0", "right": "2"}


async def _in_comparison(
    request: AnyRequest, judge: HumanJudge, work: Callable[[BlindComparison], T]
) -> tuple[str, T]:
    """Call `work` with a judge's session in a thread; returns the task's title besides."""
    library = services_of(request).live_library.library.folder
    name, pictures = request.path_params["name"], address_pictures(request, "thumb")

    def hold() -> tuple[str, T]:
        task = open_comparison(library, name)
        session = task.comparing(judge.label, owner=judge.owner, pictures=pictures)
        return task.title, work(session)

    return await services_of(request).in_database(hold)


@get("/judge/{name:str}/compare")
async def show_pair(request: AnyRequest) -> Response[bytes]:
    """Show two rankings for a query: the next open one, or the one at the place `n`."""
    judge = judge_of(require_sign_in(request), query_value(request, "judge"))
    place = read_place(query_value(request, "n"))

    def look(session: BlindComparison) -> dict[str, Any]:
        if place is not None:
            session.go(place)
        return session.view() | {"pool_id": session.journal.pool_id}

    title, view = await _in_comparison(request, judge, look)
    scene = view["scene"]
    pictures = [scene["asked"], *chain.from_iterable(scene["sides"])] if scene else []
    return respond(
        request,
        "judging/compare.html",
        remote_pictures=are_remote(pictures),
        name=request.path_params["name"],
        title=title,
        view=view,
        keys=_KEYS,
        judge=judge,
        at=judge_query(judge),
        shown_at=read_clock(),
    )


@post("/judge/{name:str}/compare", status_code=200)
async def judge_pair(request: AnyRequest) -> Response[bytes]:
    """Record a preference, or take the last one back, and go on to the next open query."""
    form = await read_form(request)
    judge = judge_of(require_sign_in(request), form.first("judge"))
    place, choice = read_place(form.first("n")), form.first("choice")

    def work(session: BlindComparison) -> int:
        check_pool(session, form)
        if form.first("do") == "undo":
            session.undo()
        elif place is not None and choice:
            session.go(place)
            record(session, read_choice(choice), seconds=read_seconds(form))
        else:
            msg = "a form must hold a choice and its place n, or do=undo, got neither"
            raise InputError(msg)
        return session.number

    _, number = await _in_comparison(request, judge, work)
    query = urlencode(known(n=number, judge=judge.name))
    return redirect(request, f"/judge/{request.path_params['name']}/compare?{query}")


@get("/judge/{name:str}/outcome")
async def show_outcome(request: AnyRequest) -> Response[bytes]:
    """Say which system the judge preferred; only once all is judged."""
    judge = judge_of(require_sign_in(request), query_value(request, "judge"))
    title, outcome = await _in_comparison(request, judge, lambda session: session.outcome())
    return respond(
        request,
        "judging/outcome.html",
        name=request.path_params["name"],
        title=title,
        outcome=outcome,
        at=judge_query(judge),
    )


ROUTES = [show_pair, judge_pair, show_outcome]
