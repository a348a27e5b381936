"""Scores of an engine: the curve of each kind of query, and thresholds cut exactly."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config.calibration import Calibration, Curve, WrittenCurve
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes.scoring import cosines
from searchlab.search.queries import Query
from tests.support import engine_world
from tests.support.engine_world import (
    N,
    add_gains,
    allowed_rows,
    ids,
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


# -- thresholds ---------------------------------------------------------------------------------


def test_a_photo_at_the_threshold_is_in(engine):
    scores = engine.rank(Query(text="sea", score_threshold=0)).scores
    threshold = float(scores[9])
    ranking = engine.rank(Query(text="sea", score_threshold=threshold))
    assert ranking.total == np.count_nonzero(scores >= threshold)
    assert ranking.scores[-1] == threshold


CURVES = [
    *(Curve(4.0, -1.0), Curve(12.3, -6.9), Curve(400.0, 3.0), Curve(1e-3, 0.2), Curve(1e9, 0)),
    *(WrittenCurve(12.3, -6.9, 0.14), WrittenCurve(40.0, 3.0, 0.5)),
]


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    query=queries(),
    curve=st.sampled_from(CURVES),
    place=st.integers(0, N - 1),
    step=st.sampled_from([0, 0, 1e-6, -1e-6, 5e-7, -5e-7]),
)
def test_a_threshold_keeps_exactly_what_reaches_it(engine, query, curve, place, step):
    # As near to a photo's score, as it is rounded, as thresholds come.
    plain = Curve(curve.slope, curve.intercept)
    calibration = Calibration(text=curve, image=plain, both=plain, source="test")
    curve = curve if query.kind == "text" else plain
    config = replace(engine.config, calibration=calibration)
    engine = SearchEngine(engine.table, engine.index, engine.model, config)
    vector = vector_of(engine, query)
    if vector is None:
        return
    similar = add_gains(engine, query, cosines(rows_of(engine), vector), curve)
    scores = np.round(curve(similar), 6)
    threshold = min(max(float(scores[place]) + step, 0), 1)
    near = [row for row in allowed_rows(engine, query) if scores[row] >= threshold]
    near.sort(key=lambda row: (-float(similar[row]), row))
    near = near[: query.limit]
    if query.sort_by == "newest":
        near.sort(key=lambda row: (-int(engine.table.uploaded_days[row]), row))
    whole = engine.rank(replace(query, score_threshold=threshold))
    assert whole.rows.tolist() == near
    assert whole.scores.tolist() == scores[near].tolist()
    part = engine.rank(replace(query, score_threshold=threshold), 7, start=3)
    assert (part.rows.tolist(), part.total) == (near[3:7], len(near))


def test_thresholds_0_and_1_let_all_and_almost_nothing_through(engine):
    assert engine.rank(Query(text="sea", score_threshold=0)).total == N
    assert engine.rank(Query(text="sea", score_threshold=1)).total == 0
    browsing = Query(filter=PhotoFilter(after_date="2024-01-01"), score_threshold=1)
    assert engine.rank(browsing).total == N


# -- curves -------------------------------------------------------------------------------------


def test_browsing_scores_1_and_comes_by_id_or_by_date(engine):
    chosen = PhotoFilter(source="pexels")
    by_id = engine.search(Query(filter=chosen), per_page=100)
    assert ids([by_id]) == sorted(ids([by_id]))
    assert {hit.relevance_score for hit in by_id} == {1.0}
    newest = engine.search(Query(filter=chosen, sort_by="newest"), per_page=100)
    days = [hit.photo.uploaded_on for hit in newest]
    assert days == sorted(days, reverse=True)
    assert {hit.relevance_score for hit in newest} == {1.0}


def test_each_kind_of_query_has_its_own_curve(build):
    curves = {"text": Curve(2.0, -1.0), "image": Curve(3.0, 0.5), "both": Curve(9.0, -4.0)}
    engine = build(calibration=Calibration(**curves, source="test"))
    for query, kind in (
        (Query(text="sea"), "text"),
        (Query(photo_id=photo_id(5)), "image"),
        (Query(photo_id=photo_id(5), text="sea"), "both"),
        (Query(photo_id=photo_id(5), text="sea", text_alpha=0), "image"),
    ):
        ranking = engine.rank(query)
        similar = cosines(rows_of(engine), vector_of(engine, query))[ranking.rows]
        logits = curves[kind].slope * similar.astype(float) + curves[kind].intercept
        assert ranking.scores == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-6)


def test_a_steep_curve_changes_the_scores_and_not_the_order(build, exact):
    steep = Curve(1e6, -4e5)
    engine = build(calibration=Calibration(text=steep, image=steep, both=steep, source="test"))
    ranking = engine.rank(Query(text="sea"))
    assert set(ranking.scores.tolist()) == {0.0, 1.0}
    assert ranking.rows.tolist() == exact.rank(Query(text="sea")).rows.tolist()
