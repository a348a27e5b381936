import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab import calibration, calibration_fit
from searchlab.calibration import calibrated, default_calibration, save_calibration
from searchlab.calibration_fit import fit_calibration
from searchlab.config import UNCALIBRATED, Calibration, Config, Curve
from searchlab.curves import fit_curve, reliability
from searchlab.datasets import Dataset, LabelledQuery
from searchlab.engine import SearchEngine
from searchlab.errors import DataError, InputError
from searchlab.indexes.exact import ExactIndex
from searchlab.photos import photo_id_of


def drawn_from(curve, *, n, seed):
    rng = np.random.default_rng(seed)
    cosines = rng.normal(0.2, 0.15, size=n).clip(-1, 1)
    return cosines, rng.random(n) < curve(cosines)


def test_recovers_the_curve_that_made_the_data():
    cosines, relevant = drawn_from(Curve(12.0, -5.0), n=30_000, seed=0)
    curve = fit_curve(cosines, relevant)
    assert curve.slope == pytest.approx(12, rel=0.05)
    assert curve.intercept == pytest.approx(-5, rel=0.05)


def test_mean_score_is_the_share_of_relevant_pairs():
    cosines, relevant = drawn_from(Curve(20.0, -9.0), n=20_000, seed=1)
    assert fit_curve(cosines, relevant)(cosines).mean() == pytest.approx(relevant.mean(), rel=1e-2)


def test_thinned_negatives_with_weights_give_the_curve_of_all_pairs():
    cosines, relevant = drawn_from(Curve(12.0, -7.0), n=200_000, seed=2)
    whole = fit_curve(cosines, relevant)
    kept = relevant | (np.random.default_rng(0).random(len(relevant)) < 0.05)
    weights = np.where(relevant[kept], 1.0, 20.0)
    thinned = fit_curve(cosines[kept], relevant[kept], weights=weights)
    assert thinned.slope == pytest.approx(whole.slope, rel=0.05)
    assert thinned.intercept == pytest.approx(whole.intercept, rel=0.05)


def test_weights_stand_for_repeated_pairs():
    cosines, relevant = [0.1, 0.3, 0.2, 0.5], [False, False, True, True]
    weighted = fit_curve(cosines, relevant, weights=[3, 1, 1, 2])
    repeated = fit_curve([0.1] * 3 + [0.3, 0.2] + [0.5] * 2, [False] * 4 + [True] * 3)
    assert weighted.slope == pytest.approx(repeated.slope, rel=1e-5)


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
    found = reliability([0.05, 0.05, 0.95, 0.85], [False, True, True, True])
    assert found.base_rate == 0.75
    assert [one[1:] for one in found.bins] == [(0.5, 2), (1.0, 1), (1.0, 1)]
    assert [one.mean_score for one in found.bins] == pytest.approx([0.05, 0.85, 0.95])
    assert found.ece == pytest.approx(0.5 * 0.45 + 0.25 * 0.15 + 0.25 * 0.05)
    assert found.brier == pytest.approx((0.05**2 + 0.95**2 + 0.05**2 + 0.15**2) / 4)


def test_true_probabilities_are_reliable():
    curve = Curve(10.0, -3.0)
    cosines, relevant = drawn_from(curve, n=100_000, seed=3)
    assert reliability(curve(cosines), relevant).ece < 0.01
    assert reliability(Curve(10.0, 0.0)(cosines), relevant).ece > 0.2


def test_score_of_one_falls_into_the_last_bin():
    assert reliability([1.0, 0.0], [True, False], bins=4).bins == [(0.0, 0.0, 1), (1.0, 1.0, 1)]


def test_score_outside_its_range_is_refused():
    with pytest.raises(InputError, match="must lie from 0 to 1"):
        reliability([1.2], [True])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_bins_hold_every_score_and_the_errors_stay_in_range(pairs):
    scores, relevant = zip(*pairs, strict=True)
    found = reliability(scores, relevant)
    assert sum(one.n_pairs for one in found.bins) == len(pairs)
    assert 0 <= found.ece <= 1
    assert 0 <= found.brier <= 1


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


def test_calibration_of_an_engine_is_reliable_on_held_out_queries(task):
    engine, dataset = task()
    found, report = fit_calibration(engine, dataset, seed=0)
    assert found.source == "kinds@r1"
    assert found.both.slope == pytest.approx((found.text.slope + found.image.slope) / 2)
    assert found.both.intercept == pytest.approx((found.text.intercept + found.image.intercept) / 2)
    assert report["text"]["n_queries"] == 60
    assert report["text"]["pairs"]["base_rate"] == pytest.approx(3 / 120)
    assert report["image"]["pairs"]["base_rate"] == pytest.approx(2 / 119)
    for kind in ("text", "image"):
        assert report[kind]["pairs"]["ece"] < 0.02
        assert report[kind]["top10"]["ece"] < 0.15
    json.dumps(report)


def test_calibration_is_the_same_for_the_same_seed(task):
    assert fit_calibration(*task(), seed=5) == fit_calibration(*task(), seed=5)


def test_sampled_photos_give_nearly_the_curve_of_all(task, monkeypatch):
    whole, _ = fit_calibration(*task(n_photos=600, kinds=200), seed=0)
    monkeypatch.setattr(calibration_fit, "_MAX_PAIRS", 600 * 150)
    sampled, report = fit_calibration(*task(n_photos=600, kinds=200), seed=0)
    assert sampled.text.slope == pytest.approx(whole.text.slope, rel=0.1)
    assert report["text"]["pairs"]["base_rate"] == pytest.approx(3 / 600, rel=1e-3)


def test_dataset_whose_photos_share_no_query_uses_the_text_curve_for_images(task):
    engine, dataset = task(kinds=120)
    found, report = fit_calibration(engine, dataset, seed=0)
    assert report["image"] is None
    assert found.image == found.both == found.text


def test_dataset_about_a_single_photo_is_refused(task):
    engine, dataset = task()
    photo_id = next(iter(dataset.qrels["q000"]))
    single = replace(dataset, queries=dataset.queries[:1], qrels={"q000": {photo_id: 1}})
    with pytest.raises(InputError, match="at least 2 photos"):
        fit_calibration(engine, single)


def test_model_that_nobody_judged_is_uncalibrated():
    assert default_calibration("nobody-000000000000") is UNCALIBRATED
    assert default_calibration("../../etc/passwd-0") is UNCALIBRATED


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    (tmp_path / "calibration_data").mkdir()
    monkeypatch.setattr(calibration, "resources", SimpleNamespace(files=lambda package: tmp_path))
    return tmp_path / "calibration_data"


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
    plain = calibrated(Config(model="palette", depth=7))
    assert plain.model_id.startswith("palette-")
    assert (plain.depth, plain.calibration) == (7, UNCALIBRATED)
    curve = Curve(9.5, -2.25)
    ours = Calibration(text=curve, image=curve, both=curve, source="kinds@r1")
    save_calibration(ours, plain.model_id, shipped)
    assert calibrated(Config(model="palette", depth=7)) == replace(plain, calibration=ours)


def test_damaged_file_is_named(shipped):
    (shipped / "mini.json").write_text('{"mini-1": {"text": {}}}')
    with pytest.raises(DataError, match=r"mini\.json must hold calibrations"):
        default_calibration("mini-1")
