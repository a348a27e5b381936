import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError
from searchlab.photos.colors import (
    FAMILY_NAMES,
    MAX_TOLERANCE,
    distance,
    family_tolerances,
    format_hex,
    shades_to_oklab,
    squared_limit,
    within_hex,
    within_name,
)
from searchlab.search.filters import color_grid
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.color_grid import ColorGrid
from tests.support.examples import examples

STEPS = np.array([*range(0, 256, 15), 1, 254], dtype=np.uint32)
LATTICE = (
    STEPS[:, None, None] << np.uint32(16) | STEPS[:, None] << np.uint32(8) | STEPS
).ravel()  # 8,000 shades of the cube, its corners and edges among them
LAB = shades_to_oklab(LATTICE)
GRID = ColorGrid.from_lab(LAB)

shade = st.integers(0, 0xFFFFFF)


def shades_of(values):
    return np.array(values, dtype=np.uint32)


def near(grid, centre, tolerance, among=None):
    point = shades_to_oklab(shades_of([centre]))[0]
    return grid.near(point, float(tolerance), squared_limit(float(tolerance)), among)


@settings(max_examples=examples(150), deadline=None)
@given(shade, st.floats(2**-10, 254.5, width=32))
def test_the_grid_finds_what_the_mask_finds(centre, tolerance):
    mask = within_hex(LATTICE, format_hex(centre), tolerance=tolerance, lab=LAB)
    assert near(GRID, centre, tolerance) == Bitmap.of_mask(mask)


@settings(max_examples=examples(150), deadline=None)
@given(shade, st.integers(0, len(LATTICE) - 1))
def test_a_shade_at_the_very_border_is_in_and_one_step_less_leaves_it_out(centre, row):
    point = shades_to_oklab(shades_of([centre]))[0]
    limit = distance(LAB[row : row + 1], point)[0]
    assert row in near(GRID, centre, limit)
    if limit > 0:
        assert row not in near(GRID, centre, np.nextafter(limit, np.float32(0)))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(shade, max_size=200),
    shade,
    st.integers(1, 254),
)
def test_few_shades_are_found_as_well(values, centre, tolerance):
    shades = shades_of(values)
    grid = ColorGrid.from_lab(shades_to_oklab(shades))
    mask = within_hex(shades, format_hex(centre), tolerance=tolerance)
    assert near(grid, centre, tolerance).mask().tolist() == mask.tolist()


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65])
def test_any_number_of_rows_will_do(n):
    grid = ColorGrid.from_lab(LAB[:n])
    for tolerance in (1, 20, 90, 254):
        mask = within_hex(LATTICE[:n], "#112233", tolerance=tolerance)
        assert near(grid, 0x112233, tolerance).mask().tolist() == mask.tolist()


@settings(max_examples=examples(80), deadline=None)
@given(
    shade,
    st.integers(1, 254),
    st.sampled_from([0.0, 0.001, 0.05, 0.5, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_looking_among_some_gives_those_of_them_that_are_near(centre, tolerance, share, seed):
    some = Bitmap.of_mask(np.random.default_rng(seed).random(len(LATTICE)) < share)
    assert near(GRID, centre, tolerance, some) == near(GRID, centre, tolerance) & some


# -- the three ways to take cells that lie wholly within --------------------------------------


@pytest.fixture(params=[0, color_grid._COMPARED, 2**40])
def compared(request, monkeypatch):
    """Rows one by one, as it is, and always by a comparison of every row's cell."""
    monkeypatch.setattr(color_grid, "_COMPARED", request.param)


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, len(LATTICE)])
@pytest.mark.parametrize("tolerance", [1, 20, 60, 120, 200, 254])
def test_cells_are_taken_in_any_way(n, tolerance):
    grid = ColorGrid.from_lab(LAB[-n:])
    for centre in (0x000000, 0xFFFFFF, 0x0000FF, 0x808080, 0x1F6F8B, int(LATTICE[-1])):
        mask = within_hex(LATTICE[-n:], format_hex(centre), tolerance=tolerance, lab=LAB[-n:])
        assert near(grid, centre, tolerance) == Bitmap.of_mask(mask)
        for some in (Bitmap.empty(n), Bitmap.full(n), Bitmap.of_mask(np.arange(n) % 3 == 0)):
            assert near(grid, centre, tolerance, some) == Bitmap.of_mask(mask) & some


@pytest.mark.usefixtures("compared")
def test_a_shade_at_the_border_is_in_whichever_way_cells_are_taken():
    rng = np.random.default_rng(5)
    for centre, row in zip(rng.integers(0, 1 << 24, 80), rng.integers(0, 8_000, 80), strict=True):
        point = shades_to_oklab(shades_of([centre]))[0]
        limit = distance(LAB[row : row + 1], point)[0]
        for border in (limit, np.nextafter(limit, np.float32(0))):
            if 0 < border < MAX_TOLERANCE:
                mask = within_hex(LATTICE, format_hex(centre), tolerance=border, lab=LAB)
                assert near(GRID, int(centre), border) == Bitmap.of_mask(mask)


@pytest.mark.usefixtures("compared")
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(shade, st.floats(2**-10, 254.5, width=32), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_cells_of_any_shades_are_taken_in_any_way(centre, tolerance, n, seed):
    shades = np.random.default_rng(seed).integers(0, 1 << 24, n, dtype=np.uint32)
    grid = ColorGrid.from_lab(shades_to_oklab(shades))
    mask = within_hex(shades, format_hex(centre), tolerance=tolerance)
    assert near(grid, centre, tolerance) == Bitmap.of_mask(mask)


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize("tolerance", [1, 20, 60, 254])
def test_photos_of_all_one_shade_are_in_or_out_together(tolerance):
    grid = ColorGrid.from_lab(shades_to_oklab(np.full(130, 0x336699, dtype=np.uint32)))
    for centre in (0x336699, 0x346699, 0x4477AA, 0xFFFFFF, 0x000000):
        together = within_hex(shades_of([0x336699]), format_hex(centre), tolerance=tolerance)[0]
        assert near(grid, centre, tolerance).count == 130 * together


def test_every_corner_of_the_cube_lies_within_the_cells():
    starts, rows = GRID.arrays()["starts"], GRID.arrays()["rows"]
    assert starts[-1] == len(LATTICE)
    assert sorted(rows.tolist()) == list(range(len(LATTICE)))
    # None is pushed into an outer cell from beyond: that cell would pass for inside by mistake.
    assert (LAB[:, 1:] * 255 >= [-60, -80]).all()
    assert (LAB * 255 < [256, 72, 52]).all()


def test_the_grid_comes_back_from_its_arrays_and_refuses_those_of_others():
    again = ColorGrid(len(LATTICE), GRID.arrays())
    assert near(again, 0x808080, 30) == near(GRID, 0x808080, 30)
    with pytest.raises(DataError, match="a grid of 7999 shades"):
        ColorGrid(len(LATTICE) - 1, GRID.arrays())


# -- limits and families ----------------------------------------------------------------------


def test_a_squared_limit_is_the_largest_square_within_the_tolerance():
    for tolerance in [*range(256), 0.5, 19.999, 1e-20, 254.999]:
        limit = squared_limit(tolerance)
        above = np.nextafter(limit, np.float32(np.inf))
        assert limit.dtype == np.float32
        assert np.sqrt(limit) * np.float32(255) <= np.float32(tolerance)
        assert np.sqrt(above) * np.float32(255) > np.float32(tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_family_tolerances_say_from_which_one_on_a_shade_is_let_in(name):
    least = family_tolerances(LAB)[FAMILY_NAMES.index(name)]
    for tolerance in [*range(45), 60, 100, 200, 254, MAX_TOLERANCE]:
        mask = within_name(LATTICE, name, tolerance=tolerance, lab=LAB)
        assert ((least <= tolerance) == mask).all()


@settings(max_examples=examples(100), deadline=None)
@given(shade, st.sampled_from(FAMILY_NAMES))
def test_no_smaller_tolerance_lets_a_shade_into_a_family(value, name):
    least = int(family_tolerances(shades_to_oklab(shades_of([value])))[FAMILY_NAMES.index(name), 0])
    assert within_name(shades_of([value]), name, tolerance=least)[0]
    assert least == 0 or not within_name(shades_of([value]), name, tolerance=least - 1)[0]
