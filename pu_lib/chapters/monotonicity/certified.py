"""Steps and values in ball arithmetic, to prove what one update does to the value.

Everything given is taken as the exact number it says, and everything returned is an interval that
contains the exact result (`pu_lib.exact`). A step is the update's own kernel, run on balls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from pu_lib import kernels
from pu_lib.exact import Number, Undecided, ball, exact
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update, as_update

__all__ = ["CertifiedStep", "ball_softmax", "certified_changes", "certified_step"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CertifiedStep:
    """One update of one state in ball arithmetic.

    Attributes
    ----------
    v, new_v : arb
        The value before and after, for values of the actions that stay as they are.
    pi, new_pi : list of arb
        The policy before and after, one ball an action.
    """

    v: arb
    new_v: arb
    pi: list[arb]
    new_pi: list[arb]

    @property
    def change(self) -> arb:
        """What the update adds to the value."""
        return self.new_v - self.v


def certified_step(
    update: str | Update, theta: Sequence[Number], q: Sequence[Number], weight: Number
) -> CertifiedStep:
    """Update one state with balls that enclose the exact numbers.

    Parameters
    ----------
    update : str or Update
        An update of the softmax policy that has a kernel.
    theta, q : sequence of numbers
        Exact parameters and values; the first of the largest values is greedy.
    weight : number
        Exact weight.

    Returns
    -------
    CertifiedStep
        Balls that contain the exact values and probabilities, before and after.

    Raises
    ------
    ValueError
        If the update has another policy, or no kernel.
    """
    parameters, values = [ball(x) for x in theta], [ball(x) for x in q]
    pi = ball_softmax(parameters)
    greedy = max(range(len(q)), key=lambda a: exact(q[a]))
    new = ball_softmax(_moved(update, parameters, pi, values, greedy, ball(weight)))
    v, new_v = (kernels.mean(p, values, len(q)) for p in (pi, new))
    return CertifiedStep(v, new_v, pi, new)


def _moved(
    update: str | Update, theta: list[arb], pi: list[arb], q: list[arb], greedy: int, weight: arb
) -> list[arb]:
    """Return the parameters after one step of the update's kernel on balls."""
    chosen = as_update(update)
    if chosen.parametrization != "softmax" or chosen.kernel is None:
        raise ValueError(
            f"update: expected a softmax policy with a kernel to run on balls, got {chosen.name!r}."
        )
    moved = list(theta)
    chosen.kernel(moved, pi, q, greedy, weight, len(moved))
    return moved


def ball_softmax(theta: Sequence[arb]) -> list[arb]:
    """Return the softmax policy in balls, shifted by the largest midpoint.

    Parameters
    ----------
    theta : sequence of arb
        The parameters.

    Returns
    -------
    list of arb
        Balls that contain the exact probabilities.
    """
    top = max(theta, key=lambda x: float(x.mid())).mid()
    powers = [(x - top).exp() for x in theta]
    total = sum(powers, arb(0))
    return [power / total for power in powers]


def certified_changes(
    update: str | Update, mdp: FiniteMDP, theta: Floats, weight: Floats, equal: NDArray[np.bool_]
) -> list[arb]:
    """Return v' - v of all states after one update, in balls; all numbers given are taken exactly.

    Parameters
    ----------
    update : str or Update
        An update of the softmax policy that has a kernel.
    mdp : FiniteMDP
        The process.
    theta : ndarray, shape (n_states, n_actions)
        The parameters.
    weight : ndarray, shape (n_states,)
        The weights; no update where they are zero.
    equal : ndarray of bool, shape (n_states,)
        Where all actions are the same; elsewhere one must be the best, provably.

    Returns
    -------
    list of arb
        One ball a state.

    Raises
    ------
    Undecided
        If the precision at hand does not tell which action is the best.
    """
    parameters = [[arb(x) for x in row] for row in theta.tolist()]
    pi = [ball_softmax(row) for row in parameters]
    v = _ball_values(mdp, pi)
    new = []
    for s, row in enumerate(parameters):
        q = [_ball_q(mdp, v, s, a) for a in range(mdp.n_actions)]
        greedy = 0 if equal[s] else _certified_argmax(q)
        new.append(ball_softmax(_moved(update, row, pi[s], q, greedy, arb(float(weight[s])))))
    return [after - before for before, after in zip(v, _ball_values(mdp, new), strict=True)]


def _ball_values(mdp: FiniteMDP, pi: list[list[arb]]) -> list[arb]:
    """Solve (I - gamma P) v = r in balls."""
    n, gamma = mdp.n_states, arb(mdp.discount)
    matrix = [[arb(int(s == x)) for x in range(n)] for s in range(n)]
    right = [arb(0)] * n
    for s, a in product(range(n), range(mdp.n_actions)):
        right[s] = right[s] + pi[s][a] * arb(float(mdp.rewards[s, a]))
        for x in np.flatnonzero(mdp.transitions[s, a]):
            chance = arb(float(mdp.transitions[s, a, x]))
            matrix[s][x] = matrix[s][x] - gamma * pi[s][a] * chance
    solution = arb_mat(matrix).solve(arb_mat([[x] for x in right]))
    return [solution[s, 0] for s in range(n)]


def _ball_q(mdp: FiniteMDP, v: list[arb], s: int, a: int) -> arb:
    chances = mdp.transitions[s, a]
    following = sum((arb(float(chances[x])) * v[x] for x in np.flatnonzero(chances)), arb(0))
    return arb(float(mdp.rewards[s, a])) + arb(mdp.discount) * following


def _certified_argmax(q: list[arb]) -> int:
    """Return the action whose ball lies above all others, or raise."""
    for a, value in enumerate(q):
        if all(value > other for b, other in enumerate(q) if b != a):
            return a
    raise Undecided("the balls of two values overlap: the greedy action is not decided")
