r"""Random numbers and elementary functions with the same bits on x86-64 and 64-bit ARM.

All random numbers of a run come from one xoshiro256++ stream, which is passed as a tuple of four
words. The loop uses :math:`+,-,\times,/,\sqrt{\ }`, which IEEE 754 specifies to the last bit, and
the exponential and the logarithm of this module, because the results of C libraries differ between
systems. `pu_lib.experiments.reference` implements the random numbers, the exponential and the
logarithm in plain Python.
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

from pu_lib.compiling import compiled

_llvm: Any = cgutils
# Shift counts are uint64, so that shifted words stay uint64.
_R11, _R17, _R19, _R23, _R41, _R45 = (np.uint64(n) for n in (11, 17, 19, 23, 41, 45))
_UNIT = 2.0**-53  # spacing of the draws: the mantissa of a float has 53 bits


@compiled
def uniform(stream: Any) -> Any:
    """Return a xoshiro256++ draw (Blackman and Vigna) from [0, 1) and the advanced stream."""
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
    """Return a compiled function that reinterprets the 64 bits of a number."""

    def reinterpret(typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return intrinsic(reinterpret)


_bits: Callable[[float], int] = _bitcast(types.float64, types.int64)
_float: Callable[[int], float] = _bitcast(types.int64, types.float64)

# 1.5 * 2^52: adding it to a float rounds the float to an integer in the low bits of the sum.
_ROUND = 6755399441055744.0
LOWEST = -708.0
"""The smallest argument of `exponential`: smaller arguments are replaced by this number, the
exponential of which is close to the smallest normal float."""
_BIAS = 1023 << 52  # the bits of 1.0
_WHOLE = 1075 << 52  # the bits of 2^52
# 64 / ln 2, and ln 2 / 64 as a sum of two floats (Cody and Waite). The first has so few bits that
# its product with an integer n is exact, so that x - n ln 2 / 64 loses no digits.
_PER_STEP = 92.33248261689366
_STEP_HIGH, _STEP_LOW = 0.010830424695996044, 2.5310172166650877e-13
_C2, _C3, _C4, _C5 = 1 / 2, 1 / 6, 1 / 24, 1 / 120  # Taylor coefficients of exp


def _binary_powers() -> NDArray[np.int64]:
    """Return the bits of 2^(j/64) minus j << 46, for each j < 64.

    If n = 64 k + j, the sum of entry j and n << 46 is the bits of 2^(n/64): n << 46 adds j << 46 to
    the entry and k to its exponent. The table is computed with square roots, which have the same
    bits on all machines.
    """
    powers, root = np.ones(64), 2.0
    for bit in (32, 16, 8, 4, 2, 1):
        root = float(np.sqrt(root))
        powers[(np.arange(64) & bit) != 0] *= root
    return np.asarray(powers.view(np.int64) - (np.arange(64) << 46))


_POWERS = _binary_powers()


@compiled
def exponential(x: float) -> float:
    """Return the exponential of x <= 0 to a few units in the last place, or e^-708 if x < -708.

    With x = n ln(2)/64 + r and |r| <= ln(2)/128, the result is the Taylor polynomial of degree 5 in
    r times 2^(n/64). The bits of 2^(n/64) are computed from a table and n.
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
    """Generate code that puts numbers of one type in a vector register."""
    register = ir.VectorType(entries[0].type, len(entries))(ir.Undefined)
    for k, entry in enumerate(entries):
        register = builder.insert_element(register, entry, ir.IntType(32)(k))
    return register


def _side_by_side(typing: Any, xs: Any) -> Any:
    """Type and generate `exponentials`, which applies `exponential` to vector registers."""

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
        values = [builder.extract_element(value, ir.IntType(32)(k)) for k in range(xs.count)]
        return context.make_tuple(builder, signature.return_type, values)

    return xs(xs), generate


_exponentials: Any = intrinsic(_side_by_side)


@compiled
def exponentials(xs: tuple[float, ...]) -> tuple[float, ...]:
    """Return the exponentials of several numbers x <= 0.

    The results have the same bits as those of `exponential`; they are computed in parallel in
    vector registers.
    """
    values: tuple[float, ...] = _exponentials(xs)
    return values


@compiled
def int_to_float(n: int) -> float:
    """Return an integer from 0 to 2^52 - 1 as a float.

    The conversion instruction of x86-64 leaves half of its target register unchanged, and so waits
    for an earlier result in this register. Putting the integer in the low bits of 2^52 avoids the
    instruction.
    """
    return _float(n | _WHOLE) - 2.0**52


@compiled
def logarithm(n: float) -> float:
    """Return the logarithm of n >= 1.

    With n = m 2^e, the result is e ln 2 + 2 artanh((m - 1)/(m + 1)), computed by the series of
    artanh.
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
