"""Section 4.4: the lists of values that filters accept, asked as a stranger would."""

import re
from collections import Counter
from urllib.parse import quote

import pytest

from tests.support.independent_client import (
    PHOTOGRAPHER,
    SEARCH,
    TEXT,
    URL,
    check_invalid,
    check_page,
    check_record,
    check_success,
)
from tests.support.spec_server import PEOPLE, SOURCES

SUGGEST = "/facets/photographers/suggest"


def usernames(entries):
    return {entry["username"] for entry in entries}


# -- full lists --------------------------------------------------------------------------------


def test_colours_have_a_name_and_six_digits_without_a_hash(api):
    entries = api.data("/facets/colors")
    for entry in entries:
        check_record(entry, {"name": TEXT, "hex": TEXT})
        assert re.fullmatch(r"[0-9a-fA-F]{6}", entry["hex"])
    names = [entry["name"] for entry in entries]
    assert len(names) == len(set(names))
    assert {"red", "green", "blue", "black", "white"} <= set(names)


def test_the_shade_of_a_colour_is_of_its_own_family(api):
    for entry in api.data("/facets/colors"):
        shade = {"color_hex": f"#{entry['hex']}", "color_tolerance": 0}
        for photo in api.search(**shade):
            assert photo["color_name"] == entry["name"]


def test_sources_have_a_name_and_the_url_of_their_licence(known, api):
    entries = api.data("/facets/sources")
    for entry in entries:
        check_record(entry, {"name": TEXT, "license_url": TEXT})
        assert URL.fullmatch(entry["license_url"])
    names = sorted(entry["name"] for entry in entries)
    assert names == sorted({record["source"] for record in known.records}) == sorted(SOURCES)


def test_orientations_are_landscape_portrait_and_square(api):
    orientations = api.data("/facets/orientations")
    assert sorted(entry["name"] for entry in orientations) == ["landscape", "portrait", "square"]
    assert all(set(entry) == {"name"} for entry in orientations)


def test_licences_are_those_of_the_photos_and_free(known, api):
    licences = api.data("/facets/licenses")
    assert all(set(entry) == {"name"} for entry in licences)
    names = [entry["name"] for entry in licences]
    assert sorted(names) == sorted({r["license_type"] for r in known.records} | {"free"})


@pytest.mark.parametrize(
    ("facet", "filter_name"),
    [("colors", "color_name"), ("sources", "source"), ("orientations", "orientation"),
     ("licenses", "license_type")],
)  # fmt: skip
def test_every_name_of_a_facet_is_accepted_by_its_filter(api, facet, filter_name):
    for entry in api.data(f"/facets/{facet}"):
        check_page(api.get(SEARCH, **{filter_name: entry["name"]}, per_page=1))


@pytest.mark.parametrize(
    "path", ["colors", "sources", "orientations", "licenses", "photographers/ann"]
)
def test_facets_do_not_paginate(api, path):
    assert check_success(api.get(f"/facets/{path}"))["pagination"] is None


def test_suggestions_do_not_paginate(api):
    assert check_success(api.get(SUGGEST, q="a"))["pagination"] is None


@pytest.mark.parametrize("path", ["/facets/colors", "/facets/sources", SUGGEST + "?q=ann"])
def test_a_facet_that_has_not_changed_is_not_sent_again(api, path):
    tag = api.get(path).headers["etag"]
    answer = api.http.get(path, headers={"if-none-match": f'"other", {tag}'})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == tag
    check_success(api.http.get(path, headers={"if-none-match": '"other"'}))


# -- suggestions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "username"),
    [
        ("ann", "ann"), ("an", "ann"), ("nn", "ann"), ("Ann Lee", "ann"), ("ANN", "ann"),
        ("n L", "ann"), ("b", "bob"), ("josé", "josé.núñez"), ("jose", "josé.núñez"),
        ("NUNEZ", "josé.núñez"), ("Núñ", "josé.núñez"), ("100%", "100%_wool"), ("%", "100%_wool"),
        ("_", "100%_wool"), ("wool & søn", "100%_wool"), ("Son", "100%_wool"), ("a/b", "a/b?c#d"),
        ("strasse", "a/b?c#d"), ("straße", "a/b?c#d"), ("?c#", "a/b?c#d"), ("Hara", "bob"),
    ],
)  # fmt: skip
def test_suggestions_match_any_part_of_name_or_username(api, q, username):
    suggestions = api.data(SUGGEST, q=q, limit=50)
    assert username in usernames(suggestions)
    for entry in suggestions:
        check_record(entry, PHOTOGRAPHER)


def test_percent_and_underscore_are_literal(api):
    assert usernames(api.data(SUGGEST, q="%", limit=50)) == {"100%_wool"}
    assert usernames(api.data(SUGGEST, q="100__wool", limit=50)) == set()


def test_what_no_name_contains_suggests_nobody(api):
    assert api.data(SUGGEST, q="zzzzzz") == []
    assert api.data(SUGGEST, q="x" * 100) == []


def test_a_photographer_is_listed_once_for_each_library_with_the_photos_there(known, api):
    counted = Counter(
        (photo["photographer_username"], photo["source"]) for photo in known.everything
    )
    for entry in api.data(SUGGEST, q="a", limit=50):
        assert entry["photos_count"] == counted[entry["username"], entry["source"]]


def test_suggestions_are_10_unless_told_otherwise(api):
    assert len(api.data(SUGGEST, q="a")) == 10
    assert api.data(SUGGEST, q="a") == api.data(SUGGEST, q="a", limit=10)


@pytest.mark.parametrize("limit", ["1", "2", "49", "50"])
def test_limit_of_1_to_50_is_accepted(api, limit):
    suggestions = api.data(SUGGEST, q="a", limit=limit)
    assert suggestions == api.data(SUGGEST, q="a", limit=50)[: int(limit)]


@pytest.mark.parametrize(
    "limit", ["0", "-1", "51", "abc", "", " 5", "1e1", "1.0", "١", "1" + "0" * 30]
)
def test_any_other_limit_is_invalid(api, limit):
    check_invalid(api.get(SUGGEST, q="a", limit=limit), "query", "limit")


@pytest.mark.parametrize("q", ["a", "x" * 100, "語" * 100, "🌼" * 100])
def test_q_of_1_to_100_characters_is_accepted(api, q):
    check_success(api.get(SUGGEST, q=q))


@pytest.mark.parametrize("q", ["", "x" * 101, "語" * 101, "🌼" * 101, "x" * 5000])
def test_any_other_q_is_invalid(api, q):
    check_invalid(api.get(SUGGEST, q=q), "query", "q")


def test_q_is_required(api):
    check_invalid(api.get(SUGGEST), "query", "q")


# -- one username ------------------------------------------------------------------------------


@pytest.mark.parametrize(("username", "full_name"), PEOPLE[:5])
def test_a_username_has_an_entry_for_each_library(known, api, username, full_name):
    entries = api.data(f"/facets/photographers/{quote(username, safe='')}")
    profiles = {
        (photo["source"], photo["photographer_full_name"], photo["photographer_url"])
        for photo in known.everything
        if photo["photographer_username"] == username
    }
    assert {(e["source"], e["full_name"], e["url"]) for e in entries} == profiles
    assert {entry["full_name"] for entry in entries} == {full_name}
    assert {entry["username"] for entry in entries} == {username}
    assert sum(entry["photos_count"] for entry in entries) == 15
    assert len(entries) == 2
    for entry in entries:
        check_record(entry, PHOTOGRAPHER)


@pytest.mark.parametrize("username", ["nobody", "ANN", "an", "%25", "%F0%9F%8C%BC", "x" * 300])
def test_the_username_must_be_exact_and_an_unknown_one_has_no_entries(api, username):
    assert api.data(f"/facets/photographers/{username}") == []


def test_suggested_usernames_are_accepted_as_a_filter(api):
    for entry in api.data(SUGGEST, q="a", limit=50):
        if entry["username"]:
            photos = api.all_photos(photographer=entry["username"], source=entry["source"])
            assert len(photos) == entry["photos_count"]
