"""hnswlib alone, as its own documentation uses it: a filter is a Python call per visited node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hnswlib
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.peers import Peer
from searchlab.models.protocol import Embeddings
from searchlab.studies.filters.atlas import PlainFilter


class HnswlibPeer(Peer):
    """The graph that searchlab's own index is built on."""

    efforts = (*Peer.efforts, 1024)
    filters = "a Python function, called for each node on the way; the mask is made first"
    takes_masks = True

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Add all rows in one call."""
        self._columns = columns
        self._index = hnswlib.Index(space="ip", dim=vectors.shape[1])
        self._index.init_index(
            max_elements=len(vectors),
            M=self.M,
            ef_construction=self.ef_construction,
            random_seed=self.seed,
        )
        self._index.add_items(vectors, num_threads=self.threads)

    def set_effort(self, effort: int) -> None:
        """Set `ef`."""
        self._index.set_ef(effort)

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask the graph."""
        return self._index.knn_query(query, k=k, num_threads=1)[0][0].astype(np.int64)

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Ask for a batch in one call."""
        return self._index.knn_query(queries, k=k, num_threads=1)[0]

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Make the mask, and ask the graph with it."""
        if condition is None:
            return self.search(query, k)
        return self.search_among(query, k, self.make_selection(condition.mask(self._columns)))

    def make_selection(self, mask: NDArray[np.bool_]) -> Any:
        """Return the function that looks a node up, and how many rows it lets through."""
        return mask.__getitem__, int(np.count_nonzero(mask))

    def search_among(self, query: Embeddings, k: int, selection: Any) -> Any:
        """Ask the graph with a filter, for no more rows than there are.

        hnswlib raises an error if it does not reach that many; the answer is then empty.
        """
        function, count = selection
        try:
            answer = self._index.knn_query(query, k=min(k, count), num_threads=1, filter=function)
        except RuntimeError:
            return np.zeros(0, dtype=np.int64)
        return answer[0][0].astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write the graph, which holds the vectors."""
        self._index.save_index(str(folder / "index.bin"))
