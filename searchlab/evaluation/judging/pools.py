"""Pool: the photos to grade for each query, in an order that does not show which system found them.

The pool is the union of the first photos of several systems. Photos that none of them ranked are
not graded, so metrics on pooled judgments are fair between the pooled systems, but too low for
others. Some unranked photos, drawn at random, show how many relevant ones the pool has missed.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from searchlab.errors import InputError
from searchlab.evaluation.results import system_name
from searchlab.search.queries import check_count

if TYPE_CHECKING:
    from searchlab.config import Config
    from searchlab.evaluation.datasets import Dataset, LabelledQuery
    from searchlab.evaluation.metrics import Qrels, Run
    from searchlab.library.library import Library
    from searchlab.photos.table import PhotoTable
    from searchlab.progress import Progress
    from searchlab.search.engine import SearchEngine

MAX_DEPTH = 1000


class Pair(NamedTuple):
    """A query and a photo, which get one grade."""

    query_id: str
    photo_id: str


@dataclass(frozen=True)
class Pool:
    """Pairs to grade, in the order in which they are shown.

    All photos of a query follow one another, so that the judge reads the query once; the queries,
    and the photos of each, are shuffled.

    Attributes:
        queries: The queries that have a photo to grade, by their id.
        pairs: The pairs to grade, each once.
        drawn: Those of the pairs that no system ranked.
        depth: Number of first photos of each system.
        systems: Names of the systems; the judge never sees them.
        n_left_out: Number of pairs that had been judged before.
    """

    queries: Mapping[str, LabelledQuery]
    pairs: tuple[Pair, ...]
    drawn: frozenset[Pair] = field(repr=False)
    depth: int
    systems: tuple[str, ...]
    n_left_out: int = 0

    @cached_property
    def pool_id(self) -> str:
        """12 hex digits of the hash over queries and pairs, in order."""
        digest = hashlib.sha256()
        for query in self.queries.values():
            digest.update(repr((query.query_id, query.lang, query.text, query.photo_id)).encode())
        digest.update(repr([tuple(pair) for pair in self.pairs]).encode())
        return digest.hexdigest()[:12]

    @cached_property
    def places(self) -> Mapping[str, tuple[int, ...]]:
        """Query_id -> places of its photos in `pairs`, in the order in which they are shown."""
        places: dict[str, list[int]] = {}
        for place, pair in enumerate(self.pairs):
            places.setdefault(pair.query_id, []).append(place)
        return {query_id: tuple(listed) for query_id, listed in places.items()}

    def __len__(self) -> int:
        return len(self.pairs)

    def __str__(self) -> str:
        before = f", {self.n_left_out:,} judged before" if self.n_left_out else ""
        extra = f", {len(self.drawn):,} of them drawn at random" if self.drawn else ""
        return (
            f"{len(self):,} photos to grade for {len(self.queries):,} queries{extra}: the first "
            f"{self.depth} of {len(self.systems)} systems{before}"
        )


def pool_runs(
    dataset: Dataset,
    runs: Mapping[str, Run],
    *,
    depth: int = 10,
    seed: int = 0,
    random_share: float = 0.0,
    judged: Qrels | None = None,
    table: PhotoTable | None = None,
) -> Pool:
    """Pool the first photos of several systems for the queries of a dataset.

    Args:
        dataset: Its queries are judged, and random photos are drawn from its photos.
        runs: System -> query_id -> photo_ids, best first; queries may be missing.
        depth: Number of first photos to take from each system, 1 to 1000.
        seed: Seed of the order and of the random photos.
        random_share: See `pool_queries`.
        judged: Pairs that need no grade any more, such as `dataset.qrels`.
        table: See `pool_queries`.

    Raises:
        InputError: See `pool_queries`.
    """
    return pool_queries(
        dataset.queries,
        dataset.photo_ids,
        runs,
        depth=depth,
        seed=seed,
        random_share=random_share,
        judged=judged,
        table=table,
    )


def pool_queries(
    queries: Iterable[LabelledQuery],
    photo_ids: Collection[str],
    runs: Mapping[str, Run],
    *,
    depth: int = 10,
    seed: int = 0,
    random_share: float = 0.0,
    judged: Qrels | None = None,
    table: PhotoTable | None = None,
) -> Pool:
    """Pool the first photos of several systems for queries that nobody needs to have judged yet.

    The order depends only on the seed and the ids: not on which system found a photo, at which
    rank, or in which order the systems are named. A larger pool keeps the order of a smaller one.

    Args:
        queries: The queries to judge, of different ids.
        photo_ids: The photos that were searched; random photos are drawn from them.
        runs: System -> query_id -> photo_ids, best first; queries may be missing.
        depth: Number of first photos to take from each system, 1 to 1000.
        seed: Seed of the order and of the random photos.
        random_share: Number of unranked photos to draw for each query, as a share of the photos
            that were pooled for it; rounded up.
        judged: Pairs that need no grade any more.
        table: Table of the photos, where queries have filters: no photo is drawn for a query that
            its filter shuts out, nor the query's own reference photo.

    Raises:
        InputError: There is no run, a run has unknown queries or photos or a photo twice, a depth
            or share is out of range, `table` is missing, or nothing is left to judge.

    References:
        Sparck Jones and van Rijsbergen, Report on the need for and provision of an "ideal"
        information retrieval test collection, 1975.
        Zobel, How reliable are the results of large-scale retrieval experiments?, SIGIR 1998.
    """
    check_count("depth", depth, MAX_DEPTH)
    if not runs or not 0 <= random_share <= 10:
        msg = (
            "a pool must have at least one run, and a random_share from 0 to 10, got "
            f"{len(runs)} runs and {random_share!r}"
        )
        raise InputError(msg)
    by_id = {query.query_id: query for query in queries}
    for system, run in runs.items():
        _check_run(system, run, by_id, photo_ids, depth)
    done = {(query_id, photo) for query_id, known in (judged or {}).items() for photo in known}
    pairs: list[Pair] = []
    drawn: set[Pair] = set()
    n_left_out = 0
    for query_id in _shuffle(by_id, str(seed)):
        ranked = {photo for run in runs.values() for photo in list(run.get(query_id, ()))[:depth]}
        ungraded = {photo for photo in ranked if (query_id, photo) not in done}
        n_left_out += len(ranked) - len(ungraded)
        n_random = ceil(random_share * len(ranked))
        # Without a draw no library needs to be shuffled, which for a million photos takes seconds.
        candidates = _candidates(by_id[query_id], photo_ids, table) if n_random else ()
        others = _shuffle(candidates, f"{seed}:draw:{query_id}")
        unranked = [p for p in others if p not in ranked and (query_id, p) not in done][:n_random]
        drawn |= {Pair(query_id, photo) for photo in unranked}
        order = _shuffle(ungraded.union(unranked), f"{seed}:{query_id}")
        pairs += [Pair(query_id, photo) for photo in order]
    if not pairs:
        msg = f"a pool must hold a photo to grade, got none; {n_left_out} had been judged before"
        raise InputError(msg)
    to_judge = {pair.query_id: by_id[pair.query_id] for pair in pairs}
    return Pool(to_judge, tuple(pairs), frozenset(drawn), depth, tuple(runs), n_left_out)


def runs_of(
    library: Library,
    dataset: Dataset,
    configs: Iterable[Config],
    *,
    depth: int = 10,
    progress: Progress | None = None,
) -> dict[str, dict[str, list[str]]]:
    """Rank the queries of a dataset by several configurations, as `Experiment` does.

    Args:
        library: Library of the photos.
        dataset: The queries; only photos of the dataset are ranked.
        configs: Configurations; each gives one run, named after model and index.
        depth: Number of photos per query.
        progress: Shows the embedding, if photos must be embedded.

    Returns:
        System -> query_id -> photo_ids, best first.
    """
    runs: dict[str, dict[str, list[str]]] = {}
    for config in configs:
        engine = library.engine_for(
            config, withheld=dataset.unread, photo_ids=dataset.photo_ids, progress=progress
        )
        name = system_name(config)
        if name in runs:
            name = f"{name} ({engine.config.config_id[:6]})"
        runs[name] = rank_queries(engine, dataset.queries, depth=depth)
    return runs


def rank_queries(
    engine: SearchEngine, queries: Sequence[LabelledQuery], *, depth: int
) -> dict[str, list[str]]:
    """Rank queries by one engine: query_id -> photo_ids, best first."""
    engine.warm([query.text for query in queries if query.text])
    return {
        query.query_id: engine.table.photo_ids(engine.rank(query.query(), depth).rows)
        for query in queries
    }


def _candidates(
    query: LabelledQuery, photo_ids: Collection[str], table: PhotoTable | None
) -> Collection[str]:
    """Return the photos that any system could find for a query."""
    candidates = set(photo_ids)
    if not query.filter.is_empty:
        if table is None:
            msg = f"table must be given where queries have filters, got none for {query.query_id!r}"
            raise InputError(msg)
        ids = table.photo_ids(range(len(table)))
        candidates &= set(itertools.compress(ids, query.filter.mask(table)))
    return candidates - {query.photo_id}


def _check_run(
    system: str, run: Run, queries: Collection[str], photo_ids: Collection[str], depth: int
) -> None:
    for query_id, ranked in run.items():
        if query_id not in queries:
            msg = f"a run must answer queries of the dataset, got {query_id!r} in {system!r}"
            raise InputError(msg)
        first: Sequence[str] = list(ranked)[:depth]
        unknown = next((photo for photo in first if photo not in photo_ids), None)
        if unknown is not None or len(set(first)) < len(first):
            what = "a photo twice" if unknown is None else f"{unknown!r}"
            msg = f"a run must name photos of the dataset once, got {what} for {query_id!r}"
            raise InputError(msg)


def _shuffle(ids: Iterable[str], salt: str) -> list[str]:
    # By hash, so that one more id does not change the order of the others.
    return sorted(ids, key=lambda i: hashlib.sha256(f"{salt}:{i}".encode()).hexdigest())
