"""faiss: its graph, its exact search, and its lists of codes with float32 rescoring."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.peers import Peer
from searchlab.models.protocol import Embeddings
from searchlab.studies.filters.atlas import PlainFilter


class FaissFlatPeer(Peer):
    """`IndexFlatIP`: every row is scored."""

    efforts: tuple[int, ...] = ()
    filters = "IDSelectorBitmap; the mask is made first"
    takes_masks = True

    def build(
        self, vectors: Embeddings, columns: Mapping[str, NDArray[np.int64]], folder: Path
    ) -> None:
        """Add all rows in one call."""
        faiss.omp_set_num_threads(self.threads)
        self._columns = columns
        self._index = self._empty(vectors.shape[1])
        self._fill(vectors)
        faiss.omp_set_num_threads(1)

    def _empty(self, dim: int) -> Any:
        return faiss.IndexFlatIP(dim)

    def _fill(self, vectors: Embeddings) -> None:
        self._index.add(np.ascontiguousarray(vectors))

    def _parameters(self, selector: Any) -> Any:
        return faiss.SearchParameters(sel=selector)

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask the index."""
        return self._index.search(query[np.newaxis], k)[1][0]

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Ask for a batch in one call."""
        return self._index.search(queries, k)[1]

    def search_filtered(self, query: Embeddings, k: int, condition: PlainFilter | None) -> Any:
        """Ask the index with a bitmap of the rows that meet the condition."""
        if condition is None:
            return self.search(query, k)
        return self.search_among(query, k, self.make_selection(condition.mask(self._columns)))

    def make_selection(self, mask: NDArray[np.bool_]) -> Any:
        """Pack the mask into the bits that the selector reads."""
        return faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))

    def search_among(self, query: Embeddings, k: int, selection: Any) -> Any:
        """Ask the index with a selector."""
        rows = self._index.search(query[np.newaxis], k, params=self._parameters(selection))[1][0]
        return rows[rows >= 0]

    def save(self, folder: Path) -> None:
        """Write the index."""
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


class _RescoringPeer(FaissFlatPeer):
    """Short codes; the best by them are scored again in float32.

    The second scoring reads the caller's own rows, as searchlab's does.
    """

    borrows = True
    _n_candidates = 2  # for each row that is wanted

    def _fill(self, vectors: Embeddings) -> None:
        self._vectors = vectors
        sample = np.random.default_rng(self.seed).permutation(len(vectors))[: self._n_sampled]
        self._index.train(vectors[np.sort(sample)])
        for start in range(0, len(vectors), 65_536):
            self._index.add(np.ascontiguousarray(vectors[start : start + 65_536]))

    @property
    def _n_sampled(self) -> int:
        return 65_536

    def search(self, query: Embeddings, k: int) -> Any:
        """Ask for more rows than k, and keep the k best by their cosines."""
        return self._best(query, super().search(query, self._enough(k)), k)

    def search_many(self, queries: Embeddings, k: int) -> Any:
        """Ask one after the other."""
        return [self.search(query, k) for query in queries]

    def search_among(self, query: Embeddings, k: int, selection: Any) -> Any:
        """Search the selected rows in the same way."""
        return self._best(query, super().search_among(query, self._enough(k), selection), k)

    def _enough(self, k: int) -> int:
        return min(self._n_candidates * k, len(self._vectors))

    def _best(self, query: Embeddings, candidates: NDArray[np.int64], k: int) -> Any:
        candidates = candidates[candidates >= 0]
        return candidates[np.argsort(-(self._vectors[candidates] @ query), kind="stable")[:k]]

    def save(self, folder: Path) -> None:
        """Write the index, and the rows that it needs beside its codes."""
        super().save(folder)
        np.save(folder / "vectors.npy", self._vectors)


class FaissCodedHnswPeer(_RescoringPeer, FaissHnswPeer):
    """`IndexHNSWSQ` over codes of eight bits."""

    @property
    def settings(self) -> dict[str, Any]:
        """What it was built with."""
        return {**super().settings, "code": "SQ8", "candidates": self._n_candidates}

    def _empty(self, dim: int) -> Any:
        code = faiss.ScalarQuantizer.QT_8bit
        index = faiss.IndexHNSWSQ(dim, code, self.M, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self.ef_construction
        return index


class FaissListsPeer(_RescoringPeer):
    """`IndexIVF...`: rows in k-means lists, as bytes, as quarters of one, or as bits."""

    efforts = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    filter_effort = 64

    def __init__(self, *, code: str = "SQ8", **settings: Any) -> None:
        super().__init__(**settings)
        self._code = code
        self._n_candidates = {"SQ8": 2, "PQfs": 16, "RaBitQ": 16}[code]

    @property
    def settings(self) -> dict[str, Any]:
        """What it was built with."""
        return {"code": self._code, "candidates": self._n_candidates}

    def _fill(self, vectors: Embeddings) -> None:
        n, dim = vectors.shape
        self._n_lists = max(1, min(round(2 * n**0.5), n // 40))
        # Two components share four bits, and sixteen products are looked up at once.
        code = f"PQ{dim // 2}x4fs" if self._code == "PQfs" else self._code
        name = f"IVF{self._n_lists},{code}"
        self._index = faiss.index_factory(dim, name, faiss.METRIC_INNER_PRODUCT)
        self._index.cp.niter, self._index.cp.seed = 10, self.seed
        self._index.cp.max_points_per_centroid = 64
        super()._fill(vectors)

    @property
    def _n_sampled(self) -> int:
        return 64 * self._n_lists

    def _parameters(self, selector: Any) -> Any:
        kind = faiss.IVFRaBitQSearchParameters if self._code == "RaBitQ" else None
        return (kind or faiss.SearchParametersIVF)(sel=selector, nprobe=self._index.nprobe)

    def set_effort(self, effort: int) -> None:
        """Set `nprobe`: how many lists are read."""
        self._index.nprobe = min(effort, self._index.nlist)
