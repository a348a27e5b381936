"""DecodeSlots: bounds on work with pictures, which are slow to decode, large and untrusted."""

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


def _make_timeout(message: str) -> Exception:
    return invalid(("body", PART), message, "timeout")


class DecodeSlots:
    """Limits how many pictures are worked on at once, how many requests wait, and how long."""

    def __init__(
        self,
        count: int,
        timeout_s: float,
        *,
        wait_s: float = 2.0,
        waiting: int | None = None,
        max_buffered: int = _MAX_BUFFERED,
        late: Callable[[str], Exception] = _make_timeout,
    ) -> None:
        """Start with all slots free.

        Args:
            count: Pictures that are worked on at once.
            timeout_s: Seconds that work on one picture may take.
            wait_s: Seconds that a request waits for a free slot.
            waiting: Requests that may wait at once; eight per slot if left out.
            max_buffered: Bytes of partly read bodies that all requests together may hold.
            late: Makes the exception for work that takes too long; answered 422 if left out.
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
        """Call `work(*args, **kwargs)` in a thread of its own.

        The slot stays taken until the thread is done, even if nobody waits for it any more: a
        decoder cannot be stopped from outside.

        Raises:
            HttpProblem: No slot is free, or there is not enough memory (503).
            Invalid: It takes too long; another exception if `late` makes one.
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
            future.exception()  # read, or asyncio warns where nobody waits for it any more

    @contextmanager
    def buffering(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that counts bytes of a body; it raises a 503 when all hold too many."""
        counted = 0

        def take(n_bytes: int) -> None:
            nonlocal counted
            if self._buffered + n_bytes > self._max_buffered:
                msg = "the server must have room for the body, got too many at once"
                raise overloaded(msg)
            self._buffered += n_bytes
            counted += n_bytes

        try:
            yield take
        finally:
            self._buffered -= counted

    def close(self) -> None:
        """Accept no more work; work that has begun is finished in its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)
