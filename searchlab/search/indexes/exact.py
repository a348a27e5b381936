"""ExactIndex: every allowed row is scored; the oracle of all other indexes, and their last step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.protocol import Allowed, Nearest, Neighbors, VectorIndex
from searchlab.search.indexes.scoring import MARGIN, best_first, cosines, cosines_of

_BLOCK = 65_536
# Gathering and scoring a row costs some two and a half times what its share of a product does.
_GATHER_BELOW = 0.4
# Components of a unit row are 1 at most; with far larger ones kernels would compute infinities.
_LARGEST = 1e6
# Queries that are multiplied with all rows at a time; a product takes 4 bytes.
_QUERIES = 16
_GRAPH_FIELDS = ("M", "ef_construction", "ef_search", "step_rows", "build_threads")


class ExactIndex(VectorIndex):
    """Nearest rows by scoring all of them.

    A first pass by matrix product finds the candidates, and `cosines` scores these again, so that
    a row's cosine never depends on which other rows were looked at. Where few rows are allowed, or
    most are wanted, every one is scored by `cosines` at once.
    """

    idle_fields = (*_GRAPH_FIELDS, "n_lists", "depth", "seed", "recall", "tuning")

    def __init__(self, vectors: Embeddings) -> None:
        self.vectors = vectors

    @classmethod
    def build(cls, vectors: Embeddings, config: Config, *, labels: NDArray[np.int64]) -> ExactIndex:
        """Take the vectors; see `VectorIndex.build`."""
        return cls(vectors)

    def search(
        self,
        queries: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        recall: float | None = None,
        effort: float | None = None,
    ) -> Neighbors:
        """Find the k best rows of each query, exactly; see `VectorIndex.search`."""
        bits = check_search(self, queries, k, allowed, recall)
        rows = None if bits is None else bits.rows()
        by_product = _is_product_faster(len(self.vectors), k, rows)
        n_read = len(self.vectors) if rows is None or by_product else len(rows)
        answers = empty_neighbors(len(queries), k, rows_read=n_read)
        for start in range(0, len(queries), _QUERIES):
            batch = queries[start : start + _QUERIES]
            products = _multiply(self.vectors, batch) if by_product else [None] * len(batch)
            for number, query in enumerate(batch):
                best = nearest_rows(self.vectors, query, k, rows=rows, products=products[number])
                answers.rows[start + number, : len(best.rows)] = best.rows
                answers.scores[start + number, : len(best.rows)] = best.scores
        return answers

    def nearest(
        self,
        query: Embeddings,
        k: int,
        *,
        allowed: Allowed | None = None,
        at_least: float = -np.inf,
    ) -> Nearest:
        """Find the k best rows that are near enough; see `VectorIndex.nearest`."""
        bits, least = check_nearest(self, query, k, allowed, at_least)
        return nearest(self.vectors, query, k, allowed=bits, least=least)


def check_search(
    index: VectorIndex,
    queries: Embeddings,
    k: int,
    allowed: Allowed | None,
    recall: float | None = None,
) -> Bitmap | None:
    """Check the arguments of `VectorIndex.search`.

    Returns:
        The rows that may be found; None where all may.

    Raises:
        InputError: Says which argument and why.
    """
    dim = index.dim
    if queries.ndim != 2 or queries.shape[1] != dim:
        msg = f"queries must have shape (n_queries, {dim}), got {queries.shape}"
        raise InputError(msg)
    if not np.abs(queries).max(initial=0) <= _LARGEST:  # not so for NaN either
        msg = f"queries must be finite and at most {_LARGEST:g}, got NaN, infinity or more"
        raise InputError(msg)
    if k < 1:
        msg = f"k must be at least 1, got {k}"
        raise InputError(msg)
    if recall is not None and not 0 < recall <= 1:
        msg = f"recall must be above 0 and at most 1, got {recall!r}"
        raise InputError(msg)
    return _bitmap(allowed, len(index))


def check_nearest(
    index: VectorIndex, query: Embeddings, k: int, allowed: Allowed | None, at_least: float
) -> tuple[Bitmap | None, np.float32]:
    """Check the arguments of `VectorIndex.nearest`.

    Returns:
        The rows that may be found, None where all may; and `at_least` as float32, rounded up.

    Raises:
        InputError: Says which argument and why.
    """
    dim = index.dim
    if query.shape != (dim,):
        msg = f"query must have shape ({dim},), got {query.shape}"
        raise InputError(msg)
    if not np.abs(query).max(initial=0) <= _LARGEST:  # which NaN is not
        msg = f"query must be finite and at most {_LARGEST:g}, got NaN, infinity or more"
        raise InputError(msg)
    if k < 0:
        msg = f"k must be at least 0, got {k}"
        raise InputError(msg)
    if np.isnan(at_least):
        msg = f"at_least must be a number, got {at_least!r}"
        raise InputError(msg)
    if at_least == -np.inf:
        return _bitmap(allowed, len(index)), np.float32(at_least)
    with np.errstate(over="ignore"):
        least = np.float32(at_least)
    if float(least) < at_least:
        least = np.nextafter(least, np.float32(np.inf))
    return _bitmap(allowed, len(index)), least


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


def empty_neighbors(n_queries: int, k: int, *, rows_read: int = 0) -> Neighbors:
    """Return (n_queries, k) answers with every slot unfilled: row -1, cosine -inf."""
    rows = np.full((n_queries, k), -1, dtype=np.int64)
    scores = np.full((n_queries, k), -np.inf, dtype=np.float32)
    return Neighbors(rows, scores, np.full(n_queries, rows_read, dtype=np.int64))


def nearest(
    vectors: Embeddings,
    query: Embeddings,
    k: int,
    *,
    allowed: Bitmap | None = None,
    least: float | np.float32 = -np.inf,
) -> Nearest:
    """Find the k best rows by scoring every allowed one.

    Args:
        vectors: (n_photos, dim) unit rows.
        query: (dim,) unit row.
        k: Most rows to return, 0 or more.
        allowed: Rows to look at; all if left out.
        least: Least cosine of a result, as float32.

    Returns:
        Rows and cosines, best first, ties by row.
    """
    rows = None if allowed is None else allowed.rows()
    return nearest_rows(vectors, query, k, rows=rows, least=least)


def nearest_rows(
    vectors: Embeddings,
    query: Embeddings,
    k: int,
    *,
    rows: NDArray[np.int64] | None = None,
    least: float | np.float32 = -np.inf,
    products: NDArray[np.float32] | None = None,
) -> Nearest:
    """Find the k best among some rows, or among all, ties by row.

    Args:
        vectors: (n_photos, dim) unit rows.
        query: (dim,) unit row.
        k: Most rows to return, 0 or more.
        rows: Ascending positions to look at; all if left out.
        least: Least cosine of a result, as float32.
        products: (n_photos,) matrix products of all rows and the query, if known already.

    Returns:
        Positions and cosines, best first.
    """
    if not k:
        rows = np.zeros(0, dtype=np.int64)
    elif products is not None or _is_product_faster(len(vectors), k, rows, least):
        products = _multiply(vectors, query[np.newaxis])[0] if products is None else products
        rows = _choose_candidates(products, k, rows, least)
    scores = _score_all(vectors, query) if rows is None else cosines_of(vectors, query, rows)
    if least > -np.inf:
        near_enough = np.flatnonzero(scores >= least)
        best = near_enough[best_first(scores[near_enough])[:k]]
    else:
        best = best_first(scores)[:k]
    return Nearest(best if rows is None else rows[best], scores[best])


def _is_product_faster(
    n_photos: int, k: int, rows: NDArray[np.int64] | None, least: float | np.float32 = -np.inf
) -> bool:
    """Whether a product with all rows finds candidates faster than scoring each allowed row."""
    count = n_photos if rows is None else len(rows)
    return count >= _GATHER_BELOW * n_photos and bool(k < 0.5 * count or least > -np.inf)


def _choose_candidates(
    products: NDArray[np.float32],
    k: int,
    rows: NDArray[np.int64] | None,
    least: float | np.float32,
) -> NDArray[np.int64]:
    rough = products if rows is None else products[rows]
    bound = np.float32(least)
    if k < len(rough):
        bound = max(bound, np.partition(rough, len(rough) - k)[len(rough) - k])
    near = np.flatnonzero(rough >= bound - np.float32(MARGIN))
    return near if rows is None else rows[near]


def _score_all(vectors: Embeddings, query: Embeddings) -> NDArray[np.float32]:
    scores = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        scores[start : start + _BLOCK] = cosines(vectors[start : start + _BLOCK], query)
    return scores


def _multiply(vectors: Embeddings, queries: Embeddings) -> NDArray[np.float32]:
    products = np.empty((len(queries), len(vectors)), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        block = slice(start, start + _BLOCK)
        products[:, block] = queries @ vectors[block].T
    return products
