"""What an actor runs: it maps one range of a library's snapshots, and answers for it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from searchlab.cluster.shard_files import Place, note_use, open_part
from searchlab.cluster.shards import Part
from searchlab.errors import SearchlabError, UnavailableError
from searchlab.library.retention import KEPT

_OPENING_S = 1.0
"""Seconds that a part may take to open while questions about it wait."""
_NOTED_S = 3600.0
"""Seconds after which it is noted again that the indexes of open parts are in use."""


class ShardServer:
    """Answers for one range of a library.

    Several snapshots may be open, those asked for last: cursors go on while a new one is in force.
    Parts are opened one after the other, beside the answers about others; whoever asks about one
    that takes long is refused, so that no question holds a place that others need.
    An actor that belongs to nobody ends itself, once nobody attends to it any more.
    """

    def __init__(
        self, folder: str, patience_s: float | None = None, end: Callable[[], None] | None = None
    ) -> None:
        """Open nothing yet.

        Args:
            folder: The library as this node sees it.
            patience_s: Seconds without anybody attending after which it ends; never if None.
            end: Ends this process for good; kills this actor if not given.
        """
        self._folder = Path(folder)
        self._parts: OrderedDict[Place, Part] = OrderedDict()
        self._openings: dict[Place, tuple[Future[Part], float]] = {}  # and when each was asked for
        self._opener = ThreadPoolExecutor(max_workers=1, thread_name_prefix="opening")
        self._looking = threading.Lock()
        self._attending: dict[str, float] = {}
        self._gone: set[str] = set()
        self._left = threading.Event()
        self._noted = time.monotonic()  # opening a part notes it
        if patience_s is not None:
            watch = threading.Thread(
                target=self._watch, args=(patience_s, end or _end_this_actor), daemon=True
            )
            watch.start()

    def open(self, place: Place) -> int:
        """Open a part before anybody asks; returns the numbers of a vector.

        Raises:
            MismatchError: The snapshot here is another one, or there is none.
            DataError: It is damaged.
        """
        return self._part(place, float("inf")).index.dim

    def answer(self, place: Place, method: str, arguments: Mapping[str, Any]) -> Any:
        """Answer from a part; see `Part.answer`.

        Raises:
            UnavailableError: The part cannot be opened here, or not yet; another replica may have
                it.
        """
        try:
            part = self._part(place, _OPENING_S)
        except (SearchlabError, OSError) as error:
            msg = f"a replica must open its part of {place.snapshot_id}, got: {error}"
            raise UnavailableError(msg) from error
        return part.answer(method, arguments)

    def attend(self, who: str) -> list[str]:
        """Note that a process needs this one; returns what is wrong here, though it answers."""
        if who not in self._gone:  # a call that was overtaken by its caller's leaving
            self._attending[who] = time.monotonic()
        with self._looking:
            parts = list(self._parts.values())
        problems = [part.problem for part in parts if part.problem]
        if time.monotonic() - self._noted > _NOTED_S:
            self._noted = time.monotonic()
            for kept in filter(None, (part.kept for part in parts)):
                try:
                    note_use(kept)
                except OSError as error:
                    problems.append(f"use of the index in {kept} must be noted, got: {error}")
        return problems

    def leave(self, who: str) -> None:
        """Note that a process needs this one no more; the last one ends it."""
        self._gone.add(who)
        self._attending.pop(who, None)
        if not self._attending:
            self._left.set()

    def _watch(self, patience_s: float, end: Callable[[], None]) -> None:
        started = time.monotonic()
        while not self._left.wait(patience_s / 8):
            seen = max([started, *self._attending.values()])
            if time.monotonic() - seen > patience_s:
                break
        end()

    def _part(self, place: Place, timeout_s: float) -> Part:
        with self._looking:
            part = self._parts.get(place)
            if part is not None:
                self._parts.move_to_end(place)
                return part
            if place not in self._openings:
                opening = self._opener.submit(self._open, place)
                self._openings[place] = opening, time.monotonic()
            opening, since = self._openings[place]
        left = min(since + timeout_s - time.monotonic(), threading.TIMEOUT_MAX)
        if not wait([opening], timeout=max(0.0, left)).done:
            msg = f"it is opened for {time.monotonic() - since:.0f} s already; ask again later"
            raise UnavailableError(msg)
        return opening.result()

    def _open(self, place: Place) -> Part:
        try:
            part = open_part(self._folder, place)
            with self._looking:
                self._parts[place] = part
                while len(self._parts) > KEPT:
                    self._parts.popitem(last=False)
            return part
        finally:
            with self._looking:
                del self._openings[place]


def _end_this_actor() -> None:
    import ray

    # Ending the process would be a death, after which Ray starts it again.
    ray.kill(ray.get_runtime_context().current_actor, no_restart=True)
