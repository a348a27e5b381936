"""Paging through a state of the library from which photos have been deleted since."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import build_index
from searchlab.search.queries import Query
from tests.support.examples import examples

N = 23


@pytest.fixture(scope="module", params=["exact", "hnsw"])
def engine(request, make_table, unit_vectors, toy_model):
    table = make_table(*({"orientation": "landscape"} for _ in range(N)))
    config = Config(model="toy", model_id=toy_model.model_id, index=request.param, depth=7)
    index = build_index(unit_vectors(N), config, np.arange(N))
    return SearchEngine(table, index, toy_model, config, snapshot_id="000001-00000000")


QUERIES = st.builds(
    Query,
    text=st.sampled_from(["red", "sea dune", "night"]),
    sort_by=st.sampled_from(["relevance", "newest"]),
    score_threshold=st.sampled_from([None, 0.0]),
    limit=st.sampled_from([None, 1, 9, 100]),
)


@settings(deadline=None, max_examples=examples(60))
@given(
    query=QUERIES | st.just(Query(filter=PhotoFilter(orientation=("landscape",)))),
    per_page=st.integers(1, 9),
    steps=st.lists(st.sets(st.integers(0, N - 1), max_size=6), max_size=8),
)
def test_no_photo_comes_twice_or_after_it_was_deleted_and_none_is_left_out(
    engine, query, per_page, steps
):
    whole = engine.rank(query).rows.tolist()
    live, seen, cursor = np.ones(N, dtype=bool), [], None
    for gone in [*steps, *[set()] * N]:
        live[list(gone)] = False
        still = None if live.all() else live.copy()
        first_query = None if cursor else query
        page = engine.slice(first_query, per_page=per_page, cursor=cursor, live=still)
        assert all(live[row] for row in page.rows)
        seen += page.rows.tolist()
        cursor = page.next_cursor
        if cursor is None:
            break
    assert cursor is None
    assert len(set(seen)) == len(seen)
    assert seen == [row for row in whole if row in seen]
    assert {row for row in whole if live[row]} <= set(seen)


def test_deleted_photos_take_no_place_of_a_page(engine):
    query = Query(text="red")
    whole = engine.rank(query).rows.tolist()
    live = np.ones(N, dtype=bool)
    live[whole[1:4]] = False
    page = engine.slice(query, per_page=5, live=live)
    assert page.rows.tolist() == [whole[0], *whole[4:8]]
    assert len(engine.slice(cursor=page.next_cursor, live=live).rows) == 5


def test_a_page_behind_which_everything_was_deleted_is_the_last(engine):
    query = Query(text="red")
    live = np.zeros(N, dtype=bool)
    live[engine.rank(query).rows[:5]] = True
    assert engine.slice(query, per_page=5, live=live).next_cursor is None


def test_a_slice_says_how_long_its_parts_took(engine):
    timings = engine.slice(Query(text="red")).timings
    assert list(timings) == ["filter", "embed", "search"]
    assert all(spent >= 0 for spent in timings.values())
