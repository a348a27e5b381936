"""The API on a real PostgreSQL: two servers of two workers on one database, as on two machines."""

import contextlib
import itertools
import os
import signal
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from PIL import Image

from searchlab.api.accounts.database import open_database
from searchlab.api.accounts.tables import accounts, usage_months
from searchlab.cli import searchlab
from tests.support.databases import empty_url
from tests.support.independent_client import (
    SEARCH,
    Api,
    check_failure,
    check_invalid,
    check_page,
    check_success,
)
from tests.support.served import serving

pytestmark = pytest.mark.slow

COLORS = ("red", "green", "blue", "yellow", "black", "white")
THREADS = 6


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Two servers, the database of both, and what makes keys and clients."""
    folder = tmp_path_factory.mktemp("on-postgresql")
    photos, data = folder / "photos", folder / "library"
    photos.mkdir()
    for color in COLORS:
        Image.new("RGB", (8, 6), color).save(photos / f"{color}.png")
    clients = []

    def command(*words):
        done = CliRunner().invoke(searchlab, [*map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    command("index", "--data", data, "--model", "palette", photos)
    with empty_url("postgresql", folder) as url, contextlib.ExitStack() as stack:
        options = (
            "--database-url",
            url,
            "--workers",
            "2",
            "--rate",
            "1000000",
            "--burst",
            "1000000",
        )
        # One after the other: the first makes the tables.
        servers = [stack.enter_context(serving(data, *options)) for _ in range(2)]

        def keys(*words):
            return command("keys", *words, "--data", data, "--database-url", url)

        def make_key(account, name="first", plan="scale"):
            output = keys("create", "--account", account, "--name", name, "--plan", plan)
            return output.splitlines()[-1]

        def connect(key):
            """Return a client of each server."""
            clients_of_account = [Api(server.base_url, key) for server in servers]
            clients.extend(clients_of_account)
            return clients_of_account

        yield SimpleNamespace(
            url=url, data=data, photos=photos, servers=servers, keys=keys, make_key=make_key,
            connect=connect,
        )  # fmt: skip
        for client in clients:
            client.http.close()
        logs = [server.log for server in servers]
    assert not (data / "api.db").exists()
    for log in logs:
        assert "Traceback" not in log


def used(api):
    return api.data("/usage")["requests"]["used"]


def rows_of(url, table):
    """Read a whole table, past the servers."""
    database = open_database(url)
    with database.reading() as connection:
        rows = list(connection.execute(table.select()))
    database.close()
    return rows


def wait_until(holds):
    """Ask until it holds; a worker may take its time to start on a busy machine."""
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def photo_ids(api):
    return [photo["photo_id"] for photo in api.search(color_tolerance=255, after_date="0001-01-01")]


def at_once(work, items):
    """Do work on items in threads that begin together."""
    gate = threading.Barrier(THREADS)

    def first_wait(pair):
        number, item = pair
        if number < THREADS:
            gate.wait(30)
        return work(item)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(first_wait, enumerate(items)))


# -- one service -------------------------------------------------------------------------------


def test_what_one_server_has_done_the_other_knows(here):
    one, other = here.connect(here.make_key("both"))
    made = check_success(one.post("/collections", {"name": "Herbst'; --", "description": "😀"}))
    path = f"/collections/{made['data']['id']}"
    (photo_id, next_id, *_) = photo_ids(one)
    check_success(other.post(f"{path}/photos", {"photo_id": photo_id}))
    check_failure(one.post(f"{path}/photos", {"photo_id": photo_id}), 409, "CONFLICT")
    check_success(one.post(f"{path}/photos", {"photo_id": next_id}))
    answers = [one.data(path), other.data(path)]
    for entry in answers[0]["photos"] + answers[1]["photos"]:  # each server links to itself
        entry["photo_thumbnail_url"] = entry["photo_thumbnail_url"].partition("/media/")[2]
    assert answers[0] == answers[1]
    assert one.data(path)["cover_photo_id"] == photo_id
    assert [each["photo_id"] for each in one.data(path)["photos"]] == [photo_id, next_id]
    assert one.data("/collections") == other.data("/collections")
    check_success(other.delete(f"{path}/photos/{photo_id}"))
    assert one.data(path)["cover_photo_id"] == next_id
    check_success(one.delete(path))
    check_failure(other.get(path), 404, "NOT_FOUND")


def test_a_cursor_of_one_server_goes_on_at_the_other(here):
    one, other = here.connect(here.make_key("paging"))
    pages = [one.page(q="red", per_page=2)]
    for api in (other, one):
        pages.append(api.page(cursor=pages[-1]["pagination"]["next_cursor"]))
    photo_ids = [photo["photo_id"] for page in pages for photo in page["data"]]
    assert len(set(photo_ids)) == len(COLORS)
    assert used(one) == used(other) == 3


@pytest.mark.parametrize(
    "text",
    ["'; DROP TABLE accounts; --", "%s %(x)s :x $1 ?", "\\x00 \\", "🦊\u0301\u202e", "\x01\x7f"],
)
def test_texts_are_kept_to_the_letter(here, text):
    one, other = here.connect(here.make_key("texts"))
    body = {"name": text, "description": text}
    made = check_success(one.post("/collections", body))["data"]
    assert {name: made[name] for name in body} == body
    (photo_id, *_) = photo_ids(one)
    entry = {"photo_id": photo_id, "photo_source": text, "photo_photographer": text}
    check_success(one.post(f"/collections/{made['id']}/photos", entry))
    (stored,) = other.data(f"/collections/{made['id']}")["photos"]
    assert {name: stored[name] for name in entry} == entry
    check_invalid(one.post("/collections", {"name": f"a\0{text}"}), "body", "name")


@pytest.mark.parametrize("number", ["9223372036854775807", "9223372036854775808", "1" * 400])
def test_a_number_beyond_64_bits_is_not_found(here, number):
    one, _ = here.connect(here.make_key("numbers"))
    check_failure(one.get(f"/collections/{number}"), 404, "NOT_FOUND")
    check_failure(one.delete(f"/collections/{number}/photos/x"), 404, "NOT_FOUND")


# -- counts ------------------------------------------------------------------------------------


def test_every_search_is_counted_once_whichever_server_answers(here):
    clients = here.connect(here.make_key("counting")) + here.connect(here.make_key("counting", "b"))
    photo_id = photo_ids(clients[0])[0]
    kinds = [
        lambda api: api.page(q="red"),
        lambda api: api.image_page(photo_id=photo_id),
        lambda api: check_page(api.get(f"/photos/{photo_id}/similar")),
        lambda api: check_page(
            api.upload((here.photos / "red.png").read_bytes(), kind="image/png")
        ),
        lambda api: check_invalid(api.get(SEARCH, per_page=0)),
        lambda api: api.data("/facets/colors"),
    ]
    pairs = [(kind, api) for _ in range(5) for kind in kinds for api in clients]
    at_once(lambda pair: pair[0](pair[1]), pairs)
    expected = 1 + 5 * 4 * len(clients)
    for api in clients:
        assert used(api) == expected
        assert api.data("/usage/daily", days=1)["records"][0]["requests"] == expected
        assert api.data("/usage/monthly", months=1)["records"][0]["requests"] == expected
        by_key = {each["name"]: each for each in api.data("/usage/by-key")["keys"]}
        assert by_key["first"]["requests_this_month"] == 1 + 5 * 4 * 2
        assert by_key["b"]["requests_today"] == 5 * 4 * 2


def test_the_quota_is_reached_and_never_passed(here):
    clients = here.connect(here.make_key("the last ones", plan="free"))
    clients[0].search(q="red")
    database = open_database(here.url)
    with database.writing() as connection:
        name = sa.select(accounts.c.id).where(accounts.c.name == "the last ones").scalar_subquery()
        row = usage_months.update().where(usage_months.c.account_id == name)
        connection.execute(row.values(requests=4_985))
    database.close()
    pairs = itertools.islice(itertools.cycle(clients), 48)
    answers = at_once(lambda api: api.get(SEARCH, q="red"), pairs)
    assert Counter(answer.status_code for answer in answers) == {200: 15, 429: 33}
    for answer in answers:
        if answer.status_code == 429:
            check_failure(answer, 429, "QUOTA_EXCEEDED")
            assert int(answer.headers["retry-after"]) >= 1
    for api in clients:
        assert api.data("/usage")["requests"] == {"used": 5_000, "limit": 5_000, "remaining": 0}
        check_failure(api.get(SEARCH, q="red"), 429, "QUOTA_EXCEEDED")
        check_success(api.get("/facets/colors"))
    here.make_key("the last ones", "second", plan="starter")
    for api in clients:
        check_page(api.get(SEARCH, q="red"))


# -- keys --------------------------------------------------------------------------------------


def test_a_key_is_refused_by_every_worker_the_moment_it_is_revoked(here):
    for number in range(3):
        clients = here.connect(here.make_key(f"revoking {number}"))
        for api in clients * 3:
            (key,) = api.data("/usage/by-key")["keys"]
        here.keys("revoke", key["key_id"])
        answers = [api.get("/usage") for api in clients * 4]
        assert {answer.status_code for answer in answers} == {401}


def test_while_it_is_asked_with_a_key_is_revoked_once_and_for_all(here):
    clients, revoked, seen = here.connect(here.make_key("busy")), threading.Event(), []
    (key_id,) = [each["key_id"] for each in clients[0].data("/usage/by-key")["keys"]]

    def asking(api):
        while True:
            late = revoked.is_set()
            status = api.get("/usage").status_code
            seen.append((late, status))
            if late:
                return

    def revoking(_):
        try:
            time.sleep(0.3)
            here.keys("revoke", key_id)
        finally:
            revoked.set()

    def revoke_or_ask(api):
        (revoking if api is None else asking)(api)

    at_once(revoke_or_ask, [None, *clients, *clients, clients[0]])
    assert {status for late, status in seen if late} == {401}
    assert {status for _, status in seen} == {200, 401}


# -- once --------------------------------------------------------------------------------------


def test_a_create_with_one_key_at_both_servers_is_done_once(here):
    clients = here.connect(here.make_key("once"))
    for number in range(3):
        headers = {"idempotency-key": str(uuid.uuid4())}
        body = {"name": f"once {number}"}

        def create(api, headers=headers, body=body):
            answer = api.http.post("/collections", json=body, headers=headers)
            while answer.status_code == 409:
                check_failure(answer, 409, "REQUEST_IN_FLIGHT")
                # The other server may have claimed it after this one looked at the time.
                assert 1 <= int(answer.headers["retry-after"]) <= 61
                time.sleep(0.05)
                answer = api.http.post("/collections", json=body, headers=headers)
            check_success(answer)
            return answer

        answers = at_once(create, clients * 6)
        assert len({answer.content for answer in answers}) == 1
        first = [a for a in answers if "idempotency-replayed" not in a.headers]
        assert len(first) == 1
    names = Counter(each["name"] for each in clients[0].data("/collections"))
    assert names == {"once 0": 1, "once 1": 1, "once 2": 1}


def test_a_search_with_one_key_at_both_servers_is_counted_once(here):
    clients = here.connect(here.make_key("searched once"))
    photo_id = photo_ids(clients[0])[0]
    before, headers = used(clients[0]), {"idempotency-key": str(uuid.uuid4())}

    def search(api):
        return api.http.post(SEARCH, params={"photo_id": photo_id}, headers=headers)

    answers = at_once(search, clients * 6)
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len({answer.content for answer in answers if answer.status_code == 200}) == 1
    assert used(clients[1]) == before + 1


def test_of_many_who_add_one_photo_one_does(here):
    clients = here.connect(here.make_key("adding"))
    made = check_success(clients[0].post("/collections", {"name": "x"}))["data"]["id"]
    ids = photo_ids(clients[0])
    pairs = [(api, photo_id) for photo_id in ids for api in clients * 2]
    answers = at_once(lambda p: p[0].post(f"/collections/{made}/photos", {"photo_id": p[1]}), pairs)
    count = Counter(answer.status_code for answer in answers)
    assert count == {200: len(ids), 409: 3 * len(ids)}
    collection = clients[1].data(f"/collections/{made}")
    assert collection["photos_count"] == len(ids)
    assert sorted(each["photo_id"] for each in collection["photos"]) == sorted(ids)
    assert collection["cover_photo_id"] == collection["photos"][0]["photo_id"]


# -- kill -9 -----------------------------------------------------------------------------------


def test_no_search_that_was_answered_is_lost_when_workers_are_killed(here):
    # An account of its own for each run, so that a second one does not count the first one's.
    clients = here.connect(here.make_key(f"killed {uuid.uuid4()}"))
    server, outcomes, done = here.servers[0], Counter(), threading.Event()
    replacing, gate = threading.Event(), threading.Lock()

    def searching(api):
        while not done.is_set():
            try:
                outcome = str(api.get(SEARCH, q="red").status_code)
            except httpx.TransportError:
                outcome = "cut"
            with gate:
                outcomes[outcome] += 1
                outcomes[api.base_url, outcome] += 1
            if replacing.is_set():  # a worker that starts needs the processor as well
                done.wait(0.2)

    def killing(_):
        for _ in range(2):
            replacing.clear()
            time.sleep(0.7)
            victim = server.workers[0]
            os.kill(victim, signal.SIGKILL)
            replacing.set()
            wait_until(lambda gone=victim: gone not in server.workers and len(server.workers) == 2)
        wait_until(lambda: clients[0].get("/usage").status_code == 200)
        done.set()

    def kill_or_search(api):
        try:
            (killing if api is None else searching)(api)
        finally:
            done.set()

    at_once(kill_or_search, [None, *clients, *clients, clients[0]])
    # The worker that is left may have too much to do: what it refuses is not counted.
    assert {name for name in outcomes if isinstance(name, str)} <= {"200", "cut", "503"}
    assert outcomes["200"] > 10
    counted = used(clients[1])
    # What was counted and not yet answered when the worker died: at most what was cut off.
    most = outcomes["200"] + outcomes["cut"]
    assert outcomes["200"] <= counted <= most, (outcomes, rows_of(here.url, usage_months))
    assert used(clients[0]) == counted
