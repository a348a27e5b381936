"""usearch: its graph; the Python package has no filter (release 2.26)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

from benchmarks.common.peers import Peer
from searchlab.models.protocol import Embeddings


class UsearchPeer(Peer):
    """Its graph over inner products."""

    def __init__(self, *, dtype: str = "f32", **settings: Any) -> None:
        super().__init__(**settings)
        self._dtype = dtype

    @property
    def settings(self) -> dict[str, Any]:
        """What it was built with."""
        return {**super().settings, "dtype": self._dtype}

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Add all rows in one call."""
        self._index = Index(
            ndim=vectors.shape[1],
            metric="ip",
            dtype=self._dtype,
            connectivity=self.M,
            expansion_add=self.ef_construction,
        )
        self._index.add(np.arange(len(vectors)), vectors, threads=self.threads)

    def set_effort(self, effort: int) -> None:
        """Set `expansion_search`."""
        self._index.expansion_search = effort

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask the graph."""
        return self._index.search(query, k, threads=1).keys

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Ask for a batch in one call."""
        return self._index.search(queries, k, threads=1).keys

    def save(self, folder: Path) -> None:
        """Write the graph, which holds the vectors."""
        self._index.save(str(folder / "index.usearch"))
