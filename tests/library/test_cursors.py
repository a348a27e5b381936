"""Cursors of a library: they go on in their own state, or say to search again."""

import json
import shutil
import subprocess
import sys

import pytest
from PIL import Image

from searchlab.errors import DataError
from searchlab.library import engines
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.retention import KEPT
from searchlab.library.roots import check_root
from searchlab.search.cursors import CursorError
from searchlab.search.queries import Query
from tests.support import library_world, snapshot_world
from tests.support.library_world import GRAPH, PALETTE

forgetful = snapshot_world.forgetful
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


def names_of(page):
    return [hit.photo.photo_id for hit in page]


@pytest.mark.slow
def test_a_cursor_goes_on_in_its_own_state_while_that_is_kept(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    whole = names_of(library.search(Query(text="red"), per_page=100))
    first = library.search(Query(text="red"), per_page=4)
    for i in range(9, 9 + KEPT - 1):
        put(f"{i}.png", i)
        index()
    reopened = open_library(library.folder)
    second = reopened.search(cursor=first.next_cursor)
    third = reopened.search(cursor=second.next_cursor)
    assert names_of(first) + names_of(second) + names_of(third) == whole
    assert third.next_cursor is None
    assert names_of(reopened.search(cursor=first.next_cursor)) == names_of(second)


@pytest.mark.slow
@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("reopen", [False, True])
def test_a_cursor_of_a_state_that_is_gone_says_to_search_again(put, index, library, reopen):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    cursor = library.search(Query(text="red"), per_page=4).next_cursor
    for i in range(9, 9 + KEPT):
        put(f"{i}.png", i)
        index()
    reader = open_library(library.folder) if reopen else library
    with pytest.raises(CursorError, match="search again"):
        reader.search(cursor=cursor)


def test_a_cursor_into_a_half_removed_state_says_to_search_again(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    name = index().snapshot_id
    cursor = library.search(Query(text="red"), per_page=4).next_cursor
    put("more.png", 77)
    index()
    shutil.rmtree(library.folder / "snapshots" / name)
    with pytest.raises(CursorError, match="search again"):
        open_library(library.folder).search(cursor=cursor)


@pytest.mark.parametrize("gone", [True, False])
def test_a_state_that_is_dropped_while_a_cursor_opens_it_says_to_search_again(
    put, index, library, monkeypatch, gone
):
    for i in range(9):
        put(f"{i}.png", i)
    name = index().snapshot_id
    cursor = library.search(Query(text="red"), per_page=4).next_cursor
    place, open_it = library.folder / "snapshots" / name, engines.open_snapshot

    def dropped(*where, **how):
        if gone:
            shutil.rmtree(place)
        else:
            (place / "vectors.npy").unlink()
        return open_it(*where, **how)

    monkeypatch.setattr(engines, "open_snapshot", dropped)
    with pytest.raises(CursorError if gone else DataError, match="search again" if gone else "npy"):
        open_library(library.folder).search(cursor=cursor)


def test_a_cursor_survives_a_rebuild_that_gives_the_state_another_name(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    whole = names_of(library.search(Query(text="red"), per_page=100))
    first = library.search(Query(text="red"), per_page=5)
    index(rebuild=True)
    assert names_of(open_library(library.folder).search(cursor=first.next_cursor)) == whole[5:]


@pytest.mark.slow
def test_a_cursor_of_another_library_is_refused(put, index, library, photos, tmp_path):
    for i in range(5):
        put(f"{i}.png", i)
    index()
    other = create_library(tmp_path / "other")
    index_photos(other, [check_root(photos)], config=PALETTE)
    cursor = other.search(Query(text="red"), per_page=2).next_cursor
    with pytest.raises(CursorError, match="next_cursor"):
        library.search(cursor=cursor)


def test_a_cursor_of_an_image_query_needs_no_image_again(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    query = Query(image=Image.new("RGB", (9, 9), "teal"))
    whole = names_of(library.search(query, per_page=100))
    first = library.search(query, per_page=5)
    assert names_of(open_library(library.folder).search(cursor=first.next_cursor)) == whole[5:]


def test_a_library_is_searched_by_words_alone_and_page_2_starts_at_its_place(put, index, library):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    first = library.search("red", per_page=4)
    assert names_of(first) == names_of(library.search(Query(text="red"), per_page=4))
    assert str(first.plan) == first.plan.explain()
    second = library.search(cursor=first.next_cursor)
    assert (first.start, second.start) == (1, 5)


_PAGES = """
import json, sys
from searchlab.library.library import open_library
from searchlab.search.queries import Query

library = open_library(sys.argv[1])
pages, page = [], library.search(Query(text="dark red"), per_page=4)
while True:
    hits = [(hit.photo.photo_id, hit.relevance_score) for hit in page]
    pages.append([hits, page.next_cursor])
    if page.next_cursor is None:
        break
    page = library.search(cursor=page.next_cursor)
print(json.dumps(pages))
"""


@pytest.mark.slow
@pytest.mark.parametrize("config", [PALETTE, GRAPH], ids=["exact", "hnsw"])
def test_pages_and_cursors_are_the_same_in_every_process(put, index, library, config):
    for i in range(30):
        put(f"{i}.png", i)
    index(config=config)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _PAGES, str(library.folder)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    first = library.search(Query(text="dark red"), per_page=4)
    hits, cursor = json.loads(outputs[0])[0]
    assert hits == [[hit.photo.photo_id, hit.relevance_score] for hit in first]
    assert cursor == first.next_cursor
    second = library.search(cursor=cursor)
    assert json.loads(outputs[0])[1][0] == [
        [hit.photo.photo_id, hit.relevance_score] for hit in second
    ]
