"""FairQueue: gives out places so that each owner gets the same time, however much it asks for.

Start-time fair queueing: each owner has a queue of its own and an account of the time its turns
took, divided by its share. A free place goes to the waiting owner with the least time. Who comes
back after a pause has no credit from it.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from searchlab.api.wire.errors import overloaded

# Charged when a turn begins, so that one owner's next turn does not come before others' first.
_ADVANCE_S = 0.05
_MOST_KNOWN = 10_000


@dataclass(eq=False, slots=True)
class Turn:
    """A wish for a place, and then the place.

    Attributes:
        owner: Who it is for.
        share: How much more time than others the owner gets.
        is_large: Whether it may take long; not all places go to such turns.
        started: `time.monotonic()` when it got its place.
        granted: Done once it has its place.
    """

    owner: Hashable = ""
    share: float = 1.0
    is_large: bool = False
    started: float = 0.0
    granted: asyncio.Future[None] = field(default_factory=lambda: _new_future())


def _new_future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


class FairQueue:
    """Places for turns, and those who wait for one. Not thread-safe."""

    def __init__(self, count: int, *, waiting: int, wait_s: float) -> None:
        """Start with all places free.

        Args:
            count: Places; one of them is never taken by a large turn, unless it is the only one.
            waiting: Turns of one owner that may wait.
            wait_s: Seconds that a turn waits for a place.
        """
        self._count = self._free = count
        self._free_large = max(1, count - 1)
        self._most_waiting = waiting
        self._wait_s = wait_s
        self._queues: dict[Hashable, deque[Turn]] = {}
        self._spent: defaultdict[Hashable, float] = defaultdict(float)
        self._now = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nobody has a place or waits for one."""
        return self._free == self._count and not self._queues

    async def take(self, turn: Turn) -> None:
        """Wait until a turn has its place; `give_back` must follow.

        Raises:
            HttpProblem: Too many turns of its owner wait, or it waits too long (503).
        """
        queue = self._queues.get(turn.owner)
        if queue is not None and len(queue) >= self._most_waiting:
            msg = "the server must have a free place for a picture, got too many that wait"
            raise overloaded(msg)
        if queue is None:
            queue = self._queues[turn.owner] = deque()
            self._enter(turn.owner)
        queue.append(turn)
        self._fill_places()
        if turn.granted.done():
            return
        try:
            async with asyncio.timeout(self._wait_s):
                await turn.granted
        except TimeoutError:
            self._drop(turn)
            msg = f"a place for a picture must get free within {self._wait_s:g} s, got none"
            raise overloaded(msg) from None
        except asyncio.CancelledError:
            self._drop(turn)
            raise

    def give_back(self, turn: Turn) -> None:
        """Free the place of a turn, and charge its owner for the time it took."""
        self._spent[turn.owner] += self._cost(turn, time.monotonic() - turn.started - _ADVANCE_S)
        self._free += 1
        self._free_large += turn.is_large
        self._fill_places()

    @staticmethod
    def _cost(turn: Turn, seconds: float) -> float:
        return seconds / turn.share

    def _enter(self, owner: Hashable) -> None:
        if len(self._spent) >= _MOST_KNOWN:  # those with less are as if they were new
            later = {one: spent for one, spent in self._spent.items() if spent > self._now}
            self._spent = defaultdict(float, later)
        self._spent[owner] = max(self._spent[owner], self._now)

    def _drop(self, turn: Turn) -> None:
        if turn.granted.done() and not turn.granted.cancelled():  # in the same moment
            self.give_back(turn)
            return
        queue = self._queues[turn.owner]
        queue.remove(turn)
        if not queue:
            del self._queues[turn.owner]

    def _fill_places(self) -> None:
        while self._free and (turn := self._next()) is not None:
            queue = self._queues[turn.owner]
            queue.remove(turn)
            if not queue:
                del self._queues[turn.owner]
            self._free -= 1
            self._free_large -= turn.is_large
            self._now = max(self._now, self._spent[turn.owner])
            self._spent[turn.owner] += self._cost(turn, _ADVANCE_S)
            turn.started = time.monotonic()
            turn.granted.set_result(None)

    def _next(self) -> Turn | None:
        """Return the first turn of the owner with the least time, large ones if there is room."""
        first = [
            turn
            for queue in self._queues.values()
            if (turn := next(filter(self._fits, queue), None)) is not None
        ]
        return min(first, key=lambda turn: self._spent[turn.owner], default=None)

    def _fits(self, turn: Turn) -> bool:
        # Who gave up in this moment is cancelled already, and leaves the queue in the next one.
        return not turn.granted.done() and (not turn.is_large or self._free_large > 0)
