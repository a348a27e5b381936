"""Recall of an index and its time: one is never reported without the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchlab.errors import InputError
from searchlab.evaluation.metrics import latency, recall_at_k, recall_of_each
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes import ExactIndex, HnswIndex, Neighbors
from searchlab.search.indexes.exact import empty_neighbors

_BLOCK = 16_384
Answer: TypeAlias = Callable[[Embeddings, int], ArrayLike]
"""Answers one query, (dim,), with at most k rows, best first."""


def scored(
    vectors: Embeddings, queries: Embeddings, rows_of: Sequence[ArrayLike], k: int
) -> Neighbors:
    """Score the answers of any index by our own cosines, whatever scores it gave itself.

    Args:
        vectors: (n_photos, dim) unit rows.
        queries: (n_queries, dim) unit rows.
        rows_of: For each query at most k rows, best first; -1 is padding.
        k: Number of requested rows.

    Returns:
        (n_queries, k) rows and cosines, padded.

    Raises:
        InputError: An answer has more than k rows, or a row that does not exist.
    """
    answers = empty_neighbors(len(queries), k)
    for place, (query, some) in enumerate(zip(queries, rows_of, strict=True)):
        rows = np.asarray(some, dtype=np.int64).ravel()
        rows = rows[rows >= 0]
        if len(rows) > k or rows.max(initial=0) >= len(vectors):
            msg = f"an answer must have at most {k} rows below {len(vectors)}, got {rows.tolist()}"
            raise InputError(msg)
        answers.rows[place, : len(rows)] = rows
        answers.scores[place, : len(rows)] = vectors[rows] @ query
    return answers


def measure_search(
    answer: Answer,
    vectors: Embeddings,
    queries: Embeddings,
    exact: Neighbors,
    *,
    runs: int = 3,
) -> dict[str, float]:
    """Ask one query after the other, and measure recall and time.

    Args:
        answer: The index.
        vectors: (n_photos, dim) unit rows of the index.
        queries: (n_queries, dim) unit rows.
        exact: (n_queries, k) answers of `ExactIndex` to them, which also set k.
        runs: How often each query is asked; the median of its times counts.

    Returns:
        `recall` (ties count as found), `p50_ms`, `p95_ms`, `p99_ms` over the queries.
    """
    k = exact.rows.shape[1]
    answer(queries[0], k)  # untimed, to warm up
    seconds = np.zeros((runs, len(queries)))
    answers: list[NDArray[np.int64]] = []
    for run in range(runs):
        answers.clear()
        for place, query in enumerate(queries):
            started = time.perf_counter()
            rows = answer(query, k)
            seconds[run, place] = time.perf_counter() - started
            answers.append(np.asarray(rows, dtype=np.int64))
    recall = recall_at_k(scored(vectors, queries, answers, k), exact)
    return {"recall": recall, **latency(np.median(seconds, axis=0))}


def measure_within(
    answer: Answer,
    vectors: Embeddings,
    queries: Embeddings,
    exact: Neighbors,
    *,
    budget_s: float,
    runs: int = 3,
    least: int = 3,
) -> dict[str, float]:
    """Measure as `measure_search` does, within a budget of time: slow systems get fewer queries.

    Args:
        answer: The index.
        vectors: (n_photos, dim) unit rows of the index.
        queries: (n_queries, dim) unit rows.
        exact: (n_queries, k) true answers, which also set k.
        budget_s: Seconds after which no further query is asked.
        runs: How often each query is asked at most; the median of its times counts.
        least: Least number of queries, whatever the budget.

    Returns:
        `recall`, `least_recall` of any query, `p50_ms`, `p95_ms`, `p99_ms`, and the number of
        queries, `n_queries`.
    """
    k = exact.rows.shape[1]
    answer(queries[-1], k)  # untimed, to warm up
    answers: list[NDArray[np.int64]] = []
    seconds: list[list[float]] = []
    spent = 0.0
    for number in range(runs * len(queries)):
        run, place = divmod(number, len(queries))
        if spent > budget_s and number >= least:
            break
        started = time.perf_counter()
        rows = answer(queries[place], k)
        took = time.perf_counter() - started
        spent += took
        if run == 0:
            answers.append(np.asarray(rows, dtype=np.int64))
            seconds.append([])
        seconds[place].append(took)
    n = len(answers)
    true = Neighbors(exact.rows[:n], exact.scores[:n])
    recalls = recall_of_each(scored(vectors, queries[:n], answers, k), true)
    return {
        "recall": float(recalls.mean()),
        "least_recall": float(recalls.min()),
        **latency([float(np.median(each)) for each in seconds]),
        "n_queries": n,
    }


def true_neighbors(
    vectors: Embeddings,
    queries: Embeddings,
    k: int,
    *,
    masks: Mapping[str, NDArray[np.bool_] | None],
) -> dict[str, Neighbors]:
    """Score every row for every query, without any index: the oracle for several filters at once.

    Args:
        vectors: (n_photos, dim) unit rows; may be memory-mapped, and is read once.
        queries: (n_queries, dim) unit rows.
        k: Number of nearest rows.
        masks: Name of a filter -> (n_photos,) rows that pass, all if None.

    Returns:
        Name -> (n_queries, k) best rows and cosines, padded; ties by row.
    """
    best = {name: empty_neighbors(len(queries), k) for name in masks}
    for start in range(0, len(vectors), _BLOCK):
        scores = queries @ vectors[start : start + _BLOCK].T  # (n_queries, block)
        for name, mask in masks.items():
            some: NDArray[np.int64] = np.arange(scores.shape[1])
            if mask is not None:
                some = np.flatnonzero(mask[start : start + _BLOCK])
            if len(some):
                some_scores = scores if len(some) == scores.shape[1] else scores[:, some]
                best[name] = _better(best[name], some_scores, some + start, k)
    return best


def _better(
    best: Neighbors, scores: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> Neighbors:
    places = np.broadcast_to(np.arange(len(rows)), scores.shape)
    if len(rows) > k:
        places = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    both_rows = np.concatenate([best.rows, rows[places]], axis=1)
    both = np.concatenate([best.scores, np.take_along_axis(scores, places, axis=1)], axis=1)
    order = np.lexsort((both_rows, -both), axis=1)[:, :k]
    return Neighbors(
        np.take_along_axis(both_rows, order, axis=1), np.take_along_axis(both, order, axis=1)
    )


def sweep(
    vectors: Embeddings,
    queries: Mapping[str, Embeddings],
    *,
    k: int = 10,
    Ms: Sequence[int] = (8, 16, 32),
    ef_searches: Sequence[int] = (16, 32, 64, 128, 256),
    ef_construction: int = 200,
    runs: int = 1,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Measure searchlab's graph over its parameters.

    Args:
        vectors: (n_photos, dim) unit rows.
        queries: Kind -> (n_queries, dim) unit rows.
        k: Number of neighbours.
        Ms: Links per node; a graph is built for each.
        ef_searches: Numbers of candidates while searching.
        ef_construction: Number of candidates while building.
        runs: How often each query is asked; the median of its times counts.
        seed: Seed of the graph's levels.

    Returns:
        For each M, ef_search and kind: `M`, `ef_search`, `queries` (the kind), `recall`, `p50_ms`,
        `p95_ms`, `p99_ms`, `build_s` and `size_mib`.
    """
    exact = {kind: ExactIndex(vectors).search(rows, k) for kind, rows in queries.items()}
    table = []
    for M in Ms:
        started = time.perf_counter()
        index = HnswIndex(vectors, M=M, ef_construction=ef_construction, seed=seed)
        build = {"build_s": time.perf_counter() - started, "size_mib": index.size_bytes / 2**20}
        for ef_search in ef_searches:
            index.ef_search = ef_search
            for kind, rows in queries.items():
                measured = measure_search(one_by_one(index), vectors, rows, exact[kind], runs=runs)
                table.append({"M": M, "ef_search": ef_search, "queries": kind, **measured, **build})
    return table


def one_by_one(index: ExactIndex | HnswIndex) -> Answer:
    """Wrap one of our own indexes as an `Answer`, for `measure_search`."""
    return lambda query, k: index.search(query[np.newaxis], k).rows[0]


def fastest_at(points: Sequence[Mapping[str, Any]], recall: float) -> Mapping[str, Any] | None:
    """Return the point of least `p50_ms` among those with enough recall; None if there is none."""
    enough = [point for point in points if point["recall"] >= recall]
    return min(enough, key=lambda point: point["p50_ms"], default=None)


def pareto(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the points that no other one beats in recall and time, by rising recall."""
    front: list[Mapping[str, Any]] = []
    for point in sorted(points, key=lambda point: (-point["recall"], point["p50_ms"])):
        if not front or point["p50_ms"] < front[-1]["p50_ms"]:
            front.append(point)
    return front[::-1]
