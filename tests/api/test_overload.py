"""A service that is busy: who is sent away, who waits, and who is served all the same."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from searchlab.api.http import admission
from tests.support.apis import api

SEARCH = "/api/v1/search/photos"


@pytest.mark.slow
def test_more_requests_than_the_worker_takes_on_are_sent_away(five_photos):
    with api(five_photos, max_in_flight=1) as served:
        services = served.app.services
        services.metrics.start_request()  # somebody else's
        answer = served.client.get(SEARCH, params={"q": "red"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "OVERLOADED")
        assert int(answer.headers["retry-after"]) >= 1


def test_a_worker_that_is_full_still_says_that_it_is_well(five_photos):
    with api(five_photos, max_in_flight=1) as served:
        metrics = served.app.services.metrics
        for _ in range(5):
            metrics.start_request()  # somebody else's
        for path in ("/health", "/ready", "/metrics"):
            assert served.anonymous.get(path).status_code == 200
        assert served.anonymous.get("/docs/errors").status_code == 503


class Dawdling:
    """A client of one request whose body comes when it is told to."""

    def __init__(self, served, key=None):
        self._loop = served.loop
        self._sent = asyncio.Queue()
        self.status = None
        self._body = b""
        head = [(b"host", b"photos.test"), (b"content-length", b"20")]
        head += [(b"content-type", b"application/json")]
        head += [(b"x-api-key", (key or served.key).encode())]
        scope = {"type": "http", "method": "POST", "path": "/api/v1/collections"}
        scope |= {"asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http"}
        scope |= {"raw_path": b"/api/v1/collections", "query_string": b"", "root_path": ""}
        scope |= {"headers": head, "server": ("photos.test", 80), "client": ("1.2.3.4", 5)}
        answering = served.app(scope, self._sent.get, self._take)
        self._done = asyncio.run_coroutine_threadsafe(answering, self._loop)

    async def _take(self, message):
        self.status = message.get("status", self.status)
        self._body += message.get("body", b"")

    def goes_on(self, body=b'{"name": "x"}       '):
        message = {"type": "http.request", "body": body, "more_body": False}
        asyncio.run_coroutine_threadsafe(self._sent.put(message), self._loop).result(10)

    def answer(self):
        self._done.result(20)
        return self.status, json.loads(self._body)


def wait_until(met):
    for _ in range(500):
        if met():
            return
        time.sleep(0.01)
    pytest.fail("it did not come to that")


@pytest.mark.slow
def test_clients_that_take_their_time_take_no_place_of_others(five_photos, monkeypatch):
    with api(five_photos, max_in_flight=3) as served:
        metrics = served.app.services.metrics
        slow = []
        for number in range(8):
            slow.append(Dawdling(served))
            wait_until(lambda: metrics.waiting > number)  # noqa: B023 - called here and now
        assert metrics.in_flight == 0
        assert b"searchlab_requests_waiting 8.0" in served.anonymous.get("/metrics").content
        assert served.client.get(SEARCH, params={"q": "red"}).status_code == 200
        # A key has no more than its part of the places, another one has its own.
        status, body = Dawdling(served).answer()
        assert (status, body["error"]["code"]) == (429, "RATE_LIMITED")
        other = Dawdling(served, served.make_client(account="other").headers["x-api-key"])
        # Once all places are taken, nobody who may have to be waited for is let in.
        wait_until(lambda: metrics.waiting == 9)
        monkeypatch.setattr(served.app.services.client_waits, "_most", 9)
        third = served.make_client(account="third")
        status, body = Dawdling(served, third.headers["x-api-key"]).answer()
        assert (status, body["error"]["code"]) == (503, "OVERLOADED")
        assert third.get(SEARCH, params={"q": "red"}).status_code == 200
        for client in (*slow, other):
            client.goes_on()
            assert client.answer()[0] == 200
        assert (metrics.waiting, metrics.in_flight) == (0, 0)


@pytest.fixture
def own_server(five_photos):
    with api(five_photos) as server:
        yield server


@pytest.fixture
def hanging(monkeypatch, own_server):
    """Makes calls to the database hang until the test is over: released before the server ends."""
    go_on = threading.Event()
    monkeypatch.setattr(admission, "_ADMISSION_S", 0.2)

    def hang(holder, name):
        call = getattr(holder, name)
        monkeypatch.setattr(holder, name, lambda *about: (go_on.wait(20), call(*about))[1])

    yield hang
    go_on.set()


def test_a_database_that_hangs_holds_up_nobody_who_does_not_need_it(own_server, hanging):
    hanging(own_server.app.services.keys, "find")
    stranger = own_server.make_client(account="stranger")
    with ThreadPoolExecutor(6) as clients:
        requests = [clients.submit(stranger.get, "/api/v1/usage") for _ in range(6)]
        assert own_server.anonymous.get("/docs/errors").status_code == 200
        for answer in (request.result(20) for request in requests):
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "OVERLOADED")
            assert answer.headers["retry-after"] == "1"
            assert answer.headers["x-request-id"]


def test_what_an_account_has_used_is_not_waited_for_without_end(own_server, hanging):
    services = own_server.app.services
    hanging(services.meter, "read_used")
    services.meter.peek = lambda _caller: None
    answer = own_server.client.get("/api/v1/usage")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "OVERLOADED")
