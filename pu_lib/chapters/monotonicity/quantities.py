r"""Conditions for one step to decrease the value (paper, section 2, Propositions 1 and 2).

Let :math:`\pi \to \pi'` in every state, with :math:`v, q` the values of :math:`\pi`, and let
:math:`A(s) = \sum_a (\pi' - \pi)(a|s)\,q(s,a)` be the *step advantage*. From
:math:`v' = r_{\pi'} + \gamma P_{\pi'} v'` and :math:`r_{\pi'} + \gamma P_{\pi'} v = v + A`,

.. math:: v' - v = (I - \gamma P_{\pi'})^{-1} A = \sum_{k\ge0} \gamma^k P_{\pi'}^k A .

So no value decreases if :math:`A \ge 0` at every state, and :math:`v'(s) > v(s)` exactly if
:math:`s` can reach a state with :math:`A > 0` (only :math:`s` itself if :math:`\gamma = 0`).

**Sign condition.** Suppose :math:`\pi'(a) \propto \pi(a)\,g_a` with :math:`g_a > 0`, and that
some number :math:`c` separates the factors: :math:`g_a \ge c` if :math:`\mathrm{adv}(a) > 0`, and
:math:`g_a \le c` if :math:`\mathrm{adv}(a) < 0`. As :math:`\sum_a\pi(a)\,\mathrm{adv}(a) = 0`,

.. math:: A = \frac{\sum_a \pi(a)\,(g_a - c)\,\mathrm{adv}(a)}{\sum_b \pi(b)\,g_b} \ge 0 .

- `mce`: :math:`g = e^{u}` at :math:`a_q`, and :math:`g = c = e^{-u/(|A|-1)}` at all other actions.
  This proves Proposition 2.
- `pg-sm`: :math:`g_a = e^{w\pi(a)\mathrm{adv}(a)}`, :math:`c = 1`. So softmax policy gradient never
  decreases the value, *for any step size*.
- `pg-es`: :math:`g_a = |1 + x_a|^p` with
  :math:`x_a = w\,p\,|\theta_a|^{p-2}\,\mathrm{adv}(a)/\|\theta\|_p^p`, and :math:`c = 1` if no
  :math:`x_a` is below -2, that is, if no parameter both changes sign and grows in size.
- `di` does not have this form, but the projection implies :math:`w A \ge \|\pi' - \pi\|^2`.
- `ce`: :math:`g_a = e^{-w\pi(a)}` for :math:`a \ne a_q`: the factors of the other actions are
  ordered by their probabilities, not by their values. This leads to Proposition 1.

**Largest decrease.** A `ce` step depends on :math:`q` through :math:`a_q` alone. With values of
range one, :math:`-A` is largest if the actions that lose probability have the value one and the
actions that gain probability have the value zero:
:math:`\sup_q(-A) = \sum_{a \ne a_q}(\pi'(a) - \pi(a))^+`. The supremum over policies is approached
as :math:`\pi(a_q) \to 0`. For three actions the supremum is

.. math:: D_3(w) = \max_{x\in[0,1]} \frac{x(1-x)\,(e^{-w(1-x)} - e^{-wx})}
                                          {(1-x)e^{-w(1-x)} + x\,e^{-wx}},

and for any number of actions the supremum is below
:math:`D_\infty(w) = \max_x x(1-x)(1-e^{-wx})/(1 - x + x e^{-wx})`, the limit of many actions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import as_float
from pu_lib.claims.formulas import formula
from pu_lib.domains import random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.parametrizations import unchecked_softmax
from pu_lib.trajectories import run
from pu_lib.updates import Update, advantage, as_update, escort, greedy_mask, softmax

__all__ = [
    "ROUNDING",
    "Drop",
    "decrease_frequency",
    "decreases_in_random_mdps",
    "escort_safe_weight",
    "improving_states",
    "mass_gained",
    "mdp_with_equal_actions",
    "mdp_with_values",
    "reachable",
    "search_drop",
    "small_mdp",
    "step_advantage",
    "value_change",
    "worst_drop_any",
    "worst_drop_three",
]

Floats = NDArray[np.float64]


ROUNDING = 1e-12
"""Tolerance for values of size one; the error of solving for values grows like 1/(1 - gamma)."""


# The step advantage


def step_advantage(pi: Floats, new: Floats, q: Floats) -> Floats:
    r"""Return :math:`A = \sum_a (\pi' - \pi)(a)\,q(a)` for each row.

    The largest value of a row is subtracted first, to keep rounding errors below the gaps.
    """
    return np.asarray(np.sum((new - pi) * (q - q.max(axis=-1, keepdims=True)), axis=-1))


def value_change(update: str | Update, theta: Floats, q: Floats, weight: Floats | float) -> Floats:
    """Return the change in the value of a state after one step with fixed action values `q`."""
    chosen = as_update(update)
    new = chosen.policy(chosen.step(theta, q, weight))
    return step_advantage(chosen.policy(theta), new, q)


# The worst decrease


def mass_gained(pi: Floats, new: Floats, q: Floats) -> Floats:
    """Return the probability gained by all actions except the greedy action.

    This is the largest decrease over all values in [0, 1] with the same greedy action.
    """
    gained = np.where(greedy_mask(q), 0.0, np.maximum(new - pi, 0.0))
    return np.asarray(gained.sum(axis=-1))


def worst_drop_three(w: float) -> float:
    """Return D_3(w), the supremum of the decreases under CE with three actions."""
    return _largest(lambda rest: w * (1 - 2 * rest))


def worst_drop_any(w: float) -> float:
    """Return D_infinity(w), the supremum of the decreases under CE with any number of actions."""
    return _largest(lambda rest: w * (1 - rest))


def _largest(exponent: Callable[[Floats], Floats]) -> float:
    """Return the maximum of x (1 - x) (1 - r) / (1 - x + x r) with r = exp(-exponent(1 - x)).

    A grid search precedes a bracketed search, both in the logarithm of 1 - x, because the maximum
    may be as close to x = 1 as exp(-w / 2). For x < 1/2 the fraction is smaller than at 1 - x.
    """
    from scipy.optimize import minimize_scalar  # slow to import

    def loss(log_rest: Floats) -> Floats:
        rest = np.exp(log_rest)
        rate = exponent(rest)
        fraction = (1 - rest) * rest * -np.expm1(-rate) / (rest + (1 - rest) * np.exp(-rate))
        return np.asarray(fraction)

    grid = np.linspace(np.log(0.5), -690, 4001)
    i = int(np.argmax(loss(grid)))
    bounds = (grid[min(i + 1, 4000)], grid[max(i - 1, 0)])
    optimum = minimize_scalar(
        lambda x: -float(loss(np.array(x))), bounds=bounds, options={"xatol": 1e-12}
    )
    return -float(optimum.fun)


@dataclass(frozen=True)
class Drop:
    """The largest decrease found by a search, with its policy and action values."""

    value: float
    policy: Floats
    q: Floats


def search_drop(
    update: str | Update,
    n_actions: int,
    weight: float,
    seed: int = 0,
    rounds: int = 600,
    restarts: int = 2,
) -> Drop:
    """Return the largest decrease by one step that a search over policies and values finds.

    The search is differential evolution over the action values in [0, 1] and over logits, on a
    scale that is finer near 0 and includes the logits at which CE decreases the value most. The
    result is the best of several restarts.
    """
    chosen, weight = as_update(update), as_float("weight", weight, low=0.0)
    floor = max(-30.0 - 2.0 * weight, -600.0)  # CE decreases most as pi(a_q) -> 0
    drops = [
        _search_once(chosen, n_actions, weight, floor, seed + restart, rounds)
        for restart in range(restarts)
    ]
    return max(drops, key=lambda drop: drop.value)


@cache
def _search_once(
    update: Update, n_actions: int, weight: float, floor: float, seed: int, rounds: int
) -> Drop:
    """Run one restart of `search_drop` and cache the result; `floor` is the smallest logit."""
    from scipy.optimize import Bounds, differential_evolution  # slow to import

    def state(x: Floats) -> tuple[Floats, Floats]:
        return unchecked_softmax(floor * x[:n_actions].T ** 3), x[n_actions:].T

    def change(x: Floats) -> Any:
        pi, q = state(x)  # Validation is skipped for speed.
        theta = update.to_parameters(pi)
        new = update._unchecked_policy(update._unchecked_step(theta, q, np.asarray(weight), None))
        return step_advantage(update._unchecked_policy(theta), new, q)

    optimum = differential_evolution(
        change,
        Bounds(np.zeros(2 * n_actions), np.ones(2 * n_actions)),
        rng=seed,
        maxiter=rounds,
        popsize=8,
        recombination=0.9,
        tol=0,
        vectorized=True,
        updating="deferred",
    )
    return Drop(-float(optimum.fun), *state(optimum.x))


# How often CE lowers the value


def decrease_frequency(
    update: str | Update,
    n_actions: int,
    weight: float,
    scale: float,
    n: int = 20_000,
    seed: int = 13,
) -> float:
    """Return the share of random states whose value one step decreases by more than 1e-12.

    Policies are the softmax of normal numbers with standard deviation `scale`, and values are
    uniform on [0, 1].
    """
    rng = np.random.default_rng(seed)
    scores, q = scale * rng.normal(size=(n, n_actions)), rng.random((n, n_actions))
    chosen = as_update(update)
    change = value_change(chosen, chosen.parameters(softmax(scores)), q, weight)
    return float(np.mean(change < -ROUNDING))


def decreases_in_random_mdps(
    update: str | Update = "ce",
    step_sizes: Sequence[float] = (0.1, 1.0, 10.0),
    scales: Sequence[float] = (0.0, 1.0, 3.0, 6.0),
    n: int = 20,
    steps: int = 50,
    seed: int = 14,
) -> list[dict[str, float]]:
    """Return how often steps decrease the performance on random MDPs with 30 states and 4 actions.

    Every state is updated with d(s) = 1. The initial parameters are normal with mean 0, with each
    standard deviation in `scales`.
    """
    rng = np.random.default_rng(seed)
    mdps = [random_mdp(rng, n_states=30, n_actions=4, if_none="last") for _ in range(n)]
    rows = []
    for step_size, scale in product(step_sizes, scales):
        lower_j, lower_v, worst = [], [], 0.0
        for mdp in mdps:
            theta = scale * rng.normal(size=(mdp.n_states, mdp.n_actions))
            path = run(
                mdp,
                as_update(update),
                steps,
                step_size=step_size,
                weighting="uniform",
                theta0=theta,
            )
            change = np.diff(path.performance)
            lower_j += list(change < -ROUNDING)
            lower_v += list(np.any(np.diff(path.v, axis=0) < -ROUNDING, axis=1))
            worst = max(worst, float(-change.min()))
        rows.append(
            {
                "step_size": step_size,
                "scale of theta_0": scale,
                "updates that lower J": float(np.mean(lower_j)),
                "lower v somewhere": float(np.mean(lower_v)),
                "largest decrease of J": worst,
            }
        )
    return rows


# Proposition 2


def small_mdp(rng: np.random.Generator) -> FiniteMDP:
    """Return a random MDP with 1 to 6 states, 2 to 5 actions and a discount of at most 0.99."""
    n_states, n_actions = int(rng.integers(1, 7)), int(rng.integers(2, 6))
    keep = rng.random((n_states, n_actions, n_states)) < rng.uniform(0.2, 1)
    keep[np.arange(n_states), :, np.arange(n_states)] |= ~keep.any(axis=-1)
    mass = np.where(keep, rng.exponential(size=keep.shape), 0.0)
    transitions = mass / mass.sum(axis=-1, keepdims=True)
    initial = np.full(n_states, 1 / n_states)
    discount = float(rng.choice([0.0, 0.5, 0.9, 0.99]))
    return FiniteMDP(transitions, rng.normal(size=(n_states, n_actions)), initial, discount)


def mdp_with_values(rng: np.random.Generator, pi: Floats, q: Floats, discount: float) -> FiniteMDP:
    r"""Return a random MDP in which the policy `pi` has the action values `q`.

    The rewards are :math:`r = q - \gamma P v` with :math:`v(s) = \sum_a \pi(a|s)\,q(s,a)`.
    """
    n_states = len(q)
    transitions = rng.dirichlet(np.ones(n_states), size=q.shape)
    rewards = q - discount * transitions @ np.sum(pi * q, axis=-1)
    return FiniteMDP(transitions, rewards, np.full(n_states, 1 / n_states), discount)


# When the increase is strict


def reachable(mdp: FiniteMDP) -> NDArray[np.bool_]:
    """Return a matrix whose entry [s, s'] says whether s' is reachable from s.

    Policies have full support. Every state reaches itself, and no other state if the discount is 0.
    """
    reach = np.eye(mdp.n_states, dtype=bool)
    if mdp.discount == 0:
        return reach
    edges = mdp.transitions.sum(axis=1) > 0
    for _ in range(mdp.n_states):
        reach = reach | (reach.astype(int) @ edges.astype(int) > 0)
    return np.asarray(reach)


def mdp_with_equal_actions(rng: np.random.Generator) -> tuple[FiniteMDP, NDArray[np.bool_]]:
    """Return a random MDP with dyadic numbers, and a mask of the states with identical actions.

    The MDP has 2 to 5 states, and the actions of a state are identical with probability 1/2.
    """
    n_states, n_actions = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    successors = rng.integers(0, n_states, (n_states, n_actions, 4))
    # Distinct rewards within a state: with discount 0 no two actions may tie by accident.
    rewards = np.argsort(rng.random((n_states, 129)), axis=1)[:, :n_actions] / 64.0 - 1
    equal = rng.random(n_states) < 0.5
    successors[equal], rewards[equal] = successors[equal, :1], rewards[equal, :1]
    transitions = np.eye(n_states)[successors].mean(axis=2)
    discount = float(rng.choice([0.0, 0.5, 0.875]))
    initial = np.eye(n_states)[0]
    return FiniteMDP(transitions, rewards, initial, discount), equal


def improving_states(
    mdp: FiniteMDP, moving: NDArray[np.bool_], only_updated: bool = False
) -> NDArray[np.bool_]:
    """Return a mask of the states whose value an MCE step increases.

    `moving` marks the states with a positive weight and values that are not all equal. If
    `only_updated`, the function returns `moving`, which is an incorrect prediction.
    """
    return moving if only_updated else np.asarray((reachable(mdp) & moving).any(axis=1))


# Which of the five updates never decrease the value


def escort_safe_weight(theta: Floats, q: Floats, p: float = 2.0) -> Floats:
    r"""Return the largest weight at which a `pg-es` step provably does not decrease the value.

    The weight is :math:`\min_a 2\|\theta\|_p^p/(p|\theta_a|^{p-2}(v - q(a)))` over the actions with
    :math:`q(a) < v` and :math:`\theta_a \ne 0`, or infinity if there is no such action.
    """
    scale = np.abs(theta).max(axis=-1)
    modulus = np.abs(theta) / scale[..., np.newaxis]
    loss = np.where(modulus > 0, -advantage(escort(theta, p), q), 0.0)
    pull = np.where(loss > 0, p * np.where(modulus > 0, modulus, 1.0) ** (p - 2) * loss, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(scale**2 * (2 * np.sum(modulus**p, axis=-1) / pull.max(axis=-1)))


@formula
def value_loss(eps: Any, moved: Any, discount: Any) -> Any:
    """Return the largest loss of a step that changes the policy by `moved`, for errors of eps."""
    return 2 * eps * moved / (1 - discount)


@formula
def long_run_gap(n: int, eps: Any, discount: Any) -> Any:
    """Return the gap to which MCE returns on the chain with n states, as policies get certain."""
    return 2 * eps * (1 - discount**n) / (1 - discount) ** 2
