"""Saved photos: entries of collections, with links to their current thumbnails."""

from __future__ import annotations

from typing import Any

from searchlab.api.snapshots.encoded_photos import MEDIA_PREFIX
from searchlab.api.snapshots.live_library import ServedSnapshot
from searchlab.errors import NotFoundError


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


def _find_thumbnail(photo_id: str, snapshot: ServedSnapshot, base_url: str) -> str:
    try:
        row = snapshot.row_of(photo_id)
    except NotFoundError:  # the photo has left the library, and this link will answer 404
        return f"{base_url}{MEDIA_PREFIX}{photo_id}/thumb"
    # Two columns only: reading a whole photo would mean twenty reads and thread switches.
    url, sha256 = (snapshot.engine.table.column(name)[row] for name in ("url_thumb", "sha256"))
    return snapshot.photos.link(url, sha256, base_url=base_url)
