"""Hostile uploads: each is a clean refusal or a right picture, in bounded memory and time."""

import io
import json
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.api.http.decoding import open_upload
from searchlab.errors import ImageError
from searchlab.photos.images.headers import excess
from tests.support.examples import examples
from tests.support.hostile_pictures import (
    KINDS,
    chunk,
    exif_block,
    jpeg,
    look,
    plain,
    png,
    riff,
    segment,
)
from tests.support.pictures import encoded


def many_scans(n_scans, width=64, height=64):
    """A progressive JPEG of gray blocks that is gone over `n_scans` times."""
    runs = -(-(-(-width // 8) * -(-height // 8)) // 32_767)
    bits = ("0" + "1" * 13 + "0") * runs
    bits += "1" * (-len(bits) % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    first = bytes(-(-(-(-width // 8) * -(-height // 8)) // 8))
    return b"".join(
        [
            b"\xff\xd8",
            segment(0xDB, b"\0" + b"\1" * 64),
            segment(0xC2, b"\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\0"),
            segment(0xC4, b"\x10\1" + bytes(15) + b"\xe0"),
            segment(0xC4, b"\0\1" + bytes(15) + b"\0"),
            segment(0xDA, b"\1\1\0\0\0\0") + first,
            (segment(0xDA, b"\1\1\0\1\x3f\0") + data) * (n_scans - 1),
            b"\xff\xd9",
        ]
    )


def zeros(n_bytes):
    packer = zlib.compressobj(1)
    block = bytes(2**20)
    packed = [packer.compress(block) for _ in range(n_bytes // 2**20)]
    return b"".join([*packed, packer.compress(bytes(n_bytes % 2**20)), packer.flush()])


def box(kind, data):
    return struct.pack(">I", len(data) + 8) + kind + data


def avif_with(n_items, *, where=b""):
    """An AVIF whose list of items names `n_items` of them."""
    content = plain("AVIF")
    at = content.index(b"meta") - 4
    size = struct.unpack_from(">I", content, at)[0]
    inner = content[at + 12 : at + size]
    old = inner.index(b"iloc") - 4
    old_size = struct.unpack_from(">I", inner, old)[0]
    items = b"".join(struct.pack(">IHHH", number, 0, 0, 0) for number in range(1, n_items + 1))
    listed = box(b"iloc", b"\x02\0\0\0\0\0" + struct.pack(">I", n_items) + items)
    meta = box(b"meta", bytes(4) + inner[:old] + listed + inner[old + old_size :])
    return content[:at] + (box(where, meta) if where else meta) + content[at + size :]


# -- bombs ------------------------------------------------------------------------------------

WEBP_CANVAS = riff((b"VP8X", b"\0\0\0\0" + b"\xff\x1f\0" * 2), (b"VP8L", bytes(20)))


@pytest.mark.parametrize(
    "content",
    [
        png(2**31 - 1, 2**31 - 1, data=b""),
        png(40_000, 40_000, data=b""),
        png(6_400, 6_400, data=b"", depth=16, color=6),
        jpeg(rest=plain("JPEG").replace(struct.pack(">HH", 48, 64), b"\xff\xff\xff\xff", 1)),
        many_scans(1, 12_000, 12_000),
        WEBP_CANVAS,
        riff((b"VP8L", b"\x2f\xff\xff\xff\x0f" + bytes(30))),
        riff((b"VP8 ", b"\x10\0\0\x9d\x01\x2a\xff\x3f\xff\x3f" + bytes(30))),
    ],
    ids=range(8),
)
def test_a_picture_that_says_it_is_huge_is_too_large(content):
    assert look(content) == 413


def test_an_avif_that_says_it_is_huge_is_refused():
    content = bytearray(plain("AVIF"))
    at = content.index(b"ispe") + 8
    content[at : at + 8] = struct.pack(">II", 30_000, 30_000)
    assert look(content) in {413, 422}


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        jpeg(segment(0xFE) * 70_000),
        jpeg(b"\xff" * 70_000),
        jpeg(b"\xff\0" * 70_000),
        jpeg(b"\xff\xe0\0\2" + bytes(70_000)),
        many_scans(101),
        png(1, 1, chunk(b"teSt") * 70_000),
        png(1, 1, chunk(b"IDAT") * 70_000),
        avif_with(7_000),
        avif_with(7_000, where=b"moov"),
        avif_with(7_000) + box(b"ipco", bytes(80_000)) + bytes(5),
        plain("AVIF") + box(b"free", b"") * 70_000,
    ],
    ids=range(11),
)
def test_a_file_of_countless_parts_is_refused_before_it_is_decoded(content):
    with pytest.raises(ImageError) as caught:
        open_upload(content, side=400)
    assert caught.value.reason == "too complex"
    assert look(content) == 422


@pytest.mark.slow
def test_files_as_encoders_write_them_are_no_flood():
    noise = Image.effect_noise((640, 480), 90)
    small_parts = encoded(noise, "PNG")
    at = small_parts.index(b"IDAT") - 4
    size = struct.unpack_from(">I", small_parts, at)[0]
    data = small_parts[at + 8 : at + 8 + size]
    parts = [chunk(b"IDAT", data[start : start + 64]) for start in range(0, size, 64)]
    thumbnail = segment(0xE1, b"Exif\0\0" + exif_block() + plain("JPEG", (80, 60)))
    contents = [
        small_parts[:at] + b"".join(parts) + small_parts[at + 12 + size :],
        encoded(noise, "JPEG", progressive=True),
        encoded(noise, "JPEG", restart_marker_blocks=1),
        jpeg(thumbnail, rest=encoded(noise, "JPEG", progressive=True)),
        encoded(noise, "AVIF", icc_profile=bytes(200_000), exif=exif_block()),
    ]
    assert [look(content) for content in contents] == [(640, 480)] * 5
    assert look(many_scans(100)) == (64, 64)


@pytest.mark.slow
def test_data_beyond_the_picture_is_not_unpacked():
    assert look(png(1, 1, packed=zeros(200 * 2**20))) == (1, 1)


@pytest.mark.parametrize("kind", [b"zTXt", b"iCCP"])
def test_a_text_that_unpacks_to_a_flood_is_damaged(kind):
    assert look(png(1, 1, chunk(kind, b"name\0\0" + zeros(64 * 2**20)))) == 422


def test_many_texts_that_unpack_to_a_flood_are_damaged():
    text = chunk(b"zTXt", b"name\0\0" + zeros(2**20 - 1))
    assert look(png(1, 1, text * 100)) == 422


# -- cut short, and made of noise -------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_cut_at_every_length_it_is_refused_or_whole(kind):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8))
    content = encoded(noise, kind)
    outcomes = [look(content[:length]) for length in range(1, len(content) + 1)]
    assert set(outcomes) <= {415, 422, (8, 6)}
    assert outcomes[-1] == (8, 6)
    assert outcomes[len(outcomes) // 2] == 422


STARTS = {kind: plain(kind)[:40] for kind in KINDS}


@settings(deadline=None, max_examples=examples(150))
@given(st.binary(max_size=400))
@example(b"")
@example(b"\xff\xd8\xff")
def test_noise_is_refused(noise):
    assert look(noise) in {415, 422}


@settings(deadline=None, max_examples=examples(200))
@given(st.sampled_from(KINDS), st.integers(3, 40), st.binary(max_size=400))
def test_noise_after_a_good_beginning_is_refused_or_a_picture(kind, length, noise):
    outcome = look(STARTS[kind][:length] + noise)
    assert outcome in {413, 415, 422} or min(outcome) >= 1


@settings(deadline=None, max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(KINDS),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, 10**6),
    st.binary(max_size=20),
)
def test_a_changed_file_is_refused_or_a_picture(kind, changes, place, inserted):
    content = bytearray(plain(kind, (16, 12)))
    for at, value in changes:
        content[at % len(content)] = value
    at = place % len(content)
    outcome = look(content[:at] + inserted + content[at:])
    assert outcome in {413, 415, 422} or min(outcome) >= 1


# -- files of two kinds -----------------------------------------------------------------------


def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("evil.js", "alert(1)")
    return buffer.getvalue()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tail", [zipped(), b"<script>alert(1)</script>", b"%PDF-1.7"])
def test_what_is_put_behind_a_picture_does_not_matter(kind, tail):
    assert look(plain(kind) + tail) in {(64, 48), 422}
    if kind in {"JPEG", "PNG"}:
        assert look(plain(kind) + tail) == (64, 48)


def test_what_is_written_into_a_comment_does_not_matter():
    script = b"<script>alert(1)</script>"
    assert look(jpeg(segment(0xFE, script))) == (64, 48)
    assert look(png(4, 3, chunk(b"tEXt", b"Comment\0" + script))) == (4, 3)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (plain("GIF"), 415),
        (b"GIF89a/*" + bytes(30) + b"*/=alert(1)", 415),
        (b"\xff\xd8\xff\xe0<html><script>alert(1)</script></html>", 422),
        (b"\x89PNG\r\n\x1a\n<html>", 422),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", 415),
        (b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><svg/>", 415),
        (b"%!PS\n(/etc/passwd) run", 415),
        (b"push graphic-context\nimage over 0,0 0,0 'url(http://a.test)'", 415),
        (zipped(), 415),
        (b"RIFF\x24\0\0\0WAVEfmt ", 415),
        (b"RIFF\x04\0\0\0WEBP", 422),
        (box(b"ftyp", b"heic\0\0\0\0mif1heic"), 415),
        (box(b"ftyp", b"mp42\0\0\0\0mp42isom"), 415),
        (box(b"ftyp", b"avif\0\0\0\0avifmif1"), 422),
        (b"\0\0\0\xffftypavif", 422),
        (b"\xef\xbb\xbf" + plain("PNG"), 415),
        (b"\n" + plain("JPEG"), 415),
    ],
    ids=range(17),
)
def test_what_only_pretends_to_be_a_picture_is_refused(content, status):
    assert look(content) == status


# -- memory and time --------------------------------------------------------------------------

MEASURE = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (90, 90))
import test_hostile_images as made
from tests.support.hostile_pictures import ENDLESS, animated_webp
made.look(made.plain("PNG"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = [made.look(content()) for content in (
    lambda: made.png(4_000, 4_000, color=6, packed=made.zeros(4_000 * 16_001)),
    lambda: made.png(2, 2, packed=made.zeros(300 * 2**20)),
    lambda: made.many_scans(100, 3_000, 3_000),
    lambda: made.jpeg(made.segment(0xE1, b"Exif\\0\\0" + ENDLESS)),
    lambda: animated_webp(10_000),
)]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([found, (after - before) // 1024]))
"""


@pytest.mark.slow
def test_the_worst_of_them_need_memory_for_their_pixels_and_no_more():
    place = str(__file__).rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, place], capture_output=True, text=True, check=True
    )
    sizes, mib = json.loads(done.stdout)
    assert sizes[0] == [4_000, 4_000]
    assert sizes[-1] == [4, 3]
    assert mib < 512  # 16 megapixels with opacity are looked at in about 310


def test_only_the_frame_of_a_file_is_looked_at():
    assert excess(b"", "JPEG") is None
    assert excess(b"\xff\xd8\xff", "JPEG") is None
    assert excess(b"\x89PNG\r\n\x1a\n\xff\xff\xff\xff", "PNG") is None
    assert excess(b"\0\0\0\1ftyp", "AVIF") is None
    assert excess(b"RIFF", "WEBP") is None
