"""The checks of two remarks on the conditions under which updates converge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pu_lib.chapters.convergence.quantities import fading_run, looping_bandit, structure
from pu_lib.chapters.rates.quantities import exponent, log_times
from pu_lib.mdp import FiniteMDP
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
    moved={
        "DI needs an infinite sum in every single MDP": {"everywhere": True},
        "arms that differ by 1.1/M": {"apart": 1.1},
    },
)
def check_same_condition(everywhere: bool = False, apart: float = 0.9) -> Verdict:
    r"""Ask whether PG-SM and DI need weights of infinite sum as well, to be safe in every MDP.

    Two uniform arms, entered again and again, the weights of finite sum M. PG-SM keeps
    :math:`\pi_t(a)\ge\pi_0(a)e^{-2MR}` with R the range of the values. DI stays short if the arms
    differ by less than :math:`1/M`; if they differ by 1 it is optimal after one step of weight 1.

    Parameters
    ----------
    everywhere : bool
        Whether to claim that DI stays short with the arms that differ by 1, too.
    apart : float
        M times the difference of the arms between which DI is to stay short.

    Returns
    -------
    Verdict
    """
    ours, total = Worst("the gap of q at the end minus its floor"), 2.0
    weights = total * 0.5 ** np.arange(1.0, 61.0)

    def gap(name: str | Update, mdp: FiniteMDP) -> float:
        end = run(mdp, as_update(name), len(weights), eta=weights, weighting="uniform")
        return float((structure(mdp).q - end.q[-1]).max())

    loop = looping_bandit()
    values = structure(loop)
    spread = float(np.ptp(values.q))
    floor = loop.discount * 0.5 * np.exp(-2 * total * spread) * np.ptp(values.q)
    ours.add(gap("pg-sm", loop) - floor, update="pg-sm", M=total)
    close = looping_bandit(gap=apart / total)
    # DI moves total * gap / 2 of the mass, from 1/2
    left = close.discount / (1 - close.discount) * (0.5 - apart / 2) * apart / total
    short = gap("di", close)
    ours.add(min(short - 1e-9, short - left + 1e-9), update="di", M=total, apart=apart / total)
    far = gap("di", loop)
    if everywhere:
        ours.add(far - 1e-9, update="di", M=total, apart=1.0)
    return judged(ours, figures={"far": far, "close": short})
