r"""Exact counts of PG-SM that are too long to make step by step: enclosed in blocks of steps.

Let :math:`F(\delta) = \delta + \sinh\delta`, the travel time of the comparison lemma:
:math:`F' = 1/2g`. A step of weight w from :math:`\delta` has the length
:math:`s = 2wg(\delta) = w/(1+\cosh\delta)`, and changes F by w plus an *excess* forward, by w minus
a *shortfall* backward,

.. math:: e_\pm(\delta) = \sinh\delta\,(\cosh s - 1) \pm \cosh\delta\,(\sinh s - s),
          \qquad \sinh s - s \in \tfrac{s^3}6\,[1, \cosh s],

of order :math:`w^2/2F`. Along a block of K steps on which F changes by a small part of itself the
excess is enclosed in one narrow ball e, so that F changes by :math:`K(w + e)` together; blocks grow
with F, and there are about :math:`\log n` of them over their relative length. The rest near the
start is made step by step from both ends of the enclosure: backward steps keep the order of two
points, since :math:`\delta - 2wg(\delta)` increases for :math:`\delta \ge 0`, so that if both ends
take the same number of steps, that number is the count.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from flint import arb, ctx

from pu_lib.exact import Undecided, ball, certified
from pu_lib.two_action_dynamics import Setting, SoftmaxWalker

__all__ = ["far_count", "is_near_enough"]

NEAR = 1000
"""Steps made one by one near the start, forward and backward."""


def is_near_enough(chosen: Setting) -> bool:
    """Return whether the first update leads less than 1e30 updates away, so that blocks are few.

    A first update of weight 300 already takes more than 1e60 to undo.
    """
    w, walker = ball(chosen.eta), SoftmaxWalker(chosen.start)
    walker.forward(w)
    return bool(_travel(walker.origin + walker.y) < 1e30 * w)


def far_count(n: int, chosen: Setting, strict: bool = False) -> int:
    """Return the count of PG-SM with a constant weight from pi_0(a_1) >= 1/2, n up to about 1e15.

    `is_near_enough` must hold; `Undecided` is raised if no block length decides the last step.
    """
    for part in (Fraction(1, k) for k in (250, 1000, 4000, 16000)):
        try:
            return certified(partial(_count, n, chosen, strict, part), bits=256, max_bits=256)
        except Undecided:
            continue
    raise Undecided(f"the blocks do not decide the count of n = {n}")


def _travel(delta: arb) -> arb:
    return delta + delta.sinh()


def _place(lowest: arb, highest: arb) -> arb:
    """Return a ball that encloses the log-odds at all travel times between the two."""
    ends, narrow = [], arb(2) ** max(24 - ctx.prec, -100)
    for time, outward in ((lowest.lower(), -1), (highest.upper(), 1)):
        point, move = arb(_near(float(time))), arb(1)
        for _ in range(60):
            if abs(move) < narrow * (1 + point):
                break
            move = ((_travel(point) - time) / (1 + point.cosh())).mid()
            point = (point - move).mid()
        end = (point + outward * narrow * (1 + abs(point))).mid()
        if not outward * (_travel(end) - time) >= 0:
            raise Undecided(f"the log-odds at travel time {time} are not enclosed")
        ends.append(end)
    return ends[0].union(ends[1])


def _near(time: float) -> float:
    """Return the log-odds at a travel time, in floats."""
    point = math.asinh(time)
    for _ in range(60):
        move = (point + math.sinh(point) - time) / (1 + math.cosh(point))
        point -= move
        if abs(move) < 1e-12 * (1 + point):
            break
    return point


def _excess(delta: arb, w: arb, direction: int) -> arb:
    r"""Enclose the excess of a forward step (direction 1), the shortfall of a backward one (-1).

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


def _count(n: int, chosen: Setting, strict: bool, part: Fraction) -> int:
    w, walker = ball(chosen.eta), SoftmaxWalker(chosen.start)
    walked = min(n, NEAR)
    for _ in range(walked):
        walker.forward(w)
    time = _forward(_travel(walker.origin + walker.y), w, n - walked, part)
    floor = _travel(walker.origin) + NEAR * w
    time, made = _backward(time, floor, w, part)
    found = {
        made + _walk_home(end, chosen, strict)
        for delta in [_place(time, time)]
        for end in (delta.lower(), delta.upper())
    }
    if len(found) > 1:
        raise Undecided(f"the count is one of {sorted(found)}")
    return found.pop()


def _forward(time: arb, w: arb, steps: int, part: Fraction) -> arb:
    """Return the travel time after more forward steps."""
    while steps:
        made = min(steps, max(1, int(part * Fraction(float(time / w)))))
        most = 2 * _excess(_place(time, time), w, 1).upper()
        excess = _excess(_place(time, time + made * (w + most)), w, 1)
        if not 0 <= excess <= most:
            raise Undecided("the excess of a block is not enclosed")
        time += made * (w + excess)
        steps -= made
    return time


def _backward(time: arb, floor: arb, w: arb, part: Fraction) -> tuple[arb, int]:
    """Go back, in blocks, to at most `floor`; return the travel time there and the steps made."""
    total = 0
    while time > floor:
        left = int(float((time - floor) / w))
        made = max(1, min(left, int(part * Fraction(float(time / w)))))
        shortfall = _excess(_place(time - made * w, time), w, -1)
        if not 0 <= shortfall <= w:
            raise Undecided("the shortfall of a block is not enclosed")
        time -= made * (w - shortfall)
        total += made
    return time, total


def _walk_home(delta: arb, chosen: Setting, strict: bool) -> int:
    """Count the backward steps from the log-odds `delta` until the start is reached or passed."""
    walker, w = SoftmaxWalker(chosen.start), ball(chosen.eta)
    walker.y = delta - walker.origin
    goal = -1 if strict else 0
    for steps in range(10 * NEAR):
        if walker.side() <= goal:
            return steps
        walker.backward(w)
    raise Undecided("the start is farther than the blocks say")
