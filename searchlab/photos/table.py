"""PhotoTable: a library's photos as columns, sorted by photo_id, opened by memory map.

Nothing is created for a photo until that photo is needed: columns that filters read are numpy views
of the file, and texts stay on disk.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import (
    DataError,
    InputError,
    NotFoundError,
    damaged_file,
    quote,
    rebuild_remedy,
)
from searchlab.photos.columns import Texts, join_texts, open_columns, pack_texts, save_columns
from searchlab.photos.photo import URL_SIZES, Photo, day_number

CODED_COLUMNS = ("orientation", "color_name", "source", "license_type", "photographer_username")
OWNERS_COLUMNS = ("file", "folder", "title", "tags", "place")
"""Texts that are the owner's; tags stand one a line."""
TEXT_COLUMNS = (
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
    "sha256",
    *(f"url_{size}" for size in URL_SIZES),
    *OWNERS_COLUMNS,
)
MAX_PALETTE = 5
"""Colours of a palette at most; each has a column of shades and one of percents, 0 where none."""
_PALETTE_COLUMNS = tuple(
    (f"palette_shade_{place}", f"palette_percent_{place}") for place in range(MAX_PALETTE)
)
NUMBER_COLUMNS: dict[str, type[np.integer[Any]]] = {
    "width": np.int32,
    "height": np.int32,
    "shade": np.uint32,
    "uploaded_day": np.int32,
    "label": np.int64,
    "latitude": np.int32,
    "longitude": np.int32,
    "rating": np.int32,
    **{shade: np.uint32 for shade, _ in _PALETTE_COLUMNS},
    **{percent: np.uint8 for _, percent in _PALETTE_COLUMNS},
}
_DEGREE = 1_000_000  # positions are stored in millionths of a degree, 0 and 0 where unknown


class Codes(NamedTuple):
    """A text column of few distinct values.

    Attributes:
        rows: (n_photos,) int32, positions in `values`.
        values: The distinct values, sorted.
    """

    rows: NDArray[np.int32]
    values: list[str]


class PhotoTable:
    """Photos as columns; a row is a position, an id is always a `photo_id`."""

    def __init__(
        self,
        numbers: Mapping[str, NDArray[Any]],
        codes: Mapping[str, Codes],
        texts: Mapping[str, Texts],
    ) -> None:
        """Put columns together.

        Args:
            numbers: One array for each of `NUMBER_COLUMNS`.
            codes: One for each of `CODED_COLUMNS`.
            texts: One for each of `TEXT_COLUMNS`.

        Raises:
            DataError: A column is missing, too many, or of another length.
        """
        expected = ({*NUMBER_COLUMNS}, {*CODED_COLUMNS}, {*TEXT_COLUMNS})
        if (set(numbers), set(codes), set(texts)) != expected:
            names = sorted([*numbers, *codes, *texts])
            msg = f"a photo table must have its columns and no others, got {names}"
            raise DataError(msg)
        lengths = {len(column) for column in numbers.values()}
        lengths |= {len(column) for column in texts.values()}
        lengths |= {len(column.rows) for column in codes.values()}
        for name, (rows, values) in codes.items():
            if not 0 <= rows.min(initial=0) <= rows.max(initial=0) < max(len(values), 1):
                msg = f"{name} must be among its {len(values)} values, got another"
                raise DataError(msg)
            if len(rows) and not values:
                msg = f"{name} must have a value, got none"
                raise DataError(msg)
        if len(lengths) != 1:
            msg = f"the columns of a photo table must be of one length, got {sorted(lengths)}"
            raise DataError(msg)
        self._numbers = numbers
        self._codes = codes
        self._texts = texts

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
        numbering = labels if labels is not None else range(len(rows))
        for row, label in zip(rows, numbering, strict=True):
            row["label"] = label
        rows.sort(key=lambda row: str(row["photo_id"]))
        for one, other in itertools.pairwise(row["photo_id"] for row in rows):
            if one == other:
                msg = f"photo_id must be unique in a table, got {one!r} twice"
                raise InputError(msg)
        return cls.from_rows([rows])

    @classmethod
    def from_rows(cls, batches: Iterable[list[dict[str, Any]]]) -> PhotoTable:
        """Build a table from batches of rows that are already in the order of `photo_id`."""
        numbers: dict[str, list[NDArray[Any]]] = {name: [] for name in NUMBER_COLUMNS}
        texts: dict[str, list[Texts]] = {name: [] for name in TEXT_COLUMNS}
        coded: dict[str, list[str]] = {name: [] for name in CODED_COLUMNS}
        for rows in batches:
            for name, dtype in NUMBER_COLUMNS.items():
                numbers[name].append(np.array([row[name] for row in rows], dtype=dtype))
            for name in TEXT_COLUMNS:
                texts[name].append(pack_texts(row[name] for row in rows))
            for name in CODED_COLUMNS:
                coded[name] += [row[name] for row in rows]
        return cls(
            {
                name: np.concatenate([np.zeros(0, dtype=NUMBER_COLUMNS[name]), *parts])
                for name, parts in numbers.items()
            },
            {name: _encode(values) for name, values in coded.items()},
            {name: join_texts(parts) for name, parts in texts.items()},
        )

    @classmethod
    def open(cls, path: Path) -> PhotoTable:
        """Open a saved table by memory map; nothing is read until it is used.

        Raises:
            DataError: The file is missing, cut short or no photo table.
        """
        arrays = open_columns(path)
        try:
            _check_arrays(arrays)
            return cls(
                {name: arrays[name] for name in NUMBER_COLUMNS},
                {
                    name: Codes(arrays[name], list(arrays.texts(f"{name}.values")))
                    for name in CODED_COLUMNS
                },
                {name: arrays.texts(name) for name in TEXT_COLUMNS},
            )
        except (KeyError, UnicodeDecodeError, DataError) as error:
            raise damaged_file(path, "be a photo table", error) from error

    def save(self, path: Path) -> None:
        """Write the table as one file of columns."""
        arrays: dict[str, NDArray[Any]] = dict(self._numbers)
        texts = dict(self._texts)
        for name, (rows, values) in self._codes.items():
            arrays[name] = rows
            texts[f"{name}.values"] = pack_texts(values)
        for name, column in texts.items():
            arrays[f"{name}.starts"] = column.starts
            arrays[f"{name}.data"] = column.data
        save_columns(path, arrays)

    def __len__(self) -> int:
        return len(self._numbers["label"])

    def codes(self, name: str) -> Codes:
        """Return a column of few distinct values as numbers; `name` is one of `CODED_COLUMNS`."""
        return self._codes[name]

    @property
    def shades(self) -> NDArray[np.uint32]:
        """(n_photos,) dominant colours as 24-bit numbers, red highest."""
        return self._numbers["shade"]

    def palette_color(self, place: int) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Return one colour of every palette.

        Args:
            place: 0 is the largest, 4 the last.

        Returns:
            (n_photos,) shades as 24-bit numbers, and (n_photos,) percents of the picture, 0 where a
            palette has fewer colours.
        """
        shade, percent = _PALETTE_COLUMNS[place]
        return self._numbers[shade], self._numbers[percent]

    @property
    def uploaded_days(self) -> NDArray[np.int32]:
        """(n_photos,) upload dates as days since 1970-01-01."""
        return self._numbers["uploaded_day"]

    @property
    def labels(self) -> NDArray[np.int64]:
        """(n_photos,) the numbers by which an index knows the photos."""
        return self._numbers["label"]

    def with_labels(self, labels: NDArray[np.int64]) -> PhotoTable:
        """Return the same photos under other labels, (n_photos,) int64."""
        return PhotoTable({**self._numbers, "label": labels}, self._codes, self._texts)

    def select(self, photo_ids: Collection[str]) -> PhotoTable:
        """Return a table of just some photos; ids that this table does not have are ignored."""
        rows = [row for row, i in enumerate(self._texts["photo_id"]) if i in photo_ids]
        return PhotoTable.from_rows([[self.row(row) for row in rows]])

    def photo_ids(self, rows: Iterable[int]) -> list[str]:
        """Return the ids at some rows.

        Raises:
            InputError: A row is below 0.
        """
        ids = self._texts["photo_id"]
        places = [int(row) for row in rows]
        if min(places, default=0) < 0:
            msg = f"rows must be 0 or more, got {min(places)}"
            raise InputError(msg)
        return [ids[place] for place in places]

    def row_of(self, photo_id: str) -> int:
        """Find a photo by bisection.

        Raises:
            NotFoundError: The table does not have it.
        """
        ids = self._texts["photo_id"]
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if ids[middle] < photo_id:
                low = middle + 1
            else:
                high = middle
        if low == len(self) or ids[low] != photo_id:
            msg = f"photo_id must name an indexed photo, got {quote(photo_id)}"
            raise NotFoundError(msg)
        return low

    def rows_in(self, other: PhotoTable) -> NDArray[np.bool_]:
        """Say for each photo whether another table has it too, by `photo_id`; (n_photos,) bool."""
        mine, theirs = (np.array(list(table.texts("photo_id"))) for table in (self, other))
        return np.isin(mine, theirs)

    def row(self, row: int) -> dict[str, Any]:
        """Return a whole row, as `from_rows` takes it."""
        values: dict[str, Any] = {name: column[row] for name, column in self._texts.items()}
        values |= {name: int(column[row]) for name, column in self._numbers.items()}
        values |= {name: codes.values[codes.rows[row]] for name, codes in self._codes.items()}
        return values

    def photo(self, row: int) -> Photo:
        """Build the record at a row."""
        return self.photos([row])[0]

    def photos(self, rows: Sequence[int]) -> list[Photo]:
        """Build the records at some rows."""
        try:
            return [Photo(**attributes) for attributes in self.attributes(rows)]
        except InputError as error:
            msg = f"a stored photo must be as it was written, got: {error}; {rebuild_remedy()}"
            raise DataError(msg) from error

    def attributes(self, rows: Sequence[int], *, owners: bool = True) -> list[dict[str, Any]]:
        """Return the attributes of the photos at some rows, by the names of `Photo`.

        For many photos this takes half as long as making a `Photo` of each.

        Args:
            rows: Positions.
            owners: With what is the owner's; without it, only what others may be shown is read.
        """
        places = np.asarray(rows, dtype=np.int64)
        columns: dict[str, list[Any]] = {
            name: texts.at(places)
            for name, texts in self._texts.items()
            if owners or name not in OWNERS_COLUMNS
        }
        columns |= {
            name: column[places].tolist()
            for name, column in self._numbers.items()
            if owners or not name.startswith("palette_")
        }
        columns["uploaded_on"] = self.uploaded_days[places].astype("M8[D]").astype(str).tolist()
        for name, codes in self._codes.items():
            columns[name] = [codes.values[code] for code in codes.rows[places].tolist()]
        whole = zip(*columns.values(), strict=True)
        return [_attributes(dict(zip(columns, one, strict=True)), owners) for one in whole]

    def column(self, name: str) -> Texts:
        """Return a text column, mapped from the file; `name` is one of `TEXT_COLUMNS`."""
        return self._texts[name]

    def texts(self, name: str) -> Iterator[str]:
        """Iterate over a text column in row order."""
        return iter(self._texts[name])

    def has_texts(self, name: str) -> bool:
        """Say whether any photo has something in a text column."""
        return len(self._texts[name].data) > 0


def _check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    expected: dict[str, Any] = {**NUMBER_COLUMNS, **dict.fromkeys(CODED_COLUMNS, np.int32)}
    for name in (*TEXT_COLUMNS, *(f"{name}.values" for name in CODED_COLUMNS)):
        expected |= {f"{name}.starts": np.int64, f"{name}.data": np.uint8}
    other = arrays.keys() ^ expected.keys()
    other |= {
        name for name in arrays.keys() & expected.keys() if arrays[name].dtype != expected[name]
    }
    if other:
        msg = f"missing or unknown columns: {', '.join(sorted(other))}"
        raise DataError(msg)


def _encode(values: Sequence[str]) -> Codes:
    distinct = sorted(set(values))
    places = {value: place for place, value in enumerate(distinct)}
    return Codes(np.array([places[value] for value in values], dtype=np.int32), distinct)


def row_of_photo(photo: Photo) -> dict[str, Any]:
    """Turn a record into a row of the table, without its `label`."""
    row: dict[str, Any] = {name: getattr(photo, name) for name in _PLAIN}
    row |= {f"url_{size}": photo.urls[size] for size in URL_SIZES}
    row |= {f"attribution_{form}": photo.attribution[form] for form in ("html", "plain")}
    row["shade"] = int(photo.color_hex[1:], 16)
    row["uploaded_day"] = day_number(photo.uploaded_on, name="uploaded_on")
    row["tags"] = "\n".join(photo.tags)
    row["latitude"] = round((photo.latitude or 0) * _DEGREE)
    row["longitude"] = round((photo.longitude or 0) * _DEGREE)
    row |= dict.fromkeys(itertools.chain(*_PALETTE_COLUMNS), 0)
    for (shade, percent), color in zip(_PALETTE_COLUMNS, photo.palette, strict=False):
        row |= {shade: int(color[0][1:], 16), percent: color[1]}
    return row


_PLAIN = (
    *(name for name in TEXT_COLUMNS if not name.startswith(("url_", "attribution_"))),
    *CODED_COLUMNS,
    "width",
    "height",
    "rating",
)
_SHOWN = tuple(name for name in _PLAIN if name not in (*OWNERS_COLUMNS, "rating"))


def _attributes(row: Mapping[str, Any], owners: bool) -> dict[str, Any]:
    values = {name: row[name] for name in (_PLAIN if owners else _SHOWN)}
    if owners:
        values["tags"] = tuple(row["tags"].split("\n")) if row["tags"] else ()
        here = (row["latitude"], row["longitude"])
        latitude, longitude = (None, None) if here == (0, 0) else (n / _DEGREE for n in here)
        values |= {"latitude": latitude, "longitude": longitude}
        palette = ((row[shade], row[percent]) for shade, percent in _PALETTE_COLUMNS)
        values["palette"] = tuple((f"#{shade:06x}", share) for shade, share in palette if share)
    values["urls"] = {size: row[f"url_{size}"] for size in URL_SIZES}
    values["attribution"] = {form: row[f"attribution_{form}"] for form in ("html", "plain")}
    values["color_hex"] = f"#{row['shade']:06x}"
    values["uploaded_on"] = row["uploaded_on"]
    return values
