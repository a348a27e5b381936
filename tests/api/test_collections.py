"""Collections and replays over HTTP: links, limits, photos and keys that are gone."""

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest
from litestar.datastructures import Headers
from PIL import Image

from searchlab.api.accounts import collections, database, idempotency
from searchlab.api.accounts.database import BusyError, UnreachableDatabaseError, UnstorableError
from searchlab.api.accounts.keyring import Caller
from searchlab.api.accounts.replays import InFlightError, Replay
from searchlab.api.http.context import RequestContext, attach
from searchlab.api.http.threads import Threads
from searchlab.api.wire.errors import KINDS, Invalid, problem_of
from searchlab.config import Config
from searchlab.errors import InputError, NotFoundError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root
from searchlab.library.snapshots import current_id
from tests.support.apis import api

pytestmark = pytest.mark.slow

COLLECTIONS = "/api/v1/collections"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "photos").mkdir()
    for name, color in (("a", "red"), ("b", "blue"), ("c", "green")):
        Image.new("RGB", (40, 30), color).save(tmp_path / "photos" / f"{name}.png")
    create_library(tmp_path / "library")
    index(tmp_path)
    return tmp_path


def index(place):
    library = open_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))


@pytest.fixture
def served(place):
    with api(place / "library", poll_s=0.02) as server:
        yield server


@pytest.fixture
def made(served):
    return data(served.client.post(COLLECTIONS, json={"name": "dunes", "is_public": True}))["id"]


def data(answer):
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def photo_ids(served):
    page = data(served.client.get("/api/v1/search/photos", params={"q": "red"}))
    return [photo["photo_id"] for photo in page]


def add(served, made, photo_id, **body):
    headers = body.pop("headers", {})
    path = f"{COLLECTIONS}/{made}/photos"
    return served.client.post(path, json={"photo_id": photo_id} | body, headers=headers)


def delete_photo_from_library(place, served, name):
    before = current_id(place / "library")
    (place / "photos" / name).unlink()
    index(place)
    assert current_id(place / "library") != before
    live_library = served.app.services.live_library
    pause = threading.Event()
    while live_library.current.engine.snapshot_id == before:
        pause.wait(0.01)


# -- links ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "",
        "data:text/html,x",
        "//evil.example/x",
        "x",
        "http://",
        "ftp://a/b",
    ],
)
def test_a_thumbnail_that_a_browser_should_not_follow_is_refused(served, made, address):
    answer = add(served, made, photo_ids(served)[0], photo_thumbnail_url=address)
    assert answer.status_code == 422
    (detail,) = answer.json()["detail"]
    assert detail["loc"] == ["body", "photo_thumbnail_url"]
    assert data(served.client.get(f"{COLLECTIONS}/{made}"))["photos"] == []


def test_a_thumbnail_that_was_not_sent_stands_under_the_address_of_who_reads(served, made):
    photo_id = photo_ids(served)[0]
    evil = data(add(served, made, photo_id, headers={"host": "evil.example"}))
    assert evil["photo_thumbnail_url"].startswith(f"http://evil.example/media/{photo_id}/thumb?v=")
    for reader in (served.client, served.make_client("other")):
        (entry,) = data(reader.get(f"{COLLECTIONS}/{made}"))["photos"]
        link = data(reader.get(f"/api/v1/photos/{photo_id}"))["urls"]["thumb"]
        assert entry == evil | {"photo_thumbnail_url": link}
        assert link.startswith("http://photos.test/")


def test_a_photo_whose_photographers_have_a_long_name_is_saved_with_its_beginning(place):
    name = ", ".join(f"Photographer {number}" for number in range(40))
    line = json.dumps({"file": "a.png", "photographer_full_name": name})
    (place / "photos" / "photos.jsonl").write_text(line, encoding="utf-8")
    index(place)
    with api(place / "library") as served:
        made = data(served.client.post(COLLECTIONS, json={"name": "trees"}))["id"]
        (photo_id,) = [
            photo["photo_id"]
            for photo in data(served.client.get("/api/v1/search/photos", params={"q": "red"}))
            if photo["photographer_full_name"] == name
        ]
        refused = add(served, made, photo_id, photo_photographer=name)
        assert refused.status_code == 422
        assert data(add(served, made, photo_id))["photo_photographer"] == name[:255]


def test_an_entry_whose_photo_is_gone_keeps_a_link(place, served, made):
    (photo_id, *_) = photo_ids(served)
    for each in photo_ids(served):
        add(served, made, each)
    delete_photo_from_library(place, served, "a.png")
    entries = data(served.client.get(f"{COLLECTIONS}/{made}"))["photos"]
    links = {entry["photo_id"]: entry["photo_thumbnail_url"] for entry in entries}
    assert links[photo_id] == f"http://photos.test/media/{photo_id}/thumb"
    assert sum("?v=" in link for link in links.values()) == 2


# -- limits -----------------------------------------------------------------------------------


def test_an_account_that_has_as_many_collections_as_it_may_is_told_so(served, made, monkeypatch):
    monkeypatch.setattr(collections, "MAX_COLLECTIONS", 1)
    answer = served.client.post(COLLECTIONS, json={"name": "one more"})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "LIMIT_REACHED"
    assert [each["id"] for each in data(served.client.get(COLLECTIONS))] == [made]


def test_a_collection_that_has_as_many_photos_as_it_may_is_told_so(served, made, monkeypatch):
    monkeypatch.setattr(collections, "MAX_PHOTOS", 1)
    first, second, _ = photo_ids(served)
    data(add(served, made, first))
    answer = add(served, made, second)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "LIMIT_REACHED"
    assert add(served, made, first).status_code == 409


# -- a database that does not answer ----------------------------------------------------------


def test_a_database_that_others_hold_is_503_without_a_word_about_it(served, monkeypatch):
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.01)
    with served.app.services.database.writing():
        answer = served.client.post(COLLECTIONS, json={"name": "dunes"})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["error"] == {
        "code": "OVERLOADED",
        "message": KINDS["OVERLOADED"].example,
        "details": {},
    }


@pytest.mark.parametrize("kind", [BusyError, UnreachableDatabaseError])
def test_what_is_told_of_a_database_out_of_reach_names_no_file_and_no_host(kind):
    problem = problem_of(kind("/secret/api.db must be free, got: locked"))
    assert (problem.kind.status, problem.headers) == (503, {"Retry-After": "1"})
    assert "secret" not in problem.message


def test_a_value_that_only_the_database_refuses_is_our_fault():
    problem = problem_of(UnstorableError("values must be such that /secret takes them"))
    assert problem.kind.status == 500
    assert "secret" not in problem.message


@pytest.mark.parametrize("message", ["the key must be shorter", "values must", "name must be", ""])
def test_a_message_that_names_no_parameter_is_given_no_place(message):
    problem = problem_of(InputError(message))
    assert isinstance(problem, Invalid)
    assert problem.details[0].loc == ("query",)


# -- replays ----------------------------------------------------------------------------------


def test_an_addition_is_replayed_also_when_the_photo_is_gone(place, served, made):
    photo_id, headers = photo_ids(served)[0], {"idempotency-key": "k"}
    first = add(served, made, photo_id, headers=headers)
    data(first)
    delete_photo_from_library(place, served, "a.png")
    assert served.client.get(f"/api/v1/photos/{photo_id}").status_code == 404
    second = add(served, made, photo_id, headers=headers)
    assert second.headers["idempotency-replayed"] == "true"
    assert second.content == first.content
    assert add(served, made, photo_id).status_code == 404


class Store:
    """Replays whose thread waits until it is told."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.begun, self.go = threading.Event(), threading.Event()
        self.forgotten = []

    def begin(self, attempt):
        self.begun.set()
        assert self.go.wait(30)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def forget(self, attempt):
        self.forgotten.append(attempt)


def request_to(collections, threads):
    async def in_database(work, *arguments):
        return await threads.run(work, *arguments)

    services = SimpleNamespace(replays=collections, in_database=in_database)
    scope = {"path": COLLECTIONS, "query_string": b""}
    context = RequestContext()
    context.caller = Caller(1, "key_1", "free")
    attach(scope, context)
    return SimpleNamespace(
        app=SimpleNamespace(state={"services": services}),
        headers=Headers({idempotency.IDEMPOTENCY_KEY: "k"}),
        scope=scope,
        method="POST",
    )


def cancel_while_claiming(outcome):
    """Claim a key, give up while the thread is at it, and let the thread go on."""
    collections, threads = Store(outcome), Threads("test", 2, waiting=2)

    async def ask():
        async with idempotency.claim(request_to(collections, threads), b""):
            raise AssertionError

    async def cancel():
        task = asyncio.create_task(ask())
        await asyncio.to_thread(collections.begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        collections.go.set()
        while idempotency._RELEASING:
            await asyncio.sleep(0.001)

    asyncio.run(cancel())
    threads.close()
    return len(collections.forgotten)


def test_a_key_that_is_claimed_after_its_request_has_gone_is_given_back():
    assert cancel_while_claiming(None) == 1


@pytest.mark.parametrize(
    "outcome", [Replay(200, b"{}", "application/json"), InFlightError("busy"), NotFoundError("x")]
)
def test_a_key_that_somebody_else_has_is_not_given_back(outcome):
    assert cancel_while_claiming(outcome) == 0
