"""Photos of collections: added, removed, and which of them is the cover."""

from datetime import timedelta

import pytest

from searchlab.errors import ConflictError, ForbiddenError, InputError, NotFoundError
from tests.support.collection_store import ACME, BETA, PHOTO, open_store
from tests.support.databases import HOSTILE


@pytest.fixture
def store(database, clock):
    return open_store(database, clock)


# -- photos -----------------------------------------------------------------------------------


def test_an_added_photo_is_returned_and_listed(store):
    made = store.create()
    added = store.add(ACME, made, "p1")
    assert added == {
        "id": 1,
        "photo_id": "p1",
        "photo_thumbnail_url": "https://x/t",
        "photo_source": "nasa",
        "photo_photographer": "Ann",
        "added_at": "2024-02-29T12:00:00.000000+00:00",
    }
    assert store.get(ACME, made)["photos"] == [added]
    assert store.list(ACME)[0]["photos_count"] == 1


def test_the_first_photo_becomes_the_cover_and_later_ones_do_not(store):
    made = store.create()
    store.add(ACME, made, "p2")
    store.add(ACME, made, "p1")
    assert store.cover(made) == "p2"
    assert store.list(ACME)[0]["cover_photo_id"] == "p2"


def test_when_the_cover_is_removed_the_oldest_photo_left_becomes_it(store):
    made = store.create()
    for photo_id in ("p3", "p2", "p1"):
        store.add(ACME, made, photo_id)
    assert store.remove(ACME, made, "p3") == {"deleted": True}
    assert store.cover(made) == "p2"
    store.remove(ACME, made, "p1")
    assert store.cover(made) == "p2"
    store.remove(ACME, made, "p2")
    assert store.cover(made) == ""


def test_a_photo_that_was_removed_and_added_again_is_the_newest(store):
    made = store.create()
    for photo_id in ("p1", "p2"):
        store.add(ACME, made, photo_id)
    store.remove(ACME, made, "p1")
    store.add(ACME, made, "p1")
    assert store.cover(made) == "p2"
    assert [photo["photo_id"] for photo in store.get(ACME, made)["photos"]] == ["p2", "p1"]


def test_adding_a_photo_twice_is_a_conflict_and_changes_nothing(store, clock):
    made = store.create()
    store.add(ACME, made, "p1")
    before = store.get(ACME, made)
    clock.now += timedelta(hours=1)
    with pytest.raises(ConflictError, match=f"photo_id must be new to collection {made}, got 'p1'"):
        store.add(ACME, made, "p1", photo_source="other")
    assert store.get(ACME, made) == before


def test_the_same_photo_may_be_in_two_collections(store):
    first, second = store.create(), store.create()
    store.add(ACME, first, "p1")
    store.add(ACME, second, "p1")
    store.delete(ACME, first)
    assert store.cover(second) == "p1"


def test_adding_and_removing_move_updated_at_and_nothing_else_does(store, clock):
    made = store.create()
    clock.now += timedelta(hours=1)
    store.add(ACME, made, "p1")
    clock.now += timedelta(hours=1)
    assert store.get(ACME, made)["updated_at"] == "2024-02-29T13:00:00.000000+00:00"
    store.remove(ACME, made, "p1")
    collection = store.get(ACME, made)
    assert collection["updated_at"] == "2024-02-29T14:00:00.000000+00:00"
    assert collection["created_at"] == "2024-02-29T12:00:00.000000+00:00"


@pytest.mark.parametrize("photo_id", ["p2", "", "P1", "%", "x" * 10_000, *HOSTILE])
def test_removing_a_photo_that_is_not_in_it_is_not_found(store, photo_id):
    made = store.create()
    store.add(ACME, made, "p1")
    with pytest.raises(NotFoundError, match=f"photo_id must be in collection {made}, got"):
        store.remove(ACME, made, photo_id)
    assert store.list(ACME)[0]["photos_count"] == 1


@pytest.mark.parametrize("field", ["photo_id", *PHOTO])
@pytest.mark.parametrize("text", ["x" * 2001, *HOSTILE])
def test_photo_texts_that_cannot_be_stored_are_refused(store, field, text):
    made = store.create()
    values = {"photo_id": "p1", field: text}
    with pytest.raises(InputError, match=f"{field} must"):
        store.add(ACME, made, **values)
    assert store.cover(made) == ""


def test_a_thumbnail_that_was_not_sent_is_left_to_the_reader(store):
    made = store.create()
    added = store.add(ACME, made, "p1", photo_thumbnail_url=None)
    assert added["photo_thumbnail_url"] is None
    assert store.get(ACME, made)["photos"] == [added]


# -- a chosen cover, another name -----------------------------------------------------------


def three_photos(store):
    made = store.create()
    for photo_id in ("p1", "p2", "p3"):
        store.add(ACME, made, photo_id)
    return made


def test_a_chosen_cover_stays_until_it_is_removed(store):
    made = three_photos(store)
    assert store.choose_cover(ACME, made, "p3")["cover_photo_id"] == "p3"
    store.remove(ACME, made, "p1")
    assert store.list(ACME)[0]["cover_photo_id"] == "p3"
    store.remove(ACME, made, "p3")
    assert store.cover(made) == "p2"


def test_a_chosen_cover_that_comes_back_is_a_photo_like_others(store):
    made = three_photos(store)
    store.choose_cover(ACME, made, "p3")
    store.remove(ACME, made, "p3")
    store.add(ACME, made, "p3")
    assert store.cover(made) == "p1"


def test_removing_another_photo_leaves_the_choice_of_another_collection(store):
    one, other = three_photos(store), three_photos(store)
    store.choose_cover(ACME, one, "p2")
    store.choose_cover(ACME, other, "p2")
    store.remove(ACME, one, "p2")
    assert (store.cover(one), store.cover(other)) == ("p1", "p2")


@pytest.mark.parametrize("photo_id", ["p9", "", *HOSTILE])
def test_a_cover_must_be_in_the_collection(store, photo_id):
    made = three_photos(store)
    with pytest.raises(NotFoundError, match="photo_id must be in collection"):
        store.choose_cover(ACME, made, photo_id)
    assert store.cover(made) == "p1"


def test_a_collection_gets_another_name_and_is_opened_and_closed(store, clock):
    made = three_photos(store)
    clock.now += timedelta(days=1)
    after = store.describe(ACME, made, name="قصر", description="<b>", is_public=True)
    assert (after["name"], after["description"], after["is_public"]) == ("قصر", "<b>", True)
    assert after["updated_at"] > after["created_at"]
    assert store.collections.get_public(made)["photos_count"] == 3
    store.describe(ACME, made)
    with pytest.raises(NotFoundError):
        store.collections.get_public(made)


@pytest.mark.parametrize("values", [{"name": ""}, {"name": "x" * 256}, {"description": "y" * 1001}])
def test_another_name_is_checked_as_the_first_was(store, values):
    made = store.create()
    with pytest.raises(InputError, match="must have"):
        store.describe(ACME, made, **values)
    assert store.get(ACME, made)["name"] == "dunes"


def test_nobody_else_changes_name_or_cover(store):
    public, private = three_photos(store), three_photos(store)
    store.describe(ACME, public, is_public=True)
    for change in (
        lambda made: store.describe(BETA, made, name="mine now"),
        lambda made: store.choose_cover(BETA, made, "p2"),
    ):
        with pytest.raises(ForbiddenError):
            change(public)
        with pytest.raises(NotFoundError):
            change(private)
    assert {c["name"] for c in store.list(ACME)} == {"dunes"}
