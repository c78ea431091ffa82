"""The runs of the chapter, which one command makes; stopped, it continues where it was."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.chapters.networks.learner import TASKS, Learner, Task
from pu_lib.engine import networks as engine
from pu_lib.experiments.jobs import finish
from pu_lib.files import replacing

__all__ = [
    "CRITICS",
    "POST_HOC",
    "best_step_sizes",
    "critic_turns",
    "judge",
    "optimal_reward",
    "protocol",
    "recovery",
    "run_all",
    "tune",
    "work_needed",
]

HERE = Path(__file__).parent
TUNING = ("task", "method", "step_size", "seed", "before", "after")
JUDGED = (
    "task", "method", "tuned", "step_size", "seed", "length", "end", "learnt", "recovery",
    "censored",
)  # fmt: skip
TURNS = ("task", "method", "step_size", "seed", "length", "turned", "censored")

POST_HOC: tuple[tuple[str, str, float, tuple[int, ...], int], ...] = (
    # PG-SM as judged at the longest phase 1, with fifteen times the cap
    ("chain", "pg-sm", 3.0, (8000,), 60_000),
    ("chain .2", "pg-sm", 1.0, (8000,), 60_000),
    ("grid", "pg-sm", 3.0, (8000,), 60_000),
    ("cart pole", "pg-sm", 0.1, (4000,), 60_000),
    # other step sizes, where the tuned one may explain the result
    ("chain .2", "neurd", 0.1, (1000, 2000, 4000, 8000), 4000),
    ("grid", "di fit", 10.0, (8000,), 4000),
    ("cart pole", "ce", 0.1, (4000,), 4000),
)
"""Runs decided after the judged ones had been seen: task, method, step size, lengths and cap."""

CRITICS: tuple[tuple[str, str, float, int, int], ...] = (
    ("chain .2", "pg-sm", 1.0, 8000, 4000),
    ("chain .2", "soft neurd", 0.1, 8000, 4000),
    ("chain .2", "ce", 0.03, 8000, 4000),
    ("chain .2", "greedy", 0.0, 8000, 4000),
)
"""Runs whose critics are watched, also decided later: task, method, step size, length and cap."""


@cache
def protocol() -> dict[str, Any]:
    """Return the protocol."""
    parsed: dict[str, Any] = tomllib.loads((HERE / "protocol.toml").read_text("utf-8"))
    return parsed


# The optimal reward


def _model(task: Task, phase: int) -> tuple[Floats, Floats, Floats]:
    """Return transitions (S, A, S), rewards (S, A) and the first states of a chain or a grid.

    Transitions that end an episode have no successor.
    """
    side = 9 if task.kind == engine.CHAIN else 7
    states = side if task.kind == engine.CHAIN else side * side
    moves = np.zeros((states, task.actions, states))
    rewards = np.zeros((states, task.actions))
    starts = np.zeros(states)

    def enter(s: int, a: int, after: int, probability: float) -> None:
        if after in (0, states - 1):
            rewards[s, a] += probability * task.end_rewards[phase][after != 0]
        else:
            moves[s, a, after] += probability

    for s in range(1, states - 1):
        for a in range(task.actions):
            if task.kind == engine.CHAIN:
                enter(s, a, s + (1 if a == 1 else -1), 0.9)
                enter(s, a, s - (1 if a == 1 else -1), 0.1)
            else:
                cell = [s // side, s % side]
                cell[a // 2] = min(max(cell[a // 2] + (1 if a % 2 == 0 else -1), 0), side - 1)
                enter(s, a, cell[0] * side + cell[1], 1.0)
    if task.kind == engine.CHAIN:
        starts[4] = 1.0
    else:
        starts[1:-1] = 1 / (states - 2)
    return moves, rewards, starts


@cache
def optimal_reward(name: str, phase: int = 1) -> float:
    """Return the reward per step of the policy that is optimal with discounting, and explores.

    The cap on the length of episodes is neglected.

    Parameters
    ----------
    name : {"chain", "chain .2", "grid"}
    phase : {0, 1}
        Before or after the change; by symmetry the reward is the same.
    """
    task = TASKS[name]
    moves, rewards, starts = _model(task, phase)
    values = np.zeros(len(starts))
    for _ in range(500):
        values = (rewards + task.gamma * moves @ values).max(axis=1)
    best = (rewards + task.gamma * moves @ values).argmax(axis=1)
    policy = np.full(rewards.shape, task.exploration / task.actions)
    policy[np.arange(len(best)), best] += 1 - task.exploration
    inner = slice(1, -1)  # the ends are no states
    step = np.einsum("sa,sat->st", policy, moves)[inner, inner]
    visits = np.linalg.solve(np.eye(len(step)) - step.T, starts[inner])
    return float(visits @ (policy * rewards).sum(axis=1)[inner] / visits.sum())


# One run


def _level(task: Task, earned: Floats) -> float:
    """Return the reward per step over the optimum; for CartPole, the mean length of episodes."""
    steps = len(earned) * engine.WINDOW * engine.BATCH
    if task.kind == engine.POLE:
        return float(steps / max(earned[:, 1].sum(), 1.0))
    return float(earned[:, 0].sum() / steps / optimal_reward(task.name))


def recovery(learner: Learner, most: int) -> tuple[int, bool]:
    """Return the updates after the change until a learner recovers, and whether it does not.

    Parameters
    ----------
    learner : Learner
        A learner at the end of phase 1, which is trained further.
    most : int
        The largest number of updates.
    """
    measures = protocol()["measures"]
    task, width = learner.task, measures["window"] // engine.WINDOW
    least = measures["pole_recovered" if task.kind == engine.POLE else "recovered"]
    earned = np.zeros((0, 2))
    for updates in range(engine.WINDOW, most + 1, engine.WINDOW):
        earned = np.concatenate([earned, learner.learn(engine.WINDOW, 1)])[-width:]
        if len(earned) == width and _level(task, earned) >= least:
            return updates, False
    return most, True


def tune(task: str, method: str, step_size: float, seed: int) -> dict[str, Any]:
    """Return the mean rewards per step of a run before and after the change."""
    plan = protocol()["tuning"]
    learner = Learner(TASKS[task], method, step_size, seed)
    means = [
        float(learner.learn(plan[name], phase)[:, 0].sum()) / (plan[name] * engine.BATCH)
        for phase, name in enumerate(("before", "after"))
    ]
    return dict(zip(TUNING, (task, method, step_size, seed, *means), strict=True))


def judge(
    name: str,
    method: str,
    tuned: str,
    step_size: float,
    seed: int,
    lengths: Sequence[int],
    after: int | None = None,
) -> list[dict[str, Any]]:
    """Return a row of the table of runs for each length of phase 1.

    `after` is the largest number of updates after the change, by default the protocol's.
    """
    measures, task = protocol()["measures"], TASKS[name]
    after = protocol()["judging"]["after"] if after is None else after
    least = measures["pole_learnt" if task.kind == engine.POLE else "learnt"]
    learner, rows = Learner(task, method, step_size, seed), []
    earned = np.zeros((0, 2))
    for length in lengths:
        missing = length - len(earned) * engine.WINDOW
        earned = np.concatenate([earned, learner.learn(missing, 0)])
        end = _level(task, earned[-measures["tail"] // engine.WINDOW :])
        updates, censored = recovery(learner.copy(), after)
        outcome = (length, end, end >= least, updates, censored)
        values = (name, method, tuned, step_size, seed, *outcome)
        rows.append(dict(zip(JUDGED, values, strict=True)))
    return rows


def critic_turns(
    name: str, method: str, step_size: float, seed: int, length: int, most: int
) -> dict[str, Any]:
    """Return the updates after the change of a chain until the critic prefers the new best end.

    It does so if, in the first state and in all states between it and that end, the action towards
    the end has had the larger value throughout the protocol's window, measured every ten updates. A
    single measurement could be chance.
    """
    learner = Learner(TASKS[name], method, step_size, seed)
    learner.learn(length, 0)
    width = protocol()["measures"]["window"] // engine.WINDOW
    updates = streak = 0
    while updates < most and streak < width:
        learner.learn(engine.WINDOW, 1)
        updates += engine.WINDOW
        left, right = learner.values_of_chain()[:4].T
        streak = streak + 1 if (left > right).all() else 0
    values = (name, method, step_size, seed, length, updates, streak < width)
    return dict(zip(TURNS, values, strict=True))


# All runs


def work_needed() -> list[tuple[Any, ...]]:
    """Return the arguments of `tune` for all runs of the tuning."""
    plan = protocol()
    return [
        (name, method, step_size, seed)
        for name, methods in plan["judging"]["methods"].items()
        for method in methods
        if len(plan["rates"][method]) > 1
        for step_size in plan["rates"][method]
        for seed in plan["tuning"]["seeds"]
    ]


def best_step_sizes(rows: Iterable[dict[str, Any]], name: str, method: str) -> dict[str, float]:
    """Return a method's step sizes of the largest mean reward in phase 1, and in both phases."""
    plan = protocol()
    sizes = plan["rates"][method]
    if len(sizes) == 1:
        return {"phase 1": sizes[0], "both": sizes[0]}
    tried = [row for row in rows if row["task"] == name and row["method"] == method]
    sums = {
        size: np.sum([[r["before"], r["after"]] for r in tried if r["step_size"] == size], axis=0)
        for size in sizes
    }
    weights = plan["tuning"]["before"], plan["tuning"]["after"]
    return {
        "phase 1": max(sizes, key=lambda size: float(sums[size][0])),
        "both": max(sizes, key=lambda size: float(sums[size] @ weights)),
    }


def _judging(tuning: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the arguments of `judge` for all judged runs."""
    plan = protocol()["judging"]
    jobs: list[tuple[Any, ...]] = []
    for name, methods in plan["methods"].items():
        for method in methods:
            sizes = best_step_sizes(tuning, name, method)
            for seed in plan["seeds"]:
                jobs.append(
                    (name, method, "phase 1", sizes["phase 1"], seed, plan["lengths"][name])
                )
                if sizes["both"] != sizes["phase 1"]:
                    jobs.append((name, method, "both", sizes["both"], seed, plan["lengths_both"]))
    return jobs


def run_all(out: Path, workers: int | None = None, shown: bool | None = None) -> None:
    """Make the runs that a folder does not contain, and write four tables there.

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
    tuning = finish(out / "tuning.jsonl", tune, work_needed(), workers, shown)
    rows = [row for (row,) in tuning]
    _write(out / "tuning.csv", TUNING, rows)
    judged = finish(out / "judged.jsonl", judge, _judging(rows), workers, shown)
    _write(out / "runs.csv", JUDGED, [row for part in judged for row in part])
    _run_later(out, workers, shown)


def _run_later(out: Path, workers: int | None, shown: bool | None) -> None:
    """Make the runs that were decided after the judged ones, and write their tables."""
    seeds = protocol()["judging"]["seeds"]
    later: list[tuple[Any, ...]] = [
        (name, method, "post hoc", step_size, seed, lengths, after)
        for name, method, step_size, lengths, after in POST_HOC
        for seed in seeds
    ]
    judged = finish(out / "post_hoc.jsonl", judge, later, workers, shown)
    _write(out / "post_hoc.csv", JUDGED, [row for part in judged for row in part])
    watched: list[tuple[Any, ...]] = [
        (name, method, step_size, seed, length, most)
        for name, method, step_size, length, most in CRITICS
        for seed in seeds
    ]
    turns = finish(out / "critics.jsonl", critic_turns, watched, workers, shown)
    _write(out / "critics.csv", TURNS, [row for (row,) in turns])


def _write(path: Path, columns: Sequence[str], rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with replacing(path) as file:
        file.write(text.getvalue().encode())
