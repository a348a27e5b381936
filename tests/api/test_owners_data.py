"""Paths, places, keywords and file names are the owner's: no answer of the API shows them."""

import io

import pytest
from PIL import Image

from searchlab.config import Config
from searchlab.config.word_weights import USUAL_WORDS
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root
from searchlab.photos.images.decode import open_rgb
from searchlab.photos.photo import PHOTO_FIELDS
from searchlab.photos.sidecar import Record
from tests.support.apis import api
from tests.support.metadata import exif, in_languages, listed, xmp
from tests.support.pictures import corners, encoded

LISBON = ((38, 42, 45.0, "N"), (9, 8, 24.0, "W"))
TAKEN = exif(LISBON, artist="Ann Lee", orientation=6)
BODY = in_languages("dc:title", x_default="Low tide") + listed("dc:subject", "sunbathing")
XMP = xmp(BODY + listed("Iptc4xmpExt:PersonInImage", "Eve"), 'photoshop:City="Alfama"')
SECRETS = ("album9", "IMG_77", "Alfama", "sunbathing", "Eve", "38.71", "9.14", "latitude", "rating")
KINDS = {"JPEG": "jpg", "PNG": "png", "HEIF": "heic"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("owners")
    (place / "album9").mkdir()
    for number, (kind, suffix) in enumerate(KINDS.items()):
        file = place / "album9" / f"IMG_77{number}.{suffix}"
        file.write_bytes(encoded(corners(60 + 20 * number), kind, exif=TAKEN))
        file.with_suffix(".xmp").write_bytes(XMP)
    Image.new("RGB", (60, 40), "red").save(place / "album9" / "plain.jpg")
    library = create_library(place / "library")
    index_photos(
        library, [check_root(place / "album9")], config=Config(model="palette", words=USUAL_WORDS)
    )
    return place


@pytest.fixture(scope="module")
def served(place):
    with api(place / "library") as server:
        yield server


def photos_of(served):
    return served.client.get("/api/v1/search/photos", params={"q": "red", "per_page": 10})


def full(served, record):
    return served.client.get(f"/media/{record['photo_id']}/full")


def test_the_photos_do_have_what_is_not_shown(place):
    table = create_library(place / "library").snapshot().table
    photos = [photo for photo in table.photos(range(4)) if "plain" not in photo.file]
    assert [photo.tags for photo in photos] == [("sunbathing", "Eve")] * 3
    assert [photo.place for photo in photos] == ["Alfama"] * 3
    assert all(photo.latitude and photo.folder == "album9" for photo in photos)


def test_no_answer_shows_them(served, place):
    found = photos_of(served)
    records = found.json()["data"]
    assert len(records) == 4
    assert all(tuple(record) == PHOTO_FIELDS for record in records)
    client, photo_id = served.client, records[0]["photo_id"]
    client.post("/api/v1/collections", json={"name": "mine"})
    answers = [
        found,
        client.get("/api/v1/search/photos", params={"q": "Alfama sunbathing Eve"}),
        client.get(f"/api/v1/photos/{photo_id}"),
        client.get(f"/api/v1/photos/{photo_id}/similar"),
        *(client.get(f"/api/v1/facets/{n}") for n in ("sources", "licenses", "colors")),
        client.get("/api/v1/facets/photographers/suggest", params={"q": "ann"}),
        client.post("/api/v1/collections/1/photos", json={"photo_id": photo_id}),
        client.get("/api/v1/collections/1"),
        client.get("/api/v1/photos/nowhere"),
        client.get(f"/media/{photo_id}/huge"),
    ]
    for answer in answers:
        text = answer.text + str(answer.headers)
        assert [secret for secret in (*SECRETS, str(place)) if secret in text] == []


def found_by(served, words):
    answer = served.client.get("/api/v1/search/photos", params={"q": words, "per_page": 2}).json()
    return [(record["photo_id"], record["relevance_score"]) for record in answer["data"]], answer


@pytest.mark.parametrize(
    "words", ["Alfama", "album 9", "IMG 770", "sunbathing", "Eve", "sunbathnig"]
)
def test_nobody_can_ask_for_them_either(served, place, words):
    assert found_by(served, words)[0] == found_by(served, "zzqx")[0]
    engine = open_library(place / "library").engine
    assert (
        engine.search(words).hits[0].relevance_score > engine.search("zzqx").hits[0].relevance_score
    )


@pytest.mark.slow
def test_an_owner_who_says_so_lets_others_ask_for_them(served, place):
    nothing, first_page = found_by(served, "zzqx")
    with api(place / "library", show_places=True) as open_handed:
        found, _ = found_by(open_handed, "Alfama")
        assert found[0][1] > nothing[0][1]
        # Another ranking: a page of the one must not be followed by one of the other.
        cursor = {"cursor": first_page["pagination"]["next_cursor"]}
        answer = open_handed.client.get("/api/v1/search/photos", params=cursor)
        assert answer.status_code in (400, 410), answer.text


def test_titles_are_shown_and_found(served):
    assert found_by(served, "low tide")[0][0][1] > found_by(served, "zzqx")[0][0][1]


@pytest.mark.parametrize("name", ["file", "folder", "title", "tags", "place", "latitude", "rating"])
def test_they_are_no_fields_that_one_could_ask_for(served, name):
    answer = served.client.get("/api/v1/search/photos", params={"q": "red", "fields": name})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_FIELDS")


def test_originals_are_sent_without_them_and_otherwise_as_they_are(served, place):
    for record in photos_of(served).json()["data"]:
        answer = full(served, record)
        assert answer.status_code == 200
        sent = open_rgb(answer.content)
        assert sent.metadata.record() == Record()
        assert (sent.width, sent.height) == (record["width"], record["height"])
        assert not any(secret.encode() in answer.content for secret in SECRETS)
        again = full(served, record)
        assert again.content == answer.content
        assert again.headers["etag"] == answer.headers["etag"]
    red = next(r for r in photos_of(served).json()["data"] if r["color_name"] == "red"
               and r["width"] == 60 and r["height"] == 40)  # fmt: skip
    assert full(served, red).content == (place / "album9" / "plain.jpg").read_bytes()


def test_a_photo_of_a_phone_is_sent_as_jpeg(served):
    kinds = [full(served, record).headers["content-type"] for record in
             photos_of(served).json()["data"]]  # fmt: skip
    assert sorted(kinds) == ["image/jpeg", "image/jpeg", "image/jpeg", "image/png"]


def test_smaller_pictures_hold_none_of_them(served):
    for record in photos_of(served).json()["data"]:
        answer = served.client.get(f"/media/{record['photo_id']}/small")
        with Image.open(io.BytesIO(answer.content)) as image:
            assert not image.getexif()
            assert "xmp" not in image.info


def test_an_owner_who_says_so_sends_originals(place, served):
    with api(place / "library", show_places=True) as open_handed:
        for record in photos_of(open_handed).json()["data"]:
            answer = full(open_handed, record)
            if answer.headers["content-type"] == "image/png":
                assert open_rgb(answer.content).metadata.record().latitude
                assert answer.headers["etag"] != full(served, record).headers["etag"]
                return
    pytest.fail("one of them is a PNG")
