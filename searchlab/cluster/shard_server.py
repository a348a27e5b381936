"""What an actor runs: it maps one range of a library's snapshots, and answers for it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from searchlab.cluster.shard_files import Place, open_part
from searchlab.cluster.shards import Part
from searchlab.errors import SearchlabError, UnavailableError
from searchlab.library.retention import KEPT


class ShardServer:
    """Answers for one range of a library.

    Several snapshots may be open, those asked for last: cursors go on while a new one is in force.
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
        self._opening, self._looking = threading.Lock(), threading.Lock()
        self._attending: dict[str, float] = {}
        self._gone: set[str] = set()
        self._left = threading.Event()
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
        return self._part(place).index.dim

    def answer(self, place: Place, method: str, arguments: Mapping[str, Any]) -> Any:
        """Answer from a part; see `Part.answer`.

        Raises:
            UnavailableError: The part cannot be opened here; another replica may have it.
        """
        try:
            part = self._part(place)
        except (SearchlabError, OSError) as error:
            msg = f"a replica must open its part of {place.snapshot_id}, got: {error}"
            raise UnavailableError(msg) from error
        return part.answer(method, arguments)

    def attend(self, who: str) -> list[str]:
        """Note that a process needs this one; returns what is wrong here, though it answers."""
        if who not in self._gone:  # a call that was overtaken by its caller's leaving
            self._attending[who] = time.monotonic()
        with self._looking:
            return [part.problem for part in self._parts.values() if part.problem]

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

    def _part(self, place: Place) -> Part:
        part = self._look_up(place)
        if part is not None:
            return part
        # Questions about open parts go on meanwhile.
        with self._opening:
            part = self._look_up(place)
            if part is None:
                part = open_part(self._folder, place)
                with self._looking:
                    self._parts[place] = part
                    while len(self._parts) > KEPT:
                        self._parts.popitem(last=False)
            return part

    def _look_up(self, place: Place) -> Part | None:
        with self._looking:
            part = self._parts.get(place)
            if part is not None:
                self._parts.move_to_end(place)
            return part


def _end_this_actor() -> None:
    import ray

    # Ending the process would be a death, after which Ray starts it again.
    ray.kill(ray.get_runtime_context().current_actor, no_restart=True)
