"""Hit: one result of a search, which is a row of plain values too."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from pathlib import Path
from typing import Any

from searchlab.photos.photo import Photo, check_fields
from searchlab.search.page_frames import hit_row


class Hit(Mapping[str, Any]):
    """One result; as a mapping, a row of plain values, which is what pandas and Polars read.

    Attributes:
        photo: The record.
        relevance_score: 0 to 1.
        thumbnail: File of the small picture, where the library has one.
    """

    __slots__ = ("photo", "relevance_score", "thumbnail")

    def __init__(
        self, *, photo: Photo, relevance_score: float, thumbnail: Path | None = None
    ) -> None:
        self.photo = photo
        self.relevance_score = relevance_score
        self.thumbnail = thumbnail

    def __getitem__(self, name: str) -> Any:
        return self._row[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)

    def __repr__(self) -> str:
        return f"Hit({self.relevance_score:.3f}, {self.caption!r}, {self.photo.photo_id!r})"

    def items(self) -> ItemsView[str, Any]:
        """Return names and values of the row, which is made once and not once for each name."""
        return self._row.items()

    @property
    def _row(self) -> dict[str, Any]:
        return hit_row(self.photo, self.relevance_score, self.caption)

    @property
    def file(self) -> Path | None:
        """The original on this machine, as it was found last; None for photos without a file."""
        return Path(self.photo.file) if self.photo.file else None

    @property
    def caption(self) -> str:
        """Title or description of the photo; a generated one where nobody wrote any."""
        photo = self.photo
        return photo.title or photo.source_description or photo.alt_description

    def to_dict(self, fields: list[str] | None = None) -> dict[str, Any]:
        """Return the specification's record, or the named fields of it.

        What is published is made of it, so it says nothing of where `file` lies.

        Raises:
            InputError: A name that is no Photo field.
        """
        record = self.photo.to_dict(relevance_score=self.relevance_score)
        return record if fields is None else {name: record[name] for name in check_fields(fields)}
