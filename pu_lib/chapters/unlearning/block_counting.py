r"""Exact counts of PG-SM for many updates, enclosed in blocks of steps.

Let :math:`F(\delta) = \delta + \sinh\delta` be the flow time of the comparison lemma, with
:math:`F' = 1/2g`. A step of weight w from :math:`\delta` has the length
:math:`s = 2wg(\delta) = w/(1+\cosh\delta)`. A forward step increases F by w plus an *excess*, and a
backward step reduces F by w minus a *shortfall*:

.. math:: e_\pm(\delta) = \sinh\delta\,(\cosh s - 1) \pm \cosh\delta\,(\sinh s - s),
          \qquad \sinh s - s \in \tfrac{s^3}6\,[1, \cosh s],

The excess is of order :math:`w^2/2F`. In a block of K steps with a small relative change in F, one
narrow ball e encloses all excesses, so that the block changes F by :math:`K(w + e)`. The length of
a block is proportional to F, so that the number of blocks is about :math:`\log n` divided by the
relative length of a block. The last steps near the initial policy are computed one by one from both
ends of the enclosure. Backward steps preserve the order of two points, since
:math:`\delta - 2wg(\delta)` increases for :math:`\delta \ge 0`. The count is therefore the number
of steps from both ends if the two numbers are equal.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from flint import arb, ctx

from pu_lib.exact import Undecided, ball, certified
from pu_lib.two_action_dynamics import SoftmaxProcess, TwoActionProblem

__all__ = ["count_in_blocks", "has_few_blocks"]

SINGLE_STEPS = 1000
"""The number of steps computed one by one near the initial policy, forward and backward."""


def has_few_blocks(problem: TwoActionProblem) -> bool:
    """Return whether the first forward update is undone in fewer than 1e30 backward updates.

    A first update of weight 300 needs more than 1e60 backward updates.
    """
    w, process = ball(problem.step_size), SoftmaxProcess(problem.start)
    process.forward(w)
    return bool(_flow_time(process.origin + process.y) < 1e30 * w)


def count_in_blocks(n: int, problem: TwoActionProblem, strict: bool = False) -> int:
    """Return the count of PG-SM with a constant weight from pi_0(a_1) >= 1/2.

    `n` is at most about 1e15, and `has_few_blocks` must be true. `Undecided` is raised if no block
    length decides the last step.
    """
    for part in (Fraction(1, k) for k in (250, 1000, 4000, 16000)):
        try:
            return certified(partial(_count, n, problem, strict, part), bits=256, max_bits=256)
        except Undecided:
            continue
    raise Undecided(f"the blocks do not decide the count of n = {n}")


def _flow_time(delta: arb) -> arb:
    return delta + delta.sinh()


def _log_odds_at(lowest: arb, highest: arb) -> arb:
    """Return a ball that encloses the log-odds at all flow times from `lowest` to `highest`."""
    ends, narrow = [], arb(2) ** max(24 - ctx.prec, -100)
    for time, outward in ((lowest.lower(), -1), (highest.upper(), 1)):
        point, move = arb(_log_odds_near(float(time))), arb(1)
        for _ in range(60):
            if abs(move) < narrow * (1 + point):
                break
            move = ((_flow_time(point) - time) / (1 + point.cosh())).mid()
            point = (point - move).mid()
        end = (point + outward * narrow * (1 + abs(point))).mid()
        if not outward * (_flow_time(end) - time) >= 0:
            raise Undecided(f"the log-odds at flow time {time} are not enclosed")
        ends.append(end)
    return ends[0].union(ends[1])


def _log_odds_near(time: float) -> float:
    """Return the log-odds at a flow time in floating point."""
    point = math.asinh(time)
    for _ in range(60):
        move = (point + math.sinh(point) - time) / (1 + math.cosh(point))
        point -= move
        if abs(move) < 1e-12 * (1 + point):
            break
    return point


def _excess(delta: arb, w: arb, direction: int) -> arb:
    r"""Return a ball that encloses the excess of a forward or the shortfall of a backward step.

    `direction` is 1 for a forward and -1 for a backward step. The main part of the result is
    :math:`\frac{w^2}2\,m(\delta)\,(\frac{\sinh(s/2)}{s/2})^2` with
    :math:`m = \sinh\delta/(1+\cosh\delta)^2`. Both factors decrease for :math:`\cosh\delta > 2`,
    so that the values at the ends enclose the main part.
    """
    if delta.cosh() > 2:
        low, high = (_main_part(arb(end), w) for end in (delta.upper(), delta.lower()))
        main = low.union(high)
    else:
        main = _main_part(delta, w)
    s = w / (1 + delta.cosh())
    return main + direction * delta.cosh() * s**3 / 6 * arb(1).union(s.cosh())


def _main_part(delta: arb, w: arb) -> arb:
    return delta.sinh() * 2 * (w / (1 + delta.cosh()) / 2).sinh() ** 2


def _count(n: int, problem: TwoActionProblem, strict: bool, part: Fraction) -> int:
    w, process = ball(problem.step_size), SoftmaxProcess(problem.start)
    single = min(n, SINGLE_STEPS)
    for _ in range(single):
        process.forward(w)
    time = _forward(_flow_time(process.origin + process.y), w, n - single, part)
    floor = _flow_time(process.origin) + SINGLE_STEPS * w
    time, made = _backward(time, floor, w, part)
    counts = {
        made + _count_back(end, problem, strict)
        for delta in [_log_odds_at(time, time)]
        for end in (delta.lower(), delta.upper())
    }
    if len(counts) > 1:
        raise Undecided(f"the count is one of {sorted(counts)}")
    return counts.pop()


def _forward(time: arb, w: arb, steps: int, part: Fraction) -> arb:
    """Return the flow time after another `steps` forward steps from `time`."""
    while steps:
        made = min(steps, max(1, int(part * Fraction(float(time / w)))))
        most = 2 * _excess(_log_odds_at(time, time), w, 1).upper()
        excess = _excess(_log_odds_at(time, time + made * (w + most)), w, 1)
        if not 0 <= excess <= most:
            raise Undecided("the excess of a block is not enclosed")
        time += made * (w + excess)
        steps -= made
    return time


def _backward(time: arb, floor: arb, w: arb, part: Fraction) -> tuple[arb, int]:
    """Return a flow time of at most `floor` after backward steps, and the number of these steps."""
    total = 0
    while time > floor:
        left = int(float((time - floor) / w))
        made = max(1, min(left, int(part * Fraction(float(time / w)))))
        shortfall = _excess(_log_odds_at(time - made * w, time), w, -1)
        if not 0 <= shortfall <= w:
            raise Undecided("the shortfall of a block is not enclosed")
        time -= made * (w - shortfall)
        total += made
    return time, total


def _count_back(delta: arb, problem: TwoActionProblem, strict: bool) -> int:
    """Return the number of backward steps from the log-odds `delta` to the initial log-odds."""
    process, w = SoftmaxProcess(problem.start), ball(problem.step_size)
    process.y = delta - process.origin
    goal = -1 if strict else 0
    for steps in range(10 * SINGLE_STEPS):
        if process.sign_of_change() <= goal:
            return steps
        process.backward(w)
    raise Undecided("the steps from the end of the last block do not reach the start")
