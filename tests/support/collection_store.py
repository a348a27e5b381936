"""Collections of two accounts, each change in a transaction of its own."""

import threading

from searchlab.api.accounts.accounts import create_key
from searchlab.api.accounts.collections import Collections
from searchlab.errors import ConflictError, ForbiddenError, NotFoundError

ACME, BETA = 1, 2
PHOTO = {"photo_thumbnail_url": "https://x/t", "photo_source": "nasa", "photo_photographer": "Ann"}


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

    def describe(self, account, collection, **values):
        told = {"name": "dunes", "description": None, "is_public": False} | values
        return self._do("describe", account, collection, **told)

    def choose_cover(self, account, collection, photo_id):
        return self._do("choose_cover", account, collection, photo_id)

    def cover(self, collection):
        return self.get(ACME, collection)["cover_photo_id"]


def open_store(database, clock):
    """Make the accounts ACME and BETA, and the store of their collections."""
    create_key(database, account="acme", name="a")
    create_key(database, account="beta", name="b")
    return Store(database, clock)


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
