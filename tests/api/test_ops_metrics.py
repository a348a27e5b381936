"""Measures: every worker counts, any of them tells the sum."""

import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from searchlab.api.ops.metrics import Measures


def answer(measures, seconds=0.003, status=200, method="GET", route="/api/v1/usage"):
    measures.started()
    measures.finished(route=route, method=method, status=status, seconds=seconds)


def samples(measures):
    families = text_string_to_metric_families(measures.expose().decode())
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
def measured(tmp_path):
    """Open measures of several workers in one folder."""
    kept = []

    def build():
        kept.append(Measures(tmp_path))
        return kept[-1]

    yield build
    for measures in kept:
        measures.close()


def test_counts_of_all_workers_are_summed_whichever_is_asked(measured):
    one, other = measured(), measured()
    for worker in (one, other, other):
        answer(worker)
    other.searched("exact")
    other.refused("rate")
    for worker in (one, other):
        found = samples(worker)
        assert found["searchlab_requests_total", "/api/v1/usage", "2xx", "GET"] == 3
        assert found["searchlab_searches_total", "exact"] == 1
        assert found["searchlab_refusals_total", "rate"] == 1
        assert found["searchlab_workers",] == 2


def test_latencies_fall_into_rising_buckets(measured):
    measures = measured()
    for seconds in (0.0005, 0.001, 0.0011, 0.3, 99):
        answer(measures, seconds)
    found = samples(measures)
    name = "searchlab_request_seconds_bucket"
    bounds = ("0.001", "0.002", "0.2", "0.5", "10.0", "+Inf")
    counts = [found[(name, *sorted(["/api/v1/usage", "GET", bound]))] for bound in bounds]
    assert counts == [2, 3, 3, 4, 4, 5]
    total = found["searchlab_request_seconds_sum", "/api/v1/usage", "GET"]
    assert total == pytest.approx(99.3026)


def test_requests_are_told_apart_by_route_method_and_class_of_status(measured):
    measures = measured()
    answer(measures, status=404)
    answer(measures, status=503, method="BREW", route="unknown")
    found = samples(measures)
    assert found["searchlab_requests_total", "/api/v1/usage", "4xx", "GET"] == 1
    assert found["searchlab_requests_total", "5xx", "OTHER", "unknown"] == 1


COUNT_AND_DIE = """
import os, sys
from pathlib import Path
from searchlab.api.ops.metrics import Measures
measures = Measures(Path(sys.argv[1]))
measures.serving("000001-abcdef01", "c0ffee", 349)
measures.searched("exact")
measures.started()
os._exit(9)
"""


def test_what_a_killed_worker_counted_is_kept_and_its_file_goes_to_the_next(measured, tmp_path):
    for _ in range(3):
        subprocess.run([sys.executable, "-c", COUNT_AND_DIE, tmp_path], check=False)
    found = samples(measured())
    assert found["searchlab_searches_total", "exact"] == 3
    assert found["searchlab_requests_in_flight",] == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_what_a_dead_worker_was_doing_is_not_in_flight(measured, tmp_path):
    measures = measured()
    subprocess.run([sys.executable, "-c", COUNT_AND_DIE, tmp_path], check=False)
    measures.started()
    found = samples(measures)
    assert found["searchlab_requests_in_flight",] == 1
    assert found["searchlab_workers",] == 1
    assert not [key for key in found if key[0] == "searchlab_snapshot_info"]


def test_it_says_what_is_served_by_how_many_workers(measured):
    one, other = measured(), measured()
    for worker in (one, other):
        worker.serving("000001-aaaaaaaa", "c0ffee", 349)
    other.serving("000002-bbbbbbbb", "c0ffee", 350)
    found = samples(one)
    info = {key[1:3]: value for key, value in found.items() if key[0].endswith("snapshot_info")}
    assert sorted(info.values()) == [1, 1]
    assert found["searchlab_photos",] == 350


def test_more_series_than_there_is_room_for_are_counted_together(measured):
    measures = measured()
    for number in range(2000):
        answer(measures, route=f"/{number}")
    answer(measures, route="/" + "long" * 100)
    totals = measures.totals()
    assert sum(sum(v[:-1]) for n, v in totals.items() if n[0] in {"requests", "overflow"}) == 2001
    assert samples(measures)


def test_without_a_folder_a_worker_counts_alone():
    measures = Measures()
    answer(measures)
    assert samples(measures)["searchlab_requests_total", "/api/v1/usage", "2xx", "GET"] == 1
    measures.close()
