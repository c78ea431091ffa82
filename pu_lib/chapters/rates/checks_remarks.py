"""The checks of the chapter on rates that compare an update with another one, or with itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from pu_lib.chapters.rates.quantities import bandit_masses, escort_limit, exponent, log_times
from pu_lib.updates import Update, as_update, make_update
from pu_lib.verdict import Verdict, Worst, check, judged


@check(
    "thm:rates/same-as-pg-sm",
    moved={
        "DI in PG-SM's place": {"updates": ("mce", "di")},
        "PG-ES in PG-SM's place": {"updates": ("mce", "pg-es")},
        "the power -1.1 of the sum": {"power": 1.1},
    },
    blind={"CE beside MCE: it has the same rate": {"updates": ("mce", "ce")}},
)
def check_same_rate(
    updates: Sequence[str | Update] = ("mce", "pg-sm"),
    power: float = 1.0,
    n_steps: int = 4_000,
    tolerance: float = 0.05,
) -> Verdict:
    r"""Measure the exponent of the suboptimal mass in the sum of the weights.

    Two and three arms, weights :math:`(t+1)^{-x}` with x = 0 and 1/4.

    Parameters
    ----------
    updates : sequence of str or Update
        Updates that should have the same rate.
    power : float
        The mass is claimed to be of the order of the sum to this power, negated.
    n_steps : int
        Length of the runs.
    tolerance : float
        How far a measured exponent may be from it.

    Returns
    -------
    Verdict
    """
    ours, rows = Worst(f"{tolerance:g} less the distance of the exponent from {power:g}"), []
    for update in map(as_update, updates):
        for x in (0.0, 0.25):
            for rewards in ((1.0, 0.0), (1.0, 0.0, 0.0)):
                value = _exponent_in_the_sum(update, rewards, x, n_steps)
                row = {"update": update.name, "x": x, "arms": len(rewards), "exponent": value}
                ours.add(tolerance - abs(value - power), **row)
                rows.append(row)
    return judged(ours, evidence=rows)


@cache  # the controls ask for the same runs again and again
def _exponent_in_the_sum(
    update: Update, rewards: tuple[float, ...], x: float, n_steps: int
) -> float:
    """Return the exponent of the suboptimal mass in the sum of the weights (t+1)^-x."""
    times, weights = log_times(n_steps), (np.arange(n_steps) + 1.0) ** -x
    mass = bandit_masses(update, rewards, n_steps, weights)[times]
    return exponent(np.cumsum(weights)[times - 1], mass).value


@check(
    "sec:asymp/escort-rate",
    moved={
        "the limit for an exponent p that is larger by 0.05": {"shift": 0.05, "exponents": (1.4,)},
        "a limit that is 5 % larger": {"factor": 1.05, "exponents": (1.4,)},
    },
)
def check_escort_rate(
    exponents: Sequence[float] = (1.2, 1.4, 1.5, 1.6),
    weights: Sequence[float] = (1.0, 2.0),
    n_steps: int = 4000,
    shift: float = 0.0,
    factor: float = 1.0,
    tolerance: float = 0.02,
) -> Verdict:
    r"""Compare :math:`(1-\pi_t)\,t^{p/2}` with its limit for two arms and 1 < p < 2.

    Parameters
    ----------
    exponents, weights : sequence of float
        The values of p, and the weights of the steps.
    n_steps : int
        Length of the runs.
    shift : float
        Added to p in the limit.
    factor : float
        Multiplies the limit.
    tolerance : float
        How far the product may still be from its limit, relative to it.
    """
    ours = Worst(f"{tolerance:g} less the relative distance from the limit")
    for p in exponents:
        for weight in weights:
            mass = bandit_masses(make_update("pg-es", p=p), (1.0, 0.0), n_steps, weight)
            product = float(mass[-1]) * n_steps ** (p / 2.0)
            limit = factor * escort_limit(p + shift)
            ours.add(
                tolerance - abs(product / limit - 1.0),
                p=p,
                weight=weight,
                **{"(1 - pi) t^(p/2)": product, "limit": limit},
            )
    return judged(ours)
