"""Heads: what matters most of a row, in half a line of the cache.

A head is of what a row has beyond its list's centre, along the 56 axes on which rows differ most:
28 bytes of two components each, then the step between their values, and how long the rest of the
row, its tail, is. A component x is stored as round(x / step + 7.5), 0 to 15, component j in the
low four bits of byte j and component 28 + j in the high ones; step and tail are the upper halves
of float32, rounded up.

The product of a head with a query says within which bounds the row's own product lies, so that the
whole code of a row is only read where that may matter. Sixteen rows are looked at together where a
list is read on end, one by one where a filter lets few through. Where the processor multiplies and
adds bytes (AVX-512 VNNI, or AVX2 in two instructions), that is used; all ways give the same
integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from searchlab._numba import inner

BYTES = 32
"""Bytes of a head."""
COMPONENTS = 56
"""Components of a head."""
ROWS = 16
"""Rows that are looked at together."""
MIDDLE = 7.5
"""What a component of 0 would be stored as."""

_HALF = COMPONENTS // 2
LEAST_STEP = np.float32(1e-30)
"""Below it, 1 / step is too large for float32: such a query is coded as zeros."""

_I8, _I16, _I32, _F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()
_LINE, _PAIRS, _SUMS = (
    ir.VectorType(each, 32 // size) for each, size in ((_I8, 1), (_I16, 2), (_I32, 4))
)
_FEATURES = cpu_target.target_context.codegen().magic_tuple()[2]


def _call(builder: Any, name: str, result: Any, *values: Any) -> Any:
    kind = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)


def _pick(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    numbers = ir.Constant(ir.VectorType(_I32, len(places)), places)
    return builder.shuffle_vector(one, other, numbers)


def _multiply_vnni(builder: Any, halves: Any, queries: Any) -> Any:
    total = ir.Constant(_SUMS, [0] * 8)
    for half, query in zip(halves, queries, strict=True):
        total = _call(builder, "llvm.x86.avx512.vpdpbusd.256", _SUMS, total, half, query)
    return total


def _multiply_avx2(builder: Any, halves: Any, queries: Any) -> Any:
    # Two products are at most 2 * 15 * 127, so that two such sums fit into 16 bits.
    low, high = (
        _call(builder, "llvm.x86.avx2.pmadd.ub.sw", _PAIRS, half, query)
        for half, query in zip(halves, queries, strict=True)
    )
    ones = ir.Constant(_PAIRS, [1] * 16)
    return _call(builder, "llvm.x86.avx2.pmadd.wd", _SUMS, builder.add(low, high), ones)


def _multiply_plain(builder: Any, halves: Any, queries: Any) -> Any:
    total = ir.Constant(_SUMS, [0] * 8)
    for half, query in zip(halves, queries, strict=True):
        for byte in range(4):
            places = [4 * word + byte for word in range(8)]
            values = builder.zext(_pick(builder, half, half, places), _SUMS)
            asked = builder.sext(_pick(builder, query, query, places), _SUMS)
            total = builder.add(total, builder.mul(values, asked))
    return total


_multiply = (
    _multiply_vnni
    if {"+avx512vnni", "+avx512vl"} <= set(_FEATURES.split(","))
    else _multiply_avx2
    if "+avx2" in _FEATURES
    else _multiply_plain
)


def _multiply_row(builder: Any, start: Any, queries: Any) -> Any:
    """Multiply the head at an address with a query; (8,) int32 that add up to the product."""
    line = builder.load(builder.bitcast(start, _LINE.as_pointer()), align=1)
    low = builder.and_(line, ir.Constant(_LINE, [15] * 32))
    return _multiply(builder, (low, builder.lshr(line, ir.Constant(_LINE, [4] * 32))), queries)


def _load_query(builder: Any, start: Any) -> Any:
    size = ir.IntType(64)
    places = (builder.gep(start, [ir.Constant(size, place)]) for place in (0, 32))
    return [builder.load(builder.bitcast(place, _LINE.as_pointer()), align=1) for place in places]


def _load_word(builder: Any, start: Any) -> Any:
    """Load the last four bytes of a head, its step and its tail."""
    place = builder.gep(start, [ir.Constant(ir.IntType(64), 2 * 14)])
    return builder.load(builder.bitcast(place, _I32.as_pointer()), align=4)


def _add_up(builder: Any, sums: list[Any]) -> Any:
    """Add each of sixteen vectors up; (16,) int32 in their order."""
    even, odd = [0, 2, 8, 10, 4, 6, 12, 14], [1, 3, 9, 11, 5, 7, 13, 15]
    for low, high in (
        (even, odd),
        (even, odd),
        ([0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
    ):
        sums = [
            builder.add(_pick(builder, one, other, low), _pick(builder, one, other, high))
            for one, other in zip(sums[::2], sums[1::2], strict=True)
        ]
    first, second = sums
    return _pick(builder, first, second, list(range(16)))


def _spread(builder: Any, value: Any, kind: Any) -> Any:
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_I32, 0))
    return _pick(builder, one, one, [0] * kind.count)


def _address(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [builder.mul(row, ir.Constant(row.type, BYTES))])


@intrinsic
def screen_rows(
    _context: Any,
    heads: Any,
    place: Any,
    query: Any,
    zero: Any,
    scale: Any,
    by_step: Any,
    by_tail: Any,
    least: Any,
    sums: Any,
) -> Any:
    """Tell which of sixteen rows may reach a score.

    A row may if the product of its head, what rounding may hide and what its tail may add come to
    `least`.

    Args:
        heads: (n, BYTES) uint8.
        place: First of the rows.
        query: (2 * BYTES,) int8 of `round_head`.
        zero: Number to subtract from every product, float32.
        scale: Step of the query, float32.
        by_step: What is allowed for rounding, in steps of the row, float32.
        by_tail: What is allowed for the tail, in its lengths, float32.
        least: The score to reach, beside the product with the centre, float32.
        sums: (2 * ROWS,) float32, added to: squares of the products, and of the tails.

    Returns:
        int32, bit r for row place + r.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        floats, words = ir.VectorType(_F32, ROWS), ir.VectorType(_I32, ROWS)
        size = args[1].type
        start = _address(context, builder, kinds[0], args[0], args[1])
        queries = _load_query(builder, context.make_array(kinds[2])(context, builder, args[2]).data)
        products, last = [], ir.Constant(words, ir.Undefined)
        for row in range(ROWS):
            at = builder.gep(start, [ir.Constant(size, BYTES * row)])
            products.append(_multiply_row(builder, at, queries))
            last = builder.insert_element(last, _load_word(builder, at), ir.Constant(_I32, row))
        step = builder.bitcast(builder.shl(last, ir.Constant(words, [16] * ROWS)), floats)
        tail = builder.bitcast(builder.and_(last, ir.Constant(words, [-65_536] * ROWS)), floats)
        zero, scale, by_step, by_tail, least = (
            _spread(builder, each, floats) for each in args[3:8]
        )
        product = builder.fsub(builder.sitofp(_add_up(builder, products), floats), zero)
        score = builder.fmul(builder.fmul(product, scale), step)
        added = context.make_array(kinds[8])(context, builder, args[8]).data
        for number, values in enumerate((score, tail)):
            at = builder.gep(added, [ir.Constant(size, ROWS * number)])
            pointer = builder.bitcast(at, floats.as_pointer())
            squares = builder.fmul(values, values)
            builder.store(builder.fadd(builder.load(pointer, align=4), squares), pointer, align=4)
        most = builder.fadd(score, builder.fmul(by_step, step))
        most = builder.fadd(most, builder.fmul(by_tail, tail))
        may = builder.fcmp_ordered(">=", most, least)
        return builder.zext(builder.bitcast(may, _I16), _I32)

    numbers = [types.float32] * 5
    return types.int32(heads, types.intp, query, *numbers, sums), generate


@intrinsic
def multiply_head(_context: Any, heads: Any, place: Any, query: Any) -> Any:
    """Return the product of a head with a query of `round_head`, as int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = _address(context, builder, signature.args[0], args[0], args[1])
        data = context.make_array(signature.args[2])(context, builder, args[2]).data
        sums = _multiply_row(builder, start, _load_query(builder, data))
        return _call(builder, "llvm.vector.reduce.add.v8i32", _I32, sums)

    return types.int32(heads, types.intp, query), generate


@intrinsic
def read_lengths(_context: Any, heads: Any, place: Any) -> Any:
    """Return step and tail of a head, as two float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _load_word(builder, _address(context, builder, signature.args[0], args[0], args[1]))
        step = builder.shl(word, ir.Constant(_I32, 16))
        tail = builder.and_(word, ir.Constant(_I32, -65_536))
        both = [builder.bitcast(each, _F32) for each in (step, tail)]
        return context.make_tuple(builder, signature.return_type, both)

    return types.UniTuple(types.float32, 2)(heads, types.intp), generate


@inner
def project(axes: Any, query: Any) -> Any:
    """Return the components of a query along the axes, (COMPONENTS,) float32.

    Args:
        axes: (dim, COMPONENTS) float32.
        query: (dim,) float32.
    """
    head = np.zeros(COMPONENTS, dtype=np.float32)
    for place in range(query.size):
        value = query[place]
        for number in range(COMPONENTS):
            head[number] += value * axes[place, number]
    return head


@inner
def round_head(head: Any) -> Any:
    """Round the components of a query to integers.

    Args:
        head: (COMPONENTS,) float32.

    Returns:
        (2 * BYTES,) int8 in the order of a head's low and high bits, zeros where these are no
        components; the step between them; the number to subtract from every product; and the
        distance of the components to what they are rounded to.
    """
    largest = np.float32(0)
    for value in head:
        largest = max(largest, abs(value))
    step = largest / np.float32(127)
    codes = np.zeros(2 * BYTES, dtype=np.int8)
    total = np.int32(0)
    off = 0.0
    for number in range(COMPONENTS):
        whole = np.int32(0)
        if step >= LEAST_STEP:
            whole = np.int32(np.rint(head[number] / step))
        rest = np.float64(head[number]) - np.float64(step) * whole
        off += rest * rest
        codes[number if number < _HALF else number - _HALF + BYTES] = whole
        total += whole
    return codes, step, np.float32(MIDDLE) * np.float32(total), np.sqrt(off)
