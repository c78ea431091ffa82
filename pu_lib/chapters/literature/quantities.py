r"""Quantities of later papers, computed with the processes and updates of this book.

**The hard ladder** is a process with three actions, modelled on Li et al. (2021), on which each
state can learn only after the state below it. The theorem is taken from the paper's abstract, and
the construction from a summary by others, so the properties of this ladder are measured, not
proved.

**Committal** (Mei et al., 2021, definition 2): if every sample is action a, :math:`1-\pi_t(a)`
vanishes like :math:`t^{-\kappa}`. The probability of never sampling another action is
:math:`\prod_t\pi_t(a)`, which is positive if :math:`\kappa>1`.

**Linear natural gradient.** With scores :math:`X\theta` and compatible values, a step adds
:math:`\eta\,X^+r` to :math:`\theta`, and after t steps the scores are
:math:`X\theta_0+\eta t\,\hat r` with :math:`\hat r=XX^+r` the projection of the rewards.
*So the policy converges to the best action if and only if it is the unique best action of*
:math:`\hat r`. This is the criterion of Mei et al. (2023), and its proof.

**Greedy samples.** N actions are drawn from a proposal, and a step increases the log-likelihood of
the best drawn action. The mean step is :math:`\sum_a\beta_N(a)(e_a-\pi)`, where
:math:`\beta_N(a)` is the probability that a is the best action drawn. This probability is
:math:`F(a)^N-F(a^-)^N`, where :math:`F(a)` is the probability of drawing a value up to the value of
a, and :math:`F(a^-)` is the probability of drawing a lower value. As N grows, :math:`\beta_N`
tends to the greedy action, and the step tends to the step of `ce`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import Floats, as_int
from pu_lib.claims.formulas import formula, log
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update, as_update, softmax

__all__ = [
    "HardChain",
    "best_of_n",
    "committal",
    "crossing_times",
    "greedy_sample_step",
    "hard_chain",
    "ladder_times",
    "linear_natural",
    "linear_softmax",
    "off_policy_step",
    "regret_bound",
    "sampled_regret",
]


# The chain on which softmax policy gradient is slow


@dataclass(frozen=True)
class HardChain:
    r"""The process of `hard_chain`.

    `rungs` contains the states s = 1, ..., height of the ladder, with optimal values
    :math:`\gamma^{2s}`. `copies` contains the number of equal states that each state represents.
    """

    mdp: FiniteMDP
    rungs: NDArray[np.int_]
    copies: Floats


def hard_chain(
    height: int = 8, copies: float = 50.0, discount: float = 0.96, chance: float = 0.05
) -> HardChain:
    r"""Return a ladder on which each state above the second learns only after the one below it.

    There are three actions, as in the construction of Li et al. (2021). In state s of the ladder,
    action 0 stops; action 1, the best one, steps down towards s - 1; action 2 reaches s - 2 with a
    small probability, `chance`, and otherwise stops. Until s - 1 has learned, stopping is best: its
    value is at least :math:`\frac12\gamma^{2s/3}`. Each step down passes through an intermediate
    state, in which the agent can also stop, for a reward proportional to
    :math:`\frac12\gamma^{2s/3}`. The states 1 and 2 at the bottom represent many copies, each of
    which is visited correspondingly less often.
    """
    height = as_int("height", height, low=3)
    n = 2 * height + 1
    transitions, rewards = np.zeros((n, 3, n)), np.zeros((n, 3))
    level = 0.5 * discount ** (2.0 * np.arange(height + 1) / 3.0)
    for s in range(1, height + 1):
        between = height + s
        transitions[between, [0, 2], 0] = 1.0
        transitions[between, 1, s] = 1.0
        rewards[between, [0, 2]] = discount * level[s]
        if s <= 2:
            transitions[s, :, 0] = 1.0
            rewards[s] = discount ** (2 * s) * np.array([-1.0, 1.0, -1.0])
            continue
        transitions[s, 0, 0] = transitions[s, 1, between - 1] = 1.0
        transitions[s, 2, [0, between - 2]] = 1.0 - chance, chance
        rewards[s, [0, 2]] = level[s] * discount ** (5.0 / 6.0)
        rewards[s, 0] += discount**2 * chance * level[s - 2]
    initial = np.r_[0.0, np.full(n - 1, 1.0 / (n - 1))]
    many = np.ones(n)
    many[[1, 2]] = copies
    mdp = FiniteMDP(transitions, rewards, initial, discount, np.arange(n) == 0)
    rungs = np.arange(1, height + 1)
    if not np.allclose(mdp.optimal().v[rungs], discount ** (2.0 * rungs), rtol=1e-9, atol=0.0):
        raise ValueError(
            f"height, discount, chance: with {height}, {discount} and {chance} it is not optimal "
            "to step down all the way."
        )
    return HardChain(mdp, rungs, many)


def crossing_times(
    update: str | Update,
    hard: HardChain,
    step_size: float = 5.0,
    most: int = 100_000,
    growth: float = 1.0,
) -> Floats:
    """Return the number of steps until each state of the ladder reaches 0.9 of its optimal value.

    The weight of a state is `step_size` times its discounted occupancy, divided by the number of
    its copies, and multiplied by `growth` at every step. A number of steps above `most` is returned
    as infinity.
    """
    update, mdp = as_update(update), hard.mdp
    theta = update.initial(mdp.n_states, mdp.n_actions)
    enough = 0.9 * mdp.optimal().v[hard.rungs]
    times = np.full(len(hard.rungs), np.inf)
    for t in range(most + 1):
        evaluation = mdp.evaluate(update.policy(theta))
        times = np.where(np.isinf(times) & (evaluation.v[hard.rungs] >= enough), t, times)
        if np.all(np.isfinite(times)):
            break
        weight = step_size * growth**t * evaluation.occupancy / hard.copies
        theta = update.step(theta, evaluation.q, weight)
    return times


def ladder_times(name: str, copies: float, growth: float = 1.0) -> tuple[float, ...]:
    """Return the cached crossing times on the ladder of eight rungs, with `eta` equal to 40."""
    return _cached_ladder_times(as_update(name), copies, growth)


@cache  # the key is the update, since its name may be registered again
def _cached_ladder_times(update: Update, copies: float, growth: float) -> tuple[float, ...]:
    times = crossing_times(update, hard_chain(8, copies), 40.0, 40_000, growth)
    return tuple(times.tolist())


# Samples


def committal(update: str | Update, rewards: ArrayLike, action: int, n_steps: int) -> Floats:
    r"""Return the probabilities of sampling another action if every sample so far is `action`.

    The sampled values are :math:`\hat q=e_a\,r(a)/\pi(a)` and the weight is 1. The first entry is
    the probability before the first step.
    """
    update, reward = as_update(update), np.asarray(rewards, dtype=np.float64)
    theta = update.initial(1, len(reward))[0]
    others = np.arange(len(reward)) != action
    left = []
    for _ in range(n_steps + 1):
        pi = update.policy(theta)
        left.append(float(pi[others].sum()))
        values = np.where(others, 0.0, reward / pi[action])
        theta = update.step(theta, values, 1.0)
    return np.array(left)


def sampled_regret(
    step_size: float, gap: float, n_steps: int, n_runs: int, seed: int = 0
) -> Floats:
    """Return the regret of each run of the stochastic gradient bandit on two arms.

    Rewards are 1 or -1, with mean `gap` for the better arm and mean 0 for the other arm.
    """
    rng = np.random.default_rng(seed)
    theta, regret = np.zeros(n_runs), np.zeros(n_runs)
    for _ in range(n_steps):
        better = 1.0 / (1.0 + np.exp(-2.0 * theta))
        regret += gap * (1.0 - better)
        taken = rng.random(n_runs) < better
        mean = np.where(taken, gap, 0.0)
        reward = np.where(rng.random(n_runs) < (1.0 + mean) / 2.0, 1.0, -1.0)
        theta += step_size * reward * np.where(taken, 1.0 - better, -better)
    return regret


@formula
def regret_formula(eta: float, gap: float, n: int, c: float) -> Any:
    r"""Return the upper bound on the mean regret, with :math:`c=C_\eta` (Baudry et al., 2025).

    Here :math:`\eta` is the step size.
    """
    return log(1 + 4 * eta * gap * n) / (2 * eta) + gap / (2 * eta * (gap - eta * c))


def regret_bound(eta: float, gap: float, n_steps: int) -> float:
    r"""Return the bound on the mean regret for two arms (Baudry et al., 2025, theorem 1).

    Raise a `ValueError` unless :math:`\eta C_\eta<\Delta` with the step size :math:`\eta` and the
    gap :math:`\Delta`.
    """
    # C = 2 sum (2 eta)^n / (n + 2)!, that is (exp(x) - 1 - x) / (x^2 / 2) with x = 2 eta
    factor = (np.expm1(2.0 * eta) - 2.0 * eta) / (2.0 * eta**2)
    if eta * factor >= gap:
        raise ValueError(f"eta: the bound needs eta C < {gap:g}, got {eta * factor:g}.")
    return float(regret_formula(eta, gap, n_steps, factor))


# Linear models, and greedy samples


def linear_natural(features: Floats, rewards: Floats, step_size: float, n_steps: int) -> Floats:
    """Return the policy after natural gradient steps with linear scores from zero parameters."""
    theta = np.zeros(features.shape[1])
    for _ in range(n_steps):
        theta = theta + step_size * np.linalg.lstsq(features, rewards, rcond=None)[0]
    return softmax(features @ theta)


def linear_softmax(features: Floats, rewards: Floats, step_size: float, n_steps: int) -> Floats:
    """Return the policy after PG-SM steps with linear scores from zero parameters."""
    theta = np.zeros(features.shape[1])
    for _ in range(n_steps):
        pi = softmax(features @ theta)
        theta = theta + step_size * features.T @ (pi * (rewards - pi @ rewards))
    return softmax(features @ theta)


def best_of_n(proposal: ArrayLike, q: ArrayLike, n_samples: int) -> Floats:
    """Return each action's probability of being the best of n draws; `q` must have no ties."""
    drawn, order = np.asarray(proposal, dtype=np.float64), np.argsort(np.asarray(q))
    up_to = np.cumsum(drawn[order])
    shares = np.empty(len(drawn))
    shares[order] = np.diff(up_to**n_samples, prepend=0.0)
    return shares


def greedy_sample_step(proposal: ArrayLike, pi: ArrayLike, q: ArrayLike, n_samples: int) -> Floats:
    """Return the mean step of softmax scores towards the best of several drawn actions."""
    return best_of_n(proposal, q, n_samples) - np.asarray(pi, dtype=np.float64)


def off_policy_step(
    theta: Floats, q: Floats, visits: Floats, step_size: float, regularization: float
) -> Floats:
    """Return `theta` after a mean step of the off-policy actor of Zhang et al. (2022, algorithm 1).

    `visits` is the behaviour policy's distribution of states, used without an importance ratio, and
    `regularization` is the weight of the divergence from the uniform policy.
    """
    pi = softmax(theta)
    step = as_update("pg-sm").step(theta, q, 1.0) - theta
    back = regularization * (1.0 / pi.shape[-1] - pi)
    return np.asarray(theta + step_size * visits[:, np.newaxis] * (step + back))
