"""Collections: an account's named lists of photos.

The cover is the photo that the owner chose, or else the one that has been in the collection for
longest: the first one added, and when the cover is removed the oldest one left. It is computed from
the choice and the entries, so it is always a photo of the collection.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from searchlab.api.accounts.clock import utc_now
from searchlab.api.accounts.database import Database
from searchlab.api.accounts.tables import accounts, collection_photos, collections
from searchlab.api.accounts.values import MAX_ID, as_timestamp, is_storable, storable
from searchlab.api.wire.schema import MAX_ADDRESS, MAX_DESCRIPTION, MAX_NAME, MAX_PHOTO_TEXT
from searchlab.errors import ConflictError, ForbiddenError, NotFoundError, quote

MAX_COLLECTIONS = 1_000
MAX_PHOTOS = 2_000
"""Most collections per account, and photos per collection, since lists are not paged."""
NOBODY = 0
"""Stands for visitors without an account, who may read public ones."""

_entries = collection_photos.c


class FullError(ForbiddenError):
    """The account or the collection has as many as it may have."""


class Collections:
    """The collections of all accounts; every method takes the account of the caller.

    Methods that change something take an open transaction, so that the answer for an
    `Idempotency-Key` can be recorded in the same one. They return the specification's records,
    except that `photo_thumbnail_url` is None if none was sent: the route fills in the current link.
    """

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._clock = clock

    def list(self, account_id: int) -> list[dict[str, Any]]:
        """List the account's collections, oldest first, without their photos."""
        query = _summary().where(collections.c.account_id == account_id)
        with self._database.reading() as connection:
            return [_record(row) for row in connection.execute(query.order_by(collections.c.id))]

    def get(self, account_id: int, collection_id: int, *, only_own: bool = False) -> dict[str, Any]:
        """Return a collection of the account, or another's public one, with its photos.

        Args:
            account_id: Account of the caller.
            collection_id: The collection.
            only_own: Whether others' public collections are left out.

        Raises:
            NotFoundError: There is none that the account may see.
        """
        with self._database.reading() as connection:
            row = _find(connection, account_id, collection_id, only_own=only_own)
            photos = connection.execute(
                sa.select(collection_photos)
                .where(_entries.collection_id == collection_id)
                .order_by(_entries.id)
            )
            return _record(row) | {"photos": [_entry(photo) for photo in photos]}

    def get_public(self, collection_id: int) -> dict[str, Any]:
        """Return a public collection with its photos, for anybody.

        Raises:
            NotFoundError: There is none; a private one is none either.
        """
        return self.get(NOBODY, collection_id)

    def create(
        self,
        connection: Connection,
        account_id: int,
        *,
        name: str,
        description: str | None = None,
        is_public: bool = False,
    ) -> dict[str, Any]:
        """Make a collection without photos.

        Args:
            connection: Open transaction.
            account_id: Account that will own it.
            name: 1 to 255 characters.
            description: At most 1000 characters, or None.
            is_public: Whether other accounts may read it.

        Raises:
            InputError: A text is too short, too long or cannot be stored.
            FullError: The account has `MAX_COLLECTIONS` already.
        """
        now = self._clock()
        described = _described(name, description, is_public=is_public)
        values = described | {"account_id": account_id, "created_at": now, "updated_at": now}
        # Lock the account, so that no other transaction counts before this collection exists.
        mine = accounts.c.id == account_id
        connection.execute(sa.select(accounts.c.id).where(mine).with_for_update())
        theirs = collections.c.account_id == account_id
        if _count(connection, collections, theirs) >= MAX_COLLECTIONS:
            msg = (
                f"an account must have at most {MAX_COLLECTIONS:,} collections, got one more; "
                "delete one first"
            )
            raise FullError(msg)
        insert = collections.insert().values(values).returning(collections.c.id)
        collection_id = connection.execute(insert).scalar_one()
        return _record(_find(connection, account_id, collection_id))

    def describe(
        self,
        connection: Connection,
        account_id: int,
        collection_id: int,
        *,
        name: str,
        description: str | None,
        is_public: bool,
    ) -> dict[str, Any]:
        """Give a collection another name and description, and open or close it to others.

        Args:
            connection: Open transaction.
            account_id: Account of the caller.
            collection_id: The collection.
            name: 1 to 255 characters.
            description: At most 1000 characters, or None.
            is_public: Whether others may read it.

        Raises:
            InputError: A text is too short, too long or cannot be stored.
            NotFoundError: There is none that the account may see.
            ForbiddenError: It is another account's.
        """
        described = _described(name, description, is_public=is_public)
        self._own(connection, account_id, collection_id)
        this = collections.c.id == collection_id
        connection.execute(collections.update().where(this).values(described))
        return _record(_find(connection, account_id, collection_id))

    def choose_cover(
        self, connection: Connection, account_id: int, collection_id: int, photo_id: str
    ) -> dict[str, Any]:
        """Make a photo of the collection its cover, until it is removed.

        Raises:
            NotFoundError: There is no such collection that the account may see, or the photo is
                not in it.
            ForbiddenError: The collection is another account's.
        """
        self._own(connection, account_id, collection_id)
        entry = sa.select(_entries.id).where(_is(collection_id, photo_id))
        if not is_storable(photo_id) or connection.scalar(entry) is None:
            raise _not_in(collection_id, photo_id)
        this = collections.c.id == collection_id
        connection.execute(collections.update().where(this).values(chosen_cover_id=photo_id))
        return _record(_find(connection, account_id, collection_id))

    def delete(self, connection: Connection, account_id: int, collection_id: int) -> dict[str, Any]:
        """Delete a collection and every entry in it.

        Raises:
            NotFoundError: There is none that the account may see.
            ForbiddenError: It is another account's.
        """
        self._own(connection, account_id, collection_id)
        connection.execute(collections.delete().where(collections.c.id == collection_id))
        return {"deleted": True}

    def add_photo(
        self,
        connection: Connection,
        account_id: int,
        collection_id: int,
        *,
        photo_id: str,
        photo_thumbnail_url: str | None,
        photo_source: str,
        photo_photographer: str,
    ) -> dict[str, Any]:
        """Add a photo; the first one becomes the cover.

        Args:
            connection: Open transaction.
            account_id: Account of the caller.
            collection_id: The collection.
            photo_id: The photo.
            photo_thumbnail_url: Link to show; None to have the current one filled in when read.
            photo_source: Library that the photo is from.
            photo_photographer: Name of the photographer for display.

        Raises:
            NotFoundError: There is no such collection that the account may see.
            ForbiddenError: It is another account's.
            ConflictError: The photo is in the collection already.
            FullError: The collection has `MAX_PHOTOS` already.
            InputError: A text is too long or cannot be stored.
        """
        texts = {
            "photo_id": photo_id,
            "photo_source": photo_source,
            "photo_photographer": photo_photographer,
        }
        values: dict[str, str | None]
        values = {name: storable(text, name, most=MAX_PHOTO_TEXT) for name, text in texts.items()}
        values["photo_thumbnail_url"] = (
            None
            if photo_thumbnail_url is None
            else storable(photo_thumbnail_url, "photo_thumbnail_url", most=MAX_ADDRESS)
        )
        now = self._own(connection, account_id, collection_id)
        if (
            connection.scalar(sa.select(_entries.id).where(_is(collection_id, photo_id)))
            is not None
        ):
            msg = (
                f"photo_id must be new to collection {collection_id}, "
                f"got {quote(photo_id)}, which is in it"
            )
            raise ConflictError(msg)
        if _count(connection, collection_photos, _entries.collection_id == collection_id) >= (
            MAX_PHOTOS
        ):
            msg = (
                f"a collection must have at most {MAX_PHOTOS:,} photos, got one more; "
                "remove one first, or make another collection"
            )
            raise FullError(msg)
        insert = (
            collection_photos.insert()
            .values(collection_id=collection_id, added_at=now, **values)
            .returning(collection_photos)
        )
        return _entry(connection.execute(insert).one())

    def remove_photo(
        self, connection: Connection, account_id: int, collection_id: int, photo_id: str
    ) -> dict[str, Any]:
        """Remove a photo; when it was the cover, the oldest one left becomes it.

        Raises:
            NotFoundError: There is no such collection that the account may see, or the photo is
                not in it.
            ForbiddenError: The collection is another account's.
        """
        self._own(connection, account_id, collection_id)
        removed = 0
        if is_storable(photo_id):
            delete = collection_photos.delete().where(_is(collection_id, photo_id))
            removed = connection.execute(delete).rowcount
        if removed == 0:
            raise _not_in(collection_id, photo_id)
        # A photo that comes back later is not the cover again.
        was_cover = (collections.c.id == collection_id) & (
            collections.c.chosen_cover_id == photo_id
        )
        connection.execute(collections.update().where(was_cover).values(chosen_cover_id=None))
        return {"deleted": True}

    def _own(self, connection: Connection, account_id: int, collection_id: int) -> datetime:
        """Lock the account's collection for this transaction; returns its new `updated_at`."""
        now = self._clock()
        mine = (collections.c.id == collection_id) & (collections.c.account_id == account_id)
        changed = 0
        if 0 < collection_id <= MAX_ID:
            touch = collections.update().where(mine).values(updated_at=now)
            changed = connection.execute(touch).rowcount
        if changed == 0:
            _find(connection, account_id, collection_id)
            msg = (
                f"collection {collection_id} must be your own to be changed, "
                "got one of another account"
            )
            raise ForbiddenError(msg)
        return now


def _described(name: str, description: str | None, *, is_public: bool) -> dict[str, Any]:
    return {
        "name": storable(name, "name", least=1, most=MAX_NAME),
        "description": description and storable(description, "description", most=MAX_DESCRIPTION),
        "is_public": is_public,
    }


def _not_in(collection_id: int, photo_id: str) -> NotFoundError:
    return NotFoundError(f"photo_id must be in collection {collection_id}, got {quote(photo_id)}")


def _count(connection: Connection, table: sa.Table, which: sa.ColumnElement[bool]) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(table).where(which)) or 0


def _is(collection_id: int, photo_id: str) -> sa.ColumnElement[bool]:
    return (_entries.collection_id == collection_id) & (_entries.photo_id == photo_id)


def _find(
    connection: Connection, account_id: int, collection_id: int, *, only_own: bool = False
) -> sa.Row[Any]:
    row = None
    if 0 < collection_id <= MAX_ID:
        seen = collections.c.account_id == account_id
        if not only_own:
            seen |= collections.c.is_public
        query = _summary().where(collections.c.id == collection_id, seen)
        row = connection.execute(query).one_or_none()
    if row is None:
        # The same message for a missing collection and another account's private one.
        msg = f"collection_id must be that of a collection of yours, got {quote(collection_id)}"
        raise NotFoundError(msg)
    return row


def _summary() -> sa.Select[Any]:
    mine = _entries.collection_id == collections.c.id
    count = sa.select(sa.func.count()).where(mine).scalar_subquery()
    entry = sa.select(_entries.photo_id).where(mine)
    chosen = entry.where(_entries.photo_id == collections.c.chosen_cover_id)
    oldest = entry.order_by(_entries.id).limit(1)
    cover = sa.func.coalesce(chosen.scalar_subquery(), oldest.scalar_subquery(), "")
    return sa.select(collections, count.label("photos_count"), cover.label("cover_photo_id"))


def _record(row: sa.Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "is_public": bool(row.is_public),
        "cover_photo_id": row.cover_photo_id,
        "created_at": as_timestamp(row.created_at),
        "updated_at": as_timestamp(row.updated_at),
        "photos_count": row.photos_count,
    }


def _entry(row: sa.Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "photo_id": row.photo_id,
        "photo_thumbnail_url": row.photo_thumbnail_url,
        "photo_source": row.photo_source,
        "photo_photographer": row.photo_photographer,
        "added_at": as_timestamp(row.added_at),
    }
