"""A result on record, and a measurement of a toy study."""

import sys
import types

import pytest

from searchlab.config import Config
from searchlab.evaluation.datasets import DATASETS
from searchlab.evaluation.experiments import Experiment
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path, write_measurement
from searchlab.evaluation.provenance.registry import STUDIES
from searchlab.evaluation.provenance.study import Study
from tests.support.shades import make_shades


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    return make_shades(tmp_path_factory.mktemp("shades"))


@pytest.fixture(autouse=True)
def known(monkeypatch, shades):
    """The dataset can be had by its name."""
    monkeypatch.setitem(DATASETS, "shades", lambda: shades)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def recorded(shades, cache, tmp_path):
    """A fresh result of the graph, on its way to be tampered with."""
    config = Config(model="palette", index="hnsw", step_rows=0, depth=3)
    experiment = Experiment(shades, [config], cache=cache, out=tmp_path / "results")
    (result,) = experiment.run().results
    return result.path(tmp_path / "results")


def toy_study(monkeypatch, recompute=None):
    """Register a study as a newcomer would: a module, and a line that names it."""
    module = types.ModuleType("toy_module")
    module.recompute = recompute
    monkeypatch.setitem(sys.modules, "toy_module", module)
    how = {"recompute": "toy_module:recompute"} if recompute else {"sealed": "it is a toy"}
    monkeypatch.setitem(STUDIES, "toy_study", Study(("searchlab.evaluation.metrics",), **how))


@pytest.fixture
def measured(tmp_path, monkeypatch):
    toy_study(monkeypatch)
    values = {
        "benchmark": "toy_study",
        "dataset": "shades",
        "name": "all",
        "parameters": {"n": 3},
        "metrics": {"share": 0.5, "p50_ms": 9.0},
        "rows": [{"ef": 10, "recall": 0.25}, {"ef": 20, "recall": 0.75}],
        "manifest": make_manifest("toy_study"),
    }
    return write_measurement(measurement_path(tmp_path, "toy_study", "shades", "all"), values)
