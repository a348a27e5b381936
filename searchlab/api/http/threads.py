"""Threads: work that the event loop must not wait for, with bounds on what runs and waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from searchlab.api.wire.errors import overloaded

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Threads for one kind of work, so that none of it waits for work of another kind.

    Attributes:
        busy: Pieces of work that are being done or wait for a thread.
    """

    def __init__(self, name: str, count: int, *, waiting: int) -> None:
        """Make room for the work; the threads are started as they are needed.

        Args:
            name: Of the threads.
            count: Pieces of work done at once.
            waiting: Pieces of work that may wait at once.
        """
        self.busy = 0
        self._most = count + waiting
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=f"searchlab-{name}")

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do work in a thread, to its end also where its request was cancelled.

        Raises:
            HttpProblem: Too much waits already (503).
        """
        if self.busy >= self._most:
            raise overloaded()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, partial(work, *args, **kwargs))
        self.busy += 1
        future.add_done_callback(self._done)
        return await asyncio.shield(future)

    def _done(self, future: asyncio.Future[Any]) -> None:
        self.busy -= 1
        if not future.cancelled():
            future.exception()  # seen, also where nobody waits for it any more

    def close(self) -> None:
        """Wait for what is being done; what waits is dropped."""
        self._threads.shutdown(cancel_futures=True)
