"""A library on shards gives what one machine gives, through the same engine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.cluster.sharded_index import ShardedIndex
from searchlab.cluster.shards import LocalShards, cut_evenly
from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import ExactIndex
from searchlab.search.queries import Query
from searchlab.search.words.matches import NO_GAINS, Gains
from tests.support import engine_world
from tests.support.engine_world import ENGINES, all_pages, ids, queries
from tests.support.examples import examples

build = engine_world.build
table = engine_world.table
vectors = engine_world.vectors

N_SHARDS = (1, 2, 4, 7)


@pytest.fixture(scope="module", params=["exact", "standardised", "written"])
def whole_and_shards(request, build):
    """An engine over one exact index, and engines over the same photos on shards."""
    choices = ENGINES[request.param]
    return build(**choices), [build(**choices, n_shards=n) for n in N_SHARDS]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(query=queries())
def test_an_exact_ranking_on_shards_is_one_machine_s_to_the_last_bit(whole_and_shards, query):
    whole, sharded = whole_and_shards
    expected = whole.rank(query)
    for engine in sharded:
        ranking = engine.rank(query)
        assert ranking.rows.tolist() == expected.rows.tolist()
        assert ranking.scores.tobytes() == expected.scores.tobytes()
        assert (ranking.total, ranking.plan) == (expected.total, expected.plan)


def test_shards_are_searched_as_deep_as_pays_for_the_largest_of_them():
    vectors = np.eye(16, dtype=np.float32)[np.arange(900) % 16]
    config = Config(model="palette", index="clustered", n_lists=4)
    depths = [
        ShardedIndex.cut(vectors, config, labels=np.arange(900), n_shards=n).deep_search(900)
        for n in (1, 3)
    ]
    assert depths == [9, 3]


def test_a_cursor_of_one_machine_goes_on_on_shards_and_back(whole_and_shards):
    whole, sharded = whole_and_shards
    query = Query(text="A dune by the sea", filter=PhotoFilter(source="unsplash"))
    expected = all_pages(whole, query, 23)
    for engine in sharded:
        pages, cursor = [], None
        while not pages or cursor:
            answerer = engine if len(pages) % 2 else whole
            pages.append(answerer.search(None if cursor else query, per_page=23, cursor=cursor))
            cursor = pages[-1].next_cursor
        assert [ids([page]) for page in pages] == [ids([page]) for page in expected]


# -- what shards miss ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shards", N_SHARDS)
def test_merging_loses_nothing_that_a_shard_found(unit_vectors, n_shards):
    rows, asked = unit_vectors(1_200, clusters=300), unit_vectors(40, clusters=300, seed=99)
    config = Config(index="hnsw", M=2, ef_construction=4, ef_search=10)
    index = ShardedIndex.cut(rows, config, labels=np.arange(1_200), n_shards=n_shards)
    found = index.search(asked, 10).rows
    truth = ExactIndex(rows).search(asked, 10).rows
    by_shard = []
    for number, some in enumerate(index.shards.ranges):
        arguments = {"queries": asked, "k": 10}
        local = index.shards.ask("index.search", {number: arguments})[number].rows + some.start
        ours = [np.intersect1d(row, local_row) for row, local_row in zip(truth, local, strict=True)]
        assert all(np.isin(hits, row).all() for hits, row in zip(ours, found, strict=True))
        n_there = np.count_nonzero((truth >= some.start) & (truth < some.stop))
        by_shard.append(sum(map(len, ours)) / n_there)
    hits = [len(np.intersect1d(*pair)) for pair in zip(truth, found, strict=True)]
    recall = np.mean(hits) / 10
    assert min(by_shard) <= recall <= max(by_shard)
    assert recall < 1  # or nothing was shown: this graph is a careless one


# -- what is asked of shards --------------------------------------------------------------------


class CountingShards(LocalShards):
    """Notes what each shard is asked."""

    def ask(self, method, asked):
        self.calls = [*getattr(self, "calls", []), (method, dict(asked))]
        return super().ask(method, asked)


@pytest.fixture
def counted(unit_vectors):
    whole = ShardedIndex.cut(
        unit_vectors(700), Config(index="clustered"), labels=np.arange(700), n_shards=7
    )
    return ShardedIndex(CountingShards(whole.shards._parts), Config(index="clustered"))


def test_a_shard_without_an_allowed_photo_is_not_asked(counted, unit_vectors):
    query = unit_vectors(1, seed=3)
    allowed = Bitmap.of_rows([5, 99, 100, 650], 700)
    assert counted.search(query, 3, allowed=allowed).rows_read.tolist() == [4]
    ((_, asked),) = counted.shards.calls
    assert {
        number: (one["k"], one["allowed"].rows().tolist()) for number, one in asked.items()
    } == {
        0: (2, [5, 99]),
        1: (1, [0]),
        6: (1, [50]),
    }


def test_a_ranking_asks_every_shard_once_with_its_own_gains(counted, unit_vectors):
    gains = Gains(np.array([3, 450, 451]), np.array([1, 1, 2]), np.array([0, 0.5, 1.0]))
    best = counted.nearly_best(unit_vectors(1, seed=3)[0], 20, gains)
    assert {3, 450, 451} >= set(best.rows[:1].tolist())
    ((method, asked),) = counted.shards.calls
    assert (method, sorted(asked)) == ("index.nearly_best", list(range(7)))
    assert [asked[number]["gains"].rows.tolist() for number in (0, 1, 4)] == [[3], [], [50, 51]]


def test_nothing_is_asked_where_nothing_can_be_found(counted, unit_vectors):
    query = unit_vectors(1, seed=3)
    nothing = Bitmap.empty(700)
    assert counted.search(query, 2, allowed=nothing).rows.tolist() == [[-1, -1]]
    assert counted.best(query[0], 2, NO_GAINS, allowed=nothing).rows.tolist() == []
    assert counted.nearest(query[0], 0).rows.tolist() == []
    assert not hasattr(counted.shards, "calls")


def test_a_plan_estimates_for_the_largest_shard_and_asks_once(counted):
    config = Config(index="clustered")
    pays, reason = counted.estimate(config, 700)
    assert not pays
    assert reason == (
        "on each of 7 shards scoring 100 photos costs no more than a search of the clusters"
    )
    assert counted.estimate(config, 699) == (pays, reason)
    assert len(counted.shards.calls) == 1


def test_vectors_as_a_whole_are_refused_and_rows_that_are_not_there(counted):
    with pytest.raises(InputError, match="vectors of a library on shards lie with these"):
        _ = counted.vectors
    for rows in ([-1], [700], [3, 10**9]):
        with pytest.raises(InputError, match="rows must be from 0 to 699, got"):
            counted.read_rows(np.array(rows))


# -- ranges ----------------------------------------------------------------------------------------


@given(n_photos=st.integers(0, 10**9), n_shards=st.integers(1, 40))
def test_ranges_are_balanced_and_leave_out_nothing(n_photos, n_shards):
    ranges = cut_evenly(n_photos, n_shards)
    assert len(ranges) == n_shards
    assert [rows.start for rows in ranges] == [0, *(rows.stop for rows in ranges[:-1])]
    assert ranges[-1].stop == n_photos
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


def test_no_shards_are_refused(unit_vectors):
    with pytest.raises(InputError, match="n_shards must be at least 1, got 0"):
        cut_evenly(5, 0)
    with pytest.raises(InputError, match="a library must have a shard at least, got none"):
        LocalShards([])


@settings(max_examples=examples(60))
@given(data=st.data(), n=st.integers(0, 400), seed=st.integers(0, 10**6))
def test_bits_and_gains_are_cut_like_lists(data, n, seed):
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    rng = np.random.default_rng(seed)
    mask = rng.random(n) < 0.5
    part = Bitmap.of_mask(mask).cut(start, stop)
    assert part == Bitmap.of_mask(mask[start:stop])
    rows = np.flatnonzero(mask)
    gains = Gains(rows, rng.integers(1, 4, size=len(rows)), np.arange(4.0))
    assert (
        gains.cut(start, stop).of_all(stop - start).tolist() == gains.of_all(n)[start:stop].tolist()
    )
