"""Saved photos: entries of collections, with links to their current thumbnails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from searchlab.api.snapshots.encoded_photos import MEDIA_PREFIX
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.api.wire.schema import MAX_PHOTO_TEXT
from searchlab.errors import NotFoundError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from searchlab.api.accounts.collections import Collections


def add_thumbnail(entry: dict[str, Any], snapshot: ServedSnapshot, base_url: str) -> dict[str, Any]:
    """Fill in the thumbnail of an entry that was saved without one.

    It is never stored: the service may move, and the picture may change.

    Args:
        entry: The entry as stored.
        snapshot: The current snapshot.
        base_url: Address that links to our own pictures start with.
    """
    if entry["photo_thumbnail_url"] is not None:
        return entry
    return entry | {"photo_thumbnail_url": _find_thumbnail(entry["photo_id"], snapshot, base_url)}


def save_photo(
    collections: Collections,
    connection: Connection,
    account_id: int,
    collection_id: int,
    *,
    photo_id: str,
    snapshot: ServedSnapshot,
    url: str | None = None,
    source: str | None = None,
    photographer: str | None = None,
) -> dict[str, Any]:
    """Add an indexed photo to a collection; what is left out is that of the index.

    Args:
        collections: The collections of all accounts.
        connection: Open transaction.
        account_id: Account of the caller.
        collection_id: The collection.
        photo_id: The photo.
        snapshot: The current snapshot.
        url: Link to a thumbnail; without one, the current one is shown whenever it is read.
        source: Library that the photo is from.
        photographer: Name of the photographer for display.

    Raises:
        NotFoundError: There is no such photo, or no such collection that the account may see.
        ForbiddenError: The collection is another account's, or full.
        ConflictError: The photo is in the collection already.
        InputError: A text is too long or cannot be stored.
    """
    photo = snapshot.engine.table.photo(snapshot.row_of(photo_id))
    # Those of the index may be longer than an entry takes.
    source = photo.source[:MAX_PHOTO_TEXT] if source is None else source
    if photographer is None:
        photographer = photo.photographer_full_name[:MAX_PHOTO_TEXT]
    return collections.add_photo(
        connection,
        account_id,
        collection_id,
        photo_id=photo.photo_id,
        photo_thumbnail_url=url,
        photo_source=source,
        photo_photographer=photographer,
    )


def _find_thumbnail(photo_id: str, snapshot: ServedSnapshot, base_url: str) -> str:
    try:
        row = snapshot.row_of(photo_id)
    except NotFoundError:  # the photo has left the library, and this link will answer 404
        return f"{base_url}{MEDIA_PREFIX}{photo_id}/thumb"
    # Two columns only: reading a whole photo would mean twenty reads and thread switches.
    url, sha256 = (snapshot.engine.table.column(name)[row] for name in ("url_thumb", "sha256"))
    return snapshot.photos.link(url, sha256, base_url=base_url)
