"""The checks of the chapter on rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pu_lib.domains import bandit, chain, cliff, random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.theory.convergence import (
    instances,
    key_lemma_bound,
    optimality_bounds,
    settled,
    structure,
)
from pu_lib.theory.rates import (
    bandit_masses,
    bandit_policies,
    di_steps,
    exponent,
    limit_error_bound,
    log_times,
    odds,
    overtaking_steps,
)
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, Update, make_update
from pu_lib.verdict import Status, Verdict, check


@check("thm:rates")
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
            return Verdict(Status.OPEN, None, f"{name}: no settled greedy actions.")
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
        return Verdict(Status.FALSE, worst, "A gap exceeds its bound.", tuple(rows))
    printed = check_inclusive_sum()
    return Verdict(
        Status.CORRECTED if printed.status is Status.FALSE else Status.HOLDS,
        worst,
        f"On {len(rows)} MDPs the gap is at most its bound, of order one over the sum before T, "
        "with any number of optimal policies; with a sum that includes T the weights must be "
        "bounded.",
        tuple(rows),
        printed.counterexample,
    )


@check("thm:rates/inclusive-sum")
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


@check("thm:rates/constants")
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
            return Verdict(Status.OPEN, None, f"{name}: not settled.")
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
        status,
        claimed,
        f"The mass outside the optimal action is {direction} 1/(2 + {factor:g} c W) up to a factor "
        f"{1 + claimed:.4g}; the opposite sign, which the paper prints, fails by a factor "
        f"{1 + opposite:.3g}.",
        tuple(rows),
    )


@check("thm:rates/support")
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
        Status.HOLDS if gap <= bound else Status.FALSE,
        bound - gap,
        f"After {n_steps} steps the gap at a state {'in' if inside else 'outside'} the support is "
        f"{gap:.4g}; the printed bound is {bound:.4g}.",
        counterexample=None
        if gap <= bound
        else {"state": s, "weights": "1/(t+1) outside, 1 inside", "t": n_steps},
    )


@check("thm:rates/limit")
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
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        f"For |A| = {sizes[0]} to {sizes[-1]}, (1 - pi) t after {n_steps} steps differs from the "
        f"limit by at most {max(abs(float(row['difference'])) for row in rows):.2g}.",
        tuple(rows),
    )


@check("sec:asymp/rates")
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
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        "Measured exponents (infinite: zero or rounding error by then); the smallest is "
        f"{worst + at_least:.3f}. For CE this supposes that it converges.",
        tuple(rows),
    )


@check("sec:asymp/ce")
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
        Status.HOLDS if worst >= -1e-9 else Status.FALSE,
        worst,
        f"Over {n_runs} bandit runs the bound is at least {1 + worst:.6g} times the mass outside "
        "the greedy action.",
    )


@check("sec:asymp/di")
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
            return Verdict(Status.OPEN, None, f"{name}: not optimal by the end.")
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
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        f"On {len(rows)} problems DI is exactly optimal within the proved number of steps; least "
        f"room {worst:g} steps (for two arms the bound is the exact count).",
        tuple(rows),
    )


@check("thm:rates/decaying")
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
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        f"The measured exponents are within {tolerance:g} of 1 - x, and (1 - pi) W near 1/2.",
        tuple(rows),
    )
