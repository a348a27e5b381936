"""Section 4.2: search by an uploaded picture or an indexed photo, asked as a stranger would."""

import io

import pytest
from PIL import Image

from tests.support.independent_client import (
    SEARCH,
    check_failure,
    check_invalid,
    check_page,
    check_photo,
    check_refused,
    ids_of,
)


def small(data):
    """Open a picture at a size that is quick to encode and still itself."""
    opened = Image.open(io.BytesIO(data))
    opened.thumbnail((320, 320))
    return opened.convert("RGB")


def encoded(data, kind, **options):
    stream = io.BytesIO()
    small(data).save(stream, format=kind, **options)
    return stream.getvalue()


# -- the uploaded picture ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_each_accepted_format_finds_the_photo_that_it_is_a_copy_of(api, picture, kind):
    data, photo_id = picture
    body = check_page(api.upload(encoded(data, kind)))
    assert body["data"][0]["photo_id"] == photo_id
    for photo in body["data"]:
        check_photo(photo)


def test_the_response_is_that_of_a_text_search(api, picture):
    body = check_page(api.upload(picture[0], per_page=3))
    assert body["pagination"]["per_page"] == len(body["data"]) == 3
    assert body["pagination"]["has_more"]


def test_a_page_has_20_photos_unless_told_otherwise(api, picture):
    assert len(ids_of(api.upload(picture[0]))) == 20


def test_scores_never_increase(api, picture):
    page = check_page(api.upload(picture[0], per_page=100))
    scores = [photo["relevance_score"] for photo in page["data"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("photo.txt", "text/plain"),
        ("photo", "application/octet-stream"),
        ("../../photo.png", "image/gif"),
        ("photo.exe", "image/svg+xml"),
        ("фото.jpg", "image/jpeg"),
    ],
)
def test_a_picture_is_judged_by_its_content_not_its_name(api, picture, file, kind):
    assert ids_of(api.upload(picture[0], file=file, kind=kind))[0] == picture[1]


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("JPEG", "CMYK"), ("JPEG", "L"), ("PNG", "RGBA"), ("PNG", "P"), ("PNG", "1"), ("PNG", "I;16"),
     ("PNG", "LA"), ("WEBP", "RGBA")],
)  # fmt: skip
def test_a_picture_of_any_mode_is_accepted(api, picture, kind, mode):
    stream = io.BytesIO()
    shown = small(picture[0]).convert("L" if mode == "I;16" else mode)
    shown.convert(mode).save(stream, format=kind)
    assert len(ids_of(api.upload(stream.getvalue()))) == 20


def test_a_picture_turned_by_exif_is_seen_as_it_is_displayed(api, picture):
    exif = Image.Exif()
    exif[0x0112] = 8  # displayed turned by 90 degrees against the clock
    stream = io.BytesIO()
    turned = small(picture[0]).transpose(Image.Transpose.ROTATE_270)
    turned.save(stream, format="JPEG", exif=exif)
    assert ids_of(api.upload(stream.getvalue()))[0] == picture[1]


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_of_an_animation_the_first_frame_counts(api, picture, kind):
    stream = io.BytesIO()
    first = small(picture[0])
    black = Image.new("RGB", first.size)
    first.save(stream, format=kind, save_all=True, append_images=[black, black], duration=50)
    assert ids_of(api.upload(stream.getvalue()))[0] == picture[1]


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "BMP", "ICO", "PPM"])
def test_a_picture_of_another_format_is_415(api, picture, kind):
    check_failure(api.upload(encoded(picture[0], kind)), 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    "data",
    [b"not a picture", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b"\0" * 100,
     b"<html></html>", b"GIF89a", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBP"],
)  # fmt: skip
def test_a_file_that_is_no_picture_is_refused(api, data):
    check_refused(api.upload(data))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_a_damaged_picture_is_refused(api, picture, share):
    whole = encoded(picture[0], "PNG")
    check_refused(api.upload(whole[: int(len(whole) * share)]))


def test_a_picture_of_too_many_bytes_is_413(api):
    check_failure(api.upload(b"\xff\xd8\xff\xe0" + b"\0" * (21 * 2**20)), 413, "PAYLOAD_TOO_LARGE")


def test_a_picture_of_almost_too_many_bytes_is_accepted(api, picture):
    assert ids_of(api.upload(picture[0] + b"\0" * (19 * 2**20)))[0] == picture[1]


def test_a_part_without_bytes_and_a_part_of_another_name_are_invalid(api, picture):
    check_invalid(api.upload(b""), "body", "image")
    check_invalid(api.upload(picture[0], name="picture"), "body", "image")


def test_two_pictures_are_invalid(api, picture):
    files = [("image", ("a.jpg", picture[0], "image/jpeg"))] * 2
    check_invalid(api.http.post(SEARCH, files=files))


# -- one picture and no more -------------------------------------------------------------------


def test_neither_picture_nor_photo_id_nor_cursor_is_invalid(api):
    check_invalid(api.http.post(SEARCH))
    check_invalid(api.http.post(SEARCH, params={"q": "sea", "orientation": "square"}))


def test_picture_and_photo_id_at_once_are_invalid(api, picture):
    check_invalid(api.upload(picture[0], photo_id=picture[1]))


@pytest.mark.parametrize("body", [b"{}", b"", b'{"photo_id": "x"}'])
def test_a_json_body_is_no_picture(api, body):
    headers = {"content-type": "application/json"}
    check_refused(api.http.post(SEARCH, content=body, headers=headers))


def test_a_multipart_body_without_end_is_refused(api):
    headers = {"content-type": "multipart/form-data; boundary=x"}
    body = b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\nabc'
    check_refused(api.http.post(SEARCH, content=body, headers=headers))
    headers = {"content-type": "multipart/form-data"}
    check_refused(api.http.post(SEARCH, content=body, headers=headers))
