import os
import shutil
import threading

import numpy as np
import pytest

from searchlab.config import Config
from searchlab.files import write_atomically, write_once
from searchlab.library import snapshots
from searchlab.library.manifests import read_manifest, read_roots
from searchlab.library.retention import KEPT
from searchlab.library.roots import Root
from searchlab.library.snapshots import current_id, open_snapshot
from tests.support import snapshot_world

folder = snapshot_world.folder
forgetful = snapshot_world.forgetful
save = snapshot_world.save


def names_in(folder):
    return sorted(path.name for path in (folder / "snapshots").iterdir())


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_what_was_written_is_read(folder, save, kind):
    roots = (
        Root(folder / "ä b"),
        Root(folder / "c", folder / "r.jsonl", "unsplash"),
    )
    name = save(["a", "b", "c"], kind=kind, roots=roots, next_label=7)
    snapshot = open_snapshot(folder, name)
    assert current_id(folder) == snapshot.snapshot_id == name
    assert snapshot.config == Config(model="palette", model_id="palette-1", index=kind)
    assert snapshot.roots == read_roots(folder / "snapshots" / name) == roots
    assert snapshot.next_label == 7
    assert sorted(snapshot.table.texts("source_description")) == ["a", "b", "c"]
    assert snapshot.index.search(snapshot.index.vectors[[1]], 1).rows.tolist() == [[1]]


def test_there_is_none_before_the_first(folder):
    assert current_id(folder) is None


def test_names_count_up_and_current_names_the_last(folder, save):
    first, second = save(["a"]), save(["a", "b"])
    assert (first[:7], second[:7]) == ("000001-", "000002-")
    assert current_id(folder) == second
    assert (folder / "CURRENT").read_text() == second + "\n"


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_an_equal_state_gives_no_new_snapshot(folder, save, kind):
    first = save(["a", "b"], kind=kind)
    assert save(["a", "b"], kind=kind) == first
    assert names_in(folder) == [first]


def test_an_equal_state_may_be_written_anew_on_demand(folder, save):
    first = save(["a", "b"])
    second = save(["a", "b"], replace_equal=True)
    assert second != first
    assert current_id(folder) == second


def test_a_state_that_equals_one_before_the_last_is_new(folder, save):
    first = save(["a"])
    save(["a", "b"])
    third = save(["a"])
    assert third[7:] == first[7:]
    assert third[:7] == "000003-"


@pytest.mark.usefixtures("forgetful")
def test_a_few_snapshots_are_kept_the_newest_ones(folder, save):
    names = [save([str(i) for i in range(n)]) for n in range(1, 7)]
    assert KEPT >= 2
    assert names_in(folder) == names[-KEPT:]
    for name in names[-KEPT:]:
        open_snapshot(folder, name)


def test_leftovers_of_unfinished_writers_are_removed_by_the_next(folder, save):
    first = save(["a"])
    left = folder / "snapshots/.unfinished-12345"
    left.mkdir()
    (left / "vectors.npy").write_bytes(b"half")
    second = save(["a", "b"])
    assert names_in(folder) == [first, second]


def test_leftovers_are_removed_also_where_nothing_changed(folder, save):
    first = save(["a"])
    (folder / f"snapshots/.unfinished-{os.getpid()}").mkdir()
    assert save(["a"]) == first
    assert names_in(folder) == [first]


@pytest.mark.usefixtures("forgetful")
def test_other_files_in_the_folder_are_left_alone(folder, save):
    save(["a"])
    (folder / "snapshots/notes.txt").write_text("mine")
    for n in range(2, 7):
        save([str(i) for i in range(n)])
    assert (folder / "snapshots/notes.txt").read_text() == "mine"
    assert len(names_in(folder)) == KEPT + 1


def test_a_snapshot_that_nobody_put_in_force_does_no_harm(folder, save):
    first, second = save(["a"]), save(["a", "b"])
    (folder / "CURRENT").write_text(first + "\n")  # as if killed between the two renames
    assert open_snapshot(folder, current_id(folder)).table.photo(0).source_description == "a"
    third = save(["a", "b", "c"])
    assert third[:7] == "000003-"
    assert names_in(folder) == [first, second, third]


def test_facets_lie_beside_the_photos(folder, save):
    name = save(["a", "b", "c"])
    assert "facets.columns" in read_manifest(folder / "snapshots" / name)["files"]
    words = open_snapshot(folder, name).facets.any_of("source", ["local"]).words
    assert words.tolist() == [7]
    assert not words.flags.writeable


def test_a_current_with_other_line_ends_is_read(folder, save):
    name = save(["a"])
    (folder / "CURRENT").write_bytes(name.encode() + b"\r\n")
    assert current_id(folder) == name


@pytest.mark.usefixtures("forgetful")
def test_an_old_snapshot_goes_on_while_a_new_one_is_written_and_dropped(folder, save):
    name = save(["a", "b", "c"])
    old = open_snapshot(folder, name)
    vector = old.index.vectors[[2]].copy()
    for n in range(4, 9):
        save([str(i) for i in range(n)])
    assert not (folder / "snapshots" / name).exists()
    assert old.index.search(vector, 1).rows.tolist() == [[2]]
    assert sorted(old.table.texts("source_description")) == ["a", "b", "c"]


def test_opened_vectors_cannot_be_written_to(folder, save):
    snapshot = open_snapshot(folder, save(["a"]))
    with pytest.raises(ValueError, match="read-only"):
        snapshot.index.vectors[0, 0] = 1


def test_an_atomic_write_replaces_the_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_an_atomic_write_that_fails_leaves_the_old_bytes(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_an_atomic_write_goes_over_the_leftover_of_a_killed_one(tmp_path):
    (tmp_path / "file.part").write_bytes(b"a very long leftover")
    write_atomically(tmp_path / "file", b"new")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"new")]


@pytest.mark.parametrize("write_file", [write_atomically, write_once])
def test_several_may_write_one_file_at_once(tmp_path, write_file):
    path, wrong = tmp_path / "file", []

    def write(content):
        for _ in range(60):
            try:
                write_file(path, content)
                found = path.read_bytes()
                wrong.extend([found] * (found not in contents))
            except OSError as error:
                wrong.append(error)

    contents = [letter * 50_000 for letter in (b"a", b"b")]
    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert list(tmp_path.iterdir()) == [path]


def test_a_secret_is_written_for_its_owner_only(tmp_path):
    write_atomically(tmp_path / "secret", b"s", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_secret_is_for_its_owner_only_also_over_a_readable_leftover(tmp_path):
    (tmp_path / "secret.part").write_bytes(b"")
    (tmp_path / "secret.part").chmod(0o644)
    write_atomically(tmp_path / "secret", b"s", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_leaves_the_state_in_force(folder, save, monkeypatch):
    first = save(["a"])

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="No space"):
        save(["a", "b"])
    assert names_in(folder) == [first]  # what was written takes no room that others need
    monkeypatch.undo()
    assert current_id(folder) == first
    open_snapshot(folder, first)
    second = save(["a", "b"])
    assert names_in(folder) == [first, second]


# -- writers that died before CURRENT ---------------------------------------------------------


def orphans(folder, name, n):
    """Copies of a snapshot under newer numbers, as killed writers leave them."""
    place = folder / "snapshots"
    first = int(name.split("-")[0]) + 1
    made = [f"{number:06d}-{number:08x}" for number in range(first, first + n)]
    for one in made:
        shutil.copytree(place / name, place / one)
    return made


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("n", [1, KEPT, 3 * KEPT])
def test_orphans_newer_than_current_never_make_current_go_where_nothing_changed(folder, save, n):
    save(["a"])
    name = save(["a", "b"])
    orphans(folder, name, n)
    assert save(["a", "b"]) == name == current_id(folder)
    assert len(open_snapshot(folder, name).table) == 2
    assert len(names_in(folder)) <= KEPT


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("n", [1, KEPT, 3 * KEPT])
def test_orphans_newer_than_current_leave_when_new_states_come(folder, save, n):
    name = save(["a", "b"])
    made = orphans(folder, name, n)
    for i in range(KEPT):
        newest = save(["a", *(chr(ord("c") + j) for j in range(i + 1))])
        assert newest > made[-1]
        assert current_id(folder) == newest
        assert len(open_snapshot(folder, newest).table) == i + 2
        assert len(names_in(folder)) <= KEPT
    assert not set(made) & set(names_in(folder))


def test_a_writer_that_dies_before_current_again_and_again_leaves_the_state_in_force(
    folder, save, monkeypatch
):
    name = save(["a"])

    def dying(path, data, **options):
        if path.name == "CURRENT":
            raise OSError(28, "No space left on device")
        return write_atomically(path, data, **options)

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "write_atomically", dying)
        for i in range(KEPT + 2):
            with pytest.raises(OSError, match="No space"):
                save(["a", *map(str, range(i + 1))])
    assert save(["a"]) == name
    assert len(open_snapshot(folder, current_id(folder)).table) == 1
