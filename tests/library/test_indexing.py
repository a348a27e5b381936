"""Indexing: the library follows what changes in its folders, and embeds nothing twice."""

import datetime
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from PIL import Image

from searchlab.library import catalog
from searchlab.library.ingest import index_photos
from searchlab.library.roots import check_root
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import library_world
from tests.support.library_world import ALL, GRAPH, PALETTE, ids_by_name, ranked, state_of

embedded = library_world.embedded
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


def test_what_was_indexed_is_found_by_words_pictures_and_filters(put, index, library):
    put("red.png", "red")
    put("sub/blue.png", "blue")
    put("green.png", "#00aa00")
    report = index()
    assert (report.n_photos, report.added, report.removed, report.copies) == (3, 3, 0, 0)
    assert (report.problems, report.missing) == ([], [])
    assert ranked(library, Query(text="blue"))[0] == "blue.png"
    assert ranked(library, Query(image=Image.new("RGB", (9, 9), "red")))[0] == "red.png"
    assert ranked(library, Query(filter=PhotoFilter(color_name="green"))) == ["green.png"]
    blue = ids_by_name(library)["blue.png"]
    assert ranked(library, Query(photo_id=blue)) != []
    assert "blue.png" not in ranked(library, Query(photo_id=blue))


def test_every_photo_has_its_thumbnail(put, index, library):
    put("red.png", "red")
    index()
    [hit] = library.search(ALL).hits
    with Image.open(hit.thumbnail) as small:
        assert small.format == "WEBP"


@pytest.mark.slow
def test_indexing_again_changes_nothing_and_embeds_nothing(put, index, library, embedded):
    for i in range(20):
        put(f"{i}.png", i)
    first = index()
    assert sum(embedded) == 20
    before = state_of(library)
    second = index()
    assert sum(embedded) == 20
    assert (second.added, second.removed, second.snapshot_id) == (0, 0, first.snapshot_id)
    assert state_of(library) == before


@pytest.mark.slow
def test_only_an_added_photo_is_embedded(put, index, library, embedded):
    for i in range(20):
        put(f"{i}.png", i)
    index()
    before = ids_by_name(library)
    put("new.png", 99)
    report = index()
    assert (report.n_photos, report.added, report.removed) == (21, 1, 0)
    assert sum(embedded) == 21
    after = ids_by_name(library)
    assert {name: after[name] for name in before} == before


def test_a_deleted_photo_leaves(put, index, library):
    put("a.png", 1)
    put("b.png", 2).unlink()
    index()
    gone = put("b.png", 2)
    index()
    gone.unlink()
    report = index()
    assert (report.n_photos, report.added, report.removed) == (1, 0, 1)
    assert list(ids_by_name(library)) == ["a.png"]


def test_moved_and_renamed_photos_stay_the_same_photos(put, index, library, photos, embedded):
    put("a.png", 1)
    put("b.png", 2)
    index()
    before = ids_by_name(library)
    (photos / "deep/er").mkdir(parents=True)
    (photos / "a.png").rename(photos / "deep/er/a.png")
    (photos / "b.png").rename(photos / "z.png")
    report = index()
    assert (report.added, report.removed, report.changed) == (0, 0, 0)
    assert sum(embedded) == 2
    assert ids_by_name(library) == {"a.png": before["a.png"], "z.png": before["b.png"]}


def test_an_edited_photo_is_a_new_one(put, index, library):
    put("a.png", "red")
    put("b.png", 2)
    index()
    before = ids_by_name(library)
    put("a.png", "blue")
    put("c.png", 3)
    report = index()
    assert (report.n_photos, report.added, report.removed, report.changed) == (3, 2, 1, 1)
    after = ids_by_name(library)
    assert after["b.png"] == before["b.png"]
    assert after["a.png"] != before["a.png"]
    assert ranked(library, Query(text="blue"))[0] == "a.png"


def test_photos_of_another_source_have_other_ids_and_the_report_says_so(put, index, photos):
    put("a.png", 1)
    put("b.png", 2)
    index()
    report = index(check_root(photos, source="mine"))
    assert (report.added, report.removed, report.changed) == (2, 2, 2)


def test_one_place_may_be_named_as_it_is(put, library, photos, tmp_path):
    put("a.png", 1)
    more = tmp_path / "more"
    more.mkdir()
    shutil.copy(put("b.png", 2), more)
    for roots in (str(photos), photos, check_root(photos)):
        assert index_photos(library, roots, config=PALETTE).n_photos == 2
    index_photos(library, [str(more)])
    for forgotten in (str(more), more, [str(more)], check_root(more)):
        index_photos(library, more)
        index_photos(library, forget=forgotten)
        assert [root.folder for root in library.snapshot().roots] == [photos]


def test_an_edited_photo_with_a_librarys_id_stays_the_same_photo(put, index, library, photos):
    put("a.png", "red")
    (photos / "photos.jsonl").write_text('{"file": "a.png", "source_photo_id": "x1"}\n')
    index()
    before = ids_by_name(library)
    put("a.png", "blue")
    report = index()
    assert (report.added, report.removed) == (0, 0)
    assert ids_by_name(library) == before
    assert library.search(ALL).hits[0].photo.color_hex == "#0000ff"


def test_copies_are_one_photo_and_the_copy_takes_over(put, index, library, photos, embedded):
    put("a.png", 1)
    put("copy.png", 1)
    put("sub/again.png", 1)
    report = index()
    assert (report.n_photos, report.copies, sum(embedded)) == (1, 2, 1)
    before = ids_by_name(library)
    (photos / "a.png").unlink()
    report = index()
    assert (report.added, report.removed, report.copies) == (0, 0, 1)
    assert ids_by_name(library) == {"copy.png": before["a.png"]}


def test_an_edited_record_changes_the_photo_without_embedding(
    put, index, library, photos, embedded
):
    put("a.png", 1)
    index()
    before = ids_by_name(library)
    (photos / "photos.jsonl").write_text('{"file": "a.png", "title": "Fox", "license_type": "cc0"}')
    index()
    [hit] = library.search(Query(filter=PhotoFilter(license_type=("cc0",)))).hits
    assert hit.photo.attribution["plain"] == "“Fox” (cc0)"
    assert ids_by_name(library) == before
    assert sum(embedded) == 1


def test_records_that_are_gone_leave_their_folder_as_it_was_and_stop_no_other(
    put, index, library, photos, tmp_path
):
    put("a.png", 1)
    records = tmp_path / "records.jsonl"
    records.write_text('{"file": "a.png", "title": "Fox"}')
    index(check_root(photos, records=records))
    records.unlink()
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(put("../b.png", 2), other)
    report = index(check_root(other))
    assert (report.added, report.removed, report.missing) == (1, 0, [photos])
    assert ranked(library, Query(text="fox"))[0] == "a.png"


def test_bad_files_are_reported_by_every_run_and_stop_nothing(put, index, photos):
    put("good.png", 1)
    (photos / "bad.jpg").write_bytes(b"no picture")
    (photos / "photos.jsonl").write_text("[]\n")
    first = index()
    assert first.n_photos == 1
    assert [(problem.where, problem.reason) for problem in first.problems] == [
        (str(photos / "bad.jpg"), "not an image"),
        (f"{photos / 'photos.jsonl'}:1", first.problems[1].reason),
    ]
    assert index().problems == first.problems


def test_a_copy_of_a_bad_file_is_reported_as_bad(put, index, photos):
    put("good.png", 1)
    (photos / "bad.jpg").write_bytes(b"no picture")
    (photos / "copy.jpg").write_bytes(b"no picture")
    report = index()
    assert [(problem.where, problem.reason) for problem in report.problems] == [
        (str(photos / "bad.jpg"), "not an image"),
        (str(photos / "copy.jpg"), "not an image"),
    ]
    assert report.copies == 0


@pytest.mark.slow
def test_upload_dates_stay_over_indexing_and_moving(put, index, library, photos, monkeypatch):
    def on_day(day):
        class Clock(datetime.datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.datetime(2030, 1, day, tzinfo=tz)

        monkeypatch.setattr(
            catalog,
            "datetime",
            SimpleNamespace(datetime=Clock, date=datetime.date, UTC=datetime.UTC),
        )

    def dates():
        return {
            hit.photo.file.rpartition("/")[2]: hit.photo.uploaded_on for hit in library.search(ALL)
        }

    on_day(1)
    put("a.png", 1)
    index()
    on_day(2)
    put("b.png", 2)
    (photos / "a.png").rename(photos / "z.png")
    index()
    assert dates() == {"z.png": "2030-01-01", "b.png": "2030-01-02"}
    on_day(3)
    index(rebuild=True)
    library.publish(GRAPH)
    assert dates() == {"z.png": "2030-01-01", "b.png": "2030-01-02"}
    assert ranked(library, replace(ALL, sort_by="newest")) == ["b.png", "z.png"]
