r"""Unlearning what has been learnt (paper, section 3.4; Theorems 4 and 5, Lemmas 11 and 12).

One state, two actions. From :math:`\pi_0(a_1) = x`, make :math:`n` *forward* updates with
:math:`q = (1, 0)`, then *backward* updates with :math:`q = (0, 1)`. The count is

.. math:: n' = \min\{m \ge 0 : \pi_{n+m}(a_1) \le \pi_0(a_1)\},

with :math:`<` instead of :math:`\le` for *strict* recovery (:math:`n'_s`), and infinity if that
never happens. The weight of update :math:`t = 1, 2, \dots` is :math:`w_t = \eta` (constant) or
:math:`w_t = \eta/\sqrt t`, or :math:`w_t = \eta\,c^{t-1}` (one counter through both phases).

Counts of the paper's updates are those of exact arithmetic, in the coordinates of
`pu_lib.two_action_dynamics`: rationals for DI with constant or geometric weights, sums of square roots
for DI with decaying weights (`pu_lib.exact.root_sum` settles its ties), Arb balls for the others,
with the precision raised until the sign of every quantity that matters is proved. Any other
registered update is counted in floats, by its own `step`.

Applicability and issues
------------------------
No more than `max_steps` updates are walked in a phase. Two counts are known beyond that: DI's with
constant weights, by its theorem, and PG-SM's with constant weights from
:math:`\pi_0(a_1) \ge \frac12`, in blocks of steps (`pu_lib.chapters.unlearning.block_counting`), for n up to
:math:`10^{15}` and weights that are neither below 1/1000 nor huge. Everything else ends in an
`OutOfReach` that says what is proved of it: at once if n alone is too large or a bound on the way
back is, else after the walk. An escort parameter that the first update makes zero is found by whole
numbers, for :math:`p = 2` one that the second does, too. No theorem excludes that a later one does,
but for :math:`p \ge 2` from the uniform start; then `count` ends with `Undecided` or `OutOfReach`
instead of with infinity. So it does at a tie of PG-ES with p = 1, where ties are many.
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
from pu_lib.chapters.unlearning.bounds import (
    bound_ce_below,
    bound_ce_sharp,
    bound_decaying_ce_below,
    bound_decaying_ce_sharp,
    bound_decaying_di,
    bound_decaying_di_below,
    bound_decaying_pg,
    bound_di,
    strict_di,
)
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

__all__ = [
    "MAX_STEPS",
    "OutOfReach",
    "count",
    "counts",
    "direct_decaying",
    "escape_ratio",
    "escort_differences",
    "in_reach",
    "is_known",
    "linked_count",
    "path",
    "proved_range",
    "recover",
    "unwalked",
    "walkable",
]

MAX_STEPS = 2_000_000
"""The most updates that are walked one by one; a few seconds."""

FARTHEST = 10**15
"""The largest n whose count of PG-SM is enclosed in blocks of steps."""

QUICK = 50_000
"""Where a walk and a theorem lead to the same number: the most updates to walk."""

_BITS = 256
"""Up to this precision the length of numbers hardly makes a step longer."""


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

    It is exact for the paper's five updates, and that of floating point for any other.

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
        Wait for pi(a_1) < pi_0(a_1) instead of <=.
    max_steps : int
        The most updates to walk, in each phase; forward a quarter of it for DI with weights that
        are not constant, whose way back is longer.

    Returns
    -------
    int or math.inf
        The count; infinite where no number of updates is enough.

    Raises
    ------
    OutOfReach
        A ValueError: if stepping would take longer than `max_steps` allows, and no theorem gives
        the number.
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
    """Return `count` for several numbers of forward updates; the forward path is walked once.

    Parameters
    ----------
    ns : sequence of int
        The numbers of forward updates.
    update, eta, schedule, p, factor, start, strict, max_steps
        As for `count`.

    Returns
    -------
    list of int or math.inf
        In the order of `ns`.

    Raises
    ------
    OutOfReach, ValueError
        As for `count`.
    """
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
    """Walk all ways back at once: a step of many policies takes little longer than one of one."""
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
    """Return how many steps are walked at the present precision, whose long numbers take longer.

    Parameters
    ----------
    max_steps : int
        The most steps to walk with numbers of common length.

    Returns
    -------
    int
        As many up to 256 bits, half as many with twice the bits.
    """
    return max_steps * _BITS // max(_BITS, ctx.prec)


def recover(
    walker: Walker, n: int, chosen: Setting, strict: bool, max_steps: int = MAX_STEPS
) -> int | float:
    """Count the backward updates until the policy is back at, or strictly below, its start.

    Parameters
    ----------
    walker : Walker
        The process after `n` forward updates; it is moved.
    n : int
        The number of forward updates made, for the clock of decaying weights.
    chosen : Setting
        The setting.
    strict : bool
        Wait for strictly below.
    max_steps : int
        The most backward updates to walk.

    Returns
    -------
    int or math.inf
        The count; infinite where no number of updates is enough.

    Raises
    ------
    OutOfReach
        If it takes more.
    """
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
    """Return a number of backward updates that recovery is proved to take at least."""
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
    """Say whether the count is known without walking, for every n in reach.

    That is DI, and PG-SM from one half or above with a weight that is not tiny, both constant.
    """
    if chosen.schedule != "constant":
        return False
    if chosen.kind is DirectWalker:
        return True
    large = chosen.start >= Fraction(1, 2) and chosen.eta >= Fraction(1, 1000)
    return chosen.kind is SoftmaxWalker and large and is_near_enough(chosen)


def walkable(chosen: Setting, max_steps: int) -> int:
    """Return how many forward updates are walked, where so many steps are walked at most.

    Parameters
    ----------
    chosen : Setting
        The setting.
    max_steps : int
        The most steps to walk in a phase.

    Returns
    -------
    int
        Few where the count is known without walking, and a quarter for DI with weights that are
        not constant, whose way back takes three times as long and more.
    """
    if is_known(chosen):
        return min(max_steps, QUICK)
    return max_steps // 4 if chosen.kind is DirectWalker else max_steps


def unwalked(n: int, chosen: Setting, strict: bool, max_steps: int = MAX_STEPS) -> int | float:
    """Return a count without walking, by a theorem, or say what is proved of it.

    Parameters
    ----------
    n, chosen, strict, max_steps
        As for `recover`.

    Returns
    -------
    int or math.inf
        The count; infinite where no number of updates is enough.

    Raises
    ------
    OutOfReach
        If no theorem gives the number.
    """
    if chosen.killing_step() <= n:
        return math.inf
    if is_known(chosen) and chosen.kind is DirectWalker:
        if not strict:
            return bound_di(n, chosen.eta, chosen.start)
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
    """Return what the theorems of the chapter say of n': a lower and an upper bound.

    Parameters
    ----------
    n : int
        The number of forward updates.
    chosen : Setting
        The setting.

    Returns
    -------
    low, high : float
        0 and infinity where nothing is proved. The upper bounds hold for strict recovery, too,
        except that of DI.
    """
    half = Fraction(1, 2)
    if not chosen.has_float_size:
        return 0.0, math.inf
    size, uniform, decaying = float(chosen.eta), chosen.start == half, chosen.schedule != "constant"
    escort = chosen.kind is EscortWalker and chosen.p >= 2 and chosen.factor == "keep"
    low, high = 0.0, math.inf
    if chosen.schedule == "geometric":
        return low, high
    if n > 0 and ((escort and uniform) or (chosen.kind is SoftmaxWalker and chosen.start >= half)):
        low = bound_decaying_pg(n) if decaying else n + 1.0
    if chosen.kind is CrossEntropyWalker and chosen.start >= half:
        high = (bound_decaying_ce_sharp if decaying else bound_ce_sharp)(n, size)
        low = (bound_decaying_ce_below if decaying else bound_ce_below)(n, size) if uniform else 0.0
    if chosen.kind is DirectWalker and decaying:
        high = bound_decaying_di(n, size)
        low = bound_decaying_di_below(n, size) if uniform else 0.0
    if chosen.kind is DirectWalker and not decaying:
        low = high = float(bound_di(n, chosen.eta, chosen.start))
    return low, high


def direct_decaying(n: int, chosen: Setting, strict: bool) -> int | float:
    r"""Return the count of DI with weights :math:`\eta/\sqrt t`, at the present precision.

    Forward, :math:`2(\pi - x)` grows to :math:`E = \min\{\eta\sum_{t\le n} t^{-1/2}, 2(1-x)\}`;
    the count is the least :math:`m` with :math:`\eta\sum_{n<t\le n+m} t^{-1/2} \ge E` (strict:
    :math:`>`). Where balls leave open on which side of :math:`2(1-x)` a sum is, it is tested for
    being equal. The two sums never are: their terms at squares would make harmonic numbers with
    :math:`H_L = 2H_K` and :math:`L \ge K`, but the power of 2 in :math:`H_L` is
    :math:`2^{-\lfloor\log_2 L\rfloor}`, a lower one than in :math:`2H_K`.

    Parameters
    ----------
    n, chosen, strict
        As for `recover`.

    Returns
    -------
    int or math.inf
        The count; infinite where no number of updates is enough.

    Raises
    ------
    Undecided
        If the precision does not decide a comparison.
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
    """Return pi_t(a_1) for t = 0..n+steps: `n` forward updates, then `steps` backward ones.

    Parameters
    ----------
    n, steps : int
        Numbers of forward and of backward updates.
    update, eta, schedule, p, factor, start
        As for `count`.

    Returns
    -------
    list of float
        n + steps + 1 probabilities.

    Raises
    ------
    ValueError
        If there are more steps than are walked, or an argument is unknown or out of range.
    """
    n, steps = require_count("n", n, 0), require_count("steps", steps, 0)
    if n + steps > MAX_STEPS:
        raise ValueError(f"n, steps: more than the {MAX_STEPS} updates that are walked at most")
    chosen = setting(update, eta, schedule, p, factor, start)
    if chosen.eta > LARGEST:
        raise ValueError("eta must be at most 10^300")
    walker = chosen.walker()
    values = [walker.probability()]
    for t, w in enumerate(islice(chosen.weights(), n + steps)):
        # for a picture the nearest rationals will do
        weight: Any = Fraction(float(w)) if chosen.has_root_weights else w
        (walker.forward if t < n else walker.backward)(weight)
        values.append(walker.probability())
    return values


@cache
def escort_differences(
    p: Number, factor: str, etas: tuple[str, ...], ns: tuple[int, ...]
) -> np.ndarray:
    """Return n' - n of PG-ES from the uniform start, for a map.

    Parameters
    ----------
    p, factor
        Of the escort update.
    etas : tuple of str
        Weights.
    ns : tuple of int
        Numbers of forward updates.

    Returns
    -------
    ndarray, shape (len(ns), len(etas))
        Infinite where the policy never recovers.
    """
    found = [counts(ns, "pg-es", eta, p=p, factor=factor) for eta in etas]
    return np.subtract(found, ns).T


# PG-ES without its factor


def escape_ratio(eta: Number, steps: int = 3000) -> tuple[float, float]:
    r"""Return :math:`\kappa_\infty` and the limit of :math:`n'/n` for PG-ES, p = 2, factor dropped.

    From the uniform start (1, 1). :math:`\kappa_k = \eta / (2\|\theta_k\|)` decreases along the
    forward path to :math:`\kappa_\infty`. In the end each step multiplies the angle by
    :math:`1 - 2\kappa_\infty` (above 1/2 it changes sign), and on the way back by
    :math:`1 + 2\kappa_\infty`, so that
    :math:`n'/n \to -\log|2\kappa_\infty-1|/\log(2\kappa_\infty+1)`.

    Parameters
    ----------
    eta : int, Fraction, str or float
        The weight.
    steps : int
        Forward updates after which the radius counts as settled.

    Returns
    -------
    kappa, ratio : float
        The ratio is infinite where kappa is 1/2.
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


# Policy gradients in general


def linked_count(
    n: int,
    eta: Number,
    density: Callable[[arb], arb],
    schedule: str = "constant",
    strict: bool = False,
) -> int:
    """Return the count n' for the policy gradient of a link, from the median.

    Parameters
    ----------
    n : int
        The number of forward updates.
    eta : number
        The (first) weight, read exactly.
    density : callable
        The positive density F' of the link on [0, infinity), of and to balls.
    schedule : str
        As for `count`.
    strict : bool
        Wait for pi(a_1) < pi_0(a_1) instead of <=.

    Returns
    -------
    int
        The count.

    Raises
    ------
    OutOfReach
        If it takes more than `MAX_STEPS` backward updates.
    ValueError
        If `n`, `eta` or the schedule is out of range.
    """
    n, chosen = require_count("n", n, 0), setting("pg-sm", eta, schedule)

    def walk() -> int:
        walker = LinkWalker(density)
        for w in islice(chosen.weights(), n):
            walker.forward(w)
        return int(recover(walker, n, chosen, strict))  # it is never stuck

    return certified(walk)
