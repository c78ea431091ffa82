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
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.arrays import Floats
from pu_lib.claims.formulas import Formula, ceil, exp, formula, log

__all__ = [
    "LOG_ODDS_STEPS",
    "advantages",
    "best_step",
    "centred_step",
    "count_error",
    "grpo_step",
    "log_odds_step",
    "maxrl_step",
    "mean_count",
    "rloo_step",
    "waits",
]


def advantages(name: str, rewards: ArrayLike) -> Floats:
    """Return the advantages of the samples of groups.

    Parameters
    ----------
    name : {"RLOO", "Dr. GRPO", "GRPO", "MaxRL", "rejection sampling", "best of the group"}
        RLOO subtracts from each reward the mean of the other rewards, Dr. GRPO the mean of the
        group. GRPO divides the difference by the standard deviation (with G - 1 in the variance, as
        TRL and verl do), MaxRL by the mean. Rejection sampling is the mean gradient of the
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
        return centred * size / (size - 1)
    if name == "Dr. GRPO":
        return centred
    if name == "GRPO":
        deviation = np.sqrt((centred**2).sum(axis=-1, keepdims=True) / (size - 1))
        return centred / np.where(agree, 1.0, deviation)
    if name == "best of the group":
        best = (paid == largest) & ~agree
        return best * size / np.maximum(best.sum(axis=-1, keepdims=True), 1)
    return (centred if name == "MaxRL" else paid) / np.where(mean == 0, 1.0, mean)


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
