"""HEIF, as phones write it: upright, of the right colours, and refused where it would take long."""

import struct
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from searchlab.api.http.decoding import open_upload
from searchlab.errors import ImageError
from searchlab.photos.images.decode import open_rgb
from searchlab.photos.images.headers import excess
from searchlab.photos.images.heif import MAX_DECODED
from tests.support.heif import assembled, coded, grid, heic, ispe
from tests.support.pictures import BLUE, RED, reason


def near(one, other):
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 12


def halves(size=(96, 64)):
    """Red on the left, blue on the right."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, *size))
    return image


def test_a_photo_of_tiles_is_one_picture():
    decoded = open_rgb(heic(halves((300, 200)), tile_size=128))
    assert (decoded.width, decoded.height, decoded.format) == (300, 200, "HEIF")
    assert near(decoded.image.getpixel((20, 100)), RED)
    assert near(decoded.image.getpixel((280, 190)), BLUE)


@pytest.mark.parametrize(
    ("orientation", "red", "size"),
    [
        (1, (5, 32), (96, 64)),
        (3, (90, 32), (96, 64)),
        (6, (32, 5), (64, 96)),
        (8, (32, 90), (64, 96)),
    ],
)
def test_a_photo_is_turned_once(orientation, red, size):
    """By the file's own boxes; what EXIF says of it too is not done a second time."""
    exif = Image.Exif()
    exif[0x112] = orientation
    decoded = open_rgb(heic(halves(), exif=exif.tobytes()))
    assert (decoded.width, decoded.height) == decoded.image.size == size
    assert near(decoded.image.getpixel(red), RED)
    assert near(decoded.image.getpixel((size[0] - 1 - red[0], size[1] - 1 - red[1])), BLUE)


def test_transparency_lies_on_white():
    image = Image.new("RGBA", (64, 64), (*RED, 255))
    image.putpixel((0, 0), (*RED, 0))
    image.paste((*RED, 0), (0, 0, 32, 64))
    decoded = open_rgb(heic(image))
    assert near(decoded.image.getpixel((5, 30)), (255, 255, 255))
    assert near(decoded.image.getpixel((60, 30)), RED)
    assert decoded.alpha is not None


def test_ten_bits_a_colour_are_a_picture():
    ramp = np.linspace(0, 65_535, 64, dtype=np.uint16)
    decoded = open_rgb(heic(Image.fromarray(np.tile(ramp, (64, 1)))))
    assert decoded.image.getpixel((2, 30))[0] < 20
    assert decoded.image.getpixel((62, 30))[0] > 235


def test_the_thumbnail_inside_is_not_taken_for_the_picture():
    small = assembled(
        [(1, b"hvc1", coded(128)[1], [1, 2]), (2, b"hvc1", coded(64)[1], [3, 4])],
        [coded(128)[0], ispe(128, 128), coded(64)[0], ispe(64, 64)],
        [(b"thmb", 2, [1])],
    )
    assert open_rgb(small, min_side=32).image.size == (128, 128)


def test_an_upload_of_it_is_refused_by_name():
    with pytest.raises(ImageError, match="JPEG, PNG, WEBP or AVIF, got HEIF; convert it") as caught:
        open_upload(heic(halves()), side=64)
    assert caught.value.reason == "unsupported format"


# -- hostile files ----------------------------------------------------------------------------

PLAIN = [(1, b"hvc1", coded(64)[1], [1, 2])]
OF_64 = [coded(64)[0], ispe(64, 64)]


def tiled(n_tiles, *, canvas=100, side=4096):
    """A picture of `n_tiles` uses of one tile that says it is as large as `side`."""
    items = [(1, b"grid", grid(4, 4, canvas, canvas), [3]), (2, b"hvc1", coded(64)[1], [1, 2])]
    properties = [coded(64)[0], ispe(side, side), ispe(canvas, canvas)]
    return assembled(items, properties, [(b"dimg", 1, [2] * n_tiles)])


def nested(depth):
    """A picture that is made of itself twice, so many times."""
    items = [(n, b"grid", grid(1, 2, 64, 64 + n), [2]) for n in range(1, depth)]
    items.append((depth, b"hvc1", coded(64)[1], [1, 2]))
    links = [(b"dimg", n, [n + 1, n + 1]) for n in range(1, depth)]
    return assembled(items, OF_64, links)


def described(n_items, n_bytes, *, apart=False):
    """So many pictures with the same block of metadata, or one with as many that share bytes."""
    rest = range(2, n_items)
    if apart:
        items = [*PLAIN, *((n, b"Exif", bytes(n_bytes), []) for n in rest)]
        return assembled(items, OF_64, [(b"cdsc", n, [1]) for n in rest])
    pictures = [(n, b"hvc1", coded(64)[1] + bytes([n]), [1, 2]) for n in rest]
    items = [*PLAIN, *pictures, (999, b"Exif", bytes(n_bytes), [])]
    return assembled(items, OF_64, [(b"cdsc", 999, [1, *rest])])


def profiled(n_items, n_bytes):
    """So many pictures that share one colour profile."""
    colr = struct.pack(">I", 12 + n_bytes) + b"colrprof" + bytes(n_bytes)
    items = [(n, b"hvc1", coded(64)[1] + bytes([n]), [1, 2, 3]) for n in range(1, n_items)]
    return assembled(items, [*OF_64, colr])


def test_what_is_put_together_by_hand_is_a_picture():
    assert open_rgb(assembled(PLAIN, OF_64)).image.size == (64, 64)
    tiles = [(1, b"grid", grid(2, 2, 128, 128), [3]), (2, b"hvc1", coded(64)[1], [1, 2])]
    content = assembled(tiles, [*OF_64, ispe(128, 128)], [(b"dimg", 1, [2] * 4)])
    assert open_rgb(content).image.size == (128, 128)


@pytest.mark.parametrize(
    "content",
    [
        tiled(1 + MAX_DECODED // 4096**2),
        nested(12),
        described(60, 1_000_000),
        described(60, 1_000, apart=True),
        profiled(60, 1_000_000),
        assembled(PLAIN, OF_64) + assembled(PLAIN, OF_64),
    ],
)
def test_what_would_take_long_or_much_memory_is_refused_before_it_is_decoded(content):
    tracemalloc.start()
    assert reason(content) == "too complex"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(content) + 1_000_000


def test_a_picture_that_is_a_part_of_itself_is_refused():
    items = [(1, b"grid", grid(1, 2, 64, 64), [2]), (2, b"grid", grid(1, 2, 64, 65), [2])]
    content = assembled(items, OF_64, [(b"dimg", 1, [2, 2]), (b"dimg", 2, [1, 1])])
    assert reason(content) == "too complex"


@pytest.mark.slow
def test_what_phones_write_is_not_too_complex():
    photo = heic(halves((2_000, 1_500)), tile_size=256, thumbnails=[320])
    assert excess(photo, "HEIF") is None


@pytest.mark.parametrize("sides", [(8, 8), (30_000, 30_000), (2**32 - 1, 2**32 - 1)])
def test_a_size_that_is_not_true_is_refused(sides):
    content = assembled([(1, b"hvc1", coded(512)[1], [1, 2])], [coded(512)[0], ispe(*sides)])
    assert reason(content) in {"too many pixels", "damaged", "too complex"}


def test_the_largest_picture_is_smaller_than_that_of_other_formats():
    huge = 12_000
    items = [(1, b"grid", grid(1, 1, huge, huge), [3]), (2, b"hvc1", coded(64)[1], [1, 2])]
    content = assembled(items, [*OF_64, ispe(huge, huge)], [(b"dimg", 1, [2])])
    assert reason(content) == "too many pixels"
