import asyncio
import datetime
import inspect
import io
import json

import httpx
import msgspec
import pytest
from PIL import Image

from searchlab import errors
from searchlab.client import (
    AlreadyThereError,
    ApiError,
    AsyncClient,
    AuthenticationError,
    BadRequestError,
    Client,
    LimitError,
    MissingError,
    PermissionDeniedError,
    Photo,
    ServerError,
    UnfinishedError,
    UnreachableError,
    ValidationError,
)
from searchlab.client.records import Attribution, Detail, Urls

BASE = "http://photos.example.org"
KEY = "sl_0123456789"
META = {"request_id": "11111111-1111-4111-8111-111111111111", "took_ms": 1.5}
PHOTO = {
    "photo_id": "p1",
    "source_photo_id": "s1",
    "image_url": "https://example.org/1",
    "urls": {size: f"https://example.org/1/{size}" for size in Urls.__struct_fields__},
    "source_image_url": "https://example.org/page/1",
    "width": 30,
    "height": 20,
    "orientation": "landscape",
    "blur_hash": "L00000fQfQfQfQfQfQfQfQfQfQfQ",
    "color_name": "red",
    "color_hex": "#e50000",
    "source": "unsplash",
    "license_type": "cc0",
    "photographer_username": "ann",
    "photographer_full_name": "Ann Lee",
    "photographer_url": "https://example.org/ann",
    "source_description": "A dune",
    "description": "A red photo.",
    "alt_description": "red dune",
    "relevance_score": 0.75,
    "uploaded_on": "2024-02-29",
    "attribution": {"html": "<b>Ann</b>", "plain": "Ann Lee"},
}
COLLECTION = {
    "id": 7,
    "name": "Dunes",
    "description": None,
    "is_public": False,
    "cover_photo_id": "",
    "created_at": "2026-01-02T03:04:05+00:00",
    "updated_at": "2026-01-02T03:04:05+00:00",
    "photos_count": 0,
}
ENTRY = {
    "id": 3,
    "photo_id": "p1",
    "photo_thumbnail_url": "https://example.org/1/thumb",
    "photo_source": "unsplash",
    "photo_photographer": "Ann Lee",
    "added_at": "2026-01-02T03:04:05+00:00",
}
BY_KEY = {
    "key_id": "k1",
    "name": "laptop",
    "created_at": "2026-01-02T03:04:05+00:00",
    "last_used_at": None,
    "requests_this_month": 2,
    "requests_today": 1,
}


def success(data, **parts):
    body = {"success": True, "data": data, "meta": META, "error": None, "pagination": None}
    return httpx.Response(200, json=body | parts)


def page(*photos, cursor=None, per_page=20):
    pagination = {"per_page": per_page, "has_more": cursor is not None, "next_cursor": cursor}
    return success(list(photos), pagination=pagination)


def failure(status, code="SOME_CODE", *, details=None, headers=None):
    error = {"code": code, "message": "it must be so", "details": details}
    body = {"success": False, "data": None, "meta": META, "error": error, "pagination": None}
    return httpx.Response(status, json=body, headers=headers)


class Server:
    """Answers with what it was given, in order; the last one again and again."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        # A response is bound to the client that got it, and these are answered many times.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def sent(self):
        return len(self.requests)

    @property
    def last(self):
        return self.requests[-1]


async def listed(found):
    return [each async for each in found]


class Both:
    """One way to call the methods of either client."""

    def __init__(self, kind, server, **options):
        self.kind = kind
        self.client = kind(BASE, KEY, transport=httpx.MockTransport(server), **options)

    def wait(self, awaited):
        return asyncio.run(awaited) if self.kind is AsyncClient else awaited

    def list(self, found):
        return asyncio.run(listed(found)) if self.kind is AsyncClient else list(found)

    def __getattr__(self, name):
        method = getattr(self.client, name)
        return lambda *args, **options: self.wait(method(*args, **options))


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def connect(request):
    return lambda server, **options: Both(request.param, server, **options)


@pytest.fixture(autouse=True)
def slept(monkeypatch):
    """Record the seconds that a client wants to wait, without waiting."""
    seconds = []

    async def sleep(wait):
        seconds.append(wait)

    monkeypatch.setattr("time.sleep", seconds.append)
    monkeypatch.setattr("asyncio.sleep", sleep)
    return seconds


def query_of(request):
    return request.url.query.decode()


# -- what is sent -----------------------------------------------------------------------------


OPERATIONS = [
    ("search", ("a castle",), {}, "GET", "/search/photos?q=a+castle", page()),
    ("search", (), {"cursor": "c", "fields": "urls"}, "GET", "/search/photos?cursor=c&fields=urls",
     page()),
    ("search_by_image", (), {"photo_id": "p1", "q": "sea", "text_alpha": 0.5}, "POST",
     "/search/photos?q=sea&photo_id=p1&text_alpha=0.5", page()),
    ("similar", ("p1",), {"limit": 5}, "GET", "/photos/p1/similar?limit=5", page()),
    ("photo", ("p1",), {"fields": ["urls", "width"]}, "GET", "/photos/p1?fields=urls%2Cwidth",
     success(PHOTO)),
    ("colors", (), {}, "GET", "/facets/colors", success([{"name": "red", "hex": "e50000"}])),
    ("sources", (), {}, "GET", "/facets/sources",
     success([{"name": "unsplash", "license_url": "https://example.org/licence"}])),
    ("orientations", (), {}, "GET", "/facets/orientations", success([{"name": "square"}])),
    ("licenses", (), {}, "GET", "/facets/licenses", success([{"name": "free"}])),
    ("suggest_photographers", ("ann",), {"limit": 3}, "GET",
     "/facets/photographers/suggest?q=ann&limit=3", success([])),
    ("photographer", ("a/b ü",), {}, "GET", "/facets/photographers/a%2Fb%20%C3%BC", success([])),
    ("photographer", ("..",), {}, "GET", "/facets/photographers/%2E%2E", success([])),
    ("collections", (), {}, "GET", "/collections", success([COLLECTION])),
    ("create_collection", ("Dunes",), {}, "POST", "/collections", success(COLLECTION)),
    ("collection", (7,), {}, "GET", "/collections/7", success(COLLECTION | {"photos": [ENTRY]})),
    ("delete_collection", (7,), {}, "DELETE", "/collections/7", success({"deleted": True})),
    ("add_photo", (7, "p1"), {}, "POST", "/collections/7/photos", success(ENTRY)),
    ("remove_photo", (7, "p1"), {}, "DELETE", "/collections/7/photos/p1",
     success({"deleted": True})),
    ("usage", (), {}, "GET", "/usage",
     success({"period": "2026-01", "requests": {"used": 1, "limit": 5000, "remaining": 4999}})),
    ("monthly_usage", (), {"months": 2}, "GET", "/usage/monthly?months=2",
     success({"period_months": 2, "records": [{"month": "2026-01", "requests": 3}]})),
    ("daily_usage", (2,), {}, "GET", "/usage/daily?days=2",
     success({"period_days": 2, "records": [{"date": "2026-01-31", "requests": 3}]})),
    ("usage_by_key", (), {}, "GET", "/usage/by-key", success({"keys": [BY_KEY]})),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "options", "method", "target", "answer"),
    OPERATIONS,
    ids=[f"{row[0]}-{number}" for number, row in enumerate(OPERATIONS)],
)
def test_each_operation_is_one_request_with_the_key(
    connect, name, args, options, method, target, answer
):
    server = Server(answer)
    getattr(connect(server), name)(*args, **options)
    assert server.sent == 1
    assert server.last.method == method
    assert server.last.url.raw_path.decode() == f"/api/v1{target}"
    assert server.last.headers["x-api-key"] == KEY


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_operation_of_a_client_is_in_the_table(kind):
    public = {name for name in vars(kind) if not name.startswith("_")}
    assert public - {"close", "search_all"} == {row[0] for row in OPERATIONS}


def test_both_clients_have_the_same_methods_with_the_same_parameters():
    names = {name for name in vars(Client) if not name.startswith("_")}
    assert names == {name for name in vars(AsyncClient) if not name.startswith("_")}
    assert inspect.signature(Client.search) == inspect.signature(AsyncClient.search)


def test_help_shows_every_filter_by_its_name():
    shown = inspect.signature(Client(BASE, KEY).search).parameters
    assert list(shown) == [
        "q", "cursor", "color_name", "color_hex", "color_tolerance", "orientation", "source",
        "license_type", "photographer", "after_date", "sort_by", "score_threshold", "limit",
        "per_page", "fields",
    ]  # fmt: skip
    assert Client.search.__doc__.startswith("Search by words")


def test_filters_are_sent_as_the_specification_writes_them(connect):
    server = Server(page())
    connect(server).search(
        "dünen & meer",
        color_hex="#e50000",
        color_tolerance=0,
        orientation=["landscape", "square"],
        source="unsplash",
        license_type=None,
        after_date=datetime.date(2024, 2, 29),
        score_threshold=0.25,
        fields=["photo_id", "urls"],
    )
    assert query_of(server.last) == (
        "q=d%C3%BCnen+%26+meer&color_hex=%23e50000&color_tolerance=0&orientation=landscape"
        "&orientation=square&source=unsplash&after_date=2024-02-29&score_threshold=0.25"
        "&fields=photo_id%2Curls"
    )


def test_a_filter_that_is_none_is_an_error_before_anything_is_sent(connect):
    server = Server(page())
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        connect(server).search("x", colour="red")
    assert server.sent == 0


def test_the_address_may_have_a_path_and_a_slash_at_its_end():
    server = Server(success([]))
    Client(f"{BASE}/photos/", KEY, transport=httpx.MockTransport(server)).colors()
    assert str(server.last.url) == f"{BASE}/photos/api/v1/facets/colors"


def test_a_new_collection_is_sent_with_every_field(connect):
    server = Server(success(COLLECTION))
    connect(server).create_collection("Dünen", description="Sand", is_public=True)
    assert server.last.headers["content-type"] == "application/json"
    assert json.loads(server.last.content) == {
        "name": "Dünen",
        "description": "Sand",
        "is_public": True,
    }


def test_a_photo_is_added_with_its_credit_and_an_id_by_itself(connect):
    server = Server(success(ENTRY))
    client = connect(server)
    client.add_photo(7, msgspec.convert(PHOTO, Photo))
    assert json.loads(server.last.content) == {
        "photo_id": "p1",
        "photo_thumbnail_url": "https://example.org/1/thumb",
        "photo_source": "unsplash",
        "photo_photographer": "Ann Lee",
    }
    client.add_photo(7, Photo(photo_id="p2"))
    assert json.loads(server.last.content) == {"photo_id": "p2"}
    client.add_photo(7, "p3")
    assert json.loads(server.last.content) == {"photo_id": "p3"}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("photo", ("",)),
        ("photo", (None,)),
        ("photographer", ("\ud800",)),
        ("collection", ("7",)),
        ("collection", (True,)),
        ("search", ("\ud800",)),
        ("search", ("x" * 100_000,)),
        ("create_collection", ("\ud800",)),
        ("search_by_image", (b"",)),
        ("search_by_image", (7,)),
    ],
)
def test_what_cannot_be_sent_is_an_input_error(connect, name, args):
    server = Server(success(None))
    with pytest.raises(errors.InputError):
        getattr(connect(server), name)(*args)
    assert server.sent == 0


# -- pictures ---------------------------------------------------------------------------------


def uploaded(server):
    """Return the uploaded bytes, cut out of the multipart body."""
    body = server.last.content
    assert b'name="image"; filename=' in body
    return body.split(b"\r\n\r\n", 1)[1].rsplit(b"\r\n--", 1)[0]


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_bytes_are_uploaded_as_they_are(connect, wrap):
    server = Server(page())
    connect(server).search_by_image(wrap(b"\xff\xd8\r\n--x"), "at night", limit=3)
    assert uploaded(server) == b"\xff\xd8\r\n--x"
    assert query_of(server.last) == "q=at+night&limit=3"


def test_a_path_is_read_whether_it_is_a_string_or_a_path(connect, tmp_path):
    file = tmp_path / "a.jpg"
    file.write_bytes(b"picture")
    server = Server(page())
    client = connect(server)
    for path in (file, str(file)):
        client.search_by_image(path)
        assert uploaded(server) == b"picture"


@pytest.mark.parametrize(
    ("mode", "kind", "kept"),
    [
        ("RGB", "JPEG", "RGB"),
        ("L", "JPEG", "L"),
        ("CMYK", "JPEG", "RGB"),
        ("YCbCr", "JPEG", "RGB"),
        ("RGBA", "PNG", "RGBA"),
        ("P", "PNG", "P"),
        ("1", "PNG", "1"),
        ("I;16", "PNG", "I;16"),
    ],
)
def test_a_pil_image_of_any_mode_is_encoded(connect, mode, kind, kept):
    server = Server(page())
    connect(server).search_by_image(Image.new(mode, (6, 4)))
    with Image.open(io.BytesIO(uploaded(server))) as sent:
        assert (sent.format, sent.mode, sent.size) == (kind, kept, (6, 4))


def test_a_pil_image_is_sent_as_it_is_displayed(connect):
    stream = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.new("RGB", (6, 4)).save(stream, format="JPEG", exif=exif)
    server = Server(page())
    connect(server).search_by_image(Image.open(stream))
    with Image.open(io.BytesIO(uploaded(server))) as sent:
        assert sent.size == (4, 6)


def test_a_file_that_is_not_there_is_no_request(connect, tmp_path):
    server = Server(page())
    with pytest.raises(FileNotFoundError):
        connect(server).search_by_image(tmp_path / "none.jpg")
    assert server.sent == 0


# -- what comes back --------------------------------------------------------------------------


def test_a_photo_has_every_field_typed(connect):
    photo = connect(Server(success(PHOTO | {"field_of_tomorrow": 1}))).photo("p1")
    assert list(Photo.__struct_fields__) == list(PHOTO)
    assert photo.uploaded_on == datetime.date(2024, 2, 29)
    assert photo.urls.thumb == "https://example.org/1/thumb"
    assert photo.attribution == Attribution(html="<b>Ann</b>", plain="Ann Lee")
    assert json.loads(msgspec.json.encode(photo)) == PHOTO


def test_fields_that_were_not_asked_for_are_unset_and_false(connect):
    photo = connect(Server(success({"photo_id": "p1"}))).photo("p1", fields="photo_id")
    assert photo.width is msgspec.UNSET
    assert not photo.urls
    assert repr(photo) == "Photo(photo_id='p1')"
    assert msgspec.json.encode(photo) == b'{"photo_id":"p1"}'


def test_timestamps_have_their_offset(connect):
    found = connect(Server(success(COLLECTION | {"photos": [ENTRY]}))).collection(7)
    assert found.created_at == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert found.photos[0].added_at.utcoffset() == datetime.timedelta(0)


def test_records_come_as_the_specification_names_them(connect):
    client = connect(Server(*[row[5] for row in OPERATIONS[-4:]], success({"deleted": True})))
    assert client.usage().requests.remaining == 4999
    assert client.monthly_usage().records[0].month == "2026-01"
    assert client.daily_usage().records[0].date == datetime.date(2026, 1, 31)
    assert client.usage_by_key().keys[0].last_used_at is None
    assert client.delete_collection(7).deleted is True


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"success":true}', b"\xff", b'{"data": "\xff"}']
)
def test_a_success_that_is_none_of_the_apis_is_a_server_error(connect, body):
    with pytest.raises(ServerError, match=r"/facets/colors must be answered as version 1 is"):
        connect(Server(httpx.Response(200, content=body))).colors()


def test_a_page_without_pagination_is_a_server_error(connect):
    with pytest.raises(ServerError, match="with pagination, got none"):
        connect(Server(success([]))).search("x")


# -- pages ------------------------------------------------------------------------------------


def photos(*names):
    return [{"photo_id": name} for name in names]


def test_a_page_is_its_photos_and_knows_where_it_stands(connect):
    answer = page(*photos("a", "b"), cursor="c1", per_page=2)
    answer.headers["X-Plan"] = "exact"
    found = connect(Server(answer)).search("x", per_page=2)
    assert [photo.photo_id for photo in found] == ["a", "b"]
    assert (len(found), found[1].photo_id, found.has_more) == (2, "b", True)
    assert (found.pagination.per_page, found.pagination.next_cursor) == (2, "c1")
    assert (found.meta.request_id, found.meta.took_ms) == (META["request_id"], 1.5)
    assert found.headers["x-plan"] == "exact"


def test_the_next_page_is_asked_with_the_cursor_and_the_fields_alone(connect):
    server = Server(page(*photos("a"), cursor="c1"), page(*photos("b")))
    client = connect(server)
    first = client.search("x", orientation="square", fields="photo_id", limit=2)
    second = client.wait(first.next_page())
    assert query_of(server.last) == "fields=photo_id&cursor=c1"
    assert [photo.photo_id for photo in second] == ["b"]
    assert client.wait(second.next_page()) is None
    assert server.sent == 2


def test_a_picture_is_uploaded_once_and_later_pages_do_without_its_idempotency_key(connect):
    server = Server(page(*photos("a"), cursor="c1"), page(*photos("b")))
    client = connect(server)
    first = client.search_by_image(b"picture", idempotency_key="mine")
    client.wait(first.next_page())
    assert [request.method for request in server.requests] == ["POST", "POST"]
    assert server.last.content == b""
    assert query_of(server.last) == "cursor=c1"
    assert server.requests[0].headers["idempotency-key"] == "mine"
    assert "idempotency-key" not in server.last.headers


def test_pages_are_asked_for_when_they_are_reached(connect):
    server = Server(
        page(*photos("a", "b"), cursor="c1"),
        page(*photos("c"), cursor="c2"),
        page(*photos("d")),
    )
    client = connect(server)
    first = client.search("x")
    pages = first.pages()
    assert server.sent == 1
    assert [[photo.photo_id for photo in each] for each in client.list(pages)] == [
        ["a", "b"],
        ["c"],
        ["d"],
    ]
    assert server.sent == 3


def test_all_photos_of_all_pages_come_in_order(connect):
    server = Server(page(*photos("a", "b"), cursor="c1"), page(*photos("c")))
    client = connect(server)
    found = client.client.search_all("x", per_page=2)
    assert [photo.photo_id for photo in client.list(found)] == ["a", "b", "c"]


def test_who_stops_early_asks_for_no_further_page():
    server = Server(page(*photos("a"), cursor="c1"))
    found = Client(BASE, KEY, transport=httpx.MockTransport(server)).search_all("x")
    assert next(found).photo_id == "a"
    assert server.sent == 1


# -- trying again -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(connect, slept, status):
    server = Server(failure(status), failure(status), success([]))
    assert connect(server).colors() == []
    assert server.sent == 3
    assert 0.125 <= slept[0] <= 0.25
    assert 0.25 <= slept[1] <= 0.5


def test_waits_double_and_end_at_the_most(connect, slept):
    server = Server(failure(503))
    with pytest.raises(ServerError):
        connect(server, retries=9, max_wait=2.0).colors()
    assert server.sent == 10
    assert slept[2] <= 1.0 <= 2 * slept[2]
    assert max(slept) == 2.0


@pytest.mark.parametrize("value", ["3", " 3 "])
def test_what_the_server_asks_to_wait_is_waited(connect, slept, value):
    server = Server(failure(429, headers={"Retry-After": value}), success([]))
    connect(server).colors()
    assert slept == [3.0]


def test_a_date_to_wait_for_is_understood(connect, slept):
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=20)
    words = later.strftime("%a, %d %b %Y %H:%M:%S GMT")
    server = Server(failure(503, headers={"Retry-After": words}), success([]))
    connect(server).colors()
    assert 10 < slept[0] <= 20


@pytest.mark.parametrize(
    "value", ["Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 -0000", "0"]
)
def test_a_moment_that_has_passed_is_no_wait(connect, slept, value):
    server = Server(failure(503, headers={"Retry-After": value}), success([]))
    connect(server).colors()
    assert slept == [0.0]


@pytest.mark.parametrize("value", ["soon", "-1", "1.5", "", "٣"])
def test_a_wait_that_is_none_is_passed_over(connect, slept, value):
    headers = {b"retry-after": value.encode()}
    server = Server(failure(503, headers=headers), success([]))
    connect(server).colors()
    assert 0.125 <= slept[0] <= 0.25


def test_a_server_that_asks_to_wait_too_long_is_not_waited_for(connect, slept):
    server = Server(failure(429, "QUOTA_EXCEEDED", headers={"Retry-After": "86400"}))
    with pytest.raises(LimitError) as caught:
        connect(server).search("x")
    assert (server.sent, slept) == (1, [])
    assert caught.value.retry_after == 86400.0
    assert caught.value.code == "QUOTA_EXCEEDED"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 415, 422, 500])
def test_other_failures_are_final(connect, slept, status):
    server = Server(failure(status))
    with pytest.raises(ApiError):
        connect(server).search("x")
    assert (server.sent, slept) == (1, [])


LOST = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.ReadTimeout("slow"),
    httpx.ReadError("reset"),
    httpx.RemoteProtocolError("closed"),
]


@pytest.mark.parametrize("lost", LOST, ids=lambda error: type(error).__name__)
def test_a_lost_connection_is_tried_again(connect, lost):
    server = Server(lost, success([]))
    assert connect(server).colors() == []
    assert server.sent == 2


@pytest.mark.parametrize("name", ["create_collection", "add_photo"])
def test_a_post_is_sent_again_with_the_same_key_and_body(connect, name):
    asked = {
        "create_collection": (("Dunes",), success(COLLECTION)),
        "add_photo": ((7, "p1"), success(ENTRY)),
    }
    args, answer = asked[name]
    server = Server(httpx.ReadTimeout("slow"), failure(503), answer)
    client = connect(server)
    getattr(client, name)(*args)
    keys = {request.headers["idempotency-key"] for request in server.requests}
    assert server.sent == 3
    assert len(keys) == 1
    assert len({request.content for request in server.requests}) == 1
    getattr(client, name)(*args)
    assert server.last.headers["idempotency-key"] not in keys


def test_a_search_by_picture_is_sent_again_with_a_key_only_if_one_was_given(connect):
    server = Server(httpx.ReadTimeout("slow"), failure(503), page())
    client = connect(server)
    client.search_by_image(b"picture")
    assert server.sent == 3
    assert not any("idempotency-key" in request.headers for request in server.requests)
    assert len({request.content for request in server.requests}) == 1
    server = Server(httpx.ReadTimeout("slow"), page())
    connect(server).search_by_image(b"picture", idempotency_key="mine")
    assert [request.headers["idempotency-key"] for request in server.requests] == ["mine", "mine"]


def test_a_post_that_is_still_being_answered_is_nothing_that_is_there_already(connect):
    busy = failure(409, "REQUEST_IN_FLIGHT", headers={"Retry-After": "1"})
    with pytest.raises(UnfinishedError) as caught:
        connect(Server(busy), retries=0).create_collection("Dunes")
    assert not isinstance(caught.value, errors.ConflictError)
    assert (caught.value.status, caught.value.retry_after) == (409, 1.0)


def test_a_post_that_is_still_being_answered_is_asked_for_again(connect, slept):
    busy = failure(409, "REQUEST_IN_FLIGHT", headers={"Retry-After": "1"})
    server = Server(httpx.ReadTimeout("slow"), busy, success(COLLECTION))
    assert connect(server).create_collection("Dunes").id == 7
    assert slept[1] == 1.0


def test_a_delete_that_may_be_done_is_not_sent_again(connect):
    server = Server(httpx.ReadTimeout("slow"))
    with pytest.raises(UnreachableError, match="asked once: slow"):
        connect(server).delete_collection(7)
    assert server.sent == 1


@pytest.mark.parametrize("before", [httpx.ConnectError("refused"), failure(503), failure(429)])
def test_a_delete_that_was_surely_not_done_is_sent_again(connect, before):
    server = Server(before, success({"deleted": True}))
    assert connect(server).delete_collection(7).deleted
    assert server.sent == 2


def test_a_gateway_that_does_not_know_ends_a_delete(connect):
    server = Server(failure(502))
    with pytest.raises(ServerError):
        connect(server).remove_photo(7, "p1")
    assert server.sent == 1


def test_a_server_that_cannot_be_reached_is_named(connect):
    server = Server(httpx.ConnectError("connection refused"))
    with pytest.raises(UnreachableError) as caught:
        connect(server, retries=2).colors()
    assert str(caught.value) == (
        "http://photos.example.org/ must answer, asked 3 times: connection refused"
    )
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert caught.value.status == 0


def test_an_error_without_words_is_named_by_its_kind(connect):
    with pytest.raises(UnreachableError, match="asked once: ReadError"):
        connect(Server(httpx.ReadError("")), retries=0).colors()


def test_a_request_that_http_does_not_allow_is_sent_once(connect, slept):
    server = Server(httpx.LocalProtocolError("illegal header value"))
    with pytest.raises(UnreachableError, match="illegal header value"):
        connect(server).colors()
    assert (server.sent, slept) == (1, [])


# -- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "local"),
    [
        (302, ServerError, errors.SearchlabError),
        (400, BadRequestError, errors.InputError),
        (401, AuthenticationError, errors.SearchlabError),
        (403, PermissionDeniedError, errors.ForbiddenError),
        (404, MissingError, errors.NotFoundError),
        (409, AlreadyThereError, errors.ConflictError),
        (410, BadRequestError, errors.InputError),
        (413, BadRequestError, errors.InputError),
        (415, BadRequestError, errors.InputError),
        (422, ValidationError, errors.InputError),
        (429, LimitError, errors.QuotaError),
        (500, ServerError, errors.SearchlabError),
        (503, ServerError, errors.SearchlabError),
    ],
)
def test_each_status_is_an_exception_that_says_all(connect, status, kind, local):
    server = Server(failure(status, details={"accepted": ["urls"]}))
    with pytest.raises(local) as caught:
        connect(server, retries=0).search("x")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.message) == (status, "SOME_CODE", "it must be so")
    assert error.details == {"accepted": ["urls"]}
    assert error.request_id == META["request_id"]
    assert str(error) == (
        f"it must be so (SOME_CODE, HTTP {status}, request 11111111-1111-4111-8111-111111111111)"
    )


def test_a_failed_validation_says_where(connect):
    details = [
        {"loc": ["query", "per_page"], "msg": "must be 1 to 100", "type": "out_of_range"},
        {"loc": ["body", 0, "name"], "msg": "must be given", "type": "missing"},
    ]
    answer = httpx.Response(422, json={"detail": details}, headers={"X-Request-Id": "r1"})
    with pytest.raises(ValidationError) as caught:
        connect(Server(answer)).search(per_page=0)
    assert str(caught.value) == (
        "query.per_page: must be 1 to 100; body.0.name: must be given (HTTP 422, request r1)"
    )
    assert caught.value.errors[0] == Detail(
        loc=("query", "per_page"), msg="must be 1 to 100", type="out_of_range"
    )
    assert caught.value.details == details


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad gateway</html>",
        b"[1]",
        b'"x"',
        b"\xff\xfe",
        b'{"error": "x", "meta": 7}',
        b'{"detail": "x"}',
        b'{"error": {"message": null}}',
    ],
)
@pytest.mark.parametrize(("status", "kind"), [(422, ValidationError), (502, ServerError)])
def test_a_failure_with_any_body_is_its_exception(connect, body, status, kind):
    with pytest.raises(kind) as caught:
        connect(Server(httpx.Response(status, content=body)), retries=0).colors()
    assert str(caught.value) == (
        f"/api/v1/facets/colors answered without saying what is wrong (HTTP {status})"
    )
    assert caught.value.request_id == ""


def test_the_tree_of_failures_is_drawn_at_the_head_of_its_module():
    from searchlab.client import failures

    for name, value in vars(failures).items():
        if isinstance(value, type) and issubclass(value, ApiError):
            assert name in failures.__doc__


# -- making and closing -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["", "photos.example.org", "ftp://a.org", "http://", "http://a.org?x=1", "http://a:b:c", "//a"],
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(errors.InputError, match="base_url must be like"):
        Client(address, KEY)


@pytest.mark.parametrize("key", ["", "a b", "sl_1\n", "schlüssel", "a\0"])
def test_a_key_that_is_none_is_refused_and_not_repeated(key):
    with pytest.raises(errors.InputError, match="api_key must be the key") as caught:
        AsyncClient(BASE, key)
    assert not key or key not in str(caught.value)


def test_the_key_stays_out_of_every_repr():
    client = Client(BASE, KEY)
    assert repr(client) == "Client('http://photos.example.org')"
    found = Client(BASE, KEY, transport=httpx.MockTransport(Server(page()))).search("x")
    assert KEY not in repr(found)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_of_the_environment(monkeypatch, kind):
    monkeypatch.setenv("SEARCHLAB_API_KEY", KEY)
    monkeypatch.delenv("SEARCHLAB_BASE_URL", raising=False)
    assert kind.from_env().base_url == "http://127.0.0.1:8000"
    monkeypatch.setenv("SEARCHLAB_BASE_URL", f"{BASE}/")
    assert kind.from_env(timeout=1).base_url == BASE


def test_an_environment_without_a_key_is_named(monkeypatch):
    monkeypatch.delenv("SEARCHLAB_API_KEY", raising=False)
    with pytest.raises(errors.InputError, match="SEARCHLAB_API_KEY must hold an API key"):
        Client.from_env()


def test_a_client_is_closed_where_its_block_ends():
    server = Server(success([]))
    with Client(BASE, KEY, transport=httpx.MockTransport(server)) as client:
        assert client.colors() == []
    with pytest.raises(RuntimeError, match="closed"):
        client.colors()


def test_an_async_client_is_closed_where_its_block_ends():
    async def use():
        transport = httpx.MockTransport(Server(success([])))
        async with AsyncClient(BASE, KEY, transport=transport) as client:
            assert await client.colors() == []
        await client.colors()

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(use())


# -- in a notebook ----------------------------------------------------------------------------


def searched(*answers):
    client = Client(BASE, KEY, transport=httpx.MockTransport(Server(*answers)))
    return client.search("x")


def test_a_page_prints_its_photos_in_lines():
    found = searched(page(PHOTO, {"photo_id": "p2"}, {"width": 3}, cursor="c"))
    assert repr(found) == "<Page of 3 photos, more follow>\n0.750  A dune\np2\nphoto"
    assert repr(searched(page())) == "<Page of 0 photos, the last page>"


def test_a_page_renders_as_a_grid_of_linked_photos():
    markup = searched(page(PHOTO))._repr_html_()
    assert '<img src="https://example.org/1/thumb" alt="red dune" loading="lazy">' in markup
    assert "0.750" in markup
    assert '<a href="https://example.org/page/1" rel="noopener">Ann Lee</a>' in markup
    assert "30 × 20, unsplash" in markup
    assert "1 of up to 20 photos. This is the last page." in markup


def test_a_grid_takes_over_no_markup_and_no_script():
    hostile = "<script>'\"&"
    texts = {name: hostile for name, value in PHOTO.items() if isinstance(value, str)}
    urls = dict.fromkeys(PHOTO["urls"], "javascript:alert(1)")
    credit = {"html": hostile, "plain": hostile}
    changed = {"urls": urls, "attribution": credit, "uploaded_on": "2024-01-01"}
    markup = searched(page(PHOTO | texts | changed))._repr_html_()
    assert "<script>" not in markup
    assert "javascript:" not in markup


def test_a_photo_of_few_fields_renders_too():
    markup = Photo(photo_id="p1")._repr_html_()
    assert "p1" in markup
    assert "UNSET" not in markup
    assert "<img" not in markup


def test_a_photo_renders_by_its_image_where_it_has_no_sizes():
    markup = Photo(image_url="https://example.org/1")._repr_html_()
    assert '<img src="https://example.org/1" alt="" loading="lazy">' in markup
