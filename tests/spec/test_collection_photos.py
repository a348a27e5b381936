"""Section 4.5: photos added to collections and taken out, asked as a stranger would."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.independent_client import (
    COLLECTION_PHOTO,
    UNKNOWN,
    add_photo,
    check_failure,
    check_invalid,
    check_moment,
    check_record,
    check_success,
    create_collection,
    read_collection,
)

# -- adding ------------------------------------------------------------------------------------


def test_an_added_photo_has_every_field(api, photos, mine):
    entry = add_photo(api, mine, photos[0]["photo_id"])
    check_record(entry, COLLECTION_PHOTO)
    check_moment(entry["added_at"])
    assert entry["photo_id"] == photos[0]["photo_id"]


def test_what_is_left_out_is_filled_from_the_index(api, photos, mine):
    entry = add_photo(api, mine, photos[1]["photo_id"])
    assert entry["photo_thumbnail_url"] == photos[1]["urls"]["thumb"]
    assert entry["photo_source"] == photos[1]["source"]
    assert entry["photo_photographer"] == photos[1]["photographer_full_name"]


def test_what_is_given_is_kept(api, photos, mine):
    fields = {
        "photo_thumbnail_url": "https://example.org/thumb.jpg",
        "photo_source": "elsewhere",
        "photo_photographer": "Åsa “Q” <b>",
    }
    entry = add_photo(api, mine, photos[0]["photo_id"], **fields)
    assert {name: entry[name] for name in fields} == fields
    assert read_collection(api, mine)["photos"] == [entry]


def test_the_first_photo_becomes_the_cover_and_later_ones_do_not(api, photos, mine):
    add_photo(api, mine, photos[2]["photo_id"])
    assert read_collection(api, mine)["cover_photo_id"] == photos[2]["photo_id"]
    add_photo(api, mine, photos[0]["photo_id"])
    collection = read_collection(api, mine)
    assert collection["cover_photo_id"] == photos[2]["photo_id"]
    assert collection["photos_count"] == 2


def test_a_photo_that_is_in_it_already_is_a_conflict(api, photos, mine):
    add_photo(api, mine, photos[0]["photo_id"])
    body = {"photo_id": photos[0]["photo_id"]}
    check_failure(api.post(f"/collections/{mine}/photos", body), 409, "CONFLICT")
    assert read_collection(api, mine)["photos_count"] == 1


def test_a_photo_may_be_in_several_collections(api, photos, mine):
    add_photo(api, mine, photos[0]["photo_id"])
    add_photo(api, create_collection(api)["id"], photos[0]["photo_id"])


def test_an_unknown_photo_is_not_found(api, mine):
    answer = api.post(f"/collections/{mine}/photos", {"photo_id": UNKNOWN})
    check_failure(answer, 404, "NOT_FOUND")
    assert read_collection(api, mine)["photos_count"] == 0


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
    before = read_collection(api, mine)
    add_photo(api, mine, photos[0]["photo_id"])
    after = read_collection(api, mine)
    assert check_moment(after["updated_at"]) > check_moment(before["updated_at"])
    assert after["created_at"] == before["created_at"]


def test_of_many_who_add_one_photo_at_once_one_succeeds(api, photos, mine):
    body = {"photo_id": photos[0]["photo_id"]}
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda _: api.post(f"/collections/{mine}/photos", body), range(8))
        )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert read_collection(api, mine)["photos_count"] == 1


def test_of_many_photos_added_at_once_the_first_is_the_cover(api, known, mine):
    ids = [known.plain(number)["photo_id"] for number in range(12)]
    with ThreadPoolExecutor(8) as threads:
        entries = list(threads.map(lambda photo_id: add_photo(api, mine, photo_id), ids))
    collection = read_collection(api, mine)
    assert collection["photos_count"] == len(collection["photos"]) == 12
    assert collection["cover_photo_id"] == min(entries, key=lambda entry: entry["id"])["photo_id"]


# -- removing ----------------------------------------------------------------------------------


def test_a_removed_photo_is_gone(api, photos, mine):
    for photo in photos[:2]:
        add_photo(api, mine, photo["photo_id"])
    answer = api.delete(f"/collections/{mine}/photos/{photos[1]['photo_id']}")
    assert check_success(answer)["data"] == {"deleted": True}
    assert [entry["photo_id"] for entry in read_collection(api, mine)["photos"]] == [
        photos[0]["photo_id"]
    ]


def test_a_photo_that_is_not_in_it_is_not_found(api, photos, mine):
    path = f"/collections/{mine}/photos"
    check_failure(api.delete(f"{path}/{photos[0]['photo_id']}"), 404, "NOT_FOUND")
    check_failure(api.delete(f"{path}/{UNKNOWN}"), 404, "NOT_FOUND")
    check_failure(api.delete(f"{path}/abc"), 404, "NOT_FOUND")


def test_when_the_cover_is_removed_the_oldest_left_becomes_it(api, photos, mine):
    for photo in photos[:3]:
        add_photo(api, mine, photo["photo_id"])
    api.delete(f"/collections/{mine}/photos/{photos[0]['photo_id']}")
    assert read_collection(api, mine)["cover_photo_id"] == photos[1]["photo_id"]


def test_an_emptied_collection_has_no_cover_and_the_next_photo_becomes_it(api, photos, mine):
    add_photo(api, mine, photos[0]["photo_id"])
    api.delete(f"/collections/{mine}/photos/{photos[0]['photo_id']}")
    assert read_collection(api, mine)["cover_photo_id"] == ""
    add_photo(api, mine, photos[1]["photo_id"])
    assert read_collection(api, mine)["cover_photo_id"] == photos[1]["photo_id"]


def test_a_removed_photo_can_be_added_again(api, photos, mine):
    first = add_photo(api, mine, photos[0]["photo_id"])
    api.delete(f"/collections/{mine}/photos/{photos[0]['photo_id']}")
    assert add_photo(api, mine, photos[0]["photo_id"])["id"] != first["id"]
