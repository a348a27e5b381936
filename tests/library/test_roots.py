"""Roots: folders that a library covers, misses, forgets or finds empty."""

import shutil

import pytest

from searchlab.errors import InputError, NotFoundError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import Root, check_root
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support import library_world
from tests.support.library_world import PALETTE, ids_by_name, ranked, state_of

embedded = library_world.embedded
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


def test_several_roots_with_their_sources(put, index, library, photos):
    put("one/a.png", 1)
    put("two/b.png", 2)
    index(check_root(photos / "one", source="unsplash"))
    index(check_root(photos / "two", source="pexels"))
    assert ranked(library, Query(filter=PhotoFilter(source=("pexels",)))) == ["b.png"]
    assert set(ids_by_name(library)) == {"a.png", "b.png"}


def test_a_root_named_by_a_link_is_the_root_itself(put, index, library, photos, tmp_path):
    put("a.png", 1)
    index()
    (tmp_path / "link").symlink_to(photos, target_is_directory=True)
    assert index(check_root(tmp_path / "link")).n_photos == 1
    assert library.snapshot().roots == (Root(photos, source="local"),)


def test_a_library_inside_a_covered_folder_does_not_index_itself(put, photos):
    put("a.png", 1)
    library = create_library(photos / "searchlab-data")
    for _ in range(3):
        report = index_photos(library, [check_root(photos)], config=PALETTE)
        assert (report.n_photos, report.problems) == (1, [])


def test_a_missing_root_keeps_its_photos_and_is_told(
    put, index, library, photos, tmp_path, embedded
):
    put("near/a.png", 1)
    put("far/b.png", 2)
    index(check_root(photos / "near"), check_root(photos / "far"))
    before = ids_by_name(library)
    (photos / "far").rename(tmp_path / "unplugged")
    put("near/c.png", 3)
    report = index_photos(library)
    assert report.missing == [photos / "far"]
    assert (report.n_photos, report.added, report.removed) == (3, 1, 0)
    assert ids_by_name(library) | before == ids_by_name(library)
    assert ranked(library, Query(photo_id=before["b.png"])) != []
    (tmp_path / "unplugged").rename(photos / "far")
    report = index_photos(library)
    assert (report.missing, report.added, report.removed) == ([], 0, 0)
    assert sum(embedded) == 3


def test_a_forgotten_root_takes_its_photos_along(put, index, library, photos):
    put("one/a.png", 1)
    put("two/b.png", 2)
    index(check_root(photos / "one"), check_root(photos / "two"))
    report = index_photos(library, forget=[photos / "two"])
    assert (report.n_photos, report.removed) == (1, 1)
    assert list(ids_by_name(library)) == ["a.png"]
    assert index_photos(library).n_photos == 1


def test_a_missing_root_can_be_forgotten(put, index, library, photos):
    put("one/a.png", 1)
    put("two/b.png", 2)
    index(check_root(photos / "one"), check_root(photos / "two"))
    shutil.rmtree(photos / "two")
    report = index_photos(library, forget=[photos / "two"])
    assert (report.n_photos, report.missing) == (1, [])


def test_forgetting_what_is_not_covered_is_an_input_error_that_lists_what_is(put, index, photos):
    put("a.png", 1)
    index()
    with pytest.raises(InputError, match=f"covered: {photos}"):
        index(forget=[photos / "other"])


def test_forgetting_the_last_root_is_refused_and_the_state_stays(put, index, library, photos):
    put("a.png", 1)
    index()
    before = state_of(library)
    with pytest.raises(InputError, match="at least one folder"):
        index_photos(library, forget=[photos])
    assert state_of(library) == before


def test_nothing_to_cover_is_an_input_error(library):
    with pytest.raises(InputError, match="folder"):
        index_photos(library, config=PALETTE)


def test_an_empty_folder_is_an_input_error_that_names_it(index, library, photos):
    with pytest.raises(InputError, match=str(photos)):
        index()
    with pytest.raises(NotFoundError, match="searchlab index"):
        library.search(Query(text="red"))


def test_a_folder_of_bad_files_only_is_an_input_error_with_a_reason(index, photos):
    (photos / "bad.jpg").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"bad\.jpg.*not an image"):
        index()


def test_a_folder_that_became_empty_is_taken_for_one_that_is_not_mounted(
    put, index, library, photos
):
    path = put("a.png", 1)
    index()
    before = state_of(library)
    path.unlink()
    assert index().missing == [photos]
    assert state_of(library) == before
    assert list(ids_by_name(library)) == ["a.png"]


def test_a_folder_that_moved_is_covered_anew_and_its_photos_stay_the_same(
    put, index, library, photos, tmp_path, embedded
):
    for i in range(5):
        put(f"{i}.png", i)
    index()
    before = ids_by_name(library)
    photos.rename(tmp_path / "moved")
    report = index(check_root(tmp_path / "moved"), forget=[photos])
    assert (report.added, report.removed, report.missing) == (0, 0, [])
    assert ids_by_name(library) == before
    assert sum(embedded) == 5


def test_a_library_that_moved_is_the_same_library(put, index, library, tmp_path, embedded):
    for i in range(5):
        put(f"{i}.png", i)
    index()
    before = ids_by_name(library)
    cursor = library.search(Query(text="red"), per_page=2).next_cursor
    library.folder.rename(tmp_path / "elsewhere")
    moved = open_library(tmp_path / "elsewhere")
    assert ids_by_name(moved) == before
    assert all(hit.thumbnail.exists() for hit in moved.search(cursor=cursor))
    index_photos(moved)
    assert sum(embedded) == 5


def test_a_new_library_has_a_folder_of_its_own(tmp_path):
    (tmp_path / "IMG_1.JPG").touch()
    with pytest.raises(InputError, match=r"a folder of its own.*IMG_1.JPG"):
        create_library(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["IMG_1.JPG"]
    (tmp_path / "IMG_1.JPG").unlink()
    (tmp_path / "notes.txt").touch()  # other files stay, and are in nobody's way
    library = create_library(tmp_path)
    (tmp_path / "later.png").touch()
    assert create_library(tmp_path).folder == library.folder
