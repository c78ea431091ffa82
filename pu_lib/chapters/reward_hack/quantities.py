r"""Groups of samples after the verifier changed: advantages, steps, mean counts, and the runs.

A policy is nearly certain of an answer, the hack, and gives the correct answer the probability
:math:`\varepsilon`. The verifier, which used to pay the hack, now pays the correct answer alone. An
update draws a group of G answers; the count n' is the number of updates until the correct answer
has probability one half.

**The log-odds of two answers.** A group with k correct and G - k failing samples changes the
log-odds of the correct answer by :math:`s_k`. If the advantages add up to zero,
:math:`s_k = \frac{2w}G kA^+`, where :math:`A^+` is the advantage of a correct sample. Under
rejection sampling and best of the group :math:`s_k = 2w(1-p)` at the probability p. A group that
agrees changes nothing, except that rejection sampling also steps if all samples are correct. Let
:math:`s = s_1`, for the last two methods :math:`2w`.

**The mean count.** The wait for a group that does not agree is about :math:`1/(G\varepsilon)`
updates. It shortens by the factor :math:`e^{-s}` each time, so that n' is on average about
:math:`\frac1{G\varepsilon}\sum_ke^{-ks} = \frac1{G\varepsilon(1-e^{-s})}`. `count_error` bounds the
error for two answers. If s is small, :math:`Gs = 2w\varphi'(0)` with the factor of the expected
step (`pu_lib.chapters.stochastic_updates.quantities.group_factor`), and the mean count is that of
the expected steps.

**A hack that still pays.** Let the hack pay :math:`\rho<1` and the correct answer 1, with the
probabilities h and c. A step of the exact gradient changes the log-odds of the correct answer
against the hack by :math:`w\,(c\,(1-J)-h\,(\rho-J))` with the mean reward
:math:`J=\rho h+c`. Failing answers lower J and so pay the hack. `gradient_steps` counts the steps.

**The runs.** ``data/runs.parquet`` has the runs of the protocol, ``data/waits.csv`` the mean
counts; medians are over all runs of a cell that reached its certainty.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import binom

from pu_lib.arrays import Floats
from pu_lib.chapters.reward_hack.runs import HERE, protocol
from pu_lib.claims.formulas import Formula, ceil, exp, formula, log
from pu_lib.experiments.bootstrap import interval, lower_quantile, resampled_quantile

__all__ = [
    "LOG_ODDS_STEPS",
    "Summary",
    "advantages",
    "best_step",
    "centred_step",
    "count_error",
    "exact_mean_count",
    "gradient_steps",
    "grpo_step",
    "log_odds_step",
    "lost_by",
    "maxrl_step",
    "mean_count",
    "protocol",
    "rloo_step",
    "runs_of",
    "share_falls",
    "summary",
    "table",
    "waits",
    "waits_table",
]


def advantages(name: str, rewards: ArrayLike) -> Floats:
    """Return the advantages of the samples of groups.

    Parameters
    ----------
    name : {"RLOO", "Dr. GRPO", "GRPO", "MaxRL", "rejection sampling", "best of the group"}
        RLOO subtracts from each reward the mean of the other rewards, Dr. GRPO the mean of the
        group. GRPO divides the difference by the standard deviation (with G - 1 in the variance),
        MaxRL by the mean. Rejection sampling is the mean gradient of the
        cross-entropy, weighted by reward; best of the group is that of the samples with the largest
        reward, if rewards differ.
    rewards : array_like, shape (..., G)
        The rewards of each group, G >= 2.

    Returns
    -------
    ndarray, shape (..., G)
        Advantages; an advantage of 0/0 is zero.

    Raises
    ------
    ValueError
        If there is no such method.

    Examples
    --------
    >>> advantages("MaxRL", [1, 0, 0, 0])
    array([ 3., -1., -1., -1.])
    """
    if name not in LOG_ODDS_STEPS:
        raise ValueError(f"name: expected one of {', '.join(LOG_ODDS_STEPS)}; got {name!r}.")
    paid = np.asarray(rewards, dtype=np.float64)
    size = paid.shape[-1]
    mean, largest = paid.mean(axis=-1, keepdims=True), paid.max(axis=-1, keepdims=True)
    agree = largest == paid.min(axis=-1, keepdims=True)
    centred = np.where(agree, 0.0, paid - mean)
    if name == "RLOO":
        return np.asarray(centred * size / (size - 1))
    if name == "Dr. GRPO":
        return centred
    if name == "GRPO":
        deviation = np.sqrt((centred**2).sum(axis=-1, keepdims=True) / (size - 1))
        return np.asarray(centred / np.where(agree, 1.0, deviation))
    if name == "best of the group":
        best = (paid == largest) & ~agree
        return np.asarray(best * size / np.maximum(best.sum(axis=-1, keepdims=True), 1))
    return np.asarray((centred if name == "MaxRL" else paid) / np.where(mean == 0, 1.0, mean))


@formula
def rloo_step(w: Any, size: Any) -> Any:
    """Return the step of the log-odds by one correct sample in a group, under RLOO."""
    return 2 * w / size


@formula
def centred_step(w: Any, size: Any) -> Any:
    """Return the step of the log-odds by one correct sample in a group, under Dr. GRPO."""
    return 2 * w * (size - 1) / size**2


@formula
def grpo_step(w: Any, size: Any) -> Any:
    """Return the step of the log-odds by one correct sample in a group, under GRPO."""
    return 2 * w * (size - 1) / size**1.5


@formula
def maxrl_step(w: Any, size: Any) -> Any:
    """Return the step of the log-odds by one correct sample in a group, under MaxRL."""
    return 2 * w * (size - 1) / size


@formula
def best_step(w: Any, size: Any) -> Any:
    """Return the step of the log-odds under rejection sampling and best of the group, near 0."""
    return 2 * w


LOG_ODDS_STEPS: dict[str, Formula] = {
    "RLOO": rloo_step,
    "Dr. GRPO": centred_step,
    "GRPO": grpo_step,
    "MaxRL": maxrl_step,
    "rejection sampling": best_step,
    "best of the group": best_step,
}
"""The step s of the log-odds by one correct sample in a group, for each method."""


def log_odds_step(name: str, size: int, weight: float = 1.0) -> float:
    """Return the step s of the log-odds by one correct sample in a group of `size` samples."""
    return float(LOG_ODDS_STEPS[name](weight, size))


@formula
def waits(s: Any) -> Any:
    """Return the mean count in waits of 1/(G eps) updates, to first order in eps."""
    return 1 / (1 - exp(-s))


def mean_count(name: str, eps: float, size: int, weight: float = 1.0) -> float:
    """Return the mean number of updates back to one half, to first order in `eps`.

    Parameters
    ----------
    name : str
        One of the methods of `advantages`.
    eps : float
        The probability of the correct answer at the change.
    size : int
        The number of samples of a group.
    weight : float
        The step size.
    """
    return float(waits(log_odds_step(name, size, weight))) / (size * eps)


@formula
def count_error(eps: Any, size: Any, s: Any) -> Any:
    """Return the bound on the error of `waits` for two answers and eps of at most 1/4."""
    return 2 * eps * (size + 2) * (1 + ceil(log((1 - eps) / eps) / s))


def exact_mean_count(name: str, eps: float, size: int, weight: float = 1.0) -> float:
    """Return the mean count for two answers as a sum over all sequences of groups.

    The log-odds only rise, so the probabilities of their values are passed upwards, lowest first.
    Values that agree to nine digits are one value, and probabilities below 1e-13 are dropped.
    """
    ks = np.arange(1, size + 1)
    rewards = (np.arange(size) < ks[:, np.newaxis]).astype(float)
    paid = advantages(name, rewards)
    correct, failing = (paid * rewards).sum(axis=1), (paid * (1 - rewards)).sum(axis=1)
    steps_at = (correct != 0) | (failing != 0)
    start = math.log(eps / (1 - eps))
    chances, heap, total = {round(start, 9): 1.0}, [round(start, 9)], 0.0
    while heap:
        x = heapq.heappop(heap)
        chance = chances.pop(x)
        if x >= 0 or chance < 1e-13:
            continue
        p = 1 / (1 + math.exp(-x))
        law = np.where(steps_at, binom.pmf(ks, size, p), 0.0)
        total += chance / law.sum()
        tilt = (1 - 2 * p) * (correct + failing)
        rises = weight / size * (correct - failing + tilt)
        for rise, share in zip(rises.tolist(), (law / law.sum() * chance).tolist(), strict=True):
            if share > 0:
                after = round(x + rise, 9)
                if after not in chances:
                    heapq.heappush(heap, after)
                chances[after] = chances.get(after, 0.0) + share
    return total


def share_falls(hack: float, correct: float, pays: float = 0.5) -> bool:
    """Return whether an exact gradient step lowers the odds of the correct answer to the hack.

    The arguments are the probabilities of the two answers and the reward of the hack.
    """
    mean = pays * hack + correct
    return correct * (1 - mean) < hack * (pays - mean)


def gradient_steps(
    hack: float,
    correct: float,
    failing: float,
    pays: float = 0.5,
    weight: float = 1.0,
    n_failing: int = 6,
    most: int = 3_000_000,
) -> int:
    """Return the steps of the exact gradient until the correct answer has probability one half.

    Parameters
    ----------
    hack, correct, failing : float
        The probabilities of the hack, of the correct answer, and of all failing answers together,
        which are equally probable.
    pays : float
        The reward of the hack; that of the correct answer is 1.
    weight : float
        The step size.
    n_failing : int
        The number of failing answers.
    most : int
        The largest number of steps.

    Raises
    ------
    ValueError
        If more than `most` steps are needed.
    """
    h, c, f = hack, correct, failing
    for n in range(most):
        if c >= 0.5:
            return n
        mean = pays * h + c
        h *= math.exp(weight * h * (pays - mean))
        c *= math.exp(weight * c * (1 - mean))
        f *= math.exp(-weight * f / n_failing * mean)
        total = h + c + f
        h, c, f = h / total, c / total, f / total
    raise ValueError(f"the correct answer does not reach probability 1/2 in {most} steps.")


# The runs


@cache
def table() -> pd.DataFrame:
    """Return the committed runs, one row each, with the columns `pu_lib...runs.COLUMNS`."""
    return pd.read_parquet(HERE / "data" / "runs.parquet")


@cache
def waits_table() -> pd.DataFrame:
    """Return the measured mean counts, one row a cell, with the columns `pu_lib...runs.WAITS`."""
    return pd.read_csv(HERE / "data" / "waits.csv")


def runs_of(change: str, method: str, size: int, start: str, level: float) -> pd.DataFrame:
    """Return the committed runs of a cell, in the order of their seeds."""
    rows = _cells().get((change, method, size, start, float(level)))
    if rows is None:
        raise ValueError(f"there are no runs of {change}, {method}, {size}, {start}, {level}.")
    return rows


@cache
def _cells() -> dict[Any, pd.DataFrame]:
    keys = ["change", "method", "size", "start", "level"]
    return dict(iter(table().groupby(keys, observed=True, sort=False)))


@dataclass(frozen=True)
class Summary:
    """The runs of a cell.

    Attributes
    ----------
    runs, reached, lost : int
        All runs, those that reached the certainty of the cell, and those of them that are lost.
    before, regret, correct : float
        Medians of the updates before the change, and of the regret and the probability of the
        correct answer at the change.
    after, low, high : float
        The median of the updates until half and its bootstrap interval; infinite for lost runs.
    samples : float
        The median of the samples until half.
    waits : float
        The mean over the runs of the samples times the probability of the correct answer at the
        change, infinite if a run is lost.
    """

    runs: int
    reached: int
    lost: int
    before: float
    regret: float
    correct: float
    after: float
    low: float
    high: float
    samples: float
    waits: float


@cache
def summary(change: str, method: str, size: int, start: str, level: float) -> Summary:
    """Return the summary of a cell; medians are NaN if no run reached its certainty."""
    every = runs_of(change, method, size, start, level)
    rows = every[every.after.notna()]
    after = rows.after.to_numpy(float)
    low, high = math.nan, math.nan
    if len(rows):
        low, high = map(float, interval(resampled_quantile(after[:, np.newaxis], 0.5)[:, 0]))

    def median(values: pd.Series) -> float:
        return float(lower_quantile(values.to_numpy(float), 0.5)) if len(values) else math.nan

    samples = rows.groups.astype(float) * size
    return Summary(
        runs=len(every),
        reached=len(rows),
        lost=int(np.isinf(after).sum()),
        before=median(rows.before),
        regret=median(rows.regret),
        correct=median(rows.correct),
        after=median(rows.after),
        low=low,
        high=high,
        samples=median(samples),
        waits=float((samples * rows.correct.astype(float)).mean()) if len(rows) else math.nan,
    )


def lost_by(change: str, method: str, size: int, start: str, level: float, updates: int) -> float:
    """Return the share of the runs of a cell that are not back after a number of updates."""
    after = runs_of(change, method, size, start, level).after.dropna()
    return float((after > updates).mean())
