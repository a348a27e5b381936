"""What every index offers: the k nearest allowed rows, always as many as there are."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap

Allowed = Bitmap | NDArray[np.bool_]
"""Rows that may be found, as bits or as an (n_photos,) mask."""


class Neighbors(NamedTuple):
    """Answers to a batch of queries, best first.

    Attributes:
        rows: (n_queries, k) int64 positions, padded with -1.
        scores: (n_queries, k) float32 cosines, padded with -inf.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


class Nearest(NamedTuple):
    """Exact answer to one query, best first.

    Attributes:
        rows: (n_found,) int64 positions.
        scores: (n_found,) float32 cosines.
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
        self,
        queries: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        recall: float | None = None,
    ) -> Neighbors:
        """Find the k best rows of each query, ties by row.

        Args:
            queries: (n_queries, dim) float32.
            k: Rows wanted, at least 1.
            allowed: Rows that may be found, as a Bitmap or as an (n_photos,) bool mask; all if left
                out.
            recall: Share of the true neighbours that must be expected to be found, above 0 to 1;
                the index's own setting if left out. 1 is exact.

        Returns:
            (n_queries, k) rows and cosines. min(k, allowed rows) slots are always filled.

        Raises:
            InputError: Wrong shapes, k below 1, a recall out of range, or a component that is not
                finite.
        """
        ...

    def nearest(
        self,
        query: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        at_least: float = -np.inf,
    ) -> Nearest:
        """Find the k best rows that are near enough; exact, whatever index it is.

        Args:
            query: (dim,) float32.
            k: Rows wanted at most, 0 or more.
            allowed: As in `search`.
            at_least: The cosine that a row must have.

        Returns:
            Rows and cosines, best first, ties by row: the same to the last bit from every index.

        Raises:
            InputError: Wrong shapes, k below 0, or a number that is not finite.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write what the index adds to its vectors into a folder."""
        ...


def check_search(
    vectors: Embeddings,
    queries: Embeddings,
    k: int,
    allowed: Allowed | None,
    recall: float | None = None,
) -> Bitmap | None:
    """Refuse arguments of `VectorIndex.search` that would be answered wrongly.

    Returns:
        The rows that may be found; None where all may.

    Raises:
        InputError: Says which argument and why.
    """
    dim = vectors.shape[1]
    if queries.ndim != 2 or queries.shape[1] != dim:
        msg = f"queries must have shape (n_queries, {dim}), got {queries.shape}"
        raise InputError(msg)
    if not np.isfinite(queries).all():
        msg = "queries must be finite, got NaN or infinity"
        raise InputError(msg)
    if k < 1:
        msg = f"k must be at least 1, got {k}"
        raise InputError(msg)
    if recall is not None and not 0 < recall <= 1:
        msg = f"recall must be above 0 and at most 1, got {recall!r}"
        raise InputError(msg)
    return _bitmap(allowed, len(vectors))


def check_nearest(
    vectors: Embeddings, query: Embeddings, k: int, allowed: Allowed | None, at_least: float
) -> tuple[Bitmap | None, np.float32]:
    """Refuse arguments of `VectorIndex.nearest` that would be answered wrongly.

    Returns:
        The rows that may be found, None where all may; and the least float32 cosine that is not
        below `at_least`.

    Raises:
        InputError: Says which argument and why.
    """
    dim = vectors.shape[1]
    if query.shape != (dim,):
        msg = f"query must have shape ({dim},), got {query.shape}"
        raise InputError(msg)
    if not np.isfinite(query).all():
        msg = "query must be finite, got NaN or infinity"
        raise InputError(msg)
    if k < 0:
        msg = f"k must be at least 0, got {k}"
        raise InputError(msg)
    if np.isnan(at_least):
        msg = f"at_least must be a number, got {at_least!r}"
        raise InputError(msg)
    with np.errstate(over="ignore"):
        least = np.float32(at_least)
    if float(least) < at_least:
        least = np.nextafter(least, np.float32(np.inf))
    return _bitmap(allowed, len(vectors)), least


def _bitmap(allowed: Allowed | None, n_photos: int) -> Bitmap | None:
    if allowed is None:
        return None
    if not isinstance(allowed, Bitmap):
        if allowed.shape != (n_photos,) or allowed.dtype != np.bool_:
            got = f"{allowed.dtype} {allowed.shape}"
            msg = f"allowed must be bool of shape ({n_photos},), got {got}"
            raise InputError(msg)
        allowed = Bitmap.of_mask(allowed)
    elif allowed.n != n_photos:
        msg = f"allowed must be over {n_photos} rows, got {allowed!r}"
        raise InputError(msg)
    return None if allowed.count == n_photos else allowed
