"""Descriptions of clients: fetched as links from strangers are, and believed as far as they go."""

import json
import socket
import threading

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.api.oauth import documents as module
from searchlab.api.oauth.documents import REMEMBERED_S, ClientDocuments, is_address
from searchlab.errors import InputError
from searchlab.sources.fetch.addresses import PinnedTransport
from tests.support.apis import api
from tests.support.oauth_clients import Pretender
from tests.support.people import person

ADDRESS = "https://app.test/client.json"
REDIRECT = "https://app.test/back"


def describe(**changes):
    document = {"client_id": ADDRESS, "client_name": "Finder", "redirect_uris": [REDIRECT]}
    return {name: value for name, value in (document | changes).items() if value is not None}


def streamed(answer):
    """Return an answer whose body is still on its way, as from a network."""
    content = answer.content if answer.is_stream_consumed else b"bomb"
    stream = httpx.ByteStream(content)
    return httpx.Response(answer.status_code, headers=answer.headers, stream=stream)


def served(answer=None, *, document=None, calls=None):
    """Make documents that are fetched from a web of one answer."""
    answer = answer or httpx.Response(200, json=document or describe())

    def respond(request):
        if calls is not None:
            calls.append(request)
        return streamed(answer)

    return ClientDocuments(transport=lambda: httpx.MockTransport(respond))


def test_a_document_says_who_a_client_is_and_is_remembered_for_a_while():
    calls, now = [], [0.0]
    documents = served(calls=calls)
    documents._clock = lambda: now[0]
    client = documents.find(ADDRESS)
    assert client == (ADDRESS, "Finder", (REDIRECT,), "app.test", False)
    assert documents.find(ADDRESS) == documents.recall(ADDRESS) == client
    assert len(calls) == 1
    assert "cookie" not in calls[0].headers
    now[0] += REMEMBERED_S
    assert documents.recall(ADDRESS) is None
    documents.find(ADDRESS)
    assert len(calls) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": None},
        {"client_id": "https://app.test/client.json/"},
        {"client_id": "https://evil.test/client.json"},
        {"redirect_uris": None},
        {"redirect_uris": []},
        {"redirect_uris": REDIRECT},
        {"redirect_uris": ["javascript:alert(1)", "http://evil.test/"]},
        {"redirect_uris": [REDIRECT] * 101},
        {"client_name": "a\u202eb"},
        {"client_name": "x" * 101},
        {"client_name": 7},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"token_endpoint_auth_method": "private_key_jwt"},
    ],
)
def test_a_document_that_does_not_fit_is_refused(changes):
    with pytest.raises(InputError, match=r"document|client_name"):
        served(document=describe(**changes)).find(ADDRESS)


def test_addresses_that_cannot_be_used_are_left_out_and_a_name_is_not_needed():
    uris = ["custom:/x", REDIRECT, "http://localhost/cb"]
    client = served(document=describe(redirect_uris=uris, client_name=None)).find(ADDRESS)
    assert client.redirect_uris == (REDIRECT, "http://localhost/cb")
    assert client.name == "app.test"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (httpx.Response(302, headers={"location": "https://app.test/other"}), "got 302"),
        (httpx.Response(404, json=describe()), "got 404"),
        (httpx.Response(200, text=json.dumps(describe())), "application/json"),
        (httpx.Response(200, json=describe(padding="x" * 5_120)), "at most 5,120 bytes"),
        (httpx.Response(200, json=[]), "must describe a client"),
        (httpx.Response(200, content=b"[" * 5_000, headers={"content-type": "application/json"}),
         "must describe a client"),
    ],
)  # fmt: skip
def test_an_answer_that_is_no_document_is_refused(answer, says):
    with pytest.raises(InputError, match=says):
        served(answer).find(ADDRESS)


def test_a_compressed_answer_is_refused_unread():
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"bomb"))
    with pytest.raises(InputError, match="compressed"):
        served(answer).find(ADDRESS)


@pytest.mark.parametrize(
    "address",
    [
        "http://app.test/client.json",
        "https://app.test",
        "https://app.test/",
        "https://app.test/a?b=1",
        "https://app.test/a#b",
        "https://u:p@app.test/a",
        "https://app.test/a/../b",
        "https://app.test/./b",
        "https://app.test/a/..",
        "https://app.test/%2e%2e/b",
        "https://app.test\\@evil.test/a",
        "https://[::1]/a",
        "https://127.0.0.1/a",
        "https://2130706433/a",
        "https://app.test /a",
        "https://app.tést/a",
        "https://app.test/" + "a" * 500,
        "file:///etc/passwd",
    ],
)
def test_what_is_no_address_of_a_document_is_not_fetched(address):
    calls = []
    assert not is_address(address)
    with pytest.raises(InputError, match="client_id must be an address"):
        served(calls=calls).find(address)
    assert calls == []


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_none(text):
    address = f"https://app.test/{text}"
    if is_address(address):
        url = httpx.URL(address)
        assert (url.scheme, url.host, url.userinfo, url.query) == ("https", "app.test", b"", b"")


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.7"],
        ["169.254.169.254"],
        ["192.168.1.1"],
        ["::1"],
        ["fd00::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["0.0.0.0"],
        ["93.184.215.14", "10.0.0.7"],
    ],
)
def test_no_private_address_is_reached(addresses):
    def transport():
        return PinnedTransport(resolve=lambda *_: addresses)

    with pytest.raises(InputError, match="must lead to the public web"):
        ClientDocuments(transport=transport).find(ADDRESS)


def test_what_documents_are_fetched_with_reaches_the_public_web_alone(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("127.0.0.1", 443))])
    with pytest.raises(InputError, match="must lead to the public web"):
        ClientDocuments().find(ADDRESS)


def test_a_server_that_never_answers_does_not_hold_anybody():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        def transport():
            return PinnedTransport(
                allowed=["127.0.0.1"], resolve=lambda *_: ["127.0.0.1"], max_seconds=0.2
            )

        accepted = []
        accepting = threading.Thread(target=lambda: accepted.append(silent.accept()[0]))
        accepting.start()
        with pytest.raises(InputError, match="must lead to a document"):
            ClientDocuments(transport=transport).find(f"https://app.test:{port}/client.json")
        accepting.join()
        accepted[0].close()


@pytest.mark.slow
def test_a_person_connects_a_client_that_is_known_by_its_address(five_photos, monkeypatch):
    calls = []

    def respond(request):
        calls.append(request)
        return streamed(httpx.Response(200, json=describe()))

    monkeypatch.setattr(module, "open_transport", lambda: httpx.MockTransport(respond))
    with api(five_photos, base_url="https://photos.test") as server:
        anybody = server.make_browser()
        options = {"redirect_uris": [REDIRECT], "client_id": ADDRESS}
        assert Pretender(anybody, anybody, **options).ask().status_code == 303
        assert calls == []  # nothing is fetched for who is not signed in
        app = Pretender(anybody, person(server, "ann"), **options)
        page = app.ask()
        assert "app.test" in page.text
        assert "Nobody has checked" not in page.text
        tokens = app.redeem(app.press(page)["code"]).json()
        grant = server.app.services.tokens.resolve(
            tokens["access_token"], "https://photos.test/mcp"
        )
        assert grant.client_name == "Finder"
        assert len(calls) == 1
        refused = app.ask(client_id="https://app.test/other.json")
        assert refused.status_code == 422
        assert "the document must be of" in refused.text
        for number in range(25):
            last = app.ask(client_id=f"https://app.test/{number}.json")
        assert last.status_code == 429
        assert len(calls) <= 21
