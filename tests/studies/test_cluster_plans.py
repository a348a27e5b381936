"""Plans by hand-computed numbers, and held to what the record of one machine forecasts itself."""

import json
from pathlib import Path

import pytest

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.reporting.lookup import Results
from searchlab.studies.cluster_plans import (
    Machine,
    MeasuredMachine,
    forecast_ms,
    plan_cluster,
    read_asking_ms,
    read_measured,
)

RESULTS = Path(__file__).parents[2] / "results"
MACHINE = Machine(cores=10, memory_gb=64, price=2.0)
MEASURED = MeasuredMachine(
    n_photos=1_000_000,
    dim=256,
    memory_mib=1e9 / 2**20,  # a GB
    rows_mib=4e9 / 2**20,
    stored_mib=5e9 / 2**20,
    build_cpu_s=36.0,
    image_ms=0.5,
    text_ms=2.0,
    embed_cpu_ms=36.0,
    embedded_per_core_s=20.0,
)


def test_a_plan_is_what_one_computes_by_hand():
    plan = plan_cluster(100_000_000, MEASURED, MACHINE, replicas=2, hours=100)
    assert plan == pytest.approx(
        {
            "codes_gb": 100.0,
            "rows_gb": 400.0,
            "files_gb": 500.0,
            "shards": 3,  # 48 GB of each machine
            "machines": 6,
            "embed_cpu_h": 1000.0,
            "embed_machine_h": 100_000_000 / 200 / 3600,
            "build_cpu_h": 1.0,
            "make_price": 2 * (100_000_000 / 200 / 3600 + 0.1),
            "serve_price": 1200.0,
            "photos_per_shard": 100_000_000 / 3,
        }
    )


def test_a_search_takes_the_root_of_its_shard():
    assert forecast_ms(4_000_000, 2.0, MEASURED, shards=1) == pytest.approx(4.0)
    assert forecast_ms(4_000_000, 2.0, MEASURED, shards=4) == pytest.approx(2.0)
    with pytest.raises(InputError, match="at least 1 shard, got 0"):
        forecast_ms(1, 2.0, MEASURED, shards=0)


@pytest.mark.parametrize("wrong", [{"replicas": 0}, {"hours": 0}])
def test_numbers_that_say_nothing_are_refused(wrong):
    with pytest.raises(InputError, match="numbers of a plan must be above 0"):
        plan_cluster(1e8, MEASURED, MACHINE, **wrong)


@pytest.mark.parametrize("dim", [256, 512])
@pytest.mark.parametrize("place", [1, 2])
def test_it_agrees_with_the_forecast_of_the_record(dim, place):
    results = Results(RESULTS)
    measured = read_measured(results, dim)
    forecast = results.find(f"scale/scenes-{dim}/summary.json plan[{place}]")
    plan = plan_cluster(forecast["n_photos"], measured, MACHINE)
    assert plan["codes_gb"] == pytest.approx(forecast["memory_gb"][0], rel=0.01)
    assert plan["files_gb"] == pytest.approx(forecast["disk_gb"][0], rel=0.01)
    assert plan["build_cpu_h"] == pytest.approx(forecast["build_cpu_h"][0], rel=0.01)
    assert plan["shards"] == forecast["machines_of_64_gb"]
    whole = forecast_ms(forecast["n_photos"], measured.text_ms, measured, shards=1)
    assert whole == pytest.approx(forecast["p50_ms_text"][0], rel=0.01)


def test_what_asking_adds_is_read_from_its_record(tmp_path):
    with pytest.raises(NotFoundError, match=r"benchmarks\.cluster\.bench_shards"):
        read_asking_ms(Results(tmp_path))
    path = tmp_path / "shards" / "spliced-1M" / "costs.json"
    path.parent.mkdir(parents=True)
    metrics = {"whole.p50_ms": 1.0, "actors, 8.p50_ms": 9.5, "actors, 1.p50_ms": 3.0}
    path.write_text(json.dumps({"metrics": metrics | {"actors, 1.p99_ms": 8.0}}))
    assert read_asking_ms(Results(tmp_path)) == {1: 2.0, 8: 8.5}
