"""EncodedPhotos: photo records as cached JSON bytes, into which each answer puts its score."""

from __future__ import annotations

from collections import deque
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
    # The bytes before the score, a comma first, and after it; nothing after it if it has none.
    head: bytes
    tail: bytes

    @property
    def n_bytes(self) -> int:
        return len(self.head) + len(self.tail) + _OVERHEAD


class EncodedPhotos:
    """The records of one snapshot's table, each encoded when it is first requested.

    Not thread-safe: only the event loop's thread uses it.
    """

    def __init__(self, table: PhotoTable) -> None:
        self._table = table
        # By row, for each requested pair of fields and base URL, so that it is hashed once a page.
        self._records: dict[tuple[tuple[str, ...], str], dict[int, _Record]] = {}
        # Where each record is, the oldest first.
        self._places: deque[tuple[dict[int, _Record], int]] = deque()
        self._n_bytes = 0

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
        return msgspec.Raw(b"".join(self._parts([row], [score], fields, base_url))[1:])

    def records(
        self,
        rows: Sequence[int],
        scores: Sequence[float],
        *,
        fields: tuple[str, ...] = PHOTO_FIELDS,
        base_url: str,
    ) -> list[bytes]:
        """Return photos as a JSON array, in parts that are still to be joined; see `record`."""
        if not rows:
            return [b"[]"]
        parts = self._parts(rows, scores, fields, base_url)
        parts[0] = b"[" + parts[0][1:]
        parts.append(b"]")
        return parts

    def _parts(
        self, rows: Sequence[int], scores: Sequence[float], fields: tuple[str, ...], base_url: str
    ) -> list[bytes]:
        # Filled by columns, which is quicker than photo by photo.
        parts = [b""] * (3 * len(rows))
        parts[::3], parts[2::3] = zip(*self._read(rows, fields, base_url), strict=True)
        if "relevance_score" in fields:
            parts[1::3] = _ENCODE(scores)[1:-1].split(b",")
        return parts

    def _read(
        self, rows: Sequence[int], fields: tuple[str, ...], base_url: str
    ) -> Sequence[_Record]:
        kept = self._records.get((fields, base_url))
        if kept is None:
            kept = self._new_shape(fields, base_url)
        try:
            return [kept[row] for row in rows]
        except KeyError:  # some are new, and storing them may push others of this page out
            page = {row: kept[row] for row in rows if row in kept}
        new = [row for row in rows if row not in page]
        for row, attributes in zip(new, self._table.attributes(new, owners=False), strict=True):
            page[row] = _encode_record(attributes, fields, base_url)
            self._store(kept, row, page[row])
        return [page[row] for row in rows]

    def _new_shape(self, fields: tuple[str, ...], base_url: str) -> dict[int, _Record]:
        if len(self._records) >= _MOST_SHAPES:
            self._records.clear()
            self._places.clear()
            self._n_bytes = 0
        return self._records.setdefault((fields, base_url), {})

    def _store(self, kept: dict[int, _Record], row: int, record: _Record) -> None:
        kept[row] = record
        self._places.append((kept, row))
        self._n_bytes += record.n_bytes
        while self._n_bytes > _CACHED_BYTES and len(self._places) > 1:
            oldest, place = self._places.popleft()
            self._n_bytes -= oldest.pop(place).n_bytes

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
    text = _ENCODE({name: record[name] for name in fields})
    head, score, tail = text.partition(_SCORE)
    return _Record(b"," + head + score.removesuffix(b"null"), tail)


def _complete_url(url: str, sha256: str, base_url: str) -> str:
    if not url.startswith(MEDIA_PREFIX):
        return url
    # A changed picture gets another address, so that clients may cache every address for ever.
    version = f"?v={sha256[:_VERSION_LENGTH]}" if sha256 else ""
    return f"{base_url}{url}{version}"
