"""Columns on disk: named arrays in one file, opened by memory map, nothing read until it is used.

    8 bytes      SLCOLS01
    8 bytes      length of the header, little-endian
    header       JSON: name -> {"dtype", "length", "offset"}, offsets from the start of the file
    arrays       each at a multiple of 64 bytes

A column of texts is two arrays, as in Arrow: UTF-8 bytes end to end, and where each text starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, InputError, shown

_MAGIC = b"SLCOLS01"
_ALIGNED = 64
_DTYPES = ("|u1", "<u4", "<i4", "<i8")


@dataclass(frozen=True)
class Texts:
    """Texts end to end, read one at a time.

    Attributes:
        starts: (n + 1,) int64, where each text starts in `data`, and where the last one ends.
        data: (n_bytes,) uint8, UTF-8.
    """

    starts: NDArray[np.int64]
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, place: int) -> str:
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        return self.data[self.starts[place] : self.starts[place + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        return (self[place] for place in range(len(self)))


def pack_texts(texts: Iterable[str]) -> Texts:
    """Lay texts end to end.

    Raises:
        InputError: A text with a lone surrogate, which no file can hold.
    """
    try:
        encoded = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        msg = f"a text must be Unicode without lone surrogates, got {shown(error.object)}"
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
    """Write one-dimensional arrays of the dtypes uint8, uint32, int32 and int64 to a new file.

    Raises:
        InputError: An array of another kind.
    """
    header: dict[str, dict[str, Any]] = {
        name: {"dtype": array.dtype.newbyteorder("<").str, "length": len(array), "offset": 0}
        for name, array in arrays.items()
    }
    for name, array in arrays.items():
        if array.ndim != 1 or header[name]["dtype"] not in _DTYPES:
            found = f"{array.dtype} {array.shape}"
            msg = f"column {name!r} must have one dimension and one of {_DTYPES}, got {found}"
            raise InputError(msg)
    # The offsets are digits in the header, so room for the longest is kept.
    offset = _rounded(len(_MAGIC) + 8 + len(json.dumps(header)) + 20 * len(header))
    first = offset
    for name, array in arrays.items():
        header[name]["offset"] = offset
        offset = _rounded(offset + array.nbytes)
    text = json.dumps(header).encode().ljust(first - len(_MAGIC) - 8)
    with path.open("wb") as file:
        file.write(_MAGIC + len(text).to_bytes(8, "little") + text)
        for name, array in arrays.items():
            file.write(b"\0" * (header[name]["offset"] - file.tell()))
            np.ascontiguousarray(array, dtype=header[name]["dtype"]).tofile(file)
        file.write(b"\0" * (offset - file.tell()))


def open_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Open a file of columns by memory map, without looking at what lies in them.

    Raises:
        DataError: The file is missing, cut short or of another kind.
    """
    try:
        if path.stat().st_size < len(_MAGIC) + 8:
            msg = "it is too short"
            raise ValueError(msg)
        whole = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
        if whole[:8].tobytes() != _MAGIC:
            msg = f"it begins with {whole[:8].tobytes()!r}"
            raise ValueError(msg)
        if len(whole) % _ALIGNED:
            msg = "it is cut short"
            raise ValueError(msg)
        length = int.from_bytes(whole[8:16].tobytes(), "little")
        header = json.loads(whole[16 : 16 + length].tobytes())
        return {name: _array(whole, **where) for name, where in header.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        msg = f"{path} must hold columns, got: {error}; index the photos again to rebuild it"
        raise DataError(msg) from error


def _array(whole: NDArray[np.uint8], *, dtype: str, length: int, offset: int) -> NDArray[Any]:
    if dtype not in _DTYPES or length < 0 or offset < 0 or offset % _ALIGNED:
        msg = f"an array of {length} x {dtype} at {offset}"
        raise ValueError(msg)
    end = offset + length * np.dtype(dtype).itemsize
    if end > len(whole):
        msg = "it is cut short"
        raise ValueError(msg)
    return whole[offset:end].view(dtype)


def _rounded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
