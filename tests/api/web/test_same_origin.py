"""Which requests may change something: those that a page of this server has sent."""

import pytest
from litestar import Request

from searchlab.api.web.same_origin import check_same_origin
from searchlab.api.wire.errors import HttpProblem


def request(method, **headers):
    pairs = [(b"host", b"photos.test:8000")]
    pairs += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "headers": pairs, "path": "/"})


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_who_only_reads_may_come_from_anywhere(method):
    check_same_origin(request(method, sec_fetch_site="cross-site", origin="https://evil.test"))


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "none"},
        {"origin": "http://photos.test:8000"},
        {"origin": "https://photos.test:8000"},
        {"origin": "http://PHOTOS.test:8000"},
    ],
)
def test_a_form_of_this_server_may(headers):
    check_same_origin(request("POST", **headers))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://photos.test"},
        {"origin": "http://photos.test:8000.evil.test"},
        {"origin": "http://evil.test/photos.test:8000"},
        {"origin": "http://x@photos.test:8000"},
        {"origin": "ftp://photos.test:8000"},
        {"origin": "http://[photos.test:8000"},
        {"sec_fetch_site": "cross-site", "origin": "http://photos.test:8000"},
        {"sec_fetch_site": "same-site", "origin": "http://photos.test:8000"},
        {"sec_fetch_site": ""},
    ],
)
def test_a_form_from_elsewhere_or_from_nowhere_may_not(method, headers):
    with pytest.raises(HttpProblem) as refused:
        check_same_origin(request(method, **headers))
    assert refused.value.kind.status == 403
