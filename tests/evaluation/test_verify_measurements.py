"""Measurements of studies are computed again where they can be, and compared figure by figure."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets import DATASETS
from searchlab.evaluation.experiments import BENCHMARK as SEARCH_QUALITY
from searchlab.evaluation.file_names import result_stem
from searchlab.evaluation.promotion import BENCHMARK as PROMOTION
from searchlab.evaluation.promotion import promote
from searchlab.evaluation.provenance.measurement import measurement_path, read_measurement
from searchlab.evaluation.provenance.registry import STUDIES, study_of
from searchlab.evaluation.provenance.reproduce import differences
from searchlab.evaluation.provenance.verify import verify, verify_result
from searchlab.evaluation.results import load_result
from tests.support import recorded_results
from tests.support.recorded_results import toy_study
from tests.support.shades import reseal

pytestmark = pytest.mark.slow

shades = recorded_results.shades
known = recorded_results.known
cache = recorded_results.cache
recorded = recorded_results.recorded
measured = recorded_results.measured

RESULTS = Path(__file__).parents[2] / "results"


def test_timings_are_sealed_and_name_the_command_that_measures_again(measured):
    verification = verify_result(measured)
    assert verification.status == "sealed"
    assert "it is a toy: measure again with `" in verification.remark


def test_a_study_computes_its_figures_again(measured, monkeypatch):
    def recompute(measurement):
        rows = [
            {"ef": 10, "recall": 0.25},
            {"ef": 20, "recall": 0.25 * measurement["parameters"]["n"]},
        ]
        return {"metrics": {"share": 0.5}, "rows": rows}

    toy_study(monkeypatch, recompute)
    assert verify_result(measured).status == "verified"
    assert verify_result(measured, quick=True).status == "sealed"
    reseal(measured, lambda values: values["rows"][1].update({"recall": 0.8}))
    verification = verify_result(measured)
    assert verification.differences == ("rows[1].recall: recorded 0.8, now 0.75",)


def test_a_model_that_is_not_here_matters_only_where_figures_are_computed_again(
    measured, monkeypatch
):
    reseal(measured, lambda values: values["manifest"].update(models=[{"spec": "onnx:/no"}]))
    verification = verify_result(measured)
    assert verification.status == "sealed"
    assert verification.notes[-1].startswith("its model is not here: an onnx model must be")
    toy_study(monkeypatch, lambda measurement: {"metrics": measurement["metrics"]})
    assert verify_result(measured).status == "not here"


@pytest.mark.parametrize(
    "dataset", ["coco-judge", "flickr8k", "mixed-256", "sentences-judge", "spliced-1M"]
)
def test_a_record_says_that_it_needs_data_which_does_not_ship(measured, dataset):
    elsewhere = "needs SEARCHLAB_DATASETS"
    assert elsewhere not in str(verify_result(measured))
    reseal(measured, lambda values: values.update(dataset=dataset))
    assert elsewhere in str(verify_result(measured))


def test_a_measurement_of_no_study_is_not_passed_as_sealed(measured, monkeypatch):
    monkeypatch.delitem(STUDIES, "toy_study")
    verification = verify_result(measured)
    assert verification.status == "differs"
    assert verification.differences == (
        "a benchmark must have a line in STUDIES, got 'toy_study'; add it there",
    )


def test_a_study_whose_data_is_not_here_says_so(measured, monkeypatch):
    def recompute(measurement):
        msg = "no photos"
        raise NotFoundError(msg)

    toy_study(monkeypatch, recompute)
    verification = verify_result(measured)
    assert (verification.status, verification.remark) == (
        "not here",
        "cannot be recomputed here: no photos",
    )


def test_a_chosen_configuration_is_held_to_the_result_that_it_names(recorded, cache, tmp_path):
    chosen = promote(load_result(recorded), recorded.parents[2] / "chosen.json")
    verification = verify_result(chosen)
    assert verification.status == "sealed"
    assert verification.remark == "sealed, as is the result that it was chosen by"
    reseal(recorded, lambda values: values["metrics"].update({"p50_ms": 0.001}))
    assert verify_result(chosen).status == "differs"
    chosen = promote(load_result(recorded), chosen)
    reseal(chosen, lambda values: values["metrics"].update({"ndcg@10": 0.999}))
    assert verify_result(chosen).differences[0].startswith("metrics.ndcg@10: recorded 0.999, now")
    recorded.unlink()
    verification = verify_result(chosen)
    assert verification.status == "not here"
    assert "must be kept beside it" in verification.remark


def test_a_dataset_of_ones_own_is_given(recorded, shades, cache, monkeypatch):
    monkeypatch.delitem(DATASETS, "shades")
    assert verify_result(recorded, dataset=shades, cache=cache).status == "verified"
    other = replace(shades, name="others")
    assert verify_result(recorded, dataset=other, cache=cache).status == "not here"


# -- comparing ----------------------------------------------------------------------------------

FIGURES = {"metrics": {"a": 0.5, "b": 3}, "rows": [{"x": 1.0, "name": "n"}, {"x": None}]}
NUMBERS = (("metrics", "a"), ("metrics", "b"), ("rows", 0, "x"))


def test_a_figure_that_rounds_to_the_other_side_is_the_same():
    assert differences({"skill": 0.025092}, {"skill": 0.025091}) == []
    assert len(differences({"skill": 0.025092}, {"skill": 0.025090})) == 1


@given(way=st.sampled_from(NUMBERS), off=st.floats(-1e6, 1e6))
def test_each_number_may_be_off_by_a_millionth_and_no_more(way, off):
    now = copy.deepcopy(FIGURES)
    *above, last = way
    inner = now
    for key in above:
        inner = inner[key]
    old = inner[last]
    inner[last] = old + off
    lines = differences(FIGURES, now)
    assert len(lines) == (abs(inner[last] - old) > 1.01e-6 * max(1, abs(old)))


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({"metrics": {"c": 1}}, "metrics.c: not recorded, now 1"),
        ({"rows": [{"x": 1.0}]}, "rows: recorded 2 values, now 1"),
        ({"rows": [{"name": "m"}, {}]}, "rows[0].name: recorded n, now m"),
        ({"rows": [{}, {"x": 0.0}]}, "rows[1].x: recorded None, now 0.0"),
        ({"metrics": {"a": True}}, "metrics.a: recorded 0.5, now True"),
        ({"metrics": {"a": float("nan")}}, "metrics.a: recorded 0.5, now nan"),
        ({"metrics": [0.5, 3]}, "metrics: recorded {'a': 0.5, 'b': 3}, now [0.5, 3]"),
    ],
)
def test_whatever_else_differs_has_a_line(now, line):
    assert differences(FIGURES, now) == [line]


def test_what_is_not_computed_again_is_not_compared():
    assert differences(FIGURES, {"metrics": {"b": 3}}) == []


# -- folders ------------------------------------------------------------------------------------


def test_a_folder_is_verified_file_by_file_and_a_file_once(recorded, measured, tmp_path, cache):
    verifications = list(verify([tmp_path, recorded], cache=cache))
    assert [one.status for one in verifications] == ["verified", "sealed"]
    assert [one.path for one in verifications] == [recorded, measured]


def test_a_path_without_results_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="must be a result or a folder of results, got no "):
        list(verify([tmp_path / "none"]))
    (tmp_path / "README.md").write_text("# Results")
    with pytest.raises(NotFoundError, match=r"must hold a measurement \(\.json\), got none"):
        list(verify([tmp_path]))
    with pytest.raises(InputError, match=r"got .*README\.md"):
        list(verify([tmp_path / "README.md"]))


def test_a_measurement_of_an_earlier_schema_is_not_verified(tmp_path):
    path = tmp_path / "old.json"
    path.write_text('{"schema": 1}')
    assert verify_result(path).status == "differs"


@pytest.mark.parametrize(
    "path", sorted(RESULTS.rglob("*.json")), ids=lambda path: str(path.relative_to(RESULTS))
)
def test_every_committed_result_is_sealed_and_its_study_is_known(path):
    values = read_measurement(path)
    study_of(values["benchmark"])
    promoted = RESULTS / PROMOTION
    top = promoted if promoted in path.parents else RESULTS
    place = measurement_path(top, values["benchmark"], values["dataset"], values["name"])
    if values["benchmark"] == PROMOTION:  # What is in force lies on top, with what it rests on.
        assert path == promoted / "chosen.json"
        evidence = values["evidence"]
        for named in (evidence["result"], *(task["result"] for task in evidence["tasks"])):
            assert read_measurement(promoted / named["path"])["digest"] == named["digest"]
    elif values["benchmark"] == SEARCH_QUALITY:
        assert path.parent == place.parent
        assert path.stem == result_stem(Config.from_dict(values["config"]))
    else:
        assert path == place
