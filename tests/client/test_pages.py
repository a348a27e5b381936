"""Pages of the clients: asked for when they are reached, and shown in a notebook."""

import httpx

from searchlab.client import Client, Photo
from tests.support import client_world
from tests.support.client_world import BASE, KEY, META, PHOTO, Server, page, query_of

connect = client_world.connect
slept = client_world.slept


# -- one after the other ------------------------------------------------------------------------


def photos(*names):
    return [{"photo_id": name} for name in names]


def test_a_page_is_its_photos_and_knows_where_it_stands(connect):
    answer = page(*photos("a", "b"), cursor="c1", per_page=2)
    answer.headers["X-Plan"] = "exact"
    first = connect(Server(answer)).search("x", per_page=2)
    assert [photo.photo_id for photo in first] == ["a", "b"]
    assert (len(first), first[1].photo_id, first.has_more) == (2, "b", True)
    assert (first.pagination.per_page, first.pagination.next_cursor) == (2, "c1")
    assert (first.meta.request_id, first.meta.took_ms) == (META["request_id"], 1.5)
    assert first.headers["x-plan"] == "exact"


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
    all_photos = client.client.search_all("x", per_page=2)
    assert [photo.photo_id for photo in client.list(all_photos)] == ["a", "b", "c"]


def test_who_stops_early_asks_for_no_further_page():
    server = Server(page(*photos("a"), cursor="c1"))
    all_photos = Client(BASE, KEY, transport=httpx.MockTransport(server)).search_all("x")
    assert next(all_photos).photo_id == "a"
    assert server.sent == 1


# -- in a notebook ------------------------------------------------------------------------------


def searched(*answers):
    client = Client(BASE, KEY, transport=httpx.MockTransport(Server(*answers)))
    return client.search("x")


def test_a_page_prints_its_photos_in_lines():
    three = searched(page(PHOTO, {"photo_id": "p2"}, {"width": 3}, cursor="c"))
    assert repr(three) == "<Page of 3 photos, more follow>\n0.750  A dune\np2\nphoto"
    assert repr(searched(page())) == "<Page of 0 photos, the last page>"


def test_a_page_renders_as_a_grid_of_linked_photos():
    markup = searched(page(PHOTO))._repr_html_()
    assert '<img src="https://example.org/1/thumb" alt="red dune" loading="lazy">' in markup
    assert ">0.75<" in markup
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
