"""The runs of the chapter, which one command makes; stopped, it continues where it was.

`pu_lib.engine.groups` has the updates. ``data/runs.parquet`` has one row a run, ``data/waits.csv``
one row a cell of the table of the mean count.
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pu_lib.arrays import Floats
from pu_lib.engine import groups as engine
from pu_lib.engine.arithmetic import logarithm
from pu_lib.experiments.jekyll_hyde import seed_state
from pu_lib.experiments.jobs import finish
from pu_lib.files import replacing

__all__ = [
    "COLUMNS",
    "WAITS",
    "Cell",
    "Learner",
    "cells",
    "protocol",
    "run_all",
    "run_cell",
    "wait_cell",
]

HERE = Path(__file__).parent
HACK, CORRECT = 0, 1
"""The places of the two answers."""

Cell = tuple[str, str, int, str, float]
"""A change, a method, a group size, "updates" or "certainty", and how many or how much."""

SETTING = ("change", "method", "size", "start", "level")
COLUMNS = (*SETTING, "seed", "before", "regret", "correct", "after", "groups")
WAITS = ("method", "size", "weight", "seen", "eps", "mean", "error", "lost")


@cache
def protocol() -> dict[str, Any]:
    """Return the protocol."""
    parsed: dict[str, Any] = tomllib.loads((HERE / "protocol.toml").read_text("utf-8"))
    return parsed


class Learner:
    """A policy over a few answers and its training.

    Parameters
    ----------
    start : array_like
        The policy at first.
    words : ndarray of uint64
        The state of the random stream (`pu_lib.experiments.jekyll_hyde.seed_state`).
    size : int
        The number of samples of a group.
    **options
        What differs from a step of size 1 along the advantages: the keys of the protocol's methods.
    """

    def __init__(self, start: Floats, words: Any, size: int, **options: Any) -> None:
        self.start = np.asarray(start, dtype=np.float64)
        self._logs = np.array([-logarithm(1.0 / p) for p in self.start])
        self._reset, self._restart = options.get("reset", False), options.get("restart", False)
        entropy = options.get("entropy", 0.0)
        self.settings = engine.Settings(
            advantages=engine.ADVANTAGES.index(options["advantages"]),
            weight=options.get("weight", 1.0),
            size=size,
            mixed=size // options["mixed"] if "mixed" in options else 0,
            draws=options.get("draws", 1),
            k3=options.get("k3", 0.0),
            kl=options.get("kl", 0.0) + entropy,
            adam=options.get("adam", False),
        )
        self._anchor = np.zeros_like(self._logs) if entropy else self._logs
        zeros = np.zeros((2, len(self.start)))
        self._state = engine.State(words, self._logs.copy(), zeros, np.ones(2))
        self._work = engine.new_workspace(len(self.start))

    @property
    def policy(self) -> Floats:
        """The policy after the last call of `improve`."""
        return self._work.pi

    @property
    def jumps(self) -> bool:
        """Whether the method does nothing on groups that agree, so that runs jump over them."""
        return bool(engine.is_silent(self.settings))

    def improve(
        self, pays: list[float], answer: int, level: float, most: float
    ) -> tuple[float, float]:
        """Make updates while the first answers have the rewards `pays` and the others none.

        The last update is the first after which `answer` has at least the probability `level`, or
        the update `most`. The result is the numbers of updates and of groups.
        """
        rewards = np.zeros_like(self.start)
        rewards[: len(pays)] = pays
        problem = engine.Problem(rewards, self.start, self._anchor)
        return engine.improve(self.settings, problem, self._state, self._work, answer, level, most)

    def change(self) -> None:
        """Do what the method does when the verifier changes."""
        if self._reset:
            self._state.moments[:], self._state.powers[:] = 0.0, 1.0
        if self._restart:
            self._state.theta[:] = self._logs


def cells() -> list[Cell]:
    """Return the settings of all runs."""
    plan = protocol()
    return [
        (change, method, size, start, level)
        for change in plan["changes"]
        for method in plan["methods"]
        for size in plan["sizes"]
        for start, levels in plan["starts"].items()
        for level in levels
    ]


def run_cell(change: str, method: str, size: int, start: str, level: float) -> list[list[float]]:
    """Return the last six of `COLUMNS` for each run of a cell.

    `before` are the updates before the change; `regret` and `correct` are measured at the change,
    for a restart before it. `after` and `groups` are the updates and the groups until the correct
    answer has probability one half: infinite if a run is lost, NaN if it was never so certain.
    """
    return [
        run_once(change, method, size, start, level, seed) for seed in range(protocol()["seeds"])
    ]


def run_once(
    change: str, method: str, size: int, start: str, level: float, seed: int
) -> list[float]:
    """Return the last six of `COLUMNS` for one run."""
    plan, caps = protocol(), protocol()["caps"]
    words = seed_state(0, "reward hack", seed)
    learner = Learner(plan["reference"], words, size, **plan["methods"][method])
    pays, later = plan["changes"][change]
    if start == "updates":
        before, _ = learner.improve(pays, HACK, 2.0, level)
    else:
        before, _ = learner.improve(pays, HACK, level, caps["before"])
    others = learner.policy[CORRECT + 1 :].sum()
    correct = float(learner.policy[CORRECT])
    regret = float(pays[HACK] * others + (pays[HACK] - pays[CORRECT]) * correct)
    after = groups = math.nan
    if start == "updates" or learner.policy[HACK] >= level:
        learner.change()
        most = caps["after_jumping" if learner.jumps else "after"]
        after, groups = learner.improve(later, CORRECT, 0.5, most)
        if learner.policy[CORRECT] < 0.5:
            after = groups = math.inf
    return [seed, before, regret, correct, after, groups]


def wait_cell(method: str, size: int, weight: float, seen: float) -> list[Any]:
    """Return a row of `WAITS`: the mean count in waits of 1/(G eps), and its standard error."""
    plan = protocol()["waits"]
    eps, answers = seen / size, len(protocol()["reference"])
    policy = np.full(answers, plan["others"] * eps / (answers - 2))
    policy[HACK], policy[CORRECT] = 1 - (1 + plan["others"]) * eps, eps
    counts, lost = np.zeros(plan["runs"]), 0
    for run in range(plan["runs"]):
        words = seed_state(0, "waits", run)
        learner = Learner(policy, words, size, advantages=method, weight=weight)
        counts[run], _ = learner.improve([0.0, 1.0], CORRECT, 0.5, 1e9)
        lost += learner.policy[CORRECT] < 0.5
    scaled = counts * seen
    error = scaled.std(ddof=1) / math.sqrt(len(scaled))
    return [method, size, weight, seen, eps, float(scaled.mean()), float(error), int(lost)]


def run_all(out: Path, workers: int | None = None, shown: bool | None = None) -> None:
    """Make the runs that a folder does not contain, and write two tables there.

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
    plan = protocol()["waits"]
    jobs: list[tuple[Any, ...]] = [
        (method, size, weight, seen)
        for method in plan["methods"]
        for size in plan["sizes"]
        for weight in plan["weights"]
        for seen in plan["seen"]
    ]
    rows = finish(out / "waits.jsonl", wait_cell, jobs, workers, shown)
    with replacing(out / "waits.csv") as file:
        pd.DataFrame(rows, columns=list(WAITS)).to_csv(file, index=False, lineterminator="\n")
    settings = cells()
    parts = finish(out / "runs.jsonl", run_cell, list(settings), workers, shown)
    table = pd.DataFrame(
        [(*cell, *row) for cell, runs in zip(settings, parts, strict=True) for row in runs],
        columns=list(COLUMNS),
    )
    kinds = dict.fromkeys(("change", "method", "start"), "category")
    kinds |= {"size": "int16", "seed": "int16", "level": "float64"}
    kinds |= dict.fromkeys(COLUMNS[6:], "float32")
    with replacing(out / "runs.parquet") as file:
        table.astype(kinds).to_parquet(file, index=False, compression="zstd")
