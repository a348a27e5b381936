"""Searches at the edge: refused ones, just words, an engine of one photo or of none."""

from pathlib import Path

import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError, NotFoundError
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import INDEXES, ExactIndex
from searchlab.search.queries import Query
from tests.support import engine_world, index_kinds
from tests.support.engine_world import N, all_pages, ids, photo_id

build = engine_world.build
engine = engine_world.engine
exact = engine_world.exact
table = engine_world.table
vectors = engine_world.vectors


# -- refused ------------------------------------------------------------------------------------


def test_a_search_needs_a_query_or_a_cursor(exact):
    with pytest.raises(InputError, match="a query or a cursor, got neither"):
        exact.search()


@pytest.mark.parametrize("unknown", [photo_id(N), "", "\ud800", photo_id(1).upper() + "X", "0"])
def test_a_photo_that_is_not_indexed_is_not_found(engine, unknown):
    query = Query(photo_id=unknown, filter=PhotoFilter(source="nasa"))
    for ask in (engine.search, engine.rank, engine.plan):
        with pytest.raises(NotFoundError, match="photo_id must name an indexed photo"):
            ask(query)


def test_a_source_that_the_library_does_not_have_is_refused(engine):
    query = Query(text="sea", filter=PhotoFilter(source="flickr"))
    for ask in (engine.search, engine.rank, engine.plan):
        with pytest.raises(InputError, match="nasa, pexels, unsplash; got 'flickr'"):
            ask(query)


def test_parts_that_do_not_belong_together_are_refused(
    table, vectors, toy_model, make_table, unit_vectors
):
    config = Config(model="toy", model_id=toy_model.model_id)
    index = ExactIndex(vectors)
    wide = ExactIndex(unit_vectors(N, 17))
    for parts in ((make_table({}), index), (table, wide)):
        with pytest.raises(MismatchError, match="table, index and model must agree"):
            SearchEngine(*parts, toy_model, config)
    for model_id in ("", "toy-ffffffffffff"):
        with pytest.raises(MismatchError, match="toy-0123456789ab"):
            SearchEngine(table, index, toy_model, Config(model="toy", model_id=model_id))


# -- answered -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [index_kinds.param(kind, kind, kind) for kind in INDEXES])
def test_an_engine_without_photos_answers(build, make_table, vectors, kind):
    engine = build(table=make_table(), vectors=vectors[:0], index=kind, step_rows=0)
    for query in (
        Query(text="sea"),
        Query(image=Image.new("RGB", (2, 2)), text="sea", score_threshold=0.5),
        Query(filter=PhotoFilter(orientation="square"), sort_by="newest"),
    ):
        page = engine.search(query)
        assert (list(page), page.has_more, page.plan.selectivity) == ([], False, 1.0)


@pytest.mark.parametrize("kind", [index_kinds.param(kind, kind, kind) for kind in INDEXES])
def test_an_engine_with_one_photo_answers(build, make_table, unit_vectors, kind):
    engine = build(table=make_table({}), vectors=unit_vectors(1), index=kind, step_rows=0)
    assert ids(all_pages(engine, Query(text="sea"), 1)) == [photo_id(0)]
    assert ids(all_pages(engine, Query(photo_id=photo_id(0)), 1)) == []


def test_a_search_takes_just_words(engine):
    by_words, by_query = engine.search("red sea"), engine.search(Query(text="red sea"))
    assert by_words.hits == by_query.hits
    with pytest.raises(InputError, match="must have a text"):
        engine.search(" ")


def test_hits_carry_the_record_and_the_small_picture(build, table):
    engine = build(parts={"thumbnail": lambda photo: Path(f"{photo.photo_id}.webp")})
    rows = engine.rank(Query(text="sea"), 3).rows.tolist()
    page = engine.search(Query(text="sea"), per_page=3)
    assert [hit.photo for hit in page] == [table.photo(row) for row in rows]
    assert [hit.thumbnail for hit in page] == [Path(f"{photo_id(row)}.webp") for row in rows]
