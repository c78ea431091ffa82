r"""Asymptotic rates (paper, section 3.2): Theorem 2, its constants, and the other updates.

Notation as in `convergence`: weights :math:`w_t(s)=\eta_td_t(s)`, :math:`c=|A|/(|A|-1)`,
:math:`W_T(s)=\sum_{t_0\le t<T}w_t(s)` with the sum *before* T.

- **MCE.** From the time the greedy actions have settled, with any number of optimal actions,
  :math:`\|v_\star-v_T\|_\infty\le\frac1{1-\gamma}\max_s\rho_s/(1/\beta+\frac c2\min(1,e_0)W_T(s))`.
  If the optimal action is unique and has probability at least 1/2 at :math:`t_0`,
  :math:`1-\pi_T\le1/(2+\frac c2W_T)`.
- **Limit.** For one best action and :math:`w_t=\eta` the odds :math:`\kappa_t=\pi_t/(1-\pi_t)` obey
  :math:`\kappa_{t+1}=\kappa_te^{c\eta/(1+\kappa_t)}`, so that
  :math:`|\kappa_T-\kappa_0-c\eta T|\le c\eta\max(1,c\eta e^{x_0})\sum_{t<T}\frac1{1+\kappa_t}`
  with :math:`x_0=c\eta/(1+\kappa_0)`. The sum grows like :math:`\log T`, hence
  :math:`(1-\pi_T)\,\eta T\to1/c=(|A|-1)/|A|`.
- **CE.** While one action stays greedy, its odds grow at least as
  :math:`1/(1-\pi_T)\ge1/(1-\pi_{t_0})+\frac12\min(1,\kappa_{t_0})W_T`: the rate of MCE, once the
  greedy actions have settled.
- **DI.** If the value of the greedy action exceeds each other one by :math:`\delta` from
  :math:`t_0` on, a step reduces the probability of the others by at least :math:`w\delta/2` until
  it is zero: the policy is optimal once :math:`W_T\ge2(1-\pi_{t_0})/\delta`. The same is true, with
  any number of best actions, for the mass outside a set of actions whose values all exceed the
  others by :math:`\delta`.
- **PG-ES** with exponent p > 2: :math:`1-\pi_t` of order :math:`t^{-p/(p-2)}`; with p = 2,
  geometric. With 1 < p < 2 the step of a small parameter x, of order :math:`|x|^{p-1}`, is longer
  than x: x overshoots zero and ends in a cycle of period two around it, whose size decreases only
  as fast as the norm grows. For two arms, to leading order and whatever the weight,
  :math:`(1-\pi_t)\,t^{p/2}\to((2-p)/8)^{p/2}` (`escort_limit`): slower than :math:`1/t`.
- **CE with tied optima**: if an adversary breaks ties, as Theorem 1 allows for MCE,
  :math:`1-\pi_t` can be of order :math:`t^{-1/2}` (`taking_turns`).

The function `exponent` of the chapter on convergence measures the exponents of a decay.
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
from pu_lib.arrays import Floats, as_float, as_int
from pu_lib.chapters.convergence.quantities import Exponent as Exponent
from pu_lib.chapters.convergence.quantities import Structure, settling_time, structure
from pu_lib.chapters.convergence.quantities import exponent as exponent
from pu_lib.chapters.convergence.quantities import log_times as log_times
from pu_lib.claims.formulas import formula
from pu_lib.domains import bandit, chain, cliff, random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import Trajectory, follow, run
from pu_lib.updates import Update, as_update

# Bandits


def bandit_masses(
    update: str | Update,
    rewards: ArrayLike,
    n_steps: int,
    weights: float | ArrayLike = 1.0,
    theta0: ArrayLike | None = None,
) -> Floats:
    """Return the mass outside the best arms of a bandit before each update and after the last."""
    q = np.asarray(rewards, dtype=np.float64)
    policies = as_update(update).policy(follow(update, q, weights, n_steps, theta0))
    return np.asarray(policies[:, q < q.max()].sum(axis=1))


def bandit_gaps(update: str | Update, rewards: ArrayLike, n_steps: int) -> Floats:
    r"""Return the gaps :math:`\max_a q(a) - \sum_a \pi_t(a) q(a)` of a bandit at weight 1."""
    q = np.asarray(rewards, dtype=np.float64)
    policies = as_update(update).policy(follow(update, q, 1.0, n_steps))
    return np.asarray(policies @ (q.max() - q))


# Theorem 2


@formula
def mass_bound(n_actions: int, weight_sum: Any) -> Any:
    """Return Theorem 2's bound on 1 - pi_T if the best action has probability 1/2 at t_0."""
    return 1 / (2 + n_actions / (2 * (n_actions - 1)) * weight_sum)


def overtaking_steps(n_steps: int) -> tuple[Floats, Floats]:
    r"""Return step sizes :math:`\eta_t=(t+1)\kappa_t` for two arms, and the masses :math:`1-\pi_t`.

    The odds follow :math:`\kappa_{t+1}=\kappa_te^{2\eta_t/(1+\kappa_t)}` from :math:`\kappa_0=1`
    and grow like :math:`e^{t^2}`, which stays in the range of floats up to 25 steps.
    """
    kappa, rates, masses = 1.0, np.empty(n_steps), np.empty(n_steps)
    for t in range(n_steps):
        masses[t] = 1.0 / (1.0 + kappa)
        rates[t] = (t + 1) * kappa
        kappa *= np.exp(2.0 * rates[t] * masses[t])
    return rates, masses


def unique_instances() -> dict[str, FiniteMDP]:
    """Return MDPs with a unique optimal policy, by name."""
    return {
        "bandit": bandit([1.0, 0.5, 0.0]),
        "chain": chain(5, discount=0.9),
        "cliff": cliff(5, discount=0.9),
        "random": random_mdp(2, n_states=10, n_actions=3, discount=0.9),
    }


def two_bandits() -> FiniteMDP:
    """Return two separate bandits, each with arms 1 and 0; trajectories start in the second one."""
    transitions = np.zeros((3, 2, 3))
    transitions[:2, :, 2] = 1.0
    rewards = [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    ends = np.array([False, False, True])
    return FiniteMDP(transitions, rewards, [0.0, 1.0, 0.0], 0.0, ends)


@cache
def run_with_bound_start(
    name: str, n_steps: int
) -> tuple[FiniteMDP, Structure, Trajectory, int | None]:
    """Return one of `unique_instances`, its structure, a run of MCE and the start of the bound.

    The bound starts at the first time at which the greedy actions have settled, since the best one
    may lose probability before that, and the best action has probability 1/2 at every state. It is
    ``None`` if the run is too short.
    """
    mdp = unique_instances()[name]
    facts = structure(mdp)
    trajectory = run(mdp, as_update("mce"), n_steps, weighting="uniform")
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

    This repeats MCE on purpose: :math:`\kappa` keeps its digits if :math:`1-\pi` loses them.
    A `ValueError` is raised if the odds leave the range of floats.
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


def limit_error_bound(kappa: Floats, n_actions: int) -> Floats:
    r"""Bound :math:`|\kappa_T-\kappa_0-cT|` for every T, from the odds at weight 1."""
    c = n_actions / (n_actions - 1)
    start = c / (1.0 + kappa[0])
    return np.append(0.0, c * max(1.0, c * np.exp(start)) * np.cumsum(1.0 / (1.0 + kappa[:-1])))


# The five updates


@formula
def escort_limit(p: Any) -> Any:
    r"""Return the limit of :math:`(1-\pi_t)\,t^{p/2}` for 1 < p < 2.

    Let :math:`r` be the good parameter, :math:`x` the bad one, :math:`C=wp\Delta`. To leading order
    a step reduces :math:`|x|` by :math:`C|x|^{p-1}/r^p`; the cycle of period two has
    :math:`|x|^{2-p}=C/(2r^p)` (its multiplier is :math:`2p-3`: it attracts), and each step
    increases :math:`r` by :math:`C|x|^p/r^{p+1}`, so that :math:`r^{4/(2-p)}` grows linearly.
    """
    p = as_float("p", p)
    if not 1.0 < p < 2.0:
        raise ValueError(f"p: expected an exponent between 1 and 2, got {p}.")
    return ((2 - p) / 8) ** (p / 2)


def taking_turns(update: str | Update, n_steps: int) -> tuple[NDArray[np.int64], Floats]:
    """Return times and the third arm's probabilities if the best arms of (1, 1, 0) take turns.

    The tie-break chooses the first arm until its parameter exceeds the second one by k, then the
    second arm until the two are equal, and then increases k by one. The result has the times at
    which the two are equal. Theorem 1 allows any such tie-break for MCE.
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
        top = max(theta)
        powers = [math.exp(x - top) for x in theta]
        total = sum(powers)
        pi = [power / total for power in powers]
    return np.array(times), np.array(masses)


def di_steps(rewards: Sequence[Fraction | int], weight: Fraction) -> int:
    """Return the exact number of DI steps from the uniform policy to the best arms of a bandit."""
    if weight <= 0:
        raise ValueError(f"weight: expected a positive number, got {weight}.")
    n = len(rewards)
    best = kernels.greedy(rewards, n)
    theta = [Fraction(1, n)] * n
    steps = 0
    while any(x > 0 for x, r in zip(theta, rewards, strict=True) if r < rewards[best]):
        kernels.di(theta, theta, rewards, best, weight, n)
        steps += 1
    return steps
