"""Section 4.1: the filters and colours of a search, asked as a stranger would."""

import itertools

import pytest

from tests.support.independent_client import SEARCH, check_invalid, check_page


@pytest.fixture(scope="module")
def select(known):
    """List the photo_ids whose record, as the API tells it, meets a condition."""

    def ids(condition):
        return {photo["photo_id"] for photo in known.everything if condition(photo)}

    return ids


# -- filters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [None, "a yellow flower"])
@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("orientation", ["landscape"]),
        ("orientation", ["portrait"]),
        ("orientation", ["square"]),
        ("orientation", ["square", "portrait"]),
        ("orientation", ["square", "portrait", "landscape"]),
        ("orientation", ["square", "square"]),
        ("source", ["scikit-learn"]),
        ("source", ["palapeli-data", "mate-backgrounds"]),
        ("license_type", ["cc0"]),
        ("license_type", ["public-domain", "by", "cc0"]),
    ],
)
def test_a_repeated_filter_lets_any_of_its_values_through(api, select, field, values, q):
    text = {"q": q} if q else {}
    photo_ids = api.all_ids(**{field: values}, **text)
    assert set(photo_ids) == select(lambda photo: photo[field] in values)
    assert len(photo_ids) == len(set(photo_ids))


def test_filters_of_different_kinds_must_all_hold(api, select):
    photo_ids = api.all_ids(
        q="a picture",
        orientation=["square", "portrait"],
        source=["scikit-learn", "palapeli-data"],
        license_type=["by", "public-domain"],
        photographer="bob",
        after_date="2020-01-05",
        color_name="red",
        color_tolerance=255,
    )
    expected = select(
        lambda photo: (
            photo["orientation"] in {"square", "portrait"}
            and photo["source"] in {"scikit-learn", "palapeli-data"}
            and photo["license_type"] in {"by", "public-domain"}
            and photo["photographer_username"] == "bob"
            and photo["uploaded_on"] >= "2020-01-05"
        )
    )
    assert set(photo_ids) == expected
    assert expected


def test_filters_that_no_photo_meets_give_an_empty_page(api):
    body = api.page(source="scikit-learn", after_date="9999-12-31")
    assert body["data"] == []
    assert body["pagination"] == {"per_page": 20, "has_more": False, "next_cursor": None}


def test_the_licence_free_is_accepted_where_no_photo_has_it(api):
    assert api.search(license_type="free") == []


@pytest.mark.parametrize("username", ["ann", "bob", "josé.núñez", "100%_wool", "a/b?c#d"])
def test_photographer_is_an_exact_username(api, select, username):
    photo_ids = set(api.all_ids(photographer=username))
    assert photo_ids == select(lambda photo: photo["photographer_username"] == username)
    assert len(photo_ids) == 15


@pytest.mark.parametrize("username", ["nobody", "an", "ANN", "Ann Lee", "100__wool", "%"])
def test_an_unknown_photographer_has_no_photos(api, username):
    assert api.search(photographer=username) == []


@pytest.mark.parametrize("day", ["2020-01-01", "2020-01-05", "2020-02-02", "1582-10-15"])
def test_after_date_is_inclusive(api, select, day):
    photo_ids = set(api.all_ids(after_date=day))
    assert photo_ids == select(lambda photo: photo["uploaded_on"] >= day)


@pytest.mark.parametrize(
    "day",
    [
        "2020-1-1", "20200101", "2020-02-30", "2019-02-29", "yesterday", "2020-01-01T00:00:00",
        "01-01-2020", "2020-W01-1", "2020-01", "2020", "-2020-01-01", " 2020-01-01", "0000-01-01",
        "2020-00-01", "2020-13-01", "٢٠٢٠-٠١-٠١", "10000-01-01",
    ],
)  # fmt: skip
def test_after_date_must_be_a_day_as_yyyy_mm_dd(api, day):
    check_invalid(api.get(SEARCH, after_date=day), "query", "after_date")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("orientation", "panorama"),
        ("orientation", "Landscape"),
        ("orientation", ""),
        ("orientation", "landscape,square"),
        ("source", "nowhere"),
        ("source", ""),
        ("license_type", "stolen"),
        ("license_type", "CC0"),
        ("color_name", "octarine"),
        ("color_name", "Red"),
        ("color_name", ""),
        ("sort_by", "oldest"),
        ("sort_by", ""),
        ("sort_by", "NEWEST"),
    ],
)
def test_a_word_that_is_none_of_the_accepted_is_invalid(api, name, value):
    check_invalid(api.get(SEARCH, **{"q": "sea", name: value}), "query", name)


def test_one_wrong_value_of_a_repeated_filter_is_invalid(api):
    check_invalid(api.get(SEARCH, orientation=["square", "round"]), "query", "orientation")


@pytest.mark.parametrize("name", ["q", "per_page", "color_name", "sort_by", "limit", "cursor"])
def test_what_is_not_repeatable_may_come_once(api, name):
    value = {"q": "a", "color_name": "red", "sort_by": "newest", "cursor": "x"}.get(name, "3")
    check_invalid(api.get(SEARCH, **{"q": "sea"} | {name: [value, value]}), "query", name)


# -- colours -----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(11))
def test_color_hex_with_tolerance_0_is_the_exact_shade(known, api, select, number):
    shade = known.plain(number)["color_hex"]
    photo_ids = set(api.all_ids(color_hex=shade, color_tolerance=0))
    assert photo_ids == select(lambda photo: photo["color_hex"] == shade)
    assert len(photo_ids) >= 6


def test_color_hex_may_be_written_in_capitals(api):
    assert api.all_ids(color_hex="#15B01A") == api.all_ids(color_hex="#15b01a")


@pytest.mark.parametrize("color", [{"color_hex": "#15b01a"}, {"color_name": "green"}])
def test_a_larger_tolerance_lets_more_through_and_255_all(known, api, color):
    sets = [set(api.all_ids(**color, color_tolerance=t)) for t in (0, 10, 20, 40, 100, 255)]
    for smaller, larger in itertools.pairwise(sets):
        assert smaller <= larger
    assert len(sets[-1]) == len(known.everything)
    assert len(sets[0]) < len(sets[-1])


@pytest.mark.parametrize("color", [{"color_hex": "#15b01a"}, {"color_name": "green"}])
def test_the_default_tolerance_is_20(api, color):
    assert api.all_ids(**color) == api.all_ids(**color, color_tolerance=20)


@pytest.mark.parametrize("name", ["red", "green", "blue", "yellow", "black", "white", "purple"])
def test_color_name_is_exactly_the_photos_of_that_name(api, select, name):
    assert set(api.all_ids(color_name=name)) == select(lambda photo: photo["color_name"] == name)


def test_every_name_of_the_colours_facet_is_accepted(api):
    for entry in api.data("/facets/colors"):
        check_page(api.get(SEARCH, color_name=entry["name"], per_page=1))


@pytest.mark.parametrize(
    "shade",
    ["15b01a", "#15b01", "#15b01aa", "#15b01g", "#fff", "green", "", "#", " #15b01a", "#١٥٢٣٤٥"],
)
def test_color_hex_must_be_a_hash_and_six_digits(api, shade):
    check_invalid(api.get(SEARCH, color_hex=shade), "query", "color_hex")


def test_color_name_and_color_hex_cannot_be_combined(api):
    check_invalid(api.get(SEARCH, color_name="green", color_hex="#15b01a"))
    check_invalid(api.get(SEARCH, q="sea", color_name="green", color_hex="#15b01a"))
