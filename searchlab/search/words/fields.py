"""Fields: where something can be written about a photo, and how much a match there counts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from searchlab.photos.descriptions import is_generated
from searchlab.photos.photo import OWNERS_FIELDS
from searchlab.photos.table import CODED_COLUMNS, PhotoTable
from searchlab.search.words.terms import RULES, hash_of

_LENGTH_OF_ID = 36
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class TextField(NamedTuple):
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

    @property
    def is_shown(self) -> bool:
        """Whether others are shown what is written there."""
        return not set(self.columns) & set(OWNERS_FIELDS)


FIELDS: Final = (
    TextField("title", ("title",), 1.0, whole=True),
    TextField("description", ("source_description", "alt_description"), 0.9, whole=True),
    TextField("tags", ("tags",), 0.9),
    TextField("file", ("file",), 0.8, whole=True),
    TextField("photographer", ("photographer_full_name", "photographer_username"), 0.8),
    TextField("place", ("place",), 0.8),
    TextField("folder", ("folder",), 0.6),
    TextField("source", ("source", "license_type"), 0.4),
)
"""A field is one bit of a posting: at most 8 of them, in this order, which is on disk."""

TEXTS: Final = frozenset({"title", "source_description", "alt_description"})
"""Columns with sentences or titles."""

NAMES: Final = frozenset({"file", "folder"})
"""Columns with names of files and folders."""

WEIGHTS = np.zeros(256, dtype=np.float32)
"""(256,) for each set of fields, as bits, the weight of the best one."""
for _bits in range(256):
    _set = [field.weight for i, field in enumerate(FIELDS) if _bits >> i & 1]
    WEIGHTS[_bits] = max(_set, default=0.0)


ALL_FIELDS: Final = (1 << len(FIELDS)) - 1
SHOWN_FIELDS: Final = sum(1 << i for i, field in enumerate(FIELDS) if field.is_shown)
"""Sets of fields, as bits: all, and those whose texts others are shown."""

READ_FIELDS: Final = {"all": ALL_FIELDS, "shown": SHOWN_FIELDS}
"""`Config.read_texts` -> fields."""


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


_FIELD, _TEXT = itemgetter(0), itemgetter(1)


def texts_of(table: PhotoTable, withheld: Collection[str] = ()) -> Iterator[list[Written]]:
    """Yield what is written about each photo, in the table's order.

    Args:
        table: The photos.
        withheld: Columns that must not be read. If others than `NAMES` are among them, judgments
            were made from these, and only the other columns of `TEXTS` are read: tags and names of
            files often say the same, and a measurement with texts withheld is one of photos without
            words.
    """
    if not NAMES.issuperset(withheld):
        others = {name for field in FIELDS for name in field.columns if name not in TEXTS}
        withheld = {*withheld, *others}
    columns = [
        column
        for number, field in enumerate(FIELDS)
        for name in field.columns
        if name not in withheld and (column := _written(table, number, name)) is not None
    ]
    if not columns:
        yield from ([] for _ in range(len(table)))
    for row in zip(*columns, strict=True):
        yield [written for written in row if written is not None]


def documents_of(
    table: PhotoTable, withheld: Collection[str]
) -> Iterator[tuple[int, list[Written]]]:
    """Yield for each photo a digest of what it is found by, and its texts; see `texts_of`."""
    for photo_id, written in zip(table.texts("photo_id"), texts_of(table, withheld), strict=True):
        fields = bytes(map(_FIELD, written)).decode()
        yield hash_of("\0".join([photo_id, *map(_TEXT, written), fields, str(RULES)])), written


def _written(table: PhotoTable, number: int, name: str) -> Iterator[Written | None] | None:
    """Yield what each photo has in one column, None where nothing; None if no photo has any."""
    if name in CODED_COLUMNS:
        codes = table.codes(name)
        by_code = [_read(text, number, name) for text in codes.values]
        return map(by_code.__getitem__, codes.rows.tolist()) if any(by_code) else None
    if not table.has_texts(name):
        return None
    return (_read(text, number, name) for text in table.texts(name))


def _read(text: str, number: int, name: str) -> Written | None:
    if name == "file":
        file = text.rpartition("/")[2]
        stem = file.rpartition(".")[0] or file
        # A photo_id has digits that nobody wrote.
        is_id = len(stem) == _LENGTH_OF_ID and _ID.fullmatch(stem)
        return None if is_id else Written(number, stem, is_name=True)
    return Written(number, text, name == "folder") if text and not is_generated(text) else None
