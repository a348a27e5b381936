"""Section 4.5 and the rules of 3: collections, asked as a stranger would."""

import datetime
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.independent_client import (
    COLLECTION,
    COLLECTION_PHOTO,
    check_failure,
    check_invalid,
    check_moment,
    check_record,
    check_refused,
    check_success,
)
from tests.support.spec_server import corpus

UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def known():
    return corpus()


@pytest.fixture(scope="module")
def api(known):
    return known.api()


@pytest.fixture(scope="module")
def other(known):
    return known.api("other")


@pytest.fixture(scope="module")
def photos(known):
    return [known.plain(number) for number in range(4)]


def created(api, **body):
    return check_success(api.post("/collections", {"name": "Autumn"} | body))["data"]


@pytest.fixture
def mine(api):
    return created(api)["id"]


def added(api, collection_id, photo_id, **body):
    answer = api.post(f"/collections/{collection_id}/photos", {"photo_id": photo_id} | body)
    return check_success(answer)["data"]


def read(api, collection_id):
    return api.data(f"/collections/{collection_id}")


# -- create ------------------------------------------------------------------------------------


def test_a_new_collection_has_every_field_and_no_photos(api):
    before = datetime.datetime.now(datetime.UTC)
    collection = created(api, name="Herbst", description="Blätter", is_public=True)
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
    collection = created(api)
    assert collection["description"] is None
    assert collection["is_public"] is False
    assert created(api, description=None)["description"] is None


@pytest.mark.parametrize(
    "name",
    ["x", " ", " x ", "x" * 255, "語" * 255, "🌼" * 255, "<script>", "'; DROP TABLE x; --",
     "\u202e", "a\nb", "%s %(x)s {0}"],
)  # fmt: skip
def test_a_name_of_1_to_255_characters_is_kept_as_it_is(api, name):
    collection = created(api, name=name)
    assert collection["name"] == name
    assert read(api, collection["id"])["name"] == name


@pytest.mark.parametrize("name", ["", "x" * 256, "🌼" * 256, None, 5, True, ["x"], {"a": 1}, 1.5])
def test_any_other_name_is_invalid(api, name):
    check_invalid(api.post("/collections", {"name": name}), "body", "name")


def test_the_name_is_required(api):
    check_invalid(api.post("/collections", {}), "body", "name")
    check_invalid(api.post("/collections", {"description": "x"}), "body", "name")


@pytest.mark.parametrize("description", ["", "x", "x" * 1000, "🌼" * 1000, None])
def test_a_description_of_up_to_1000_characters_is_kept(api, description):
    assert created(api, description=description)["description"] == description


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
    first, second = created(api), created(api, is_public=True)
    theirs = created(other, is_public=True)
    added(api, first["id"], photos[0]["photo_id"])
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
    entries = [added(api, mine, photo["photo_id"]) for photo in photos]
    collection = read(api, mine)
    check_record({k: v for k, v in collection.items() if k != "photos"}, COLLECTION)
    assert sorted(collection["photos"], key=lambda e: e["id"]) == entries
    assert collection["photos_count"] == 4


def test_an_empty_collection_has_an_empty_list_of_photos(api, mine):
    assert read(api, mine)["photos"] == []


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


# -- adding ------------------------------------------------------------------------------------


def test_an_added_photo_has_every_field(api, photos, mine):
    entry = added(api, mine, photos[0]["photo_id"])
    check_record(entry, COLLECTION_PHOTO)
    check_moment(entry["added_at"])
    assert entry["photo_id"] == photos[0]["photo_id"]


def test_what_is_left_out_is_filled_from_the_index(api, photos, mine):
    entry = added(api, mine, photos[1]["photo_id"])
    assert entry["photo_thumbnail_url"] == photos[1]["urls"]["thumb"]
    assert entry["photo_source"] == photos[1]["source"]
    assert entry["photo_photographer"] == photos[1]["photographer_full_name"]


def test_what_is_given_is_kept(api, photos, mine):
    fields = {
        "photo_thumbnail_url": "https://example.org/thumb.jpg",
        "photo_source": "elsewhere",
        "photo_photographer": "Åsa “Q” <b>",
    }
    entry = added(api, mine, photos[0]["photo_id"], **fields)
    assert {name: entry[name] for name in fields} == fields
    assert read(api, mine)["photos"] == [entry]


def test_the_first_photo_becomes_the_cover_and_later_ones_do_not(api, photos, mine):
    added(api, mine, photos[2]["photo_id"])
    assert read(api, mine)["cover_photo_id"] == photos[2]["photo_id"]
    added(api, mine, photos[0]["photo_id"])
    collection = read(api, mine)
    assert collection["cover_photo_id"] == photos[2]["photo_id"]
    assert collection["photos_count"] == 2


def test_a_photo_that_is_in_it_already_is_a_conflict(api, photos, mine):
    added(api, mine, photos[0]["photo_id"])
    body = {"photo_id": photos[0]["photo_id"]}
    check_failure(api.post(f"/collections/{mine}/photos", body), 409, "CONFLICT")
    assert read(api, mine)["photos_count"] == 1


def test_a_photo_may_be_in_several_collections(api, photos, mine):
    added(api, mine, photos[0]["photo_id"])
    added(api, created(api)["id"], photos[0]["photo_id"])


def test_an_unknown_photo_is_not_found(api, mine):
    answer = api.post(f"/collections/{mine}/photos", {"photo_id": UNKNOWN})
    check_failure(answer, 404, "NOT_FOUND")
    assert read(api, mine)["photos_count"] == 0


@pytest.mark.parametrize("value", [None, 5, True, [], {}, ["x"]])
@pytest.mark.parametrize(
    "name", ["photo_id", "photo_thumbnail_url", "photo_source", "photo_photographer"]
)
def test_fields_of_a_new_entry_must_be_strings(api, photos, mine, name, value):
    if value is None and name != "photo_id":
        return  # whether null is absent there is not said
    body = {"photo_id": photos[0]["photo_id"], name: value}
    check_invalid(api.post(f"/collections/{mine}/photos", body), "body", name)


def test_photo_id_is_required(api, mine):
    check_invalid(api.post(f"/collections/{mine}/photos", {}), "body", "photo_id")


def test_adding_moves_updated_at(api, photos, mine):
    before = read(api, mine)
    added(api, mine, photos[0]["photo_id"])
    after = read(api, mine)
    assert check_moment(after["updated_at"]) > check_moment(before["updated_at"])
    assert after["created_at"] == before["created_at"]


def test_of_many_who_add_one_photo_at_once_one_succeeds(api, photos, mine):
    body = {"photo_id": photos[0]["photo_id"]}
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda _: api.post(f"/collections/{mine}/photos", body), range(8))
        )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert read(api, mine)["photos_count"] == 1


def test_of_many_photos_added_at_once_the_first_is_the_cover(api, known, mine):
    ids = [known.plain(number)["photo_id"] for number in range(12)]
    with ThreadPoolExecutor(8) as threads:
        entries = list(threads.map(lambda photo_id: added(api, mine, photo_id), ids))
    collection = read(api, mine)
    assert collection["photos_count"] == len(collection["photos"]) == 12
    assert collection["cover_photo_id"] == min(entries, key=lambda entry: entry["id"])["photo_id"]


# -- removing ----------------------------------------------------------------------------------


def test_a_removed_photo_is_gone(api, photos, mine):
    for photo in photos[:2]:
        added(api, mine, photo["photo_id"])
    answer = api.delete(f"/collections/{mine}/photos/{photos[1]['photo_id']}")
    assert check_success(answer)["data"] == {"deleted": True}
    assert [entry["photo_id"] for entry in read(api, mine)["photos"]] == [photos[0]["photo_id"]]


def test_a_photo_that_is_not_in_it_is_not_found(api, photos, mine):
    path = f"/collections/{mine}/photos"
    check_failure(api.delete(f"{path}/{photos[0]['photo_id']}"), 404, "NOT_FOUND")
    check_failure(api.delete(f"{path}/{UNKNOWN}"), 404, "NOT_FOUND")
    check_failure(api.delete(f"{path}/abc"), 404, "NOT_FOUND")


def test_when_the_cover_is_removed_the_oldest_left_becomes_it(api, photos, mine):
    for photo in photos[:3]:
        added(api, mine, photo["photo_id"])
    api.delete(f"/collections/{mine}/photos/{photos[0]['photo_id']}")
    assert read(api, mine)["cover_photo_id"] == photos[1]["photo_id"]


def test_an_emptied_collection_has_no_cover_and_the_next_photo_becomes_it(api, photos, mine):
    added(api, mine, photos[0]["photo_id"])
    api.delete(f"/collections/{mine}/photos/{photos[0]['photo_id']}")
    assert read(api, mine)["cover_photo_id"] == ""
    added(api, mine, photos[1]["photo_id"])
    assert read(api, mine)["cover_photo_id"] == photos[1]["photo_id"]


def test_a_removed_photo_can_be_added_again(api, photos, mine):
    first = added(api, mine, photos[0]["photo_id"])
    api.delete(f"/collections/{mine}/photos/{photos[0]['photo_id']}")
    assert added(api, mine, photos[0]["photo_id"])["id"] != first["id"]


# -- deleting ----------------------------------------------------------------------------------


def test_deleting_a_collection_deletes_its_entries_and_no_photo(api, photos, mine):
    added(api, mine, photos[0]["photo_id"])
    assert check_success(api.delete(f"/collections/{mine}"))["data"] == {"deleted": True}
    check_failure(api.get(f"/collections/{mine}"), 404, "NOT_FOUND")
    check_failure(api.delete(f"/collections/{mine}"), 404, "NOT_FOUND")
    assert mine not in {entry["id"] for entry in api.data("/collections")}
    assert api.data(f"/photos/{photos[0]['photo_id']}")["photo_id"] == photos[0]["photo_id"]
    path = f"/collections/{mine}/photos/{photos[0]['photo_id']}"
    check_failure(api.delete(path), 404, "NOT_FOUND")


def test_the_number_of_a_deleted_collection_is_not_given_again(api, mine):
    api.delete(f"/collections/{mine}")
    assert created(api)["id"] > mine


# -- other accounts ----------------------------------------------------------------------------


def test_another_accounts_private_collection_is_not_there(api, other, photos, mine):
    added(api, mine, photos[0]["photo_id"])
    body = {"photo_id": photos[1]["photo_id"]}
    path = f"/collections/{mine}"
    check_failure(other.get(path), 404, "NOT_FOUND")
    check_failure(other.delete(path), 404, "NOT_FOUND")
    check_failure(other.post(f"{path}/photos", body), 404, "NOT_FOUND")
    check_failure(other.delete(f"{path}/photos/{photos[0]['photo_id']}"), 404, "NOT_FOUND")
    assert read(api, mine)["photos_count"] == 1


def test_another_accounts_public_collection_can_be_read_and_not_changed(api, other, photos):
    public = created(api, is_public=True)["id"]
    added(api, public, photos[0]["photo_id"])
    assert read(other, public) == read(api, public)
    path, body = f"/collections/{public}", {"photo_id": photos[1]["photo_id"]}
    check_failure(other.delete(path), 403, "FORBIDDEN")
    check_failure(other.post(f"{path}/photos", body), 403, "FORBIDDEN")
    check_failure(other.delete(f"{path}/photos/{photos[0]['photo_id']}"), 403, "FORBIDDEN")
    assert read(api, public)["photos_count"] == 1


def test_keys_of_one_account_share_its_collections(known, api, mine):
    second = known.new_account("paid", name="second")
    assert read(second, mine) == read(api, mine)
    assert check_success(second.delete(f"/collections/{mine}"))["data"] == {"deleted": True}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_there_is_no_operation_to_change_a_collection(api, mine, method):
    answer = api.http.request(method, f"/collections/{mine}", json={"name": "y"})
    check_failure(answer, 405, "METHOD_NOT_ALLOWED")
