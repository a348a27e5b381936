"""Renditions: the pictures of a library in all sizes, read from disk or made on first request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from searchlab.api.http.decode_slots import DecodeSlots
from searchlab.api.snapshots.live_library import LiveLibrary
from searchlab.api.wire.errors import overloaded
from searchlab.errors import DataError
from searchlab.library.manifests import read_roots
from searchlab.library.renditions import SHOWN, RenditionFiles, RenditionSource
from searchlab.library.roots import Root
from searchlab.photos.photo import Photo

_READERS: Final = 4

T = TypeVar("T")


class Renditions:
    """Finds pictures, and makes missing ones, each once and a few at a time."""

    def __init__(
        self,
        live_library: LiveLibrary,
        *,
        slots: DecodeSlots | None = None,
        show_places: bool = False,
    ) -> None:
        """Serve the pictures of a library.

        Args:
            live_library: The library and the snapshot of it that is served.
            slots: Bounds on making pictures; two at a time and a long queue if left out.
            show_places: Send originals as they are, with place and keywords in them.
        """
        self._show_places = show_places
        self._live_library = live_library
        self._folder = live_library.library.folder
        self._files = RenditionFiles(self._folder)
        self._slots = slots or DecodeSlots(2, timeout_s=30, wait_s=20, waiting=400, late=overloaded)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="media")
        self._making: dict[tuple[str, str], asyncio.Task[bytes]] = {}
        self._roots: tuple[str, tuple[Root, ...]] = ("", ())

    def photo(self, photo_id: str) -> Photo:
        """Find a photo that is still there.

        Raises:
            NotFoundError: There is none of this id.
        """
        snapshot = self._live_library.current
        return snapshot.engine.table.photo(snapshot.row_of(photo_id))

    def variant(self, photo: Photo, size: str) -> str:
        """Return the size to send: `SHOWN` for an original that holds what is its owner's."""
        is_private = photo.latitude is not None or photo.place or photo.tags
        return SHOWN if size == "full" and is_private and not self._show_places else size

    async def open(self, photo: Photo, size: str) -> RenditionSource:
        """Open a picture of a photo; the caller closes it.

        Args:
            photo: A photo of the current snapshot.
            size: One of `URL_SIZES`.

        Raises:
            NotFoundError: The picture is gone, or its file has changed since it was indexed.
            HttpProblem: Too many pictures are being made already (503).
        """
        snapshot_id = self._live_library.current.engine.snapshot_id
        size = self.variant(photo, size)
        if size == "full":
            original = await self._in_thread(lambda: self._original(photo, snapshot_id))
            if original.kind != "HEIF":  # few browsers show it
                return original
            original.close()
            size = SHOWN
        source = await self._in_thread(lambda: self._files.find(photo, size))
        return source or RenditionSource(
            await self._make_once(photo, size, snapshot_id=snapshot_id)
        )

    async def count_bytes(self, photos: Sequence[Photo | None], size: str) -> list[int | None]:
        """Count the bytes of pictures of a size; None for those that were not made yet."""
        count = self._files.count_bytes
        return await self._in_thread(
            lambda: [None if photo is None else count(photo, size) for photo in photos]
        )

    async def read(self, source: RenditionSource, at: int, *, n_bytes: int) -> bytes:
        """Read up to `n_bytes` bytes of a picture from the offset `at` on, off the event loop."""
        if source.at_hand(at):
            return source.read(at, n_bytes)
        return await self._in_thread(lambda: source.read(at, n_bytes))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def _original(self, photo: Photo, snapshot_id: str) -> RenditionSource:
        return self._files.original(photo, self._roots_of(snapshot_id))

    def _roots_of(self, snapshot_id: str) -> tuple[Root, ...]:
        known, roots = self._roots
        if known == snapshot_id:
            return roots
        place = self._folder / "snapshots" / snapshot_id
        try:
            self._roots = (snapshot_id, read_roots(place))
        except DataError:
            if place.exists():
                raise
            return ()  # the snapshot was removed just now
        return self._roots[1]

    async def _make_once(self, photo: Photo, size: str, *, snapshot_id: str) -> bytes:
        key = (photo.sha256, size)
        task = self._making.get(key)
        if task is None:
            task = asyncio.create_task(self._make(photo, size, snapshot_id=snapshot_id))
            self._making[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        # Shielded, so that a cancelled request does not take the picture from the others.
        return await asyncio.shield(task)

    async def _make(self, photo: Photo, size: str, *, snapshot_id: str) -> bytes:
        return await self._slots.run(
            lambda: self._files.make(photo, size, roots=self._roots_of(snapshot_id))
        )

    def _finish(self, key: tuple[str, str], task: asyncio.Task[bytes]) -> None:
        del self._making[key]
        if not task.cancelled():
            task.exception()  # read, or asyncio warns where nobody waits for it any more

    def close(self) -> None:
        """Accept no more work."""
        self._slots.close()
        self._readers.shutdown(wait=False, cancel_futures=True)
