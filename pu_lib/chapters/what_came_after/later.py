r"""Later updates and measures: mirror ascent on logits, a biased baseline, entropy, divergences.

**Softmax policy mirror ascent (SPMA).** The step is :math:`\pi' = \pi\,(1 + w\,\mathrm{adv})`. With
two actions, a gap of 1 and x the probability of the worse action, learning is
:math:`x' = x\,(1 - w + wx)` and unlearning :math:`x' = x\,(1 + w - wx)`. So the logarithm of x
falls by about :math:`-\log(1-w)` a step and rises by about :math:`\log(1+w)` only.

**A biased baseline.** :math:`(R - b)\,e_A` with the action A and the reward R is an estimate of
the softmax policy gradient if b is the value of the policy. With another b its mean is
:math:`\pi(a)\,(q(a) - b)`.

**Entropy.** If a step changes the logits by :math:`wz`, up to terms of order :math:`w^2`, the
entropy changes by :math:`-w\,\mathrm{Cov}_\pi(\log\pi, z)`, up to terms of order :math:`w^2`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.arrays import Floats
from pu_lib.updates import as_update, greedy_mask, softmax


def mirror_ascent_growth(pi: ArrayLike, q: ArrayLike, weight: float) -> Floats:
    """Return the relative change of each probability in a step of SPMA, along the last axis."""
    policy, values = np.asarray(pi, dtype=np.float64), np.asarray(q, dtype=np.float64)
    mean = np.sum(policy * values, axis=-1, keepdims=True)
    return np.asarray(weight * (values - mean))


def mirror_ascent_step(pi: ArrayLike, q: ArrayLike, weight: float) -> Floats:
    """Return the policy after a step of SPMA; the actions are along the last axis."""
    policy = np.asarray(pi, dtype=np.float64)
    return np.asarray(policy * (1.0 + mirror_ascent_growth(pi, q, weight)))


def spma_count(n: int, weight: float) -> int:
    """Return the number of steps of SPMA that undo n, from one half, with a gap of 1.

    A `ValueError` is raised if the worse action's probability leaves the range of floats.
    """
    pi = np.array([0.5, 0.5])
    for _ in range(n):
        pi = mirror_ascent_step(pi, [1.0, 0.0], weight)
    if not pi[1] > 1e-290:
        raise ValueError(f"n: after {n} steps of weight {weight} a probability is too small.")
    steps = 0
    while pi[1] < 0.5 - 1e-12:
        # 1 - pi[1] is more accurate than pi[0] after many steps
        pi = mirror_ascent_step([1.0 - pi[1], pi[1]], [0.0, 1.0], weight)
        steps += 1
    return steps


def biased_steps_to_half(probability: float, baseline: float, weight: float = 1.0) -> int:
    """Return the mean steps with a baseline that take the worse of two actions to 1/2 or less.

    The values are 0 and 1, and `probability` is that of the first action. With the baseline nan
    the baseline is the value of the policy, and the steps are those of PG-SM.
    """
    theta, q, steps = np.log([probability, 1.0 - probability]), np.array([0.0, 1.0]), 0
    while (pi := softmax(theta))[0] > 0.5 + 1e-12:
        b = pi @ q if math.isnan(baseline) else baseline
        theta, steps = theta + weight * pi * (q - b), steps + 1
    return steps


def entropy(pi: Floats) -> float:
    """Return the entropy of a positive policy."""
    return float(-(pi * np.log(pi)).sum())


def entropy_slope(update: str, pi: Floats, q: Floats) -> float:
    """Return the derivative of the entropy in the weight of a step, at weight 0.

    The parameters of PG-ES (p = 2) have norm 1. DI is at a policy in the interior.
    """
    advantage, n = q - pi @ q, len(pi)
    best = greedy_mask(q).astype(float)
    best /= best.sum()
    if update == "di":
        return float(-((q - q.mean()) * np.log(pi)).sum())
    other = (1.0 - best) / (n - 1)
    logits = {
        "pg-sm": pi * advantage,
        "pg-es": 4.0 * advantage,
        "npg": advantage,
        "spma": advantage,
        "ce": best - pi,
        "mce": (1.0 - pi @ best) * (best - other),
    }[update]
    centred = logits - pi @ logits
    return float(-(pi * np.log(pi) * centred).sum())


def policy_after(update: str, pi: Floats, q: Floats, weight: float) -> Floats:
    """Return the policy after a step of an update of the library, or of SPMA.

    The parameters of PG-ES have norm 1.
    """
    if update == "spma":
        return mirror_ascent_step(pi, q, weight)
    chosen = as_update(update)
    theta = np.sqrt(pi) if update == "pg-es" else chosen.parameters(pi)
    return chosen.policy(chosen.step(theta, q, weight))


def kl(first: Floats, second: Floats) -> float:
    """Return the Kullback-Leibler divergence of two policies; zeros of the first one count as 0."""
    taken = first > 0
    return float((first[taken] * np.log(first[taken] / second[taken])).sum())
