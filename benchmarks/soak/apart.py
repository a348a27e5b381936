"""Work beside a measurement, in a process of its own, so that what is timed never waits for it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

_NICE = 10


@contextmanager
def apart(work: Callable[..., None], *args: Any) -> Iterator[Connection]:
    """Run `work(*args, pipe)` while the block runs, at a priority that gives way to the server.

    Args:
        work: A function of a module; gets the other end of the pipe.
        args: Can be pickled.

    Yields:
        A pipe, at which reading raises `EOFError` once the work has died.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_give_way, args=(work, *args, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def _give_way(work: Callable[..., None], *args: Any) -> None:
    os.nice(_NICE)
    work(*args)
