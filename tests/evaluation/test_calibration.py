from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from searchlab.config import Config
from searchlab.config.calibration import FITTED_TEXT_ALPHA, UNCALIBRATED, Calibration, Curve
from searchlab.errors import DataError, InputError
from searchlab.evaluation.calibration.curves import fit_curve, reliability
from searchlab.evaluation.calibration.fit import fit_calibration, fit_top
from searchlab.evaluation.calibration.scored_queries import ScoredQueries, halves, score_queries
from searchlab.evaluation.datasets import Dataset, LabelledQuery
from searchlab.models import shipped_calibration as calibration
from searchlab.models.shipped_calibration import calibrate, default_calibration, save_calibration
from searchlab.photos.photo import photo_id_of
from searchlab.search.engine import SearchEngine
from searchlab.search.indexes.exact import ExactIndex
from searchlab.search.queries import DEFAULT_TEXT_ALPHA, Query


def drawn_from(curve, *, n, seed):
    rng = np.random.default_rng(seed)
    cosines = rng.normal(0.2, 0.15, size=n).clip(-1, 1)
    return cosines, rng.random(n) < curve(cosines)


@pytest.mark.slow
def test_recovers_the_curve_that_made_the_data():
    cosines, relevant = drawn_from(Curve(12.0, -5.0), n=30_000, seed=0)
    curve = fit_curve(cosines, relevant)
    assert curve.slope == pytest.approx(12, rel=0.05)
    assert curve.intercept == pytest.approx(-5, rel=0.05)


def test_mean_score_is_the_share_of_relevant_pairs():
    cosines, relevant = drawn_from(Curve(20.0, -9.0), n=20_000, seed=1)
    assert fit_curve(cosines, relevant)(cosines).mean() == pytest.approx(relevant.mean(), rel=1e-2)


@pytest.mark.slow
def test_thinned_negatives_with_weights_give_the_curve_of_all_pairs():
    cosines, relevant = drawn_from(Curve(12.0, -7.0), n=200_000, seed=2)
    whole = fit_curve(cosines, relevant)
    sampled = relevant | (np.random.default_rng(0).random(len(relevant)) < 0.05)
    weights = np.where(relevant[sampled], 1.0, 20.0)
    thinned = fit_curve(cosines[sampled], relevant[sampled], weights=weights)
    assert thinned.slope == pytest.approx(whole.slope, rel=0.05)
    assert thinned.intercept == pytest.approx(whole.intercept, rel=0.05)


def test_a_relevance_that_rises_slowly_is_fitted_too():
    """From 45 % at a cosine of -1 to 55 % at 1."""
    cosines, relevant = [-1, -1, 1, 1], [True, False, True, False]
    curve = fit_curve(cosines, relevant, weights=[45e3, 55e3, 55e3, 45e3])
    assert curve.slope == pytest.approx(np.log(55 / 45), rel=1e-3)
    assert curve.intercept == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.inf, np.nan])
def test_a_pair_that_stands_for_none_is_refused(weight):
    with pytest.raises(InputError, match="weights finite and above 0"):
        reliability([0.2, 0.8], [False, True], weights=[1.0, weight])


def test_weights_stand_for_repeated_pairs():
    cosines, relevant = [0.1, 0.3, 0.2, 0.5], [False, False, True, True]
    weighted = fit_curve(cosines, relevant, weights=[3, 1, 1, 2])
    repeated = fit_curve([0.1] * 3 + [0.3, 0.2] + [0.5] * 2, [False] * 4 + [True] * 3)
    assert weighted.slope == pytest.approx(repeated.slope, rel=1e-5)


def test_the_fit_is_the_least_loss_on_smoothed_targets():
    """Computed anew with SciPy: of few pairs the smoothing moves the curve a good deal."""
    cosines = np.array([0.10, 0.15, 0.18, 0.22, 0.25, 0.31])
    relevant = np.array([False, False, True, False, True, True])
    targets = np.where(relevant, 4 / 5, 1 / 5)  # three of each: (3 + 1) / (3 + 2) and 1 / (3 + 2)

    def loss(line):
        logits = line[0] * cosines + line[1]
        return np.sum(np.logaddexp(0, logits) - targets * logits)

    least = minimize(loss, [10.0, -2.0], tol=1e-12).x
    curve = fit_curve(cosines, relevant)
    assert [curve.slope, curve.intercept] == pytest.approx(least, rel=1e-3)


def test_classes_that_do_not_overlap_give_a_finite_slope():
    curve = fit_curve([0.1, 0.2, 0.7, 0.8], [False, False, True, True])
    assert 1 < curve.slope < 100
    assert curve(np.array([0.1]))[0] < 0.3 < 0.7 < curve(np.array([0.8]))[0]


@pytest.mark.parametrize(
    ("cosines", "relevant", "message"),
    [
        ([0.1, 0.9], [True, False], "must rise with the cosine"),
        ([0.5, 0.5], [True, False], "must rise with the cosine"),
        ([0.5, 0.6], [True, True], "only one kind"),
        ([], [], "share one shape"),
        ([0.5], [True, False], "share one shape"),
        ([0.5, np.nan], [True, False], "must be finite"),
    ],
)
def test_data_without_a_curve_is_refused(cosines, relevant, message):
    with pytest.raises(InputError, match=message):
        fit_curve(cosines, relevant)


def test_reliability_matches_hand_values():
    measured = reliability([0.05, 0.05, 0.95, 0.85], [False, True, True, True])
    assert measured.base_rate == 0.75
    assert [one[1:] for one in measured.bins] == [(0.5, 2), (1.0, 1), (1.0, 1)]
    assert [one.mean_score for one in measured.bins] == pytest.approx([0.05, 0.85, 0.95])
    assert measured.ece == pytest.approx(0.5 * 0.45 + 0.25 * 0.15 + 0.25 * 0.05)
    assert measured.brier == pytest.approx((0.05**2 + 0.95**2 + 0.05**2 + 0.15**2) / 4)


def test_true_probabilities_are_reliable():
    curve = Curve(10.0, -3.0)
    cosines, relevant = drawn_from(curve, n=100_000, seed=3)
    assert reliability(curve(cosines), relevant).ece < 0.01
    assert reliability(Curve(10.0, 0.0)(cosines), relevant).ece > 0.2


def test_score_of_one_falls_into_the_last_bin():
    assert reliability([1.0, 0.0], [True, False], bins=4).bins == [(0.0, 0.0, 1), (1.0, 1.0, 1)]


def test_scores_of_one_share_a_bin_with_those_just_below():
    assert len(reliability([1.0, 0.95], [True, False]).bins) == 1


def test_a_score_outside_its_range_is_refused_and_so_are_no_bins():
    assert reliability([0.2, 0.6], [False, True], bins=1).bins == [(0.4, 0.5, 2)]
    for score, bins in ((1.2, 10), (0.2, 0)):
        with pytest.raises(InputError, match=f"must lie from 0 to 1.* in {bins} bins"):
            reliability([score], [True], bins=bins)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_bins_hold_every_score_and_the_errors_stay_in_range(pairs):
    scores, relevant = zip(*pairs, strict=True)
    measured = reliability(scores, relevant)
    assert sum(one.n_pairs for one in measured.bins) == len(pairs)
    assert 0 <= measured.ece <= 1
    assert 0 <= measured.brier <= 1


class Lookup:
    """Embeds the text "7" next to the photo in row 7."""

    name = "lookup"
    model_id = "lookup-0123456789ab"

    def __init__(self, vectors):
        self.vectors = vectors
        self.dim = vectors.shape[1]

    def encode_texts(self, texts):
        rng = np.random.default_rng(0)
        near = self.vectors[[int(text) for text in texts]]
        near = near + rng.normal(size=near.shape).astype(np.float32) * 0.12
        return near / np.linalg.norm(near, axis=1, keepdims=True)


@pytest.fixture
def task(make_table):
    """Photos of some kinds; each query is about one photo, and its whole kind is relevant."""

    def build(*, n_photos=120, kinds=40):
        rng = np.random.default_rng(0)
        centers = rng.normal(size=(kinds, 32))
        kind_of = np.arange(n_photos) % kinds
        vectors = centers[kind_of] + 0.5 * rng.normal(size=(n_photos, 32))
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        ids = sorted(photo_id_of("kinds", str(number)) for number in range(n_photos))
        table = make_table(*({"photo_id": photo_id} for photo_id in ids))
        config = Config(model="lookup", model_id="lookup-0123456789ab")
        engine = SearchEngine(table, ExactIndex(vectors), Lookup(vectors), config)
        return engine, Dataset(
            name="kinds",
            revision="r1",
            folder=Path(),
            photos=None,
            queries=tuple(
                LabelledQuery(f"q{row:03}", "en", "graded", str(row)) for row in range(n_photos)
            ),
            qrels={
                f"q{row:03}": {ids[other]: 1 for other in np.flatnonzero(kind_of == kind_of[row])}
                for row in range(n_photos)
            },
            records=tuple(
                {"source": "kinds", "source_photo_id": str(number)} for number in range(n_photos)
            ),
        )

    return build


def similar_of(dataset):
    """The same kinds, asked for by a photo."""
    queries, qrels = [], {}
    for query in dataset.queries:
        grades = dict(dataset.qrels[query.query_id])
        photo_id = sorted(grades)[0]
        if len(grades) > 1 and photo_id not in qrels:
            del grades[photo_id]
            queries.append(LabelledQuery(photo_id, "zxx", "graded", photo_id=photo_id))
            qrels[photo_id] = grades
    return dataset.derive("kinds-similar", queries, qrels)


def steered_of(dataset):
    """The same kinds, asked for by a photo and words."""
    queries, qrels = [], {}
    for query in dataset.queries:
        grades = dict(dataset.qrels[query.query_id])
        photo_id = sorted(grades)[-1]
        del grades[photo_id]
        queries.append(replace(query, photo_id=photo_id))
        qrels[query.query_id] = grades
    return dataset.derive("kinds-steered", queries, qrels)


def test_calibration_of_an_engine_is_reliable_on_held_out_queries(task):
    engine, dataset = task()
    first, second = halves(dataset, seed=0)
    similar, steered = similar_of(dataset), steered_of(dataset)
    calibration = fit_calibration(
        engine,
        first,
        similar=halves(similar, seed=0)[0],
        steered=halves(steered, seed=0)[0],
    )
    assert calibration.source == f"kinds@{first.revision}"
    held_out = (second, halves(similar, seed=0)[1], halves(steered, seed=0)[1])
    for part in held_out:
        scored = score_queries(engine, part)
        near, far = scored.top(), scored.pairs()
        curve = calibration.curve(scored.kind)
        assert reliability(curve(near.cosines), near.grades >= 1).ece < 0.15
        assert reliability(curve(far.cosines), far.grades >= 1).ece < 0.03


def test_without_steered_queries_their_curve_is_the_mean_of_the_other_two(task):
    engine, dataset = task()
    calibration = fit_calibration(engine, dataset, similar=similar_of(dataset))
    assert calibration.both.slope == pytest.approx(
        (calibration.text.slope + calibration.image.slope) / 2
    )
    assert calibration.both.intercept == pytest.approx(
        (calibration.text.intercept + calibration.image.intercept) / 2
    )


def test_without_queries_by_photos_the_text_curve_serves_images(task):
    calibration = fit_calibration(*task())
    assert calibration.image == calibration.both == calibration.text


def test_calibration_is_fitted_on_the_ten_nearest_photos_of_each_query(task):
    engine, dataset = task()
    cosines, relevant = [], []
    ids = engine.table.photo_ids(range(len(engine.table)))
    for query in dataset.queries:
        neighbors = engine.index.search(engine.query_vector(query.query())[np.newaxis], 10)
        cosines += neighbors.scores[0].tolist()
        relevant += [ids[row] in dataset.qrels[query.query_id] for row in neighbors.rows[0]]
    by_hand = fit_curve(cosines, relevant)
    neighbors = fit_calibration(engine, dataset).text
    assert neighbors.slope == pytest.approx(by_hand.slope, rel=1e-4)
    assert neighbors.intercept == pytest.approx(by_hand.intercept, rel=1e-4)


def test_photos_that_nobody_judged_are_passed_over_where_only_judged_ones_count(task):
    engine, dataset = task()
    ids = engine.table.photo_ids(range(len(engine.table)))
    refused = {
        query_id: {**dict.fromkeys(ids[::4], 0), **grades}
        for query_id, grades in dataset.qrels.items()
    }
    judged = replace(dataset, qrels=refused)
    scored = score_queries(engine, judged).judged().top()
    assert set(scored.grades.tolist()) == {0, 1}
    both = (fit_calibration(engine, judged, judged_only=only).text for only in (False, True))
    everything, only_judged = both
    assert only_judged(np.array([0.4])) > everything(np.array([0.4]))


def test_cosines_that_say_nothing_give_the_share_of_relevant_photos():
    misled = ScoredQueries(
        kind="image",
        langs=("zxx", "zxx"),
        cluster_ids=("a", "b"),
        cosines=np.array([[0.9, 0.1, 0.5, 0.4], [0.8, 0.2, 0.6, 0.7]], dtype=np.float32),
        grades=np.array([[0, 1, 0, -1], [0, 1, -1, 0]], dtype=np.int8),
    )
    curve = fit_top(misled)
    assert curve.slope > 0
    assert curve(np.array([0.0, 1.0])) == pytest.approx([0.25, 0.25], abs=1e-3)


def test_queries_none_of_whose_photos_is_relevant_nearby_are_refused(task):
    engine, dataset = task()
    with pytest.raises(InputError, match="only one kind"):
        fit_calibration(engine, dataset, grade=2)


# -- steered queries: between the curves of images and texts ----------------------------------

STEPS = Calibration(
    text=Curve(16.0, -6.0), image=Curve(8.0, -6.2), both=Curve(11.0, -6.4), source="steps"
)


def test_curve_of_steered_queries_is_that_of_images_at_no_text_and_of_texts_at_nothing_else():
    assert STEPS.curve("both") == STEPS.both
    assert STEPS.curve("both", text_alpha=DEFAULT_TEXT_ALPHA) == STEPS.both
    almost_image = STEPS.curve("both", text_alpha=1e-9)
    assert almost_image.slope == pytest.approx(8)
    assert almost_image.intercept == pytest.approx(-6.2)
    almost_text = STEPS.curve("both", text_alpha=1e9)
    assert almost_text.slope == pytest.approx(16)
    assert almost_text.intercept == pytest.approx(-6)


@given(st.floats(1e-6, 10), st.floats(1e-6, 10))
def test_curve_of_steered_queries_moves_one_way_and_without_a_jump(one, other):
    low, high = sorted((one, other))
    slopes = [STEPS.curve("both", text_alpha=alpha).slope for alpha in (low, high)]
    assert 8 <= slopes[0] <= slopes[1] <= 16
    assert slopes[1] - slopes[0] <= 8 * (high - low) + 1e-9


def test_curves_of_steered_queries_are_fitted_at_the_default():
    assert FITTED_TEXT_ALPHA == DEFAULT_TEXT_ALPHA


@given(st.floats(0, 10))
def test_text_alpha_means_nothing_to_other_kinds(alpha):
    assert STEPS.curve("text", text_alpha=alpha) == STEPS.text
    assert STEPS.curve("image", text_alpha=alpha) == STEPS.image


def test_scores_that_are_served_follow_the_text_alpha(task):
    engine, dataset = task()
    engine = SearchEngine(
        engine.table, engine.index, engine.model, replace(engine.config, calibration=STEPS)
    )
    photo_id = next(iter(dataset.qrels["q000"]))
    alone = engine.rank(Query(photo_id=photo_id)).scores
    faint = engine.rank(Query(photo_id=photo_id, text="0", text_alpha=1e-6)).scores
    assert faint == pytest.approx(alone, abs=1e-5)


# -- curves that ship -------------------------------------------------------------------------


def test_model_that_nobody_judged_is_uncalibrated():
    assert default_calibration("nobody-000000000000") is UNCALIBRATED
    assert default_calibration("../../etc/passwd-0") is UNCALIBRATED


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "resources", SimpleNamespace(files=lambda package: tmp_path))
    return tmp_path


def test_saved_calibration_is_the_default_of_its_model_alone(shipped):
    curve = Curve(9.5, -2.25)
    ours = Calibration(text=curve, image=curve, both=curve, source="kinds@r1")
    path = save_calibration(ours, "mini-3f2a91c0d4b7", shipped)
    save_calibration(UNCALIBRATED, "mini-ffffffffffff", shipped)
    assert path.name == "mini.json"
    assert default_calibration("mini-3f2a91c0d4b7") == ours
    assert default_calibration("mini-ffffffffffff") == UNCALIBRATED
    assert default_calibration("mini-000000000000") is UNCALIBRATED


def test_calibrated_config_has_the_model_id_and_the_curves_that_ship_for_it(shipped):
    plain = calibrate(Config(model="palette", depth=7))
    assert plain.model_id.startswith("palette-")
    assert (plain.depth, plain.calibration) == (7, UNCALIBRATED)
    curve = Curve(9.5, -2.25)
    ours = Calibration(text=curve, image=curve, both=curve, source="kinds@r1")
    save_calibration(ours, plain.model_id, shipped)
    assert calibrate(Config(model="palette", depth=7)) == replace(plain, calibration=ours)


def test_damaged_file_is_named(shipped):
    (shipped / "mini.json").write_text('{"mini-1": {"text": {}}}')
    with pytest.raises(DataError, match=r"mini\.json must hold calibrations"):
        default_calibration("mini-1")
