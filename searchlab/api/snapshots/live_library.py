"""LiveLibrary: the current snapshot of a library, and older ones that cursors still page through.

A new snapshot is opened and warmed up beside the old one, then replaces it between two requests.
Photos that the new snapshot lacks disappear from answers at once, before it is even open.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.api.http.threads import Threads
from searchlab.api.snapshots.encoded_photos import EncodedPhotos
from searchlab.api.snapshots.facet_lists import FacetLists
from searchlab.api.snapshots.lazy import Lazy
from searchlab.api.wire.errors import overloaded
from searchlab.errors import ExpiredCursorError, NotFoundError
from searchlab.library.library import open_library
from searchlab.library.snapshots import OpenVectors, current_id
from searchlab.models.protocol import towers_of
from searchlab.photos.colors import DEFAULT_TOLERANCE
from searchlab.photos.table import PhotoTable
from searchlab.search.engine import SearchEngine
from searchlab.search.filters.photographers import Photographers
from searchlab.search.queries import Query

_WARM_TEXT = "a lake in the mountains"
# Handing work to a thread costs 0.05 to 0.1 ms; searches that take longer than this are handed
# over, so that they do not block the event loop.
_SHORT_MS = 3.0
_TRIALS = 5  # the quickest of so many counts, since other processes may disturb some
# Bounds within which a search takes as long as the trials.
_SHORT_TEXT = 100
_SHORT_DEPTH = 1_000
_LONGEST_WAIT_S = 5.0
# How long a request waits for an older snapshot to be opened.
_OPENING_S = 10.0
_FEW_PHOTOS = 50_000


@dataclass(frozen=True, kw_only=True)
class ServedSnapshot:
    """One snapshot, and what is prepared from it for answers.

    Attributes:
        engine: Ranks its photos.
        photos: Its records as JSON.
        facets: Its facet lists as JSON.
        photographers: Photographers of its photos.
        live: (n_photos,) whether each photo still exists; None if all do.
        quick: Whether a plain search is short enough for the event loop.
    """

    engine: SearchEngine
    photos: EncodedPhotos
    facets: FacetLists
    photographers: Lazy[Photographers]
    live: NDArray[np.bool_] | None
    quick: bool

    def is_short(self, query: Query, end: int) -> bool:
        """Say whether a page is short enough for the event loop.

        Args:
            query: The search.
            end: Rank of the page's last photo, from 1.
        """
        return (
            self.quick
            and self.live is None
            and end <= _SHORT_DEPTH
            and len(query.text or "") <= _SHORT_TEXT
            and query.score_threshold is None
            and query.sort_by == "relevance"
            and query.filter.color_hex is None
            and query.filter.color_tolerance == DEFAULT_TOLERANCE
        )

    def row_of(self, photo_id: str) -> int:
        """Return the row of a photo that still exists.

        Raises:
            NotFoundError: There is none of this id.
        """
        row = self.engine.table.row_of(photo_id)
        if self.live is not None and not self.live[row]:
            msg = f"photo_id must name an indexed photo, got one that was deleted: {photo_id!r}"
            raise NotFoundError(msg)
        return row


class LiveLibrary:
    """The snapshots of one library that a worker can answer from.

    Attributes:
        library: The library on disk.
        n_swaps: How often a new snapshot has replaced the current one.
    """

    def __init__(
        self,
        folder: Path,
        *,
        show_places: bool = False,
        open_vectors: OpenVectors | None = None,
    ) -> None:
        """Open the current snapshot and answer one query with it.

        Args:
            folder: The library's folder.
            show_places: Whether words are looked up in what is the owner's, too: names of files
                and folders, keywords and places.
            open_vectors: Opens the vectors that are searched where they do not lie here.

        Raises:
            NotFoundError: No library, or nothing was indexed yet.
            DataError: It is damaged or of another version.
            MismatchError: The installed model is not the one that embedded the photos.
        """
        self.library = open_library(folder, for_others=not show_places, open_vectors=open_vectors)
        self._is_here = open_vectors is None
        self.n_swaps = 0
        self._mark = self._read_mark()
        self._current = self._serve(self.library.engine)
        self._older: dict[str, ServedSnapshot] = {}
        # Of their own: an older snapshot waits for one that is being opened, perhaps on a cluster.
        self._opening = Threads("older", 2, waiting=32)

    @property
    def current(self) -> ServedSnapshot:
        """The snapshot that new searches are answered from."""
        return self._current

    async def at(self, snapshot_id: str) -> ServedSnapshot:
        """Return the snapshot that a cursor names.

        Raises:
            ExpiredCursorError: The library has removed it.
            HttpProblem: It is not open in time, or too many wait for it (503).
        """
        current = self._current
        if snapshot_id == current.engine.snapshot_id:
            return current
        try:
            async with asyncio.timeout(_OPENING_S):
                engine, live = await self._opening.run(self.library.open_kept, snapshot_id)
        except TimeoutError:
            raise overloaded() from None
        older = self._older.get(snapshot_id)
        if older is None or older.engine is not engine or older.live is not live:
            older = ServedSnapshot(
                engine=engine,
                photos=EncodedPhotos(engine.table),
                facets=current.facets,
                photographers=current.photographers,
                live=live,
                quick=False,
            )
            self._older = {snapshot_id: older}
        return older

    def close(self) -> None:
        """Wait for the older snapshots that are being opened."""
        self._opening.close()

    async def watch(
        self,
        poll_s: float,
        *,
        on_swap: Callable[[ServedSnapshot], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """Check for a new snapshot again and again, until cancelled.

        Args:
            poll_s: Seconds between two checks.
            on_swap: Called with each new snapshot.
            on_failure: Called when one cannot be opened, and again only for another reason; the old
                one goes on answering, and the new one is tried again.
        """
        wait_s, reported = poll_s, ""
        while True:
            await asyncio.sleep(wait_s)
            try:
                mark = self._read_mark()
                if mark != self._mark and await self._swap():
                    on_swap(self._current)
                self._mark, wait_s, reported = mark, poll_s, ""
            except Exception as error:  # any: otherwise nothing would check again
                if repr(error) != reported:
                    on_failure(error)
                wait_s, reported = min(max(10 * poll_s, 2 * wait_s), _LONGEST_WAIT_S), repr(error)

    async def _swap(self) -> bool:
        before = self._current
        if current_id(self.library.folder) == before.engine.snapshot_id:
            return False
        # After several new snapshots the old one may be removed; it then answers as it is.
        with suppress(ExpiredCursorError):
            _, live = await asyncio.to_thread(self.library.open_kept, before.engine.snapshot_id)
            self._current = replace(before, live=live)
        engine = await asyncio.to_thread(lambda: self.library.engine)
        self._current = await asyncio.to_thread(self._serve, engine)
        self.n_swaps += 1
        return True

    def _read_mark(self) -> tuple[int, int]:
        status = os.stat(self.library.folder / "CURRENT")  # noqa: PTH116 - ten times as fast
        return status.st_ino, status.st_mtime_ns

    def _serve(self, engine: SearchEngine) -> ServedSnapshot:
        if "image" in towers_of(engine.model):
            engine.reference_vector(Query(image=Image.new("RGB", (64, 64))))
        took_ms = min(_search_ms(engine) for _ in range(_TRIALS))
        return ServedSnapshot(
            engine=engine,
            photos=EncodedPhotos(engine.table),
            facets=FacetLists(engine.table),
            photographers=_index_photographers(engine.table),
            live=None,
            quick=self._is_here and took_ms <= _SHORT_MS,
        )


def _index_photographers(table: PhotoTable) -> Lazy[Photographers]:
    # For a million photos this takes a second, which no search needs to wait for.
    photographers = Lazy(lambda: Photographers(table))
    if len(table) <= _FEW_PHOTOS:
        photographers.get()
    return photographers


def _search_ms(engine: SearchEngine) -> float:
    started = time.perf_counter()
    if "text" not in towers_of(engine.model):
        engine.slice(Query(photo_id=engine.table.photo_ids([0])[0]))
        return 1e3 * (time.perf_counter() - started)
    engine.model.encode_texts([_WARM_TEXT])  # uncached, as for a text that is searched first
    engine.slice(Query(text=_WARM_TEXT))
    return 1e3 * (time.perf_counter() - started)
