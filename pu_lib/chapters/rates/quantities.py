r"""Asymptotic rates (paper, section 3.2): Theorem 2, its constants, and the other updates.

The notation is that of the chapter on convergence: the weights are :math:`w_t(s)=\eta_td_t(s)`,
:math:`c=|A|/(|A|-1)`, and :math:`W_T(s)=\sum_{t_0\le t<T}w_t(s)` is the sum *before* T.

- **MCE.** Once the greedy actions have settled, for any number of optimal actions,
  :math:`\|v_\star-v_T\|_\infty\le\frac1{1-\gamma}\max_s\rho_s/(1/\beta+\frac c2\min(1,e_0)W_T(s))`.
  If the optimal action is unique and has probability at least 1/2 at :math:`t_0`,
  :math:`1-\pi_T\le1/(2+\frac c2W_T)`.
- **Limit.** If there is one best action and :math:`w_t=\eta`, the odds
  :math:`\kappa_t=\pi_t/(1-\pi_t)` satisfy
  :math:`\kappa_{t+1}=\kappa_te^{c\eta/(1+\kappa_t)}`, so that
  :math:`|\kappa_T-\kappa_0-c\eta T|\le c\eta\max(1,c\eta e^{x_0})\sum_{t<T}\frac1{1+\kappa_t}`
  with :math:`x_0=c\eta/(1+\kappa_0)`. The sum grows like :math:`\log T`, hence
  :math:`(1-\pi_T)\,\eta T\to1/c=(|A|-1)/|A|`.
- **CE.** While one action remains greedy, the odds of this action satisfy
  :math:`1/(1-\pi_T)\ge1/(1-\pi_{t_0})+\frac12\min(1,\kappa_{t_0})W_T`, which is the rate of MCE
  once the greedy actions have settled.
- **DI.** If the value of the greedy action exceeds every other value by :math:`\delta` from
  :math:`t_0` on, a step reduces the probability of the other actions by at least :math:`w\delta/2`
  until this probability is zero, so that the policy is optimal once
  :math:`W_T\ge2(1-\pi_{t_0})/\delta`. If there are several best actions, the same holds for the
  mass outside a set of actions with values that exceed all other values by :math:`\delta`.
- **PG-ES.** If the exponent is p > 2, :math:`1-\pi_t` is of order :math:`t^{-p/(p-2)}`. If p = 2,
  :math:`1-\pi_t` decreases geometrically. If 1 < p < 2, the step of a small parameter x is of order
  :math:`|x|^{p-1}` and longer than x, so that x overshoots zero and ends in a cycle of period two
  around zero. The size of the cycle decreases only as fast as the norm grows. For two arms and any
  weight, :math:`(1-\pi_t)\,t^{p/2}\to((2-p)/8)^{p/2}` to leading order (`escort_limit`), which is
  slower than :math:`1/t`.
- **CE with tied optima.** If an adversary breaks ties, as Theorem 1 allows for MCE,
  :math:`1-\pi_t` can be of order :math:`t^{-1/2}` (`taking_turns`).

The function `exponent` of the chapter on convergence measures the exponent of a decay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib import kernels
from pu_lib.arrays import Floats, as_float, as_float_array, as_int
from pu_lib.chapters.convergence.quantities import Exponent as Exponent
from pu_lib.chapters.convergence.quantities import Structure, settling_time, structure
from pu_lib.chapters.convergence.quantities import exponent as exponent
from pu_lib.chapters.convergence.quantities import log_times as log_times
from pu_lib.claims.formulas import formula, log
from pu_lib.domains import bandit, chain, cliff, random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.parametrizations import softmax_of_list
from pu_lib.trajectories import Trajectory, follow, run
from pu_lib.two_action_dynamics import OutOfReach
from pu_lib.updates import Update, as_update

MAX_DI_STEPS = 10_000
"""The largest number of steps of `di_steps`, which take a few seconds."""

# Bandits


def bandit_masses(
    update: str | Update,
    rewards: ArrayLike,
    n_steps: int,
    weights: float | ArrayLike = 1.0,
    theta0: ArrayLike | None = None,
) -> Floats:
    """Return the mass of the suboptimal arms of a bandit before each step and after the last."""
    q = np.asarray(rewards, dtype=np.float64)
    policies = as_update(update).policy(follow(update, q, weights, n_steps, theta0))
    return np.asarray(policies[:, q < q.max()].sum(axis=1))


def batch_policies(
    update: str | Update, rewards: ArrayLike, weights: ArrayLike, theta0: ArrayLike
) -> Floats:
    """Return the policies on a bandit in a batch of runs with a weight for each run and step.

    `weights` has the shape (n_steps, n_runs) and `theta0` the shape (n_runs, n_actions). The result
    has the shape (n_steps + 1, n_runs, n_actions).
    """
    chosen, weights = as_update(update), as_float_array("weights", weights, low=0.0)
    theta = np.asarray(theta0, dtype=np.float64)
    q = np.broadcast_to(np.asarray(rewards, dtype=np.float64), theta.shape)
    path = np.empty((len(weights) + 1, *theta.shape))
    path[0] = theta
    for t, weight in enumerate(weights):
        # The first step checks its arguments. Later steps have the same shapes and values.
        move = chosen._unchecked_step if t else chosen.step
        theta = path[t + 1] = move(theta, q, weight, None)
    return chosen.policy(path)


def batch_masses(
    update: str | Update, rewards: ArrayLike, weights: ArrayLike, theta0: ArrayLike
) -> Floats:
    """Return the masses of the suboptimal arms of a bandit in a batch of runs, at every step.

    The arguments are those of `batch_policies`. The result has the shape (n_steps + 1, n_runs).
    """
    q = np.asarray(rewards, dtype=np.float64)
    policies = batch_policies(update, q, weights, theta0)
    return np.asarray(policies[..., q < q.max()].sum(axis=-1))


def bandit_gaps(
    update: str | Update,
    rewards: ArrayLike,
    n_steps: int,
    weight: float = 1.0,
    policy0: ArrayLike | None = None,
) -> Floats:
    r"""Return the gaps :math:`\max_a q(a) - \sum_a \pi_t(a) q(a)` of a bandit."""
    q = np.asarray(rewards, dtype=np.float64)
    policies = as_update(update).policy(follow(update, q, weight, n_steps, policy0=policy0))
    return np.asarray(policies @ (q.max() - q))


# Theorem 2


@formula
def mass_bound(n_actions: int, weight_sum: Any) -> Any:
    """Return the bound of Theorem 2 on 1 - pi_T if the best action has probability 1/2 at t_0."""
    return 1 / (2 + n_actions / (2 * (n_actions - 1)) * weight_sum)


@formula
def comparison_floor(n_actions: int, kappa: Any, weight_sum: Any) -> Any:
    """Return the solution f of the proof of Theorem 2, at most n X_t / (n - 1) for n actions."""
    return log(n_actions / (2 * kappa * (n_actions - 1)) * weight_sum + 1)


def overtaking_steps(n_steps: int) -> tuple[Floats, Floats]:
    r"""Return step sizes :math:`\eta_t=(t+1)\kappa_t` for two arms, and the masses :math:`1-\pi_t`.

    The odds satisfy :math:`\kappa_{t+1}=\kappa_te^{2\eta_t/(1+\kappa_t)}` with :math:`\kappa_0=1`
    and grow like :math:`e^{t^2}`, which is in the range of floats for at most 25 steps.
    """
    kappa, rates, masses = 1.0, np.empty(n_steps), np.empty(n_steps)
    for t in range(n_steps):
        masses[t] = 1.0 / (1.0 + kappa)
        rates[t] = (t + 1) * kappa
        kappa *= np.exp(2.0 * rates[t] * masses[t])
    return rates, masses


def unique_instances() -> dict[str, FiniteMDP]:
    """Return a dictionary from names to MDPs that have a unique optimal policy."""
    return {
        "bandit": bandit([1.0, 0.5, 0.0]),
        "chain": chain(5, discount=0.9),
        "cliff": cliff(5, discount=0.9),
        "random": random_mdp(2, n_states=10, n_actions=3, discount=0.9),
    }


def two_bandits() -> FiniteMDP:
    """Return a process of two bandits with rewards 1 and 0 that starts in the second bandit."""
    transitions = np.zeros((3, 2, 3))
    transitions[:2, :, 2] = 1.0
    rewards = [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    ends = np.array([False, False, True])
    return FiniteMDP(transitions, rewards, [0.0, 1.0, 0.0], 0.0, ends)


@cache
def run_with_bound_start(
    name: str, n_steps: int, update: str = "mce"
) -> tuple[FiniteMDP, Structure, Trajectory, int | None]:
    """Return an MDP, its structure, a run and the first time at which MCE's bound holds.

    The bound holds from the first time at which the greedy actions have settled and the best action
    has probability at least 1/2 at every state. Before the greedy actions have settled, the best
    action can lose probability. The time is ``None`` if the run is too short.
    """
    mdp = unique_instances()[name]
    facts = structure(mdp)
    trajectory = run(mdp, as_update(update), n_steps, weighting="uniform")
    top = np.where(facts.optimal, trajectory.policies, 0.0)[:, facts.contested].sum(axis=-1)
    start = settling_time(trajectory, facts)
    half = np.flatnonzero((top >= 0.5).all(axis=1))
    later = half[:0] if start is None else half[half >= start]
    return mdp, facts, trajectory, int(later[0]) if len(later) else None


# The limit


@formula
def mass_limit(n_actions: int) -> Any:
    """Return the limit of (1 - pi_T) W_T under MCE."""
    return (n_actions - 1) / n_actions


def odds(n_actions: int, n_steps: int, weights: float | ArrayLike = 1.0) -> Floats:
    r"""Return the odds :math:`\kappa_t=\pi_t/(1-\pi_t)` of one best arm under MCE.

    This function implements MCE again because :math:`\kappa` is accurate even if :math:`1-\pi` is
    not. A `ValueError` is raised if the odds exceed the range of floats.
    """
    n_actions = as_int("n_actions", n_actions, low=2)
    c = n_actions / (n_actions - 1)
    path = [1.0 / (n_actions - 1)]
    for w in np.broadcast_to(np.asarray(weights, dtype=np.float64), n_steps).tolist():
        exponent = c * w / (1.0 + path[-1])
        path.append(path[-1] * math.exp(exponent) if exponent < 700.0 else math.inf)
        if not path[-1] < math.inf:
            raise ValueError(f"weights: {w:g} leads the odds out of the range of floats (1.8e308).")
    return np.array(path)


def limit_error_bound(kappa: Floats, n_actions: int, weights: Floats | float = 1.0) -> Floats:
    r"""Return bounds on :math:`|\kappa_T-\kappa_0-cW_T|` for every T, given the odds.

    A step increases the odds by :math:`\kappa(e^x-1)` with :math:`x=cw/(1+\kappa)`. The increase
    exceeds :math:`cw` by at most :math:`cw\,cwe^x/(1+\kappa)`, and is smaller than :math:`cw` by at
    most :math:`cw/(1+\kappa)`. The arrays have the time as their first axis.
    """
    c_w = n_actions / (n_actions - 1) * np.asarray(weights, dtype=np.float64)
    worst = np.maximum(1.0, c_w * np.exp(c_w / (1.0 + kappa[:-1])))
    steps = np.cumsum(c_w * worst / (1.0 + kappa[:-1]), axis=0)
    return np.concatenate([np.zeros_like(steps[:1]), steps])


# The five updates


@formula
def escort_limit(p: Any) -> Any:
    r"""Return the limit of :math:`(1-\pi_t)\,t^{p/2}` for 1 < p < 2.

    Let :math:`r` be the parameter of the optimal arm, :math:`x` the parameter of the suboptimal
    arm, and :math:`C=wp\Delta`. To leading order a step reduces :math:`|x|` by
    :math:`C|x|^{p-1}/r^p`. The cycle of period two has :math:`|x|^{2-p}=C/(2r^p)` and is stable,
    since the multiplier of the cycle is :math:`2p-3`. Each step increases :math:`r` by
    :math:`C|x|^p/r^{p+1}`, so that :math:`r^{4/(2-p)}` grows linearly.
    """
    p = as_float("p", p)
    if not 1.0 < p < 2.0:
        raise ValueError(f"p: expected an exponent between 1 and 2, got {p}.")
    return ((2 - p) / 8) ** (p / 2)


def taking_turns(update: str | Update, n_steps: int) -> tuple[NDArray[np.int64], Floats]:
    """Return times and probabilities of the third arm if the best arms of (1, 1, 0) take turns.

    The tie-break chooses the first arm until the parameter of the first arm exceeds the parameter
    of the second arm by k, then the second arm until the two parameters are equal, and then
    increases k by one. The returned times are the times at which the two parameters are equal.
    Theorem 1 allows any such tie-break for MCE.
    """
    chosen = as_update(update)
    if chosen.kernel is None or chosen.parametrization != "softmax":
        raise ValueError(f"update: expected a softmax update with a kernel, got {chosen.name!r}.")
    theta, pi, values = [0.0] * 3, [1.0 / 3.0] * 3, [1.0, 1.0, 0.0]
    lead, rising = 1, True
    times, masses = [], []
    for t in range(n_steps):
        ahead = theta[0] - theta[1]
        if rising and ahead >= lead:
            rising = False
        elif not rising and ahead <= 0.0:
            rising, lead = True, lead + 1
            times.append(t)
            masses.append(pi[2])
        chosen.kernel(theta, pi, values, 0 if rising else 1, 1.0, 3)
        pi = softmax_of_list(theta)
    return np.array(times), np.array(masses)


def di_steps(rewards: Sequence[Fraction | int], weight: Fraction) -> int:
    """Return the exact number of DI steps from the uniform policy to the best arms of a bandit.

    `OutOfReach` is raised if there are more than `MAX_DI_STEPS` steps.
    """
    if weight <= 0:
        raise ValueError(f"weight: expected a positive number, got {weight}.")
    n = len(rewards)
    best = kernels.greedy(rewards, n)
    theta = [Fraction(1, n)] * n
    steps = 0
    while any(x > 0 for x, r in zip(theta, rewards, strict=True) if r < rewards[best]):
        if steps == MAX_DI_STEPS:
            raise OutOfReach(f"weight: more than {steps} steps are needed, the most that are made")
        kernels.di(theta, theta, rewards, best, weight, n)
        steps += 1
    return steps


def overshoot(theta: Floats, p: float, weight: float) -> Floats:
    r"""Return y of the proof on PG-ES for two arms with the gap 1: a step takes x to x (1 - y).

    `theta` has the parameters r of the better arm and x of the other one, along the last axis.
    """
    r, x = np.abs(theta[..., 0]), np.abs(theta[..., 1])
    return np.asarray(weight * p * x ** (p - 2) * r**p / (r**p + x**p) ** 2)


def overshoot_map(y: Any, p: Any) -> Any:
    r"""Return :math:`y\,|1-y|^{p-2}`, the limit of the next overshoot as :math:`x/r\to0`."""
    return y * abs(1 - y) ** (p - 2)
