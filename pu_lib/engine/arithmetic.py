r"""Random numbers and elementary functions with the same bits on x86-64 and 64-bit ARM.

All randomness of a run is one xoshiro256++ stream, carried along as a tuple of four words. Beyond
:math:`+,-,\times,/,\sqrt{\ }`, which IEEE 754 fixes, the loop uses the exponential and the
logarithm below. `pu_lib.empirical.reference` has all three a second time, for reading.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from pu_lib.engine.compiling import compiled

__all__ = ["LOWEST", "exponential", "exponentials", "logarithm", "uniform", "vector", "whole"]

_llvm: Any = cgutils
_R11, _R17, _R19, _R23, _R41, _R45 = (np.uint64(n) for n in (11, 17, 19, 23, 41, 45))
_UNIT = 2.0**-53


@compiled
def uniform(stream: Any) -> Any:
    """Draw from [0, 1) by xoshiro256++ (Blackman and Vigna); return the draw and the stream."""
    x0, x1, x2, x3 = stream
    total = x0 + x3
    word = ((total << _R23) | (total >> _R41)) + x0
    shifted = x1 << _R17
    x2 ^= x0
    x3 ^= x1
    x1 ^= x2
    x0 ^= x3
    x2 ^= shifted
    x3 = (x3 << _R45) | (x3 >> _R19)
    return np.float64(np.int64(word >> _R11)) * _UNIT, (x0, x1, x2, x3)


def _bitcast(source: Any, target: Any) -> Any:
    """Return a compiled function that reinterprets 64 bits."""

    def reinterpret(typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return intrinsic(reinterpret)


_bits: Callable[[float], int] = _bitcast(types.float64, types.int64)
_float: Callable[[int], float] = _bitcast(types.int64, types.float64)

# Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits of the sum.
_ROUND = 6755399441055744.0
LOWEST = -708.0
"""Exponentials are those of this number where they would be less."""
_BIAS = 1023 << 52
_WHOLE = 1075 << 52  # the bits of 2^52
# 64 / ln 2, and ln 2 / 64 in two parts, the first short enough for exact products.
_PER_STEP = 92.33248261689366
_STEP_HIGH, _STEP_LOW = 0.010830424695996044, 2.5310172166650877e-13
_C2, _C3, _C4, _C5 = 1 / 2, 1 / 6, 1 / 24, 1 / 120


def _binary_powers() -> NDArray[np.int64]:
    """Return the bits of 2^(j/64) for j < 64, less those that n << 46 adds for n = 64 k + j.

    The sum is then 2^(n/64). Square roots have the same bits everywhere.
    """
    powers, root = np.ones(64), 2.0
    for bit in (32, 16, 8, 4, 2, 1):
        root = float(np.sqrt(root))
        powers[(np.arange(64) & bit) != 0] *= root
    return np.asarray(powers.view(np.int64) - (np.arange(64) << 46))


_POWERS = _binary_powers()


@compiled
def exponential(x: float) -> float:
    """Return the exponential of x <= 0 to a few units in the last place; e^-708 if x is lower.

    With x = n ln(2)/64 + r and |r| <= ln(2)/128: the Taylor polynomial of degree 5 in r, times
    2^(n/64), whose bits are put together from a table and n.
    """
    if x < LOWEST:
        x = LOWEST
    rounded = x * _PER_STEP + _ROUND
    n = _bits(rounded)
    count = rounded - _ROUND
    r = (x - count * _STEP_HIGH) - count * _STEP_LOW
    r2 = r * r
    value = (1.0 + r) + ((_C2 + _C3 * r) + (_C4 + _C5 * r) * r2) * r2
    return value * _float(_POWERS[n & 63] + (n << 46))


def vector(builder: Any, entries: Any) -> Any:
    """Generate a vector of the processor.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
        Where code is generated.
    entries : sequence of llvmlite.ir.Value
        Numbers of one type.

    Returns
    -------
    llvmlite.ir.Value
        The vector of them.
    """
    found = ir.VectorType(entries[0].type, len(entries))(ir.Undefined)
    for k, entry in enumerate(entries):
        found = builder.insert_element(found, entry, ir.IntType(32)(k))
    return found


def _side_by_side(typing: Any, xs: Any) -> Any:
    """Type and generate `exponentials`: the steps of `exponential` on a vector of the processor."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        floats, integers = (ir.VectorType(t, xs.count) for t in (ir.DoubleType(), ir.IntType(64)))
        multiply, add, subtract = builder.fmul, builder.fadd, builder.fsub

        def each(value: float, kind: Any = floats) -> Any:
            return ir.Constant(kind, [value] * xs.count)

        x = vector(builder, _llvm.unpack_tuple(builder, arguments[0]))
        low = builder.fcmp_ordered("<", x, each(LOWEST))
        x = builder.select(low, each(LOWEST), x)
        rounded = add(multiply(x, each(_PER_STEP)), each(_ROUND))
        n = builder.bitcast(rounded, integers)
        count = subtract(rounded, each(_ROUND))
        r = subtract(x, multiply(count, each(_STEP_HIGH)))
        r = subtract(r, multiply(count, each(_STEP_LOW)))
        r2 = multiply(r, r)
        upper = multiply(add(each(_C4), multiply(each(_C5), r)), r2)
        series = multiply(add(add(each(_C2), multiply(each(_C3), r)), upper), r2)
        value = add(add(each(1.0), r), series)
        places = builder.and_(n, each(63, integers))
        kind = ir.ArrayType(ir.IntType(64), len(_POWERS))
        table = _llvm.global_constant(
            builder.module, "binary_powers", ir.Constant(kind, _POWERS.tolist())
        )
        looked_up = []
        for k in range(xs.count):
            place = builder.extract_element(places, ir.IntType(32)(k))
            looked_up.append(builder.load(_llvm.gep_inbounds(builder, table, 0, place)))
        scale = builder.add(vector(builder, looked_up), builder.shl(n, each(46, integers)))
        value = multiply(value, builder.bitcast(scale, floats))
        found = [builder.extract_element(value, ir.IntType(32)(k)) for k in range(xs.count)]
        return context.make_tuple(builder, signature.return_type, found)

    return xs(xs), generate


_exponentials: Any = intrinsic(_side_by_side)


@compiled
def exponentials(xs: tuple[float, ...]) -> tuple[float, ...]:
    """Return what `exponential` returns of each of several numbers, computed side by side.

    Parameters
    ----------
    xs : tuple of float
        Numbers that are not positive.

    Returns
    -------
    tuple of float
        Their exponentials.
    """
    found: tuple[float, ...] = _exponentials(xs)
    return found


@compiled
def whole(n: int) -> float:
    """Return an integer from 0 to 2^52 - 1 as a float.

    The instruction of x86-64 that does this writes half a register, and waits for what was computed
    in it before.
    """
    return _float(n | _WHOLE) - 2.0**52


@compiled
def logarithm(n: float) -> float:
    """Return the logarithm of a number from 1 up.

    It is the exponent times ln 2 plus 2 artanh((m - 1) / (m + 1)).
    """
    bits = _bits(n)
    exponent = (bits >> 52) - 1023
    mantissa = _float((bits & ((1 << 52) - 1)) | _BIAS)
    if mantissa > 1.4142135623730951:
        mantissa *= 0.5
        exponent += 1
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = 0.0
    for power in range(21, 0, -2):
        series = series * square + 1.0 / power
    return exponent * 0.6931471805599453 + 2.0 * ratio * series
