"""Collections: the cover, conflicts, deletion, and what accounts may see of each other."""

import threading
from datetime import datetime, timedelta

import pytest

from searchlab.api.accounts import collections
from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.collections import Collections, FullError
from searchlab.errors import ConflictError, ForbiddenError, InputError, NotFoundError
from tests.support.databases import HOSTILE, ODD

ACME, BETA = 1, 2
PHOTO = {"photo_thumbnail_url": "https://x/t", "photo_source": "nasa", "photo_photographer": "Ann"}


@pytest.fixture
def database(database):
    create_key(database, account="acme", name="a")
    create_key(database, account="beta", name="b")
    return database


@pytest.fixture
def store(database, clock):
    return Store(database, clock)


class Store:
    """Each change in a transaction of its own."""

    def __init__(self, database, clock):
        self.database = database
        self.collections = Collections(database, clock=clock)
        self.list = self.collections.list
        self.get = self.collections.get

    def _do(self, action, *arguments, **values):
        with self.database.writing() as connection:
            return getattr(self.collections, action)(connection, *arguments, **values)

    def create(self, account=ACME, **values):
        return self._do("create", account, **{"name": "dunes", **values})["id"]

    def delete(self, account, collection):
        return self._do("delete", account, collection)

    def add(self, account, collection, photo_id, **values):
        return self._do("add_photo", account, collection, photo_id=photo_id, **(PHOTO | values))

    def remove(self, account, collection, photo_id):
        return self._do("remove_photo", account, collection, photo_id)

    def cover(self, collection):
        return self.get(ACME, collection)["cover_photo_id"]


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


def at_once(*actions):
    outcomes = []

    def note(action):
        try:
            outcomes.append(action())
        except (ConflictError, ForbiddenError, NotFoundError) as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=note, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == len(actions)
    return outcomes


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
