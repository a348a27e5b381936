"""Heads of rows, read and checked without the kernels that use them."""

from typing import NamedTuple

import numpy as np

from searchlab.search.indexes.ivf._kernels.heads import BYTES, COMPONENTS, MIDDLE, ROWS

HALF = COMPONENTS // 2


class Decoded(NamedTuple):
    """What heads say: (n, COMPONENTS) whole numbers, (n,) steps and (n,) tails."""

    whole: np.ndarray
    steps: np.ndarray
    tails: np.ndarray

    @property
    def components(self):
        return (self.whole - MIDDLE) * self.steps[:, np.newaxis].astype(np.float64)


def decode(codes):
    """Read (n, BYTES) uint8 heads."""
    pairs = codes[:, :HALF]
    whole = np.concatenate([pairs & 15, pairs >> 4], axis=1)
    halves = np.ascontiguousarray(codes[:, HALF:]).view("<u2").astype(np.uint32)
    steps, tails = (halves << 16).view(np.float32).T
    return Decoded(whole.astype(np.int64), steps, tails)


def check_heads(heads, vectors, members, places, centres):
    """Assert that heads are of these rows: nothing that they say is farther off than it may be."""
    n = len(vectors)
    axes = heads.axes.astype(np.float64)
    assert heads.codes.shape == (n + ROWS - 1, BYTES)
    decoded = decode(heads.codes[places])
    rest = vectors.astype(np.float64) - centres[members]
    whole = np.linalg.norm(rest, axis=1)
    components = rest @ axes
    off = np.abs(decoded.components - components)
    assert (off <= 0.5001 * decoded.steps[:, np.newaxis] + 1e-6 * whole[:, np.newaxis]).all()
    tails = np.linalg.norm(rest - components @ axes.T, axis=1)
    assert (tails <= decoded.tails).all()
    # And they say something: of 16 steps the components take all, and a tail is not much longer.
    largest = np.abs(components).max(axis=1)
    assert (decoded.steps <= largest / MIDDLE * 1.01 + 1e-6 * whole + 1e-29).all()
    assert (decoded.tails <= 1.01 * np.sqrt(tails**2 + 3e-5 * whole**2)).all()
