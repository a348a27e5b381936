"""Lazy: a value that is made on its first use, once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that takes long to make and is rarely needed.

    Thread-safe: one thread makes it, the others wait.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._made: list[T] = []
        self._making = threading.Lock()

    @property
    def is_made(self) -> bool:
        """Whether `get` returns at once."""
        return bool(self._made)

    def get(self) -> T:
        """Return the value, after making it at the first call; passes on what making it raises."""
        if not self._made:
            with self._making:
                if self._make is not None:
                    self._made.append(self._make())
                    self._make = None  # frees what the function holds
        return self._made[0]
