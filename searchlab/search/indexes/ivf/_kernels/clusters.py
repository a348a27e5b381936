"""Sums over the rows of clusters, always in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, F64, I64, kernel, reads, writes


@kernel(reads(F32, 2), reads(I64), writes(F64, 2))
def add_rows(vectors: Any, members: Any, sums: Any) -> None:
    """Add each row to the sum of its cluster.

    Args:
        vectors: (n, dim) float32.
        members: (n,) int64, cluster of each row.
        sums: (n_clusters, dim) float64, added to.
    """
    for row in range(vectors.shape[0]):
        cluster = members[row]
        for column in range(vectors.shape[1]):
            sums[cluster, column] += np.float64(vectors[row, column])


@kernel(
    reads(types.uint8, 2),
    reads(F32),
    reads(F32),
    reads(I64),
    reads(F32, 2),
    writes(F64),
    writes(F64),
    fastmath=True,
)
def measure(
    codes: Any, scales: Any, errors: Any, members: Any, centres: Any, squares: Any, radii: Any
) -> None:
    """Measure how far codes lie from the centres of their clusters.

    Args:
        codes: (n, length) uint8.
        scales: (n,) float32.
        errors: (n,) float32, distance of a row to its code at most.
        members: (n,) int64, cluster of each.
        centres: (n_clusters, dim) float32.
        squares: (n_clusters,) float64, to which the squared distances are added.
        radii: (n_clusters,) float64, raised to at least the distance of every row.
    """
    for place in range(codes.shape[0]):
        cluster = members[place]
        scale = scales[place]
        total = np.float32(0)
        for column in range(centres.shape[1]):
            value = scale * np.float32(np.int32(codes[place, column]) - 128)
            away = value - centres[cluster, column]
            total += away * away
        squares[cluster] += total
        # A float32 sum of many squares may be off by a thousandth, not more.
        distance = np.sqrt(np.float64(total)) * 1.001 + errors[place]
        radii[cluster] = max(radii[cluster], distance)
