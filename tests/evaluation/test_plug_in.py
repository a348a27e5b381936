"""A metric, a dataset and a study are one file and one line, as a newcomer would add them."""

import sys
import types

import pytest

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation.datasets import DATASETS, load_dataset, loading
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.metrics import METRICS, MetricKind
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path, write_measurement
from searchlab.evaluation.provenance.registry import STUDIES, Study
from searchlab.evaluation.provenance.verify import verify_result
from tests.support.shades import SHADES, make_shades


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    return make_shades(tmp_path_factory.mktemp("shades"))


def score_first(grades, answers, metric):
    """Score 1 where the very first answer is relevant at the metric's level."""
    return float(bool(answers) and grades.get(answers[0], 0) >= metric.least)


def test_a_metric_is_one_line_in_metrics(monkeypatch, shades):
    configs = [Config(model="palette")]
    with pytest.raises(InputError, match="must be one of ndcg@k"):
        Experiment(shades, configs, ["first@1"])
    monkeypatch.setitem(METRICS, "first", MetricKind(score=score_first, gain="no gain"))
    report = Experiment(shades, configs, ["first@5", "success@1"]).run()
    (result,) = report.results
    assert result.headline == "first@5"
    assert result.metrics["first@5"] == result.metrics["success@1"]
    assert "first@5 [95 %]" in report.text()
    assert "no gain in first" in report.caption


def test_a_dataset_is_one_line_in_datasets(monkeypatch, shades):
    monkeypatch.setitem(DATASETS, "toy", lambda: shades)
    report = Experiment(load_dataset("toy"), [Config(model="palette")], ["mrr@10"]).run()
    assert report.results[0].n_queries == len(SHADES) + 1


def test_a_package_brings_datasets_by_an_entry_point(monkeypatch, shades):
    def list_entry_points(*, group):
        assert group == "searchlab.datasets"
        return [types.SimpleNamespace(name="theirs", load=lambda: lambda: shades)]

    monkeypatch.setattr(loading, "entry_points", list_entry_points)
    monkeypatch.setitem(DATASETS, "theirs", loading.find_plug_ins()["theirs"])
    assert load_dataset("theirs") is shades


def test_a_study_is_one_line_in_studies(monkeypatch, tmp_path):
    module = types.ModuleType("toy_module")
    module.recompute = lambda record: {"metrics": {"double": 2 * record["parameters"]["n"]}}
    monkeypatch.setitem(sys.modules, "toy_module", module)
    study = Study(("searchlab.evaluation.metrics",), recompute="toy_module:recompute")
    monkeypatch.setitem(STUDIES, "toy", study)
    path = write_measurement(
        measurement_path(tmp_path, "toy", "numbers", "three"),
        {
            "benchmark": "toy",
            "dataset": "numbers",
            "name": "three",
            "parameters": {"n": 3},
            "metrics": {"double": 6},
            "manifest": make_manifest("toy"),
        },
    )
    assert verify_result(path).status == "verified"
    module.recompute = lambda record: {"metrics": {"double": 7}}
    assert verify_result(path).differences == ("metrics.double: recorded 6, now 7",)
