"""Centres for the lists of the IVF index: spherical k-means over a sample of the rows.

Not scikit-learn's `KMeans`: its centres are of any length, and it holds every row against all of
them, where here a row is held against the groups of centres that are nearest.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.ivf._kernels.clusters import add_rows

# Rows that a thread assigns at a time.
_BLOCK = 1_024
# More rounds, or more sampled rows for each centre, would slow down the build by more than they
# would speed up searches.
_ROUNDS = 6
_SAMPLED = 32
# From this many centres on they are put into groups, and a row is compared with those of the
# nearest sixteenth of the groups.
_MANY = 1_024
_NEAR_SHARE = 16

# (n, dim) rows -> (n,) the centre of each, and (n,) products with them.
_Nearest = Callable[[Embeddings], tuple[NDArray[np.int64], NDArray[np.float32]]]


def train_centres(vectors: Embeddings, n_lists: int, *, seed: int, threads: int) -> Embeddings:
    """Find centres that rows lie close to; the same centres with any number of threads.

    Args:
        vectors: (n, dim) rows, n at least 1; may be memory-mapped.
        n_lists: Number of centres, 1 to n.
        seed: Seed of the sample and of the first centres.
        threads: Blocks of rows that are assigned at a time.

    Returns:
        (n_lists, dim) float32 unit rows.

    References:
        Dhillon and Modha, Concept decompositions for large sparse text data using clustering,
        Machine Learning 42, 2001.
    """
    rng = np.random.default_rng(seed)
    size = min(len(vectors), _SAMPLED * n_lists)
    rows = np.sort(rng.choice(len(vectors), size=size, replace=False))
    sample = np.ascontiguousarray(vectors[rows], dtype=np.float32)
    centres = unit(sample[np.sort(rng.choice(size, size=n_lists, replace=False))])
    for _ in range(_ROUNDS):
        members, fits = assign(sample, centres, threads=threads)
        sums = np.zeros(centres.shape)
        add_rows(sample, members, sums)
        empty = np.flatnonzero(np.bincount(members, minlength=n_lists) == 0)
        # A centre that is nearest to no row starts again at one of the rows that fit worst.
        sums[empty] = sample[np.argsort(fits, kind="stable")[: len(empty)]]
        centres = unit(sums)
    return centres


def assign(
    vectors: Embeddings, centres: Embeddings, *, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the centre that each row is nearest to, or of many centres one that is about as near.

    Many centres, if not more than rows, are put into groups, and a row is compared only with the
    centres of the groups nearest to it, about a sixteenth of all. Of a million rows in 4,000 lists
    three in a thousand went to another centre than the nearest, one that is hardly farther.

    Args:
        vectors: (n, dim) rows; may be memory-mapped.
        centres: (n_centres, dim) float32 unit rows.
        threads: Blocks of rows that are assigned at a time.

    Returns:
        (n,) int64 centres, and (n,) float32 products with them.
    """
    members = np.empty(len(vectors), dtype=np.int64)
    fits = np.empty(len(vectors), dtype=np.float32)
    in_groups = _MANY <= len(centres) <= len(vectors)
    nearest = _search_groups(centres) if in_groups else _search_all(centres)

    def assign_block(block: slice) -> None:
        rows = np.ascontiguousarray(vectors[block], dtype=np.float32)
        members[block], fits[block] = nearest(rows)

    # A product of matrices is rounded in the same way only where the number of threads is the same.
    with blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        list(pool.map(assign_block, blocks(len(vectors), _BLOCK)))
    return members, fits


@functools.cache
def blas() -> ThreadpoolController:
    """Find the libraries that multiply matrices: once, as it takes longer than a small product."""
    return ThreadpoolController()


def _search_all(centres: Embeddings) -> _Nearest:
    def nearest(rows: Embeddings) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        scores = rows @ centres.T
        best = scores.argmax(axis=1)
        return best, np.take_along_axis(scores, best[:, np.newaxis], axis=1)[:, 0]

    return nearest


def _search_groups(centres: Embeddings) -> _Nearest:
    n_groups = round(math.sqrt(len(centres)))
    middles = train_centres(centres, n_groups, seed=0, threads=1)
    group_of, _ = assign(centres, middles, threads=1)
    used, group_of = np.unique(group_of, return_inverse=True)
    middles, n_groups = middles[used], len(used)
    order = np.argsort(group_of, kind="stable")
    starts = np.searchsorted(group_of[order], np.arange(n_groups + 1))
    grouped = centres[order]
    n_near = -(-n_groups // _NEAR_SHARE)

    def nearest(rows: Embeddings) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        # Pairs of a row and a group near to it, sorted by group.
        near = np.argpartition(rows @ -middles.T, n_near - 1, axis=1)[:, :n_near].reshape(-1)
        pairs = np.argsort(near, kind="stable")
        bounds = np.searchsorted(near[pairs], np.arange(n_groups + 1))
        row_of_pair = pairs // n_near
        best = np.zeros(len(rows), dtype=np.int64)
        fits = np.full(len(rows), -np.inf, dtype=np.float32)
        for group in np.flatnonzero(np.diff(bounds)):
            members = row_of_pair[bounds[group] : bounds[group + 1]]
            scores = rows[members] @ grouped[starts[group] : starts[group + 1]].T
            closest = scores.argmax(axis=1)
            fit = scores[np.arange(len(members)), closest]
            better = fit > fits[members]
            fits[members[better]] = fit[better]
            best[members[better]] = order[starts[group] + closest[better]]
        return best, fits

    return nearest


def usable_processors() -> int:
    """Return how many processors this process may use."""
    usable = getattr(os, "sched_getaffinity", None)  # macOS and Windows do not say
    return len(usable(0)) if usable else os.cpu_count() or 1


def blocks(count: int, size: int) -> Iterator[slice]:
    """Cut `count` rows into slices of at most `size`."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def unit(rows: NDArray[np.floating]) -> Embeddings:
    """Scale rows to length 1, as float32; a row of zeros stays."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return cast(Embeddings, (rows / np.maximum(norms, 1e-30)).astype(np.float32))
