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
:math:`O(\log 1/\varepsilon)`. Under `di` :math:`\pi(a_q)` gains at least half of w times the gap
:math:`\Delta` of q: a number of steps that does not depend on :math:`\varepsilon`. Under `pg-es`
with p = 2, parameters of norm one and :math:`wR\le1/2`, no parameter crosses zero; with
:math:`N=\|\theta\|^2` a step multiplies :math:`|\theta_{a_q}/\theta_b|` by
:math:`1+\frac{k\,(\mathrm{adv}(a_q)-\mathrm{adv}(b))}{1+k\,\mathrm{adv}(b)}\ge1+w\Delta/N`, and
:math:`N'=N+4w^2V/N` keeps :math:`N_t^2\le1+\frac94w^2R^2t`: :math:`O(\log^2 1/\varepsilon)`.

**The condition keeps away from wrong corners.** If :math:`a_q` stays the same and gains most in
each step, then :math:`\pi_T(b)-\pi_0(b)\le\pi_T(a_q)-\pi_0(a_q)`, so that :math:`\pi_T(b)` never
exceeds :math:`(1+\pi_0(b)-\pi_0(a_q))/2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib import kernels
from pu_lib.exact import Number, ball, certified, exact, sign
from pu_lib.trajectories import follow
from pu_lib.updates import UPDATES, EscortPolicyGradient, Update, as_update, softmax

__all__ = [
    "DEPTHS",
    "Case",
    "certified_increase",
    "certified_margin",
    "clip_and_renormalise",
    "condition_map",
    "convexity_slope",
    "corner_bound",
    "escape_bound",
    "escape_exponent",
    "escape_steps",
    "escort_step_exact",
    "failing_share",
    "greedy_path",
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

    Parameters
    ----------
    update : Update
        The update.
    pi : array_like, shape (..., n_actions)
        Policies of that update.

    Returns
    -------
    ndarray, shape (..., n_actions)
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
    """
    return _margin(increase(update, pi, q, weight), np.asarray(q, dtype=np.float64))


def _margin(gain: Floats, q: Floats) -> Floats:
    greedy = np.arange(q.shape[-1]) == np.argmax(q, axis=-1)[..., np.newaxis]
    own = np.sum(np.where(greedy, gain, 0.0), axis=-1)
    return np.asarray(own - np.max(np.where(greedy, -np.inf, gain), axis=-1))


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
    v = kernels.mean(pi, q, len(pi))
    scale = w * p if update.factor == "keep" else w
    step = [scale * x ** (1 - 1 / p) * (y - v) for x, y in zip(pi, q, strict=True)]
    return [abs(x ** (1 / p) + y) ** p for x, y in zip(pi, step, strict=True)]


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
        worst = min(lead, key=lambda x: float(x.mid()))
        # one negative lead decides; a positive margin needs every lead to be positive
        return min(sign(worst), 0) or min(sign(x) for x in lead), worst

    return certified(compute)


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
    crossed : bool
        Whether a parameter is negative after the step.
    """
    n, square = len(theta), sum((x * x for x in theta), Fraction(0))
    moved = list(theta)
    pi = [x * x / square for x in theta]
    kernels.pg_es(moved, pi, q, kernels.greedy(q, n), weight, n)
    total = sum((x * x for x in moved), Fraction(0))
    return [x * x / total for x in moved], min(moved) < 0


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


# How long a well holds


def well(epsilon: float) -> Floats:
    r"""Return :math:`(\varepsilon, 1 - 2\varepsilon, \varepsilon)`, a policy in a well."""
    if not 0.0 < epsilon < 0.5:
        raise ValueError(f"epsilon: expected a number in (0, 1/2), got {epsilon}.")
    return np.array([epsilon, 1.0 - 2.0 * epsilon, epsilon])


def corner_bound(pi: ArrayLike, q: ArrayLike) -> Floats:
    r"""Bound what other actions can reach where the condition holds at every step.

    Parameters
    ----------
    pi, q : array_like, shape (..., n_actions)
        The first policies, and values that do not change.

    Returns
    -------
    ndarray, shape (..., n_actions)
        :math:`(1+\pi_0(b)-\pi_0(a_q))/2`; one for the greedy action.
    """
    policies, values = np.asarray(pi, dtype=np.float64), np.asarray(q, dtype=np.float64)
    greedy = np.arange(values.shape[-1]) == np.argmax(values, axis=-1)[..., np.newaxis]
    own = np.sum(np.where(greedy, policies, 0.0), axis=-1, keepdims=True)
    return np.where(greedy, 1.0, (1.0 + policies - own) / 2.0)


def escape_steps(
    update: str | Update, pi: ArrayLike, q: ArrayLike, weight: float = 1.0, cap: int = 200_000
) -> Floats:
    """Return the steps until the greedy action has probability 1/2.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    pi, q : array_like, shape (..., n_actions)
        The first policies and the values; as many of the one as of the other.
    weight : float
        The weight of each step.
    cap : int
        How many steps to make at most, rounded up to 64 times a power of two.

    Returns
    -------
    ndarray, shape (...)
        Infinity where the cap was reached.
    """
    chosen = as_update(update)
    values = np.asarray(q, dtype=np.float64)
    greedy = np.argmax(values, axis=-1)[..., np.newaxis]
    theta = parameters(chosen, pi)
    steps, done, chunk = np.full(theta.shape[:-1], np.inf), 0, 64
    while np.isinf(steps).any() and done <= cap:
        path = follow(chosen, values, weight, chunk, theta)
        own = np.take_along_axis(
            chosen.policy(path), np.broadcast_to(greedy, path[..., :1].shape), -1
        )
        out = own[..., 0] >= 0.5
        first = done + np.argmax(out, axis=0)
        steps = np.where(np.isinf(steps) & out.any(axis=0), first, steps)
        theta, done, chunk = path[-1], done + chunk, min(2 * chunk, 4096)
    return np.asarray(steps)


def greedy_path(
    update: str | Update, pi: ArrayLike, q: ArrayLike, weight: float, n_steps: int
) -> Floats:
    """Return the probability of the greedy action along an update, until it is 0.99.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    pi, q : array_like, shape (n_actions,)
        The first policy and the values.
    weight : float
        The weight of each step.
    n_steps : int
        How many steps to make at most.

    Returns
    -------
    ndarray, shape (T,)
        From the start on.
    """
    chosen = as_update(update)
    path = chosen.policy(follow(chosen, q, weight, n_steps, parameters(chosen, pi)))
    own = path[:, int(np.argmax(q))]
    there = np.flatnonzero(own >= 0.99)
    return np.asarray(own[: there[0] + 1] if len(there) else own)


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

    Returns
    -------
    dict of str to (float, float)
        By the update's name: from the well, and from the uniform policy.
    """
    pi = softmax(theta0)
    starts = np.stack([pi, np.full(pi.shape, 1.0 / pi.size)])
    values = np.broadcast_to(np.asarray(q, dtype=np.float64), starts.shape)
    counts = {name: escape_steps(name, starts, values, weight) for name in UPDATES}
    return {name: (float(lost), float(even)) for name, (lost, even) in counts.items()}


def escape_bound(
    update: str | Update, pi: ArrayLike, q: ArrayLike, weight: float
) -> tuple[float, float]:
    """Return proved lower and upper bounds on `escape_steps`, as in the module's text.

    Parameters
    ----------
    update : str or Update
        The update, or its name: one of the paper's.
    pi, q : array_like, shape (n_actions,)
        The first policy and the values.
    weight : float
        The weight of each step.

    Returns
    -------
    low, high : float
        0 and infinity where nothing better is proved.

    Raises
    ------
    ValueError
        If the update is not one of which a bound is proved.
    """
    chosen = as_update(update)
    policy, values = np.asarray(pi, dtype=np.float64), np.asarray(q, dtype=np.float64)
    greedy = int(np.argmax(values))
    second = int(np.argmax(np.where(np.arange(len(values)) == greedy, -np.inf, values)))
    gap, span = float(values[greedy] - values[second]), float(np.ptp(values))
    odds = float((1.0 - policy[greedy]) / policy[greedy])
    if chosen.name == "pg-sm":
        lead = float(policy[second] / policy[greedy])
        return max(0.0, (lead - 1.0) / (2.0 * weight * span)), np.inf
    if chosen.name in ("ce", "mce"):
        return 0.0, float(np.ceil(2.0 * np.log(odds) / weight))
    if chosen.name == "di":
        return 0.0, float(np.ceil((1.0 - 2.0 * policy[greedy]) / (weight * gap)))
    if chosen == UPDATES["pg-es"]:
        return 0.0, _escort_escape(odds, weight * gap, weight * span)
    raise ValueError(f"update: no escape bound is proved of {chosen.name!r} with {chosen.options}.")


def _escort_escape(odds: float, lead: float, span: float) -> float:
    """Bound the escape of `pg-es` where no parameter crosses zero: the weight times R <= 1/2."""
    if span > 0.5:
        return np.inf
    steps, needed = 0, 0.5 * np.log(odds)
    while needed > 0.0:
        needed -= np.log1p(lead / np.sqrt(1.0 + 2.25 * span**2 * steps))
        steps += 1
    return float(steps)


DEPTHS = (0.1, 0.03, 0.01, 0.003, 0.001)
"""The probabilities of the greedy action in the wells that are measured."""


def escape_exponent(steps: ArrayLike, depths: Sequence[float] = DEPTHS) -> float:
    r"""Fit steps :math:`\propto \varepsilon^{-\text{exponent}}` to the three deepest wells.

    Parameters
    ----------
    steps : array_like, shape (n,)
        The steps from each well.
    depths : sequence of float
        The wells, n of them, the deepest last.

    Returns
    -------
    float
    """
    counted = np.asarray(steps, dtype=np.float64)
    return float(np.polyfit(-np.log(depths[-3:]), np.log(counted[-3:]), 1)[0])
