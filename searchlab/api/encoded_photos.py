"""EncodedPhotos: records as JSON bytes, made once a photo and filled in with score and address."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from searchlab.photos import PHOTO_FIELDS, Photo
from searchlab.tables import PhotoTable

MEDIA_PREFIX = "/media/"
_KEPT_BYTES = 32 * 2**20
_OVERHEAD = 1_000  # of one template, beside its text
_VERSION_LENGTH = 8


def version_of(photo: Photo) -> str:
    """Return what tells a picture from the one that was there before it."""
    return photo.sha256[:_VERSION_LENGTH]


class _Template(NamedTuple):
    # The record before and after the score, each cut where the address goes; no tail, no score.
    head: list[bytes]
    tail: list[bytes] | None

    @property
    def n_bytes(self) -> int:
        return sum(map(len, self.head)) + sum(map(len, self.tail or ())) + _OVERHEAD


class EncodedPhotos:
    """The records of one snapshot's table, encoded as they are asked for.

    Not for several threads at once: the event loop's thread encodes.
    """

    def __init__(self, table: PhotoTable) -> None:
        self._table = table
        self._templates: OrderedDict[tuple[int, tuple[str, ...]], _Template] = OrderedDict()
        self._n_bytes = 0
        # Nobody can have put these words into a record.
        self._base = secrets.token_hex(16)
        self._score = secrets.token_hex(16)

    def record(
        self, row: int, score: float, *, fields: tuple[str, ...] = PHOTO_FIELDS, base_url: str
    ) -> msgspec.Raw:
        """Return a photo as JSON.

        Args:
            row: Of the table.
            score: Its `relevance_score`.
            fields: The fields wanted, in the specification's order.
            base_url: Address that links to our own pictures start with.
        """
        key = (row, fields)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = self._encode(row, fields)
            self._n_bytes += template.n_bytes
            while self._n_bytes > _KEPT_BYTES and len(self._templates) > 1:
                self._n_bytes -= self._templates.popitem(last=False)[1].n_bytes
        base = base_url.encode()
        encoded = base.join(template.head)
        if template.tail is not None:
            encoded += msgspec.json.encode(score) + base.join(template.tail)
        return msgspec.Raw(encoded)

    def _encode(self, row: int, fields: tuple[str, ...]) -> _Template:
        photo = self._table.photo(row)
        record = photo.to_dict(relevance_score=0.0)
        record["image_url"] = self._linked(photo, photo.image_url)
        record["urls"] = {size: self._linked(photo, url) for size, url in photo.urls.items()}
        record["relevance_score"] = self._score
        encoded = msgspec.json.encode({name: record[name] for name in fields})
        head, *tail = encoded.split(f'"{self._score}"'.encode())
        base = self._base.encode()
        return _Template(head.split(base), tail[0].split(base) if tail else None)

    def link(self, photo: Photo, url: str, *, base_url: str) -> str:
        """Return one link of a photo as its record has it."""
        return self._linked(photo, url).replace(self._base, base_url, 1)

    def _linked(self, photo: Photo, url: str) -> str:
        if not url.startswith(MEDIA_PREFIX):
            return url
        # A picture that changes gets another address, so that every address may be kept for ever.
        version = f"?v={version_of(photo)}" if photo.sha256 else ""
        return f"{self._base}{url}{version}"
