r"""Asymptotic rates (paper, section 3.2): Theorem 2, its constants, and what the updates measure.

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
  :math:`1/(1-\pi_T)\ge1/(1-\pi_{t_0})+\frac12\min(1,\kappa_{t_0})W_T`: the rate of MCE, once CE has
  settled.
- **DI.** If the greedy action leads each other one by :math:`\delta` from :math:`t_0` on, a step
  takes at least :math:`w\delta/2` from the others until they have nothing: the policy is
  optimal once :math:`W_T\ge2(1-\pi_{t_0})/\delta`.
  The same holds, with any number of best actions, for the mass outside a set whose actions all lead
  the others by :math:`\delta`.
- **PG-ES** with exponent p > 2: :math:`1-\pi_t` of order :math:`t^{-p/(p-2)}`; with p = 2,
  geometric. With 1 < p < 2 the step of a small parameter x, of order :math:`|x|^{p-1}`, is longer
  than x: it overshoots zero and ends in a cycle of period two about it, whose size shrinks only as
  fast as the norm grows. For two arms, to leading order and whatever the weight,
  :math:`(1-\pi_t)\,t^{p/2}\to((2-p)/8)^{p/2}` (`escort_limit`): slower than :math:`1/t`.
- **CE with tied optima**: an adversary that breaks ties, as Theorem 1 allows for MCE, makes
  :math:`1-\pi_t` of order :math:`t^{-1/2}` (`taking_turns`).

Exponents are measured as the slope of log gap against log t over the last decade; the interval is
the range of the slopes over the pieces of that decade. The error is not random, so that a standard
error of the regression would mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib import kernels
from pu_lib.arrays import number, whole
from pu_lib.chapters.convergence.quantities import Structure, settled, structure
from pu_lib.domains import bandit, chain, cliff, random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import Trajectory, follow, run
from pu_lib.updates import Update, as_update

__all__ = [
    "Exponent",
    "bandit_gaps",
    "bandit_masses",
    "di_steps",
    "escort_limit",
    "exponent",
    "limit_error_bound",
    "log_times",
    "odds",
    "overtaking_steps",
    "settled_run",
    "taking_turns",
    "two_bandits",
    "unique_instances",
]

Floats = NDArray[np.float64]


# Measuring


@dataclass(frozen=True)
class Exponent:
    """The exponent :math:`k` of a decay like :math:`t^{-k}`.

    Attributes
    ----------
    value : float
        Least squares over the last decade; infinite if the gap is zero there.
    low, high : float
        The least and largest slope over the pieces of the decade.
    """

    value: float
    low: float
    high: float


def log_times(n_steps: int, per_decade: int = 16) -> NDArray[np.int64]:
    """Return integer times from 1 to `n_steps`, evenly spaced in the logarithm.

    Parameters
    ----------
    n_steps : int
        The last time.
    per_decade : int
        How many times between t and 10 t; fewer where integers repeat.

    Returns
    -------
    ndarray of int, shape (n,)
        The times, strictly increasing.
    """
    count = int(np.ceil(per_decade * np.log10(n_steps))) + 1
    return np.unique(np.geomspace(1, n_steps, count).round().astype(np.int64))


def exponent(times: ArrayLike, gaps: ArrayLike, pieces: int = 4, floor: float = 1e-14) -> Exponent:
    """Fit the exponent of a decay over the last decade of `times`.

    Parameters
    ----------
    times, gaps : array_like, shape (n,)
        When, and how far from the optimum.
    pieces : int
        Into how many pieces the decade is cut for the interval.
    floor : float
        Gaps below this are rounding: the decay is then faster than any power that can be measured.

    Returns
    -------
    Exponent
        The exponent of the whole decade, with the smallest and the largest of its pieces; all
        infinite where the gaps are below `floor`.

    Raises
    ------
    ValueError
        If the last decade holds fewer than two times a piece.
    """
    t, g = np.asarray(times, dtype=np.float64), np.asarray(gaps, dtype=np.float64)
    last = t >= t[-1] / 10.0
    t, g = t[last], g[last]
    if len(t) < 2 * pieces:
        raise ValueError(f"times: the last decade holds {len(t)} times; {2 * pieces} are needed.")
    if g.min() <= floor:
        return Exponent(np.inf, np.inf, np.inf)
    x, y = np.log(t), np.log(g)

    def slope(part: slice | NDArray[np.int64]) -> float:
        return float(-np.polyfit(x[part], y[part], 1)[0])

    cuts = np.array_split(np.arange(len(x)), pieces)
    slopes = [slope(np.arange(cut[0], min(cut[-1] + 2, len(x)))) for cut in cuts]
    return Exponent(slope(slice(None)), min(slopes), max(slopes))


def bandit_masses(
    update: str | Update,
    rewards: ArrayLike,
    n_steps: int,
    weights: float | ArrayLike = 1.0,
    theta0: ArrayLike | None = None,
) -> Floats:
    """Return the mass outside the best arms of a bandit along an update.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    rewards : array_like, shape (n_actions,)
        The values of the arms.
    n_steps : int
        Number of updates T.
    weights : float or array_like, shape (T,)
        Their weights.
    theta0 : array_like, shape (n_actions,), optional
        The start; the uniform policy if missing.

    Returns
    -------
    ndarray, shape (T + 1,)
        Before each update and after the last.
    """
    q = np.asarray(rewards, dtype=np.float64)
    policies = as_update(update).policy(follow(update, q, weights, n_steps, theta0))
    return np.asarray(policies[:, q < q.max()].sum(axis=1))


def bandit_gaps(update: str | Update, rewards: ArrayLike, n_steps: int) -> Floats:
    r"""Return how far the value of a bandit is from its optimum, at weight 1.

    Parameters
    ----------
    update : str or Update
        The update, or its name; it starts from the uniform policy.
    rewards : array_like, shape (n_actions,)
        The values of the arms.
    n_steps : int
        Number of updates T.

    Returns
    -------
    ndarray, shape (T + 1,)
        The gaps :math:`\max_a q(a) - \sum_a \pi_t(a) q(a)`, the start first.
    """
    q = np.asarray(rewards, dtype=np.float64)
    policies = as_update(update).policy(follow(update, q, 1.0, n_steps))
    return np.asarray(policies @ (q.max() - q))


# Theorem 2


def overtaking_steps(n_steps: int) -> tuple[Floats, Floats]:
    r"""Return step sizes :math:`\eta_t=(t+1)\kappa_t` for two arms, and the masses :math:`1-\pi_t`.

    The odds follow :math:`\kappa_{t+1}=\kappa_te^{2\eta_t/(1+\kappa_t)}` from :math:`\kappa_0=1`
    and grow like :math:`e^{t^2}`; up to 25 steps they stay within floating point.

    Parameters
    ----------
    n_steps : int
        How many steps, at most 25.

    Returns
    -------
    rates, masses : ndarray, shape (n_steps,)
        Step sizes, and the mass outside the best arm before each.
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
    """Return two bandits that never meet, each with arms 1 and 0; it starts in the second one."""
    transitions = np.zeros((3, 2, 3))
    transitions[:2, :, 2] = 1.0
    rewards = [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    ends = np.array([False, False, True])
    return FiniteMDP(transitions, rewards, [0.0, 1.0, 0.0], 0.0, ends)


@cache
def settled_run(name: str, n_steps: int) -> tuple[FiniteMDP, Structure, Trajectory, int | None]:
    """Run MCE on a problem with one optimum; also the time from which the proof's bound runs.

    Before the greedy actions settle the best one may lose: the first time at which it has
    probability 1/2 everywhere is taken after that.

    Parameters
    ----------
    name : str
        Of one of `unique_instances`.
    n_steps : int
        Length of the run.

    Returns
    -------
    mdp : FiniteMDP
    facts : Structure
    trajectory : Trajectory
    start : int or None
        None if the run is too short.
    """
    mdp = unique_instances()[name]
    facts = structure(mdp)
    trajectory = run(mdp, as_update("mce"), n_steps, weighting="uniform")
    s = facts.contested
    top = np.where(facts.optimal[s], trajectory.policies[:, s], 0.0).sum(axis=-1)
    start = settled(trajectory, facts)
    half = np.flatnonzero((top >= 0.5).all(axis=1))
    later = half[:0] if start is None else half[half >= start]
    return mdp, facts, trajectory, int(later[0]) if len(later) else None


# The limit


def odds(n_actions: int, n_steps: int, weights: float | ArrayLike = 1.0) -> Floats:
    r"""Return the odds :math:`\kappa_t=\pi_t/(1-\pi_t)` of one best arm under MCE.

    This is MCE written a second time on purpose: :math:`\kappa` keeps its digits where
    :math:`1-\pi` loses them.

    Parameters
    ----------
    n_actions : int
        :math:`|A|`, at least 2; the start is the uniform policy.
    n_steps : int
        Number of updates T.
    weights : float or array_like, shape (T,)
        :math:`w_t`.

    Returns
    -------
    ndarray, shape (T + 1,)
        The odds, the start first: :math:`1/(|A|-1)`.

    Raises
    ------
    ValueError
        If there are fewer than two actions, or a weight leads the odds out of the range of floats.
    """
    n_actions = whole("n_actions", n_actions, low=2)
    c = n_actions / (n_actions - 1)
    path = [1.0 / (n_actions - 1)]
    for w in np.broadcast_to(np.asarray(weights, dtype=np.float64), n_steps).tolist():
        exponent = c * w / (1.0 + path[-1])
        path.append(path[-1] * math.exp(exponent) if exponent < 700.0 else math.inf)
        if not path[-1] < math.inf:
            raise ValueError(f"weights: {w:g} leads the odds out of the range of floats.")
    return np.array(path)


def limit_error_bound(kappa: Floats, n_actions: int, eta: float = 1.0) -> Floats:
    r"""Bound :math:`|\kappa_T-\kappa_0-c\eta T|` for every T, as in the module's text.

    Parameters
    ----------
    kappa : ndarray, shape (T + 1,)
        The odds, as `odds` returns them for constant weights.
    n_actions : int
        :math:`|A|`.
    eta : float
        The weight of each step.

    Returns
    -------
    ndarray, shape (T + 1,)
        The bound for each T, zero at T = 0.
    """
    x = n_actions / (n_actions - 1) * eta
    start = x / (1.0 + kappa[0])
    return np.append(0.0, x * max(1.0, x * np.exp(start)) * np.cumsum(1.0 / (1.0 + kappa[:-1])))


# The five updates


def escort_limit(p: float) -> float:
    r"""Return the limit :math:`((2-p)/8)^{p/2}` of :math:`(1-\pi_t)\,t^{p/2}` for 1 < p < 2.

    Let :math:`r` be the good parameter, :math:`x` the bad one, :math:`C=wp\Delta`. To leading order
    a step takes :math:`C|x|^{p-1}/r^p` from :math:`|x|`; the cycle of period two has
    :math:`|x|^{2-p}=C/(2r^p)` (its multiplier is :math:`2p-3`: it attracts), and :math:`r` gains
    :math:`C|x|^p/r^{p+1}` a step, so that :math:`r^{4/(2-p)}` grows linearly.

    Parameters
    ----------
    p : float
        The exponent, between 1 and 2.

    Returns
    -------
    float
        The limit, between 0 and :math:`8^{-1/2}`.

    Raises
    ------
    ValueError
        If `p` is not between 1 and 2.
    """
    p = number("p", p)
    if not 1.0 < p < 2.0:
        raise ValueError(f"p: expected an exponent between 1 and 2, got {p}.")
    return float(((2.0 - p) / 8.0) ** (p / 2.0))


def taking_turns(
    update: str | Update, n_steps: int, weight: float = 1.0
) -> tuple[NDArray[np.int64], Floats]:
    """Break the ties of a bandit with values (1, 1, 0) so that the best arms take turns.

    The first arm is called greedy until its parameter leads by k, then the second one until they
    are level again; then k is raised by one. Theorem 1 allows MCE any such rule.

    Parameters
    ----------
    update : str or Update
        A softmax update that moves towards the greedy action, with a kernel: CE or MCE.
    n_steps : int
        Number of updates.
    weight : float
        Their weight.

    Returns
    -------
    times : ndarray of int, shape (n,)
        When the two arms were level again.
    masses : ndarray, shape (n,)
        The probability of the third arm then.

    Raises
    ------
    ValueError
        If the update has no kernel or is not a softmax update.
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
        chosen.kernel(theta, pi, values, 0 if rising else 1, weight, 3)
        top = max(theta)
        powers = [math.exp(x - top) for x in theta]
        total = sum(powers)
        pi = [power / total for power in powers]
    return np.array(times), np.array(masses)


def di_steps(rewards: Sequence[Fraction | int], weight: Fraction) -> int:
    """Count the DI steps from the uniform policy to the best arms of a bandit, in exact numbers.

    Parameters
    ----------
    rewards : sequence of Fraction or int
        The values of the arms.
    weight : Fraction
        The weight of each step, positive.

    Returns
    -------
    int
        After how many steps no other arm has any probability left.

    Raises
    ------
    ValueError
        If the weight is not positive.
    """
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
