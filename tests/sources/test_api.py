"""A library from five sources at once, over HTTP: facets, filters, links and credits are right."""

import json

import pytest
from PIL import Image

from searchlab import create_library, index_photos
from searchlab.config import Config
from searchlab.library.roots import check_dump
from searchlab.photos.photo import photo_id_of
from tests.support.apis import api
from tests.support.upstream import FLICKR, OPENVERSE, PEXELS, PIXABAY, UNSPLASH, WIKIMEDIA, changed

HOSTILE = '<script>alert("x")</script>'
DUMPS = {
    "unsplash": [UNSPLASH],
    "pexels": [PEXELS, changed(PEXELS, id=7000002, photographer=HOSTILE)],
    "flickr": [FLICKR, changed(FLICKR, id="50000000009", license="1")],
    "wikimedia": [WIKIMEDIA],
    "openverse": [
        OPENVERSE,
        changed(
            OPENVERSE,
            id="0d9b8f6e-0000-4000-8000-000000000002",
            source="museum",
            foreign_landing_url="https://museum.example/2",
            license="cc0",
            license_version="1.0",
            creator="Mara Stein",
        ),
    ],
    "pixabay": [PIXABAY],
}


def ids_of(name, records):
    key = {"wikimedia": "pageid"}.get(name, "id")
    return [str(record[key]) for record in records]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("five")
    roots = []
    for number, (name, records) in enumerate(DUMPS.items()):
        place = folder / name
        place.mkdir()
        (place / "dump.jsonl").write_text("\n".join(map(json.dumps, records)))
        for count, photo_id in enumerate(ids_of(name, records)):
            color = (40 * number, 60 + 90 * count, 200 - 30 * number)
            Image.new("RGB", (48, 32), color).save(place / f"{photo_id}.png")
        roots.append(check_dump(place / "dump.jsonl", source=name))
    library = create_library(folder / "library")
    report = index_photos(library, roots, config=Config(model="palette"))
    assert report.n_photos == 7
    assert [problem.reason[:34] for problem in report.problems] == [
        "its licence cc-by-nc-sa-2.0 forbid"
    ]
    with api(folder / "library") as running:
        yield running.client


def data_of(client, path, **params):
    answer = client.get(f"/api/v1{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_the_facet_of_sources_lists_them_with_their_terms(served):
    license_urls = {one["name"]: one["license_url"] for one in data_of(served, "/facets/sources")}
    assert sorted(license_urls) == sorted(DUMPS)
    assert license_urls["pexels"] == "https://www.pexels.com/license/"
    assert license_urls["flickr"] == "https://creativecommons.org/licenses/by/2.0/"
    assert license_urls["wikimedia"] == "https://creativecommons.org/licenses/by-sa/3.0/"


def test_the_facet_of_licences_keeps_versions_and_has_free(served):
    names = [one["name"] for one in data_of(served, "/facets/licenses")]
    assert names == ["cc-by-2.0", "cc-by-sa-3.0", "cc0", "free"]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"license_type": "free"}, ["7000001", "7000002", "8000001", UNSPLASH["id"]]),
        ({"license_type": "cc-by-2.0"}, ["50000000001"]),
        ({"license_type": ["cc0", "cc-by-sa-3.0"]}, [DUMPS["openverse"][1]["id"], "900001"]),
        ({"source": "openverse"}, [DUMPS["openverse"][1]["id"]]),
        ({"source": ["flickr", "wikimedia"]}, ["50000000001", "900001"]),
        ({"photographer": "mirelle"}, [UNSPLASH["id"]]),
        ({"source": "unsplash", "color_hex": "#a68059", "color_tolerance": 0}, [UNSPLASH["id"]]),
        ({"after_date": "2022-01-01", "license_type": "cc-by-2.0"}, []),
    ],
)
def test_filters(served, params, expected):
    photos = data_of(served, "/search/photos", **params)
    assert sorted(photo["source_photo_id"] for photo in photos) == sorted(expected)


def test_every_photo_has_a_credit_and_five_links_of_its_own_library(served):
    photo_of = {p["source_photo_id"]: p for p in data_of(served, "/search/photos", q="a photo")}
    assert len(photo_of) == 7
    plain = {photo_id: photo["attribution"]["plain"] for photo_id, photo in photo_of.items()}
    assert plain[UNSPLASH["id"]] == "Photo by Mirelle Okafor on Unsplash"
    assert plain["7000001"] == "Photo by Tomas Lindqvist on Pexels"
    assert plain["8000001"] == "Image by Berit_7 from Pixabay"
    assert plain["50000000001"] == (
        "“Tram <28>” by Ines Duarte, CC BY 2.0, via Flickr; also at Openverse"
    )
    assert plain["900001"] == (
        "“Old mill at Verdun” by Ana & Kova, CC BY-SA 3.0, via Wikimedia Commons"
    )
    for photo in photo_of.values():
        assert len(photo["urls"]) == 5
        assert all(url.startswith("http") for url in photo["urls"].values())
    assert photo_of["900001"]["urls"]["thumb"].startswith("https://upload.wikimedia.org/")
    assert "/media/" in photo_of["8000001"]["urls"]["thumb"]


def test_a_hostile_name_reaches_the_page_as_text(served):
    photo = data_of(served, f"/photos/{photo_id_of('pexels', '7000002')}")
    assert "<script" not in photo["attribution"]["html"]
    assert HOSTILE in photo["attribution"]["plain"]


def test_a_photo_that_came_by_two_ways_is_found_by_its_origin_and_once(served):
    photo = data_of(served, f"/photos/{photo_id_of('flickr', '50000000001')}")
    assert photo["source"] == "flickr"
    by_photographer = data_of(served, "/search/photos", photographer="inesd")
    assert [one["photo_id"] for one in by_photographer] == [photo["photo_id"]]


def test_a_copy_that_is_shown_in_place_of_links_is_served(served):
    photo = data_of(served, f"/photos/{photo_id_of('pixabay', '8000001')}")
    assert served.get(photo["urls"]["small"]).headers["content-type"].startswith("image/")
