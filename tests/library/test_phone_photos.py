"""A folder as it comes from a phone and a photo program: what of it a library knows."""

import json
import os
from pathlib import Path
from unicodedata import normalize

import pytest

from searchlab.library import walk
from searchlab.library.roots import check_root
from searchlab.library.walk import walk_files
from tests.support import library_world
from tests.support.metadata import exif, in_languages, listed, xmp
from tests.support.pictures import corners, encoded

_OTHER = {"NFC": "NFD", "NFD": "NFC"}

library = library_world.library
index = library_world.index

LISBON = ((38, 42, 45.0, "N"), (9, 8, 24.0, "W"))
TAKEN = exif(LISBON, artist="Ann Lee", description="of exif", taken="2019:07:04 10:11:12")


@pytest.fixture
def photos(tmp_path):
    return (tmp_path / "Pictures").resolve()


@pytest.fixture
def put(photos):
    """Writes a file of bytes."""

    def write(name, content):
        path = photos / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


def shot(number=0, **options):
    return encoded(corners(48 + 2 * number), "HEIF", **options)


def photos_of(library):
    """Every photo by the name of its file."""
    table = library.snapshot().table
    return {photo.file.rpartition("/")[2]: photo for photo in table.photos(range(len(table)))}


def title(text):
    return xmp(in_languages("dc:title", x_default=text))


def test_a_photo_of_a_phone_knows_day_place_and_photographer(put, index, library):
    put("2019/Lisbon/IMG_1.HEIC", shot(exif=TAKEN))
    index()
    photo = photos_of(library)["IMG_1.HEIC"]
    assert (photo.uploaded_on, photo.photographer_full_name) == ("2019-07-04", "Ann Lee")
    assert (photo.latitude, photo.longitude) == pytest.approx((38.7125, -9.14))
    assert (photo.source_description, photo.folder) == ("of exif", "Pictures/2019/Lisbon")
    assert photo.attribution["plain"] == "Photo by Ann Lee"


@pytest.mark.parametrize("name", ["IMG_1.xmp", "IMG_1.heic.xmp", "img_1.HEIC.XMP"])
def test_a_sidecar_speaks_for_the_photo_beside_it(put, index, library, name):
    put("IMG_1.heic", shot(exif=TAKEN))
    put("other/IMG_1.jpg", shot(1))
    tags = listed("dc:subject", "sea", "Strand")
    put(name, xmp(in_languages("dc:title", x_default="Ebbe") + tags, 'xmp:Rating="5"'))
    report = index()
    photo = photos_of(library)["IMG_1.heic"]
    assert (photo.title, photo.tags, photo.rating) == ("Ebbe", ("sea", "Strand"), 5)
    assert photo.photographer_full_name == "Ann Lee"  # what the sidecar does not say, the file does
    assert photo.attribution["plain"] == "“Ebbe” by Ann Lee"
    assert photos_of(library)["IMG_1.jpg"].title == ""
    assert report.problems == []


@pytest.fixture
def tells_case_apart(tmp_path):
    (tmp_path / "case").touch()
    if (tmp_path / "CASE").exists():
        pytest.skip("this file system does not tell A from a")


@pytest.mark.usefixtures("tells_case_apart")
def test_photos_whose_names_differ_in_case_alone_have_a_sidecar_each(put, index, library):
    for number, name in enumerate(("IMG_1.HEIC", "IMG_1.heic", "img_2.heic")):
        put(name, shot(number))
    for name in ("IMG_1.HEIC.xmp", "IMG_1.heic.xmp", "IMG_2.heic.XMP"):
        put(name, title(f"of {name}"))
    assert index().problems == []
    titles = {name: photo.title for name, photo in photos_of(library).items()}
    assert titles == {
        "IMG_1.HEIC": "of IMG_1.HEIC.xmp",
        "IMG_1.heic": "of IMG_1.heic.xmp",
        "img_2.heic": "of IMG_2.heic.XMP",
    }


@pytest.mark.usefixtures("tells_case_apart")
def test_a_sidecar_of_one_photo_speaks_for_no_other_and_a_second_one_is_named(
    put, index, library, photos
):
    for number, name in enumerate(("IMG_1.HEIC", "IMG_1.heic")):
        put(name, shot(number))
    put("IMG_1.heic.xmp", title("mine"))
    put("IMG_1.heic.XMP", title("also mine"))
    (problem,) = index().problems
    assert (problem.where, problem.reason) == (
        str(photos / "IMG_1.heic.xmp"),
        "another description of the same picture is read; remove one",
    )
    assert photos_of(library)["IMG_1.HEIC"].title == ""
    assert photos_of(library)["IMG_1.heic"].title == "also mine"


def test_records_go_before_sidecars_and_these_before_the_file(put, index, library):
    inside = in_languages("dc:title", x_default="of file") + "<photoshop:City>Faro</photoshop:City>"
    put("1.heic", shot(exif=TAKEN, xmp=xmp(inside)))
    put("1.xmp", xmp(in_languages("dc:title", x_default="of Lightroom"), 'xmp:Rating="3"'))
    put("1.heic.xmp", title("of darktable"))
    index()
    photo = photos_of(library)["1.heic"]
    assert (photo.title, photo.rating, photo.place) == ("of darktable", 3, "Faro")
    put(
        "photos.jsonl", json.dumps({"file": "1.heic", "title": "of records", "rating": -1}).encode()
    )
    index()
    photo = photos_of(library)["1.heic"]
    assert (photo.title, photo.rating, photo.place) == ("of records", -1, "Faro")


def test_a_sidecar_that_changes_comes_into_force_without_embedding_again(
    put, index, library, monkeypatch
):
    put("1.heic", shot())
    sidecar = put("1.xmp", title("before"))
    index()
    put("1.xmp", title("after"))
    monkeypatch.setattr("searchlab.library.decoding.open_rgb", None)
    index()
    assert photos_of(library)["1.heic"].title == "after"
    sidecar.unlink()
    index()
    assert photos_of(library)["1.heic"].title == ""


def test_a_sidecar_that_is_damaged_is_named_and_its_photo_taken_in(put, index, library):
    put("1.heic", shot())
    broken = put("1.xmp", b"<x:xmpmeta")
    report = index()
    assert [problem.where for problem in report.problems] == [str(broken)]
    assert "XMP must be XML" in report.problems[0].reason
    assert set(photos_of(library)) == {"1.heic"}


def test_a_sidecar_of_nothing_is_named(put, index):
    put("1.heic", shot())
    alone = put("2.xmp", title("alone"))
    [problem] = index().problems
    assert (problem.where, problem.reason) == (str(alone), "no picture beside it has its name")


def test_a_day_that_nobody_tells_stays_that_of_the_first_indexing(put, index, library):
    put("1.heic", shot())
    index()
    first = photos_of(library)["1.heic"].uploaded_on
    put("1.xmp", xmp(attributes='photoshop:DateCreated="1965"'))
    index()
    assert first > "2020"
    assert photos_of(library)["1.heic"].uploaded_on == "1965-01-01"


def test_a_notice_stands_in_the_credit_where_nobody_is_named(put, index, library):
    put("1.heic", shot(exif=exif(copyright="© 2019 The <Paper>")))
    index()
    attribution = photos_of(library)["1.heic"].attribution
    assert attribution["plain"] == "Photo, © 2019 The <Paper>"
    assert attribution["html"] == "Photo, © 2019 The &lt;Paper&gt;"


# -- folders that cannot be read --------------------------------------------------------------


@pytest.fixture
def forbid(monkeypatch):
    """Makes folders unreadable, as their permissions do for all but root."""
    closed = []

    def guard(name, *, of_itself):
        real = getattr(os, name)

        def guarded(path, *arguments, **options):
            inside = not isinstance(path, int) and [
                folder
                for folder in closed
                if Path(path).is_relative_to(folder) and (of_itself or Path(path) != folder)
            ]
            if inside:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, name, guarded)

    guard("scandir", of_itself=True)
    guard("stat", of_itself=False)
    return closed.append


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_walked(put, photos, forbid):
    put("a/1.heic", b"1")
    put("closed/2.heic", b"2")
    put("z/3.heic", b"3")
    forbid(photos / "closed")
    problems = []
    assert [f.path.name for f in walk_files(photos, problems)] == ["1.heic", "3.heic"]
    assert [(p.where, p.reason) for p in problems] == [
        (str(photos / "closed"), "cannot be read: Permission denied")
    ]


def test_its_photos_stay_as_they_were(put, photos, index, library, forbid):
    put("a/1.heic", shot())
    put("closed/2.heic", shot(1))
    index()
    forbid(photos / "closed")
    report = index()
    assert (report.n_photos, report.removed) == (2, 0)
    assert set(photos_of(library)) == {"1.heic", "2.heic"}
    assert [problem.where for problem in report.problems] == [str(photos / "closed")]


def test_files_whose_folder_may_be_listed_only_are_named(put, photos, monkeypatch):
    secret = put("a/1.heic", b"1")
    real_stat = walk.Path.stat

    def stat(path, **options):
        if path == secret:
            raise PermissionError(13, "Permission denied", str(path))
        return real_stat(path, **options)

    monkeypatch.setattr(walk.Path, "stat", stat)
    problems = []
    assert list(walk_files(photos, problems)) == []
    assert [(p.where, p.reason) for p in problems] == [
        (str(secret), "cannot be read: Permission denied")
    ]


def test_a_root_that_cannot_be_read_is_a_root(photos, put, forbid):
    put("1.heic", b"1")
    forbid(photos)
    root = check_root(photos)
    assert root.is_there
    assert root.sidecar() is None


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_name_is_the_same_whether_its_accents_are_characters_of_their_own(
    put, index, library, form
):
    on_disk, written = (normalize(one, "Café.heic") for one in (form, _OTHER[form]))
    put(on_disk, shot())
    put("photos.jsonl", json.dumps({"file": written, "place": "Faro"}).encode())
    put(f"{written}.xmp", title("Coffee"))
    report = index()
    assert report.problems == []
    photo = photos_of(library)[on_disk]
    assert (photo.place, photo.title) == ("Faro", "Coffee")


def test_records_of_a_folder_within_are_told_and_read_where_it_is_named(
    put, index, library, photos
):
    put("coast/1.heic", shot())
    put("coast/photos.jsonl", b'{"file": "1.heic", "title": "The coast"}')
    [problem] = index().problems
    assert problem.where.endswith("coast/photos.jsonl")
    assert "where their folder is named itself" in problem.reason
    assert index(photos, photos / "coast").problems == []
    assert photos_of(library)["1.heic"].title == "The coast"
