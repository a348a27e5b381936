"""The rules that queries, judgments and runs must keep, so that figures on them have a meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import chain

from searchlab.errors import InputError, quote
from searchlab.evaluation.datasets.judgments import MAX_GRADE, is_grade, is_id
from searchlab.evaluation.datasets.labelled import LabelledQuery

Qrels = Mapping[str, Mapping[str, int]]


def check_dataset(
    name: str, queries: Sequence[LabelledQuery], qrels: Qrels, photo_ids: Sequence[str]
) -> None:
    """Check that figures on a dataset have a meaning.

    Args:
        name: Name of the dataset, for messages.
        queries: The queries.
        qrels: query_id -> photo_id -> grade.
        photo_ids: The photos to search.

    Raises:
        InputError: A rule is broken; the message names the rule and what breaks it.
    """
    if not queries or not qrels:
        msg = f"dataset {name!r} must have queries and qrels, got none"
        raise InputError(msg)
    known = frozenset(photo_ids)
    if len(known) < len(photo_ids):
        twice = {photo_id for photo_id, n in Counter(photo_ids).items() if n > 1}
        _refuse(f"dataset {name!r}", "hold every photo once", twice)
    for rule, broken in chain(_ids(queries, qrels), _rules(queries, qrels, known)):
        _refuse(f"dataset {name!r}", rule, broken)


def check_run(
    name: str,
    queries: Sequence[LabelledQuery],
    run: Mapping[str, Sequence[str]],
    photo_ids: Set[str],
) -> None:
    """Check that a run can be an answer to a dataset's queries.

    Args:
        name: Name of the dataset, for messages.
        queries: The queries.
        run: query_id -> photo_ids, best first.
        photo_ids: The photos to search.

    Raises:
        InputError: A rule is broken; the message names the rule and what breaks it.
    """
    references = {query.query_id: query.photo_id for query in queries}
    ranked = {photo_id for answer in run.values() for photo_id in answer}
    for rule, broken in (
        ("answer known queries only", run.keys() - references.keys()),
        ("find photos, no padding", {photo for photo in ranked if not is_id(photo)}),
        ("find photos of the dataset only", ranked - photo_ids),
        (
            "name a photo once for each query",
            {query_id for query_id, answer in run.items() if len(set(answer)) < len(answer)},
        ),
        (
            "never find the reference photo of a query",
            {query_id for query_id, answer in run.items() if references.get(query_id) in answer},
        ),
    ):
        _refuse(f"a run of dataset {name!r}", rule, broken)


def _ids(queries: Sequence[LabelledQuery], qrels: Qrels) -> Iterator[tuple[str, set[str]]]:
    photos = {photo_id for grades in qrels.values() for photo_id in grades}
    photos |= {query.photo_id for query in queries if query.photo_id is not None}
    used = photos | qrels.keys() | {query.query_id for query in queries}
    rule = "have ids that are text without spaces and no padding"
    yield rule, {quote(value) for value in used if not is_id(value)}
    counts = Counter(query.query_id for query in queries)
    yield "have every query_id once", {query_id for query_id, n in counts.items() if n > 1}


def _rules(
    queries: Sequence[LabelledQuery], qrels: Qrels, photo_ids: Set[str]
) -> Iterator[tuple[str, set[str]]]:
    known = {query.query_id for query in queries}
    references = {q.query_id: q.photo_id for q in queries if q.photo_id is not None}
    yield (
        "have a text or a reference photo for every query",
        {q.query_id for q in queries if q.photo_id is None and q.text is None}
        | {q.query_id for q in queries if q.text is not None and not q.text.strip()},
    )
    yield "name a language for every query", {q.query_id for q in queries if not q.lang.strip()}
    yield "have reference photos of its own", set(references.values()) - photo_ids
    yield "judge known queries only", qrels.keys() - known
    judged = {photo_id for grades in qrels.values() for photo_id in grades}
    yield "judge known photos only", judged - photo_ids
    yield (
        f"have whole numbers from 0 to {MAX_GRADE} as grades",
        {
            f"{query_id} {photo_id} {quote(grade)}"
            for query_id, grades in qrels.items()
            for photo_id, grade in grades.items()
            if not is_grade(grade)
        },
    )
    yield (
        "not judge a query's own reference photo",
        {query_id for query_id, photo in references.items() if photo in qrels.get(query_id, ())},
    )
    answered = {i for i, grades in qrels.items() if any(grade >= 1 for grade in grades.values())}
    yield "have a relevant photo for every query", known - answered


def _refuse(what: str, rule: str, broken: Collection[str]) -> None:
    if broken:
        first = sorted(broken, key=str)
        more = f" and {len(first) - 5} more" if len(first) > 5 else ""
        msg = f"{what} must {rule}, got {', '.join(map(repr, first[:5]))}{more}"
        raise InputError(msg)
