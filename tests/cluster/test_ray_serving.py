"""`searchlab serve --on ray:ADDRESS`: one machine's answers over HTTP, or a 503 in time."""

import contextlib
import http.client
import json
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from searchlab.api.settings import Settings
from searchlab.cluster.connecting import connect
from searchlab.errors import InputError, SearchlabError
from tests.support.served import create_key, run_command, serving
from tests.support.waiting import wait_until

N_PHOTOS = 30
SEARCHES = (
    "q=red&per_page=50",
    "q=dark+blue&per_page=7&sort_by=newest",
    "q=12&per_page=5&score_threshold=0.2",
)
ON = ("--shards", 3, "--replicas", 2, "--shard-cpus", 0.1, "--workers", 2)


def test_several_workers_need_a_cluster_that_they_share(tmp_path):
    with pytest.raises(InputError, match="2 workers must share a cluster, got ray:local"):
        Settings(data=tmp_path, on="ray:local", workers=2)


@pytest.mark.parametrize("wrong", [{"shards": 0}, {"replicas": 0}, {"shard_timeout_s": 0}])
def test_numbers_of_shards_that_are_too_small_are_refused(tmp_path, wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be from"):
        Settings(data=tmp_path, on="ray:auto", **wrong)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999", "[::1]:1"])
def test_an_address_where_nobody_listens_is_told_at_once(monkeypatch, address):
    there = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(__import__("sys").modules, "ray", there)
    with (
        pytest.raises(SearchlabError, match="must be a cluster that can be reached, got"),
        connect(f"ray:{address}"),
    ):
        pass


# -- on Ray -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="ray: pip install 'searchlab[cluster]'")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.shutdown()
        made = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, logging_level="error")
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def data(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(N_PHOTOS):
        put(photos, number)
    done = run_command("index", "--data", tmp_path / "library", "--model", "palette", photos)
    assert done.returncode == 0, done.stderr
    return tmp_path / "library"


def put(photos, number):
    tiles = np.random.default_rng(number).integers(0, 256, (3, 4, 3), dtype=np.uint8)
    Image.fromarray(tiles).resize((40, 30), 0).save(photos / f"{number:02d}.png")


class Asking:
    """Asks a server over HTTP with a key."""

    def __init__(self, server, key):
        self.server, self.key = server, key

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"x-api-key": self.key})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def search(self, asked):
        status, body = self.get(f"/api/v1/search/photos?{asked}")
        return status, json.loads(body)

    def found(self, asked):
        status, body = self.search(asked)
        assert status == 200, body
        return [(photo["photo_id"], photo["relevance_score"]) for photo in body["data"]]

    def refusal(self, asked):
        status, body = self.search(asked)
        return status, (body["error"] or {}).get("code")


@contextlib.contextmanager
def asking(data, *options):
    key = create_key(data, name=f"key-{time.monotonic_ns()}")
    with serving(data, "--rate", 10_000, "--burst", 10_000, *options) as server:
        yield Asking(server, key)


def names_of_actors():
    """Names of the shards' actors that live or are started again."""
    from ray.util import list_named_actors

    named = list_named_actors(all_namespaces=True)
    return sorted(one["name"] for one in named if one["namespace"] == "searchlab")


def a_process_of_an_actor():
    import ray

    actor = ray.get_actor(names_of_actors()[0], namespace="searchlab")
    return ray.get(actor.__ray_call__.remote(lambda _actor: os.getpid()))


def kill(name, *, restart):
    import ray

    ray.kill(ray.get_actor(name, namespace="searchlab"), no_restart=not restart)


@pytest.mark.slow
def test_a_server_on_a_cluster_answers_as_one_machine_does_whoever_dies(cluster, data, tmp_path):
    with asking(data) as here:
        expected = [here.found(asked) for asked in SEARCHES]
    with asking(data, "--on", f"ray:{cluster.address}", *ON) as there:
        assert [there.found(asked) for asked in SEARCHES] == expected
        names = names_of_actors()
        assert len(names) == 6, "both workers share three shards of two replicas"
        assert 'searchlab_shard_seconds_count{shard="3"}' in there.get("/metrics")[1]

        for name in (names[0], names[2], names[5]):  # one of each shard
            kill(name, restart=True)
        for _ in range(20):
            assert [there.found(asked) for asked in SEARCHES] == expected

        put(tmp_path / "photos", 99)
        done = run_command("index", "--data", data, "--model", "palette", tmp_path / "photos")
        assert done.returncode == 0, done.stderr
        wait_until(lambda: len(there.found(SEARCHES[0])) == N_PHOTOS + 1)
    # One that Ray was starting again when it was left ends by its own patience, a minute later.
    wait_until(lambda: not names_of_actors(), at_most_s=120)


@pytest.mark.slow
def test_a_shard_that_is_gone_for_good_is_started_anew(cluster, data):
    with asking(data, "--on", f"ray:{cluster.address}", "--shard-cpus", 0.1) as there:
        expected = there.found(SEARCHES[0])
        first, second = names_of_actors()
        kill(second, restart=False)
        started = time.monotonic()
        assert there.refusal(SEARCHES[0]) == (503, "OVERLOADED")
        assert time.monotonic() - started < 10
        wait_until(lambda: there.search(SEARCHES[0])[0] == 200)
        assert there.found(SEARCHES[0]) == expected
        assert names_of_actors() == [first, second]


@pytest.mark.slow
def test_a_shard_that_answers_nobody_is_a_503_in_time_and_the_server_not_ready(cluster, data):
    wait_until(lambda: not names_of_actors(), at_most_s=120)  # those of the server before
    on = ("--on", f"ray:{cluster.address}", "--shard-cpus", 0.1, "--shard-timeout", 2)
    with asking(data, *on) as there:
        assert there.get("/ready")[0] == 200
        process = a_process_of_an_actor()
        os.kill(process, signal.SIGSTOP)
        try:
            started = time.monotonic()
            assert there.refusal(SEARCHES[0]) == (503, "OVERLOADED")
            assert time.monotonic() - started < 5
            wait_until(lambda: there.get("/ready")[0] == 503)
            assert "of 2 does not answer" in there.get("/ready")[1]
        finally:
            os.kill(process, signal.SIGCONT)
        wait_until(lambda: there.get("/ready")[0] == 200)
        assert len(there.found(SEARCHES[0])) == N_PHOTOS
