"""The examples of the reference are what the API says, word for word but for the values."""

import re

import pytest
from litestar.exceptions import MethodNotAllowedException

from searchlab.api.wire.errors import KINDS, problem_of
from tests.support.apis import api

V1 = "/api/v1"
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def served(five_photos):
    with api(five_photos) as server:
        yield server


@pytest.fixture(scope="module")
def entry(served):
    """The path of the photos of a collection, and one that is in it."""
    (photo,) = served.client.get(f"{V1}/search/photos?color_name=red&per_page=1").json()["data"]
    made = served.client.post(f"{V1}/collections", json={"name": "mine", "is_public": True}).json()[
        "data"
    ]
    body = {
        "photo_id": photo["photo_id"],
        "photo_thumbnail_url": "https://example.org/thumb",
        "photo_source": "local",
        "photo_photographer": "ann",
    }
    path = f"{V1}/collections/{made['id']}/photos"
    assert served.client.post(path, json=body).status_code == 200
    return path, body


def shape(message):
    """Leave values out of a message: what is quoted, names beyond the first two, and numbers."""
    message = re.sub(r"'[^']*'", "'...'", message)
    message = re.sub(r"(among \w+, \w+, ).*(, got)", r"\1...\2", message)
    return re.sub(r"\d[\d,]*", "0", message)


def check(answer, code):
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (KINDS[code].status, code)
    assert shape(error["message"]) == shape(KINDS[code].example)
    return error["message"]


@pytest.mark.parametrize(
    ("code", "method", "path", "sent"),
    [
        ("BAD_REQUEST", "GET", "/usage", {"headers": {"host": ""}}),
        ("METHOD_NOT_ALLOWED", "PUT", "/usage", {}),
        ("NOT_FOUND", "GET", "/photos/abc", {}),
        ("PAYLOAD_TOO_LARGE", "POST", "/search/photos", {"files": {"image": b"x" * 21 * 2**20}}),
        ("URI_TOO_LONG", "GET", "/search/photos?q=" + 33_000 * "x", {}),
        ("HEADERS_TOO_LARGE", "GET", "/usage", {"headers": {"x-some": 17_000 * "x"}}),
        (
            "UNSUPPORTED_MEDIA_TYPE",
            "POST",
            "/collections",
            {"content": b"\x1f\x8b", "headers": JSON | {"content-encoding": "gzip"}},
        ),
    ],
)
def test_what_is_refused_is_refused_in_the_words_of_the_reference(served, code, method, path, sent):
    check(served.client.request(method, V1 + path, **sent), code)


def test_who_asks_is_refused_in_the_words_of_the_reference(served, entry):
    path, body = entry
    check(served.anonymous.get(f"{V1}/usage"), "UNAUTHORIZED")
    other = served.make_client(account="others")
    check(other.post(path, json=body), "FORBIDDEN")
    check(served.client.post(path, json=body), "CONFLICT")
    unknown_field = f"{V1}/photos/{body['photo_id']}?fields=photographer"
    check(served.client.get(unknown_field), "INVALID_FIELDS")


def test_where_the_path_is_not_known_the_meaning_is_told():
    problem = problem_of(MethodNotAllowedException(headers={"Allow": "GET, POST"}))
    assert str(problem) == KINDS["METHOD_NOT_ALLOWED"].meaning
    assert problem.headers == {"allow": "GET, HEAD, POST"}


def test_a_path_or_method_that_is_none_is_named_with_what_there_is(served):
    answer = served.client.get("/api/v2/search")
    message = answer.json()["error"]["message"]
    assert message == "the path must be one of those at /docs, got '/api/v2/search'"
    message = check(served.client.delete(f"{V1}/usage"), "METHOD_NOT_ALLOWED")
    allowed = served.client.delete(f"{V1}/usage").headers["allow"]
    assert message == f"'{V1}/usage' must be asked with {allowed}, got 'DELETE'"
