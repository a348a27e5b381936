"""Queries and paths whose letters are not percent-encoded: read as UTF-8, or refused cleanly."""

import asyncio

import httpx
import pytest

from tests.support.apis import api

SEARCH = "/api/v1/search/photos"


@pytest.fixture(scope="module")
def served(five_photos):
    with api(five_photos) as server:
        yield server


def ask(served, path, query, *, method="GET", body=b"", **headers):
    """Send a request whose query and path reach the application as they are, not encoded."""
    sent = {"host": "127.0.0.1:8000", "x-api-key": served.key, **headers}
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode()}
    scope |= {"asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http"}
    scope |= {"query_string": query, "root_path": "", "server": ("a", 80), "client": ("1.2.3.4", 5)}
    scope["headers"] = [(n.replace("_", "-").encode(), v.encode()) for n, v in sent.items()]
    messages = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        messages.append(message)

    asyncio.run_coroutine_threadsafe(served.app(scope, receive, send), served.loop).result(10)
    start, *pieces = messages
    content = b"".join(piece.get("body", b"") for piece in pieces)
    return httpx.Response(start["status"], headers=start["headers"], content=content)


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        (SEARCH, "q=café".encode(), 200),
        (SEARCH, b"q=caf\xe9", 422),
        (SEARCH, b"q=red&per_page=x&x=\xe9", 422),
        ("/api/v1/nothing", b"q=caf\xe9", 404),
        ("/sign-in", "next=/?q=é".encode(), 200),
        ("/sign-in", b"next=/?q=\xe9", 422),
        ("/sign-in", b"next=%E9", 422),
        ("/connect", "state=é".encode(), 303),
        ("/connect", b"state=\xe9", 422),
        ("/api/v1/facets/photographers/Zoë", b"", 200),
    ],
)
def test_letters_are_utf_8_whether_they_are_encoded_or_not(served, path, query, status):
    assert ask(served, path, query).status_code == status


def test_a_search_by_letters_as_they_are_is_the_same_search(served):
    pages = [ask(served, SEARCH, query).json() for query in ("q=grün".encode(), b"q=gr%C3%BCn")]
    assert pages[0]["data"] == pages[1]["data"] != []


def test_a_page_reads_them_too_and_says_what_it_cannot_read(served):
    browser = served.make_browser("ann", base_url="http://127.0.0.1:8000")
    ((name, secret),) = browser.cookies.items()
    page = ask(served, "/", "q=grün".encode(), cookie=f"{name}={secret}")
    assert (page.status_code, 'value="grün"' in page.text) == (200, True)
    refusal = ask(served, "/", b"q=gr\xfcn", cookie=f"{name}={secret}")
    assert refusal.status_code == 422
    assert "the query must be UTF-8, got other bytes" in refusal.text


def test_a_request_with_an_idempotency_key_may_have_any_query(served):
    sent = {"method": "POST", "body": b'{"name": "a"}', "idempotency_key": "once"}
    sent["content_type"] = "application/json"
    first, again = (ask(served, "/api/v1/collections", b"x=\xe9", **sent) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.headers["idempotency-replayed"] == "true"
