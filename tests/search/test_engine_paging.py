"""Pages of an engine put together are its ranking, and a cursor holds its query."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.errors import InputError
from searchlab.search.cursors import CursorError
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import engine_world
from tests.support.engine_world import all_pages, ids, photo_id, queries
from tests.support.examples import examples

build = engine_world.build
engine = engine_world.engine
exact = engine_world.exact
table = engine_world.table
vectors = engine_world.vectors


# -- pages --------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(query=queries(), per_page=st.integers(1, 100))
def test_pages_put_together_are_the_ranking(engine, query, per_page):
    per_page = max(per_page, 1 if query.limit is not None else 25)
    whole = engine.rank(query)
    pages = all_pages(engine, query, per_page)
    photo_ids = ids(pages)
    assert photo_ids == engine.table.photo_ids(whole.rows)
    assert [hit.relevance_score for page in pages for hit in page] == whole.scores.tolist()
    assert len(set(photo_ids)) == len(photo_ids) == whole.total
    assert query.limit is None or len(photo_ids) <= query.limit
    *full, last = pages
    assert [len(page) for page in full] == [per_page] * len(full)
    assert len(last) >= 1 or pages == [last]
    assert [page.has_more for page in pages] == [True] * len(full) + [False]
    assert [page.next_cursor is None for page in pages] == [False] * len(full) + [True]
    assert {page.per_page for page in pages} == {per_page}
    assert {page.plan for page in pages} == {whole.plan} == {engine.plan(query)}


@pytest.mark.parametrize(
    ("limit", "per_page", "sizes"),
    [
        (4, 2, [2, 2]),
        (5, 2, [2, 2, 1]),
        (1, 100, [1]),
        (100, 100, [100]),
        (100, 40, [40, 40, 20]),
        (20, 20, [20]),
        (3, 1, [1, 1, 1]),
    ],
)
def test_limit_counts_over_all_pages(engine, limit, per_page, sizes):
    pages = all_pages(engine, Query(text="sea", limit=limit), per_page)
    assert [len(page) for page in pages] == sizes
    assert [page.per_page for page in pages] == [per_page] * len(sizes)
    assert pages[-1].next_cursor is None


def test_without_limit_every_photo_that_meets_the_filter_can_be_paged_to(engine):
    chosen = PhotoFilter(source="unsplash")
    pages = all_pages(engine, Query(text="sea", filter=chosen), 100)
    assert sorted(ids(pages)) == engine.table.photo_ids(np.flatnonzero(chosen.mask(engine.table)))


def test_a_page_size_that_divides_the_results_leaves_no_empty_page(engine):
    pages = all_pages(engine, Query(text="sea"), 100)
    assert [len(page) for page in pages] == [100, 100, 100]


def test_a_page_is_20_results_unless_told_otherwise(engine):
    page = engine.search(Query(text="sea"))
    assert (len(page), page.per_page) == (20, 20)


@pytest.mark.parametrize("per_page", [0, 101, -1, 2.0, True, "20", None])
def test_any_other_page_size_is_refused(exact, per_page):
    with pytest.raises(InputError, match="per_page must be an integer from 1 to 100"):
        exact.search(Query(text="sea"), per_page=per_page)


def test_no_result_is_one_empty_page(engine):
    query = Query(text="sea", filter=PhotoFilter(photographer="nobody"))
    page = engine.search(query, per_page=5)
    assert (list(page), page.has_more, page.next_cursor, page.per_page) == ([], False, None, 5)
    assert page.plan.n_allowed == 0


def test_every_page_starts_at_its_place_in_the_ranking(engine):
    pages = all_pages(engine, Query(text="sea", limit=25), 10)
    assert [(page.start, len(page)) for page in pages] == [(1, 10), (11, 10), (21, 5)]
    assert "<b>11.</b>" in pages[1]._repr_html_()
    assert "<b>1.</b>" not in pages[1]._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        Query(text="sea"),
        Query(text="sea", limit=25),
        Query(text="sea", sort_by="newest"),
        Query(text="sea", score_threshold=0.3),
        Query(photo_id=photo_id(3)),
        Query(filter=PhotoFilter(source="unsplash")),
    ],
    ids=str,
)
def test_a_page_by_its_number_is_the_one_that_cursors_lead_to(engine, query):
    pages = all_pages(engine, query, 10)
    jumped = [engine.search(query, per_page=10, page=n + 1) for n in range(len(pages))]
    assert [ids([page]) for page in jumped] == [ids([page]) for page in pages]
    assert [page.start for page in jumped] == [page.start for page in pages]
    assert {page.total for page in jumped + pages} == {len(ids(pages))}
    assert [page.has_more for page in jumped] == [page.has_more for page in pages]
    last = len(pages)
    for behind in (last + 1, last + 7, 10**9):
        with pytest.raises(InputError, match=f"page must be at most {last}, .* got {behind}$"):
            engine.search(query, per_page=10, page=behind)


def test_the_first_page_is_there_also_where_nothing_is_found(engine):
    query = Query(text="sea", filter=PhotoFilter(photographer="nobody"))
    assert engine.search(query, page=1).total == 0
    with pytest.raises(InputError, match=r"page must be at most 1, .* 0 results"):
        engine.search(query, page=2)


@pytest.mark.parametrize("page", [0, -1, 1.0, True, "2", None, 10**30])
def test_any_other_number_of_a_page_is_refused(exact, page):
    with pytest.raises(InputError, match="page must be an integer from 1"):
        exact.search(Query(text="sea"), page=page)


def test_a_page_has_a_number_or_a_cursor(exact):
    cursor = exact.search(Query(text="sea")).next_cursor
    with pytest.raises(InputError, match="page and cursor cannot be combined, got page 2"):
        exact.search(cursor=cursor, page=2)


def test_a_page_knows_its_query_and_what_was_searched_by(exact):
    picture = Image.new("RGB", (8, 8), "red")
    page = exact.search(Query(image=picture, text="sea"), per_page=10)
    assert (page.query.text, page.picture) == ("sea", picture)
    after = exact.search(cursor=page.next_cursor)
    assert (after.query.text, after.picture) == ("sea", None)


@pytest.mark.slow
def test_eight_threads_page_as_one_does(engine):
    query = Query(photo_id=photo_id(3), text="night sea", filter=PhotoFilter(license_type="cc0"))
    expected = ids(all_pages(engine, query, 20))
    with ThreadPoolExecutor(8) as pool:
        walks = list(pool.map(lambda _: ids(all_pages(engine, query, 20)), range(16)))
    assert walks == [expected] * 16


# -- cursors ------------------------------------------------------------------------------------


def test_a_cursor_holds_its_query_and_page_size_whatever_else_is_given(engine):
    query = Query(text="sea", filter=PhotoFilter(license_type="cc0"), limit=50)
    token = engine.search(query, per_page=7).next_cursor
    second = engine.search(cursor=token)
    assert engine.search(Query(text="night"), per_page=99, cursor=token) == second
    assert engine.search(cursor=token, per_page=0) == second
    assert second.per_page == 7
    assert engine.search(cursor=token) == second


def test_a_cursor_of_another_snapshot_configuration_key_or_audience_is_refused(build):
    parts = {"snapshot_id": "000001-a", "key": b"k"}
    engine = build(parts=parts)
    token = engine.search(Query(text="sea"), audience="ann:search").next_cursor
    assert len(engine.search(cursor=token, audience="ann:search")) == 20
    assert len(build(parts=parts).search(cursor=token, audience="ann:search")) == 20
    for other in (
        build(parts=parts | {"snapshot_id": "000002-b"}),
        build(parts=parts, depth=201),
        build(parts=parts, steering=0.36),
        build(parts=parts | {"key": b"other"}),
    ):
        with pytest.raises(CursorError, match="cursor must"):
            other.search(cursor=token, audience="ann:search")
    for audience in ("", "bob:search", "ann:similar"):
        with pytest.raises(CursorError):
            engine.search(cursor=token, audience=audience)


def test_a_cursor_of_another_configuration_says_what_differs(build):
    token = build().search(Query(text="sea")).next_cursor
    other = build(depth=3)
    with pytest.raises(CursorError, match=other.config.config_id):
        other.search(cursor=token)


@pytest.mark.parametrize("cursor", ["", "token", "a.b.c", "é"])
def test_a_text_that_is_no_cursor_is_refused(exact, cursor):
    with pytest.raises(CursorError, match="cursor must be the next_cursor of a page"):
        exact.search(Query(text="sea"), cursor=cursor)
