"""Several readers and writers of one library: one writes, and nobody who reads waits."""

import contextlib
import signal
import subprocess
import sys
import threading

import pytest

from searchlab.errors import ConflictError, InputError
from searchlab.library import engines
from searchlab.library.ingest import index_photos
from searchlab.library.library import open_library
from searchlab.library.prune import prune
from searchlab.library.retention import KEPT
from searchlab.search.cursors import CursorError
from searchlab.search.queries import Query
from tests.support import library_world
from tests.support.library_world import GRAPH, ids_by_name

pytestmark = pytest.mark.slow

index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


def test_a_second_writer_is_refused_while_reading_goes_on(put, index, library, photos):
    put("a.png", 1)
    index()
    put("b.png", 2)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\n"
            "from searchlab.library.library import open_library\n"
            "with open_library(sys.argv[1]).writing():\n"
            "    print('held', flush=True)\n"
            "    time.sleep(60)\n",
            str(library.folder),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConflictError, match=r"wait"):
            index_photos(library)
        with pytest.raises(ConflictError, match=str(library.folder)):
            library.publish(GRAPH)
        with pytest.raises(ConflictError):
            prune(library)
        assert list(ids_by_name(open_library(library.folder))) == ["a.png"]
        holder.send_signal(signal.SIGKILL)
    assert index_photos(library).n_photos == 2


def test_a_second_writer_in_the_same_process_is_refused(put, index, library):
    put("a.png", 1)
    index()
    with library.writing(), pytest.raises(ConflictError):
        index_photos(open_library(library.folder))
    assert index_photos(library).n_photos == 1


def test_a_failed_run_lets_the_next_writer_in(put, index, photos):
    with pytest.raises(InputError):
        index()
    put("a.png", 1)
    assert index().n_photos == 1


def test_a_reader_keeps_its_state_while_new_ones_are_published(put, index, library):
    for i in range(10):
        put(f"{i}.png", i)
    index()
    engine = library.engine
    before = [hit.photo.photo_id for hit in engine.search(Query(text="red"))]
    for i in range(10, 10 + 2 * KEPT):
        put(f"{i}.png", i)
        index_photos(library)
    assert [hit.photo.photo_id for hit in engine.search(Query(text="red"))] == before
    assert len(library.engine.table) == 10 + 2 * KEPT


def test_a_reader_in_another_object_sees_the_new_state(put, index, library):
    put("a.png", 1)
    index()
    reader = open_library(library.folder)
    assert list(ids_by_name(reader)) == ["a.png"]
    put("b.png", 2)
    index()
    assert sorted(ids_by_name(reader)) == ["a.png", "b.png"]


def test_threads_that_search_while_a_writer_publishes_never_fail(put, index, library):
    for i in range(10):
        put(f"{i}.png", i)
    index()
    failures, done = [], threading.Event()

    def read():
        while not done.is_set():
            try:
                page = library.search(Query(text="red"), per_page=5)
                with contextlib.suppress(CursorError):  # three states may have come since
                    library.search(cursor=page.next_cursor)
            except Exception as error:
                failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(10, 16):
        put(f"{i}.png", i)
        index_photos(library)
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_a_search_on_an_open_engine_does_not_wait_while_another_is_opened(
    put, index, library, monkeypatch
):
    for i in range(9):
        put(f"{i}.png", i)
    index()
    first = library.search(Query(text="red"), per_page=4)
    put("new.png", 99)
    index()
    started, go_on, open_it = threading.Event(), threading.Event(), engines.open_snapshot

    def slowly(*place):
        started.set()
        assert go_on.wait(20)
        return open_it(*place)

    monkeypatch.setattr(engines, "open_snapshot", slowly)
    pages = []
    new = threading.Thread(target=lambda: pages.append(library.search(Query(text="red"))))
    old = threading.Thread(
        target=lambda: pages.append(library.search(cursor=first.next_cursor)), daemon=True
    )
    new.start()
    assert started.wait(20)
    old.start()
    old.join(5)
    waited = old.is_alive()
    go_on.set()
    new.join(20)
    old.join(20)
    assert not waited
    assert [len(page) for page in pages] == [4, 10]


def test_many_readers_open_a_new_state_once(put, index, library, monkeypatch):
    put("a.png", 1)
    index()
    opened, open_it = [], engines.open_snapshot
    monkeypatch.setattr(
        engines, "open_snapshot", lambda *place: opened.append(place) or open_it(*place)
    )
    gate = threading.Barrier(6)

    def read():
        gate.wait()
        library.search("red")

    readers = [threading.Thread(target=read) for _ in range(6)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len(opened) == 1
