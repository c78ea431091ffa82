"""The checks on the direct parametrization beyond tables: where the fit stands, and what it costs.

Runs have exact values; the theorem is tried on random processes with random features, where
nothing is representable, and on the two tasks of the chapter.
"""

from __future__ import annotations

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.chapters.function_approximation.fitted_direct import (
    Place,
    fitted_run,
    greedy_fit,
    ladder,
    next_bound,
)
from pu_lib.chapters.function_approximation.quantities import Task, contexts, corridor
from pu_lib.domains import random_mdp
from pu_lib.verdict import Verdict, Worst, check, judged

ROUNDING = 1e-9


def _strangers(n_tasks: int) -> list[Task]:
    """Return random processes whose features have nothing to do with their values."""
    tasks = []
    for seed in range(n_tasks):
        mdp = random_mdp(seed, 6, 3, discount=0.5 + 0.1 * (seed % 5), if_none="last")
        features = np.random.default_rng(seed).normal(size=(mdp.n_states, 1 + seed % 3))
        tasks.append(Task(f"random {seed}", mdp, features))
    return tasks


def _etas(seed: int, n_steps: int) -> Floats:
    return ladder(10.0 ** (seed % 4 - 1), 1.0 + 0.2 * (seed % 2), n_steps)


@check(
    "book:fitted-di",
    moved={
        "the error of the fit costs nothing": {"cost": 0.0},
        "the error costs itself, without the horizon": {"cost": 1.0},
    },
)
def check_floor(cost: float | None = None, n_tasks: int = 20, n_steps: int = 25) -> Verdict:
    """Try the theorem of `pu_lib.chapters.function_approximation.fitted_direct` at every step of runs with either fit.

    Parameters
    ----------
    cost : float, optional
        By what the error of a fit is multiplied, in place of 1 / (1 - discount).
    n_tasks : int
        Random processes, beside the two tasks of the chapter.
    n_steps : int
        Updates of each run.

    Returns
    -------
    Verdict
    """
    worst = Worst("the bound of the next gap minus the gap")
    places: tuple[Place, ...] = ("before", "after")
    for seed, task in enumerate([*_strangers(n_tasks), contexts(), corridor()]):
        for place in places:
            etas = _etas(seed, n_steps)
            run = fitted_run(task, etas, place)
            discount = task.mdp.discount
            share = 1.0 if cost is None else cost * (1.0 - discount)
            for t, eta in enumerate(etas):
                allowed = next_bound(run.gaps[t], float(eta), share * run.errors[t], discount)
                room = allowed - run.gaps[t + 1] + ROUNDING
                worst.add(room, task=task.name, fit=place, step=t, eta=float(eta))
    return judged(worst)


@check(
    "book:fitted-after",
    moved={
        "fitted before the projection it stalls there, too": {"place": "before"},
        "it ends at 0.9": {"end": 0.9},
    },
)
def check_stall(place: Place = "after", end: float | None = None, n_steps: int = 200) -> Verdict:
    """Fit the contexts after the projection: where that ends, and why.

    Parameters
    ----------
    place : {"before", "after"}
        Where the fit stands.
    end : float, optional
        Where it is claimed to end for large weights; by default the performance of the projected
        fit of the optimal policy.
    n_steps : int
        Updates of each run.

    Returns
    -------
    Verdict
    """
    task, worst, rows = contexts(), Worst("the room"), []
    end = greedy_fit(task) if end is None else end
    for eta in (0.5, 5.0, 50.0, 500.0):
        run = fitted_run(task, ladder(eta, 1.0, n_steps), place)
        last, floor = float(run.performance[-1]), float(run.bounds[-1])
        rows.append({"eta": eta, "performance": last, "gap": run.gaps[-1], "bound": floor})
        worst.add(0.797 - last, eta=eta, part="stops at 0.797 at the most")
        worst.add(last - 0.775, eta=eta, part="comes to 0.775")
        worst.add(floor - float(run.gaps[0]), eta=eta, part="the bound exceeds the first gap")
        if eta >= 50.0:
            worst.add(1e-9 - abs(last - end), eta=eta, part="ends at the projected fit")
    return judged(worst, evidence=rows)


@check(
    "sec:deepimpl/di",
    moved={
        "the fit stands after the projection": {"place": "after"},
        "at weights that stay at 0.5": {"eta": 0.5, "growth": 1.0},
    },
)
def check_di(
    place: Place = "before", eta: float = 0.5, growth: float = 1.2, reversed_steps: int = 50
) -> Verdict:
    """Section 3.6: a direct parametrization with function approximation is an open problem.

    Parameters
    ----------
    place : {"before", "after"}
        Where the fit stands.
    eta, growth : float
        The first weight, and the ratio of one weight to the one before.
    reversed_steps : int
        In so many first updates the values are reversed, at the first weight.

    Returns
    -------
    Verdict
        "holds with a correction" if the fit is tabular `di` in a table, and with linear models
        comes back from the reversal to the optimum within its bound.
    """
    printed = Worst("the distance of fitted DI from the optimum minus 0.001")
    ours, rows = Worst("the room"), []
    etas = np.r_[np.full(reversed_steps, eta), ladder(eta, growth, 100)]
    for task in (contexts(), corridor()):
        run = fitted_run(task, etas, place, None, reversed_steps)
        table = fitted_run(task, etas, "before", np.eye(task.mdp.n_states), reversed_steps)
        ours.add(1e-9 - np.max(table.errors), task=task.name, part="a table is fitted exactly")
        room = float(np.min(run.bounds - run.gaps)) + ROUNDING
        ours.add(room, task=task.name, part="within the bound")
        short = 1.0 - float(run.performance[-1])
        ours.add(1e-3 - short, task=task.name, part="arrives")
        printed.add(short - 1e-3, task=task.name)
        rows.append(
            {
                "task": task.name,
                "after the reversal": run.performance[reversed_steps],
                "at the end": run.performance[-1],
                "largest gap left": run.gaps[-1],
                "bound of it": run.bounds[-1],
            }
        )
    return judged(ours, printed, evidence=rows)
