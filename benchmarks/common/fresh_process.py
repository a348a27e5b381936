"""Each system is measured in a process of its own, on as many processors as it may use.

A library's threads, memory and crashes then do not touch the others. Whether a system keeps to one
thread does not depend on its settings: the process is bound to one processor, where the operating
system can do that.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil

T = TypeVar("T")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
)
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
        work: A function of a module; it is pickled.
        *arguments: What it is called with; they are pickled.
        threads: Processors that the process may use.
        environment: Environment variables of the process, besides those of this one.
        limit_s: Seconds after which the process is ended, whatever it does; no limit if 0.

    Raises:
        TimeoutError: The function did not return in time.
        RuntimeError: The process died.
    """
    before, started = dict(os.environ), time.monotonic()
    os.environ.update(
        {name: str(threads) for name in _THREAD_VARIABLES} | _QUIET | dict(environment or {})
    )
    try:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            1, context, initializer=_prepare, initargs=(threads, limit_s)
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


def _prepare(threads: int, limit_s: int) -> None:
    bind(threads)
    if limit_s and hasattr(signal, "alarm"):
        # The signal's default ends the process even while a library does not return to Python.
        signal.alarm(limit_s)


def bind(threads: int, *pids: int) -> None:
    """Keep this process, with all its threads, to so many processors, where the system can do that.

    Args:
        threads: Processors.
        *pids: Other processes, each with those that it started.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    # The last ones, as interrupts and other processes prefer the first.
    processors = sorted(os.sched_getaffinity(0))[-threads:]
    for process in (psutil.Process(), *_with_children(pids)):
        for thread in process.threads():
            try:
                os.sched_setaffinity(thread.id, processors)
            except ProcessLookupError:  # it ended meanwhile
                continue


def _with_children(pids: Iterable[int]) -> list[psutil.Process]:
    some = [psutil.Process(pid) for pid in pids]
    return [*some, *(child for one in some for child in one.children(recursive=True))]


@dataclass(frozen=True)
class Usage:
    """Processor time and memory of this process and those that it started.

    Attributes:
        cpu_s: Seconds of processor time used so far.
        resident_mib: Memory now, in MiB.
        own_mib: The same without pages of files, which the system takes back when it needs to.
    """

    cpu_s: float
    resident_mib: float
    own_mib: float

    @classmethod
    def now(cls, *pids: int) -> Usage:
        """Read the figures, after free memory was given back to the system.

        A build that reuses memory which was free before would else seem to take none.

        Args:
            *pids: Processes that count besides this one and its children, each with those that it
                started, also those that ended.
        """
        gc.collect()
        _trim()
        this = psutil.Process()
        others = _with_children(pids)
        processes = [this, *this.children(recursive=True), *others]
        times = [process.cpu_times() for process in processes]
        memory = [process.memory_info() for process in processes]
        resident = sum(info.rss for info in memory)
        mapped = sum(getattr(info, "shared", 0) for info in memory)
        cpu_s = sum(time_used.user + time_used.system for time_used in times)
        ended = [process.cpu_times() for process in others]
        cpu_s += sum(one.children_user + one.children_system for one in ended)
        return cls(cpu_s, resident / 2**20, (resident - mapped) / 2**20)


def _trim() -> None:
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library than GNU's
        return


def size_mib(folder: Path) -> float:
    """Add up the sizes of the files below a folder, in MiB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
