"""The ranking of an engine: its order, its parts, and its limit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes.scoring import cosines
from searchlab.search.queries import Query
from tests.support import engine_world
from tests.support.engine_world import (
    ENGINES,
    N,
    allowed_rows,
    photo_id,
    queries,
    rows_of,
    vector_of,
)
from tests.support.examples import examples

build = engine_world.build
engine = engine_world.engine
exact = engine_world.exact
table = engine_world.table
vectors = engine_world.vectors


# -- order --------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(query=queries())
def test_every_ranking_keeps_its_promises(engine, query):
    ranking = engine.rank(query)
    rows, scores = ranking.rows.tolist(), ranking.scores.tolist()
    days = engine.table.uploaded_days[ranking.rows].tolist()
    assert (ranking.rows.dtype, ranking.scores.dtype) == (np.int64, np.float64)
    assert all(0 <= score <= 1 for score in scores)
    assert set(rows) <= set(allowed_rows(engine, query))
    assert query.score_threshold is None or min(scores, default=1) >= query.score_threshold
    if query.sort_by == "newest":
        assert [(-day, row) for day, row in zip(days, rows, strict=True)] == sorted(
            (-day, row) for day, row in zip(days, rows, strict=True)
        )
    else:
        assert scores == sorted(scores, reverse=True)


@settings(max_examples=examples(60), deadline=None)
@given(query=queries(limit=None))
def test_an_exact_ranking_is_a_plain_sort(exact, query):
    allowed = allowed_rows(exact, query)
    vector = vector_of(exact, query)
    similar = np.ones(N) if vector is None else cosines(rows_of(exact), vector)
    curve = exact.config.calibration.text  # the curves of an uncalibrated model are the same
    scores = np.ones(N) if vector is None else np.round(curve(similar), 6)
    least = query.score_threshold or 0
    expected = [row for row in allowed if scores[row] >= least]
    if query.sort_by == "newest":
        expected.sort(key=lambda row: (-int(exact.table.uploaded_days[row]), row))
    else:
        expected.sort(key=lambda row: (-float(similar[row]), row))
    ranking = exact.rank(query)
    assert ranking.rows.tolist() == expected
    assert ranking.scores.tolist() == pytest.approx(scores[expected].tolist())


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(query=queries(limit=None, sort_by="relevance", score_threshold=None))
def test_a_graph_ranks_its_head_and_leaves_nobody_out(build, exact, query):
    engine = build(**ENGINES["graph"])
    ranking = engine.rank(query)
    if ranking.plan.mode == "browse":
        assert ranking.rows.tolist() == allowed_rows(engine, query)
        return
    vector = vector_of(engine, query)
    mask = np.zeros(N, dtype=bool)
    mask[allowed_rows(engine, query)] = True
    head = engine.index.search(vector[np.newaxis], 7, allowed=mask).rows[0]
    head = head[head >= 0].tolist()
    similar = cosines(rows_of(engine), vector)
    tail = sorted(set(np.flatnonzero(mask)) - set(head), key=lambda row: (-similar[row], row))
    assert ranking.rows.tolist() == head + tail
    ours, theirs = ranking.scores, exact.rank(query).scores
    assert (ours <= theirs + 1e-9).all()  # a photo that the graph missed scores no more than it


def test_the_careless_graph_of_these_tests_does_miss_photos(build, exact):
    engine = build(**ENGINES["graph"])
    missed = [
        text
        for text in ("red", "sea", "dune", "night", "red sea", "green dune")
        if engine.rank(Query(text=text)).rows.tolist() != exact.rank(Query(text=text)).rows.tolist()
    ]
    assert missed


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(query=queries(limit=None))
def test_both_orders_give_the_same_photos(engine, query):
    parts = {name: getattr(query, name) for name in ("text", "image", "photo_id", "filter")}
    parts |= {"score_threshold": query.score_threshold, "text_alpha": query.text_alpha}
    best, newest = (engine.rank(Query(sort_by=order, **parts)) for order in ("relevance", "newest"))
    assert sorted(best.rows.tolist()) == sorted(newest.rows.tolist())
    assert best.total == newest.total


def test_equal_photos_come_in_the_order_of_their_ids(exact, vectors):
    ranking = exact.rank(Query(text="sea"))
    twins = {}
    for row in ranking.rows.tolist():
        twins.setdefault(vectors[row].tobytes(), []).append(row)
    assert max(map(len, twins.values())) >= 3
    assert all(rows == sorted(rows) for rows in twins.values())


def test_a_text_that_says_nothing_to_the_model_lists_all_photos_by_id(exact):
    ranking = exact.rank(Query(text="nothing known"))
    assert ranking.rows.tolist() == list(range(N))
    assert len(set(ranking.scores.tolist())) == 1


# -- parts --------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(query=queries(), k=st.integers(0, N + 5))
def test_the_head_of_a_ranking_does_not_depend_on_how_much_of_it_is_wanted(engine, query, k):
    whole, head = engine.rank(query), engine.rank(query, k)
    assert head.rows.tolist() == whole.rows[:k].tolist()
    assert head.scores.tolist() == whole.scores[:k].tolist()
    assert head.total == whole.total == len(whole.rows)
    assert head.plan == whole.plan


def test_less_than_nothing_cannot_be_ranked(engine):
    with pytest.raises(InputError, match="k must be"):
        engine.rank(Query(text="sea"), -1)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(query=queries(), start=st.integers(0, N + 5), k=st.integers(0, N + 5))
def test_a_part_of_a_ranking_is_cut_out_of_it(engine, query, start, k):
    whole, part = engine.rank(query), engine.rank(query, k, start=start)
    assert part.rows.tolist() == whole.rows[start:k].tolist()
    assert part.scores.tolist() == whole.scores[start:k].tolist()
    assert (part.total, part.plan) == (whole.total, whole.plan)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("limit", [1, 5, 20, 100])
@pytest.mark.parametrize(
    "parts",
    [{"text": "sea"}, {"photo_id": photo_id(3)}, {"text": "red", "score_threshold": 0.4}],
    ids=["text", "photo", "threshold"],
)
def test_a_limit_leaves_the_same_photos_in_either_order(build, kind, limit, parts):
    engine = build(**ENGINES[kind])
    best = engine.rank(Query(limit=limit, **parts))
    newest = engine.rank(Query(limit=limit, sort_by="newest", **parts))
    assert best.total == newest.total <= limit
    assert sorted(best.rows.tolist()) == sorted(newest.rows.tolist())
    days = engine.table.uploaded_days[newest.rows].tolist()
    assert days == sorted(days, reverse=True)


def test_with_conditions_only_a_limit_leaves_the_newest(engine):
    query = Query(filter=PhotoFilter(source="unsplash"), sort_by="newest")
    whole = engine.rank(query).rows.tolist()
    few = engine.rank(replace(query, limit=7))
    assert (few.rows.tolist(), few.total) == (whole[:7], 7)
