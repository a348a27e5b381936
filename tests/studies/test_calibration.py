import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.config.calibration import Curve
from searchlab.errors import InputError
from searchlab.evaluation.calibration.scored_queries import (
    UNJUDGED,
    ScoredQueries,
    halves,
    score_queries,
)
from searchlab.studies.calibration.reliability import measure_reliability
from searchlab.studies.calibration.study import measure, measure_transfer
from searchlab.studies.calibration.thresholds import (
    Shown,
    bootstrap_share,
    separation,
    threshold_for,
    transfer,
)
from searchlab.studies.calibration.thresholds import unanswerable as unanswerable_rows
from searchlab.studies.query_sets import QuerySet
from tests.support.judged_kinds import judged_photos


def clustered_pairs(*, clusters, seed, bias=0.0):
    """Ten pairs a cluster, whose scores are the true log-odds less a bias."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-2, 1.5, size=(clusters, 10))
    relevant = rng.random(logits.shape) < 1 / (1 + np.exp(-(logits + bias)))
    names = np.repeat(np.arange(clusters), 10)
    return 1 / (1 + np.exp(-logits)).ravel(), relevant.ravel(), names


# -- reliability ------------------------------------------------------------------------------


def test_reliability_matches_hand_values():
    measured = measure_reliability(
        [0.05, 0.05, 0.95, 0.85], [False, True, True, True], clusters=["a", "b", "c", "d"]
    )
    assert measured.ece_plain == pytest.approx(0.5 * 0.45 + 0.25 * 0.15 + 0.25 * 0.05)
    assert measured.brier.mean == pytest.approx((0.05**2 + 0.95**2 + 0.05**2 + 0.15**2) / 4)
    assert measured.skill == pytest.approx(1 - measured.brier.mean / (0.75 * 0.25))
    assert measured.base_rate == 0.75
    assert [bar.n_pairs for bar in measured.bars] == [2, 1, 1]
    assert (measured.n_queries, measured.n_pairs) == (4, 4)
    json.dumps(measured.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_perfect_scores_show_the_error_that_chance_alone_makes():
    plain, chance, covered = [], [], 0
    for seed in range(40):
        scores, relevant, names = clustered_pairs(clusters=80, seed=seed)
        measured = measure_reliability(scores, relevant, clusters=names, samples=200, seed=seed)
        plain.append(measured.ece_plain)
        chance.append(measured.ece_chance)
        covered += measured.ece.low == 0
        assert measured.ece.mean <= measured.ece_plain
    assert np.mean(chance) == pytest.approx(np.mean(plain), rel=0.15)
    assert covered >= 34


@pytest.mark.slow
def test_interval_of_the_error_covers_the_true_one():
    far = clustered_pairs(clusters=40_000, seed=99, bias=0.5)
    true = measure_reliability(*far[:2], clusters=far[2], samples=10).ece_plain
    covered, estimates = 0, []
    for seed in range(40):
        scores, relevant, names = clustered_pairs(clusters=150, seed=seed, bias=0.5)
        measured = measure_reliability(scores, relevant, clusters=names, samples=200, seed=seed)
        covered += measured.ece.low <= true <= measured.ece.high
        estimates.append(measured.ece.mean)
    assert covered >= 33
    assert np.mean(estimates) == pytest.approx(true, abs=0.01)


def test_pairs_of_one_cluster_are_drawn_together():
    scores, relevant, names = clustered_pairs(clusters=60, seed=0)
    once = measure_reliability(scores, relevant, clusters=names)
    copied = measure_reliability(
        np.tile(scores, 4), np.tile(relevant, 4), clusters=np.tile(names, 4)
    )
    alone = measure_reliability(
        np.tile(scores, 4), np.tile(relevant, 4), clusters=np.arange(4 * len(names))
    )
    assert copied.brier == pytest.approx(once.brier)
    assert alone.brier.high - alone.brier.low < 0.7 * (once.brier.high - once.brier.low)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_figures_stay_in_range_for_any_scores(pairs):
    scores, relevant = zip(*pairs, strict=True)
    measured = measure_reliability(scores, relevant, clusters=np.arange(len(pairs)) % 3, samples=20)
    for interval in (measured.ece, measured.brier):
        assert 0 <= interval.low <= interval.high <= 1
    assert all(0 <= bar.low <= bar.high <= 1 for bar in measured.bars)
    assert sum(bar.n_pairs for bar in measured.bars) == len(pairs)


@pytest.mark.parametrize(
    ("scores", "relevant", "clusters", "message"),
    [
        ([1.2], [True], ["a"], "must lie from 0 to 1"),
        ([math.nan], [True], ["a"], "must lie from 0 to 1"),
        ([], [], [], "share one shape"),
        ([0.5, 0.5], [True], ["a", "b"], "share one shape"),
        ([0.5], [True], ["a", "b"], "share one shape"),
    ],
)
def test_pairs_that_do_not_fit_together_are_refused(scores, relevant, clusters, message):
    with pytest.raises(InputError, match=message):
        measure_reliability(scores, relevant, clusters=clusters)


# -- thresholds -------------------------------------------------------------------------------


def shown(*pairs):
    scores, relevant = zip(*pairs, strict=True)
    names = [str(place) for place in range(len(pairs))]
    return Shown(np.array(scores), np.array(relevant), names)


def test_threshold_is_the_lowest_that_is_precise_enough():
    photos = shown((0.9, True), (0.8, False), (0.7, True), (0.6, True), (0.5, False), (0.4, False))
    assert threshold_for(photos, 0.75, least=1) == 0.6
    assert threshold_for(photos, 0.5, least=1) == 0.4
    assert threshold_for(photos, 1.0, least=1) == 0.9
    assert threshold_for(photos, 1.0, least=2) is None


def test_photos_of_equal_score_are_shown_together():
    photos = shown((0.9, True), (0.8, True), (0.8, False), (0.8, False))
    assert threshold_for(photos, 0.6, least=1) == 0.9
    assert threshold_for(photos, 0.5, least=1) == 0.8


@pytest.mark.parametrize("precision", [0, -0.1, 1.1, math.nan])
def test_precision_that_is_none_is_refused(precision):
    with pytest.raises(InputError, match="precision must be above 0"):
        threshold_for(shown((0.5, True)), precision)


@pytest.mark.slow
def test_threshold_transfers_between_scales_only_where_scores_are_calibrated():
    rng = np.random.default_rng(0)
    logits = rng.normal(-1, 1.5, size=4000)
    relevant = rng.random(4000) < 1 / (1 + np.exp(-logits))
    names = [str(place // 10) for place in range(4000)]
    scores = 1 / (1 + np.exp(-logits))
    steep, mild = Curve(20.0, -8.0), Curve(4.0, -3.0)
    cosines = {
        "steep": (logits - steep.intercept) / steep.slope,
        "mild": (logits - mild.intercept) / mild.slope,
    }
    bare = {name: Shown(values, relevant, names) for name, values in cosines.items()}
    calibrated = {name: Shown(scores, relevant, names) for name in cosines}
    good = {
        (row["chosen_on"], row["used_with"]): row for row in transfer(calibrated, calibrated, 0.6)
    }
    bad = {(row["chosen_on"], row["used_with"]): row for row in transfer(bare, bare, 0.6)}
    assert all(row["within"] and abs(row["error"]) < 0.01 for row in good.values())
    assert bad["mild", "mild"]["within"]
    # Steep cosines all lie below the mild model's threshold, and mild ones all above the other.
    assert bad["mild", "steep"]["n_shown"] < 100
    assert bad["steep", "mild"]["error"] < -0.1
    assert not bad["steep", "mild"]["within"]


def test_model_that_shows_nothing_above_a_threshold_has_no_precision():
    silent = shown(*[(0.1, False)] * 40)
    loud = shown(*[(0.9, True)] * 40)
    rows = transfer({"loud": loud, "silent": silent}, {"loud": loud, "silent": silent}, 0.5)
    by_pair = {(row["chosen_on"], row["used_with"]): row for row in rows}
    assert by_pair["loud", "silent"]["n_shown"] == 0
    assert by_pair["loud", "silent"]["precision"] is None
    assert by_pair["silent", "loud"]["threshold"] is None


def test_share_is_a_mean_and_its_interval_holds_it():
    hits = np.array([True, False, True, True])
    share = bootstrap_share(hits, ["a", "a", "b", "c"])
    assert share.mean == 0.75
    assert share.low <= 0.75 <= share.high
    assert share.low < share.high


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from("abcd")),
        min_size=1,
        max_size=30,
    )
)
def test_separation_is_the_share_of_pairs_in_order(queries):
    best, left, about = zip(*queries, strict=True)
    by_hand = np.mean([(one > other) + 0.5 * (one == other) for one in best for other in left])
    measured = separation(np.array(best) / 5, np.array(left) / 5, about, samples=20)
    assert measured.mean == pytest.approx(by_hand, abs=1e-6)
    assert 0 <= measured.low <= measured.high <= 1


def test_queries_without_answers_are_told_by_the_best_photo_that_is_left():
    scored = ScoredQueries(
        kind="text",
        langs=("en", "fr"),
        cluster_ids=("a", "b"),
        cosines=np.array([[0.9, 0.1, 0.2], [0.3, 0.8, 0.7]], dtype=np.float32),
        grades=np.array([[2, UNJUDGED, 0], [UNJUDGED, 1, 1]], dtype=np.int8),
    )
    by_lang, thresholds = unanswerable_rows(scored, Curve(10.0, -5.0), samples=20, seed=0)
    assert [row["lang"] for row in by_lang] == ["all", "en", "fr"]
    assert by_lang[0]["auc"]["mean"] == 1
    at_half = next(row for row in thresholds if row["threshold"] == 0.5)
    assert at_half["answered"]["mean"] == 1
    assert at_half["false_answers"]["mean"] == 0


# -- judged queries ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collection(make_table):
    return judged_photos(make_table)


def test_scores_of_the_lab_are_those_that_are_served(collection):
    engines, query_set = collection
    engine = engines["sharp"]
    curve = engine.config.calibration.curve("text")
    for dataset in query_set.each():
        scored = score_queries(engine, dataset)
        near = scored.top(5)
        for place in (0, 17, 60):
            ranking = engine.rank(dataset.queries[place].query(), 5)
            mine = near.query == place
            assert curve(near.cosines[mine]) == pytest.approx(ranking.scores, abs=2e-6)
            photos = engine.table.photo_ids(ranking.rows)
            grades = dataset.qrels[dataset.queries[place].query_id]
            assert (near.grades[mine] >= 1).tolist() == [photo in grades for photo in photos]


def test_a_reference_photo_is_never_scored_as_its_own_answer(collection):
    engines, query_set = collection
    scored = score_queries(engines["sharp"], query_set.similar)
    own = [engines["sharp"].table.row_of(photo_id) for photo_id in scored.cluster_ids]
    assert np.isneginf(scored.cosines[np.arange(len(scored)), own]).all()
    assert len(scored.pairs().cosines) == len(scored) * (scored.cosines.shape[1] - 1)


def test_halves_hold_each_query_once_and_a_photo_stays_on_its_side_in_every_dataset(collection):
    _, query_set = collection
    first, second = query_set.halves(seed=3)
    sides = []
    for half in (first, second):
        photos = set()
        for dataset in half.each():
            scored_about = {q.photo_id or min(dataset.qrels[q.query_id]) for q in dataset.queries}
            photos |= scored_about
        sides.append(photos)
    assert not sides[0] & sides[1]
    ids = [query.query_id for half in (first, second) for query in half.text.queries]
    assert sorted(ids) == sorted(query.query_id for query in query_set.text.queries)


def test_queries_about_one_photo_cannot_be_halved(collection):
    _, query_set = collection
    with pytest.raises(InputError, match="photos of both halves"):
        halves(query_set.text.only([query_set.text.queries[0].query_id]), seed=0)


def test_queries_of_several_tasks_are_not_scored_together(collection):
    engines, query_set = collection
    mixed = query_set.text.derive(
        "mixed",
        [*query_set.text.queries, *query_set.similar.queries],
        {**query_set.text.qrels, **query_set.similar.qrels},
    )
    with pytest.raises(InputError, match="must be of one task"):
        score_queries(engines["sharp"], mixed)


@pytest.mark.slow
def test_the_lab_finds_fitted_curves_reliable_and_bare_ones_not(collection):
    engines, query_set = collection
    measured = measure(engines["sharp"], query_set, samples=100)
    for kind in ("text", "image", "both"):
        fitted = measured["metrics"][f"ece.{kind}.top10 by fitted"]
        bare = measured["metrics"][f"ece.{kind}.top10 by uncalibrated"]
        assert fitted < 0.1 < bare
    langs = {row["lang"] for row in measured["reliability"] if row["kind"] == "text"}
    assert langs == {"all", "en", "fr"}
    assert measured["metrics"]["auc"] > 0.6
    assert measured["judged_calibration"] is None
    json.dumps(measured, allow_nan=False)


@pytest.mark.slow
def test_the_lab_finds_the_same_again(collection):
    engines, query_set = collection
    once, again = (measure(engines["sharp"], query_set, samples=30, seed=4) for _ in range(2))
    assert once == again
    assert measure(engines["sharp"], query_set, samples=30, seed=5) != once


@pytest.mark.slow
def test_where_photos_were_refused_the_lab_reads_judged_ones_by_themselves(collection):
    engines, query_set = collection
    photos = engines["sharp"].table.photo_ids(range(0, 90, 3))

    def refused(dataset):
        qrels = {
            query.query_id: {p: 0 for p in photos if p != query.photo_id}
            | dataset.qrels[query.query_id]
            for query in dataset.queries
        }
        return replace(dataset, qrels=qrels)

    measured = measure(
        engines["sharp"],
        QuerySet(
            text=refused(query_set.text),
            similar=refused(query_set.similar),
            steered=refused(query_set.steered),
        ),
        samples=30,
    )
    assert measured["judged_calibration"] is not None
    read = {row["reading"] for row in measured["reliability"]}
    assert read == {"top10", "judged10", "all"}
    base = measured["metrics"]
    assert base["base_rate.text.judged10"] > base["base_rate.text.all"]


def test_a_swap_of_models_keeps_what_a_calibrated_threshold_means(collection):
    engines, query_set = collection
    measured = measure_transfer(engines, query_set, precisions=[0.5], samples=100)
    by_pair = {(r["scale"], r["chosen_on"], r["used_with"]): r for r in measured["rows"]}
    assert len(by_pair) == 8
    # Cosines of `lifted` are all higher, so a threshold of `sharp` shows nearly everything.
    bare = by_pair["cosine", "sharp", "lifted"]
    calibrated = by_pair["calibrated", "sharp", "lifted"]
    assert abs(calibrated["error"]) < abs(bare["error"])
    assert measured["metrics"]["error.calibrated@0.5"] < measured["metrics"]["error.cosine@0.5"]
    json.dumps(measured, allow_nan=False)
