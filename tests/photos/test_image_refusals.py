"""Pictures that are too large, damaged or none at all are refused by name."""

import os
import struct
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.errors import ImageError
from searchlab.photos.images.decode import FORMATS, analyse, open_rgb
from tests.support.examples import examples
from tests.support.pictures import chunk, corners, encoded, reason


def png(width: int, height: int, *extra: bytes, data: bytes = b"", color: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    rest = chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(extra) + rest


# -- limits


def test_a_file_of_too_many_bytes_is_refused_unread(tmp_path):
    path = tmp_path / "large.jpg"
    with path.open("wb") as file:
        file.truncate(60 * 2**20)
    assert reason(path) == "too many bytes"
    assert reason(bytes(101), max_bytes=100) == "too many bytes"


@pytest.mark.parametrize(
    "content",
    [
        png(60_000, 60_000),
        png(2**31 - 1, 2**31 - 1),
        b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\x08",
        b"RIFF\x40\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff" + bytes(40),
        b"RIFF\x40\0\0\0WEBPVP8L\x20\0\0\0\x2f\xff\xff\xff\x0f" + bytes(40),
        b"RIFF\x40\0\0\0WEBPVP8 \x20\0\0\0\x10\0\0\x9d\x01\x2a\xff\x3f\xff\x3f" + bytes(40),
    ],
)
def test_huge_declared_sizes_are_refused_before_decoding(content):
    assert reason(content) == "too many pixels"


@pytest.mark.parametrize("kind", FORMATS)
def test_the_pixel_limit_is_the_callers(kind):
    content = encoded(corners(), kind)
    assert open_rgb(content, max_pixels=48 * 32).width == 48
    assert reason(content, max_pixels=48 * 32 - 1) == "too many pixels"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_a_size_that_pillow_would_warn_of_is_no_warning(kind, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 48 * 32 - 1)
    assert open_rgb(encoded(corners(), kind)).width == 48


def test_where_the_decoder_itself_would_warn_the_limit_is_lower(monkeypatch):
    framed = bytearray(encoded(corners(), "GIF"))
    framed[6:10] = struct.pack("<HH", 1, 1)  # A small screen around a large frame.
    contents = [encoded(corners(), "GIF"), encoded(corners(), "TIFF"), bytes(framed)]
    assert [open_rgb(content).width for content in contents] == [48, 48, 48]

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 48 * 32 - 1)

    assert [reason(content) for content in contents] == ["too many pixels"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", [b"iCCP", b"zTXt"])
def test_a_chunk_that_unpacks_to_a_flood_is_refused(kind):
    flood = b"name\0\0" + zlib.compress(bytes(64 * 2**20), 9)
    assert reason(png(1, 1, chunk(kind, flood), data=b"\0\1\2\3")) == "damaged"


# -- refusals


def test_nothing_at_all_is_empty(tmp_path):
    path = tmp_path / "empty.jpg"
    path.touch()
    assert reason(path) == "empty"
    assert reason(b"") == "empty"


@pytest.mark.parametrize("content", [b"\0", b"hello", b"\xff\xd8", bytes(1000), b"<html>", b"RIFF"])
def test_other_bytes_are_not_an_image(content):
    assert reason(content) == "not an image"


def test_what_cannot_be_read_is_said_so(tmp_path):
    assert reason(tmp_path) == "unreadable"
    assert reason(tmp_path / "missing.jpg") == "unreadable"
    assert reason(Path("nul\0.jpg")) == "unreadable"
    assert reason(Path("n" * 5000)) == "unreadable"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    assert reason(tmp_path / "pipe.jpg") == "unreadable"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_truncated_file_is_damaged(kind, share):
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (120, 160, 3), dtype=np.uint8))
    content = encoded(image, kind)
    assert reason(content[: int(share * len(content))]) == "damaged"


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(150))
@given(st.sampled_from(FORMATS), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255))))
def test_flipped_bytes_are_a_picture_or_an_image_error(kind, flips):
    content = bytearray(SMALL[kind])
    for place, value in flips:
        content[place % len(content)] = value
    try:
        decoded = open_rgb(bytes(content), max_pixels=10**6)
    except ImageError:
        return
    assert decoded.image.mode == "RGB"
    assert analyse(decoded).color_hex.startswith("#")


SMALL = {kind: encoded(corners(), kind) for kind in FORMATS}


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from([content[:12] for content in SMALL.values()]))
def test_noise_after_a_good_beginning_is_an_image_error(noise, beginning):
    assert reason(beginning + noise) in {"damaged", "too many pixels", "not an image"}


@pytest.mark.filterwarnings("error")
def test_warnings_that_the_caller_made_errors_do_not_matter():
    truncated_exif = b"Exif\0\0II*\0\x08\0\0\0\x09\0\x0f\x01\x02\0\xff\0\0\0\xff\xff\0\0"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        content = encoded(corners(), "JPEG", exif=truncated_exif)
        assert open_rgb(content).image.size == (48, 32)


def test_many_threads_decode_at_once():
    contents = [encoded(Image.new("RGB", (64, 64), (i, i, i)), "PNG") for i in range(40)]
    levels: dict[int, int] = {}

    def decode(first: int) -> None:
        for i in range(first, 40, 4):
            levels[i] = open_rgb(contents[i]).image.getpixel((1, 1))[0]

    threads = [threading.Thread(target=decode, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert levels == {i: i for i in range(40)}
