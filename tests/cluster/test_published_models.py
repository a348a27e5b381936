"""Models pushed and pulled beside a snapshot: put in place last, or not at all."""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'searchlab[cluster]'")

from searchlab.cluster import publishing
from searchlab.cluster.publishing import pull, push, read_published
from searchlab.cluster.storage import Store
from searchlab.errors import DataError
from searchlab.library.library import create_library
from searchlab.library.snapshots import current_id

FILES = ("models/own/model.json", "models/own/weights/heads.bin")


def publish(store, snapshot_id, version):
    """Push the files of a model, as of a library that has one; returns the objects' names."""
    listed = {}
    for path in FILES:
        content = f"{version} of {path}".encode()
        sha256 = hashlib.sha256(content).hexdigest()
        listed[path] = {"bytes": len(content), "sha256": sha256}
        store.write(f"objects/{sha256}", content)
    store.write(f"snapshots/{snapshot_id}/models.json", json.dumps(listed).encode())
    return [f"objects/{sealed['sha256']}" for sealed in listed.values()]


def files_of(library):
    """Everything in a library's folder, by its path there."""
    paths = (path for path in library.folder.rglob("*") if path.is_file())
    return {str(path.relative_to(library.folder)): path.read_bytes() for path in paths}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "address")


@pytest.fixture
def pulled(library, put, index, store, tmp_path):
    """A library pulled with a model, after which another snapshot with another model was pushed."""
    put("red.png", "#e50000")
    index()
    publish(store, push(library, store).snapshot_id, "first")
    elsewhere = create_library(tmp_path / "elsewhere")
    pull(store, elsewhere)
    put("green.png", "#15b01a")
    index()
    return elsewhere


def test_every_lost_object_leaves_models_and_snapshot_as_they_were(library, pulled, store):
    second = push(library, store).snapshot_id
    models = publish(store, second, "second")
    before = files_of(pulled)
    assert before[FILES[0]] == b"first of models/own/model.json"
    files = read_published(store, second)["files"].values()
    for lost in (*models, *(f"objects/{sealed['sha256']}" for sealed in files)):
        content = store.read(lost)
        store.delete(lost)
        with pytest.raises(DataError, match=f"{lost} must be there, .* push the library again"):
            pull(store, pulled)
        assert files_of(pulled) == before
        store.write(lost, content)
    pull(store, pulled)
    assert current_id(pulled.folder) == second
    after = files_of(pulled)
    assert [after[path].decode() for path in FILES] == [f"second of {path}" for path in FILES]
    assert {path for path in after if not path.startswith("snapshots")} == {
        path for path in before if not path.startswith("snapshots")
    }


def test_a_damaged_model_leaves_nothing_of_it(library, pulled, store):
    models = publish(store, push(library, store).snapshot_id, "second")
    before = files_of(pulled)
    store.write(models[1], b"other")
    with pytest.raises(DataError, match=re.escape(f"{models[1]} must be as it was written")):
        pull(store, pulled)
    assert files_of(pulled) == before


def test_models_change_just_before_the_snapshot_does(library, pulled, store, monkeypatch):
    publish(store, second := push(library, store).snapshot_id, "second")
    first, seen = current_id(pulled.folder), []
    put_in_force = publishing.put_in_force

    def look(folder, snapshot_id):
        seen.append((current_id(folder), (folder / FILES[0]).read_bytes()[:6], snapshot_id))
        put_in_force(folder, snapshot_id)

    synced, fsync = [], os.fsync

    def sync(handle):
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr(publishing, "put_in_force", look)
    monkeypatch.setattr(os, "fsync", sync)
    pull(store, pulled)
    assert {Path(name).name for name in FILES} <= set(synced)
    assert seen == [(first, b"second", second)]
    assert current_id(pulled.folder) == second


def test_what_a_pull_that_was_killed_has_fetched_is_deleted(library, pulled, store):
    left = pulled.folder / "cluster" / "models.part" / "models" / "own"
    left.mkdir(parents=True)
    (left / "model.json").write_text("half")
    publish(store, push(library, store).snapshot_id, "second")
    pull(store, pulled)
    assert (pulled.folder / FILES[0]).read_bytes() == b"second of models/own/model.json"
    assert not list((pulled.folder / "cluster").iterdir())
