r"""Later work: the natural policy gradient, mirror descent and growing weights.

**Mirror descent.** With a divergence :math:`D` of policies, a step at one state is

.. math:: \pi' = \arg\max_{p\in\Delta}\; w\,\langle q, p\rangle - D(p, \pi).

If D is the KL divergence, the step is NPG; if D is half the squared Euclidean distance, the step is
DI. The divergences of the Tsallis entropies, the sums of
:math:`\varphi_\alpha(x) = \frac{x^\alpha - x}{\alpha(\alpha-1)}` over the actions, interpolate
between NPG (:math:`\alpha\to1`) and DI (:math:`\alpha = 2`):

.. math::
   \pi'_a = \big[\pi_a^{\alpha-1} + (\alpha-1)(w\,q_a - \lambda)\big]_+^{1/(\alpha-1)},

with the unique :math:`\lambda` for which the probabilities sum to 1.

**Unlearning.** Consider two actions with gap :math:`\Delta` and the uniform initial policy. A step
changes :math:`y = \varphi'(\pi(a_1)) - \varphi'(\pi(a_2))` by :math:`\pm w\Delta`, and the maximum
of :math:`y` is :math:`\frac1{\alpha-1}`, at :math:`\pi(a_1) = 1`. After n forward steps :math:`y`
is :math:`\min\{n w\Delta, \frac1{\alpha-1}\}`. Hence :math:`n' = \min\{n,
\lceil\frac1{(\alpha-1)w\Delta}\rceil\}` with constant weights, which is bounded for every
:math:`\alpha > 1`, and :math:`n' = n` for NPG. With weights :math:`w\,c^t` NPG needs
:math:`c^n(c^m - 1) \ge c^n - 1`, so :math:`n'` is the least m with :math:`c^m \ge 2 - c^{-n}`.
Equality is impossible for a rational c > 1, because c would be a root of
:math:`c^{n+m} - 2c^n + 1`, and the rational roots of this polynomial can only be 1 and -1. So
strict recovery takes the same number of steps.

**Wells.** The policy of NPG depends on the weights only through their sum W:
:math:`\pi_W(a) \propto \pi_0(a)\,e^{W q(a)}`. The best action has a probability of at least one
half if :math:`\sum_{a\ne a_q}\pi_0(a)\,e^{-W(q(a_q) - q(a))} \le \pi_0(a_q)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.arrays import Floats, as_float, require_distributions
from pu_lib.claims.formulas import log1p
from pu_lib.exact import Number, exact
from pu_lib.interface import Update
from pu_lib.parametrizations import as_rows
from pu_lib.two_action_dynamics import OutOfReach

__all__ = [
    "CountedFloat",
    "TsallisDescent",
    "cost",
    "escape_bounds",
    "family_count",
    "geometric_bound",
    "geometric_count",
    "mirror_step",
    "natural_count",
    "natural_policy",
    "spma_bound",
]

MAX_STEPS = 10_000
"""The largest number of steps with rational weights that are added one by one."""

MAX_BITS = 200_000
"""The largest number of bits of an exact power of a ratio, which takes a few seconds."""

# Mirror descent


def mirror_step(pi: ArrayLike, q: ArrayLike, weight: ArrayLike, alpha: float) -> Floats:
    r"""Return the policies after a step of mirror descent with a Tsallis entropy.

    The index :math:`\alpha` is from 1 + 1e-8 to 2. Actions are along the last axis, on which
    `weight` has length one. The new policies sum to one up to a rounding error of order
    :math:`10^{-16}/(\alpha-1)`. The function whose root is :math:`\lambda` is convex and
    decreasing, so Newton's method from a point left of the root increases to the root without
    overshooting.
    """
    alpha = as_float("alpha", alpha)
    if not 1.0 + 1e-8 <= alpha <= 2.0:
        raise ValueError(f"alpha: expected a number from 1 + 1e-8 to 2, got {alpha}.")
    policy, values = as_rows("pi", pi), as_rows("q", q)
    require_distributions("pi", policy)
    power, slope = 1.0 / (alpha - 1.0), (alpha - 1.0) * np.asarray(weight, dtype=np.float64)
    levels = policy ** (alpha - 1.0) + slope * (values - values.max(axis=-1, keepdims=True))
    threshold = levels.max(axis=-1, keepdims=True) - 1.0
    for _ in range(200):
        above = np.maximum(levels - threshold, 0.0)
        excess = (above**power).sum(axis=-1, keepdims=True) - 1.0
        decline = power * (above ** (power - 1.0) * (above > 0.0)).sum(axis=-1, keepdims=True)
        new = threshold + np.maximum(excess, 0.0) / decline
        if (new == threshold).all():
            break
        threshold = new
    return np.asarray(np.maximum(levels - threshold, 0.0) ** power)


@dataclass(frozen=True)
class TsallisDescent(Update):
    """Mirror descent with a Tsallis entropy, of an index `alpha` above 1 and at most 2.

    The limit at index 1 is NPG, and index 2 is DI.
    """

    name = "tsallis"
    title = "mirror descent with a Tsallis entropy"
    label = "Tsallis"
    parametrization = "direct"
    alpha: float = 1.5

    def to_policy(self, theta: Floats) -> Floats:
        """Return the policy for validated parameters."""
        return theta.copy()

    def to_parameters(self, pi: Floats) -> Floats:
        """Return parameters for a validated policy."""
        return pi.copy()

    def advance(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        """Return the parameters after one step."""
        return mirror_step(theta, q, weight, self.alpha)


# Counts, exactly


def family_count(n: int, weight: Number, alpha: Number, strict: bool = False) -> int:
    """Return the number n' of steps in which the Tsallis family undoes n steps.

    The weights are constant, the gap is 1, and the initial policy is uniform. The index `alpha` is
    at least 1; index 1 is NPG and index 2 is DI.
    """
    step, rest = exact(weight, "weight"), exact(alpha, "alpha") - 1
    if rest < 0:
        raise ValueError(f"alpha: expected a number of at least 1, got {alpha}.")
    if step <= 0:
        raise ValueError(f"weight: expected a positive number, got {weight}.")
    learnt = n * step if rest == 0 else min(n * step, 1 / rest)
    return math.floor(learnt / step) + 1 if strict else math.ceil(learnt / step)


def natural_count(n: int, weights: Iterable[Fraction], strict: bool = False) -> int:
    """Return the number of backward steps of NPG that undo n forward steps.

    `weights` are the positive weights of all forward and backward steps, multiplied by the gap.
    `OutOfReach` is raised if n or the count exceeds `MAX_STEPS`.
    """
    _require_in_reach("n", n, MAX_STEPS)
    left, walk = Fraction(0), iter(weights)
    for _ in range(n):
        left += next(walk)
    back = 0
    while left > 0 or (left == 0 and strict):
        _require_in_reach("the count", back + 1, MAX_STEPS)
        left, back = left - next(walk), back + 1
    return back


def geometric_count(n: int, ratio: Number) -> int:
    r"""Return the least m with :math:`c^m \ge 2 - c^{-n}`, computed by exact comparisons.

    `OutOfReach` is raised if :math:`c^n` or :math:`c^m` has more than `MAX_BITS` bits.
    """
    c = _ratio_above_one(ratio)
    _require_in_reach("the bits of ratio^n", n * c.numerator.bit_length(), MAX_BITS)
    return _least_exponent(c, 2 - c**-n)


def geometric_bound(ratio: Number) -> int:
    r"""Return :math:`\lceil\log 2/\log c\rceil`, the least m with :math:`c^m \ge 2`.

    `OutOfReach` is raised if :math:`c^m` has more than `MAX_BITS` bits.
    """
    return _least_exponent(_ratio_above_one(ratio), Fraction(2))


def _least_exponent(c: Fraction, goal: Fraction) -> int:
    """Return the least m with c^m >= goal."""
    power, m = Fraction(1), 0
    while power < goal:
        _require_in_reach("the bits of ratio^m", power.numerator.bit_length(), MAX_BITS)
        power, m = power * c, m + 1
    return m


def _require_in_reach(name: str, number: int, most: int) -> None:
    if number > most:
        raise OutOfReach(f"{name}: at most {most} for exact arithmetic, got {number}")


def _ratio_above_one(ratio: Number) -> Fraction:
    """Return the ratio of growing weights as a fraction; raise an error unless it is above 1."""
    c = exact(ratio, "ratio")
    if c <= 1:
        raise ValueError(f"ratio: expected a number above 1, got {ratio}.")
    return c


# Paths and wells


def natural_policy(pi: ArrayLike, q: ArrayLike, total_weight: float) -> Floats:
    r"""Return NPG's policy under constant values, which is :math:`\propto \pi_0(a)\,e^{Wq(a)}`.

    `pi` is the initial policy and `total_weight` is the sum W of the weights.
    """
    values = np.asarray(q, dtype=np.float64)
    values = values - values.max(axis=-1, keepdims=True)  # keeps small differences
    with np.errstate(divide="ignore"):  # probability zero stays zero
        logits = np.log(np.asarray(pi, dtype=np.float64)) + total_weight * values
    share = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(share / share.sum(axis=-1, keepdims=True))


def escape_bounds(pi: ArrayLike, q: ArrayLike, weight: float) -> tuple[int, int]:
    r"""Return bounds on the number of NPG steps until the best action has probability one half.

    With the initial odds :math:`o=(1-\pi_0(a_q))/\pi_0(a_q)` against the best action, the lower
    bound is :math:`\log o/(w\,\Delta_{\max})` and the upper bound is
    :math:`\log o/(w\,\Delta_{\min})`, both rounded up.
    """
    policy, values, weight = as_rows("pi", pi), as_rows("q", q), as_float("weight", weight)
    if policy.ndim != 1 or values.shape != policy.shape:
        raise ValueError(
            f"pi, q: expected two rows of one length, got shapes {policy.shape} and {values.shape}."
        )
    require_distributions("pi", policy)
    best = int(values.argmax())
    if not weight > 0.0 or len(values) < 2:
        raise ValueError("weight, q: expected a positive weight and at least two actions.")
    gaps = np.delete(values[best] - values, best)
    if not gaps.min() > 0.0 or policy[best] == 0.0:
        raise ValueError("pi, q: expected one best action, with a positive probability.")
    if policy[best] >= 0.5:
        return 0, 0
    needed = math.log1p(-policy[best]) - math.log(policy[best])
    with np.errstate(over="ignore", divide="ignore"):
        low, high = needed / (weight * gaps.max()), needed / (weight * gaps.min())
    if not high < math.inf:
        raise ValueError("weight: the bounds leave the range of floats.")
    return math.ceil(low), math.ceil(high)


# The cost of a step


class CountedFloat:
    """A float that counts operations on it, except negations, in the first entry of a list."""

    def __init__(self, value: float, tally: list[int]) -> None:
        self.value, self.tally = value, tally

    def _with(self, value: float) -> CountedFloat:
        self.tally[0] += 1
        return CountedFloat(value, self.tally)

    def __add__(self, other: Any) -> CountedFloat:
        return self._with(self.value + _as_float(other))

    def __sub__(self, other: Any) -> CountedFloat:
        return self._with(self.value - _as_float(other))

    def __rsub__(self, other: Any) -> CountedFloat:
        return self._with(_as_float(other) - self.value)

    def __mul__(self, other: Any) -> CountedFloat:
        return self._with(self.value * _as_float(other))

    def __truediv__(self, other: Any) -> CountedFloat:
        return self._with(self.value / _as_float(other))

    def __rtruediv__(self, other: Any) -> CountedFloat:
        return self._with(_as_float(other) / self.value)

    def __neg__(self) -> CountedFloat:
        return CountedFloat(-self.value, self.tally)

    def __gt__(self, other: Any) -> bool:
        return bool(self._with(self.value).value > _as_float(other))

    def __lt__(self, other: Any) -> bool:
        return bool(self._with(self.value).value < _as_float(other))

    __radd__, __rmul__ = __add__, __mul__


def _as_float(number: Any) -> float:
    return number.value if isinstance(number, CountedFloat) else float(number)


def cost(update: Update, n_actions: int) -> dict[str, Any]:
    """Return the cost of one step of an update with a kernel, at a state with 3 or more actions.

    The keys are ``operations`` (the operations of the kernel at a random state if the greedy action
    is given), ``exponentials`` (the exponentials in the policy), ``memory`` (the numbers stored),
    ``sees`` (whether the step depends on all values or only on the greedy action) and
    ``tied actions`` (whether the step is the same for tied actions).
    """
    if update.kernel is None:
        raise ValueError(
            f"update: {update.name!r} has no kernel, and counting operations needs one."
        )
    rng = np.random.default_rng(n_actions)
    pi, q = rng.dirichlet(np.ones(n_actions)), rng.random(n_actions)
    theta, tally = update.parameters(pi), [0]
    scores, shares, values = (
        [CountedFloat(float(x), tally) for x in row] for row in (theta, pi, q)
    )
    update.kernel(scores, shares, values, int(q.argmax()), CountedFloat(0.5, tally), n_actions)
    others = q.max() * rng.random((20, n_actions))
    squeezed = np.where(q == q.max(), q, others)
    tied = np.where(np.arange(n_actions) < 2, 1.0, 0.0)
    after = update.policy(update.step(update.initial(1, n_actions)[0], tied, 0.1))
    return {
        "update": update.name,
        "operations": tally[0],
        "exponentials": n_actions if update.parametrization == "softmax" else 0,
        "memory": n_actions,
        "sees": "the greedy action"
        if np.all(update.step(theta, q, 0.5) == update.step(theta, squeezed, 0.5))
        else "all values",
        "tied actions": "alike" if abs(after[0] - after[1]) < 1e-12 else "one of them",
    }


def spma_bound(learnt: Any, w: Any) -> Any:
    """Return a bound on the steps that undo steps of SPMA whose log rates sum to `learnt`."""
    return 1 + (learnt + 4 / 3) / log1p(w)
