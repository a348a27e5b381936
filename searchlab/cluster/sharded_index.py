"""ShardedIndex: a library's vectors on shards, behind the contract of an index on one machine.

Each question goes to all shards that may have an answer, once, and their answers are merged by
score and row. What is exact stays exact to the last bit, as a row scores the same wherever it lies.
A search misses only what the search of a shard missed: what a shard found of the nearest rows is
among the merged ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.cluster.shards import LocalShards, Part, Shards, cut_evenly
from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import build_index, index_class
from searchlab.search.indexes.exact import check_nearest, check_search, empty_neighbors
from searchlab.search.indexes.merging import Scored
from searchlab.search.indexes.protocol import Allowed, Nearest, Neighbors, VectorIndex
from searchlab.search.words.matches import NO_GAINS, Gains

_MOST_ROWS = 10_000_000  # rows of a shard where the number of shards is not given


class ShardedIndex(VectorIndex):
    """Vectors of a library that lie on shards."""

    def __init__(self, shards: Shards, config: Config) -> None:
        """Take the shards, whose indexes the config names."""
        kind = index_class(config)
        self.shards = shards
        self.approximate, self.mode = kind.approximate, kind.mode
        self.costs_by_depth = kind.costs_by_depth
        self._kind = kind
        self._estimate = functools.lru_cache(maxsize=4_096)(self._ask_largest)

    @classmethod
    def build(
        cls, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
    ) -> ShardedIndex:
        """Build shards of ten million photos at most in this process; see `VectorIndex.build`."""
        n_shards = max(1, -(-len(vectors) // _MOST_ROWS))
        return cls.cut(vectors, config, labels=labels, n_shards=n_shards)

    @classmethod
    def cut(
        cls, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64], n_shards: int
    ) -> ShardedIndex:
        """Cut vectors evenly, and build an index over each part in this process."""
        parts = [
            Part(build_index(vectors[rows.start : rows.stop], config, labels[rows]))
            for rows in cut_evenly(len(vectors), n_shards)
        ]
        return cls(LocalShards(parts), config)

    def __len__(self) -> int:
        return self.shards.n_photos

    @property
    def dim(self) -> int:
        """Width of a row."""
        return self.shards.dim

    # Other indexes have it as an attribute; here reading it must say what to do instead.
    @property
    def vectors(self) -> Embeddings:  # type: ignore[override]
        """Refused: they may not fit into one machine.

        Raises:
            InputError: Always.
        """
        msg = "the vectors of a library on shards lie with these; read some of them by `read_rows`"
        raise InputError(msg)

    @property
    def size_bytes(self) -> int:
        """Bytes that all shards hold, their vectors included."""
        return sum(told["size_bytes"] for told in self._ask_all("tell"))

    # -- some rows ------------------------------------------------------------------------------

    def read_rows(self, rows: NDArray[np.int64]) -> Embeddings:
        """Return the vectors of some rows; see `VectorIndex.read_rows`."""
        vectors = np.empty((len(rows), self.dim), dtype=np.float32)
        return self._collect("index.read_rows", rows, vectors)

    def score_rows(self, query: Embeddings, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosines of some rows; see `VectorIndex.score_rows`."""
        scores = np.empty(len(rows), dtype=np.float32)
        return self._collect("index.score_rows", rows, scores, query=query)

    def _collect(
        self, method: str, rows: NDArray[np.int64], answers: NDArray[np.float32], **arguments: Any
    ) -> NDArray[np.float32]:
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            msg = f"rows must be from 0 to {len(self) - 1}, got {rows.min()} to {rows.max()}"
            raise InputError(msg)
        starts = np.array([rows.start for rows in self.shards.ranges])
        # Of empty shards and the one after them, which start alike, the last one has rows.
        owners = np.searchsorted(starts, rows, side="right") - 1
        places = {number: np.flatnonzero(owners == number) for number in np.unique(owners).tolist()}
        asked = {
            number: {**arguments, "rows": rows[some] - starts[number]}
            for number, some in places.items()
        }
        for number, answer in self.shards.ask(method, asked).items():
            answers[places[number]] = answer
        return answers

    # -- searching ------------------------------------------------------------------------------

    def search(
        self,
        queries: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        recall: float | None = None,
        effort: float | None = None,
    ) -> Neighbors:
        """Find the k best rows of each query among those of all shards; see `VectorIndex.search`.

        Recall and effort are what each shard is asked for.
        """
        bits = check_search(self, queries, k, allowed, recall)
        shared = {"queries": queries, "recall": recall, "effort": effort}
        asked = {
            number: {**shared, "k": min(k, count), "allowed": part}
            for number, _, part, count in self.shards.cut(bits)
        }
        merged = empty_neighbors(len(queries), k)
        if not asked or not len(queries):
            return merged
        answers = self.shards.ask("index.search", asked)
        rows = np.hstack([self._global(number, one.rows) for number, one in answers.items()])
        scores = np.hstack([one.scores for one in answers.values()])
        order = np.lexsort((rows, -scores), axis=1)[:, :k]
        merged.rows[:, : order.shape[1]] = np.take_along_axis(rows, order, axis=1)
        merged.scores[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
        counts = [one.rows_read for one in answers.values()]
        if any(count is None for count in counts):
            return merged._replace(rows_read=None)
        return merged._replace(rows_read=np.sum(counts, axis=0))

    def nearest(
        self,
        query: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        at_least: float = -np.inf,
    ) -> Nearest:
        """Find the k best rows that are near enough, exactly; see `VectorIndex.nearest`."""
        bits, _ = check_nearest(self, query, k, allowed, at_least)
        shared = {"query": query, "at_least": at_least}
        rows, scores = self._merge("index.nearest", k, bits, lambda _: shared)
        return Nearest(rows, np.asarray(scores, dtype=np.float32))

    def best(
        self,
        query: Embeddings,
        k: int,
        gains: Gains = NO_GAINS,
        *,
        allowed: Bitmap | None = None,
        at_least: float = -np.inf,
    ) -> Scored:
        """Find the k best rows by cosine and gain, exactly; see `VectorIndex.best`."""
        bits, _ = check_nearest(self, query, k, allowed, at_least)
        shared = {"query": query, "at_least": at_least}
        return self._merge("index.best", k, bits, lambda rows: shared | _part_of(gains, rows))

    def nearly_best(
        self,
        query: Embeddings,
        k: int,
        gains: Gains = NO_GAINS,
        *,
        allowed: Bitmap | None = None,
        effort: float | None = None,
    ) -> Scored:
        """Find the k best rows by cosine and gain, nearly; see `VectorIndex.nearly_best`."""
        bits = check_search(self, query[np.newaxis], k, allowed)
        shared = {"query": query, "effort": effort}
        return self._merge(
            "index.nearly_best", k, bits, lambda rows: shared | _part_of(gains, rows)
        )

    def _merge(
        self,
        method: str,
        k: int,
        allowed: Bitmap | None,
        arguments: Callable[[range], dict[str, Any]],
    ) -> Scored:
        """Ask each shard for its k best, and return the k best of these."""
        asked = {
            number: {**arguments(rows), "k": min(k, count), "allowed": part}
            for number, rows, part, count in self.shards.cut(allowed)
            if k
        }
        answers = self.shards.ask(method, asked) if asked else {}
        rows, scores = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.float32)]
        for number, best in answers.items():
            rows.append(self._global(number, best.rows))
            scores.append(best.scores)
        every = Scored(np.concatenate(rows), np.concatenate(scores))
        order = np.lexsort((every.rows, -every.scores))[:k]
        return Scored(every.rows[order], every.scores[order])

    def _global(self, number: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(rows < 0, rows, rows + self.shards.ranges[number].start)

    # -- what a search costs --------------------------------------------------------------------

    @property
    def wants_texts(self) -> bool:
        """Whether `learn` would make searches of a shard better or faster."""
        return any(told["wants_texts"] for told in self._ask_all("tell"))

    def learn(self, texts: Embeddings) -> None:
        """Fit how every shard searches; see `VectorIndex.learn`."""
        self._ask_all("index.learn", texts=texts)

    def estimate(self, config: Config, n_allowed: int) -> tuple[bool, str]:
        """Guess it for the largest shard, which all wait for; see `VectorIndex.estimate`."""
        n_photos = max(len(self), 1)
        largest = max(map(len, self.shards.ranges))
        pays, reason = self._estimate(config, -(-n_allowed * largest // n_photos))
        return pays, f"on each of {len(self.shards)} shards {reason}"

    # Static elsewhere; here both depend on the shards.
    def deep_search(self, n_photos: int) -> int:  # type: ignore[override]
        """Return what the largest shard would; see `VectorIndex.deep_search`."""
        return self._kind.deep_search(max(map(len, self.shards.ranges)))

    def describe_effort(self, effort: float) -> str:  # type: ignore[override]
        """Describe an effort in words; see `VectorIndex.describe_effort`."""
        return f"{self._kind.describe_effort(effort)} on each of {len(self.shards)} shards"

    def _ask_largest(self, config: Config, n_allowed: int) -> tuple[bool, str]:
        number = int(np.argmax([len(rows) for rows in self.shards.ranges]))
        asked = {number: {"config": config, "n_allowed": n_allowed}}
        answer: tuple[bool, str] = self.shards.ask("index.estimate", asked)[number]
        return answer

    def _ask_all(self, method: str, **arguments: Any) -> Sequence[Any]:
        asked = dict.fromkeys(range(len(self.shards)), arguments)
        return list(self.shards.ask(method, asked).values())


def _part_of(gains: Gains, rows: range) -> dict[str, Gains]:
    return {"gains": gains.cut(rows.start, rows.stop)}
