"""Indexing where something is in the way: the library itself, folders and files out of reach."""

import datetime
import errno
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from searchlab import create_library, index_photos
from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED
from searchlab.errors import InputError, MismatchError, MissingExtraError
from searchlab.library import catalog, scan
from searchlab.library.library import open_library
from searchlab.library.roots import check_root
from searchlab.models import load_model
from searchlab.models.palette.embedder import PaletteEmbedder
from searchlab.models.shipped_calibration import default_calibration
from searchlab.progress import Progress
from tests.support import library_world

PALETTE = Config(model="palette")

library = library_world.library
put = library_world.put


@pytest.fixture
def photos(tmp_path):
    return (tmp_path / "photos").resolve()


@pytest.fixture
def on_day(monkeypatch):
    """Sets the day that photos without a date are given."""

    def set_day(day):
        class Clock(datetime.datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.datetime(2030, 1, day, tzinfo=tz)

        fake = SimpleNamespace(datetime=Clock, date=datetime.date, UTC=datetime.UTC)
        monkeypatch.setattr(catalog, "datetime", fake)

    return set_day


@pytest.fixture
def two_folders(put, library, photos, on_day):
    """Two photos near, two far, indexed on the first day; returns the snapshot's folder."""
    on_day(1)
    for i in range(2):
        put(f"near/{i}.png", i)
        put(f"far/{i}.png", 10 + i)
    report = index_photos(library, [photos / "near", photos / "far"], config=PALETTE)
    on_day(2)
    return library.folder / "snapshots" / report.snapshot_id


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def files(library):
    """What the state in force holds: upload date by file."""
    table = open_library(library.folder).snapshot().table
    return {photo.file: photo.uploaded_on for photo in map(table.photo, range(len(table)))}


# -- the library itself -----------------------------------------------------------------------


@pytest.mark.parametrize("inside", [".", "thumbnails", "snapshots", "photos/of/mine"])
def test_a_source_that_is_the_library_or_lies_in_it_is_refused(put, photos, inside):
    library = create_library(photos)
    put("a.png", 1)
    (photos / inside).mkdir(parents=True, exist_ok=True)
    with pytest.raises(InputError, match="must lie outside the library"):
        index_photos(library, [photos / inside], config=PALETTE)
    assert library.snapshot() is None


def test_a_link_into_the_library_is_refused_too(put, photos, tmp_path):
    library = create_library(photos)
    put("a.png", 1)
    (tmp_path / "link").symlink_to(photos, target_is_directory=True)
    with pytest.raises(InputError, match="must lie outside the library"):
        index_photos(library, [tmp_path / "link"], config=PALETTE)


def test_a_photo_behind_a_link_stays_while_its_disk_is_away(put, photos, library, tmp_path):
    inside = put("a.png", 1)
    disk = tmp_path / "disk"
    disk.mkdir()
    put("b.png", 2).rename(disk / "b.png")
    (photos / "b.png").symlink_to(disk / "b.png")
    (photos / "dead").symlink_to(disk / "dead")  # not named as a picture: nobody misses it
    index_photos(library, [photos], config=PALETTE)
    before = files(library)
    disk.rename(tmp_path / "unplugged")
    report = index_photos(library, [photos])
    assert (report.n_photos, report.removed) == (2, 0)
    (problem,) = report.problems
    assert problem.where == str(photos / "b.png")
    assert problem.reason.startswith("cannot be read")
    assert files(library) == before
    (photos / "b.png").unlink()
    assert index_photos(library, [photos]).removed == 1
    assert list(files(library)) == [str(inside)]


def test_libraries_inside_a_covered_folder_are_passed_over(put, photos, library, tmp_path):
    put("a.png", 1)
    inner = create_library(photos / "deep/data")
    index_photos(inner, [put("b.png", 2).parent], config=PALETTE)
    report = index_photos(library, [photos], config=PALETTE)
    assert (report.n_photos, report.problems) == (2, [])
    assert {Path(file).name for file in files(library)} == {"a.png", "b.png"}


@pytest.mark.parametrize("inside", [".", "thumbnails"])
def test_a_source_that_is_another_library_or_lies_in_one_is_refused(put, library, tmp_path, inside):
    other = create_library(tmp_path / "other")
    index_photos(other, [put("a.png", 1).parent], config=PALETTE)
    with pytest.raises(InputError, match="must lie outside"):
        index_photos(library, [other.folder / inside], config=PALETTE)


# -- ways to name a folder --------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, Path, check_root])
def test_a_folder_may_be_a_string_a_path_or_a_root(put, photos, library, kind):
    put("a.png", 1)
    report = index_photos(library, [kind(photos)], model="palette")
    assert (report.n_photos, report.added) == (1, 1)
    [photo] = [hit.photo for hit in library.search("red")]
    assert photo.source == "local"


@pytest.mark.parametrize("kind", [str, Path])
def test_a_string_or_path_that_is_no_folder_is_refused(library, photos, kind):
    with pytest.raises(InputError, match="must be a folder of photos"):
        index_photos(library, [kind(photos / "nowhere")])


# -- rebuilding while a folder is out of reach ------------------------------------------------


@pytest.mark.parametrize("file", ["vectors.npy", None])
def test_a_rebuild_keeps_the_photos_of_a_missing_folder_and_all_dates(
    two_folders, library, photos, tmp_path, file
):
    before = files(library)
    if file:
        damage(two_folders / file)
    (photos / "far").rename(tmp_path / "unplugged")
    report = index_photos(library, rebuild=True)
    assert (report.n_photos, report.added, report.removed) == (4, 0, 0)
    assert report.missing == [photos / "far"]
    assert files(library) == before
    assert set(before.values()) == {"2030-01-01"}
    open_library(library.folder).check()


def test_a_rebuild_that_can_neither_reach_nor_remember_the_photos_is_refused(
    two_folders, library, photos, tmp_path
):
    damage(two_folders / "photos.columns")
    (photos / "far").rename(tmp_path / "unplugged")
    with pytest.raises(InputError, match=r"reach every folder.*far.*--forget") as refused:
        index_photos(library, rebuild=True)
    assert "near" not in str(refused.value)
    assert two_folders.is_dir()
    assert index_photos(library, rebuild=True, forget=[photos / "far"]).n_photos == 2


def test_a_rebuild_from_the_folders_alone_finds_every_photo_again(two_folders, library):
    before = files(library)
    damage(two_folders / "photos.columns")
    report = index_photos(library, rebuild=True)
    assert (report.n_photos, report.missing) == (4, [])
    assert files(library).keys() == before.keys()


def test_a_rebuild_counts_what_came_and_what_left(two_folders, library, put, photos):
    damage(two_folders / "vectors.npy")
    put("near/new.png", 99)
    (photos / "far/0.png").unlink()
    report = index_photos(library, rebuild=True)
    assert (report.n_photos, report.added, report.removed) == (4, 1, 1)
    dates = {Path(file).name: day for file, day in files(library).items()}
    assert dates["new.png"] == "2030-01-02"
    assert dates["1.png"] == "2030-01-01"


# -- what shows nothing or cannot be read at the moment ---------------------------------------


def test_an_emptied_folder_keeps_its_photos_until_it_is_forgotten(two_folders, library, photos):
    before = files(library)
    for path in (photos / "far").iterdir():
        path.unlink()
    report = index_photos(library)
    assert report.missing == [photos / "far"]
    assert (report.n_photos, report.removed) == (4, 0)
    assert files(library) == before
    report = index_photos(library, forget=[photos / "far"])
    assert (report.n_photos, report.removed, report.missing) == (2, 2, [])


def test_a_photo_deleted_beside_others_leaves(two_folders, library, photos):
    (photos / "far/0.png").unlink()
    report = index_photos(library)
    assert (report.n_photos, report.removed, report.missing) == (3, 1, [])


def test_a_file_that_cannot_be_read_keeps_its_photo(two_folders, library, photos, monkeypatch):
    before = files(library)
    path = photos / "far/0.png"
    os.utime(path, (1, 1))  # so that it must be read again
    read = scan.hashlib.file_digest

    def failing(file, algorithm):
        if file.name == str(path):
            raise OSError(errno.EIO, "Input/output error")
        return read(file, algorithm)

    with monkeypatch.context() as patch:
        patch.setattr(scan.hashlib, "file_digest", failing)
        report = index_photos(library)
    assert (report.n_photos, report.added, report.removed) == (4, 0, 0)
    [problem] = report.problems
    assert (problem.where, problem.reason) == (str(path), "cannot be read: Input/output error")
    assert files(library) == before
    assert index_photos(library).problems == []


def test_a_file_that_the_decoder_cannot_read_keeps_its_photo(
    two_folders, library, photos, monkeypatch
):
    before = files(library)
    path = photos / "far/0.png"
    for small in library.thumbnails.rglob("*.webp"):
        small.unlink()  # so that it must be decoded again
    plain_open = Path.open

    def failing(self, *args, **options):
        if self == path:
            raise PermissionError(errno.EACCES, "Permission denied")
        return plain_open(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", failing)
        report = index_photos(library)
    assert (report.n_photos, report.removed) == (4, 0)
    assert [(p.where, p.reason) for p in report.problems] == [(str(path), "unreadable")]
    assert files(library) == before


def test_a_folder_that_cannot_be_listed_keeps_its_photos(put, library, photos, monkeypatch):
    put("a.png", 1)
    put("sub/b.png", 2)
    put("sub/deeper/c.png", 3)
    index_photos(library, [photos], config=PALETTE)
    before = files(library)
    plain_scandir = os.scandir

    def failing(path="."):
        if str(path) == str(photos / "sub"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return plain_scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", failing)
        report = index_photos(library)
    assert [problem.where for problem in report.problems] == [str(photos / "sub")]
    assert (report.n_photos, report.removed) == (3, 0)
    assert files(library) == before


def test_a_file_that_became_no_picture_gives_its_photo_up(two_folders, library, photos):
    (photos / "far/0.png").write_bytes(b"no picture any more")
    report = index_photos(library)
    assert (report.n_photos, report.removed) == (3, 1)
    assert [problem.reason for problem in report.problems] == ["not an image"]


# -- a model that has changed -----------------------------------------------------------------


class Said(Progress):
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)


@pytest.mark.slow
def test_after_the_model_has_changed_photos_are_embedded_again_and_scores_calibrated_anew(
    put, library, photos, monkeypatch
):
    for i in range(3):
        put(f"{i}.png", i)
    index_photos(library, [photos], model="palette")
    palette = load_model("palette")
    old = library.snapshot().config
    assert old.calibration == default_calibration(palette.model_id) != UNCALIBRATED
    embedded, encode = [], PaletteEmbedder.encode_images

    def counted(self, images):
        embedded.extend(image for image in images if image.size != (320, 320))
        return encode(self, images)

    monkeypatch.setattr(PaletteEmbedder, "encode_images", counted)
    monkeypatch.setattr(palette, "model_id", "palette-ffffffffffff")
    changed, progress = open_library(library.folder), Said()
    with pytest.raises(MismatchError, match=r"palette-ffffffffffff"):
        changed.publish(old)
    assert embedded == []
    report = index_photos(changed, progress=progress)
    assert (report.n_photos, report.added, report.removed, len(embedded)) == (3, 0, 0, 3)
    new = changed.snapshot().config
    assert (new.model_id, new.calibration) == ("palette-ffffffffffff", UNCALIBRATED)
    assert replace(new, model_id=old.model_id, calibration=old.calibration) == old
    [line] = progress.lines
    assert line == "palette is now palette-ffffffffffff: the photos are embedded again"
    assert len(changed.search("red")) == 3
    progress.lines.clear()
    assert index_photos(changed, progress=progress).snapshot_id == report.snapshot_id
    assert (progress.lines, len(embedded)) == ([], 3)


def test_an_index_that_cannot_be_built_is_told_before_anything_is_embedded(
    library, put, photos, monkeypatch
):
    put("a.png", "red")
    monkeypatch.setitem(sys.modules, "torch", None)

    def embed(self, images):
        raise AssertionError

    load_model("palette")
    monkeypatch.setattr(PaletteEmbedder, "encode_images", embed)
    with pytest.raises(MissingExtraError, match="the index exact-on-device must have torch"):
        index_photos(library, [photos], config=Config(model="palette", index="exact-on-device"))
    assert library.snapshot() is None
