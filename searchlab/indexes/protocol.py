"""What every index offers: the k nearest allowed rows, always as many as there are."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings


class Neighbors(NamedTuple):
    """Answers to a batch of queries, best first.

    Attributes:
        rows: (n_queries, k) int64 positions, padded with -1.
        scores: (n_queries, k) float32 cosines, padded with -inf.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


@runtime_checkable
class VectorIndex(Protocol):
    """Nearest rows by cosine.

    Attributes:
        vectors: (n_photos, dim) unit rows, in the order of the photo table; may be memory-mapped.
        approximate: Whether `search` may miss a neighbour.
    """

    vectors: Embeddings
    approximate: bool

    def __len__(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """Bytes that the index holds, its vectors included."""
        ...

    def search(
        self, queries: Embeddings, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbors:
        """Find the k best rows of each query, ties by row.

        Args:
            queries: (n_queries, dim) float32.
            k: Rows wanted, at least 1.
            allowed: (n_photos,) bool; rows that may be found, all if left out.

        Returns:
            (n_queries, k) rows and cosines. min(k, allowed rows) slots are always filled.

        Raises:
            InputError: Wrong shapes, k below 1, or a component that is not finite.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write what the index adds to its vectors into a folder."""
        ...


def check_search(
    vectors: Embeddings, queries: Embeddings, k: int, allowed: NDArray[np.bool_] | None
) -> None:
    """Refuse arguments of `VectorIndex.search` that would be answered wrongly.

    Raises:
        InputError: Says which argument and why.
    """
    n_photos, dim = vectors.shape
    if queries.ndim != 2 or queries.shape[1] != dim:
        msg = f"queries must have shape (n_queries, {dim}), got {queries.shape}"
        raise InputError(msg)
    if not np.isfinite(queries).all():
        msg = "queries must be finite, got NaN or infinity"
        raise InputError(msg)
    if k < 1:
        msg = f"k must be at least 1, got {k}"
        raise InputError(msg)
    if allowed is not None and (allowed.shape != (n_photos,) or allowed.dtype != np.bool_):
        msg = f"allowed must be bool of shape ({n_photos},), got {allowed.dtype} {allowed.shape}"
        raise InputError(msg)
