"""How kernels are compiled: for declared types, without the interpreter's lock, into a cache.

Processes that start together, such as workers of a server, wait for the one that compiles, and find
what it made in the cache.

The cache notices changes in a kernel's own file alone. After a change to a part in another file, an
`inner` function or an intrinsic, remove the `__pycache__` folders of this package: otherwise the
old code runs.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import types

_LOG = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

I64 = types.int64
F32 = types.float32
F64 = types.float64


def reads(dtype: Any, ndim: int = 1) -> Any:
    """Return the type of a contiguous array that a kernel only reads, such as a mapped file."""
    return types.Array(dtype, ndim, "C", readonly=True)


def writes(dtype: Any, ndim: int = 1) -> Any:
    """Return the type of a contiguous array that a kernel writes to."""
    return types.Array(dtype, ndim, "C")


def kernel(*arguments: Any, fastmath: bool = False) -> Callable[[F], F]:
    """Compile a function for these types of arguments when its module is imported."""
    return _compile(arguments, fastmath=fastmath, cache=True)


def inner(function: F) -> F:
    """Compile a function as a part of the kernels that call it."""
    return _compile(None)(function)


def _compile(signature: tuple[Any, ...] | None, **settings: Any) -> Callable[[F], F]:
    def compile_function(function: F) -> F:
        # Division by zero gives an infinity as in numpy, without a check in every loop.
        def compiled(**more: Any) -> F:
            options = {"nogil": True, "error_model": "numpy", **settings, **more}
            return numba.njit(signature, **options)(function)  # type: ignore[no-any-return]

        try:
            if not settings.get("cache"):
                return compiled()
            with _one_at_a_time(function.__code__.co_filename):
                return compiled()
        except Exception as error:  # any: no place for the cache, a full disk, a damaged file
            if not settings.get("cache"):
                raise
            _LOG.warning(
                "%s is compiled at every start, which takes seconds: its cache cannot be used "
                "(%s: %s); set NUMBA_CACHE_DIR to a folder that can be written",
                *(function.__qualname__, type(error).__name__, error),
            )
            return compiled(cache=False)

    return compile_function


@contextmanager
def _one_at_a_time(path: str) -> Iterator[None]:
    """Hold a file of kernels against other processes that compile them, where it can be locked."""
    with ExitStack() as stack:
        with suppress(OSError):  # no file, or on a share that locks only what is open for writing
            file = stack.enter_context(Path(path).open("rb"))
            fcntl.flock(file, fcntl.LOCK_EX)
            # Not by closing alone: a process that was forked meanwhile has the file open too.
            stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
        yield
