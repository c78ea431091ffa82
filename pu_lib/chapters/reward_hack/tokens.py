"""A policy that writes tokens, with parameters that all prompts share, unlearns a reward hack.

`pu_lib.engine.tokens` has the network and the updates. A run trains on a verifier that the hack
passes; then the verifier changes, and the run goes on until each prompt's correct answer has
probability one half, or for the protocol's cap. ``data/tokens.csv`` has all runs.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pu_lib.arrays import Floats
from pu_lib.engine import tokens as engine
from pu_lib.engine.groups import ADVANTAGES
from pu_lib.experiments.bootstrap import interval, lower_quantile, resampled_quantile
from pu_lib.experiments.jekyll_hyde import seed_state
from pu_lib.experiments.jobs import finish
from pu_lib.files import replacing

__all__ = [
    "COLUMNS",
    "Summary",
    "Writer",
    "cells",
    "protocol",
    "run_all",
    "run_once",
    "summary",
    "table",
]

HERE = Path(__file__).parent
COLUMNS = (
    "change", "n", "method", "seed", "regret", "correct", "first", "half", "samples", "all",
    "solved",
)  # fmt: skip


@cache
def protocol() -> dict[str, Any]:
    """Return the protocol of the runs."""
    parsed: dict[str, Any] = tomllib.loads((HERE / "protocol_tokens.toml").read_text("utf-8"))
    return parsed


class Writer:
    """A policy that writes tokens, and its training.

    Parameters
    ----------
    seed : int
        The seed of the reference, of the correct answers and of the samples.
    **options
        The keys of the protocol's methods.
    """

    def __init__(self, seed: int, **options: Any) -> None:
        self._options = options
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        deviation = np.full(engine.ROWS, 0.5)
        deviation[-engine.TOKENS - 1 :] = 0.1  # of the last layer
        parameters = (2 * rng.random((engine.ROWS, engine.UNITS)) - 1) * math.sqrt(3)
        parameters *= deviation[:, None]
        parameters[-1, engine.TOKENS :] = 0.0
        self._work = engine.new_workspace()
        engine.write_policy(parameters, self._work)
        self._reference = parameters.copy()
        self.state = engine.TokenState(
            words=seed_state(seed, "tokens", 0),
            counts=np.zeros(2, np.int64),
            answers=rng.integers(1, engine.TOKENS, (engine.PROMPTS, 2)),
            parameters=parameters,
            moments=np.zeros((2, *parameters.shape)),
            powers=np.ones(2),
            reference=self._work.policy.copy(),
        )

    def settings(self, rewards: Sequence[float]) -> engine.Settings:
        """Return the settings of the updates while the hack and the answer pay `rewards`."""
        options = self._options
        return engine.Settings(
            advantages=ADVANTAGES.index(options["advantages"]),
            k3=options.get("k3", 0.0),
            entropy=options.get("entropy", 0.0),
            draws=options.get("draws", 1),
            hack_reward=rewards[0],
            correct_reward=rewards[1],
        )

    def learn(self, updates: int, rewards: Sequence[float]) -> None:
        """Make a number of updates while the hack and the correct answer pay `rewards`."""
        engine.train(self.settings(rewards), self.state, self._work, updates)

    def change(self) -> None:
        """Do what the method does at the change, and count samples from here on."""
        restart = self._options.get("restart", False)
        if restart or self._options.get("reset", False):
            self.state.moments[:], self.state.powers[:] = 0.0, 1.0
        if restart:
            self.state.parameters[:] = self._reference
        self.state.counts[:] = 0

    def recover(self, rewards: Sequence[float]) -> tuple[int, int, int, int]:
        """Train as `pu_lib.engine.tokens.recover`; return its result and the prompts solved."""
        measures, correct = protocol()["measures"], np.zeros(engine.PROMPTS)
        half, samples, every = engine.recover(
            self.settings(rewards), self.state, self._work,
            measures["every"], measures["cap"], correct,
        )  # fmt: skip
        return half, samples, every, int((correct >= 0.5).sum())

    def probabilities(self) -> tuple[Floats, Floats]:
        """Return, for each prompt, the probabilities of no hack and of the correct answer."""
        engine.write_policy(self.state.parameters, self._work)
        size, policy = engine.TOKENS, self._work.policy
        pairs = policy[:, 0, :, None] * policy[:, 1 : 1 + size]
        sequences = pairs[..., None] * policy[:, 1 + size :].reshape(-1, size, size, size)
        honest = sequences[:, 1:, 1:, 1:]
        rows = np.arange(engine.PROMPTS)
        second, third = self.state.answers.T - 1
        return honest.sum(axis=(1, 2, 3)), honest[rows, :, second, third].sum(axis=1)


def cells() -> list[tuple[str, int, str]]:
    """Return the settings of the table: the change, n and the method."""
    return [
        (change, n, method)
        for change, n in protocol()["conditions"]
        for method in protocol()["methods"]
    ]


def run_once(change: str, n: int, method: str, seed: int) -> dict[str, Any]:
    """Return the row of the table for one run.

    `regret`, on the rewards before the change, and `correct` are means over the prompts at the
    change, for a restart before it. `first` are the samples up to the first correct one; `half` and
    `samples` are the updates and the samples until the mean probability of the correct answers is
    one half, and `all` the updates until it is one half at every prompt; None if that does not
    happen. `solved` are the prompts whose correct answer has one half at the end.
    """
    plan = protocol()
    before, after = plan["changes"][change]
    writer = Writer(seed, **plan["methods"][method])
    writer.learn(n, before)
    honest, correct = writer.probabilities()
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {"change": change, "n": n, "method": method, "seed": seed}
    regret = before[0] * honest.mean() - before[1] * correct.mean()
    row |= {"regret": f"{regret:.4e}", "correct": f"{correct.mean():.4e}"}
    writer.change()
    half, samples, every, solved = writer.recover(after)
    first = int(writer.state.counts[1])
    counts = {"first": first or -1, "half": half, "samples": samples, "all": every}
    return row | {name: None if x == -1 else x for name, x in counts.items()} | {"solved": solved}


def run_all(out: Path, workers: int | None = None, shown: bool | None = None) -> None:
    """Make the runs that a folder does not contain, and write their table there.

    The parameters are those of `pu_lib.chapters.reward_hack.runs.run_all`.
    """
    out.mkdir(parents=True, exist_ok=True)
    jobs: list[tuple[Any, ...]] = [
        (*cell, seed) for cell in cells() for seed in range(protocol()["measures"]["seeds"])
    ]
    rows = [row for (row,) in finish(out / "tokens.jsonl", run_once, jobs, workers, shown)]
    columns = pd.DataFrame(rows, columns=list(COLUMNS))
    whole = dict.fromkeys(("first", "half", "samples", "all"), "Int64")
    with replacing(out / "tokens.csv") as file:
        columns.astype(whole).to_csv(file, index=False, lineterminator="\n")


@cache
def table() -> pd.DataFrame:
    """Return the committed runs, one row each, with the columns of `run_once`."""
    return pd.read_csv(HERE / "data" / "tokens.csv")


@dataclass(frozen=True)
class Summary:
    """The runs of a cell.

    Attributes
    ----------
    runs, lost : int
        All runs, and those in which the mean over the prompts does not reach one half.
    regret, correct : float
        Medians at the change.
    half, low, high : float
        The median of the updates until half, with its 95 % bootstrap interval; infinite for lost
        runs.
    samples, first : float
        The medians of the samples until half, and up to the first correct one.
    every : float
        The median of the updates until every prompt is solved.
    solved : tuple of int
        How many runs end with 0, 1, 2, 3 and 4 prompts solved.
    """

    runs: int
    lost: int
    regret: float
    correct: float
    half: float
    low: float
    high: float
    samples: float
    first: float
    every: float
    solved: tuple[int, ...]


@cache
def summary(change: str, n: int, method: str) -> Summary:
    """Return the summary of the committed runs of a cell."""
    rows = table()
    rows = rows[(rows.change == change) & (rows.n == n) & (rows.method == method)]
    times = rows.half.fillna(math.inf).to_numpy(float)
    low, high = interval(resampled_quantile(times[:, None], 0.5)[:, 0])

    def median(column: str) -> float:
        return float(lower_quantile(rows[column].fillna(math.inf).to_numpy(float), 0.5))

    return Summary(
        runs=len(rows),
        lost=int(np.isinf(times).sum()),
        regret=median("regret"),
        correct=median("correct"),
        half=median("half"),
        low=float(low),
        high=float(high),
        samples=median("samples"),
        first=median("first"),
        every=median("all"),
        solved=tuple(int((rows.solved == k).sum()) for k in range(engine.PROMPTS + 1)),
    )
