"""When a scan may stop: how much longer the tails of a library's residuals are than normal ones.

A residual is the score of a row less that of its list's centre. A scan stops when few neighbours
are to be expected in the lists left, as if residuals were distributed normally. They are not:
neighbours of a photo lie together, even where the border of a list separates them. So the variance
is multiplied by a factor, the stretch. When the lists are built, rows held out from the making of
the centres are searched for with one stretch after the other, and the share of their true
neighbours that is found is stored. A search then uses the stretch that reached its recall target.

Queries by text lie elsewhere than photos and need less stretch; the cosine of a query with its best
centre tells the two apart. They are measured on texts that the library has, if it has any: rows
moved to where texts lie still have neighbours as rows do, and need twice the stretch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.ivf.kmeans import blas, blocks, unit
from searchlab.search.indexes.ivf.lists import Lists
from searchlab.search.indexes.ivf.search import scan_lists

STRETCHES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 5.6)
# Used where none of them reaches the recall target.
_LONGEST = 8.0
# With fewer rows nothing is measured: a scan with the longest tails is fast enough.
_LEARNABLE = 2_000
# Queries of a kind, and the neighbours of each that are searched for.
N_QUERIES = 128
_K = 20
# The weight of a photo in a made-up query that lies where texts about it would.
_TEXT_WEIGHT = 0.35
# Lists nearest to a query over which the variance is estimated.
_NEAR_LISTS = 3
# Share of the neighbours that may be expected in the lists left, with every stretch that is tried.
_MISSED = 0.01
# Longer tails are not tried where this recall was reached.
_ENOUGH = 0.9985
_BLOCK = 2_048


@dataclass(frozen=True)
class Stopping:
    """Measured variances and recalls, from which the end of a scan follows.

    Attributes:
        usual: Variance of residuals as a share of a list's spread, before a row is scored.
        near: Cosine with the best centre from which on a query is like the photos.
        far: Cosine with the best centre up to which a query is like a text.
        reached: (2, 2, n_stretches) float32 recall by each of `STRETCHES`, for photos and for
            texts, without a filter and with the hardest one.
        n_texts: Queries by text that were measured; 0 where they were made from photos.
    """

    usual: float
    near: float
    far: float
    reached: NDArray[np.float32]
    n_texts: int = 0

    @property
    def is_measured(self) -> bool:
        """Whether there were enough rows to measure anything."""
        return bool(self.reached.any())

    def bands(self, recall: float, *, filtered: bool) -> tuple[float, float, float, float]:
        """Return the `bands` that `scan_lists` takes.

        Args:
            recall: Share of the true neighbours to find, above 0 to 1.
            filtered: Whether there is a filter.
        """
        near, far = (_stretch_for(curves[int(filtered)], recall) for curves in self.reached)
        return self.near, near, self.far, far

    def missed(self, recall: float) -> float:
        """Return the `missed` that `scan_lists` takes; arguments are those of `bands`."""
        return _MISSED if self.is_measured else 1 - recall

    def pack(self) -> NDArray[np.float32]:
        """Return all numbers in one array, (4 + 4 n_stretches,) float32."""
        numbers = np.array([self.usual, self.near, self.far, self.n_texts], dtype=np.float32)
        return np.concatenate([numbers, self.reached.reshape(-1)])

    @classmethod
    def unpack(cls, numbers: NDArray[np.float32], dim: int) -> Stopping:
        """Rebuild from what `pack` returned; an empty array stands for lists without measurements.

        Raises:
            InputError: The array has another length.
        """
        if not len(numbers):
            # Twice the variance of residuals that are alike in all directions: safe, but slow.
            return cls(2 / dim, 1.0, 0.0, np.zeros((2, 2, len(STRETCHES)), dtype=np.float32))
        if len(numbers) != 4 + 4 * len(STRETCHES):
            msg = f"its stopping holds {len(numbers)} numbers, not {4 + 4 * len(STRETCHES)}"
            raise InputError(msg)
        usual, near, far = map(float, numbers[:3])
        return cls(usual, near, far, numbers[4:].reshape(2, 2, -1), int(numbers[3]))


def _stretch_for(curve: NDArray[np.float32], recall: float) -> float:
    reached = np.maximum.accumulate(curve)
    if recall > reached[-1]:
        return _LONGEST
    return float(np.interp(recall, reached, STRETCHES))


def hold_out(n: int, *, seed: int) -> NDArray[np.int64]:
    """Choose rows to measure with, from which no centre may be made; (n_held_out,), ascending."""
    count = N_QUERIES if n >= _LEARNABLE else 0
    return np.sort(np.random.default_rng([seed, 1]).choice(n, size=count, replace=False))


def learn_stopping(
    lists: Lists, vectors: Embeddings, held_out: NDArray[np.int64], *, seed: int, threads: int
) -> Stopping:
    """Measure when a scan of these lists may stop.

    Args:
        lists: Lists whose centres were made without the rows held out.
        vectors: (n, dim) unit rows.
        held_out: (n_held_out,) int64 rows held out; none to measure nothing.
        seed: Seed of the filters and of the queries that are like texts.
        threads: Threads to work with.
    """
    if not len(held_out):
        return Stopping.unpack(np.zeros(0, dtype=np.float32), vectors.shape[1])
    rng = np.random.default_rng([seed, 2])
    photos = np.ascontiguousarray(vectors[held_out], dtype=np.float32)
    noise = unit(rng.standard_normal(photos.shape))
    weight = np.float32(np.sqrt(1 - _TEXT_WEIGHT**2))
    made = unit(np.float32(_TEXT_WEIGHT) * photos + weight * noise)
    usual = _estimate_usual(lists, photos)
    masks = make_masks(lists, held_out, rng)
    # One thread a kind, however many there are: products are rounded in the same way.
    with blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        reached = pool.map(
            lambda queries: _try_stretches(lists, vectors, queries, masks, usual=usual),
            (photos, made),
        )
        near, far = _nearness(lists, photos, 0.1), _nearness(lists, made, 0.9)
        return Stopping(usual, near, far, np.array(list(reached), dtype=np.float32))


def learn_texts(
    lists: Lists, vectors: Embeddings, stopping: Stopping, texts: Embeddings, *, seed: int
) -> Stopping:
    """Measure when a scan for real queries by text may stop.

    Args:
        lists: To scan.
        vectors: (n, dim) unit rows.
        stopping: What was measured for photos.
        texts: (n_queries, dim) vectors of texts as people may ask for.
        seed: Seed of the filters.
    """
    texts = np.ascontiguousarray(unit(texts[:N_QUERIES]), dtype=np.float32)
    masks = make_masks(lists, np.zeros(0, dtype=np.int64), np.random.default_rng([seed, 3]))
    with blas().limit(limits=1, user_api="blas"):
        reached = _try_stretches(lists, vectors, texts, masks, usual=stopping.usual)
        return replace(
            stopping,
            far=_nearness(lists, texts, 0.9),
            reached=np.stack([stopping.reached[0], reached]),
            n_texts=len(texts),
        )


def _nearness(lists: Lists, queries: Embeddings, share: float) -> float:
    """Return the cosine with its best centre which a share of the queries stay below."""
    return float(np.quantile((lists.centres @ queries.T).max(axis=0), share))


def _try_stretches(
    lists: Lists,
    vectors: Embeddings,
    queries: Embeddings,
    masks: list[NDArray[np.bool_]],
    *,
    usual: float,
) -> NDArray[np.float32]:
    """Return the recall by each stretch, (2, n_stretches): without a filter, and the least."""
    curves = [
        _measure_recalls(lists, queries, truths, Bitmap.of_mask(mask), usual=usual)
        for truths, mask in zip(_find_truths(vectors, queries, masks), masks, strict=True)
    ]
    return np.stack([curves[0], np.min(curves, axis=0)])


def _estimate_usual(lists: Lists, queries: Embeddings) -> float:
    # Neighbours in other lists are unlikely to vary more than the rows of the lists nearest to a
    # query. Doubling this costs little: it counts as a few rows, and soon more have been scored.
    products = lists.centres @ queries.T
    nearest = np.argsort(-products, axis=0)[:_NEAR_LISTS]
    ratios = []
    for column, query in enumerate(queries):
        squares = expected = 0.0
        for number in nearest[:, column]:
            places = slice(lists.offsets[number], lists.offsets[number + 1])
            codes = lists.codes[places, : len(query)].astype(np.float32) - 128
            residuals = (codes @ query) * lists.scales[places] - products[number, column]
            squares += float((residuals**2).sum())
            expected += len(residuals) * float(lists.spreads[number])
        ratios.append(squares / max(expected, 1e-12))
    return 2 * float(np.median(ratios))


def make_masks(
    lists: Lists, held_out: NDArray[np.int64], rng: np.random.Generator
) -> list[NDArray[np.bool_]]:
    """Choose what may be found: all, some at random, and whole lists; never a row held out.

    Of whole lists, so that most queries find nothing in their own.

    Args:
        lists: Lists of all rows.
        held_out: (n_held_out,) int64 rows that are the queries.
        rng: Draws.

    Returns:
        Masks of all rows, (n,) bool each.
    """
    n, n_lists = len(lists.rows), len(lists.sizes)
    aligned = np.zeros(n, dtype=np.bool_)
    aligned[lists.rows] = np.repeat(rng.random(n_lists) < 0.1, lists.sizes)
    masks = [np.ones(n, dtype=np.bool_), rng.random(n) < 0.1, aligned]
    for mask in masks:
        mask[held_out] = False
    return masks


def _find_truths(
    vectors: Embeddings, queries: Embeddings, masks: list[NDArray[np.bool_]]
) -> list[list[NDArray[np.int64]]]:
    # The nearest rows of each query under each mask, at most `_K`, in one pass over the vectors.
    rows = [[np.zeros(0, dtype=np.int64) for _ in queries] for _ in masks]
    scores = [[np.zeros(0, dtype=np.float32) for _ in queries] for _ in masks]
    least = np.full((len(masks), len(queries), 1), -np.inf, dtype=np.float32)
    for block in blocks(len(vectors), _BLOCK):
        products = queries @ np.asarray(vectors[block], dtype=np.float32).T
        for number, mask in enumerate(masks):
            above = (products > least[number]) & mask[block]
            for query in np.flatnonzero(above.any(axis=1)).tolist():
                places = np.flatnonzero(above[query])
                both = np.concatenate([scores[number][query], products[query, places]])
                where = np.concatenate([rows[number][query], places + block.start])
                best = np.argsort(-both, kind="stable")[:_K]
                scores[number][query], rows[number][query] = both[best], where[best]
                if len(best) == _K:
                    least[number, query] = both[best[-1]]
    return rows


def _measure_recalls(
    lists: Lists,
    queries: Embeddings,
    truths: list[NDArray[np.int64]],
    allowed: Bitmap,
    *,
    usual: float,
) -> NDArray[np.float32]:
    curve = np.ones(len(STRETCHES), dtype=np.float32)
    for number, stretch in enumerate(STRETCHES):
        shares = np.array(
            [
                _find_share(lists, query, truth, allowed, usual=usual, stretch=stretch)
                for query, truth in zip(queries, truths, strict=True)
            ]
        )
        curve[number:] = shares.mean()
        if curve[number] >= _ENOUGH:
            break
    return curve


def _find_share(
    lists: Lists,
    query: Embeddings,
    truth: NDArray[np.int64],
    allowed: Bitmap,
    *,
    usual: float,
    stretch: float,
) -> float:
    if not len(truth):
        return 1.0
    bands = (1.0, stretch, 0.0, stretch)
    rows, _ = scan_lists(
        lists, query, allowed, len(truth), missed=_MISSED, usual=usual, bands=bands
    )
    return float(np.isin(truth, rows).mean())
