"""What came of a judging task: progress, agreement, disagreements, and the judgments as files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from litestar import Request, Response, get

from searchlab.api.http.context import services_of
from searchlab.api.web.grid import are_remote
from searchlab.api.web.judging.grading import judge_query
from searchlab.api.web.judging.sessions import (
    HumanJudge,
    OpenSessions,
    address_pictures,
    judge_of,
    sessions_of,
)
from searchlab.api.web.templates import page_headers, respond
from searchlab.api.web.visitor import require_sign_in
from searchlab.api.wire.parameters import query_value
from searchlab.errors import NotFoundError, quote
from searchlab.evaluation.datasets.folders import encode_queries
from searchlab.evaluation.datasets.judgments import encode_qrels
from searchlab.evaluation.judging.agreement import (
    Grades,
    JudgeAgreement,
    agreement,
    disagreements,
    shared_units,
)
from searchlab.evaluation.judging.makers import is_made_by
from searchlab.evaluation.judging.merge import RULES, missed
from searchlab.evaluation.judging.pools import Pair
from searchlab.evaluation.judging.tasks import JudgingTask, eye_origins, merge_all

AnyRequest = Request[Any, Any, Any]
_WORST_SHOWN: Final = 24
_FILES: Final = ("qrels.txt", "qrels.tsv", "queries.tsv", "grades.tsv")


@dataclass(frozen=True)
class _Results:
    n_done: dict[str, int]
    agreement: JudgeAgreement | None
    apart: list[tuple[Pair, dict[str, int]]]
    shows_all: bool
    n_judgments: int
    missed: str


@get("/judge/{name:str}/results")
async def show_results(request: AnyRequest) -> Response[bytes]:
    """Show progress and agreement, where judges are far apart, and the files to take away."""
    visitor, sessions = require_sign_in(request), sessions_of(request)
    judge = judge_of(visitor, query_value(request, "judge"))
    name = request.path_params["name"]
    task, results = await services_of(request).in_database(_read, sessions, name, judge)
    picture, pool = address_pictures(request, "thumb"), task.pool
    apart: list[dict[str, Any]] = [
        {"query": pool.queries[pair.query_id], "picture": picture(pair.photo_id), "grades": grades}
        for pair, grades in results.apart
    ]
    return respond(
        request,
        "judging/results.html",
        remote_pictures=are_remote(row["picture"] for row in apart),
        task=task,
        is_mine=is_made_by(task, str(visitor.account_id), visitor.account),
        total=len(pool),
        results=results,
        apart=apart,
        rules=tuple(RULES),
        judge=judge,
        at=judge_query(judge),
    )


def _read(sessions: OpenSessions, name: str, judge: HumanJudge) -> tuple[JudgingTask, _Results]:
    task = sessions.task(name)
    grades, n_done = task.grades(), _count_done(task)
    shown = _shown_to(judge, task)
    apart = [found for found in disagreements(grades) if found[0] in shown]
    qrels = task.qrels("median") if grades else {}
    results = _Results(
        n_done={label: n for label, n in n_done.items() if n},
        agreement=agreement(grades) if shared_units(grades) else None,
        apart=apart[:_WORST_SHOWN],
        shows_all=len(shown) == len(task.pool),
        n_judgments=sum(map(len, qrels.values())),
        missed=str(missed(task.pool, qrels)) if task.pool.drawn and qrels else "",
    )
    return task, results


def _count_done(task: JudgingTask) -> dict[str, int]:
    return {journal.judge: len(journal.latest) for journal in task.journals()}


def _shown_to(judge: HumanJudge, task: JudgingTask) -> Collection[Pair]:
    """Return the pairs for which a judge is shown what others gave.

    Whoever is still judging must not see that of the photos that are left. The account's journals
    say so, since a judge elsewhere may have the same name.
    """
    pairs = frozenset(task.pool.pairs)
    own = [journal for journal in task.journals(judge.owner) if journal.latest]  # not just opened
    if own and all(pairs <= journal.latest.keys() for journal in own):
        return pairs
    path = task.journal_of(judge.label, judge.owner)
    return {Pair(*item) for journal in own if journal.path == path for item in journal.choices}


@get("/judge/{name:str}/files/{file:str}")
async def send_file(request: AnyRequest) -> Response[bytes]:
    """Send the judgments or the queries as a file: all to the maker, as on the page to others."""
    visitor = require_sign_in(request)
    judge = judge_of(visitor, query_value(request, "judge"))
    sessions, file = sessions_of(request), request.path_params["file"]
    rule = query_value(request, "rule", "median")
    if file not in _FILES:
        msg = f"file must be one of {', '.join(_FILES)}, got {quote(file)}"
        raise NotFoundError(msg)

    def write() -> tuple[str, bytes]:
        task = sessions.task(request.path_params["name"])
        if file == "queries.tsv":  # no journal is read, so one that is damaged does no harm
            return task.name, encode_queries(task.pool.queries.values())
        grades: Grades = task.grades()
        if not is_made_by(task, str(visitor.account_id), visitor.account):
            shown = _shown_to(judge, task)
            # A judge of whom nothing is left stays: `strict` asks that all have graded a photo.
            grades = {
                who: {pair: grade for pair, grade in given.items() if pair in shown}
                for who, given in grades.items()
            }
        return task.name, _encode(grades, file, rule)

    name, content = await services_of(request).in_database(write)
    kind = "text/plain" if file.endswith(".txt") else "text/tab-separated-values"
    headers = page_headers() | {"Content-Disposition": f'attachment; filename="{name}-{file}"'}
    return Response(content, media_type=kind, headers=headers)


def _encode(grades: Grades, file: str, rule: str) -> bytes:
    if file == "grades.tsv":
        return _encode_grades(grades)
    qrels = merge_all(grades, rule)
    return encode_qrels(qrels, as_tsv=file.endswith(".tsv"), origins=eye_origins(qrels))


def _encode_grades(grades: Grades) -> bytes:
    rows = [("query_id", "photo_id", "judge", "relevance")]
    for judge, given in sorted(grades.items()):
        label = " ".join(judge.split())  # a name may hold tabs and line breaks
        rows += [(pair.query_id, pair.photo_id, label, str(given[pair])) for pair in sorted(given)]
    return "".join("\t".join(row) + "\n" for row in rows).encode()


ROUTES = [show_results, send_file]
