"""Photographers: who took the photos, found by any part of a name, and by exact username.

They have an index of their own beside that of words. A part of a name is no word: it may begin
within one, run over a space or be `_` or `%`, which words do not have, so that most of what must be
found here is not found there; and looking for a part among all words would read those of every
title and description.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, InputError, quote, rebuild_remedy
from searchlab.photos.columns import Texts
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.photographers.names import Names
from searchlab.search.queries import check_count

MAX_PART_LENGTH: Final = 100
MAX_SUGGESTIONS: Final = 50
DEFAULT_SUGGESTIONS: Final = 10

_ENTRIES_AT_ONCE = 8_192


@dataclass(frozen=True, kw_only=True, slots=True)
class Photographer:
    """A profile at one upstream library.

    Attributes:
        username: Login name, which the photo filter takes.
        full_name: Name for display; like the URL, from the newest photo that has one.
        source: Upstream library.
        url: Profile page; empty where no photo has one.
        photos_count: Photos in the snapshot.
    """

    username: str
    full_name: str
    source: str
    url: str
    photos_count: int


class Photographers:
    """The photographers of a snapshot: one for each username at each source.

    Photos without a username have no photographer.
    """

    def __init__(self, table: PhotoTable) -> None:
        codes, sources = table.codes("photographer_username"), table.codes("source")
        self._usernames, self._sources = codes.values, sources.values
        self._full_names = table.column("photographer_full_name")
        self._urls = table.column("photographer_url")
        has_name = np.array([bool(name.strip()) for name in codes.values], dtype=np.bool_)
        rows = np.flatnonzero(has_name[codes.rows] if len(has_name) else codes.rows)
        pairs = codes.rows[rows].astype(np.int64) * len(sources.values) + sources.rows[rows]
        # (n,) each, by username and source.
        self._pairs, places, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        self._counts = counts.astype(np.int32)
        newest = _Newest(rows, places, table.uploaded_days[rows])
        self._name_rows = newest.of(self._full_names)
        self._url_rows = newest.of(self._urls)
        self._ranked = np.argsort(-counts, kind="stable").astype(np.int32)
        self._names = Names(self._lines())

    def __len__(self) -> int:
        return len(self._pairs)

    def suggest(self, part: str, limit: int = DEFAULT_SUGGESTIONS) -> list[Photographer]:
        """Find the photographers whose username or full name has `part` in it.

        Case, accents and runs of white space make no difference, and no character is a wildcard.

        Args:
            part: 1 to 100 code points. A space, or whatever else folds to nothing, matches all.
            limit: Most to return, 1 to 50.

        Returns:
            First those whose name is `part`, then those with a word that begins with it, then the
            others; among them by most photos, then username, then source.

        Raises:
            InputError: A part or limit out of range.
        """
        if not isinstance(part, str) or not 1 <= len(part) <= MAX_PART_LENGTH:
            msg = f"q must have 1 to {MAX_PART_LENGTH} characters, got {quote(part)}"
            raise InputError(msg)
        check_count("limit", limit, MAX_SUGGESTIONS)
        places = self._names.find(part, limit)
        return [self._photographer_at(int(self._ranked[place])) for place in places]

    def find(self, username: str) -> list[Photographer]:
        """Return every profile of exactly that username, by most photos, then source."""
        code = bisect_left(self._usernames, username)
        if self._usernames[code : code + 1] != [username]:
            return []
        ends = np.array([code, code + 1]) * len(self._sources)
        places = range(*np.searchsorted(self._pairs, ends).tolist())
        by_count = sorted(places, key=lambda place: -self._counts[place])
        return [self._photographer_at(place) for place in by_count]

    def _photographer_at(self, place: int) -> Photographer:
        username, source = divmod(int(self._pairs[place]), len(self._sources))
        return Photographer(
            username=self._usernames[username],
            full_name=self._full_names[int(self._name_rows[place])],
            source=self._sources[source],
            url=self._urls[int(self._url_rows[place])],
            photos_count=int(self._counts[place]),
        )

    def _lines(self) -> Iterator[list[str]]:
        for start in range(0, len(self), _ENTRIES_AT_ONCE):
            places = self._ranked[start : start + _ENTRIES_AT_ONCE]
            lines = [""] * (2 * len(places))
            usernames = (self._pairs[places] // len(self._sources)).tolist()
            lines[::2] = [self._usernames[code] for code in usernames]
            lines[1::2] = _read_texts(self._full_names, self._name_rows[places])
            yield lines


class _Newest(NamedTuple):
    """Rows, which photographer each belongs to, and their days."""

    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    days: NDArray[np.int32]

    def of(self, column: Texts) -> NDArray[np.int32]:
        """Find each photographer's newest row with a text in the column, or else the newest row."""
        filled = np.diff(column.starts)[self.rows] > 0
        order = np.lexsort((self.days, filled, self.places))
        last = np.flatnonzero(np.diff(self.places[order], append=-1))
        return self.rows[order[last]].astype(np.int32)


def _read_texts(column: Texts, rows: NDArray[np.int32]) -> list[str]:
    data = column.data.data
    ends = zip(column.starts[rows].tolist(), column.starts[rows + 1].tolist(), strict=True)
    try:
        return [str(data[start:end], "utf-8") for start, end in ends]
    except UnicodeDecodeError as error:
        msg = f"names must be UTF-8, got {quote(error.object)}; {rebuild_remedy()}"
        raise DataError(msg) from error
