"""IvfIndex: codes of a byte a component in clusters, scanned with the filter inside.

Rows lie in the order of their clusters. A search scores the clusters' centres, scans the rows of
the nearest ones that the filter lets through, stops when what is left is not expected to matter,
and scores the best by their float32 vectors. So a filter makes it faster, not slower, and whatever
passes is found, however few there are.
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError, count, damaged_file
from searchlab.models.protocol import Embeddings
from searchlab.photos.columns import open_columns, save_columns
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.exact import check_nearest, check_search, empty_neighbors, nearest
from searchlab.search.indexes.ivf.early_stop import hold_out, learn_stopping, learn_texts
from searchlab.search.indexes.ivf.kmeans import blocks, usable_processors
from searchlab.search.indexes.ivf.lists import (
    Lists,
    build_lists,
    pack_lists,
    unpack_lists,
    update_lists,
)
from searchlab.search.indexes.ivf.probes import check_probes
from searchlab.search.indexes.ivf.search import (
    Candidates,
    count_candidates,
    gather_rows,
    scan_lists,
    sweep_lists,
)
from searchlab.search.indexes.ivf.stopping import Stopping
from searchlab.search.indexes.protocol import Allowed, Nearest, Neighbors, VectorIndex
from searchlab.search.indexes.scoring import best_first, cosines_of
from searchlab.search.words.matches import NO_GAINS, Gains

_FILE = "lists.columns"
# The centres are made anew when the number of rows has grown or shrunk by this factor, or when rows
# lie this many times farther from them: in both cases a search would read too many rows.
_GROWN = 2.0
_DRIFTED = 1.1
# Queries that a thread takes at a time.
_TOGETHER = 8
# Rows that are scored one by one in the time of a search through the lists.
_FEW = 200
# Scoring this many rows takes one or two tenths of a millisecond.
_SMALL = 4_000
# Answers of `Stopping.bands` that are kept.
_KEPT_BANDS = 256
# Photos of one query that are searched for at most: fifty pages of the usual size.
_DEEPEST = 1_000
# Recall targets that are worth measuring.
_RECALLS = (0.95, 0.98, 0.99, 0.995, 0.999)


class IvfIndex(VectorIndex):
    """Nearest rows by scanning the nearest clusters; `clustered` in a config.

    References:
        Jegou et al., Product quantization for nearest neighbor search, TPAMI 33(1), 2011 (the
        inverted file); Li et al., Improving approximate nearest neighbor search through learned
        adaptive early termination, SIGMOD 2020 (that each query needs its own stopping point).
    """

    approximate = True
    mode = "clustered"
    idle_fields = ("M", "ef_construction", "ef_search", "step_rows", "build_threads")

    def __init__(
        self,
        vectors: Embeddings,
        *,
        labels: NDArray[np.int64] | None = None,
        n_lists: int = 0,
        recall: float = 0.99,
        seed: int = 0,
        threads: int = 0,
        gather_below: int = 0,
        lists: Lists | None = None,
    ) -> None:
        """Build the index, or take lists that were built before.

        Args:
            vectors: (n_photos, dim) unit rows; may be memory-mapped.
            labels: (n_photos,) int64 labels that stay the same when photos come and go; the rows
                if left out.
            n_lists: Number of clusters, 0 to choose it by the number of rows.
            recall: Share of the true neighbours that a search must be expected to find, above 0
                to 1; 1 is exact.
            seed: Seed of the clusters.
            threads: Threads that build and that answer many queries, 0 for all processors.
            gather_below: Where a filter allows at most this many rows, all of them are scored by
                their codes, whatever their cluster; 0 for a hundredth of all rows, but 4,000 to
                16,000.
            lists: Lists of these vectors that were built before; new ones are built if left out.

        Raises:
            InputError: `recall` or `n_lists` is out of range.
            MismatchError: Labels or lists are of another number of rows.
        """
        if not 0 < recall <= 1:
            msg = f"recall must be above 0 and at most 1, got {recall!r}"
            raise InputError(msg)
        if n_lists < 0:
            msg = f"n_lists must be 0 or more, got {n_lists}"
            raise InputError(msg)
        self.vectors = vectors
        self.labels = np.arange(len(vectors)) if labels is None else labels
        self.recall = recall
        self.gather_below = gather_below or min(max(len(vectors) // 100, 4_000), 16_000)
        self._n_lists = n_lists
        self._seed = seed
        self._threads = threads or usable_processors()
        if len(self.labels) != len(vectors):
            msg = f"labels must be as many as rows, got {len(self.labels)} for {len(vectors)}"
            raise MismatchError(msg)
        if lists is None:
            held_out = hold_out(len(vectors), seed=seed)
            lists = build_lists(
                vectors, n_lists, held_out=held_out, seed=seed, threads=self._threads
            )
            stopping = learn_stopping(lists, vectors, held_out, seed=seed, threads=self._threads)
            lists = dataclasses.replace(lists, stopping=stopping.pack())
        elif len(lists.rows) != len(vectors):
            msg = f"lists must be of as many rows, got {len(lists.rows)} for {len(vectors)}"
            raise MismatchError(msg)
        self._lists = lists
        self._stop_by(Stopping.unpack(lists.stopping, vectors.shape[1]))

    def _stop_by(self, stopping: Stopping) -> None:
        self._stopping = stopping
        # Most searches ask for the same: over few photos, working it out takes a third of the time.
        self._bands = lru_cache(_KEPT_BANDS)(stopping.bands)

    @staticmethod
    def built_from(config: Config) -> tuple[str, ...]:
        """Name what changes the lists; see `VectorIndex.built_from`."""
        return ("n_lists", "seed")

    @classmethod
    def build(cls, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]) -> IvfIndex:
        """Build the lists; see `VectorIndex.build`."""
        return cls(vectors, labels=labels, **_settings(config))

    @property
    def size_bytes(self) -> int:
        """Bytes of the vectors and of the lists."""
        return int(self.vectors.nbytes + self._lists.size_bytes)

    @property
    def n_lists(self) -> int:
        """Number of clusters."""
        return len(self._lists.sizes)

    def search(
        self,
        queries: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        recall: float | None = None,
        effort: float | None = None,
    ) -> Neighbors:
        """Find the k best rows of each query; see `VectorIndex.search`.

        The effort of this index is its recall target: `effort` takes precedence over `recall`, and
        both over the index's own `recall`.
        """
        target = recall if effort is None else effort
        bits = check_search(self, queries, k, allowed, target)
        target = self.recall if target is None else target
        answers = empty_neighbors(len(queries), k)
        rows_read = np.zeros(len(queries), dtype=np.int64)
        n_wanted = min(k, len(self.vectors) if bits is None else bits.count)
        if not n_wanted:
            return answers

        def search_block(block: slice) -> None:
            for number in range(block.start, block.stop):
                best, n_read = self._search_one(queries[number], n_wanted, bits, target)
                answers.rows[number, :n_wanted] = best.rows
                answers.scores[number, :n_wanted] = best.scores
                rows_read[number] = n_read

        if self._threads == 1 or len(queries) <= _TOGETHER:
            search_block(slice(0, len(queries)))
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(search_block, blocks(len(queries), _TOGETHER)))
        return answers._replace(rows_read=rows_read)

    def _search_one(
        self, query: Embeddings, n_wanted: int, allowed: Bitmap | None, recall: float
    ) -> tuple[Nearest, int]:
        """Return the best rows, and how many were read."""
        if self._scores_all(n_wanted, allowed, recall):
            return self._nearest(query, n_wanted, allowed, np.float32(-np.inf))
        found = self._find_candidates(query, n_wanted, allowed, recall)
        if found.hold_best:
            return _choose_best(self.vectors, query, found.rows, n_wanted), found.n_scored
        best, n_read = self._nearest(query, n_wanted, allowed, np.float32(-np.inf))
        return best, found.n_scored + n_read

    def candidates(
        self,
        query: Embeddings,
        k: int,
        gains: Gains,
        *,
        allowed: Bitmap | None = None,
        effort: float | None = None,
    ) -> NDArray[np.int64]:
        """Find the k best rows by cosine and gain in one scan; see `VectorIndex.candidates`."""
        target = self.recall if effort is None else effort
        allowed = None if allowed is None or allowed.count == len(self.vectors) else allowed
        if self._scores_all(k, allowed, target):
            return np.arange(len(self.vectors)) if allowed is None else allowed.rows()
        found = self._find_candidates(query, k, allowed, target, gains)
        if found.hold_best:
            return found.rows
        return self.best(query, k, gains, allowed=allowed).rows

    def _scores_all(self, n_wanted: int, allowed: Bitmap | None, recall: float) -> bool:
        count = len(self.vectors) if allowed is None else allowed.count
        return recall >= 1 or count_candidates(n_wanted) >= count

    def _find_candidates(
        self,
        query: Embeddings,
        n_wanted: int,
        allowed: Bitmap | None,
        recall: float,
        gains: Gains = NO_GAINS,
    ) -> Candidates:
        query = np.ascontiguousarray(query, dtype=np.float32)
        if allowed is not None and allowed.count <= self.gather_below:
            return gather_rows(self._lists, query, allowed, n_wanted, gains)
        n_allowed = len(self.vectors) if allowed is None else allowed.count
        return scan_lists(
            self._lists,
            query,
            allowed,
            n_wanted,
            missed=self._stopping.missed(recall),
            usual=self._stopping.usual,
            bands=self._bands(
                recall,
                filtered=allowed is not None,
                n_allowed=n_allowed,
                depth=n_wanted * len(self.vectors) / n_allowed,
            ),
            gains=gains,
        )

    def nearest(
        self,
        query: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        at_least: float = -np.inf,
    ) -> Nearest:
        """Find the k best rows that are near enough, exactly; see `VectorIndex.nearest`."""
        bits, least = check_nearest(self, query, k, allowed, at_least)
        return self._nearest(query, k, bits, least)[0]

    def _nearest(
        self, query: Embeddings, k: int, allowed: Bitmap | None, least: np.float32
    ) -> tuple[Nearest, int]:
        """Return the best rows, and how many were read."""
        count = len(self.vectors) if allowed is None else allowed.count
        # One row in a hundred is scored faster than all clusters are looked through; and with a
        # large k, rounding leaves so many candidates that every row would be scored again.
        few = allowed is not None and 100 * count <= len(self.vectors)
        if few or k < 1 or (4 * k >= count and least == -np.inf):
            return nearest(self.vectors, query, k, allowed=allowed, least=least), count
        query = np.ascontiguousarray(query, dtype=np.float32)
        rows, n_read = sweep_lists(self._lists, query, allowed, k, float(least))
        best = _choose_best(self.vectors, query, rows, k)
        n_near = np.count_nonzero(best.scores >= least)
        return Nearest(best.rows[:n_near], best.scores[:n_near]), n_read

    def update(
        self, vectors: Embeddings, labels: NDArray[np.int64], config: Config | None = None
    ) -> IvfIndex:
        """Return the index of a changed library; this one stays as it is.

        New photos join the cluster that they are nearest to. The clusters are made anew when there
        are twice or half as many rows as they were made from, or when rows lie a tenth farther from
        their centres, as photos of a new kind do.

        Args:
            vectors: (n_photos, dim) unit rows of the changed library.
            labels: (n_photos,) int64; a label that was there before must carry the same vector.
            config: Gives the `recall` of the new index; as before if left out.
        """
        by_label = np.argsort(self.labels, kind="stable")
        places = np.searchsorted(self.labels[by_label], labels)
        known = np.zeros(len(labels), dtype=np.bool_)
        inside = places < len(by_label)
        known[inside] = self.labels[by_label[places[inside]]] == labels[inside]
        row_now = np.full(len(by_label), -1, dtype=np.int64)
        row_now[by_label[places[known]]] = np.flatnonzero(known)
        n_made_from = float(self._lists.made[0])
        lists = None
        if n_made_from / _GROWN <= len(labels) <= n_made_from * _GROWN and len(labels):
            lists = update_lists(
                self._lists, row_now, vectors, np.flatnonzero(~known), threads=self._threads
            )
            if lists.spread > _DRIFTED * float(lists.made[1]):
                lists = None
        return IvfIndex(
            vectors,
            labels=labels,
            n_lists=self._n_lists,
            recall=self.recall if config is None else config.recall,
            seed=self._seed,
            threads=self._threads,
            gather_below=self.gather_below,
            lists=lists,
        )

    @property
    def wants_texts(self) -> bool:
        """Whether the lists stop where queries made from photos may; see `VectorIndex.learn`."""
        return self._stopping.is_measured and not self._stopping.n_texts

    def learn(self, texts: Embeddings) -> None:
        """Measure when a search by text may stop; see `VectorIndex.learn`."""
        if not len(texts) or not self._stopping.is_measured:
            return
        self._stop_by(
            learn_texts(self._lists, self.vectors, self._stopping, texts, seed=self._seed)
        )
        self._lists = dataclasses.replace(self._lists, stopping=self._stopping.pack())

    def save(self, folder: Path) -> None:
        """Write the lists; vectors, labels and settings are stored by the library."""
        save_columns(folder / _FILE, pack_lists(self._lists))

    @classmethod
    def open(
        cls, folder: Path, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
    ) -> IvfIndex:
        """Open saved lists by memory map; see `VectorIndex.open`."""
        path = folder / _FILE
        try:
            lists = unpack_lists(open_columns(path), *vectors.shape)
            Stopping.unpack(lists.stopping, vectors.shape[1])
            check_probes(lists, vectors)
        except InputError as error:
            raise damaged_file(path, "be this snapshot's lists", error) from error
        return cls(vectors, labels=labels, lists=lists, **_settings(config))

    def estimate(self, config: Config, n_allowed: int) -> tuple[bool, str]:
        """Prefer a search unless few photos are to be scored; see `VectorIndex.estimate`."""
        if n_allowed <= _FEW or len(self) <= _SMALL:
            return (
                False,
                f"scoring {count(n_allowed, 'photo')} costs no more than a search of the clusters",
            )
        return True, f"a search of the clusters costs less than scoring {count(n_allowed, 'photo')}"

    @staticmethod
    def deep_search(n_photos: int) -> int:
        """Return a hundredth of them, a thousand at most; see `VectorIndex.deep_search`."""
        return min(n_photos // 100, _DEEPEST)

    @staticmethod
    def efforts(config: Config, n_photos: int) -> tuple[float, ...]:
        """Return recall targets; see `VectorIndex.efforts`."""
        return _RECALLS

    @staticmethod
    def describe_effort(effort: float) -> str:
        """Name the recall target; see `VectorIndex.describe_effort`."""
        return f"recall target {effort:g}"


def _settings(config: Config) -> dict[str, Any]:
    return {"n_lists": config.n_lists, "recall": config.recall, "seed": config.seed}


def _choose_best(
    vectors: Embeddings, query: Embeddings, rows: NDArray[np.int64], n_wanted: int
) -> Nearest:
    scores = cosines_of(vectors, query, rows)
    best = best_first(scores)[:n_wanted]
    return Nearest(rows[best], scores[best])
