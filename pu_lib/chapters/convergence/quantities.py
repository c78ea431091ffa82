r"""A necessary and sufficient condition for the optimality of MCE (paper, section 3.1).

The process is :math:`\theta_{t+1}=U_{\mathrm{mce}}(\theta_t,d_t,q_t,\eta_t)` with exact values,
weights :math:`w_t(s)=\eta_td_t(s)\ge0` and any rule for ties. The optimal policy need not be
unique. With :math:`c=|A|/(|A|-1)`, the greedy action :math:`a_t` and
:math:`u_t=w_t(1-\pi_t(a_t))`, one step multiplies :math:`\pi(a_t)/\pi(b)` by :math:`e^{cu_t}` for
every other :math:`b` and does not change the other ratios.

**Key lemma.** At one state, let the greedy action lie in :math:`\mathcal T\subsetneq A` for all
:math:`t\ge t_0`, and let :math:`\beta_t=\pi_t(A\setminus\mathcal T)`,
:math:`e_0=\min_{a\in\mathcal T}\pi_{t_0}(a)/\beta_{t_0}`. Then, for all weights,

.. math:: \beta_T\le\Bigl(\frac1{\beta_{t_0}}+\frac c2\min(1,e_0)\sum_{t_0\le t<T}w_t\Bigr)^{-1}.

**Theorem.** Let :math:`S^-` be the set of states with a suboptimal action, and :math:`R` the set of
states that some action leads to. Then :math:`v_t\to v_\star` everywhere if and only if
:math:`\sum_tw_t(s)=\infty` at every :math:`s\in S^-`; and, for :math:`\gamma>0`,
:math:`q_t\to q_\star` if and only if :math:`\sum_tw_t(s)=\infty` at every :math:`s\in S^-\cap R`.

**A finite run proves convergence.** Values never decrease and never exceed the optimal values. So
if the value of an optimal action at :math:`s` exceeds the optimal values of all other actions,
:math:`\max_{A^\star(s)}q_t(s,\cdot)>\max_{b\notin A^\star(s)}q_\star(s,b)`, the greedy action is
optimal at every later time, and the key lemma bounds all later gaps. `settling_time` returns the
first such time.

**Necessity.** If :math:`\sum_tw_t(s)=M<\infty` then :math:`\pi_t(a|s)\ge\pi_0(a|s)e^{-cM}`.

The exponent of a decay is minus the slope of log gap against log t over the last decade; its
interval is the range of the exponents over four pieces of that decade. A standard error of the
regression would be meaningless, because the error is not random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy import exp
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import Floats, as_float_array
from pu_lib.claims.formulas import formula
from pu_lib.domains import bandit, chain, cliff, duplicated_chain, random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import Trajectory, Weighting, run
from pu_lib.updates import Update, as_update

Mask = NDArray[np.bool_]


# The structure of an MDP


@dataclass(frozen=True)
class Structure:
    """The optimal values of an MDP, its optimal actions, and two kinds of states.

    `optimal` has the shape (S, A). A state is `contested` if one of its actions is suboptimal, and
    `entered` if some action leads to it.
    """

    v: Floats
    q: Floats
    optimal: Mask
    contested: Mask
    entered: Mask


def structure(mdp: FiniteMDP) -> Structure:
    """Solve an MDP and return its structure.

    Two actions count as equally good if their optimal values differ by at most 1e-9 times the
    largest value of the state, or by at most 1e-14 times the largest value of all states, which
    covers rounding.
    """
    best = mdp.optimal()
    optimal = best.q >= (best.v - _indifference(best.q))[:, np.newaxis]
    alive = ~mdp.terminal
    entered = mdp.transitions[alive].sum(axis=(0, 1)) > 0
    return Structure(best.v, best.q, optimal, ~optimal.all(axis=1) & alive, entered & alive)


def _indifference(q: Floats) -> Floats:
    """Return the largest difference between two values that count as equal, per state."""
    largest = np.abs(q).max(axis=-1)
    return np.asarray(np.maximum(1e-9 * largest, 1e-14 * largest.max()))


def instances() -> dict[str, FiniteMDP]:
    """Return the MDPs of the checks, some with one optimal policy and some with many."""
    tied = random_mdp(3, n_states=12, n_actions=3, discount=0.9)
    twice = FiniteMDP(
        np.repeat(tied.transitions, 2, axis=1),
        np.repeat(tied.rewards, 2, axis=1),
        tied.initial,
        tied.discount,
        tied.terminal,
    )
    return {
        "bandit, three best arms of five": bandit([1.0, 1.0, 1.0, 0.5, 0.0]),
        "chain": chain(5, discount=0.9),
        "chain, tie in the last state": chain(5, discount=0.9, last_state_tie=True),
        "cliff": cliff(5, discount=0.9),
        "duplicated chain": duplicated_chain(5, n_actions=4, discount=0.9),
        "random": random_mdp(2, n_states=10, n_actions=3, discount=0.9),
        "random, every action twice": twice,
    }


def looping_bandit(gap: float = 1.0, discount: float = 0.5) -> FiniteMDP:
    """Return a one-state MDP whose actions have rewards `gap` and 0 and never leave the state."""
    return FiniteMDP(np.ones((1, 2, 1)), [[gap, 0.0]], [1.0], discount)


def uncontested_start() -> FiniteMDP:
    """Return a chain with an additional first state whose three actions all lead to the chain."""
    base = duplicated_chain(4, n_actions=3, discount=0.8)
    n = base.n_states + 1
    transitions = np.zeros((n, base.n_actions, n))
    transitions[1:, :, 1:] = base.transitions
    transitions[0, :, 1] = 1.0
    rewards = np.vstack([np.zeros(base.n_actions), base.rewards])
    terminal = np.append(False, base.terminal)
    transitions[terminal] = 0.0
    return FiniteMDP(transitions, rewards, np.eye(n)[0], base.discount, terminal)


def with_contested_start(base: FiniteMDP) -> FiniteMDP:
    """Return an MDP with an additional first state, which no action enters.

    All actions of the state lead to a random initial state of `base`. The first action has the
    reward 1, and the others 0.
    """
    n = base.n_states + 1
    transitions = np.zeros((n, base.n_actions, n))
    transitions[1:, :, 1:] = base.transitions
    transitions[0, :, 1:] = base.initial
    rewards = np.vstack([np.eye(base.n_actions)[0], base.rewards])
    return FiniteMDP(
        transitions, rewards, np.eye(n)[0], base.discount, np.append(False, base.terminal)
    )


def one_way_mdp() -> FiniteMDP:
    """Return an MDP with two states, in which every action leads to the second state.

    Each state has two actions, with rewards 1 and 0.
    """
    transitions = np.zeros((2, 2, 2))
    transitions[:, :, 1] = 1.0
    return FiniteMDP(transitions, [[1.0, 0.0], [1.0, 0.0]], [1.0, 0.0], 0.9)


def tied_limit_mdp() -> FiniteMDP:
    """Return an MDP whose values tie in the limit if the second state has no weight.

    At the first state one action leads to the second state with reward 0, and the other action ends
    the episode with reward 1/4. At the second state both actions end the episode, with rewards 1
    and 0. The discount is 1/2, and the optimal policy is unique. If the policy of the second state
    is uniform, both actions of the first state have the value 1/4.
    """
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    transitions[1:, :, 2] = 1.0
    rewards = [[0.0, 0.25], [1.0, 0.0], [0.0, 0.0]]
    return FiniteMDP(transitions, rewards, [1.0, 0.0, 0.0], 0.5, np.array([False, False, True]))


def decaying_weights(exponent: float, n_steps: int) -> Floats:
    """Return the weights (t + 1)^-exponent of the steps t = 0, ..., n_steps - 1."""
    return np.asarray((np.arange(n_steps) + 1.0) ** -exponent)


def fixed_weights(weights: ArrayLike) -> Weighting:
    """Return the weighting for `run` that uses row t of a (T, S) array at step t."""
    rows = np.asarray(weights, dtype=np.float64)
    return lambda t, _: np.asarray(rows[t])


# The key lemma


@formula
def key_lemma_bound(
    beta: Any, e0: Any, n_actions: int, weight_sum: Any, constant: float = 0.5
) -> Any:
    """Return the key lemma's bound on the mass outside a set if the weights sum to `weight_sum`."""
    c = n_actions / (n_actions - 1)
    e0 = np.minimum(1.0, e0)
    return 1 / (1 / beta + constant * c * e0 * weight_sum)


Adversary = Callable[[Floats, Mask, int], int]
"""A rule that returns the greedy action, given the policy, the tied actions and the time."""

ADVERSARIES: dict[str, Adversary] = {
    "first": lambda pi, tied, t: int(np.argmax(tied)),
    "least likely": lambda pi, tied, t: int(np.argmin(np.where(tied, pi, np.inf))),
    "most likely": lambda pi, tied, t: int(np.argmax(np.where(tied, pi, -np.inf))),
    "in turn": lambda pi, tied, t: int(np.flatnonzero(tied)[t % np.count_nonzero(tied)]),
    "seldom": lambda pi, tied, t: int(np.flatnonzero(tied)[-1 if (t & (t + 1)) == 0 else 0]),
}
"""Rules for ties; "seldom" takes the first tied action, and the last one at t = 0, 1, 3, 7, ..."""


def adversarial_run(
    rewards: ArrayLike,
    adversary: str,
    weights: ArrayLike,
    theta0: ArrayLike | None = None,
    update: str | Update = "mce",
) -> Floats:
    """Return the policies, as a (T + 1, A) array, on a bandit whose ties an adversary breaks.

    The choice of the adversary may depend on the policy. The values given to the update are 1 for
    the chosen action and 0 for all others.
    """
    q, update = np.asarray(rewards, dtype=np.float64), as_update(update)
    tied = q == q.max()
    theta = update.initial(1, len(q))[0] if theta0 is None else np.array(theta0, dtype=np.float64)
    policies, indicators = [update.policy(theta)], np.eye(len(q))
    for t, weight in enumerate(as_float_array("weights", weights, low=0.0)):
        chosen = ADVERSARIES[adversary](policies[-1], tied, t)
        theta = update._unchecked_step(theta, indicators[chosen], weight, None)
        policies.append(update._unchecked_policy(theta))
    return np.array(policies)


@cache
def fading_run(exponent: float, best: int, n_steps: int) -> tuple[Floats, Floats, Floats]:
    """Return the suboptimal mass of four arms under MCE, its upper and its lower bound, by time.

    The weights are (t + 1)^-exponent. There are `best` optimal arms, and the first one wins ties.
    """
    weights = decaying_weights(exponent, n_steps)
    mass = adversarial_run(np.arange(4) < best, "first", weights)[:, best:].sum(axis=1)
    weight_sum = np.append(0.0, np.cumsum(weights))
    bound = key_lemma_bound(1 - best / 4, 0.25 / (1 - best / 4), 4, weight_sum)
    return mass, bound, necessity_floor(1 - best / 4, 4, weight_sum)


# Sufficiency


def settling_time(trajectory: Trajectory, facts: Structure) -> int | None:
    """Return the first time after which the greedy actions of MCE provably stay optimal.

    The actions are optimal at every contested state. The result is ``None`` if the run is too
    short. The required difference between values is well above rounding.
    """
    s = facts.contested
    best_now = np.where(facts.optimal[s], trajectory.q[:, s], -np.inf).max(axis=-1)
    other_ever = np.where(facts.optimal[s], -np.inf, facts.q[s]).max(axis=-1)
    certain = other_ever + _indifference(facts.q)[s]
    times = np.flatnonzero((best_now > certain).all(axis=-1))
    return int(times[0]) if len(times) else None


def suboptimal_mass(trajectory: Trajectory, facts: Structure) -> Floats:
    """Return the mass of the suboptimal actions per time and contested state."""
    s = facts.contested
    mass = np.where(facts.optimal[s], 0.0, trajectory.policies[:, s]).sum(axis=-1)
    return np.asarray(mass)


def optimality_bounds(
    mdp: FiniteMDP, trajectory: Trajectory, facts: Structure
) -> tuple[int, Floats, Floats, Floats]:
    r"""Return the settling time :math:`t_0`, and the largest gap and its two bounds after it.

    The measured bound is :math:`\frac1{1-\gamma}\max_s\rho_s\pi_T(B_s|s)`, with :math:`B_s` the
    suboptimal actions and :math:`\rho_s=\max_a(v_\star(s)-q_\star(s,a))`. The proved bound replaces
    the masses :math:`\pi_T(B_s|s)` by the key lemma's bounds and applies to all later times.
    """
    start = settling_time(trajectory, facts)
    if start is None:
        raise ValueError("trajectory: the greedy actions have not settled; run more steps.")
    s = facts.contested
    gap = (facts.v - trajectory.v[start:]).max(axis=1)
    rho = (facts.v[:, np.newaxis] - facts.q).max(axis=1)[s]
    mass = suboptimal_mass(trajectory, facts)[start:]
    e0 = np.where(facts.optimal[s], trajectory.policies[start, s], np.inf).min(axis=-1) / mass[0]
    weight_sum = np.vstack(
        [np.zeros(int(s.sum())), np.cumsum(trajectory.weights[start:, s], axis=0)]
    )
    ahead = key_lemma_bound(mass[0], e0, mdp.n_actions, weight_sum)
    horizon = 1.0 / (1.0 - mdp.discount)
    return start, gap, horizon * (rho * mass).max(axis=1), horizon * (rho * ahead).max(axis=1)


# The printed proof of Lemma 8


def lemma_8_lines(pi: Floats, q: Floats, weights: Floats, q_limit: Floats) -> dict[str, Floats]:
    r"""Return the left minus the right side of each inequality of the printed proof at one state.

    Policies and values have the shape (T + 1, A), and weights have the shape (T,). The differences
    start at time :math:`t_0`, and a line of the proof holds if its differences are not negative.
    The result is empty if all actions tie in the limit.
    """
    top = q_limit >= q_limit.max() - 1e-9
    if top.all():
        return {}
    best = q_limit.max()
    delta = best - q_limit[~top].max()
    late = np.flatnonzero((q_limit - q <= delta / 2).all(axis=1))
    start = int(late[0])
    pi, q, w = pi[start:], q[start:], weights[start:]
    now, nxt, values = pi[:-1], pi[1:], q[:-1]
    greedy = np.argmax(values, axis=1)
    rows = np.arange(len(w))
    n_actions = len(q_limit)
    c = n_actions / (n_actions - 1)
    u = w * (1.0 - now[rows, greedy])
    lead = values - values[rows, greedy][:, np.newaxis]
    advantage = ((nxt - now) * lead).sum(axis=1)
    bottom = ((nxt - now) * lead)[:, ~top].sum(axis=1)
    loss = delta / 2 * (now - nxt)[:, ~top].sum(axis=1)
    mass = now[:, ~top].sum(axis=1)
    shrink = -np.expm1(-c * u)
    product = delta / 2 * mass * nxt[rows, greedy] * shrink
    earlier = delta / 2 * mass * now[rows, greedy] * shrink
    halved = delta / 4 * mass * now[rows, greedy] * np.minimum(c * u, 1.0)
    m = float(pi[-1, ~top].sum())
    final = delta * m / 4 * np.minimum(w * m * c, 1.0) * now[rows, greedy]
    e0 = float((now[0, top] / mass[0]).min())
    return {
        "q of the top actions": (values[:, top] - (best - delta / 2)).min(axis=1),
        "q of the others": (best - delta - values[:, ~top]).min(axis=1),
        "greedy among the top actions": np.where(top[greedy], 0.0, -1.0),
        "drop the top actions": advantage - bottom,
        "insert the gap": bottom - loss,
        "softmax (equality)": -np.abs(loss - product),
        "pi(t+1) to pi(t)": product - earlier,
        "1 - exp(-x) >= min(x, 1)/2": earlier - halved,
        "mass left outside": halved - final,
        "top mass increases": np.diff(pi[:, top].sum(axis=1)),
        "missing line: pi(a_q) >= e0 m": now[rows, greedy] - e0 * m,
    }


def lemma_8_slack(update: str | Update = "mce") -> dict[str, float]:
    r"""Return the smallest difference for each of `lemma_8_lines` over all contested states.

    The first line of the proof is quantified: in the limit the largest advantage of an action is at
    least :math:`1-\gamma` times the largest gap to the optimum.

    The weights :math:`w_t=3\cdot0.9^t` have a finite sum, as the proof assumes. They are about
    1e-11 after 250 steps, so the limit is known up to rounding.
    """
    slack: dict[str, float] = {}
    for mdp in instances().values():
        trajectory = run(
            mdp, as_update(update), 250, step_size=3.0 * 0.9 ** np.arange(250), weighting="uniform"
        )
        best = structure(mdp)
        ahead = (trajectory.q[-1].max(axis=1) - trajectory.v[-1]).max()
        gap = (1.0 - mdp.discount) * (best.v - trajectory.v[-1]).max()
        name = "an action has an advantage"
        slack[name] = min(slack.get(name, np.inf), float(ahead - gap))
        for s in np.flatnonzero(best.contested):
            policies, q = trajectory.policies[:, s], trajectory.q[:, s]
            lines = lemma_8_lines(policies, q, trajectory.weights[:, s], q[-1])
            for name, values in lines.items():
                slack[name] = min(slack.get(name, np.inf), float(values.min()))
    return slack


# Necessity


@formula
def necessity_floor(pi0: Any, n_actions: int, total: Any, factor: float = 1.0) -> Any:
    """Return the lower bound on a probability if the weights of the state sum to `total`."""
    c = factor * n_actions / (n_actions - 1)
    return pi0 * exp(-c * total)


# Measured exponents


@dataclass(frozen=True)
class Exponent:
    """The exponent k of a decay like t^-k, and the smallest and the largest k over four pieces.

    All three are infinite if a gap in the last decade is zero up to rounding.
    """

    value: float
    low: float
    high: float


def log_times(n_steps: int, per_decade: int = 16) -> NDArray[np.int64]:
    """Return increasing integers from 1 to `n_steps` that are evenly spaced on a log scale."""
    count = int(np.ceil(per_decade * np.log10(n_steps))) + 1
    return np.unique(np.geomspace(1, n_steps, count).round().astype(np.int64))


def exponent(times: ArrayLike, gaps: ArrayLike) -> Exponent:
    """Return the exponent of a decay over the last decade of `times`, and over four pieces of it.

    The exponent is infinite if a gap is at most 1e-14, which is zero up to rounding.
    """
    t, g = np.asarray(times, dtype=np.float64), np.asarray(gaps, dtype=np.float64)
    last = t >= t[-1] / 10.0
    t, g = t[last], g[last]
    if len(t) < 8:
        raise ValueError(f"times: expected at least 8 in the last decade, got {len(t)}.")
    if g.min() <= 1e-14:
        return Exponent(np.inf, np.inf, np.inf)
    x, y = np.log(t), np.log(g)

    def slope(part: slice | NDArray[np.int64]) -> float:
        return float(-np.polyfit(x[part], y[part], 1)[0])

    cuts = np.array_split(np.arange(len(x)), 4)
    slopes = [slope(np.arange(cut[0], min(cut[-1] + 2, len(x)))) for cut in cuts]
    return Exponent(slope(slice(None)), min(slopes), max(slopes))
