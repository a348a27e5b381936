"""Fitting the curve of text queries, and refining it on judgments of one's own."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.config.calibration import Calibration, Curve
from searchlab.config.query_weights import QueryWeights
from searchlab.errors import InputError
from searchlab.evaluation.calibration.query_fit import (
    JudgedPairs,
    fit_text,
    judged_pairs,
    predict,
    refine,
)
from searchlab.evaluation.calibration.scored_queries import ScoredQueries

CURVE = Curve(15.0, -3.0)
WEIGHTS = QueryWeights(background=-8.0, familiarity=0.3, length=-0.5, at_large="test")
CALIBRATION = Calibration(CURVE, CURVE, CURVE, "test", WEIGHTS)


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    cosines = rng.uniform(0, 0.6, n)
    traits = np.column_stack(
        [rng.uniform(0.1, 0.4, n), rng.uniform(-6, -2, n), rng.uniform(0, 3, n)]
    )
    logits = 15 * cosines - 3 + traits @ [-8.0, 0.3, -0.5]
    relevant = rng.random(n) < 1 / (1 + np.exp(-logits))
    names = np.arange(n).astype(str)
    return JudgedPairs(cosines, traits, relevant, names, np.full(n, "en"))


def test_a_fit_finds_the_weights_that_drew_the_judgments():
    fit = fit_text([drawn(60_000), drawn(20_000, seed=1)], "test")
    assert fit.curve.slope == pytest.approx(15, rel=0.05)
    assert fit.weights.background == pytest.approx(-8, rel=0.1)
    assert fit.weights.familiarity == pytest.approx(0.3, rel=0.2)
    assert fit.weights.length == pytest.approx(-0.5, rel=0.1)
    fresh = drawn(20_000, seed=2)
    assert predict(fresh, fit).mean() == pytest.approx(fresh.relevant.mean(), abs=0.01)


def test_each_set_counts_the_same():
    few, many = drawn(200), drawn(20_000, seed=1)
    # In the small set everything is relevant as often as not, whatever its cosine.
    few = few._replace(relevant=np.arange(200) % 2 == 0)
    fit = fit_text([few, many], "test")
    mixed = predict(few, fit).mean(), predict(many, fit).mean()
    assert mixed[0] - few.relevant.mean() == pytest.approx(
        many.relevant.mean() - mixed[1], abs=0.01
    )


def test_pairs_of_one_kind_and_cosines_that_mislead_are_refused():
    pairs = drawn(500)
    with pytest.raises(InputError, match="only one kind"):
        fit_text([pairs._replace(relevant=np.ones(500, dtype=bool))], "test")
    with pytest.raises(InputError, match="must rise with the cosine"):
        fit_text([pairs._replace(cosines=-pairs.cosines)], "test")


def test_queries_of_models_that_tell_no_traits_are_refused():
    scored = ScoredQueries(
        "text", ("en",), ("a",), np.zeros((1, 2), np.float32), np.zeros((1, 2), np.int16)
    )
    with pytest.raises(InputError, match="take a model like mini"):
        judged_pairs(scored)


# -- judgments of one's own ---------------------------------------------------------------------


def scores_of(calibration, pairs):
    query = calibration.query
    weights = [query.background, query.familiarity, query.length]
    logits = calibration.text.slope * pairs.cosines + calibration.text.intercept
    return 1 / (1 + np.exp(-(logits + pairs.traits @ weights)))


def test_many_judgments_correct_scores_and_few_move_them_a_little():
    pairs = drawn(4_000)
    wrong = replace(CALIBRATION, text=Curve(15.0, -5.0))
    before = scores_of(wrong, pairs)
    refined = refine(wrong, before, pairs.relevant, source="mine")
    assert scores_of(refined, pairs).mean() == pytest.approx(pairs.relevant.mean(), abs=0.01)
    assert refined.source == "test, refined on mine"
    few = refine(wrong, before[:3], np.ones(3, dtype=bool), source="mine")
    assert abs(scores_of(few, pairs) - before).mean() < 0.1
    assert few.image == wrong.image


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30),
)
def test_refined_scores_rise_with_the_cosine_whatever_the_judgments(judged):
    scores, relevant = (np.array(column) for column in zip(*judged, strict=True))
    refined = refine(CALIBRATION, scores.astype(float), relevant, source="mine")
    assert refined.text.slope > 0
    at = refined.text(np.linspace(-1, 1, 20))
    assert (np.diff(at) >= 0).all()


def test_nothing_judged_is_refused():
    with pytest.raises(InputError, match="must share one shape"):
        refine(CALIBRATION, np.array([]), np.array([], dtype=bool), source="mine")
