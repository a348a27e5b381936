"""HnswIndex: hnswlib's graph, with its traps behind the protocol.

Three things of hnswlib must not be seen by anyone: it raises when it finds fewer than k rows, its
filter is a Python call for every visited node, and it forgets `ef` when saved. So the graph is
asked without a filter for more rows than wanted, what the filter forbids is dropped, and a query
that comes back short is answered exactly.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, InputError, MismatchError
from searchlab.indexes.exact import cosines, empty_neighbors, nearest_rows
from searchlab.indexes.protocol import Neighbors, check_search
from searchlab.models.protocol import Embeddings

_GRAPH = "graph.hnsw"
# The share of dead nodes at which walking around them costs more than a new graph.
_COMPACT_AT = 0.25


def walk_length(k: int, share: float) -> int:
    """Return how many neighbours the graph must yield so that k of them are allowed.

    Args:
        k: Rows wanted.
        share: Share of rows that the filter lets through, 0 to 1.
    """
    if share >= 1:
        return k
    return math.ceil(1.3 * k / max(share, 1e-9)) + 16


class HnswIndex:
    """Nearest rows by a navigable small-world graph over cosines.

    Nodes carry labels that stay the same when photos come and go; rows are positions in `vectors`.

    References:
        Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using
        hierarchical navigable small world graphs, TPAMI 42(4), 2020.
    """

    approximate = True

    def __init__(
        self,
        vectors: Embeddings,
        *,
        M: int = 16,
        ef_construction: int = 200,
        ef_search: int = 100,
        seed: int = 0,
        labels: NDArray[np.int64] | None = None,
        graph: Any = None,
    ) -> None:
        self.vectors = vectors
        self.ef_search = ef_search
        self.labels = np.arange(len(vectors)) if labels is None else labels
        self._build = {"M": M, "ef_construction": ef_construction, "random_seed": seed}
        if len(self.labels) != len(vectors):
            msg = f"labels must be as many as rows, got {len(self.labels)} for {len(vectors)}"
            raise MismatchError(msg)
        self._graph = self._new_graph() if graph is None else graph
        # Never changed again, so that threads can share the graph; hnswlib raises it to k itself.
        self._graph.set_ef(ef_search)
        # A dense map: 8 bytes for every label that was ever given.
        self._row_of_label = np.full(int(self.labels.max(initial=-1)) + 1, -1, dtype=np.int64)
        self._row_of_label[self.labels] = np.arange(len(vectors))

    def _new_graph(self) -> Any:
        import hnswlib

        graph = hnswlib.Index(space="ip", dim=self.vectors.shape[1])
        graph.init_index(max_elements=max(len(self.vectors), 1), **self._build)
        # One thread: the graph, and so every recall figure, is the same on every build.
        for start in range(0, len(self.vectors), 10_000):
            block = slice(start, start + 10_000)
            graph.add_items(self.vectors[block], self.labels[block], num_threads=1)
        return graph

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def size_bytes(self) -> int:
        """Bytes of the vectors and, as hnswlib lays it out, of the graph with its own copy."""
        return int(self.vectors.nbytes + self._graph.index_file_size())

    def search(
        self, queries: Embeddings, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbors:
        """Find the k best rows of each query; see `VectorIndex.search`."""
        check_search(self.vectors, queries, k, allowed)
        rows = None if allowed is None else np.flatnonzero(allowed)
        wanted = min(k, len(self.vectors) if rows is None else len(rows))
        answers = empty_neighbors(len(queries), k)
        if not wanted:
            return answers
        for answer_rows, answer_scores, query in zip(*answers, queries, strict=True):
            found, scores = self._search_one(query, wanted, allowed, rows)
            answer_rows[: len(found)] = found
            answer_scores[: len(found)] = scores
        return answers

    def _search_one(
        self,
        query: Embeddings,
        wanted: int,
        allowed: NDArray[np.bool_] | None,
        rows: NDArray[np.int64] | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        share = 1.0 if rows is None else len(rows) / len(self.vectors)
        fetch = walk_length(wanted, share)
        if fetch < len(self.vectors):
            found = self._walk(query, fetch)
            if allowed is not None:
                found = found[allowed[found]]
            if len(found) >= wanted:
                scores = cosines(self.vectors[found], query)
                best = np.lexsort((found, -scores))[:wanted]
                return found[best], scores[best]
        return nearest_rows(self.vectors, query, wanted, rows=rows)

    def _walk(self, query: Embeddings, fetch: int) -> NDArray[np.int64]:
        try:
            labels, _ = self._graph.knn_query(query[np.newaxis], k=fetch, num_threads=1)
        except RuntimeError:  # fewer rows reached than asked for: the caller answers exactly
            return np.zeros(0, dtype=np.int64)
        return np.asarray(self._row_of_label[labels[0].astype(np.int64)])

    def updated(
        self, vectors: Embeddings, labels: NDArray[np.int64], *, ef_search: int | None = None
    ) -> HnswIndex:
        """Return the index of a changed library: gone labels are marked, new ones added.

        The graph is taken over, so this index must not be searched afterwards. It is built anew
        when a quarter of its nodes would be dead.

        Args:
            vectors: (n_photos, dim) unit rows of the changed library.
            labels: (n_photos,) labels; one that was there before must carry the same vector.
            ef_search: Of the new index; as before if left out.
        """
        gone = np.setdiff1d(self.labels, labels)
        new = np.flatnonzero(~np.isin(labels, self.labels))
        dead = self._graph.get_current_count() - len(self.labels) + len(gone)
        settings = {
            "M": self._build["M"],
            "ef_construction": self._build["ef_construction"],
            "seed": self._build["random_seed"],
            "ef_search": self.ef_search if ef_search is None else ef_search,
        }
        if dead > _COMPACT_AT * (dead + len(labels)):
            return HnswIndex(vectors, labels=labels, **settings)
        for label in gone.tolist():
            self._graph.mark_deleted(label)
        count = self._graph.get_current_count() + len(new)
        if count > self._graph.get_max_elements():
            self._graph.resize_index(count)
        if len(new):
            self._graph.add_items(vectors[new], labels[new], num_threads=1)
        return HnswIndex(vectors, labels=labels, graph=self._graph, **settings)

    def save(self, folder: Path) -> None:
        """Write the graph; vectors, labels and `ef_search` are the library's to keep."""
        self._graph.save_index(str(folder / _GRAPH))

    @classmethod
    def open(
        cls,
        folder: Path,
        vectors: Embeddings,
        *,
        labels: NDArray[np.int64],
        M: int = 16,
        ef_construction: int = 200,
        ef_search: int = 100,
        seed: int = 0,
    ) -> HnswIndex:
        """Open a saved graph over the vectors that it was built from.

        Raises:
            DataError: The file is missing or damaged, or belongs to other vectors.
        """
        import hnswlib

        path = folder / _GRAPH
        graph = hnswlib.Index(space="ip", dim=vectors.shape[1])
        try:
            graph.load_index(str(path), allow_replace_deleted=False)
            known = np.asarray(graph.get_ids_list(), dtype=np.int64)
            _check_graph(graph, known, labels, vectors)
        except (RuntimeError, OverflowError, InputError) as error:
            msg = f"{path} must be this snapshot's graph, got: {error}; index again to rebuild it"
            raise DataError(msg) from error
        return cls(
            vectors,
            M=M,
            ef_construction=ef_construction,
            ef_search=ef_search,
            seed=seed,
            labels=labels,
            graph=graph,
        )


def _check_graph(
    graph: Any, known: NDArray[np.int64], labels: NDArray[np.int64], vectors: Embeddings
) -> None:
    missing = np.setdiff1d(labels, known)
    if len(missing):
        msg = f"{len(missing)} photos are not in it"
        raise InputError(msg)
    probe = labels[:8]
    if len(probe) and not np.array_equal(graph.get_items(probe), vectors[: len(probe)]):
        msg = "its vectors are others"
        raise InputError(msg)
    for label in np.setdiff1d(known, labels).tolist():
        try:
            graph.get_items([label])
        except RuntimeError:  # what hnswlib says of a deleted node
            continue
        msg = f"its node {label} is alive and no photo"
        raise InputError(msg)
