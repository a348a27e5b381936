"""Compiled kernels: what must run at the speed of memory.

A module of this package declares the types of its kernels, so that importing it compiles them, or
loads them from the cache beside the source, and no later call ever compiles. Nothing else of
searchlab imports one before it is needed: numba takes about a second.
"""

from __future__ import annotations

import importlib
import pkgutil
import time


def warm() -> float:
    """Compile every kernel, or load it from the cache; before the first request, never inside one.

    Returns:
        Seconds that it took.
    """
    started = time.perf_counter()
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return time.perf_counter() - started
