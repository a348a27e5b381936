"""Values that a filter refuses: the known words, days, shades and tolerances are told."""

import datetime
import math

import pytest

from searchlab.errors import InputError
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.photo_filter import PhotoFilter

HUGE = pytest.param(-(10**5000), id="5000 digits")
NESTED = pytest.param([10**5000], id="5000 digits in a list")
SHADES = ["#000000", "#ffffff", "#e50000", "#e60101", "#15b01a", "#0343df", "#ff81c0", "#808080"]
# -- refused values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "listed"),
    [
        ({"orientation": ("landscape", "diagonal")}, "landscape, portrait, square; got 'diagonal'"),
        ({"orientation": "Landscape"}, "landscape, portrait, square; got 'Landscape'"),
        ({"orientation": ""}, "landscape, portrait, square; got ''"),
        ({"orientation": "landscape "}, "got 'landscape '"),
        ({"color_name": "mauve-ish"}, "black, .*pink; got 'mauve-ish'"),
        ({"color_name": "Red"}, "got 'Red'"),
        ({"color_name": ""}, "got ''"),
    ],
)
def test_an_unknown_word_is_answered_with_the_known_ones(conditions, listed):
    with pytest.raises(InputError, match=listed):
        PhotoFilter(**conditions)


@pytest.mark.parametrize(
    ("conditions", "listed"),
    [
        ({"source": "flickr"}, "source must be one of nasa, pexels, unsplash; got 'flickr'"),
        ({"source": ("nasa", "NASA")}, "nasa, pexels, unsplash; got 'NASA'"),
        ({"source": "free"}, "got 'free'"),
        ({"license_type": "gpl"}, "one of by, cc0, free, public domain; got 'gpl'"),
        ({"license_type": ""}, "got ''"),
    ],
)
def test_an_unknown_source_or_licence_is_answered_with_those_of_the_table(
    six_photos, conditions, listed
):
    for ask, photos in (
        (PhotoFilter.mask, six_photos),
        (PhotoFilter.allowed, Facets(six_photos)),
    ):
        with pytest.raises(InputError, match=listed):
            ask(PhotoFilter(**conditions), photos)


@pytest.mark.parametrize(
    "shade",
    [
        "e50000",
        "#e5000",
        "#e500000",
        "#e50",
        "#gggggg",
        "",
        "#",
        "#e50000\n",
        " #e50000",
        "red",
        "#٠٠٠٠٠٠",
        "#\uff10\uff10\uff10\uff10\uff10\uff10",
    ],
)
def test_a_malformed_shade_is_refused(shade):
    with pytest.raises(InputError, match="six hex digits"):
        PhotoFilter(color_hex=shade)


@pytest.mark.parametrize(
    "tolerance",
    [-1, 256, 20.0, 20.5, math.nan, math.inf, True, False, "20", None, 10**100, HUGE],
)
def test_a_tolerance_must_be_an_integer_from_0_to_255(tolerance):
    with pytest.raises(InputError, match="color_tolerance must be an integer from 0 to 255"):
        PhotoFilter(color_name="red", color_tolerance=tolerance)


@pytest.mark.parametrize(
    "day",
    [
        "2024-1-1",
        "2024-02-30",
        "2023-02-29",
        "20240101",
        "2024-W01-1",
        "2024-01-01T00:00:00",
        "2024-01-01 ",
        "\n2024-01-01",
        "٢٠٢٤-٠١-٠١",
        "0000-01-01",
        "10000-01-01",
        "-001-01-01",
        "today",
        "",
    ],
)
def test_a_malformed_day_is_refused(day):
    for name in ("after_date", "before_date"):
        with pytest.raises(InputError, match=f"{name} must be a day as YYYY-MM-DD"):
            PhotoFilter(**{name: day})


@pytest.mark.parametrize("name", ["orientation", "source", "license_type"])
@pytest.mark.parametrize("value", [(5,), (None,), b"nasa", [["nasa"]], 5, 0.5, HUGE, NESTED])
def test_words_must_be_words(name, value):
    with pytest.raises(InputError, match=name):
        PhotoFilter(**{name: value})


@pytest.mark.parametrize(
    "name", ["color_name", "color_hex", "photographer", "after_date", "before_date"]
)
@pytest.mark.parametrize("value", [5, b"ann", ("ann",), datetime.date(2024, 1, 1), HUGE])
def test_a_single_condition_must_be_a_string(name, value):
    with pytest.raises(InputError, match=name):
        PhotoFilter(**{name: value})
