"""Other engines, and our own, behind one protocol: all are asked the same in the same way.

`PEERS` names every system that a benchmark may measure. One whose package is not here is reported
as not installed; nothing is left out in silence. A peer is a small file; only when it is built is
its package imported.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.labs.filter_atlas import Condition
from searchlab.models.protocol import Embeddings

BATCH = 1_000
"""Rows handed over at once by peers that take records."""


class Peer:
    """A system under test; one is built once, then asked.

    Attributes:
        efforts: What its knob between speed and recall is set to; empty where it has none.
        filters: How it filters, in a few words; empty where it cannot.
        borrows: Whether it searches the caller's own array, which its memory then lacks.
    """

    efforts: tuple[int, ...] = (16, 32, 64, 128, 256, 512)
    filters: str = ""
    borrows: bool = False

    def __init__(self, *, M: int = 16, ef_construction: int = 200, seed: int = 0) -> None:
        self.M = M
        self.ef_construction = ef_construction
        self.seed = seed
        self.plan = "native"

    @property
    def settings(self) -> dict[str, Any]:
        """What it was built with, as it is recorded."""
        return {"M": self.M, "ef_construction": self.ef_construction}

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Take in vectors and attributes.

        Args:
            vectors: (n_photos, dim) unit rows.
            columns: Attributes by name, each (n_photos,); none where nothing will be filtered.
            folder: Empty; for systems that live on disk.
        """
        raise NotImplementedError

    def set_effort(self, effort: int) -> None:
        """Turn the knob between speed and recall, for all queries that follow."""

    def search(self, query: Embeddings, k: int) -> Any:
        """Return at most k rows for a query, (dim,), best first."""
        raise NotImplementedError

    def filtered(self, query: Embeddings, k: int, condition: Condition | None) -> Any:
        """Return at most k rows that meet a condition; how is up to the system."""
        raise NotImplementedError

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Answer a batch of queries, (n_queries, dim)."""
        return [self.search(query, k) for query in queries]

    def save(self, folder: Path) -> None:
        """Write the index into a folder; nothing to do for systems that live on disk."""

    def close(self) -> None:
        """Let go of what is open."""


@dataclass(frozen=True)
class Entry:
    """Where a system is to be found.

    Attributes:
        home: `module:class` below this package.
        package: The distribution whose version is recorded.
        needs: Modules that must be importable.
        settings: For its constructor.
    """

    home: str
    package: str
    needs: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_installed(self) -> bool:
        """Whether it can be measured here."""
        return all(importlib.util.find_spec(name) is not None for name in self.needs)

    def make(self, **settings: Any) -> Peer:
        """Make the system, empty."""
        module, _, name = self.home.partition(":")
        made = getattr(importlib.import_module(f"peers.{module}"), name)
        peer: Peer = made(**{**self.settings, **settings})
        return peer


_OURS = ("hnswlib",)
PEERS: dict[str, Entry] = {
    "searchlab-exact": Entry("ours:ExactPeer", "searchlab", _OURS),
    "searchlab-hnsw-M8": Entry("ours:GraphPeer", "searchlab", _OURS, {"M": 8}),
    "searchlab-hnsw": Entry("ours:GraphPeer", "searchlab", _OURS, {"M": 16}),
    "searchlab-hnsw-M32": Entry("ours:GraphPeer", "searchlab", _OURS, {"M": 32}),
    "searchlab-planned": Entry("ours:PlannedPeer", "searchlab", _OURS),
    "searchlab-graph": Entry("ours:PlannedPeer", "searchlab", _OURS, {"step_rows": 0}),
    "hnswlib": Entry("hnswlib:HnswlibPeer", "hnswlib", ("hnswlib",)),
    "faiss-hnsw": Entry("faiss:FaissHnswPeer", "faiss-cpu", ("faiss",)),
    "faiss-flat": Entry("faiss:FaissFlatPeer", "faiss-cpu", ("faiss",)),
    "usearch": Entry("usearch:UsearchPeer", "usearch", ("usearch",)),
    "lancedb": Entry("lancedb:LancePeer", "lancedb", ("lancedb", "pyarrow")),
    "milvus-lite": Entry("milvus:MilvusPeer", "milvus-lite", ("milvus_lite", "pymilvus", "faiss")),
    "qdrant-local": Entry("qdrant:QdrantPeer", "qdrant-client", ("qdrant_client",)),
    "chroma": Entry("chroma:ChromaPeer", "chromadb", ("chromadb",)),
}
