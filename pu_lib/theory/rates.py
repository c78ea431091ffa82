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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.domains import bandit, chain, cliff, random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.theory.convergence import (
    instances,
    key_lemma_bound,
    optimality_bounds,
    settled,
    structure,
)
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, Update, make_update
from pu_lib.verdict import Status, Verdict

__all__ = [
    "Exponent",
    "bandit_masses",
    "bandit_policies",
    "check_ce_rate",
    "check_constants",
    "check_decaying_weights",
    "check_di_finite",
    "check_inclusive_sum",
    "check_limit",
    "check_rates",
    "check_support",
    "check_theorem_2",
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


def check_theorem_2(
    constant: float = 0.5, n_steps: int = 400, update: Update = UPDATES["mce"]
) -> Verdict:
    """Test the corrected theorem on all instances, with the printed one's counterexample beside.

    The corrected theorem needs no unique optimum and no bound on the weights, and has the sum
    before T. With sums that include T it needs bounded weights; `check_inclusive_sum` has weights
    with which the printed form fails.

    Parameters
    ----------
    constant : float
        The factor in the key lemma.
    n_steps : int
        Length of the runs.
    update : Update
        MCE in the theorem.
    """
    rows, worst = [], np.inf
    for name, mdp in instances().items():
        facts = structure(mdp)
        trajectory = run(mdp, update, n_steps, weighting="uniform")
        if settled(trajectory, facts) is None:
            return Verdict("thm:rates", Status.OPEN, None, f"{name}: no settled greedy actions.")
        start, gap, now, ahead = optimality_bounds(mdp, trajectory, facts, constant)
        slack = float(min((now / gap).min(), (ahead / now).min())) - 1.0
        worst = min(worst, slack)
        rows.append(
            {
                "MDP": name,
                "t0": start,
                "gap x T": float(gap[-1] * n_steps),
                "bound x T": float(ahead[-1] * n_steps),
                "least bound / gap": slack + 1.0,
            }
        )
    if worst < -1e-9:
        return Verdict("thm:rates", Status.FALSE, worst, "A gap exceeds its bound.", tuple(rows))
    printed = check_inclusive_sum()
    return Verdict(
        "thm:rates",
        Status.CORRECTED if printed.status is Status.FALSE else Status.HOLDS,
        worst,
        f"On {len(rows)} MDPs the gap is at most its bound, of order one over the sum before T, "
        "with any number of optimal policies; with a sum that includes T the weights must be "
        "bounded.",
        tuple(rows),
        printed.counterexample,
    )


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


def check_inclusive_sum(n_steps: int = 20, power: float = 1.0) -> Verdict:
    r"""Multiply the gap by the printed sum, which includes the current step, on growing weights.

    Parameters
    ----------
    n_steps : int
        How many steps of `overtaking_steps`.
    power : float
        The printed rate is the sum to this power, negated.
    """
    rates, masses = overtaking_steps(n_steps)
    mce = UPDATES["mce"]
    direct = bandit_masses(mce, [1.0, 0.0], 8, rates[:8])[:8]
    agree = float(np.abs(direct / masses[:8] - 1.0).max())
    inclusive = masses * np.cumsum(rates) ** power
    exclusive = masses * np.append(0.0, np.cumsum(rates)[:-1])
    # From the key lemma with beta = 1/2, e0 = 1, c = 2: mass <= 1 / (2 + W).
    room = 1.0 - float(exclusive.max())
    floor = (np.arange(n_steps) + 1.0) / 2.0
    grows = bool((inclusive >= floor * (1.0 - 1e-12)).all())
    return Verdict(
        "thm:rates/inclusive-sum",
        Status.FALSE if grows and room >= 0 and agree < 1e-9 else Status.HOLDS,
        -float(inclusive[-1]),
        f"After {n_steps} steps the gap times the sum with the current step is "
        f"{inclusive[-1]:.4g} and still grows; with the sum before it, at most "
        f"{exclusive.max():.4g}.",
        tuple(
            {
                "t": t,
                "1 - pi": float(masses[t]),
                "x sum to t": float(inclusive[t]),
                "x sum before t": float(exclusive[t]),
            }
            for t in (0, 1, 2, 5, 10, n_steps - 1)
        ),
        {"rewards": [1.0, 0.0], "step sizes": "(t + 1) pi_t / (1 - pi_t)"},
    )


def _unique_instances() -> dict[str, FiniteMDP]:
    """Return MDPs with a unique optimal policy."""
    return {
        "bandit": bandit([1.0, 0.5, 0.0]),
        "chain": chain(5, discount=0.9),
        "cliff": cliff(5, discount=0.9),
        "random": random_mdp(2, n_states=10, n_actions=3, discount=0.9),
    }


def check_constants(factor: float = 0.5, n_steps: int = 600, direction: str = "at most") -> Verdict:
    r"""Test :math:`1-\pi_T\le1/(2+\frac c2W_T)` and the value bound on unique optima.

    Parameters
    ----------
    factor : float
        The 1/2 before :math:`cW_T`.
    n_steps : int
        Length of the runs.
    direction : {"at most", "at least"}
        ``"at least"`` is what the paper prints.
    """
    rows, worst, opposite = [], np.inf, np.inf
    for name, mdp in _unique_instances().items():
        facts = structure(mdp)
        trajectory = run(mdp, UPDATES["mce"], n_steps, weighting="uniform")
        s = facts.contested
        top = np.where(facts.optimal[s], trajectory.policies[:, s], 0.0).sum(axis=-1)
        start = settled(trajectory, facts)
        half = np.flatnonzero((top >= 0.5).all(axis=1))
        if start is None or half[-1] < start:
            return Verdict("thm:rates/constants", Status.OPEN, None, f"{name}: not settled.")
        # Before the greedy actions settle the best one may lose: the first time is taken after.
        start = int(half[half >= start][0])
        c = mdp.n_actions / (mdp.n_actions - 1)
        weights = np.cumsum(trajectory.weights[start:, s], axis=0)
        spent = np.vstack([np.zeros(weights.shape[1]), weights])
        bound = 1.0 / (2.0 + factor * c * spent)
        mass = 1.0 - top[start:]
        value_bound = float(facts.v.max() - min(trajectory.q[start:, s].min(), facts.v.min()))
        value_bound /= 1.0 - mdp.discount
        gap = (facts.v - trajectory.v[start:]).max(axis=1)
        policy_slack = float((bound / mass).min()) - 1.0
        value_slack = float((value_bound * bound.max(axis=1) / gap).min()) - 1.0
        worst = min(worst, policy_slack, value_slack)
        opposite = min(opposite, float((mass / bound).min()) - 1.0)
        rows.append(
            {
                "MDP": name,
                "t0": start,
                "(1 - pi) W at the end": float((mass[-1] * spent[-1]).max()),
                "least bound / (1 - pi)": policy_slack + 1.0,
                "least value bound / gap": value_slack + 1.0,
            }
        )
    claimed = worst if direction == "at most" else opposite
    if claimed < -1e-12:
        status = Status.FALSE
    else:
        status = Status.CORRECTED if opposite < 0 else Status.HOLDS
    return Verdict(
        "thm:rates/constants",
        status,
        claimed,
        f"The mass outside the optimal action is {direction} 1/(2 + {factor:g} c W) up to a factor "
        f"{1 + claimed:.4g}; the opposite sign, which the paper prints, fails by a factor "
        f"{1 + opposite:.3g}.",
        tuple(rows),
    )


def check_support(n_steps: int = 2000, inside: bool = False) -> Verdict:
    r"""Test the last line of the proof at a state outside the support of the optimal occupancy.

    Two bandits that never meet; the trajectory starts in the second one. Its weights are 1, those
    of the first :math:`1/(t+1)`: all sums are infinite. The printed bound takes the minimum over
    the support, that is the second bandit's sum, for both.

    Parameters
    ----------
    n_steps : int
        Length of the run.
    inside : bool
        Test the state in the support instead, where the bound holds.
    """
    transitions = np.zeros((3, 2, 3))
    transitions[:2, :, 2] = 1.0
    mdp = FiniteMDP(
        transitions,
        [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]],
        [0.0, 1.0, 0.0],
        0.0,
        np.array([False, False, True]),
    )
    trajectory = run(
        mdp, UPDATES["mce"], n_steps, weighting=lambda t, _: np.array([1.0 / (t + 1), 1.0, 0.0])
    )
    facts = structure(mdp)
    s = 1 if inside else 0
    in_support = mdp.evaluate(mdp.optimal().policy).occupancy > 0
    spent = np.cumsum(trajectory.weights, axis=0)[-1]
    bound = 1.0 / (2.0 + spent[in_support].min())
    gap = float(facts.v[s] - trajectory.v[-1, s])
    return Verdict(
        "thm:rates/support",
        Status.HOLDS if gap <= bound else Status.FALSE,
        bound - gap,
        f"After {n_steps} steps the gap at a state {'in' if inside else 'outside'} the support is "
        f"{gap:.4g}; the printed bound is {bound:.4g}.",
        counterexample=None
        if gap <= bound
        else {"state": s, "weights": "1/(t+1) outside, 1 inside", "t": n_steps},
    )


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


def check_limit(
    sizes: Sequence[int] = tuple(range(2, 11)),
    n_steps: int = 20_000,
    limit: str = "(n-1)/n",
) -> Verdict:
    r"""Measure the limit of :math:`(1-\pi_t)\,t` for several numbers of actions.

    The distance from :math:`1/c` must be within the explicit bound of order log T / T.

    Parameters
    ----------
    sizes : sequence of int
        The numbers of actions.
    n_steps : int
        How far to go.
    limit : {"(n-1)/n", "1/n"}
        The limit to test.
    """
    rows, worst = [], np.inf
    for n in sizes:
        kappa = odds(n, n_steps)
        direct = bandit_masses(UPDATES["mce"], np.eye(n)[0], 200)
        agree = float(np.abs(direct * (1.0 + kappa[:201]) - 1.0).max())
        target = (n - 1) / n if limit == "(n-1)/n" else 1.0 / n
        bound = limit_error_bound(kappa, n)
        slack = bound - np.abs(kappa - kappa[0] - np.arange(n_steps + 1) / target)
        worst = min(worst, float(slack[1:].min()), 1e-9 - agree)
        rows.append(
            {
                "|A|": n,
                "(1 - pi) t": float(n_steps / (1.0 + kappa[-1])),
                "limit": target,
                "difference": float(n_steps / (1.0 + kappa[-1]) - target),
                "proved within": float(bound[-1] + 1 + kappa[0]) / n_steps * target,
            }
        )
    return Verdict(
        "thm:rates/limit",
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        f"For |A| = {sizes[0]} to {sizes[-1]}, (1 - pi) t after {n_steps} steps differs from the "
        f"limit by at most {max(abs(float(row['difference'])) for row in rows):.2g}.",
        tuple(rows),
    )


# The five updates


def check_rates(
    updates: Sequence[str] = ("pg-sm", "pg-es", "di", "ce", "mce"),
    n_steps: int = 2500,
    at_least: float = 0.97,
    p: float = 4.0,
) -> Verdict:
    """Measure the exponent of every update on a bandit and on a chain.

    Parameters
    ----------
    updates : sequence of str
        Which updates.
    n_steps : int
        Length of the bandit runs; the chain's are a third.
    at_least : float
        The least exponent that counts as order 1/t; the measured one tends to its limit from
        below like 1 / log t.
    p : float
        The escort exponent (with 2 the decay is geometric, with 4 of order 1/t^2).
    """
    rows, worst = [], np.inf
    arms = np.array([1.0, 0.6, 0.2])
    mdp = chain(4, discount=0.8)
    best = structure(mdp).v
    for name in updates:
        update = make_update(name, p=p) if name == "pg-es" else UPDATES[name]
        for domain, steps in (("bandit", n_steps), ("chain", n_steps // 3)):
            times = log_times(steps)
            if domain == "bandit":
                gap = bandit_policies(update, arms, steps)[times] @ (arms.max() - arms)
            else:
                trajectory = run(mdp, update, steps, weighting="uniform")
                gap = (best - trajectory.v[times]).max(axis=1)
            fit = exponent(times, gap)
            worst = min(worst, fit.value - at_least)
            rows.append(
                {
                    "domain": domain,
                    "update": name,
                    "gap at the end": float(gap[-1]),
                    "exponent": fit.value,
                    "from": fit.low,
                    "to": fit.high,
                }
            )
    return Verdict(
        "sec:asymp/rates",
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        "Measured exponents (infinite: zero or rounding error by then); the smallest is "
        f"{worst + at_least:.3f}. For CE this supposes that it converges.",
        tuple(rows),
    )


def check_ce_rate(constant: float = 0.5, n_runs: int = 60, seed: int = 0) -> Verdict:
    r"""Attack :math:`1-\pi_T\le1/(1/(1-\pi_0)+\frac12\min(1,\kappa_0)W_T)` for CE on bandits.

    Parameters
    ----------
    constant : float
        The 1/2.
    n_runs, seed : int
        How many random bandits, starts and weights, and their seed.
    """
    rng = np.random.default_rng(seed)
    worst = np.inf
    for _ in range(n_runs):
        n = int(rng.integers(2, 6))
        weights = 10.0 ** rng.uniform(-2, 1.5) * rng.exponential(size=200)
        theta0 = rng.uniform(0, 4) * rng.standard_normal(n)
        mass = bandit_masses(UPDATES["ce"], np.eye(n)[0], 200, weights, theta0)
        spent = np.append(0.0, np.cumsum(weights))
        # c = 1 for CE: the key lemma's formula without the factor |A|/(|A|-1).
        bound = 1.0 / (1.0 / mass[0] + constant * min(1.0, 1.0 / mass[0] - 1.0) * spent)
        worst = min(worst, float((bound / np.maximum(mass, 1e-300)).min()) - 1.0)
    return Verdict(
        "sec:asymp/ce",
        Status.HOLDS if worst >= -1e-9 else Status.FALSE,
        worst,
        f"Over {n_runs} bandit runs the bound is at least {1 + worst:.6g} times the mass outside "
        "the greedy action.",
    )


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


def check_di_finite(factor: float = 2.0, n_steps: int = 400) -> Verdict:
    r"""Count DI's steps to the optimum against the bound :math:`W_T\ge2(1-\pi_{t_0})/\delta`.

    Parameters
    ----------
    factor : float
        The 2 in the bound.
    n_steps : int
        How long to run at most.
    """
    rows, worst = [], np.inf
    eta = 1.0
    for name, mdp in _unique_instances().items():
        facts = structure(mdp)
        trajectory = run(mdp, UPDATES["di"], n_steps, eta=eta, weighting="uniform")
        s = facts.contested
        best = np.where(facts.optimal[s], trajectory.q[:, s], -np.inf).max(axis=-1)
        lead = best - np.where(facts.optimal[s], -np.inf, facts.q[s]).max(axis=-1)
        mass = np.where(facts.optimal[s], 0.0, trajectory.policies[:, s]).sum(axis=-1)
        start = settled(trajectory, facts)
        if start is None or mass[-1].max() > 0.0:
            return Verdict("sec:asymp/di", Status.OPEN, None, f"{name}: not optimal by the end.")
        # Each later time gives a bound of its own; the first one that can be given is the least.
        times = np.arange(start, n_steps + 1)[:, np.newaxis]
        proved = (times + np.ceil(factor * mass[start:] / lead[start:] / eta)).min(axis=0)
        done = np.array([int(np.flatnonzero(row > 0.0)[-1]) + 1 for row in mass.T])
        worst = min(worst, float((proved - done).min()))
        rows.append(
            {
                "problem": name,
                "t0": start,
                "optimal from": int(done.max()),
                "proved from": int(proved.max()),
            }
        )
    for weight in (Fraction(3, 10), Fraction(1, 7), Fraction(1, 100)):
        steps = di_steps([1, 0], weight)
        exact = math.ceil(Fraction(factor) / 2 / weight)
        worst = min(worst, float(exact - steps))
        rows.append(
            {
                "problem": f"two arms, weight {weight}",
                "t0": 0,
                "optimal from": steps,
                "proved from": exact,
            }
        )
    return Verdict(
        "sec:asymp/di",
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        f"On {len(rows)} problems DI is exactly optimal within the proved number of steps; least "
        f"room {worst:g} steps (for two arms the bound is the exact count).",
        tuple(rows),
    )


def check_decaying_weights(
    exponents: Sequence[float] = (0.0, 0.25, 0.5, 0.75),
    n_steps: int = 20_000,
    predicted: float = 1.0,
    tolerance: float = 0.03,
) -> Verdict:
    r"""Measure the exponent of MCE's gap in T when :math:`w_t=(t+1)^{-x}`: it should be 1 - x.

    Parameters
    ----------
    exponents : sequence of float
        The values of x, below 1.
    n_steps : int
        Length of the runs.
    predicted : float
        The exponent is ``predicted - x``.
    tolerance : float
        What is left of the logarithmic corrections at this length.
    """
    rows, worst = [], np.inf
    times = log_times(n_steps)
    for x in exponents:
        weights = (np.arange(n_steps) + 1.0) ** -x
        kappa = np.empty(n_steps + 1)
        kappa[0] = 1.0
        for t in range(n_steps):
            kappa[t + 1] = kappa[t] * np.exp(2.0 * weights[t] / (1.0 + kappa[t]))
        fit = exponent(times, 1.0 / (1.0 + kappa[times]))
        spent = np.append(0.0, np.cumsum(weights))
        bound = key_lemma_bound(0.5, 1.0, 2, spent)
        worst = min(
            worst,
            tolerance - abs(fit.value - (predicted - x)),
            float((bound * (1.0 + kappa)).min()) - 1.0 + 1e-12,
        )
        rows.append(
            {
                "x": x,
                "exponent": fit.value,
                "from": fit.low,
                "to": fit.high,
                "(1 - pi) W": float(spent[-1] / (1.0 + kappa[-1])),
            }
        )
    return Verdict(
        "thm:rates/decaying",
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        f"The measured exponents are within {tolerance:g} of 1 - x, and (1 - pi) W near 1/2.",
        tuple(rows),
    )
