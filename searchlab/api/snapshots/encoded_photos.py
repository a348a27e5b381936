"""EncodedPhotos: photo records as cached JSON bytes, into which each answer puts its score."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from searchlab.photos.photo import PHOTO_FIELDS, Photo
from searchlab.photos.table import PhotoTable

MEDIA_PREFIX = "/media/"
_CACHED_BYTES = 32 * 2**20
_OVERHEAD = 400  # bytes of one cached record, beside its text
_MOST_SHAPES = 1_000
_VERSION_LENGTH = 8
_ENCODE = msgspec.json.Encoder().encode
# Quotes within texts are escaped, so these bytes occur only at the field itself.
_SCORE = b'"relevance_score":null'


def version_of(photo: Photo) -> str:
    """Return a short hash of a photo's file, which changes when the picture does."""
    return photo.sha256[:_VERSION_LENGTH]


class _Record(NamedTuple):
    # The bytes before the score and after it; the whole record, and None, if it has no score.
    head: bytes
    tail: bytes | None

    @property
    def n_bytes(self) -> int:
        return len(self.head) + len(self.tail or b"") + _OVERHEAD


class EncodedPhotos:
    """The records of one snapshot's table, each encoded when it is first requested.

    Not thread-safe: only the event loop's thread uses it.
    """

    def __init__(self, table: PhotoTable) -> None:
        self._table = table
        self._records: OrderedDict[tuple[int, int], _Record] = OrderedDict()
        self._n_bytes = 0
        # A number for each requested pair of fields and base URL, so that it is hashed once a page.
        self._shapes: dict[tuple[tuple[str, ...], str], int] = {}

    def record(
        self, row: int, score: float, *, fields: tuple[str, ...] = PHOTO_FIELDS, base_url: str
    ) -> msgspec.Raw:
        """Return a photo as JSON.

        Args:
            row: Row of the photo in the table.
            score: Its `relevance_score`, from 0 to 1.
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
        cached = self._records
        new = [row for row in rows if (shape, row) not in cached]
        page: dict[int, _Record] = {}
        if new:  # storing them may push others of this page out of the cache
            page = {row: cached[shape, row] for row in rows if (shape, row) in cached}
            rows_read = self._table.attributes(new, owners=False)
            for row, attributes in zip(new, rows_read, strict=True):
                page[row] = self._store(shape, row, _encode_record(attributes, fields, base_url))
        parts: list[bytes] = []
        for row, score in zip(rows, scores, strict=True):
            head, tail = page[row] if page else cached[shape, row]
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
        while self._n_bytes > _CACHED_BYTES and len(self._records) > 1:
            self._n_bytes -= self._records.popitem(last=False)[1].n_bytes
        return record

    def link(self, url: str, sha256: str, *, base_url: str) -> str:
        """Return one link of a photo as its record shows it.

        Args:
            url: Link as stored in the table.
            sha256: Hash of the photo's file.
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
    # A changed picture gets another address, so that clients may cache every address for ever.
    version = f"?v={sha256[:_VERSION_LENGTH]}" if sha256 else ""
    return f"{base_url}{url}{version}"
