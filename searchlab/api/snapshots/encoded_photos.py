"""EncodedPhotos: records as JSON bytes, made once a photo, with the score put in between."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from searchlab.photos.photo import PHOTO_FIELDS, Photo
from searchlab.photos.table import PhotoTable

MEDIA_PREFIX = "/media/"
_KEPT_BYTES = 32 * 2**20
_OVERHEAD = 400  # of one record, beside its text
_MOST_SHAPES = 1_000
_VERSION_LENGTH = 8
_ENCODE = msgspec.json.Encoder().encode
# Within a text a quote is escaped, so this stands where the field does and nowhere else.
_SCORE = b'"relevance_score":null'


def version_of(photo: Photo) -> str:
    """Return what tells a picture from the one that was there before it."""
    return photo.sha256[:_VERSION_LENGTH]


class _Record(NamedTuple):
    # What stands before the score and behind it; all of it before where no score was asked for.
    head: bytes
    tail: bytes | None

    @property
    def n_bytes(self) -> int:
        return len(self.head) + len(self.tail or b"") + _OVERHEAD


class EncodedPhotos:
    """The records of one snapshot's table, encoded as they are asked for.

    Not for several threads at once: the event loop's thread encodes.
    """

    def __init__(self, table: PhotoTable) -> None:
        self._table = table
        self._records: OrderedDict[tuple[int, int], _Record] = OrderedDict()
        self._n_bytes = 0
        # Fields and address that were asked for, as numbers: their hash is made once a page.
        self._shapes: dict[tuple[tuple[str, ...], str], int] = {}

    def record(
        self, row: int, score: float, *, fields: tuple[str, ...] = PHOTO_FIELDS, base_url: str
    ) -> msgspec.Raw:
        """Return a photo as JSON.

        Args:
            row: Of the table.
            score: Its `relevance_score`.
            fields: Names of fields, in the specification's order.
            base_url: Address that links to our own pictures start with.
        """
        return msgspec.Raw(b"".join(self._parts([row], [score], fields, base_url)[1:]))

    def records(
        self,
        rows: Sequence[int],
        scores: Sequence[float],
        *,
        fields: tuple[str, ...] = PHOTO_FIELDS,
        base_url: str,
    ) -> msgspec.Raw:
        """Return photos as a JSON array; see `record`."""
        parts = self._parts(rows, scores, fields, base_url) or [b""]
        parts[0] = b"["
        parts.append(b"]")
        return msgspec.Raw(b"".join(parts))

    def _parts(
        self, rows: Sequence[int], scores: Sequence[float], fields: tuple[str, ...], base_url: str
    ) -> list[bytes]:
        shape = self._shapes.get((fields, base_url))
        if shape is None:
            shape = self._new_shape(fields, base_url)
        known = self._records
        new = [row for row in rows if (shape, row) not in known]
        made: dict[int, _Record] = {}
        if new:  # they may drop others of this page, or each other
            made = {row: known[shape, row] for row in rows if (shape, row) in known}
            shown = self._table.attributes(new, owners=False)
            for row, attributes in zip(new, shown, strict=True):
                made[row] = self._store(shape, row, _encode_record(attributes, fields, base_url))
        parts: list[bytes] = []
        for row, score in zip(rows, scores, strict=True):
            head, tail = made[row] if made else known[shape, row]
            parts += (b",", head) if tail is None else (b",", head, _ENCODE(score), tail)
        return parts

    def _new_shape(self, fields: tuple[str, ...], base_url: str) -> int:
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
            self._records.clear()
            self._n_bytes = 0
        return self._shapes.setdefault((fields, base_url), len(self._shapes))

    def _store(self, shape: int, row: int, record: _Record) -> _Record:
        self._records[shape, row] = record
        self._n_bytes += record.n_bytes
        while self._n_bytes > _KEPT_BYTES and len(self._records) > 1:
            self._n_bytes -= self._records.popitem(last=False)[1].n_bytes
        return record

    def link(self, url: str, sha256: str, *, base_url: str) -> str:
        """Return one link of a photo as its record has it.

        Args:
            url: As the table has it.
            sha256: Of the photo's file.
            base_url: Address that links to our own pictures start with.
        """
        return _complete_url(url, sha256, base_url)


def _encode_record(
    attributes: Mapping[str, Any], fields: tuple[str, ...], base_url: str
) -> _Record:
    sha256 = attributes["sha256"]
    record = {
        **attributes,
        "image_url": _complete_url(attributes["image_url"], sha256, base_url),
        "urls": {
            size: _complete_url(url, sha256, base_url) for size, url in attributes["urls"].items()
        },
        "relevance_score": None,
    }
    head, separator, tail = _ENCODE({name: record[name] for name in fields}).partition(_SCORE)
    if not separator:
        return _Record(head, None)
    return _Record(head + _SCORE.removesuffix(b"null"), tail)


def _complete_url(url: str, sha256: str, base_url: str) -> str:
    if not url.startswith(MEDIA_PREFIX):
        return url
    # A picture that changes gets another address, so that every address may be kept for ever.
    version = f"?v={sha256[:_VERSION_LENGTH]}" if sha256 else ""
    return f"{base_url}{url}{version}"
