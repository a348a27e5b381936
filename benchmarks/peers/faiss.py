"""faiss: its graph, and its exact search."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from peers import Peer
from searchlab.labs.filter_atlas import Condition
from searchlab.models.protocol import Embeddings


class FaissFlatPeer(Peer):
    """`IndexFlatIP`: every row is scored."""

    efforts: tuple[int, ...] = ()
    filters = "IDSelectorBitmap; the mask is made first"

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Add all rows in one call."""
        faiss.omp_set_num_threads(1)
        self._columns = columns
        self._index = self._empty(vectors.shape[1])
        self._index.add(vectors)

    def _empty(self, dim: int) -> Any:
        return faiss.IndexFlatIP(dim)

    def _parameters(self, selector: Any) -> Any:
        return faiss.SearchParameters(sel=selector)

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask the index."""
        return self._index.search(query[np.newaxis], k)[1][0]

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Ask for a batch in one call."""
        return self._index.search(queries, k)[1]

    def filtered(self, query: Embeddings, k: int, condition: Condition | None) -> Any:
        """Ask the index with a bitmap of the rows that may be found."""
        if condition is None:
            return self.search(query, k)
        bits = np.packbits(condition.mask(self._columns), bitorder="little")
        selector = faiss.IDSelectorBitmap(bits)
        found = self._index.search(query[np.newaxis], k, params=self._parameters(selector))
        return found[1][0][found[1][0] >= 0]

    def save(self, folder: Path) -> None:
        """Write the index, which holds the vectors."""
        faiss.write_index(self._index, str(folder / "index.faiss"))


class FaissHnswPeer(FaissFlatPeer):
    """`IndexHNSWFlat`."""

    efforts = Peer.efforts

    def _empty(self, dim: int) -> Any:
        index = faiss.IndexHNSWFlat(dim, self.M, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self.ef_construction
        return index

    def _parameters(self, selector: Any) -> Any:
        return faiss.SearchParametersHNSW(sel=selector, efSearch=self._index.hnsw.efSearch)

    def set_effort(self, effort: int) -> None:
        """Set `efSearch`."""
        self._index.hnsw.efSearch = effort
