"""Readiness: `/ready` proves that the database takes writes, and says what is wrong."""

import asyncio
import sqlite3
from contextlib import closing, contextmanager

import pytest
from PIL import Image

from searchlab.api.http.threads import Threads
from searchlab.api.ops import readiness as module
from searchlab.api.ops.readiness import Readiness
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.apis import api
from tests.support.databases import fresh_database, psql
from tests.support.disks import full_disk
from tests.support.waiting import wait_until

PATIENCE_S = module._PATIENCE_S


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    place = tmp_path_factory.mktemp("ready")
    (place / "photos").mkdir()
    Image.new("RGB", (40, 30), "red").save(place / "photos" / "red.png")
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))
    with api(place / "library") as server:
        yield server


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(module, "_FRESH_S", 0.0)
    monkeypatch.setattr(module, "_PATIENCE_S", 0.2)


def look(served, path="/ready"):
    answer = served.anonymous.get(path)
    return answer.status_code, answer.json()


@contextmanager
def locked(served):
    with closing(sqlite3.connect(served.library / "api.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


def test_a_server_that_can_write_is_ready(served):
    status, state = look(served)
    assert (status, state["status"], state["ready"], state["problems"]) == (200, "ok", True, [])


@pytest.mark.parametrize(
    ("hindered", "problem"),
    [
        (locked, "the database does not take a write within 0.2 s"),
        (lambda served: full_disk(), "the database cannot be reached or written"),
    ],
    ids=["locked", "full disk"],
)
def test_a_server_that_cannot_write_says_so_and_still_lives(served, hindered, problem):
    with hindered(served):
        status, state = look(served)
        assert (status, state["ready"], state["problems"]) == (503, False, [problem])
        assert look(served, "/health")[0] == 200
        assert not look(served, "/health")[1]["ready"]
    wait_until(lambda: look(served)[0] == 200)  # once the write that waited for the lock is done
    assert look(served, "/health")[1]["problems"] == []


def test_a_disk_without_space_is_named_before_a_write_fails(served, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_FREE_BYTES", 2**62)
    status, state = look(served)
    assert (status, state["problems"]) == (503, ["the disk of the library is full"])


# -- the database, without a server -----------------------------------------------------------


class Worker:
    """What looks whether a database can be written, as patient as it is in a server."""

    def __init__(self, database, folder, monkeypatch):
        monkeypatch.setattr(module, "_PATIENCE_S", PATIENCE_S)
        self.database = database
        self.threads = Threads("ready", 1, waiting=1)
        self._readiness = Readiness(database, folder, self.threads)

    def look(self):
        return asyncio.run(self._readiness.check())


@pytest.fixture
def worker(database, tmp_path, monkeypatch):
    worker = Worker(database, tmp_path, monkeypatch)
    yield worker
    worker.threads.close()


def test_a_lock_of_another_process_is_named_for_what_it_is(tmp_path, monkeypatch):
    with fresh_database("sqlite", tmp_path) as database:
        worker = Worker(database, tmp_path, monkeypatch)
        with closing(sqlite3.connect(database.file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert worker.look() == ("the database is locked by another process",)
        assert worker.look() == ()
        worker.threads.close()


def test_a_table_that_is_locked_on_a_server_is_not_ready(worker):
    if worker.database.file is not None:
        pytest.skip("SQLite locks no single table")
    with worker.database.engine.connect() as other:
        other.exec_driver_sql("LOCK TABLE alembic_version")
        assert worker.look() == ("the database does not take a write within 2 s",)
    assert worker.look() == ()


def test_a_database_that_takes_no_writes_is_not_ready(worker):
    def set_read_only(state):
        if worker.database.file is None:
            psql(f"ALTER DATABASE shared SET default_transaction_read_only = {state}")
        worker.database.close()  # what is set holds for new connections

    assert worker.look() == ()
    try:
        set_read_only("on")
        with full_disk():
            assert worker.look() == ("the database cannot be reached or written",)
    finally:
        set_read_only("off")
    assert worker.look() == ()


def test_a_folder_that_is_gone_is_named_and_searches_go_on(served):
    away = served.library.with_name("away")
    served.library.rename(away)
    try:
        wait_until(lambda: look(served)[0] == 503)
        status, state = look(served)
        assert (status, state["ready"]) == (503, False)
        assert "the folder of the library cannot be read" in state["problems"]
        assert look(served, "/health")[0] == 200
    finally:
        away.rename(served.library)
    wait_until(lambda: look(served)[0] == 200)


def test_many_who_ask_at_once_cost_one_write_a_second(served, monkeypatch):
    monkeypatch.setattr(module, "_FRESH_S", 60.0)  # nothing after this test may ask again
    look(served)

    def count():
        with closing(sqlite3.connect(served.library / "api.db")) as connection:
            return connection.execute("PRAGMA user_version").fetchone()[0]

    before = count()
    for _ in range(20):
        assert look(served)[0] == 200
    assert count() == before
