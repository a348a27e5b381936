"""A picture that a caller has opened is read as its file is."""

import contextlib
import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.errors import ImageError
from searchlab.photos.images.decode import as_rgb, open_rgb
from tests.support.examples import examples
from tests.support.pictures import chunk, corners, encoded


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_an_opened_picture_is_as_upright_as_its_file(tmp_path, kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "turned"
    corners().save(path, kind, exif=exif)
    expected = open_rgb(path).image
    with Image.open(path) as lazily:
        upright = as_rgb(lazily)
    assert upright.size == expected.size == ((48, 32) if orientation < 5 else (32, 48))
    assert upright.tobytes() == expected.tobytes()


@pytest.mark.parametrize("mode", ["L", "CMYK", "P", "RGBA", "I;16", "1"])
def test_an_opened_picture_of_another_mode_is_as_its_file(tmp_path, mode):
    path = tmp_path / "picture.tiff"
    image = Image.new("I;16", (5, 4), 30_000) if mode == "I;16" else corners(6, 4).convert(mode)
    image.save(path)
    with Image.open(path) as lazily:
        assert as_rgb(lazily).tobytes() == open_rgb(path).image.tobytes()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF"])
def test_an_opened_picture_that_is_cut_short_is_damaged(kind, share):
    noise = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    content = encoded(Image.fromarray(noise), kind)
    try:
        lazily = Image.open(io.BytesIO(content[: int(share * len(content))]))
    except OSError:
        pytest.skip("not even opened")
    with lazily, pytest.raises(ImageError) as caught:
        as_rgb(lazily)
    assert caught.value.reason == "damaged"


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(["JPEG", "PNG", "GIF", "TIFF"]), st.randoms(use_true_random=False))
def test_an_opened_picture_with_flipped_bytes_is_a_picture_or_an_image_error(kind, random):
    content = bytearray(encoded(corners(), kind))
    for _ in range(4):
        content[random.randrange(8, len(content))] = random.randrange(256)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lazily = Image.open(io.BytesIO(bytes(content)))
        except Exception:
            return
        if lazily.width * lazily.height > 10**6:
            return
        with contextlib.suppress(ImageError):
            assert as_rgb(lazily).mode == "RGB"


def test_an_opened_png_whose_second_chunk_of_pixels_is_noise_is_damaged():
    rng = np.random.default_rng(0)
    packed = zlib.compress(b"".join(b"\0" + rng.bytes(3 * 64) for _ in range(64)))
    header = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed[:3_000])
    content += chunk(b"o9\x1f\xcd", packed[3_000:])
    with Image.open(io.BytesIO(content)) as lazily, pytest.raises(ImageError) as caught:
        as_rgb(lazily)
    assert caught.value.reason == "damaged"
