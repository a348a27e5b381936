"""Kernels do what a few lines of numpy do, and nothing of them is compiled after their import."""

import importlib
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

import searchlab
from searchlab.models.protocol import unit_rows
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.ivf._kernels.clusters import add_rows, measure
from searchlab.search.indexes.ivf._kernels.codes import CHUNK, _dot_plain, dot, encode, round_query
from searchlab.search.indexes.ivf._kernels.gather import gather
from searchlab.search.indexes.ivf._kernels.heaps import offer
from searchlab.search.indexes.ivf._kernels.lists import sort_into_buckets
from searchlab.search.indexes.ivf._kernels.scan import scan
from searchlab.search.indexes.ivf._kernels.sweep import sweep
from searchlab.search.indexes.ivf.heads import learn_axes, make_heads
from searchlab.search.words.matches import NO_GAINS
from tests.support.examples import examples

NO_WORDS = np.zeros(0, dtype=np.uint64)


@numba.njit
def dots(codes, query):
    return np.array([dot(codes, row, query) for row in range(codes.shape[0])])


@numba.njit
def plain_dots(codes, query):
    return np.array([_dot_plain(codes, row, query) for row in range(codes.shape[0])])


@numba.njit
def offered(scores, rows, size):
    kept_scores = np.empty(size, dtype=np.float32)
    kept_rows = np.empty(size, dtype=np.int64)
    count = 0
    for number in range(scores.size):
        count = offer(kept_scores, kept_rows, count, scores[number], rows[number])
    return kept_rows[:count]


@numba.njit
def rounded_query(query, length):
    return round_query(query, length)


@numba.njit
def bucketed(scores):
    return sort_into_buckets(scores)


def coded(vectors):
    """Encode rows in their own order."""
    n, dim = vectors.shape
    codes = np.empty((n, -(-dim // CHUNK) * CHUNK), dtype=np.uint8)
    scales, errors = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    encode(vectors, np.arange(n), codes, scales, errors)
    return codes, scales, errors


def decoded(codes, scales, dim):
    return (codes[:, :dim].astype(np.float64) - 128) * scales[:, np.newaxis].astype(np.float64)


PACKAGE = Path(searchlab.__file__).parent
KERNELS = sorted(
    f"searchlab.{'.'.join(path.relative_to(PACKAGE).with_suffix('').parts)}"
    for path in PACKAGE.rglob("_kernels/[!_]*.py")
)


def rows_of(n, dim, seed=0):
    return unit_rows(np.random.default_rng(seed).standard_normal((n, dim)))


def test_no_kernel_can_be_compiled_after_its_import():
    kernels = []
    for module in map(importlib.import_module, KERNELS):
        things = [one for one in vars(module).values() if isinstance(one, Dispatcher)]
        # What has a cache of its own is called from Python; the rest are parts of it.
        kernels += [one for one in things if one.stats.cache_path is not None]
    assert {scan, gather, sweep, encode} <= set(kernels)
    assert {one._can_compile for one in kernels} == {False}
    assert {len(one.nopython_signatures) for one in kernels} == {1}


# -- codes ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("length", [64, 128, 192, 512])
def test_the_product_is_that_of_integers(length):
    rng = np.random.default_rng(length)
    codes = rng.integers(0, 256, (9, length), dtype=np.uint8)
    codes[0], codes[1] = 255, 0
    for extreme in (127, -127):
        query = rng.integers(-127, 128, length).astype(np.int8)
        query[: length // 2] = extreme
        exact = codes.astype(np.int64) @ query.astype(np.int64)
        assert dots(codes, query).tolist() == exact.tolist()
        assert plain_dots(codes, query.astype(np.int16)).tolist() == exact.tolist()


@pytest.mark.parametrize("dim", [1, 3, 63, 64, 65, 200])
def test_a_row_is_never_farther_from_its_code_than_is_said(dim):
    vectors = rows_of(50, dim)
    codes, scales, errors = coded(vectors)
    away = np.linalg.norm(decoded(codes, scales, dim) - vectors, axis=1)
    assert (away <= errors).all()
    assert (errors <= 0.01 + 1e-9).all()
    assert (codes[:, dim:] == 128).all()


@pytest.mark.parametrize("size", [0.0, 1e-42, 1e-33, 1e-20, 1.0, 1e30])
def test_rows_of_any_size_are_coded_within_their_error(size):
    vectors = np.full((2, 5), size, dtype=np.float32)
    vectors[1, 2] = -size / 3
    codes, scales, errors = coded(vectors)
    away = np.linalg.norm(decoded(codes, scales, 5) - vectors.astype(np.float64), axis=1)
    assert (away <= errors).all()


@pytest.mark.slow
@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=80))
@settings(max_examples=examples(60), deadline=None)
def test_a_query_is_rounded_to_the_nearest_step(values):
    query = np.array(values, dtype=np.float32)
    codes, step, zero = rounded_query(query, 128)
    assert np.abs(codes[: len(query)] * np.float64(step) - query).max() <= step * 0.51 + 2e-28
    assert not codes[len(query) :].any()
    assert zero == 128 * codes.astype(np.int64).sum()


# -- heaps and buckets ------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 12), st.randoms())
@settings(max_examples=examples(150), deadline=None)
def test_a_heap_keeps_the_best_and_of_equals_the_lowest_rows(scores, size, random):
    rows = list(range(len(scores)))
    random.shuffle(rows)
    kept_rows = offered(np.array(scores, dtype=np.float32), np.array(rows, dtype=np.int64), size)
    best = sorted(zip(scores, rows, strict=True), key=lambda pair: (-pair[0], pair[1]))[:size]
    assert sorted(kept_rows.tolist()) == sorted(row for _, row in best)


@pytest.mark.slow
def test_buckets_order_lists_as_finely_as_they_are_wide():
    scores = np.random.default_rng(2).standard_normal(3_000).astype(np.float32)
    order, bucket, best, width = bucketed(scores)
    assert sorted(order.tolist()) == list(range(3_000))
    assert best == scores.max()
    assert (np.diff(scores[order]) <= width * 1.001).all()
    assert (np.diff(bucket[order]) >= 0).all()
    # No list scores above what its bucket stands for, or fewer misses would be expected than are.
    assert (scores <= best - bucket * width + 1e-6).all()


def test_lists_that_score_alike_are_all_in_the_order():
    order, *_ = bucketed(np.full(7, 0.25, dtype=np.float32))
    assert sorted(order.tolist()) == list(range(7))


# -- clusters ---------------------------------------------------------------------------------


def test_sums_and_radii_of_clusters():
    vectors = rows_of(300, 20)
    members = np.random.default_rng(1).integers(0, 7, 300)
    sums = np.zeros((7, 20))
    add_rows(vectors, members, sums)
    exact = np.array([vectors[members == one].sum(axis=0, dtype=np.float64) for one in range(7)])
    assert sums == pytest.approx(exact)
    centres = (sums / np.bincount(members)[:, np.newaxis]).astype(np.float32)
    squares, radii = np.zeros(7), np.zeros(7)
    measure(*coded(vectors), members, centres, squares, radii)
    away = np.linalg.norm(vectors - centres[members], axis=1)
    assert (away <= radii[members]).all()
    assert (radii < 1.05 * np.array([away[members == one].max() for one in range(7)])).all()
    assert squares == pytest.approx(np.bincount(members, away**2), rel=0.01)


# -- search -----------------------------------------------------------------------------------


def laid_out(vectors, n_lists, seed=0, members=None):
    """Cut rows into lists, at random if not told: kernels must not care how good the lists are."""
    rng = np.random.default_rng(seed)
    n, dim = vectors.shape
    rows = rng.permutation(n).astype(np.int32)
    if members is None:
        members = np.sort(rng.integers(0, n_lists, n))
    else:
        rows = rows[np.argsort(members[rows], kind="stable")]
        members = members[rows]
    codes, scales, errors = coded(np.ascontiguousarray(vectors[rows]))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=n_lists))])
    sums = np.zeros((n_lists, dim))
    add_rows(np.ascontiguousarray(vectors[rows]), members, sums)
    sizes = np.maximum(np.bincount(members, minlength=n_lists), 1)[:, np.newaxis]
    centres = (sums / sizes).astype(np.float32)
    some = slice(n // 3 + 1)  # or the tails of few rows would be nothing
    axes = learn_axes(vectors[rows[some]], members[some], centres, seed=seed)
    heads = make_heads(vectors[rows], members, np.arange(n), centres, axes)
    return codes, scales, rows, errors, offsets.astype(np.int64), centres, heads


def long_tails(heads):
    """Say of all rows that their tails are 2 ** 31 long."""
    codes = heads.codes.copy()
    codes[:, -2:] = 0x00, 0x4F
    return heads._replace(codes=codes)


def bands(cosine, stretch):
    """Return what a scan takes for queries of a kind; it may read all rows, and allows for all."""
    return np.array(2 * [[cosine, stretch, 1.0, 1.0]])


def by_code(vectors_codes, scales, rows, query, mask, keep, lifts):
    """Score every allowed row by code and gain as kernels do, and keep the best, ties by row."""
    whole, step, _ = rounded_query(query, vectors_codes.shape[1])
    products = (vectors_codes.astype(np.int64) - 128) @ whole.astype(np.int64)
    scores = products.astype(np.float32) * step * scales + lifts
    order = np.lexsort((rows, -scores))
    return [int(rows[place]) for place in order if mask[rows[place]]][:keep]


@pytest.mark.parametrize("share", [1.0, 0.5, 0.05, 0.0])
@pytest.mark.parametrize("n_lists", [1, 9, 400])
@pytest.mark.parametrize("gained", [0.0, 0.1, 1.0])
def test_gathering_and_scanning_to_the_end_find_the_best_codes(share, n_lists, gained):
    vectors = rows_of(600, 70)
    codes, scales, rows, _, offsets, centres, heads = laid_out(vectors, n_lists)
    rng = np.random.default_rng(4)
    mask = rng.random(600) < share
    bits = Bitmap.of_mask(mask)
    positions = np.argsort(rows).astype(np.int32)
    centre_codes, centre_scales, _ = coded(centres)
    spreads = np.ones(n_lists, dtype=np.float32)
    lists = (codes, scales, rows)
    gains = np.linspace(0, 0.5, 40, dtype=np.float32)
    steps = np.where(mask & (rng.random(600) < gained), rng.integers(1, 40, 600), 0)
    with_gain = np.flatnonzero(steps)
    for query in rows_of(5, 70, seed=7):
        lifts = gains[steps[rows]]
        best = sorted(by_code(codes, scales, rows, query, mask, 25, lifts))
        # A large error: everything that is kept comes back.
        gathered, holds_all = gather(
            *lists, positions, query, bits.words, bits.count, 20, 25, 9.0,
            with_gain, steps[with_gain], gains,
        )  # fmt: skip
        assert sorted(gathered.tolist()) == best
        assert holds_all == (len(best) == bits.count)
        # No miss is allowed for, so that every list is read that is not out of reach; and no head
        # says that a row is, if its tail may be so long.
        for tails, n_sure in ((long_tails(heads), 25), (heads, 20)):
            scanned, scored, hold_best = scan(
                *lists, offsets, centre_codes, centre_scales, spreads, *tails, query, bits.words,
                bits.count, 20, 25, 9.0, 0.0, 1.0, bands(1.0, 1.0), bands(0.0, 1.0),
                positions, with_gain, steps[with_gain], gains,
            )  # fmt: skip
            sure = by_code(codes, scales, rows, query, mask, n_sure, lifts)
            assert set(sure) <= set(scanned.tolist())
            assert len(set(scanned.tolist())) == len(scanned) <= len(best)
            assert mask[scanned].all()
            assert scored <= bits.count
            assert hold_best == (len(scanned) == scored)


def test_a_scan_scores_no_row_twice_and_leaves_out_small_gains():
    vectors = rows_of(8_000, 33)
    codes, scales, rows, _, offsets, centres, heads = laid_out(vectors, 50)
    positions = np.argsort(rows).astype(np.int32)
    centre_codes, centre_scales, _ = coded(centres)
    # Cosines are at most 1 apart, so what gains 2 is ahead of all that gains 1, and that of others.
    gains = np.array([0, 3, 6], dtype=np.float32)
    with_gain = np.arange(0, 8_000, 2)
    for n_best in (100, 1_000, 4_000):
        steps = np.where(np.arange(4_000) < n_best, 2, 1)
        scanned, scored, _ = scan(
            codes, scales, rows, offsets, centre_codes, centre_scales,
            np.full(50, 1e-3, np.float32), *heads, vectors[7], NO_WORDS, 8_000, 60, 64, 0.01, 1.0,
            0.02, bands(1.0, 1.0), bands(0.0, 1.0), positions, with_gain, steps, gains,
        )  # fmt: skip
        assert len(set(scanned.tolist())) == len(scanned) >= 60
        assert set(scanned.tolist()) <= set(with_gain[steps == 2].tolist())
        assert scored <= max(n_best, 512)


@pytest.mark.parametrize("keep", [64, 300, 301])
def test_rows_too_many_of_which_score_alike_are_not_said_to_hold_the_best(keep):
    """Three hundred copies of one row are equally good: what is kept may be too little."""
    vectors = rows_of(1_000, 64)
    vectors[:300] = vectors[0]
    codes, scales, rows, _, offsets, centres, heads = laid_out(vectors, 10)
    positions = np.argsort(rows).astype(np.int32)
    none = (NO_GAINS.rows, NO_GAINS.steps, np.zeros(1, dtype=np.float32))
    gathered, hold_best = gather(
        codes, scales, rows, positions, vectors[0], Bitmap.full(1_000).words, 1_000, 20, keep,
        0.001, *none,
    )  # fmt: skip
    scanned, _, scan_holds = scan(
        codes, scales, rows, offsets, *coded(centres)[:2], np.full(10, 1e-3, np.float32),
        *long_tails(heads), vectors[0], NO_WORDS, 1_000, 20, keep, 0.001, 0.0, 1.0,
        bands(1.0, 1.0), bands(0.0, 1.0), positions, *none,
    )  # fmt: skip
    assert hold_best == scan_holds == (keep > 300)
    assert len(gathered) == len(scanned) == min(keep, 300)


@given(
    n=st.integers(1, 120),
    dim=st.integers(1, 130),
    n_lists=st.integers(1, 30),
    scatter=st.sampled_from([None, 0.02, 0.3]),
    k=st.integers(1, 130),
    share=st.sampled_from([0.0, 0.2, 1.0]),
    least=st.sampled_from([-np.inf, 0.1, 0.7, 2.0]),
    seed=st.integers(0, 9),
)
@settings(max_examples=examples(80), deadline=None)
def test_a_sweep_misses_nothing_that_belongs_to_the_answer(
    n, dim, n_lists, scatter, k, share, least, seed
):
    vectors = np.repeat(rows_of(-(-n // 2), dim, seed), 2, axis=0)[:n]
    query = rows_of(1, dim, seed=seed + 50)[0]
    members = None
    if scatter is not None:
        # Of lists as good as these the heads say much; one lies by the query, so that many rows
        # are nearly as near as the last one wanted.
        members = np.random.default_rng(seed).integers(0, n_lists, n)
        middles = rows_of(n_lists, dim, seed + 20)
        middles[0] = query
        vectors = unit_rows(middles[members] + np.float32(scatter) * vectors)
    codes, scales, rows, errors, offsets, centres, heads = laid_out(vectors, n_lists, seed, members)
    mask = np.random.default_rng(seed).random(n) < share
    bits = Bitmap.of_mask(mask)
    products = centres @ query
    swept_rows, _ = sweep(
        codes, scales, rows, errors, np.argsort(rows).astype(np.int32), offsets, *heads,
        np.argsort(-products), products, np.ones(n_lists, np.float32),
        query, bits.words, bits.count, k, least, 1.1, 1e-6,
    )  # fmt: skip
    cosines = vectors.astype(np.float64) @ query.astype(np.float64)
    allowed = [row for row in np.flatnonzero(mask) if cosines[row] >= least]
    best = sorted(allowed, key=lambda row: (-cosines[row], row))[:k]
    if least <= 1:
        assert set(best) <= set(swept_rows.tolist())
    assert set(swept_rows.tolist()) <= set(np.flatnonzero(mask).tolist())
    assert len(set(swept_rows.tolist())) == len(swept_rows)


@pytest.mark.parametrize("scatter", [0.02, 0.1, 1.0])
def test_a_sweep_returns_rows_that_just_reach_what_they_must(scatter):
    """Queries are rows, so that heads and tails lie along theirs, and as far as they say."""
    n, dim, n_lists = 600, 130, 12
    members = np.arange(n) % n_lists
    vectors = unit_rows(rows_of(n_lists, dim, 1)[members] + scatter * rows_of(n, dim, 2))
    codes, scales, rows, errors, offsets, centres, heads = laid_out(vectors, n_lists, 3, members)
    positions, ceilings = np.argsort(rows).astype(np.int32), np.full(n_lists, 2, np.float32)
    for query in vectors[::4]:
        cosines = vectors.astype(np.float64) @ query.astype(np.float64)
        products = centres @ query
        for rank in (0, 5, 20, 100):
            least = np.sort(cosines)[-1 - rank]
            swept_rows, _ = sweep(
                codes, scales, rows, errors, positions, offsets, *heads,
                np.argsort(-products), products, ceilings, query, NO_WORDS, n, n, least, 1.1, 1e-6,
            )  # fmt: skip
            assert set(np.flatnonzero(cosines >= least).tolist()) <= set(swept_rows.tolist())


def test_what_rounding_may_have_put_behind_is_returned_and_no_more():
    vectors = rows_of(4_000, 64)
    codes, scales, errors = coded(vectors)
    rows = np.arange(4_000, dtype=np.int32)
    words = Bitmap.full(4_000).words
    for query in rows_of(20, 64, seed=3):
        gathered, _ = gather(
            codes, scales, rows, rows, query, words, 4_000, 20, 200, float(errors.mean()),
            NO_GAINS.rows, NO_GAINS.steps, np.zeros(1, dtype=np.float32),
        )  # fmt: skip
        best = np.argsort(-(vectors @ query))[:20]
        assert set(best.tolist()) <= set(gathered.tolist())
        assert len(gathered) < 40
