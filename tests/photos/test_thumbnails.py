"""Pictures read smaller than they are, and thumbnails made of them."""

import io

import pytest
from PIL import Image

from searchlab.errors import ImageError, InputError
from searchlab.photos.images.decode import as_rgb, open_rgb, shrink, thumbnail
from tests.support.pictures import BLUE, GREEN, RED, WHITE, at_corners, corners, encoded


def test_a_jpeg_may_be_decoded_smaller_but_reports_its_full_size():
    exif = Image.Exif()
    exif[0x0112] = 6
    content = encoded(corners(1600, 1200), "JPEG", exif=exif)

    decoded = open_rgb(content, min_side=224)

    assert (decoded.width, decoded.height) == (1200, 1600)
    assert decoded.image.size == (300, 400)


@pytest.mark.parametrize("side", [1, 150, 300, 301, 1200, 5000])
def test_the_short_side_never_falls_below_what_is_asked(side):
    decoded = open_rgb(encoded(corners(1600, 1200), "JPEG"), min_side=side)
    assert min(decoded.image.size) >= min(side, 1200)


def test_shrink_sets_the_short_side_and_never_enlarges():
    assert shrink(corners(400, 100), 50).size == (200, 50)
    assert shrink(corners(100, 400), 50).size == (50, 200)
    assert shrink(corners(400, 100), 100).size == (400, 100)
    assert shrink(corners(40, 10), 224).size == (40, 10)
    assert shrink(corners(40, 10), 0).size == (40, 10)


def test_a_thumbnail_is_a_small_webp():
    with Image.open(io.BytesIO(thumbnail(corners(400, 200), 100))) as small:
        assert (small.format, small.size) == ("WEBP", (100, 50))


def test_a_thumbnail_is_never_enlarged():
    with Image.open(io.BytesIO(thumbnail(corners(40, 20), 100))) as small:
        assert small.size == (40, 20)


def test_a_thumbnail_of_a_thread_is_still_a_pixel_high():
    with Image.open(io.BytesIO(thumbnail(Image.new("RGB", (5000, 2)), 100))) as small:
        assert small.size == (100, 1)


@pytest.mark.parametrize("side", [0, -1, 16_384])
def test_an_impossible_thumbnail_is_refused(side):
    with pytest.raises(InputError, match="side must be"):
        thumbnail(corners(), side)


def test_as_rgb_takes_a_picture_a_path_or_bytes(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(encoded(corners(), "PNG"))
    for source in (path, str(path), path.read_bytes(), corners(), corners().convert("RGBA")):
        assert at_corners(as_rgb(source)) == [RED, GREEN, BLUE, WHITE]
    with pytest.raises(ImageError):
        as_rgb(Image.new("RGB", (0, 3)))
