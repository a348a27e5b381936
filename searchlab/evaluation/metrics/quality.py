"""Quality of runs against judgments, computed by ranx.

ranx also takes plain arrays, and this module gives it those: building its `Qrels` and `Run` objects
would compile a dictionary library first (31 s instead of 7 s where nothing is cached), and would
hash the ids into 53 bits on the way. Only `judged@k` is counted here, since ranx lacks it.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError, quote
from searchlab.evaluation.datasets.judgments import MAX_GRADE, is_grade, is_padding
from searchlab.evaluation.metrics.names import METRICS, Metric, ScoreQuery, parse_metric

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""query_id -> photo_id -> grade; 1 and above is relevant."""

Run: TypeAlias = Mapping[str, Sequence[str]]
"""query_id -> photo_ids of one system, best first."""

_NOT_RELEVANT = -1.0  # stands for every photo that is not relevant to the query
_CELLS = 2_000_000  # judgments, padding included, that are handed to ranx at once; 32 MB

# ranx uses numba's workqueue, which aborts the process when two threads enter it at once.
_RANX_LOCK = threading.Lock()


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
        Bassani, ranx: a blazing-fast Python library for ranking evaluation, ECIR 2022.
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
        score = METRICS[metric.name].score
        if score is not None:
            lists = condensed if metric.condensed else answers
            values[name] = _score_each(score, judged, lists, metric)
    by_ranx = sorted(parsed.keys() - values.keys(), key=lambda name: _preparation(parsed[name]))
    for (condense, least), names in groupby(by_ranx, key=lambda name: _preparation(parsed[name])):
        lists = condensed if condense else answers
        relevant = [_relevant(grades, least) for grades in judged]
        values |= _score_by_ranx(relevant, lists, {name: parsed[name] for name in names})
    return {metric: values[metric] for metric in metrics}


def check_judgments(qrels: Qrels, metrics: Sequence[str]) -> dict[str, Metric]:
    """Check, before anything is ranked, that the metrics have a meaning for these judgments.

    Returns:
        Name -> the parsed metric.

    Raises:
        InputError: For the reasons of `per_query` that do not depend on a run.
    """
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
    if all(grade >= least for grades in qrels.values() for grade in grades.values()):
        msg = (
            f"qrels must have photos that were judged not relevant for {metric!r}, got relevant "
            "ones alone, with which every condensed list is perfect; leave /condensed out"
        )
        raise InputError(msg)


def _answers(qrels: Qrels, run: Run) -> list[list[str]]:
    """List the run's answers to each judged query, and check that they are distinct photos."""
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


def _relevant(grades: Mapping[str, int], least: int) -> dict[str, int]:
    # Highest grade first: ranx takes this order as the ideal ranking.
    relevant = {photo_id: grade for photo_id, grade in grades.items() if grade >= least}
    return dict(sorted(relevant.items(), key=lambda item: -item[1]))


def _score_by_ranx(
    relevant: Sequence[Mapping[str, int]],
    answers: Sequence[Sequence[str]],
    metrics: Mapping[str, Metric],
) -> dict[str, NDArray[np.float64]]:
    depth = max(metric.k for metric in metrics.values())
    values = {name: np.zeros(len(relevant)) for name in metrics}
    for rows in _batches([len(photos) for photos in relevant]):
        some = [relevant[row] for row in rows]
        ranked = _ranked_array(some, [answers[row][:depth] for row in rows], depth)
        for name, scores in _ranx(_judged_array(some), ranked, metrics).items():
            values[name][rows] = scores
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


def _judged_array(relevant: Sequence[Mapping[str, int]]) -> NDArray[np.float64]:
    """Number each query's relevant photos from 0: (n_queries, n_relevant, 2) number and grade."""
    widest = max(1, max(len(photos) for photos in relevant))
    judged = np.zeros((len(relevant), widest, 2))
    judged[:, :, 0] = np.arange(widest)
    for row, photos in enumerate(relevant):
        judged[row, : len(photos), 1] = list(photos.values())
    return judged


def _ranked_array(
    relevant: Sequence[Mapping[str, int]], answers: Sequence[Sequence[str]], depth: int
) -> NDArray[np.float64]:
    """Write answers with the same numbers: (n_queries, depth, 2) number and 1 / rank."""
    ranked = np.full((len(answers), depth, 2), _NOT_RELEVANT)
    ranked[:, :, 1] = 1 / np.arange(1, depth + 1)
    for row, (photos, answer) in enumerate(zip(relevant, answers, strict=True)):
        numbers = {photo_id: float(number) for number, photo_id in enumerate(photos)}
        ranked[row, : len(answer), 0] = [
            numbers.get(photo_id, _NOT_RELEVANT) for photo_id in answer
        ]
    return ranked


def _ranx(
    judged: NDArray[np.float64], ranked: NDArray[np.float64], metrics: Mapping[str, Metric]
) -> dict[str, NDArray[np.float64]]:
    names = {name: f"{METRICS[metric.name].ranx}@{metric.k}" for name, metric in metrics.items()}
    # For a single metric, ranx raises a KeyError; so that one is requested twice.
    repeated = list(names.values()) if len(names) > 1 else list(names.values()) * 2
    with _RANX_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba and matplotlib, which ranx imports, warn freely
        import ranx

        scores = ranx.evaluate(judged, ranked, repeated, return_mean=False, threads=1)
    return {name: np.asarray(scores[theirs], dtype=np.float64) for name, theirs in names.items()}
