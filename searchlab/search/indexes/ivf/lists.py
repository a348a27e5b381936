"""Lists: rows as codes of a byte a component, cluster by cluster, as kernels scan them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import InputError
from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.ivf._kernels.clusters import add_rows, measure
from searchlab.search.indexes.ivf._kernels.codes import encode
from searchlab.search.indexes.ivf._kernels.heads import BYTES, COMPONENTS, ROWS
from searchlab.search.indexes.ivf.heads import Heads, are_lengths, learn_axes, make_heads
from searchlab.search.indexes.ivf.kmeans import assign, blocks, train_centres, unit

_BLOCK = 16_384
# The length of a code is a multiple of this; see `_kernels.codes.CHUNK`.
_LENGTH = 64
# The spread of a list is averaged with the mean spread of all, which counts as this many rows.
_USUAL = 8
# Arrays that hold nothing below 0.
_LONGEST_CENTRE = 1.01  # in any direction; means of rows of length 1 are no longer
_LENGTHS = ("scales", "errors", "squares", "radii", "made", "stopping")


def choose_n_lists(n: int) -> int:
    """Return how many lists a number of rows is best cut into.

    More make a search read fewer rows, but more centres, and the build longer.
    """
    return max(1, min(n, round(4 * math.sqrt(n))))


@dataclass(frozen=True)
class Lists:
    """Rows in the order of their clusters.

    Attributes:
        codes: (n, length) uint8, a row's components by `_kernels.codes`; length is dim, rounded up.
        scales: (n,) float32 step of each code.
        errors: (n,) float32, never less than the distance of a row to its code.
        rows: (n,) int32 row number of each place, ascending within a list.
        offsets: (n_lists + 1,) int64, where each list starts, and n.
        centres: (n_lists, dim) float32, mean of each list's rows when it was made.
        squares: (n_lists,) float32, sum of squared distances of its rows to its centre.
        radii: (n_lists,) float32, never less than the distance of a row to its centre.
        made: (2,) float32, how many rows the centres were made from, and their mean squared
            distance.
        axes: (dim, COMPONENTS) float32 of `heads.Heads`.
        head_codes: (n + ROWS - 1, BYTES) uint8 of `heads.Heads`.
        stopping: (n_numbers,) float32 from `stopping.Stopping.pack`; empty where nothing was
            measured.
    """

    codes: NDArray[np.uint8]
    scales: NDArray[np.float32]
    errors: NDArray[np.float32]
    rows: NDArray[np.int32]
    offsets: NDArray[np.int64]
    centres: Embeddings
    squares: NDArray[np.float32]
    radii: NDArray[np.float32]
    made: NDArray[np.float32]
    axes: NDArray[np.float32]
    head_codes: NDArray[np.uint8]
    stopping: NDArray[np.float32]

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays."""
        stored = sum(getattr(self, field.name).nbytes for field in fields(self))
        return int(stored + self.positions.nbytes + self.coded_centres[0].nbytes)

    @cached_property
    def positions(self) -> NDArray[np.int32]:
        """Return (n,) place of each row."""
        positions = np.empty(len(self.rows), dtype=np.int32)
        positions[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        return positions

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return (n_lists,) rows of each list."""
        return np.diff(self.offsets)

    def find_lists(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the list of each row, (n,) int64."""
        places = self.positions[rows]
        return np.asarray(np.searchsorted(self.offsets, places, side="right") - 1)

    @cached_property
    def heads(self) -> Heads:
        """Return the heads of all rows."""
        return Heads(self.axes, self.head_codes)

    @cached_property
    def spreads(self) -> NDArray[np.float32]:
        """Return (n_lists,) squared distance to the centre that a row is expected to have."""
        # A few rows lie near to their own mean by chance; so the mean over all lists counts, too.
        usual = self.spread * _USUAL
        counts = np.maximum(self.sizes - 1, 0) + _USUAL
        return np.asarray((self.squares + usual) / counts, dtype=np.float32)

    @cached_property
    def coded_centres(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return (n_lists, length) codes of the centres, and (n_lists,) their steps."""
        codes, scales, _ = _encode(self.centres, self.codes.shape[1])
        return codes, scales

    @cached_property
    def longest(self) -> float:
        """A norm that no code exceeds."""
        # A row's norm is at most that of its centre plus the radius, its code's its error more.
        norms = np.linalg.norm(self.centres.astype(np.float64), axis=1) + self.radii
        return float(norms.max(initial=0.0) + self.errors.max(initial=0.0))

    @cached_property
    def error(self) -> float:
        """Mean distance of a row to its code."""
        return float(self.errors.mean()) if len(self.errors) else 0.0

    @property
    def spread(self) -> float:
        """Mean squared distance of all rows to their centres."""
        return float(self.squares.sum(dtype=np.float64) / max(len(self.rows), 1))


def build_lists(
    vectors: Embeddings, n_lists: int, *, held_out: NDArray[np.int64], seed: int, threads: int
) -> Lists:
    """Cluster rows and encode them; float32 rows are read in blocks, twice.

    Args:
        vectors: (n, dim) unit rows; may be memory-mapped.
        n_lists: Lists, at most n; 0 chooses by n.
        held_out: Rows that are left out of the mean of their list.
        seed: Seed of the clusters.
        threads: Threads to work with; the lists do not depend on them.
    """
    n, dim = vectors.shape
    if not n:
        return _empty(dim)
    n_centres = min(n_lists or choose_n_lists(n), n)
    directions = train_centres(vectors, n_centres, seed=seed, threads=threads)
    members, _ = assign(vectors, directions, threads=threads)
    return _lay_out(vectors, members, len(directions), held_out, seed)


def _lay_out(
    vectors: Embeddings,
    members: NDArray[np.int64],
    n_lists: int,
    held_out: NDArray[np.int64],
    seed: int,
) -> Lists:
    n, dim = vectors.shape
    rows = np.argsort(members, kind="stable").astype(np.int32)
    positions = np.empty(n, dtype=np.int64)
    positions[rows] = np.arange(n)
    codes = np.empty((n, _length(dim)), dtype=np.uint8)
    scales, errors = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    sums = np.zeros((n_lists, dim))
    for block in blocks(n, _BLOCK):
        part = np.ascontiguousarray(vectors[block], dtype=np.float32)
        encode(part, positions[block], codes, scales, errors)
        add_rows(part, members[block], sums)
    sizes = np.bincount(members, minlength=n_lists)
    np.subtract.at(sums, members[held_out], vectors[held_out])
    counted = sizes - np.bincount(members[held_out], minlength=n_lists)
    centres = (sums / np.maximum(counted, 1)[:, np.newaxis]).astype(np.float32)
    squares, radii = _measure(codes, scales, errors, members[rows], centres)
    made = np.array([n, squares.sum() / n], dtype=np.float32)
    axes = learn_axes(vectors, members, centres, seed=seed)
    heads = make_heads(vectors, members, positions, centres, axes)
    return Lists(
        codes,
        scales,
        errors,
        rows,
        _offsets(sizes),
        centres,
        squares.astype(np.float32),
        _round_up(radii),
        made,
        *heads,
        np.zeros(0, dtype=np.float32),
    )


def update_lists(
    lists: Lists,
    row_now: NDArray[np.int64],
    vectors: Embeddings,
    new: NDArray[np.int64],
    threads: int,
) -> Lists:
    """Return the lists of a changed library, around the same centres.

    Args:
        lists: Lists of the library before.
        row_now: (n_before,) int64 row that each row before has now; -1 where it is gone.
        vectors: (n, dim) unit rows now.
        new: (n_new,) int64 ascending rows that were not there before.
        threads: Threads to work with.
    """
    before = row_now[lists.rows]
    places = np.flatnonzero(before >= 0)
    list_of = np.repeat(np.arange(len(lists.sizes)), lists.sizes)[places]
    added = np.ascontiguousarray(vectors[new], dtype=np.float32)
    joined, _ = assign(added, unit(lists.centres), threads=threads)
    codes, scales, errors = _encode(added, lists.codes.shape[1])
    gained, radii = _measure(codes, scales, errors, joined, lists.centres)
    members = np.concatenate([list_of, joined])
    rows = np.concatenate([before[places], new])
    order = np.lexsort((rows, members))
    sizes = np.bincount(members, minlength=len(lists.sizes))
    staying = np.bincount(list_of, minlength=len(lists.sizes))
    heads = make_heads(added, joined, np.arange(len(added)), lists.centres, lists.axes)
    head_codes = np.zeros((len(order) + ROWS - 1, BYTES), dtype=np.uint8)
    head_codes[: len(order)] = _merge_codes(lists.head_codes, heads.codes, places, order)
    return Lists(
        _merge_codes(lists.codes, codes, places, order),
        np.concatenate([lists.scales[places], scales])[order],
        np.concatenate([lists.errors[places], errors])[order],
        rows[order].astype(np.int32),
        _offsets(sizes),
        lists.centres,
        (lists.squares * (staying / np.maximum(lists.sizes, 1)) + gained).astype(np.float32),
        np.maximum(lists.radii, _round_up(radii)),
        lists.made,
        lists.axes,
        head_codes,
        lists.stopping,
    )


def _merge_codes(
    old: NDArray[np.uint8],
    new: NDArray[np.uint8],
    places: NDArray[np.int64],
    order: NDArray[np.int64],
) -> NDArray[np.uint8]:
    codes = np.empty((len(order), old.shape[1]), dtype=np.uint8)
    for block in blocks(len(order), _BLOCK):
        sources = order[block]
        is_new = sources >= len(places)
        part = codes[block]
        part[~is_new] = old[places[sources[~is_new]]]
        part[is_new] = new[sources[is_new] - len(places)]
    return codes


def _encode(
    vectors: Embeddings, length: int
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    n = len(vectors)
    codes = np.empty((n, length), dtype=np.uint8)
    scales, errors = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
    encode(np.ascontiguousarray(vectors, dtype=np.float32), np.arange(n), codes, scales, errors)
    return codes, scales, errors


def _measure(
    codes: NDArray[np.uint8],
    scales: NDArray[np.float32],
    errors: NDArray[np.float32],
    members: NDArray[np.int64],
    centres: Embeddings,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    squares, radii = np.zeros(len(centres)), np.zeros(len(centres))
    measure(codes, scales, errors, members, centres, squares, radii)
    return squares, radii


def _round_up(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.nextafter(values.astype(np.float32), np.float32(np.inf))


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _length(dim: int) -> int:
    return -(-dim // _LENGTH) * _LENGTH


def _empty(dim: int) -> Lists:
    floats = np.zeros(0, dtype=np.float32)
    return Lists(
        np.zeros((0, _length(dim)), dtype=np.uint8),
        floats,
        floats,
        np.zeros(0, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        np.zeros((0, dim), dtype=np.float32),
        floats,
        floats,
        np.zeros(2, dtype=np.float32),
        np.zeros((dim, COMPONENTS), dtype=np.float32),
        np.zeros((ROWS - 1, BYTES), dtype=np.uint8),
        np.zeros(0, dtype=np.float32),
    )


def pack_lists(lists: Lists) -> Mapping[str, NDArray[Any]]:
    """Return the arrays as columns of one dimension; float32 as the int32 of the same bits."""
    arrays = {field.name: getattr(lists, field.name).reshape(-1) for field in fields(lists)}
    return {
        name: array.view(np.int32) if array.dtype == np.float32 else array
        for name, array in arrays.items()
    }


def unpack_lists(columns: Mapping[str, NDArray[Any]], n: int, dim: int) -> Lists:
    """Rebuild lists from columns, and check that they are of `n` rows of `dim` components.

    Raises:
        InputError: They are not; the message says how.
    """
    missing = sorted({field.name for field in fields(Lists)} - columns.keys())
    if missing:
        msg = f"it has no column {missing[0]!r}"
        raise InputError(msg)
    n_lists = len(columns["offsets"]) - 1
    shapes = {
        "codes": (n, _length(dim)),
        "scales": (n,),
        "errors": (n,),
        "rows": (n,),
        "offsets": (n_lists + 1,),
        "centres": (n_lists, dim),
        "squares": (n_lists,),
        "radii": (n_lists,),
        "made": (2,),
        "axes": (dim, COMPONENTS),
        "head_codes": (n + ROWS - 1, BYTES),
        "stopping": (len(columns["stopping"]),),
    }
    dtypes: dict[str, Any] = {
        "codes": np.uint8,
        "head_codes": np.uint8,
        "rows": np.int32,
        "offsets": np.int64,
    }
    arrays = {}
    for name, shape in shapes.items():
        column = columns[name]
        stored = np.dtype(dtypes.get(name, np.int32))
        if column.dtype != stored or column.size != math.prod(shape):
            msg = f"its {name} are {column.size} x {column.dtype}, not {shape} x {stored}"
            raise InputError(msg)
        arrays[name] = column.view(dtypes.get(name, np.float32)).reshape(shape)
    lists = Lists(**arrays)
    _check(lists)
    return lists


def _check(lists: Lists) -> None:
    n, offsets = len(lists.rows), lists.offsets
    if offsets[0] != 0 or offsets[-1] != n or (np.diff(offsets) < 0).any():
        msg = f"its lists do not cover {n} rows"
        raise InputError(msg)
    if n and not 0 <= lists.rows.min() <= lists.rows.max() < n:
        msg = f"its rows are not from 0 to {n - 1}"
        raise InputError(msg)
    if (np.bincount(lists.rows, minlength=n) != 1).any():
        msg = "it does not hold every row once"
        raise InputError(msg)
    if not are_lengths(lists.head_codes):
        msg = "its head_codes hold a length that is not finite or below 0"
        raise InputError(msg)
    signed = ("centres", "axes")
    for name in (*signed, *_LENGTHS):
        values = getattr(lists, name)
        if not np.isfinite(values).all() or (name not in signed and (values < 0).any()):
            msg = f"its {name} hold a value that is not finite or below 0"
            raise InputError(msg)
    if np.abs(lists.centres).max(initial=0) > _LONGEST_CENTRE:
        msg = "its centres hold a value above 1, which no mean of rows of length 1 has"
        raise InputError(msg)
