"""Pictures embedded on Ray: the same library as one machine's, nothing twice, whoever dies."""

import functools
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from PIL import Image

from searchlab.cluster.runners import RayRunner, open_runner
from searchlab.errors import InputError, MissingExtraError, SearchlabError
from searchlab.library.cache import ContentCache
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.progress import Progress
from tests.support.counting_model import BLUE, SPEC, seen
from tests.support.waiting import wait_until

N_PHOTOS = 64


def test_a_runner_is_named_by_an_address():
    for name in ("ray", "ray:", "spark:local", ""):
        with pytest.raises(InputError, match="a runner must be ray:local or ray:ADDRESS"):
            open_runner(name)


@pytest.mark.slow
def test_the_local_runner_needs_no_ray(photos, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    here, there = create_library(tmp_path / "here"), create_library(tmp_path / "there")
    one = index_photos(here, [photos], model="palette")
    assert index_photos(there, [photos], model="palette", runner=open_runner("local")) == one


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'searchlab\[cluster\]'"):
        open_runner("ray:local")


def test_work_goes_with_a_runner(run, tmp_path):
    done = run("index", tmp_path, "--data", tmp_path / "library", "--work", tmp_path)
    assert (done.code, (tmp_path / "library").exists()) == (2, False)
    assert "--work goes with --on" in done.err


@pytest.mark.parametrize("command", [["index", "."], ["evaluate", "--dataset", "demo"]])
def test_what_a_task_takes_goes_with_a_runner(run, tmp_path, command):
    done = run(*command, "--data", tmp_path / "library", "--gpus", "1")
    assert (done.code, "--gpus goes with --on, got none" in done.err) == (2, True)
    assert not (tmp_path / "library").exists()


def test_what_a_task_takes_is_no_less_than_nothing():
    for wrong in (-1.0, float("nan"), float("inf"), 1.5, 0.00001):
        with pytest.raises(InputError, match="gpus must be a whole number, or a part of 1"):
            RayRunner("local", gpus=wrong)
    with pytest.raises(InputError, match="gpus must go with Ray, got them with local"):
        open_runner("local", gpus=1)


@pytest.mark.slow
def test_a_task_that_does_not_fit_is_refused_instead_of_waiting_for_ever(ray, photos, tmp_path):
    library = create_library(tmp_path / "library")
    runner = open_runner("ray:local", gpus=10_000)
    with pytest.raises(InputError, match=r"got one of 1 CPUs and 10000 GPUs .* ask for less"):
        index_photos(library, [photos], model="palette", runner=runner)


def test_work_must_be_where_other_processes_see_it(tmp_path):
    pytest.importorskip("fsspec", reason="fsspec: pip install 'searchlab[cluster]'")
    with pytest.raises(InputError, match="work must be an address that other processes reach"):
        RayRunner("local", work="memory://x").embed({}, [], None, tmp_path / "small", Progress())


@pytest.mark.parametrize("work", ["", "s3://", "s3:///", "file:///"])
def test_work_must_name_a_place_before_a_library_is_made(run, tmp_path, work, ray_named_only):
    with pytest.raises(InputError, match="an address must be a folder or a URL"):
        RayRunner("local", work=work)
    words = ["index", tmp_path, "--data", tmp_path / "library", "--on", "ray:local"]
    done = run(*words, "--work", work)
    assert done.code == 2
    assert "an address must be a folder or a URL such as s3://bucket/library, got" in done.err
    assert not (tmp_path / "library").exists()


# -- on Ray -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Pictures of one colour each, one that is broken, and one that lies there twice."""
    folder = tmp_path_factory.mktemp("photos").resolve()
    lines = []
    for number in range(N_PHOTOS):
        file = folder / f"{number:03d}.png"
        pixels = np.full((20, 30, 3), (number, 255 - number, BLUE), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
        lines.append(json.dumps({"file": file.name, "uploaded_on": "2024-01-01"}))
    (folder / "999.png").write_bytes((folder / "000.png").read_bytes())
    (folder / "broken.png").write_bytes((folder / "001.png").read_bytes()[:60])
    (folder / "photos.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture
def counted(tmp_path):
    """A folder in which the model notes what it embeds, and the model's spec."""
    folder = tmp_path / "counted"
    folder.mkdir()
    return folder, f"{SPEC}:{folder}"


@pytest.fixture
def runner(tmp_path):
    return open_runner("ray:local", work=str(tmp_path / "work"), most_pictures=16)


def times_seen(folder):
    """How often each of the pictures was embedded; probes of the model are left out."""
    colours = Counter(seen(folder))
    return {n: colours[str([n, 255 - n, BLUE])] for n in range(N_PHOTOS)}


def thumbnails_of(library):
    paths = library.thumbnails.rglob("*.webp")
    return {path.name: path.read_bytes() for path in paths}


class Hooked(Progress):
    """Calls a function each time that pictures are done."""

    def __init__(self, hook):
        self.hook = hook

    @contextmanager
    def step(self, name, total=None, *, unit=""):
        with super().step(name, total, unit=unit) as step:
            is_embedding = name == "embedding photos"
            yield replace(step, advance=lambda n: self.hook(n)) if is_embedding else step


@pytest.mark.slow
@pytest.mark.parametrize("model", ["palette", "mini"])
def test_the_library_is_the_one_that_one_machine_makes(
    two_workers, photos, tmp_path, model, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # workers stand elsewhere
    runner = open_runner("ray:local", work="work", most_pictures=16)
    here, there = create_library(tmp_path / "here"), create_library(tmp_path / "there")
    one = index_photos(here, [photos], model=model)
    other = index_photos(there, [photos], model=model, runner=runner)
    assert other == one
    assert one.copies == len(one.problems) == 1
    assert thumbnails_of(there) == thumbnails_of(here)
    assert [path.name for path in (tmp_path / "work").rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_nothing_is_embedded_twice(two_workers, runner, photos, tmp_path, counted):
    folder, spec = counted
    library = create_library(tmp_path / "library")
    first = index_photos(library, [photos], model=spec, runner=runner)
    assert set(times_seen(folder).values()) == {1}
    again = index_photos(library, [photos], runner=runner)
    assert again.snapshot_id == first.snapshot_id
    assert set(times_seen(folder).values()) == {1}


@pytest.mark.slow
def test_parts_go_through_an_object_store(two_workers, photos, tmp_path, s3_options):
    options = {"work": "s3://photos/work", "store_options": s3_options, "most_pictures": 16}
    runner = open_runner("ray:local", **options)
    here, there = create_library(tmp_path / "here"), create_library(tmp_path / "there")
    one = index_photos(here, [photos], model="palette")
    assert index_photos(there, [photos], model="palette", runner=runner) == one
    assert thumbnails_of(there) == thumbnails_of(here)


@pytest.mark.slow
def test_libraries_that_share_an_address_keep_out_of_each_others_way(
    two_workers, runner, photos, tmp_path, counted
):
    folder, spec = counted
    one, other = create_library(tmp_path / "one"), create_library(tmp_path / "other")
    reports = []

    def index_other(_count):
        hooked.hook = lambda _count: None
        reports.append(index_photos(other, [photos], model=spec, runner=runner))

    hooked = Hooked(index_other)
    reports.append(index_photos(one, [photos], model=spec, runner=runner, progress=hooked))
    assert reports[0] == reports[1]
    assert set(times_seen(folder).values()) == {2}  # once for each of them


@pytest.mark.slow
def test_a_killed_worker_costs_its_shard_at_most(two_workers, runner, photos, tmp_path, counted):
    folder, spec = counted
    library = create_library(tmp_path / "library")

    def kill_one(_count):
        hooked.hook = lambda _count: None
        (folder / "die").touch()

    hooked = Hooked(kill_one)
    report = index_photos(library, [photos], model=spec, runner=runner, progress=hooked)
    assert report.n_photos == N_PHOTOS
    times = Counter(times_seen(folder).values())
    assert times[0] == 0
    assert 1 <= times[2] <= 16
    assert times[1] + times[2] == N_PHOTOS


@pytest.mark.slow
def test_a_slow_shard_does_not_hold_the_rest(two_workers, runner, photos, tmp_path, counted):
    folder, spec = counted
    library = create_library(tmp_path / "library")
    (folder / "hold").touch()
    taken = []

    def count(n_pictures):
        taken.append(n_pictures)
        if sum(taken) >= N_PHOTOS - 16:  # all but those of the shard that is held
            (folder / "hold").unlink(missing_ok=True)

    report = index_photos(library, [photos], model=spec, runner=runner, progress=Hooked(count))
    assert report.n_photos == N_PHOTOS
    assert sum(taken) == N_PHOTOS + 1
    assert max(taken) <= 16


@pytest.mark.slow
def test_an_error_of_a_worker_is_told_and_leaves_what_was_finished(
    two_workers, runner, photos, tmp_path, counted
):
    folder, spec = counted
    library = create_library(tmp_path / "library")
    (folder / "fail").touch()
    with pytest.raises(
        SearchlabError, match=r"a task must embed its pictures, got: .*asked to fail"
    ):
        index_photos(library, [photos], model=spec, runner=runner)
    (folder / "fail").unlink()
    assert index_photos(library, [photos], model=spec, runner=runner).n_photos == N_PHOTOS


# -- nodes and drivers that die ---------------------------------------------------------------


@pytest.fixture
def cluster(ray):
    from ray.cluster_utils import Cluster

    ray.shutdown()
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.slow
def test_a_killed_node_costs_the_shards_under_way_at_most(
    ray, cluster, runner, photos, tmp_path, counted
):
    folder, spec = counted
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    (folder / "slow").touch()
    library = create_library(tmp_path / "library")

    def kill_node(_count):
        hooked.hook = lambda _count: None
        cluster.remove_node(nodes[0], allow_graceful=False)

    hooked = Hooked(kill_node)
    report = index_photos(library, [photos], model=spec, runner=runner, progress=hooked)
    assert report.n_photos == N_PHOTOS
    times = Counter(times_seen(folder).values())
    assert times[0] == 0
    assert times[2] <= 16
    assert times[1] + times[2] == N_PHOTOS


DRIVER = """
import os, signal, sys, time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from searchlab.cluster.runners import open_runner
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.progress import Progress
address, work, library, photos, spec = sys.argv[1:]

def die(_count):
    while not any(Path(work).rglob("parts/*.json")):  # one that is finished and not taken in
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)

class Dying(Progress):
    @contextmanager
    def step(self, name, total=None, *, unit=""):
        with super().step(name, total, unit=unit) as step:
            yield replace(step, advance=die) if name == "embedding photos" else step

runner = open_runner(f"ray:{address}", work=work, most_pictures=16)
index_photos(create_library(library), [Path(photos)], model=spec, runner=runner, progress=Dying())
"""


@pytest.mark.slow
def test_a_killed_driver_costs_the_shards_under_way_at_most(
    ray, cluster, runner, photos, tmp_path, counted
):
    folder, spec = counted
    cluster.add_node(num_cpus=1)
    work = tmp_path / "work"
    words = [cluster.address, work, tmp_path / "library", photos, spec]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    finished = len(list(work.rglob("parts/*.json")))
    assert finished >= 1
    # One shard was taken in before, and those with a marker are taken in now.
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    wait_until(lambda: ray.available_resources().get("CPU", 0) == 1)
    report = index_photos(create_library(tmp_path / "library"), [photos], model=spec, runner=runner)
    assert report.n_photos == N_PHOTOS
    times = Counter(times_seen(folder).values())
    assert times[0] == 0
    assert times[2] <= 16
    assert times[1] + times[2] == N_PHOTOS


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_told(ray, photos, tmp_path, monkeypatch):
    ray.shutdown()
    # Nor those of other tests on this machine, which Ray would find.
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", functools.cache(set))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    library = create_library(tmp_path / "library")
    with pytest.raises(SearchlabError, match="ray:auto must be a cluster that can be reached"):
        index_photos(library, [photos], model="palette", runner=open_runner("ray:auto"))


@pytest.mark.slow
def test_the_command_embeds_on_ray_of_its_own(ray, photos, tmp_path, run):
    ray.shutdown()
    words = ["index", photos, "--data", tmp_path / "library", "--model", "palette"]
    done = run(*words, "--on", "ray:local")
    assert done.code == 0, done.err
    assert f"{N_PHOTOS} photos: {N_PHOTOS} added" in done.out
    assert not ray.is_initialized()
    assert not Path(tmp_path, "library", "cluster", "PLAN.json").exists()


def test_two_that_embed_for_one_library_take_turns(tmp_path):
    """The second one would take the parts of the first one for those of a run that died."""
    pytest.importorskip("fsspec", reason="fsspec: pip install 'searchlab[cluster]'")
    (tmp_path / "cluster").mkdir()

    def embed():
        with ContentCache(tmp_path / "cache.db") as cache:
            return RayRunner("local").embed({}, [], cache, tmp_path / "small", Progress())

    with ThreadPoolExecutor(1) as pool:
        with FileLock(tmp_path / "cluster" / "embedding.lock"):
            second = pool.submit(embed)
            with pytest.raises(TimeoutError):
                second.result(0.3)
        assert second.result(30) == []
