r"""Policy losses of other papers and libraries, and the two forms of the policy gradient.

**Losses.** A loss is given as the objective that an actor maximises on average at one state, a
function of the new policy, of the policy that has acted, of the values and of the advantages. Its
gradient at the policy that has acted is the mean step (`loss_step`). Bonuses for entropy and
penalties for distance are left out.

**The policy gradient.** The likelihood ratio multiplies the return of a whole trajectory by the
gradient of the logarithm of its probability (Williams, 1992). The policy gradient theorem has
values and visits in place of returns and trajectories (Sutton et al., 2000). Both are the gradient
of the performance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.chapters.literature.quantities import best_of_n
from pu_lib.chapters.updates.quantities import Policy, complex_step, softmax_of
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import softmax

__all__ = [
    "EARLIER",
    "OBJECTIVES",
    "SURVEY",
    "Algorithm",
    "Implementation",
    "likelihood_ratio",
    "loss_step",
    "natural_step",
    "undiscounted_visits",
]

# Losses

Objective = Callable[[NDArray[Any], Floats, Floats, Floats], Any]
"""A function of the new policy, the policy that has acted, the values and the advantages."""

OBJECTIVES: dict[str, Objective] = {
    "log-likelihood": lambda new, acted, q, adv: np.log(new) @ (acted * adv),
    "ratio": lambda new, acted, q, adv: (new / acted) @ (acted * adv),
    "all actions": lambda new, acted, q, adv: new @ q,
    "indicator": lambda new, acted, q, adv: np.log(new) @ (acted * (adv > 0)),
    "exponential": lambda new, acted, q, adv: np.log(new) @ (acted * np.exp(adv)),
    "softened values": lambda new, acted, q, adv: np.log(new) @ softmax(np.log(acted) + q),
    "best of 30": lambda new, acted, q, adv: np.log(new) @ best_of_n(acted, q, 30),
}
"""Objectives by name.

"ratio" is that of PPO, whose clip does not act at the policy that has acted. The temperatures of
"exponential" and "softened values" are 1.
"""

_ACTIONS = np.linspace(-6.0, 6.0, 241)


def gaussian_of(mean: NDArray[Any]) -> NDArray[Any]:
    """Return the probabilities of a grid of actions under a Gaussian policy of unit variance."""
    density = np.exp(-((_ACTIONS - mean) ** 2) / 2)
    return np.asarray(density / density.sum(axis=-1, keepdims=True))


def gaussian_values(seed: int) -> Floats:
    """Return smooth random values of the actions of `gaussian_of`."""
    waves = np.random.default_rng(seed).normal(size=(2, 3))
    angles = np.outer(np.arange(1, 4), _ACTIONS) / 2
    return np.asarray(waves[0] @ np.sin(angles) + waves[1] @ np.cos(angles))


def loss_step(
    objective: str | Objective, theta: Floats, q: Floats, policy: Policy = softmax_of
) -> Floats:
    """Return the gradient of an objective at the policy that has acted."""
    acted = np.asarray(policy(theta), dtype=np.float64)
    function = OBJECTIVES[objective] if isinstance(objective, str) else objective
    return complex_step(lambda x: function(policy(x), acted, q, q - acted @ q), theta)


def natural_step(theta: Floats, q: Floats, policy: Policy = softmax_of) -> Floats:
    """Return the step of the natural policy gradient, that of NPG and of TRPO up to its length."""
    slopes, pi = complex_step(policy, theta), np.asarray(policy(theta), dtype=np.float64)
    fisher = (slopes / pi) @ slopes.T
    return np.asarray(np.linalg.pinv(fisher) @ loss_step("all actions", theta, q, policy))


@dataclass(frozen=True)
class Implementation:
    """An actor-critic algorithm in a library, for discrete actions, as its source has it.

    Attributes
    ----------
    library, algorithm : str
        The library with its version, and the algorithm.
    objective : str
        The policy loss, a key of `OBJECTIVES`, or "natural" for the natural gradient.
    replayed : bool
        Whether states come from other policies, without a correction.
    discounted : bool
        Whether states are weighted by powers of the discount.
    """

    library: str
    algorithm: str
    objective: str
    replayed: bool = False
    discounted: bool = False


_SB3, _CLEANRL, _TIANSHOU, _RLLIB = (
    "Stable-Baselines3 2.9.0a4",  # 15 June 2026, commit e05d2db
    "CleanRL 2.0.0b1",  # 20 April 2026, commit fe8d8a0
    "Tianshou 2.0.1",  # 3 April 2026, commit f240205
    "RLlib",  # commits 04bef2a and 234e7bd of Ray
)

SURVEY = (
    Implementation(_SB3, "A2C", "log-likelihood"),
    Implementation(_SB3, "PPO", "ratio"),
    Implementation(_CLEANRL, "PPO", "ratio"),
    Implementation(_CLEANRL, "PPG", "ratio"),
    Implementation(_CLEANRL, "SAC", "all actions", replayed=True),
    Implementation(_TIANSHOU, "A2C", "log-likelihood"),
    Implementation(_TIANSHOU, "PPO", "ratio"),
    Implementation(_TIANSHOU, "NPG", "natural"),
    Implementation(_TIANSHOU, "TRPO", "natural"),
    Implementation(_TIANSHOU, "discrete SAC", "all actions", replayed=True),
    Implementation(_TIANSHOU, "discrete CRR", "exponential", replayed=True),
    Implementation(_RLLIB, "PPO", "ratio"),
    Implementation(_RLLIB, "IMPALA", "log-likelihood"),
    Implementation(_RLLIB, "MARWIL", "exponential", replayed=True),
)
"""The actor-critic algorithms with discrete actions whose losses were read in four libraries.

All of them draw actions from the softmax of the network's outputs, and take the mean or the sum of
the loss over the states of a batch, with the same weight for early and for late states.
"""


@dataclass(frozen=True)
class Algorithm:
    """An actor-critic algorithm of a paper that is not a policy gradient.

    Attributes
    ----------
    name : str
        The algorithm and its year.
    objective : str
        The policy loss, a key of `OBJECTIVES`.
    policy : callable
        The policy, a function of its parameters.
    """

    name: str
    objective: str
    policy: Policy = softmax_of


EARLIER = (
    Algorithm("CACLA (2007)", "indicator", gaussian_of),
    Algorithm("MPO (2018)", "softened values"),
    Algorithm("Actor-Expert (2018)", "best of 30"),
    Algorithm("CRR (2020)", "exponential"),
)
"""Actor-critic algorithms with function approximation that are older than the paper.

The update of CACLA was read in two programs by others (SimionZoo and NeuroNet), those of MPO and
CRR in Acme (commit 770bc75, 1 August 2026), and that of Actor-Expert in its first pages and in the
program of Greedy AC, its later form (commit 1832599, 14 June 2024).
"""

# The two forms of the policy gradient


def likelihood_ratio(
    mdp: FiniteMDP, theta: Floats, horizon: int, all_rewards: bool = True
) -> Floats:
    """Return the mean over trajectories of return times the gradient of their log-probability.

    All trajectories of `horizon` steps are visited. Without `all_rewards`, the return is the reward
    of the first step.
    """
    pi, total = softmax(theta), np.zeros_like(theta)

    def visit(state: int, chance: float, earned: float, score: Floats, step: int) -> None:
        if chance == 0.0:
            return
        if step == horizon or mdp.terminal[state]:
            total[...] += chance * earned * score
            return
        for action, probability in enumerate(pi[state]):
            moved = score.copy()
            moved[state] += np.eye(len(pi[state]))[action] - pi[state]
            paid = mdp.discount**step * mdp.rewards[state, action]
            now = earned + (paid if all_rewards or step == 0 else 0.0)
            for after, reached in enumerate(mdp.transitions[state, action]):
                visit(after, chance * probability * reached, now, moved, step + 1)

    for state, chance in enumerate(mdp.initial):
        visit(state, float(chance), 0.0, np.zeros_like(theta), 0)
    return total


def undiscounted_visits(mdp: FiniteMDP, pi: Floats) -> Floats:
    """Return the mean numbers of visits before the end, without the discount."""
    inside = ~mdp.terminal
    moves = np.einsum("sa,sat->st", pi, mdp.transitions)[np.ix_(inside, inside)]
    visits = np.zeros(mdp.n_states)
    visits[inside] = np.linalg.solve(np.eye(len(moves)) - moves.T, mdp.initial[inside])
    return visits
