"""Threads: runs work off the event loop, with bounds on how much runs and waits."""

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
    """Threads for one kind of work, which never waits for work of another kind.

    Attributes:
        busy: Number of calls that are running or waiting for a thread.
    """

    def __init__(self, name: str, count: int, *, waiting: int) -> None:
        """Prepare the pool; its threads are started when they are needed.

        Args:
            name: Name of the threads.
            count: Most calls that run at once.
            waiting: Most calls that wait at once.
        """
        self.busy = 0
        self._most = count + waiting
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=f"searchlab-{name}")

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work(*args, **kwargs)` in a thread, to its end even if the request is cancelled.

        Raises:
            HttpProblem: Too many calls are waiting already (503).
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
            future.exception()  # read, or asyncio warns where nobody waits for it any more

    def close(self) -> None:
        """Wait for the calls that are running; those that wait are dropped."""
        self._threads.shutdown(cancel_futures=True)
