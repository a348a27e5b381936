"""When a scan of the lists stops, on lists made so that one row or one list decides it."""

import math

import numba
import numpy as np
import pytest

from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.ivf._kernels.codes import encode
from searchlab.search.indexes.ivf._kernels.lists import BUCKETS, is_even, mark_places
from searchlab.search.indexes.ivf._kernels.scan import _count_expected, scan
from searchlab.search.indexes.ivf.heads import learn_axes, make_heads
from searchlab.search.indexes.ivf.lists import build_lists
from searchlab.search.indexes.ivf.search import sweep_lists
from searchlab.search.words.matches import NO_GAINS

DIM = 64  # as long as a code, which the kernels read in chunks of 64 bytes
QUERY = np.eye(DIM, dtype=np.float32)[0]


def rows_at(cosine, n, *, noise=0.0, seed=0):
    """Draw rows whose cosine with the query is given, in every other respect at random."""
    rng = np.random.default_rng(seed)
    rest = rng.standard_normal((n, DIM)) * (np.arange(DIM) > 0)
    rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    cosines = np.clip(cosine + noise * rng.standard_normal((n, 1)), -1, 1)
    return (cosines * QUERY + np.sqrt(1 - cosines**2) * rest).astype(np.float32)


def coded(rows):
    codes, (scales, errors) = np.empty(rows.shape, np.uint8), np.empty((2, len(rows)), np.float32)
    encode(rows, np.arange(len(rows)), codes, scales, errors)
    return codes, scales


def scanned(lists, mask, *, n_wanted, missed, spread, share=1.0, others=None):
    """Scan for the query; the rows, None where far more are left, and how many were scored."""
    rows = np.concatenate(lists)
    codes, scales = coded(rows)
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in lists])]).astype(np.int64)
    means = np.array([rows.mean(axis=0) for rows in lists], dtype=np.float32)
    centres = coded(means)
    members = np.repeat(np.arange(len(lists)), np.diff(offsets))
    axes = learn_axes(rows, members, means, seed=0)
    heads = make_heads(rows, members, np.arange(len(rows)), means, axes)
    places = np.arange(len(mask), dtype=np.int32)
    bits = Bitmap.of_mask(mask)
    shares = (share, share if others is None else others)
    bands = [np.array([[cosine, 1.0, each, 1.0] for each in shares]) for cosine in (1.0, 0.0)]
    found, n_scored, hold_best = scan(
        codes, scales, places, offsets, *centres, np.full(len(lists), spread, np.float32), *heads,
        QUERY, bits.words, bits.count, n_wanted, n_wanted + 4, 0.0, missed, 1.0,
        *bands,
        places, NO_GAINS.rows, NO_GAINS.steps, np.zeros(1, np.float32),
    )  # fmt: skip
    return sorted(found.tolist()) if hold_best else None, n_scored


def test_the_only_row_of_the_last_list_is_all_that_is_left_of_the_allowed_ones():
    """Before it more rows were passed than a scan looks at between two decisions."""
    near = np.concatenate([rows_at(0.9, 2_099), rows_at(0.3, 1, seed=1)])
    mask = np.arange(2_101) >= 2_099
    lists = [near, rows_at(0.5, 1, seed=2)]
    assert scanned(lists, mask, n_wanted=1, missed=0.7, spread=1e-3) == ([2_100], 2)


@pytest.mark.parametrize("missed", [0.1, 0.3])
def test_one_list_full_of_allowed_rows_does_not_promise_more_like_it(missed):
    lists = [rows_at(0.8, 100, noise=0.02)]
    lists += [rows_at(0.6, 100, noise=0.02, seed=seed) for seed in range(1, 31)]
    mask = np.arange(3_100) < 100
    mask[100 + 150 * np.arange(20)] = True
    rows, n_scored = scanned(lists, mask, n_wanted=20, missed=missed, spread=4e-3)
    assert n_scored == 100
    assert set(rows) <= set(range(100))


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_once_enough_is_found_no_more_than_a_share_of_the_rows_is_read(share):
    """By what is to be expected of rows that scatter so far more would be."""
    lists = [rows_at(0.6 - 0.001 * each, 100, noise=0.1, seed=each) for each in range(100)]
    mask = np.arange(10_000) % 2 == 0
    rows, n_scored = scanned(lists, mask, n_wanted=20, missed=0.0, spread=0.1, share=share)
    assert len(rows) >= 20
    # A scan decides after 64 rows, or a sixteenth of those before, and after whole lists of 50.
    wanted = 5_000 * share
    assert wanted <= n_scored <= min(wanted + max(64, wanted / 16) + 50, 5_000)


@pytest.mark.parametrize("n_wanted", [5, 400])
def test_what_is_near_and_forbidden_leaves_too_many_that_are_as_good_to_stop_after_a_share(
    n_wanted,
):
    """All rows are alike here, and only the farther half of each list may be found."""
    lists = [rows_at(0.5, 400, noise=0.1, seed=each) for each in range(100)]
    products = np.concatenate(lists) @ QUERY
    forbidden = products < np.median(products)
    given = {"n_wanted": n_wanted, "missed": 0.01 * n_wanted, "spread": 0.1, "share": 0.3}
    found, n_scored = scanned(lists, forbidden, **given)
    assert found is None
    assert n_scored < 0.5 * forbidden.sum()
    anywhere = np.random.default_rng(0).random(len(products)) < 0.5
    found, _ = scanned(lists, anywhere, **given)
    assert len(found) >= n_wanted


def test_a_scan_reads_more_than_its_share_where_too_little_was_found():
    lists = [rows_at(0.8 - 0.005 * each, 100, seed=each) for each in range(100)]
    mask = np.arange(10_000) >= 9_990
    rows, n_scored = scanned(lists, mask, n_wanted=10, missed=1.0, spread=1e-3, share=0.0)
    assert (rows, n_scored) == (list(range(9_990, 10_000)), 10)


@numba.njit
def even(rows, offsets, order, words, positions, n_allowed):
    marked = mark_places(words, positions, n_allowed)
    return is_even(rows, offsets, order, words, marked, n_allowed)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.6])
def test_a_filter_is_even_if_it_lets_as_many_of_the_nearest_lists_through_as_of_all(share):
    """A scan then goes by what was measured with rows drawn at random."""
    n, n_lists = 100_000, 400
    rng = np.random.default_rng(4)
    rows = rng.permutation(n).astype(np.int32)
    positions = np.argsort(rows).astype(np.int32)
    offsets = np.arange(0, n + 1, n // n_lists)
    order = rng.permutation(n_lists)
    near = order[: n_lists // 8]  # more than are looked at

    def told(mask):
        bits = Bitmap.of_mask(mask)
        return even(rows, offsets, order, bits.words, positions, bits.count)

    def lists(some):
        mask = np.zeros(n, dtype=np.bool_)
        mask[rows.reshape(n_lists, -1)[some].ravel()] = True
        return mask

    assert told(rng.random(n) < share)
    assert not told(lists(near) & (rng.random(n) < share))
    assert not told(~lists(near) & (rng.random(n) < share))
    fewer = np.where(lists(near), 0.4 * share, share)
    assert not told(rng.random(n) < fewer)
    if share >= 0.1:  # of less nothing would be missed among so few
        assert not told(~lists(order[:3]) & (rng.random(n) < share))


def test_so_few_may_be_found_that_a_filter_is_taken_to_be_uneven():
    n = 100_000
    rows, offsets = np.arange(n, dtype=np.int32), np.arange(0, n + 1, 250)
    for step, tells in ((200, True), (1_000, False)):
        bits = Bitmap.of_mask(rows % step == 0)
        assert even(rows, offsets, np.arange(400), bits.words, rows, bits.count) == tells


@pytest.mark.parametrize(("is_far", "share"), [(False, 0.2), (True, 0.6)])
def test_behind_an_even_filter_another_share_is_read_than_behind_others(is_far, share):
    lists = [rows_at(0.8 - 0.001 * each, 100, noise=0.02, seed=each) for each in range(100)]
    at_random = np.random.default_rng(5).random(10_000) < 0.3
    mask = np.arange(10_000) >= 7_000 if is_far else at_random
    _, n_scored = scanned(lists, mask, n_wanted=20, missed=0.0, spread=0.1, share=0.2, others=0.6)
    wanted = share * mask.sum()
    assert wanted <= n_scored <= 1.1 * wanted + 164


@numba.njit
def expected(masses, variances, kth, ratio, most):
    return _count_expected(masses, variances, 0, 0.5, 0.25, kth, ratio, most)


@pytest.mark.slow
@pytest.mark.parametrize("variance", [0.0, 1e-4, 0.04])
def test_rows_to_be_expected_are_those_of_normal_tails(variance):
    """Lists without any variance count as if their rows were a millionth apart."""
    masses, variances = np.zeros((2, BUCKETS))
    masses[:2] = 100, 40
    variances[:2] = masses[:2] * variance
    deviation = max(math.sqrt(0.5 * variance), 1e-6)
    kth = 0.5 + deviation
    tails = [
        mass * 0.5 * math.erfc((kth - score) / deviation * math.sqrt(0.5))
        for mass, score in ((100, 0.5), (40, 0.25))
    ]
    assert expected(masses, variances, kth, 0.5, 1e9) == pytest.approx(sum(tails), rel=1e-6)
    assert expected(masses, variances, kth, 0.5, 1.0) == pytest.approx(tails[0], rel=1e-6)


def test_a_sweep_passes_over_lists_whose_rows_are_all_too_far():
    near, far = rows_at(0.9, 100, noise=0.01), rows_at(-0.5, 900, noise=0.01, seed=1)
    lists = build_lists(
        np.concatenate([near, far]), 8, held_out=np.zeros(0, np.int64), seed=0, threads=1
    )
    rows, n_scored = sweep_lists(lists, QUERY, None, 5, 0.8)
    assert set(rows.tolist()) >= set(np.argsort(-near[:, 0])[:5].tolist())
    assert n_scored < 500
