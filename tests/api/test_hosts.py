"""Under which name a server is asked: what is no host, and where the links of a refusal lead."""

import re

import pytest

from searchlab.api.http.middleware import _address
from tests.support.apis import api

SEARCH = "/api/v1/search/photos"


@pytest.fixture(scope="module")
def served(five_photos):
    with api(five_photos) as server:
        yield server


@pytest.mark.parametrize(
    "host",
    [
        *("a b", "x/../y", "evil.example\\", "<script>", "localhost:70000", "localhost:x", "a:b:c"),
        *("", "[::1", "[1.2.3]:80", "[::::]", "me@a.example", "é.example"),
    ],
)
def test_a_host_that_is_none_is_refused(served, host):
    sent = {"host": host.encode()}
    answer = served.client.get(SEARCH, params={"q": "red"}, headers=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "BAD_REQUEST")
    for path in ("/", "/sign-in", "/nothing"):
        assert served.anonymous.get(path, headers=sent).status_code == 400


@pytest.mark.parametrize("host", ["a", "a:", "A.example:65535", "[::1]:8000", "127.0.0.1"])
def test_a_host_may_have_a_port(served, host):
    for path in ("/sign-in", "/docs"):
        assert served.anonymous.get(path, headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["[::1]", "127.0.0.1"])
def test_links_of_an_older_http_lead_to_the_servers_own_address(host):
    """HTTP/1.0 needs no Host."""
    scope = {"scheme": "http", "server": (host.strip("[]"), 8000), "headers": []}
    assert _address(scope, b"") == f"http://{host}:8000"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {"host": "a b"}, 400),
        (f"/?q={'x' * 33_000}", {}, 414),
        ("/", {"x-long": "x" * 17_000}, 431),
    ],
)
def test_a_page_that_refuses_has_links_below_the_configured_address(
    five_photos, path, headers, status
):
    with api(five_photos, base_url="https://h.example/photos") as served:
        answer = served.anonymous.get(path, headers={"accept": "text/html", **headers})
    assert answer.status_code == status
    links = re.findall(r'(?:href|src|action)="(/[^"]*)"', answer.text)
    assert links
    assert [link for link in links if not link.startswith("/photos/")] == []
