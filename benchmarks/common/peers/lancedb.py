"""LanceDB on disk: a graph over float32 in one partition, and an index for each attribute."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.common.peers import Peer
from searchlab.models.protocol import Embeddings
from searchlab.studies.filters.atlas import PlainFilter

_FEW_VALUES = 1_000
"""Its documentation advises a bitmap for columns of few distinct values, some thousand at most."""


class LancePeer(Peer):
    """A table with an `IVF_HNSW_FLAT` index; conditions are SQL, applied before the search."""

    takes_marks = True
    filters = "SQL `where`, prefiltered; a BITMAP index for attributes of few values, else a BTREE"

    def build(self, vectors: Embeddings, columns: Mapping[str, NDArray[Any]], folder: Path) -> None:
        """Write the table, then build the indexes."""
        n, dim = vectors.shape
        lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)
        rows = pa.table({"row": pa.array(range(n)), "vector": lists, **columns})
        self._table: Any = lancedb.connect(folder).create_table("photos", rows)
        self._table.create_index(
            metric="dot",
            vector_column_name="vector",
            index_type="IVF_HNSW_FLAT",
            num_partitions=1,
            m=self.M,
            ef_construction=self.ef_construction,
        )
        for name, values in columns.items():
            kind = "BITMAP" if len(np.unique(values)) <= _FEW_VALUES else "BTREE"
            self._table.create_scalar_index(name, index_type=kind)
        self._ef = 100

    def set_effort(self, effort: int) -> None:
        """Set `ef`."""
        self._ef = effort

    def _query(self, query: Embeddings, k: int) -> Any:
        search = self._table.search(query, vector_column_name="vector").distance_type("dot")
        # With an ef below k it refuses to search at all.
        return search.select(["row", "_distance"]).limit(k).ef(max(self._ef, k))

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask the table."""
        return self._query(query, k).to_arrow()["row"].to_numpy()

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Ask the table with a `where`."""
        if condition is None:
            return self.search(query, k)
        return self._among(query, k, condition.sql())

    def search_marked(self, query: Embeddings, k: int, column: str) -> Any:
        """Ask the table with a `where`."""
        return self._among(query, k, f"{column} = 1")

    def _among(self, query: Embeddings, k: int, where: str) -> Any:
        search = self._query(query, k).where(where, prefilter=True)
        return search.to_arrow()["row"].to_numpy()
