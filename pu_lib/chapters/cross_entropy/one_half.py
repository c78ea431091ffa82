r"""Six states on which CE oscillates for ever at a discount of 1/2, with weights of order log t.

The hexagon of `hexagon` has a fourth action z in each state, which pays -1 and ends. It is never
greedy. At a discount of 1/2 the lead of action 0 is zero on the hexagon itself. If z is
less rare than the errors of states with action 0 on top, their values are negative and the lead is
positive. z loses probability in each round, but little if the weights grow.

Round n has the unit :math:`U = 6\log n`. It has three blocks of ten updates. In a block two *low*
states fall to 0 and rise again, and two *reset* states return to the levels
:math:`(\theta_a,\theta_b,\theta_{\tilde b}) = (c-U, c, c-4U)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pu_lib import kernels
from pu_lib.arrays import Floats
from pu_lib.chapters.cross_entropy.cycles import softmax_balls
from pu_lib.chapters.cross_entropy.hexagon import (
    STATES,
    Move,
    Number,
    Step,
    follow_hexagon,
)
from pu_lib.exact import ball
from pu_lib.parametrizations import softmax_of_list

FACTOR = 6
"""The unit of round n divided by log n."""


def _moves() -> tuple[Move, ...]:
    """Return the updates of one round."""
    moves = []
    for low in ((1, 2), (3, 4), (5, 0)):
        reset = (low[0] - 1, (low[1] + 1) % 6)
        moves += [Move(s, 2, lambda x, _: x[1] - x[2]) for s in reset]
        # The error: action 2 is greedy, and action 0 comes out on top.
        moves += [Move(s, 2, lambda x, unit: x[1] - x[0] + unit) for s in low]
        moves += [
            Move(s, 0, lambda x, unit: (7 * unit + 2 * x[2] - x[1] - x[0]) / 3) for s in reset
        ]
        moves += [Move(s, 1, lambda x, unit: x[0] - x[1] + unit) for s in low]
        moves += [Move(s, 1, lambda x, unit: (unit + x[0] - x[1]) / 2) for s in reset]
    return tuple(moves)


ROUND = _moves()


def unit_of(n: int) -> Number:
    """Return the unit of round n as a ball at the current precision."""
    return FACTOR * ball(n).log()


def follow_in_balls(
    discount: Fraction,
    units: Sequence[Number],
    fourth: int = 0,
    kernel: kernels.Kernel = kernels.ce,
) -> Iterator[Step]:
    """Yield the updates of one round for each unit, in balls and at the current precision.

    `fourth` is the initial parameter of the fourth action. The weights are exact: each is the
    midpoint of a ball. The iteration ends before an action that is not proved to be greedy.
    """
    return follow_hexagon(
        ball(discount), _schedule(units), _first_levels(units[0], fourth), softmax_balls,
        kernel=kernel, rounded=lambda x: x.mid(),
    )  # fmt: skip


class Attack(NamedTuple):
    """The values before each update of an attacked run, and the rounds that follow the schedule."""

    values: Floats
    rounds: int


def attack(discount: float, units: Sequence[float]) -> Attack:
    """Run CE in floats on one round for each unit, and go on if an action is not greedy.

    All weights are between 1 and five times the largest unit.
    """
    levels = _first_levels(units[0])
    steps = list(
        follow_hexagon(discount, _schedule(units), levels, softmax_of_list, most=5 * max(units))
    )
    failures = (i for i, step in enumerate(steps) if not step.lead > 0)
    return Attack(
        np.array([step.values for step in steps]), next(failures, len(steps)) // len(ROUND)
    )


def _schedule(units: Sequence[Number]) -> Iterator[tuple[Move, Number]]:
    """Yield the moves of one round for each unit."""
    return ((move, unit) for unit in units for move in ROUND)


def _first_levels(unit: Number, fourth: int = 0) -> list[list[Number]]:
    """Return the initial parameters of the six states; their sum is zero if `fourth` is."""
    return [[2 * unit / 3, 5 * unit / 3, -7 * unit / 3, fourth + 0 * unit] for _ in STATES]
