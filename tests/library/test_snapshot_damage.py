"""A snapshot that was damaged is refused with its file and what to do."""

import json
import shutil

import pytest

from searchlab.errors import DataError
from searchlab.library import manifests, snapshots
from searchlab.library.manifests import read_manifest
from searchlab.library.roots import Root
from searchlab.library.snapshots import current_id, open_snapshot
from tests.support import snapshot_world

folder = snapshot_world.folder
save = snapshot_world.save


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0x01
    path.write_bytes(content)


@pytest.mark.parametrize("place", [0, 0.3, 0.6, -1])
@pytest.mark.parametrize(
    "file", ["photos.columns", "facets.columns", "vectors.npy", "graph.hnsw", "manifest.json"]
)
def test_a_flipped_bit_anywhere_is_a_data_error_that_names_file_and_remedy(
    folder, save, file, place
):
    name = save(["a", "b", "c"])
    path = folder / "snapshots" / name / file
    flip(path, int(place * path.stat().st_size) if place > 0 else place)
    with pytest.raises(DataError, match=rf"{file}.*--rebuild"):
        open_snapshot(folder, name)


@pytest.mark.parametrize(
    "file", ["photos.columns", "facets.columns", "vectors.npy", "graph.hnsw", "manifest.json"]
)
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "longer", "folder"])
def test_a_missing_or_cut_file_is_a_data_error_that_names_file_and_remedy(
    folder, save, file, damage
):
    name = save(["a", "b", "c"])
    path = folder / "snapshots" / name / file
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "gone":
        path.write_bytes({"empty": b"", "cut": content[:-1], "longer": content + b"x"}[damage])
    with pytest.raises(DataError, match=rf"{file}.*--rebuild"):
        open_snapshot(folder, name)


@pytest.mark.parametrize("file", ["photos.columns", "vectors.npy", "graph.hnsw"])
def test_files_of_another_snapshot_are_noticed(folder, save, file):
    first, second = save(["a", "b"]), save(["c", "d"])
    shutil.copy(folder / "snapshots" / first / file, folder / "snapshots" / second / file)
    with pytest.raises(DataError, match=file):
        open_snapshot(folder, second)


@pytest.mark.parametrize("file", ["photos.columns", "facets.columns", "vectors.npy", "graph.hnsw"])
def test_a_cut_file_is_noticed_also_where_it_is_too_large_to_be_read_whole(
    folder, save, monkeypatch, file
):
    name = save(["a", "b", "c"])
    monkeypatch.setattr(snapshots, "_CHECKED_BYTES", 0)
    path = folder / "snapshots" / name / file
    path.write_bytes(path.read_bytes()[:-64])
    with pytest.raises(DataError, match=file):
        open_snapshot(folder, name)


@pytest.mark.parametrize("file", ["facets.columns", "graph.hnsw"])
def test_a_flipped_bit_of_what_is_trusted_is_noticed_however_large_it_is(
    folder, save, monkeypatch, file
):
    name = save(["a", "b", "c"])
    monkeypatch.setattr(snapshots, "_CHECKED_BYTES", 0)
    flip(folder / "snapshots" / name / file, 40)
    with pytest.raises(DataError, match=file):
        open_snapshot(folder, name)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1},
        {"format": "1"},
        {"config": {"model": "palette", "unknown": 1}},
        {"config": []},
        {"files": None},
        {"next_label": 0},
        {"roots": []},
    ],
)
def test_a_manifest_that_was_changed_is_a_data_error(folder, save, change):
    name = save(["a"], roots=(Root(folder / "p"),))
    path = folder / "snapshots" / name / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change, indent=1, sort_keys=True))
    with pytest.raises(DataError, match=r"manifest\.json.*--rebuild"):
        open_snapshot(folder, name)


def test_a_manifest_of_another_format_says_so(folder, save, monkeypatch):
    name = save(["a"])
    written = manifests.FORMAT
    monkeypatch.setattr(manifests, "FORMAT", 99)
    with pytest.raises(DataError, match=rf"manifest\.json.*format {written}.*99"):
        open_snapshot(folder, name)


@pytest.mark.parametrize(
    "content", [b"[]", b"null", b"7", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}']
)
def test_a_manifest_of_any_bytes_is_a_data_error(folder, save, content):
    name = save(["a"])
    (folder / "snapshots" / name / "manifest.json").write_bytes(content)
    with pytest.raises(DataError, match=r"manifest\.json"):
        read_manifest(folder / "snapshots" / name)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\xff\xfe", b"\0", b"garbage", b"../../etc", b"/etc", b"000001-" + b"x" * 5_000],
)
def test_a_current_of_any_bytes_is_a_data_error_that_names_file_and_remedy(folder, save, content):
    save(["a"])
    (folder / "CURRENT").write_bytes(content)
    with pytest.raises(DataError, match=r"CURRENT.*--rebuild") as caught:
        current_id(folder)
    assert len(str(caught.value)) < 600
    str(caught.value).encode()


def test_a_current_that_is_a_folder_is_a_data_error(folder, save):
    save(["a"])
    (folder / "CURRENT").unlink()
    (folder / "CURRENT").mkdir()
    with pytest.raises(DataError, match="CURRENT"):
        current_id(folder)


def test_a_current_that_names_a_missing_snapshot_is_a_data_error(folder, save):
    save(["a"])
    (folder / "CURRENT").write_text("000009-0123abcd\n")
    with pytest.raises(DataError, match=r"000009-0123abcd.*--rebuild"):
        open_snapshot(folder, current_id(folder))


@pytest.mark.parametrize("labels", [[1, 1, 2], [-1, 0, 1]])
def test_labels_that_are_not_the_photos_own_are_a_data_error(folder, save, labels):
    name = save(["a", "b", "c"], kind="exact", labels=labels)
    with pytest.raises(DataError, match=r"photos\.columns.*labels.*--rebuild"):
        open_snapshot(folder, name)
