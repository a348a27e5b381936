"""PhotoTable: a library's photos as Arrow columns, sorted by photo_id, opened by memory map.

Nothing is created for a photo until somebody asks for that photo: columns that filters read are
numpy views of the file, and texts stay on disk.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.photos import URL_SIZES, Photo

CODED_COLUMNS = ("orientation", "color_name", "source", "license_type", "photographer_username")
_TEXT_COLUMNS = (
    "photo_id",
    "source_photo_id",
    "image_url",
    "source_image_url",
    "blur_hash",
    "photographer_full_name",
    "photographer_url",
    "source_description",
    "description",
    "alt_description",
    "attribution_html",
    "attribution_plain",
    "file",
    "sha256",
    *(f"url_{size}" for size in URL_SIZES),
)
_CODED = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [pa.field(name, pa.large_string(), nullable=False) for name in _TEXT_COLUMNS]
    + [pa.field(name, _CODED, nullable=False) for name in CODED_COLUMNS]
    + [
        pa.field("width", pa.int32(), nullable=False),
        pa.field("height", pa.int32(), nullable=False),
        pa.field("shade", pa.uint32(), nullable=False),
        pa.field("uploaded_on", pa.date32(), nullable=False),
        pa.field("label", pa.int64(), nullable=False),
    ]
)


class Codes(NamedTuple):
    """A text column of few distinct values.

    Attributes:
        rows: (n_photos,) int32, positions in `values`.
        values: The distinct values.
    """

    rows: NDArray[np.int32]
    values: list[str]


class PhotoTable:
    """Photos as columns; a row is a position, an id is always a `photo_id`.

    Attributes:
        columns: The Arrow table behind it, one chunk a column.
    """

    def __init__(self, columns: pa.Table) -> None:
        if not columns.schema.equals(SCHEMA):
            msg = f"a photo table must have the columns {SCHEMA.names}, got {columns.schema.names}"
            raise DataError(msg)
        self.columns = columns
        self._ids = self._chunk("photo_id")

    @classmethod
    def from_photos(
        cls, photos: Iterable[Photo], *, labels: Sequence[int] | None = None
    ) -> PhotoTable:
        """Build a table from records, sorted by `photo_id`.

        Args:
            photos: The records; each `photo_id` once.
            labels: The number by which an index knows each photo; counted from 0 if left out.

        Raises:
            InputError: A `photo_id` comes twice.
        """
        rows = [row_of_photo(photo) for photo in photos]
        for row, label in zip(
            rows, labels if labels is not None else range(len(rows)), strict=True
        ):
            row["label"] = label
        rows.sort(key=lambda row: str(row["photo_id"]))
        ids = [row["photo_id"] for row in rows]
        for one, other in itertools.pairwise(ids):
            if one == other:
                msg = f"photo_id must be unique in a table, got {one!r} twice"
                raise InputError(msg)
        return cls.from_rows([rows])

    @classmethod
    def from_rows(cls, batches: Iterable[list[dict[str, Any]]]) -> PhotoTable:
        """Build a table from batches of rows that are already in the order of `photo_id`."""
        parts = [pa.Table.from_pylist(rows, schema=SCHEMA) for rows in batches if rows]
        table = pa.concat_tables(parts) if parts else SCHEMA.empty_table()
        return cls(table.unify_dictionaries().combine_chunks())

    @classmethod
    def open(cls, path: Path) -> PhotoTable:
        """Open a saved table by memory map; nothing is read until it is used.

        Raises:
            DataError: The file is missing, cut short or no photo table.
        """
        try:
            with pa.memory_map(str(path)) as source:
                return cls(pa.ipc.open_file(source).read_all())
        except (OSError, pa.ArrowException, DataError) as error:
            msg = (
                f"{path} must be a photo table, got: {error}; index the photos again to rebuild it"
            )
            raise DataError(msg) from error

    def with_labels(self, labels: NDArray[np.int64]) -> PhotoTable:
        """Return the same photos under other labels, (n_photos,) int64."""
        place = SCHEMA.get_field_index("label")
        return PhotoTable(self.columns.set_column(place, SCHEMA.field("label"), pa.array(labels)))

    def rows(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return whole rows as they are stored."""
        return list(self.columns.take(pa.array(rows)).to_pylist())

    def save(self, path: Path) -> None:
        """Write the table as one Arrow batch, which is what a memory map wants."""
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_table(self.columns, max_chunksize=max(len(self), 1))

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def _chunk(self, name: str) -> pa.Array:
        column = self.columns.column(name)
        if column.num_chunks == 1:
            return column.chunk(0)
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)

    def codes(self, name: str) -> Codes:
        """Return a column of few distinct values as numbers; `name` is one of `CODED_COLUMNS`."""
        return self._codes[name]

    @cached_property
    def _codes(self) -> dict[str, Codes]:
        chunks = {name: self._chunk(name) for name in CODED_COLUMNS}
        return {
            name: Codes(_view(chunk.indices, np.int32), chunk.dictionary.to_pylist())
            for name, chunk in chunks.items()
        }

    @cached_property
    def shades(self) -> NDArray[np.uint32]:
        """(n_photos,) dominant colours as 24-bit numbers, red highest."""
        return _view(self._chunk("shade"), np.uint32)

    @cached_property
    def uploaded_days(self) -> NDArray[np.int32]:
        """(n_photos,) upload dates as days since 1970-01-01."""
        return _view(self._chunk("uploaded_on").view(pa.int32()), np.int32)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """(n_photos,) the numbers by which an index knows the photos."""
        return _view(self._chunk("label"), np.int64)

    def photo_ids(self, rows: Iterable[int]) -> list[str]:
        """Return the ids at some rows."""
        return [self._ids[int(row)].as_py() for row in rows]

    def row_of(self, photo_id: str) -> int:
        """Find a photo by bisection.

        Raises:
            NotFoundError: The table does not have it.
        """
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._ids[middle].as_py() < photo_id:
                low = middle + 1
            else:
                high = middle
        if low == len(self) or self._ids[low].as_py() != photo_id:
            msg = f"photo_id must name an indexed photo, got {photo_id!r}"
            raise NotFoundError(msg)
        return low

    def photo(self, row: int) -> Photo:
        """Build the record at a row."""
        return _photo(self.columns.slice(row, 1).to_pylist()[0])

    def texts(self, name: str) -> Iterator[str]:
        """Iterate over a text column in row order."""
        for value in self._chunk(name):
            yield value.as_py()


def _view(array: pa.Array, dtype: Any) -> NDArray[Any]:
    if len(array) == 0:
        return np.zeros(0, dtype=dtype)
    return np.asarray(array.to_numpy(zero_copy_only=True))


def row_of_photo(photo: Photo) -> dict[str, Any]:
    """Turn a record into a row of the table, all but its `label`."""
    row: dict[str, Any] = {
        name: getattr(photo, name)
        for name in SCHEMA.names
        if name not in {"label", "shade", "uploaded_on"}
        and not name.startswith(("url_", "attribution_"))
    }
    row |= {f"url_{size}": photo.urls[size] for size in URL_SIZES}
    row |= {f"attribution_{form}": photo.attribution[form] for form in ("html", "plain")}
    row["shade"] = int(photo.color_hex[1:], 16)
    row["uploaded_on"] = datetime.date.fromisoformat(photo.uploaded_on)
    return row


def _photo(row: Mapping[str, Any]) -> Photo:
    plain = {
        name: value
        for name, value in row.items()
        if name not in {"label", "shade", "uploaded_on"}
        and not name.startswith(("url_", "attribution_"))
    }
    return Photo(
        **plain,
        urls={size: row[f"url_{size}"] for size in URL_SIZES},
        attribution={form: row[f"attribution_{form}"] for form in ("html", "plain")},
        color_hex=f"#{row['shade']:06x}",
        uploaded_on=row["uploaded_on"].isoformat(),
    )
