"""Wrong keys are limited by address; requests without Host, and shortages, are clean errors."""

import asyncio
import functools
import secrets
import time

import pytest
from PIL import Image

from searchlab.api.accounts.accounts import revoke_key
from searchlab.api.accounts.rates import Rates
from searchlab.api.http import recent_secrets
from searchlab.api.http.recent_secrets import RecentSecrets
from searchlab.api.wire.errors import problem_of
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.apis import api

USAGE = "/api/v1/usage"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    place = tmp_path_factory.mktemp("guesses")
    (place / "photos").mkdir()
    Image.new("RGB", (40, 30), "red").save(place / "photos" / "red.png")
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))
    with api(place / "library", trusted_proxy_header="X-Forwarded-For") as server:
        yield server


def guess(served, address, key=None):
    headers = {"x-api-key": key or f"sl_{secrets.token_hex(22)[:43]}", "x-forwarded-for": address}
    return served.anonymous.get(USAGE, headers=headers)


def test_who_guesses_keys_is_told_to_wait_and_nobody_else(served):
    statuses = [guess(served, "203.0.113.7").status_code for _ in range(130)]
    assert statuses[:100] == [401] * 100
    assert statuses[-1] == 429
    refused = guess(served, "203.0.113.7")
    assert refused.json()["error"]["code"] == "RATE_LIMITED"
    assert int(refused.headers["retry-after"]) >= 1
    # Another address, and keys that the worker knows already.
    assert guess(served, "203.0.113.8").status_code == 401
    assert guess(served, "203.0.113.8", served.key).status_code == 200
    assert guess(served, "203.0.113.7", served.key).status_code == 200


def test_who_shares_an_address_with_a_guesser_is_not_shut_out(served, monkeypatch):
    address = "203.0.113.30"
    known, unseen = (
        served.make_client(account="shared", name=name).headers["x-api-key"] for name in "ab"
    )
    services = served.app.services
    # As with PostgreSQL, where each request asks the database; and as if no time passed.
    monkeypatch.setattr(services.keys, "recall", lambda _secret: None)
    frozen = functools.partial(services.wrong_keys.check, now=time.monotonic())
    monkeypatch.setattr(services.wrong_keys, "check", frozen)
    assert guess(served, address, known).status_code == 200
    while guess(served, address).status_code == 401:
        pass
    assert [guess(served, address, known).status_code for _ in range(3)] == [200] * 3
    assert guess(served, address, unseen).status_code == 429
    # A key that is revoked is refused at once, and then is one wrong key like others.
    revoke_key(served.database, known)
    assert guess(served, address, known).status_code == 401
    assert guess(served, address, known).status_code == 429


def test_what_was_in_force_is_remembered_for_a_minute_and_of_a_bounded_number(monkeypatch):
    monkeypatch.setattr(recent_secrets, "_MOST", 2)
    recent = RecentSecrets()
    for secret in ("a", "b", "a", "c"):
        recent.note(secret, in_force=True)
    assert [recent.has(secret) for secret in "abc"] == [True, False, True]
    recent.note("a", in_force=False)
    assert not recent.has("a")
    monkeypatch.setattr(recent_secrets, "_RECENT_S", 0.0)
    recent.note("c", in_force=True)
    assert not recent.has("c")


def guess_session(served, address, secret=None):
    cookie = f"searchlab-80={secret or 'sls_' + secrets.token_urlsafe(32)}"
    headers = {"cookie": cookie, "x-forwarded-for": address, "host": "127.0.0.1"}
    return served.anonymous.get("/sign-in", headers=headers)


@pytest.mark.slow
def test_who_guesses_sessions_is_told_to_wait_as_well(served):
    assert {guess_session(served, "203.0.113.20", "none").status_code for _ in range(150)} == {200}
    statuses = [guess_session(served, "203.0.113.20").status_code for _ in range(130)]
    assert statuses[:100] == [200] * 100
    assert statuses[-1] == 429
    assert int(guess_session(served, "203.0.113.20").headers["retry-after"]) >= 1
    assert guess_session(served, "203.0.113.21").status_code == 200
    assert guess_session(served, "203.0.113.20", "none").status_code == 200


def test_what_cannot_be_a_key_is_no_guess(served):
    for _ in range(150):
        assert guess(served, "203.0.113.9", "nonsense").status_code == 401
    assert guess(served, "203.0.113.9").status_code == 401


def test_looking_at_a_rate_takes_nothing():
    rates = Rates(None, 1.0, 2)
    assert all(rates.check("a", 5.0, take=False).allowed for _ in range(9))
    assert [rates.check("a", 5.0).allowed for _ in range(3)] == [True, True, False]
    assert not rates.check("a", 5.0, take=False).allowed
    rates.close()


@pytest.mark.parametrize(
    ("version", "hosts", "status"),
    [("1.1", 0, 400), ("1.1", 2, 400), ("1.0", 0, 200), ("1.1", 1, 200)],
)
def test_a_request_names_its_host_once(served, version, hosts, status):
    scope = {"type": "http", "method": "GET", "path": USAGE, "raw_path": USAGE.encode()}
    scope |= {"asgi": {"version": "3.0"}, "http_version": version, "scheme": "http"}
    scope |= {"query_string": b"", "root_path": "", "server": ("a", 80), "client": ("1.2.3.4", 5)}
    scope["headers"] = [(b"host", b"a")] * hosts + [(b"x-api-key", served.key.encode())]
    messages = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        messages.append(message)

    asyncio.run_coroutine_threadsafe(served.app(scope, receive, send), served.loop).result(10)
    assert messages[0]["status"] == status


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_too_little_memory_or_threads_is_an_answer_to_come_again(error):
    problem = problem_of(error)
    assert (problem.kind.status, problem.headers) == (503, {"Retry-After": "1"})
    assert problem_of(RuntimeError("another")).kind.status == 500
