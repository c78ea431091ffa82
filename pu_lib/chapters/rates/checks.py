"""The checks of the chapter on rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np

from pu_lib.chapters.convergence.quantities import (
    instances,
    key_lemma_bound,
    optimality_bounds,
    settled,
    structure,
)
from pu_lib.chapters.rates import checks_remarks as rates_remarks
from pu_lib.chapters.rates.quantities import (
    Exponent,
    Floats,
    bandit_gaps,
    bandit_masses,
    di_steps,
    exponent,
    limit_error_bound,
    log_times,
    odds,
    overtaking_steps,
    settled_run,
    taking_turns,
    two_bandits,
    unique_instances,
)
from pu_lib.domains import chain
from pu_lib.trajectories import mixture, run
from pu_lib.updates import PAPER, EscortPolicyGradient, Update, as_update, label_of, make_update
from pu_lib.verdict import Status, Verdict, Worst, check, judged

__all__ = ["rates_remarks"]
"""Importing this module registers the checks of the other one as well."""

ROUNDING = 1e-9
"""Room given to the rounding of a run of some hundred updates, relative to the bound."""

FAST = 0.97
"""The least measured exponent that counts as order 1/t: it tends to 1 like 1 - 1 / log t."""


def _room(gap: Floats, bound: Floats) -> float:
    """Return the least room of a bound, relative to it; a gap of zero has all of it."""
    allowed = bound * (1.0 + ROUNDING) + 1e-14
    return float((1.0 - gap / allowed).min())


# Theorem 2


@check(
    "thm:rates",
    moved={
        "twice the constant of the key lemma": {"constant": 1.0},
        "the square root of the rate, which holds as printed": {"power": 0.5},
        "PG-SM in MCE's place, which has not settled by then": {"update": "pg-sm"},
        "DI in MCE's place, which arrives before the bound begins": {"update": "di"},
    },
    blind={
        "CE in MCE's place: on these MDPs it settles, and then it is as fast": {"update": "ce"},
        "3/5 in place of 1/2: the constant is sharp only as the weight tends to zero": {
            "constant": 0.6
        },
    },
)
def check_theorem_2(
    constant: float = 0.5, n_steps: int = 400, update: str | Update = "mce", power: float = 1.0
) -> Verdict:
    """Test the corrected theorem on all instances, and the printed one on growing weights.

    The corrected theorem needs neither a unique optimum nor bounded weights, and its sum ends
    before T. The printed sum includes T: times it, the gap of `overtaking_steps` grows for ever.

    Parameters
    ----------
    constant : float
        The factor in the key lemma.
    n_steps : int
        Length of the runs.
    update : str or Update
        MCE in the theorem.
    power : float
        The printed rate is the sum to this power, negated.
    """
    ours = Worst("the room of the bound, relative to it,")
    rows = []
    for name, mdp in instances().items():
        facts = structure(mdp)
        trajectory = run(mdp, as_update(update), n_steps, weighting="uniform")
        if settled(trajectory, facts) is None:
            return Verdict(Status.OPEN, None, f"{name}: no settled greedy actions.")
        try:
            with np.errstate(divide="raise", invalid="raise"):
                start, gap, now, ahead = optimality_bounds(mdp, trajectory, facts, constant)
        except FloatingPointError:
            return Verdict(Status.OPEN, None, f"{name}: nothing is left to lose when it settles.")
        ours.add(min(_room(gap, now), _room(now, ahead)), problem=name)
        rows.append(
            {
                "problem": name,
                "t0": start,
                "gap x T": float(gap[-1] * n_steps),
                "bound x T": float(ahead[-1] * n_steps),
            }
        )
    rates, masses = overtaking_steps(20)
    spent = np.cumsum(rates)
    # From the key lemma with beta = 1/2, e0 = 1, c = 2: mass <= 1 / (2 + W).
    before = 1.0 / (2.0 + np.append(0.0, spent[:-1]))
    ours.add(_room(masses, before), problem="growing weights")
    products = masses * spent**power
    printed = Worst("gap times sum at its largest before the tenth step minus that after it")
    printed.add(
        float(products[:10].max() - products[10:].max()), rewards="(1, 0)", weights="(t + 1) kappa"
    )
    return judged(ours, printed, evidence=rows)


@check(
    "thm:rates/constants",
    moved={
        "1 in place of 1/2 before cW": {"factor": 1.0},
        "the sign as printed": {"reverse": True},
    },
    blind={"3/5 in place of 1/2: sharp only as the weight tends to zero": {"factor": 0.6}},
)
def check_constants(factor: float = 0.5, n_steps: int = 600, reverse: bool = False) -> Verdict:
    r"""Test :math:`1-\pi_T\le1/(2+\frac c2W_T)` and the value bound on unique optima.

    Parameters
    ----------
    factor : float
        The 1/2 before :math:`cW_T`.
    n_steps : int
        Length of the runs.
    reverse : bool
        Take the printed sign, at least, for the corrected one.
    """
    ours = Worst("the room of the bounds, relative to them,")
    printed = Worst("the mass over its bound, minus 1,")
    rows = []
    for name in unique_instances():
        mdp, facts, trajectory, start = settled_run(name, n_steps)
        if start is None:
            return Verdict(Status.OPEN, None, f"{name}: not settled.")
        s = facts.contested
        c = mdp.n_actions / (mdp.n_actions - 1)
        weights = np.cumsum(trajectory.weights[start:, s], axis=0)
        spent = np.vstack([np.zeros(weights.shape[1]), weights])
        bound = 1.0 / (2.0 + factor * c * spent)
        mass = np.where(facts.optimal[s], 0.0, trajectory.policies[start:, s]).sum(axis=-1)
        horizon = float(facts.v.max() - min(trajectory.q[start:, s].min(), facts.v.min()))
        horizon /= 1.0 - mdp.discount
        gap = (facts.v - trajectory.v[start:]).max(axis=1)
        below = float((mass / bound).min()) - 1.0
        printed.add(below, problem=name)
        room = min(_room(mass, bound), _room(gap, horizon * bound.max(axis=1)))
        ours.add(below if reverse else room, problem=name)
        rows.append(
            {
                "problem": name,
                "t0": start,
                "(1 - pi) W at the end": float((mass[-1] * spent[-1]).max()),
                "least mass / bound": below + 1.0,
            }
        )
    return judged(ours, printed, evidence=rows)


@check(
    "thm:rates/support",
    moved={"three times the sums of the weights": {"factor": 3.0}},
    blind={
        "3/2 of the sums: the bound's constant is half the sharp one": {"factor": 1.5},
    },
)
def check_support(n_steps: int = 2000, factor: float = 1.0) -> Verdict:
    r"""Test the last line of the proof inside and outside the support of the optimal occupancy.

    Two bandits that never meet; the trajectory starts in the second one. Its weights are 1, those
    of the first :math:`1/(t+1)`: all sums are infinite. The printed bound takes the minimum over
    the support, that is the second bandit's sum, for both; the corrected one the minimum over the
    states that the optimal policy reaches from each, that is its own sum.

    Parameters
    ----------
    n_steps : int
        Length of the run.
    factor : float
        Multiplies the sums of the weights.
    """
    mdp = two_bandits()
    trajectory = run(
        mdp,
        as_update("mce"),
        n_steps,
        weighting=lambda t, _: np.array([1.0 / (t + 1), 1.0, 0.0]),
    )
    spent = trajectory.weights.sum(axis=0)
    gap = structure(mdp).v - trajectory.v[-1]
    inside = mdp.evaluate(mdp.optimal().policy).occupancy > 0
    ours = Worst("the bound less the gap")
    printed = Worst("the bound less the gap")
    for s in np.flatnonzero(~mdp.terminal):
        where = "inside" if inside[s] else "outside"
        ours.add(1.0 / (2.0 + factor * spent[s]) - gap[s], state=where, t=n_steps)
        least = spent[inside & ~mdp.terminal].min()
        printed.add(1.0 / (2.0 + factor * least) - gap[s], state=where, t=n_steps)
    return judged(ours, printed)


@check(
    "thm:rates/limit",
    moved={
        "1/|A| in place of (|A| - 1)/|A|": {"limit": lambda n: 1.0 / n},
        "a limit that is half a per cent larger": {"limit": lambda n: 1.005 * (n - 1.0) / n},
    },
)
def check_limit(
    sizes: Sequence[int] = tuple(range(2, 11)),
    n_steps: int = 20_000,
    limit: Callable[[int], float] = lambda n: (n - 1.0) / n,
) -> Verdict:
    r"""Measure the limit of :math:`(1-\pi_t)\,t` for several numbers of actions.

    The distance of the odds from :math:`ct` must be within the explicit bound of order log t.

    Parameters
    ----------
    sizes : sequence of int
        The numbers of actions.
    n_steps : int
        How far to go.
    limit : callable
        The limit to test, from the number of actions.
    """
    ours = Worst("the room of the explicit bound on the odds")
    rows = []
    for n in sizes:
        kappa, target = odds(n, n_steps), limit(n)
        bound = limit_error_bound(kappa, n)
        slack = bound - np.abs(kappa - kappa[0] - np.arange(n_steps + 1) / target)
        ours.add(float(slack[1:].min()), actions=n)
        product = float(n_steps / (1.0 + kappa[-1]))
        rows.append(
            {
                "|A|": n,
                "(1 - pi) t": product,
                "limit": target,
                "difference": product - target,
                "proved within": float(bound[-1] + 1 + kappa[0]) / n_steps * target,
            }
        )
    return judged(ours, evidence=rows)


@check(
    "thm:rates/decaying",
    moved={
        "the exponent 1/2 - x": {"predicted": 0.5},
        "the exponent 1.05 - x": {"predicted": 1.05},
    },
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
    ours = Worst(f"{tolerance:g} less the distance of the measured exponent from 1 - x")
    bounds = Worst("the room of the key lemma's bound")
    rows = []
    times = log_times(n_steps)
    for x in exponents:
        weights = (np.arange(n_steps) + 1.0) ** -x
        kappa = odds(2, n_steps, weights)
        fit = exponent(times, 1.0 / (1.0 + kappa[times]))
        spent = np.append(0.0, np.cumsum(weights))
        ours.add(tolerance - abs(fit.value - (predicted - x)), x=x)
        bounds.add(_room(1.0 / (1.0 + kappa), key_lemma_bound(0.5, 1.0, 2, spent)), x=x)
        rows.append({"x": x, **_fitted(fit), "(1 - pi) W": float(spent[-1] / (1.0 + kappa[-1]))})
    return judged(min(ours, bounds, key=lambda worst: worst.margin), evidence=rows)


def _fitted(fit: Exponent) -> dict[str, float]:
    return {"exponent": fit.value, "from": fit.low, "to": fit.high}


@check(
    "sec:asymp/constant-rates",
    moved={
        "order t^-1.05": {"power": 1.05},
        "weights that decay like t^-1/4": {"decay": 0.25},
    },
)
def check_constant_rates(
    least: float = 0.5, n_steps: int = 1000, power: float = 1.0, decay: float = 0.0
) -> Verdict:
    r"""Measure MCE's exponent where a part of the weight is spread evenly over all states.

    Parameters
    ----------
    least : float
        :math:`d_\bot`: the weights are `least` plus 1 - `least` times the occupancy.
    n_steps : int
        Length of the runs.
    power : float
        The exponent of 1/t that is claimed.
    decay : float
        The step sizes are :math:`(t+1)` to this power, negated; 0 in the claim.
    """
    ours = Worst(f"the measured exponent less {power - 1 + FAST:g}")
    times = log_times(n_steps)
    etas = (np.arange(n_steps) + 1.0) ** -decay
    for name, mdp in instances().items():
        weighting = mixture(1.0 - least)
        trajectory = run(mdp, as_update("mce"), n_steps, etas, weighting)
        gap = (structure(mdp).v - trajectory.v[times]).max(axis=1)
        fit = exponent(times, gap)
        ours.add(fit.value - (power - 1.0 + FAST), problem=name, **_fitted(fit))
    return judged(ours)


# The five updates


def _variants(update: str | Update) -> dict[str, Update]:
    """Return an update by its label; escort with p = 2 and with p = 4."""
    chosen = as_update(update)
    if not isinstance(chosen, EscortPolicyGradient):
        return {label_of(chosen.name): chosen}
    return {f"{label_of(chosen.name)}, p = {p:g}": replace(chosen, p=p) for p in (2.0, 4.0)}


@cache  # the controls ask for the same runs again and again
def _measured(update: Update, arms: tuple[float, ...] | None, n_steps: int) -> Exponent:
    """Return the exponent of the gap at weight 1, on a bandit or, without arms, on a chain."""
    times = log_times(n_steps)
    if arms is not None:
        return exponent(times, bandit_gaps(update, arms, n_steps)[times])
    mdp = chain(4, discount=0.8)
    trajectory = run(mdp, update, n_steps, weighting="uniform")
    return exponent(times, (structure(mdp).v - trajectory.v[times]).max(axis=1))


@check(
    "sec:asymp/rates",
    moved={
        "order t^-1.1 for all": {"at_least": 1.07, "updates": ("mce",)},
        "order 1/t for p = 3/2 as well": {"escorts": (2.0, 1.5)},
        "p = 2 beside p >= 2, as if that were the exception": {"slow": 2.0},
    },
)
def check_rates(
    updates: Sequence[str | Update] = PAPER,
    n_steps: int = 2500,
    at_least: float = FAST,
    slow: float = 1.5,
    escorts: Sequence[float] = (),
) -> Verdict:
    """Measure the exponent of every update on a bandit and on a chain.

    Parameters
    ----------
    updates : sequence of str or Update
        Which updates; PG-ES with p = 2 and p = 4.
    n_steps : int
        Length of the bandit runs; the chain's are a third.
    at_least : float
        The least exponent that counts as order 1/t.
    slow : float
        The escort exponent of the exception, below 2.
    escorts : sequence of float
        More escort exponents for which the rate should hold.
    """
    ours = Worst(f"the measured exponent less {at_least:g}")
    printed, rows = Worst(f"the measured exponent less {at_least:g}"), []
    judging = {label: kind for name in updates for label, kind in _variants(name).items()}
    judging |= {f"PG-ES, p = {p:g}": make_update("pg-es", p=p) for p in escorts}
    for label, update in judging.items():
        for domain, arms, steps in (
            ("bandit", (1.0, 0.6, 0.2), n_steps),
            ("chain", None, n_steps // 3),
        ):
            fit = _measured(update, arms, steps)
            ours.add(fit.value - at_least, update=label, domain=domain)
            rows.append({"domain": domain, "update": label, **_fitted(fit)})
    fit = _measured(make_update("pg-es", p=slow), (1.0, 0.0), n_steps)
    label = f"PG-ES, p = {slow:g}"
    printed.add(fit.value - at_least, update=label, domain="two arms")
    rows.append({"domain": "two arms", "update": label, **_fitted(fit)})
    return judged(ours, printed, evidence=rows)


@check(
    "sec:asymp/ce",
    moved={
        "1 in place of 1/2": {"constant": 1.0},
        "MCE in CE's place, which the adversary does not slow down": {"update": "mce"},
    },
)
def check_ce_rate(
    constant: float = 0.5,
    n_runs: int = 60,
    seed: int = 0,
    update: str | Update = "ce",
    n_steps: int = 50_000,
) -> Verdict:
    r"""Attack :math:`1-\pi_T\le1/(1/(1-\pi_0)+\frac12\min(1,\kappa_0)W_T)` for CE on bandits.

    That is with one best arm. With two, the paper's sentence is tested with ties broken as Theorem
    1 allows (`taking_turns`): the exponent of the third arm's mass at the times at which the two
    are level.

    Parameters
    ----------
    constant : float
        The 1/2.
    n_runs, seed : int
        How many random bandits, starts and weights, and their seed.
    update : str or Update
        CE in the claim.
    n_steps : int
        Length of the run with ties.
    """
    rng = np.random.default_rng(seed)
    ours = Worst("the room of the bound, relative to it,")
    for _ in range(n_runs):
        n = int(rng.integers(2, 6))
        weights = 10.0 ** rng.uniform(-2, 1.5) * rng.exponential(size=200)
        theta0 = rng.uniform(0, 4) * rng.standard_normal(n)
        mass = bandit_masses(update, np.eye(n)[0], 200, weights, theta0)
        spent = np.append(0.0, np.cumsum(weights))
        # c = 1 for CE: the key lemma's formula without the factor |A|/(|A|-1).
        bound = 1.0 / (1.0 / mass[0] + constant * min(1.0, 1.0 / mass[0] - 1.0) * spent)
        ours.add(_room(mass, bound), actions=n, start=float(mass[0]))
    times, masses = taking_turns(update, n_steps)
    late = times >= 10
    slope = -float(np.polyfit(np.log(times[late]), np.log(masses[late]), 1)[0])
    printed = Worst(f"with tied optima, the exponent less {FAST:g}")
    printed.add(slope - FAST, exponent=slope, t=int(times[-1]))
    rows = [
        {"t": int(t), "1 - pi": float(m), "(1 - pi) t": float(m * t)}
        for t, m in zip(times, masses, strict=True)
    ]
    return judged(ours, printed, evidence=rows)


@check(
    "sec:asymp/di",
    moved={
        "one quarter of the bound": {"factor": 0.5},
        "nine tenths of the bound": {"factor": 1.8},
        "PG-SM in DI's place, which never arrives": {"update": "pg-sm"},
    },
)
def check_di_finite(
    factor: float = 2.0, n_steps: int = 400, update: str | Update = "di"
) -> Verdict:
    r"""Count DI's steps to the optimum against the bound :math:`W_T\ge2(1-\pi_{t_0})/\delta`.

    On MDPs with one optimal policy and with many. DI's values never decrease, so that the lead
    :math:`\delta` of the optimal actions at :math:`t_0` over what the others can ever be worth
    lasts for ever.

    Parameters
    ----------
    factor : float
        The 2 in the bound.
    n_steps : int
        How long to run at most.
    update : str or Update
        DI in the claim.
    """
    ours = Worst("the number of steps proved minus the number needed")
    rows = []
    for name, mdp in (instances() | unique_instances()).items():
        facts = structure(mdp)
        trajectory = run(mdp, as_update(update), n_steps, weighting="uniform")
        s = facts.contested
        mass = np.where(facts.optimal[s], 0.0, trajectory.policies[:, s]).sum(axis=-1)
        if mass[-1].max() > 0.0:
            return Verdict(Status.OPEN, None, f"{name}: not optimal by the end.")
        worst_best = np.where(facts.optimal[s], trajectory.q[:, s], np.inf).min(axis=-1)
        lead = worst_best - np.where(facts.optimal[s], -np.inf, facts.q[s]).max(axis=-1)
        start = int(np.flatnonzero((lead > ROUNDING).all(axis=1))[0])
        # Each later time gives a bound of its own; the first one that can be given is the least.
        times = np.arange(start, n_steps + 1)[:, np.newaxis]
        proved = (times + np.ceil(factor * mass[start:] / lead[start:])).min(axis=0)
        done = np.array([int(np.flatnonzero(row > 0.0)[-1]) + 1 for row in mass.T])
        row = {"problem": name, "t0": start, "optimal from": int(done.max())}
        rows.append(row | {"proved from": int(proved.max()), "room": int((proved - done).min())})
        ours.add(float((proved - done).min()), problem=name)
    for weight in (Fraction(3, 10), Fraction(1, 7), Fraction(1, 100)):
        steps, exact = di_steps([1, 0], weight), math.ceil(Fraction(factor) / 2 / weight)
        name = f"two arms, weight {weight}"
        row = {"problem": name, "t0": 0, "optimal from": steps, "proved from": exact}
        rows.append(row | {"room": exact - steps})
        ours.add(float(exact - steps), problem=name)
    return judged(ours, evidence=rows)


@check(
    "sec:asymp/fast-enough",
    moved={
        "weights that decay like t^-1/2": {"decay": 0.5},
        "weights that decay like t^-1/4": {"decay": 0.25},
    },
)
def check_fast_enough(
    updates: Sequence[str | Update] = PAPER, n_steps: int = 5000, decay: float = 0.0
) -> Verdict:
    r"""Compare the regret of two successive decades: equal for order log t, less for faster rates.

    The regret is :math:`\sum_{t<T}(1-\pi_t)` on a bandit with one best arm. As printed the claim is
    about PG-ES of any exponent: with p = 3/2 its regret is of order :math:`T^{1/4}`.

    Parameters
    ----------
    updates : sequence of str or Update
        Which updates.
    n_steps : int
        Length of the runs.
    decay : float
        The weights are :math:`(t+1)` to this power, negated; 0 in the claim.
    """
    unit = "1.05 less the regret of the last decade relative to the one before"
    ours, printed = Worst(unit), Worst(unit)
    weights = (np.arange(n_steps) + 1.0) ** -decay
    for worst, update in [(ours, update) for update in updates] + [
        (printed, make_update("pg-es", p=1.5))
    ]:
        mass = bandit_masses(update, (1.0, 0.6, 0.2), n_steps, weights)
        regret = np.append(0.0, np.cumsum(mass))
        last = regret[n_steps] - regret[n_steps // 10]
        before = regret[n_steps // 10] - regret[n_steps // 100]
        ratio = float(last / before) if before > 0 else 0.0
        worst.add(
            1.05 - ratio,
            update=label_of(as_update(update).name),
            ratio=ratio,
            **{"regret": float(regret[-1]), "in the last decade": float(last)},
        )
    return judged(ours, printed)
