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
- **PG-ES** with exponent p > 2: :math:`1-\pi_t` of order :math:`t^{-p/(p-2)}`; with p = 2,
  geometric.

Exponents are measured as the slope of log gap against log t over the last decade; the interval is
the range of the slopes over the pieces of that decade. The error is not random, so that a standard
error of the regression would mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.updates import Update

__all__ = [
    "Exponent",
    "bandit_masses",
    "bandit_policies",
    "di_steps",
    "exponent",
    "limit_error_bound",
    "log_times",
    "odds",
    "overtaking_steps",
]

Floats = NDArray[np.float64]

ROUNDING = 1e-12


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
    """Return integer times from 1 to `n_steps`, evenly spaced in the logarithm."""
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


def bandit_policies(
    update: Update,
    rewards: ArrayLike,
    n_steps: int,
    eta: float | Floats = 1.0,
    theta0: ArrayLike | None = None,
) -> Floats:
    """Return the policies on a bandit before each update and after the last, (T + 1, A)."""
    q = np.asarray(rewards, dtype=np.float64)
    weights = np.broadcast_to(np.asarray(eta, dtype=np.float64), n_steps)
    theta = update.initial(1, len(q))[0] if theta0 is None else np.array(theta0, dtype=np.float64)
    policies = [update.policy(theta)]
    for weight in weights:
        theta = update.step(theta, q, weight)
        policies.append(update.policy(theta))
    return np.array(policies)


def bandit_masses(
    update: Update,
    rewards: ArrayLike,
    n_steps: int,
    eta: float | Floats = 1.0,
    theta0: ArrayLike | None = None,
) -> Floats:
    """Return the mass outside the best arms before each update and after the last, (T + 1,)."""
    q = np.asarray(rewards, dtype=np.float64)
    policies = bandit_policies(update, q, n_steps, eta, theta0)
    return np.asarray(policies[:, q < q.max()].sum(axis=1))


# Theorem 2


def overtaking_steps(n_steps: int) -> tuple[Floats, Floats]:
    r"""Return step sizes :math:`\eta_t=(t+1)\kappa_t` for two arms, and the masses :math:`1-\pi_t`.

    The odds follow :math:`\kappa_{t+1}=\kappa_te^{2\eta_t/(1+\kappa_t)}` from :math:`\kappa_0=1`
    and grow like :math:`e^{t^2}`; up to 25 steps they stay within floating point.
    """
    kappa, rates, masses = 1.0, np.empty(n_steps), np.empty(n_steps)
    for t in range(n_steps):
        masses[t] = 1.0 / (1.0 + kappa)
        rates[t] = (t + 1) * kappa
        kappa *= np.exp(2.0 * rates[t] * masses[t])
    return rates, masses


# The limit


def odds(n_actions: int, n_steps: int, eta: float = 1.0) -> Floats:
    r"""Return :math:`\kappa_t=\pi_t/(1-\pi_t)` of one best arm under MCE, (T + 1,)."""
    c = n_actions / (n_actions - 1)
    kappa = np.empty(n_steps + 1)
    kappa[0] = 1.0 / (n_actions - 1)
    for t in range(n_steps):
        kappa[t + 1] = kappa[t] * np.exp(c * eta / (1.0 + kappa[t]))
    return kappa


def limit_error_bound(kappa: Floats, n_actions: int, eta: float = 1.0) -> Floats:
    r"""Bound :math:`|\kappa_T-\kappa_0-c\eta T|` for every T, as in the module's text."""
    x = n_actions / (n_actions - 1) * eta
    start = x / (1.0 + kappa[0])
    return np.append(0.0, x * max(1.0, x * np.exp(start)) * np.cumsum(1.0 / (1.0 + kappa[:-1])))


# The five updates


def di_steps(rewards: Sequence[Fraction | int], weight: Fraction) -> int:
    """Count the DI steps from the uniform policy to the best arm of a bandit, in exact numbers."""
    n = len(rewards)
    best = max(range(n), key=lambda a: rewards[a])
    theta = [Fraction(1, n)] * n
    steps = 0
    while theta[best] < 1:
        theta = _project([x + weight * r for x, r in zip(theta, rewards, strict=True)])
        steps += 1
    return steps


def _project(x: list[Fraction]) -> list[Fraction]:
    """Project on the simplex in exact numbers."""
    ordered = sorted(x, reverse=True)
    total, shift = Fraction(0), Fraction(0)
    for k, value in enumerate(ordered, start=1):
        total += value
        if value > (total - 1) / k:
            shift = (total - 1) / k
    return [max(Fraction(0), value - shift) for value in x]
