"""Scores where texts are read: what is written puts photos in order, and is no certainty."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.config.calibration import Calibration, Curve, WrittenCurve
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.errors import InputError
from searchlab.evaluation.calibration.query_fit import RankedPairs, WrittenFit, fit_written
from searchlab.models.protocol import unit_rows
from searchlab.models.shipped_calibration import calibrate
from searchlab.photos.table import PhotoTable
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.indexes import build_index
from searchlab.search.queries import Query
from searchlab.studies.calibration.written import measure_written, pair_auc
from tests.support.examples import examples

CURVE = Curve(14.0, -3.0)
CALIBRATION = Calibration(CURVE, CURVE, CURVE, source="test", above_even=0.15)
TITLES = ("Bird", "Lady Bird", "A river", "", "", "Owls at night", "bird house", "Small birds")
slopes = st.floats(0.01, 1e4)
shares = st.floats(0.01, 1)


@pytest.fixture(scope="module")
def engine(toy_model, make_table):
    table = make_table(*({} for _ in TITLES))
    empty = {"source_description": "", "alt_description": "", "file": "", "folder": ""}
    rows = [
        table.row(row) | empty | {"title": title, "source": "pexels" if row % 2 else "unsplash"}
        for row, title in enumerate(TITLES)
    ]
    config = Config(
        model="toy", model_id=toy_model.model_id, words=USUAL_WORDS, calibration=CALIBRATION
    )
    noise = np.random.default_rng(1).normal(size=(len(TITLES), toy_model.dim))
    index = build_index(unit_rows(noise.astype(np.float32)), config)
    return SearchEngine(PhotoTable.from_rows([rows]), index, toy_model, config)


def _losing(weight):
    return replace(CALIBRATION, written_share=weight, written_reach=2 * weight)


def scores_of(engine, query):
    ranking = engine.rank(query)
    return dict(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)), ranking


# -- the curve ----------------------------------------------------------------------------------


@settings(max_examples=examples(200), deadline=None)
@given(slope=slopes, intercept=st.floats(-30, 30), share=shares, data=st.data())
def test_scores_never_rise_down_a_ranking_and_are_the_usual_ones_up_to_even(
    slope, intercept, share, data
):
    cosines = np.sort(data.draw(st.lists(st.floats(-5, 5), min_size=2, max_size=20)))
    plain, written = Curve(slope, intercept), WrittenCurve(slope, intercept, share)
    usual, scores = plain(cosines), written(cosines)
    assert (np.diff(scores) >= 0).all()
    assert scores[usual <= 0.5].tolist() == usual[usual <= 0.5].tolist()
    assert (scores[usual > 0.5] >= 0.5).all()
    assert (scores <= usual + 1e-12).all()


@settings(max_examples=examples(200), deadline=None)
@given(
    slope=slopes,
    intercept=st.floats(-30, 30),
    share=shares,
    loss=st.floats(0, 5),
    first=st.floats(0, 5),
    score=st.floats(0.001, 0.999),
)
def test_the_cosine_of_a_score_has_it_unless_no_cosine_has(
    slope, intercept, share, loss, first, score
):
    curve = WrittenCurve(slope, intercept, share, loss, first)
    cosine = curve.cosine(score)
    if np.isinf(cosine):
        assert curve(np.array([1e9])) < score
    else:
        assert curve(np.array([cosine])) == pytest.approx(score, abs=1e-6)


def test_a_share_out_of_range_is_refused_and_one_changes_nothing():
    for wrong in (0, -1, 1.5, float("nan"), "much"):
        with pytest.raises(InputError, match="above_even must be"):
            replace(CALIBRATION, above_even=wrong)
    for wrong in (-0.1, float("nan"), "much"):
        for name in ("written_share", "written_reach"):
            with pytest.raises(InputError, match=f"{name} must be"):
                replace(CALIBRATION, **{name: wrong})
    plain = replace(CALIBRATION, above_even=1.0)
    assert not {"above_even", "written_share", "written_reach"} & {*plain.to_dict()}
    assert plain.curve("text", is_written=True) == CURVE
    weighed = replace(CALIBRATION, written_share=0.4, written_reach=0.7)
    for each in (CALIBRATION, weighed):
        assert Calibration.from_dict(each.to_dict()) == each


# -- an engine ----------------------------------------------------------------------------------


def test_a_word_of_the_query_in_a_title_is_no_certainty(engine):
    scores, ranking = scores_of(engine, Query(text="a bird"))
    assert ranking.rows[0] == 0  # the title that is the query
    assert 0.5 < scores[1] < 0.91
    assert max(scores.values()) < 0.91
    plain = replace(engine.config, calibration=replace(CALIBRATION, above_even=1.0))
    before = SearchEngine(engine.table, engine.index, engine.model, plain)
    certain, as_before = scores_of(before, Query(text="a bird"))
    assert certain[1] > 0.97
    assert as_before.rows.tolist() == ranking.rows.tolist()


def test_the_more_photos_have_the_words_the_less_a_photo_scores(engine):
    weighed = replace(CALIBRATION, written_share=0.4)
    config = replace(engine.config, calibration=weighed)
    weighing = SearchEngine(engine.table, engine.index, engine.model, config, words=engine.words)
    share = engine.words.match("bird").share
    assert share == 4 / 8
    assert engine.words.match("bird river").share == 4 / 8 * 1 / 8
    assert engine.words.match("zebra").share == engine.words.match("?!").share == 0
    lost = 0.4 * np.log1p(1000 * share)
    for text, less in (("bird", lost), ("zebra", 0)):
        (before, order), (after, weighed_order) = (
            scores_of(each, Query(text=text)) for each in (engine, weighing)
        )
        assert weighed_order.rows.tolist() == order.rows.tolist()
        for row, score in after.items():
            odds = before[row] / (1 - before[row]) * np.exp(-less)
            assert score == pytest.approx(odds / (1 + odds), abs=2e-5)


def test_the_more_of_a_query_is_written_somewhere_the_less_a_photo_scores(engine):
    config = replace(engine.config, calibration=replace(CALIBRATION, written_reach=0.7))
    losing = SearchEngine(engine.table, engine.index, engine.model, config, words=engine.words)
    matches = [engine.words.match(text) for text in ("bird", "bird zebra", "zebra", "birdd", "?!")]
    reaches = [found.reach for found in matches]
    assert reaches[0] == 1
    assert 0 < reaches[1] < 0.5  # what nobody has counts more than what many have
    assert reaches[2:] == [0, 0, 0]
    for text, reach in (("bird", 1), ("bird zebra", reaches[1]), ("zebra", 0)):
        (before, order), (after, other_order) = (
            scores_of(each, Query(text=text)) for each in (engine, losing)
        )
        assert other_order.rows.tolist() == order.rows.tolist()
        for row, score in after.items():
            if before[row] <= 0.5:
                odds = before[row] / (1 - before[row]) * np.exp(-0.7 * reach**2)
                assert score == pytest.approx(odds / (1 + odds), abs=2e-5)


@pytest.mark.parametrize("weight", [0, 0.4])
@pytest.mark.parametrize("text", ["a bird", "owl", "river bird", "zebra", "birdd"])
def test_a_filter_changes_no_score_also_where_it_hides_what_words_found(engine, text, weight):
    config = replace(engine.config, calibration=_losing(weight))
    engine = SearchEngine(engine.table, engine.index, engine.model, config, words=engine.words)
    scores, _ = scores_of(engine, Query(text=text))
    for source in ("pexels", "unsplash"):
        some, _ = scores_of(engine, Query(text=text, filter=PhotoFilter(source=source)))
        assert some == {row: scores[row] for row in some}


def test_a_query_that_nothing_is_written_about_has_the_curve_of_pictures(engine):
    assert engine.curve_of(Query(text="zebra"), matches=engine.words.match("zebra")) == CURVE
    written = engine.curve_of(Query(text="bird"), matches=engine.words.match("bird"))
    assert written == WrittenCurve(CURVE.slope, CURVE.intercept, 0.15)


def test_what_ships_says_what_texts_add():
    shipped = calibrate(Config()).calibration
    assert 0.3 < shipped.written_reach < 2
    assert 0.05 < shipped.above_even < 0.5
    assert 0.02 < shipped.written_share < 1


# -- fitting and measuring ----------------------------------------------------------------------


def drawn(n, seed, share=0.2, langs=("en",)):
    rng = np.random.default_rng(seed)
    seen = rng.normal(-1, 1.5, n)
    ranked = seen + rng.choice([0, 4, 11], n)
    query = np.arange(n) // 10
    of_query = np.array(langs)[query % len(langs)]
    is_written, none = np.ones(n, bool), np.zeros(n, bool)
    having = rng.choice([0, 0.001, 0.02], n // 10)[query]
    reach = rng.random(n // 10)[query]
    pairs = RankedPairs(ranked, seen, is_written, having, reach, none, query.astype(str), of_query)
    return pairs._replace(relevant=rng.random(n) < pairs.scores(WrittenFit(share, 0.3, 0.8)))


@pytest.mark.slow
def test_the_fit_finds_what_judgments_were_drawn_with():
    fit = fit_written([drawn(20_000, 0), drawn(20_000, 1)])
    assert fit[:2] == pytest.approx((0.2, 0.3), abs=0.03)
    assert fit.written_reach == pytest.approx(0.8, abs=0.2)


def test_the_fit_scores_as_the_curve_does():
    values = {"above_even": 0.2, "written_share": 0.3, "written_reach": 0.8}
    pairs, weighed = drawn(200, 0), replace(CALIBRATION, **values)
    scores = pairs.scores(WrittenFit(**values))
    columns = (pairs.ranked, pairs.shares, pairs.reaches, scores)
    for ranked, share, reach, score in zip(*columns, strict=True):
        curve = weighed.curve("text", is_written=True, share=share, reach=reach)
        cosine = (ranked - CURVE.intercept) / CURVE.slope
        assert curve(np.array([cosine]))[0] == pytest.approx(score, abs=1e-9)


@pytest.mark.slow
def test_a_left_out_set_is_measured_by_a_fit_that_has_not_seen_it():
    sets = {
        "sentences": drawn(2_000, 0, langs=("en", "de")),
        "words": drawn(2_000, 1, 0.9),
        "everyday": drawn(300, 2),
    }
    value, rows = measure_written(sets, least=60, samples=20, seed=0)
    fitted = {
        row["left_out"]: WrittenFit(*(row[name] for name in WrittenFit._fields))
        for row in rows
        if row["scored_by"] == "fitted"
    }
    assert list(fitted) == [*sets, "de", "en"]
    assert fitted["words"] == fit_written([sets["sentences"]])
    assert fitted["sentences"] == fit_written([sets["words"]])
    assert value == fitted["everyday"]
    ece = {row["scored_by"]: row["ece"]["mean"] for row in rows if row["left_out"] == "everyday"}
    assert ece["fitted"] < ece["as ranked"]


def test_pair_auc_is_the_share_of_pairs_in_the_right_order():
    rng = np.random.default_rng(0)
    scores, relevant = rng.integers(0, 5, 60) / 5, rng.random(60) < 0.4
    good, bad = scores[relevant][:, None], scores[~relevant][None]
    expected = ((good > bad) + (good == bad) / 2).mean()
    auc = pair_auc(scores, relevant, np.arange(60).astype(str), samples=50, seed=0)
    assert auc.mean == pytest.approx(expected)
    assert auc.low < auc.mean < auc.high
