"""Snapshots stay for cursors: an hour after they were replaced, within a budget of bytes."""

import json
import os
import time
from pathlib import Path

import pytest

from searchlab.errors import DataError, ExpiredCursorError, InputError
from searchlab.library.retention import (
    KEPT,
    KEPT_BYTES,
    KEPT_S,
    Retention,
    drop_old,
    read_retention,
    write_retention,
)
from searchlab.search.queries import Query
from tests.support import library_world

index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


def make(snapshots, *sizes, age_s=0.0):
    """Make snapshots of some bytes; the last is in force, those before it end `age_s` ago."""
    for number, size in enumerate(sizes, 1):
        place = snapshots / f"{number:06d}-00000000"
        place.mkdir(parents=True)
        (place / "vectors.npy").write_bytes(bytes(size))
        os.utime(place, (time.time() - age_s,) * 2)
    return place.name


def left(snapshots):
    return sorted(int(place.name[:6]) for place in snapshots.iterdir())


@pytest.mark.slow
def test_a_cursor_goes_on_through_one_changing_index_run_a_page(put, index, library):
    for number in range(12):
        put(f"{number:02d}.png", number)
    index()
    expected = [hit.photo.photo_id for hit in library.search(Query(text="red"), per_page=12)]
    page = library.search(Query(text="red"), per_page=1)
    ids = [page[0].photo.photo_id]
    while page.next_cursor:
        put(f"new-{len(ids)}.png", 100 + len(ids))
        index()
        page = library.search(cursor=page.next_cursor)
        ids.append(page[0].photo.photo_id)
    assert ids == expected
    assert len([*(library.folder / "snapshots").iterdir()]) == 12


@pytest.mark.slow
def test_after_its_time_a_cursor_says_to_search_again(put, index, library):
    write_retention(library.folder, Retention(kept_s=1_800))
    for number in range(3):
        put(f"{number}.png", number)
    first = index().snapshot_id
    cursor = library.search(Query(text="red"), per_page=1).next_cursor
    for number in range(KEPT):
        put(f"new-{number}.png", 10 + number)
        index()
    library.search(cursor=cursor)
    old = library.folder / "snapshots" / first
    os.utime(old, (time.time() - 1_801,) * 2)
    put("last.png", 99)
    index()
    assert not old.exists()
    with pytest.raises(ExpiredCursorError, match="search again"):
        library.search(cursor=cursor)


@pytest.mark.slow
def test_as_many_engines_stay_open_as_before_however_many_snapshots_there_are(put, index, library):
    cursors = []
    for number in range(8):
        put(f"{number}.png", number)
        put(f"more-{number}.png", 50 + number)
        index()
        cursors.append(library.search(Query(text="red"), per_page=1).next_cursor)
    for cursor in [*cursors, *reversed(cursors)]:
        library.search(cursor=cursor)
    assert len(library._engines._engines) <= KEPT


def test_a_few_stay_whatever_their_age_and_size(tmp_path):
    current = make(tmp_path, 10, 10, 10, 10, 10, age_s=1e6)
    drop_old(tmp_path, current, Retention(kept_bytes=0))
    assert left(tmp_path) == [3, 4, 5]


def test_all_of_the_last_hour_stay_within_the_budget(tmp_path):
    current = make(tmp_path, *[100] * 9)
    drop_old(tmp_path, current, Retention())
    assert left(tmp_path) == list(range(1, 10))
    drop_old(tmp_path, current, Retention(kept_bytes=550))
    assert left(tmp_path) == [4, 5, 6, 7, 8, 9]


def test_files_that_snapshots_share_count_once(tmp_path):
    current = make(tmp_path, *[100] * 9)
    for place in tmp_path.iterdir():
        if place.name != current:
            (place / "vectors.npy").unlink()
            os.link(tmp_path / current / "vectors.npy", place / "vectors.npy")
    drop_old(tmp_path, current, Retention(kept_bytes=0))
    assert left(tmp_path) == list(range(1, 10))


def test_a_clock_that_was_set_back_drops_nothing_early(tmp_path):
    current = make(tmp_path, *[100] * 9, age_s=-1e8)
    drop_old(tmp_path, current, Retention(kept_bytes=550))
    assert left(tmp_path) == [4, 5, 6, 7, 8, 9]


def test_what_a_library_is_told_holds_and_else_an_hour_and_ten_gigabytes(library):
    assert (
        read_retention(library.folder) == Retention(KEPT_S, KEPT_BYTES) == Retention(3600, 10**10)
    )
    write_retention(library.folder, Retention(60.0, 5))
    assert read_retention(library.folder) == Retention(60.0, 5)
    assert json.loads((library.folder / "library.json").read_text())["created_at"]


def test_the_readme_says_how_long_cursors_stay_valid_and_within_what():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert (KEPT_S, KEPT_BYTES) == (3_600, 10 * 10**9)
    assert "cursors stay valid for an hour, within 10 GB" in " ".join(text.split())


@pytest.mark.parametrize("value", [-1, 1e300, float("nan"), "3600", None, True, [1]])
def test_times_and_budgets_out_of_range_are_refused(library, value):
    for name in ("kept_s", "kept_bytes"):
        with pytest.raises(InputError, match=name):
            Retention(**{name: value})
        path = library.folder / "library.json"
        sound = path.read_text()
        path.write_text(json.dumps(json.loads(sound) | {name: value}))
        with pytest.raises(DataError, match=name):
            read_retention(library.folder)
        path.write_text(sound)
