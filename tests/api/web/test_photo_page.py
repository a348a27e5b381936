"""A photo's page: its fields, credit and licence, similar photos, and nothing of the owner's."""

import re
from html import unescape

import msgspec
import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from tests.support.apis import api

HOSTILE = '</output><script>alert("1")</script>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("photo-page")
    (place / "secret-folder").mkdir()
    lines = []
    for number, color in enumerate(("red", "maroon", "orange", "blue")):
        Image.new("RGB", (60, 40 + number), color).save(place / "secret-folder" / f"{color}.png")
        line = {"file": f"{color}.png", "title": f"all {color}", "license_type": "cc-by-nc-4.0"}
        line |= {"source_description": f"all {color}", "photographer_full_name": HOSTILE}
        line |= {
            "photographer_username": "ann & co",
            "tags": ["hidden-tag"],
            "place": "Secretville",
        }
        lines.append(msgspec.json.encode(line))
    (place / "secret-folder" / "photos.jsonl").write_bytes(b"\n".join(lines))
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "secret-folder")], config=Config(model="palette"))
    return place / "library"


@pytest.fixture(scope="module")
def served(folder):
    with api(folder, visitors="guests") as server:
        yield server


@pytest.fixture(scope="module")
def photo(served):
    return served.client.get("/api/v1/search/photos?q=red&per_page=1").json()["data"][0]


def test_a_page_shows_every_public_field_and_how_to_credit_the_photo(served, photo):
    answer = served.anonymous.get(f"/photos/{photo['photo_id']}")
    assert answer.status_code == 200
    page = unescape(answer.text)
    for name in ("photo_id", "source_photo_id", "description", "photographer_username", "source"):
        assert photo[name] in page, name
    assert photo["attribution"]["plain"] in page
    assert photo["attribution"]["html"] in page
    assert "https://creativecommons.org/licenses/by-nc/4.0/" in page
    assert "It forbids commercial use." in page
    assert '<script>alert("1")' not in answer.text


def test_the_picture_comes_from_here_in_several_sizes_and_can_be_downloaded(served, photo):
    page = unescape(served.anonymous.get(f"/photos/{photo['photo_id']}").text)
    links = re.findall(r'href="(/media/[^"]+)"', page)
    assert {link.split("?")[0] for link in links} == {f"/media/{photo['photo_id']}/full"}
    assert served.anonymous.get(links[0]).status_code == 200
    assert "download>" in page


def test_colours_lead_to_searches_by_them(served, photo):
    page = unescape(served.anonymous.get(f"/photos/{photo['photo_id']}").text)
    shade = photo["color_hex"].replace("#", "%23")
    addresses = re.findall(r'href="(/\?(?:color_hex|palette)=[^"]+)"', page)
    assert addresses[0] == f"/?color_hex={shade}"
    for address in addresses:
        assert served.anonymous.get(address).status_code == 200


@pytest.mark.slow
def test_similar_photos_are_those_of_the_api_and_count_as_there(folder):
    with api(folder, visitors="viewers") as server:
        client = server.make_client(account="viewers", plan="scale")
        first = client.get("/api/v1/search/photos?q=red&per_page=1").json()["data"][0]["photo_id"]
        similar = client.get(f"/api/v1/photos/{first}/similar").json()["data"]
        used = client.get("/api/v1/usage").json()["data"]["requests"]["used"]
        page = server.anonymous.get(f"/photos/{first}").text
        grid = page[page.index('<ul class="grid"') :]
        shown = list(dict.fromkeys(re.findall(r'href="/photos/([0-9a-f-]{36})"', grid)))
        assert shown == [one["photo_id"] for one in similar]
        assert client.get("/api/v1/usage").json()["data"]["requests"]["used"] == used + 1


def test_what_is_the_owner_s_is_not_shown_unless_places_are(folder, served, photo):
    secrets = ("Secretville", "hidden-tag", "secret-folder")
    page = served.anonymous.get(f"/photos/{photo['photo_id']}").text
    assert not [secret for secret in secrets if secret in page]
    with api(folder, visitors="guests", show_places=True) as open_server:
        page = open_server.anonymous.get(f"/photos/{photo['photo_id']}").text
        assert [secret for secret in secrets if secret in page] == list(secrets)


@pytest.mark.parametrize("photo_id", ["nothing", "%2e%2e", "%00", "é", "x" * 300])
def test_an_unknown_photo_is_a_page_that_says_so(served, photo_id):
    answer = served.anonymous.get(f"/photos/{photo_id}")
    assert answer.status_code in {404, 422}
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_who_is_not_signed_in_reads_how_to_get_in(folder, photo):
    with api(folder) as server:
        answer = server.anonymous.get(f"/photos/{photo['photo_id']}")
        assert answer.status_code == 401
        assert "searchlab accounts link" in answer.text
        assert "all red" not in answer.text
