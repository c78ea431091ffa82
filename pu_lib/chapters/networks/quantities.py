r"""Statistics of the runs with networks, as the protocol states them.

A run is judged if it had learnt before the change. Its recovery n' is the number of updates after
the change, or the cap if it has not recovered by then. All statistics are over the seeds of such
runs at the step sizes tuned on phase 1, unless `tuned` names the other tuning.

**Slope.** Least squares of :math:`\log n'` on :math:`\log n_1`, the length of phase 1. Its interval
resamples seeds, each with all its lengths.

**Level.** The interquartile mean: the mean without the lowest and the highest quarter.

**Improvement.** The share of pairs of runs in which one method recovers sooner, ties half, with the
two-sided test of Mann and Whitney and Holm's correction over the methods of a task.

**Post hoc.** Some runs were decided after the judged ones had been seen. They have tables of their
own, and ``tuned="post hoc"`` names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu, t

from pu_lib.arrays import Floats
from pu_lib.chapters.networks.learner import TASKS
from pu_lib.chapters.networks.losses import LOSSES
from pu_lib.chapters.networks.runs import HERE, best_step_sizes, optimal_reward, protocol
from pu_lib.experiments.bootstrap import interquartile_mean

__all__ = [
    "Growth",
    "Improvement",
    "Level",
    "fit_slope",
    "growth",
    "holm",
    "improvement",
    "improvements",
    "interquartile_mean",
    "interval",
    "judged_lengths",
    "lengths",
    "level",
    "methods",
    "optimal_reward",
    "outcomes",
    "post_hoc_table",
    "protocol",
    "ratio",
    "ratio_interval",
    "recoveries",
    "resamples",
    "slope_of_seeds",
    "step_sizes",
    "table",
    "tuning_table",
    "turns",
]

Tuned = Literal["phase 1", "both", "post hoc"]
SEED = 46
"""Seed of the bootstrap."""


@cache
def table() -> pd.DataFrame:
    """Return the judged runs, one row for each run and length of phase 1.

    The columns are `task`, `method`, `tuned` (on phase 1 or on both), `step_size`, `seed`,
    `length`, `end` (the reward before the change as a share of the optimum; for CartPole, the mean
    length of episodes), `learnt`, `recovery` and `censored`.
    """
    return pd.read_csv(HERE / "data" / "runs.csv")


@cache
def post_hoc_table() -> pd.DataFrame:
    """Return the runs decided after the judged ones, with the same columns.

    They are PG-SM at the longest phase 1 with a cap of 60 000 updates, and three methods at other
    step sizes.
    """
    return pd.read_csv(HERE / "data" / "post_hoc.csv")


@cache
def turns() -> pd.DataFrame:
    """Return when the critics of some methods prefer the new best end of the chain of .2 and 1.

    The columns are `task`, `method`, `step_size`, `seed`, `length`, `turned` (updates after the
    change, see `pu_lib.chapters.networks.runs.critic_turns`), `censored`, and `recovery` of the
    same run, for PG-SM with the larger cap. These runs, too, were decided after the judged ones.
    """
    watched = pd.read_csv(HERE / "data" / "critics.csv")
    parts: list[pd.DataFrame] = []
    for method in watched.method.unique():
        runs = watched[watched.method == method]
        tuned: Tuned = "post hoc" if method == "pg-sm" else "phase 1"
        recovered = recoveries("chain .2", method, int(runs.length.iloc[0]), tuned)
        parts.append(runs.merge(recovered[["seed", "recovery"]], on="seed", how="left"))
    return pd.concat(parts, ignore_index=True)


@cache
def tuning_table() -> pd.DataFrame:
    """Return the runs of the tuning, with the mean rewards per step before and after the change."""
    return pd.read_csv(HERE / "data" / "tuning.csv")


def methods(task: str) -> list[str]:
    """Return the methods that are judged on a task."""
    return list(protocol()["judging"]["methods"][task])


def lengths(task: str, tuned: Tuned = "phase 1") -> list[int]:
    """Return the lengths of phase 1 on a task."""
    judging = protocol()["judging"]
    return list(judging["lengths_both"] if tuned == "both" else judging["lengths"][task])


def _runs(task: str, method: str, tuned: Tuned) -> pd.DataFrame:
    runs = post_hoc_table() if tuned == "post hoc" else table()
    return runs[(runs.task == task) & (runs.method == method) & (runs.tuned == tuned)]


def recoveries(
    task: str, method: str, length: int, tuned: Tuned = "phase 1", learnt: bool = True
) -> pd.DataFrame:
    """Return the runs of a method at one length, by default those that had learnt."""
    runs = _runs(task, method, tuned)
    runs = runs[runs.length == length]
    return runs[runs.learnt] if learnt else runs


def resamples(count: int, *stream: int) -> Any:
    """Return the rows of the resamples of a number of seeds, from one of several streams."""
    return np.random.default_rng([SEED, count, *stream]).integers(
        count, size=(protocol()["statistics"]["resamples"], count)
    )


def interval(values: Floats) -> tuple[float, float]:
    """Return the quantiles of resampled values that bound an interval."""
    outside = (1 - protocol()["statistics"]["level"]) / 2
    low, high = np.quantile(values, [outside, 1 - outside])
    return float(low), float(high)


@dataclass(frozen=True)
class Level:
    """The recovery of a method at one length.

    Attributes
    ----------
    runs, learnt, censored : int
        All runs, those that had learnt, and those of them that did not recover.
    mean, low, high : float
        The interquartile mean with its interval; NaN if too few runs had learnt.
    median, average : float
        The median and the mean.
    """

    runs: int
    learnt: int
    censored: int
    mean: float
    low: float
    high: float
    median: float
    average: float

    @property
    def judged(self) -> bool:
        """Whether enough runs had learnt."""
        return bool(self.learnt >= protocol()["statistics"]["least"])


@cache
def level(task: str, method: str, length: int, tuned: Tuned = "phase 1") -> Level:
    """Return the interquartile mean of the recovery at one length, and the counts of runs."""
    runs = recoveries(task, method, length, tuned, learnt=False)
    learnt = runs[runs.learnt]
    times = learnt.recovery.to_numpy(float)
    counts = len(runs), len(learnt), int(learnt.censored.sum())
    if len(learnt) < protocol()["statistics"]["least"]:
        return Level(*counts, *[float("nan")] * 5)
    resampled = np.array([interquartile_mean(times[rows]) for rows in resamples(len(times))])
    middle = float(np.median(times)), float(times.mean())
    return Level(*counts, interquartile_mean(times), *interval(resampled), *middle)


def judged_lengths(task: str, method: str, tuned: Tuned = "phase 1") -> list[int]:
    """Return the lengths of phase 1 at which enough runs of a method had learnt."""
    return [n for n in lengths(task, tuned) if level(task, method, n, tuned).judged]


@dataclass(frozen=True)
class Growth:
    """The slope of log recovery on log length of phase 1.

    Attributes
    ----------
    slope, low, high : float
        The slope with its interval; NaN if fewer than two lengths are judged.
    runs, censored : int
        The runs, and those that did not recover and count as the cap.
    """

    slope: float
    low: float
    high: float
    runs: int
    censored: int

    @property
    def by_protocol(self) -> str:
        """``flat``, ``growing``, ``undecided`` or ``not judged``, by the protocol's rule."""
        limit = protocol()["statistics"]["flat"]
        if np.isnan(self.slope):
            return "not judged"
        if self.low > limit:
            return "growing"
        return "flat" if self.high < limit else "undecided"

    @property
    def verdict(self) -> str:
        """The same, but ``at the cap`` if half of the runs of a method did not recover at all.

        The protocol has no such verdict. It replaces ``flat`` and ``undecided`` only.
        """
        verdict = self.by_protocol
        capped = 0 < self.runs <= 2 * self.censored
        return "at the cap" if capped and verdict in ("flat", "undecided") else verdict


@cache
def growth(task: str, method: str, tuned: Tuned = "phase 1") -> Growth:
    """Return the slope of a method over the lengths at which it is judged."""
    judged = judged_lengths(task, method, tuned)
    if len(judged) < 2:
        return Growth(float("nan"), float("nan"), float("nan"), 0, 0)
    runs = pd.concat([recoveries(task, method, n, tuned) for n in judged])
    slope, resampled = fit_slope(runs, "recovery")
    return Growth(slope, *interval(resampled), len(runs), int(runs.censored.sum()))


def fit_slope(runs: pd.DataFrame, column: str, *stream: int) -> tuple[float, Floats]:
    """Return the slope of the logarithm of a column on that of the length, and of resamples."""
    x, y = np.log(runs.length.to_numpy(float)), np.log(runs[column].to_numpy(float))
    seeds, index = np.unique(runs.seed.to_numpy(), return_inverse=True)
    x = x - x.mean()  # the slope needs no origin
    moments = np.stack([np.ones_like(x), x, y, x * x, x * y])
    sums = np.stack([np.bincount(index, weights, len(seeds)) for weights in moments], axis=1)
    drawn = sums[resamples(len(seeds), *stream)].sum(1)
    slope, *resampled = _slopes(np.stack([sums.sum(axis=0), *drawn]))
    return slope, np.array(resampled)


def slope_of_seeds(task: str, method: str) -> tuple[float, float, float]:
    """Return the mean of the slopes of the single seeds, with a t interval.

    It is not the protocol's interval. It shows how much depends on the kind of interval.
    """
    runs = pd.concat([recoveries(task, method, n) for n in judged_lengths(task, method)])
    slopes = [
        float(np.polyfit(np.log(one.length), np.log(one.recovery), 1)[0])
        for _, one in runs.groupby("seed")
        if len(one) > 1
    ]
    mean, error = np.mean(slopes), np.std(slopes, ddof=1) / np.sqrt(len(slopes))
    low, high = t.interval(protocol()["statistics"]["level"], len(slopes) - 1, mean, error)
    return float(mean), float(low), float(high)


def _slopes(sums: Floats) -> list[float]:
    """Return the slopes of least squares from the sums of 1, x, y, x^2 and xy."""
    n, x, y, xx, xy = sums.T
    return [float(slope) for slope in (n * xy - x * y) / (n * xx - x * x)]


@dataclass(frozen=True)
class Improvement:
    """How often a method recovers sooner than another.

    Attributes
    ----------
    sooner : float
        The share of pairs of runs, ties half.
    pairs, wins : int
        The pairs, and those in which the method is strictly sooner.
    p : float
        The two-sided test's p, without a correction.
    """

    sooner: float
    pairs: int
    wins: int
    p: float


def improvement(task: str, method: str, over: str, length: int) -> Improvement | None:
    """Return the probability that a method recovers sooner; None if one of them is not judged."""
    if not (level(task, method, length).judged and level(task, over, length).judged):
        return None
    times = recoveries(task, method, length).recovery.to_numpy(float)
    other = recoveries(task, over, length).recovery.to_numpy(float)
    wins = int((times[:, None] < other).sum())
    ties = int((times[:, None] == other).sum())
    pairs = times.size * other.size
    with np.errstate(all="ignore"):
        p = float(mannwhitneyu(times, other, method="asymptotic").pvalue)
    return Improvement((wins + ties / 2) / pairs, pairs, wins, 1.0 if np.isnan(p) else p)


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """Return the p-values after Holm's correction.

    Examples
    --------
    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    corrected, largest = {}, 0.0
    for rank, (name, p) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(values) - rank) * p))
        corrected[name] = largest
    return corrected


@cache
def improvements(
    task: str, over: str, length: int | None = None
) -> dict[str, tuple[Improvement, float]]:
    """Return the improvement of each method of a task and its corrected p, at the longest length.

    Parameters
    ----------
    task : str
    over : {"pg-sm", "greedy"}
    length : int, optional
        Another length of phase 1.
    """
    length = lengths(task)[-1] if length is None else length
    improved = {
        method: better
        for method in methods(task)
        if method != over and (better := improvement(task, method, over, length)) is not None
    }
    corrected = holm({method: better.p for method, better in improved.items()})
    return {method: (better, corrected[method]) for method, better in improved.items()}


def ratio(
    task: str, length: int, method: str = "ce", tuned: Literal["phase 1", "post hoc"] = "phase 1"
) -> tuple[float, bool]:
    """Return the ratio of PG-SM's recovery to a method's, and whether it is only a lower bound.

    It is the ratio of interquartile means; NaN if one of the two is not judged. With
    ``tuned="post hoc"`` the runs of PG-SM are those with the larger cap.
    """
    slow, fast = level(task, "pg-sm", length, tuned), level(task, method, length)
    return slow.mean / fast.mean, slow.censored > 0


def ratio_interval(task: str, method: str, over: str, length: int) -> tuple[float, float]:
    """Return the interval of the ratio of the interquartile means of two methods' recoveries.

    It resamples the runs of both.
    """
    times, other = (recoveries(task, m, length).recovery.to_numpy(float) for m in (method, over))
    rng = np.random.default_rng(SEED)
    resamples = protocol()["statistics"]["resamples"]
    return interval(
        np.array(
            [
                interquartile_mean(rng.choice(times, times.size))
                / interquartile_mean(rng.choice(other, other.size))
                for _ in range(resamples)
            ]
        )
    )


def step_sizes(task: str, method: str) -> dict[str, float]:
    """Return the step sizes tuned on phase 1 and on both phases."""
    rows: Any = tuning_table().to_dict("records")
    return best_step_sizes(rows, task, method)


def outcomes() -> dict[str, dict[str, str]]:
    """Return the outcome of each sentence of the protocol's rules on each task."""
    by_sentence: dict[str, dict[str, str]] = {}
    for task in protocol()["judging"]["methods"]:
        better = improvements(task, "pg-sm")
        cells = {"PG-SM's recovery grows": growth(task, "pg-sm").verdict}
        for method in ("ce", "di fit", "greedy"):
            cells[f"{LOSSES[method].label} stays flat"] = growth(task, method).verdict
        for method in ("ce", "di fit", "greedy"):
            cells[f"{LOSSES[method].label} before PG-SM in all pairs"] = "not judged"
            if method in better:
                improved, p = better[method]
                cells[f"{LOSSES[method].label} before PG-SM in all pairs"] = (
                    f"{improved.wins} of {improved.pairs}, p = {p:.1g}"
                )
        ratios = []
        for length in lengths(task):
            times, bound = ratio(task, length)
            if length >= 2000 and not np.isnan(times):
                ratios.append(f"{'≥ ' if bound else ''}{times:.1f}")
        cells["PG-SM : CE from 1.4 to 14"] = ", ".join(ratios) or "not judged"
        control = improvements(task, "greedy")
        for method in ("ce", "di fit"):
            cells[f"{LOSSES[method].label} against greedy"] = (
                f"P = {control[method][0].sooner:.2f}, p = {control[method][1]:.1g}"
                if method in control
                else "not judged"
            )
        soft, plain = growth(task, "soft neurd").verdict, growth(task, "neurd").verdict
        cells["soft NeuRD flat, NeuRD growing"] = f"{soft}, {plain}"
        cells["PG-SM with entropy not flat"] = growth(task, "pg-sm entropy").verdict
        for sentence, cell in cells.items():
            by_sentence.setdefault(sentence, {})[TASKS[task].title] = cell
    return by_sentence
