"""DecodeSlots: bounds on work with pictures, which are slow to decode, large and untrusted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from searchlab.api.http.decoders import TooBusyError, TooSlowError
from searchlab.api.http.fair_queue import FairQueue, Turn
from searchlab.api.http.fair_share import FairShare
from searchlab.api.http.multiparts import PART
from searchlab.api.wire.errors import invalid, overloaded
from searchlab.photos.images.memory import give_memory_back

_MAX_BUFFERED = 256 * 2**20
_WAITING_PER_SLOT = 8
_TRIM_AFTER_S = 5.0  # without work

P = ParamSpec("P")
T = TypeVar("T")


def _make_timeout(message: str) -> Exception:
    return invalid(("body", PART), message, "timeout")


class DecodeSlots:
    """Limits how many pictures are worked on at once, how many requests wait, and how long.

    Attributes:
        bodies: Bytes of bodies, from their arrival until they are worked on, by account.
    """

    def __init__(
        self,
        count: int,
        timeout_s: float,
        *,
        wait_s: float = 10.0,
        waiting: int | None = None,
        max_buffered: int = _MAX_BUFFERED,
        late: Callable[[str], Exception] = _make_timeout,
    ) -> None:
        """Start with all slots free.

        Args:
            count: Pictures that are worked on at once.
            timeout_s: Seconds within which work on a picture ends or says that it takes too long.
            wait_s: Seconds that a request waits for a free slot.
            waiting: Requests of one account that may wait at once; eight per slot if left out.
            max_buffered: Bytes of bodies that all requests together may hold.
            late: Makes the exception for a picture that takes too long; 422 if left out.
        """
        self.bodies = FairShare(max_buffered, "room for the body")
        self._late = late
        self._timeout_s = timeout_s
        most = _WAITING_PER_SLOT * count if waiting is None else waiting
        self._queue = FairQueue(count, waiting=most, wait_s=wait_s)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="pictures")
        self._trim: asyncio.TimerHandle | None = None
        self._closed = False

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work(*args, **kwargs)` in a thread of its own, in nobody's name; see `run_turn`."""
        return await self.run_turn(Turn(), work, *args, **kwargs)

    async def run_turn(
        self, turn: Turn, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `work(*args, **kwargs)` in a thread of its own, when it is its owner's turn.

        The slot stays taken until the thread is done, even if nobody waits for it any more, and its
        owner is charged for that time, however it ends.

        Raises:
            HttpProblem: No slot is free, or there is not enough memory or time of the CPU (503).
            Invalid: The picture takes too long; another exception if `late` makes one.
        """
        await self._queue.take(turn)
        try:
            call = partial(work, *args, **kwargs)
            future = asyncio.get_running_loop().run_in_executor(self._threads, call)
        except BaseException:
            self._queue.give_back(turn)
            raise
        future.add_done_callback(partial(self._give_back, turn))
        # A picture that is slow stops itself in time; what goes on is kept waiting by others.
        done, _ = await asyncio.wait({future}, timeout=1.05 * self._timeout_s)
        try:
            if not done:
                raise TooBusyError
            return future.result()
        except TooSlowError:
            msg = f"a picture must be read within {self._timeout_s:g} s, got one that takes longer"
            raise self._late(msg) from None
        except TooBusyError:
            raise overloaded() from None
        except MemoryError:
            msg = "the server must have the memory that the picture needs, got less; send a smaller"
            raise overloaded(msg) from None

    def _give_back(self, turn: Turn, future: asyncio.Future[Any]) -> None:
        self._queue.give_back(turn)
        if self._trim is not None:
            self._trim.cancel()
        if self._queue.is_idle and not self._closed:
            loop = asyncio.get_running_loop()
            self._trim = loop.call_later(_TRIM_AFTER_S, self._give_memory_back)
        if not future.cancelled():
            future.exception()  # read, or asyncio warns where nobody waits for it any more

    def _give_memory_back(self) -> None:
        """Return to the system what bodies and pictures took, once no more of them come."""
        if self._queue.is_idle and not self._closed:
            self._threads.submit(give_memory_back)

    def close(self) -> None:
        """Accept no more work; work that has begun is finished in its thread."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
