import dataclasses
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import USUAL, Config
from searchlab.config.calibration import UNCALIBRATED, Calibration, Curve
from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.files import digest_of
from tests.support.examples import examples

FITTED = Calibration(
    text=Curve(9.5, -3.0), image=Curve(7.0, -2.5), both=Curve(8.0, -2.0), source="demo@1"
)
HUGE = pytest.param(10**400, id="10**400")


# -- identity ---------------------------------------------------------------------------------


def test_the_same_choices_have_the_same_id():
    assert Config(M=8).config_id == Config(M=8).config_id
    assert len(Config().config_id) == 12
    assert int(Config().config_id, 16) >= 0


@pytest.mark.parametrize(
    "change",
    [
        {"model": "palette"},
        {"model_id": "mini-0123456789ab"},
        {"index": "hnsw"},
        {"M": 17},
        {"ef_construction": 201},
        {"ef_search": 101},
        {"depth": 201},
        {"steering": 0.36},
        {"mixing": "standardised"},
        {"calibration": FITTED},
        {"seed": 1},
        {"index": "clustered"},
        {"n_lists": 1},
        {"recall": 0.9},
    ],
)
def test_every_choice_changes_the_id(change):
    assert Config(**change).config_id != Config().config_id


def test_equal_configs_have_equal_ids_however_a_number_is_written():
    assert Config(steering=1) == Config(steering=1.0)
    assert Config(steering=1).config_id == Config(steering=1.0).config_id
    whole, point = (
        Config(calibration=dataclasses.replace(FITTED, text=curve))
        for curve in (Curve(9, -3), Curve(9.0, -3.0))
    )
    assert whole.config_id == point.config_id


def test_a_config_comes_back_from_plain_values():
    config = Config(index="hnsw", M=8, calibration=FITTED, model_id="mini-0123456789ab")
    again = Config.from_dict(json.loads(config.to_json()))
    assert again == config
    assert again.config_id == config.config_id
    assert Config.from_dict({}) == Config()


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().M = 8


RESULTS = Path(__file__).parents[2] / "results"


def test_fields_that_came_later_change_no_id_on_record():
    assert Config().config_id == "b6af519aa9a4"
    n_records = 0
    for path in sorted(RESULTS.rglob("*.json")):
        values = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(values, dict) and "config_id" in values and "config" in values:
            assert Config.from_dict(values["config"]).config_id == values["config_id"], path
            n_records += 1
    assert n_records >= 10


def test_a_later_field_is_written_only_where_it_was_chosen():
    later = {"n_lists", "recall", "tuning", "build_threads"}
    assert later.isdisjoint(Config().to_dict())
    chosen = Config(index="clustered", n_lists=64, recall=0.95)
    assert {"n_lists": 64, "recall": 0.95}.items() <= chosen.to_dict().items()
    assert "tuning" not in chosen.to_dict()
    assert Config.from_dict(json.loads(chosen.to_json())) == chosen


def test_an_index_id_depends_on_what_the_index_is_built_from_alone():
    for kind, same, other in (
        ("exact", {"M": 8, "seed": 3, "n_lists": 9}, {"model_id": "mini-0123456789ab"}),
        ("hnsw", {"ef_search": 50, "depth": 9, "n_lists": 9}, {"M": 8}),
        ("hnsw", {"recall": 0.9, "step_rows": 0}, {"ef_construction": 300}),
        ("hnsw", {"build_threads": 1}, {"build_threads": 0}),
        ("exact", {"build_threads": 2}, {"model_id": "mini-0123456789ab"}),
        ("clustered", {"recall": 0.9, "M": 8}, {"n_lists": 9}),
        ("clustered", {"calibration": FITTED}, {"seed": 1}),
    ):
        config = Config(index=kind)
        assert replace(config, **same).index_id == config.index_id
        assert replace(config, **other).index_id != config.index_id
    assert len({Config(index=kind).index_id for kind in ("exact", "hnsw", "clustered")}) == 3


# -- ranges -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("M", 1),
        ("M", 201),
        ("M", 16.0),
        ("M", True),
        ("M", "16"),
        ("ef_construction", 15),
        ("ef_search", 0),
        ("ef_search", None),
        ("depth", 0),
        ("seed", -1),
        ("seed", 2**31),
        ("n_lists", -1),
        ("build_threads", -1),
        ("build_threads", True),
        ("n_lists", 1.0),
    ],
)
def test_a_number_out_of_range_is_refused(name, value):
    with pytest.raises(InputError, match=f"{name} must be an integer from"):
        Config(**{name: value})


@pytest.mark.parametrize("mixing", ["", "Sum", "product", None, 1, ["sum"]])
def test_mixing_must_be_a_known_way(mixing):
    with pytest.raises(InputError, match="mixing must be one of sum, standardised"):
        Config(mixing=mixing)


def test_what_new_libraries_take_keeps_the_ids_of_what_was_measured_before():
    assert "mixing" not in Config().to_dict()
    assert Config.from_dict(json.loads(USUAL.to_json())) == USUAL
    assert USUAL.config_id != Config(words=USUAL.words).config_id


@pytest.mark.parametrize("steering", [0, -0.1, math.nan, math.inf, "0.35", True, None, HUGE])
def test_steering_must_be_a_finite_number_above_0(steering):
    with pytest.raises(InputError, match="steering must be a finite number above 0"):
        Config(steering=steering)


@pytest.mark.parametrize("recall", [0, -0.1, 1.01, math.nan, "0.9", True, None, HUGE])
def test_recall_must_be_above_0_to_1(recall):
    with pytest.raises(InputError, match="recall must be a"):
        Config(recall=recall)


@pytest.mark.parametrize("index", ["faiss", "", "HNSW", None, ["exact"]])
def test_an_unknown_index_is_answered_with_the_known_ones(index):
    with pytest.raises(InputError, match="index must be one of exact, hnsw"):
        Config(index=index)


@pytest.mark.parametrize(
    "values",
    [
        {"N": 5},
        {"calibration": {}},
        {"calibration": 5},
        {"calibration": {"text": {}, "image": {}, "both": {}, "source": "x"}},
        {"calibration": dataclasses.asdict(FITTED) | {"text": {"slope": -1, "intercept": 0}}},
    ],
)
def test_plain_values_of_no_config_are_refused(values):
    with pytest.raises(InputError):
        Config.from_dict(values)


# -- curves -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slope", "intercept"),
    [(0, 1), (-1, 1), (math.nan, 1), (math.inf, 1), (1, math.nan), (1, -math.inf), ("a", 1)],
)
def test_a_curve_must_rise_and_be_finite(slope, intercept):
    with pytest.raises(InputError, match=r"(slope|intercept) must be a finite number"):
        Curve(slope, intercept)


@pytest.mark.parametrize("number", [HUGE, True])
def test_a_curve_is_made_of_floats(number):
    for values in ((number, 0.0), (1.0, number)):
        with pytest.raises(InputError):
            Curve(*values)


def test_a_curve_is_a_half_where_its_log_odds_are_zero():
    assert Curve(4.0, -1.0)(np.array([0.25]))[0] == 0.5
    assert Curve(4.0, -1.0)(np.array([0.25 + math.log(3) / 4]))[0] == pytest.approx(0.75)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.floats(1e-6, 1e6),
    st.floats(-1e6, 1e6),
    st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=20),
)
def test_scores_are_between_0_and_1_and_never_fall_with_the_cosine(slope, intercept, cosines):
    scores = Curve(slope, intercept)(np.sort(np.array(cosines, dtype=np.float32)))
    assert scores.dtype == np.float64
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (np.diff(scores) >= 0).all()


@settings(max_examples=examples(100), deadline=None)
@given(st.floats(1e-3, 1e6), st.floats(-100, 100), st.floats(1e-6, 1 - 1e-6))
def test_a_cosine_is_found_by_its_score(slope, intercept, score):
    curve = Curve(slope, intercept)
    assert curve(np.array([curve.cosine(score)]))[0] == pytest.approx(score, abs=1e-7)


def test_every_cosine_reaches_nothing_and_none_reaches_certainty():
    curve = Curve(4.0, -1.0)
    for score in (0.0, -1e-6, -1.0):
        assert curve.cosine(score) == -math.inf
    for score in (1.0, 1.5):
        assert curve.cosine(score) == math.inf


def test_each_kind_of_query_has_its_curve():
    assert FITTED.curve("text") == Curve(9.5, -3.0)
    assert FITTED.curve("image") == Curve(7.0, -2.5)
    assert FITTED.curve("both") == Curve(8.0, -2.0)
    assert UNCALIBRATED.source == "uncalibrated"


# -- files ------------------------------------------------------------------------------------


def test_a_config_is_read_from_its_own_file_and_from_a_result_file(tmp_path):
    config = Config(M=8, calibration=FITTED)
    (tmp_path / "config.json").write_text(config.to_json(), encoding="utf-8")
    result = {"benchmark": "demo", "config": config.to_dict(), "metrics": {}}
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    assert Config.load(tmp_path / "config.json") == config
    assert Config.load(str(tmp_path / "result.json")) == config


@pytest.mark.parametrize("change", [{"M": 9}, {"calibration": UNCALIBRATED}])
def test_a_sealed_file_that_was_changed_is_refused(tmp_path, change):
    path = tmp_path / "chosen.json"
    config = Config(M=8, calibration=FITTED)
    sealed = {"benchmark": "promotion", "config": config.to_dict()}
    sealed["digest"] = digest_of(sealed)
    path.write_text(json.dumps(sealed), encoding="utf-8")
    assert Config.load(path) == config
    sealed["config"] = replace(config, **change).to_dict()
    path.write_text(json.dumps(sealed), encoding="utf-8")
    with pytest.raises(DataError, match=r"chosen\.json must be as it was written, got .*changed"):
        Config.load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"5",
        b'"config"',
        b"\xff\xfe",
        b'{"M": 1}',
        b'{"M": null}',
        b'{"N": 5}',
        b'{"config": 5}',
        b'{"calibration": {}}',
        b'{"steering": NaN}',
        b'{"steering": "x"}',
    ],
)
def test_a_file_without_a_config_is_named_and_the_remedy_told(tmp_path, content):
    path = tmp_path / "chosen.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"chosen\.json must hold a config .*searchlab demo"):
        Config.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"missing\.json"):
        Config.load(tmp_path / "missing.json")
