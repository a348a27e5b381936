"""What the clients send: each operation is one request, with everything in its place."""

import datetime
import inspect
import json

import httpx
import msgspec
import pytest

from searchlab import errors
from searchlab.client import AsyncClient, Client, Photo
from tests.support import client_world
from tests.support.client_world import (
    BASE,
    COLLECTION,
    ENTRY,
    KEY,
    OPERATIONS,
    PHOTO,
    Server,
    page,
    query_of,
    success,
)

connect = client_world.connect
slept = client_world.slept


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
    # At the library, of another photo, and just short enough.
    kept = f"https://example.org/media/p2/thumb?of=/media/p1/&{'x' * 2000}"[:2000]
    client.add_photo(7, msgspec.convert(PHOTO | {"urls": PHOTO["urls"] | {"thumb": kept}}, Photo))
    assert json.loads(server.last.content)["photo_thumbnail_url"] == kept
    client.add_photo(7, Photo(photo_id="p2", photographer_full_name="a" * 400))
    assert len(json.loads(server.last.content)["photo_photographer"]) == 255
    client.add_photo(7, Photo(photo_id="p2"))
    assert json.loads(server.last.content) == {"photo_id": "p2"}
    client.add_photo(7, "p3")
    assert json.loads(server.last.content) == {"photo_id": "p3"}


@pytest.mark.parametrize(
    "thumb",
    [
        "http://photos.example.org/media/p1/thumb?v=0a1b2c3d",
        "https://old.example.org/photos/media/p1/thumb",
        f"https://example.org/{'x' * 1981}",
    ],
)
def test_a_photo_is_added_without_a_thumbnail_that_does_not_last_or_fit(connect, thumb):
    server = Server(success(ENTRY))
    urls = PHOTO["urls"] | {"thumb": thumb}
    connect(server).add_photo(7, msgspec.convert(PHOTO | {"urls": urls}, Photo))
    assert json.loads(server.last.content) == {
        "photo_id": "p1",
        "photo_source": "unsplash",
        "photo_photographer": "Ann Lee",
    }


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
