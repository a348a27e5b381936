"""Fitting the curve of text queries, and refining it on judgments of one's own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.config.calibration import Calibration, Curve, QueryWeights
from searchlab.errors import InputError
from searchlab.evaluation.calibration.own_judgments import refine_calibration
from searchlab.evaluation.calibration.query_fit import (
    JudgedPairs,
    fit_text,
    judged_pairs,
    predict,
    refine,
)
from searchlab.evaluation.calibration.scored_queries import ScoredQueries
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.models import load_model
from searchlab.models.protocol import unit_rows
from searchlab.models.shipped_calibration import calibrate
from searchlab.photos.photo import photo_id_of
from searchlab.search.engine import SearchEngine
from searchlab.search.indexes import build_index
from searchlab.search.queries import Query

MINI = load_model("mini")
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


@pytest.mark.slow
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
    near = np.argsort(-before)[500:503]
    few = refine(wrong, before[near], np.ones(3, dtype=bool), source="mine")
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


# -- on a library's judgments -------------------------------------------------------------------


def test_refining_on_judgments_brings_the_mean_score_to_the_share_that_is_relevant(make_table):
    rng = np.random.default_rng(5)
    photos = unit_rows(rng.normal(size=(40, 256)) + 2 * MINI.encode_texts(["a dog"]))
    records = [{"source": "x", "source_photo_id": str(n), "file": f"/{n}"} for n in range(40)]
    photo_ids = sorted(photo_id_of("x", str(n)) for n in range(40))
    table = make_table(*({"photo_id": photo_id} for photo_id in photo_ids))
    config = calibrate(Config())
    engine = SearchEngine(table, build_index(photos, config), MINI, config)
    ids = table.photo_ids(range(40))
    texts = ["a dog", "ein Hund", "a cat", "a red boat"]
    queries = tuple(LabelledQuery(f"q{n}", "en", "own", text) for n, text in enumerate(texts))
    qrels = {f"q{n}": dict.fromkeys(ids, 1 if n < 3 else 0) for n in range(3)}
    qrels["q3"] = {photo: int(place == 0) for place, photo in enumerate(ids)}
    judged = Dataset(
        name="mine",
        revision="1",
        folder=Path(),
        photos=None,
        queries=queries,
        qrels=qrels,
        records=tuple(records),
    )
    refined = refine_calibration(engine, judged)
    assert (refined.n_queries, refined.n_pairs) == (4, 40)
    off = abs(refined.mean_before - refined.share_relevant)
    assert abs(refined.mean_after - refined.share_relevant) < off / 2
    better = SearchEngine(
        table, engine.index, MINI, replace(config, calibration=refined.calibration)
    )
    before, after = (each.rank(Query(text="a dog")) for each in (engine, better))
    assert before.rows.tolist() == after.rows.tolist()
    assert after.scores.mean() > before.scores.mean()
    assert better.config.config_id != engine.config.config_id
