"""Embedding by tasks, as on Ray but in this process: what becomes of a run whose tasks fail."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from searchlab.cluster import runners
from searchlab.cluster.runners import open_runner
from searchlab.cluster.tasks import LocalTasks
from searchlab.errors import MismatchError, SearchlabError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library

N_PHOTOS, A_PART = 64, 16

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray_named_only")]


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path.resolve() / "photos"
    folder.mkdir()
    for number in range(N_PHOTOS):
        pixels = np.full((20, 30, 3), (number, 255 - number, 7), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:03d}.png")
    return folder


@pytest.fixture
def failing(monkeypatch):
    """Which parts fail, by the name of a file that they hold; notes those that are tried."""
    names, tried = set(), []

    class Tasks(LocalTasks):
        def __init__(self, *_where, **_how):
            pass

        def run(self, function, waiting, *shared):
            def fail_some(shard, *rest):
                tried.append(shard)
                if any(path.rpartition("/")[2] in names for path in shard.files.values()):
                    msg = "a task must end, got: a worker that died"
                    raise SearchlabError(msg)
                function(shard, *rest)

            yield from super().run(fail_some, waiting, *shared)

    monkeypatch.setattr(runners, "RayTasks", Tasks)
    return names, tried


def embed(photos, library, runner):
    return index_photos(library, [photos], model="palette", runner=runner)


def test_a_part_that_fails_is_named_by_its_first_file_and_the_others_are_kept(
    photos, failing, tmp_path
):
    names, tried = failing
    runner = open_runner("ray:local", work=str(tmp_path / "work"), most_pictures=A_PART)
    library = create_library(tmp_path / "library")
    names.add("020.png")
    with pytest.raises(
        SearchlabError,
        match=r"in 4 parts, got 1 that failed, such as the one of 16 pictures from .*\.png on: a "
        r"task must end, got: a worker that died; what the others made is kept",
    ):
        embed(photos, library, runner)
    assert len(tried) == 4
    names.clear()
    assert embed(photos, library, runner).n_photos == N_PHOTOS
    assert len(tried) == 5  # the one that had failed


def test_a_copied_library_leaves_the_work_of_the_original_alone(photos, failing, tmp_path):
    names, _ = failing
    runner = open_runner("ray:local", work=str(tmp_path / "work"), most_pictures=A_PART)
    library = create_library(tmp_path / "library")
    names.add("020.png")
    with pytest.raises(SearchlabError, match="got 1 that failed"):
        embed(photos, library, runner)
    (own,) = (tmp_path / "work").iterdir()
    plan = (own / "PLAN.json").read_bytes()
    names.clear()
    copy = create_library(shutil.copytree(library.folder, tmp_path / "copy"))
    assert embed(photos, copy, runner).n_photos == N_PHOTOS
    assert len(list((tmp_path / "work").iterdir())) == 2
    assert (own / "PLAN.json").read_bytes() == plan
    assert embed(photos, library, runner).n_photos == N_PHOTOS
    assert not (own / "PLAN.json").exists()


def test_a_folder_that_a_node_does_not_mount_is_named(photos, tmp_path, monkeypatch):
    class TasksOfAnother(LocalTasks):
        """Run on a machine that has another folder at that path."""

        def __init__(self, *_where, **_how):
            pass

        def run(self, function, waiting, work, *shared):
            return super().run(function, waiting, str(tmp_path / "another"), *shared)

    monkeypatch.setattr(runners, "RayTasks", TasksOfAnother)
    with pytest.raises(
        SearchlabError,
        match=r"/library/cluster must be a folder that all nodes mount alike, got none of what a "
        r"worker wrote there; mount it, or name an address .* with --work",
    ):
        embed(photos, create_library(tmp_path / "library"), open_runner("ray:local"))


def test_a_folder_that_damages_what_is_written_is_told_as_that(photos, tmp_path, monkeypatch):
    class DamagingTasks(LocalTasks):
        def __init__(self, *_where, **_how):
            pass

        def run(self, function, waiting, work, *shared):
            for shard, error in super().run(function, waiting, work, *shared):
                Path(work, "parts", f"{shard.name}.db").write_bytes(b"")
                yield shard, error

    monkeypatch.setattr(runners, "RayTasks", DamagingTasks)
    with pytest.raises(SearchlabError, match="must keep what workers write, got parts that are"):
        embed(photos, create_library(tmp_path / "library"), open_runner("ray:local"))


def test_where_all_fail_not_all_are_tried(photos, failing, tmp_path, monkeypatch):
    names, tried = failing
    monkeypatch.setattr(runners, "_MOST_FAILED", 2)
    names.update(path.name for path in photos.iterdir())
    runner = open_runner("ray:local", work=str(tmp_path / "work"), most_pictures=A_PART)
    with pytest.raises(SearchlabError, match="in 4 parts, got 2 that failed"):
        embed(photos, create_library(tmp_path / "library"), runner)
    assert len(tried) == 2


def test_another_searchlab_on_a_node_is_refused_at_once(photos, failing, tmp_path, monkeypatch):
    _, tried = failing
    codes = iter(["driver", "node"])
    monkeypatch.setattr(runners, "code_here", lambda: next(codes))
    runner = open_runner("ray:local", work=str(tmp_path / "work"), most_pictures=A_PART)
    with pytest.raises(
        MismatchError, match="searchlab must have code driver on every node, got node; install"
    ):
        embed(photos, create_library(tmp_path / "library"), runner)
    assert len(tried) == 1
