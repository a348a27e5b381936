"""When a scan may stop: how much longer than normal the tails of a library's residuals are.

A scan stops when few neighbours are to be expected in the lists left, taking residuals to be
normal. Real ones are not: neighbours of a photo lie together, also where a list's border parts
them. How much this costs is measured when the lists are made, with rows that the lists' centres
were made without: the variance is stretched, step by step, and the share of the true neighbours
that is found is noted. A search then uses the stretch that reached its recall.

Texts lie elsewhere than photos and need less of it; the cosine of a query with its best centre
tells the two apart.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.ivf.kmeans import blas, blocks, unit
from searchlab.search.indexes.ivf.lists import Lists
from searchlab.search.indexes.ivf.search import scan_lists

STRETCHES = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6)
_LONGEST = 8.0
# Too few rows to learn from are scanned soon enough with the longest tails.
_LEARNABLE = 2_000
_HELD = 128
_K = 20
# The weight of a photo in a query that is like a text about it, as in joint spaces of both.
_TEXT_WEIGHT = 0.35
_NEAR_LISTS = 3
_TRIED_RECALL = 0.99
# Longer tails are not tried where this was reached.
_ENOUGH = 0.9985
_BLOCK = 2_048


@dataclass(frozen=True)
class Stopping:
    """Measured variances and recalls, from which the end of a scan follows.

    Attributes:
        usual: Variance of residuals as a share of a list's spread, before a row is scored.
        near: Cosine with the best centre from which on a query is like the photos.
        far: Cosine with the best centre up to which a query is like a text.
        reached: (2, 2, n_stretches) recall by each of `STRETCHES`, of photos and of texts, without
            a filter and with the hardest of three.
    """

    usual: float
    near: float
    far: float
    reached: NDArray[np.float32]

    def bands(self, recall: float, *, filtered: bool) -> tuple[float, float, float, float]:
        """Return what `scan_lists` needs for a recall."""
        near, far = (_stretch_for(curves[int(filtered)], recall) for curves in self.reached)
        return self.near, near, self.far, far

    def pack(self) -> NDArray[np.float32]:
        """Return all numbers in one array."""
        numbers = np.array([self.usual, self.near, self.far], dtype=np.float32)
        return np.concatenate([numbers, self.reached.reshape(-1)])

    @classmethod
    def unpack(cls, numbers: NDArray[np.float32], dim: int) -> Stopping:
        """Rebuild from `pack`; from nothing, what is safe where nothing was measured.

        Raises:
            InputError: They are of another number.
        """
        if not len(numbers):
            # Residuals alike in all directions, and twice that.
            return cls(2 / dim, 1.0, 0.0, np.zeros((2, 2, len(STRETCHES)), dtype=np.float32))
        if len(numbers) != 3 + 4 * len(STRETCHES):
            msg = f"its stopping holds {len(numbers)} numbers"
            raise InputError(msg)
        usual, near, far = map(float, numbers[:3])
        return cls(usual, near, far, numbers[3:].reshape(2, 2, -1))


def _stretch_for(curve: NDArray[np.float32], recall: float) -> float:
    reached = np.maximum.accumulate(curve)
    if recall > reached[-1]:
        return _LONGEST
    return float(np.interp(recall, reached, STRETCHES))


def hold_out(n: int, *, seed: int) -> NDArray[np.int64]:
    """Choose the rows to learn from, which no centre is made from; ascending."""
    count = _HELD if n >= _LEARNABLE else 0
    return np.sort(np.random.default_rng([seed, 1]).choice(n, size=count, replace=False))


def learn_stopping(
    lists: Lists, vectors: Embeddings, held: NDArray[np.int64], *, seed: int, threads: int
) -> Stopping:
    """Measure when a scan of these lists may stop.

    Args:
        lists: Lists whose centres were made without the rows held out.
        vectors: (n, dim) unit rows.
        held: (n_held,) rows held out; none to measure nothing.
        seed: Of filters and queries.
        threads: Threads to work with.
    """
    if not len(held):
        return Stopping.unpack(np.zeros(0, dtype=np.float32), vectors.shape[1])
    rng = np.random.default_rng([seed, 2])
    photos = np.ascontiguousarray(vectors[held], dtype=np.float32)
    noise = unit(rng.standard_normal(photos.shape))
    weight = np.float32(np.sqrt(1 - _TEXT_WEIGHT**2))
    kinds = (photos, unit(np.float32(_TEXT_WEIGHT) * photos + weight * noise))
    usual = _estimate_usual(lists, photos)
    near, far = (np.sort((lists.centres @ queries.T).max(axis=0)) for queries in kinds)
    masks = _make_masks(lists, held, rng)

    def try_stretches(queries: Embeddings) -> list[NDArray[np.float32]]:
        curves = [
            _measure_recalls(lists, queries, truths, Bitmap.of_mask(mask), usual=usual)
            for truths, mask in zip(_find_truths(vectors, queries, masks), masks, strict=True)
        ]
        return [curves[0], np.asarray(np.min(curves, axis=0))]

    # One thread a kind, however many there are: products are rounded in the same way.
    with blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        reached = np.array(list(pool.map(try_stretches, kinds)), dtype=np.float32)
    tenth = len(held) // 10
    return Stopping(usual, float(near[tenth]), float(far[-tenth - 1]), reached)


def _estimate_usual(lists: Lists, queries: Embeddings) -> float:
    # What rows near to a query vary by is the most that its neighbours elsewhere are likely to;
    # twice that costs little, as soon more rows are scored than it counts for.
    products = lists.centres @ queries.T
    nearest = np.argsort(-products, axis=0)[:_NEAR_LISTS]
    ratios = []
    for number, query in enumerate(queries):
        squares = expected = 0.0
        for one in nearest[:, number]:
            places = slice(lists.offsets[one], lists.offsets[one + 1])
            codes = lists.codes[places, : len(query)].astype(np.float32) - 128
            residuals = (codes @ query) * lists.scales[places] - products[one, number]
            squares += float((residuals**2).sum())
            expected += len(residuals) * float(lists.spreads[one])
        ratios.append(squares / max(expected, 1e-12))
    return 2 * float(np.median(ratios))


def _make_masks(
    lists: Lists, held: NDArray[np.int64], rng: np.random.Generator
) -> list[NDArray[np.bool_]]:
    # All, at random, and with the lists, so that most queries have nothing allowed in their own.
    n, n_lists = len(lists.rows), len(lists.sizes)
    aligned = np.zeros(n, dtype=np.bool_)
    aligned[lists.rows] = np.repeat(rng.random(n_lists) < 0.1, lists.sizes)
    masks = [np.ones(n, dtype=np.bool_), rng.random(n) < 0.1, aligned]
    for mask in masks:
        mask[held] = False
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
        lists, query, allowed, len(truth), recall=_TRIED_RECALL, usual=usual, bands=bands
    )
    return float(np.isin(truth, rows).mean())
