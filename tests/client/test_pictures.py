"""Pictures that the clients upload: bytes, files and pictures in memory."""

import io

import pytest
from PIL import Image

from tests.support import client_world
from tests.support.client_world import Server, page, query_of
from tests.support.pictures import swapping_profile

connect = client_world.connect
slept = client_world.slept


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


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK", "YCbCr", "RGBA", "P", "1", "I;16"])
def test_a_pil_image_of_any_mode_is_encoded(connect, mode):
    server = Server(page())
    connect(server).search_by_image(Image.new(mode, (6, 4)))
    with Image.open(io.BytesIO(uploaded(server))) as sent:
        assert (sent.format, sent.mode, sent.size) == ("JPEG", "RGB", (6, 4))


def test_a_pil_image_is_sent_as_the_library_would_see_it(connect):
    """Grey of 16 bits is not clipped, and colours are those of the profile."""
    server = Server(page())
    client = connect(server)
    client.search_by_image(Image.new("I;16", (8, 8), 32_768))
    with Image.open(io.BytesIO(uploaded(server))) as sent:
        assert abs(sent.getpixel((4, 4))[0] - 128) < 4
    stream = io.BytesIO()
    Image.new("RGB", (16, 16), (250, 5, 5)).save(stream, "PNG", icc_profile=swapping_profile())
    client.search_by_image(Image.open(stream))
    with Image.open(io.BytesIO(uploaded(server))) as sent:
        red, _, blue = sent.getpixel((8, 8))
    assert blue > 200 > 60 > red


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
