"""The typed client against a real server: every operation once, called and awaited."""

import asyncio
import datetime
import io

import pytest
from PIL import Image

from searchlab.client import (
    AlreadyThereError,
    AsyncClient,
    AuthenticationError,
    BadRequestError,
    Client,
    MissingError,
    ValidationError,
)
from tests.support.spec_server import corpus


@pytest.fixture(scope="module")
def known():
    return corpus()


@pytest.fixture
def client(known):
    with Client(known.base_url, known.keys["paid"]) as made:
        yield made


def test_searches_go_through_all_pages(known, client):
    photo_ids = [photo.photo_id for photo in client.search_all("sea", per_page=50)]
    assert len(photo_ids) == len(set(photo_ids)) == len(known.records)
    page = client.search("sea", orientation=["square", "portrait"], fields=["photo_id", "urls"])
    assert page.headers["x-searchlab-config"]
    assert page.next_page().photos[0].urls.thumb.startswith("http")
    assert "<img" in page._repr_html_()


def test_pictures_and_photos_find_what_is_like_them(known, client):
    photo = client.photo(known.plain(7)["photo_id"])
    assert photo.uploaded_on == datetime.date(2020, 1, 4)
    similar = [each.photo_id for each in client.similar(photo.photo_id, limit=30).all_photos()]
    searched = client.search_by_image(photo_id=photo.photo_id, limit=30, per_page=7)
    assert [each.photo_id for each in searched.all_photos()] == similar
    stream = io.BytesIO()
    Image.new("RGB", (photo.width, photo.height), photo.color_hex).save(stream, "PNG")
    page = client.search_by_image(stream.getvalue(), "sea", text_alpha=0, per_page=5)
    assert page[0].color_hex == photo.color_hex
    assert len(list(page.all_photos())) == len(known.records)


def test_facets_are_records(client):
    assert {color.name for color in client.colors()} >= {"red", "green", "blue"}
    assert len(client.sources()) == 9
    assert len(client.orientations()) == 3
    assert "free" in {each.name for each in client.licenses()}
    (first, second) = client.photographer("a/b?c#d")
    assert first.full_name == second.full_name == "Ann Lee-Straße"
    assert first in client.suggest_photographers("strasse", limit=5)


def test_a_collection_from_its_making_to_its_end(known, client):
    made = client.create_collection("Herbst", description="Blätter")
    assert made in client.collections()
    photo = client.photo(known.plain(1)["photo_id"])
    entry = client.add_photo(made.id, photo)
    assert entry.photo_photographer == photo.photographer_full_name
    with pytest.raises(AlreadyThereError):
        client.add_photo(made.id, photo.photo_id)
    filled = client.collection(made.id)
    assert (filled.photos, filled.cover_photo_id) == ([entry], photo.photo_id)
    assert client.remove_photo(made.id, photo.photo_id).deleted
    assert client.delete_collection(made.id).deleted
    with pytest.raises(MissingError):
        client.collection(made.id)


def test_usage_is_records(client):
    client.search("sea")
    assert client.usage().requests.used > 0
    assert client.monthly_usage(2).records[0].requests > 0
    assert client.daily_usage(days=1).records[0].date == datetime.datetime.now(datetime.UTC).date()
    assert client.usage_by_key().keys[0].requests_today > 0


def test_refusals_are_exceptions(known, client):
    with pytest.raises(ValidationError) as caught:
        client.search("sea", per_page=0, limit=101)
    places = {detail.loc for detail in caught.value.errors}
    assert places == {("query", "per_page"), ("query", "limit")}
    assert caught.value.request_id
    with pytest.raises(BadRequestError, match="INVALID_FIELDS") as caught:
        client.search("sea", fields="photographer")
    assert "photographer_username" in caught.value.details["accepted"]
    with pytest.raises(BadRequestError, match="UNSUPPORTED_MEDIA_TYPE"):
        client.search_by_image(b"no picture")
    with Client(known.base_url, "sl_unknown") as stranger, pytest.raises(AuthenticationError):
        stranger.usage()


def test_the_same_is_awaited(known):
    async def ask():
        async with AsyncClient(known.base_url, known.keys["paid"]) as client:
            photo_ids = [photo.photo_id async for photo in client.search_all("sea", per_page=50)]
            first, colors, usage = await asyncio.gather(
                client.search_by_image(photo_id=photo_ids[0], per_page=3),
                client.colors(),
                client.usage(),
            )
            second = await first.next_page()
            return photo_ids, colors, usage, [*first, *second]

    photo_ids, colors, usage, similar = asyncio.run(ask())
    assert len(photo_ids) == len(set(photo_ids)) == len(known.records)
    assert colors
    assert usage.requests.remaining > 0
    assert len({photo.photo_id for photo in similar} - {photo_ids[0]}) == 6


def test_a_process_that_was_forked_has_connections_of_its_own(client, monkeypatch):
    """On those of its parent it would read the answers to others."""
    client.usage()
    inherited = client._http
    client.usage()
    assert client._http is inherited
    monkeypatch.setattr("searchlab.client.clients.os.getpid", lambda: 1)
    client.usage()
    assert client._http is not inherited
    inherited.close()
    client.usage()
