"""DecodeSlots: places for work on pictures, which is slow, large and not to be trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from searchlab.api.http.multiparts import PART
from searchlab.api.wire.errors import invalid, overloaded

_MAX_BUFFERED = 256 * 2**20
_WAITING_PER_SLOT = 8

P = ParamSpec("P")
T = TypeVar("T")


def _late(message: str) -> Exception:
    return invalid(("body", PART), message, "timeout")


class DecodeSlots:
    """Places for work on pictures: so many at once, so many waiting, for so long."""

    def __init__(
        self,
        count: int,
        timeout_s: float,
        *,
        wait_s: float = 2.0,
        waiting: int | None = None,
        max_buffered: int = _MAX_BUFFERED,
        late: Callable[[str], Exception] = _late,
    ) -> None:
        """Make the places.

        Args:
            count: Pictures that are worked on at once.
            timeout_s: Seconds that one may take.
            wait_s: Seconds that a request waits for a place.
            waiting: Requests that may wait at once; eight a place if left out.
            max_buffered: Bytes of bodies that may be half read at once, of all requests together.
            late: Makes what is raised when work takes too long; 422 if left out.
        """
        self._late = late
        self._timeout_s = timeout_s
        self._wait_s = wait_s
        self._most_waiting = _WAITING_PER_SLOT * count if waiting is None else waiting
        self._max_buffered = max_buffered
        self._waiting = 0
        self._buffered = 0
        self._free = asyncio.Semaphore(count)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="pictures")

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do work in a thread of its own.

        A place stays taken until the thread is done, even where nobody waits for it any more: a
        decoder cannot be stopped from outside.

        Raises:
            HttpProblem: No place is free, or there is not enough memory (503).
            Invalid: It takes too long, or what `late` makes of that.
        """
        await self._take()
        try:
            call = partial(work, *args, **kwargs)
            future = asyncio.get_running_loop().run_in_executor(self._threads, call)
        except BaseException:
            self._free.release()
            raise
        future.add_done_callback(self._give_back)
        done, _ = await asyncio.wait({future}, timeout=self._timeout_s)
        if not done:
            msg = f"a picture must be read within {self._timeout_s:g} s, got one that takes longer"
            raise self._late(msg)
        try:
            return future.result()
        except MemoryError:
            msg = "the server must have the memory that the picture needs, got less; send a smaller"
            raise overloaded(msg) from None

    async def _take(self) -> None:
        if self._free.locked() and self._waiting >= self._most_waiting:
            msg = "the server must have a free place for a picture, got too many that wait"
            raise overloaded(msg)
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            msg = f"a place for a picture must get free within {self._wait_s:g} s, got none"
            raise overloaded(msg) from None
        finally:
            self._waiting -= 1

    def _give_back(self, future: asyncio.Future[Any]) -> None:
        self._free.release()
        if not future.cancelled():
            future.exception()  # seen, also where nobody waits for it any more

    @contextmanager
    def buffering(self) -> Iterator[Callable[[int], None]]:
        """Count the bytes of a body while it is read; the function given raises 503 beyond."""
        mine = 0

        def take(n_bytes: int) -> None:
            nonlocal mine
            if self._buffered + n_bytes > self._max_buffered:
                msg = "the server must have room for the body, got too many at once"
                raise overloaded(msg)
            self._buffered += n_bytes
            mine += n_bytes

        try:
            yield take
        finally:
            self._buffered -= mine

    def close(self) -> None:
        """Take on no more work; what is being done is finished in its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)
