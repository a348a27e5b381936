"""Each system is measured in a process of its own, on as many processors as it may use.

A library's threads, its memory and its crashes then stay its own. That a system keeps to one thread
is not left to its settings: the process is bound to one processor, where the system can do that.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

T = TypeVar("T")
_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS")
_QUIET = {"LANCE_LOG": "error", "RUST_LOG": "error", "ANONYMIZED_TELEMETRY": "False"}


def in_fresh_process(
    work: Callable[..., T],
    *arguments: Any,
    threads: int = 1,
    environment: Mapping[str, str] | None = None,
    limit_s: int = 0,
) -> T:
    """Call a function in a new process and return its answer.

    Args:
        work: A function of a module, and
        *arguments: what it is called with; both are pickled.
        threads: Processors that the process may use.
        environment: Variables that it has from its start, besides those of this process.
        limit_s: Seconds after which it is ended, wherever it is; none if 0.

    Raises:
        TimeoutError: It did not return in time.
        RuntimeError: The process died.
    """
    before, started = dict(os.environ), time.monotonic()
    os.environ.update({name: str(threads) for name in _POOLS} | _QUIET | dict(environment or {}))
    try:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            1, context, initializer=_begin, initargs=(threads, limit_s)
        ) as pool:
            return pool.submit(work, *arguments).result()
    except BrokenProcessPool as error:
        if limit_s and time.monotonic() - started >= limit_s:
            msg = f"not within {limit_s:,} s"
            raise TimeoutError(msg) from None
        msg = f"{work.__name__} must return, got a process that died: {error}"
        raise RuntimeError(msg) from error
    finally:
        os.environ.clear()
        os.environ.update(before)


def _begin(threads: int, limit_s: int) -> None:
    bind(threads)
    if limit_s and hasattr(signal, "alarm"):
        # Its default ends the process even where a library never comes back to Python.
        signal.alarm(limit_s)


def bind(threads: int) -> None:
    """Keep this process to so many processors, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        # The last ones: interrupts and whatever else runs prefer the first.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


@dataclass(frozen=True)
class Usage:
    """What this process and those it started have used so far.

    Attributes:
        cpu_s: Seconds of processor time.
        resident_mib: Memory now.
        own_mib: The same without pages of files, which the system takes back when it needs to.
    """

    cpu_s: float
    resident_mib: float
    own_mib: float

    @classmethod
    def now(cls, *pids: int) -> Usage:
        """Read it, after what is free was given back: else a build would seem to take nothing.

        Args:
            *pids: Processes that count besides this one and its children.
        """
        gc.collect()
        _trim()
        me = psutil.Process()
        family = [me, *me.children(recursive=True), *map(psutil.Process, pids)]
        times = [process.cpu_times() for process in family]
        memory = [process.memory_info() for process in family]
        resident, mapped = (sum(getattr(one, of, 0) for one in memory) for of in ("rss", "shared"))
        cpu_s = sum(spent.user + spent.system for spent in times)
        return cls(cpu_s, resident / 2**20, (resident - mapped) / 2**20)


def _trim() -> None:
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library than GNU's
        return


def size_mib(folder: Path) -> float:
    """Add up the files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
