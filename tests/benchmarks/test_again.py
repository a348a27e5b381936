"""What `searchlab verify` runs of benchmarks gives figures to be held to the recorded ones."""

from pathlib import Path

import pytest

from benchmarks.few_judgments import bench_few_judgments
from benchmarks.few_judgments.bench_few_judgments import read_population
from benchmarks.http import again as http
from benchmarks.http import bench_http
from searchlab.evaluation.datasets import load_dataset
from searchlab.evaluation.provenance.measurement import read_measurement
from searchlab.evaluation.provenance.reproduce import differences

pytestmark = pytest.mark.slow

RESULTS = Path(__file__).parents[2] / "results"


def test_the_cost_of_requests_is_measured_again_in_short_beside_the_same_base(monkeypatch):
    monkeypatch.setattr(bench_http, "CONNECTIONS", (1,))
    monkeypatch.setattr(http, "_SECONDS", 0.05)
    recorded = read_measurement(RESULTS / "http" / "demo" / "filters.json")
    metrics = http.recompute({**recorded, "dataset": "plain"})["metrics"]
    assert metrics.pop("errors") == 0
    assert set(metrics) == {name for name in recorded["metrics"] if name.endswith(".1.cpu_ratio")}
    assert metrics["none.1.cpu_ratio"] == 1
    assert all(ratio > 0 for ratio in metrics.values())


def test_few_judgments_are_drawn_again_by_the_seed_and_another_seed_draws_others(monkeypatch):
    monkeypatch.setattr(bench_few_judgments, "BUDGETS", (100,))
    population = read_population(load_dataset(bench_few_judgments.DATASET))  # the same for all
    monkeypatch.setattr(bench_few_judgments, "read_population", lambda dataset: population)
    recorded = read_measurement(RESULTS / "few_judgments" / "demo" / "ways.json")

    def draw(seed):
        parameters, manifest = recorded["parameters"] | {"rounds": 1}, {"seed": seed}
        again = bench_few_judgments.recompute(
            {**recorded, "parameters": parameters, "manifest": manifest}
        )
        assert again["metrics"]["queries"] == recorded["metrics"]["queries"]
        # Where and when it was computed again is no figure, and differs wherever it is.
        assert {"manifest", "digest"}.isdisjoint(again)
        return {"rows": again["rows"]}

    first = draw(0)
    assert differences(first, draw(0)) == []
    assert differences(first, draw(1))
