"""Collections: the cover, conflicts, deletion, and what accounts may see of each other."""

from datetime import datetime, timedelta

import pytest

from searchlab.api.accounts import collections
from searchlab.api.accounts.collections import FullError
from searchlab.errors import ConflictError, ForbiddenError, InputError, NotFoundError
from tests.support.collection_store import ACME, BETA, at_once, open_store
from tests.support.databases import HOSTILE, ODD


@pytest.fixture
def store(database, clock):
    return open_store(database, clock)


# -- create, list, get ------------------------------------------------------------------------


def test_a_new_collection_is_private_and_empty(store):
    with store.database.writing() as connection:
        made = store.collections.create(connection, ACME, name="dunes")
    assert made == {
        "id": 1,
        "name": "dunes",
        "description": None,
        "is_public": False,
        "cover_photo_id": "",
        "created_at": "2024-02-29T12:00:00.000000+00:00",
        "updated_at": "2024-02-29T12:00:00.000000+00:00",
        "photos_count": 0,
    }
    assert store.list(ACME) == [made]
    assert store.get(ACME, 1) == made | {"photos": []}


def test_name_description_and_openness_are_kept(store):
    made = store.create(name="x" * 255, description="y" * 1000, is_public=True)
    collection = store.get(ACME, made)
    assert (collection["name"], collection["description"]) == ("x" * 255, "y" * 1000)
    assert collection["is_public"] is True


def test_an_empty_description_stays_empty(store):
    assert store.get(ACME, store.create(description=""))["description"] == ""


@pytest.mark.parametrize("name", ["", "x" * 256, None, 7, *HOSTILE])
def test_a_name_that_is_none_is_refused(store, name):
    with pytest.raises(InputError, match="name must"):
        store.create(name=name)
    assert store.list(ACME) == []


@pytest.mark.parametrize("description", ["y" * 1001, 7, *HOSTILE])
def test_a_description_that_is_none_is_refused(store, description):
    with pytest.raises(InputError, match="description must"):
        store.create(description=description)


@pytest.mark.parametrize("text", [*ODD, " ", "🦊" * 255])
def test_any_other_text_comes_back_as_it_was(store, text):
    made = store.create(name=text, description=text)
    store.add(ACME, made, text, photo_thumbnail_url=text, photo_source=text)
    collection = store.get(ACME, made)
    assert (collection["name"], collection["description"], collection["cover_photo_id"]) == (
        text,
        text,
        text,
    )
    assert collection["photos"][0]["photo_thumbnail_url"] == text


def test_a_list_holds_the_accounts_own_in_the_order_of_making(store):
    first, _, third = store.create(), store.create(BETA, is_public=True), store.create(name="c")
    assert [collection["id"] for collection in store.list(ACME)] == [first, third]


def test_times_are_utc_with_their_offset(store):
    made = store.get(ACME, store.create())
    assert datetime.fromisoformat(made["created_at"]).utcoffset() == timedelta(0)


# -- how many ---------------------------------------------------------------------------------


def test_an_account_has_so_many_collections_and_another_its_own(store, monkeypatch):
    monkeypatch.setattr(collections, "MAX_COLLECTIONS", 2)
    first, _ = store.create(), store.create()
    with pytest.raises(FullError, match="at most 2 collections, got one more; delete one first"):
        store.create()
    store.create(BETA)
    store.delete(ACME, first)
    store.create()
    assert len(store.list(ACME)) == 2


def test_a_collection_has_so_many_photos(store, monkeypatch):
    monkeypatch.setattr(collections, "MAX_PHOTOS", 2)
    made, other = store.create(), store.create()
    store.add(ACME, made, "p1")
    store.add(ACME, made, "p2")
    with pytest.raises(FullError, match="at most 2 photos, got one more; remove one first"):
        store.add(ACME, made, "p3")
    with pytest.raises(ConflictError):
        store.add(ACME, made, "p2")
    store.add(ACME, other, "p3")
    store.remove(ACME, made, "p1")
    store.add(ACME, made, "p3")
    assert store.get(ACME, made)["photos_count"] == 2


def test_of_many_who_take_the_last_place_one_succeeds(store, monkeypatch):
    monkeypatch.setattr(collections, "MAX_COLLECTIONS", 3)
    monkeypatch.setattr(collections, "MAX_PHOTOS", 3)
    made = store.create()
    outcomes = at_once(*[store.create] * 6)
    assert outcomes.count(FullError) == 4
    outcomes = at_once(*(lambda n=n: store.add(ACME, made, f"p{n}") for n in range(6)))
    assert outcomes.count(FullError) == 3
    assert store.get(ACME, made)["photos_count"] == 3


# -- delete -----------------------------------------------------------------------------------


def test_deleting_a_collection_deletes_its_entries_and_no_others(store):
    first, second = store.create(), store.create()
    for made in (first, second):
        store.add(ACME, made, "p1")
    assert store.delete(ACME, first) == {"deleted": True}
    assert [collection["id"] for collection in store.list(ACME)] == [second]
    with store.database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT collection_id FROM collection_photos").all()
    assert rows == [(second,)]


def test_an_id_is_never_given_again(store):
    first = store.create()
    store.delete(ACME, first)
    assert store.create() == first + 1


# -- accounts ---------------------------------------------------------------------------------


def test_anothers_public_collection_can_be_read_and_not_written(store):
    made = store.create(is_public=True)
    store.add(ACME, made, "p1")
    assert store.get(BETA, made) == store.get(ACME, made)
    for change in (
        lambda: store.delete(BETA, made),
        lambda: store.add(BETA, made, "p2"),
        lambda: store.add(BETA, made, "p1"),
        lambda: store.remove(BETA, made, "p1"),
        lambda: store.remove(BETA, made, "p2"),
    ):
        with pytest.raises(ForbiddenError, match=f"collection {made} must be your own"):
            change()
    assert store.get(ACME, made)["photos_count"] == 1


@pytest.mark.parametrize(
    "number", [0, -1, 7, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, pytest.param(10**5000, id="huge")]
)
def test_a_collection_that_is_not_there_is_not_found(store, number):
    store.create()
    for ask in (
        lambda: store.get(ACME, number),
        lambda: store.delete(ACME, number),
        lambda: store.add(ACME, number, "p1"),
        lambda: store.remove(ACME, number, "p1"),
    ):
        with pytest.raises(NotFoundError, match="collection_id must be that of a collection"):
            ask()


def test_anothers_private_collection_looks_like_none(store):
    private = store.create()
    messages = set()
    for ask in (
        lambda: store.get(BETA, private),
        lambda: store.delete(BETA, private),
        lambda: store.add(BETA, private, "p1"),
        lambda: store.remove(BETA, private, "p1"),
        lambda: store.get(BETA, private + 1),
    ):
        with pytest.raises(NotFoundError) as caught:
            ask()
        messages.add(str(caught.value).replace(str(private + 1), str(private)))
    assert len(messages) == 1
    assert store.get(ACME, private)["photos_count"] == 0


# -- at once ----------------------------------------------------------------------------------


def test_of_many_who_add_the_same_photo_one_succeeds(store):
    made = store.create()
    outcomes = at_once(*[lambda: store.add(ACME, made, "p1")] * 8)
    assert outcomes.count(ConflictError) == 7
    assert store.get(ACME, made)["photos_count"] == 1


def test_many_photos_added_at_once_are_all_there_and_one_is_the_cover(store):
    made = store.create()
    at_once(*(lambda n=n: store.add(ACME, made, f"p{n}") for n in range(8)))
    collection = store.get(ACME, made)
    assert collection["photos_count"] == 8
    assert collection["cover_photo_id"] == collection["photos"][0]["photo_id"]


def test_deleting_while_others_add_leaves_nothing(store):
    made = store.create()
    actions = [lambda n=n: store.add(ACME, made, f"p{n}") for n in range(6)]
    at_once(*actions, lambda: store.delete(ACME, made))
    assert store.list(ACME) == []
    with store.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT * FROM collection_photos").all() == []
