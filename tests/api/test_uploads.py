"""Uploads: the multipart body, its limits, and the places where pictures are looked at."""

import contextlib
import gzip
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from searchlab.api.http.decoders import Decoders
from searchlab.api.http.uploads import embed_reference
from searchlab.api.wire.errors import problem_of
from searchlab.config import Config
from searchlab.errors import ImageError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
from searchlab.search.queries import Query
from tests.support.apis import api
from tests.support.forms import FORM, LIMIT, PNG, form, part, picture
from tests.support.pictures import encoded

SEARCH = "/api/v1/search/photos"


# -- through the whole application ------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("uploads")
    (place / "photos").mkdir()
    for color in ("red", "green", "blue", "white"):
        Image.new("RGB", (40, 30), color).save(place / "photos" / f"{color}.png")
    library = create_library(place / "library")
    index_photos(library, [check_root(place / "photos")], config=Config(model="palette"))
    return library


@pytest.fixture(scope="module")
def served(place):
    with api(place.folder, max_upload_bytes=LIMIT) as server:
        yield server


@pytest.fixture
def send(served):
    def send(body, kind=FORM, **headers):
        return served.client.post(SEARCH, content=body, headers={"content-type": kind, **headers})

    return send


def places(response):
    assert response.status_code == 422, response.text
    assert set(response.json()) == {"detail"}
    return [detail["loc"] for detail in response.json()["detail"]]


def code(response):
    assert response.json()["success"] is False
    return response.status_code, response.json()["error"]["code"]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_a_picture_is_taken_whatever_its_name_and_type_say(served, kind):
    red = encoded(Image.new("RGB", (60, 40), "red"), kind)
    upload = {"image": ("notes.txt", red, "text/html")}
    response = served.client.post(SEARCH, files=upload, params={"fields": "color_name"})
    assert response.status_code == 200
    assert response.json()["data"][0] == {"color_name": "red"}


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "BMP", "ICO", "JPEG2000", "PDF"])
def test_other_pictures_are_no_accepted_type(send, kind):
    answer = send(form(part("image", encoded(picture(), kind), '; filename="a.jpg"')))
    assert code(answer) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert "JPEG, PNG, WEBP or AVIF" in answer.json()["error"]["message"]


@pytest.mark.parametrize("content", [b"hello", b"<svg/>", b"<html><img>", b"\0" * 40, b"\xff\xd8"])
def test_other_files_are_no_accepted_type(send, content):
    assert code(send(form(part("image", content)))) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_damaged_picture_is_a_failed_validation(send):
    assert places(send(form(part("image", PNG[:-30])))) == [["body", "image"]]


@pytest.mark.parametrize("body", [b"", b"--cut--\r\n"])
def test_without_a_picture_there_must_be_a_photo_id(send, body):
    assert places(send(body)) == [["query", "photo_id"]]


@pytest.mark.parametrize("kind", ["application/json", "image/png", "text/plain; x=multipart", ""])
def test_another_content_type_is_refused_where_a_body_comes(send, kind):
    assert code(send(PNG, kind)) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert places(send(b"", kind)) == [["query", "photo_id"]]


def test_a_packed_body_is_refused(send):
    body = gzip.compress(form(part("image", PNG)))
    assert code(send(body, **{"content-encoding": "gzip"})) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    "body",
    [
        b"hello",
        b"--cut",
        b"--cut\r\n",
        part("image", PNG),
        form(part("image", PNG)).replace(b"--cut--", b"--CUT--"),
        form(b"--cut\r\nContent-Type: image/png\r\n\r\n" + PNG + b"\r\n"),
        form(b"--cut\r\nno colon\r\n\r\n" + PNG + b"\r\n"),
        form(b"--cut\r\nContent-Disposition: attachment\r\n\r\n" + PNG + b"\r\n"),
        form(b'--cut\r\nContent-Disposition: form-data; name="\xff"\r\n\r\n' + PNG + b"\r\n"),
        form(part("image", PNG, '; filename="' + "n" * 5_000 + '"')),
        form(part("image", PNG, "\r\nX-A: b" * 20)),
        form(*[part("x", b"")] * 17),
        b"--cut\r\n" + b"x" * 90_000,
        b"x" * 90_000,
    ],
    ids=range(14),
)
def test_a_broken_form_is_a_failed_validation_of_the_body(send, body):
    assert places(send(body)) == [["body"]]


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary="])
def test_a_form_without_a_boundary_is_broken(send, kind):
    assert places(send(form(part("image", PNG)), kind)) == [["body"]]


@pytest.mark.parametrize(
    "body",
    [
        form(part("picture", PNG)),
        form(part("image", b"")),
        form(part("image", b"", '; filename=""')),
        form(part("image", PNG), part("image", PNG)),
        form(part("", PNG)),
        form(part("Image", PNG)),
    ],
)
def test_there_must_be_one_part_image_with_something_in_it(send, body):
    assert places(send(body)) == [["body", "image"]]


def test_parameters_in_the_form_are_not_passed_over_in_silence(send):
    answer = send(form(part("q", b"boat"), part("image", PNG), part("per_page", b"3")))
    assert places(answer) == [["body", "q"], ["body", "per_page"]]
    assert "in the URL's query" in answer.json()["detail"][0]["msg"]


def test_other_parts_are_passed_over(send):
    assert send(form(part("submit", b"Go"), part("image", PNG))).status_code == 200


def test_a_body_may_have_the_largest_size_and_not_a_byte_more(send):
    empty = len(form(part("image", PNG), part("rest", b"")))
    for extra, status in ((0, 200), (1, 413)):
        body = form(part("image", PNG), part("rest", bytes(LIMIT - empty + extra)))
        assert len(body) == LIMIT + extra
        answer = send(body)
        assert answer.status_code == status
    assert code(answer) == (413, "PAYLOAD_TOO_LARGE")


def test_a_body_that_does_not_say_its_size_is_counted(send):
    answer = send(iter([b"--cut\r\n"] + [b"x" * 40_000] * 3))
    assert code(answer) == (413, "PAYLOAD_TOO_LARGE")


# -- what a picture is to the model -----------------------------------------------------------


@pytest.fixture(scope="module")
def decoders():
    with contextlib.closing(Decoders(20)) as processes:
        yield processes


def saying(width, height):
    """A small PNG that says to be of another size."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG[:12] + body + struct.pack(">I", zlib.crc32(body)) + PNG[33:]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_an_upload_is_embedded_like_a_file_of_the_library(place, decoders, kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8)).resize((900, 600))
    query = Query(image=encoded(image, kind, exif=exif))
    vector = embed_reference(place.engine, query, decoders)
    assert vector.tolist() == place.engine.reference_vector(query).tolist()


def test_an_indexed_photo_and_words_need_no_picture(place, decoders):
    engine = place.engine
    photo_id = engine.table.photo(1).photo_id
    by_photo = Query(photo_id=photo_id)
    vector = embed_reference(engine, by_photo, decoders)
    assert vector.tolist() == engine.reference_vector(by_photo).tolist()
    assert embed_reference(engine, Query(text="red"), decoders) is None


@pytest.mark.parametrize(
    "content",
    [
        saying(8_000, 5_001),
        encoded(picture(), "JPEG").replace(
            struct.pack(">HH", 32, 48), struct.pack(">HH", 12_000, 12_000), 1
        ),
        b"RIFF\x40\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\x1f\0\x88\x13\0" + bytes(40),
    ],
    ids=["PNG", "JPEG", "WEBP"],
)
def test_a_picture_of_too_many_pixels_is_too_large(place, decoders, content):
    with pytest.raises(ImageError) as caught:
        embed_reference(place.engine, Query(image=content), decoders)
    assert problem_of(caught.value).kind.status == 413


@pytest.mark.parametrize("kind", ["GIF", "TIFF"])
def test_the_model_is_shown_no_other_format(place, decoders, kind):
    with pytest.raises(ImageError) as caught:
        embed_reference(place.engine, Query(image=encoded(picture(), kind)), decoders)
    assert problem_of(caught.value).kind.status == 415
