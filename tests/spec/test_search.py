"""Section 4.1: search by text and filters, asked as a stranger would."""

import datetime
from collections import defaultdict

import pytest

from tests.support.independent_client import (
    PHOTO,
    SEARCH,
    check_failure,
    check_invalid,
    check_photo,
)
from tests.support.spec_server import SHADES, SIZES

KINDS = len(SHADES) * len(SIZES)  # Of plain pictures, copies of which are equal.


# -- what a photo is ---------------------------------------------------------------------------


def test_a_search_without_cap_reaches_every_photo_of_the_library(known):
    assert len(known.everything) == len(known.records)
    assert len({photo["photo_id"] for photo in known.everything}) == len(known.records)


def test_every_photo_has_every_field_of_the_specification(known):
    for photo in known.everything:
        check_photo(photo)


def test_photos_say_what_their_library_said_of_them(known):
    names = ("source", "license_type", "source_description", "source_image_url")
    for photo in known.everything:
        record = known.record_of[photo["photo_id"]]
        assert {name: photo[name] for name in names} == {name: record[name] for name in names}
        assert photo["photographer_username"] == (record["photographer_username"] or "")
        assert photo["uploaded_on"] == (record["uploaded_on"] or known.today)


def test_photos_say_what_is_seen_in_them(known):
    plain = [p for p in known.everything if p["source_photo_id"].startswith("plain-")]
    for photo in plain:
        record = known.record_of[photo["photo_id"]]
        names = ("width", "height", "color_hex")
        assert {name: photo[name] for name in names} == {name: record[name] for name in names}


def test_orientation_is_that_of_the_sides(known):
    words = {-1: "portrait", 0: "square", 1: "landscape"}
    for photo in known.everything:
        longer = (photo["width"] > photo["height"]) - (photo["width"] < photo["height"])
        assert photo["orientation"] == words[longer]


@pytest.mark.parametrize("facet", ["colors", "sources", "licenses", "orientations"])
def test_names_of_photos_are_names_of_the_facets(known, api, facet):
    field = {"colors": "color_name", "sources": "source", "licenses": "license_type"}
    field = field.get(facet, "orientation")
    names = {entry["name"] for entry in api.data(f"/facets/{facet}")}
    assert {photo[field] for photo in known.everything} <= names


def test_attribution_is_escaped_and_names_title_photographer_and_licence(known):
    photo = known.plain(4)
    assert photo["attribution"]["plain"] == "“Plain <4>” by Ann Lee-Straße (by)"
    assert "&lt;4&gt;" in photo["attribution"]["html"]
    assert "https://example.org/page/4?a=1&amp;b=2" in photo["attribution"]["html"]
    assert "https://example.org/people/4" in photo["attribution"]["html"]


def test_links_of_a_photo_lead_to_pictures(known):
    photo = known.plain(1)
    for url in (photo["image_url"], *photo["urls"].values()):
        answer = known.client().http.get(url)  # a browser has no key
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("image/")


def test_an_answer_says_which_state_of_what_answered(api):
    headers = api.get(SEARCH, q="sea").headers
    assert headers["x-searchlab-config"]
    assert headers["x-searchlab-snapshot"]
    assert headers["x-searchlab-plan"].startswith("exact")
    timings = {part.split(";")[0].strip() for part in headers["server-timing"].split(",")}
    assert {"embed", "filter", "search", "serialise"} <= timings


# -- q -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "q",
    [
        "dragonfly",
        "a yellow flower on a blurred green background",
        "une fleur jaune",
        "gelbe Blume",
        "желтый цветок",
        "黄色い花",
        "زهرة صفراء",
        "🌼",
        "%",
        "_",
        "' OR 1=1 --",
        '"; DROP TABLE photos; --',
        "<script>alert(1)</script>",
        "a & b = c + d # e / f ? g",
        "{{7*7}}",
        "\u202e",
        "x" * 500,
        "語" * 500,
        "🌼" * 500,
        "e\u0301" * 250,
    ],
)
def test_q_may_be_any_text_of_up_to_500_characters(api, q):
    assert len(api.search(q=q, per_page=3)) == 3


@pytest.mark.parametrize("q", ["x" * 501, "語" * 501, "🌼" * 501, "x" * 5000])
def test_q_of_more_than_500_characters_is_invalid(api, q):
    check_invalid(api.get(SEARCH, q=q), "query", "q")


def test_photos_are_found_by_what_they_show(known, api):
    places = []
    for photo in known.everything:
        if not photo["source_photo_id"].startswith("plain-"):
            ids = api.ids(q=photo["alt_description"], per_page=100, fields="photo_id")
            places.append(1 / (1 + ids.index(photo["photo_id"])) if photo["photo_id"] in ids else 0)
    assert sum(places) / len(places) > 0.2  # by chance it were 0.05


def test_scores_never_increase_down_a_ranking_by_relevance(api):
    scores = [photo["relevance_score"] for photo in api.all_photos(q="a yellow flower")]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]


def test_equal_scores_are_ordered_by_photo_id(api):
    """Of one picture under several ids: other scores may only look equal, in six digits."""
    copies = defaultdict(list)
    for photo in api.all_photos(q="a plain red square"):
        kind, _, number = photo["source_photo_id"].partition("-")
        if kind == "plain":
            copies[int(number) % KINDS].append((photo["relevance_score"], photo["photo_id"]))
    assert len(copies) == KINDS
    for same in copies.values():
        assert len(same) > 1
        assert len({score for score, _ in same}) == 1
        assert same == sorted(same)


def test_a_search_by_filters_alone_scores_every_photo_1(api):
    assert {photo["relevance_score"] for photo in api.search(orientation="square")} == {1.0}


def test_the_same_search_gives_the_same_answer(api):
    assert api.search(q="sea", per_page=100) == api.search(q="sea", per_page=100)


# -- at least one criterion --------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"q": ""},
        {"per_page": 5},
        {"limit": 5},
        {"fields": "photo_id"},
        {"sort_by": "newest"},
        {"score_threshold": 0},
        {"color_tolerance": 30},
        {"q": "", "limit": 5, "per_page": 5, "sort_by": "newest", "fields": "photo_id"},
        {"unknown": "x"},
    ],
)
def test_a_search_with_neither_q_nor_a_filter_is_invalid(api, params):
    check_invalid(api.get(SEARCH, **params))


@pytest.mark.parametrize(
    "params",
    [
        {"q": "sea"},
        {"color_name": "red"},
        {"color_hex": "#e50000"},
        {"orientation": "square"},
        {"source": "scikit-learn"},
        {"license_type": "cc0"},
        {"after_date": "2020-01-01"},
        {"photographer": "ann"},
    ],
)
def test_q_or_any_one_filter_is_enough(api, params):
    assert api.search(**params)


# -- numbers -----------------------------------------------------------------------------------

NO_INTEGERS = ["abc", "", " 5", "5 ", "1e1", "1.0", "5.5", "١", "²", "0x10", "1_0", "NaN", "null"]
HUGE = ["1" + "0" * 30, "-1" + "0" * 30, "9223372036854775808", "1" * 5000]


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, str(value)) for name in ("per_page", "limit") for value in (1, 2, 99, 100)]
    + [("color_tolerance", str(value)) for value in (0, 1, 254, 255)],
)
def test_integers_in_their_range_are_accepted(api, name, value):
    api.page(q="sea", color_name="blue", **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [(n, v) for n in ("per_page", "limit") for v in [*NO_INTEGERS, *HUGE, "0", "-1", "101"]]
    + [("color_tolerance", v) for v in [*NO_INTEGERS, *HUGE, "-1", "256"]],
)
def test_integers_out_of_range_and_what_is_no_integer_are_invalid(api, name, value):
    check_invalid(api.get(SEARCH, **{"q": "sea", "color_name": "blue", name: value}), "query", name)


@pytest.mark.parametrize("value", ["0", "1", "0.0", "1.0", "0.5", ".5", "1e-3", "0.999999999999"])
def test_score_threshold_from_0_to_1_is_accepted(api, value):
    api.page(q="sea", score_threshold=value)


@pytest.mark.parametrize(
    "value",
    ["-0.1", "1.1", "1.0000001", "2", "nan", "NaN", "inf", "-inf", "infinity", "1e400", "abc", "",
     " 0.5", "0,5", "٠.٥", "0x1", "1e", "0_1", "9" * 400],
)  # fmt: skip
def test_score_threshold_out_of_range_and_what_is_no_number_is_invalid(api, value):
    check_invalid(api.get(SEARCH, q="sea", score_threshold=value), "query", "score_threshold")


def test_every_failure_is_named_at_once(api):
    wrong = {"per_page": "0", "limit": "abc", "color_tolerance": "256", "score_threshold": "2"}
    details = check_invalid(api.get(SEARCH, q="sea", **wrong))
    assert {tuple(detail["loc"]) for detail in details} >= {("query", name) for name in wrong}


# -- per_page, limit, score_threshold, sort_by ---------------------------------------------------


@pytest.mark.parametrize("per_page", [1, 7, 100])
def test_per_page_is_the_page_size(api, per_page):
    body = api.page(q="sea", per_page=per_page)
    assert body["pagination"]["per_page"] == len(body["data"]) == per_page


def test_a_page_has_20_photos_unless_told_otherwise(api):
    body = api.page(q="sea")
    assert body["pagination"]["per_page"] == len(body["data"]) == 20


@pytest.mark.parametrize(
    ("limit", "per_page", "sizes"),
    [
        (4, 2, [2, 2]),
        (3, 2, [2, 1]),
        (1, 2, [1]),
        (2, 2, [2]),
        (5, 100, [5]),
        (100, 100, [100]),
        (100, 40, [40, 40, 20]),
        (20, None, [20]),
        (21, None, [20, 1]),
        (1, 1, [1]),
        (3, 1, [1, 1, 1]),
    ],
)
@pytest.mark.parametrize("query", [{"q": "sea"}, {"color_name": "red", "color_tolerance": 255}])
def test_limit_caps_the_total_over_all_pages(api, limit, per_page, sizes, query):
    size = {"per_page": per_page} if per_page else {}
    pages = api.pages(**query, limit=limit, **size)
    assert [len(page["data"]) for page in pages] == sizes
    photo_ids = [photo["photo_id"] for page in pages for photo in page["data"]]
    assert photo_ids == api.all_ids(**query)[:limit]


def test_a_limit_larger_than_the_results_changes_nothing(api):
    assert api.all_ids(photographer="bob", limit=100) == api.all_ids(photographer="bob")


@pytest.mark.parametrize("threshold", [0, 0.001, 0.005, 0.01, 0.2, 1])
def test_score_threshold_keeps_the_photos_that_score_at_least_it(api, threshold):
    unset = api.all_photos(q="a yellow flower")
    photos = api.all_photos(q="a yellow flower", score_threshold=threshold)
    assert photos == [photo for photo in unset if photo["relevance_score"] >= threshold]


def test_score_threshold_can_be_the_very_score_of_a_photo(api):
    third = api.search(q="a yellow flower")[2]
    photo_ids = api.all_ids(q="a yellow flower", score_threshold=repr(third["relevance_score"]))
    assert third["photo_id"] in photo_ids


def test_score_threshold_and_limit_hold_together(api):
    photos = api.all_photos(q="a yellow flower", score_threshold=0.001, limit=5, per_page=2)
    assert photos == api.all_photos(q="a yellow flower", score_threshold=0.001)[:5]
    assert len(photos) == 5


def test_relevance_is_the_default_order(api):
    assert api.all_ids(q="sea") == api.all_ids(q="sea", sort_by="relevance")


def check_newest(api, **query):
    newest = api.all_photos(**query, sort_by="newest")
    assert {p["photo_id"] for p in newest} == set(api.all_ids(**query))
    days = [datetime.date.fromisoformat(photo["uploaded_on"]).toordinal() for photo in newest]
    places = [(-day, photo["photo_id"]) for day, photo in zip(days, newest, strict=True)]
    assert places == sorted(places)
    assert len(set(days)) < len(days)


@pytest.mark.parametrize("query", [{"q": "sea"}, {"orientation": "square"}])
def test_newest_is_the_same_photos_the_most_recent_first(api, query):
    check_newest(api, **query)


def test_newest_holds_to_the_threshold(api):
    thirtieth = api.search(q="sea", per_page=30)[29]["relevance_score"]
    check_newest(api, q="sea", score_threshold=repr(thirtieth))


# -- fields ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PHOTO)
def test_every_field_of_a_photo_can_be_selected_alone(api, name):
    whole = api.search(q="sea", per_page=2)
    assert api.search(q="sea", per_page=2, fields=name) == [{name: p[name]} for p in whole]


@pytest.mark.parametrize(
    "fields",
    ["photo_id,urls", "urls,photo_id", "photo_id,photo_id", "attribution,source_photo_id,width"],
)
def test_fields_gives_exactly_the_subset(api, fields):
    names = set(fields.split(","))
    for photo in api.search(q="sea", fields=fields):
        assert set(photo) == names


def test_all_fields_can_be_named(api):
    assert api.search(q="sea", fields=",".join(PHOTO)) == api.search(q="sea")


@pytest.mark.parametrize(
    "fields", ["photographer", "photo_id,nope", "Photo_id", "urls.thumb", "*", "nope", "file"]
)
def test_an_unknown_field_is_invalid_fields_with_the_accepted_names(api, fields):
    error = check_failure(api.get(SEARCH, q="sea", fields=fields), 400, "INVALID_FIELDS")
    listed = f"{error['message']} {error['details']}"
    assert [name for name in PHOTO if name not in listed] == []


def test_fields_do_not_change_which_photos_come(api):
    assert [p["photo_id"] for p in api.search(q="sea", fields="photo_id")] == api.ids(q="sea")
