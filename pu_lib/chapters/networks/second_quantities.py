r"""Statistics of the runs of the second protocol, as it states them.

Interquartile means, slopes and verdicts are those of `pu_lib.chapters.networks.quantities`. The
intervals of ratios and of differences resample the seeds of the two methods independently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from pu_lib.arrays import Floats
from pu_lib.chapters.networks.learner import LARGE_GRID, TASKS
from pu_lib.chapters.networks.quantities import (
    Growth,
    fit_slope,
    interval,
    resamples,
)
from pu_lib.chapters.networks.runs import HERE, optimal_values
from pu_lib.chapters.networks.second_runs import best_setting, new_learner, protocol
from pu_lib.engine import networks as engine
from pu_lib.experiments.bootstrap import interquartile_mean

__all__ = [
    "Estimate",
    "after_change",
    "after_changes",
    "change_table",
    "complete",
    "default",
    "estimate",
    "gaps",
    "lengths",
    "level_with_best",
    "missing",
    "ratio",
    "setting",
    "slope",
    "slope_difference",
    "table",
    "tuning_table",
]

PREFERENCE = (
    "greedy", "ce", "sce", "soft neurd", "pg-sm entropy", "ppo", "ppo shared", "pg-sm",
)  # fmt: skip
"""The order in which the protocol's rule names a default."""


@cache
def table() -> pd.DataFrame:
    """Return the judged runs, one row for each run and length of phase 1.

    The columns are `task`, `method`, `optimiser`, `step_size`, `bonus`, `seed`, `length`; `before`
    and `end`, the levels over all of phase 1 and at its end; `learnt`; `half` and `ninety`, the
    updates to recover, each with whether it is censored; and `area` and `after`, the levels over
    the first 2000 updates after the change and over the last 200 of them.
    """
    return pd.read_csv(HERE / "data" / "runs_2.csv")


@cache
def change_table() -> pd.DataFrame:
    """Return the runs with several changes, one row for each run and change."""
    return pd.read_csv(HERE / "data" / "changes_2.csv")


@cache
def tuning_table() -> pd.DataFrame:
    """Return the runs of the tuning, with their levels before and after the change."""
    return pd.read_csv(HERE / "data" / "tuning_2.csv")


def missing() -> list[str]:
    """Return the names of the protocol's parts that have not been run."""
    frames = [table(), change_table()]
    done = {
        (row.task, row.optimiser)
        for frame in frames
        for row in frame[["task", "optimiser"]].drop_duplicates().itertuples()
    }
    return [
        part["name"]
        for part in protocol()["parts"]
        if (part["task"], part["optimiser"]) not in done
    ]


def complete(optimiser: str = "adam") -> dict[str, list[str]]:
    """Return the tasks that were run with an optimiser, and their methods."""
    run = missing()
    return {
        part["task"]: part["methods"]
        for part in protocol()["parts"]
        if part["optimiser"] == optimiser
        and part["name"] not in run
        and part["task"] != LARGE_GRID.name
    }


def lengths(task: str) -> list[int]:
    """Return the lengths of phase 1 on a task."""
    return list(protocol()["judging"]["lengths"][task])


def setting(
    task: str, method: str, optimiser: str, columns: Sequence[str] = ("before", "after")
) -> tuple[float, float]:
    """Return the step size and the weight of the entropy with the largest sum of two levels.

    By the protocol the columns are `before` and `after`; with ``("before",)`` they are what phase 1
    alone would have chosen.
    """
    rows = tuning_table()
    rows = rows[(rows.task == task) & (rows.method == method) & (rows.optimiser == optimiser)]
    records: Any = rows.to_dict("records")
    return best_setting(records, columns)


def _runs(task: str, method: str, optimiser: str, length: int) -> pd.DataFrame:
    runs = table()
    chosen = (runs.task == task) & (runs.method == method) & (runs.length == length)
    return runs[chosen & (runs.optimiser == optimiser)]


def _values(task: str, method: str, optimiser: str, length: int, column: str) -> Floats:
    """Return a column of the runs that had learnt, or the score of all runs."""
    runs = _runs(task, method, optimiser, length)
    if column == "score":
        return ((runs.before + runs.area) / 2).to_numpy(float)
    return runs[runs.learnt][column].to_numpy(float)


def _resampled_means(values: Floats, stream: int = 0) -> Floats:
    """Return the interquartile means of resamples."""
    means: Floats = interquartile_mean(values[resamples(len(values), stream)].T)
    return means


@dataclass(frozen=True)
class Estimate:
    """An interquartile mean with its interval.

    Attributes
    ----------
    runs, learnt, censored : int
        All runs, those that had learnt, and those of them whose time is censored.
    mean, low, high : float
        The interquartile mean with its interval; NaN if too few runs had learnt.
    """

    runs: int
    learnt: int
    censored: int
    mean: float
    low: float
    high: float


@cache
def estimate(task: str, method: str, optimiser: str, length: int, column: str) -> Estimate:
    """Return the interquartile mean of a column over the runs that had learnt.

    The column `score` is the mean of `before` and `area`, over all runs.
    """
    runs = _runs(task, method, optimiser, length)
    values = _values(task, method, optimiser, length, column)
    censored = 0
    if f"{column}_censored" in runs:
        censored = int(runs[runs.learnt][f"{column}_censored"].sum())
    counts = len(runs), int(runs.learnt.sum()), censored
    if len(values) < protocol()["statistics"]["least"]:
        return Estimate(*counts, *[float("nan")] * 3)
    return Estimate(*counts, interquartile_mean(values), *interval(_resampled_means(values)))


def _judged(task: str, method: str, optimiser: str) -> pd.DataFrame:
    """Return the runs that had learnt, at the lengths at which enough had."""
    runs = table()
    chosen = (runs.task == task) & (runs.method == method) & (runs.optimiser == optimiser)
    runs = runs[chosen & runs.learnt]
    counts = runs.groupby("length").seed.transform("count")
    judged: pd.DataFrame = runs[counts >= protocol()["statistics"]["least"]]
    return judged


@cache
def slope(task: str, method: str, optimiser: str = "adam") -> Growth:
    """Return the slope of the logarithm of `half` on that of the length of phase 1."""
    runs = _judged(task, method, optimiser)
    if runs.length.nunique() < 2:
        return Growth(float("nan"), float("nan"), float("nan"), 0, 0)
    fitted, resampled = fit_slope(runs, "half")
    return Growth(fitted, *interval(resampled), len(runs), int(runs.half_censored.sum()))


def slope_difference(task: str, method: str) -> tuple[float, float, float]:
    """Return the slope with SGD less the slope with Adam, with its interval."""
    slopes, draws = zip(
        *(
            fit_slope(_judged(task, method, optimiser), "half", stream)
            for stream, optimiser in enumerate(("sgd", "adam"), 1)
        ),
        strict=True,
    )
    return slopes[0] - slopes[1], *interval(draws[0] - draws[1])


def ratio(
    task: str,
    method: str,
    over: str,
    length: int,
    column: str = "half",
    optimiser: str = "adam",
) -> tuple[float, float, float]:
    """Return the ratio of the interquartile means of a column of two methods, with its interval."""
    values, other = (_values(task, m, optimiser, length, column) for m in (method, over))
    least = protocol()["statistics"]["least"]
    if min(len(values), len(other)) < least:
        return float("nan"), float("nan"), float("nan")
    drawn = _resampled_means(values, 1) / _resampled_means(other, 2)
    return interquartile_mean(values) / interquartile_mean(other), *interval(drawn)


def after_change(method: str, number: int) -> Estimate:
    """Return the interquartile mean of `half` after a change of the runs with several."""
    runs = change_table()
    runs = runs[(runs.method == method) & (runs.change == number)]
    values, censored = runs.half.to_numpy(float), int(runs.half_censored.sum())
    bounds = interval(_resampled_means(values))
    return Estimate(len(runs), len(runs), censored, interquartile_mean(values), *bounds)


def after_changes(method: str, last: int = 5) -> tuple[float, float, float]:
    """Return the ratio of `half` after a late change to that after the first, with its interval.

    A seed keeps both of its changes in a resample.
    """
    runs = change_table()
    runs = runs[runs.method == method].pivot_table(index="seed", columns="change", values="half")
    late, first = runs[last].to_numpy(float), runs[1].to_numpy(float)
    drawn = _resampled_means(late) / _resampled_means(first)  # the same seeds in both
    return interquartile_mean(late) / interquartile_mean(first), *interval(drawn)


def level_with_best(task: str) -> dict[str, bool]:
    """Return whether each method with Adam is level with the one of the largest score.

    The score is the mean of `before` and `area` of all runs at the longest phase 1.
    """
    methods, longest = complete()[task], lengths(task)[-1]
    best = max(methods, key=lambda m: estimate(task, m, "adam", longest, "score").mean)
    return {m: m == best or ratio(task, m, best, longest, "score")[2] >= 1 for m in methods}


def default() -> str:
    """Return the method that the protocol's eighth rule names."""
    counts = dict.fromkeys(PREFERENCE, 0)
    for task in complete():
        for method, level in level_with_best(task).items():
            counts[method] += level
    return max(PREFERENCE, key=counts.__getitem__)


@cache
def gaps(task: str) -> tuple[float, float, float]:
    """Return the least, the median and the largest gap of the values in the states of a task.

    A gap is the difference between the best value and the second, before the change. On a chain or
    a grid the values are those of the optimal policy, and equal best actions have no gap between
    them. On CartPole they are a critic's after 4000 updates of greedy, in its stored states.
    """
    if task == "cart pole":
        learner = new_learner(task, "greedy", "adam", 0.0, 0.0, 0)
        learner.learn(4000, 0)
        state: Any = learner.state
        states = state.transitions[:, :4]
        layers = engine.new_layers(2, len(states))
        engine.forward(state.critic.parameters, states, layers)
        values = layers.outputs
    else:
        values = optimal_values(TASKS[task], 0)[1:-1]
    ordered = values.max(axis=1, keepdims=True) - values
    each = np.where(ordered > 1e-9, ordered, np.inf).min(axis=1)
    return float(each.min()), float(np.median(each)), float(each.max())
