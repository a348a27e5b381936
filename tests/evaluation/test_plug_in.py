"""A metric, a dataset and a study are one file and one line, as a newcomer would add them."""

import sys
import types

import pytest

from searchlab.config import Config
from searchlab.errors import InputError, MismatchError
from searchlab.evaluation.datasets import DATASETS, dataset_names, load_dataset
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.metrics import METRICS, MetricKind, metric_names, parse_metric
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path, write_measurement
from searchlab.evaluation.provenance.registry import STUDIES
from searchlab.evaluation.provenance.study import Study
from searchlab.evaluation.provenance.verify import verify_result
from tests.support.shades import SHADES, make_shades


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    return make_shades(tmp_path_factory.mktemp("shades"))


def score_first(grades, answers, metric):
    """Score 1 where the very first answer is relevant at the metric's level."""
    return float(bool(answers) and grades.get(answers[0], 0) >= metric.least)


@pytest.mark.slow
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


PLUGGED = """
from searchlab.evaluation.metrics import MetricKind
from tests.support.shades import make_shades

def score_last(grades, answers, metric):
    return float(bool(answers) and grades.get(answers[-1], 0) >= metric.least)

LAST = MetricKind(score=score_last)

def load():
    from pathlib import Path
    folder = Path(__file__).parent / "shades"
    folder.mkdir(exist_ok=True)
    return make_shades(folder)
"""


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    """An installed package with a dataset and a metric, and one of each that cannot be loaded."""
    (tmp_path / "plugged_evaluation.py").write_text(PLUGGED)
    described = tmp_path / "plugged-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(
        "[searchlab.datasets]\ntheirs = plugged_evaluation:load\ngone = plugged_evaluation:no\n"
        "[searchlab.metrics]\nlast = plugged_evaluation:LAST\nlost = plugged_evaluation:no\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.slow
def test_a_package_brings_a_dataset_and_a_metric_by_entry_points(plugged):
    dataset = load_dataset("theirs")
    assert "theirs" in dataset_names()
    assert "last" in metric_names()
    report = Experiment(dataset, [Config(model="palette")], ["last@5", "mrr@10"]).run()
    assert report.results[0].headline == "last@5"
    assert 0 <= report.results[0].metrics["last@5"] < 1


def test_a_plugin_that_cannot_be_imported_is_named(plugged):
    with pytest.raises(MismatchError, match=r"'gone' of searchlab\.datasets .* uninstall plugged"):
        load_dataset("gone")
    with pytest.raises(MismatchError, match=r"'lost' of searchlab\.metrics .* uninstall plugged"):
        parse_metric("lost@5")
    with pytest.raises(InputError, match=r"judged@k, last@k, lost@k, with k"):
        parse_metric("first@5")


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
