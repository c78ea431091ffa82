r"""Exact numbers and certified comparisons.

Two kinds of arithmetic decide what a rounding error could get wrong:

- *rationals* (`fractions.Fraction`), where every operation is exact. `exact` reads a number as
  what it says: ``"0.3"`` is 3/10.
- *balls* (Arb, through python-flint): an interval :math:`[m - r, m + r]` that provably contains the
  real number meant. A comparison of balls has three outcomes: true, false, and *undecided* when the
  intervals overlap.

Nothing here rounds an undecided comparison to an answer. `sign` raises `Undecided`, and `certified`
runs a computation again with twice the precision until every comparison in it is decided:

>>> certified(lambda: sign(ball("0.3") * 10 - ball(2).sqrt() ** 2))
1

Applicability and issues
------------------------
Two equal numbers are told apart from two close ones only when both balls are exact points: no
precision proves that :math:`\sqrt 2\,\sqrt 3 - \sqrt 6` is zero. A computation that meets such a
tie ends, after the largest precision, with an `Undecided` that says so; ties that can occur have to
be settled by exact arithmetic first (see `root_sum`, for sums of square roots, and `is_one`,
for products of powers).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd
from numbers import Integral, Rational
from typing import Any, TypeAlias, TypeVar

from flint import arb, arb_mat, ctx, fmpq, fmpz

__all__ = [
    "Number",
    "Undecided",
    "ball",
    "certified",
    "exact",
    "is_one",
    "root_sum",
    "sign",
    "solve",
]

Number: TypeAlias = "int | Fraction | str | float"
"""A rational number, written as an integer, a fraction, a float or text such as ``"3/10"``."""

T = TypeVar("T")


class Undecided(ArithmeticError, ValueError):  # noqa: N818 - a state of knowledge
    """A comparison that the balls at hand, at this precision, do not decide."""


def exact(x: Number, name: str = "the number") -> Fraction:
    """Return `x` as the rational number it says.

    Parameters
    ----------
    x : int, Fraction, str or float
        A string may be a decimal (``"0.3"``, ``"1e-3"``) or a quotient (``"3/10"``). A float means
        the shortest decimal that prints it: ``0.3`` is 3/10, not the nearest binary fraction.
    name : str
        What the number is, for the error message.

    Returns
    -------
    Fraction
        The same number, in lowest terms.

    Raises
    ------
    ValueError
        If it is neither a number nor the text of one, or is infinite or not a number.
    """
    if isinstance(x, (Integral, Rational)):
        return Fraction(int(x)) if isinstance(x, Integral) else Fraction(x)
    try:
        return Fraction(x if isinstance(x, str) else repr(float(x)))
    except (TypeError, ValueError, ZeroDivisionError):
        raise ValueError(
            f"{name} must be an integer, a fraction or a finite decimal such as '0.3'; it is {x!r}"
        ) from None


def ball(x: Number | arb) -> arb:
    """Return a ball, at the current precision, that contains the exact value of `x`."""
    if isinstance(x, arb):
        return x
    value = exact(x)
    return arb(fmpq(value.numerator, value.denominator))


def sign(x: arb) -> int:
    """Return -1, 0 or 1, the proved sign of `x`.

    Raises
    ------
    Undecided
        If the ball contains zero without being exactly zero.
    """
    if x > 0:
        return 1
    if x < 0:
        return -1
    if x.is_zero():
        return 0
    raise Undecided(f"the sign of {x} is not decided at {ctx.prec} bits")


def solve(matrix: Sequence[Sequence[Any]], right: Sequence[Any]) -> list[Any]:
    r"""Solve a linear system by elimination, in floats, rationals or balls.

    Parameters
    ----------
    matrix : sequence of sequences of numbers, shape (n, n)
        Diagonally dominant by rows or columns, as :math:`I - \gamma P` and its transpose are: no
        pivoting is needed.
    right : sequence of numbers, shape (n,)
        The right side.

    Returns
    -------
    list of numbers, length n
        The solution, in the arithmetic of the arguments.
    """
    if isinstance(right[0], arb):  # the same elimination, in C
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
    """Run `compute` with more and more precision until all its comparisons are decided.

    Parameters
    ----------
    compute : callable
        Takes no argument and builds its balls anew from exact numbers each time it is called.
    bits, max_bits : int
        The first precision, doubled after every `Undecided`, and the largest one to try.

    Returns
    -------
    object
        What `compute` returns, at the first precision that decides everything.

    Raises
    ------
    Undecided
        If a comparison is still undecided at `max_bits`: most likely an exact tie.
    """
    while True:
        with ctx.workprec(bits):
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
    """Return (k, r) with n = k^2 r and r free of squares."""
    k = r = 1
    for prime, power in fmpz(n).factor():
        k *= int(prime) ** (power // 2)
        r *= int(prime) ** (power % 2)
    return k, r


def is_one(*powers: tuple[Fraction, int]) -> bool:
    """Decide whether a product of powers of positive rational numbers is 1, however large they are.

    Numerators and denominators are split by their common divisors until no two factors share any:
    the product is 1 if and only if each of these then has the exponent 0.

    Parameters
    ----------
    *powers : (Fraction, int)
        The numbers and their exponents.

    Returns
    -------
    bool
        Whether the product is exactly 1.
    """
    left = [(x.numerator, e) for x, e in powers] + [(x.denominator, -e) for x, e in powers]
    coprime: list[tuple[int, int]] = []
    while left:
        m, e = left.pop()
        for i, (n, f) in enumerate(coprime):
            common = gcd(m, n)
            if common > 1:
                del coprime[i]
                left += [(m // common, e), (n // common, f), (common, e + f)]
                break
        else:
            if m > 1:
                coprime.append((m, e))
    return all(e == 0 for _, e in coprime)


def root_sum(terms: Iterable[tuple[Fraction, int]]) -> Mapping[int, Fraction]:
    r"""Return the normal form of :math:`\sum_i c_i / \sqrt{t_i}` with rational :math:`c_i`.

    The square roots of distinct square-free integers are linearly independent over the rationals
    (Besicovitch, 1940), so the sum is zero if and only if the normal form is empty.

    Parameters
    ----------
    terms : iterable of (Fraction, int)
        The pairs :math:`(c_i, t_i)`, with :math:`t_i \ge 1`.

    Returns
    -------
    mapping
        From square-free r to the non-zero rational coefficient of :math:`\sqrt r`.
    """
    coefficients: dict[int, Fraction] = defaultdict(Fraction)
    for coefficient, t in terms:
        k, r = _square_free(t)
        coefficients[r] += coefficient / (k * r)
    return {r: c for r, c in coefficients.items() if c}
