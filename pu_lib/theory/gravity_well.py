r"""The gravity well: does the best action gain the most probability (paper, section 3.3).

One state, policy :math:`\pi`, values :math:`q` with greedy action :math:`a_q`, weight :math:`w =
\eta\,d(s) > 0`, new policy :math:`\pi'`, increase :math:`\Delta = \pi' - \pi`. The paper's
condition is :math:`a_q \in \arg\max_a \Delta(a)`; its *margin* here is :math:`\Delta(a_q) - \max_{b
\ne a_q} \Delta(b)`, negative where the condition fails.

**In policy space.** With :math:`h` the step of the parameters, the softmax updates give
:math:`\pi'(a) \propto \pi(a) e^{h_a}`, escort from parameters of norm one
:math:`\pi'(a) \propto |\pi(a)^{1/p} + h_a|^p`, and `di` projects :math:`\pi + wq` on the simplex.
`certified_increase` evaluates these in Arb balls, so that the sign of a margin is proved.

**Lemma 10, hence `di`: holds.** The projection of :math:`\theta + \delta` is :math:`\max(0,
\theta_k + \delta_k - \lambda)`, and :math:`\lambda \le \delta_\star = \max_k \delta_k`, because
otherwise every positive coordinate would shrink and none grow. Hence :math:`\theta'_k - \theta_k =
\max(-\theta_k, \delta_k - \lambda) \le \delta_\star - \lambda`, which is what the coordinate with
the largest :math:`\delta` gains. `project_integers` checks it with integers: a point with
denominator D has a projection with denominator kD.

**`mce`: holds.** Every other action is multiplied by the same factor, below one.

**`pg-sm`: fails, and** :math:`\pi(a_q)` **decreases, for every weight** at some policies:
:math:`\pi(a_q)/\pi'(a_q) = F(w) = \sum_j \pi(j) e^{w(h_j - h_{a_q})}` (h for unit weight) is convex
with :math:`F(0) = 1`, so it exceeds one for all :math:`w > 0` as soon as
:math:`F'(0) = \sum_j \pi(j) h_j - h_{a_q} \ge 0` and F is not constant.

**`pg-es`: fails for every** :math:`p \ge 1`. For :math:`p = 2`, as long as no parameter changes
sign, :math:`\pi(a_q)` never decreases: with :math:`k = 2w/\|\theta\|^2` and :math:`V = \sum_j
\pi(j)\,\mathrm{adv}(j)^2`, :math:`\pi'(a) = \pi(a) (1 + k\,\mathrm{adv}(a))^2 / (1 + k^2 V)`, and
:math:`V \le -\max\mathrm{adv}\cdot\min\mathrm{adv}` (Bhatia and Davis).

**Escort's failing set lies inside softmax's**, for p = 2 and infinitesimal weights. With
:math:`h = \pi\,\mathrm{adv}`, escort gives :math:`\Delta(a) \propto h_a` and softmax
:math:`\Delta(a) \propto \pi(a)(h_a - \sum_j\pi(j)h_j)`. If :math:`h_b > h_{a_q}`, then
:math:`\pi(b) > \pi(a_q)`, because :math:`\mathrm{adv}(b) \le \mathrm{adv}(a_q)`; so either
:math:`a_q` loses under softmax, or b gains more.

**`ce`: fails** with three actions or more, but :math:`\pi(a_q)` never decreases, and the most
probable action, if it is not :math:`a_q`, never gains.

**How long a well holds.** Let :math:`r = \pi(a_q)/\pi(b)` for the second best action b, and R the
range of q. Under `pg-sm` :math:`1/r` falls by at most :math:`2wR` a step, so leaving a well with
:math:`\pi(a_q) = \varepsilon` takes of the order of :math:`1/\varepsilon` steps. Under `ce` and
`mce` the odds against :math:`a_q` shrink by :math:`e^{-w/2}` a step while they exceed one:
:math:`O(\log 1/\varepsilon)`. Under `di` :math:`\pi(a_q)` gains at least half of w times the gap of
q: a number of steps that does not depend on :math:`\varepsilon`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.exact import Number, ball, certified, exact, sign
from pu_lib.updates import (
    UPDATES,
    CrossEntropy,
    EscortPolicyGradient,
    ModifiedCrossEntropy,
    SoftmaxPolicyGradient,
    Update,
    softmax,
)

__all__ = [
    "Case",
    "certified_increase",
    "certified_margin",
    "clip_and_renormalise",
    "condition_map",
    "convexity_slope",
    "escape_bound",
    "escape_steps",
    "escort_step_exact",
    "failing_share",
    "increase",
    "lost_steps",
    "margin",
    "parameters",
    "project_integers",
    "simplex_grid",
    "well",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Ball = Any
"""An Arb ball; python-flint has no type stubs."""

ROUNDING = 1e-12
"""Floating-point margins smaller than this are not called violations: some thousand rounding
errors on probabilities. Every violation that a verdict rests on is certified instead."""


# One step, seen in policy space


@dataclass(frozen=True)
class Case:
    """A policy and values given by numbers that mean exactly what they say.

    Attributes
    ----------
    pi : tuple of numbers
        A policy with positive entries that sum to one.
    q : tuple of numbers
        Values; the first largest one is the greedy action.
    """

    pi: tuple[Number, ...]
    q: tuple[Number, ...]

    def __post_init__(self) -> None:
        policy = [exact(x) for x in self.pi]
        if len(policy) != len(self.q) or len(policy) < 2:
            raise ValueError(
                f"pi and q must list the same two or more actions, got {self.pi} and {self.q}."
            )
        if min(policy) <= 0 or sum(policy) != 1:
            raise ValueError(f"pi must be positive and sum to one, got {self.pi}.")

    @property
    def greedy(self) -> int:
        """The index of the greedy action, the first of tied ones."""
        values = [exact(x) for x in self.q]
        return values.index(max(values))

    def floats(self) -> tuple[Floats, Floats]:
        """Return the policy and the values in floating point."""
        return (
            np.array([float(exact(x)) for x in self.pi]),
            np.array([float(exact(x)) for x in self.q]),
        )


def parameters(update: Update, pi: ArrayLike) -> Floats:
    """Return parameters of the policy `pi`, those of `pg-es` with p-norm one.

    The size of an escort step depends on the norm; at one, the formulas here have no norm in them.
    """
    theta = update.parameters(pi)
    if isinstance(update, EscortPolicyGradient):
        return np.asarray(theta / theta.shape[-1] ** (1.0 / update.p))
    return theta


def increase(update: Update, pi: ArrayLike, q: ArrayLike, weight: ArrayLike = 1.0) -> Floats:
    r"""Return :math:`\Delta = \pi' - \pi` after one step from `pi`, shape (..., n_actions)."""
    theta = parameters(update, pi)
    return np.asarray(update.policy(update.step(theta, q, weight)) - update.policy(theta))


def margin(update: Update, pi: ArrayLike, q: ArrayLike, weight: ArrayLike = 1.0) -> Floats:
    r"""Return the margin :math:`\Delta(a_q) - \max_{b \ne a_q} \Delta(b)`, shape (...)."""
    return _margin(increase(update, pi, q, weight), np.asarray(q, dtype=np.float64))


def _margin(gain: Floats, q: Floats) -> Floats:
    greedy = np.arange(q.shape[-1]) == np.argmax(q, axis=-1)[..., np.newaxis]
    own = np.sum(np.where(greedy, gain, 0.0), axis=-1)
    return np.asarray(own - np.max(np.where(greedy, -np.inf, gain), axis=-1))


def certified_increase(update: Update, case: Case, weight: Number = 1) -> list[Ball]:
    r"""Return :math:`\Delta` in balls, at the working precision, escort parameters of norm one."""
    pi = [ball(x) for x in case.pi]
    q = [ball(x) for x in case.q]
    after = _NEW_WEIGHTS[type(update)](update, pi, q, ball(weight), case.greedy)
    total = sum(after)
    return [x / total - y for x, y in zip(after, pi, strict=True)]


def certified_margin(update: Update, case: Case, weight: Number = 1) -> tuple[int, Ball]:
    """Return the proved sign of the margin, and the margin as a ball.

    Raises
    ------
    Undecided
        If the action that gains most is tied with the greedy one beyond any precision.
    """

    def compute() -> tuple[int, Ball]:
        gain = certified_increase(update, case, weight)
        own = gain[case.greedy]
        lead = [own - x for a, x in enumerate(gain) if a != case.greedy]
        worst = min(lead, key=lambda x: float(x.mid()))
        # one negative lead decides; a positive margin needs every lead to be positive
        return min(sign(worst), 0) or min(sign(x) for x in lead), worst

    return certified(compute)


def _advantages(pi: list[Ball], q: list[Ball]) -> list[Ball]:
    v = sum(x * y for x, y in zip(pi, q, strict=True))
    return [y - v for y in q]


def _tilted(pi: list[Ball], h: list[Ball]) -> list[Ball]:
    return [x * y.exp() for x, y in zip(pi, h, strict=True)]


def _after_pg_sm(update: Any, pi: list[Ball], q: list[Ball], w: Ball, greedy: int) -> list[Ball]:
    return _tilted(pi, [w * x * y for x, y in zip(pi, _advantages(pi, q), strict=True)])


def _after_ce(update: Any, pi: list[Ball], q: list[Ball], w: Ball, greedy: int) -> list[Ball]:
    return _tilted(pi, [w * (int(a == greedy) - x) for a, x in enumerate(pi)])


def _after_mce(update: Any, pi: list[Ball], q: list[Ball], w: Ball, greedy: int) -> list[Ball]:
    missing = w * sum(x for a, x in enumerate(pi) if a != greedy)
    others = -missing / (len(pi) - 1)
    return _tilted(pi, [missing if a == greedy else others for a in range(len(pi))])


def _after_pg_es(update: Any, pi: list[Ball], q: list[Ball], w: Ball, greedy: int) -> list[Ball]:
    p = ball(update.p)
    scale = w * p if update.factor == "keep" else w
    step = [scale * x ** (1 - 1 / p) * y for x, y in zip(pi, _advantages(pi, q), strict=True)]
    return [abs(x ** (1 / p) + y) ** p for x, y in zip(pi, step, strict=True)]


_NEW_WEIGHTS: dict[type, Callable[[Any, list[Ball], list[Ball], Ball, int], list[Ball]]] = {
    SoftmaxPolicyGradient: _after_pg_sm,
    EscortPolicyGradient: _after_pg_es,
    CrossEntropy: _after_ce,
    ModifiedCrossEntropy: _after_mce,
}
"""Unnormalised new policies in balls; `di` needs none, its projection is rational."""


# The cases of the chapter


# Checks that find violations


def convexity_slope(case: Case) -> Fraction:
    r"""Return the exact slope of :math:`\pi(a_q)/\pi'(a_q)` in the weight, at weight zero.

    It is :math:`F'(0) = \sum_j \pi(j) h_j - h_{a_q}` with :math:`h = \pi\,\mathrm{adv}`. If it is
    positive, `pg-sm` decreases the probability of the greedy action for every weight.
    """
    pi, q = [exact(x) for x in case.pi], [exact(x) for x in case.q]
    v = sum((x * y for x, y in zip(pi, q, strict=True)), Fraction(0))
    h = [x * (y - v) for x, y in zip(pi, q, strict=True)]
    return sum((x * y for x, y in zip(pi, h, strict=True)), Fraction(0)) - h[case.greedy]


# Checks of guarantees


def project_integers(points: Integers, unit: int) -> tuple[Integers, Integers]:
    r"""Project the points ``points / unit`` on the simplex, in integers.

    Parameters
    ----------
    points : ndarray of int64, shape (n, n_actions)
        Numerators.
    unit : int
        Their common denominator D.

    Returns
    -------
    numerators : ndarray of int64, shape (n, n_actions)
    support : ndarray of int64, shape (n, 1)
        The projection is ``numerators / (support * unit)``.

    Notes
    -----
    Exact as long as n_actions^2 times the largest entry is below 2^63.
    """
    descending = -np.sort(-points, axis=1)
    sums = np.cumsum(descending, axis=1)
    counts = np.arange(1, points.shape[1] + 1)
    support = np.count_nonzero(counts * descending > sums - unit, axis=1)[:, np.newaxis]
    excess = np.take_along_axis(sums, support - 1, axis=1) - unit
    return np.maximum(support * points - excess, 0), support


def clip_and_renormalise(points: Integers, unit: int) -> tuple[Integers, Integers]:
    """Set negative entries to zero and scale the rest to sum one: *not* the projection.

    A point without a positive entry goes to its largest coordinate. Same form as the result of
    `project_integers`.
    """
    clipped = np.maximum(points, 0)
    largest = np.arange(points.shape[1]) == np.argmax(points, axis=1)[:, np.newaxis]
    empty = clipped.sum(axis=1, keepdims=True) == 0
    clipped = np.where(empty, largest, clipped)
    return clipped * unit, np.asarray(clipped.sum(axis=1, keepdims=True))


def escort_step_exact(
    theta: Sequence[Fraction], q: Sequence[Fraction], weight: Fraction, factor: str = "keep"
) -> tuple[list[Fraction], bool]:
    r"""Return the escort policy (p = 2) after one exact-gradient step, and whether a sign flipped.

    :math:`\theta'_a = \theta_a (1 + k\,\mathrm{adv}(a))` with :math:`k = 2w/\|\theta\|^2`:
    rational.
    """
    if factor != "keep":
        raise ValueError(f"factor: only the exact gradient ('keep') is rational, got {factor!r}.")
    square = sum((x * x for x in theta), Fraction(0))
    pi = [x * x / square for x in theta]
    v = sum((x * y for x, y in zip(pi, q, strict=True)), Fraction(0))
    scale = [1 + 2 * weight * (y - v) / square for y in q]
    moved = [x * y for x, y in zip(theta, scale, strict=True)]
    total = sum((x * x for x in moved), Fraction(0))
    return [x * x / total for x in moved], min(scale) < 0


# Condition maps


def simplex_grid(resolution: int) -> Floats:
    """Return the interior points of the three-action simplex with denominator `resolution`."""
    i, j = np.meshgrid(np.arange(1, resolution), np.arange(1, resolution), indexing="ij")
    inside = i + j < resolution
    first, second = i[inside], j[inside]
    return np.column_stack([first, second, resolution - first - second]) / resolution


def condition_map(update: Update, points: Floats, q: ArrayLike, weight: float) -> NDArray[np.int_]:
    """Label policies: 0 where the condition holds, 1 where it fails, 2 where the best action loses.

    Parameters
    ----------
    update : Update
        The update.
    points : ndarray, shape (n, 3)
        Policies.
    q : array_like, shape (3,)
        Values, the largest of which names the greedy action.
    weight : float
        The weight of the step.
    """
    values = np.broadcast_to(np.asarray(q, dtype=np.float64), points.shape)
    gain = increase(update, points, values, weight)
    own = gain[:, int(np.argmax(values[0]))]
    return np.where(own < -ROUNDING, 2, np.where(_margin(gain, values) < -ROUNDING, 1, 0))


def failing_share(
    update: Update, q: ArrayLike, weight: float, resolution: int = 100
) -> tuple[float, float]:
    """Return the share of the simplex where the condition fails, and where a_q even loses."""
    labels = condition_map(update, simplex_grid(resolution), q, weight)
    return float(np.mean(labels > 0)), float(np.mean(labels == 2))


# How long a well holds


def well(epsilon: float) -> Floats:
    r"""Return :math:`(\varepsilon, 1 - 2\varepsilon, \varepsilon)`, a policy in a well."""
    if not 0.0 < epsilon < 0.5:
        raise ValueError(f"epsilon: expected a number in (0, 1/2), got {epsilon}.")
    return np.array([epsilon, 1.0 - 2.0 * epsilon, epsilon])


def escape_steps(
    update: Update, pi: ArrayLike, q: ArrayLike, weight: float = 1.0, cap: int = 200_000
) -> float:
    """Return the steps until the greedy action has probability 1/2, infinity beyond `cap`."""
    greedy = int(np.argmax(q))
    theta = parameters(update, pi)
    for t in range(cap + 1):
        if update.policy(theta)[greedy] >= 0.5:
            return t
        theta = update.step(theta, q, weight)
    return np.inf


def lost_steps(
    theta0: ArrayLike, q: ArrayLike, weight: float = 1.0
) -> dict[str, tuple[float, float]]:
    """Count, for each update, the steps to probability 1/2 from a well and from the uniform policy.

    Parameters
    ----------
    theta0 : array_like
        Softmax parameters of the start; the other updates start from the same policy.
    q : array_like
        Values.
    weight : float
        The weight.
    """
    pi = softmax(theta0)
    starts = (pi, np.full(pi.shape, 1.0 / pi.size))
    return {
        name: (
            escape_steps(update, starts[0], q, weight),
            escape_steps(update, starts[1], q, weight),
        )
        for name, update in UPDATES.items()
    }


def escape_bound(update: Update, pi: Floats, q: Floats, weight: float) -> tuple[float, float]:
    """Return proved lower and upper bounds on `escape_steps` (0 or infinity where none is)."""
    greedy = int(np.argmax(q))
    second = int(np.argmax(np.where(np.arange(len(q)) == greedy, -np.inf, q)))
    gap, odds = q[greedy] - q[second], (1.0 - pi[greedy]) / pi[greedy]
    if update.name == "pg-sm":
        return max(0.0, (pi[second] / pi[greedy] - 1.0) / (2.0 * weight * np.ptp(q))), np.inf
    if update.name in ("ce", "mce"):
        return 0.0, np.ceil(2.0 * np.log(odds) / weight)
    if update.name == "di":
        return 0.0, np.ceil((1.0 - 2.0 * pi[greedy]) / (weight * gap))
    return 0.0, np.inf


_DEPTHS = (0.1, 0.03, 0.01, 0.003, 0.001)


def escape_exponent(steps: Sequence[float], depths: Sequence[float] = _DEPTHS) -> float:
    r"""Fit steps :math:`\propto \varepsilon^{-\text{exponent}}` to the three deepest wells."""
    return float(np.polyfit(-np.log(depths[-3:]), np.log(steps[-3:]), 1)[0])
