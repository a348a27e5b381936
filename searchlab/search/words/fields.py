"""Fields: where something can be written about a photo, and how much a match there counts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

import numpy as np

from searchlab.photos.descriptions import is_generated
from searchlab.photos.table import CODED_COLUMNS, PhotoTable

_LENGTH_OF_ID = 36
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Field(NamedTuple):
    """A place where words about a photo stand.

    Attributes:
        name: As plans call it.
        columns: Of the photo table.
        weight: How much a word that is found there counts, 0 to 1.
        whole: Whether a query that is all of such a text means this photo.
    """

    name: str
    columns: tuple[str, ...]
    weight: float
    whole: bool = False


FIELDS: Final = (
    Field("title", ("title",), 1.0, whole=True),
    Field("description", ("source_description", "alt_description"), 0.9, whole=True),
    Field("tags", ("tags",), 0.9),
    Field("file", ("file",), 0.8, whole=True),
    Field("photographer", ("photographer_full_name", "photographer_username"), 0.8),
    Field("place", ("place",), 0.8),
    Field("folder", ("folder",), 0.6),
    Field("source", ("source", "license_type"), 0.4),
)
"""A field is one bit of a posting: at most 8 of them, in this order, which is on disk."""

TEXTS: Final = frozenset({"title", "source_description", "alt_description"})
"""Columns with sentences or titles."""

WEIGHTS = np.zeros(256, dtype=np.float32)
"""(256,) for each set of fields, as bits, the weight of the best one."""
for _bits in range(256):
    _set = [field.weight for i, field in enumerate(FIELDS) if _bits >> i & 1]
    WEIGHTS[_bits] = max(_set, default=0.0)


def names_of(bits: int) -> list[str]:
    """Name the fields of a set of bits."""
    return [field.name for i, field in enumerate(FIELDS) if bits >> i & 1]


class Written(NamedTuple):
    """A text of a photo.

    Attributes:
        field: Place in `FIELDS`.
        text: What is written there.
        is_name: Whether it is a name of a file or folder.
    """

    field: int
    text: str
    is_name: bool = False


def texts_of(table: PhotoTable, withheld: Collection[str] = ()) -> Iterator[list[Written]]:
    """Yield what is written about each photo, in the table's order.

    Args:
        table: The photos.
        withheld: Columns that must not be read, because judgments were made from them. Then only
            the other columns of `TEXTS` are read: names of files and folders and tags often say the
            same, and a measurement with texts withheld is one of photos without words.
    """
    if withheld:
        others = {name for field in FIELDS for name in field.columns if name not in TEXTS}
        withheld = {*withheld, *others}
    columns = [
        (number, name, _values(table, name))
        for number, field in enumerate(FIELDS)
        for name in field.columns
        if name not in withheld
    ]
    for _ in range(len(table)):
        written = []
        for number, name, values in columns:
            text = next(values)
            if name == "file":
                file = text.rpartition("/")[2]
                stem = file.rpartition(".")[0] or file
                # A photo_id has digits that nobody wrote.
                if len(stem) != _LENGTH_OF_ID or not _ID.fullmatch(stem):
                    written.append(Written(number, stem, is_name=True))
            elif text and not is_generated(text):
                written.append(Written(number, text, is_name=name == "folder"))
        yield written


def _values(table: PhotoTable, name: str) -> Iterator[str]:
    if name not in CODED_COLUMNS:
        return iter(table.texts(name))
    codes = table.codes(name)
    return (codes.values[code] for code in codes.rows.tolist())
