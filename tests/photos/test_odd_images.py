"""Pictures stored in odd ways: of odd colours, metadata, sizes and frames."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms

from searchlab.api.http.decoding import open_upload
from searchlab.photos.images.decode import open_rgb
from tests.support.hostile_pictures import (
    ENDLESS,
    KINDS,
    RED,
    animated_webp,
    chunk,
    exif_block,
    jpeg,
    look,
    plain,
    png,
    riff,
    segment,
    three,
)
from tests.support.pictures import encoded


def animated_png(n_frames):
    def control(number):
        return chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, 4, 3, 0, 0, 1, 25, 0, 0))

    packed = zlib.compress(bytes(13 * 3))
    frames = [
        control(2 * number - 1) + chunk(b"fdAT", struct.pack(">I", 2 * number) + packed)
        for number in range(1, n_frames)
    ]
    content = png(4, 3, chunk(b"acTL", struct.pack(">II", n_frames, 0)), control(0), packed=packed)
    end = len(content) - 12
    return content[:end] + b"".join(frames) + content[end:]


# -- colours that are stored in odd ways ------------------------------------------------------


def adobe(transform):
    return segment(0xEE, b"Adobe\0\x64\0\0\0\0" + bytes([transform]))


@pytest.mark.parametrize("marker", [adobe(0), adobe(1), adobe(2), adobe(9), b""])
def test_any_adobe_marker_gives_some_picture(marker):
    stored = encoded(Image.new("CMYK", (64, 48), (0, 255, 255, 0)), "JPEG")
    at = stored.index(b"\xff\xee")
    bare = stored[:at] + stored[at + 2 + struct.unpack_from(">H", stored, at + 2)[0] :]
    assert look(jpeg(marker, rest=bare)) == (64, 48)
    assert look(jpeg(marker)) == (64, 48)


def test_half_an_adobe_marker_is_damage():
    assert look(jpeg(segment(0xEE, b"Adobe"))) == 422


@pytest.mark.parametrize(
    ("image", "options", "expected"),
    [
        (Image.new("CMYK", (9, 9), (0, 255, 255, 0)), {}, (255, 0, 0)),
        (Image.new("L", (9, 9), 77), {}, (77, 77, 77)),
    ],
)
def test_jpegs_of_other_colour_models_are_right(image, options, expected):
    pixel = open_upload(encoded(image, "JPEG", quality=95, **options), side=9).getpixel((4, 4))
    assert max(abs(a - b) for a, b in zip(pixel, expected, strict=True)) <= 4


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (png(1, 1, depth=16, color=0, data=b"\0\x80\x80"), (128, 128, 128)),
        (png(1, 1, depth=16, color=2, data=b"\0\xff\xff\0\0\x80\0"), (255, 0, 128)),
        (png(1, 1, depth=16, color=6, data=b"\0" + b"\xff\xff\0\0\0\0\0\0"), (255, 255, 255)),
        (png(8, 1, depth=1, color=0, data=b"\0\xff"), (255, 255, 255)),
        (png(1, 1, chunk(b"PLTE", bytes(RED)), color=3, data=b"\0\0"), RED),
        (
            png(1, 1, chunk(b"PLTE", bytes(RED)), chunk(b"tRNS", b"\0"), color=3, data=b"\0\0"),
            (255, 255, 255),
        ),
        (png(1, 1, color=6, data=b"\0" + bytes(RED) + b"\xff"), RED),
    ],
    ids=range(7),
)
def test_pngs_of_any_depth_and_palette_are_right(content, expected):
    assert open_upload(content, side=1).getpixel((0, 0)) == expected


@pytest.mark.parametrize(
    "content",
    [
        png(2, 1, chunk(b"PLTE", bytes(RED)), color=3, data=b"\0\xff\xfe"),
        png(1, 1, chunk(b"PLTE", bytes(RED)), chunk(b"tRNS", bytes(300)), color=3, data=b"\0\0"),
        png(1, 1, chunk(b"tRNS", b"\0"), data=b"\0\0\0\0"),
        png(1, 1, chunk(b"PLTE", b"\0"), color=3, data=b"\0\0"),
        png(1, 1, chunk(b"gAMA", bytes(4)), chunk(b"cHRM", bytes(32)), data=b"\0\0\0\0"),
        png(1, 1, chunk(b"sBIT", bytes(99)), chunk(b"pHYs", b""), data=b"\0\0\0\0"),
    ],
    ids=range(6),
)
def test_palettes_and_chunks_that_do_not_fit_are_refused_or_passed_over(content):
    assert look(content) in {422, (1, 1), (2, 1)}


# -- metadata ---------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", KINDS)
def test_every_orientation_is_heeded(kind, orientation):
    image = Image.new("RGB", (80, 40), "white")
    exif = Image.Exif()
    exif[0x0112] = orientation
    expected = (80, 40) if orientation < 5 else (40, 80)
    assert look(encoded(image, kind, exif=exif)) == expected


@pytest.mark.parametrize(
    "exif",
    [
        exif_block((0x0112, 3, 1, 0)),
        exif_block((0x0112, 3, 1, 9)),
        exif_block((0x0112, 3, 1, 65_535)),
        exif_block((0x0112, 3, 2**31, 6)),
        exif_block((0x0112, 2, 1, 6)),
        exif_block((0x0112, 99, 1, 6)),
        exif_block((0x0112, 3, 1, 6), start=2**31),
        exif_block(start=0),
        exif_block((0x8769, 4, 1, 8), (0x014A, 4, 1, 8)),
        b"II*\0",
        b"MM\0*\0\0\0\x08\xff\xff",
        b"\0" * 30,
        b"",
    ],
    ids=range(13),
)
@pytest.mark.parametrize("kind", KINDS)
def test_nonsense_about_the_orientation_is_passed_over(kind, exif):
    content = {
        "JPEG": jpeg(segment(0xE1, b"Exif\0\0" + exif)),
        "PNG": png(64, 48, chunk(b"eXIf", exif)),
        "WEBP": plain("WEBP", exif=exif),
        "AVIF": plain("AVIF"),
    }[kind]
    assert look(content) in {(64, 48), (48, 64)}


@pytest.mark.parametrize(
    "content",
    [
        jpeg(segment(0xE1, b"Exif\0\0" + ENDLESS)),
        jpeg(*[segment(0xE1, b"Exif\0\0" + bytes(65_000))] * 100),
        jpeg(*[segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + b"<" * 60_000)] * 100),
        jpeg(*[segment(0xFE, b"c" * 65_000)] * 100),
        jpeg(*[segment(0xED, b"Photoshop 3.0\0" + b"8BIM" * 16_000)] * 20),
        jpeg(*[segment(0xDB, (b"\0" + bytes(64)) * 1_000)] * 20),
        jpeg(
            *[
                segment(0xE2, b"ICC_PROFILE\0" + bytes([number, 200]) + bytes(65_000))
                for number in range(1, 201)
            ]
        ),
        png(64, 48, chunk(b"eXIf", ENDLESS + bytes(5 * 2**20))),
        png(64, 48, chunk(b"tEXt", b"XML:com.adobe.xmp\0" + b"<a>" * 10**6)),
        plain("WEBP", exif=ENDLESS + bytes(5 * 2**20), xmp=b"<a>" * 10**6),
        plain("WEBP", icc_profile=bytes(5 * 2**20)),
    ],
    ids=range(11),
)
def test_huge_metadata_does_not_matter(content):
    assert look(content) == (64, 48)


def test_profiles_that_lie_are_refused_or_passed_over():
    good = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    rng = np.random.default_rng(0)
    for _ in range(60):
        profile = bytearray(good.replace("sRGB".encode("utf-16-be"), "SWAP".encode("utf-16-be")))
        for at in rng.integers(0, len(profile), 8):
            profile[at] = rng.integers(256)
        assert look(plain("JPEG", icc_profile=bytes(profile))) == (64, 48)


def test_a_linear_profile_is_not_taken_for_srgb_by_its_name():
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    at = profile.index(b"para")
    profile[at + 8 : at + 10] = bytes(2)  # a plain power
    profile[at + 12 : at + 16] = struct.pack(">I", 1 << 16)  # of one
    named = profile.replace(
        "sRGB built-in".encode("utf-16-be"), "Linear sRGB 1".encode("utf-16-be")
    )
    assert named != profile
    dark = io.BytesIO()
    Image.new("RGB", (8, 8), (55, 55, 55)).save(dark, "PNG", icc_profile=bytes(named))
    assert open_rgb(dark.getvalue()).image.getpixel((4, 4)) == pytest.approx((128, 128, 128), abs=2)


# -- odd sizes and many frames ----------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        png(0, 0),
        png(0, 5),
        jpeg(rest=plain("JPEG").replace(struct.pack(">HH", 48, 64), bytes(4), 1)),
        jpeg(rest=plain("JPEG").replace(struct.pack(">HH", 48, 64), b"\0\0\0\x40", 1)),
        riff((b"VP8 ", b"\x10\0\0\x9d\x01\x2a" + bytes(30))),
    ],
    ids=range(5),
)
def test_a_picture_without_any_pixel_is_damaged(content):
    assert look(content) == 422


@pytest.mark.parametrize("size", [(1, 100_000), (100_000, 1), (1, 1)])
def test_a_thread_of_pixels_is_a_picture(size):
    assert look(png(*size)) == size


@pytest.mark.parametrize("content", [animated_webp(10_000), animated_png(10_000)], ids="wp")
def test_of_ten_thousand_frames_the_first_is_looked_at(content):
    assert look(content) == (4, 3)


def test_of_an_animated_avif_the_first_frame_is_looked_at():
    frames = [Image.new("RGB", (16, 12), color) for color in ("red", "green", "blue")]
    content = encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:])
    red, green, _ = open_upload(content, side=1).getpixel((8, 6))
    assert red > 200 > 60 > green


def test_frames_beyond_the_canvas_are_refused_or_passed_over():
    frame = plain("WEBP", (400, 300), lossless=True)[12:]
    place = three(0) + three(0) + three(399) + three(299) + three(40) + b"\0"
    canvas = b"\x02\0\0\0" + three(3) + three(2)
    content = riff((b"VP8X", canvas), (b"ANIM", bytes(6)), (b"ANMF", place + frame))
    assert look(content) in {422, (4, 3)}
