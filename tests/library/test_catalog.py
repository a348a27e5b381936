"""A photo's identity and its row: what the record and the picture say, and nothing more."""

import datetime
from dataclasses import replace

import numpy as np
import pytest

from searchlab.library.cache import Facts
from searchlab.library.catalog import (
    identify,
    source_of,
)
from searchlab.library.roots import Root
from searchlab.photos.photo import photo_id_of
from searchlab.photos.sidecar import Record
from tests.support.catalog_world import RED, TALL_BLUE, Tagging, digest_of


def test_a_photo_is_known_by_its_librarys_id_or_else_by_its_content(shot, root):
    pictures = [
        shot("a.jpg", source="unsplash", source_photo_id="x1"),
        shot("b.jpg", source="unsplash"),
        shot("c.jpg"),
    ]
    pictures_by_id, problems, copies = identify(pictures, [root])
    assert pictures_by_id == {
        photo_id_of("unsplash", "x1"): pictures[0],
        photo_id_of("unsplash", digest_of("b.jpg")): pictures[1],
        photo_id_of("local", digest_of("c.jpg")): pictures[2],
    }
    assert (problems, copies) == ([], 0)


def test_moving_and_renaming_leave_the_photo_id(shot, root):
    before, _, _ = identify([shot("a.jpg", "same")], [root])
    after, _, _ = identify([shot("deep/z.jpg", "same")], [root])
    assert list(before) == list(after)


def test_of_copies_the_first_counts_and_the_rest_are_counted(shot, root):
    pictures = [shot("a.jpg", "same"), shot("b.jpg", "same"), shot("c.jpg", "same")]
    pictures_by_id, problems, copies = identify(pictures, [root])
    assert list(pictures_by_id.values()) == pictures[:1]
    assert (problems, copies) == ([], 2)


def test_what_is_written_about_a_copy_is_kept_where_nothing_is_about_the_photo(shot, root):
    pictures = [
        shot("a.jpg", "same", place="Faro"),
        shot("b.jpg", "same", title="Helga's birthday", place="Lagos"),
        replace(shot("c.jpg", "same", title="A cake"), beside=Record(tags=("helga",))),
    ]
    pictures_by_id, problems, copies = identify(pictures, [root])
    [photo] = pictures_by_id.values()
    assert (photo.path.name, photo.record) == ("a.jpg", Record(place="Faro"))
    assert (photo.beside.title, photo.beside.tags) == ("Helga's birthday", ("helga",))
    assert (problems, copies) == ([], 2)


def test_two_contents_under_one_library_id_are_a_problem_that_names_the_one_that_counts(shot, root):
    pictures = [shot("a.jpg", source_photo_id="x"), shot("b.jpg", source_photo_id="x")]
    pictures_by_id, [problem], copies = identify(pictures, [root])
    assert list(pictures_by_id.values()) == pictures[:1]
    assert problem.where.endswith("b.jpg")
    assert "a.jpg" in problem.reason
    assert copies == 0


def test_ids_of_two_libraries_are_two_photos_however_they_are_cut(shot, root):
    pictures = [
        shot("a.jpg", source="a", source_photo_id="b:c"),
        shot("b.jpg", source="a:b", source_photo_id="c"),
    ]
    pictures_by_id, problems, _ = identify(pictures, [root])
    assert len(pictures_by_id) == 2
    assert problems == []


def test_the_innermost_root_names_the_source(tmp_path):
    roots = [Root(tmp_path, source="outer"), Root(tmp_path / "a/b", source="inner")]
    assert source_of(tmp_path / "a/b/c.jpg", roots) == "inner"
    assert source_of(tmp_path / "a/c.jpg", roots) == "outer"
    assert source_of(tmp_path / "a/bc.jpg", roots) == "outer"


def test_a_row_holds_what_the_record_and_the_picture_say(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED})
    table = table_of(
        [
            shot(
                "a.jpg",
                source="wikimedia",
                source_photo_id="42",
                source_image_url="https://example.org/42",
                title="Fox & co",
                photographer_username="ana",
                photographer_full_name="Ana B.",
                photographer_url="https://example.org/ana",
                source_description="A fox",
                alt_description="fox",
                license_type="cc0",
                license_url="https://example.org/cc0",
                uploaded_on="2020-02-29",
            )
        ]
    )
    photo = table.photo(0)
    assert (photo.photo_id, photo.source, photo.source_photo_id) == (
        photo_id_of("wikimedia", "42"),
        "wikimedia",
        "42",
    )
    assert (photo.width, photo.height, photo.orientation) == (640, 480, "landscape")
    assert (photo.color_hex, photo.color_name) == ("#e01010", "red")
    assert (photo.license_type, photo.uploaded_on) == ("cc0", "2020-02-29")
    assert (photo.photographer_username, photo.photographer_full_name) == ("ana", "Ana B.")
    assert (photo.source_description, photo.alt_description) == ("A fox", "fox")
    assert photo.attribution["plain"] == "“Fox & co” by Ana B. (cc0)"
    assert "Fox &amp; co" in photo.attribution["html"]
    assert photo.sha256 == digest_of("a.jpg")
    assert set(photo.urls) == {"thumb", "small", "regular", "large", "full"}


def test_without_a_record_nothing_is_invented(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): TALL_BLUE})
    photo = table_of([shot("a.jpg")]).photo(0)
    assert (photo.source, photo.source_photo_id) == ("local", digest_of("a.jpg"))
    assert (photo.photographer_username, photo.photographer_full_name, photo.photographer_url) == (
        "",
        "",
        "",
    )
    assert (photo.license_type, photo.source_description) == ("unknown", "")
    assert photo.attribution["plain"] == ""
    assert photo.uploaded_on == datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    assert photo.orientation == "portrait"
    assert photo.alt_description == "Photo, mostly blue (generated)."


def test_links_that_are_no_web_pages_are_left_out(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED})
    photo = table_of(
        [
            shot(
                "a.jpg",
                title="<b>",
                source_image_url="javascript:alert(1)",
                photographer_url="file:///etc/passwd",
                photographer_username="ana",
                license_url="//example.org",
            )
        ]
    ).photo(0)
    assert (photo.source_image_url, photo.photographer_url) == ("", "")
    assert photo.attribution["html"] == "“&lt;b&gt;” by ana"


def test_a_username_stands_in_for_a_missing_name(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED})
    assert (
        table_of([shot("a.jpg", photographer_username="ana")]).photo(0).photographer_full_name
        == "ana"
    )


def test_refused_and_unread_pictures_have_no_row(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): Facts(problem="damaged"), digest_of("b.jpg"): RED})
    table = table_of([shot("a.jpg"), shot("b.jpg"), shot("c.jpg")])
    assert list(table.texts("sha256")) == [digest_of("b.jpg")]


def test_known_dates_stay_and_a_records_date_wins(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED, digest_of("b.jpg"): RED})
    pictures = [shot("a.jpg"), shot("b.jpg", uploaded_on="2001-01-01")]
    dates = {photo_id_of("local", digest_of(name)): "1999-12-31" for name in ("a.jpg", "b.jpg")}
    table = table_of(pictures, dates=dates)
    date_of = {photo.sha256: photo.uploaded_on for photo in map(table.photo, range(2))}
    assert date_of == {digest_of("a.jpg"): "1999-12-31", digest_of("b.jpg"): "2001-01-01"}


def test_a_model_that_names_things_writes_the_description(shot, cache, table_of):
    model = Tagging()
    cache.keep(
        {digest_of("a.jpg"): RED},
        [(model.model_id, [digest_of("a.jpg")], np.eye(1, 4, dtype=np.float32))],
    )
    photo = table_of([shot("a.jpg")], model=model).photo(0)
    assert photo.description == (
        "A wide photo showing a red fox. Nearest labels: dingo. "
        "Its main colours are red and white. Generated description."
    )
    assert photo.alt_description == "Photo of a red fox, mostly red and white (generated)."


def test_rows_come_sorted_by_photo_id_with_kept_rows_among_them(shot, cache, table_of):
    names = [f"{i}.jpg" for i in range(20)]
    cache.keep({digest_of(name): RED for name in names})
    before = table_of([shot(name) for name in names[:10]])
    table = table_of(
        [shot(name) for name in names[10:]], unreachable=[before.row(row) for row in range(10)]
    )
    ids = list(table.texts("photo_id"))
    assert ids == sorted(photo_id_of("local", digest_of(name)) for name in names)


def test_a_photo_that_is_seen_again_replaces_its_kept_row(shot, cache, table_of):
    cache.keep({digest_of("a.jpg"): RED})
    before = table_of([shot("a.jpg", title="old")])
    table = table_of([shot("a.jpg", title="new")], unreachable=[before.row(0)])
    assert [photo.attribution["plain"] for photo in map(table.photo, range(len(table)))] == [
        "“new”"
    ]


@pytest.mark.slow
def test_more_pictures_than_one_batch(shot, cache, table_of):
    names = [f"{i}.jpg" for i in range(2_100)]
    cache.keep({digest_of(name): RED for name in names})
    table = table_of([shot(name) for name in names])
    assert len(table) == 2_100
    assert list(table.texts("photo_id")) == sorted(table.texts("photo_id"))


def test_words_about_a_copy_are_kept_beside_a_photo_whose_record_gives_its_id(shot, root):
    pictures = [
        shot("a.jpg", "same", source="mine", source_photo_id="1"),
        shot("b.jpg", "same", title="Helga's birthday"),
    ]
    pictures_by_id, problems, copies = identify(pictures, [root])
    [photo] = pictures_by_id.values()
    assert (photo.path.name, photo.beside.title) == ("a.jpg", "Helga's birthday")
    assert (problems, copies) == ([], 1)
