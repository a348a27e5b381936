"""Dumps of upstream libraries, indexed with the pictures at hand."""

import io
import json
import re

import pytest
from click.testing import CliRunner
from PIL import Image

from searchlab import cli, create_library, index_photos
from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.evaluation.datasets.own_photos import list_photos
from searchlab.library.roots import check_dump
from searchlab.photos.photo import photo_id_of
from searchlab.photos.sidecar import read_records
from tests.support.upstream import FLICKR, FLICKR_ML5, OPENVERSE, PEXELS, PIXABAY, UNSPLASH, changed

PALETTE = Config(model="palette")


def pexels(number, **values):
    return changed(PEXELS, id=number, **values)


# -- a library --------------------------------------------------------------------------------


@pytest.fixture
def library(tmp_path):
    return create_library(tmp_path / "library")


@pytest.fixture
def dump(tmp_path):
    """Writes records and a plain picture for each of some ids."""

    def write(name, records, pictures=None):
        folder = tmp_path / "dumps" / name
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, records)))
        for number, photo_id in enumerate(pictures or ()):
            color = (40 * (number + 1) % 256, 90, 7 * len(name))
            Image.new("RGB", (60, 40), color).save(folder / f"{photo_id}.png")
        return path

    return write


def index(library, *roots, **options):
    return index_photos(library, roots, config=PALETTE, **options)


def photos_of(library):
    table = library.engine.table
    return {photo.source_photo_id: photo for photo in map(table.photo, range(len(table)))}


def test_a_photo_has_what_its_record_tells_and_the_rest_from_its_picture(library, dump):
    path = dump("unsplash", [UNSPLASH], [UNSPLASH["id"]])
    report = index(library, check_dump(path, source="unsplash"))
    assert (report.n_photos, report.problems) == (1, [])
    photo = photos_of(library)[UNSPLASH["id"]]
    assert photo.photo_id == photo_id_of("unsplash", UNSPLASH["id"])
    assert (photo.width, photo.height, photo.orientation) == (6000, 4000, "landscape")
    assert (photo.color_hex, photo.blur_hash) == ("#a68059", UNSPLASH["blur_hash"])
    assert photo.urls["thumb"] == UNSPLASH["urls"]["thumb"]
    assert (photo.license_type, photo.uploaded_on) == ("free", "2021-03-04")
    assert photo.attribution["plain"] == "Photo by Mirelle Okafor on Unsplash"
    assert photo.description
    assert photo.file.endswith("Zx-Quay_001.png")


def test_a_library_that_allows_no_lasting_links_is_shown_from_a_copy(library, dump):
    index(library, check_dump(dump("pixabay", [PIXABAY], [8000001]), source="pixabay"))
    photo = photos_of(library)["8000001"]
    assert photo.image_url == f"/media/{photo.photo_id}/full"
    assert photo.urls["thumb"] == f"/media/{photo.photo_id}/thumb"


def test_sides_that_the_camera_stored_are_turned_as_the_picture_is(library, dump):
    # The picture at hand is 60 x 40; the record says 3000 x 4500.
    index(library, check_dump(dump("pexels", [PEXELS], [7000001]), source="pexels"))
    photo = photos_of(library)["7000001"]
    assert (photo.width, photo.height, photo.orientation) == (4500, 3000, "landscape")


def test_a_record_without_a_picture_is_told_with_the_remedy(library, dump):
    path = dump("pexels", [pexels(1), pexels(2)], [1])
    report = index(library, check_dump(path, source="pexels"))
    assert report.n_photos == 1
    [problem] = report.problems
    assert problem.where == f"{path}:2"
    assert re.search(r"no picture of pexels 2 .*searchlab fetch", problem.reason)


def test_what_a_licence_forbids_is_left_out_unless_it_is_asked_for(library, dump):
    lines = [
        changed(FLICKR, id="1", license="4"),
        changed(FLICKR, id="2", license="1"),
        changed(FLICKR, id="3", license="0"),
        changed(FLICKR, id="4", license="77"),
        changed(FLICKR, id="5", license=None),
    ]
    path = dump("flickr", lines, "12345")
    report = index(library, check_dump(path, source="flickr"))
    assert list(photos_of(library)) == ["1"]
    assert [problem.where for problem in report.problems] == [f"{path}:{n}" for n in (2, 3, 4, 5)]
    report = index(library, check_dump(path, source="flickr", allowed=["nc"]))
    assert sorted(photos_of(library)) == ["1", "2"]
    index(library)  # and what was asked for is remembered
    assert sorted(photos_of(library)) == ["1", "2"]


def test_records_that_change_or_go_do_so_at_the_next_indexing(library, dump, tmp_path):
    path = dump("pexels", [pexels(1), pexels(2)], [1, 2])
    index(library, check_dump(path, source="pexels"))
    dump("pexels", [pexels(2, photographer="Renamed"), pexels(3)], [1, 2, 3])
    report = index(library)
    assert (report.added, report.removed) == (1, 1)
    photos = photos_of(library)
    assert sorted(photos) == ["2", "3"]
    assert photos["2"].attribution["plain"] == "Photo by Renamed on Pexels"


def test_of_two_lines_about_one_photo_the_later_one_counts(library, dump):
    path = dump("pexels", [pexels(1, photographer="Old"), pexels(1, photographer="New")], [1])
    report = index(library, check_dump(path, source="pexels"))
    assert report.problems == []
    assert photos_of(library)["1"].photographer_full_name == "New"


@pytest.mark.parametrize("order", [1, -1])
def test_a_second_dump_of_a_library_takes_no_photo_whose_picture_lies_beside_the_first(
    library, dump, order
):
    """The record in the dump that was read last counts, and either's picture."""
    boats = dump("boats", [pexels(7)], ["7"])
    sea = dump("sea", [pexels(7, alt="A boat at sea"), pexels(8)], ["8"])
    for path in (boats, sea)[::order]:
        report = index(library, check_dump(path, source="pexels"))
    assert (report.n_photos, report.problems) == (2, [])
    assert {*photos_of(library)} == {"7", "8"}


def test_a_dump_that_cannot_be_reached_keeps_its_photos_until_it_is_forgotten(library, dump):
    path = dump("pexels", [pexels(1)], [1])
    other = dump("unsplash", [UNSPLASH], [UNSPLASH["id"]])
    roots = [check_dump(path, source="pexels"), check_dump(other, source="unsplash")]
    index(library, *roots)
    path.rename(path.with_suffix(".away"))
    report = index(library)
    assert report.missing == [path]
    assert report.n_photos == 2
    assert index(library, forget=[path]).n_photos == 1


def test_a_dump_whose_photos_may_no_longer_be_shown_loses_them(library, dump):
    path = dump("flickr", [FLICKR], [FLICKR["id"]])
    other = dump("unsplash", [UNSPLASH], [UNSPLASH["id"]])
    index(library, check_dump(path, source="flickr"), check_dump(other, source="unsplash"))
    dump("flickr", [changed(FLICKR, license="0")])
    assert index(library).removed == 1


def test_one_photo_by_two_ways_is_one_photo_whose_id_stays(library, dump):
    openverse = dump("openverse", [OPENVERSE], [OPENVERSE["id"]])
    index(library, check_dump(openverse, source="openverse"))
    [alone] = photos_of(library).values()
    assert alone.source == "openverse"
    flickr = dump("flickr", [FLICKR], [FLICKR["id"]])
    report = index(library, check_dump(flickr, source="flickr"))
    assert (report.n_photos, report.added, report.removed) == (1, 0, 0)
    [both] = photos_of(library).values()
    assert both.photo_id == alone.photo_id == photo_id_of("flickr", "50000000001")
    assert both.source == "flickr"
    assert both.attribution["plain"].endswith("via Flickr; also at Openverse")
    assert f"https://openverse.org/image/{OPENVERSE['id']}" in both.attribution["html"]


def test_what_its_library_reserves_does_not_come_in_by_an_aggregator(library, dump):
    roots = [
        check_dump(dump("openverse", [OPENVERSE], [OPENVERSE["id"]]), source="openverse"),
        check_dump(dump("flickr", [changed(FLICKR, license="0")]), source="flickr"),
        check_dump(dump("unsplash", [UNSPLASH], [UNSPLASH["id"]]), source="unsplash"),
    ]
    assert index(library, *roots).n_photos == 1


def test_a_folder_and_a_dump_about_the_same_pictures_are_one_photo_each(library, dump):
    path = dump("pexels", [pexels(1)], [1, 2])
    index(library, path.parent.parent, check_dump(path, source="pexels"))
    assert sorted(photo.source for photo in photos_of(library).values()) == ["local", "pexels"]


def test_a_rebuild_gives_the_same_photos(library, dump):
    path = dump("flickr", [FLICKR, FLICKR_ML5], [FLICKR["id"], "50000000002"])
    index(library, check_dump(path, source="flickr"))
    before = photos_of(library)
    index(library, rebuild=True)
    assert photos_of(library) == before


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"source": ""}, "add --source NAME"),
        ({"source": "nowhere"}, "source must be one of"),
        ({"allowed": ["all"]}, "allow must be among nc, nd, reserved, none"),
        ({"pictures": "none"}, "pictures must be a folder"),
    ],
)
def test_what_is_asked_of_a_dump_is_checked(dump, tmp_path, changes, match):
    path = dump("pexels", [PEXELS])
    if "pictures" in changes:
        changes["pictures"] = tmp_path / changes["pictures"]
    with pytest.raises(InputError, match=match):
        check_dump(path, **{"source": "pexels", **changes})


def test_a_picture_that_is_none_is_told(library, dump):
    path = dump("pexels", [pexels(1), pexels(2)], [1])
    (path.parent / "2.jpg").write_bytes(io.BytesIO(b"no picture").getvalue())
    report = index(library, check_dump(path, source="pexels"))
    assert report.n_photos == 1
    assert report.problems[0].where.endswith("2.jpg")


# -- the command ------------------------------------------------------------------------------


def test_the_command_indexes_dumps_beside_folders_and_reports_what_is_left_out(dump, tmp_path):
    path = dump("pexels", [pexels(1), pexels(2)], [1])
    arguments = ["index", "--data", tmp_path / "data", "--source", "pexels", "--model", "palette"]
    done = CliRunner().invoke(cli.searchlab, [str(one) for one in (*arguments, path)])
    assert done.exit_code == 0, done.output
    assert f"skipped {path}:2: no picture of pexels 2" in done.stdout
    assert "1 photo: 1 added" in done.stdout


def test_the_command_finds_pictures_in_a_folder_of_their_own(dump, tmp_path):
    path = dump("pexels", [pexels(1)])
    (tmp_path / "shots").mkdir()
    Image.new("RGB", (60, 40), "red").save(tmp_path / "shots/1.jpg")
    arguments = ["index", "--data", tmp_path / "data", "--source", "pexels", "--model", "palette"]
    arguments += [path, "--pictures", tmp_path / "shots"]
    done = CliRunner().invoke(cli.searchlab, [str(one) for one in arguments])
    assert "1 photo: 1 added" in done.stdout, done.output


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["DUMP"], "add --source NAME"),
        (["DUMP", "--source", "nowhere"], "source must be one of"),
        (["DUMP", "--source", "pexels", "--records", "DUMP"], "goes with a folder"),
        (["FOLDER", "--pictures", "FOLDER"], "go with a dump"),
        (["FOLDER", "--allow", "nc"], "go with a dump"),
        (["DUMP", "--source", "pexels", "--allow", "all"], "allow must be among"),
    ],
)
def test_the_command_refuses_what_does_not_go_together(dump, tmp_path, arguments, match):
    path = dump("pexels", [PEXELS], [7000001])
    named = {"DUMP": str(path), "FOLDER": str(path.parent)}
    words = [named.get(word, word) for word in arguments]
    done = CliRunner().invoke(cli.searchlab, ["index", "--data", str(tmp_path / "data"), *words])
    assert isinstance(done.exception, InputError)
    assert match in str(done.exception)
    assert not (tmp_path / "data").exists()


def test_photos_that_an_aggregator_passes_on_keep_their_ids_where_they_are_listed(library, dump):
    path = dump("openverse", [OPENVERSE], [OPENVERSE["id"]])
    index(library, check_dump(path, source="openverse"))
    [photo] = photos_of(library).values()
    [(_, record)] = read_records(list_photos(library, path.parent))
    assert photo_id_of(record.source, record.source_photo_id) == photo.photo_id
    (path.parent / "photos.jsonl").unlink()
    path.rename(path.with_name("away"))
    with pytest.raises(InputError, match="which openverse passed on; bring back its dump"):
        list_photos(library, path.parent)
