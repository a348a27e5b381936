import dataclasses
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.photos.colors import FAMILIES, color_name, hex_distance, within_name
from searchlab.photos.table import CODED_COLUMNS
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.facets import Facets
from searchlab.search.filters.photo_filter import PhotoFilter, facet_counts, known_values
from tests.support.examples import examples

SOURCES = ["unsplash", "pexels", "nasa"]
LICENSES = ["cc0", "by", "public domain"]
NAMES = ["ann", "bob", "", "Ann", "a%", "x' OR '1'='1"]
DAYS = ["1969-12-31", "1970-01-01", "2023-12-31", "2024-01-01", "2024-02-29"]
HUGE = pytest.param(-(10**5000), id="5000 digits")
NESTED = pytest.param([10**5000], id="5000 digits in a list")
SHADES = ["#000000", "#ffffff", "#e50000", "#e60101", "#15b01a", "#0343df", "#ff81c0", "#808080"]


def numbers(mask):
    return np.flatnonzero(mask).tolist()


# -- the oracle: one photo at a time ----------------------------------------------------------


def lets_through(chosen, photo):
    """Say the same as the mask, for one photo and condition by condition."""
    return all(
        [
            not chosen.orientation or photo.orientation in chosen.orientation,
            not chosen.source or photo.source in chosen.source,
            not chosen.license_type or photo.license_type in chosen.license_type,
            chosen.photographer is None or photo.photographer_username == chosen.photographer,
            chosen.after_date is None or photo.uploaded_on >= chosen.after_date,
            chosen.before_date is None or photo.uploaded_on <= chosen.before_date,
            chosen.color_name is None or color_name(photo.color_hex) == chosen.color_name,
            chosen.color_hex is None
            or hex_distance(photo.color_hex, chosen.color_hex) <= chosen.color_tolerance,
        ]
    )


photo_changes = st.fixed_dictionaries(
    {
        "source": st.sampled_from(SOURCES),
        "license_type": st.sampled_from(LICENSES),
        "photographer_username": st.sampled_from(NAMES),
        "uploaded_on": st.sampled_from(DAYS),
        "color_hex": st.sampled_from(SHADES) | st.from_regex(r"#[0-9a-f]{6}", fullmatch=True),
        "width": st.sampled_from([10, 20, 30]),
    }
)


@st.composite
def filters(draw, sources=(), licenses=()):
    conditions = {
        "orientation": draw(st.lists(st.sampled_from(["landscape", "portrait", "square"]))),
        "source": draw(st.lists(st.sampled_from(sources), max_size=3)) if sources else [],
        "license_type": draw(st.lists(st.sampled_from([*licenses, "free"]), max_size=3)),
        "photographer": draw(st.none() | st.sampled_from([*NAMES, "nobody"])),
        "after_date": draw(st.none() | st.sampled_from(DAYS) | st.dates().map(str)),
    }
    earliest = conditions["after_date"] or "0001-01-01"
    days = st.sampled_from(DAYS) | st.dates().map(str)
    conditions["before_date"] = draw(st.none() | days.filter(lambda day: day >= earliest))
    colour = draw(st.sampled_from(["none", "name", "hex"]))
    if colour == "name":
        conditions["color_name"] = draw(st.sampled_from(sorted(FAMILIES)))
    if colour == "hex":
        conditions["color_hex"] = draw(st.sampled_from(SHADES))
        conditions["color_tolerance"] = draw(st.sampled_from([0, 1, 20, 60, 150, 255]))
    few = draw(st.sets(st.sampled_from(sorted(conditions)), max_size=4))
    if "color_tolerance" in few:
        few.add("color_hex")
    return PhotoFilter(**{name: conditions[name] for name in few})


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(st.lists(photo_changes, max_size=30), st.data())
def test_the_mask_is_what_a_list_comprehension_says(make_table, changes, data):
    table = make_table(*changes)
    known = [sorted({c[name] for c in changes}) for name in ("source", "license_type")]
    chosen = data.draw(filters(*known))
    mask = chosen.mask(table)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [lets_through(chosen, table.photo(row)) for row in range(len(table))]
    allowed = chosen.allowed(Facets(table))
    assert mask.tolist() == ([True] * len(table) if allowed is None else allowed.mask().tolist())


# -- one condition at a time ------------------------------------------------------------------


def test_no_condition_lets_every_photo_through(six_photos):
    assert PhotoFilter().mask(six_photos).tolist() == [True] * 6
    assert PhotoFilter().allowed(Facets(six_photos)) is None


def test_values_of_one_condition_are_alternatives(six_photos):
    assert numbers(PhotoFilter(orientation=("portrait",)).mask(six_photos)) == [1]
    assert numbers(PhotoFilter(orientation=("portrait", "square")).mask(six_photos)) == [1, 2]
    assert numbers(PhotoFilter(source=("pexels", "nasa")).mask(six_photos)) == [1, 4]


def test_conditions_must_all_be_met(six_photos):
    chosen = PhotoFilter(source=("unsplash",), license_type=("cc0", "by"), orientation=("square",))
    assert numbers(chosen.mask(six_photos)) == [2]
    nothing = PhotoFilter(source=("nasa",), orientation=("square",))
    assert numbers(nothing.mask(six_photos)) == []


def test_one_word_stands_for_a_list_of_one():
    assert PhotoFilter(source="nasa") == PhotoFilter(source=("nasa",))
    assert PhotoFilter(source=["nasa", "pexels", "nasa"]) == PhotoFilter(source=("nasa", "pexels"))


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2024-01-01", [0, 1, 3, 4]),
        ("2024-01-02", [1, 3]),
        ("2024-02-29", [1]),
        ("2024-03-01", []),
        ("1969-07-20", [0, 1, 2, 3, 4, 5]),
        ("1969-07-21", [0, 1, 2, 3, 4]),
        ("0001-01-01", [0, 1, 2, 3, 4, 5]),
        ("9999-12-31", []),
    ],
)
def test_after_date_includes_its_day(six_photos, day, expected):
    assert numbers(PhotoFilter(after_date=day).mask(six_photos)) == expected


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2024-01-01", [0, 2, 4, 5]),
        ("2024-02-29", [0, 1, 2, 3, 4, 5]),
        ("1969-07-20", [5]),
        ("1969-07-19", []),
        ("9999-12-31", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_before_date_includes_its_day(six_photos, day, expected):
    assert numbers(PhotoFilter(before_date=day).mask(six_photos)) == expected


def test_both_dates_may_be_the_same_day_and_not_the_wrong_way_round(six_photos):
    one_day = PhotoFilter(after_date="2024-02-29", before_date="2024-02-29")
    assert numbers(one_day.mask(six_photos)) == [1]
    with pytest.raises(InputError, match="before_date must be the day of after_date or later"):
        PhotoFilter(after_date="2024-02-29", before_date="2024-02-28")


@pytest.mark.parametrize(
    ("username", "expected"),
    [
        ("bob", [3, 4]),
        ("Bob", []),
        ("bo", []),
        ("%", []),
        ("b_b", []),
        ("' OR 1=1 --", []),
        ("bob\0", []),
        ("\ud800", []),
        ("x" * 100_000, []),
    ],
)
def test_a_photographer_is_an_exact_username_and_nobody_is_no_error(six_photos, username, expected):
    assert numbers(PhotoFilter(photographer=username).mask(six_photos)) == expected


def test_free_is_a_licence_also_where_no_photo_has_it(six_photos, make_table):
    assert numbers(PhotoFilter(license_type=("free",)).mask(six_photos)) == []
    assert numbers(PhotoFilter(license_type=("free", "by")).mask(six_photos)) == [2]
    assert numbers(PhotoFilter(license_type=("free",)).mask(make_table({}))) == []
    with_free = make_table({"license_type": "free"}, {})
    assert numbers(PhotoFilter(license_type=("free",)).mask(with_free)) == [0]


def test_filters_answer_an_empty_table(make_table):
    chosen = PhotoFilter(
        orientation=("square",), license_type=("free",), color_name="red", after_date="2024-01-01"
    )
    assert chosen.mask(make_table()).shape == (0,)


# -- colours ----------------------------------------------------------------------------------


def test_tolerance_0_is_that_very_shade(make_table):
    table = make_table({"color_hex": "#e50000"}, {"color_hex": "#e50001"}, {"color_hex": "#e40000"})
    assert numbers(PhotoFilter(color_hex="#e50000", color_tolerance=0).mask(table)) == [0]


def test_tolerance_20_is_the_default_of_a_shade_and_includes_its_border(make_table):
    table = make_table({"color_hex": "#000000"}, {"color_hex": "#0a0a0a"}, {"color_hex": "#303030"})
    near = PhotoFilter(color_hex="#000000").mask(table)
    assert (
        near.tolist() == PhotoFilter(color_hex="#000000", color_tolerance=20).mask(table).tolist()
    )
    assert near.tolist() == [
        hex_distance("#000000", h) <= 20 for h in ("#000000", "#0a0a0a", "#303030")
    ]


@pytest.mark.parametrize("shade", ["#000000", "#ffffff", "#0343df"])
def test_tolerance_255_of_a_shade_lets_every_photo_through(make_table, shade):
    table = make_table(*({"color_hex": color} for color in ("#000000", "#ffffff", "#00ff00")))
    chosen = PhotoFilter(color_hex=shade, color_tolerance=255)
    assert chosen.mask(table).tolist() == [True] * 3


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_at_tolerance_20_is_exactly_the_photos_of_that_name(make_table, name):
    table = make_table(*({"color_hex": shade} for shade in [*FAMILIES.values(), *SHADES]))
    named = [table.photo(row).color_name == name for row in range(len(table))]
    assert PhotoFilter(color_name=name).mask(table).tolist() == named
    assert PhotoFilter(color_name=name, color_tolerance=20).mask(table).tolist() == named
    assert PhotoFilter(color_name=name, color_tolerance=255).mask(table).all()


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.from_regex(r"#[0-9a-f]{6}", fullmatch=True), min_size=1, max_size=20),
    st.sampled_from([*({"color_name": n} for n in FAMILIES), *({"color_hex": s} for s in SHADES)]),
    st.integers(0, 255),
    st.integers(0, 255),
)
def test_a_smaller_tolerance_gives_a_subset(make_table, shades, colour, one, other):
    table = make_table(*({"color_hex": shade} for shade in shades))
    narrow, wide = (
        PhotoFilter(**colour, color_tolerance=tolerance).mask(table)
        for tolerance in sorted([one, other])
    )
    assert not (narrow & ~wide).any()


def test_a_shade_may_be_written_in_capitals(six_photos):
    small = PhotoFilter(color_hex="#e5000f").mask(six_photos)
    assert PhotoFilter(color_hex="#E5000F").mask(six_photos).tolist() == small.tolist()


def test_the_two_colours_cannot_be_combined():
    with pytest.raises(InputError, match="'red' and '#ff0000'; keep one"):
        PhotoFilter(color_name="red", color_hex="#ff0000")


# -- what a filter says of itself -------------------------------------------------------------


def test_a_filter_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PhotoFilter().source = ("nasa",)


@pytest.mark.parametrize(
    ("chosen", "empty"),
    [
        (PhotoFilter(), True),
        (PhotoFilter(color_tolerance=100), True),
        (PhotoFilter(orientation=[], source=(), license_type=None), True),
        (PhotoFilter(orientation="square"), False),
        (PhotoFilter(source="nasa"), False),
        (PhotoFilter(license_type="free"), False),
        (PhotoFilter(color_hex="#000000", color_tolerance=255), False),
        (PhotoFilter(color_name="black"), False),
        (PhotoFilter(photographer="ann"), False),
        (PhotoFilter(after_date="0001-01-01"), False),
        (PhotoFilter(before_date="9999-12-31"), False),
    ],
)
def test_a_filter_is_empty_where_no_condition_is_set(chosen, empty):
    assert chosen.is_empty is empty


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (PhotoFilter(), "any photo"),
        (PhotoFilter(color_tolerance=3), "any photo"),
        (PhotoFilter(color_name="teal"), "colour is teal"),
        (
            PhotoFilter(color_name="teal", color_tolerance=5),
            "colour is teal (narrowed to tolerance 5)",
        ),
        (
            PhotoFilter(color_name="teal", color_tolerance=40),
            "colour is teal (widened to tolerance 40)",
        ),
        (PhotoFilter(color_hex="#1f6f8b"), "colour is within 20 of #1f6f8b"),
        (PhotoFilter(source=("nasa", "pexels")), "source is nasa or pexels"),
        (
            PhotoFilter(license_type="cc0", photographer="ann", after_date="2024-02-29"),
            "license is cc0, and photographer is ann, and uploaded on or after 2024-02-29",
        ),
        (PhotoFilter(before_date="2024-02-29"), "uploaded on or before 2024-02-29"),
    ],
)
def test_a_filter_describes_itself(chosen, words):
    assert chosen.describe() == words


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(filters(SOURCES, LICENSES))
def test_plain_values_rebuild_the_filter(chosen):
    values = json.loads(json.dumps(chosen.to_dict()))
    assert PhotoFilter(**values) == chosen
    assert (values == {}) == (chosen == PhotoFilter())


# -- facets -----------------------------------------------------------------------------------


def test_known_values_are_sorted_and_list_free_among_the_licences_only(six_photos, make_table):
    assert known_values(six_photos, "license_type") == ["by", "cc0", "free", "public domain"]
    assert known_values(six_photos, "source") == ["nasa", "pexels", "unsplash"]
    assert known_values(make_table({"license_type": "free"}), "license_type") == ["free"]
    assert known_values(make_table(), "license_type") == ["free"]


def test_facets_count_most_frequent_first_then_by_name(six_photos):
    assert list(facet_counts(six_photos, "source").items()) == [
        ("unsplash", 4),
        ("nasa", 1),
        ("pexels", 1),
    ]
    assert facet_counts(six_photos, "orientation") == {"landscape": 4, "portrait": 1, "square": 1}


def test_facets_under_a_mask_list_values_without_photos_with_zero(six_photos):
    mask = PhotoFilter(photographer="bob").mask(six_photos)
    assert facet_counts(six_photos, "source", mask) == {"nasa": 1, "unsplash": 1, "pexels": 0}


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(photo_changes, max_size=20), st.sampled_from(CODED_COLUMNS), st.randoms())
def test_facets_are_what_a_counter_counts(make_table, changes, name, random):
    table = make_table(*changes)
    mask = np.array([random.random() < 0.5 for _ in changes], dtype=bool)
    values = [getattr(table.photo(row), name) for row in range(len(table))]
    count_of = facet_counts(table, name)
    assert ("free" in count_of) == (name == "license_type" or "free" in values)
    assert {value: count for value, count in count_of.items() if count} == Counter(values)
    chosen = Counter(value for value, is_in in zip(values, mask, strict=True) if is_in)
    under_mask = facet_counts(table, name, mask)
    assert {value: count for value, count in under_mask.items() if count} == chosen
    assert list(facet_counts(Facets(table), name).items()) == list(count_of.items())
    for photos in (table, Facets(table)):
        for allowed in (mask, Bitmap.of_mask(mask)):
            counts = facet_counts(photos, name, allowed)
            assert list(counts.items()) == list(under_mask.items())


def test_the_licence_facet_lists_free_also_where_no_photo_has_it(six_photos, make_table):
    counts = facet_counts(six_photos, "license_type")
    assert list(counts.items()) == [("cc0", 4), ("by", 1), ("public domain", 1), ("free", 0)]
    none = np.zeros(6, dtype=bool)
    assert facet_counts(six_photos, "license_type", none) == dict.fromkeys(counts, 0)
    assert facet_counts(make_table(), "license_type") == {"free": 0}
    assert facet_counts(make_table({"license_type": "free"}), "license_type") == {"free": 1}
    assert "free" not in facet_counts(six_photos, "source")


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.from_regex(r"#[0-9a-f]{6}", fullmatch=True) | st.sampled_from(SHADES), max_size=30),
    st.sampled_from(sorted(FAMILIES)),
)
def test_the_default_tolerance_is_exactly_the_photos_of_that_colour_name(make_table, shades, name):
    table = make_table(*({"color_hex": shade} for shade in shades))
    rows = numbers(PhotoFilter(color_name=name).mask(table))
    assert rows == numbers(PhotoFilter(color_name=name, color_tolerance=20).mask(table))
    assert rows == [row for row in range(len(table)) if table.photo(row).color_name == name]
    assert rows == numbers(within_name(table.shades, name))
