"""The memory of a server, weighed by a process of its own, so that nobody who asks waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

import psutil

from benchmarks.soak.apart import apart

_EVERY_S = 0.5


def memory_mib(pid: int) -> float:
    """Add up the memory that a process and those that it started have to themselves."""
    root, total = psutil.Process(pid), 0
    for process in (root, *root.children(recursive=True)):
        with suppress(psutil.Error):
            total += process.memory_full_info().uss
    return total / 2**20


@contextmanager
def weighed(pid: int) -> Iterator[list[float]]:
    """Weigh a process and those that it starts while the block runs.

    Yields:
        What they held at most, in MiB; filled when the block ends.
    """
    most: list[float] = []
    with apart(_weigh, pid) as scales:
        yield most
        scales.send("end")
        most.append(scales.recv())


def _weigh(pid: int, asker: Connection) -> None:
    most = 0.0
    while not asker.poll(_EVERY_S):
        most = max(most, memory_mib(pid))
    asker.send(most)
