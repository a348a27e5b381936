"""What was measured of a library, and the end of a scan that follows from it."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.search.indexes.ivf import early_stop
from searchlab.search.indexes.ivf.early_stop import make_masks
from searchlab.search.indexes.ivf.stopping import (
    DEPTH,
    RECALLS,
    STRETCHES,
    THINNED,
    Stopping,
    find_shares,
)
from tests.support.examples import examples

DIM = 48
MANY = 10**9
"""So many rows that any share of them takes its time."""
N_SHARES = len(RECALLS)
WHOLE = np.array([0.04, 0.1, 0.2, 0.3, 0.4, 0.5])
THIN = np.array([0.1, 0.2, 0.4, 0.5, 0.7, 0.8])


def stopping_of(reached=1.0, *, whole=WHOLE, thinned=THIN):
    """Make one that is alike for photos and for texts, but how far tails lie along."""
    return Stopping(
        0.1,
        0.7,
        0.3,
        np.broadcast_to(np.float32(reached), (2, 3, len(STRETCHES))).copy(),
        np.array([[whole, thinned, thinned]] * 2, dtype=np.float32),
        np.array([0.2, 0.4], dtype=np.float32),
        64,
    )


def bands_of(stopping, recall, *, filtered=False, even=False, n_allowed=MANY, depth=DEPTH):
    """Return those for photos and for texts, behind a filter that is even or is not."""
    both = stopping.bands(recall, filtered=filtered, n_allowed=n_allowed, depth=depth)
    return [each[0 if even else 1] for each in both]


def share_of(stopping, recall, depth=DEPTH, **given):
    return bands_of(stopping, recall, depth=depth, **given)[0][2]


def stretch_of(stopping, recall, **given):
    return bands_of(stopping, recall, **given)[0][1]


# -- stretches --------------------------------------------------------------------------------


def test_a_stretch_grows_with_the_recall_asked_for():
    """A quarter of what may be missed is left to it."""
    easy, hard = [0.99] + 12 * [1], [0.8, 0.9, 0.95, 0.98, *(9 * [0.995])]
    reached = np.array([[easy, easy, hard], [easy, easy, easy]], np.float32)
    stopping = replace(stopping_of(), reached=reached)
    (near, stretch, _, _), (far, other, _, _) = bands_of(stopping, 0.86, filtered=True)
    assert (near, far, other) == (0.7, 0.3, STRETCHES[0])
    assert STRETCHES[2] < stretch < STRETCHES[3]
    assert stretch_of(stopping, 0.86) == STRETCHES[0]
    assert stretch_of(stopping, 0.99, filtered=True) > STRETCHES[-1]
    assert stretch_of(stopping, 0.99, filtered=True, even=True) < STRETCHES[1]


def test_a_stretch_lies_between_those_whose_recall_was_measured():
    stopping = stopping_of(np.linspace(0.87, 0.99, len(STRETCHES)))
    stopping = replace(stopping, reached=stopping.reached - np.float32([[0], [0.002], [0.005]]))
    assert stretch_of(stopping, 0.94) == pytest.approx(4.8, rel=1e-3)
    assert stretch_of(stopping, 0.94, filtered=True) == pytest.approx(5.6, rel=1e-3)
    for depth, stretch in ((1, 4.8), (DEPTH * THINNED**0.5, 4.96), (1e6, 5.12)):
        given = {"even": True, "depth": depth}
        assert stretch_of(stopping, 0.94, **given) == pytest.approx(stretch, rel=1e-3)
        assert stretch_of(stopping, 0.94, filtered=True, **given) == pytest.approx(stretch, 1e-3)
    assert stretch_of(stopping, 0.944, filtered=True) > max(STRETCHES)


def test_the_longest_stretch_that_was_tried_is_taken_where_it_is_needed():
    stopping = stopping_of([*(12 * [0.9]), 0.98])
    assert STRETCHES[-2] < stretch_of(stopping, 0.8, filtered=True) < STRETCHES[-1]


def test_where_all_are_soon_read_everything_is_left_to_the_stretch():
    stopping = stopping_of(np.linspace(0.87, 0.99, len(STRETCHES)))
    for band in bands_of(stopping, 0.985, n_allowed=10_000):
        assert band[1:3].tolist() == pytest.approx([4.8, 1.0], rel=1e-3)


# -- shares -----------------------------------------------------------------------------------


def test_shares_are_those_measured_at_their_recalls_and_depths():
    stopping = stopping_of()
    for recall, whole, thin in zip(RECALLS[:-1], WHOLE, THIN, strict=False):
        assert share_of(stopping, recall) == pytest.approx(whole)
        assert share_of(stopping, recall, DEPTH * THINNED) == pytest.approx(thin)
    # Fewer neighbours than were looked for, or a lower recall than was, make it no less.
    assert share_of(stopping, 0.98, 1) == share_of(stopping, 0.98)
    assert share_of(stopping, 0.5) == share_of(stopping, RECALLS[0])


def test_behind_an_even_filter_as_much_is_read_as_of_all_rows_at_that_depth():
    """And behind another one as much as was measured with the hardest."""
    stopping = stopping_of()
    stopping = replace(stopping, shares=stopping.shares * np.float32([[1], [1], [1.2]]))
    depth = DEPTH * THINNED
    assert share_of(stopping, 0.98, depth) == pytest.approx(THIN[2])
    assert share_of(stopping, 0.98, depth, filtered=True, even=True) == pytest.approx(THIN[2])
    assert share_of(stopping, 0.98, depth, filtered=True) == pytest.approx(1.2 * THIN[2])


def test_between_recalls_and_depths_shares_are_interpolated():
    stopping, root = stopping_of(), THINNED**0.5
    assert share_of(stopping, 0.985) == pytest.approx((WHOLE[2] + WHOLE[3]) / 2)
    assert share_of(stopping, 0.98, DEPTH * root) == pytest.approx((WHOLE[2] + THIN[2]) / 2)
    further = THIN[2] + (THIN[2] - WHOLE[2]) / 2
    assert share_of(stopping, 0.98, DEPTH * THINNED * root) == pytest.approx(further)
    assert share_of(stopping, 0.98, 1e30) == 1.0


def test_shares_of_each_kind_of_query_are_its_own_whether_there_is_a_filter_or_not():
    stopping = stopping_of()
    photos, texts = stopping.shares
    stopping = replace(stopping, shares=np.stack([photos, 1.5 * texts]))
    for filtered in (False, True):
        near, far = bands_of(stopping, 0.9, filtered=filtered)
        assert near.tolist() == pytest.approx([0.7, STRETCHES[0], 0.04, 0.2])
        assert far.tolist() == pytest.approx([0.3, STRETCHES[0], 0.06, 0.4])
        assert near.dtype == far.dtype == np.float64


def test_what_neighbours_were_not_measured_to_need_may_still_be_read_before_many_are_missed():
    """The fewer a search may miss, the larger a share."""
    stopping = stopping_of(whole=np.zeros(N_SHARES), thinned=np.zeros(N_SHARES))
    shares = [share_of(stopping, recall) for recall in (0.5, *RECALLS)]
    assert 0 < shares[0] < 0.01
    assert shares == sorted(set(shares))


@given(
    whole=st.lists(st.floats(0, 1), min_size=N_SHARES, max_size=N_SHARES),
    thinned=st.lists(st.floats(0, 1), min_size=N_SHARES, max_size=N_SHARES),
    recalls=st.lists(st.floats(0.01, 1), min_size=2, max_size=2),
    depths=st.lists(st.floats(0.5, 1e7), min_size=2, max_size=2),
)
@settings(max_examples=examples(100), deadline=None)
def test_more_recall_or_depth_never_reads_less(whole, thinned, recalls, depths):
    stopping = stopping_of(whole=sorted(whole), thinned=sorted(thinned))
    few, many = (share_of(stopping, recalls[0], depth) for depth in sorted(depths))
    assert 0 < few <= many <= 1
    # Farther than was measured the curves of two recalls may cross.
    depth = min(*depths, DEPTH * THINNED)
    low, high = (share_of(stopping, recall, depth) for recall in sorted(recalls))
    assert low <= high + 1e-6


def test_above_the_last_recall_and_where_nothing_was_measured_all_rows_may_be_read():
    assert share_of(stopping_of(), RECALLS[-2]) < 1
    for recall in (0.9991, 1.0):
        assert share_of(stopping_of(), recall) == 1.0
    assert share_of(stopping_of(reached=0.0), 0.5) == 1.0


def test_a_share_is_that_within_which_most_neighbours_are():
    """A quarter of what may be missed is left to the stretch."""
    places = np.random.default_rng(0).random(4_000) ** 2
    shares = find_shares(places)
    assert shares.dtype == np.float32
    for recall, share in zip(RECALLS, shares, strict=True):
        within = np.mean(places <= share + 1e-7)
        assert 1 - 0.75 * (1 - recall) <= within <= 1 - 0.75 * (1 - recall) + 1e-3


# -- as numbers -------------------------------------------------------------------------------


def test_all_that_was_measured_is_packed_and_unpacked():
    rng = np.random.default_rng(0)
    stopping = replace(
        stopping_of(),
        reached=rng.random((2, 3, len(STRETCHES)), dtype=np.float32),
        shares=rng.random((2, 3, N_SHARES), dtype=np.float32),
    )
    unpacked = Stopping.unpack(stopping.pack(), DIM)
    for field in fields(Stopping):
        one, other = (np.asarray(getattr(each, field.name)) for each in (stopping, unpacked))
        assert one.shape == other.shape
        assert other == pytest.approx(one, rel=1e-6)
    assert unpacked.is_measured


def test_numbers_of_another_length_are_refused():
    numbers = stopping_of().pack()
    for wrong in (numbers[:-1], numbers[:1], np.append(numbers, numbers[:1])):
        with pytest.raises(InputError, match=f"holds {len(wrong)} numbers, not {len(numbers)}"):
            Stopping.unpack(wrong, DIM)


def test_what_was_not_measured_is_taken_to_scatter_twice_as_far_as_chance_would():
    empty = Stopping.unpack(np.zeros(0, dtype=np.float32), DIM)
    assert empty.usual == 2 / DIM
    assert not empty.is_measured
    near, far = bands_of(empty, 0.9)
    # Every row may be read, and tails may lie as they like.
    assert near[1:].tolist() == far[1:].tolist() == [8.0, 1.0, 1.0]
    # And a scan ends where no more may be missed than was asked for.
    assert empty.missed(0.9) == pytest.approx(0.1)
    assert empty.missed(1) == 0


def test_what_was_measured_leaves_one_neighbour_in_a_hundred_whatever_was_asked_for():
    assert {stopping_of().missed(recall) for recall in (0.5, 0.9, 0.99)} == {0.01}


# -- what is measured with --------------------------------------------------------------------


def test_what_may_be_found_while_measuring_is_all_a_tenth_at_random_and_a_tenth_of_the_lists():
    rng = np.random.default_rng(1)
    rows = rng.permutation(20_000)
    lists = SimpleNamespace(rows=rows, sizes=np.full(1_000, 20))
    held_out = rng.permutation(20_000)[:500]
    whole, thinned, aligned = make_masks(lists, held_out, np.random.default_rng(2))
    for mask in (whole, thinned, aligned):
        assert not mask[held_out].any()
    assert whole.sum() == 19_500
    for mask in (thinned, aligned):
        assert mask.sum() == pytest.approx(19_500 / THINNED, rel=0.3)
    of_list = np.isin(rows, held_out).reshape(1_000, 20) | aligned[rows].reshape(1_000, 20)
    assert (aligned[rows].reshape(1_000, 20).any(axis=1) == of_list.all(axis=1)).all()


def test_what_should_be_found_while_measuring_is_the_nearest_rows_across_all_blocks(monkeypatch):
    monkeypatch.setattr(early_stop, "_BLOCK", DEPTH)
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((10 * DEPTH, 6)).astype(np.float32)
    vectors[
        0
    ] = -9  # of the first block's nearest rows the last one is far, and others fall between
    vectors[1:DEPTH] += 9
    queries = rng.random((5, 6)).astype(np.float32)
    masks = [np.ones(len(vectors), dtype=np.bool_), rng.random(len(vectors)) < 0.5]
    masks.append(np.arange(len(vectors)) < DEPTH // 2)  # fewer than are looked for
    for mask, truths in zip(masks, early_stop._find_truths(vectors, queries, masks), strict=True):
        for query, rows in zip(queries, truths, strict=True):
            scores = np.where(mask, vectors @ query, -np.inf)
            nearest = np.argsort(-scores, kind="stable")[: min(DEPTH, mask.sum())]
            assert rows.tolist() == nearest.tolist()
