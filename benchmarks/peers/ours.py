"""searchlab itself: its two indexes alone, and the engine that plans, filters and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers import Peer
from searchlab.config import Config
from searchlab.indexes import INDEXES, HnswIndex
from searchlab.labs.filter_atlas import Condition, Served
from searchlab.models.protocol import Embeddings


class ExactPeer(Peer):
    """`ExactIndex` alone; filtered, the engine over it."""

    efforts = ()
    filters = "PhotoFilter, then every photo that passes is scored"
    borrows = True
    _index = "exact"

    def __init__(self, *, step_rows: int = 4, **settings: Any) -> None:
        super().__init__(**settings)
        self._step_rows = step_rows

    @property
    def settings(self) -> dict[str, Any]:
        """What it was built with; enough to build it again."""
        return {**super().settings, "index": self._index, "step_rows": self._step_rows}

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
        )
        self.index: Any = INDEXES[self._index](vectors, config, np.arange(len(vectors)))
        if columns:
            self._served = Served(columns, self.index, config)

    def search(self, query: Embeddings, k: int) -> Any:
        """Search the index."""
        return self.index.search(query[np.newaxis], k).rows[0]

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Search the index for a batch."""
        return self.index.search(queries, k).rows

    def filtered(self, query: Embeddings, k: int, condition: Condition | None) -> Any:
        """Rank as the server ranks: filter, plan, search."""
        found = self._served(query, k, condition)
        self.plan = self._served.plan
        return found

    def save(self, folder: Path) -> None:
        """Write what a snapshot holds: the vectors, and the graph where there is one."""
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
        self.index = index.updated(index.vectors, index.labels, ef_search=effort)


class PlannedPeer(GraphPeer):
    """The engine over the graph: the planner chooses, or with `step_rows` 0 the graph always."""

    efforts = ()
    filters = "PhotoFilter, then the planner chooses graph or exact"
