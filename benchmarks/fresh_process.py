"""Each system is measured in a process of its own, on as many processors as it may use.

A library's threads, its memory and its crashes then stay its own. That a system keeps to one thread
is not left to its settings: the process is bound to one processor, where the system can do that.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

T = TypeVar("T")
_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS")
_QUIET = {"LANCE_LOG": "error", "RUST_LOG": "error", "ANONYMIZED_TELEMETRY": "False"}


def in_fresh_process(work: Callable[..., T], *arguments: Any, threads: int = 1) -> T:
    """Call a function in a new process and return its answer.

    Args:
        work: A function of a module, and
        *arguments: what it is called with; both are pickled.
        threads: Processors that the process may use.

    Raises:
        RuntimeError: The process died.
    """
    before = dict(os.environ)
    os.environ.update({name: str(threads) for name in _POOLS} | _QUIET)
    try:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, context, initializer=_bind, initargs=(threads,)) as pool:
            return pool.submit(work, *arguments).result()
    except BrokenProcessPool as error:
        msg = f"{work.__name__} must return, got a process that died: {error}"
        raise RuntimeError(msg) from error
    finally:
        os.environ.clear()
        os.environ.update(before)


def _bind(threads: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        # The last ones: interrupts and whatever else runs prefer the first.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


@dataclass(frozen=True)
class Usage:
    """What this process and those it started have used so far.

    Attributes:
        cpu_s: Seconds of processor time.
        resident_mib: Memory now.
    """

    cpu_s: float
    resident_mib: float

    @classmethod
    def now(cls) -> Usage:
        """Read it, after what is free was given back: else a build would seem to take nothing."""
        gc.collect()
        _trim()
        me = psutil.Process()
        family = [me, *me.children(recursive=True)]
        times = [process.cpu_times() for process in family]
        resident = sum(process.memory_info().rss for process in family)
        return cls(sum(time.user + time.system for time in times), resident / 2**20)


def _trim() -> None:
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library than GNU's
        return


def size_mib(folder: Path) -> float:
    """Add up the files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
