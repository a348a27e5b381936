"""Section 4.3: one photo and the photos similar to it, asked as a stranger would."""

import pytest

from tests.support.independent_client import (
    PHOTO,
    UNKNOWN,
    check_failure,
    check_invalid,
    check_page,
    check_photo,
)


@pytest.fixture(scope="module")
def photo_id(known):
    return known.plain(7)["photo_id"]


def test_a_photo_is_what_a_search_shows_of_it(known, api):
    for photo in known.everything[::10]:
        assert api.data(f"/photos/{photo['photo_id']}") == photo | {"relevance_score": 1.0}


def test_a_photo_has_every_field_and_no_pagination(api, photo_id):
    answer = api.get(f"/photos/{photo_id}")
    check_photo(answer.json()["data"])
    assert answer.json()["pagination"] is None


@pytest.mark.parametrize("name", PHOTO)
def test_every_field_can_be_selected_alone(api, photo_id, name):
    whole = api.data(f"/photos/{photo_id}")
    assert api.data(f"/photos/{photo_id}", fields=name) == {name: whole[name]}


@pytest.mark.parametrize("path", ["", "/similar"])
def test_an_unknown_field_is_invalid_fields(api, photo_id, path):
    answer = api.get(f"/photos/{photo_id}{path}", fields="photo_id,photographer")
    error = check_failure(answer, 400, "INVALID_FIELDS")
    assert all(name in f"{error['message']} {error['details']}" for name in PHOTO)


@pytest.mark.parametrize("path", ["", "/similar"])
@pytest.mark.parametrize(
    "unknown",
    [UNKNOWN, "abc", "0", "%00", "%2F", "..%2F..", "%F0%9F%8C%BC", "%ff", "'--", "x" * 1000],
)
def test_an_unknown_photo_is_not_found(api, unknown, path):
    answer = api.get(f"/photos/{unknown}{path}")
    assert answer.status_code in {400, 404, 422}
    if unknown in {UNKNOWN, "abc", "0"}:
        check_failure(answer, 404, "NOT_FOUND")


def test_a_photo_that_has_not_changed_is_not_sent_again(api, photo_id):
    tag = api.get(f"/photos/{photo_id}").headers["etag"]
    answer = api.http.get(f"/photos/{photo_id}", headers={"if-none-match": tag})
    assert (answer.status_code, answer.content) == (304, b"")
    other = api.get(f"/photos/{photo_id}", fields="photo_id").headers["etag"]
    assert other != tag


# -- similar -----------------------------------------------------------------------------------


def test_similar_photos_are_paged_like_a_search(known, api, photo_id):
    path = f"/photos/{photo_id}/similar"
    first = check_page(api.get(path, per_page=50))
    pages = api.follow(first, lambda cursor: check_page(api.get(path, cursor=cursor)))
    photo_ids = [photo["photo_id"] for page in pages for photo in page["data"]]
    assert len(photo_ids) == len(set(photo_ids)) == len(known.everything) - 1
    assert photo_id not in photo_ids
    assert {page["pagination"]["per_page"] for page in pages} == {50}


def test_similar_photos_are_whole_and_the_nearest_come_first(api, photo_id):
    page = check_page(api.get(f"/photos/{photo_id}/similar"))
    for photo in page["data"]:
        check_photo(photo)
    scores = [photo["relevance_score"] for photo in page["data"]]
    assert scores == sorted(scores, reverse=True)
    assert page["pagination"]["per_page"] == len(page["data"]) == 20


def test_the_same_picture_is_the_most_similar(known, api):
    photo, twin = known.plain(7), known.plain(40)  # one shade, one size
    similar = api.data(f"/photos/{photo['photo_id']}/similar")
    scores = {each["photo_id"]: each["relevance_score"] for each in similar}
    assert scores[twin["photo_id"]] == max(scores.values())


def test_on_some_plans_there_is_one_page_from_the_start(known, photo_id):
    path = f"/photos/{photo_id}/similar"
    page = check_page(known.api("free").get(path, per_page=5))
    assert page["pagination"] == {"per_page": 5, "has_more": False, "next_cursor": None}
    assert page["data"] == known.api().data(path, per_page=5)
    assert known.api().get(path, per_page=5).json()["pagination"]["has_more"]


def test_fields_select_on_similar_photos_too(api, photo_id):
    similar = api.data(f"/photos/{photo_id}/similar", fields="photo_id,urls", per_page=3)
    assert [set(photo) for photo in similar] == [{"photo_id", "urls"}] * 3


@pytest.mark.parametrize("value", ["1", "100"])
def test_per_page_of_1_to_100_is_accepted(api, photo_id, value):
    similar = api.data(f"/photos/{photo_id}/similar", per_page=value)
    assert len(similar) == int(value)


@pytest.mark.parametrize("value", ["0", "-1", "101", "abc", "", " 5", "1e1", "١", "1" + "0" * 30])
def test_any_other_per_page_is_invalid(api, photo_id, value):
    check_invalid(api.get(f"/photos/{photo_id}/similar", per_page=value), "query", "per_page")
