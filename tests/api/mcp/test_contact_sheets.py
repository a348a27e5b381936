"""Contact sheets: each picture whole, apart from the ground and others, under its number."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from searchlab.api.mcp.contact_sheets import _BAND, _GAP, _WIDTH, _compose

SHAPES = [(3, 2), (2, 3), (1, 1), (10, 1), (1, 10), (4, 3), (3, 4), (16, 9), (1, 2)]
COLORS = [
    *((255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 255)),
    *((255, 255, 0), (0, 255, 255), (255, 0, 255), (255, 128, 0)),
]


def picture(shape, color):
    file = io.BytesIO()
    Image.new("RGB", (shape[0] * 90, shape[1] * 90), color).save(file, "WEBP", lossless=True)
    return file.getvalue()


def photo(shape):
    return SimpleNamespace(
        width=shape[0] * 90, height=shape[1] * 90, blur_hash="none", color_hex="#ff00ff"
    )


def side_of(count):
    across = min(3, count)
    return (_WIDTH - _GAP * (across - 1)) // across


def sheet_of(photos, files):
    content = _compose(photos, files, side_of(len(files)))
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)


def area_of(sheet, color):
    return int((np.abs(sheet - color).max(axis=2) < 48).sum())


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_nothing_is_cropped_and_light_and_dark_pictures_stand_out(count):
    shapes, colors = SHAPES[:count], COLORS[:count]
    files = [picture(shape, color) for shape, color in zip(shapes, colors, strict=True)]
    sheet = sheet_of([photo(shape) for shape in shapes], files)
    side = side_of(count)
    assert sheet.shape[1] == _WIDTH
    for shape, color in zip(shapes, colors, strict=True):
        if color != (0, 0, 0):  # the numbers are on black
            area = side * side * min(shape) / max(shape)
            assert area_of(sheet, color) == pytest.approx(area, rel=0.15), color


def test_numbers_are_white_on_black_above_the_pictures():
    files = [picture((1, 1), (255, 0, 0))] * 9
    sheet = sheet_of([photo((1, 1))] * 9, files)
    side = side_of(9)
    for number in range(9):
        left, top = number % 3 * (side + _GAP), number // 3 * (side + _BAND + _GAP)
        box = sheet[top : top + _BAND, left : left + _BAND]
        assert area_of(box, (0, 0, 0)) > 0.5 * _BAND**2
        assert area_of(box, (255, 255, 255)) > 10
        assert area_of(box, (255, 0, 0)) == 0


@pytest.mark.parametrize("file", [None, b"damaged"], ids=["elsewhere", "damaged"])
def test_a_photo_that_cannot_be_read_is_shown_by_its_colour_and_said_to_be(file):
    files = [picture((1, 1), (255, 0, 0)), file]
    sheet = sheet_of([photo((1, 1)), photo((2, 1))], files)
    side = side_of(2)
    band = sheet[:_BAND, side + _GAP + _BAND + 2 :]
    assert area_of(band, (0, 0, 0)) > 100
    assert area_of(sheet[:_BAND, _BAND + 2 : side], (0, 0, 0)) == 0
    assert area_of(sheet, (255, 0, 255)) == pytest.approx(side * side / 2, rel=0.05)


def test_a_photo_that_is_gone_leaves_the_numbers_of_the_others_as_they_are():
    files = [None, picture((1, 1), (0, 0, 255))]
    sheet = sheet_of([None, photo((1, 1))], files)
    assert area_of(sheet[:, : side_of(2)], (0, 0, 255)) == 0
    assert area_of(sheet[:, side_of(2) :], (0, 0, 255)) > 0


def test_one_picture_alone_is_the_sheet():
    sheet = sheet_of([photo((3, 2))], [picture((3, 2), (0, 255, 0))])
    assert sheet.shape[:2] == (512, 768)
    assert area_of(sheet, (0, 255, 0)) == 512 * 768
