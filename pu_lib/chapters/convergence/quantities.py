r"""Convergence and optimality of MCE (paper, section 3.1): an equivalence, without uniqueness.

The process is :math:`\theta_{t+1}=U_{\mathrm{mce}}(\theta_t,d_t,q_t,\eta_t)` with exact values,
weights :math:`w_t(s)=\eta_td_t(s)\ge0` and ties broken in any way. With :math:`c=|A|/(|A|-1)`,
the greedy action :math:`a_t` and :math:`u_t=w_t(1-\pi_t(a_t))`, one update multiplies
:math:`\pi(a_t)/\pi(b)` by :math:`e^{cu_t}` for every other :math:`b` and leaves the other ratios
as they are.

**Key lemma.** At one state, let the greedy action lie in :math:`\mathcal T\subsetneq A` for all
:math:`t\ge t_0`, and let :math:`\beta_t=\pi_t(A\setminus\mathcal T)`,
:math:`e_0=\min_{a\in\mathcal T}\pi_{t_0}(a)/\beta_{t_0}`. Then, whatever the weights,

.. math:: \beta_T\le\Bigl(\frac1{\beta_{t_0}}+\frac c2\min(1,e_0)\sum_{t_0\le t<T}w_t\Bigr)^{-1}.

**Theorem.** Let :math:`S^-` be the states with a suboptimal action, :math:`R` the states that some
action enters. Then :math:`v_t\to v_\star` everywhere if and only if :math:`\sum_tw_t(s)=\infty` at
every :math:`s\in S^-`; and, for :math:`\gamma>0`, :math:`q_t\to q_\star` if and only if this holds
at every :math:`s\in S^-\cap R`.

**A finite run proves convergence.** Values never decrease and never exceed the optimal ones. So
once the best optimal action at :math:`s` is worth more *now* than any other can ever be worth,
:math:`\max_{A^\star(s)}q_t(s,\cdot)>\max_{b\notin A^\star(s)}q_\star(s,b)`, the greedy action is
optimal at every later time, and the key lemma bounds all that follows. `settled` finds that time.

**Necessity.** If :math:`\sum_tw_t(s)=M<\infty` then :math:`\pi_t(a|s)\ge\pi_0(a|s)e^{-cM}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import numbers
from pu_lib.domains import bandit, chain, cliff, duplicated_chain, random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import Trajectory, Weighting, run
from pu_lib.updates import Update, as_update

__all__ = [
    "ADVERSARIES",
    "Structure",
    "adversarial_run",
    "fading_run",
    "fixed_weights",
    "instances",
    "key_lemma_bound",
    "lemma_8_lines",
    "lemma_8_slack",
    "looping_bandit",
    "necessity_floor",
    "one_way_mdp",
    "optimality_bounds",
    "settled",
    "structure",
    "tied_limit_mdp",
    "uncontested_start",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


# The structure of an MDP


@dataclass(frozen=True)
class Structure:
    """What the theorem needs to know of an MDP.

    Attributes
    ----------
    v, q : ndarray, shape (S,) and (S, A)
        Optimal values.
    optimal : ndarray of bool, shape (S, A)
        The optimal actions.
    contested : ndarray of bool, shape (S,)
        The states with a suboptimal action.
    entered : ndarray of bool, shape (S,)
        The states that some action enters.
    """

    v: Floats
    q: Floats
    optimal: Mask
    contested: Mask
    entered: Mask


def structure(mdp: FiniteMDP) -> Structure:
    """Solve an MDP and say where which actions are optimal.

    Two actions count as equally good if their optimal values differ by less than 1e-9 of the
    largest one of their state, or by what rounding explains: 1e-14 of the largest of all.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.

    Returns
    -------
    Structure
        Optimal values, which actions are optimal, and which states are contested and entered.
    """
    best = mdp.optimal()
    optimal = best.q >= (best.v - _indifference(best.q))[:, np.newaxis]
    alive = ~mdp.terminal
    entered = mdp.transitions[alive].sum(axis=(0, 1)) > 0
    return Structure(best.v, best.q, optimal, ~optimal.all(axis=1) & alive, entered & alive)


def _indifference(q: Floats) -> Floats:
    """Return the differences that do not count, one for each state."""
    largest = np.abs(q).max(axis=-1)
    return np.asarray(np.maximum(1e-9 * largest, 1e-14 * largest.max()))


def instances() -> dict[str, FiniteMDP]:
    """Return the MDPs on which the checks run: unique optima, ties, and many optimal policies."""
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
    """Return two arms, worth `gap` and 0, in one state that is entered again and again.

    Parameters
    ----------
    gap : float
        Reward of the better arm.
    discount : float
        The discount.

    Returns
    -------
    FiniteMDP
        One state and two actions; no state is terminal.
    """
    return FiniteMDP(np.ones((1, 2, 1)), [[gap, 0.0]], [1.0], discount)


def uncontested_start() -> FiniteMDP:
    """Return a chain behind a new first state whose three actions all enter it: all are optimal."""
    base = duplicated_chain(4, n_actions=3, discount=0.8)
    n = base.n_states + 1
    transitions = np.zeros((n, base.n_actions, n))
    transitions[1:, :, 1:] = base.transitions
    transitions[0, :, 1] = 1.0
    rewards = np.vstack([np.zeros(base.n_actions), base.rewards])
    terminal = np.append(False, base.terminal)
    transitions[terminal] = 0.0
    return FiniteMDP(transitions, rewards, np.eye(n)[0], base.discount, terminal)


def one_way_mdp() -> FiniteMDP:
    """Return two states: the first is left for good, the second stays; each pays 1 or 0."""
    transitions = np.zeros((2, 2, 2))
    transitions[:, :, 1] = 1.0
    return FiniteMDP(transitions, [[1.0, 0.0], [1.0, 0.0]], [1.0, 0.0], 0.9)


def tied_limit_mdp() -> FiniteMDP:
    """Return an MDP with a unique optimal policy whose limit has a tie where weights run dry.

    At the first state one action leads to the second state and pays nothing, the other one ends
    and pays 1/4; the second state pays 1 or 0 and ends; the discount is 1/2. While the second
    state's policy is uniform, both actions of the first are worth 1/4.
    """
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    transitions[1:, :, 2] = 1.0
    rewards = [[0.0, 0.25], [1.0, 0.0], [0.0, 0.0]]
    return FiniteMDP(transitions, rewards, [1.0, 0.0, 0.0], 0.5, np.array([False, False, True]))


def fixed_weights(weights: ArrayLike) -> Weighting:
    """Return the weighting of `run` that gives each step its row of weights.

    Parameters
    ----------
    weights : array_like, shape (n_steps, n_states)
        The weights.

    Returns
    -------
    callable
        Takes the time and the current `Evaluation`, as `run` wants it.
    """
    rows = np.asarray(weights, dtype=np.float64)
    return lambda t, _: np.asarray(rows[t])


# The key lemma


def key_lemma_bound(
    beta: ArrayLike, e0: ArrayLike, n_actions: int, spent: ArrayLike, constant: float = 0.5
) -> Floats:
    r"""Return :math:`1/(1/\beta+\frac c2\min(1,e_0)W)`.

    Parameters
    ----------
    beta, e0 : array_like
        The mass outside the set at the start, and the least odds of its actions against that mass.
    n_actions : int
        :math:`|A|`.
    spent : array_like
        :math:`W`, the weight spent since the start.
    constant : float
        The factor 1/2 before :math:`c`.

    Returns
    -------
    ndarray
        The bound on the mass outside the set, with the axes of the arguments broadcast.
    """
    c = n_actions / (n_actions - 1)
    rise = constant * c * np.minimum(1.0, e0) * np.asarray(spent)
    return np.asarray(1.0 / (1.0 / np.asarray(beta) + rise))


Adversary = Callable[[Floats, Mask, int], int]
"""Chooses the greedy action from the policy at a state, the tied actions, and the time."""

ADVERSARIES: dict[str, Adversary] = {
    "first": lambda pi, tied, t: int(np.argmax(tied)),
    "least likely": lambda pi, tied, t: int(np.argmin(np.where(tied, pi, np.inf))),
    "most likely": lambda pi, tied, t: int(np.argmax(np.where(tied, pi, -np.inf))),
    "in turn": lambda pi, tied, t: int(np.flatnonzero(tied)[t % np.count_nonzero(tied)]),
    "seldom": lambda pi, tied, t: int(np.flatnonzero(tied)[-1 if (t & (t + 1)) == 0 else 0]),
}
"""Ways to break ties; the last one takes the first tied action except at t = 0, 1, 3, 7, 15..."""


def adversarial_run(
    rewards: ArrayLike,
    adversary: str,
    weights: ArrayLike,
    theta0: ArrayLike | None = None,
    update: str | Update = "mce",
) -> Floats:
    """Run an update on a bandit with ties broken by an adversary.

    The adversary sees the policy, so that the values cannot be listed beforehand. The update sees
    only which action is greedy: it is given that action's indicator.

    Parameters
    ----------
    rewards : array_like, shape (n_actions,)
        The values; the adversary chooses among the largest.
    adversary : str
        One of `ADVERSARIES`.
    weights : array_like, shape (n_steps,)
        The weights.
    theta0 : array_like, shape (n_actions,), optional
        Initial parameters; the uniform policy if missing.
    update : str or Update
        The update.

    Returns
    -------
    ndarray, shape (n_steps + 1, n_actions)
        The policies.
    """
    q, update = np.asarray(rewards, dtype=np.float64), as_update(update)
    tied = q == q.max()
    theta = update.initial(1, len(q))[0] if theta0 is None else np.array(theta0, dtype=np.float64)
    policies, indicators = [update.policy(theta)], np.eye(len(q))
    for t, weight in enumerate(numbers("weights", weights, low=0.0)):
        chosen = ADVERSARIES[adversary](policies[-1], tied, t)
        theta = update._moved(theta, indicators[chosen], weight, None)
        policies.append(update._to_policy(theta))
    return np.array(policies)


@cache
def fading_run(exponent: float, best: int, n_steps: int) -> tuple[Floats, Floats, Floats]:
    """Return the suboptimal mass of a four-armed bandit under fading weights, its bound and floor.

    Parameters
    ----------
    exponent : float
        The weights of MCE are (t + 1)^-exponent, from the uniform policy.
    best : int
        How many of the four arms are best; the first one is always taken.
    n_steps : int
        Number of updates.

    Returns
    -------
    mass, bound, floor : ndarray, shape (n_steps + 1,)
        The mass of all other arms before the first update and after each; the upper bound of the
        key lemma; and the lower bound of any run that has spent so much weight.
    """
    weights = (np.arange(n_steps) + 1.0) ** -exponent
    mass = adversarial_run(np.arange(4) < best, "first", weights)[:, best:].sum(axis=1)
    spent = np.append(0.0, np.cumsum(weights))
    bound = key_lemma_bound(1 - best / 4, 0.25 / (1 - best / 4), 4, spent)
    return mass, bound, necessity_floor(1 - best / 4, 4, spent)


# Sufficiency


def settled(trajectory: Trajectory, facts: Structure) -> int | None:
    """Return the first time from which the greedy action is provably optimal, for ever.

    That is at every contested state; ``None`` if the run is too short to say. The margin asked
    for is well above rounding.

    Parameters
    ----------
    trajectory : Trajectory
        A run of MCE.
    facts : Structure
        Those of its process.

    Returns
    -------
    int or None
        The number of updates after which it holds, or `None`.
    """
    s = facts.contested
    best_now = np.where(facts.optimal[s], trajectory.q[:, s], -np.inf).max(axis=-1)
    other_ever = np.where(facts.optimal[s], -np.inf, facts.q[s]).max(axis=-1)
    certain = other_ever + _indifference(facts.q)[s]
    times = np.flatnonzero((best_now > certain).all(axis=-1))
    return int(times[0]) if len(times) else None


def optimality_bounds(
    mdp: FiniteMDP, trajectory: Trajectory, facts: Structure, constant: float = 0.5
) -> tuple[int, Floats, Floats, Floats]:
    r"""Return :math:`t_0`, the largest gap from there on, and its two bounds.

    The first bound is :math:`\frac1{1-\gamma}\max_s\rho_s\pi_T(B_s|s)` with the measured masses of
    the suboptimal actions, :math:`\rho_s=\max_a(v_\star(s)-q_\star(s,a))`; the second replaces the
    masses by the key lemma's bound from :math:`t_0`, and holds for all later times.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.
    trajectory : Trajectory
        A run of MCE.
    facts : Structure
        Those of the process.
    constant : float
        The factor in the key lemma.

    Returns
    -------
    int
        :math:`t_0`.
    ndarray, shape (T + 1 - t_0,)
        Three of them: the largest gap, the first bound, the second.

    Raises
    ------
    ValueError
        If the run is too short for :math:`t_0` to be known.
    """
    start = settled(trajectory, facts)
    if start is None:
        raise ValueError("trajectory: the greedy actions have not settled; run more steps.")
    s = facts.contested
    gap = (facts.v - trajectory.v[start:]).max(axis=1)
    rho = (facts.v[:, np.newaxis] - facts.q).max(axis=1)[s]
    pi = trajectory.policies[start:][:, s]
    mass = np.where(facts.optimal[s], 0.0, pi).sum(axis=-1)
    e0 = np.where(facts.optimal[s], pi[0], np.inf).min(axis=-1) / mass[0]
    spent = np.vstack([np.zeros(int(s.sum())), np.cumsum(trajectory.weights[start:, s], axis=0)])
    ahead = key_lemma_bound(mass[0], e0, mdp.n_actions, spent, constant)
    horizon = 1.0 / (1.0 - mdp.discount)
    return start, gap, horizon * (rho * mass).max(axis=1), horizon * (rho * ahead).max(axis=1)


# The printed proof of Lemma 8


def lemma_8_lines(
    pi: Floats, q: Floats, weights: Floats, q_limit: Floats, cut: float = 1e-9
) -> dict[str, Floats]:
    r"""Evaluate the displayed inequalities of the printed proof at one state.

    Parameters
    ----------
    pi, q : ndarray, shape (T + 1, A)
        Policies and values along the run.
    weights : ndarray, shape (T,)
        The weights of the state.
    q_limit : ndarray, shape (A,)
        The limit of the values.
    cut : float
        What counts as equal in the limit.

    Returns
    -------
    dict of str to ndarray
        For each line, left minus right side at each time from :math:`t_0` on; never negative if
        the line is right. Empty if all actions tie in the limit.
    """
    top = q_limit >= q_limit.max() - cut
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
    r"""Return the least difference of the two sides of each line, over the contested states.

    The weights :math:`w_t=3\cdot0.9^t` have a finite sum, which makes the hypothesis of the proof
    true, and are about 1e-11 after 250 steps, so that the limit is known to rounding.

    Parameters
    ----------
    update : str or Update
        MCE in the proof.

    Returns
    -------
    dict of str to float
        By the names of `lemma_8_lines`; never negative if the line is right.
    """
    slack: dict[str, float] = {}
    for mdp in instances().values():
        trajectory = run(
            mdp, as_update(update), 250, eta=3.0 * 0.9 ** np.arange(250), weighting="uniform"
        )
        for s in np.flatnonzero(structure(mdp).contested):
            policies, q = trajectory.policies[:, s], trajectory.q[:, s]
            lines = lemma_8_lines(policies, q, trajectory.weights[:, s], q[-1])
            for name, values in lines.items():
                slack[name] = min(slack.get(name, np.inf), float(values.min()))
    return slack


# Necessity


def necessity_floor(
    pi0: ArrayLike, n_actions: int, total: ArrayLike, factor: float = 1.0
) -> Floats:
    r"""Return :math:`\pi_0(a)e^{-cM}`, below which no probability falls if weights sum to M.

    Parameters
    ----------
    pi0 : array_like
        Initial probabilities.
    n_actions : int
        :math:`|A|`, in :math:`c=|A|/(|A|-1)`.
    total : array_like
        M; broadcasts with `pi0`.
    factor : float
        1 in the lemma; multiplies the exponent.

    Returns
    -------
    ndarray
        The lower bound of each probability, with the axes of the arguments broadcast.
    """
    c = factor * n_actions / (n_actions - 1)
    return np.asarray(np.asarray(pi0) * np.exp(-c * np.asarray(total)))
