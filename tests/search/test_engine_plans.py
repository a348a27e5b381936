"""Plans of an engine: every photo, the graph or the clusters, and why."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import HnswIndex
from searchlab.search.queries import Query
from tests.support import engine_world
from tests.support.engine_world import (
    ENGINES,
    N,
    all_pages,
    allowed_rows,
    always,
    ids,
    photo_id,
    queries,
)

build = engine_world.build
engine = engine_world.engine
exact = engine_world.exact
table = engine_world.table
vectors = engine_world.vectors


# -- plans --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "mode", "reason"),
    [
        (Query(filter=PhotoFilter(source="unsplash")), "browse", "by photo_id"),
        (Query(filter=PhotoFilter(source="nasa"), sort_by="newest"), "browse", "by date, then"),
        (Query(text="sea"), "graph", "20 graph steps cost less than scoring 300 photos"),
        (Query(photo_id=photo_id(1)), "graph", "graph steps cost less than scoring 299 photos"),
        (Query(text="sea", score_threshold=0.0), "exact", "threshold"),
        (Query(text="sea", sort_by="newest"), "exact", "date order"),
        (Query(text="sea", filter=PhotoFilter(source="nasa")), "exact", "photos costs less than"),
    ],
)
def test_a_plan_says_what_is_done_and_why(build, query, mode, reason):
    plan = build(**ENGINES["planned"]).plan(query)
    assert plan.mode == mode
    assert reason in plan.reason
    assert plan.n_photos == N
    assert plan.conditions == query.filter.describe()
    assert plan.explain().startswith(f"{mode}: ")


def test_a_page_says_its_plan_in_words(engine, capsys):
    page = engine.search("sea")
    print(page.plan)  # noqa: T201 - what a notebook does
    assert capsys.readouterr().out == page.plan.explain() + "\n"


def test_an_exact_index_scores_every_photo(exact):
    plan = exact.plan(Query(text="sea"))
    assert (plan.mode, plan.reason) == ("exact", "the exact index scores every allowed photo")


@pytest.mark.parametrize(
    ("step_rows", "mode"), [(0, "graph"), (29, "graph"), (30, "exact"), (2**40, "exact")]
)
def test_the_planner_compares_the_cost_of_ten_steps_with_that_of_300_photos(build, step_rows, mode):
    assert build(index="hnsw", depth=10, step_rows=step_rows).plan(Query(text="sea")).mode == mode


@pytest.mark.parametrize("share", ["unsplash", None])
def test_a_step_of_0_rows_really_walks_the_graph(build, monkeypatch, share):
    walked = []
    walk = HnswIndex._walk
    monkeypatch.setattr(
        HnswIndex, "_walk", lambda self, *rest: walked.append(rest) or walk(self, *rest)
    )
    engine = build(index="hnsw", step_rows=0, depth=10)
    query = Query(text="sea", filter=PhotoFilter(source=share or ()))
    assert engine.rank(query, 10).plan.mode == "graph"
    assert len(walked) == 1
    wide = build(index="hnsw", step_rows=2**40, depth=10)
    assert wide.rank(query, 10).plan.mode == "exact"
    assert len(walked) == 1


@pytest.mark.parametrize("step_rows", [1, 2, 3, 10])
def test_a_stricter_filter_never_turns_exact_into_graph(build, step_rows):
    engine = build(index="hnsw", depth=10, step_rows=step_rows)
    plans = [
        engine.plan(Query(text="sea", filter=PhotoFilter(after_date=f"2024-01-{day:02d}")))
        for day in range(1, 12)
    ]
    allowed, modes = [plan.n_allowed for plan in plans], [plan.mode for plan in plans]
    assert allowed == sorted(allowed, reverse=True)
    assert modes == sorted(modes, reverse=True)  # graph, graph, ..., exact, exact
    assert modes[-1] == "exact"


def test_a_plan_counts_the_photos_that_may_be_found(exact):
    query = Query(photo_id=photo_id(1), filter=PhotoFilter(license_type="cc0"))
    plan = exact.plan(query)
    assert plan.n_allowed == exact.rank(query).total == len(allowed_rows(exact, query))
    assert plan.selectivity == plan.n_allowed / N


def test_a_plan_names_model_and_calibration(exact):
    assert exact.plan(Query(text="sea")).scored_by == "toy, calibration uncalibrated"


# -- clusters -----------------------------------------------------------------------------------


def test_the_clusters_of_these_tests_are_searched_and_do_miss_photos(build, exact):
    engine = build(**ENGINES["clustered"])
    queries = [
        Query(text=text) for text in ("red", "sea", "dune", "night", "red sea", "green dune")
    ]
    assert {engine.plan(query).mode for query in queries} == {"clustered"}
    rankings = [engine.rank(query).rows.tolist() for query in queries]
    assert rankings != [exact.rank(query).rows.tolist() for query in queries]
    assert [sorted(rows) for rows in rankings] == [list(range(N))] * len(queries)


def test_a_first_page_asks_the_clusters_for_a_page_and_no_more(build, monkeypatch):
    engine = build(**ENGINES["clustered"])
    calls, search = [], type(engine.index).search

    def counted(self, queries, k, **options):
        calls.append((k, options["effort"]))
        return search(self, queries, k, **options)

    monkeypatch.setattr(type(engine.index), "search", counted)
    first = engine.search(Query(text="sea"))
    assert calls == [(24, 0.1)]
    engine.search(cursor=first.next_cursor)
    assert calls[1:] == [(24, 0.1), (40, 0.1)]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(query=queries())
def test_a_required_recall_holds_on_every_page(build, exact, query):
    # The recall measured is half of the one required.
    config = build(**ENGINES["clustered"]).config
    tuning = always(replace(config, tuning=None), 0.1, recall=0.5)
    engine = build(parts=None, **ENGINES["clustered"])
    engine.config = replace(config, tuning=tuning)
    demanding = replace(query, min_recall=0.9)
    pages = all_pages(engine, demanding, 60)
    assert ids(pages) == ids(all_pages(exact, query, 60))
    assert {page.plan.expected_recall for page in pages} == {1.0}
    careless = replace(query, min_recall=0.5)
    assert {page.plan for page in all_pages(engine, careless, 60)} == {engine.plan(careless)}
