import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.search.filters import bitmaps
from searchlab.search.filters.bitmaps import Bitmap
from tests.support.examples import examples

SIZES = (0, 1, 63, 64, 65, 128, 1000)


@pytest.fixture(params=["numpy", "compiled"], scope="module", autouse=True)
def _both_ways(request):
    """Everything must hold below and above the size from which on numba is used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitmaps, "COMPILED_FROM", 0 if request.param == "compiled" else 2**40)
        yield


sets = st.sampled_from(SIZES).flatmap(
    lambda n: st.tuples(st.just(n), *[st.sets(st.integers(0, n - 1) if n else st.nothing())] * 2)
)


def bitmap(rows, n):
    return Bitmap.of_rows(sorted(rows), n)


@settings(max_examples=examples(150), deadline=None)
@given(sets)
def test_a_bitmap_is_a_set_of_rows(sets_of_rows):
    n, rows, others = sets_of_rows
    one, other = bitmap(rows, n), bitmap(others, n)
    assert one.rows().tolist() == sorted(rows)
    assert one.rows().dtype == np.int64
    assert one.count == len(rows)
    assert [row in one for row in range(n)] == [row in rows for row in range(n)]
    assert (one & other).rows().tolist() == sorted(rows & others)
    assert (one | other).rows().tolist() == sorted(rows | others)
    assert (one ^ other).rows().tolist() == sorted(rows ^ others)
    assert (one - other).rows().tolist() == sorted(rows - others)
    assert (one == other) == (rows == others)


@settings(max_examples=examples(60), deadline=None)
@given(sets)
def test_masks_and_bitmaps_turn_into_each_other(sets_of_rows):
    n, rows, _ = sets_of_rows
    mask = np.isin(np.arange(n), sorted(rows))
    assert Bitmap.of_mask(mask) == bitmap(rows, n)
    as_mask = bitmap(rows, n).mask()
    assert as_mask.dtype == np.bool_
    assert as_mask.tolist() == mask.tolist()


@settings(max_examples=examples(60), deadline=None)
@given(sets, st.data())
def test_a_cut_is_the_set_over_some_of_the_rows_alone(sets_of_rows, data):
    n, rows, _ = sets_of_rows
    start, stop = sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=2)))
    some = bitmap(rows, n).cut(start, stop)
    assert some == bitmap({row - start for row in rows if start <= row < stop}, stop - start)


@pytest.mark.parametrize("start", [0, 1, 40, 64, 100])
@pytest.mark.parametrize("n_rows", [64, 128, 150])
def test_a_cut_holds_what_its_words_hold(start, n_rows):
    assert Bitmap.full(300).cut(start, start + n_rows) == Bitmap.full(n_rows)


@settings(max_examples=examples(60), deadline=None)
@given(sets, st.integers(0, 1100), st.integers(0, 1100))
def test_a_part_is_a_slice_of_the_rows(sets_of_rows, start, stop):
    n, rows, others = sets_of_rows
    some = bitmap(rows, n)
    stop = min(stop, len(rows))
    assert some.part(start, stop).tolist() == sorted(rows)[start:stop]
    probed = np.array(sorted(others), dtype=np.int64)
    assert some.holds(probed).tolist() == [row in rows for row in probed.tolist()]


@pytest.mark.parametrize("n", SIZES)
def test_full_and_empty_leave_nothing_in_the_last_word(n):
    assert Bitmap.full(n).rows().tolist() == list(range(n))
    assert Bitmap.full(n).count == n
    assert Bitmap.empty(n).count == 0
    assert Bitmap.full(n) - Bitmap.full(n) == Bitmap.empty(n)
    assert len(Bitmap.full(n).words) == -(-n // 64)


@pytest.mark.parametrize("n", SIZES)
def test_all_of_none_is_everything_and_any_of_none_is_nothing(n):
    assert Bitmap.all_of([], n) == Bitmap.full(n)
    assert Bitmap.any_of([], n) == Bitmap.empty(n)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(SIZES[1:]).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.sets(st.integers(0, n - 1)), min_size=1))
    )
)
def test_many_sets_are_joined_and_none_of_them_is_changed(sets_of_rows):
    n, rows = sets_of_rows
    some = [bitmap(one, n) for one in rows]
    assert Bitmap.all_of(some, n).rows().tolist() == sorted(set.intersection(*rows))
    assert Bitmap.any_of(iter(some), n).rows().tolist() == sorted(set.union(*rows))
    assert [one.rows().tolist() for one in some] == [sorted(one) for one in rows]


def test_rows_may_come_in_any_order_and_twice():
    assert Bitmap.of_rows([70, 3, 3, 64], 71).rows().tolist() == [3, 64, 70]
    assert Bitmap.of_rows(np.array([2, 1], dtype=np.int32), 3).rows().tolist() == [1, 2]


def test_without_leaves_the_set_itself_alone():
    some = Bitmap.of_rows([0, 63, 64], 65)
    assert some.without(63).rows().tolist() == [0, 64]
    assert some.without(5) == some
    assert some.count == 3


@pytest.mark.parametrize("rows", [[-1], [-1, 3], [65], [3, 65], [0, 2**40], [-(2**40)]])
def test_a_row_out_of_range_is_refused(rows):
    with pytest.raises(InputError, match="rows must be from 0 to 64"):
        Bitmap.of_rows(rows, 65)


@pytest.mark.parametrize(
    "words", [np.zeros(1, np.uint64), np.zeros(3, np.uint64), np.zeros(2, np.int64)]
)
def test_words_of_another_number_or_kind_are_refused(words):
    with pytest.raises(InputError, match=r"words must be \(2,\) uint64"):
        Bitmap(words, 65)


def test_bitmaps_over_other_rows_are_not_joined():
    one, other = Bitmap.full(65), Bitmap.full(66)
    for join in (Bitmap.__and__, Bitmap.__or__, Bitmap.__xor__, Bitmap.__sub__):
        with pytest.raises(InputError, match="the same rows, got 65 and 66"):
            join(one, other)
    for join in (Bitmap.all_of, Bitmap.any_of):
        with pytest.raises(InputError, match="the same rows, got 65 and 66"):
            join([one, other], 65)
    assert one != other


def test_words_may_be_read_only():
    words = np.array([5], dtype=np.uint64)
    words.flags.writeable = False
    some = Bitmap(words, 3)
    assert (some.rows().tolist(), some.count, some.without(0).rows().tolist()) == ([0, 2], 2, [2])


def test_a_bitmap_says_how_much_it_holds():
    assert repr(Bitmap.of_rows(range(1000), 2000)) == "Bitmap(1,000 of 2,000 rows)"
