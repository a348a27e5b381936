import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from searchlab.errors import ImageError
from searchlab.photos.images.decode import FORMATS, as_rgb, open_rgb
from tests.support.pictures import (
    BLUE,
    GREEN,
    RED,
    WHITE,
    at_corners,
    chunk,
    corners,
    encoded,
    reason,
    swapping_profile,
)

API_FORMATS = ("JPEG", "PNG", "WEBP", "AVIF")


def near(first: tuple[int, ...], second: tuple[int, ...], slack: int = 12) -> bool:
    return max(abs(a - b) for a, b in zip(first, second, strict=True)) <= slack


# -- formats


@pytest.mark.parametrize("kind", FORMATS)
def test_decodes_each_format_by_its_content(kind, tmp_path):
    path = tmp_path / "misnamed.txt"
    path.write_bytes(encoded(corners(), kind))

    decoded = open_rgb(path)

    assert (decoded.format, decoded.width, decoded.height) == (kind, 48, 32)
    assert decoded.image.mode == "RGB"
    assert decoded.alpha is None
    corner_colours = at_corners(decoded.image)
    assert all(
        near(a, b, 30) for a, b in zip(corner_colours, [RED, GREEN, BLUE, WHITE], strict=True)
    )


@pytest.mark.parametrize("kind", ["GIF", "TIFF"])
def test_a_caller_may_accept_fewer_formats(kind):
    assert reason(encoded(corners(), kind), formats=API_FORMATS) == "unsupported format"


@pytest.mark.parametrize("kind", ["BMP", "ICO", "PDF", "EPS", "JPEG2000"])
def test_other_pictures_are_refused_by_name(kind):
    assert reason(encoded(corners(), kind)) == "unsupported format"


def test_the_message_says_what_is_accepted():
    with pytest.raises(ImageError, match="JPEG, PNG, WEBP or AVIF, got GIF; convert it"):
        open_rgb(encoded(corners(), "GIF"), formats=API_FORMATS)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "AVIF", "TIFF"])
def test_an_animation_gives_its_first_frame(kind):
    frames = [Image.new("RGB", (40, 30), color) for color in (BLUE, RED, GREEN)]
    content = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    assert near(open_rgb(content).image.getpixel((20, 15)), BLUE)


# -- orientation


def turned(orientation: int) -> Image.Image:
    """The picture as a camera stores it whose EXIF says this orientation."""
    back = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    return corners().transpose(back[orientation]) if orientation in back else corners()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "TIFF"])
def test_all_orientations_come_out_upright(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation

    decoded = open_rgb(encoded(turned(orientation), kind, exif=exif))

    assert (decoded.width, decoded.height) == decoded.image.size == (48, 32)
    corner_colours = at_corners(decoded.image)
    assert all(
        near(a, b, 30) for a, b in zip(corner_colours, [RED, GREEN, BLUE, WHITE], strict=True)
    )


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_compressed_tiff_comes_out_upright(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(turned(orientation), "TIFF", exif=exif, compression="tiff_lzw")
    assert at_corners(open_rgb(content).image) == [RED, GREEN, BLUE, WHITE]


def test_the_opacity_turns_with_the_picture():
    image = Image.new("RGBA", (20, 40), (*RED, 255))
    image.paste((0, 0, 0, 0), (0, 0, 20, 20))  # The upper half is transparent.
    exif = Image.Exif()
    exif[0x0112] = 6  # To be turned clockwise: what was above is to the right.

    decoded = open_rgb(encoded(image, "PNG", exif=exif))

    assert decoded.image.size == decoded.alpha.size == (40, 20)
    assert [decoded.alpha.getpixel((x, 10)) for x in (5, 35)] == [255, 0]


@pytest.mark.parametrize("value", [0, 9, 255, 65535])
def test_an_orientation_out_of_range_means_upright(value):
    exif = Image.Exif()
    exif[0x0112] = value
    assert open_rgb(encoded(corners(), "JPEG", exif=exif)).image.size == (48, 32)


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0",
        b"Exif\0\0II*\0",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\x01\x12" * 30,
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x07\0\x01\0\0\0\x06\0\0\0",
        b"Exif\0\0" + bytes(range(256)),
        b"nonsense",
    ],
)
def test_damaged_exif_is_ignored_without_a_warning(exif):
    content = encoded(corners(), "JPEG")
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
    assert open_rgb(content[:2] + segment + content[2:]).image.size == (48, 32)


# -- modes


def test_grayscale_and_black_and_white():
    assert open_rgb(encoded(Image.new("L", (9, 9), 77), "PNG")).image.getpixel((4, 4)) == (77,) * 3
    assert open_rgb(encoded(Image.new("1", (9, 9), 1), "PNG")).image.getpixel((4, 4)) == WHITE


@pytest.mark.parametrize(
    ("level", "expected"), [(0, 0), (257 * 100, 100), (32896, 128), (65535, 255)]
)
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bit_grayscale_is_scaled_not_clipped(kind, level, expected):
    image = Image.fromarray(np.full((8, 8), level, dtype=np.uint16))
    assert open_rgb(encoded(image, kind)).image.getpixel((4, 4)) == (expected,) * 3


def test_16_bit_colour_keeps_its_high_bytes():
    pixel = struct.pack(">HHH", 0x8000, 0xFFFF, 0x0000)
    rows = (b"\0" + pixel * 4) * 4
    header = struct.pack(">IIBBBBB", 4, 4, 16, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    assert open_rgb(b"\x89PNG\r\n\x1a\n" + body).image.getpixel((2, 2)) == (128, 255, 0)


def test_float_and_32_bit_pictures_reach_from_black_to_white():
    ramp = np.linspace(-5, 900, 64, dtype=np.float32).reshape(8, 8)
    for array in (ramp, ramp.astype(np.int32)):
        image = open_rgb(encoded(Image.fromarray(array), "TIFF")).image
        assert image.getpixel((0, 0)) == (0, 0, 0)
        assert image.getpixel((7, 7)) == WHITE


def test_floats_that_are_no_numbers_do_not_break():
    image = Image.fromarray(np.full((4, 4), np.nan, dtype=np.float32))
    assert open_rgb(encoded(image, "TIFF")).image.size == (4, 4)


def without_adobe_marker(content: bytes) -> bytes:
    at = content.index(b"\xff\xee")
    return content[:at] + content[at + 2 + struct.unpack_from(">H", content, at + 2)[0] :]


def test_cmyk_as_adobe_stores_it_and_plain():
    red_ink = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    content = encoded(red_ink, "JPEG", quality=95)
    assert near(open_rgb(content).image.getpixel((8, 8)), (255, 0, 0))

    # The same numbers without Adobe's marker are not inverted: much cyan and black.
    plain = open_rgb(without_adobe_marker(content)).image.getpixel((8, 8))
    assert near(plain, (0, 0, 0))


def test_cmyk_in_a_tiff():
    content = encoded(Image.new("CMYK", (16, 16), (255, 0, 255, 0)), "TIFF")
    assert near(open_rgb(content).image.getpixel((8, 8)), (0, 255, 0))


def test_lab_in_a_tiff():
    content = encoded(Image.new("LAB", (16, 16), (255, 128, 128)), "TIFF")
    assert near(open_rgb(content).image.getpixel((8, 8)), WHITE)


def test_transparency_is_laid_on_white_and_kept_as_a_mask():
    image = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    image.paste((*RED, 255), (0, 0, 10, 20))
    image.paste((*RED, 128), (0, 0, 10, 5))

    for kind in ("PNG", "WEBP", "TIFF"):
        options = {"lossless": True} if kind == "WEBP" else {}
        decoded = open_rgb(encoded(image, kind, **options))
        assert decoded.image.getpixel((15, 10)) == WHITE
        assert decoded.image.getpixel((5, 10)) == RED
        assert near(decoded.image.getpixel((5, 2)), (237, 142, 142), 2)
        assert [decoded.alpha.getpixel(p) for p in [(15, 10), (5, 10), (5, 2)]] == [0, 255, 128]


def test_gray_with_opacity():
    image = Image.new("LA", (10, 10), (60, 0))
    image.paste((60, 255), (0, 0, 5, 10))
    decoded = open_rgb(encoded(image, "PNG"))
    assert [decoded.image.getpixel((x, 5)) for x in (2, 7)] == [(60, 60, 60), WHITE]


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_a_transparent_palette_entry(kind):
    image = Image.new("P", (10, 10), 1)
    image.putpalette([*RED, *BLUE])
    image.paste(0, (0, 0, 5, 10))
    decoded = open_rgb(encoded(image, kind, transparency=1))
    assert [decoded.image.getpixel((x, 5)) for x in (2, 7)] == [RED, WHITE]
    assert [decoded.alpha.getpixel((x, 5)) for x in (2, 7)] == [255, 0]


def test_a_palette_with_graded_transparency():
    image = Image.new("P", (10, 10), 1)
    image.putpalette([*RED, *BLUE])
    image.paste(0, (0, 0, 5, 10))
    decoded = open_rgb(encoded(image, "PNG", transparency=bytes([255, 0])))
    assert [decoded.image.getpixel((x, 5)) for x in (2, 7)] == [RED, WHITE]


@pytest.mark.parametrize(("mode", "fill", "key"), [("L", 9, 9), ("RGB", BLUE, BLUE)])
def test_a_transparent_shade(mode, fill, key):
    image = Image.new(mode, (10, 10), fill)
    image.paste(200 if mode == "L" else RED, (0, 0, 5, 10))
    decoded = open_rgb(encoded(image, "PNG", transparency=key))
    assert [decoded.alpha.getpixel((x, 5)) for x in (2, 7)] == [255, 0]


@pytest.mark.parametrize("key", [0, 1000])
def test_a_transparent_shade_in_16_bits(key):
    levels = np.full((8, 8), 30_000, dtype=np.uint16)
    levels[:, 4:] = key
    content = encoded(Image.fromarray(levels), "PNG")
    at = content.index(b"IDAT") - 4
    decoded = open_rgb(content[:at] + chunk(b"tRNS", struct.pack(">H", key)) + content[at:])
    assert [decoded.alpha.getpixel((x, 4)) for x in (1, 6)] == [255, 0]


def test_an_opaque_alpha_channel_is_no_mask():
    assert open_rgb(encoded(Image.new("RGBA", (5, 5), (*RED, 255)), "PNG")).alpha is None


# -- ICC profiles


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_colours_of_another_profile_become_srgb(kind):
    content = encoded(Image.new("RGB", (16, 16), (250, 5, 5)), kind, icc_profile=swapping_profile())
    assert near(open_rgb(content).image.getpixel((8, 8)), (5, 5, 250), 14)


def test_an_opened_picture_of_another_profile_is_as_its_file():
    content = encoded(
        Image.new("RGB", (16, 16), (250, 5, 5)), "PNG", icc_profile=swapping_profile()
    )
    with Image.open(io.BytesIO(content)) as lazily:
        picture = as_rgb(lazily)
    assert picture.tobytes() == open_rgb(content).image.tobytes()
    assert as_rgb(picture).tobytes() == picture.tobytes()
    keyed = corners()
    keyed.info["transparency"] = RED
    assert at_corners(as_rgb(keyed)) == [WHITE, GREEN, BLUE, WHITE]


def test_a_profile_leaves_opacity_alone():
    image = Image.new("RGBA", (8, 8), (250, 5, 5, 128))
    decoded = open_rgb(encoded(image, "PNG", icc_profile=swapping_profile()))
    assert decoded.alpha.getpixel((4, 4)) == 128
    assert near(decoded.image.getpixel((4, 4)), (130, 130, 252), 14)


@pytest.mark.parametrize("profile", [b"x", bytes(200), b"\xff" * 3000, swapping_profile()[:300]])
def test_a_damaged_profile_is_ignored(profile):
    content = encoded(Image.new("RGB", (16, 16), RED), "JPEG", icc_profile=profile, quality=95)
    assert near(open_rgb(content).image.getpixel((8, 8)), RED)


def test_a_profile_for_another_kind_of_picture_is_ignored():
    content = encoded(Image.new("L", (16, 16), 99), "PNG", icc_profile=swapping_profile())
    assert open_rgb(content).image.getpixel((8, 8)) == (99, 99, 99)
