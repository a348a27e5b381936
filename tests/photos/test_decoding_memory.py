"""What a picture takes to decode is known before and bounded; large ones are made smaller early."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from searchlab.photos.images.decode import analyse, open_rgb
from searchlab.photos.images.headers import sniff
from searchlab.photos.images.memory import (
    MAX_DECODING_BYTES,
    WHOLE_PIXELS,
    decoding_bytes,
    reduction,
)
from tests.support.hostile_pictures import KINDS, plain, png
from tests.support.pictures import encoded, reason

pytestmark = pytest.mark.slow

SIDE = 400


def flat(width, height, color=2):
    """A PNG of one shade, whatever its size, in few bytes."""
    return png(width, height, color=color, packed=zlib.compress(b""))


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 2_000))
def test_a_reduced_picture_keeps_the_side_that_is_needed_and_is_no_smaller_than_it_must(w, h, side):
    factor = reduction(w, h, side)
    if factor > 1:
        assert min(w, h) // factor >= side
        assert w * h > WHOLE_PIXELS * (factor - 1) ** 2
    assert w * h <= WHOLE_PIXELS * factor**2 or min(w, h) // (factor + 1) < side


@pytest.mark.parametrize("kind", [*KINDS, "GIF", "TIFF", "HEIF"])
def test_every_format_says_what_it_takes(kind):
    small, large = (encoded(Image.new("RGB", size), kind) for size in ((64, 48), (640, 480)))
    assert 64 * 48 * 4 <= decoding_bytes(small, kind) < decoding_bytes(large, kind) < 2**24
    assert decoding_bytes(large[:9], kind) == 0


@given(st.binary(max_size=200), st.sampled_from([plain(kind) for kind in KINDS]))
def test_damage_is_left_to_the_decoder(noise, content):
    changed = content[:30] + noise + content[30:]
    assert decoding_bytes(changed, sniff(content), SIDE) >= 0


@pytest.mark.parametrize(
    "content",
    [
        flat(13_300, 13_300),
        flat(SIDE, 400_000),  # cannot be made smaller: its short side is needed
        flat(SIDE, 300_000, color=6),
        encoded(Image.new("RGB", (13_300, 300)), "JPEG")[:2]
        + b"\xff\xc2\0\x11\x08"
        + struct.pack(">HH", 12_000, 12_000)
        + b"\3\1\x11\0\2\x11\1\3\x11\1\xff\xda\0\x0c\3",
    ],
    ids=["PNG", "long", "long and opaque in parts", "progressive JPEG"],
)
def test_what_needs_more_memory_than_one_picture_may_take_is_known(content):
    assert decoding_bytes(content, sniff(content), SIDE) > MAX_DECODING_BYTES
    if sniff(content) == "PNG":
        assert reason(content, min_side=SIDE) == "too many pixels"


def test_a_jpeg_of_one_scan_flows_through_and_one_of_several_is_held():
    photo = Image.new("RGB", (4_000, 3_000))
    flows, held = (encoded(photo, "JPEG", progressive=progressive) for progressive in (False, True))
    assert decoding_bytes(flows, "JPEG", SIDE) < 4_000 * 3_000
    assert decoding_bytes(held, "JPEG", SIDE) >= 3 * 4_000 * 3_000


def test_a_jpeg_of_many_scans_may_have_few_pixels_only():
    script = encoded(Image.new("L", (8, 8)), "JPEG", progressive=True)
    at = script.index(b"\xff\xc2") + 5
    content = script[:at] + struct.pack(">HH", 13_000, 13_000) + script[at + 4 :]
    scan = script[script.rindex(b"\xff\xda") : -2]
    assert reason(content[:-2] + scan * 30 + b"\xff\xd9", min_side=SIDE) == "too complex"


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "LA", "I;16"])
def test_a_large_picture_looks_the_same_as_a_small_one(mode):
    side = 4_200  # more than are worked on whole
    halves = np.zeros((side, side, 4), dtype=np.uint8)
    halves[: side // 3] = (200, 40, 40, 255)
    halves[side // 3 :] = (40, 60, 200, 255)
    picture = Image.fromarray(halves)
    picture = picture.convert("L").convert(mode) if mode == "I;16" else picture.convert(mode)
    small = picture.resize((600, 600), Image.Resampling.NEAREST)
    large, expected = (
        open_rgb(encoded(one, "PNG", compress_level=1), min_side=SIDE) for one in (picture, small)
    )
    assert (large.width, large.height) == (side, side)
    assert max(large.image.size) == 2_100
    assert analyse(large).color_hex == analyse(expected).color_hex
