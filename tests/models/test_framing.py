"""How `mini` frames photos: whole, nearly in their own aspect, at sizes that the network likes."""

import numpy as np
import pytest
from PIL import Image

from searchlab.models.mini.framing import SIZES, batches, frame, pixels_of


def test_no_layer_needs_padding_that_depends_on_the_size():
    assert all(side % 32 == 0 for size in SIZES for side in size)


@pytest.mark.parametrize(
    ("photo", "size"),
    [((640, 480), (224, 288)), ((480, 640), (288, 224)), ((500, 500), (256, 256))],
)
def test_a_photo_gets_the_frame_of_its_aspect(photo, size):
    assert frame(*photo)[0] == size


@pytest.mark.parametrize("photo", [(600, 400), (400, 600), (640, 480), (1, 1), (500, 450)])
def test_a_photo_of_common_aspect_is_seen_whole(photo):
    assert frame(*photo)[1] == (0, 0, *photo)


def test_a_panorama_keeps_its_full_height_and_loses_both_ends_alike():
    _, (left, top, right, bottom) = frame(4000, 500)
    assert (top, bottom) == (0, 500)
    assert left == pytest.approx(4000 - right)
    assert 500 < right - left < 1000


def test_pixels_lie_between_minus_one_and_one():
    photo = Image.new("RGB", (300, 500), (255, 0, 0))
    pixels = pixels_of(photo, *frame(*photo.size))
    assert pixels.shape == (3, 288, 224)
    assert pixels.dtype == np.float32
    assert pixels[:, 0, 0].tolist() == [1.0, -1.0, -1.0]


def test_what_stands_at_the_edges_is_seen():
    photo = Image.new("RGB", (640, 480), "black")
    photo.paste("white", (0, 0, 32, 480))
    pixels = pixels_of(photo, *frame(*photo.size))
    assert pixels[0, 100, 0] == 1.0
    assert pixels[0, 100, 100] == -1.0


def test_every_picture_is_in_one_batch_at_its_position():
    shades = np.arange(0, 250, 10)
    photos = [
        Image.new("RGB", ((60, 40), (40, 60), (50, 50))[shade % 3], (int(shade),) * 3)
        for shade in shades
    ]
    seen = {}
    for members, pixels in batches(photos, 4):
        assert len(members) == len(pixels) <= 4
        seen.update(zip(members, pixels[:, 0, 0, 0], strict=True))
    levels = [seen[number] for number in range(len(photos))]
    np.testing.assert_allclose(levels, shades / 127.5 - 1, atol=1e-6)


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (3, 2)])
def test_tiny_and_stretched_pictures_are_framed(size):
    ((members, pixels),) = batches([Image.new("RGB", size, "white")], 8)
    assert members == [0]
    assert pixels.min() == 1.0
