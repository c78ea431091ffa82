r"""The checks of sentences in passing on the updates: the objective, the wall, damping."""

from __future__ import annotations

import numpy as np

from pu_lib.chapters.updates.quantities import halving_times, truncated_objective
from pu_lib.domains import random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import follow
from pu_lib.updates import Update, as_update, make_update
from pu_lib.verdict import Verdict, Worst, check, judged

ROUNDING = 1e-12


@check(
    "eq:obj",
    moved={
        "rewards that grow by the factor 1/gamma a step": {"growth": 1 / 0.9},
        "a bound that is one per cent smaller": {"factor": 0.99},
    },
)
def check_objective_converges(
    growth: float = 1.0, factor: float = 1.0, n_steps: int = 400
) -> Verdict:
    r"""Check that the sum of rewards converges: what is left after T of them obeys its bound.

    Parameters
    ----------
    growth : float
        By what factor all rewards grow from one step to the next.
    factor : float
        On the bound :math:`\gamma^T\max|r|/(1-\gamma)`.
    n_steps : int
        How many rewards are summed.

    Returns
    -------
    Verdict
        The sum of all is the solution of the linear system; the first MDP, one state that pays 1
        at each step, attains the bound.
    """
    rng = np.random.default_rng(23)
    mdps = [FiniteMDP(np.ones((1, 2, 1)), np.ones((1, 2)), [1.0], 0.9)]
    mdps += [random_mdp(rng, n_states=8, n_actions=3, discount=0.9) for _ in range(10)]
    worst = Worst("the bound minus what is left of the sum, relative to the first bound,")
    for i, mdp in enumerate(mdps):
        pi = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
        sums, bounds = truncated_objective(mdp, pi, n_steps, growth)
        room = (factor * bounds - np.abs(mdp.performance(pi) - sums)) / bounds[0]
        worst.add(room.min() + ROUNDING, MDP=i, T=int(np.argmin(room)))
    return judged(worst)


@check(
    "sec:intro/wall",
    moved={
        "PG-SM in DI's place, which always goes a little further": {"update": "pg-sm"},
        "MCE in DI's place, which does as well": {"update": "mce"},
        "one per cent more of the way back": {"share": 0.505},
    },
)
def check_wall(update: str | Update = "di", share: float = 0.5, n_steps: int = 80) -> Verdict:
    r"""Push a policy forward until it stands at the wall, then once more, then once backwards.

    For the greedy vertex, the values negated and :math:`R` the range of q, the projection
    removes :math:`\lambda` from the top coordinate, and :math:`(1-\lambda)_++(wR-\lambda)_+
    \le1` gives :math:`\lambda\ge wR/2`: the way back is :math:`\min(1,wR/2)` at least,
    however long the policy was pushed. With two actions it is exactly that.

    Parameters
    ----------
    update : str or Update
        The update whose parameters should stop.
    share : float
        The factor on :math:`wR` in the way back.
    n_steps : int
        How many steps forward; more than the simplex is wide.

    Returns
    -------
    Verdict
    """
    rng, chosen, worst = np.random.default_rng(24), as_update(update), Worst("the room")
    for _ in range(50):
        k, w = int(rng.integers(2, 6)), float(10 ** rng.uniform(-0.5, 0.5))
        q = np.append(rng.uniform(0.0, 0.9, k - 1), 1.0)
        start = chosen.parameters(rng.dirichlet(np.ones(k)))
        end = follow(chosen, q, w, n_steps, start)[-1]
        further = np.abs(chosen.step(end, q, w) - end).max()
        worst.add(ROUNDING - further, part="no further forward", actions=k, weight=w)
        back = 1.0 - chosen.policy(chosen.step(end, -q, w))[-1]
        least = min(1.0, share * w * np.ptp(q))
        worst.add(back - least + ROUNDING, part="free to go back", actions=k, weight=w)
    return judged(worst)


@check(
    "sec:updates/damping",
    moved={
        "MCE in PG-ES's place, which is as slow": {"cure": "mce"},
        "PG-ES with p = 3, whose halvings take longer and longer": {
            "cure": make_update("pg-es", p=3.0)
        },
        "PG-ES in PG-SM's place": {"damped": "pg-es"},
    },
    blind={"MCE in PG-SM's place: its halvings take twice as long each, too": {"damped": "mce"}},
)
def check_damping(
    damped: str | Update = "pg-sm",
    cure: str | Update = "pg-es",
    weight: float = 0.1,
    n_steps: int = 16_000,
) -> Verdict:
    """Measure how long it takes to halve the probability of the worse of two arms.

    Parameters
    ----------
    damped : str or Update
        The update whose halvings should take about twice as long each time.
    cure : str or Update
        The update whose halvings should all take equally long.
    weight : float
        The weight of each step; so small that no escort parameter crosses zero with p = 2.
    n_steps : int
        Steps of the damped update; of the other one, a hundredth.

    Returns
    -------
    Verdict
        The last halving is compared with the one before it.
    """
    ours, rows = Worst("the room"), []
    for name, update, steps in (("damped", damped, n_steps), ("cure", cure, n_steps // 100)):
        chosen = as_update(update)
        mass = chosen.policy(follow(chosen, [1.0, 0.0], weight, steps))[:, 1]
        times = halving_times(mass)
        ratio = float(times[-1] / times[-2])
        room = ratio - 1.9 if name == "damped" else 0.02 - abs(ratio - 1.0)
        ours.add(room, update=chosen.name, ratio=ratio)
        rows.append(
            {
                "update": chosen.name,
                "halvings": len(times),
                "the last one takes": float(times[-1]),
                "relative to the one before": ratio,
            }
        )
    return judged(ours, evidence=rows)
