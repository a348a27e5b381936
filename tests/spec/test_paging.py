"""Sections 2.2 and 4.8: pages and cursors, asked as a stranger would."""

import pytest

from tests.support.independent_client import (
    SEARCH,
    check_failure,
    check_page,
    check_refused,
    check_success,
)


@pytest.fixture(scope="module")
def photo_id(known):
    return known.plain(3)["photo_id"]


def found_in(pages):
    return [photo["photo_id"] for page in pages for photo in page["data"]]


QUERIES = [
    {"q": "a yellow flower"},
    {"orientation": "square"},
    {"q": "sea", "sort_by": "newest"},
    {"q": "sea", "color_name": "blue", "color_tolerance": 60},
    {"q": "sea", "limit": 33},
    {"after_date": "2020-01-10", "source": ["scikit-learn", "palapeli-data"], "sort_by": "newest"},
    {"q": "sea", "score_threshold": 0.001},
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("per_page", [1, 7, 20, 100])
def test_pages_are_slices_of_one_ranking(api, query, per_page):
    whole = api.all_ids(**query)
    pages = api.pages(**query, per_page=per_page, fields="photo_id")
    assert found_in(pages) == whole
    assert len(whole) == len(set(whole))
    sizes = [len(page["data"]) for page in pages]
    assert sizes[:-1] == [per_page] * (len(sizes) - 1)
    assert 0 < sizes[-1] <= per_page


def test_a_page_that_ends_exactly_at_the_last_result_is_the_last(api):
    total = len(api.all_ids(photographer="ann"))
    body = api.page(photographer="ann", per_page=total)
    assert len(body["data"]) == total
    assert body["pagination"] == {"per_page": total, "has_more": False, "next_cursor": None}
    assert api.page(photographer="ann", per_page=total - 1)["pagination"]["has_more"]


def test_per_page_stays_that_of_the_first_request(api):
    first = api.page(q="sea", per_page=3)
    second = api.page(cursor=first["pagination"]["next_cursor"])
    third = api.page(cursor=second["pagination"]["next_cursor"], per_page=50)
    assert [p["pagination"]["per_page"] for p in (first, second, third)] == [3, 3, 3]
    assert [len(p["data"]) for p in (first, second, third)] == [3, 3, 3]


def test_the_cursor_holds_query_and_filters(api):
    query = {"q": "sea", "orientation": "square", "color_name": "red", "color_tolerance": 255}
    cursor = api.page(**query, per_page=5)["pagination"]["next_cursor"]
    repeated = api.page(**query, per_page=5, cursor=cursor)
    assert api.page(cursor=cursor)["data"] == repeated["data"]
    assert repeated["data"] == api.search(**query, per_page=10)[5:]


def test_with_a_cursor_other_parameters_are_ignored(api):
    cursor = api.page(q="sea", per_page=5)["pagination"]["next_cursor"]
    plain = api.page(cursor=cursor)["data"]
    changed = {"q": "mountain", "orientation": "square", "sort_by": "newest", "limit": 1}
    assert api.page(cursor=cursor, **changed)["data"] == plain


@pytest.mark.parametrize(
    "ignored",
    [{"per_page": "abc"}, {"limit": "0"}, {"color_name": "octarine"}, {"q": "x" * 501},
     {"color_name": "red", "color_hex": "#e50000"}, {"after_date": "never"}, {"source": ""}],
)  # fmt: skip
def test_even_where_they_are_invalid(api, ignored):
    cursor = api.page(q="sea", per_page=5)["pagination"]["next_cursor"]
    assert api.page(cursor=cursor, **ignored)["data"] == api.page(cursor=cursor)["data"]


def test_but_unknown_fields_are_invalid_with_a_cursor_too(api):
    cursor = api.page(q="sea", per_page=5)["pagination"]["next_cursor"]
    check_failure(api.get(SEARCH, cursor=cursor, fields="nope"), 400, "INVALID_FIELDS")


def test_fields_may_differ_from_page_to_page(api):
    first = api.page(q="sea", per_page=5, fields="photo_id")
    cursor = first["pagination"]["next_cursor"]
    assert set(api.page(cursor=cursor, fields="width")["data"][0]) == {"width"}
    assert len(api.page(cursor=cursor)["data"][0]) == 22


def test_a_cursor_may_be_used_again(api):
    cursor = api.page(q="sea", per_page=5)["pagination"]["next_cursor"]
    assert api.page(cursor=cursor)["data"] == api.page(cursor=cursor)["data"]


def test_cursors_keep_working_while_photos_are_asked_for_in_between(api):
    first = api.page(q="sea", per_page=50)
    api.pages(q="mountain", per_page=10)
    rest = api.follow(first, lambda cursor: api.page(cursor=cursor))
    assert found_in(rest) == api.all_ids(q="sea")


# -- cursors that are none ---------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 5, 20, 40, -1, -2, -10])
def test_one_wrong_character_in_a_cursor_is_refused(api, place):
    cursor = api.page(q="sea")["pagination"]["next_cursor"]
    place %= len(cursor)
    for wrong in ("A", "B", "é"):
        if cursor[place] != wrong:
            changed = cursor[:place] + wrong + cursor[place + 1 :]
            check_refused(api.get(SEARCH, cursor=changed))


@pytest.mark.parametrize(
    "change",
    [lambda c: c[:-1], lambda c: c + "A", lambda c: c * 2, lambda c: c[::-1], lambda c: f" {c}",
     lambda c: "abc", lambda c: "0", lambda c: "null", lambda c: "x" * 10_000, lambda c: "語",
     lambda c: c.swapcase(), lambda c: "..", lambda c: "=" * 20],
)  # fmt: skip
def test_what_is_no_cursor_is_refused(api, change):
    cursor = api.page(q="sea")["pagination"]["next_cursor"]
    check_refused(api.get(SEARCH, cursor=change(cursor)))


def test_a_cursor_is_bound_to_its_account(known, api):
    cursor = api.page(q="sea")["pagination"]["next_cursor"]
    check_refused(known.api("other").get(SEARCH, cursor=cursor))


def test_another_key_of_the_account_may_use_its_cursor(known, api):
    cursor = api.page(q="sea")["pagination"]["next_cursor"]
    second = known.new_account("paid", name="pager")
    assert second.page(cursor=cursor)["data"] == api.page(cursor=cursor)["data"]


def test_a_cursor_is_bound_to_its_operation(known, api, photo_id):
    path = f"/photos/{photo_id}/similar"
    of_text = api.page(q="sea")["pagination"]["next_cursor"]
    of_similar = check_page(api.get(path))["pagination"]["next_cursor"]
    check_refused(api.get(path, cursor=of_text))
    check_refused(api.get(SEARCH, cursor=of_similar))
    check_refused(api.post(SEARCH, cursor=of_similar))
    check_refused(api.get(f"/photos/{known.plain(9)['photo_id']}/similar", cursor=of_similar))


def test_an_empty_cursor_is_none(api):
    answer = api.get(SEARCH, q="sea", cursor="")
    if answer.status_code != 422:
        assert check_page(answer)["data"] == api.search(q="sea")


# -- who paginates -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/facets/colors", "/facets/photographers/suggest?q=a", "/collections", "/usage",
     "/usage/monthly", "/usage/daily", "/usage/by-key"],
)  # fmt: skip
def test_only_searches_and_similar_photos_paginate(api, path):
    assert check_success(api.get(path))["pagination"] is None


def test_searches_and_similar_photos_paginate(api, photo_id):
    check_page(api.get(SEARCH, q="sea"))
    check_page(api.post(SEARCH, photo_id=photo_id))
    check_page(api.get(f"/photos/{photo_id}/similar"))
