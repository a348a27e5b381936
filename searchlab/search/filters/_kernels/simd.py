"""Comparisons and counts of many rows at once: vector code that LLVM does not generate from a loop.

They use plain LLVM vectors, which run on every processor; with AVX-512 they are few instructions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

STEPS = 512
"""Steps of a cell's side in which `cell_bits` measures."""

ROUND = 65_536
"""Divisor of squared steps in `cell_bits`."""

TOGETHER = 16
"""Rows that `sixteen_bits` tells, 32 bits each: a register of AVX-512."""

_LANES = 64
_WORDS = 8  # of 64 bits, a register of AVX-512
_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_LANE_BITS = ir.VectorType(ir.IntType(1), TOGETHER)


def _vector_of(kind: Any) -> Any:
    return ir.VectorType(kind, _LANES)


def _constant(kind: Any, number: int) -> Any:
    return ir.Constant(_vector_of(kind), [number] * _LANES)


def _spread(builder: Any, value: Any, n_lanes: int = _LANES) -> Any:
    nothing = ir.Constant(ir.VectorType(value.type, n_lanes), ir.Undefined)
    one = builder.insert_element(nothing, value, _I32(0))
    first = ir.Constant(ir.VectorType(_I32, n_lanes), [0] * n_lanes)
    return builder.shuffle_vector(one, nothing, first)


def _at(builder: Any, data: Any, place: Any, n_lanes: int) -> Any:
    kind = ir.VectorType(data.type.pointee, n_lanes)
    return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())


def _load(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    start = _at(builder, data, place, _LANES)
    return builder.load(start, align=context.get_abi_sizeof(data.type.pointee))


def _bits(builder: Any, compared: Any) -> Any:
    return builder.bitcast(compared, _I64)


@intrinsic
def near_bits(_context: Any, lab: Any, block: Any, point: Any, limit: Any) -> Any:
    """Say which of the 64 points of a block lie near another, a bit for each.

    Args:
        lab: (192 n_blocks,) float32, of each block 64 numbers a coordinate.
        block: int64.
        point: Three float32.
        limit: float32, the largest squared distance that is near.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, which, centre, most = args
        start = builder.mul(which, _I64(3 * _LANES))
        squares = []
        for axis in range(3):
            place = builder.add(start, _I64(axis * _LANES))
            values = _load(context, builder, signature.args[0], array, place)
            step = builder.fsub(values, _spread(builder, builder.extract_value(centre, axis)))
            squares.append(builder.fmul(step, step))
        total = builder.fadd(builder.fadd(squares[0], squares[1]), squares[2])
        return _bits(builder, builder.fcmp_ordered("<=", total, _spread(builder, most)))

    triple = types.UniTuple(types.float32, 3)
    return types.uint64(lab, types.int64, triple, types.float32), generate


@intrinsic
def cell_bits(_context: Any, cells: Any, block: Any, centre: Any, limit: Any) -> Any:
    """Say which of the 64 cells of a block lie near a point, a bit for each.

    A cell's number is 5, 5 and 6 bits, its place along each axis, of which each is `STEPS` wide.
    Its distance is the sum over the axes of the squared steps, each divided by `ROUND` and rounded
    down, so that 16 bits hold all of it.

    Args:
        cells: (64 n_blocks,) uint16.
        block: int64.
        centre: Three int16, steps from the corners of the cells.
        limit: int16, the largest distance that is near; none is for a negative one.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, which, middle, most = args
        start = builder.mul(which, _I64(_LANES))
        values = _load(context, builder, signature.args[0], array, start)
        scaled = (
            builder.and_(builder.lshr(values, _constant(_I16, 2)), _constant(_I16, 31 * STEPS)),
            builder.and_(builder.shl(values, _constant(_I16, 3)), _constant(_I16, 31 * STEPS)),
            builder.and_(builder.shl(values, _constant(_I16, 9)), _constant(_I16, 63 * STEPS)),
        )
        total = _constant(_I16, 0)
        for axis, steps in enumerate(scaled):
            away = builder.sub(steps, _spread(builder, builder.extract_value(middle, axis)))
            wide = builder.sext(away, _vector_of(_I32))
            square = builder.udiv(builder.mul(wide, wide), _constant(_I32, ROUND))
            total = builder.add(total, builder.trunc(square, _vector_of(_I16)))
        return _bits(builder, builder.icmp_signed("<=", total, _spread(builder, most)))

    triple = types.UniTuple(types.int16, 3)
    return types.uint64(cells, types.int64, triple, types.int16), generate


@intrinsic
def add_shared(
    _context: Any, planes: Any, n_words: Any, words: Any, place: Any, n_groups: Any, sums: Any
) -> Any:
    """Count for each number those of 512 rows that have it and are in a bitmap.

    Args:
        planes: (n_planes * n_words,) uint64, three or more, bit by bit of the rows' numbers.
        n_words: int64.
        words: (n_words,) uint64, of the bitmap.
        place: int64, where the eight words of these rows start.
        n_groups: int64, of eight numbers each.
        sums: (64 n_groups,) uint64, eight parts of each number's count, added to.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = [
            context.make_array(signature.args[place])(context, builder, args[place])
            for place in (0, 2, 5)
        ]
        bits, some, totals = (array.data for array in arrays)
        n_planes = builder.udiv(builder.extract_value(arrays[0].shape, 0), args[1])

        def plane(bit: Any) -> Any:
            start = builder.add(builder.mul(bit, args[1]), args[3])
            return builder.load(_at(builder, bits, start, _WORDS), align=8)

        low = [builder.load(_at(builder, some, args[3], _WORDS), align=8)]
        for bit in (2, 1, 0):
            having = plane(_I64(bit))
            pairs = ((builder.and_(x, builder.not_(having)), builder.and_(x, having)) for x in low)
            low = [half for pair in pairs for half in pair]
        kind = low[0].type
        popcount = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind]), f"llvm.ctpop.v{_WORDS}i64"
        )
        everything = ir.Constant(kind, [2**64 - 1] * _WORDS)
        with cgutils.for_range(builder, args[4]) as group:
            high = cgutils.alloca_once(builder, kind)
            builder.store(everything, high)
            with cgutils.for_range_slice(builder, _I64(3), n_planes, _I64(1)) as (bit, _):
                number = builder.shl(group.index, _I64(3))
                is_set = builder.and_(builder.lshr(number, bit), _I64(1))
                turned = _spread(builder, builder.sub(is_set, _I64(1)), _WORDS)
                left = builder.and_(builder.load(high), builder.xor(plane(bit), turned))
                builder.store(left, high)
            first, left = builder.mul(group.index, _I64(64)), builder.load(high)
            for number, one in enumerate(low):
                target = _at(builder, totals, builder.add(first, _I64(8 * number)), _WORDS)
                shared = builder.call(popcount, [builder.and_(one, left)])
                total = builder.add(builder.load(target, align=8), shared)
                builder.store(total, target, align=8)
        return context.get_dummy_value()

    return types.void(planes, types.int64, words, types.int64, types.int64, sums), generate


@intrinsic
def sixteen_bits(_context: Any, rows: Any, place: Any, words: Any) -> Any:
    """Say which of sixteen rows are in a bitmap, a bit for each.

    Args:
        rows: (n,) int32, of which those from `place` on are asked for.
        place: int64, at most n - 16.
        words: uint64 words of the bitmap.

    Returns:
        int32, bit i for `rows[place + i]`.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        listed, bits = (
            context.make_array(signature.args[number])(context, builder, args[number]).data
            for number in (0, 2)
        )
        row = builder.load(_at(builder, listed, args[1], TOGETHER), align=4)

        def each(number: int) -> Any:
            return ir.Constant(row.type, [number] * TOGETHER)

        halves = builder.bitcast(bits, _I32.as_pointer())  # the lower half of a word comes first
        places = builder.lshr(row, each(5))
        found = ir.Constant(row.type, ir.Undefined)
        for lane in range(TOGETHER):
            half = builder.zext(builder.extract_element(places, _I32(lane)), _I64)
            value = builder.load(builder.gep(halves, [half]), align=4)
            found = builder.insert_element(found, value, _I32(lane))
        bit = builder.and_(builder.lshr(found, builder.and_(row, each(31))), each(1))
        return builder.zext(builder.bitcast(builder.trunc(bit, _LANE_BITS), _I16), _I32)

    return types.int32(rows, types.int64, words), generate
