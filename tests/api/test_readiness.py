"""Readiness: `/ready` proves that the database takes writes, and says what is wrong."""

import sqlite3
from contextlib import closing, contextmanager

import pytest
from PIL import Image

from searchlab.api.ops import readiness as module
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.apis import api
from tests.support.disks import full_disk


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
    while look(served)[0] == 503:  # until the write that waited for the lock is done
        pass
    assert look(served, "/health")[1]["problems"] == []


def test_a_disk_without_space_is_named_before_a_write_fails(served, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_FREE_BYTES", 2**62)
    status, state = look(served)
    assert (status, state["problems"]) == (503, ["the disk of the library is full"])


def test_many_who_ask_at_once_cost_one_write_a_second(served, monkeypatch):
    monkeypatch.setattr(module, "_FRESH_S", 60.0)
    look(served)

    def count():
        with closing(sqlite3.connect(served.library / "api.db")) as connection:
            return connection.execute("PRAGMA user_version").fetchone()[0]

    before = count()
    for _ in range(20):
        assert look(served)[0] == 200
    assert count() == before
