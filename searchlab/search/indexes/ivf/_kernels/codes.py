"""Codes of a byte a component: how rows become codes, and the product of a code and a query.

A component x of a row is stored as the byte 128 + round(x / scale); the scale of a row is its
largest absolute component over 127. A query is rounded the same way, to signed integers. The
product of the two is then a sum of integers, less 128 times the sum of the query's integers.

Where the processor multiplies and adds 64 bytes in one instruction (AVX-512 VNNI), that is used;
LLVM does not find it by itself. Elsewhere the loop is left to LLVM, with a query of 16-bit
integers, which it turns into multiplications of pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from searchlab._numba import F32, I64, inner, kernel, reads, writes

CHUNK = 64
"""Bytes that a code's length is a multiple of: a cache line, and a register of AVX-512."""

_ZERO = 128
# Below it, 1 / step is too large for float32: such a row or query is coded as zeros.
_LEAST_STEP = np.float32(1e-30)
_I8, _I32 = ir.IntType(8), ir.IntType(32)
_HAS_VNNI = "+avx512vnni" in cpu_target.target_context.codegen().magic_tuple()[2]
_QUERY = np.int8 if _HAS_VNNI else np.int16


def _row(context: Any, builder: Any, array_type: Any, array: Any, row: Any) -> tuple[Any, Any]:
    """Return where a row of a matrix starts, and its length."""
    matrix = context.make_array(array_type)(context, builder, array)
    length = builder.extract_value(matrix.shape, 1)
    return builder.gep(matrix.data, [builder.mul(row, length)]), length


def _chunks(builder: Any, length: Any) -> Any:
    zero, step = (ir.Constant(length.type, number) for number in (0, CHUNK))
    return cgutils.for_range_slice(builder, zero, length, step)


@intrinsic
def _dot_vnni(_context: Any, codes: Any, row: Any, query: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, length = _row(context, builder, signature.args[0], args[0], args[1])
        other = context.make_array(signature.args[2])(context, builder, args[2]).data
        chunk, sums = ir.VectorType(_I8, CHUNK), ir.VectorType(_I32, CHUNK // 4)
        total = cgutils.alloca_once_value(builder, ir.Constant(sums, None))
        name = "llvm.x86.avx512.vpdpbusd.512"
        multiply = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(sums, [sums, chunk, chunk]), name
        )
        with _chunks(builder, length) as (place, _):
            parts = [
                builder.load(
                    builder.bitcast(builder.gep(data, [place]), chunk.as_pointer()), align=1
                )
                for data in (code, other)
            ]
            builder.store(builder.call(multiply, [builder.load(total), *parts]), total)
        name = f"llvm.vector.reduce.add.v{CHUNK // 4}i32"
        add = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I32, [sums]), name)
        return builder.call(add, [builder.load(total)])

    return types.int32(codes, types.intp, query), generate


@inner
def _dot_plain(codes: Any, row: Any, query: Any) -> Any:
    total = np.int32(0)
    for place in range(codes.shape[1]):
        total += np.int32(codes[row, place]) * np.int32(query[place])
    return total


dot = _dot_vnni if _HAS_VNNI else _dot_plain
"""Product of row `row` of `codes` (n, length) uint8 and a query of `round_query`, as int32."""


@intrinsic
def prefetch(_context: Any, codes: Any, row: Any) -> Any:
    """Load a row of `codes` (n, length) uint8 into the caches before it is needed."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, length = _row(context, builder, signature.args[0], args[0], args[1])
        kinds = [_I8.as_pointer(), _I32, _I32, _I32]
        fetch = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), kinds), "llvm.prefetch.p0"
        )
        with _chunks(builder, length) as (place, _):
            # Arguments of the intrinsic: to be read, into all caches, as data.
            builder.call(fetch, [builder.gep(code, [place]), _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(codes, types.intp), generate


@inner
def round_query(query: Any, length: Any) -> Any:
    """Round a query to integers.

    Args:
        query: (dim,) float32.
        length: Length of a code, at least dim.

    Returns:
        (length,) integers, the step between them, and the number to subtract from every product.
    """
    largest = np.float32(0)
    for value in query:
        largest = max(largest, abs(value))
    step = largest / np.float32(127)
    codes = np.zeros(length, dtype=_QUERY)
    total = np.int32(0)
    if step >= _LEAST_STEP:
        for place in range(query.size):
            whole = np.int32(np.rint(query[place] / step))
            codes[place] = whole
            total += whole
    return codes, step, np.int32(_ZERO) * total


@inner
def estimate_error(query: Any, code: Any, step: Any, error: Any) -> Any:
    """Return the standard deviation of the error that rounding makes in a product.

    Args:
        query: (dim,) float32.
        code: The query's integers from `round_query`.
        step: The query's step from `round_query`.
        error: Mean distance of a row to its code.
    """
    squares = off = 0.0
    for place in range(query.size):
        value = np.float64(query[place])
        rest = value - np.float64(step) * code[place]
        squares += value * value
        off += rest * rest
    return np.sqrt((squares * error * error + off) / query.size)


@kernel(reads(F32, 2), reads(I64), writes(types.uint8, 2), writes(F32), writes(F32))
def encode(vectors: Any, places: Any, codes: Any, scales: Any, errors: Any) -> None:
    """Round rows to codes.

    Args:
        vectors: (n, dim) float32.
        places: (n,) int64, where each row's code goes.
        codes: (n_codes, length) uint8, written to; length is at least dim.
        scales: (n_codes,) float32, written to: the step of each row's code.
        errors: (n_codes,) float32, written to: never less than the distance of a row to its code.
    """
    dim = vectors.shape[1]
    for row in range(vectors.shape[0]):
        place = places[row]
        largest = np.float32(0)
        for column in range(dim):
            largest = max(largest, abs(vectors[row, column]))
        step = largest / np.float32(127)
        inverse = np.float32(1) / step if step >= _LEAST_STEP else np.float32(0)
        off = 0.0
        codes[place, dim:] = _ZERO
        for column in range(dim):
            whole = np.int32(np.rint(vectors[row, column] * inverse))
            whole = max(np.int32(-127), min(np.int32(127), whole))
            codes[place, column] = _ZERO + whole
            rest = np.float64(vectors[row, column]) - np.float64(step) * whole
            off += rest * rest
        scales[place] = step
        errors[place] = np.sqrt(off) * 1.000001 + 1e-12
