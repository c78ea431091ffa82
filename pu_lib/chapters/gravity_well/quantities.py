r"""The condition that the best action gains the most probability (paper, section 3.3).

One state has the policy :math:`\pi` and the values :math:`q` with greedy action :math:`a_q`. A step
of weight :math:`w = \eta\,d(s) > 0` leads to the policy :math:`\pi'`, with the increase
:math:`\Delta = \pi' - \pi`. The paper's condition is :math:`a_q \in \arg\max_a \Delta(a)`. Its
*margin* here is :math:`\Delta(a_q) - \max_{b \ne a_q} \Delta(b)`, which is negative if the
condition fails.

**In policy space.** With :math:`h` the step of the parameters, the softmax updates give
:math:`\pi'(a) \propto \pi(a) e^{h_a}`, escort from parameters of norm one :math:`\pi'(a) \propto
|\pi(a)^{1/p} + h_a|^p`, and `di` projects :math:`\pi + wq` on the simplex. `certified_increase`
evaluates these formulas in Arb balls, so the sign of a margin is proved.

**The condition holds for `di`, by Lemma 10.** The projection of :math:`\theta + \delta` is
:math:`\max(0, \theta_k + \delta_k - \lambda)`, and :math:`\lambda \le \delta_\star = \max_k
\delta_k`, because otherwise every positive coordinate would shrink and no coordinate would grow.
Hence :math:`\theta'_k - \theta_k = \max(-\theta_k, \delta_k - \lambda) \le \delta_\star - \lambda`,
which is the gain of the coordinate with the largest :math:`\delta`. `project_integers` checks this
in integers: a point with denominator D has a projection with denominator kD.

**The condition holds for `mce`.** The probabilities of all other actions are multiplied by the same
factor, which is below one.

**The condition fails for `pg-sm`.** At some policies even :math:`\pi(a_q)` decreases, for every
weight: :math:`\pi(a_q)/\pi'(a_q) = F(w) = \sum_j \pi(j) e^{w(h_j - h_{a_q})}` (h for unit weight)
is convex with :math:`F(0) = 1`, so it exceeds one for all :math:`w > 0` if :math:`F'(0) = \sum_j
\pi(j) h_j - h_{a_q} \ge 0` and F is not constant.

**The condition fails for `pg-es` with every** :math:`p \ge 1`. For :math:`p = 2`, if no parameter
changes sign, :math:`\pi(a_q)` never decreases: with :math:`k = 2w/\|\theta\|^2` and :math:`V =
\sum_j \pi(j)\,\mathrm{adv}(j)^2`, :math:`\pi'(a) = \pi(a) (1 + k\,\mathrm{adv}(a))^2 / (1 + k^2
V)`, and :math:`V \le -\max\mathrm{adv}\cdot\min\mathrm{adv}` (Bhatia and Davis).

**The condition fails for `pg-sm` wherever it fails for `pg-es`**, if p = 2 and the weight is
infinitesimal. With :math:`h = \pi\,\mathrm{adv}`, escort gives :math:`\Delta(a) \propto h_a` and
softmax :math:`\Delta(a) \propto \pi(a)(h_a - \sum_j\pi(j)h_j)`. If :math:`h_b > h_{a_q}`, then
:math:`\pi(b) > \pi(a_q)`, because :math:`\mathrm{adv}(b) \le \mathrm{adv}(a_q)`; so either
:math:`a_q` loses probability under softmax, or b gains more than :math:`a_q`.

**The condition fails for `ce`** with three or more actions, but :math:`\pi(a_q)` never decreases,
and the most probable action, if it is not :math:`a_q`, never gains.

Escape times are in `pu_lib.chapters.gravity_well.escape`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib import kernels
from pu_lib.exact import Number, ball, certified, exact, sign
from pu_lib.updates import EscortPolicyGradient, Update, as_update

__all__ = [
    "CE_EXAMPLE",
    "ESCORT_EXAMPLE",
    "FIVE_ACTION_EXAMPLE",
    "SOFTMAX_EXAMPLE",
    "UNIFORM_EXAMPLE",
    "Example",
    "certified_change",
    "certified_increase",
    "certified_margin",
    "clip_and_renormalise",
    "condition_map",
    "convexity_slope",
    "escort_remainders",
    "escort_step_exact",
    "failing_share",
    "increase",
    "margin",
    "parameters",
    "project_integers",
    "simplex_grid",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Ball = Any
"""An Arb ball; python-flint has no type stubs."""

ROUNDING = 1e-12
"""Violations of the condition below this margin, a few thousand rounding errors, do not count.

Violations that a claim depends on are certified in ball arithmetic instead.
"""


# One step, seen in policy space


@dataclass(frozen=True)
class Example:
    """A policy with positive entries and action values, both exact numbers."""

    pi: tuple[Number, ...]
    q: tuple[Number, ...]

    def __post_init__(self) -> None:
        policy = [exact(x) for x in self.pi]
        if len(policy) != len(self.q) or len(policy) < 2:
            raise ValueError(
                f"pi, q: expected the same two or more actions, got {self.pi} and {self.q}."
            )
        if min(policy) <= 0 or sum(policy) != 1:
            raise ValueError(f"pi: expected positive numbers that sum to one, got {self.pi}.")

    @property
    def greedy(self) -> int:
        """The index of the greedy action, which is the first of several tied actions."""
        values = [exact(x) for x in self.q]
        return values.index(max(values))

    def floats(self) -> tuple[Floats, Floats]:
        """Return the policy and the values in floating point."""
        return (
            np.array([float(exact(x)) for x in self.pi]),
            np.array([float(exact(x)) for x in self.q]),
        )


SOFTMAX_EXAMPLE = Example(("0.01", "0.6", "0.39"), (1, "0.9", 0))
"""Under `pg-sm` the greedy action loses and the second best action gains, for every weight."""

ESCORT_EXAMPLE = Example(("0.01", "0.98", "0.01"), (0, "0.999999", 1))
"""The example constructed in the paper's proof for `pg-es`, with numbers inserted."""

FIVE_ACTION_EXAMPLE = Example(
    ("0.49", "0.01", "0.01", "0.01", "0.48"), (1, "0.99", "0.99", "0.99", 0)
)
"""Under `pg-es` with p = 1 three rare, nearly best actions gain, and the best action loses."""

CE_EXAMPLE = Example(("0.001", "0.3", "0.699"), (1, 0, 0))
"""Under `ce` the second action gains more than the greedy action, and the third loses."""

UNIFORM_EXAMPLE = Example(("1/3", "1/3", "1/3"), (1, "0.9", 0))
"""The uniform policy, at which there is no well."""


def parameters(update: Update, pi: ArrayLike) -> Floats:
    """Return the parameters of policies; `pg-es` parameters are scaled to p-norm one."""
    theta = update.parameters(pi)
    if isinstance(update, EscortPolicyGradient):
        return np.asarray(theta / theta.shape[-1] ** (1.0 / update.p))
    return theta


def increase(update: str | Update, pi: ArrayLike, q: ArrayLike, weight: ArrayLike = 1.0) -> Floats:
    r"""Return :math:`\Delta = \pi' - \pi` after one step, for one or many policies."""
    chosen = as_update(update)
    theta = parameters(chosen, pi)
    return np.asarray(chosen.policy(chosen.step(theta, q, weight)) - chosen.policy(theta))


def margin(update: str | Update, pi: ArrayLike, q: ArrayLike, weight: ArrayLike = 1.0) -> Floats:
    r"""Return the margin :math:`\Delta(a_q) - \max_{b \ne a_q} \Delta(b)` of the condition.

    The margin is negative if the condition fails.
    """
    return _margin(increase(update, pi, q, weight), np.asarray(q, dtype=np.float64))


def _margin(gain: Floats, q: Floats) -> Floats:
    greedy = np.arange(q.shape[-1]) == np.argmax(q, axis=-1)[..., np.newaxis]
    best = np.sum(np.where(greedy, gain, 0.0), axis=-1)
    return np.asarray(best - np.max(np.where(greedy, -np.inf, gain), axis=-1))


def certified_increase(update: str | Update, example: Example, weight: Number = 1) -> list[Ball]:
    r"""Return :math:`\Delta` in balls at the working precision; escort parameters have norm one.

    The kernel of the update is applied to balls. The kernel of `di` is applied to rational numbers,
    because the projection compares numbers.
    """
    pi = [ball(x) for x in example.pi]
    after = _new_weights(as_update(update), example, pi, exact(weight))
    total = sum(after)
    return [x / total - y for x, y in zip(after, pi, strict=True)]


def _new_weights(update: Update, example: Example, pi: list[Ball], weight: Fraction) -> list[Ball]:
    """Return the unnormalised new policy in balls."""
    n, q, w = len(pi), [ball(x) for x in example.q], ball(weight)
    if update.kernel is None:
        if isinstance(update, EscortPolicyGradient):
            return _escort_weights(update, pi, q, w)
        raise ValueError(f"update: {update.name!r} has no kernel, and a certified step needs one.")
    if update.parametrization == "direct":
        point = [exact(x) for x in example.pi]
        update.kernel(point, list(point), [exact(x) for x in example.q], example.greedy, weight, n)
        return [ball(x) for x in point]
    if update.parametrization == "softmax":
        theta = [x.log() for x in pi]
        update.kernel(theta, pi, q, example.greedy, w, n)
        return [x.exp() for x in theta]
    theta = [x.sqrt() for x in pi]
    update.kernel(theta, pi, q, example.greedy, w, n)
    return [x * x for x in theta]


def _escort_weights(
    update: EscortPolicyGradient, pi: list[Ball], q: list[Ball], w: Ball
) -> list[Ball]:
    """Return the unnormalised new `pg-es` policy for any p and factor."""
    p = ball(update.p)
    # Arb cannot raise a ball around 0 to a power, so an integer power is computed as a product.
    whole = int(update.p) if update.p == int(update.p) else 0
    v = kernels.mean(pi, q, len(pi))
    scale = w * p if update.factor == "keep" else w
    step = [scale * x ** (1 - 1 / p) * (y - v) for x, y in zip(pi, q, strict=True)]
    theta = [abs(x ** (1 / p) + y) for x, y in zip(pi, step, strict=True)]
    return [prod([x] * whole) if whole else x**p for x in theta]


def certified_margin(
    update: str | Update, example: Example, weight: Number = 1
) -> tuple[int, Ball]:
    """Return the certified sign of the margin, and a ball that contains the margin."""

    def compute() -> tuple[int, Ball]:
        gain = certified_increase(update, example, weight)
        best = gain[example.greedy]
        lead = [best - x for a, x in enumerate(gain) if a != example.greedy]
        worst = reduce(lambda x, y: x.min(y), lead)
        # One negative lead proves a negative margin; a positive margin requires all leads positive.
        return min(sign(worst), 0) or min(sign(x) for x in lead), worst

    return certified(compute)


def certified_change(update: str | Update, example: Example, weight: Number, action: int) -> float:
    """Return the change in the probability of an action, with a certified sign."""

    def compute() -> Ball:
        change = certified_increase(update, example, weight)[action]
        sign(change)
        return change

    return float(certified(compute))


def convexity_slope(example: Example) -> Fraction:
    r"""Return the slope :math:`F'(0)` of :math:`\pi(a_q)/\pi'(a_q)` in the weight under `pg-sm`."""
    pi, q = [exact(x) for x in example.pi], [exact(x) for x in example.q]
    v = _mean(pi, q)
    h = [x * (y - v) for x, y in zip(pi, q, strict=True)]
    return _mean(pi, h) - h[example.greedy]


def _mean(pi: Sequence[Fraction], x: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(pi, x, strict=True)), Fraction(0))


# Exact steps


def project_integers(points: Integers, unit: int) -> tuple[Integers, Integers]:
    """Return n and s such that ``n / (s * unit)`` is the projection of ``points / unit``.

    This second implementation of the projection of `di` has no rounding errors, so the claims on
    `di` do not depend on the update in `pu_lib.updates`. The result is exact if n_actions^2 times
    the largest entry is below 2^63.
    """
    descending = -np.sort(-points, axis=1)
    sums = np.cumsum(descending, axis=1)
    counts = np.arange(1, points.shape[1] + 1)
    support = np.count_nonzero(counts * descending > sums - unit, axis=1)[:, np.newaxis]
    excess = np.take_along_axis(sums, support - 1, axis=1) - unit
    return np.maximum(support * points - excess, 0), support


def clip_and_renormalise(points: Integers, unit: int) -> tuple[Integers, Integers]:
    """Set negative entries to zero and divide by the sum, which is *not* the projection.

    The result has the same form as the result of `project_integers`. A point without a positive
    entry is mapped to the corner of its largest coordinate.
    """
    clipped = np.maximum(points, 0)
    largest = np.arange(points.shape[1]) == np.argmax(points, axis=1)[:, np.newaxis]
    empty = clipped.sum(axis=1, keepdims=True) == 0
    clipped = np.where(empty, largest, clipped)
    return clipped * unit, np.asarray(clipped.sum(axis=1, keepdims=True))


def escort_step_exact(
    theta: Sequence[Fraction], q: Sequence[Fraction], weight: Fraction
) -> tuple[list[Fraction], bool]:
    """Return the escort policy (p = 2) after one step, and whether a parameter became negative."""
    n, square = len(theta), _mean(theta, theta)
    moved = list(theta)
    pi = [x * x / square for x in theta]
    kernels.pg_es(moved, pi, q, kernels.greedy(q, n), weight, n)
    total = _mean(moved, moved)
    return [x * x / total for x in moved], min(moved) < 0


def escort_remainders(
    p: float, epsilon: str, delta: str, factor: float = 1.0
) -> tuple[float, float]:
    r"""Return the remainders at b and at c of the expansions in the proof of Theorem 3 (PG-ES).

    There are three actions with :math:`\pi(a)=\pi(c)=\varepsilon`, :math:`q(a)=0`, :math:`q(c)=1`,
    :math:`q(b)=1-\delta`. The parameters are positive with :math:`\lVert\theta\rVert_p=1`, and the
    step is :math:`\mathrm{adv}\,\pi^{1-1/p}` as printed. The numerators
    :math:`(\theta+\text{step})^p` are compared with
    :math:`\theta_b^p+p\,\varepsilon\,\theta_b^{p-1}` and
    :math:`\theta_c^p+p\,\varepsilon^{2-1/p}\theta_c^{p-1}`, in decimal numbers with 80 digits.
    `factor` multiplies the second terms.
    """
    with localcontext(Context(prec=80)):  # not the caller's, which may raise on rounding
        power, eps, one = Decimal(p), Decimal(epsilon), Decimal(1)
        pi = {"b": 1 - 2 * eps, "c": eps}
        q = {"b": 1 - Decimal(delta), "c": one}
        v = sum(pi[x] * q[x] for x in pi)
        first = {"b": eps, "c": eps ** (2 - one / power)}
        left = []
        for x, share in pi.items():
            theta, step = share ** (one / power), (q[x] - v) * share ** (1 - one / power)
            terms = theta**power + Decimal(factor) * power * first[x] * theta ** (power - 1)
            left.append(float(abs((theta + step) ** power - terms)))
    return left[0], left[1]


# Condition maps


def simplex_grid(resolution: int) -> Floats:
    """Return the interior points of the three-action simplex with denominator `resolution`."""
    i, j = np.meshgrid(np.arange(1, resolution), np.arange(1, resolution), indexing="ij")
    inside = i + j < resolution
    first, second = i[inside], j[inside]
    return np.column_stack([first, second, resolution - first - second]) / resolution


def condition_map(
    update: str | Update, points: Floats, q: ArrayLike, weight: float
) -> NDArray[np.int_]:
    """Return 0 per policy if the condition holds, 1 if it fails, and 2 if the best action loses."""
    values = np.broadcast_to(np.asarray(q, dtype=np.float64), points.shape)
    gain = increase(update, points, values, weight)
    best = gain[:, int(np.argmax(values[0]))]
    return np.where(best < -ROUNDING, 2, np.where(_margin(gain, values) < -ROUNDING, 1, 0))


def failing_share(
    update: str | Update, q: ArrayLike, weight: float, resolution: int = 100
) -> float:
    """Return the share of the simplex in which the condition fails."""
    return float(np.mean(condition_map(update, simplex_grid(resolution), q, weight) > 0))
