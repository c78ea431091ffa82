r"""MCE with approximate values: a chain on which errors of eps in the values add up forever.

The chain has the states 1 to n. In state k the first action, *move*, pays 0 and leads to state
k - 1 (from state 1 to the end), and the second, *stay*, pays :math:`-g_k` and stays, where
:math:`g_k=1+\gamma+\dots+\gamma^{k-1}`. It is best to move everywhere. The states err in turn: in
state k *stay* looks as good as *move* within 1, if state k - 1 stays and all others move. So values
with errors of at most eps = 1/2, and a little more for the rare actions, make *stay* greedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flint import arb

from pu_lib import kernels
from pu_lib.deterministic import action_values, policy_values
from pu_lib.exact import Number, ball

MOVE, STAY = 0, 1


class LongRun(NamedTuple):
    """A period of MCE on the chain, in balls.

    Attributes
    ----------
    error : arb
        The error of the values that makes the actions of the schedule greedy.
    gap : arb
        The distance of the last state's value to the optimum after its error.
    drift : arb
        The largest distance of a parameter to its initial value after the period.
    weights : list of arb
        The weights of the updates.
    """

    error: arb
    gap: arb
    drift: arb
    weights: list[arb]


def erring_chain(
    discount: Number, n_states: int, lead: int = 100, kernel: kernels.Kernel = kernels.mce
) -> LongRun:
    """Run a period of 2n updates, each of which exchanges the parameters of a state's actions.

    `lead` is the difference of the parameters. The precision of balls must exceed about three times
    `lead` in bits.
    """
    gamma = ball(discount)
    costs = [arb(0)]
    for _ in range(n_states):
        costs.append(gamma * costs[-1] + 1)
    rewards: list[list[arb]] = [[arb(0), -cost] for cost in costs[1:]]
    successors: list[list[int | None]] = [[k - 1 if k else None, k] for k in range(n_states)]
    half = ball(lead) / 2
    theta = [[half, -half] for _ in range(n_states)]
    schedule = [(0, STAY)]
    for k in range(1, n_states):
        schedule += [(k, STAY), (k - 1, MOVE)]
    schedule.append((n_states - 1, MOVE))
    error, gap, weights = arb(0), arb(0), []
    for state, action in schedule:
        v = policy_values(rewards, successors, gamma, [_policy(row) for row in theta])
        q = action_values(rewards[state], successors[state], gamma, v)
        error = error.max((q[1 - action] - q[action]) / 2)
        gap = gap.max(-v[-1])
        pi = _policy(theta[state])
        # MCE changes the difference of two parameters by twice the weight times 1 - pi.
        weights.append(lead / (1 - pi[action]))
        kernel(theta[state], pi, q, action, weights[-1], 2)
        theta[state][1 - action] = -theta[state][action]  # their sum is 0; keeps the radii small
    drift = max((abs(row[MOVE] - half) for row in theta), key=float)
    return LongRun(error, gap, drift, weights)


def _policy(theta: Sequence[arb]) -> list[arb]:
    """Return the softmax of two parameters."""
    first = 1 / (1 + (theta[1] - theta[0]).exp())
    return [first, 1 / (1 + (theta[0] - theta[1]).exp())]
