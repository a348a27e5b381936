"""Later pages are cut from what was ranked for the ones before: the same photos, found once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.search import ranking
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes.ivf.index import IvfIndex
from searchlab.search.queries import Query
from searchlab.search.ranked_before import Ranked, RankedBefore
from searchlab.search.ranking import Ranker
from tests.support import engine_world
from tests.support.engine_world import N, queries
from tests.support.examples import examples

build = engine_world.build
engine = engine_world.engine
exact = engine_world.exact
table = engine_world.table
vectors = engine_world.vectors


@pytest.fixture
def ranked(monkeypatch):
    """Lengths that were ranked."""
    lengths = []
    rank = Ranker._rank

    def counted(self, vector, n_wanted):
        lengths.append(n_wanted)
        return rank(self, vector, n_wanted)

    monkeypatch.setattr(Ranker, "_rank", counted)
    return lengths


@pytest.fixture
def soon(monkeypatch):
    """Less is ranked ahead than there is."""
    monkeypatch.setattr(ranking, "AHEAD", 10)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(query=queries(), starts=st.lists(st.integers(1, N), min_size=1, max_size=6))
def test_parts_in_any_order_are_those_of_the_whole_ranking(engine, query, starts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "AHEAD", 10)
        whole = engine.rank(query)
        for start in starts:
            part = engine.rank(query, start + 9, start=start)
            assert part.rows.tolist() == whole.rows[start : start + 9].tolist()
            assert part.scores.tolist() == whole.scores[start : start + 9].tolist()
            assert (part.total, part.plan) == (whole.total, whole.plan)


def test_somebody_who_pages_on_is_ranked_for_a_few_times(build, soon, ranked):
    engine = build(index="exact")
    for start in range(0, N, 5):
        engine.rank(Query(text="red"), start + 5, start=start)
    assert ranked == [5, 20, 50, 110, 230, N]


def test_the_depth_is_ranked_at_once_and_no_further_until_it_is_needed(build, soon, ranked):
    engine = build(index="clustered", n_lists=20, depth=40, effort=0.5)
    assert engine.plan(Query(text="red")).mode != "exact"
    for start in range(5, 45, 5):
        engine.rank(Query(text="red"), start + 5, start=start)
    assert ranked == [40, 90]


def test_an_index_that_searches_deep_is_asked_once_for_all_pages(build, ranked, monkeypatch):
    query = Query(text="red")
    choices = {"index": "clustered", "n_lists": 20, "depth": 30, "effort": 0.5}
    first = build(**choices).rank(query, 5).rows
    monkeypatch.setattr(IvfIndex, "deep_search", staticmethod(lambda n_photos: n_photos // 2))
    engine = build(**choices)
    asked, nearly_best = [], IvfIndex.nearly_best

    def search(index, vector, depth, *arguments, **named):
        asked.append(depth)
        return nearly_best(index, vector, depth, *arguments, **named)

    monkeypatch.setattr(IvfIndex, "nearly_best", search)
    ranked.clear()
    assert engine.rank(query, 5).rows.tolist() == first.tolist()
    starts = range(5, N // 2 - 10, 10)
    pages = [engine.rank(query, start + 10, start=start).rows for start in starts]
    assert ranked == [5, N // 2]
    assert asked == [24, 24, N // 2]
    rows = engine.rank(query, starts[-1] + 10).rows
    assert np.concatenate([first, *pages]).tolist() == rows.tolist()


@pytest.mark.parametrize("depth", [3, 24, 30])
def test_an_index_searches_deep_however_shallow_the_depth_of_the_config(depth, build, monkeypatch):
    monkeypatch.setattr(IvfIndex, "deep_search", staticmethod(lambda n_photos: 150))
    engine = build(index="clustered", n_lists=20, depth=depth)
    assert ranking._depths(engine.index, engine.config) == (24, 150)


def test_a_graph_costs_as_much_at_any_depth_and_is_searched_to_that_of_the_config(build, ranked):
    engine = build(index="hnsw", depth=40, step_rows=0)
    engine.rank(Query(text="red"), 10, start=5)
    assert ranked == [40]
    assert type(engine.index).deep_search(10**7) == 0


@pytest.mark.parametrize(("n_photos", "depth"), [(9_999, 99), (100_000, 1_000), (10**7, 1_000)])
def test_the_clusters_are_searched_for_a_hundredth_of_the_photos_and_a_thousand_at_most(
    n_photos, depth
):
    assert IvfIndex.deep_search(n_photos) == depth


def test_first_pages_are_ranked_anew(build, ranked):
    engine = build(index="exact")
    engine.rank(Query(text="red"), 5, start=5)
    engine.rank(Query(text="red"), 5)
    engine.rank(Query(text="red"), 5)
    assert ranked == [N, 5, 5]


@pytest.mark.parametrize(
    "other",
    [
        Query(text="red sea"),
        Query(text="red", filter=PhotoFilter(photographer="ann")),
        Query(text="red", score_threshold=0.01),
        Query(photo_id=engine_world.photo_id(3)),
    ],
)
def test_another_query_is_ranked_itself(build, ranked, other):
    engine = build(index="exact")
    engine.rank(Query(text="red"), 10, start=5)
    part = engine.rank(other, 10, start=5)
    assert len(ranked) == 2
    assert part.rows.tolist() == build(index="exact").rank(other).rows[5:10].tolist()


def test_whoever_asks_for_all_that_is_near_gets_no_more_careless_ranking(build, ranked):
    engine = build(index="clustered", n_lists=20, depth=40, effort=0.1)
    engine.rank(Query(text="red"), 10, start=5)
    careful = Query(text="red", min_recall=1)
    rows = engine.rank(careful, 10, start=5).rows
    assert ranked == [40, N]
    assert rows.tolist() == build(index="exact").rank(careful).rows[5:10].tolist()


def test_a_limit_cuts_what_is_kept_for_those_without(build, ranked):
    engine = build(index="exact")
    whole = engine.rank(Query(text="red"), 30, start=1)
    short = engine.rank(Query(text="red", limit=8), 30, start=1)
    newest = engine.rank(Query(text="red", limit=8, sort_by="newest"), 30, start=1)
    assert short.rows.tolist() == whole.rows[:7].tolist()
    assert set(newest.rows) < {*engine.rank(Query(text="red"), 8).rows}
    assert ranked == [N, 8]


# -- what is kept ---------------------------------------------------------------------------------


def ranked_to(n):
    return Ranked(np.arange(n), np.linspace(1, 0, n), n)


def test_what_was_read_longest_ago_goes_first():
    before, made = RankedBefore(most_photos=100), []

    def ask(key, n):
        before.rank(key, n, n, lambda n: made.append(key) or ranked_to(n))

    for key, n in (("a", 40), ("b", 40), ("a", 40), ("c", 20), ("d", 30), ("a", 40), ("b", 10)):
        ask(key, n)
    assert made == ["a", "b", "c", "d", "b"]


def test_a_longer_one_takes_the_place_of_a_shorter_one():
    before, made = RankedBefore(most_photos=100), []
    for n in (20, 60, 60, 30):
        before.rank("a", n, n, lambda n: made.append(n) or ranked_to(n))
    before.rank("b", 40, 40, lambda n: made.append(n) or ranked_to(n))
    before.rank("a", 60, 60, lambda n: made.append(n) or ranked_to(n))
    assert made == [20, 60, 40]


def test_what_would_fill_everything_is_not_kept():
    before = RankedBefore(most_photos=100)
    before.rank("a", 5, 5, ranked_to)
    assert len(before.rank("b", 101, 101, ranked_to).rows) == 101
    kept = before.rank("a", 5, 5, lambda n: pytest.fail("a was pushed out"))
    assert kept.rows.tolist() == [0, 1, 2, 3, 4]


def test_a_short_ranking_is_all_there_is():
    """Fewer photos reach a threshold than were asked for: nobody asks again."""
    before = RankedBefore()
    short = Ranked(np.arange(3), np.ones(3), 50)
    before.rank("a", 50, 50, lambda n: short)
    assert before.rank("a", 50, 50, lambda n: pytest.fail("asked again")) is short


def test_nobody_can_write_into_what_others_read():
    ranked = RankedBefore().rank("a", 5, 5, ranked_to)
    with pytest.raises(ValueError, match="read-only"):
        ranked.rows[0] = 7


def test_many_threads_get_what_one_does(build):
    engine, asked = build(index="exact"), ("red", "sea", "dune", "night", "red sea")
    whole = {text: engine.rank(Query(text=text)).rows for text in asked}

    def page(number):
        text, start = asked[number % 5], 1 + number * 7 % 200
        rows = engine.rank(Query(text=text), start + 20, start=start).rows
        return rows.tolist() == whole[text][start : start + 20].tolist()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(page, range(200)))
