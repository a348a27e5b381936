import contextlib
import io
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
from PIL import Image, ImageCms

from searchlab.errors import ImageError, InputError
from searchlab.photos.images.decode import FORMATS, analyse, as_rgb, open_rgb, shrink, thumbnail

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 160, 60), (40, 60, 200), (255, 255, 255)
API_FORMATS = ("JPEG", "PNG", "WEBP", "AVIF")


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def corners(width: int = 48, height: int = 32) -> Image.Image:
    """Red above left, green above right, blue below left, white below right."""
    image = Image.new("RGB", (width, height), WHITE)
    image.paste(RED, (0, 0, width // 2, height // 2))
    image.paste(GREEN, (width // 2, 0, width, height // 2))
    image.paste(BLUE, (0, height // 2, width // 2, height))
    return image


def at_corners(image: Image.Image) -> list[tuple[int, ...]]:
    width, height = image.size
    x, y = width // 4, height // 4
    return [image.getpixel(p) for p in [(x, y), (3 * x, y), (x, 3 * y), (3 * x, 3 * y)]]


def near(first: tuple[int, ...], second: tuple[int, ...], slack: int = 12) -> bool:
    return max(abs(a - b) for a, b in zip(first, second, strict=True)) <= slack


def chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png(width: int, height: int, *extra: bytes, data: bytes = b"", color: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    rest = chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(extra) + rest


def reason(source: Path | bytes, **options: object) -> str:
    with pytest.raises(ImageError) as caught:
        open_rgb(source, **options)
    assert str(caught.value)
    return caught.value.reason


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
    assert all(near(a, b, 30) for a, b in zip(corner_colours, [RED, GREEN, BLUE, WHITE], strict=True))


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
    assert all(near(a, b, 30) for a, b in zip(corner_colours, [RED, GREEN, BLUE, WHITE], strict=True))


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


def swapping_profile() -> bytes:
    """An RGB profile whose red and blue primaries are swapped."""
    content = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    tags = {bytes(content[at : at + 4]): at for at in range(132, 132 + 12 * content[131], 12)}
    red, blue = tags[b"rXYZ"], tags[b"bXYZ"]
    content[red + 4 : red + 12], content[blue + 4 : blue + 12] = (
        *(content[blue + 4 : blue + 12], content[red + 4 : red + 12]),
    )
    return bytes(content).replace("sRGB".encode("utf-16-be"), "SWAP".encode("utf-16-be"))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_colours_of_another_profile_become_srgb(kind):
    content = encoded(Image.new("RGB", (16, 16), (250, 5, 5)), kind, icc_profile=swapping_profile())
    assert near(open_rgb(content).image.getpixel((8, 8)), (5, 5, 250), 14)


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


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)
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


# -- reduced decoding, shrinking, thumbnails


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


# -- pictures in memory -----------------------------------------------------------------------


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


@settings(max_examples=60, deadline=None)
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
