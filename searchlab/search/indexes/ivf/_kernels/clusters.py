"""Sums over the rows of clusters, always in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from searchlab._numba import F32, F64, I64, kernel, reads, writes


@kernel(reads(F32, 2), reads(I64), writes(F64, 2))
def add_rows(vectors: Any, members: Any, sums: Any) -> None:
    """Add each row of `vectors` (n, dim) to the sum of its cluster, `sums` (n_clusters, dim)."""
    for row in range(vectors.shape[0]):
        one = members[row]
        for column in range(vectors.shape[1]):
            sums[one, column] += np.float64(vectors[row, column])


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
        squares: (n_clusters,) float64, what the squared distances are added to.
        radii: (n_clusters,) float64, raised to what no row of the cluster is farther than.
    """
    for place in range(codes.shape[0]):
        one = members[place]
        scale = scales[place]
        total = np.float32(0)
        for column in range(centres.shape[1]):
            away = scale * np.float32(np.int32(codes[place, column]) - 128) - centres[one, column]
            total += away * away
        squares[one] += total
        # A float32 sum of many squares may be off by a thousandth, not more.
        radii[one] = max(radii[one], np.sqrt(np.float64(total)) * 1.001 + errors[place])
