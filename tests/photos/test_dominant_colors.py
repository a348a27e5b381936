import subprocess
import sys
import warnings

import blurhash
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.photos.colors import color_name, hex_distance
from searchlab.photos.images.blur_hash import blur_hash
from searchlab.photos.images.decode import DecodedImage, analyse
from searchlab.photos.images.dominant_colors import dominant_and_palette
from tests.support.examples import examples


def plain(color: str, size: tuple[int, int] = (120, 80)) -> Image.Image:
    return Image.new("RGB", size, color)


def textured(color: tuple[int, int, int], noise: int, size: tuple[int, int]) -> Image.Image:
    rng = np.random.default_rng(0)
    values = np.array(color) + rng.integers(-noise, noise + 1, (size[1], size[0], 3))
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def named(image: Image.Image, alpha: Image.Image | None = None) -> str:
    return color_name(dominant_and_palette(image, alpha)[0])


# -- dominant colour


@pytest.mark.parametrize(
    "color", ["#ffffff", "#000000", "#1f77b4", "#808080", "#e50000", "#fdfdfd"]
)
def test_a_plain_picture_is_its_one_shade(color):
    assert dominant_and_palette(plain(color)) == (color, ((color, 1.0),))


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (500, 1), (2, 3), (3000, 40)])
def test_any_size_has_a_colour(size):
    assert dominant_and_palette(plain("#1f77b4", size))[0] == "#1f77b4"


def test_the_larger_area_wins_not_the_mean():
    image = plain("#e50000")
    image.paste("#0343df", (0, 0, 30, 80))
    assert named(image) == "red"


def test_a_family_in_many_shades_beats_one_flat_grey():
    image = plain("#8c8c8c", (100, 100))
    for i, green in enumerate(["#144d14", "#1f7a1f", "#35a035", "#6cc46c", "#3f9b0b", "#5cac2d"]):
        image.paste(green, (0, 40 + 10 * i, 100, 50 + 10 * i))
    assert named(image) == "green"


def test_a_strong_colour_beats_a_slightly_larger_shadow():
    image = plain("#0a0a0a", (100, 100))
    image.paste("#f97306", (10, 15, 80, 80))
    assert named(image) == "orange"


def test_a_night_is_black():
    image = plain("#08090c", (100, 100))
    image.paste("#fff5c0", (60, 20, 66, 26))
    assert named(image) == "black"


# -- cut-outs, transparency, white


def test_a_cut_out_on_white_is_named_by_its_object():
    image = plain("#ffffff", (300, 300))
    image.paste("#7e1e9c", (120, 100, 190, 200))
    assert dominant_and_palette(image) == ("#7e1e9c", (("#7e1e9c", pytest.approx(1.0)),))


def test_the_noise_of_a_jpeg_does_not_hide_the_ground():
    image = textured((252, 252, 252), 3, (300, 300))
    image.paste("#029386", (60, 60, 180, 220))
    assert named(image) == "teal"


def test_white_inside_the_object_counts():
    image = plain("#ffffff", (100, 100))
    image.paste("#101010", (10, 10, 90, 90))
    image.paste("#ffffff", (15, 15, 85, 85))
    assert named(image) == "white"


def test_a_white_wall_stays_white():
    assert named(textured((240, 240, 238), 6, (200, 150))) == "white"
    assert named(textured((250, 250, 250), 5, (200, 150))) == "white"


def test_a_speck_on_white_is_still_white():
    image = plain("#ffffff", (300, 300))
    image.paste("#e50000", (150, 150, 160, 160))
    assert named(image) == "white"


def test_a_white_object_that_meets_the_rim_only_here_and_there_is_no_ground():
    image = plain("#0343df", (100, 100))
    image.paste("#ffffff", (0, 0, 100, 20))
    palette = dict(dominant_and_palette(image)[1])
    assert palette["#ffffff"] > 0.1


def test_transparent_pixels_do_not_count():
    image = plain("#ff81c0", (100, 100))
    image.paste("#653700", (40, 40, 60, 60))
    alpha = Image.new("L", (100, 100), 0)
    alpha.paste(255, (40, 40, 60, 60))
    assert dominant_and_palette(image, alpha)[0] == "#653700"


def test_a_wholly_transparent_picture_is_white():
    assert named(plain("#ffffff"), Image.new("L", (120, 80), 0)) == "white"


# -- palette


def test_shares_follow_the_areas():
    image = plain("#e50000", (96, 96))
    image.paste("#0343df", (0, 0, 30, 96))
    (first, large), (second, small) = dominant_and_palette(image)[1]
    assert hex_distance(first, "#e50000") < 4
    assert hex_distance(second, "#0343df") < 4
    assert large == pytest.approx(0.72, abs=0.05)  # The rim counts a little less.
    assert large + small == pytest.approx(1.0)


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 2**32 - 1), st.integers(1, 90), st.integers(1, 90))
def test_a_palette_is_at_most_five_distinct_shades_that_sum_to_1(seed, width, height):
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    image = Image.fromarray(blocks).resize((width, height), Image.Resampling.NEAREST)

    dominant, palette = dominant_and_palette(image)

    shares = [share for _, share in palette]
    assert 1 <= len(palette) <= 5
    assert len({shade for shade, _ in palette}) == len(palette)
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    assert len(dominant) == 7


def test_the_same_picture_gives_the_same_colours():
    image = textured((120, 90, 60), 60, (200, 150))
    assert dominant_and_palette(image) == dominant_and_palette(image.copy())


# -- analysis


@pytest.mark.parametrize(
    ("width", "height", "orientation"),
    [(400, 400, "square"), (401, 400, "landscape"), (400, 401, "portrait")],
)
def test_orientation_is_that_of_the_displayed_picture_at_full_size(width, height, orientation):
    facts = analyse(DecodedImage(plain("#1f77b4", (50, 50)), width, height, "JPEG"))
    assert (facts.width, facts.height, facts.orientation) == (width, height, orientation)
    assert facts.color_hex == "#1f77b4"
    assert len(facts.blur_hash) == 28


# -- blur hash


def expected_hash(image: Image.Image, across: int, down: int) -> str:
    with warnings.catch_warnings():  # The package calls what Pillow is about to remove.
        warnings.simplefilter("ignore", DeprecationWarning)
        return blurhash.encode(image.copy(), across, down)


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 32),
    st.integers(1, 32),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_blur_hash_is_what_the_library_makes_of_the_picture(seed, width, height, across, down):
    rng = np.random.default_rng(seed)
    image = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))

    ours = blur_hash(image, across=across, down=down)
    theirs = expected_hash(image, across, down)

    assert ours == theirs


def test_blur_hash_of_a_known_picture():
    image = plain("#e50000", (32, 24))
    image.paste("#0343df", (0, 0, 16, 24))
    assert blur_hash(image) == expected_hash(image, 4, 3)


def test_blur_hash_of_one_component_is_the_mean_alone():
    assert blur_hash(plain("#ffffff"), across=1, down=1) == "00TSUA"


def test_colours_need_no_heavy_import():
    code = (
        "import searchlab.photos.colors, sys; print(sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "PIL" not in done.stdout
    assert "scipy" not in done.stdout
