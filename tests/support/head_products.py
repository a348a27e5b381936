"""A script that multiplies and screens made-up heads, and prints which way and what came out."""

import hashlib
import sys

import numba
import numpy as np

from searchlab.search.indexes.ivf._kernels import heads as kernels

N = 1_600


@numba.njit
def products(heads, query):
    return np.array([kernels.multiply_head(heads, row, query) for row in range(N)])


@numba.njit
def masks(heads, query, zero, sums):
    numbers = np.empty(N, dtype=np.int64)
    scale, half, least = np.float32(4e-4), np.float32(0.5), np.float32(1.2)
    for row in range(N):
        numbers[row] = kernels.screen_rows(heads, row, query, zero, scale, half, half, least, sums)
    return numbers


def main():
    rng = np.random.default_rng(0)
    heads = rng.integers(0, 256, (N + kernels.ROWS - 1, kernels.BYTES), dtype=np.uint8)
    heads[::7, :28] = 255
    heads[:, 29::2] = 0x3F  # steps and tails from 0.5 to 2
    query = rng.integers(-127, 128, 2 * kernels.BYTES).astype(np.int8)
    query.reshape(2, -1)[:, 28:] = 0
    lines = [kernels._multiply.__name__]
    for each in (query, np.where(query > 0, 127, 0).astype(np.int8), -np.abs(query)):
        sums = np.zeros(2 * kernels.ROWS, dtype=np.float32)
        zero = np.float32(kernels.MIDDLE * each.sum(dtype=np.int64))
        results = [products(heads, each), masks(heads, each, zero, sums), sums]
        lines += [hashlib.sha256(result.tobytes()).hexdigest() for result in results]
        # Some of the rows may reach the score, and others not.
        lines.append(str(len(set(results[1].tolist())) > 100))
    sys.stdout.write("\n".join(lines))


main()
