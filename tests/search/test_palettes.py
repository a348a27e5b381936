"""Conditions on palettes let through what a look at each photo's colours says, however computed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import DataError, InputError
from searchlab.photos.colors import FAMILY_NAMES, color_name, family_margin, hex_distance
from searchlab.photos.colors import shades_to_oklab as to_oklab
from searchlab.search.filters import bitmaps, facets, palettes, upload_order, value_sets
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.palettes import PaletteColor, Palettes
from searchlab.search.filters.photo_filter import PhotoFilter

SHADES = ["#000000", "#e50000", "#e60101", "#15b01a", "#0343df", "#ffffff"]


@pytest.fixture(params=["numpy", "compiled"], scope="module", autouse=True)
def _both_ways(request):
    """Everything must hold below and above the size from which on numba is used."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (bitmaps, facets, palettes, upload_order, value_sets):
            first = 0 if request.param == "compiled" else 2**40
            patch.setattr(module, "COMPILED_FROM", first)
        yield


def percent_of(photo, color, tolerance):
    """Look at the colours of one photo, one by one."""
    covered = 0
    for shade, percent in photo.palette:
        if color.startswith("#"):
            is_within = tolerance == 255 or hex_distance(shade, color) <= tolerance
        else:
            lab = to_oklab(np.array([int(shade[1:], 16)], dtype=np.uint32))
            is_within = family_margin(lab, color)[0] <= tolerance - 20
        covered += percent * is_within
    return covered


@st.composite
def some_palettes(draw):
    shades = st.sampled_from(SHADES) | st.from_regex(r"#[0-9a-f]{6}", fullmatch=True)
    colors = draw(st.lists(st.tuples(shades, st.integers(1, 60)), max_size=5))
    while sum(percent for _, percent in colors) > 100:  # there is no more of a picture
        colors.pop()
    return tuple(colors)


colors = st.sampled_from(FAMILY_NAMES) | st.sampled_from(SHADES)
conditions = st.builds(
    lambda palette, tolerance: PhotoFilter(palette=palette, color_tolerance=tolerance),
    st.lists(st.builds("{}:{}".format, colors, st.integers(1, 100)), min_size=1, max_size=3),
    st.sampled_from([0, 1, 13, 20, 60, 150, 254, 255]),
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(some_palettes(), min_size=1, max_size=90), conditions, st.booleans())
def test_a_photo_is_let_through_as_its_colours_say(
    make_table, tmp_path_factory, drawn, condition, is_opened
):
    table = make_table(*({"palette": palette} for palette in drawn))
    made = Facets(table)
    if is_opened:
        path = tmp_path_factory.mktemp("facets") / "facets.columns"
        made.save(path)
        made = Facets.open(path, table)
    expected = [
        all(
            percent_of(photo, color, condition.color_tolerance) >= percent
            for color, percent in condition.palette_colors
        )
        for photo in map(table.photo, range(len(table)))
    ]
    assert condition.mask(table).tolist() == expected
    assert condition.allowed(made).mask().tolist() == expected


def test_colours_alike_count_together_and_others_do_not(make_table):
    table = make_table(
        {"palette": (("#e50000", 30), ("#e60101", 15), ("#0343df", 55))},
        {"palette": (("#0343df", 60), ("#e50000", 40))},
        {},
    )
    made = Facets(table)
    assert made.cover("red", 20).tolist() == [45, 40, 0]
    assert made.cover("#e50000", 0).tolist() == [30, 40, 0]
    assert made.cover("#e50000", 255).tolist() == [100, 100, 0]
    assert PhotoFilter(palette="red:45%").mask(table).tolist() == [True, False, False]
    both = PhotoFilter(palette=("red", "blue:60"))
    assert both.mask(table).tolist() == [False, True, False]


def test_a_photo_without_a_palette_is_black_only_where_it_says_so(make_table):
    table = make_table({}, {"palette": (("#000000", 100),)})
    for condition in (PhotoFilter(palette="black"), PhotoFilter(palette="#000000")):
        assert condition.mask(table).tolist() == [False, True]
        assert condition.allowed(Facets(table)).mask().tolist() == [False, True]


@settings(deadline=None)
@given(some_palettes())
def test_the_whole_palette_is_of_some_family(make_table, palette):
    made = Facets(make_table({"palette": palette}))
    by_family = sum(int(made.cover(family, 20)[0]) for family in FAMILY_NAMES)
    assert by_family == sum(percent for _, percent in palette)
    for shade, _ in palette:
        assert made.cover(color_name(shade), 20)[0] > 0


# -- what is asked ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "color", "percent", "written"),
    [
        ("red", "red", 1, "red"),
        ("red:1", "red", 1, "red"),
        ("red:30", "red", 30, "red:30"),
        ("teal:100%", "teal", 100, "teal:100"),
        ("#1F6f8b:7", "#1F6f8b", 7, "#1F6f8b:7"),
    ],
)
def test_a_colour_and_its_percent_are_read_and_written(text, color, percent, written):
    assert PaletteColor.parse(text) == (color, percent)
    assert PhotoFilter(palette=text).palette == (written,)
    assert PhotoFilter(palette=text).to_dict() == {"palette": [written]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crimson", "one of black, white.*got 'crimson'"),
        ("", "one of black"),
        ("RED", "one of black"),
        ("#12345", "six hex digits"),
        ("red:", "1 to 100.*got 'red:'"),
        ("red:0", "1 to 100"),
        ("red:101", "1 to 100"),
        ("red:-5", "1 to 100"),
        ("red:٣", "1 to 100"),
        ("red:30:30", "1 to 100"),
        ("red:1e1", "1 to 100"),
        (":30", "one of black"),
    ],
)
def test_what_no_photo_could_meet_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        PhotoFilter(palette=text)


def test_the_filter_says_what_it_lets_through():
    condition = PhotoFilter(palette=("red:30", "#1f6f8b"), color_tolerance=40)
    assert condition.describe() == (
        "red is on 30 % of it or more (widened to tolerance 40), "
        "and #1f6f8b is in it (widened to tolerance 40)"
    )
    assert condition.has_color
    assert not condition.is_empty


def test_palettes_of_another_table_are_refused(make_table):
    arrays = Palettes.from_table(make_table({}, {})).arrays()
    with pytest.raises(DataError, match="palettes of 3 photos"):
        Palettes(make_table({}, {}, {}), arrays)
