"""When a scan may stop: how much longer the tails of a library's residuals are than normal ones.

A residual is the score of a row less that of its list's centre. A scan stops when few neighbours
are to be expected in the lists left, as if residuals were distributed normally. They are not:
neighbours of a photo lie together, even where the border of a list separates them. So the variance
is multiplied by a factor, the stretch. When the lists are built, rows held out from the making of
the centres are searched for with one stretch after the other, and the share of their true
neighbours that is found is stored. A search then uses the stretch that reached its recall target.

Where rows crowd, neighbours lie in very many lists, and a scan would read nearly all of them for
the last few. So it is measured, too, after which share of the rows most neighbours are found, and a
scan ends there: three quarters of what may be missed is left to this, a quarter to the stretch. And
it is measured how far the tails of neighbours lie along those of queries, which heads do not say.

Behind a filter rows lie deeper. It is measured with one that draws them at random, and with one
that lets whole lists through or nothing of them. A scan sees by the nearest lists which of the two
its own filter is like.

Queries by text lie elsewhere than photos and need less stretch; the cosine of a query with its best
centre tells the two apart. They are measured on texts that the library has, if it has any: rows
moved to where texts lie still have neighbours as rows do, and need twice the stretch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.models.protocol import Embeddings
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.ivf.kmeans import blas, blocks, unit
from searchlab.search.indexes.ivf.lists import Lists
from searchlab.search.indexes.ivf.search import scan_lists
from searchlab.search.indexes.ivf.stopping import (
    DEPTH,
    MISSED,
    STRETCHES,
    THINNED,
    Stopping,
    find_shares,
)

# With fewer rows nothing is measured: a scan with the longest tails is fast enough.
_LEARNABLE = 2_000
# Queries of a kind, and the neighbours of each that are searched for.
N_QUERIES = 128
# The weight of a photo in a made-up query that lies where texts about it would.
_TEXT_WEIGHT = 0.35
# Lists nearest to a query over which the variance is estimated.
_NEAR_LISTS = 3
# Neighbours whose tails must be allowed for, and how much is added to what was measured.
_NEARLY_ALL = 0.999
_SPARE = 1.1
_LEAST_ALONG = 0.1
# Longer tails are not tried where this recall was reached.
_ENOUGH = 0.9985
_BLOCK = 2_048


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
        lessons = pool.map(
            lambda queries: _learn_kind(lists, vectors, queries, masks, usual=usual),
            (photos, made),
        )
        near, far = _nearness(lists, photos, 0.1), _nearness(lists, made, 0.9)
        reached, shares, along = (np.stack(parts) for parts in zip(*lessons, strict=True))
        return Stopping(usual, near, far, reached, shares, along)


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
        lesson = _learn_kind(lists, vectors, texts, masks, usual=stopping.usual)
        return replace(
            stopping,
            far=_nearness(lists, texts, 0.9),
            reached=np.stack([stopping.reached[0], lesson.reached]),
            shares=np.stack([stopping.shares[0], lesson.shares]),
            along=np.stack([stopping.along[0], lesson.along]),
            n_texts=len(texts),
        )


def _nearness(lists: Lists, queries: Embeddings, share: float) -> float:
    """Return the cosine with its best centre which a share of the queries stay below."""
    return float(np.quantile((lists.centres @ queries.T).max(axis=0), share))


class _Lesson(NamedTuple):
    """Measured on queries of a kind; see `Stopping`."""

    reached: NDArray[np.float32]
    shares: NDArray[np.float32]
    along: np.float32


def _learn_kind(
    lists: Lists,
    vectors: Embeddings,
    queries: Embeddings,
    masks: list[NDArray[np.bool_]],
    *,
    usual: float,
) -> _Lesson:
    truths = _find_truths(vectors, queries, masks)
    along = _measure_along(lists, vectors, queries, truths[0])
    curves, shares = [], []
    for true, mask in zip(truths, masks, strict=True):
        allowed = Bitmap.of_mask(mask)
        curves.append(
            _measure_recalls(lists, queries, true, allowed, usual=usual, along=float(along))
        )
        shares.append(find_shares(_place(lists, queries, true, mask)))
    whole, at_random, _ = curves
    reached = np.stack([whole, np.minimum(whole, at_random), np.min(curves, axis=0)])
    whole, at_random, _ = shares
    most = np.stack([whole, np.maximum(whole, at_random), np.max(shares, axis=0)])
    return _Lesson(reached, most, along)


def _measure_along(
    lists: Lists, vectors: Embeddings, queries: Embeddings, truths: list[NDArray[np.int64]]
) -> np.float32:
    """Return how far the tails of neighbours lie along those of queries, at most 1."""
    axes, centres = lists.axes, lists.centres
    shares = [np.zeros(0)]
    for query, rows in zip(queries, truths, strict=True):
        rest = np.asarray(vectors[rows], dtype=np.float32) - centres[lists.find_lists(rows)]
        tails = rest - (rest @ axes) @ axes.T
        tail = query - axes @ (query @ axes)
        longest = np.linalg.norm(tails, axis=1) * np.linalg.norm(tail)
        shares.append((tails @ tail) / np.maximum(longest, 1e-9))
    nearly_all = np.quantile(np.concatenate(shares), _NEARLY_ALL) if len(truths) else 1.0
    return np.float32(np.clip(nearly_all * _SPARE, _LEAST_ALONG, 1.0))


def _place(
    lists: Lists, queries: Embeddings, truths: list[NDArray[np.int64]], mask: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the share of allowed rows that are read when the list of each neighbour was."""
    allowed = np.add.reduceat(np.append(mask[lists.rows], 0), lists.offsets[:-1])
    allowed[lists.sizes == 0] = 0
    places = [np.zeros(1)]
    for query, rows in zip(queries, truths, strict=True):
        order = np.argsort(-(lists.centres @ query), kind="stable")
        shares = np.empty(len(order))
        shares[order] = np.cumsum(allowed[order]) / max(int(allowed.sum()), 1)
        places.append(shares[lists.find_lists(rows)])
    return np.concatenate(places)


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
    aligned[lists.rows] = np.repeat(rng.random(n_lists) < 1 / THINNED, lists.sizes)
    masks = [np.ones(n, dtype=np.bool_), rng.random(n) < 1 / THINNED, aligned]
    for mask in masks:
        mask[held_out] = False
    return masks


def _find_truths(
    vectors: Embeddings, queries: Embeddings, masks: list[NDArray[np.bool_]]
) -> list[list[NDArray[np.int64]]]:
    # The nearest rows of each query under each mask, at most `DEPTH`, in one pass over the vectors.
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
                best = np.argsort(-both, kind="stable")[:DEPTH]
                scores[number][query], rows[number][query] = both[best], where[best]
                if len(best) == DEPTH:
                    least[number, query] = both[best[-1]]
    return rows


def _measure_recalls(
    lists: Lists,
    queries: Embeddings,
    truths: list[NDArray[np.int64]],
    allowed: Bitmap,
    *,
    usual: float,
    along: float,
) -> NDArray[np.float32]:
    curve = np.ones(len(STRETCHES), dtype=np.float32)
    for number, stretch in enumerate(STRETCHES):
        shares = np.array(
            [
                _find_share(lists, query, truth, allowed, usual=usual, stretch=stretch, along=along)
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
    along: float,
) -> float:
    if not len(truth):
        return 1.0
    band = np.array(2 * [[1.0, stretch, 1.0, along]])
    found = scan_lists(
        lists, query, allowed, len(truth), missed=MISSED, usual=usual, bands=(band, band)
    )
    if not found.hold_best:  # a search would then look through all
        return 1.0
    return float(np.isin(truth, found.rows).mean())
