r"""Unlearning what has been learnt (section 3.4; Theorems 4 and 5, Lemmas 11 and 12).

One state, two actions. From :math:`\pi_0(a_1) = x`, make :math:`n` *forward* updates with
:math:`q = (1, 0)`, then *backward* updates with :math:`q = (0, 1)`. The count is

.. math:: n' = \min\{m \ge 0 : \pi_{n+m}(a_1) \le \pi_0(a_1)\},

with :math:`<` instead of :math:`\le` for *strict* recovery (:math:`n'_s`), and infinity if that
never happens. The weight of update :math:`t = 1, 2, \dots` is :math:`w_t = \eta` (constant),
:math:`w_t = \eta/\sqrt t` (decaying; the bounds write :math:`\eta_1`) or
:math:`w_t = \eta\,c^{t-1}`, with one counter t through both phases.

Counts of the paper's updates are those of exact arithmetic, in the coordinates of
`pu_lib.two_action_dynamics`: rationals for DI with constant or geometric weights, sums of square
roots for DI with decaying weights (`pu_lib.exact.root_sum` settles its ties), Arb balls for the
others, with the precision raised until the sign of every quantity that matters is proved. Any other
registered update is counted in floats, by its own `step`.

The bounds are formulas, which the checks call and the statements print. They hold, for DI, from any
start, for CE and MCE from :math:`x \ge \frac12`, for PG-SM from :math:`x \ge \frac12`; lower bounds
of DI, CE and MCE hold from :math:`x = \frac12`. A name with ``_sharp`` is a bound of this book.

Applicability and issues
------------------------
At most `max_steps` updates are made one by one in a phase. Two counts are known beyond that: DI's
with constant weights, by its theorem, and PG-SM's with constant weights from
:math:`\pi_0(a_1) \ge \frac12`, in blocks of steps (`pu_lib.chapters.unlearning.block_counting`),
for n up to :math:`10^{15}` and weights that are neither below 1/1000 nor huge. Everything else
raises `OutOfReach`, which says what is proved about the count: at once if n alone or a bound on the
way back is too large, else after the steps. Whole numbers decide whether the first update makes an
escort parameter zero, and for :math:`p = 2` whether the second one does. No theorem excludes that a
later one does, except for :math:`p \ge 2` from the uniform start; `count` then raises `Undecided`
or `OutOfReach` instead of returning infinity. The same happens at a tie of PG-ES with p = 1, where
ties are many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import cache, partial
from itertools import compress, islice
from itertools import count as count_from
from typing import Any

import numpy as np
from flint import arb, ctx

from pu_lib.chapters.unlearning.block_counting import far_count, is_near_enough
from pu_lib.claims.formulas import ceil, formula, log1p, sqrt
from pu_lib.exact import Number, Undecided, ball, certified, root_sum, sign
from pu_lib.two_action_dynamics import (
    LARGEST,
    CrossEntropyWalker,
    DirectWalker,
    EscortWalker,
    LinkWalker,
    OutOfReach,
    Setting,
    SoftmaxWalker,
    StepRow,
    StepWalker,
    Walker,
    require_count,
    setting,
)
from pu_lib.updates import Update

__all__ = ["MAX_STEPS", "OutOfReach", "count", "counts", "direct_decaying", "equality_sequence"]
__all__ += ["escape_ratio", "escort_components", "escort_differences", "in_reach", "is_known"]
__all__ += ["linked_count", "path", "proved_range", "recover", "small_step_deficit", "unwalked"]
__all__ += ["walkable", "worst_sequence"]
__all__ += ["bound_ce", "bound_ce_below", "bound_ce_sharp", "bound_decaying_ce"]
__all__ += ["bound_decaying_ce_below", "bound_decaying_ce_sharp", "bound_decaying_di"]
__all__ += ["bound_decaying_di_at_wall", "bound_decaying_di_below", "bound_decaying_di_in_n"]
__all__ += ["bound_decaying_pg", "bound_di", "bound_di_in_eta", "bound_di_printed"]
__all__ += ["bound_lemma_11", "bound_lemma_11_below", "bound_lemma_11_sharp", "bound_lemma_12"]
__all__ += ["bound_lemma_12_below", "bound_lemma_12_sharp", "bound_pg", "bound_pg_sharp"]
__all__ += ["decaying_ce_logarithm", "strict_di"]

MAX_STEPS = 2_000_000
"""The most updates that are made one by one; a few seconds."""

FARTHEST = 10**15
"""The largest n whose count of PG-SM is enclosed in blocks of steps."""

QUICK = 50_000
"""The most updates to make one by one if a theorem gives the same count."""

_BITS = 256
"""Up to this precision the length of numbers hardly makes a step longer."""


# The bounds of Theorem 4


@formula
def bound_pg(n: Any) -> Any:
    """Theorem 4(i): a lower bound for policy gradients."""
    return n


@formula
def bound_pg_sharp(n: Any) -> Any:
    """Theorem 4(i), improved for PG-SM, and for PG-ES with p >= 2 and its exact gradient."""
    return n + 1


@formula
def bound_di_in_eta(eta: Any) -> Any:
    """Theorem 4(ii), without n: an upper bound for DI from the uniform start."""
    return ceil(1 / eta)


@formula
def bound_di_printed(n: Any, eta: Any) -> Any:
    """Theorem 4(ii), as printed: DI's count from the uniform start."""
    return min(n, ceil(1 / eta))


@formula
def bound_di(n: Any, eta: Any, start: Any = Fraction(1, 2)) -> Any:
    """Theorem 4(ii), corrected: DI's count from any start."""
    return min(n, ceil(2 * (1 - start) / eta))


def strict_di(n: int, eta: Fraction, start: Fraction = Fraction(1, 2)) -> int:
    """Return DI's strict count from a start above 0."""
    return min(n, math.floor(2 * (1 - start) / eta)) + 1


@formula
def bound_ce(n: Any, eta: Any) -> Any:
    """Theorem 4(iii), as printed: an upper bound for CE and MCE."""
    return 2 + 1 / eta * log1p(2 * eta * n)


@formula
def bound_ce_sharp(n: Any, eta: Any) -> Any:
    """Theorem 4(iii), improved: a bound on the strict count."""
    if n == 0:
        return 2
    return 2 + 1 / eta * log1p(2 * eta * (n - 1))


@formula
def bound_ce_below(n: Any, eta: Any) -> Any:
    """Theorem 4(iii), from below: a bound for CE and MCE from the uniform start."""
    return 1 / (2 * eta) * log1p(eta * n)


# The bounds of Theorem 5


@formula
def bound_decaying_pg(n: Any) -> Any:
    """Theorem 5(i): a lower bound for policy gradients, n >= 1."""
    return 3 * n - 4 * sqrt(n) + 1


@formula
def bound_decaying_di_in_n(n: Any) -> Any:
    """Theorem 5(ii), first term: an upper bound for DI that does not depend on the weights."""
    return 3 * n + 4 * sqrt(n) + 1


@formula
def bound_decaying_di_at_wall(n: Any, eta: Any) -> Any:
    """Theorem 5(ii), second term: an upper bound for DI that uses that pi(a_1) is at most 1."""
    return (1 / eta + 1) ** 2 + sqrt(n) * (2 + 2 / eta)


def bound_decaying_di(n: int, eta: float) -> Any:
    """Return Theorem 5(ii)'s upper bound for DI, the smaller of its terms."""
    return min(bound_decaying_di_in_n(n), bound_decaying_di_at_wall(n, eta))


def bound_decaying_di_below(n: int, eta: float) -> float:
    r"""Return a lower bound for DI, :math:`2\sqrt n\,v + v^2`, of order :math:`\sqrt n`.

    Here :math:`v = \min\{\sqrt{n+1}-1, \frac1{2\eta_1}\}`.
    """
    weight = min(2 * eta * (math.sqrt(n + 1) - 1), 1.0) / (2 * eta)
    return 2 * math.sqrt(n) * weight + weight**2


@formula
def decaying_ce_logarithm(n: Any, eta: Any) -> Any:
    """Theorem 5(iii), the logarithm L."""
    return log1p(4 * eta * sqrt(n))


@formula
def bound_decaying_ce(n: Any, eta: Any) -> Any:
    """Theorem 5(iii), as printed: an upper bound for CE and MCE."""
    L = decaying_ce_logarithm(n, eta)
    return (4 + L / (2 * eta)) ** 2 + sqrt(n) * (8 + L / eta)


@formula
def bound_decaying_ce_sharp(n: Any, eta: Any) -> Any:
    """Theorem 5(iii), improved: a bound on the strict count."""
    L = decaying_ce_logarithm(n, eta)
    return (2 + L / (2 * eta)) ** 2 + sqrt(n) * (4 + L / eta)


def bound_decaying_ce_below(n: int, eta: float) -> float:
    r"""Return a lower bound for CE and MCE, :math:`2\sqrt n\,v + v^2`.

    Here :math:`v = \frac1{4\eta_1}\log(1 + 2\eta_1(\sqrt{n+1}-1))`: the order is
    :math:`\sqrt n\log n`.
    """
    weight = math.log1p(2 * eta * (math.sqrt(n + 1) - 1)) / (4 * eta)
    return 2 * math.sqrt(n) * weight + weight**2


# Lemmas 11 and 12


@formula
def bound_lemma_11(n: Any, c: Any) -> Any:
    """Lemma 11, as printed."""
    return c + log1p(c * n)


@formula
def bound_lemma_11_sharp(n: Any, c: Any) -> Any:
    """Lemma 11, improved, n >= 1."""
    return c + log1p(c * (n - 1))


@formula
def bound_lemma_11_below(n: Any, c: Any) -> Any:
    """Lemma 11, from below, for the sequence that takes equality."""
    return log1p(c * n)


@formula
def bound_lemma_12(n: Any, c: Any) -> Any:
    """Lemma 12, as printed."""
    return c + log1p(2 * c * sqrt(n))


@formula
def bound_lemma_12_sharp(n: Any, c: Any) -> Any:
    """Lemma 12, improved, n >= 1."""
    return c + log1p(2 * c * (sqrt(n) - 1))


@formula
def bound_lemma_12_below(n: Any, c: Any) -> Any:
    """Lemma 12, from below, for the sequence that takes equality."""
    return log1p(2 * c * (sqrt(n + 1) - 1))


def worst_sequence(n: int, c: float, decay: Callable[[int], float]) -> list[float]:
    r"""Return the largest :math:`X_0, \dots, X_n \ge 0` that the recursion of a lemma allows.

    Of :math:`X_{k+1} \le X_k + c\,r_k e^{-X_k}` the right-hand side is convex in :math:`X_k`, so
    its maximum over :math:`0 \le X_k \le M_k` is taken at an end: :math:`M_{k+1} = \max(c\,r_k,
    M_k + c\,r_k e^{-M_k})` is attained. `decay` maps k to :math:`r_k`: 1 in Lemma 11,
    :math:`(k+1)^{-1/2}` in Lemma 12.
    """
    largest = [0.0]
    for k in range(n):
        step = c * decay(k)
        largest.append(max(step, largest[-1] + step * math.exp(-largest[-1])))
    return largest


def equality_sequence(n: int, c: float, decay: Callable[[int], float]) -> list[float]:
    r"""Return :math:`Y_0, \dots, Y_n`, where the recursion of Lemma 11 or 12 is an equality."""
    terms = [0.0]
    for k in range(n):
        terms.append(terms[-1] + c * decay(k) * math.exp(-terms[-1]))
    return terms


# The count


def count(
    n: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
    strict: bool = False,
    max_steps: int = MAX_STEPS,
) -> int | float:
    """Return the number of backward updates that undo `n` forward ones.

    It is exact for the paper's five updates, and in floating point for any other.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    update : str or Update
        The policy update, or its registered name.
    eta, schedule, p, factor, start
        As for `pu_lib.two_action_dynamics.setting`: the (first) weight, read exactly; constant,
        decaying or growing weights; the escort update's exponent and factor; the first pi(a_1).
    strict : bool
        Count until pi(a_1) < pi_0(a_1) instead of <=.
    max_steps : int
        The most updates to make one by one in each phase; forward a quarter of it for DI with
        weights that are not constant, whose way back is longer.

    Returns
    -------
    int or math.inf
        The count; infinite if no number of updates is enough.

    Raises
    ------
    OutOfReach
        A ValueError: if it would take more than `max_steps` updates and no theorem gives the
        count.
    ValueError
        If an argument is unknown or out of range.
    """
    return counts([n], update, eta, schedule, p, factor, start, strict, max_steps)[0]


def counts(
    ns: Sequence[int],
    update: str | Update = "pg-sm",
    eta: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
    strict: bool = False,
    max_steps: int = MAX_STEPS,
) -> list[int | float]:
    """Return `count` for several n, in their order; the forward updates are made only once."""
    chosen = setting(update, eta, schedule, p, factor, start)
    max_steps = require_count("max_steps", max_steps, 0)
    ns = [require_count("n", n, 0) for n in ns]
    near = [n for n in ns if n <= walkable(chosen, max_steps)]
    if chosen.has_root_weights:
        walked = [certified(partial(direct_decaying, n, chosen, strict)) for n in near]
    else:
        walked = certified(partial(_counts, near, chosen, strict, max_steps))
    known: dict[int, int | float] = dict(zip(near, walked, strict=True))
    return [known[n] if n in known else unwalked(n, chosen, strict, max_steps) for n in ns]


def _counts(ns: Sequence[int], chosen: Setting, strict: bool, max_steps: int) -> list[int | float]:
    if chosen.kind is StepWalker:
        return _counts_in_floats(ns, chosen, strict, max_steps)
    found: dict[int, int | float] = {}
    kills, most = chosen.killing_step(), in_reach(max_steps)
    walker, weights, made = chosen.walker(), chosen.weights(), 0
    for n in sorted(set(ns)):
        if kills <= n:
            found[n] = math.inf
            continue
        if n > most:
            found[n] = unwalked(n, chosen, strict, most)
            continue
        for w in islice(weights, n - made):
            walker.forward(w)
        made = n
        found[n] = recover(copy(walker), n, chosen, strict, max_steps)
    return [found[n] for n in ns]


def _counts_in_floats(
    ns: Sequence[int], chosen: Setting, strict: bool, max_steps: int
) -> list[int | float]:
    """Go back from all n at once: a step of many policies takes little longer than one of one."""
    for n in ns:
        chosen.require_resolved(n)
    walker, weights, made = StepWalker(chosen.update, float(chosen.start)), chosen.weights(), 0
    starts, clocks = [], {}
    for n in sorted(set(ns)):
        for w in islice(weights, n - made):
            walker.forward(w)
        made = n
        starts.append(walker.theta)
        clocks[n] = chosen.weights(n + 1)
    row, goal = StepRow(walker, np.array(starts)), -1 if strict else 0
    found: dict[int, int | float] = dict.fromkeys(clocks, math.inf)
    m = 0
    while clocks:
        back = np.array(row.sides()) <= goal
        ended = back | row.stalled
        if ended.any():
            found |= dict.fromkeys(compress(clocks, back), m)
            clocks = dict(compress(clocks.items(), ~ended))
            row.keep(~ended)
        elif m == max_steps:
            raise _not_recovered(next(iter(clocks)), chosen, max_steps)
        else:
            row.move([False] * len(clocks), np.array([next(clock) for clock in clocks.values()]))
            m += 1
    return [found[n] for n in ns]


def in_reach(max_steps: int) -> int:
    """Return how many steps to make at the present precision: fewer above 256 bits."""
    return max_steps * _BITS // max(_BITS, ctx.prec)


def recover(
    walker: Walker, n: int, chosen: Setting, strict: bool, max_steps: int = MAX_STEPS
) -> int | float:
    """Return the count, given the process after `n` forward updates, which is moved."""
    most = in_reach(max_steps)
    fewest = _fewest(walker, n, chosen)
    if fewest > most:
        if is_known(chosen) and fewest < FARTHEST**2:
            return unwalked(n, chosen, strict, max_steps)
        raise OutOfReach(
            f"{chosen.update.name} takes at least {_written(fewest)} backward updates to undo "
            f"{n} forward ones; at most {most} are walked"
        )
    goal = -1 if strict else 0
    for m, w in enumerate(chosen.weights(n + 1)):
        if walker.side() <= goal:
            return m
        if walker.stuck():
            return math.inf
        if m == most:
            break
        walker.backward(w)
    raise _not_recovered(n, chosen, most)


def _not_recovered(n: int, chosen: Setting, most: int) -> OutOfReach:
    low, high = proved_range(n, chosen)
    return OutOfReach(
        f"the policy has not recovered after {most} backward updates"
        + (f"; at most {high:.6g} are proved" if math.isfinite(high) else "")
        + (f"; at least {low:.6g} are proved" if low > most else "")
    )


def _fewest(walker: Walker, n: int, chosen: Setting) -> arb:
    """Return a proved lower bound on the number of backward updates."""
    weight = walker.weight_left() / ball(chosen.eta)
    fewest = weight
    if chosen.schedule == "geometric" or not weight > 0:
        return arb(0)
    if chosen.schedule == "inverse-sqrt":
        # sum of t^(-1/2) over n < t <= n + m is at most 2 sqrt(n + m) - 2 sqrt(n)
        fewest = (arb(n).sqrt() + weight / 2) ** 2 - n
    return arb(0) if not fewest.is_finite() else fewest.lower()


def _written(number: arb) -> str:
    """Write a large number as a power of ten, or of a power of ten."""
    ten = arb(10).log()
    power = number.log() / ten
    if power < 1e6:
        return f"10^{int(float(power.lower()))}"
    return f"10^(10^{int(float((power.log() / ten).lower()))})"


def is_known(chosen: Setting) -> bool:
    """Return whether the count is known without steps, for every n up to `FARTHEST`.

    That is DI, and PG-SM from one half or above with a weight that is not tiny, both constant.
    """
    if chosen.schedule != "constant":
        return False
    if chosen.kind is DirectWalker:
        return True
    large = chosen.start >= Fraction(1, 2) and chosen.eta >= Fraction(1, 1000)
    return chosen.kind is SoftmaxWalker and large and is_near_enough(chosen)


def walkable(chosen: Setting, max_steps: int) -> int:
    """Return the largest n whose forward updates are made one by one.

    It is small if the count is known without steps, and a quarter of `max_steps` for DI with
    weights that are not constant, whose way back takes three times as long and more.
    """
    if is_known(chosen):
        return min(max_steps, QUICK)
    return max_steps // 4 if chosen.kind is DirectWalker else max_steps


def unwalked(n: int, chosen: Setting, strict: bool, max_steps: int = MAX_STEPS) -> int | float:
    """Return the count by a theorem; raise OutOfReach with what is proved if none gives it."""
    if chosen.killing_step() <= n:
        return math.inf
    if is_known(chosen) and chosen.kind is DirectWalker:
        if not strict:
            return int(bound_di(n, chosen.eta, chosen.start))
        return math.inf if chosen.start == 0 else strict_di(n, chosen.eta, chosen.start)
    if is_known(chosen) and n <= FARTHEST:
        return far_count(n, chosen, strict)
    low, high = proved_range(n, chosen)
    down, up = (Context(4, way).create_decimal_from_float for way in (ROUND_FLOOR, ROUND_CEILING))
    what = f"at least {float(down(low)):.4g}" if low > 0 else ""
    what += f"{' and ' if what else ''}at most {float(up(high)):.4g}" if math.isfinite(high) else ""
    proved = f"proved: n' is {what}" if what else "no bound on n' is proved"
    raise OutOfReach(
        f"undoing n = {n} updates of {chosen.update.name} may take more than the {max_steps} "
        f"steps that are walked; {proved}"
    )


def proved_range(n: int, chosen: Setting) -> tuple[float, float]:
    """Return the lower and the upper bound on n' that the chapter proves; else 0 and infinity.

    The upper bounds hold for strict recovery, too, except those of DI.
    """
    half = Fraction(1, 2)
    low, high = 0.0, math.inf
    if not chosen.has_float_size or chosen.schedule == "geometric":
        return low, high
    size, uniform, decaying = float(chosen.eta), chosen.start == half, chosen.schedule != "constant"
    escort = chosen.kind is EscortWalker and chosen.p >= 2 and chosen.factor == "keep"
    if n > 0 and ((escort and uniform) or (chosen.kind is SoftmaxWalker and chosen.start >= half)):
        low = bound_decaying_pg(n) if decaying else bound_pg_sharp(n)
    if chosen.kind is CrossEntropyWalker and chosen.start >= half:
        high = (bound_decaying_ce_sharp if decaying else bound_ce_sharp)(n, size)
        low = (bound_decaying_ce_below if decaying else bound_ce_below)(n, size) if uniform else 0.0
    if chosen.kind is DirectWalker and decaying:
        high = bound_decaying_di(n, size)
        low = bound_decaying_di_below(n, size) if uniform else 0.0
    if chosen.kind is DirectWalker and not decaying:
        low = high = bound_di(n, chosen.eta, chosen.start)
    return float(low), float(high)


def direct_decaying(n: int, chosen: Setting, strict: bool) -> int | float:
    r"""Return the count of DI with weights :math:`\eta/\sqrt t`, at the present precision.

    Forward, :math:`2(\pi - x)` grows to :math:`E = \min\{\eta\sum_{t\le n} t^{-1/2}, 2(1-x)\}`;
    the count is the least :math:`m` with :math:`\eta\sum_{n<t\le n+m} t^{-1/2} \ge E` (strict:
    :math:`>`). If balls do not decide on which side of :math:`2(1-x)` a sum is, it is tested for
    being equal. The two sums never are: their terms at squares would make harmonic numbers with
    :math:`H_L = 2H_K` and :math:`L \ge K`, but the power of 2 in :math:`H_L` is
    :math:`2^{-\lfloor\log_2 L\rfloor}`, a lower one than in :math:`2H_K`. If the precision does not
    decide a comparison, `Undecided` is raised.
    """
    eta, room = chosen.eta, 2 * (1 - chosen.start)
    if strict and chosen.start == 0:
        return math.inf

    def sign_against_room(value: arb, times: Iterable[int]) -> int:
        try:
            return sign(value)
        except Undecided:
            if root_sum([*((eta, t) for t in times), (-room, 1)]):
                raise
            return 0

    excess, size = arb(0), ball(eta)
    for t in range(1, n + 1):
        excess += size * arb(t).rsqrt()
    clipped = sign_against_room(excess - ball(room), range(1, n + 1)) >= 0
    if clipped:
        excess = ball(room)
    goal = -1 if strict else 0
    for m in count_from(0):
        back = range(n + 1, n + m + 1)
        if (sign_against_room(excess, back) if clipped else sign(excess)) <= goal:
            return m
        excess -= size * arb(n + m + 1).rsqrt()
    raise AssertionError("unreachable: the weights do not sum to a finite number")


def path(
    n: int,
    steps: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
) -> list[float]:
    """Return pi_t(a_1) for t = 0..n+steps: `n` forward updates, then `steps` backward ones."""
    n, steps = require_count("n", n, 0), require_count("steps", steps, 0)
    if n + steps > MAX_STEPS:
        raise ValueError(f"n, steps: more than the {MAX_STEPS} updates that are walked at most")
    chosen = setting(update, eta, schedule, p, factor, start)
    if chosen.eta > LARGEST:
        raise ValueError("eta must be at most 10^300")
    walker = chosen.walker()
    values = [walker.probability()]
    for t, w in enumerate(islice(chosen.weights(), n + steps)):
        # for a figure the nearest rationals are enough
        weight: Any = Fraction(float(w)) if chosen.has_root_weights else w
        (walker.forward if t < n else walker.backward)(weight)
        values.append(walker.probability())
    return values


# Policy gradients in general


def linked_count(
    n: int,
    eta: Number,
    density: Callable[[arb], arb],
    schedule: str = "constant",
    strict: bool = False,
) -> int:
    r"""Return the count for the policy gradient of :math:`\pi(a_1) = F(\theta_1 - \theta_2)`.

    The start is the median. `density` is :math:`F'` on :math:`[0, \infty)`, of and to balls.
    """
    n, chosen = require_count("n", n, 0), setting("pg-sm", eta, schedule)

    def walk() -> int:
        walker = LinkWalker(density)
        for w in islice(chosen.weights(), n):
            walker.forward(w)
        return int(recover(walker, n, chosen, strict))  # it is never stuck

    return certified(walk)


def small_step_deficit(actions: int) -> float:
    r"""Return :math:`\log\frac{K^2}{4(K-1)}`, what K actions gain on n with short steps.

    By the expansion :math:`n' \approx n - \log(g_n/g_0)` as the weight goes to zero, with
    :math:`g = \pi(1-\pi)` at the first action, which grows from :math:`(K-1)/K^2` to at most 1/4.
    Fewer than n updates are enough if this exceeds 1.
    """
    return math.log(actions**2 / (4 * (actions - 1)))


# PG-ES


def escort_components(pi: float, p: float) -> tuple[float, float]:
    r"""Return PG-ES's gradient of :math:`\pi(a_1)` as the proof of Theorem 4(i) prints it.

    That is :math:`\pi^{1-1/p}(1-\pi)` and :math:`-\pi(1-\pi)^{1-1/p}`.
    """
    power = 1.0 - 1.0 / p
    return pi**power * (1.0 - pi), -pi * (1.0 - pi) ** power


@cache
def escort_differences(
    p: Number, factor: str, etas: tuple[str, ...], ns: tuple[int, ...]
) -> np.ndarray:
    """Return n' - n of PG-ES from the uniform start, with shape (len(ns), len(etas))."""
    found = [counts(ns, "pg-es", eta, p=p, factor=factor) for eta in etas]
    return np.subtract(found, ns).T


def escape_ratio(eta: Number, steps: int = 3000) -> tuple[float, float]:
    r"""Return :math:`\kappa_\infty` and the limit of :math:`n'/n` for PG-ES, p = 2, factor dropped.

    From the uniform start (1, 1). :math:`\kappa_k = \eta / (2\|\theta_k\|)` decreases along the
    forward path to :math:`\kappa_\infty`, which is read after `steps` updates. In the end each step
    multiplies the angle by :math:`1 - 2\kappa_\infty` (above 1/2 it changes sign), and on the way
    back by :math:`1 + 2\kappa_\infty`, so that
    :math:`n'/n \to -\log|2\kappa_\infty-1|/\log(2\kappa_\infty+1)`: infinity if
    :math:`\kappa_\infty = \frac12`.
    """
    chosen = setting("pg-es", eta, factor="drop")
    walker = EscortWalker(chosen.start, chosen.p, chosen.factor)
    for w in islice(chosen.weights(), steps):
        walker.forward(w)
    kappa = float(ball(chosen.eta) / (2 * (walker.u1**2 + walker.u2**2).sqrt()))
    if kappa == 0.5:
        return kappa, math.inf
    shrinking = math.log1p(-2 * kappa) if kappa < 0.5 else math.log(2 * kappa - 1)
    return kappa, -shrinking / math.log1p(2 * kappa)
