r"""Exact numbers and certified comparisons.

Comparisons that rounding errors could falsify are made in one of two arithmetics:

- *rationals* (`fractions.Fraction`): every operation is exact. `exact` reads a number as it is
  written: ``"0.3"`` is 3/10.
- *balls* (Arb, through python-flint): an interval :math:`[m - r, m + r]` that provably contains the
  real number. A comparison of balls is true, false, or *undecided* if the intervals overlap.

An undecided comparison is never rounded to an answer: `sign` raises `Undecided`, and `certified`
repeats a computation with twice the precision until every comparison in it is decided:

>>> certified(lambda: sign(ball("0.3") * 10 - ball(2).sqrt() ** 2))
1

Applicability and issues
------------------------
Balls prove that two numbers are equal only if both balls are exact points: at every precision the
sign of :math:`\sqrt 2\,\sqrt 3 - \sqrt 6` is undecided, and `certified` ends with an `Undecided` at
its largest precision. Possible ties must be decided by exact arithmetic first: `root_sum`
decides ties of sums of square roots, and `is_one` decides ties of products of powers.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from math import gcd
from numbers import Integral, Rational
from typing import Any, TypeAlias, TypeVar

from flint import arb, arb_mat, ctx, fmpq, fmpz

from pu_lib.arrays import safe_repr

__all__ = [
    "Number",
    "Undecided",
    "ball",
    "certified",
    "exact",
    "is_one",
    "precision",
    "root_sum",
    "sign",
    "solve",
]

Number: TypeAlias = "int | Fraction | str | float"
"""A rational number: an integer, a fraction, a float, or text such as ``"3/10"``."""

T = TypeVar("T")
_precision_lock = threading.RLock()
_MOST_DIGITS = 4300  # as many as Python reads without an exponent
_EXPONENT = re.compile(r"[eE]([-+]?[0-9_]+)\s*$")


class Undecided(ArithmeticError, ValueError):  # noqa: N818 - an outcome, not an error
    """Raised if the balls do not decide a comparison at the current precision."""


def exact(x: Number, name: str = "the number") -> Fraction:
    """Return `x` as a `Fraction`, or raise a `ValueError` that names the argument `name`.

    A string is a decimal (``"0.3"``, ``"1e-3"``) or a quotient (``"3/10"``). A float is read as the
    shortest decimal that rounds to the float: ``0.3`` is 3/10, not the nearest binary fraction.
    """
    if isinstance(x, str):
        _require_small_exponent(x, name)
    if isinstance(x, (Integral, Rational)):
        return Fraction(int(x)) if isinstance(x, Integral) else Fraction(x)
    try:
        return Fraction(x if isinstance(x, str) else repr(float(x)))
    except (TypeError, ValueError, ZeroDivisionError):
        raise ValueError(
            f"{name}: expected an integer, a fraction or a finite decimal such as '0.3', got "
            f"{safe_repr(x)}."
        ) from None


def _require_small_exponent(text: str, name: str) -> None:
    """Raise a `ValueError` if a decimal has so large an exponent that a fraction of it is huge."""
    exponent = _EXPONENT.search(text)
    if exponent and (len(exponent[1]) > 9 or abs(int(exponent[1])) > _MOST_DIGITS):
        raise ValueError(f"{name}: expected at most {_MOST_DIGITS} digits, got {safe_repr(text)}.")


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the precision of balls within a block.

    The precision of python-flint is global to a process, so other threads wait for the end of the
    block before they enter one. Computations that are to run in parallel need processes.
    """
    with _precision_lock, ctx.workprec(bits):
        yield


def ball(x: Number | arb) -> arb:
    """Return a ball, at the current precision, that contains the exact value of `x`."""
    if isinstance(x, arb):
        return x
    value = exact(x)
    return arb(fmpq(value.numerator, value.denominator))


def sign(x: arb) -> int:
    """Return the proved sign of `x`: -1, 0 or 1.

    Raises `Undecided` if `x` is a ball that contains zero and other numbers.
    """
    if x > 0:
        return 1
    if x < 0:
        return -1
    if x.is_zero():
        return 0
    raise Undecided(f"the sign of {x} is not decided at {ctx.prec} bits")


def solve(matrix: Sequence[Sequence[Any]], right: Sequence[Any]) -> list[Any]:
    r"""Solve a linear system by elimination in the arithmetic of floats, rationals or balls.

    `matrix`, of shape (n, n), must be diagonally dominant by rows or by columns, as
    :math:`I - \gamma P` and its transpose are, so that no pivoting is needed.
    """
    if isinstance(right[0], arb):  # Arb's own solver is compiled
        solution = arb_mat([list(row) for row in matrix]).solve(arb_mat([[x] for x in right]))
        return [solution[x, 0] for x in range(len(right))]
    rows = [list(row) for row in matrix]
    v = list(right)
    n = len(v)
    for x in range(n):
        for y in range(x + 1, n):
            factor = rows[y][x] / rows[x][x]
            for z in range(x + 1, n):
                rows[y][z] = rows[y][z] - factor * rows[x][z]
            v[y] = v[y] - factor * v[x]
    for x in reversed(range(n)):
        for y in range(x + 1, n):
            v[x] = v[x] - rows[x][y] * v[y]
        v[x] = v[x] / rows[x][x]
    return v


def certified(compute: Callable[[], T], bits: int = 128, max_bits: int = 1 << 14) -> T:
    """Return the result of `compute` at the first precision that decides all its comparisons.

    The precision starts at `bits` and doubles after each `Undecided`. If `max_bits` is not enough,
    `Undecided` is raised; the most likely reason is an exact tie. `compute` must create its
    balls from exact numbers at every call, because an existing ball does not become narrower.
    """
    while True:
        with precision(bits):
            try:
                return compute()
            except Undecided as undecided:
                if 2 * bits > max_bits:
                    raise Undecided(
                        f"{undecided}: two of the numbers compared are equal, or closer than "
                        "any precision tried can tell"
                    ) from undecided
        bits *= 2


def _square_free(n: int) -> tuple[int, int]:
    """Return (k, r) with n = k^2 r and r square-free."""
    k = r = 1
    for prime, power in fmpz(n).factor():
        k *= int(prime) ** (power // 2)
        r *= int(prime) ** (power % 2)
    return k, r


def is_one(*powers: tuple[Fraction, int]) -> bool:
    """Return whether a product of powers of positive rational numbers is exactly 1.

    Arguments are pairs of a number and its exponent. Numerators and denominators are split by their
    common divisors until all factors are pairwise coprime; the product is then 1 if and only if
    every exponent is 0. No power is computed, so exponents may have any size.
    """
    left = [(x.numerator, e) for x, e in powers] + [(x.denominator, -e) for x, e in powers]
    coprime: list[tuple[int, int]] = []
    while left:
        m, e = left.pop()
        for i, (n, f) in enumerate(coprime):
            common = gcd(m, n)
            if common > 1:  # m^e n^f = (m/c)^e (n/c)^f c^(e + f)
                del coprime[i]
                left += [(m // common, e), (n // common, f), (common, e + f)]
                break
        else:
            if m > 1:
                coprime.append((m, e))
    return all(e == 0 for _, e in coprime)


def root_sum(terms: Iterable[tuple[Fraction, int]]) -> Mapping[int, Fraction]:
    r"""Return the normal form of :math:`\sum_i c_i / \sqrt{t_i}`, with rational :math:`c_i`.

    The pairs :math:`(c_i, t_i)` have integers :math:`t_i \ge 1`. The result is a dict from each
    square-free :math:`r` to the coefficient of :math:`\sqrt r`, without coefficients of zero.
    Square roots of distinct square-free integers are linearly independent over the rationals
    (Besicovitch, 1940), so the sum is zero if and only if the result is empty.
    """
    coefficients: dict[int, Fraction] = defaultdict(Fraction)
    for coefficient, t in terms:
        k, r = _square_free(t)  # 1 / sqrt(k^2 r) = sqrt(r) / (k r)
        coefficients[r] += coefficient / (k * r)
    return {r: c for r, c in coefficients.items() if c}
