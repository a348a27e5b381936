"""Sections 2.1, 7 and 9: one shape for every answer, asked as a stranger would."""

import socket
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.independent_client import (
    SEARCH,
    UUID,
    check_failure,
    check_invalid,
    check_json,
    check_meta,
    check_page,
    check_refused,
    check_success,
)
from tests.support.served import serving

READS = [
    "/search/photos?q=sea",
    "/photos/{photo_id}",
    "/photos/{photo_id}/similar",
    "/facets/colors",
    "/facets/sources",
    "/facets/orientations",
    "/facets/licenses",
    "/facets/photographers/suggest?q=a",
    "/facets/photographers/ann",
    "/collections",
    "/usage",
    "/usage/monthly",
    "/usage/daily",
    "/usage/by-key",
]


# -- the envelope ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", READS)
def test_every_success_has_the_envelope(known, api, path):
    answer = api.get(path.format(photo_id=known.plain(0)["photo_id"]))
    body = check_success(answer)
    assert answer.headers["x-request-id"] == body["meta"]["request_id"]


def test_every_request_has_an_id_of_its_own(api):
    ids = {api.get("/usage").json()["meta"]["request_id"] for _ in range(20)}
    assert len(ids) == 20


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("PUT", "/usage", 405), ("GET", "/photos/unknown", 404),
     ("GET", "/search/photos?q=a&fields=nope", 400), ("GET", "/collections/0", 404)],
)  # fmt: skip
def test_a_failure_has_its_id_in_the_header_too(api, method, path, status):
    answer = api.http.request(method, path)
    check_failure(answer, status)
    assert answer.headers["x-request-id"] == answer.json()["meta"]["request_id"]


def test_a_failed_validation_has_its_id_in_the_header(api):
    answer = api.get(SEARCH)
    check_invalid(answer)
    assert UUID.fullmatch(answer.headers["x-request-id"])


def test_the_callers_request_id_does_not_take_its_place(api):
    answer = api.http.get("/usage", headers={"x-request-id": "mine\tx"})
    check_meta(check_success(answer)["meta"])


# -- routes and methods ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/", "/nowhere", "/search", "/search/photos/x", "/photos",
     "/facets", "/facets/colours", "/collections/1/photos/2/3", "/usage/yearly",
     "/SEARCH/photos", "/facets/photographers", "/%00", "/%ff", "/..%2f..%2fetc%2fpasswd",
     "/favicon.ico", "/search%2Fphotos", "/search/photos%20"],
)  # fmt: skip
def test_an_unknown_path_is_not_found(api, path):
    answer = api.http.get(f"{api.base_url}/api/v1{path}")
    assert answer.status_code in {400, 404, 422} if "%" in path else answer.status_code == 404
    check_refused(answer)


@pytest.mark.parametrize("path", ["/api/v2/usage", "/api/usage", "/api/v1", "/api/", "/v1/usage"])
def test_the_version_is_in_the_prefix(api, path):
    check_failure(api.http.get(f"{api.base_url}{path}"), 404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST", "TRACE", "PURGE"])
@pytest.mark.parametrize("path", ["/usage", "/facets/colors"])
def test_another_method_is_not_allowed(api, method, path):
    answer = api.http.request(method, path)
    check_failure(answer, 405, "METHOD_NOT_ALLOWED")
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_another_method_of_a_search_is_not_allowed(api, method):
    answer = api.http.request(method, SEARCH)
    check_failure(answer, 405, "METHOD_NOT_ALLOWED")
    assert {"GET", "POST"} <= {word.strip() for word in answer.headers["allow"].split(",")}


def test_the_interface_description_is_labelled_v1_0_0(api):
    described = check_json(api.http.get(f"{api.base_url}/openapi.json"))
    assert described["info"]["version"] in {"1.0.0", "v1.0.0"}
    assert {path for path in described["paths"] if path.startswith("/api/v1/")}


# -- hostile requests --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    ["q=%00", "q=a%00b", "q=%ff", "q=%C3%28", "q=%ED%A0%80", "q=a&per_page=%00", "q=%u0041&limit=x",
     "q=a&source=%00", "q=a&photographer=%ff", "q=a&%ff=1", "q=a&cursor=%00",
     "&".join(f"orientation=x{n}" for n in range(2000)), "q=" + "x" * 20_000],
)  # fmt: skip
def test_a_query_that_cannot_be_read_is_refused(api, query):
    check_refused(api.http.get(f"{SEARCH}?{query}"))


@pytest.mark.parametrize(
    "query", ["q=a&&&=&=x&x=", "q=a&unknown=%F0%9F%8C%BC", "q=a;per_page=1", "q=a#x", "&q=a", "q=%"]
)
def test_what_else_is_in_a_query_is_passed_over(api, query):
    check_page(api.http.get(f"{SEARCH}?{query}"))


def test_a_query_of_40_kilobytes_is_refused(api):
    check_refused(api.get(SEARCH, q="x" * 40_000))


def test_headers_of_20_kilobytes_are_refused(api):
    check_refused(api.http.get("/usage", headers={"x-more": "x" * 20_000}))


def test_many_headers_are_read_and_too_many_refused(api):
    check_success(api.http.get("/usage", headers={f"x-{number}": "1" for number in range(80)}))
    answer = api.http.get("/usage", headers={f"x-{number}": "1" for number in range(300)})
    assert answer.status_code in {400, 431}
    assert "<html" not in answer.text.lower()


@pytest.mark.parametrize(
    ("name", "value"),
    [("accept", "text/html"), ("accept", "image/png"), ("accept", "*/*;q=0"),
     ("accept-encoding", "br;q=0"), ("content-type", "nonsense"), ("host", "evil.example"),
     ("x-forwarded-host", "evil.example"), ("range", "bytes=0-1"), ("expect", "nonsense"),
     ("if-none-match", '"x"'), ("if-modified-since", "nonsense"), ("cookie", "\xff")],
)  # fmt: skip
def test_odd_headers_change_no_answer(api, name, value):
    headers = {name.encode(): value.encode("latin-1")}
    answer = api.http.get("/facets/orientations", headers=headers)
    if name == "expect":
        assert answer.status_code in {200, 400, 417}
        return
    assert len(check_success(answer)["data"]) == 3


def sent(known, raw):
    """Send bytes as they are, and return all that comes back before the connection ends."""
    address = urlsplit(known.base_url)
    parts = []
    with socket.create_connection((address.hostname, address.port), timeout=3) as wire:
        wire.sendall(raw)
        with suppress(TimeoutError, ConnectionResetError):
            while part := wire.recv(65_536):
                parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET /api/v1/usage\r\n\r\n",
        b"GET /api/v1/usage HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GET /api/v1/us\x00age HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /api/v1/usage HTTP/1.1\r\nHost: a\r\nx-api-key: a\x00b\r\n\r\n",
        b"GET /api/v1/usage HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        b"GET /api/v1/usage HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"POST /api/v1/collections HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\n",
        b"POST /api/v1/collections HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/collections HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"G" * 200_000,
    ],
)
def test_what_is_no_http_gets_no_html_and_no_trace_and_stops_nothing(known, api, raw):
    answer = sent(known, raw).lower()
    assert b"<html" not in answer
    assert b"traceback" not in answer
    assert not answer.startswith((b"http/1.1 5", b"http/1.1 2", b"http/1.0 2"))
    check_success(api.get("/usage"))


def test_a_body_that_breaks_off_stops_nothing(known, api):
    head = (
        f"POST /api/v1/collections HTTP/1.1\r\nHost: a\r\nx-api-key: {api.key}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    before = len(api.data("/collections"))
    address = urlsplit(known.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as wire:
        wire.sendall(head.encode() + b'{"name": "x"}')
        wire.shutdown(socket.SHUT_WR)
        assert not wire.recv(1000).startswith(b"HTTP/1.1 2")
    assert len(api.data("/collections")) == before


@pytest.mark.parametrize("length", [4_096, 100_000])
def test_a_target_that_is_too_long_is_refused_cleanly(known, length):
    raw = b"GET /api/v1/" + b"x" * length + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    answer = sent(known, raw)
    assert not answer or answer.startswith(b"HTTP/1.1 4")
    assert b"<html" not in answer.lower()


@pytest.mark.parametrize("path", READS)
def test_no_answer_lets_a_browser_run_or_guess(known, api, path):
    headers = api.get(path.format(photo_id=known.plain(0)["photo_id"])).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]


# -- connections -------------------------------------------------------------------------------


def test_a_connection_serves_on_after_every_kind_of_refusal(known):
    headers = {"x-api-key": known.keys["paid"]}
    with httpx.Client(base_url=f"{known.base_url}/api/v1", headers=headers, verify=False) as http:
        for size in (10, 1_000, 50_000, 300_000, 1_000_000):
            body = b"{" * size
            check_refused(http.post("/collections", content=body))
            check_refused(http.post("/nowhere", content=body))
            check_refused(http.post("/usage", content=body))
            check_refused(http.get("/usage", headers={"x-api-key": "wrong"}))
            check_refused(http.post(SEARCH, headers={"x-api-key": ""}, files={"image": body}))
            check_refused(http.post(SEARCH, files={"image": body}))
            check_success(http.get("/facets/colors"))


def test_who_expects_to_be_told_to_go_on_is_told(known, api):
    body = b'{"name": "expected"}'
    head = (
        f"POST /api/v1/collections HTTP/1.1\r\nHost: a\r\nx-api-key: {api.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    address = urlsplit(known.base_url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as wire:
        wire.sendall(head.encode())
        assert wire.recv(1000).startswith(b"HTTP/1.1 100 ")
        wire.sendall(body)
        assert wire.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_requests_sent_in_one_go_are_answered_in_their_order(known, api):
    one = f"GET /api/v1/facets/%s HTTP/1.1\r\nHost: a\r\nx-api-key: {api.key}\r\n%s\r\n"
    raw = one % ("orientations", "") + one % ("colors", "") + one % ("x", "Connection: close\r\n")
    answer = sent(known, raw.encode())
    places = [answer.index(word) for word in (b"landscape", b'"red"', b"NOT_FOUND")]
    assert places == sorted(places)


@pytest.mark.parametrize("path", ["/facets/colors", "/usage", "/search/photos?q=sea"])
def test_head_and_options_are_answered_without_a_fault(api, path):
    head, options = (api.http.request(method, path) for method in ("HEAD", "OPTIONS"))
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == "application/json"
    assert options.status_code == 204


# -- limits of time ----------------------------------------------------------------------------


@pytest.mark.slow
def test_too_many_requests_are_429_with_the_time_to_wait(known):
    with serving(known.data, "--rate", "0.05", "--burst", "3", *known.database) as slow:
        api = known.client(known.keys["paid"])
        api.http.base_url = f"{slow.base_url}/api/v1"
        answers = [api.get("/usage") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        check_failure(answers[-1], 429, "RATE_LIMITED")
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 20
        for answer in answers:
            assert "ratelimit" in answer.headers
            assert "ratelimit-policy" in answer.headers
        other = known.client(known.keys["other"])
        other.http.base_url = api.http.base_url
        check_success(other.get("/usage"))
