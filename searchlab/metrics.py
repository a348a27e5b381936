"""Quality against judgments, recall of an index against exact search, and latency.

Quality is computed by ranx, behind `per_query`. ranx also takes plain arrays, and this module gives
it those: building its `Qrels` and `Run` objects would compile a dictionary library first (31 s
instead of 7 s where nothing is cached), and would hash the ids into 53 bits on the way.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError

if TYPE_CHECKING:
    from searchlab.indexes.protocol import Neighbors

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""query_id -> photo_id -> grade; 1 and above is relevant."""

Run: TypeAlias = Mapping[str, Sequence[str]]
"""query_id -> photo_ids of one system, best first."""

RANX_NAMES = {
    "ndcg": "ndcg",
    "recall": "recall",
    "success": "hit_rate",
    "mrr": "mrr",
    "map": "map",
    "precision": "precision",
}

_METRIC = re.compile(rf"({'|'.join(RANX_NAMES)})@([1-9][0-9]{{0,5}})")
_NOBODY = -1.0  # the number of every photo that the query's judgments do not call relevant
_CELLS = 2_000_000  # judgments, padding included, that are handed to ranx at once; 32 MB

# ranx runs on numba's workqueue, which ends the process when two threads enter it at once.
_RANX_LOCK = threading.Lock()


def cutoff(metric: str) -> int:
    """Return the k of a metric such as `"ndcg@10"`.

    Raises:
        InputError: The metric is not supported; the message lists those that are.
    """
    found = _METRIC.fullmatch(metric)
    if found is None:
        supported = ", ".join(f"{name}@k" for name in RANX_NAMES)
        msg = f"a metric must be one of {supported}, with k from 1 to 999999, got {metric!r}"
        raise InputError(msg)
    return int(found[2])


def per_query(qrels: Qrels, run: Run, metrics: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Score every judged query of a run.

    A query that the run does not answer scores 0, as does one without a relevant photo; answers to
    queries that nobody judged are left out. nDCG has the linear gain of Jarvelin and Kekalainen
    (the grade itself, not 2^grade - 1). The order of the run is all that counts: there are no
    scores, hence no ties.

    Args:
        qrels: Judgments; grades below 1 count as not relevant.
        run: Ranked photo_ids; what stands behind the deepest cut-off is ignored.
        metrics: Such as `"ndcg@10"`, `"recall@100"`, `"success@5"`, `"mrr@10"`, `"map@10"` or
            `"precision@10"`.

    Returns:
        For each metric (n_queries,) values from 0 to 1, in the order of `sorted(qrels)`.

    Raises:
        InputError: A metric is not supported, there are no judgments or no metrics, or the run
            names a photo twice for one query.

    References:
        Bassani, ranx: a blazing-fast Python library for ranking evaluation, ECIR 2022.
        Jarvelin and Kekalainen, Cumulated gain-based evaluation of IR techniques, TOIS 20, 2002.
    """
    if not qrels or not metrics:
        msg = f"qrels and metrics must not be empty, got {len(qrels)} queries, {list(metrics)}"
        raise InputError(msg)
    depth = max(cutoff(metric) for metric in metrics)
    relevant = [_relevant(qrels[query_id]) for query_id in sorted(qrels)]
    answers = [_answer(run, query_id, depth) for query_id in sorted(qrels)]
    values = {metric: np.zeros(len(relevant)) for metric in metrics}
    for rows in _batches([len(photos) for photos in relevant]):
        some = [relevant[row] for row in rows]
        ranked = _ranked_array(some, [answers[row] for row in rows], depth)
        for metric, scores in _ranx(_judged_array(some), ranked, metrics).items():
            values[metric][rows] = scores
    return values


def evaluate(qrels: Qrels, run: Run, metrics: Sequence[str]) -> dict[str, float]:
    """Score a run: the mean of `per_query` over all judged queries.

    Example:
        >>> qrels = {"dunes": {"a": 3, "b": 1}, "harbour": {"c": 2}}
        >>> evaluate(qrels, {"harbour": ["c"]}, ["ndcg@10"])
        {'ndcg@10': 0.5}
    """
    return {name: float(np.mean(scores)) for name, scores in per_query(qrels, run, metrics).items()}


def recall_at_k(found: Neighbors, exact: Neighbors, *, tolerance: float = 1e-6) -> float:
    """Share of the true k nearest that an index found, ties counted as found.

    A returned row counts when it scores at least as high as the true k-th neighbour, so two equally
    near photos are never scored as a miss; a row that is returned twice counts once. Where exact
    search has fewer than k answers, those are all there is to find.

    Args:
        found: (n_queries, k) answers of the index under test.
        exact: (n_queries, k) answers of `ExactIndex` to the same queries.
        tolerance: Slack for float32 rounding, in cosine units.

    Returns:
        Mean over queries, 0 to 1; a query without a neighbour counts as 1.

    Raises:
        InputError: The two have different shapes, or there are no queries.

    References:
        Aumueller et al., ANN-Benchmarks, Information Systems 87, 2020.
    """
    if found.rows.shape != exact.rows.shape or found.rows.size == 0:
        msg = (
            "found and exact must have the same shape (n_queries, k), at least (1, 1), "
            f"got {found.rows.shape} and {exact.rows.shape}"
        )
        raise InputError(msg)
    n_true = (exact.rows >= 0).sum(axis=1)  # (n_queries,)
    kth = np.where(exact.rows >= 0, exact.scores, np.inf).min(axis=1)
    near = (found.rows >= 0) & (found.scores >= kth[:, None] - tolerance)
    order = np.argsort(found.rows, axis=1, kind="stable")
    in_order = np.take_along_axis(found.rows, order, axis=1)
    first = np.ones_like(near)
    first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    hits = (np.take_along_axis(near, order, axis=1) & first).sum(axis=1)
    shares = np.minimum(hits, n_true) / np.maximum(n_true, 1)
    return float(np.where(n_true > 0, shares, 1.0).mean())


def latency(seconds: ArrayLike) -> dict[str, float]:
    """Return the median, 95th and 99th percentile of durations, in milliseconds.

    Args:
        seconds: One duration for each query.

    Raises:
        InputError: There are none.
    """
    values = np.asarray(seconds, dtype=np.float64)
    if values.size == 0:
        msg = "seconds must hold at least one duration, got none"
        raise InputError(msg)
    p50, p95, p99 = np.percentile(values, [50, 95, 99]) * 1000
    return {"p50_ms": float(p50), "p95_ms": float(p95), "p99_ms": float(p99)}


def _relevant(grades: Mapping[str, int]) -> dict[str, int]:
    # Highest grade first: ranx reads the ideal ranking off this order.
    relevant = {photo_id: grade for photo_id, grade in grades.items() if grade >= 1}
    return dict(sorted(relevant.items(), key=lambda item: -item[1]))


def _answer(run: Run, query_id: str, depth: int) -> Sequence[str]:
    answer = list(run.get(query_id, ()))[:depth]
    if len(set(answer)) < len(answer):
        twice = next(photo_id for photo_id in answer if answer.count(photo_id) > 1)
        msg = f"a run must name a photo once for each query, got {twice!r} twice for {query_id!r}"
        raise InputError(msg)
    return answer


def _batches(lengths: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Cut queries into groups of like length, so that padding never outgrows memory."""
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
    ranked = np.full((len(answers), depth, 2), _NOBODY)
    ranked[:, :, 1] = 1 / np.arange(1, depth + 1)
    for row, (photos, answer) in enumerate(zip(relevant, answers, strict=True)):
        numbers = {photo_id: float(number) for number, photo_id in enumerate(photos)}
        ranked[row, : len(answer), 0] = [numbers.get(photo_id, _NOBODY) for photo_id in answer]
    return ranked


def _ranx(
    judged: NDArray[np.float64], ranked: NDArray[np.float64], metrics: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    names = {}
    for metric in metrics:
        name, _, k = metric.partition("@")
        names[metric] = f"{RANX_NAMES[name]}@{k}"
    # Asked for the values of a single metric, ranx ends in a KeyError; so that one is asked twice.
    wanted = list(names.values()) if len(names) > 1 else list(names.values()) * 2
    with _RANX_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba and matplotlib, which ranx imports, warn freely
        import ranx

        scores = ranx.evaluate(judged, ranked, wanted, return_mean=False, threads=1)
    return {metric: np.asarray(scores[name], dtype=np.float64) for metric, name in names.items()}
