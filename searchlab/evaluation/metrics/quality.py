"""Quality of runs against judgments.

Answers and judgments become arrays of grades, on which `searchlab.evaluation.metrics.ranked` counts
for all queries at once. Tests hold it equal to ir_measures and to ranx.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, quote, refuse_names
from searchlab.evaluation.datasets.judgments import MAX_GRADE, is_grade, is_padding
from searchlab.evaluation.metrics.names import (
    Metric,
    MetricKind,
    ScoreQuery,
    metric_kind,
    parse_metric,
)
from searchlab.evaluation.metrics.ranked import RankedGrades

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""query_id -> photo_id -> grade; 1 and above is relevant."""

Run: TypeAlias = Mapping[str, Sequence[str]]
"""query_id -> photo_ids of one system, best first."""

_CELLS = 2_000_000  # grades, padding included, of the arrays that are held at once; 16 MB

# Of all queries: with more, a condensed mean says how few were judged, not how good lists are.
_MOST_PERFECT = 0.5


def per_query(qrels: Qrels, run: Run, metrics: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Score every judged query of a run.

    A query that the run does not answer scores 0; answers to queries without judgments are
    ignored. `ndcg` has the linear gain of Jarvelin and Kekalainen (the grade itself), `ndcg_exp`
    that of Burges et al. (2^grade - 1); `searchlab.evaluation.metrics.names` defines every metric.
    Only the order of the run counts: there are no scores, hence no ties.

    Args:
        qrels: Judgments; a photo without one counts as not relevant, except in a condensed list.
        run: Ranked photo_ids; those after a cut-off are ignored.
        metrics: Such as `"ndcg@10"`, `"recall@100/l2"` or `"map@10/condensed"`.

    Returns:
        For each metric (n_queries,) values from 0 to 1, in the order of `sorted(qrels)`.

    Raises:
        InputError: A metric is not supported, there are no judgments or no metrics, a query has no
            photo that is relevant at the metric's level, a grade is no whole number from 0 to
            1000, an id is padding, the run names a photo twice for one query, or a list is
            condensed although only relevant photos were judged, which makes any list perfect.

    References:
        Jarvelin and Kekalainen, Cumulated gain-based evaluation of IR techniques, TOIS 20, 2002.
        Burges et al., Learning to rank using gradient descent, ICML 2005.
        Sakai, Alternatives to bpref, SIGIR 2007.
    """
    parsed = check_judgments(qrels, metrics)
    judged = [qrels[query_id] for query_id in sorted(qrels)]
    answers = _answers(qrels, run)
    condensed = _condense(judged, answers)
    values = {}
    for name, metric in parsed.items():
        if (score := _kind(metric).score) is not None:
            lists = condensed if metric.condensed else answers
            values[name] = _score_each(score, judged, lists, metric)
    in_arrays = sorted(parsed.keys() - values.keys(), key=lambda name: _preparation(parsed[name]))
    for (condense, least), names in groupby(in_arrays, key=lambda name: _preparation(parsed[name])):
        lists = condensed if condense else answers
        values |= _score_all(judged, lists, least, {name: parsed[name] for name in names})
    return {metric: values[metric] for metric in metrics}


def _kind(metric: Metric) -> MetricKind:
    kind = metric_kind(metric.name)
    if kind is None or (kind.score is None and kind.score_all is None):
        msg = f"a metric must have `score` or `score_all`, got neither for {metric.name!r}"
        raise InputError(msg)
    return kind


def check_judgments(qrels: Qrels, metrics: Sequence[str]) -> dict[str, Metric]:
    """Check, before anything is ranked, that the metrics have a meaning for these judgments.

    Returns:
        Name -> the parsed metric.

    Raises:
        InputError: For the reasons of `per_query` that do not depend on a run.
    """
    if isinstance(metrics, str):
        msg = f"metrics must be a list of names, got {quote(metrics)}; give [{metrics!r}]"
        raise InputError(msg)
    if not qrels or not metrics:
        msg = f"qrels and metrics must not be empty, got {len(qrels)} queries, {list(metrics)}"
        raise InputError(msg)
    parsed = {metric: parse_metric(metric) for metric in metrics}
    _check_qrels(qrels, max(metric.least for metric in parsed.values()))
    for name, metric in parsed.items():
        if metric.condensed:
            _check_condensed(qrels, name, metric.least)
    return parsed


def evaluate(qrels: Qrels, run: Run, metrics: Sequence[str]) -> dict[str, float]:
    """Score a run: the mean of `per_query` over all judged queries.

    Example:
        >>> qrels = {"dunes": {"a": 3, "b": 1}, "harbour": {"c": 2}}
        >>> evaluate(qrels, {"harbour": ["c"]}, ["ndcg@10"])
        {'ndcg@10': 0.5}
    """
    refuse_names("what read_qrels(path) and read_run(path) return", qrels=qrels, run=run)
    return {name: float(np.mean(scores)) for name, scores in per_query(qrels, run, metrics).items()}


def _check_qrels(qrels: Qrels, least: int) -> None:
    for query_id, grades in qrels.items():
        wrong = [(photo, g) for photo, g in grades.items() if is_padding(photo) or not is_grade(g)]
        if wrong:
            msg = (
                f"qrels must give photos whole numbers from 0 to {MAX_GRADE}, got "
                f"{quote(wrong[0][1])} for {quote(wrong[0][0])} of {query_id!r}"
            )
            raise InputError(msg)
        if max(grades.values(), default=0) < least:
            msg = (
                f"every query must have a photo of grade {least} or above, got none for "
                f"{query_id!r}; leave it out, since no system can answer it"
            )
            raise InputError(msg)


def _check_condensed(qrels: Qrels, metric: str, least: int) -> None:
    perfect = sum(all(grade >= least for grade in grades.values()) for grades in qrels.values())
    if perfect > _MOST_PERFECT * len(qrels):
        msg = (
            f"qrels must have photos that were judged not relevant for {metric!r}, got relevant "
            f"ones alone for {perfect:,} of {len(qrels):,} queries, with which every condensed "
            "list is perfect; leave /condensed out"
        )
        raise InputError(msg)


def _answers(qrels: Qrels, run: Run) -> list[list[str]]:
    """List the run's answers to each judged query, and check that they are distinct photos."""
    for query_id, answer in run.items():
        if isinstance(answer, str | Mapping):
            best = "sorted(scores, key=scores.get, reverse=True)"
            msg = (
                f"a run must list photo_ids, best first, got {quote(answer)} for {query_id!r}; "
                f"of scores by photo, give {best}"
            )
            raise InputError(msg)
    answers = [list(run.get(query_id, ())) for query_id in sorted(qrels)]
    padding = {photo for photo in set().union(*answers) if is_padding(photo)}
    for query_id, answer in zip(sorted(qrels), answers, strict=True):
        if padding and not padding.isdisjoint(answer):
            wrong = next(photo for photo in answer if photo in padding)
            msg = f"a run must name photos, no padding, got {quote(wrong)} for {query_id!r}"
            raise InputError(msg)
        if len(set(answer)) < len(answer):
            twice = next(photo for photo in answer if answer.count(photo) > 1)
            msg = (
                f"a run must name a photo once for each query, got {twice!r} twice for {query_id!r}"
            )
            raise InputError(msg)
    return answers


def _condense(
    judged: Sequence[Mapping[str, int]], answers: Sequence[Sequence[str]]
) -> list[list[str]]:
    return [
        [photo_id for photo_id in answer if photo_id in grades]
        for grades, answer in zip(judged, answers, strict=True)
    ]


def _score_each(
    score: ScoreQuery,
    judged: Sequence[Mapping[str, int]],
    answers: Sequence[Sequence[str]],
    metric: Metric,
) -> NDArray[np.float64]:
    scores = [
        score(grades, answer[: metric.k], metric)
        for grades, answer in zip(judged, answers, strict=True)
    ]
    return np.array(scores, dtype=np.float64)


def _preparation(metric: Metric) -> tuple[bool, int]:
    """Return whether to condense, and the least grade: metrics that share both share a call."""
    return metric.condensed, metric.least


def _score_all(
    judged: Sequence[Mapping[str, int]],
    answers: Sequence[Sequence[str]],
    least: int,
    metrics: Mapping[str, Metric],
) -> dict[str, NDArray[np.float64]]:
    depth = max(metric.k for metric in metrics.values())
    found = [
        [grade if (grade := grades.get(photo, 0)) >= least else 0 for photo in answer[:depth]]
        for grades, answer in zip(judged, answers, strict=True)
    ]
    ideal = [
        sorted((grade for grade in grades.values() if grade >= least), reverse=True)
        for grades in judged
    ]
    n_relevant = np.array([len(grades) for grades in ideal], dtype=np.int64)
    values = {name: np.zeros(len(judged)) for name in metrics}
    lengths = [max(len(one), len(best)) for one, best in zip(found, ideal, strict=True)]
    for rows in _batches([min(length, depth) for length in lengths]):
        grades = RankedGrades(
            _padded([found[row] for row in rows]),
            _padded([ideal[row][:depth] for row in rows]),
            n_relevant[rows],
        )
        for name, metric in metrics.items():
            score_all = _kind(metric).score_all
            if score_all is not None:
                values[name][rows] = score_all(grades, metric.k)
    return values


def _batches(lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Cut queries into groups of similar length, so that their padded arrays fit into memory."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * lengths[order[stop]] <= _CELLS:
            stop += 1
        yield order[start:stop]
        start = stop


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Write rows of grades below each other, with zeros behind the shorter ones."""
    array = np.zeros((len(rows), max(map(len, rows))))
    for place, row in enumerate(rows):
        array[place, : len(row)] = row
    return array
