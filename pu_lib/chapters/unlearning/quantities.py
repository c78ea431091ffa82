r"""Undoing updates (section 3.4; Theorems 4 and 5, Lemmas 11 and 12).

There is one state with two actions. The policy starts at :math:`\pi_0(a_1) = x` and is changed by
:math:`n` *forward* updates with :math:`q = (1, 0)`, and then by *backward* updates with
:math:`q = (0, 1)`. The count is

.. math:: n' = \min\{m \ge 0 : \pi_{n+m}(a_1) \le \pi_0(a_1)\},

with :math:`<` instead of :math:`\le` for *strict* recovery (:math:`n'_s`), and infinity if there is
no such m. The weight of update :math:`t = 1, 2, \dots` is :math:`w_t = \eta` (constant),
:math:`w_t = \eta/\sqrt t` (decaying; the bounds write :math:`\eta_1`) or
:math:`w_t = \eta\,c^{t-1}`, and t counts the updates of both phases.

Counts for the paper's updates are exact. In the coordinates of `pu_lib.two_action_dynamics`, DI
with constant or geometric weights uses rationals, DI with decaying weights uses sums of square
roots (`pu_lib.exact.root_sum` decides ties), and all others use Arb balls. The precision is raised
until the sign of every compared quantity is proved. The count of any other registered update is
computed in floats by the method `step` of the update.

The bounds are formulas, which the checks call and the statements print. The bounds for DI hold for
any x, and the bounds for CE, MCE and PG-SM hold for :math:`x \ge \frac12`. The lower bounds for DI,
CE and MCE hold for :math:`x = \frac12`. A name that ends in ``_printed`` is a bound of the paper
for which this book has another bound.

Applicability and issues
------------------------
At most `max_steps` updates are performed one by one in a phase. Two kinds of counts are known
beyond this limit: a theorem gives the count of DI with constant weights, and blocks of steps
(`pu_lib.chapters.unlearning.block_counting`) give the count of PG-SM with constant weights from
:math:`\pi_0(a_1) \ge \frac12`, for n up to :math:`10^{15}` and weights that are at least 1/1000 and
not too large. All other counts raise `OutOfReach` with the proved bounds, immediately if n or a
lower bound on the count is too large, and otherwise after the steps. Integer arithmetic decides
whether the first update sets an escort parameter to zero, and for :math:`p = 2` whether the second
update does. If a later update sets a parameter to zero, which is only excluded for :math:`p \ge 2`
from the uniform policy, `count` raises `Undecided` or `OutOfReach` instead of returning infinity.
The same errors are raised at a tie of PG-ES with p = 1, for which ties are frequent.
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

from pu_lib.arrays import safe_repr
from pu_lib.chapters.unlearning.block_counting import count_in_blocks, has_few_blocks
from pu_lib.claims.formulas import ceil, formula, log1p, sqrt
from pu_lib.exact import Number, Undecided, ball, certified, root_sum, sign
from pu_lib.two_action_dynamics import (
    LARGEST,
    CrossEntropyProcess,
    DirectProcess,
    EscortProcess,
    FloatBatch,
    FloatProcess,
    LinkProcess,
    OutOfReach,
    SoftmaxProcess,
    TwoActionProblem,
    TwoActionProcess,
    parse_problem,
    require_count,
)
from pu_lib.updates import Update, as_update

MAX_STEPS = 2_000_000
"""The largest number of updates to perform one by one, which takes a few seconds."""

MAX_LINKED_N = 200_000
"""The largest n of `linked_count`, which takes a few seconds."""

MAX_BLOCK_N = 10**15
"""The largest n for which PG-SM is counted in blocks of steps."""

MAX_QUICK_STEPS = 50_000
"""The largest number of updates to perform one by one if a theorem gives the same count."""

_BITS = 256
"""The precision in bits up to which the time of a step hardly depends on the precision."""


# The bounds of Theorem 4; eta is the step size, as in the formulas of the paper


@formula
def pg_bound_printed(n: Any) -> Any:
    """Return the lower bound for policy gradients as printed in Theorem 4(i)."""
    return n


@formula
def pg_bound(n: Any) -> Any:
    """Return the improved bound of Theorem 4(i) for PG-SM and for exact PG-ES with p >= 2."""
    return n + 1


@formula
def di_bound_in_eta(eta: Any) -> Any:
    """Return the term of Theorem 4(ii) without n, an upper bound for DI from the uniform policy."""
    return ceil(1 / eta)


@formula
def di_bound_printed(n: Any, eta: Any) -> Any:
    """Return DI's count from the uniform policy as printed in Theorem 4(ii)."""
    return min(n, ceil(1 / eta))


@formula
def di_bound(n: Any, eta: Any, start: Any = Fraction(1, 2)) -> Any:
    """Return DI's count from any initial policy, a corrected form of Theorem 4(ii)."""
    return min(n, ceil(2 * (1 - start) / eta))


def di_strict_count(n: int, eta: Fraction, start: Fraction = Fraction(1, 2)) -> int:
    """Return DI's strict count from a positive initial probability."""
    return min(n, math.floor(2 * (1 - start) / eta)) + 1


@formula
def ce_bound_printed(n: Any, eta: Any) -> Any:
    """Return the upper bound for CE and MCE as printed in Theorem 4(iii)."""
    return 2 + 1 / eta * log1p(2 * eta * n)


@formula
def ce_bound(n: Any, eta: Any) -> Any:
    """Return the improved upper bound of Theorem 4(iii), which also bounds the strict count."""
    if n == 0:
        return 2
    return 2 + 1 / eta * log1p(2 * eta * (n - 1))


@formula
def ce_lower_bound(n: Any, eta: Any) -> Any:
    """Return a lower bound for CE and MCE from the uniform policy, added to Theorem 4(iii)."""
    return 1 / (2 * eta) * log1p(eta * n)


# The bounds of Theorem 5; eta is the first step size


@formula
def decaying_pg_bound(n: Any) -> Any:
    """Return the lower bound of Theorem 5(i) for policy gradients if n >= 1."""
    return 3 * n - 4 * sqrt(n) + 1


@formula
def decaying_di_bound_in_n(n: Any) -> Any:
    """Return the first term of Theorem 5(ii), an upper bound for DI that depends only on n."""
    return 3 * n + 4 * sqrt(n) + 1


@formula
def decaying_di_bound_in_eta(n: Any, eta: Any) -> Any:
    """Return the second term of Theorem 5(ii), an upper bound for DI that uses pi(a_1) <= 1."""
    return (1 / eta + 1) ** 2 + sqrt(n) * (2 + 2 / eta)


def decaying_di_bound(n: int, eta: float) -> Any:
    """Return the upper bound of Theorem 5(ii) for DI, which is the smaller of two terms."""
    return min(decaying_di_bound_in_n(n), decaying_di_bound_in_eta(n, eta))


def decaying_di_lower_bound(n: int, eta: float) -> float:
    r"""Return the lower bound :math:`2\sqrt n\,v + v^2` for DI, which is of order :math:`\sqrt n`.

    Here :math:`v = \min\{\sqrt{n+1}-1, \frac1{2\eta_1}\}`.
    """
    weight = min(2 * eta * (math.sqrt(n + 1) - 1), 1.0) / (2 * eta)
    return 2 * math.sqrt(n) * weight + weight**2


@formula
def decaying_ce_logarithm(n: Any, eta: Any) -> Any:
    """Return the logarithm L of Theorem 5(iii)."""
    return log1p(4 * eta * sqrt(n))


@formula
def decaying_ce_bound_printed(n: Any, eta: Any) -> Any:
    """Return the upper bound for CE and MCE as printed in Theorem 5(iii)."""
    L = decaying_ce_logarithm(n, eta)
    return (4 + L / (2 * eta)) ** 2 + sqrt(n) * (8 + L / eta)


@formula
def decaying_ce_bound(n: Any, eta: Any) -> Any:
    """Return the improved upper bound of Theorem 5(iii), which also bounds the strict count."""
    L = decaying_ce_logarithm(n, eta)
    return (2 + L / (2 * eta)) ** 2 + sqrt(n) * (4 + L / eta)


def decaying_ce_lower_bound(n: int, eta: float) -> float:
    r"""Return the lower bound :math:`2\sqrt n\,v + v^2` for CE and MCE.

    Here :math:`v = \frac1{4\eta_1}\log(1 + 2\eta_1(\sqrt{n+1}-1))`, so that the bound is of order
    :math:`\sqrt n\log n`.
    """
    weight = math.log1p(2 * eta * (math.sqrt(n + 1) - 1)) / (4 * eta)
    return 2 * math.sqrt(n) * weight + weight**2


# Lemmas 11 and 12


@formula
def lemma_11_bound_printed(n: Any, c: Any) -> Any:
    """Return the upper bound of Lemma 11 as printed."""
    return c + log1p(c * n)


@formula
def lemma_11_bound(n: Any, c: Any) -> Any:
    """Return the improved upper bound of Lemma 11 if n >= 1."""
    return c + log1p(c * (n - 1))


@formula
def lemma_11_lower_bound(n: Any, c: Any) -> Any:
    """Return a lower bound for Lemma 11 if the recursion is an equality."""
    return log1p(c * n)


@formula
def lemma_12_bound_printed(n: Any, c: Any) -> Any:
    """Return the upper bound of Lemma 12 as printed."""
    return c + log1p(2 * c * sqrt(n))


@formula
def lemma_12_bound(n: Any, c: Any) -> Any:
    """Return the improved upper bound of Lemma 12 if n >= 1."""
    return c + log1p(2 * c * (sqrt(n) - 1))


@formula
def lemma_12_lower_bound(n: Any, c: Any) -> Any:
    """Return a lower bound for Lemma 12 if the recursion is an equality."""
    return log1p(2 * c * (sqrt(n + 1) - 1))


def largest_sequence(n: int, c: float, decay: Callable[[int], float]) -> list[float]:
    r"""Return the largest :math:`X_0, \dots, X_n \ge 0` under the recursion of Lemma 11 or 12.

    The right-hand side of :math:`X_{k+1} \le X_k + c\,r_k e^{-X_k}` is convex in :math:`X_k`, so
    its maximum over :math:`0 \le X_k \le M_k` is at an end of the interval, and the largest value
    is :math:`M_{k+1} = \max(c\,r_k, M_k + c\,r_k e^{-M_k})`. `decay` maps k to :math:`r_k`, which
    is 1 in Lemma 11 and :math:`(k+1)^{-1/2}` in Lemma 12.
    """
    largest = [0.0]
    for k in range(n):
        step = c * decay(k)
        largest.append(max(step, largest[-1] + step * math.exp(-largest[-1])))
    return largest


def equality_sequence(n: int, c: float, decay: Callable[[int], float]) -> list[float]:
    r"""Return :math:`Y_0, \dots, Y_n` if the recursion of Lemma 11 or 12 is an equality."""
    terms = [0.0]
    for k in range(n):
        terms.append(terms[-1] + c * decay(k) * math.exp(-terms[-1]))
    return terms


# The count


def count(
    n: int,
    update: str | Update = "pg-sm",
    step_size: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
    strict: bool = False,
    max_steps: int = MAX_STEPS,
) -> int | float:
    """Return the number of backward updates that undo `n` forward updates, or infinity.

    Counts are exact for the paper's five updates and computed in floats for any other update.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    update, step_size, schedule, p, factor, start
        The arguments of `pu_lib.two_action_dynamics.parse_problem`.
    strict : bool
        Count until pi(a_1) < pi_0(a_1) instead of <=.
    max_steps : int
        The largest number of updates to perform one by one in each phase. DI with weights that are
        not constant recovers slowly, so that the largest n is a quarter of this number.

    Raises
    ------
    OutOfReach
        If the count takes more than `max_steps` updates and no theorem gives the count. This error
        is a ValueError.
    """
    return counts([n], update, step_size, schedule, p, factor, start, strict, max_steps)[0]


def unlearn(
    update: str | Update,
    n: int,
    step_size: Number = 1,
    schedule: str = "constant",
    *,
    start: Number = "1/2",
    strict: bool = False,
) -> int | float:
    """Return how many updates with q = (0, 1) undo `n` updates with q = (1, 0), or infinity.

    Counts are exact for the updates of the paper and NPG, and computed in floats for any other
    update.

    Parameters
    ----------
    update : str or Update
        The update, or its name with options, as in ``pg-es factor=drop``.
    n : int
        The number of updates to undo, at least 0.
    step_size : int, Fraction, str or float
        The step size, which is positive and read exactly ("0.3" and 0.3 are 3/10).
    schedule : {"constant", "inverse-sqrt", "geometric:c"}
        The weight of update t: the step size, the step size / sqrt(t), or the step size times
        c^(t - 1) with a number c > 1, as in "geometric:1.1"; t counts the updates of both phases.
    start : int, Fraction, str or float
        The initial pi(a_1), in (0, 1) or, for `di`, in [0, 1].
    strict : bool
        Whether to count until pi(a_1) is below its start, not just back at it.

    Returns
    -------
    int or float
        The number of updates, or infinity if the policy never returns.

    Raises
    ------
    OutOfReach
        If the count takes more than two million updates and no theorem gives it; the message states
        the proved bounds. This error is a ValueError.
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> [unlearn(update, 1000) for update in ("pg-sm", "ce", "mce")]
    [1007, 4, 4]
    """
    return count(n, update, step_size, schedule, start=start, strict=strict)


def counts(
    ns: Sequence[int],
    update: str | Update = "pg-sm",
    step_size: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
    strict: bool = False,
    max_steps: int = MAX_STEPS,
) -> list[int | float]:
    """Return the list of counts for the values `ns` from a single run of forward updates."""
    problem = parse_problem(update, step_size, schedule, p, factor, start)
    max_steps = require_count("max_steps", max_steps, 0)
    ns = [require_count("n", n, 0) for n in ns]
    single = [n for n in ns if n <= max_forward_steps(problem, max_steps)]
    if problem.has_root_weights:
        steps = [certified(partial(count_direct_decaying, n, problem, strict)) for n in single]
    else:
        steps = certified(partial(_counts, single, problem, strict, max_steps))
    known: dict[int, int | float] = dict(zip(single, steps, strict=True))
    return [
        known[n] if n in known else count_beyond_reach(n, problem, strict, max_steps) for n in ns
    ]


def _counts(
    ns: Sequence[int], problem: TwoActionProblem, strict: bool, max_steps: int
) -> list[int | float]:
    if problem.kind is FloatProcess:
        return _counts_in_floats(ns, problem, strict, max_steps)
    by_n: dict[int, int | float] = {}
    zero_at, most = problem.step_hitting_zero(), max_steps_at_precision(max_steps)
    process, weights, made = problem.process(), problem.weights(), 0
    for n in sorted(set(ns)):
        if zero_at <= n:
            by_n[n] = math.inf
            continue
        if n > most:
            by_n[n] = count_beyond_reach(n, problem, strict, most)
            continue
        for w in islice(weights, n - made):
            process.forward(w)
        made = n
        by_n[n] = count_recovery(copy(process), n, problem, strict, max_steps)
    return [by_n[n] for n in ns]


def _counts_in_floats(
    ns: Sequence[int], problem: TwoActionProblem, strict: bool, max_steps: int
) -> list[int | float]:
    """Return the counts computed in floats, with one batch of backward steps for all n."""
    for n in ns:
        problem.require_resolved(n)
    process, weights, made = (
        FloatProcess(problem.update, float(problem.start)),
        problem.weights(),
        0,
    )
    starts, clocks = [], {}
    for n in sorted(set(ns)):
        for w in islice(weights, n - made):
            process.forward(w)
        made = n
        starts.append(process.theta)
        clocks[n] = problem.weights(n + 1)
    batch, goal = FloatBatch(process, np.array(starts)), -1 if strict else 0
    by_n: dict[int, int | float] = dict.fromkeys(clocks, math.inf)
    m = 0
    while clocks:
        back = np.array(batch.signs_of_change()) <= goal
        ended = back | batch.unchanged
        if ended.any():
            by_n |= dict.fromkeys(compress(clocks, back), m)
            clocks = dict(compress(clocks.items(), ~ended))
            batch.select(~ended)
        elif m == max_steps:
            raise _not_recovered(next(iter(clocks)), problem, max_steps)
        else:
            batch.move([False] * len(clocks), np.array([next(clock) for clock in clocks.values()]))
            m += 1
    return [by_n[n] for n in ns]


def max_steps_at_precision(max_steps: int) -> int:
    """Return the largest number of steps at the current precision, which falls above 256 bits."""
    return max_steps * _BITS // max(_BITS, ctx.prec)


def count_recovery(
    process: TwoActionProcess,
    n: int,
    problem: TwoActionProblem,
    strict: bool,
    max_steps: int = MAX_STEPS,
) -> int | float:
    """Return the count from a process after `n` forward updates, and modify the process."""
    most = max_steps_at_precision(max_steps)
    fewest = _min_backward_steps(process, n, problem)
    if fewest > most:
        if is_known_without_steps(problem) and fewest < MAX_BLOCK_N**2:
            return count_beyond_reach(n, problem, strict, max_steps)
        raise OutOfReach(
            f"{problem.update.name} takes at least {_format_large(fewest)} backward updates to "
            f"undo {n} forward ones; at most {most} are made one by one"
        )
    goal = -1 if strict else 0
    for m, w in enumerate(problem.weights(n + 1)):
        if process.sign_of_change() <= goal:
            return m
        if process.is_fixed_point():
            return math.inf
        if m == most:
            break
        process.backward(w)
    raise _not_recovered(n, problem, most)


def _not_recovered(n: int, problem: TwoActionProblem, most: int) -> OutOfReach:
    low, high = proved_bounds(n, problem)
    return OutOfReach(
        f"the policy has not recovered after {most} backward updates"
        + (f"; at most {high:.6g} are proved" if math.isfinite(high) else "")
        + (f"; at least {low:.6g} are proved" if low > most else "")
    )


def _min_backward_steps(process: TwoActionProcess, n: int, problem: TwoActionProblem) -> arb:
    """Return a proved lower bound on the number of backward updates."""
    weight = process.remaining_weight_bound() / ball(problem.step_size)
    fewest = weight
    if problem.schedule == "geometric" or not weight > 0:
        return arb(0)
    if problem.schedule == "inverse-sqrt":
        # sum of t^(-1/2) over n < t <= n + m is at most 2 sqrt(n + m) - 2 sqrt(n)
        fewest = (arb(n).sqrt() + weight / 2) ** 2 - n
    return arb(0) if not fewest.is_finite() else fewest.lower()


def _format_large(number: arb) -> str:
    """Format a large number as a power of ten, or as ten to a power of ten."""
    ten = arb(10).log()
    power = number.log() / ten
    if power < 1e6:
        return f"10^{int(float(power.lower()))}"
    return f"10^(10^{int(float((power.log() / ten).lower()))})"


def is_known_without_steps(problem: TwoActionProblem) -> bool:
    """Return whether every count up to `MAX_BLOCK_N` is known without performing all steps.

    Only DI and PG-SM with a constant weight have such counts. For PG-SM the initial probability
    must also be at least 1/2, and the weight at least 1/1000 and not too large.
    """
    if problem.schedule != "constant":
        return False
    if problem.kind is DirectProcess:
        return True
    large = problem.start >= Fraction(1, 2) and problem.step_size >= Fraction(1, 1000)
    return problem.kind is SoftmaxProcess and large and has_few_blocks(problem)


def max_forward_steps(problem: TwoActionProblem, max_steps: int) -> int:
    """Return the largest n for which the forward updates are performed one by one.

    This n is small if the count is known without steps. For DI with weights that are not constant
    it is a quarter of `max_steps`, since the recovery takes at least three times as many.
    """
    if is_known_without_steps(problem):
        return min(max_steps, MAX_QUICK_STEPS)
    return max_steps // 4 if problem.kind is DirectProcess else max_steps


def count_beyond_reach(
    n: int, problem: TwoActionProblem, strict: bool, max_steps: int = MAX_STEPS
) -> int | float:
    """Return the count, by a theorem or in blocks, or raise `OutOfReach` with the proved bounds."""
    if problem.step_hitting_zero() <= n:
        return math.inf
    if is_known_without_steps(problem) and problem.kind is DirectProcess:
        if not strict:
            return int(di_bound(n, problem.step_size, problem.start))
        return (
            math.inf if problem.start == 0 else di_strict_count(n, problem.step_size, problem.start)
        )
    if is_known_without_steps(problem) and n <= MAX_BLOCK_N:
        return count_in_blocks(n, problem, strict)
    low, high = proved_bounds(n, problem)
    down, up = (Context(4, way).create_decimal_from_float for way in (ROUND_FLOOR, ROUND_CEILING))
    bounds = f"at least {float(down(low)):.4g}" if low > 0 else ""
    bounds += (
        f"{' and ' if bounds else ''}at most {float(up(high)):.4g}" if math.isfinite(high) else ""
    )
    proved = f"proved: n' is {bounds}" if bounds else "no bound on n' is proved"
    raise OutOfReach(
        f"undoing n = {n} updates of {problem.update.name} may take more than {max_steps} "
        f"steps, the most that are made one by one; {proved}"
    )


def proved_bounds(n: int, problem: TwoActionProblem) -> tuple[float, float]:
    """Return the proved lower and upper bounds on n', or 0 and infinity if there are none.

    The upper bounds also hold for strict recovery, except the bounds for DI.
    """
    half = Fraction(1, 2)
    low, high = 0.0, math.inf
    if not problem.has_float_weight or problem.schedule == "geometric":
        return low, high
    size, uniform, decaying = (
        float(problem.step_size),
        problem.start == half,
        problem.schedule != "constant",
    )
    escort = problem.kind is EscortProcess and problem.p >= 2 and problem.factor == "keep"
    if n > 0 and (
        (escort and uniform) or (problem.kind is SoftmaxProcess and problem.start >= half)
    ):
        low = decaying_pg_bound(n) if decaying else pg_bound(n)
    if problem.kind is CrossEntropyProcess and problem.start >= half:
        high = (decaying_ce_bound if decaying else ce_bound)(n, size)
        low = (decaying_ce_lower_bound if decaying else ce_lower_bound)(n, size) if uniform else 0.0
    if problem.kind is DirectProcess and decaying:
        high = decaying_di_bound(n, size)
        low = decaying_di_lower_bound(n, size) if uniform else 0.0
    if problem.kind is DirectProcess and not decaying:
        low = high = di_bound(n, problem.step_size, problem.start)
    return float(low), float(high)


def count_direct_decaying(n: int, problem: TwoActionProblem, strict: bool) -> int | float:
    r"""Return the count of DI with weights :math:`\eta/\sqrt t` at the current precision.

    The forward updates increase :math:`2(\pi - x)` to
    :math:`E = \min\{\eta\sum_{t\le n} t^{-1/2}, 2(1-x)\}`. The count is the least :math:`m` with
    :math:`\eta\sum_{n<t\le n+m} t^{-1/2} \ge E`, or :math:`> E` if `strict`. If balls do not decide
    whether a sum is above or below :math:`2(1-x)`, `root_sum` decides whether the two are equal.
    The forward and the backward sum are never equal: the terms at squares would give harmonic
    numbers with :math:`H_L = 2H_K` and :math:`L \ge K`, but the power of 2 in :math:`H_L` is
    :math:`2^{-\lfloor\log_2 L\rfloor}`, which is less than the power of 2 in :math:`2H_K`.
    `Undecided` is raised if the precision does not decide a comparison.
    """
    eta, slack = problem.step_size, 2 * (1 - problem.start)
    if strict and problem.start == 0:
        return math.inf

    def sign_against_slack(value: arb, times: Iterable[int]) -> int:
        try:
            return sign(value)
        except Undecided:
            if root_sum([*((eta, t) for t in times), (-slack, 1)]):
                raise
            return 0

    excess, size = arb(0), ball(eta)
    for t in range(1, n + 1):
        excess += size * arb(t).rsqrt()
    clipped = sign_against_slack(excess - ball(slack), range(1, n + 1)) >= 0
    if clipped:
        excess = ball(slack)
    goal = -1 if strict else 0
    for m in count_from(0):
        back = range(n + 1, n + m + 1)
        if (sign_against_slack(excess, back) if clipped else sign(excess)) <= goal:
            return m
        excess -= size * arb(n + m + 1).rsqrt()
    raise AssertionError("unreachable: the weights do not sum to a finite number")


def steps_to_half(update: str | Update, probability: float, weight: float = 1.0) -> int:
    """Return the number of steps that take the worse of two actions to probability 1/2 or less.

    The gap of the values is 1. Parameters are those that `Update.parameters` returns for the
    initial policy, and the steps are computed in floats.
    """
    chosen, steps = as_update(update), 0
    theta = chosen.parameters([probability, 1.0 - probability])
    while chosen.policy(theta)[0] > 0.5 + 1e-12:  # rounding may miss one half by a few ulp
        theta, steps = chosen.step(theta, [0.0, 1.0], weight), steps + 1
    return steps


def path(
    n: int,
    steps: int,
    update: str | Update = "pg-sm",
    step_size: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
) -> list[float]:
    """Return pi_t(a_1) at t = 0 to n + steps over `n` forward and then `steps` backward updates."""
    n, steps = require_count("n", n, 0), require_count("steps", steps, 0)
    if n + steps > MAX_STEPS:
        raise ValueError(
            f"n, steps: expected at most {MAX_STEPS} updates together, got {n + steps}."
        )
    problem = parse_problem(update, step_size, schedule, p, factor, start)
    if problem.step_size > LARGEST:
        raise ValueError(f"step_size: expected at most 10^300, got {safe_repr(step_size)}.")
    process = problem.process()
    values = [process.probability()]
    for t, w in enumerate(islice(problem.weights(), n + steps)):
        # The nearest rationals are enough for a figure.
        weight: Any = Fraction(float(w)) if problem.has_root_weights else w
        (process.forward if t < n else process.backward)(weight)
        values.append(process.probability())
    return values


# Policy gradients in general


def linked_count(
    n: int,
    step_size: Number,
    density: Callable[[arb], arb],
    schedule: str = "constant",
    strict: bool = False,
) -> int:
    r"""Return the count for the policy gradient of :math:`\pi(a_1) = F(\theta_1 - \theta_2)`.

    The initial policy is uniform. `density` is :math:`F'` on :math:`[0, \infty)` and maps balls to
    balls. `OutOfReach` is raised if n exceeds `MAX_LINKED_N`, or the count `MAX_STEPS`.
    """
    n, problem = require_count("n", n, 0), parse_problem("pg-sm", step_size, schedule)
    if n > MAX_LINKED_N:
        raise OutOfReach(f"n: at most {MAX_LINKED_N} updates are made one by one, got {n}")

    def undo() -> int:
        process = LinkProcess(density)
        for w in islice(problem.weights(), n):
            process.forward(w)
        return int(count_recovery(process, n, problem, strict))  # never infinite

    return certified(undo)


def small_step_deficit(actions: int) -> float:
    r"""Return :math:`\log\frac{K^2}{4(K-1)}`, the limit of n - n' for K actions and short steps.

    The limit follows from :math:`n' \approx n - \log(g_n/g_0)` as the weight goes to zero. The
    quantity :math:`g = \pi(1-\pi)` at the first action grows from :math:`(K-1)/K^2` to at most 1/4.
    Fewer than n updates are enough if the limit exceeds 1.
    """
    return math.log(actions**2 / (4 * (actions - 1)))


# PG-ES


def escort_components(pi: float, p: float) -> tuple[float, float]:
    r"""Return :math:`\pi^{1-1/p}(1-\pi)` and :math:`-\pi(1-\pi)^{1-1/p}`.

    The proof of Theorem 4(i) prints these components as the PG-ES gradient of :math:`\pi(a_1)`.
    """
    power = 1.0 - 1.0 / p
    return pi**power * (1.0 - pi), -pi * (1.0 - pi) ** power


@cache
def escort_differences(
    p: Number, factor: str, step_sizes: tuple[str, ...], ns: tuple[int, ...]
) -> np.ndarray:
    """Return the (len(ns), len(step_sizes)) array of n' - n for PG-ES from the uniform policy."""
    table = [counts(ns, "pg-es", size, p=p, factor=factor) for size in step_sizes]
    return np.subtract(table, ns).T


def escape_ratio(step_size: Number, steps: int = 3000) -> tuple[float, float]:
    r"""Return :math:`\kappa_\infty` and :math:`\lim n'/n` for PG-ES with p = 2 and no factor.

    The initial parameters are (1, 1). The sequence :math:`\kappa_k = \eta / (2\|\theta_k\|)`
    decreases along the forward path to :math:`\kappa_\infty`, which is approximated after `steps`
    updates. In the limit a forward step multiplies the angle by :math:`1 - 2\kappa_\infty`, which
    is negative if :math:`\kappa_\infty > \frac12`, and a backward step multiplies the angle by
    :math:`1 + 2\kappa_\infty`, so that
    :math:`n'/n \to -\log|2\kappa_\infty-1|/\log(2\kappa_\infty+1)`. The limit is infinite if
    :math:`\kappa_\infty = \frac12`.
    """
    problem = parse_problem("pg-es", step_size, factor="drop")
    process = EscortProcess(problem.start, problem.p, problem.factor)
    for w in islice(problem.weights(), steps):
        process.forward(w)
    kappa = float(ball(problem.step_size) / (2 * (process.u1**2 + process.u2**2).sqrt()))
    if kappa == 0.5:
        return kappa, math.inf
    shrinking = math.log1p(-2 * kappa) if kappa < 0.5 else math.log(2 * kappa - 1)
    return kappa, -shrinking / math.log1p(2 * kappa)
