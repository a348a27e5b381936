"""Settling: a thread tells those who wait on event loops how it went, one call for each loop."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from searchlab.errors import SearchlabError

Outcome = int | Exception


def copied(error: Exception) -> Exception:
    """Copy an error for one more waiter: raised in many tasks, one would gather all tracebacks."""
    if not isinstance(error, SearchlabError):
        return error
    copy = type(error)(str(error))
    copy.__cause__ = error
    return copy


def settle(
    answers: Iterable[tuple[asyncio.AbstractEventLoop, asyncio.Future[int], Outcome]],
) -> None:
    """Give each future of each loop its outcome, from another thread."""
    by_loop = defaultdict(list)
    for loop, future, outcome in answers:
        by_loop[loop].append((future, outcome))
    for loop, settled in by_loop.items():
        with suppress(RuntimeError):  # the loop has been closed; nobody waits any more
            loop.call_soon_threadsafe(_tell, settled)


def _tell(settled: list[tuple[asyncio.Future[int], Outcome]]) -> None:
    for future, outcome in settled:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
