r"""Six states on which CE with bounded weights oscillates forever, for every discount above 1/2.

A state (r, c), with r in {0, 1, 2} and c in {r, r + 1} modulo 3, has three actions. Action 0 pays 0
and leads to the other state with the same c. Actions 1 and 2 pay 1 and lead to the other state with
the same r. The optimal value is :math:`1/(1-\gamma)` at every state. `ROUND` is a schedule of 42
updates; each state is updated seven times. A weight of the schedule depends on the parameters of
its state, and is chosen so that the updates return to the levels from which they started.

Actions 1 and 2 tie. With the chance `mixing` they end in one of two bandits instead, action 1 in
the first and action 2 in the second. A bandit is a state with two actions that pay 1 and 0 and end
the episode. The schedule updates the bandits alternately, so that the action that it needs next is
strictly the better one.

The functions work in floats, rationals and balls; the policy decides which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from pu_lib import kernels
from pu_lib.arrays import Floats
from pu_lib.chapters.cross_entropy.cycles import softmax_balls
from pu_lib.chapters.cross_entropy.quantities import (
    detour_lead,
    lead_error,
    return_lead,
    top_action,
)
from pu_lib.exact import ball, solve
from pu_lib.parametrizations import softmax_of_list

Number = Any
"""A float, a Fraction or an Arb ball."""
Policy = Callable[[Sequence[Number]], Sequence[Number]]

STATES = tuple((r, c % 3) for r in range(3) for c in (r, r + 1))
SAME_ROW = tuple(next(i for i, x in enumerate(STATES) if x != s and x[0] == s[0]) for s in STATES)
SAME_COLUMN = tuple(
    next(i for i, x in enumerate(STATES) if x != s and x[1] == s[1]) for s in STATES
)
LOWEST = 14
"""In units: how far action 2 starts below action 1."""


class Move(NamedTuple):
    """An update of the schedule: its state, its greedy action, and its weight.

    `weight` computes the weight from the parameters of the state and the unit.
    """

    state: int
    action: int
    weight: Callable[[Sequence[Number], Number], Number]


def _moves() -> tuple[Move, ...]:
    """Return the updates of one round."""
    moves = []
    for s in range(6):
        others = (SAME_ROW[s], SAME_COLUMN[SAME_ROW[s]])
        moves.append(Move(s, 2, lambda x, _: x[1] - x[2]))
        # The error: action 2 is greedy, and action 0 comes out on top.
        moves += [Move(other, 2, lambda x, unit: x[1] - x[0] + unit) for other in others]
        moves.append(Move(s, 0, lambda x, unit: x[2] + LOWEST * unit))
        moves += [Move(other, 1, lambda x, unit: (unit + x[0] - x[1]) / 2) for other in others]
        moves.append(Move(s, 1, lambda x, unit: x[0] + unit))
    return tuple(moves)


ROUND = _moves()


class Step(NamedTuple):
    """An update of a run.

    Attributes
    ----------
    weight : float, Fraction or arb
        The weight of the update.
    lead : float, Fraction or arb
        The value of the greedy action minus that of the other kind (action 0, or actions 1 and 2).
    preference : float, Fraction or arb
        If action 1 or 2 is greedy, its value minus that of the other one; 0 without bandits.
    values : list
        The values of the six states before the update.
    levels : list of list
        The parameters of the six states after the update.
    """

    weight: Number
    lead: Number
    preference: Number
    values: list[Number]
    levels: list[list[Number]]


def follow_hexagon(
    discount: Number,
    schedule: Iterable[tuple[Move, Number]],
    levels: list[list[Number]],
    policy: Policy,
    mixing: Number = 0,
    kernel: kernels.Kernel = kernels.ce,
    rounded: Callable[[Number], Number] = lambda x: x,
    most: Number = None,
) -> Iterator[Step]:
    """Yield the updates of a schedule on the hexagon, in the arithmetic of the arguments.

    `schedule` has moves with their units, and `levels` are the initial parameters, which change in
    place. A fourth action pays -1 and ends; it is never greedy, because all values are at least -1.
    `policy` computes the policy of a state from its parameters, and `rounded` is applied to the
    weights. A tie of actions 1 and 2 is broken as the schedule wants. The iteration ends before the
    first update whose action is not proved to be greedy. If `most` is given, such an update is made
    towards the action that is greedy, and all weights are between 1 and `most`.
    """
    zero = 0 * levels[0][0]
    bandits = [[zero, zero], [zero, zero]]
    for move, unit in schedule:
        if mixing and move.action:
            _raise_bandit(bandits, move.action - 1, policy, kernel)
        bonus = [discount * mixing * policy(x)[0] if mixing else zero for x in bandits]
        values = _values(discount, mixing, [policy(x) for x in levels], bonus)
        s, best = move.state, move.action
        stay = 1 + discount * (1 - mixing) * values[SAME_ROW[s]]
        q = [discount * values[SAME_COLUMN[s]], stay + bonus[0], stay + bonus[1], zero - 1]
        lead = q[best] - q[0] if best else q[0] - (q[1] if not mixing else max(q[1], q[2]))
        preference = zero if best == 0 or not mixing else bonus[best - 1] - bonus[2 - best]
        weight = rounded(move.weight(levels[s], unit))
        if not lead > 0:
            if most is None:
                return
            best = 0 if best else 1
        if most is not None:
            weight = min(max(weight, zero + 1), most)
        kernel(levels[s], policy(levels[s]), q, best, weight, len(levels[s]))
        yield Step(weight, lead, preference, values, [list(x) for x in levels])


def _values(
    discount: Number, mixing: Number, pi: Sequence[Sequence[Number]], bonus: Sequence[Number]
) -> list[Number]:
    """Return the values of the six states. The bandits add `bonus` to actions 1 and 2."""
    zero = 0 * discount
    matrix = [[zero + int(s == j) for j in range(6)] for s in range(6)]
    right = []
    for s, p in enumerate(pi):
        matrix[s][SAME_COLUMN[s]] -= discount * p[0]
        matrix[s][SAME_ROW[s]] -= discount * (1 - mixing) * (p[1] + p[2])
        right.append(zero + p[1] * (1 + bonus[0]) + p[2] * (1 + bonus[1]) - sum(p[3:], zero))
    return solve(matrix, right)


def _raise_bandit(
    bandits: list[list[Number]], better: int, policy: Policy, kernel: kernels.Kernel
) -> None:
    """Update a bandit with weight 1 until its value exceeds that of the other one."""
    while not policy(bandits[better])[0] > policy(bandits[1 - better])[0]:
        kernel(bandits[better], policy(bandits[better]), [1, 0], 0, 1, 2)


def _rounds(rounds: int, unit: Number) -> tuple[Iterable[tuple[Move, Number]], list[list[Number]]]:
    """Return the schedule of some rounds and the parameters at their start."""
    levels = [[-unit, 0 * unit, -LOWEST * unit] for _ in STATES]
    return zip(ROUND * rounds, repeat(unit)), levels


def hardened_steps(discount: Fraction, rounds: int) -> list[Step]:
    """Return the exact updates of the hardened system, whose policy takes the top action.

    The levels are in units of the smallest weight.
    """

    def top(levels: Sequence[Fraction]) -> list[int]:
        best = top_action(tuple(levels))
        return [int(a == best) for a in range(len(levels))]

    return list(follow_hexagon(discount, *_rounds(rounds, Fraction(1)), top))


def steps_in_balls(
    discount: Fraction,
    rounds: int,
    unit: int,
    mixing: Fraction = Fraction(0),
    kernel: kernels.Kernel = kernels.ce,
) -> list[Step]:
    """Return the updates of a run in balls, at the current precision.

    The weights are exact: each is the midpoint of a ball.
    """
    return list(
        follow_hexagon(
            ball(discount), *_rounds(rounds, ball(unit)), softmax_balls,
            ball(mixing) if mixing else 0, kernel, rounded=lambda x: x.mid(),
        )
    )  # fmt: skip


def least_lead(discount: Fraction) -> Fraction:
    """Return the least lead of a greedy action on the hexagon in the limit of large weights."""
    return Fraction(min(detour_lead(discount), return_lead(discount)))


def unit_for(discount: Fraction) -> int:
    """Return the unit of the weights: at least 20, and so large that no lead loses a quarter."""
    unit = 20
    while lead_error(float(discount), unit) > float(least_lead(discount)) / 4:
        unit += 1
    return unit


def mixing_for(discount: Fraction) -> Fraction:
    """Return a chance of the bandits with which no lead loses more than half."""
    return least_lead(discount) * (1 - discount) ** 2 / 4


class Swings(NamedTuple):
    """A run of CE on the hexagon: its weights, and the range of the value of every state.

    Attributes
    ----------
    weights : list of float
        The weights of the updates, in their order.
    margin : float
        The least lead of a greedy action over the actions of the other kind.
    lowest, highest : ndarray, shape (6,)
        The smallest and the largest value of each state before an update.
    path : ndarray, shape (42 * rounds, 6)
        The values before each update.
    """

    weights: list[float]
    margin: float
    lowest: Floats
    highest: Floats
    path: Floats


def hexagon_swings(discount: float, rounds: int, unit: float = 20.0) -> Swings:
    """Run CE in floats on the hexagon, where all values rise to the optimum and fall to 0.

    Raises a `ValueError` if an action of the schedule is not greedy.
    """
    steps = list(follow_hexagon(discount, *_rounds(rounds, unit), softmax_of_list))
    if len(steps) < len(ROUND) * rounds:
        move = ROUND[len(steps) % len(ROUND)]
        raise ValueError(f"discount: action {move.action} is not greedy at state {move.state}.")
    path = np.array([step.values for step in steps])
    margin = float(min(step.lead for step in steps))
    return Swings([step.weight for step in steps], margin, path.min(axis=0), path.max(axis=0), path)
