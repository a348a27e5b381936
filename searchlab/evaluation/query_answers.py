"""Answers: what a configuration answers to queries, one at a time on one thread, and what it takes.

Answers to parts of the queries can be joined: a ranking depends on its own query alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from searchlab.errors import NotFoundError
from searchlab.evaluation.metrics import latency

if TYPE_CHECKING:
    from searchlab.evaluation.datasets import LabelledQuery
    from searchlab.progress import Step
    from searchlab.search.engine import SearchEngine

_TIMED_TEXTS = 20
_STEP = 100


@dataclass(frozen=True)
class Answers:
    """What a configuration answered, and what that took.

    Attributes:
        run: query_id -> (photo_id, relevance score 0 to 1), best first.
        seconds: query_id -> time to rank.
        text_ms: Median milliseconds to embed a text that is not known yet; 0 without texts.
        build_s: Seconds to build the index.
        size_mib: Of the index.
        dtype: Type of the vectors' numbers.
        answered_by: Number of queries by the mode of their plan, such as `exact` or `graph`; see
            `searchlab.search.queries.QueryPlan`.
    """

    run: dict[str, list[tuple[str, float]]]
    seconds: dict[str, float]
    text_ms: float
    build_s: float
    size_mib: float
    dtype: str
    answered_by: dict[str, int]


def answer_queries(
    engine: SearchEngine, queries: Sequence[LabelledQuery], depth: int, step: Step, *, name: str
) -> Answers:
    """Answer queries, one at a time on one thread.

    Args:
        engine: Searches as a server would.
        queries: At least one.
        depth: Photos of each ranking.
        step: Told of every hundred queries.
        name: Of the configuration, for remarks.
    """
    from threadpoolctl import threadpool_limits

    texts = [query.text for query in queries if query.text]
    step.note(f"{name}, embedding")
    engine.warm(texts)
    text_ms = _text_ms(engine, texts)
    step.note(name)
    run, seconds = {}, {}
    answered_by: Counter[str] = Counter()
    with threadpool_limits(limits=1):
        _answer(engine, queries[0], depth)  # untimed: the first is cold
        for place, labelled in enumerate(queries, start=1):
            ranked, mode, taken = _answer(engine, labelled, depth)
            run[labelled.query_id], seconds[labelled.query_id] = ranked, taken
            answered_by[mode] += 1
            if place % _STEP == 0:
                step.advance(_STEP)
        step.advance(len(queries) % _STEP)
    return Answers(
        run,
        seconds,
        text_ms=text_ms,
        build_s=engine.build_s,
        size_mib=engine.index.size_bytes / 2**20,
        dtype=str(engine.index.vectors.dtype),
        answered_by=dict(answered_by),
    )


def join_answers(parts: Sequence[Answers]) -> Answers:
    """Join the answers of one configuration to parts of the queries; of times, the medians."""
    return Answers(
        run={query_id: ranked for part in parts for query_id, ranked in part.run.items()},
        seconds={query_id: taken for part in parts for query_id, taken in part.seconds.items()},
        text_ms=median(part.text_ms for part in parts),
        build_s=median(part.build_s for part in parts),
        size_mib=parts[0].size_mib,
        dtype=parts[0].dtype,
        answered_by=dict(sum((Counter(part.answered_by) for part in parts), Counter())),
    )


def _answer(
    engine: SearchEngine, labelled: LabelledQuery, depth: int
) -> tuple[list[tuple[str, float]], str, float]:
    """Answer a query; returns its best photos with their scores, the plan's mode, and seconds."""
    query = labelled.query()
    started = time.perf_counter()
    try:
        ranking = engine.rank(query, depth)
    except NotFoundError:  # its own picture is not in the library
        return [], "none", time.perf_counter() - started
    seconds = time.perf_counter() - started
    ids = engine.table.photo_ids(ranking.rows)
    scored = zip(ids, ranking.scores.tolist(), strict=True)
    return list(scored), ranking.plan.mode, seconds


def _text_ms(engine: SearchEngine, texts: Sequence[str]) -> float:
    """Return the median milliseconds to embed an uncached text; 0 if there are no texts."""
    if not texts:
        return 0.0
    sample = [texts[place] for place in np.linspace(0, len(texts) - 1, _TIMED_TEXTS).astype(int)]
    seconds = []
    for text in sample:
        started = time.perf_counter()
        engine.model.encode_texts([text])
        seconds.append(time.perf_counter() - started)
    return latency(seconds)["p50_ms"]
