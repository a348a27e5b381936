"""Screening: of the rows of a list those are scored whose heads say that they may reach a score."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.models.protocol import unit_rows
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes.ivf._kernels.heads import COMPONENTS, MIDDLE, ROWS, round_head
from searchlab.search.indexes.ivf._kernels.lifts import TAKEN
from searchlab.search.indexes.ivf._kernels.lists import collect, find_allowed, mark_places
from searchlab.search.indexes.ivf._kernels.screening import screen_list, screen_places
from searchlab.search.indexes.ivf.heads import learn_axes, make_heads
from tests.support.examples import examples
from tests.support.heads import HALF, decode

NO_WORDS = np.zeros(0, dtype=np.uint64)
NO_LIFTS = np.zeros(0, dtype=np.uint16)


@numba.njit
def listed(rows, start, stop, words, marked, lifts, heads, query, numbers, sums, batch, count):
    zero, scale, by_step, by_tail, least = numbers
    return screen_list(
        rows, start, stop, words, marked, lifts, heads, 0, query, zero, scale, by_step, by_tail,
        least, sums, batch, count,
    )  # fmt: skip


@numba.njit
def placed(lifts, heads, query, numbers, sums, batch, first, count):
    zero, scale, by_step, by_tail, least = numbers
    return screen_places(
        lifts, heads, query, zero, scale, by_step, by_tail, least, sums, batch, first, count
    )


@numba.njit
def rounded(head):
    return round_head(head)[:3]


@numba.njit
def marks(words, positions, n_allowed):
    return mark_places(words, positions, n_allowed)


@numba.njit
def allowed_at(rows, place, size, words, marked):
    return find_allowed(rows, place, size, words, marked)


@numba.njit
def collected(rows, start, stop, words, marked, batch, count):
    return collect(rows, start, stop, words, marked, batch, count)


class Screen(NamedTuple):
    """A query over rows by their heads, with the bounds that a sweep takes."""

    heads: np.ndarray
    """(n + ROWS - 1, BYTES) uint8."""
    query: np.ndarray
    """(2 * BYTES,) int8."""
    by: tuple
    """Zero, scale, by_step and by_tail, float32."""
    scores: np.ndarray
    """(n,) float64 true products of the query with what rows have beyond their centre."""

    def may_reach(self, least):
        """Tell which rows' heads say that they may reach a score, (n,) bool."""
        zero, scale, by_step, by_tail = self.by
        decoded = decode(self.heads[: len(self.scores)])
        whole = self.query.reshape(2, -1)[:, :HALF].astype(np.int64).reshape(-1)
        score = ((decoded.whole @ whole).astype(np.float32) - zero) * scale * decoded.steps
        return score + by_step * decoded.steps + by_tail * decoded.tails >= least


def screen_of(n, dim, seed):
    """Make heads of rows of one list, and a query near to some of them."""
    rng = np.random.default_rng(seed)
    spreads = 0.97 ** np.arange(dim)
    centre = unit_rows(rng.standard_normal((1, dim))).astype(np.float32)
    rest = 0.1 * rng.standard_normal((n, dim)) * spreads
    rest[rng.random(n) < 0.1] = 0
    vectors = (centre + rest).astype(np.float32)
    # Axes are of others, or so few rows would have no tails.
    others = (rng.standard_normal((300, dim)) * spreads).astype(np.float32)
    query = unit_rows(rng.standard_normal((1, dim)) * spreads)[0].astype(np.float32)
    members = np.zeros(n, dtype=np.int64)
    axes = learn_axes(others, np.zeros(300, dtype=np.int64), 0 * centre, seed=0)
    codes = make_heads(vectors, members, np.arange(n), centre, axes).codes
    head = query @ axes
    code, scale, zero = rounded(head)[:3]
    whole = code.reshape(2, -1)[:, :HALF].reshape(-1).astype(np.float64)
    squares, off = (head.astype(np.float64) ** 2).sum(), np.linalg.norm(head - whole * scale)
    root = np.sqrt(COMPONENTS)
    by_step = np.float32(0.5 * root * np.sqrt(squares) + MIDDLE * root * off)
    norm = (query.astype(np.float64) ** 2).sum()
    by_tail = np.float32(np.sqrt(max(norm - squares, 0) + 1e-5 * norm))
    scores = (vectors.astype(np.float64) - centre) @ query.astype(np.float64)
    return Screen(codes, code, (zero, np.float32(scale), by_step, by_tail), scores)


class Allowed(NamedTuple):
    """Rows that may be found, in a way that kernels take."""

    mask: np.ndarray
    """(n,) bool of each place."""
    rows: np.ndarray
    """(n,) int32 row of each place."""
    words: np.ndarray
    marked: np.ndarray


def allow(n, way, share, rng):
    rows = rng.permutation(n).astype(np.int32)
    mask = rng.random(n) < share
    if way == "all":
        return Allowed(np.ones(n, dtype=bool), rows, NO_WORDS, NO_WORDS)
    words = Bitmap.of_mask(mask).words
    # A bitmap is laid out if it is said to be of few rows.
    n_allowed = 0 if way == "marked" else n
    marked = marks(words, np.argsort(rows).astype(np.int32), n_allowed)
    assert bool(marked.size) == (way == "marked")
    return Allowed(mask[rows], rows, words, marked)


WAYS = st.sampled_from(["all", "words", "marked"])


# -- what may be found ------------------------------------------------------------------------


@pytest.mark.slow
@given(n=st.integers(1, 200), share=st.sampled_from([0.0, 0.1, 1.0]), seed=st.integers(0, 9))
@settings(max_examples=examples(60), deadline=None)
def test_few_rows_are_marked_where_they_lie_and_many_are_not(n, share, seed):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(n).astype(np.int32)
    mask = rng.random(n) < share
    words, positions = Bitmap.of_mask(mask).words, np.argsort(rows).astype(np.int32)
    marked = marks(words, positions, int(mask.sum()))
    if 5 * mask.sum() > n:
        assert not marked.size
    else:
        bits = np.unpackbits(marked.view(np.uint8), bitorder="little")
        assert bits[:n].tolist() == mask[rows].tolist()
        assert not bits[n:].any()
        assert len(bits) >= n + 64  # a word more may be read with the last one
    assert not marks(NO_WORDS, positions, n).size


@pytest.mark.slow
@given(
    before=st.integers(0, 140), size=st.integers(0, 40), after=st.integers(0, 20),
    way=WAYS, share=st.sampled_from([0.0, 0.1, 0.6, 1.0]), seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=examples(150), deadline=None)
def test_rows_that_may_be_found_are_found_in_every_way(before, size, after, way, share, seed):
    n = before + size + after
    allowed = allow(max(n, 1), way, share, np.random.default_rng(seed))
    first = min(size, ROWS)
    bits = allowed_at(allowed.rows, before, first, allowed.words, allowed.marked)
    said = [bool(bits >> number & 1) for number in range(first)]
    assert said == allowed.mask[before : before + first].tolist()
    assert bits >> first == 0

    batch = np.full(3 + size + 1, -7)  # a batch has room for a row more than it needs
    count = collected(allowed.rows, before, before + size, allowed.words, allowed.marked, batch, 3)
    assert batch[:3].tolist() == [-7] * 3
    assert (
        batch[3:count].tolist()
        == (before + np.flatnonzero(allowed.mask[before : before + size])).tolist()
    )


# -- what may reach a score -------------------------------------------------------------------

LISTS = {
    "before": st.integers(0, 140),
    "size": st.integers(0, 40),
    "after": st.integers(0, 20),
    "dim": st.sampled_from([1, 20, 56, 57, 90]),
    "way": WAYS,
    "share": st.sampled_from([0.0, 0.1, 0.6, 1.0]),
    "level": st.sampled_from([0.0, 0.5, 0.9, 1.0, np.inf, -np.inf]),
    "lifted": st.sampled_from([0.0, 0.2]),
    "seed": st.integers(0, 9),
}


def lay_lifts(mask, share, rng):
    """Give some rows that may be found a lift, and say of some that they are scored already."""
    if not share:
        return NO_LIFTS
    lifts = np.where(mask & (rng.random(len(mask)) < share), rng.integers(1, 9, len(mask)), 0)
    lifts = lifts.astype(np.uint16)
    lifts[mask & (rng.random(len(mask)) < share)] = TAKEN
    return lifts


@pytest.mark.slow
@given(**LISTS)
@settings(max_examples=examples(250), deadline=None)
def test_no_row_of_a_list_that_reaches_the_score_is_missed(
    before, size, after, dim, way, share, level, lifted, seed
):
    n, stop = max(before + size + after, 1), before + size
    rng = np.random.default_rng([seed, 1])
    screen, allowed = screen_of(n, dim, seed), allow(n, way, share, rng)
    lifts = lay_lifts(allowed.mask, lifted, rng)
    taken = lifts == TAKEN if lifts.size else np.zeros(n, dtype=bool)
    has_lift = lifts > 0 if lifts.size else np.zeros(n, dtype=bool)
    here = (np.arange(n) >= before) & (np.arange(n) < stop) & allowed.mask & ~taken
    goal = np.quantile(screen.scores, level) if np.isfinite(level) else level
    least = np.float32(goal - 1e-5)  # less than it by what float32 rounds, as in a sweep
    batch, sums = np.full(3 + size + ROWS, -7), np.zeros(2 * ROWS, dtype=np.float32)
    count, n_allowed, n_read = listed(
        allowed.rows, before, stop, allowed.words, allowed.marked, lifts, screen.heads,
        screen.query, (*screen.by, least), sums, batch, 3,
    )  # fmt: skip
    found = batch[3:count].tolist()
    reaching = np.flatnonzero(here & (has_lift | (screen.scores >= goal)))
    assert set(reaching.tolist()) <= set(found)
    assert found == np.flatnonzero(here & (has_lift | screen.may_reach(least))).tolist()
    assert batch[:3].tolist() == [-7] * 3
    assert n_allowed == here.sum()
    # Where none of sixteen rows may be found, none is read.
    groups = [place for place in range(before, stop, ROWS) if here[place : place + ROWS].any()]
    assert n_read == ROWS * len(groups)
    check_sums(sums, screen, [place + row for place in groups for row in range(ROWS)])


def check_sums(sums, screen, places):
    """Assert that squares of products and of tails were added up, of these places."""
    zero, scale, *_ = screen.by
    decoded = decode(screen.heads[places])
    whole = screen.query.reshape(2, -1)[:, :HALF].astype(np.int64).reshape(-1)
    scores = (decoded.whole @ whole - np.float64(zero)) * scale * decoded.steps
    assert sums[:ROWS].sum() == pytest.approx((scores**2).sum(), rel=1e-4, abs=1e-20)
    tails = decoded.tails.astype(np.float64)
    assert sums[ROWS:].sum() == pytest.approx((tails**2).sum(), rel=1e-4, abs=1e-20)


@pytest.mark.slow
@given(**LISTS)
@settings(max_examples=examples(100), deadline=None)
def test_of_places_those_stay_that_may_reach_the_score(
    before, size, after, dim, way, share, level, lifted, seed
):
    del way
    n = before + size + after
    rng = np.random.default_rng([seed, 1])
    screen = screen_of(max(n, 1), dim, seed)
    mask = rng.random(max(n, 1)) < share
    lifts = lay_lifts(mask, lifted, rng)
    places = np.flatnonzero(mask & (lifts != TAKEN if lifts.size else True))
    goal = np.quantile(screen.scores, level) if np.isfinite(level) else level
    least = np.float32(goal - 1e-5)
    batch, sums = np.concatenate([[-7, -7], places]), np.zeros(2 * ROWS, dtype=np.float32)
    count = placed(
        lifts, screen.heads, screen.query, (*screen.by, least), sums, batch, 2, len(batch)
    )
    stay = screen.may_reach(least)[places]
    if lifts.size:
        stay |= lifts[places] > 0
    assert batch[:count].tolist() == [-7, -7, *places[stay].tolist()]
    assert set(places[screen.scores[places] >= goal].tolist()) <= set(batch[2:count].tolist())
    check_sums(sums, screen, places)


@pytest.mark.parametrize("start", [0, 1, 15, 16, 30, 31, 32])
def test_nothing_is_read_behind_the_last_head(start):
    """What lies there is no number, and whatever is added to it neither."""
    screen = screen_of(33, 60, 0)
    assert len(screen.heads) == 33 + ROWS - 1
    memory = np.full((33 + 3 * ROWS, 32), 0xFF, dtype=np.uint8)
    heads = memory[: len(screen.heads)]
    heads[:] = screen.heads
    sums, batch = np.zeros(2 * ROWS, dtype=np.float32), np.empty(64, dtype=np.int64)
    rows = np.arange(33, dtype=np.int32)
    count, n_allowed, _ = listed(
        rows, start, 33, NO_WORDS, NO_WORDS, NO_LIFTS, heads, screen.query,
        (*screen.by, np.float32(-np.inf)), sums, batch, 0,
    )  # fmt: skip
    assert np.isfinite(sums).all()
    assert batch[:count].tolist() == list(range(start, 33))
    assert n_allowed == 33 - start
