r"""Exact counts of PG-SM for many updates, enclosed in blocks of steps.

Let :math:`F(\delta) = \delta + \sinh\delta`, the flow time of the comparison lemma:
:math:`F' = 1/2g`. A step of weight w from :math:`\delta` has the length
:math:`s = 2wg(\delta) = w/(1+\cosh\delta)`, and changes F by w plus an *excess* forward, by w minus
a *shortfall* backward,

.. math:: e_\pm(\delta) = \sinh\delta\,(\cosh s - 1) \pm \cosh\delta\,(\sinh s - s),
          \qquad \sinh s - s \in \tfrac{s^3}6\,[1, \cosh s],

of order :math:`w^2/2F`. In a block of K steps that changes F by a small part of itself, one narrow
ball e encloses all excesses, so that the block changes F by :math:`K(w + e)`. The length of blocks
is proportional to F, so that about :math:`\log n` of them, over their relative length, are enough.
The last steps near the start are made one by one from both ends of the enclosure. Backward steps
keep the order of two points, since :math:`\delta - 2wg(\delta)` increases for
:math:`\delta \ge 0`; so the count is the number of steps if both ends take equally many.
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
"""The number of steps made one by one near the start, forward and backward."""


def has_few_blocks(problem: TwoActionProblem) -> bool:
    """Return whether the first update takes less than 1e30 backward ones to undo.

    It takes more than 1e60 for a first update of weight 300.
    """
    w, process = ball(problem.eta), SoftmaxProcess(problem.start)
    process.forward(w)
    return bool(_flow_time(process.origin + process.y) < 1e30 * w)


def count_in_blocks(n: int, problem: TwoActionProblem, strict: bool = False) -> int:
    """Return the count of PG-SM with a constant weight from pi_0(a_1) >= 1/2, n up to about 1e15.

    `has_few_blocks` must be true; `Undecided` is raised if no block length decides the last step.
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
    """Return a ball that encloses the log-odds at all flow times between the two."""
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
    """Return the log-odds at a flow time, in floats."""
    point = math.asinh(time)
    for _ in range(60):
        move = (point + math.sinh(point) - time) / (1 + math.cosh(point))
        point -= move
        if abs(move) < 1e-12 * (1 + point):
            break
    return point


def _excess(delta: arb, w: arb, direction: int) -> arb:
    r"""Enclose the excess of a forward step (direction 1) or the shortfall of a backward one (-1).

    Its main part is :math:`\frac{w^2}2\,m(\delta)\,(\frac{\sinh(s/2)}{s/2})^2` with
    :math:`m = \sinh\delta/(1+\cosh\delta)^2`. For :math:`\cosh\delta > 2` both factors decrease,
    so that their values at the ends enclose them.
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
    w, process = ball(problem.eta), SoftmaxProcess(problem.start)
    single = min(n, SINGLE_STEPS)
    for _ in range(single):
        process.forward(w)
    time = _forward(_flow_time(process.origin + process.y), w, n - single, part)
    floor = _flow_time(process.origin) + SINGLE_STEPS * w
    time, made = _backward(time, floor, w, part)
    found = {
        made + _count_back(end, problem, strict)
        for delta in [_log_odds_at(time, time)]
        for end in (delta.lower(), delta.upper())
    }
    if len(found) > 1:
        raise Undecided(f"the count is one of {sorted(found)}")
    return found.pop()


def _forward(time: arb, w: arb, steps: int, part: Fraction) -> arb:
    """Return the flow time after `steps` more forward steps."""
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
    """Return a flow time of at most `floor` after blocks of backward steps, and their number."""
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
    """Return the number of backward steps from the log-odds `delta` to the start or below it."""
    process, w = SoftmaxProcess(problem.start), ball(problem.eta)
    process.y = delta - process.origin
    goal = -1 if strict else 0
    for steps in range(10 * SINGLE_STEPS):
        if process.sign_of_change() <= goal:
            return steps
        process.backward(w)
    raise Undecided("the steps from the end of the last block do not reach the start")
