"""The checks of two remarks on the conditions under which updates converge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pu_lib.mdp import FiniteMDP
from pu_lib.theory.convergence import fading_run, looping_bandit, structure
from pu_lib.theory.rates import exponent, log_times
from pu_lib.trajectories import run
from pu_lib.updates import Update, as_update
from pu_lib.verdict import Verdict, Worst, check, judged

FIRST_ORDER = 0.97
"""The least measured exponent that counts as order 1/t."""


@check(
    "sec:intro/conditions",
    moved={
        "the order 1/t also for weights (t + 1)^-1/2": {"bounded_below": (0.0, 0.5)},
        "constant weights alone, for which it holds as printed": {"fading": 0.0},
        "the order 1/W also where the sum of the weights is finite": {"infinite": (0.5, 1.5)},
    },
)
def check_conditions(
    bounded_below: Sequence[float] = (0.0,),
    infinite: Sequence[float] = (0.25, 0.5),
    fading: float = 0.5,
    n_steps: int = 1500,
) -> Verdict:
    r"""Ask whether sums of weights that are infinite give MCE the order 1/t, with ties and without.

    Four arms, of which one, two or three are best, and the weights :math:`(t+1)^{-x}`.

    Parameters
    ----------
    bounded_below, infinite : sequence of float
        Values of x for which the suboptimal mass should be of order 1/t, and of the order of the
        inverse of the sum of the weights.
    fading : float
        The x for which the printed sentence is tried.
    n_steps : int
        Length of the runs.

    Returns
    -------
    Verdict
    """
    ours = Worst(f"the measured exponent minus {FIRST_ORDER:g}")
    printed = Worst(f"the measured exponent in t minus {FIRST_ORDER:g}")
    times = log_times(n_steps)
    for best in (1, 2, 3):
        for x in (*bounded_below, *infinite):
            mass, _, _ = fading_run(x, best, n_steps)
            spent = np.cumsum((np.arange(n_steps) + 1.0) ** -x)[times - 1]
            clock = times if x in bounded_below else spent
            ours.add(exponent(clock, mass[times]).value - FIRST_ORDER, best_arms=best, x=x)
        mass, _, _ = fading_run(fading, best, n_steps)
        printed.add(exponent(times, mass[times]).value - FIRST_ORDER, best_arms=best, x=fading)
    return judged(ours, printed)


@check(
    "sec:conv/same-condition",
    moved={"MCE in place of DI": {"update": "mce"}},
)
def check_same_condition(update: str | Update = "di") -> Verdict:
    r"""Ask whether PG-SM and DI need weights of infinite sum as well.

    Two uniform arms, entered again and again, the weights of finite sum. PG-SM keeps
    :math:`\pi_t(a)\ge\pi_0(a)e^{-2MR}` with R the range of the values. DI is optimal after one step
    of weight 1; but no finite sum is enough for it in all MDPs: with a gap :math:`g<1/M` between
    the arms it stays short.

    Parameters
    ----------
    update : str or Update
        The update of which the printed condition is tried at the first bandit.

    Returns
    -------
    Verdict
    """
    ours = Worst("what is left of the gap of q, minus its floor,")
    printed = Worst("the gap of q at the end minus 1e-9")
    total = 2.0
    weights = total * 0.5 ** np.arange(1.0, 61.0)

    def gap(name: str | Update, mdp: FiniteMDP) -> float:
        end = run(mdp, as_update(name), len(weights), eta=weights, weighting="uniform")
        return float((structure(mdp).q - end.q[-1]).max())

    loop = looping_bandit()
    values = structure(loop)
    spread = float(np.ptp(values.q))
    floor = loop.discount * 0.5 * np.exp(-2 * total * spread) * np.ptp(values.q)
    ours.add(gap("pg-sm", loop) - floor, update="pg-sm", M=total)
    close = looping_bandit(gap=0.9 / total)
    # DI moves total * gap / 2 of the mass, from 1/2
    left = close.discount / (1 - close.discount) * (0.5 - 0.45) * 0.9 / total
    ours.add(gap("di", close) - left + 1e-9, update="di, arms that differ by 0.9/M", M=total)
    printed.add(gap(update, loop) - 1e-9, update=as_update(update).name, M=total)
    return judged(ours, printed)
