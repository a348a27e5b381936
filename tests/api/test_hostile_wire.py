"""Hostile HTTP: bytes on the wire that no client library would send."""

import re
import socket
import time

import httpx
import pytest

from tests.support.independent_client import check_failure, check_invalid, check_success
from tests.support.spec_server import corpus

COLLECTIONS = b"/api/v1/collections"
JSON = b"Content-Type: application/json\r\n"
USAGE = b"/api/v1/usage"


@pytest.fixture(scope="module")
def known():
    return corpus()


@pytest.fixture(scope="module")
def api(known):
    return known.new_account("wire", plan="scale")


def head(api, method, target, extra=b"", *, close=True):
    last = b"Connection: close\r\n" if close else b""
    key = b"x-api-key: " + api.key.encode() + b"\r\n"
    return method + b" " + target + b" HTTP/1.1\r\nHost: a\r\n" + key + last + extra + b"\r\n"


def raw(api, data, *, seconds=15):
    """Send bytes, and return all that comes back until the server closes."""
    url = httpx.URL(api.base_url)
    with socket.create_connection((url.host, url.port), timeout=seconds) as wire:
        wire.sendall(data)
        parts = []
        while part := wire.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def answers_of(data):
    """Split what came back into answers, which all have a length."""
    responses = []
    while data:
        first, _, data = data.partition(b"\r\n\r\n")
        status, *lines = first.split(b"\r\n")
        headers = [tuple(line.split(b": ", 1)) for line in lines]
        length = int(dict(headers).get(b"content-length", b"0"))
        code = int(status.split()[1])
        responses.append(httpx.Response(code, headers=headers, content=data[:length]))
        data = data[length:]
    return responses


def answer(api, data, **options):
    (response,) = answers_of(raw(api, data, **options))
    return response


def check_no_http(response):
    """Check what the server says to bytes that are no HTTP: 400 and nothing else."""
    assert response.status_code in {400, 431}, response.text
    assert response.text == ""


# -- methods and targets -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", [b"M" * 1_000, b"get", b"G!#$%&'*+-.^_`|~T", b"PROPFIND", b"0", b"SEARCH"]
)
def test_any_method_is_refused_cleanly(api, method):
    response = answer(api, head(api, method, USAGE))
    check_failure(response, 405, "METHOD_NOT_ALLOWED")
    assert response.headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [(b"OPTIONS", b"*", 404),
     (b"GET", b"//evil.example/%2e%2e", 404), (b"GET", b"/api/v1/../v1/usage", 404),
     (b"GET", b"/api/v1/%2e%2e/v1/usage", 404), (b"GET", b"/API/v1/usage", 404),
     (b"GET", b"/api/v1/usage%2f..%2fusage", 404), (b"GET", b"/api\\v1\\usage", 404),
     (b"GET", b"/api/v1/usage;x=1", 404)],
)  # fmt: skip
def test_a_target_is_taken_to_the_letter(api, method, target, status):
    check_failure(answer(api, head(api, method, target)), status, "NOT_FOUND")


def test_a_target_without_a_path_is_the_first_page_which_no_proxy_is(api):
    failure = answer(api, head(api, b"CONNECT", b"example.org:443"))
    check_failure(failure, 405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize(
    "start",
    [b"//api/v1", b"///api//v1", b"/%2fapi/v1", b"/%2Fapi%2Fv1", b"/./api/v1", b"/%2e/api/v1",
     b"/x/../api/v1", b"/%61pi/v1", b"/api%2fv1", b"/API/v1", b"/api/v1/", b"/;/api/v1",
     b"/\\api/v1", b"http://a/api/v1", b"http://a//api/v1", b"/api/v1/usage/..",
     b"/docs/../api/v1"],
)  # fmt: skip
@pytest.mark.parametrize("target", [b"/facets/colors", b"/usage", b"/search/photos?q=a"])
def test_no_spelling_of_a_path_gets_by_without_a_key(api, start, target):
    line = b"GET " + start + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    response = answer(api, line)
    if response.status_code == 400:
        check_no_http(response)
        return
    assert response.status_code in {401, 404}, response.text
    check_failure(response, response.status_code)


def test_the_host_of_a_target_opens_nothing(api):
    response = answer(api, head(api, b"GET", b"http://evil.example/api/v1/usage"))
    check_success(response)
    assert "evil" not in response.text


def check_too_long(response, status):
    assert response.status_code in {status, 400, 431}
    if response.text:  # else the server has refused it before it was a request
        check_failure(response, status)


@pytest.mark.parametrize("length", [30_000, 100_000])
def test_what_is_too_long_is_told_so(api, length):
    long = b"x" * length
    for target in (b"/api/v1/x%", b"/api/v1/search/photos?q=a", b"/media/"):
        check_too_long(answer(api, head(api, b"GET", target + long + b"x" * 10_000)), 414)
    for extra in (b"X-Long: " + long, b"Cookie: " + long, b"X-" + long + b": 1"):
        check_too_long(answer(api, head(api, b"GET", USAGE, extra + b"\r\n")), 431)


@pytest.mark.parametrize("line", [b"", b"Host:\r\n", b"Host: \r\n"])
def test_http_1_1_without_a_host_is_refused(api, line):
    """The server below puts an empty header where there was none."""
    request = head(api, b"GET", USAGE).replace(b"Host: a\r\n", line)
    response = answer(api, request)
    check_failure(response, 400, "BAD_REQUEST")
    assert "one header Host, got none" in response.json()["error"]["message"]
    older = request.replace(b" HTTP/1.1", b" HTTP/1.0")
    check_success(answer(api, older))


@pytest.mark.parametrize(
    "host",
    [b"", b"evil.example", b"a b", b"<script>", b"a:99999999", b"[::1", b"\xff", b"a@b/c?d#e"],
)
def test_a_host_is_an_address_or_of_no_use(api, host):
    line = head(api, b"GET", b"/api/v1/search/photos?q=a&per_page=1").replace(
        b"Host: a\r\n", b"Host: " + host + b"\r\n"
    )
    response = answer(api, line)
    if response.status_code == 400:
        if response.text:  # else the bytes were none of HTTP's
            check_failure(response, 400, "BAD_REQUEST")
        return
    (photo,) = check_success(response)["data"]
    address = photo["urls"]["thumb"].partition("/media/")[0]
    assert address in {api.base_url, "http://evil.example"}


# -- lengths and bodies ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extra",
    [b"Content-Length: 14\r\nContent-Length: 15\r\n", b"Content-Length: 14, 15\r\n",
     b"Content-Length: +14\r\n", b"Content-Length: 0x0e\r\n",
     b"Content-Length: 99999999999999999999999\r\n", b"Transfer-Encoding: xchunked\r\n",
     b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: chunked, identity\r\n",
     b"X-A: b\r\n c\r\n", b"X-A: b\0c\r\n", b"X-A: b\x01c\r\n", b"X A: b\r\n", b": b\r\n",
     b"X-A\r\n"],
)  # fmt: skip
def test_headers_that_can_be_read_in_two_ways_are_refused(api, extra):
    before = len(api.data("/collections"))
    data = head(api, b"POST", COLLECTIONS, JSON + extra) + b'{"name": "ab"}'
    check_no_http(answer(api, data))
    assert len(api.data("/collections")) == before


def test_of_two_lengths_no_second_request_is_made(api):
    """A proxy that believes the other length must not have let a request in unseen."""
    hidden = (
        head(api, b"POST", COLLECTIONS, JSON + b"Content-Length: 17\r\n") + b'{"name": "hidden"}'
    )
    extra = JSON + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"
    responses = answers_of(raw(api, head(api, b"POST", COLLECTIONS, extra) + b"0\r\n\r\n" + hidden))
    check_invalid(responses[0], "body")
    assert len(responses) == 1
    assert "hidden" not in {each["name"] for each in api.data("/collections")}


def test_a_body_in_pieces_is_one_body(api):
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"name": "in pieces"}') + b"0\r\n\r\n"
    extra = JSON + b"Transfer-Encoding: chunked\r\n"
    response = answer(api, head(api, b"POST", COLLECTIONS, extra) + pieces)
    assert check_success(response)["data"]["name"] == "in pieces"


@pytest.mark.parametrize("piece", [b"x" * 8_192, b"[" * 100])
def test_a_body_in_pieces_without_end_is_cut_off(api, piece):
    url = httpx.URL(api.base_url)
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece) * (8_192 // len(piece))
    with socket.create_connection((url.host, url.port), timeout=15) as wire:
        wire.sendall(head(api, b"POST", COLLECTIONS, JSON + b"Transfer-Encoding: chunked\r\n"))
        sent = 0
        try:
            while sent < 50_000_000:
                wire.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        else:
            raise AssertionError(sent)
    check_success(api.get("/usage"))


@pytest.mark.slow
def test_a_length_that_is_far_too_large_is_refused_before_the_body_has_come(api):
    extra = JSON + b"Content-Length: 9223372036854775807\r\n"
    # As much as is read on for, so that a sender that is busy sending gets to read the answer.
    data = head(api, b"POST", COLLECTIONS, extra) + b" " * 1_000_000
    check_failure(answer(api, data), 413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/v1/search/photos", {"x-api-key": "wrong"}, 401),
        ("/api/v1/search/photos?per_page=0", {}, 422),
        ("/api/v1/collections", {"content-type": "application/json"}, 413),
        ("/api/v1/photos", {}, 404),
        ("/mcp", {"authorization": "Bearer wrong"}, 403),
    ],
)
def test_who_sends_a_large_body_gets_to_read_why_it_is_refused(api, path, headers, status):
    url, body = httpx.URL(api.base_url), b"x" * 12_000_000
    lines = {"host": "a", "x-api-key": api.key, "content-length": str(len(body))} | headers
    top = "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode()
    request = b"POST " + path.encode() + b" HTTP/1.1\r\n" + top + b"\r\n"
    # A sender that reads only when all is sent, and then over the same connection.
    with socket.create_connection((url.host, url.port), timeout=15) as wire:
        for _ in range(2):
            wire.sendall(request)
            wire.sendall(body)
            (came,) = answers_of(wire.recv(65_536))
            assert came.status_code == status


def test_who_asks_before_sending_is_refused_at_once(api):
    extra = JSON + b"Content-Length: 9000000\r\nExpect: 100-continue\r\n"
    began = time.monotonic()
    check_failure(answer(api, head(api, b"POST", COLLECTIONS, extra)), 413, "PAYLOAD_TOO_LARGE")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("target", [COLLECTIONS, b"/api/v1/search/photos"])
def test_a_body_that_breaks_off_is_the_senders_fault(known, api, target):
    kind = JSON if target == COLLECTIONS else b"Content-Type: multipart/form-data; boundary=x\r\n"
    url = httpx.URL(api.base_url)
    data = head(api, b"POST", target, kind + b"Content-Length: 100\r\n") + b'{"name": "x"'
    before = known.server.log.count(" 500 POST")
    with socket.create_connection((url.host, url.port), timeout=15) as wire:
        wire.sendall(data)
        time.sleep(0.3)  # so that the request is being worked on
        wire.shutdown(socket.SHUT_WR)
        came = wire.recv(65_536)
    if came:  # to a sender that cannot send any more, the server may as well say nothing
        check_invalid(answers_of(came)[0], "body")
    assert known.server.log.count(" 500 POST") == before


def test_a_get_with_a_body_is_answered_as_without(api):
    first = head(api, b"GET", USAGE, b"Content-Length: 5\r\n", close=False) + b"GET /"
    first, *rest = answers_of(raw(api, first + head(api, b"GET", b"/api/v1/facets/orientations")))
    assert "period" in check_success(first)["data"]
    for each in rest:  # or the connection was closed, since nobody had read the body
        assert len(check_success(each)["data"]) == 3


# -- several requests on a connection ----------------------------------------------------------


def test_requests_in_one_go_are_answered_in_their_order(api):
    targets = [USAGE, b"/api/v1/nowhere", b"/api/v1/collections/x", b"/api/v1/facets/orientations"]
    data = [head(api, b"GET", target, close=False) for target in targets] * 5
    responses = answers_of(raw(api, b"".join([*data, head(api, b"GET", b"/health")])))
    assert [each.status_code for each in responses] == [200, 404, 422, 200] * 5 + [200]
    assert len({each.headers["x-request-id"] for each in responses}) == 21


def test_the_key_of_one_request_does_not_open_the_next(api):
    keyless = b"GET /api/v1/usage HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    responses = answers_of(raw(api, head(api, b"GET", USAGE, close=False) + keyless))
    check_success(responses[0])
    check_failure(responses[1], 401, "UNAUTHORIZED")


def test_after_a_refused_body_the_rest_of_it_is_no_request(api):
    hidden = head(api, b"GET", b"/api/v1/facets/orientations")
    extra = b"Content-Type: text/plain\r\nContent-Length: %d\r\n" % len(hidden)
    responses = answers_of(raw(api, head(api, b"POST", COLLECTIONS, extra) + hidden))
    check_failure(responses[0], 415, "UNSUPPORTED_MEDIA_TYPE")
    assert len(responses) == 1


# -- the log -----------------------------------------------------------------------------------

LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00 [ -~]+|searchlab serves [ -~]+", re.ASCII)


def test_no_line_of_the_log_is_the_callers(known, api):
    forged = b"%0d%0a2026-11-21T00:00:00.000%2B00:00%20200%20GET%20/forged%20%1b[31m%e2%80%a8%c2%85"
    check_failure(answer(api, head(api, b"GET", b"/api/v1/" + forged)), 404)
    check_failure(answer(api, head(api, b"X" * 500, USAGE)), 405)
    deadline = time.monotonic() + 10
    while "forged" not in known.server.log and time.monotonic() < deadline:
        time.sleep(0.05)
    lines = known.server.log.splitlines()
    assert any("forged" in line for line in lines)
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert [line for line in lines if re.match(r"\S+ 5\d\d ", line)] == []
