"""One step and its values in ball arithmetic, to certify the change in the value.

Inputs are exact numbers, and results are intervals that contain the exact result (`pu_lib.exact`).
Each update applies its own kernel to balls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from flint import arb
from numpy.typing import NDArray

from pu_lib import kernels
from pu_lib.exact import Number, Undecided, ball, exact, solve
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update, as_update

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CertifiedStep:
    """The values and policies before and after one step at one state, with fixed action values."""

    v: arb
    new_v: arb
    pi: list[arb]
    new_pi: list[arb]

    @property
    def change(self) -> arb:
        """The change in the value."""
        return self.new_v - self.v


def certified_step(
    update: str | Update, theta: Sequence[Number], q: Sequence[Number], weight: Number
) -> CertifiedStep:
    """Return one step of a softmax policy at one state, in balls that contain the exact numbers.

    The greedy action is the first of several tied actions.
    """
    parameters, values = [ball(x) for x in theta], [ball(x) for x in q]
    pi = ball_softmax(parameters)
    greedy = max(range(len(q)), key=lambda a: exact(q[a]))
    new = ball_softmax(_updated_parameters(update, parameters, pi, values, greedy, ball(weight)))
    v, new_v = (kernels.mean(p, values, len(q)) for p in (pi, new))
    return CertifiedStep(v, new_v, pi, new)


def _updated_parameters(
    update: str | Update, theta: list[arb], pi: list[arb], q: list[arb], greedy: int, weight: arb
) -> list[arb]:
    """Return the parameters after one step, with the kernel of the update applied to balls."""
    chosen = as_update(update)
    if chosen.parametrization != "softmax" or chosen.kernel is None:
        raise ValueError(
            f"update: expected an update of a softmax policy with a kernel, got {chosen.name!r}."
        )
    moved = list(theta)
    chosen.kernel(moved, pi, q, greedy, weight, len(moved))
    return moved


def ball_softmax(theta: Sequence[arb]) -> list[arb]:
    """Return the softmax policy in balls, computed after subtracting the largest midpoint."""
    top = max(theta, key=lambda x: float(x.mid())).mid()
    powers = [(x - top).exp() for x in theta]
    total = sum(powers, arb(0))
    return [power / total for power in powers]


def certified_changes(
    update: str | Update, mdp: FiniteMDP, theta: Floats, weight: Floats, equal: NDArray[np.bool_]
) -> list[arb]:
    """Return the change in the value of every state after one step, in balls.

    `equal` marks the states with identical actions. The function raises `Undecided` if the greedy
    action of another state cannot be certified.
    """
    parameters = [[arb(x) for x in row] for row in theta.tolist()]
    pi = [ball_softmax(row) for row in parameters]
    v = _ball_values(mdp, pi)
    new = []
    for s, row in enumerate(parameters):
        q = [_ball_q(mdp, v, s, a) for a in range(mdp.n_actions)]
        greedy = 0 if equal[s] else _certified_argmax(q)
        new.append(
            ball_softmax(_updated_parameters(update, row, pi[s], q, greedy, arb(float(weight[s]))))
        )
    return [after - before for before, after in zip(v, _ball_values(mdp, new), strict=True)]


def _ball_values(mdp: FiniteMDP, pi: list[list[arb]]) -> list[arb]:
    """Return the solution v of (I - gamma P) v = r in balls."""
    n, gamma = mdp.n_states, arb(mdp.discount)
    matrix = [[arb(int(s == x)) for x in range(n)] for s in range(n)]
    right = [arb(0)] * n
    for s, a in product(range(n), range(mdp.n_actions)):
        right[s] = right[s] + pi[s][a] * arb(float(mdp.rewards[s, a]))
        for x in np.flatnonzero(mdp.transitions[s, a]):
            chance = arb(float(mdp.transitions[s, a, x]))
            matrix[s][x] = matrix[s][x] - gamma * pi[s][a] * chance
    return solve(matrix, right)


def _ball_q(mdp: FiniteMDP, v: list[arb], s: int, a: int) -> arb:
    chances = mdp.transitions[s, a]
    following = sum((arb(float(chances[x])) * v[x] for x in np.flatnonzero(chances)), arb(0))
    return arb(float(mdp.rewards[s, a])) + arb(mdp.discount) * following


def _certified_argmax(q: list[arb]) -> int:
    """Return the action whose ball lies above all other balls, or raise `Undecided`."""
    for a, value in enumerate(q):
        if all(value > other for b, other in enumerate(q) if b != a):
            return a
    raise Undecided("the balls of two action values overlap: the greedy action is undecided")
