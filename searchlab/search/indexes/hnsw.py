"""HnswIndex: hnswlib's graph, with its peculiarities hidden.

hnswlib raises when it finds fewer than k rows, its filter is a Python call for every visited node,
and it forgets `ef` when saved. So the graph is searched without a filter for more than k rows, rows
that the filter forbids are dropped, and a query with too few rows left is answered exactly.
"""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError, count, damaged_file
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.exact import check_nearest, check_search, empty_neighbors, nearest
from searchlab.search.indexes.graph_files import check_graph_file
from searchlab.search.indexes.protocol import Allowed, Nearest, Neighbors, VectorIndex
from searchlab.search.indexes.scoring import best_first, cosines_of

_GRAPH = "graph.hnsw"
# The share of dead nodes at which walking around them costs more than a new graph.
_COMPACT_AT = 0.25
# Rows that are added to the graph at a time.
_ADDED = 10_000
# Labels for each row up to which rows are looked up in a map of all labels.
_DENSE = 16
# hnswlib's distances are rounded differently from our cosines.
_MARGIN = 1e-5
# Values of `ef_search` that are worth measuring.
_EFS = (50, 100, 200, 400, 800, 1600)


def walk_length(k: int, share: float) -> int:
    """Return how many neighbours the graph must yield so that k of them are allowed.

    If filter and query are independent, one search in 700 yields fewer than k allowed rows.

    Args:
        k: Rows wanted.
        share: Share of rows that the filter lets through, 0 to 1.
    """
    if share >= 1:
        return k
    return math.ceil(max(1.3 * k, k + 3 * math.sqrt(k)) / max(share, 1e-9)) + 16


class HnswIndex(VectorIndex):
    """Nearest rows by a navigable small-world graph over cosines.

    Nodes carry labels that stay the same when photos come and go; rows are positions in `vectors`.

    References:
        Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using
        hierarchical navigable small world graphs, TPAMI 42(4), 2020.
    """

    approximate = True
    mode = "graph"
    idle_fields = ("n_lists",)
    # A walk costs nearly the same for a page as for the whole depth.
    costs_by_depth = False

    def __init__(
        self,
        vectors: Embeddings,
        *,
        M: int = 16,
        ef_construction: int = 200,
        ef_search: int = 100,
        seed: int = 0,
        threads: int = 1,
        labels: NDArray[np.int64] | None = None,
        graph: Any = None,
    ) -> None:
        """Build the graph, or take one over.

        Args:
            vectors: (n_photos, dim) unit rows.
            M: Links of a node, 2 to 200.
            ef_construction: Nodes that are kept in view while building, at least `M`.
            ef_search: Nodes that are kept in view while searching, at least 1.
            seed: Seed of the nodes' levels.
            threads: Threads that build; 0 for one a core. One gives the same graph, and so the same
                answers, every time. Several are faster in proportion, and as good in recall, but
                no two of their graphs are alike.
            labels: (n_photos,) int64 labels of the nodes, all different; the rows if left out.
            graph: A graph of hnswlib that holds these labels; a new one is built if left out.

        Raises:
            InputError: `threads` is below 0.
            MismatchError: There are more or fewer labels than rows.
        """
        if threads < 0:
            msg = f"threads must be at least 0, got {threads}"
            raise InputError(msg)
        self.vectors = vectors
        self.ef_search = ef_search
        self.labels = np.arange(len(vectors)) if labels is None else labels
        self.threads = threads
        self._build = {"M": M, "ef_construction": ef_construction, "random_seed": seed}
        if len(self.labels) != len(vectors):
            msg = f"labels must be as many as rows, got {len(self.labels)} for {len(vectors)}"
            raise MismatchError(msg)
        self._graph = self._new_graph() if graph is None else graph
        self._graph.set_ef(1)
        # A dense map is faster; it takes 8 bytes for every label that was ever given.
        self._row_of_label: NDArray[np.int64] | None = None
        n_labels = int(self.labels.max(initial=-1)) + 1
        if n_labels <= _DENSE * len(vectors) + _ADDED:
            self._row_of_label = np.full(n_labels, -1, dtype=np.int64)
            self._row_of_label[self.labels] = np.arange(len(vectors))
        else:
            self._by_label = np.argsort(self.labels, kind="stable")
            self._sorted_labels = self.labels[self._by_label]

    def _new_graph(self) -> Any:
        import hnswlib

        graph = hnswlib.Index(space="ip", dim=self.vectors.shape[1])
        graph.init_index(max_elements=max(len(self.vectors), 1), **self._build)
        _add(graph, self.vectors, self.labels, self.threads)
        return graph

    @staticmethod
    def built_from(config: Config) -> tuple[str, ...]:
        """Name what changes the graph; see `VectorIndex.built_from`."""
        names = ("M", "ef_construction", "seed")
        # Every number of threads but one builds another graph each time.
        return names if config.build_threads == 1 else (*names, "build_threads")

    @staticmethod
    def describe(config: Config) -> str:
        """Name the graph by its links and its `ef_search`."""
        return f"{config.index} M={config.M} ef={config.ef_search}"

    @classmethod
    def build(cls, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]) -> HnswIndex:
        """Build the graph; see `VectorIndex.build`."""
        return cls(vectors, labels=labels, **_settings(config))

    @property
    def size_bytes(self) -> int:
        """Bytes of the vectors and of the graph, in which hnswlib keeps its own copy of them."""
        return int(self.vectors.nbytes + self._graph.index_file_size())

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

        A graph cannot aim at a recall: the planner looks up the effort that was measured to reach
        it.

        Args:
            queries: (n_queries, dim) float32.
            k: Rows wanted, at least 1.
            allowed: Rows that may be found, as bits or as a mask; all if left out.
            recall: 1 scores every allowed row; below 1 it changes nothing.
            effort: `ef_search`, nodes that a walk keeps in view, at least 1; that of the index if
                left out.
        """
        bits = check_search(self, queries, k, allowed, recall)
        ef_search = self.ef_search if effort is None else int(effort)
        if ef_search < 1:
            msg = f"effort must be an ef_search of at least 1, got {effort}"
            raise InputError(msg)
        n_allowed = len(self.vectors) if bits is None else bits.count
        n_wanted = min(k, n_allowed)
        if not n_wanted:
            return empty_neighbors(len(queries), k)
        fetch = max(ef_search, walk_length(n_wanted, n_allowed / len(self.vectors)))
        walks = recall != 1 and fetch < len(self.vectors)
        answers = empty_neighbors(len(queries), k)
        rows_read = np.full(len(queries), fetch if walks else n_allowed)
        for number, query in enumerate(queries):
            best = self._search_graph(query, n_wanted, bits, fetch) if walks else None
            if best is None:
                best = nearest(self.vectors, query, n_wanted, allowed=bits)
                rows_read[number] = n_allowed
            answers.rows[number, : len(best.rows)] = best.rows
            answers.scores[number, : len(best.rows)] = best.scores
        return answers._replace(rows_read=rows_read)

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
        return nearest(self.vectors, query, k, allowed=bits, least=least)

    def _search_graph(
        self, query: Embeddings, n_wanted: int, allowed: Bitmap | None, fetch: int
    ) -> Nearest | None:
        """Return the best rows of a walk, or None where it met fewer than are wanted."""
        rows, distances = self._walk(query, fetch)
        if allowed is not None:
            inside = allowed.holds(rows)
            rows, distances = rows[inside], distances[inside]
        if len(rows) < n_wanted:
            return None
        # Rows about as far as the last one wanted may be nearer once they are scored by `cosines`.
        edge = distances[n_wanted - 1] + np.float32(_MARGIN)
        rows = np.sort(rows[: distances.searchsorted(edge, side="right")])
        scores = cosines_of(self.vectors, query, rows)
        best = best_first(scores)[:n_wanted]
        return Nearest(rows[best], scores[best])

    def _walk(self, query: Embeddings, fetch: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        # Threads share the graph, so its own `ef` stays 1: hnswlib walks with the larger of it and
        # k, and asking for more rows does what a larger `ef` would.
        try:
            labels, distances = self._graph.knn_query(query[np.newaxis], k=fetch, num_threads=1)
        except RuntimeError:  # the walk reached fewer rows than `fetch`: the caller answers exactly
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        walked = labels[0].astype(np.int64)
        if self._row_of_label is None:
            places = np.searchsorted(self._sorted_labels, walked)
            return self._by_label[places], distances[0]
        return self._row_of_label[walked], distances[0]

    def update(
        self, vectors: Embeddings, labels: NDArray[np.int64], config: Config | None = None
    ) -> HnswIndex:
        """Return the index of a changed library: gone labels are marked deleted, new ones added.

        The graph is taken over, so this index must not be searched afterwards. It is built anew
        when a quarter of its nodes would be dead.

        Args:
            vectors: (n_photos, dim) unit rows of the changed library.
            labels: (n_photos,) int64; a label that was there before must carry the same vector.
            config: Gives the `ef_search` of the new index; as before if left out.
        """
        gone_labels = np.setdiff1d(self.labels, labels)
        new_rows = np.flatnonzero(~np.isin(labels, self.labels))
        n_dead = self._graph.get_current_count() - len(self.labels) + len(gone_labels)
        settings = {
            "M": self._build["M"],
            "ef_construction": self._build["ef_construction"],
            "seed": self._build["random_seed"],
            "ef_search": self.ef_search if config is None else config.ef_search,
            "threads": self.threads,
        }
        if n_dead > _COMPACT_AT * (n_dead + len(labels)):
            return HnswIndex(vectors, labels=labels, **settings)
        for label in gone_labels.tolist():
            self._graph.mark_deleted(label)
        count = self._graph.get_current_count() + len(new_rows)
        if count > self._graph.get_max_elements():
            self._graph.resize_index(count)
        _add(self._graph, vectors, labels, self.threads, rows=new_rows)
        return HnswIndex(vectors, labels=labels, graph=self._graph, **settings)

    def save(self, folder: Path) -> None:
        """Write the graph; vectors, labels and `ef_search` are stored by the library.

        Raises:
            OSError: There is no room for it.
        """
        path = folder / _GRAPH
        self._graph.save_index(str(path))
        # hnswlib does not look whether what it writes arrives.
        if path.stat().st_size < self._graph.index_file_size():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    @classmethod
    def open(
        cls, folder: Path, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]
    ) -> HnswIndex:
        """Open a saved graph over the vectors that it was built from; see `VectorIndex.open`."""
        import hnswlib

        path = folder / _GRAPH
        graph = hnswlib.Index(space="ip", dim=vectors.shape[1])
        try:
            check_graph_file(path, dim=vectors.shape[1], M=config.M, labels=labels)
            graph.load_index(str(path), allow_replace_deleted=False)
            _check_probe(graph, labels, vectors)
        except (OSError, RuntimeError, InputError) as error:
            raise damaged_file(path, "be this snapshot's graph", error) from error
        return cls(vectors, labels=labels, graph=graph, **_settings(config))

    def estimate(self, config: Config, n_allowed: int) -> tuple[bool, str]:
        """Compare the steps of a walk with the photos to score; see `VectorIndex.estimate`."""
        steps = walk_length(config.depth, n_allowed / max(len(self), 1))
        if n_allowed <= steps * config.step_rows:
            return (
                False,
                f"scoring {count(n_allowed, 'photo')} costs less than {steps:,} graph steps",
            )
        return True, f"{steps:,} graph steps cost less than scoring {count(n_allowed, 'photo')}"

    @staticmethod
    def efforts(config: Config, n_photos: int) -> tuple[float, ...]:
        """Return values of `ef_search`; see `VectorIndex.efforts`."""
        # A walk keeps no fewer nodes in view than the depth of the head.
        least = min(config.depth, n_photos)
        return tuple(float(ef) for ef in sorted({least, *_EFS}) if least <= ef <= n_photos)

    @staticmethod
    def describe_effort(effort: float) -> str:
        """Say how many nodes a walk keeps in view; see `VectorIndex.describe_effort`."""
        return f"ef {effort:g}"


def _settings(config: Config) -> dict[str, int]:
    return {
        "M": config.M,
        "ef_construction": config.ef_construction,
        "ef_search": config.ef_search,
        "seed": config.seed,
        "threads": config.build_threads,
    }


def _add(
    graph: Any,
    vectors: Embeddings,
    labels: NDArray[np.int64],
    threads: int,
    rows: NDArray[np.int64] | None = None,
) -> None:
    # In blocks, so that rows out of a memory map are never copied all at once.
    for start in range(0, len(vectors) if rows is None else len(rows), _ADDED):
        some = slice(start, start + _ADDED)
        block = some if rows is None else rows[some]
        # hnswlib counts the cores itself when it is told -1.
        graph.add_items(vectors[block], labels[block], num_threads=threads or -1)


def _check_probe(graph: Any, labels: NDArray[np.int64], vectors: Embeddings) -> None:
    probe = labels[:8]
    if len(probe) and not np.array_equal(graph.get_items(probe), vectors[: len(probe)]):
        msg = "it was built from other vectors"
        raise InputError(msg)
