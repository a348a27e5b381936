"""Columns on disk: named arrays in one file, opened by memory map and read where they are used.

    8 bytes      SLCOLS01
    8 bytes      length of the header, little-endian
    header       JSON: name -> {"dtype", "length", "offset"}, offsets from the start of the file
    arrays       each at a multiple of 64 bytes

A column of texts is two arrays, as in Arrow: UTF-8 bytes end to end, and where each text starts.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, InputError, damaged_file, quote, rebuild_remedy

_MAGIC = b"SLCOLS01"
_ALIGNED = 64
_AT_ONCE = 4_096  # texts that are copied together
_NEAR = 2048  # bytes a text that are read beside it sooner than by a system call of its own
_DTYPES = ("|u1", "<u4", "<u8", "<i4", "<i8", "<f4")


class _File:
    """An open file that is read directly, not through its memory map."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            os.close(self.handle)


class _Stored(NamedTuple):
    """Where an array of bytes begins in a file."""

    file: _File
    offset: int

    def read(self, start: int, end: int) -> bytes:
        return os.pread(self.file.handle, end - start, self.offset + start)


@dataclass(frozen=True)
class Texts:
    """Texts end to end, read one at a time.

    Attributes:
        starts: (n + 1,) int64, where each text starts in `data`, and where the last one ends.
        data: (n_bytes,) uint8, UTF-8.
        stored: Where the data lie in a file; None for texts in memory. A single text is read from
            the file: through a memory map, each text would load up to 2 MiB around it.
    """

    starts: NDArray[np.int64]
    data: NDArray[np.uint8]
    stored: _Stored | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, place: int) -> str:
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        return self._between(self.starts.item(place), self.starts.item(place + 1))

    def _between(self, start: int, end: int) -> str:
        return _decode(self._read(start, end))

    def _read(self, start: int, end: int) -> bytes:
        if not 0 <= start <= end <= len(self.data):
            got = f"{start} to {end}; {rebuild_remedy()}"
            msg = f"a text must lie in {len(self.data):,} bytes, got {got}"
            raise DataError(msg)
        if self.stored is not None:
            return self.stored.read(start, end)
        return self.data[start:end].tobytes()

    def at(self, places: NDArray[np.integer[Any]]) -> list[str]:
        """Return the texts at some places, faster than one by one.

        Args:
            places: (n,) integers from 0 on.

        Raises:
            IndexError: A place is out of range.
        """
        if not len(places):
            return []
        if not 0 <= places.min() <= places.max() < len(self):
            msg = f"places must be from 0 to {len(self) - 1}, got {places.min()} to {places.max()}"
            raise IndexError(msg)
        starts, ends = self.starts[places], self.starts[places + 1]
        first, last = int(starts.min()), int(ends.max())
        are_near = last - first <= _NEAR * len(places) and bool((starts <= ends).all())
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        if not are_near:
            # Each text costs a system call; many columns have none for most photos.
            return [self._between(start, end) if start != end else "" for start, end in pairs]
        block = self._read(first, last)
        if block.isascii():  # a character is a byte
            characters = block.decode()
            return [characters[start - first : end - first] for start, end in pairs]
        return [_decode(block[start - first : end - first]) for start, end in pairs]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _AT_ONCE):
            ends = self.starts[first : first + _AT_ONCE + 1]
            self._check_order(ends)
            ends = ends.tolist()
            base, block = ends[0], self.data[ends[0] : ends[-1]].tobytes()
            if block.isascii():  # a character is a byte
                characters = block.decode()
                yield from (characters[a - base : b - base] for a, b in itertools.pairwise(ends))
                continue
            for start, end in itertools.pairwise(ends):
                yield _decode(block[start - base : end - base])

    def _check_order(self, starts: NDArray[np.int64]) -> None:
        if starts[0] < 0 or starts[-1] > len(self.data) or (np.diff(starts) < 0).any():
            remedy = rebuild_remedy()
            msg = f"texts must lie in order in {len(self.data):,} bytes, got others; {remedy}"
            raise DataError(msg)


def _decode(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        msg = f"a stored text must be UTF-8, got {quote(text)}; {rebuild_remedy()}"
        raise DataError(msg) from error


def pack_texts(texts: Iterable[str]) -> Texts:
    """Lay texts end to end.

    Raises:
        InputError: A text with a lone surrogate, which no file can hold.
    """
    try:
        encoded = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        msg = f"a text must be Unicode without lone surrogates, got {quote(error.object)}"
        raise InputError(msg) from error
    starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in encoded], out=starts[1:])
    return Texts(starts, np.frombuffer(b"".join(encoded), dtype=np.uint8))


def join_texts(parts: list[Texts]) -> Texts:
    """Lay columns of texts end to end."""
    starts, end = [np.zeros(1, dtype=np.int64)], 0
    for part in parts:
        starts.append(part.starts[1:] + end)
        end += int(part.starts[-1])
    data = [part.data for part in parts] or [np.zeros(0, dtype=np.uint8)]
    return Texts(np.concatenate(starts), np.concatenate(data))


def save_columns(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one-dimensional arrays to a new file.

    Their dtypes may be uint8, uint32, uint64, int32, int64 and float32.

    Raises:
        InputError: An array of another kind.
    """
    header: dict[str, dict[str, Any]] = {
        name: {"dtype": array.dtype.newbyteorder("<").str, "length": len(array), "offset": 0}
        for name, array in arrays.items()
    }
    for name, array in arrays.items():
        if array.ndim != 1 or header[name]["dtype"] not in _DTYPES:
            description = f"{array.dtype} {array.shape}"
            msg = f"column {name!r} must have one dimension and one of {_DTYPES}, got {description}"
            raise InputError(msg)
    # The offsets are digits in the header, so there must be room for the longest ones.
    offset = _round_up(len(_MAGIC) + 8 + len(json.dumps(header)) + 20 * len(header))
    first = offset
    for name, array in arrays.items():
        header[name]["offset"] = offset
        offset = _round_up(offset + array.nbytes)
    text = json.dumps(header).encode().ljust(first - len(_MAGIC) - 8)
    with path.open("wb") as file:
        file.write(_MAGIC + len(text).to_bytes(8, "little") + text)
        for name, array in arrays.items():
            file.write(b"\0" * (header[name]["offset"] - file.tell()))
            np.ascontiguousarray(array, dtype=header[name]["dtype"]).tofile(file)
        file.write(b"\0" * (offset - file.tell()))


class Columns(dict[str, NDArray[Any]]):
    """The arrays of a file by name, mapped."""

    def __init__(self, file: _File, header: Mapping[str, Mapping[str, Any]]) -> None:
        with os.fdopen(os.dup(file.handle), "rb") as opened:
            whole = np.asarray(np.memmap(opened, dtype=np.uint8, mode="r"))
        super().__init__({name: _array(whole, **where) for name, where in header.items()})
        self._file = file
        self._offsets = {name: int(where["offset"]) for name, where in header.items()}

    def texts(self, name: str) -> Texts:
        """Return the column of texts that `NAME.starts` and `NAME.data` make.

        Raises:
            KeyError: There is no such column.
            DataError: The two arrays do not fit each other.
        """
        starts, data = self[f"{name}.starts"], self[f"{name}.data"]
        if not len(starts) or starts[0] != 0 or starts[-1] != len(data):
            msg = f"starts of {name} that do not fit its data"
            raise DataError(msg)
        stored = _Stored(self._file, self._offsets[f"{name}.data"])
        return Texts(starts, data, stored if hasattr(os, "pread") else None)


def open_columns(path: Path) -> Columns:
    """Open a file of columns by memory map, without looking at what lies in them.

    Raises:
        DataError: The file is missing, cut short or of another kind.
    """
    try:
        size = path.stat().st_size
        if size < len(_MAGIC) + 8:  # before opening: a named pipe would block
            msg = "it is too short"
            raise ValueError(msg)
        file = _File(path)
        head = os.read(file.handle, len(_MAGIC) + 8)
        if not head.startswith(_MAGIC):
            msg = f"it begins with {head[:8]!r}"
            raise ValueError(msg)
        if size % _ALIGNED:
            msg = "it is cut short"
            raise ValueError(msg)
        length = int.from_bytes(head[8:], "little")
        return Columns(file, json.loads(os.read(file.handle, min(length, size))))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise damaged_file(path, "hold columns", error) from error


def _array(whole: NDArray[np.uint8], *, dtype: str, length: int, offset: int) -> NDArray[Any]:
    if dtype not in _DTYPES or length < 0 or offset < 0 or offset % _ALIGNED:
        msg = f"an array of {length} x {dtype} at {offset}"
        raise ValueError(msg)
    end = offset + length * np.dtype(dtype).itemsize
    if end > len(whole):
        msg = "it is cut short"
        raise ValueError(msg)
    return whole[offset:end].view(dtype)


def _round_up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
