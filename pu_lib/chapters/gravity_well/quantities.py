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

How long a well holds is the subject of `pu_lib.chapters.gravity_well.escape`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
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
    "CE_CASE",
    "ESCORT_CASE",
    "MANY_CASE",
    "SOFTMAX_CASE",
    "UNIFORM_CASE",
    "Case",
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
    "signed_change",
    "simplex_grid",
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
        """Return the policy and the values in floating point.

        Returns
        -------
        pi, q : ndarray, shape (n_actions,)
            Each the float nearest to the exact number.
        """
        return (
            np.array([float(exact(x)) for x in self.pi]),
            np.array([float(exact(x)) for x in self.q]),
        )


def parameters(update: Update, pi: ArrayLike) -> Floats:
    """Return parameters of the policy `pi`, those of `pg-es` with p-norm one.

    The size of an escort step depends on the norm; at one, the formulas here have no norm in them.

    Parameters
    ----------
    update : Update
        The update.
    pi : array_like, shape (..., n_actions)
        Policies of that update.

    Returns
    -------
    ndarray, shape (..., n_actions)
        Parameters whose policy is `pi`.
    """
    theta = update.parameters(pi)
    if isinstance(update, EscortPolicyGradient):
        return np.asarray(theta / theta.shape[-1] ** (1.0 / update.p))
    return theta


def increase(update: str | Update, pi: ArrayLike, q: ArrayLike, weight: ArrayLike = 1.0) -> Floats:
    r"""Return :math:`\Delta = \pi' - \pi` after one step from `pi`.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    pi, q : array_like, shape (..., n_actions)
        Policies and values.
    weight : array_like, shape (...)
        The weights.

    Returns
    -------
    ndarray, shape (..., n_actions)
        What each action gains; the rows sum to zero.
    """
    chosen = as_update(update)
    theta = parameters(chosen, pi)
    return np.asarray(chosen.policy(chosen.step(theta, q, weight)) - chosen.policy(theta))


def margin(update: str | Update, pi: ArrayLike, q: ArrayLike, weight: ArrayLike = 1.0) -> Floats:
    r"""Return the margin :math:`\Delta(a_q) - \max_{b \ne a_q} \Delta(b)`.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    pi, q : array_like, shape (..., n_actions)
        Policies and values.
    weight : array_like, shape (...)
        The weights.

    Returns
    -------
    ndarray, shape (...)
        The margin, negative where the paper's condition fails.
    """
    return _margin(increase(update, pi, q, weight), np.asarray(q, dtype=np.float64))


def _margin(gain: Floats, q: Floats) -> Floats:
    greedy = np.arange(q.shape[-1]) == np.argmax(q, axis=-1)[..., np.newaxis]
    own = np.sum(np.where(greedy, gain, 0.0), axis=-1)
    return np.asarray(own - np.max(np.where(greedy, -np.inf, gain), axis=-1))


SOFTMAX_CASE = Case(("0.01", "0.6", "0.39"), (1, "0.9", 0))
"""Under `pg-sm` the greedy action loses and the second best gains, whatever the weight."""

ESCORT_CASE = Case(("0.01", "0.98", "0.01"), (0, "0.999999", 1))
"""The construction in the paper's proof for `pg-es`, with numbers."""

MANY_CASE = Case(("0.49", "0.01", "0.01", "0.01", "0.48"), (1, "0.99", "0.99", "0.99", 0))
"""Three rare actions that are almost the best: `pg-es` with p = 1 feeds them at its expense."""

CE_CASE = Case(("0.001", "0.3", "0.699"), (1, 0, 0))
"""Under `ce` the most probable action pays, and the middle one gains more than the greedy one."""

UNIFORM_CASE = Case(("1/3", "1/3", "1/3"), (1, "0.9", 0))
"""No well at all."""


def certified_increase(update: str | Update, case: Case, weight: Number = 1) -> list[Ball]:
    r"""Return :math:`\Delta` in balls, at the working precision, escort parameters of norm one.

    The step is the update's own kernel, run on balls; for `di` on rationals, so that the
    comparisons of the projection are decided.

    Parameters
    ----------
    update : str or Update
        The update, or its name; one with a kernel, or `pg-es` with any setting.
    case : Case
        The policy and the values.
    weight : number
        The weight, meaning exactly what it says.

    Returns
    -------
    list of balls
        One an action.

    Raises
    ------
    ValueError
        If the update has no kernel.
    """
    pi = [ball(x) for x in case.pi]
    after = _new_weights(as_update(update), case, pi, exact(weight))
    total = sum(after)
    return [x / total - y for x, y in zip(after, pi, strict=True)]


def _new_weights(update: Update, case: Case, pi: list[Ball], weight: Fraction) -> list[Ball]:
    """Return the new policy in balls, not normalised."""
    n, q, w = len(pi), [ball(x) for x in case.q], ball(weight)
    if update.kernel is None:
        if isinstance(update, EscortPolicyGradient):
            return _escort_weights(update, pi, q, w)
        raise ValueError(f"update: {update.name!r} has no kernel, and a certified step needs one.")
    if update.parametrization == "direct":
        point = [exact(x) for x in case.pi]
        update.kernel(point, list(point), [exact(x) for x in case.q], case.greedy, weight, n)
        return [ball(x) for x in point]
    if update.parametrization == "softmax":
        theta = [x.log() for x in pi]
        update.kernel(theta, pi, q, case.greedy, w, n)
        return [x.exp() for x in theta]
    theta = [x.sqrt() for x in pi]
    update.kernel(theta, pi, q, case.greedy, w, n)
    return [x * x for x in theta]


def _escort_weights(
    update: EscortPolicyGradient, pi: list[Ball], q: list[Ball], w: Ball
) -> list[Ball]:
    """Do a step of `pg-es` for any p and factor, which has no kernel: it needs powers."""
    p = ball(update.p)
    whole = int(update.p) if update.p == int(update.p) else 0  # Arb has no power of a ball around 0
    v = kernels.mean(pi, q, len(pi))
    scale = w * p if update.factor == "keep" else w
    step = [scale * x ** (1 - 1 / p) * (y - v) for x, y in zip(pi, q, strict=True)]
    theta = [abs(x ** (1 / p) + y) for x, y in zip(pi, step, strict=True)]
    return [prod([x] * whole) if whole else x**p for x in theta]


def certified_margin(update: str | Update, case: Case, weight: Number = 1) -> tuple[int, Ball]:
    """Return the proved sign of the margin, and the margin as a ball.

    Parameters
    ----------
    update : str or Update
        The update, or its name; see `certified_increase`.
    case : Case
        The policy and the values.
    weight : number
        The weight.

    Returns
    -------
    sign : int
        -1, 0 or 1.
    margin : ball
        A ball that contains the exact margin.

    Raises
    ------
    Undecided
        If the action that gains most is tied with the greedy one beyond any precision.
    ValueError
        If the update has no kernel.
    """

    def compute() -> tuple[int, Ball]:
        gain = certified_increase(update, case, weight)
        own = gain[case.greedy]
        lead = [own - x for a, x in enumerate(gain) if a != case.greedy]
        worst = reduce(lambda x, y: x.min(y), lead)
        # one negative lead decides; a positive margin needs every lead to be positive
        return min(sign(worst), 0) or min(sign(x) for x in lead), worst

    return certified(compute)


def signed_change(update: str | Update, case: Case, weight: Number) -> float:
    """Return the change of the greedy action's probability, once its sign is proved.

    Parameters
    ----------
    update : str or Update
        The update, or its name; see `certified_increase`.
    case : Case
        The policy and the values.
    weight : number
        The weight.

    Returns
    -------
    float
        The midpoint of the ball of the change; its sign is the proved one.

    Raises
    ------
    Undecided
        If the sign is not decided at the working precision; see `certified`.
    """
    change = certified_increase(update, case, weight)[case.greedy]
    sign(change)
    return float(change)


def convexity_slope(case: Case) -> Fraction:
    r"""Return the exact slope of :math:`\pi(a_q)/\pi'(a_q)` in the weight, at weight zero.

    It is :math:`F'(0) = \sum_j \pi(j) h_j - h_{a_q}` with :math:`h = \pi\,\mathrm{adv}`. If it is
    positive, `pg-sm` decreases the probability of the greedy action for every weight.

    Parameters
    ----------
    case : Case
        The policy and the values.

    Returns
    -------
    Fraction
        The slope, a rational function of the policy and the values.
    """
    pi, q = [exact(x) for x in case.pi], [exact(x) for x in case.q]
    v = sum((x * y for x, y in zip(pi, q, strict=True)), Fraction(0))
    h = [x * (y - v) for x, y in zip(pi, q, strict=True)]
    return sum((x * y for x, y in zip(pi, h, strict=True)), Fraction(0)) - h[case.greedy]


# Exact steps


def project_integers(points: Integers, unit: int) -> tuple[Integers, Integers]:
    r"""Project the points ``points / unit`` on the simplex, in integers, many at once.

    This is the projection of `di` written once more on purpose: it rounds nothing, and the claims
    on `di` are judged by a formula that does not come from the library's update.

    Parameters
    ----------
    points : ndarray of int64, shape (n, n_actions)
        Numerators.
    unit : int
        Their common denominator D.

    Returns
    -------
    numerators : ndarray of int64, shape (n, n_actions)
        Non-negative.
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

    A point without a positive entry goes to its largest coordinate.

    Parameters
    ----------
    points : ndarray of int64, shape (n, n_actions)
        Numerators.
    unit : int
        Their common denominator.

    Returns
    -------
    numerators : ndarray of int64, shape (n, n_actions)
        Non-negative, with a positive entry in every row.
    totals : ndarray of int64, shape (n, 1)
        The result is ``numerators / (totals * unit)``, as for `project_integers`.
    """
    clipped = np.maximum(points, 0)
    largest = np.arange(points.shape[1]) == np.argmax(points, axis=1)[:, np.newaxis]
    empty = clipped.sum(axis=1, keepdims=True) == 0
    clipped = np.where(empty, largest, clipped)
    return clipped * unit, np.asarray(clipped.sum(axis=1, keepdims=True))


def escort_step_exact(
    theta: Sequence[Fraction], q: Sequence[Fraction], weight: Fraction
) -> tuple[list[Fraction], bool]:
    r"""Return the escort policy (p = 2) after one exact-gradient step, and whether a sign flipped.

    Parameters
    ----------
    theta : sequence of Fraction
        Positive parameters.
    q : sequence of Fraction
        Values.
    weight : Fraction
        The weight of the step.

    Returns
    -------
    policy : list of Fraction
        The policy after the step.
    crossed : bool
        Whether a parameter is negative after the step.
    """
    n, square = len(theta), sum((x * x for x in theta), Fraction(0))
    moved = list(theta)
    pi = [x * x / square for x in theta]
    kernels.pg_es(moved, pi, q, kernels.greedy(q, n), weight, n)
    total = sum((x * x for x in moved), Fraction(0))
    return [x * x / total for x in moved], min(moved) < 0


def escort_remainders(
    p: float, epsilon: str, delta: str, factor: float = 1.0
) -> tuple[float, float]:
    r"""Return what the expansions of the proof of theorem 3 (PG-ES) leave out at b and at c.

    Three actions with :math:`\pi(a)=\pi(c)=\varepsilon`, :math:`q(a)=0`, :math:`q(c)=1`,
    :math:`q(b)=1-\delta`; positive parameters with :math:`\lVert\theta\rVert_p=1`, and the step
    :math:`\mathrm{adv}\,\pi^{1-1/p}` as printed. The numerators :math:`(\theta+\text{step})^p` are
    compared with :math:`\theta_b^p+p\,\varepsilon\,\theta_b^{p-1}` and
    :math:`\theta_c^p+p\,\varepsilon^{2-1/p}\theta_c^{p-1}`, in decimals of 80 digits.

    Parameters
    ----------
    p : float
        The exponent, at least 1.
    epsilon, delta : str
        Decimal numbers, small and smaller.
    factor : float
        Multiplies the second terms.

    Returns
    -------
    b, c : float
        The moduli of the remainders.
    """
    with localcontext() as context:
        context.prec = 80
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
    """Return the interior points of the three-action simplex with denominator `resolution`.

    Parameters
    ----------
    resolution : int
        The denominator, at least 3.

    Returns
    -------
    ndarray, shape (n, 3)
        The points, n = (resolution - 1)(resolution - 2)/2 of them.
    """
    i, j = np.meshgrid(np.arange(1, resolution), np.arange(1, resolution), indexing="ij")
    inside = i + j < resolution
    first, second = i[inside], j[inside]
    return np.column_stack([first, second, resolution - first - second]) / resolution


def condition_map(
    update: str | Update, points: Floats, q: ArrayLike, weight: float
) -> NDArray[np.int_]:
    """Label policies: 0 where the condition holds, 1 where it fails, 2 where the best action loses.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    points : ndarray, shape (n, 3)
        Policies.
    q : array_like, shape (3,)
        Values, the largest of which names the greedy action.
    weight : float
        The weight of the step.

    Returns
    -------
    ndarray of int, shape (n,)
        The labels 0, 1 and 2.
    """
    values = np.broadcast_to(np.asarray(q, dtype=np.float64), points.shape)
    gain = increase(update, points, values, weight)
    own = gain[:, int(np.argmax(values[0]))]
    return np.where(own < -ROUNDING, 2, np.where(_margin(gain, values) < -ROUNDING, 1, 0))


def failing_share(
    update: str | Update, q: ArrayLike, weight: float, resolution: int = 100
) -> tuple[float, float]:
    """Return the share of the simplex where the condition fails, and where a_q even loses.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    q : array_like, shape (3,)
        Values.
    weight : float
        The weight of the step.
    resolution : int
        The denominator of the grid of policies.

    Returns
    -------
    fails, loses : float
        Between 0 and 1.
    """
    labels = condition_map(update, simplex_grid(resolution), q, weight)
    return float(np.mean(labels > 0)), float(np.mean(labels == 2))
