"""A file without what was written into it shows the same picture, and tells nothing else."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageCms
from PIL.PngImagePlugin import PngInfo

from searchlab.errors import ImageError
from searchlab.photos.images.decode import open_rgb
from searchlab.photos.images.strip import without_metadata
from searchlab.photos.sidecar import Record
from tests.support.metadata import exif, iptc, listed, with_iptc, xmp
from tests.support.pictures import chunk, corners, encoded

LISBON = ((38, 42, 45.0, "N"), (9, 8, 24.0, "W"))
SECRETS = (b"Lisbon", b"Ann Lee", b"Eve", b"GPS")
XMP = xmp(listed("Iptc4xmpExt:PersonInImage", "Eve"), 'photoshop:City="Lisbon"')
LOSSLESS = ("JPEG", "PNG", "WEBP")


def written(kind, orientation=1, **options):
    """A picture with a place, a name and keywords in all the blocks that its format has."""
    block = exif(LISBON, artist="Ann Lee", orientation=orientation)
    if kind == "PNG":
        options["pnginfo"] = PngInfo()
        options["pnginfo"].add_itxt("XML:com.adobe.xmp", XMP.decode())
        options["pnginfo"].add_text("Location", "Lisbon", zip=False)
    if kind == "JPEG":
        options["comment"] = b"Lisbon"
    content = encoded(corners(), kind, exif=block, xmp=XMP, **options)
    if kind == "JPEG":
        return with_iptc(content, iptc((90, "Lisbon")))
    return content


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", LOSSLESS)
def test_the_picture_stays_to_the_last_bit_and_upright(kind, orientation):
    content = written(kind, orientation)
    assert open_rgb(content).metadata.record() != Record()
    before, after = open_rgb(content), open_rgb(without_metadata(content))
    assert (after.format, after.width, after.height) == (kind, before.width, before.height)
    assert ImageChops.difference(before.image, after.image).getbbox() is None
    assert after.metadata.record() == Record()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "HEIF", "TIFF"])
def test_no_word_of_it_is_left(kind):
    content = written(kind)
    stripped = without_metadata(content)
    assert any(secret in content for secret in SECRETS)
    assert not any(secret in stripped for secret in SECRETS)
    assert open_rgb(stripped).metadata.record() == Record()
    assert open_rgb(stripped).image.size == (48, 32)


@pytest.mark.parametrize("kind", ["AVIF", "HEIF", "TIFF", "GIF"])
def test_what_few_browsers_show_becomes_jpeg(kind):
    assert open_rgb(without_metadata(encoded(corners(), kind))).format == "JPEG"


@pytest.mark.parametrize("kind", LOSSLESS)
def test_the_colour_profile_stays(kind):
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    stripped = without_metadata(written(kind, icc_profile=profile))
    with Image.open(io.BytesIO(stripped)) as image:
        assert image.info["icc_profile"] == profile


def test_what_stands_behind_the_picture_goes():
    for kind in LOSSLESS:
        content = written(kind)
        assert without_metadata(content + b"film of Lisbon") == without_metadata(content)


def test_previews_with_a_place_of_their_own_go():
    content = written("JPEG")
    mpf = b"MPF\0" + b"Lisbon"
    content = content[:2] + b"\xff\xe2" + struct.pack(">H", len(mpf) + 2) + mpf + content[2:]
    assert b"Lisbon" not in without_metadata(content + written("JPEG"))


def test_an_animation_goes_on_moving():
    frames = [corners(), corners().rotate(180)]
    for kind in ("PNG", "WEBP"):
        content = encoded(frames[0], kind, save_all=True, append_images=frames[1:], xmp=XMP)
        with Image.open(io.BytesIO(without_metadata(content))) as image:
            assert image.n_frames == 2


def test_a_chunk_of_unknown_use_goes():
    content = encoded(corners(), "PNG")
    spoken = content[:33] + chunk(b"caBX", b"Lisbon") + content[33:]
    assert without_metadata(spoken) == content


@given(st.sampled_from(LOSSLESS), st.integers(0, 5_000), st.binary(max_size=30))
def test_of_any_bytes_comes_a_file_without_words_or_a_refusal(kind, at, noise):
    content = written(kind)
    place = at % len(content)
    try:
        stripped = without_metadata(content[:place] + noise + content[place + len(noise) :])
        record = open_rgb(stripped).metadata.record()
    except ImageError:
        return
    assert record == Record()


def test_of_two_blocks_about_the_orientation_the_first_counts_as_for_decoders():
    content = written("JPEG", 6)
    other = b"Exif\0\0" + exif(orientation=1)
    segment = b"\xff\xe1" + struct.pack(">H", len(other) + 2) + other
    first_end = content.index(b"Exif\0\0") - 2
    first_end += struct.unpack_from(">H", content, first_end)[0]
    content = content[:first_end] + segment + content[first_end:]
    before, after = open_rgb(content), open_rgb(without_metadata(content))
    assert ImageChops.difference(before.image, after.image).getbbox() is None
    assert (before.width, before.height) == (32, 48)
