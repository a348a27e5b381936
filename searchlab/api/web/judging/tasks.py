"""The list of judging tasks, the page of each, and how one is made or deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, Final, TypeVar

from litestar import Request, Response, get, post

from searchlab.api.accounts.rates import seconds_left_in_month
from searchlab.api.accounts.values import storable
from searchlab.api.accounts.visitors import is_closed
from searchlab.api.http.context import Services, caller_of, context_of, services_of
from searchlab.api.web.forms import FormFields, read_form
from searchlab.api.web.judging.grading import judge_query
from searchlab.api.web.judging.sessions import judge_of, sessions_of
from searchlab.api.web.templates import redirect, respond
from searchlab.api.web.visitor import Visitor, require_sign_in
from searchlab.api.wire.errors import HttpProblem, is_out_of_room
from searchlab.api.wire.parameters import query_value
from searchlab.errors import (
    ConflictError,
    ForbiddenError,
    InputError,
    NotFoundError,
    QuotaError,
    quote,
)
from searchlab.evaluation.datasets.labelled import LabelledQuery
from searchlab.evaluation.judging.comparisons import (
    ComparisonTask,
    list_comparisons,
    open_comparison,
)
from searchlab.evaluation.judging.grading import GRADES
from searchlab.evaluation.judging.makers import forget_maker, is_made_by
from searchlab.evaluation.judging.pools import Pool, pool_queries, rank_queries
from searchlab.evaluation.judging.query_lists import parse_queries
from searchlab.evaluation.judging.tasks import (
    MAX_TITLE,
    JudgingTask,
    check_free,
    create_task,
    delete_task,
    list_tasks,
    task_name,
)
from searchlab.evaluation.results import system_name
from searchlab.search.engine import SearchEngine

AnyRequest = Request[Any, Any, Any]
TASKS_A_PAGE: Final = 20
COMPARISONS_A_PAGE: Final = 50
MAX_QUERIES: Final = 500
_MAX_TASK_BYTES: Final = 2**20
MAX_DEPTH: Final = 100
MAX_PAIRS: Final = 20_000
MAX_RANDOM_PERCENT: Final = 100
_Task = TypeVar("_Task", JudgingTask, ComparisonTask)
_DEFAULTS: Final = {"title": "", "queries": "", "depth": "10", "random": "0", "seed": "0"}


@get("/judge")
async def show_tasks(request: AnyRequest) -> Response[bytes]:
    """List the tasks and the comparisons, the newest first, with the visitor's own progress.

    Both lists are paged together: a page that is behind the end of one shows the other alone.
    """
    visitor, sessions = require_sign_in(request), sessions_of(request)
    library = services_of(request).live_library.library.folder
    page = _number(query_value(request, "page", "1"), "page", 1, 10**6)

    def read() -> tuple[list[dict[str, Any]], int, list[ComparisonTask]]:
        names = list_tasks(library)
        compared = list_comparisons(library)
        shown = names[(page - 1) * TASKS_A_PAGE : page * TASKS_A_PAGE]
        side_by_side = compared[(page - 1) * COMPARISONS_A_PAGE : page * COMPARISONS_A_PAGE]
        judge = judge_of(visitor, "")
        tasks = _open_those_left(sessions.task, shown)
        listed = [_summary(task) | {"done": sessions.n_done(task, judge)} for task in tasks]
        comparisons = list(_open_those_left(partial(open_comparison, library), side_by_side))
        n_pages = max(-(-len(names) // TASKS_A_PAGE), -(-len(compared) // COMPARISONS_A_PAGE))
        return listed, n_pages, comparisons

    tasks, n_pages, comparisons = await services_of(request).in_database(read)
    return respond(
        request,
        "judging/tasks.html",
        tasks=tasks,
        comparisons=comparisons,
        page=page,
        n_pages=n_pages,
        choices=GRADES,
    )


@get("/judge/{name:str}")
async def show_task(request: AnyRequest) -> Response[bytes]:
    """Show what is to be judged, how, and how far the judges are."""
    visitor, sessions = require_sign_in(request), sessions_of(request)
    name = request.path_params["name"]
    judge = judge_of(visitor, query_value(request, "judge"))

    def read() -> dict[str, Any]:
        task = sessions.task(name)
        n_done = {journal.judge: len(journal.latest) for journal in task.journals()}
        n_done = {label: n for label, n in n_done.items() if n or label == judge.label}
        mine = sessions.n_done(task, judge)
        return _summary(task) | {"done": mine, "judges": n_done, "is_mine": _is_of(task, visitor)}

    task = await services_of(request).in_database(read)
    return respond(
        request,
        "judging/task.html",
        task=task,
        judge=judge,
        at=judge_query(judge),
        choices=GRADES,
    )


def _open_those_left(open_one: Callable[[str], _Task], names: Sequence[str]) -> Iterator[_Task]:
    """Open what is on a list, but for what somebody has deleted since."""
    for name in names:
        with suppress(NotFoundError):
            yield open_one(name)


# -- making one -------------------------------------------------------------------------------


@get("/judge/new")
async def show_new(request: AnyRequest) -> Response[bytes]:
    """Show the form of a new task."""
    require_sign_in(request)
    return _show_form(request, _DEFAULTS)


@post("/judge/new", status_code=200)
async def make_task(request: AnyRequest) -> Response[bytes]:
    """Pool photos for queries; what does not fit is said above the form, which stays filled in."""
    visitor = require_sign_in(request)
    form = await read_form(request, max_bytes=_MAX_TASK_BYTES)
    values = {name: form.first(name, default) for name, default in _DEFAULTS.items()}
    try:
        title = storable(values["title"].strip(), "title", least=1, most=MAX_TITLE)
        services, name = services_of(request), task_name(title)
        library = services.live_library.library.folder
        await services.in_database(check_free, library, name)
        queries, shape = parse_queries(form.first("queries")), _read_shape(form)
        engine = services.live_library.current.engine
        _check_size(len(queries), len(engine.table), shape)
        # What a check refuses counts nothing. What is searched is counted, whatever comes of it.
        await _count(request, len(queries))
        pool = await _pool(services, engine, queries, shape)
        task = await services.in_database(_create, services, visitor, name, pool, title)
    except (InputError, ConflictError) as error:
        if is_out_of_room(error):
            raise
        return _show_form(request, values, problem=str(error), status=422)
    return redirect(request, f"/judge/{task.name}")


def _show_form(
    request: AnyRequest, values: dict[str, str], *, problem: str = "", status: int = 200
) -> Response[bytes]:
    limits = {"queries": MAX_QUERIES, "depth": MAX_DEPTH, "title": MAX_TITLE}
    return respond(
        request, "judging/new.html", status=status, values=values, problem=problem, limits=limits
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    depth: int
    seed: int
    random_share: float


def _read_shape(form: FormFields) -> _Shape:
    depth = _number(form.first("depth", "10"), "photos of each query", 1, MAX_DEPTH)
    seed = _number(form.first("seed", "0"), "seed of the order", 0, 10**9)
    percent = _number(form.first("random", "0"), "% at random on top", 0, MAX_RANDOM_PERCENT)
    return _Shape(depth, seed, percent / 100)


def _check_size(n_queries: int, n_photos: int, shape: _Shape) -> None:
    """Check how much there would be to search and to grade, which is known beforehand."""
    if n_queries > MAX_QUERIES:
        msg = (
            f"queries must be at most {MAX_QUERIES:,} on this page, got {n_queries:,}; "
            "use `searchlab judge create` for more"
        )
        raise InputError(msg)
    ranked = min(shape.depth, n_photos)
    drawn = min(ceil(shape.random_share * ranked), n_photos - ranked)
    if (n_pairs := n_queries * (ranked + drawn)) > MAX_PAIRS:
        msg = f"photos to grade must be at most {MAX_PAIRS:,}, got {n_pairs:,}; ask for fewer"
        raise InputError(msg)


async def _pool(
    services: Services, engine: SearchEngine, queries: Sequence[LabelledQuery], shape: _Shape
) -> Pool:
    """Rank the queries as the API does, and pool what is found."""
    run: dict[str, list[str]] = {}
    for query in queries:  # one after the other, so that searches of others come between
        run |= await services.search_threads.run(rank_queries, engine, [query], depth=shape.depth)

    def pool() -> Pool:
        photo_ids = (
            frozenset(engine.table.texts("photo_id"))
            if shape.random_share
            else frozenset(photo for ranked in run.values() for photo in ranked)
        )
        return pool_queries(
            queries,
            photo_ids,
            {system_name(engine.config): run},
            depth=shape.depth,
            seed=shape.seed,
            random_share=shape.random_share,
            table=engine.table,
        )

    return await services.search_threads.run(pool)


def _create(services: Services, visitor: Visitor, name: str, pool: Pool, title: str) -> JudgingTask:
    library, owner = services.live_library.library.folder, str(visitor.account_id)
    task = create_task(library, name, pool, title=title, made_by=visitor.account, owner=owner)
    # Searching takes its time: whoever closed the account meanwhile could not find this task.
    if is_closed(services.database, visitor.account_id):
        forget_maker(library, owner, visitor.account)
    return task


async def _count(request: AnyRequest, n_queries: int) -> None:
    """Count each query as a search, all of them or none."""
    meter, limit = services_of(request).meter, context_of(request).plan.requests_per_month
    try:
        await meter.count(caller_of(request), limit=limit, searches=n_queries)
    except QuotaError:
        raise _quota_exceeded(request, n_queries) from None


def _quota_exceeded(request: AnyRequest, n_queries: int) -> HttpProblem:
    services_of(request).metrics.count_refusal("quota")
    plan = context_of(request).plan
    msg = (
        f"the plan {plan.name} allows {plan.requests_per_month:,} searches a month, and less than "
        f"{n_queries:,} are left; take fewer queries, or wait for the next month (UTC)"
    )
    wait = str(seconds_left_in_month())
    return HttpProblem(msg, "QUOTA_EXCEEDED", headers={"Retry-After": wait})


# -- deleting one -----------------------------------------------------------------------------


@get("/judge/{name:str}/delete")
async def confirm_delete(request: AnyRequest) -> Response[bytes]:
    """Ask whether to delete a task with everything that was judged for it."""
    task = await _own_task(request)
    n_judges = len(await services_of(request).in_database(task.journals))
    return respond(request, "judging/delete.html", task=_summary(task), n_judges=n_judges)


@post("/judge/{name:str}/delete", status_code=200)
async def delete(request: AnyRequest) -> Response[bytes]:
    """Delete a task; only the account that made it may."""
    task = await _own_task(request)
    await services_of(request).in_database(delete_task, task)
    return redirect(request, "/judge")


async def _own_task(request: AnyRequest) -> JudgingTask:
    visitor, sessions = require_sign_in(request), sessions_of(request)
    task = await services_of(request).in_database(sessions.task, request.path_params["name"])
    if not _is_of(task, visitor):
        maker = task.made_by or "an account that was closed"
        msg = f"the task {task.name} must be your own to be deleted, got one of {maker}"
        raise ForbiddenError(msg)
    return task


def _is_of(task: JudgingTask, visitor: Visitor) -> bool:
    return is_made_by(task, str(visitor.account_id), visitor.account)


def _summary(task: JudgingTask) -> dict[str, Any]:
    return {
        "name": task.name,
        "title": task.title,
        "made_by": task.made_by,
        "made_at": task.made_at,
        "n_queries": len(task.pool.queries),
        "total": len(task.pool),
        "n_drawn": len(task.pool.drawn),
    }


def _number(text: str, name: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 11 and low <= int(text) <= high):
        msg = f"{name} must be a number from {low} to {high:,}, got {quote(text)}"
        raise InputError(msg)
    return int(text)


ROUTES = [show_tasks, show_new, make_task, show_task, confirm_delete, delete]
