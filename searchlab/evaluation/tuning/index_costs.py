"""Measures the time and the recall of each way to answer with an index, for the planner.

Queries of each kind are asked without a filter and with filters of every strictness, which keep
photos at random or whole regions of them (`aligned`: a filter that depends on what photos show, the
hard case). The code that serves ranks them, at several efforts, and is compared with exact search.
One thread; all ways answer a query in turn, so that a busy moment slows all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from searchlab.config import Config
from searchlab.config.operating_points import OperatingPoint, OperatingPoints
from searchlab.errors import InputError
from searchlab.evaluation.metrics import recall_at_k
from searchlab.models.protocol import Embeddings
from searchlab.progress import Progress
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import Neighbors, VectorIndex, index_class
from searchlab.search.queries import DEFAULT_PER_PAGE, QueryPlan
from searchlab.search.ranking import rank_approximately

SHARES = (1.0, 0.5, 0.2, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
K = DEFAULT_PER_PAGE
MIN_QUERIES, MAX_QUERIES = 8, 256
# A filter under which every search is so many times slower than scoring all is left out.
_HOPELESS = 5.0
# Milliseconds too short to notice: below that, scoring all photos is always fine.
_UNNOTICED_MS = 0.1
_POLES = 3

Ask = Callable[[int], tuple[Embeddings, int | None]]
"""Number of a query -> its (dim,) vector, and its own row if it is a photo of the index."""


@dataclass(frozen=True)
class _Cell:
    """One filter of the measurement.

    Attributes:
        relation: `none`, `random` or `aligned`.
        share: Share of photos that it keeps, 0 to 1.
        allowed: The photos that it keeps; None for all.
    """

    relation: str
    share: float
    allowed: Bitmap | None


@dataclass(frozen=True)
class Measured:
    """The measurements of an index.

    Attributes:
        tuning: Operating points for the planner; none if scoring all photos is clearly best.
        rows: One for each kind of query, filter and effort: `kind`, `filter`, `share`, `n_allowed`,
            `effort`, `ms`, `exact_ms` (medians over queries) and `recall`.
        seconds: Time that it took.
    """

    tuning: OperatingPoints
    rows: list[dict[str, Any]] = field(repr=False)
    seconds: float


def measure(
    index: VectorIndex,
    config: Config,
    kinds: Mapping[str, Ask],
    *,
    seconds: float = 45.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Measured:
    """Measure an index.

    Args:
        index: The index to measure.
        config: Configuration that it was built with.
        kinds: Queries of each kind, `image` and `text`.
        seconds: Time to spend, about; at least 8 queries of each kind are asked.
        seed: Seed of the filters.
        progress: Shows each query.

    Raises:
        InputError: `seconds` is not above 0.
    """
    if not seconds > 0:
        msg = f"seconds must be above 0, got {seconds!r}"
        raise InputError(msg)
    from threadpoolctl import threadpool_limits

    started = time.perf_counter()
    if not kinds or not efforts(config, len(index)):
        return Measured(_tuning([], config, len(index), 0), [], 0.0)
    probe = _Probe(index, config)
    progress = progress or Progress()
    with threadpool_limits(limits=1):
        with progress.step("looking at the index"):
            cells = [cell for cell in _filters(index, seed) if probe.is_of_use(cell, kinds)]
        first_started = time.perf_counter()
        answers = [probe.ask(kind, ask, 0, cells) for kind, ask in kinds.items()]
        query_s = time.perf_counter() - first_started
        most = (seconds - (first_started - started)) / query_s
        # A power of two, so that it is usually the same number from run to run.
        n_queries = 2 ** int(np.log2(min(max(most, MIN_QUERIES), MAX_QUERIES)))
        with progress.step("measuring", n_queries, unit="queries") as step:
            step.advance(1)
            for number in range(1, n_queries):
                if number >= MIN_QUERIES and time.perf_counter() - started > seconds:
                    n_queries = number  # the machine has become busy since
                    break
                answers += [probe.ask(kind, ask, number, cells) for kind, ask in kinds.items()]
                step.advance(1)
    rows = _summarise([row for some in answers for row in some])
    tuning = _tuning(rows, config, len(index), n_queries)
    return Measured(tuning, rows, time.perf_counter() - started)


def efforts(config: Config, n_photos: int) -> tuple[float, ...]:
    """Return the efforts to measure, the least first; none if scoring all is clearly best."""
    if n_photos < 2 * K:
        return ()
    return index_class(config).efforts(config, n_photos)


class _Probe:
    """Asks queries under filters, in every way."""

    def __init__(self, index: VectorIndex, config: Config) -> None:
        self._index = index
        self._config = config
        self._all = Bitmap.full(len(index))
        self._efforts = efforts(config, len(index))

    def is_of_use(self, cell: _Cell, kinds: Mapping[str, Ask]) -> bool:
        """Ask a first query, which also loads data from disk; tells if the filter is worth it."""
        rows = [row for kind, ask in kinds.items() for row in self.ask(kind, ask, 0, [cell])]
        cheapest = min((row["ms"] / row["exact_ms"] for row in rows), default=0.0)
        return cell.share == 1 or cheapest < _HOPELESS

    def ask(self, kind: str, ask: Ask, number: int, cells: Sequence[_Cell]) -> list[dict[str, Any]]:
        """Ask one query under each filter, with each effort."""
        vector, own = ask(number)
        rows = []
        for cell in cells:
            allowed = cell.allowed
            if own is not None:
                allowed = (self._all if allowed is None else allowed).without(own)
            true, exact_ms = self._time(vector, allowed, "exact", None)
            # Scoring all photos has emptied the CPU caches; this untimed search refills them.
            self._time(vector, allowed, self._index.mode, self._efforts[-1])
            for effort in self._efforts:
                answer, ms = self._time(vector, allowed, self._index.mode, effort)
                rows.append(
                    {
                        "kind": kind,
                        "filter": cell.relation,
                        "share": cell.share,
                        "n_allowed": self._all.n if cell.allowed is None else cell.allowed.count,
                        "effort": effort,
                        "ms": ms,
                        "exact_ms": exact_ms,
                        "recall": recall_at_k(answer, true) if len(true.rows[0]) else 1.0,
                    }
                )
        return rows

    def _time(
        self, vector: Embeddings, allowed: Bitmap | None, mode: str, effort: float | None
    ) -> tuple[Neighbors, float]:
        n_allowed = self._all.n if allowed is None else allowed.count
        plan = QueryPlan(
            mode=mode,
            n_photos=self._all.n,
            n_allowed=n_allowed,
            effort=effort,
            reason="it is measured",
            scored_by="no calibration",
        )
        k = min(K, n_allowed)
        index, config = self._index, self._config
        started = time.perf_counter()
        if mode == "exact" or not k:
            rows, scores = index.nearest(vector, k, allowed=allowed)
        else:
            rows, scores = rank_approximately(
                index, vector, k, plan=plan, config=config, allowed=allowed
            )
        ms = 1000 * (time.perf_counter() - started)
        return Neighbors(rows[np.newaxis], scores[np.newaxis]), ms


def _filters(index: VectorIndex, seed: int) -> Iterator[_Cell]:
    """Make filters of every strictness; within a relation, stricter ones keep a subset."""
    n = len(index)
    rng = np.random.default_rng([seed, 1])
    poles = index.vectors[np.sort(rng.choice(n, min(_POLES, n), replace=False))]
    orders = {
        "random": rng.permutation(n),
        "aligned": np.argsort(-(index.vectors @ poles.T).max(axis=1), kind="stable"),
    }
    yield _Cell("none", 1.0, None)
    for share in SHARES[1:]:
        if share * n >= K:
            for relation, order in orders.items():
                yield _Cell(relation, share, Bitmap.of_rows(order[: round(share * n)], n))


def _summarise(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Put the queries of each kind, filter and effort together."""
    names = ("kind", "filter", "share", "n_allowed", "effort")
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return [
        dict(zip(names, key, strict=True))
        | {name: round(float(np.median([r[name] for r in some])), 4) for name in ("ms", "exact_ms")}
        | {"recall": round(float(np.mean([row["recall"] for row in some])), 4)}
        for key, some in groups.items()
    ]


def _tuning(
    rows: Sequence[Mapping[str, Any]], config: Config, n_photos: int, n_queries: int
) -> OperatingPoints:
    # Only shares for which both kinds of filters were measured count.
    in_both = {row["share"] for row in rows if row["filter"] == "random"}
    in_both &= {row["share"] for row in rows if row["filter"] == "aligned"}
    shares = (1.0, *sorted(in_both, reverse=True))
    reaches = []
    for kind, effort in dict.fromkeys((row["kind"], row["effort"]) for row in rows):
        some = [row for row in rows if (row["kind"], row["effort"]) == (kind, effort)]
        least = {share: min(r["recall"] for r in some if r["share"] == share) for share in shares}
        reaches.append(
            OperatingPoint(
                kind=kind,
                effort=effort,
                recalls=tuple(least[share] for share in shares),
                exact_below=crossover(some, n_photos),
            )
        )
    return OperatingPoints(
        index_id=config.index_id,
        n_photos=n_photos,
        k=K,
        n_queries=n_queries,
        shares=shares,
        reaches=tuple(reaches),
    )


def crossover(rows: Sequence[Mapping[str, Any]], n_photos: int) -> int:
    """Return up to how many allowed photos scoring them all costs no more than a search.

    The limit for which the wrong choices over all measured filters cost the least, as the logarithm
    of the ratio of times; between two measured numbers, the point where the costs are equal.

    Args:
        rows: Rows of one kind and effort, with `n_allowed`, `ms` and `exact_ms`.
        n_photos: Number of photos in the index.
    """
    sizes = sorted({row["n_allowed"] for row in rows})
    gains = []  # above 0: the search is the faster way, by the mean over random and aligned filters
    for size in sizes:
        some = [row for row in rows if row["n_allowed"] == size]
        times = [max(row["ms"], _UNNOTICED_MS) / row["exact_ms"] for row in some]
        gains.append(-float(np.mean(np.log(times))))
    wrong = [
        sum(max(gain, 0) for gain in gains[:place]) - sum(min(gain, 0) for gain in gains[place:])
        for place in range(len(sizes) + 1)
    ]
    place = int(np.argmin(wrong))
    if place == 0:
        return 0
    if place == len(sizes):
        return n_photos
    low, high = gains[place - 1], gains[place]
    part = low / (low - high) if low < 0 <= high else 0.5
    return int(np.exp(np.interp(part, [0, 1], np.log(sizes[place - 1 : place + 1]))))
