r"""CE with weights that are constant in time: the balance identity and a convergence theorem.

An update of weight w at one state, with :math:`g_t` greedy, changes the potential
:math:`G(\theta)=\frac12\|\theta\|^2-w\log\sum_ae^{\theta_a}` by exactly

.. math::  w\,\big(\log\pi_{t+1}(g_t) + H(\pi_t) - \tfrac w2(1-\|\pi_t\|^2)\big),

whichever action is greedy (the *balance*). The potential is bounded below, and it is the same
function at every step only if w is constant. So the sum of the log losses
:math:`-\log\pi_{t+1}(g_t)` of the greedy actions *after* their update is at most a constant, which
depends on the initial parameters, plus the sum of the *excess entropies*
:math:`H(\pi)-\frac w2(1-\|\pi\|^2)`. Each excess entropy is at most
:math:`(|\mathcal A|-1)e^{-w(1-y)}` with :math:`y=\min(\frac12,(|\mathcal A|-1)e^{1-w/2})`.

A step is *good* if every greedy action has a probability of at least :math:`1-\varepsilon` after
the step. A good step is nearly a step of policy iteration. If the optimal policy is unique, J + 1
consecutive good steps make all later greedy actions optimal. If CE does not converge, every window
of J + 1 steps contains a step that is not good, and the excess entropies must bound the sum of the
log losses of all these steps (`Constants`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib.chapters.cross_entropy.quantities import (
    exponent_threshold,
    lack_bound,
    rare_mass,
    start_bound,
)
from pu_lib.deterministic import DeterministicMDP
from pu_lib.updates import UPDATES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def log_softmax(theta: Floats) -> Floats:
    """Return the logarithms of softmax probabilities along the last axis, without underflow."""
    top, rest = _log_sum(theta)
    return np.asarray(theta - top - rest)


def _log_sum(theta: Floats) -> tuple[Floats, Floats]:
    """Return the largest exponent and the remainder of the logarithm of a sum of exponentials.

    Adding the two parts would lose digits of the difference between an exponent and the logarithm.
    """
    top = theta.max(axis=-1, keepdims=True)
    return top, np.log(np.exp(theta - top).sum(axis=-1, keepdims=True))


def excess_entropy(theta: Floats, weight: Floats) -> Floats:
    r"""Return :math:`H(\pi)-\frac w2(1-\|\pi\|^2)` of softmax policies, in nats."""
    logs = log_softmax(theta)
    pi = np.exp(logs)
    return np.asarray(-(pi * logs).sum(axis=-1) - weight / 2 * (1 - (pi**2).sum(axis=-1)))


def potential(theta: Floats, weight: Floats) -> Floats:
    r"""Return :math:`\frac12\|\theta\|^2-w\log\sum_ae^{\theta_a}`."""
    scale = np.add(*_log_sum(theta))[..., 0]
    return np.asarray((theta**2).sum(axis=-1) / 2 - weight * scale)


def start_budget(theta: Floats, weight: Floats) -> Floats:
    """Return an upper bound, in nats, on the log losses minus the excess entropies of a run.

    The bound depends on the initial parameters `theta`, but not on a common shift of them.
    """
    centred = theta - theta.mean(axis=-1, keepdims=True)
    return np.asarray(start_bound((centred**2).sum(axis=-1), weight))


@dataclass(frozen=True)
class Constants:
    """The constants of the convergence theorem for an MDP with a unique optimal policy.

    Attributes
    ----------
    q_range : float
        The constant B, an upper bound on the difference between two action values at a state under
        any policy.
    gap : float
        The smallest gap between an optimal action and another action, under the optimal values.
    discount : float
        The discount factor.
    policy : tuple of int
        The optimal action of each state.
    n_actions : int
        The number of actions.
    """

    q_range: float
    gap: float
    discount: float
    policy: tuple[int, ...]
    n_actions: int

    @property
    def tolerance(self) -> float:
        r"""The bound :math:`\varepsilon=(1-\gamma)^2\Delta/(2B)` on 1 - pi(g) after a good step."""
        return float(lack_bound(self.discount, self.gap, self.q_range))

    @property
    def window(self) -> int:
        r"""The least J of at least 1 with :math:`\gamma^J\le(1-\gamma)\Delta/(2B)`."""
        goal, steps = (1 - self.discount) * self.gap / (2 * self.q_range), 1
        while self.discount**steps > goal:
            steps += 1
        return steps

    @property
    def required_excess(self) -> float:
        r"""The mean excess entropy :math:`\varepsilon/(J+1)` below which CE converges."""
        return self.tolerance / (self.window + 1)

    @property
    def threshold(self) -> float:
        """The threshold such that CE converges if the weights of all states are above it."""
        goal = exponent_threshold(self.window, len(self.policy), self.n_actions, self.tolerance)
        # The exponent w (1 - y) increases with the weight w and lies between w/2 and w.
        low, high = goal, 2 * goal
        while (middle := (low + high) / 2) not in (low, high):
            if middle * (1 - min(0.5, rare_mass(middle, self.n_actions))) > goal:
                high = middle
            else:
                low = middle
        return float(high)


def constants(mdp: DeterministicMDP) -> Constants:
    """Return the constants of one MDP with a unique optimal policy."""
    sweeps = math.ceil(40 / (1 - float(mdp.discount)))  # relative error e^-40
    best = np.append(mdp.optimum(sweeps), 0.0)
    values = np.where(mdp.is_action, mdp.rewards + mdp.discount * best[mdp.successors], -np.inf)
    q = np.sort(values, axis=-1)
    pays = mdp.rewards[mdp.is_action]
    if (mdp.successors[mdp.is_action] < 0).any():
        pays = np.append(pays, 0.0)  # the end of the episode pays 0
    return Constants(
        float(np.ptp(pays)) / (1 - float(mdp.discount)),
        float((q[:, -1] - q[:, -2]).min()),
        float(mdp.discount),
        tuple(values.argmax(axis=-1).tolist()),
        values.shape[-1],
    )


class ConstantWeightRun(NamedTuple):
    """A run of CE with weights that are constant in time, on a batch of n MDPs.

    Attributes
    ----------
    values : ndarray, shape (steps + 1, n, n_states)
        The values before each step and after the last step.
    greedy : ndarray of int, shape (steps, n, n_states)
        The greedy actions of each step.
    log_loss : ndarray, shape (steps, n, n_states)
        The negative logarithm of the greedy action's probability after the step.
    excess : ndarray, shape (steps, n, n_states)
        The excess entropy of the policy before the step.
    theta : ndarray, shape (n, n_states, n_actions)
        The parameters after the last step.
    """

    values: Floats
    greedy: Ints
    log_loss: Floats
    excess: Floats
    theta: Floats


def run_constant(
    mdps: DeterministicMDP, theta: Floats, weights: Floats, steps: int
) -> ConstantWeightRun:
    """Run CE on a batch of n MDPs with equal numbers of actions, updating all states in every step.

    The weights have shape (n, n_states), or (steps, n, n_states) if they vary in time.
    """
    theta, n = np.array(theta, dtype=np.float64), len(theta)
    weights = np.broadcast_to(weights, (steps, *theta.shape[:2]))
    values, greedy, log_loss, excess = [mdps.values(theta)], [], [], []
    rows = np.arange(n)[:, np.newaxis, np.newaxis]
    for weight in weights:
        ahead = np.concatenate([values[-1], np.zeros((n, 1))], axis=1)[rows, mdps.successors]
        q = mdps.rewards + np.asarray(mdps.discount)[:, np.newaxis, np.newaxis] * ahead
        chosen = q.argmax(axis=-1)
        excess.append(excess_entropy(theta, weight))
        flat = UPDATES["ce"].step(
            theta.reshape(-1, theta.shape[-1]), q.reshape(-1, theta.shape[-1]), weight.ravel()
        )
        theta = np.asarray(flat).reshape(theta.shape)
        after = np.take_along_axis(log_softmax(theta), chosen[..., np.newaxis], axis=-1)
        log_loss.append(-after[..., 0])
        greedy.append(chosen)
        values.append(mdps.values(theta))
    return ConstantWeightRun(
        np.array(values), np.array(greedy), np.array(log_loss), np.array(excess), np.asarray(theta)
    )


def late_fall(horizon: int) -> tuple[DeterministicMDP, Floats, Floats]:
    r"""Return an MDP, parameters and weights for which a value of CE falls after about T steps.

    T is `horizon`, a number from 100 to 1e8. The first state has a top action with the reward
    :math:`\gamma(1-\frac1{2T})`, a bad action with the reward -1, and an action that leads to the
    second state and has the value :math:`\gamma\,v(s_1)`. At the second state the initial policy of
    CE is uniform over two actions, and after t steps the state's value is about :math:`\frac1{2t}`
    below 1. So after about T steps the greedy action of the first state changes. The parameter of
    the new greedy action is initially far below the parameter of the bad action, and one update
    decreases the parameter of the top action so much that the bad action becomes the most probable.
    """
    discount = 0.9
    mdp = DeterministicMDP(
        np.array([[discount * (1 - 0.5 / horizon), 0.0, -1.0], [1.0, 0.0, 0.0]]),
        np.array([[-1, 1, -1], [-1, -1, -1]]),
        np.array([3, 2]),
        discount,
    )
    return mdp, np.array([[0.0, -90.0, -4.0], [0.0, 0.0, 0.0]]), np.array([[28.0, 1.0]])


def chatter(extra: float = 0.0) -> tuple[DeterministicMDP, Floats, Floats]:
    """Return an MDP, parameters and weights for which the greedy action of CE changes forever.

    In the last state one action has the reward 2 and stays, and another has the reward 2 and leads
    to the first state. The best action of the first state has the reward 2 and leads back, so both
    actions of the last state have the optimal value 10. The greedy action depends on which of the
    two states has a value farther from 10, and each update changes these values. A positive `extra`
    is added to the reward of the action that stays, so that there is no tie.
    """
    mdp = DeterministicMDP(
        np.array([[1.0, 2.0, 2.0], [1.0, 1.0, 0.0], [2.0, 2.0 + extra, -1.0]]),
        np.array([[-1, 2, -1], [1, 0, 1], [0, 2, -1]]),
        np.full(3, 3),
        0.8,
    )
    return mdp, np.zeros((3, 3)), np.ones((1, 3))
