"""Section 4.5 and the rules of 3: collections, asked as a stranger would."""

import datetime

import pytest

from tests.support.independent_client import (
    COLLECTION,
    UNKNOWN,
    add_photo,
    check_failure,
    check_invalid,
    check_moment,
    check_record,
    check_refused,
    check_success,
    create_collection,
    read_collection,
)


@pytest.fixture(scope="module")
def other(known):
    return known.api("other")


# -- create ------------------------------------------------------------------------------------


def test_a_new_collection_has_every_field_and_no_photos(api):
    before = datetime.datetime.now(datetime.UTC)
    collection = create_collection(api, name="Herbst", description="Blätter", is_public=True)
    check_record(collection, COLLECTION)
    assert (collection["name"], collection["description"], collection["is_public"]) == (
        "Herbst",
        "Blätter",
        True,
    )
    assert (collection["photos_count"], collection["cover_photo_id"]) == (0, "")
    assert "photos" not in collection
    second = datetime.timedelta(seconds=1)
    made = check_moment(collection["created_at"])
    assert before - second <= made <= datetime.datetime.now(datetime.UTC) + second
    assert check_moment(collection["updated_at"]) == made


def test_description_is_null_and_is_public_false_by_default(api):
    collection = create_collection(api)
    assert collection["description"] is None
    assert collection["is_public"] is False
    assert create_collection(api, description=None)["description"] is None


@pytest.mark.parametrize(
    "name",
    ["x", " ", " x ", "x" * 255, "語" * 255, "🌼" * 255, "<script>", "'; DROP TABLE x; --",
     "\u202e", "a\nb", "%s %(x)s {0}"],
)  # fmt: skip
def test_a_name_of_1_to_255_characters_is_kept_as_it_is(api, name):
    collection = create_collection(api, name=name)
    assert collection["name"] == name
    assert read_collection(api, collection["id"])["name"] == name


@pytest.mark.parametrize("name", ["", "x" * 256, "🌼" * 256, None, 5, True, ["x"], {"a": 1}, 1.5])
def test_any_other_name_is_invalid(api, name):
    check_invalid(api.post("/collections", {"name": name}), "body", "name")


def test_the_name_is_required(api):
    check_invalid(api.post("/collections", {}), "body", "name")
    check_invalid(api.post("/collections", {"description": "x"}), "body", "name")


@pytest.mark.parametrize("description", ["", "x", "x" * 1000, "🌼" * 1000, None])
def test_a_description_of_up_to_1000_characters_is_kept(api, description):
    assert create_collection(api, description=description)["description"] == description


@pytest.mark.parametrize("description", ["x" * 1001, "🌼" * 1001, 5, False, [], {}])
def test_any_other_description_is_invalid(api, description):
    answer = api.post("/collections", {"name": "x", "description": description})
    check_invalid(answer, "body", "description")


@pytest.mark.parametrize("value", ["true", "false", 0, 1, None, "", [], {}])
def test_is_public_must_be_a_boolean(api, value):
    check_invalid(api.post("/collections", {"name": "x", "is_public": value}), "body", "is_public")


def test_every_failure_is_named_at_once(api):
    details = check_invalid(api.post("/collections", {"description": 1, "is_public": 2}))
    places = {tuple(detail["loc"]) for detail in details}
    assert places == {("body", "name"), ("body", "description"), ("body", "is_public")}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nope", b"[]", b"null", b"1", b'"x"', b'{"name": "\xff"}', b'{"name": "\\ud800"}',
     b'{"name": "a\\u0000b"}', b"[" * 10_000, b'{"name":' * 2_000, b'{"name": NaN}', b"\xef\xbb"],
)  # fmt: skip
def test_a_body_that_is_no_json_object_is_refused(api, body):
    headers = {"content-type": "application/json"}
    check_refused(api.http.post("/collections", content=body, headers=headers))


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data", ""])
def test_a_body_of_another_type_is_refused(api, kind):
    headers = {"content-type": kind} if kind else {}
    check_refused(api.http.post("/collections", content=b'{"name": "x"}', headers=headers))


@pytest.mark.parametrize(
    "kind",
    ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"'],
)
def test_a_json_body_may_say_its_charset(api, kind):
    answer = api.http.post("/collections", content=b'{"name": "x"}', headers={"content-type": kind})
    check_success(answer)


def test_a_json_body_may_come_in_chunks_and_name_what_is_unknown(api):
    parts = iter([b'{"na', b'me": "in ', b'parts", "id": 7, "photos": [1], "unknown": {}}'])
    headers = {"content-type": "application/json"}
    answer = api.http.post("/collections", content=parts, headers=headers)
    collection = check_success(answer)["data"]
    check_record(collection, COLLECTION)
    assert collection["name"] == "in parts"


def test_a_body_of_megabytes_is_refused(api):
    check_refused(api.post("/collections", {"name": "x", "description": "x" * 3_000_000}))


# -- list and get ------------------------------------------------------------------------------


def test_the_list_has_the_accounts_collections_without_photos(api, other, photos):
    first, second = create_collection(api), create_collection(api, is_public=True)
    theirs = create_collection(other, is_public=True)
    add_photo(api, first["id"], photos[0]["photo_id"])
    listed = {entry["id"]: entry for entry in api.data("/collections")}
    assert {first["id"], second["id"]} <= set(listed)
    assert theirs["id"] not in listed
    for entry in listed.values():
        check_record(entry, COLLECTION)
    assert listed[first["id"]]["photos_count"] == 1


def test_an_account_without_collections_has_an_empty_list(known):
    assert known.new_account("without collections").data("/collections") == []


def test_the_list_does_not_paginate(api):
    assert check_success(api.get("/collections"))["pagination"] is None


def test_a_collection_is_read_with_its_photos(api, photos, mine):
    entries = [add_photo(api, mine, photo["photo_id"]) for photo in photos]
    collection = read_collection(api, mine)
    check_record({k: v for k, v in collection.items() if k != "photos"}, COLLECTION)
    assert sorted(collection["photos"], key=lambda e: e["id"]) == entries
    assert collection["photos_count"] == 4


def test_an_empty_collection_has_an_empty_list_of_photos(api, mine):
    assert read_collection(api, mine)["photos"] == []


@pytest.mark.parametrize(
    "number", ["0", "-1", "999999999", "9223372036854775808", "1" + "0" * 30, "-1" + "0" * 30]
)
def test_a_number_that_is_no_collection_is_not_found(api, photos, number):
    body = {"photo_id": photos[0]["photo_id"]}
    check_failure(api.get(f"/collections/{number}"), 404, "NOT_FOUND")
    check_failure(api.delete(f"/collections/{number}"), 404, "NOT_FOUND")
    check_failure(api.post(f"/collections/{number}/photos", body), 404, "NOT_FOUND")
    answer = api.delete(f"/collections/{number}/photos/{photos[0]['photo_id']}")
    check_failure(answer, 404, "NOT_FOUND")


@pytest.mark.parametrize("number", ["abc", "1.0", "1e1", "%201", "%D9%A1", "0x1", "1_0", "true"])
def test_a_collection_id_that_is_no_integer_is_invalid(api, photos, number):
    body = {"photo_id": photos[0]["photo_id"]}
    place = ("path", "collection_id")
    check_invalid(api.get(f"/collections/{number}"), *place)
    check_invalid(api.delete(f"/collections/{number}"), *place)
    check_invalid(api.post(f"/collections/{number}/photos", body), *place)
    check_invalid(api.delete(f"/collections/{number}/photos/{UNKNOWN}"), *place)


# -- deleting ----------------------------------------------------------------------------------


def test_deleting_a_collection_deletes_its_entries_and_no_photo(api, photos, mine):
    add_photo(api, mine, photos[0]["photo_id"])
    assert check_success(api.delete(f"/collections/{mine}"))["data"] == {"deleted": True}
    check_failure(api.get(f"/collections/{mine}"), 404, "NOT_FOUND")
    check_failure(api.delete(f"/collections/{mine}"), 404, "NOT_FOUND")
    assert mine not in {entry["id"] for entry in api.data("/collections")}
    assert api.data(f"/photos/{photos[0]['photo_id']}")["photo_id"] == photos[0]["photo_id"]
    path = f"/collections/{mine}/photos/{photos[0]['photo_id']}"
    check_failure(api.delete(path), 404, "NOT_FOUND")


def test_the_number_of_a_deleted_collection_is_not_given_again(api, mine):
    api.delete(f"/collections/{mine}")
    assert create_collection(api)["id"] > mine


# -- other accounts ----------------------------------------------------------------------------


def test_another_accounts_private_collection_is_not_there(api, other, photos, mine):
    add_photo(api, mine, photos[0]["photo_id"])
    body = {"photo_id": photos[1]["photo_id"]}
    path = f"/collections/{mine}"
    check_failure(other.get(path), 404, "NOT_FOUND")
    check_failure(other.delete(path), 404, "NOT_FOUND")
    check_failure(other.post(f"{path}/photos", body), 404, "NOT_FOUND")
    check_failure(other.delete(f"{path}/photos/{photos[0]['photo_id']}"), 404, "NOT_FOUND")
    assert read_collection(api, mine)["photos_count"] == 1


def test_another_accounts_public_collection_can_be_read_and_not_changed(api, other, photos):
    public = create_collection(api, is_public=True)["id"]
    add_photo(api, public, photos[0]["photo_id"])
    assert read_collection(other, public) == read_collection(api, public)
    path, body = f"/collections/{public}", {"photo_id": photos[1]["photo_id"]}
    check_failure(other.delete(path), 403, "FORBIDDEN")
    check_failure(other.post(f"{path}/photos", body), 403, "FORBIDDEN")
    check_failure(other.delete(f"{path}/photos/{photos[0]['photo_id']}"), 403, "FORBIDDEN")
    assert read_collection(api, public)["photos_count"] == 1


def test_keys_of_one_account_share_its_collections(known, api, mine):
    second = known.new_account("paid", name="second")
    assert read_collection(second, mine) == read_collection(api, mine)
    assert check_success(second.delete(f"/collections/{mine}"))["data"] == {"deleted": True}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_there_is_no_operation_to_change_a_collection(api, mine, method):
    answer = api.http.request(method, f"/collections/{mine}", json={"name": "y"})
    check_failure(answer, 405, "METHOD_NOT_ALLOWED")
