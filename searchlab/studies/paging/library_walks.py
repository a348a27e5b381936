"""Walks over a real library on disk, whose snapshot changes between two pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import ExpiredCursorError, InputError
from searchlab.library.library import Library
from searchlab.photos.table import PhotoTable
from searchlab.search.queries import Query
from searchlab.studies.paging.walks import Walk, presence


def library_walks(
    library: Library,
    texts: Sequence[str],
    *,
    changed_after: Sequence[int],
    leave: float = 0.1,
    per_page: int = 20,
    seed: int = 0,
) -> tuple[dict[str, list[Walk]], NDArray[np.bool_]]:
    """Walk through all pages of some queries while the library changes.

    Each change writes a snapshot that lacks some of the photos, drawn anew, so that earlier ones
    come back. **The library is changed**; at the end it holds all its photos again.

    Args:
        library: A library to experiment on, which nobody else uses.
        texts: Queries; each has a reader.
        changed_after: Pages after which there is a new snapshot, counted from 1.
        leave: Share of the photos that each new snapshot lacks.
        per_page: Results per page.
        seed: Seed of the photos that leave.

    Returns:
        For each way, `searchlab` (its cursors) and `offset` (places in the current ranking), a walk
        for each text, with photos as rows of the library at the start; and (n_states, n_rows)
        whether each photo was in the library at each page.

    Raises:
        InputError: There are no texts, or the share is out of range.
    """
    if not texts or not 0 <= leave < 1:
        msg = f"texts must not be empty and leave be 0 to below 1, got {len(texts)} and {leave}"
        raise InputError(msg)
    rng = np.random.default_rng(seed)
    whole = library.engine.table
    row_of = {photo_id: row for row, photo_id in enumerate(whole.texts("photo_id"))}
    readers: dict[str, list[_Reader]] = {
        "searchlab": [_CursorReader(text) for text in texts],
        "offset": [_OffsetReader(text) for text in texts],
    }
    states = []
    number = 0
    try:
        while any(reader.reads_on for some in readers.values() for reader in some):
            number += 1
            photo_ids = library.engine.table.texts("photo_id")
            states.append(np.array([row_of[photo_id] for photo_id in photo_ids]))
            for some in readers.values():
                for reader in some:
                    if reader.reads_on:
                        reader.turn(library, per_page, row_of)
            if number in changed_after:
                _write(library, whole, np.flatnonzero(rng.random(len(whole)) >= leave))
    finally:
        _write(library, whole, np.arange(len(whole)))
    walks = {way: [reader.walk for reader in some] for way, some in readers.items()}
    return walks, presence(states)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.walk = Walk()
        self.reads_on = True

    def turn(self, library: Library, per_page: int, row_of: Mapping[str, int]) -> None:
        raise NotImplementedError


class _CursorReader(_Reader):
    token: str | None = None

    def turn(self, library: Library, per_page: int, row_of: Mapping[str, int]) -> None:
        query = None if self.token else self.text
        try:
            page = library.search(query, per_page=per_page, cursor=self.token)
        except ExpiredCursorError:
            self.walk.cut_short, self.reads_on = True, False
            return
        rows = [row_of[hit.photo.photo_id] for hit in page]
        self.walk.pages.append(np.array(rows, dtype=np.int64))
        self.token = page.next_cursor
        self.reads_on = page.has_more


class _OffsetReader(_Reader):
    def turn(self, library: Library, per_page: int, row_of: Mapping[str, int]) -> None:
        start = len(self.walk.pages) * per_page
        engine = library.engine
        ranking = engine.rank(Query(text=self.text), start + per_page)
        photo_ids = engine.table.photo_ids(ranking.rows[start:])
        rows = [row_of[photo_id] for photo_id in photo_ids]
        self.walk.pages.append(np.array(rows, dtype=np.int64))
        self.reads_on = ranking.total > start + per_page


def _write(library: Library, whole: PhotoTable, rows: NDArray[np.int64]) -> None:
    photo_ids = set(whole.photo_ids(rows))
    with library.writing(), library.cache() as cache:
        before = library.snapshot()
        if before is None:
            msg = "a library must hold photos to be walked over, got an empty one; index some first"
            raise InputError(msg)
        library.write(whole.select(photo_ids), before.config, before.roots, cache, before=before)
