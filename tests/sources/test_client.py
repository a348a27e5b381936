"""The polite client, against a stand-in for a library's API on this machine."""

import email.utils
import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from searchlab.errors import InputError, NotFoundError, QuotaError, SearchlabError
from searchlab.sources import SOURCES
from searchlab.sources.fetch.addresses import PinnedTransport, is_public
from searchlab.sources.fetch.client import PoliteClient, open_client
from searchlab.sources.source import ApiRequest, Key, Source, number_at, pages
from tests.support.stand_in import StandIn

NOW = 1_800_000_000.0
KEY = Key("ANY_KEY", "https://example.org", header="X-Key")


@pytest.fixture
def server():
    with StandIn() as stand_in:
        yield stand_in


@pytest.fixture
def make_api(server, tmp_path):
    """Make a client whose clock stands still but for its own waits."""
    transport = PinnedTransport(allowed=["127.0.0.1"])
    made = []

    def make(key=KEY, secret="s3cret", **changes):
        source = Source(
            name="pexels",
            title="Pexels",
            home=server.url,
            record=SOURCES["pexels"].record,
            records_at=("photos",),
            record_fields=(),
            key=key,
        )
        waits = []
        client = open_client(transport)
        made.append(client)
        api = PoliteClient(
            source,
            client,
            tmp_path / "responses",
            key=secret,
            clock=lambda: NOW + sum(waits),
            sleep=waits.append,
            **changes,
        )
        return api, waits

    yield make
    for client in made:
        client.close()


def test_an_answer_is_asked_for_with_the_key_and_once_a_day(make_api, server):
    api, _ = make_api(cache_s=10**12)
    server.says({"photos": [1]})
    ask = ApiRequest(f"{server.url}/search", {"query": "a b", "page": "1"})
    assert api.answer(ask) == api.answer(ask) == {"photos": [1]}
    [(path, headers)] = server.requests
    assert parse_qs(urlsplit(path).query) == {"query": ["a b"], "page": ["1"]}
    assert headers["X-Key"] == "s3cret"
    assert headers["User-Agent"].startswith("searchlab/")


def test_a_key_may_be_a_parameter_and_stands_in_no_file(make_api, server, tmp_path):
    api, _ = make_api(key=Key("ANY_KEY", "https://example.org", param="key"))
    server.says({"photos": []})
    api.answer(ApiRequest(f"{server.url}/search", {"q": "x"}))
    assert "key=s3cret" in server.requests[0][0]
    for path in (tmp_path / "responses").iterdir():
        assert b"s3cret" not in path.read_bytes()
        assert "s3cret" not in path.name


def test_answers_that_are_too_old_or_damaged_are_asked_for_again(make_api, server, tmp_path):
    api, _ = make_api(cache_s=10**12)
    server.says({"n": 1})
    server.says({"n": 2})
    ask = ApiRequest(f"{server.url}/x")
    api.answer(ask)
    [path] = (tmp_path / "responses").iterdir()
    path.write_bytes(b'{"n":')
    assert api.answer(ask) == {"n": 2}
    server.says({"n": 3})
    assert make_api(cache_s=0)[0].answer(ask) == {"n": 3}


def test_a_missing_key_is_told_before_anything_is_asked(make_api, server):
    with pytest.raises(InputError, match=r"must be asked with a key.*set ANY_KEY"):
        make_api(secret="")[0].answer(ApiRequest(f"{server.url}/x"))
    assert server.requests == []
    with pytest.raises(InputError, match="printable ASCII"):
        make_api(secret="a\nb")


@pytest.fixture
def in_new_york(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_new_york")
@pytest.mark.parametrize(
    ("retry_after", "waited"),
    [
        ("7", 7.0),
        (email.utils.formatdate(NOW + 30, usegmt=True), 30.0),
        (time.asctime(time.gmtime(NOW + 30)), 30.0),  # without a zone, and still not local time
        ("soon", 2.0),
    ],
)
def test_retry_after_is_obeyed_as_seconds_and_as_a_date(make_api, server, retry_after, waited):
    api, waits = make_api()
    server.says({}, status=429, Retry_After=retry_after)
    server.says({"ok": 1})
    assert api.answer(ApiRequest(f"{server.url}/x")) == {"ok": 1}
    assert waited in waits


def test_a_wait_that_is_too_long_ends_the_walk_and_says_when_to_come_back(make_api, server):
    api, _ = make_api(max_wait_s=60)
    server.says({}, status=429, Retry_After="3600")
    with pytest.raises(QuotaError, match=r"60 minutes; run the same command then"):
        api.answer(ApiRequest(f"{server.url}/x"))


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Ratelimit_Remaining": "0", "X_Ratelimit_Reset": "50"},
        {"X_Ratelimit_Remaining": "0", "X_Ratelimit_Reset": str(int(NOW) + 50)},
        {"RateLimit_Remaining": "0", "RateLimit_Reset": "50"},
        {"RateLimit": '"default";r=0;t=50'},
    ],
)
def test_when_no_request_is_left_the_next_one_waits_for_the_reset(make_api, server, headers):
    api, waits = make_api()
    server.says({"n": 1}, **headers)
    server.says({"n": 2})
    api.answer(ApiRequest(f"{server.url}/1"))
    assert waits == []
    api.answer(ApiRequest(f"{server.url}/2"))
    assert waits == [50.0]


def test_requests_keep_a_distance(make_api, server):
    api, waits = make_api()
    for n in range(3):
        server.says({"n": n})
        api.answer(ApiRequest(f"{server.url}/{n}"))
    assert waits == [1.0, 1.0]


def test_failures_of_the_server_are_tried_again_but_not_for_ever(make_api, server):
    api, waits = make_api()
    server.says({}, status=500)
    server.says({}, status=502)
    server.says({"ok": 1})
    assert api.answer(ApiRequest(f"{server.url}/x")) == {"ok": 1}
    assert waits[:1] == [2.0]
    for status in (500, 429):
        waits.clear()
        for _ in range(5):
            server.says({}, status=status)
        with pytest.raises(SearchlabError, match=f"answered {status} 5 times"):
            api.answer(ApiRequest(f"{server.url}/y"))
        assert waits[-4:] == [2.0, 4.0, 8.0, 16.0]  # and none for a sixth attempt


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_told_without_the_key(make_api, server, status):
    server.says({}, status=status)
    with pytest.raises(InputError, match=r"refuses the key .*ANY_KEY") as caught:
        make_api()[0].answer(ApiRequest(f"{server.url}/x"))
    assert "s3cret" not in str(caught.value)


def test_403_without_a_request_left_is_a_limit_not_a_refused_key(make_api, server):
    api, _ = make_api()
    server.says({}, status=403, X_Ratelimit_Remaining="0")
    server.says({"ok": 1})
    assert api.answer(ApiRequest(f"{server.url}/x")) == {"ok": 1}


def test_the_key_follows_no_redirect(make_api, server):
    server.says({}, status=302, Location=f"{server.url}/elsewhere")
    with pytest.raises(NotFoundError, match="answered 302"):
        make_api()[0].answer(ApiRequest(f"{server.url}/x"))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [b"<html>", b"", b"\xff", {"stat": "fail", "message": "Invalid"}, {"error": {"code": "x"}}],
)
def test_what_is_no_answer_is_told_and_not_kept(make_api, server, tmp_path, answer):
    server.says(answer)
    with pytest.raises(SearchlabError, match="Pexels"):
        make_api()[0].answer(ApiRequest(f"{server.url}/x"))
    assert not (tmp_path / "responses").exists()


def test_an_answer_without_end_is_cut_off(make_api, server, monkeypatch):
    monkeypatch.setattr("searchlab.sources.fetch.client._MAX_ANSWER", 1_000)
    server.says(b"[" * 2_000)
    with pytest.raises(SearchlabError, match="at most 1,000 bytes"):
        make_api()[0].answer(ApiRequest(f"{server.url}/x"))


def test_a_server_that_cannot_be_reached_is_told(make_api, server):
    api, waits = make_api()
    free = server.url.rpartition(":")[0] + ":9"
    with pytest.raises(SearchlabError, match=r"cannot be reached, got: .+; is this machine conn"):
        api.answer(ApiRequest(free))
    assert len(waits) == 4


# -- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0"),
        *("fc00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "nonsense"),
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        # Site-local, NAT64 of a network's own, compatible with IPv4, translated by SIIT, and more.
        *("fec0::1", "feff::1", "64:ff9b:1::7f00:1", "64:ff9b:1:ffff::808:808", "::127.0.0.1"),
        *("::8.8.8.8", "::ffff:0:10.0.0.1", "::ffff:0:8.8.8.8", "5f00::1", "4000::1", "100::1"),
    ],
)
def test_private_addresses_are_known_in_all_their_disguises(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07::1", "64:ff9b::808:808"])
def test_public_addresses_are_known(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/x",
        "http://localhost/x",
        "http://[::1]/x",
        "http://0x7f.1/x",
        "http://2130706433/x",
        "http://user:pass@example.org/x",
    ],
)
def test_links_into_private_networks_are_refused(url):
    with (
        open_client(PinnedTransport()) as client,
        pytest.raises((InputError, httpx.TransportError)),
    ):
        client.get(url)


def test_one_private_address_among_public_ones_is_refused(server):
    transport = PinnedTransport(resolve=lambda _host, _port: ["93.184.215.14", "10.0.0.7"])
    with open_client(transport) as client, pytest.raises(InputError, match=r"which is 10\.0\.0\.7"):
        client.get("http://photos.example/x")


def test_a_name_is_resolved_once_and_connected_to_where_it_was_checked(server):
    answers = [["127.0.0.1"]]  # a second look would find none
    transport = PinnedTransport(allowed=["127.0.0.1"], resolve=lambda _host, _port: answers.pop(0))
    server.says({"ok": 1})
    port = urlsplit(server.url).port
    with open_client(transport) as client:
        assert client.get(f"http://photos.example:{port}/x").json() == {"ok": 1}
    assert server.requests[0][1]["Host"] == f"photos.example:{port}"


# -- the walks of the libraries ---------------------------------------------------------------

LAST = {
    "unsplash": {"total_pages": 2},
    "pexels": {},
    "pixabay": {"totalHits": 250},
    "flickr": {"photos": {"pages": 2}},
    "wikimedia": {},
    "openverse": {"page_count": 2},
    "stocksnap": {"nextPage": False},
    "rawpixel": {"total": 150},
    "nasa": {"collection": {"links": [{"rel": "prev"}]}},
    "inaturalist": {"total_results": 150},
    "smithsonian": {"response": {"rowCount": 150}},
    "europeana": {},
    "wordpress": [{}] * 7,
}
MORE = {
    **LAST,
    "pexels": {"next_page": "https://api.pexels.com/v1/search?page=2"},
    "wikimedia": {"continue": {"gsroffset": 50, "continue": "gsroffset||"}},
    "stocksnap": {"nextPage": 2},
    "nasa": {"collection": {"links": [{"rel": "next"}]}},
    "europeana": {"nextCursor": "AoE"},
    "wordpress": [{}] * 100,
}


@pytest.mark.parametrize("name", sorted(LAST))
def test_a_walk_asks_for_the_next_page_until_the_last(name):
    walk = SOURCES[name].search("red boats")
    first = next(walk)
    assert first.url.startswith("https://")
    assert "red boats" in str(first.params) or "red%20boats" in first.url
    second = walk.send(MORE[name])
    assert second != first
    with pytest.raises(StopIteration):
        walk.send(LAST[name])


@pytest.mark.parametrize("name", sorted(LAST))
def test_a_walk_ends_where_an_answer_says_nothing(name):
    walk = SOURCES[name].search("x")
    next(walk)
    with pytest.raises(StopIteration):
        walk.send({})


@pytest.mark.parametrize("odd", ["more", ["more"], 7, {}])
def test_a_walk_through_wikimedia_ends_where_what_follows_is_no_place_to_go_on(odd):
    walk = SOURCES["wikimedia"].search("x")
    next(walk)
    with pytest.raises(StopIteration):
        walk.send({"continue": odd})


def test_the_met_is_asked_for_every_object_by_itself():
    walk = SOURCES["met"].search("bowl")
    assert not next(walk).has_records
    assert walk.send({"objectIDs": [1, 2, "x"]}).url.endswith("/objects/1")
    assert walk.send({}).url.endswith("/objects/2")
    with pytest.raises(StopIteration):
        walk.send({})


def test_counts_that_are_none_are_0():
    assert number_at({"n": "12"}, "n") == 12
    assert number_at({"n": "many"}, "n") == number_at(None, "n") == number_at([], "n") == 0
    assert [ask.params["page"] for ask in [next(pages("https://e.org", {}, lambda *_: True))]] == [
        "1"
    ]
