r"""The bounds of the chapter on unlearning: as the paper prints them, and as they are proved.

Notation of `pu_lib.chapters.unlearning.quantities`: n updates are undone by n' opposite ones, strictly by
:math:`n'_s`; :math:`\eta` is the constant weight, :math:`\eta_1` the first of the decaying weights
:math:`\eta_1/\sqrt t`; x is the first :math:`\pi(a_1)`.

=========================  =====================================  ========================
bound                      on                                     source
=========================  =====================================  ========================
`bound_di`, `strict_di`    DI, exact                              Theorem 4(ii), any start
`bound_ce`                 CE and MCE, upper, x >= 1/2            Theorem 4(iii)
`bound_ce_sharp`           the same, also strict                  this book
`bound_ce_below`           CE and MCE, lower, x = 1/2             this book
`bound_decaying_pg`        PG, decaying weights, lower            Theorem 5(i)
`bound_decaying_di`        DI, decaying weights, upper            Theorem 5(ii)
`bound_decaying_ce`        CE and MCE, decaying, upper, x >= 1/2  Theorem 5(iii)
`bound_decaying_ce_sharp`  the same                               this book
`bound_decaying_*_below`   all but PG, decaying, lower, x = 1/2   this book
`bound_lemma_11`, `_12`    the sequences of Lemmas 11 and 12      Lemmas 11 and 12
=========================  =====================================  ========================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from pu_lib.arrays import number

__all__ = [
    "bound_ce",
    "bound_ce_below",
    "bound_ce_sharp",
    "bound_decaying_ce",
    "bound_decaying_ce_below",
    "bound_decaying_ce_sharp",
    "bound_decaying_di",
    "bound_decaying_di_below",
    "bound_decaying_pg",
    "bound_di",
    "bound_lemma_11",
    "bound_lemma_11_sharp",
    "bound_lemma_12",
    "bound_lemma_12_sharp",
    "equality_sequence",
    "escort_components",
    "small_step_deficit",
    "strict_di",
    "worst_sequence",
]


def _read(n: float, size: float, name: str) -> tuple[float, float]:
    """Read the arguments of a bound; beyond these ranges it could not be computed in floats."""
    return number("n", n, low=0.0, high=1e300), number(name, size, low=1e-150, high=1e150)


def bound_ce(n: int, eta: float) -> float:
    r"""Return Theorem 4(iii)'s bound, :math:`2 + \frac1\eta\log(1 + 2\eta n)`.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : float
        The constant weight, positive.

    Returns
    -------
    float
        An upper bound of n' for CE and MCE, from one half or above.
    """
    times, eta = _read(n, eta, "eta")
    return 2 + math.log1p(2 * eta * times) / eta


def bound_ce_sharp(n: int, eta: float) -> float:
    r"""Return :math:`2 + \frac1\eta\log(1 + 2\eta(n-1))`, which also bounds strict recovery.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : float
        The constant weight, positive.

    Returns
    -------
    float
        An upper bound of n' and of the strict count, for CE and MCE from one half or above.
    """
    times, eta = _read(n, eta, "eta")
    return 2 + math.log1p(2 * eta * max(times - 1, 0)) / eta


def bound_ce_below(n: int, eta: float) -> float:
    r"""Return :math:`\frac1{2\eta}\log(1+\eta n)`, which CE needs at least from one half.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : float
        The constant weight, positive.

    Returns
    -------
    float
        A lower bound of n' for CE and MCE.
    """
    times, eta = _read(n, eta, "eta")
    return math.log1p(eta * times) / (2 * eta)


def bound_di(n: int, eta: Fraction, start: Fraction = Fraction(1, 2)) -> int:
    r"""Return DI's count :math:`\min\{n, \lceil 2(1-x)/\eta\rceil\}`; at 1/2, Theorem 4(ii)'s.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : Fraction
        The constant weight, positive.
    start : Fraction
        The first probability x of :math:`a_1`, in [0, 1].

    Returns
    -------
    int
        The number of backward updates that DI needs.
    """
    return min(n, math.ceil(2 * (1 - start) / eta))


def strict_di(n: int, eta: Fraction, start: Fraction = Fraction(1, 2)) -> int:
    r"""Return DI's strict count :math:`\min\{n, \lfloor 2(1-x)/\eta\rfloor\} + 1`, for x > 0.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : Fraction
        The constant weight, positive.
    start : Fraction
        The first probability x of :math:`a_1`, in (0, 1].

    Returns
    -------
    int
        The number of backward updates after which it is below x.
    """
    return min(n, math.floor(2 * (1 - start) / eta)) + 1


def bound_decaying_pg(n: int) -> float:
    r"""Return Theorem 5(i)'s lower bound, :math:`3n - 4\sqrt n + 1`."""
    times, _ = _read(n, 1.0, "")
    return 3 * times - 4 * math.sqrt(times) + 1


def bound_decaying_di(n: int, eta: float) -> float:
    r"""Return Theorem 5(ii)'s bound.

    It is the smaller one of :math:`3n + 4\sqrt n + 1` and :math:`(\frac1{\eta_1} + 1)^2 + \sqrt
    n\,(2 + \frac2{\eta_1})`.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : float
        The first weight :math:`\eta_1`, positive.

    Returns
    -------
    float
        An upper bound of n' for DI with decaying weights.
    """
    times, eta = _read(n, eta, "eta")
    root = math.sqrt(times)
    return min(3 * times + 4 * root + 1, (1 / eta + 1) * (1 / eta + 1) + root * (2 + 2 / eta))


def bound_decaying_di_below(n: int, eta: float) -> float:
    r"""Return a lower bound for DI with decaying weights, of order :math:`\sqrt n`.

    That is :math:`2\sqrt n\,\frac E{2\eta_1} + (\frac E{2\eta_1})^2` with
    :math:`E = \min\{2\eta_1(\sqrt{n+1}-1), 1\}`, from the uniform start.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : float
        The first weight :math:`\eta_1`, positive.

    Returns
    -------
    float
        A lower bound of n' for DI with decaying weights.
    """
    times, eta = _read(n, eta, "eta")
    weight = min(2 * eta * (math.sqrt(times + 1) - 1), 1.0) / (2 * eta)
    return 2 * math.sqrt(times) * weight + weight**2


def bound_decaying_ce(n: int, eta: float) -> float:
    r"""Return Theorem 5(iii)'s bound, with :math:`L = \log(1 + 4\eta_1\sqrt n)`.

    It is :math:`(4 + \frac L{2\eta_1})^2 + \sqrt n\,(8 + \frac L{\eta_1})`.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : float
        The first weight :math:`\eta_1`, positive.

    Returns
    -------
    float
        An upper bound of n' for CE and MCE with decaying weights, from one half or above.
    """
    return _decaying_ce(n, eta, constant=4)


def bound_decaying_ce_sharp(n: int, eta: float) -> float:
    r"""Return Theorem 5(iii)'s bound with 2 and 4 in place of 4 and 8.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : float
        The first weight :math:`\eta_1`, positive.

    Returns
    -------
    float
        An upper bound of n' for CE and MCE with decaying weights, from one half or above.
    """
    return _decaying_ce(n, eta, constant=2)


def _decaying_ce(n: int, eta: float, constant: int) -> float:
    r"""Return :math:`x^2 + 2\sqrt n\,x` with :math:`x = c + L/(2\eta_1)` and the constant c."""
    times, eta = _read(n, eta, "eta")
    root = math.sqrt(times)
    part = constant + math.log1p(4 * eta * root) / (2 * eta)
    return part**2 + 2 * root * part


def bound_decaying_ce_below(n: int, eta: float) -> float:
    r"""Return a lower bound for CE with decaying weights, of order :math:`\sqrt n\log n`.

    That is :math:`2\sqrt n\,v + v^2` with
    :math:`v = \frac1{4\eta_1}\log(1 + 2\eta_1(\sqrt{n+1}-1))`, from the uniform start.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    eta : float
        The first weight :math:`\eta_1`, positive.

    Returns
    -------
    float
        A lower bound of n' for CE and MCE with decaying weights.
    """
    times, eta = _read(n, eta, "eta")
    weight = math.log1p(2 * eta * (math.sqrt(times + 1) - 1)) / (4 * eta)
    return 2 * math.sqrt(times) * weight + weight**2


def bound_lemma_11(n: int, c: float) -> float:
    r"""Return :math:`c + \log(1 + cn)`, Lemma 11's bound.

    Parameters
    ----------
    n : int
        The index of the term, at least 0.
    c : float
        The constant of the recursion, positive.

    Returns
    -------
    float
        An upper bound of the n-th term.
    """
    times, c = _read(n, c, "c")
    return c + math.log1p(c * times)


def bound_lemma_11_sharp(n: int, c: float) -> float:
    r"""Return :math:`c + \log(1 + c(n-1))`, Lemma 11's bound made sharper.

    Parameters
    ----------
    n : int
        The index of the term, at least 1.
    c : float
        The constant of the recursion, positive.

    Returns
    -------
    float
        An upper bound of the n-th term.
    """
    times, c = _read(n, c, "c")
    return c + math.log1p(c * (times - 1))


def bound_lemma_12(n: int, c: float) -> float:
    r"""Return :math:`c + \log(1 + 2c\sqrt n)`, Lemma 12's bound.

    Parameters
    ----------
    n : int
        The index of the term, at least 0.
    c : float
        The constant of the recursion, positive.

    Returns
    -------
    float
        An upper bound of the n-th term.
    """
    times, c = _read(n, c, "c")
    return c + math.log1p(2 * c * math.sqrt(times))


def bound_lemma_12_sharp(n: int, c: float) -> float:
    r"""Return :math:`c + \log(1 - 2c + 2c\sqrt n)`, Lemma 12's bound made sharper.

    Parameters
    ----------
    n : int
        The index of the term, at least 1.
    c : float
        The constant of the recursion, positive.

    Returns
    -------
    float
        An upper bound of the n-th term.
    """
    times, c = _read(n, c, "c")
    return c + math.log1p(2 * c * (math.sqrt(times) - 1))


def worst_sequence(n: int, c: float, decay: Callable[[int], float]) -> list[float]:
    r"""Return the largest :math:`X_0, \dots, X_n \ge 0` that the recursion of a lemma allows.

    Of :math:`X_{k+1} \le X_k + c\,r_k e^{-X_k}` the right-hand side is convex in :math:`X_k`, so
    its maximum over :math:`0 \le X_k \le M_k` is taken at an end: :math:`M_{k+1} = \max(c\,r_k,
    M_k + c\,r_k e^{-M_k})` is attained.

    Parameters
    ----------
    n : int
        The last index.
    c : float
        The constant, positive.
    decay : callable
        k to r_k: 1 in Lemma 11, (k + 1)^(-1/2) in Lemma 12.

    Returns
    -------
    list of float
        n + 1 terms.
    """
    largest = [0.0]
    for k in range(n):
        step = c * decay(k)
        largest.append(max(step, largest[-1] + step * math.exp(-largest[-1])))
    return largest


def equality_sequence(n: int, c: float, decay: Callable[[int], float]) -> list[float]:
    r"""Return :math:`Y_0, \dots, Y_n`, where the recursion of Lemma 11 or 12 is an equality.

    Parameters
    ----------
    n, c, decay
        As for `worst_sequence`.

    Returns
    -------
    list of float
        n + 1 terms.
    """
    terms = [0.0]
    for k in range(n):
        terms.append(terms[-1] + c * decay(k) * math.exp(-terms[-1]))
    return terms


def escort_components(pi: float, p: float) -> tuple[float, float]:
    r"""Return PG-ES's gradient of :math:`\pi(a_1)` as the proof of Theorem 4(i) prints it.

    Parameters
    ----------
    pi : float
        :math:`\pi(a_1)`, in [0, 1].
    p : float
        The escort exponent, at least 1.

    Returns
    -------
    pair of float
        :math:`\pi^{1-1/p}(1-\pi)` and :math:`-\pi(1-\pi)^{1-1/p}`.
    """
    power = 1.0 - 1.0 / p
    return pi**power * (1.0 - pi), -pi * (1.0 - pi) ** power


def small_step_deficit(actions: int) -> float:
    r"""Return :math:`\log\frac{K^2}{4(K-1)}`, what K actions gain on n with short steps.

    By the expansion :math:`n' \approx n - \log(g_n/g_0)` as the weight goes to zero, with
    :math:`g = \pi(1-\pi)` at the first action, which grows from :math:`(K-1)/K^2` to at most 1/4.
    Fewer than n updates are enough where this exceeds 1.

    Parameters
    ----------
    actions : int
        The number K of actions, at least 2; the policy starts uniform.

    Returns
    -------
    float
        The deficit, zero for two actions and growing with K.
    """
    return math.log(actions**2 / (4 * (actions - 1)))
