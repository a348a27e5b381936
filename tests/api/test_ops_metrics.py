"""Metrics: every worker counts, any of them tells the sum."""

import json
import os
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from searchlab.api.ops.metrics import Metrics
from searchlab.api.settings import METRICS_ENVIRONMENT

WORKER = """
import json, os, sys
from searchlab.api.ops.metrics import Metrics

metrics = Metrics()

def answer(seconds=0.003, status=200, method="GET", route="/api/v1/usage"):
    metrics.start_request()
    metrics.finish_request(route=route, method=method, status=status, seconds=seconds)

def show():
    print(json.dumps(metrics.expose().decode()), flush=True)

for line in sys.stdin:
    exec(line)
    print(json.dumps("done"), flush=True)
"""


def read_samples(text):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Worker:
    """A process that counts what it is told to, in a folder that it shares with others."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {METRICS_ENVIRONMENT: str(folder)},
            text=True,
        )

    def run(self, code):
        self.process.stdin.write(f"{code}\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if answer != "done":
            self.process.stdout.readline()
        return answer

    def samples(self):
        return read_samples(self.run("show()"))

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def start_worker(tmp_path):
    workers = []

    def start():
        workers.append(Worker(tmp_path))
        workers[-1].run("pass")
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill()


def answer(metrics, seconds=0.003, status=200, method="GET", route="/api/v1/usage"):
    metrics.start_request()
    metrics.finish_request(route=route, method=method, status=status, seconds=seconds)


def samples_of(metrics):
    return read_samples(metrics.expose().decode())


# -- several workers ----------------------------------------------------------------------------


def test_counts_of_all_workers_are_summed_whichever_is_asked(start_worker):
    one, other = start_worker(), start_worker()
    for worker in (one, other, other):
        worker.run("answer()")
    other.run("metrics.count_search('exact')")
    other.run("metrics.count_refusal('rate')")
    for worker in (one, other):
        samples = worker.samples()
        assert samples["searchlab_requests_total", "/api/v1/usage", "2xx", "GET"] == 3
        assert samples["searchlab_request_seconds_count", "/api/v1/usage", "GET"] == 3
        assert samples["searchlab_searches_total", "exact"] == 1
        assert samples["searchlab_refusals_total", "rate"] == 1
        assert samples["searchlab_workers",] == 2
        assert samples["searchlab_worker_resident_bytes", "1"] > 2**20


@pytest.mark.slow
def test_what_a_killed_worker_counted_is_kept(start_worker):
    for _ in range(3):
        worker = start_worker()
        worker.run("metrics.count_search('exact')")
        worker.kill()
    assert start_worker().samples()["searchlab_searches_total", "exact"] == 3


def test_what_a_dead_worker_was_doing_is_not_in_flight(start_worker):
    worker, dead = start_worker(), start_worker()
    dead.run("metrics.describe_snapshot('000001-abcdef01', 'c0ffee', 349)")
    dead.run("metrics.start_request()")
    worker.run("metrics.start_request()")
    assert worker.samples()["searchlab_requests_in_flight",] == 2
    dead.kill()
    samples = worker.samples()
    assert samples["searchlab_requests_in_flight",] == 1
    assert samples["searchlab_workers",] == 1
    assert not [key for key in samples if key[0] == "searchlab_snapshot_info"]


def test_counts_go_on_when_a_worker_counts_more_than_its_file_had_room_for(start_worker):
    worker = start_worker()
    worker.run("for n in range(60): answer(route=f'/{n}')")  # the first again, the file has grown
    worker.run("for n in range(60): answer(route=f'/{n}', status=404)")
    samples = start_worker().samples()
    for n in range(60):
        assert samples["searchlab_requests_total", f"/{n}", "2xx", "GET"] == 1
        assert samples["searchlab_request_seconds_count", f"/{n}", "GET"] == 2


def test_it_says_what_is_served_by_how_many_workers(start_worker):
    one, other = start_worker(), start_worker()
    for worker in (one, other):
        worker.run("metrics.describe_snapshot('000001-aaaaaaaa', 'c0ffee', 349)")
    other.run("metrics.describe_snapshot('000002-bbbbbbbb', 'c0ffee', 350)")
    samples = one.samples()
    snapshots = {key[2]: n for key, n in samples.items() if key[0] == "searchlab_snapshot_info"}
    assert snapshots == {"000001-aaaaaaaa": 1, "000002-bbbbbbbb": 1}
    assert samples["searchlab_photos",] == 350
    one.run("metrics.describe_snapshot('000002-bbbbbbbb', 'c0ffee', 350)")
    assert not [key for key in one.samples() if "000001-aaaaaaaa" in key]


def test_families_say_what_they_are_whether_one_worker_counts_or_several(start_worker):
    def describe(text):
        return sorted(line for line in text.splitlines() if line.startswith("#"))

    assert describe(start_worker().run("show()")) == describe(Metrics().expose().decode())


# -- one worker ---------------------------------------------------------------------------------


def test_latencies_fall_into_rising_buckets():
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.0011, 0.3, 99):
        answer(metrics, seconds)
    samples = samples_of(metrics)
    name = "searchlab_request_seconds_bucket"
    bounds = ("0.001", "0.002", "0.2", "0.5", "10.0", "+Inf")
    counts = [samples[(name, *sorted(["/api/v1/usage", "GET", bound]))] for bound in bounds]
    assert counts == [2, 3, 3, 4, 4, 5]
    total = samples["searchlab_request_seconds_sum", "/api/v1/usage", "GET"]
    assert total == pytest.approx(99.3026)


def test_requests_are_told_apart_by_route_method_and_class_of_status():
    metrics = Metrics()
    answer(metrics)
    answer(metrics, status=404)
    answer(metrics, status=503, method="BREW", route="unknown")
    samples = samples_of(metrics)
    assert samples["searchlab_requests_total", "/api/v1/usage", "4xx", "GET"] == 1
    assert samples["searchlab_requests_total", "5xx", "OTHER", "unknown"] == 1
    assert samples["searchlab_request_seconds_count", "/api/v1/usage", "GET"] == 2


def test_waiting_requests_are_not_in_flight():
    metrics = Metrics()
    metrics.start_request()
    metrics.count_waiting(1)
    samples = samples_of(metrics)
    assert samples["searchlab_requests_in_flight",] == 0
    assert samples["searchlab_requests_waiting",] == 1


def test_without_a_folder_a_worker_counts_alone():
    metrics = Metrics()
    answer(metrics)
    samples = samples_of(metrics)
    assert samples["searchlab_requests_total", "/api/v1/usage", "2xx", "GET"] == 1
    assert samples["searchlab_workers",] == 1
    assert not [key for key in samples if key[0].endswith("_created")]


def test_shards_are_told_by_their_numbers_from_one():
    metrics = Metrics()
    metrics.describe_shards([2, 0])
    metrics.observe_shard(1, 0.003)
    text = metrics.expose().decode()
    assert 'searchlab_shard_replicas{shard="1"} 2.0' in text
    assert 'searchlab_shard_replicas{shard="2"} 0.0' in text
    assert 'searchlab_shard_seconds_count{shard="2"} 1.0' in text
    assert 'searchlab_shard_seconds_count{shard="1"}' not in text
