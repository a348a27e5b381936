"""A library's own folder: made, opened, refused, pruned."""

import json
import os
import re
import shutil

import pytest

from searchlab.errors import DataError, InputError, MissingExtraError, NotFoundError
from searchlab.files import id_of_folder
from searchlab.library.library import create_library, open_library
from searchlab.library.prune import prune
from searchlab.library.retention import KEPT
from searchlab.search.queries import Query
from tests.support import library_world, snapshot_world
from tests.support.library_world import ids_by_name, state_of

embedded = library_world.embedded
forgetful = snapshot_world.forgetful
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


# -- its id ---------------------------------------------------------------------------------------


def test_the_id_of_a_folder_stays_when_it_is_moved_and_a_copy_has_its_own(tmp_path):
    one = tmp_path / "one"
    one.mkdir()
    made = id_of_folder(one, "ID")
    shutil.copytree(one, tmp_path / "copied")
    one.rename(tmp_path / "moved")
    assert id_of_folder(tmp_path / "moved", "ID") == made
    copied = id_of_folder(tmp_path / "copied", "ID")
    assert id_of_folder(tmp_path / "copied", "ID") == copied != made


@pytest.mark.parametrize("content", ["", "{", "[]", "7", "{}", "5e6bb1d1b4a54a4c8f6ea8e9d5f0a3c1"])
def test_a_damaged_id_is_made_anew(tmp_path, content):
    (tmp_path / "ID").write_text(content)
    made = id_of_folder(tmp_path, "ID")
    assert len(made) == 32
    assert id_of_folder(tmp_path, "ID") == made


@pytest.mark.parametrize("wrong", ["", "../../etc", 7, None])
def test_an_id_that_nobody_here_made_is_not_taken(tmp_path, wrong):
    stored = {"library": wrong, "inode": tmp_path.stat().st_ino}
    (tmp_path / "ID").write_text(json.dumps(stored))
    assert re.fullmatch("[0-9a-f]{32}", id_of_folder(tmp_path, "ID"))


# -- made and opened ----------------------------------------------------------------------------


def test_a_folder_without_a_library_is_not_found_and_the_remedy_named(tmp_path):
    with pytest.raises(NotFoundError, match="searchlab index"):
        open_library(tmp_path)
    with pytest.raises(NotFoundError, match="searchlab index"):
        open_library(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"7", b"\xff", b'{"format": 99}', b'{"format": "1"}']
)
def test_a_library_file_of_any_bytes_or_of_another_format_is_a_data_error(library, content):
    (library.folder / "library.json").write_bytes(content)
    with pytest.raises(DataError, match=r"library\.json"):
        open_library(library.folder)
    with pytest.raises(DataError, match=r"library\.json"):
        create_library(library.folder)


def test_a_file_in_place_of_the_folder_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises((DataError, InputError), match="file"):
        open_library(tmp_path / "file")
    with pytest.raises((DataError, InputError), match="file"):
        create_library(tmp_path / "file")
    with pytest.raises((DataError, InputError), match="file"):
        create_library(tmp_path / "file/below")


def test_a_missing_secret_is_told_and_made_anew_by_indexing(put, index, library):
    put("a.png", 1)
    index()
    (library.folder / "secret.key").unlink()
    with pytest.raises(DataError, match=r"secret\.key"):
        open_library(library.folder)
    assert list(ids_by_name(create_library(library.folder))) == ["a.png"]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_secret_of_another_length_is_a_data_error(library, content):
    (library.folder / "secret.key").write_bytes(content)
    with pytest.raises(DataError, match=r"secret\.key.*delete it"):
        open_library(library.folder)


def test_the_secret_is_for_its_owner_only_and_different_in_every_library(library, tmp_path):
    assert (library.folder / "secret.key").stat().st_mode & 0o077 == 0
    other = create_library(tmp_path / "other")
    assert (library.folder / "secret.key").read_bytes() != (
        other.folder / "secret.key"
    ).read_bytes()


def test_making_a_library_again_opens_it(put, index, library):
    put("a.png", 1)
    index()
    before = state_of(library), (library.folder / "secret.key").read_bytes()
    again = create_library(str(library.folder))
    assert (state_of(again), (again.folder / "secret.key").read_bytes()) == before


# -- pruned -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("forgetful")
def test_pruning_drops_what_no_state_has_and_costs_no_embedding(
    put, index, library, photos, embedded
):
    for i in range(10):
        put(f"{i}.png", i)
    index()
    for i in range(5):
        (photos / f"{i}.png").unlink()
    for i in range(KEPT):
        put(f"x{i}.png", 100 + i)
        index()
    prune(library)
    assert len(list((library.folder / "thumbnails").glob("*/*.webp"))) == 5 + KEPT
    count = sum(embedded)
    index()
    index(rebuild=True)
    assert sum(embedded) == count
    put("0.png", 0)
    index()
    assert sum(embedded) == count + 1


def test_pruning_leaves_small_pictures_that_are_being_written(put, index, library):
    put("a.png", 1)
    index()
    folder = library.thumbnails / "ab"
    folder.mkdir(exist_ok=True)
    fresh, left = folder / "fresh.part", folder / "left.part"
    for path in (fresh, left):
        path.write_bytes(b"RI")
    os.utime(left, (0, 0))
    prune(library)
    assert [path.name for path in folder.glob("*.part")] == ["fresh.part"]


def test_pruning_keeps_what_an_older_kept_state_has(put, index, library, photos):
    for i in range(6):
        put(f"{i}.png", i)
    index()
    cursor = library.search(Query(text="red"), per_page=3).next_cursor
    for i in range(3):
        (photos / f"{i}.png").unlink()
    index()
    prune(library)
    page = open_library(library.folder).search(cursor=cursor)
    assert all(hit.thumbnail.exists() for hit in page)


def test_pruning_keeps_all_vectors_while_a_model_of_a_kept_state_cannot_be_loaded(
    put, index, library, monkeypatch, embedded
):
    put("a.png", 1)
    index()
    count = sum(embedded)

    def load(folder, config):
        msg = "its extra is not installed"
        raise MissingExtraError(msg)

    with monkeypatch.context() as patch:
        patch.setattr("searchlab.library.prune.load_model_of", load)
        prune(library)
    index(rebuild=True)
    assert sum(embedded) == count


def test_pruning_passes_over_a_damaged_older_state(put, index, library):
    put("a.png", 1)
    name = index().snapshot_id
    put("b.png", 2)
    index()
    (library.folder / "snapshots" / name / "photos.columns").unlink()
    prune(library)
    assert sorted(ids_by_name(library)) == ["a.png", "b.png"]
