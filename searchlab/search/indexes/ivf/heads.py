"""Heads of all rows: what they have beyond their lists' centres along the axes that matter most.

A scan reads the head of a row first, an eighth of its code, and the code only where the head and
what the rest may add come near to the best so far.

References:
    Gao and Long, RaBitQ: quantizing high-dimensional vectors with a theoretical error bound for
    approximate nearest neighbor search, SIGMOD 2024 (codes relative to centres, with a bound on
    what they hide); Andre et al., Cache locality is not enough: high-performance nearest neighbor
    search with product quantization fast scan, VLDB 2015 (codes of four bits laid out for
    registers).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchlab.models.protocol import Embeddings
from searchlab.search.indexes.ivf._kernels.heads import BYTES, COMPONENTS, LEAST_STEP, MIDDLE, ROWS
from searchlab.search.indexes.ivf.kmeans import blas, blocks

_BLOCK = 16_384
# Rows from which the axes are learnt.
_SAMPLED = 65_536
# Share of a row's square by which its tail is lengthened, for what float32 rounds.
_SLACK = 1e-5
# The upper half of an infinite float32; those of finite numbers from 0 on are below.
_INFINITE = 0x7F80


class Heads(NamedTuple):
    """Heads in the order of the lists, as kernels take them.

    Attributes:
        axes: (dim, COMPONENTS) float32 orthonormal columns, zeros where dim is less.
        codes: (n + ROWS - 1, BYTES) uint8 by `_kernels.heads`; the last ones are of no row, so that
            kernels may read as many together from any place.
    """

    axes: NDArray[np.float32]
    codes: NDArray[np.uint8]


def learn_axes(
    vectors: Embeddings, members: NDArray[np.int64], centres: Embeddings, *, seed: int
) -> NDArray[np.float32]:
    """Find the axes along which rows differ most from the centres of their lists.

    Args:
        vectors: (n, dim) unit rows; may be memory-mapped.
        members: (n,) int64 list of each row.
        centres: (n_lists, dim) float32 centres.
        seed: Seed of the sample.

    Returns:
        (dim, COMPONENTS) float32 orthonormal columns; those beyond dim are zero.
    """
    n, dim = vectors.shape
    rng = np.random.default_rng([seed, 4])
    rows = np.sort(rng.choice(n, size=min(n, _SAMPLED), replace=False))
    products = np.zeros((dim, dim))
    with blas().limit(limits=1, user_api="blas"):
        for block in blocks(len(rows), _BLOCK):
            some = rows[block]
            rest = np.asarray(vectors[some], dtype=np.float32) - centres[members[some]]
            products += rest.T @ rest
        _, directions = np.linalg.eigh(products)
    axes = np.zeros((dim, COMPONENTS), dtype=np.float32)
    n_axes = min(dim, COMPONENTS)
    axes[:, :n_axes] = directions[:, ::-1][:, :n_axes]
    return axes


def make_heads(
    vectors: Embeddings,
    members: NDArray[np.int64],
    places: NDArray[np.int64],
    centres: Embeddings,
    axes: NDArray[np.float32],
) -> Heads:
    """Encode the heads of all rows; rows are read in blocks.

    Args:
        vectors: (n, dim) unit rows; may be memory-mapped.
        members: (n,) int64 list of each row.
        places: (n,) int64 place of each row.
        centres: (n_lists, dim) float32 centres.
        axes: (dim, COMPONENTS) float32 from `learn_axes`.
    """
    codes = np.zeros((len(vectors) + ROWS - 1, BYTES), dtype=np.uint8)
    with blas().limit(limits=1, user_api="blas"):
        for block in blocks(len(vectors), _BLOCK):
            rest = np.asarray(vectors[block], dtype=np.float32) - centres[members[block]]
            components = np.asarray(rest @ axes, dtype=np.float32)
            whole = np.einsum("ij,ij->i", rest, rest)
            said = np.einsum("ij,ij->i", components, components)
            tails = np.sqrt(np.maximum(whole - said, 0) + np.float32(_SLACK) * whole)
            codes[places[block]] = _encode(components, np.asarray(tails, dtype=np.float32))
    return Heads(axes, codes)


def _encode(components: NDArray[np.float32], tails: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return (n, BYTES) uint8 heads of (n, COMPONENTS) float32 components and (n,) tails."""
    largest = np.abs(components).max(axis=1)
    steps = _upper_half(np.maximum(largest / np.float32(MIDDLE), LEAST_STEP))
    exact = (steps.astype(np.uint32) << 16).view(np.float32)[:, np.newaxis]
    values = np.rint(components / exact + np.float32(MIDDLE))
    whole = np.clip(values, 0, 2 * MIDDLE).astype(np.uint8)
    low, high = np.split(whole, 2, axis=1)
    lengths = np.stack([steps, _upper_half(tails)], axis=1)
    return np.concatenate([low | high << 4, lengths.view(np.uint8)], axis=1)


def _upper_half(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the upper halves of float32 numbers, none of them below 0, rounded up."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0xFFFF)) >> 16).astype(np.uint16)


def are_lengths(codes: NDArray[np.uint8]) -> bool:
    """Tell whether the steps and tails of heads are numbers of at least 0, as they must be."""
    halves = np.ascontiguousarray(codes[:, COMPONENTS // 2 :]).view(np.uint16)
    return bool((halves < _INFINITE).all())


def decode_heads(codes: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the (n, COMPONENTS) float32 components that heads stand for, and (n,) their steps."""
    halves = np.ascontiguousarray(codes[:, COMPONENTS // 2 :]).view(np.uint16)
    steps = (halves[:, 0].astype(np.uint32) << 16).view(np.float32)
    packed = codes[:, : COMPONENTS // 2]
    values = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)
    return (values - np.float32(MIDDLE)) * steps[:, np.newaxis], steps
