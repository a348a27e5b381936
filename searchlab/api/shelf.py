"""Shelf: the snapshot in force and those that cursors still page through, swapped while serving.

The new state is opened and warmed beside the old one, then takes its place between two requests.
Photos that the new state lacks are gone as soon as it is seen, before it is even open.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from searchlab.api.encoded_photos import EncodedPhotos
from searchlab.api.facet_lists import FacetLists
from searchlab.engine import SearchEngine
from searchlab.errors import ExpiredCursorError, NotFoundError, SearchlabError
from searchlab.library import open_library
from searchlab.photographers import Photographers
from searchlab.queries import Query
from searchlab.snapshots import current_id

Answer = TypeVar("Answer")

WARM_TEXTS = ("a", "a lake in the mountains")
# A thread hop costs 0.05 to 0.1 ms: what takes longer than this does not hold up the others.
_INLINE_MS = 3.0


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One snapshot with all that its answers are made from.

    Attributes:
        engine: Ranks.
        photos: Its records as JSON.
        facets: Its facet lists as JSON.
        photographers: Who took its photos.
        live: (n_photos,) the photos that are still there; None for all of them.
        inline: Whether a search is short enough for the event loop.
    """

    engine: SearchEngine
    photos: EncodedPhotos
    facets: FacetLists
    photographers: Photographers
    live: NDArray[np.bool_] | None
    inline: bool

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Run a search, on the event loop if it is short."""
        return work() if self.inline else await asyncio.to_thread(work)

    def row_of(self, photo_id: str) -> int:
        """Find a photo that is still there.

        Raises:
            NotFoundError: There is none of this id.
        """
        row = self.engine.table.row_of(photo_id)
        if self.live is not None and not self.live[row]:
            msg = f"photo_id must name an indexed photo, got one that was deleted: {photo_id!r}"
            raise NotFoundError(msg)
        return row


class Shelf:
    """The states of one library that a worker can answer from.

    Attributes:
        library: On disk.
        n_swaps: How often a new state took its place.
    """

    def __init__(self, folder: Path) -> None:
        """Open the state in force and answer one query with it.

        Raises:
            NotFoundError: No library, or nothing was indexed yet.
            DataError: It is damaged or of another version.
            MismatchError: The installed model is not the one that embedded the photos.
        """
        self.library = open_library(folder)
        self.n_swaps = 0
        self._mark = self._look()
        self._current = self._show(self.library.engine)
        self._older: dict[str, Shown] = {}

    @property
    def current(self) -> Shown:
        """The state in force."""
        return self._current

    async def at(self, snapshot_id: str) -> Shown:
        """Return a state that cursors name.

        Raises:
            ExpiredCursorError: It is not kept any more.
        """
        current = self._current
        if snapshot_id == current.engine.snapshot_id:
            return current
        engine, live = await asyncio.to_thread(self.library.kept, snapshot_id)
        known = self._older.get(snapshot_id)
        if known is None or known.engine is not engine or known.live is not live:
            known = Shown(
                engine=engine,
                photos=EncodedPhotos(engine.table),
                facets=current.facets,
                photographers=current.photographers,
                live=live,
                inline=False,
            )
            self._older = {snapshot_id: known}
        return known

    async def watch(
        self,
        poll_s: float,
        *,
        swapped: Callable[[Shown], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Look for a new state for ever.

        Args:
            poll_s: Seconds between looks.
            swapped: Told about each new state.
            failed: Told when one cannot be opened; the old one goes on answering.
        """
        while True:
            await asyncio.sleep(poll_s)
            mark = self._look()
            if mark == self._mark:
                continue
            try:
                if await self._swap():
                    swapped(self._current)
            except (SearchlabError, OSError) as error:
                failed(error)
            self._mark = mark

    async def _swap(self) -> bool:
        before = self._current
        if current_id(self.library.folder) == before.engine.snapshot_id:
            return False
        # One that several new states have overtaken is kept no more, and is answered from as it is.
        with suppress(ExpiredCursorError):
            _, live = await asyncio.to_thread(self.library.kept, before.engine.snapshot_id)
            self._current = replace(before, live=live)
        engine = await asyncio.to_thread(lambda: self.library.engine)
        self._current = await asyncio.to_thread(self._show, engine)
        self.n_swaps += 1
        return True

    def _look(self) -> tuple[int, int]:
        found = os.stat(self.library.folder / "CURRENT")  # noqa: PTH116 - ten times as fast
        return found.st_ino, found.st_mtime_ns

    def _show(self, engine: SearchEngine) -> Shown:
        spent = []
        for text in WARM_TEXTS:
            started = time.perf_counter()
            engine.slice(Query(text=text))
            spent.append(1e3 * (time.perf_counter() - started))
        return Shown(
            engine=engine,
            photos=EncodedPhotos(engine.table),
            facets=FacetLists(engine.table),
            photographers=Photographers(engine.table),
            live=None,
            inline=spent[-1] <= _INLINE_MS,
        )
