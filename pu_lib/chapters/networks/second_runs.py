"""The runs of the second protocol: Adam beside SGD, PPO, tuned bonuses, and several changes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.chapters.networks.learner import LARGE_GRID, PPO, TASKS, Learner, Task
from pu_lib.chapters.networks.runs import HERE, optimal_reward, write
from pu_lib.engine import networks as engine
from pu_lib.experiments.jobs import finish

__all__ = ["best_setting", "change", "judge", "new_learner", "protocol", "run_parts", "tune"]

SETTING = ("task", "method", "optimiser", "step_size", "bonus", "seed")
TUNED = (*SETTING, "before", "after")
JUDGED = (
    *SETTING, "length", "before", "end", "learnt", "half", "half_censored", "ninety",
    "ninety_censored", "area", "after",
)  # fmt: skip
CHANGED = (
    *SETTING,
    "change",
    "half",
    "half_censored",
    "ninety",
    "ninety_censored",
    "area",
    "after",
)
WITH_BONUS = ("pg-sm entropy", "ppo", "ppo shared", "soft neurd")
"""The methods with a weight of the entropy."""


@cache
def protocol() -> dict[str, Any]:
    """Return the second protocol."""
    parsed: dict[str, Any] = tomllib.loads((HERE / "protocol-2.toml").read_text("utf-8"))
    return parsed


# One run


def new_learner(
    task: str, method: str, optimiser: str, step_size: float, bonus: float, seed: int
) -> Learner:
    """Return the learner of a run.

    Parameters
    ----------
    task : str
        The name of a task.
    method : str
        One of `pu_lib.engine.networks.METHODS`, ``"ppo"`` or ``"ppo shared"``.
    optimiser : {"adam", "sgd"}
        That of the actor.
    step_size, bonus : float
        The step size of the actor and the weight of the entropy.
    seed : int
        The seed of all randomness.
    """
    where = {**TASKS, LARGE_GRID.name: LARGE_GRID}[task]
    if method.startswith("ppo"):
        return PPO(where, method == "ppo shared", step_size, seed, bonus)
    return Learner(where, method, step_size, seed, bonus, adam=optimiser == "adam")


def _level(task: Task, earned: Floats) -> float:
    """Return the reward per step over the best; for CartPole, the length of episodes over 200."""
    steps = len(earned) * engine.WINDOW * engine.BATCH
    if task.kind == engine.POLE:
        length = protocol()["measures"]["pole"]
        return float(min(1.0, steps / max(earned[:, 1].sum(), 1.0) / length))
    return float(earned[:, 0].sum() / steps / optimal_reward(task.name))


def _until(task: Task, earned: Floats, least: float) -> int | None:
    """Return the updates until those of a window have a level; None if they never do."""
    width = protocol()["measures"]["window"] // engine.WINDOW
    for end in range(width, len(earned) + 1):
        if _level(task, earned[end - width : end]) >= least:
            return end * engine.WINDOW
    return None


def _measure(learner: Learner, phase: int, after: int, cap: int) -> tuple[Any, ...]:
    """Train after a change and return half and ninety, each with its censoring, area and after."""
    measures, task = protocol()["measures"], learner.task
    earned = learner.learn(after, phase)
    area = _level(task, earned)
    level = _level(task, earned[-measures["tail"] // engine.WINDOW :])
    while len(earned) * engine.WINDOW < cap and _until(task, earned, measures["ninety"]) is None:
        earned = np.concatenate([earned, learner.learn(100, phase)])
    times = [_until(task, earned, measures[name]) for name in ("half", "ninety")]
    return *(x for time in times for x in (time or cap, time is None)), area, level


def tune(
    task: str, method: str, optimiser: str, step_size: float, bonus: float, seed: int
) -> dict[str, Any]:
    """Return the levels of a run before and after the change; those of a run that fails are -1."""
    plan, setting = protocol()["tuning"], (task, method, optimiser, step_size, bonus, seed)
    learner = new_learner(*setting)
    try:
        levels = [
            _level(learner.task, learner.learn(plan[name], phase))
            for phase, name in enumerate(("before", "after"))
        ]
    except ValueError:  # the parameters leave the range of floats
        levels = [-1.0, -1.0]
    return dict(zip(TUNED, (*setting, *levels), strict=True))


def judge(
    task: str,
    method: str,
    optimiser: str,
    step_size: float,
    bonus: float,
    seed: int,
    lengths: Sequence[int],
) -> list[dict[str, Any]]:
    """Return a row of the table of runs for each length of phase 1."""
    plan, measures = protocol()["judging"], protocol()["measures"]
    setting = task, method, optimiser, step_size, bonus, seed
    learner, rows, earned = new_learner(*setting), [], np.zeros((0, 2))
    for length in lengths:
        missing = length - len(earned) * engine.WINDOW
        earned = np.concatenate([earned, learner.learn(missing, 0)])
        end = _level(learner.task, earned[-measures["tail"] // engine.WINDOW :])
        before = _level(learner.task, earned)
        outcome = _measure(learner.copy(), 1, plan["after"], plan["cap"])
        values = (*setting, length, before, end, end >= measures["learnt"], *outcome)
        rows.append(dict(zip(JUDGED, values, strict=True)))
    return rows


def change(
    task: str, method: str, optimiser: str, step_size: float, bonus: float, seed: int
) -> list[dict[str, Any]]:
    """Return a row for each of the changes of a run."""
    plan, setting = protocol()["changes"], (task, method, optimiser, step_size, bonus, seed)
    learner = new_learner(*setting)
    learner.learn(plan["each"], 0)
    rows = []
    for number in range(1, plan["number"] + 1):
        outcome = _measure(learner, number % 2, plan["each"], plan["each"])
        rows.append(dict(zip(CHANGED, (*setting, number, *outcome), strict=True)))
    return rows


# All runs


def best_setting(
    rows: Iterable[dict[str, Any]], columns: Sequence[str] = ("before", "after")
) -> tuple[float, float]:
    """Return the step size and bonus with the largest sum of columns; ties go to the smaller.

    Parameters
    ----------
    rows : iterable of dict
        Rows of `tune` of one task, method and optimiser, with as many seeds for each setting.
    columns : sequence of str, optional
        By default the levels before and after the change.
    """
    sums: dict[tuple[float, float], float] = {}
    for row in rows:
        setting = row["step_size"], row["bonus"]
        sums[setting] = sums.get(setting, 0.0) + sum(row[column] for column in columns)
    return max(sorted(sums), key=sums.__getitem__)


def _tune(
    path: Path, part: dict[str, Any], method: str, workers: int | None, shown: bool | None
) -> list[dict[str, Any]]:
    """Return the rows of a method's tuning.

    Step sizes are tried until the best is inside, and then weights of the entropy at the best.
    """
    plan, optimiser = protocol()["tuning"], part["optimiser"]
    if method == "greedy":
        return []
    ladder, sizes = plan[optimiser]["ladder"], list(plan[optimiser]["first"])

    def run(settings: list[tuple[float, float]]) -> list[dict[str, Any]]:
        jobs = [
            (part["task"], method, optimiser, *setting, seed)
            for setting in settings
            for seed in plan["seeds"]
        ]
        return [row for (row,) in finish(path, tune, jobs, workers, shown)]

    bonus = plan["bonus"] if method in WITH_BONUS else 0.0
    while True:
        rows = run([(size, bonus) for size in sizes])
        best, first, last = best_setting(rows)[0], ladder.index(sizes[0]), ladder.index(sizes[-1])
        if best == sizes[0] and first > 0:
            sizes.insert(0, ladder[first - 1])
        elif best == sizes[-1] and last < len(ladder) - 1:
            sizes.append(ladder[last + 1])
        else:
            break
    others = [x for x in plan["bonuses"] if x != bonus] if method in WITH_BONUS else []
    return rows + run([(best, other) for other in others])


def run_parts(out: Path, workers: int | None = None, shown: bool | None = None) -> None:
    """Make the runs that a folder does not contain, part by part, and write three tables there.

    Parameters
    ----------
    out : Path
        The folder of the finished runs. A later call reads them from there.
    workers : int, optional
        The number of threads, by default one a processor. It does not change the results.
    shown : bool, optional
        Whether a progress bar is shown, by default in terminals and notebooks.
    """
    out.mkdir(parents=True, exist_ok=True)
    plan = protocol()["judging"]
    tuned: list[dict[str, Any]] = []
    judged: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for part in protocol()["parts"]:
        name, optimiser, jobs = part["task"], part["optimiser"], []
        several = name == LARGE_GRID.name
        for method in part["methods"]:
            rows = _tune(out / "tuning-2.jsonl", part, method, workers, shown)
            tuned += rows
            setting = best_setting(rows) if rows else (0.0, 0.0)
            for seed in plan["seeds"]:
                job = name, method, optimiser, *setting, seed
                jobs.append(job if several else (*job, plan["lengths"][name]))
        if several:
            finished = finish(out / "changes-2.jsonl", change, jobs, workers, shown)
            changed += [row for part in finished for row in part]
        else:
            finished = finish(out / "judged-2.jsonl", judge, jobs, workers, shown)
            judged += [row for part in finished for row in part]
        write(out / "tuning_2.csv", TUNED, tuned)
        write(out / "runs_2.csv", JUDGED, judged)
        write(out / "changes_2.csv", CHANGED, changed)
