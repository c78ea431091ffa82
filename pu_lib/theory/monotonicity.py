r"""Whether one update can lower the value (paper, section 2, Propositions 1 and 2).

Let :math:`\pi \to \pi'` in every state, with :math:`v, q` the values of :math:`\pi`, and let
:math:`A(s) = \sum_a (\pi' - \pi)(a|s)\,q(s,a)` be the *step advantage*. From
:math:`v' = r_{\pi'} + \gamma P_{\pi'} v'` and :math:`r_{\pi'} + \gamma P_{\pi'} v = v + A`,

.. math:: v' - v = (I - \gamma P_{\pi'})^{-1} A = \sum_{k\ge0} \gamma^k P_{\pi'}^k A .

So the value rises everywhere if :math:`A \ge 0` everywhere, and :math:`v'(s) > v(s)` exactly if a
state with :math:`A > 0` can be reached from :math:`s` (only :math:`s` itself if
:math:`\gamma = 0`).

**The sign condition.** Suppose :math:`\pi'(a) \propto \pi(a)\,g_a` with :math:`g_a > 0`, and that
some number :math:`c` separates: :math:`g_a \ge c` where :math:`\mathrm{adv}(a) > 0`,
:math:`g_a \le c` where :math:`\mathrm{adv}(a) < 0`. As :math:`\sum_a\pi(a)\,\mathrm{adv}(a) = 0`,

.. math:: A = \frac{\sum_a \pi(a)\,(g_a - c)\,\mathrm{adv}(a)}{\sum_b \pi(b)\,g_b} \ge 0 .

- `mce`: :math:`g = e^{u}` at :math:`a_q`, and :math:`c = e^{-u/(|A|-1)}` elsewhere. Proposition 2.
- `pg-sm`: :math:`g_a = e^{w\pi(a)\mathrm{adv}(a)}`, :math:`c = 1`. So softmax policy gradient never
  lowers the value either, *for any learning rate*.
- `pg-es`: :math:`g_a = |1 + x_a|^p` with
  :math:`x_a = w\,p\,|\theta_a|^{p-2}\,\mathrm{adv}(a)/\|\theta\|_p^p`, and :math:`c = 1` as long as
  no :math:`x_a` is below -2: no parameter crosses zero to end up larger than it was.
- `di` is no such update, but the projection gives :math:`w A \ge \|\pi' - \pi\|^2`.
- `ce`: :math:`g_a = e^{-w\pi(a)}` for :math:`a \ne a_q`: the order of the factors among the other
  actions is that of their probabilities, whatever their values. Proposition 1.

**The worst decrease.** A `ce` step depends on :math:`q` through :math:`a_q` alone. With values of
range one, :math:`-A` is largest for values one at the actions that lose mass and zero at those that
gain some: :math:`\sup_q(-A) = \sum_{a \ne a_q}(\pi'(a) - \pi(a))^+`. The supremum over policies is
approached as :math:`\pi(a_q) \to 0`. For three actions it is

.. math:: D_3(w) = \max_{x\in[0,1]} \frac{x(1-x)\,(e^{-w(1-x)} - e^{-wx})}
                                          {(1-x)e^{-w(1-x)} + x\,e^{-wx}},

and for any number of actions it is below
:math:`D_\infty(w) = \max_x x(1-x)(1-e^{-wx})/(1 - x + x e^{-wx})`, the limit of many actions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from pu_lib.domains import random_mdp
from pu_lib.exact import Number, ball, exact
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, Update, advantage, softmax

__all__ = [
    "CertifiedStep",
    "Drop",
    "ball_direction",
    "ball_softmax",
    "certified_step",
    "decrease_frequency",
    "decreases_in_random_mdps",
    "escort_safe_weight",
    "mass_gained",
    "reachable",
    "search_drop",
    "small_mdp",
    "step_advantage",
    "strict_states",
    "worst_drop_any",
    "worst_drop_three",
]

Floats = NDArray[np.float64]


ROUNDING = 1e-12
"""Tolerance on values of size one: evaluating a policy loses a few digits to 1/(1 - gamma)."""


@dataclass(frozen=True)
class Drop:
    """The largest decrease a search has found, and the policy and values where it happens."""

    value: float
    policy: Floats
    q: Floats


# The step advantage


def step_advantage(pi: Floats, new: Floats, q: Floats) -> Floats:
    r"""Return :math:`A = \sum_a (\pi' - \pi)(a)\,q(a)` of each row.

    The values are taken relative to the best one, which changes nothing in exact arithmetic and
    keeps the rounding error below the size of the gaps.
    """
    return np.asarray(np.sum((new - pi) * (q - q.max(axis=-1, keepdims=True)), axis=-1))


def mass_gained(pi: Floats, new: Floats, greedy: NDArray[np.bool_]) -> Floats:
    """Return the mass gained by actions other than the greedy one: the worst drop over q."""
    return np.asarray(np.where(greedy, 0.0, np.maximum(new - pi, 0.0)).sum(axis=-1))


def worst_drop_three(w: float) -> float:
    """Return the supremum of the decrease that CE causes with three actions, D_3(w)."""
    return _largest(
        lambda x: x * (1 - x) * -np.expm1(-w * (2 * x - 1)) / (1 - x + x * np.exp(-w * (2 * x - 1)))
    )


def worst_drop_any(w: float) -> float:
    """Return the supremum over all numbers of actions, D_infinity(w)."""
    return _largest(lambda x: x * (1 - x) * -np.expm1(-w * x) / (1 - x + x * np.exp(-w * x)))


def _largest(function: Callable[[Floats], Floats]) -> float:
    """Maximise a function of one variable on [0, 1]: a grid first, then a bracketed search."""
    grid = np.linspace(0, 1, 2001)
    i = int(np.argmax(function(grid)))
    bounds = (grid[max(i - 1, 0)], grid[min(i + 1, 2000)])
    found = minimize_scalar(
        lambda x: float(-function(np.array(x))), bounds=bounds, options={"xatol": 1e-12}
    )
    return float(-found.fun)


def search_drop(
    update: Update,
    n_actions: int,
    weight: float,
    rng: np.random.Generator,
    population: int = 300,
    rounds: int = 400,
) -> Drop:
    """Search policies and values of range one for the largest decrease of one update.

    A population of candidates climbs by random changes of every size, the worst third being
    replaced by the best now and then. The search knows nothing of the update.

    Parameters
    ----------
    update : Update
        The update attacked.
    n_actions : int
        Number of actions of the one state.
    weight : float
        The weight of the step.
    rng : numpy.random.Generator
        Source of randomness.
    population, rounds : int
        Number of candidates, and of changes tried on each.

    Returns
    -------
    Drop
    """
    floor = -30.0 - 2.0 * weight  # CE decreases most as pi(a_q) -> 0, at e^-w and below
    shape = (population, n_actions)
    scores = rng.normal(size=shape) * rng.choice([0.5, 2.0, 6.0], size=(population, 1))
    q = rng.random(shape)
    best = _drops(update, scores, q, weight)
    for turn in range(rounds):
        size = 10.0 ** rng.uniform(-3, 0.5, size=(population, 1))
        moved = scores + 4 * size * rng.normal(size=shape) * rng.integers(0, 2, size=shape)
        moved = np.maximum(moved - moved.max(axis=-1, keepdims=True), max(floor, -600.0))
        changed = q + size * rng.normal(size=shape) * rng.integers(0, 2, size=shape)
        changed = np.clip(changed, 0.0, 1.0)
        drops = _drops(update, moved, changed, weight)
        better = drops > best
        scores[better], q[better], best[better] = moved[better], changed[better], drops[better]
        if turn % 40 == 39:
            order, third = np.argsort(best), population // 3
            for array in (scores, q, best):
                array[order[:third]] = array[order[-third:]]
    top = int(np.argmax(best))
    return Drop(float(best[top]), softmax(scores[top]), q[top])


def _drops(update: Update, scores: Floats, q: Floats, weight: float) -> Floats:
    """Return v - v' after one update of the policies softmax(scores)."""
    pi = softmax(scores)
    new = update.policy(update.step(update.parameters(pi), q, weight))
    return -step_advantage(pi, new, q)


# Certified decreases of one state, in ball arithmetic


@dataclass(frozen=True)
class CertifiedStep:
    """One update of one state in ball arithmetic: values before and after, and both policies."""

    v: arb
    new_v: arb
    pi: list[arb]
    new_pi: list[arb]


def certified_step(
    name: str, theta: Sequence[Number], q: Sequence[Number], weight: Number
) -> CertifiedStep:
    """Update one state by CE or MCE with balls that enclose the exact numbers.

    Parameters
    ----------
    name : {"ce", "mce"}
        The update; it is written here a second time, on balls.
    theta, q : sequence of numbers
        Exact parameters and values; the first of the largest values is greedy.
    weight : number
        Exact weight.

    Returns
    -------
    CertifiedStep
    """
    pi = ball_softmax([ball(x) for x in theta])
    greedy = max(range(len(q)), key=lambda a: exact(q[a]))
    steps = ball_direction(name, pi, greedy)
    new = ball_softmax([ball(x) + ball(weight) * d for x, d in zip(theta, steps, strict=True)])
    v, new_v = (sum((x * ball(y) for x, y in zip(p, q, strict=True)), arb(0)) for p in (pi, new))
    return CertifiedStep(v, new_v, pi, new)


def ball_softmax(theta: Sequence[arb]) -> list[arb]:
    """Return the softmax policy in balls, shifted by the largest midpoint."""
    top = max(theta, key=lambda x: float(x.mid())).mid()
    powers = [(x - top).exp() for x in theta]
    total = sum(powers, arb(0))
    return [power / total for power in powers]


def ball_direction(name: str, pi: Sequence[arb], greedy: int) -> list[arb]:
    """Return the direction of a CE or MCE step in balls.

    Raises
    ------
    ValueError
        If `name` is another update.
    """
    if name not in ("ce", "mce"):
        raise ValueError(f"name: only ce and mce are written on balls, got {name!r}.")
    missing = sum((p for a, p in enumerate(pi) if a != greedy), arb(0))
    others = [-missing / (len(pi) - 1) if name == "mce" else -p for p in pi]
    return [missing if a == greedy else others[a] for a in range(len(pi))]


# The worst decrease, and how often there is one


def decrease_frequency(
    update: Update, n_actions: int, weight: float, scale: float, n: int = 20_000, seed: int = 13
) -> float:
    r"""Return how often one update lowers the value of a random state.

    Parameters
    ----------
    update : Update
        The update.
    n_actions, weight
        The state's number of actions and the step's weight.
    scale : float
        Policies are softmax of normal numbers with this standard deviation.
    n, seed : int
        Number of states, and the seed. Values are uniform on [0, 1].

    Returns
    -------
    float
        The share of states with :math:`A < -10^{-12}`.
    """
    rng = np.random.default_rng(seed)
    scores, q = scale * rng.normal(size=(n, n_actions)), rng.random((n, n_actions))
    return float(np.mean(_drops(update, scores, q, weight) > ROUNDING))


def decreases_in_random_mdps(
    update: Update = UPDATES["ce"],
    etas: Sequence[float] = (0.1, 1.0, 10.0),
    scales: Sequence[float] = (0.0, 1.0, 3.0, 6.0),
    n: int = 20,
    steps: int = 50,
    seed: int = 14,
) -> list[dict[str, float]]:
    """Count the updates that lower the performance of random MDPs (30 states, 4 actions).

    Parameters
    ----------
    update : Update
        The update.
    etas : sequence of float
        Learning rates; all states are updated with d(s) = 1.
    scales : sequence of float
        Standard deviations of the normal initial parameters; 0 is the uniform policy.
    n, steps, seed : int
        Random MDPs for each line, updates of each, and the seed.

    Returns
    -------
    list of dict
        For each rate and scale the share of the updates that lower the performance, the share
        that lower the value of some state, and the largest decrease of the performance as a
        share of the range it can have.
    """
    rng = np.random.default_rng(seed)
    mdps = [random_mdp(rng, n_states=30, n_actions=4, if_none="last") for _ in range(n)]
    rows = []
    for eta, scale in product(etas, scales):
        lower_j, lower_v, worst = [], [], 0.0
        for mdp in mdps:
            theta = scale * rng.normal(size=(mdp.n_states, mdp.n_actions))
            path = run(mdp, update, steps, eta=eta, weighting="uniform", theta0=theta)
            change = np.diff(path.performance)
            lower_j += list(change < -ROUNDING)
            lower_v += list(np.any(np.diff(path.v, axis=0) < -ROUNDING, axis=1))
            worst = max(worst, float(-change.min()))
        rows.append(
            {
                "eta": eta,
                "scale of theta_0": scale,
                "updates that lower J": float(np.mean(lower_j)),
                "lower v somewhere": float(np.mean(lower_v)),
                "largest decrease of J": worst,
            }
        )
    return rows


# Proposition 2


def small_mdp(rng: np.random.Generator) -> FiniteMDP:
    """Draw an MDP of 1 to 6 states and 2 to 5 actions, any branching, discount up to 0.99."""
    n_states, n_actions = int(rng.integers(1, 7)), int(rng.integers(2, 6))
    keep = rng.random((n_states, n_actions, n_states)) < rng.uniform(0.2, 1)
    keep[np.arange(n_states), :, np.arange(n_states)] |= ~keep.any(axis=-1)
    mass = np.where(keep, rng.exponential(size=keep.shape), 0.0)
    transitions = mass / mass.sum(axis=-1, keepdims=True)
    initial = np.full(n_states, 1 / n_states)
    discount = float(rng.choice([0.0, 0.5, 0.9, 0.99]))
    return FiniteMDP(transitions, rng.normal(size=(n_states, n_actions)), initial, discount)


# When the increase is strict


def reachable(mdp: FiniteMDP) -> NDArray[np.bool_]:
    """Mark the pairs (s, s') such that s' can be reached from s with full-support policies.

    Every state reaches itself; with discount 0 it reaches nothing else.
    """
    reach = np.eye(mdp.n_states, dtype=bool)
    if mdp.discount == 0:
        return reach
    edges = mdp.transitions.sum(axis=1) > 0
    for _ in range(mdp.n_states):
        reach = reach | (reach.astype(int) @ edges.astype(int) > 0)
    return np.asarray(reach)


def strict_states(
    mdp: FiniteMDP, moving: NDArray[np.bool_], only_moving: bool = False
) -> NDArray[np.bool_]:
    """Mark the states whose value an MCE update raises.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.
    moving : ndarray of bool, shape (n_states,)
        The states with a positive weight and values that are not all equal.
    only_moving : bool
        Mark only the moving states themselves: the condition without its second half.
    """
    return moving if only_moving else np.asarray((reachable(mdp) & moving).any(axis=1))


# Which of the five updates never lower the value


def escort_safe_weight(theta: Floats, q: Floats) -> Floats:
    r"""Return the weight up to which a `pg-es` step with p = 2 cannot lower the value.

    It is :math:`\|\theta\|^2 / \max_a (v - q(a))`: no parameter crosses zero to end up larger.
    """
    pi = UPDATES["pg-es"].policy(theta)
    worst = (-advantage(pi, q)).max(axis=-1)
    return np.asarray(np.sum(theta**2, axis=-1) / worst)
