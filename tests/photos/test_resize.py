"""The faster way to resize gives Pillow's pictures, to the last bit, or is not used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchlab.photos.images import _lanczos as resize
from searchlab.photos.images import resize as resizing
from searchlab.photos.images.decode import for_model, shrink, thumbnail
from searchlab.photos.images.resize import fast_resize, plain_resize
from tests.support.examples import examples


def noise(width, height, seed, *, hard=False):
    """Draw what overshoots as far as can be: noise, or where hard only black and white."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(np.where(pixels > 127, np.uint8(255), np.uint8(0)) if hard else pixels)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.integers(1, 500),
    st.integers(1, 500),
    st.floats(1, 14),
    st.integers(0, 2**16),
    st.booleans(),
)
def test_it_is_pillow_s_picture(width, height, factor, seed, hard):
    image = noise(width, height, seed, hard=hard)
    size = max(1, round(width / factor)), max(1, round(height / factor))
    assert fast_resize(image, size) == plain_resize(image, size)


@pytest.mark.parametrize(
    ("width", "height", "size"),
    [
        (960, 640, (600, 400)),
        (640, 960, (400, 600)),
        (4500, 300, (600, 40)),
        (300, 1500, (60, 300)),
        (469, 616, (78, 103)),  # halved across and not down, and tall then
        (387, 446, (43, 50)),  # by three across and two down
        (1244, 1030, (133, 110)),  # a third of 1244 is no single float
        (100, 100, (100, 40)),
        (60, 60, (90, 90)),
        (64, 64, (64, 64)),
        (33, 33, (32, 32)),
        (1, 1, (1, 1)),
    ],
)
def test_it_is_pillow_s_picture_in_corners(width, height, size):
    image = noise(width, height, 5)
    assert fast_resize(image, size) == plain_resize(image, size)


def test_other_modes_are_left_to_pillow():
    image = noise(200, 150, 1).convert("L")
    assert fast_resize(image, (80, 60)) == plain_resize(image, (80, 60))


def test_the_kernel_is_used_here():
    assert resizing._choose_resize() is not plain_resize


def test_a_pillow_that_resizes_otherwise_is_left_alone(monkeypatch):
    lanczos = resize.lanczos
    monkeypatch.setattr(resize, "lanczos", lambda *arguments: lanczos(*arguments) ^ 1)
    resizing._choose_resize.cache_clear()
    assert resizing._choose_resize() is plain_resize
    monkeypatch.undo()
    resizing._choose_resize.cache_clear()


def test_photos_are_scaled_alike_either_way():
    image = noise(900, 700, 3)
    small = shrink(image, 400)
    assert shrink(image, 400, resize=fast_resize) == small
    assert for_model(image, 224, resize=fast_resize) == for_model(image, 224)
    assert thumbnail(small, 300, resize=fast_resize) == thumbnail(small, 300)
