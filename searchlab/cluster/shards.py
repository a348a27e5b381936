"""Shards: contiguous ranges of a library's photos, each answered for in one place.

Photos are sorted by `photo_id`, so a row of the library is the first row of its shard and its row
there, and ties that are broken by row are broken alike.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from searchlab.errors import InputError
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.indexes import VectorIndex


@dataclass(frozen=True, eq=False)
class Part:
    """What a shard answers with.

    Attributes:
        index: Vectors of its photos; rows count from its first one.
        problem: What is wrong where it lies, though it answers; empty if nothing is.
        kept: Folder of the index, which others delete if nobody uses it; None if it has none.
    """

    index: VectorIndex
    problem: str = ""
    kept: Path | None = None

    def tell(self) -> dict[str, Any]:
        """Say how large the index is, and whether it wants texts to learn from."""
        return {"size_bytes": self.index.size_bytes, "wants_texts": self.index.wants_texts}

    def answer(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Call a method by its name, such as `index.search`."""
        return attrgetter(method)(self)(**arguments)


class Shards(ABC):
    """The shards of a library, and how they are asked.

    Attributes:
        ranges: Rows of the library that each shard has, one range after the other; may be empty.
        dim: Numbers of a vector.
    """

    ranges: Sequence[range]
    dim: int

    @abstractmethod
    def ask(self, method: str, asked: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """Ask some shards at once, and wait for all of them.

        Args:
            method: A method of `Part`, such as `index.search`.
            asked: Number of a shard -> arguments of the method there.

        Returns:
            Number of a shard -> its answer, for every shard that was asked.

        Raises:
            UnavailableError: A shard does not answer.
        """

    def __len__(self) -> int:
        return len(self.ranges)

    @property
    def n_photos(self) -> int:
        """Photos of all shards."""
        return self.ranges[-1].stop if self.ranges else 0

    def cut(self, allowed: Bitmap | None) -> Iterator[tuple[int, range, Bitmap | None, int]]:
        """Cut what may be found into the ranges of the shards that have some of it.

        Yields:
            Number of a shard, its range, its part of the bits (None where all its rows may be
            found), and how many rows may be found there.
        """
        for number, rows in enumerate(self.ranges):
            part = None if allowed is None else allowed.cut(rows.start, rows.stop)
            count = len(rows) if part is None else part.count
            if count:
                yield number, rows, None if count == len(rows) else part, count


class LocalShards(Shards):
    """Shards in this process, asked one after the other."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Take the parts, in the order of their photos.

        Raises:
            InputError: There is none.
        """
        if not parts:
            msg = "a library must have a shard at least, got none"
            raise InputError(msg)
        self._parts = list(parts)
        ends = np.cumsum([len(part.index) for part in parts]).tolist()
        self.ranges = [
            range(end - len(part.index), end) for end, part in zip(ends, parts, strict=True)
        ]
        self.dim = parts[0].index.dim

    def ask(self, method: str, asked: Mapping[int, Mapping[str, Any]]) -> dict[int, Any]:
        """Ask some shards; see `Shards.ask`."""
        return {
            number: self._parts[number].answer(method, arguments)
            for number, arguments in asked.items()
        }


def cut_evenly(n_photos: int, n_shards: int) -> list[range]:
    """Cut rows into ranges that differ by one row at most.

    Raises:
        InputError: `n_shards` is below 1.
    """
    if n_shards < 1:
        msg = f"n_shards must be at least 1, got {n_shards}"
        raise InputError(msg)
    ends = [n_photos * number // n_shards for number in range(n_shards + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(ends)]
