r"""Stochastic or expected updates: the five updates with sampled values (paper, section 3.5).

There is one state with true values :math:`q`. An update uses independent samples :math:`\hat q_t`
with mean :math:`q`, drawn from a *law* with finitely many outcomes, so every expectation below is a
finite sum. The *bias* of an update is :math:`E[U(\theta, \hat q)] - U(\theta, q)`. Let :math:`m(a)
= P(a_{\hat q} = a)` be the law of the sampled greedy action. Robbins-Monro weights satisfy
:math:`w_t > 0`, :math:`\sum w_t = \infty` and :math:`\sum w_t^2 < \infty`.

**Policy gradients** are linear in q, so they have no bias under any law. With two actions and a
constant weight they even converge from sampled values. Let :math:`\xi = \hat q(2) - \hat q(1)` be
bounded with mean :math:`\Delta > 0`.

- `pg-sm` converges at any weight. A step changes :math:`\delta = \theta_2 - \theta_1` by
  :math:`2 w g(\delta) \xi`, with :math:`g = \pi(1)\pi(2)`. For small :math:`\lambda > 0` the
  variable :math:`M = e^{-\lambda\delta}` satisfies
  :math:`E[M_{t+1}] \le M_t (1 - c\,w g(\delta_t))`, so M converges. The limit of M is zero, because
  a positive limit would bound g away from zero. Hence :math:`\pi_t(2) \to 1` almost surely.
- `pg-es` with p = 2 converges at weights below a threshold. With :math:`k = 2w/\|\theta\|^2` a step
  multiplies the ratio :math:`M = |\theta_1/\theta_2|` by
  :math:`|1 - k\pi(2)\xi| / |1 + k\pi(1)\xi|`. The mean logarithm of this factor is largest at the
  suboptimal vertex, with the value :math:`-E\log(1+k\xi)`. If this value is negative for the
  initial k, a power of M is a supermartingale and :math:`\pi_t(2) \to 1` almost surely
  (`escort_threshold`).

**Cross-entropy updates** are biased. The expected indicator of the sampled greedy action is m, so
the mean step of `ce` is :math:`w(m - \pi)`, and the mean step of `mce` is
:math:`w\frac{|A| g_a - \sum_b g_b}{|A|-1}` with :math:`g_a = m(a)(1-\pi(a))`. The `ce` steps for q
and -q sum to :math:`w(e_{a_q} + e_{a_{-q}} - 2\pi)`. This sum is zero only if :math:`\pi` is one
half at two actions, and a softmax policy satisfies this condition only if it is the uniform policy
of two actions. With three or more actions the sum of the `mce` steps is negative at every action
other than :math:`a_q` and :math:`a_{-q}`. Under Robbins-Monro weights

- `ce` converges almost surely to :math:`\pi = m`, which minimises :math:`\sum_a (\pi(a) - m(a))^2`;
- `mce` converges almost surely to the policy :math:`\mu` that minimises
  :math:`\sum_a m(a) (1-\pi(a))^2` on the simplex: :math:`\mu(a) = \max(0, 1 - c/m(a))`.

The proof is the same for both limits. Let :math:`\pi^\star` be the limit and :math:`L(\theta) =
\log\sum_a e^{\theta_a} - \sum_a \pi^\star(a)\theta_a`. This function is
:math:`KL(\pi^\star \| \pi)` plus a constant; it is smooth and convex and has the gradient
:math:`\pi - \pi^\star`. The mean step F satisfies :math:`\langle\nabla L, F\rangle = -\|\pi -
m\|^2` under `ce` and :math:`\langle\nabla L, F\rangle \le -\frac{|A|}{|A|-1}\sum_a
m(a)(\pi(a)-\mu(a))^2` under `mce`, by first-order optimality of :math:`\mu`. Let :math:`D_t` be the
negative of this bound at step t. Steps are bounded, so :math:`E[L_{t+1}] \le L_t - w_t D_t + C
w_t^2`. By the theorem of Robbins and Siegmund :math:`L_t` converges and :math:`\sum w_t D_t <
\infty`, hence :math:`D_t \to 0` along a subsequence. Along this subsequence :math:`L_t` tends to
its minimum, so the whole sequence does.

**Direct parametrization** has no bias unless a sampled step reaches the boundary. Under
Robbins-Monro weights it converges almost surely to an optimal policy: the projection does not
increase distances, so :math:`E\|\pi_{t+1} - \pi^\star\|^2 \le \|\pi_t - \pi^\star\|^2 - 2 w_t
(v^\star - v_t) + w_t^2 E\|\hat q\|^2`. This result needs a sample of *every* action with bounded
variance. If only the action taken is sampled, with :math:`\hat q = \mathbb 1_{a = A}\, r/\pi(A)`,
an action of probability zero is never sampled again, and `di` stays at a suboptimal vertex with
positive probability.

**Groups of samples.** The rewards are 1 for correct answers and 0 for all others, and p is the
probability of a correct answer. A group has G samples of the policy, and an advantage
:math:`A_i` for each, which depends on its reward and on the number of successes in the group. The
expected step of :math:`\frac1G\sum_i A_i\nabla\log\pi(a_i)` is :math:`\varphi(p)\,(\pi^\star -
\pi)`, where :math:`\pi^\star` is the policy restricted to the correct answers. The factor is

.. math:: \varphi(p) = p\,\big(E[A_1 \mid r_1 = 1] - E[A_1 \mid r_1 = 0]\big).

So the direction is that of cross-entropy towards :math:`\pi^\star`, whatever the advantage. MaxRL
has :math:`A_i = (r_i - \bar r)/\bar r` and the factor :math:`1 - (1-p)^{G-1}`. Rejection sampling,
which is cross-entropy on the correct samples, has :math:`1 - (1-p)^G`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtri

from pu_lib import kernels
from pu_lib.chapters.gravity_well.quantities import parameters
from pu_lib.claims.formulas import exp, formula, log
from pu_lib.exact import Number, exact
from pu_lib.parametrizations import softmax_of_list
from pu_lib.trajectories import follow
from pu_lib.updates import Update

__all__ = [
    "ADVANTAGES",
    "GAMBLE",
    "THREE",
    "Law",
    "Runs",
    "action_sample_law",
    "alternation_odds",
    "alternation_share",
    "bias",
    "ce_limit",
    "drift",
    "drift_zero",
    "escort_growth",
    "escort_threshold",
    "factor",
    "gamble",
    "group_factor",
    "group_step",
    "half_history_share",
    "learned_least",
    "learned_most",
    "maxrl_factor",
    "mce_limit",
    "mean_step",
    "measured_bias",
    "period_counts",
    "period_limit",
    "period_shares",
    "power_schedule",
    "rejection_factor",
    "return_least",
    "return_most",
    "sample_runs",
    "stuck_probability",
    "toward_correct",
    "train",
    "updates_back",
    "wait_least",
    "wait_most",
]

Floats = NDArray[np.float64]

Schedule = Callable[[int], float]
"""A function that returns the weight of the step t = 0, 1, ..."""

LEVEL = 0.999
"""The confidence level of the intervals of each coordinate, which use the central limit theorem."""


@dataclass(frozen=True)
class Law:
    """A distribution of sampled values with finitely many outcomes.

    Attributes
    ----------
    outcomes : ndarray, shape (n_outcomes, n_actions)
        The possible values of all actions.
    probabilities : ndarray, shape (n_outcomes,)
        Nonnegative numbers that sum to one.
    """

    outcomes: Floats
    probabilities: Floats

    def __post_init__(self) -> None:
        if self.outcomes.ndim != 2 or self.probabilities.shape != self.outcomes.shape[:1]:
            raise ValueError(
                "outcomes and probabilities: expected shapes (n, n_actions) and (n,), got "
                f"{self.outcomes.shape} and {self.probabilities.shape}."
            )
        total = float(self.probabilities.sum())
        if np.any(self.probabilities < 0) or not abs(total - 1) <= 1e-12:
            raise ValueError(
                "probabilities: expected a law (nonnegative numbers that sum to one), got "
                f"{self.probabilities.tolist()}."
            )

    @classmethod
    def of(cls, *rows: tuple[float, Sequence[float]]) -> Law:
        """Return the law with the given outcomes, as pairs (probability, values)."""
        return cls(np.array([row[1] for row in rows], float), np.array([row[0] for row in rows]))

    @property
    def mean(self) -> Floats:
        """The true values q."""
        return np.asarray(self.probabilities @ self.outcomes)

    @property
    def greedy(self) -> Floats:
        """The distribution m of the sampled greedy action, which is the first of tied actions."""
        best = np.argmax(self.outcomes, axis=1)
        return np.asarray(
            np.bincount(best, self.probabilities, minlength=self.outcomes.shape[1]), np.float64
        )

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw n outcomes, with one outcome per row."""
        return np.asarray(self.outcomes[self.indices(rng, n)])

    def indices(self, rng: np.random.Generator, n: int) -> NDArray[np.intp]:
        """Draw the indices of n outcomes."""
        cumulated = np.cumsum(self.probabilities)
        return np.minimum(np.searchsorted(cumulated, rng.random(n), "right"), len(cumulated) - 1)


GAMBLE = Law.of((0.75, (1.0, 0.0)), (0.25, (1.0, 5.0)))
"""A law with a sure value 1 for the first action and 5 with probability 1/4 for the second.

The second action has the larger mean, 5/4, but usually the smaller sampled value.
"""

THREE = Law.of((0.5, (1.0, 0.0, 0.0)), (0.3, (0.0, 2.0, 0.0)), (0.2, (0.0, 0.0, 4.0)))
"""A law with three actions and means 0.5, 0.6 and 0.8.

The better an action is, the less often it is the sampled greedy action.
"""


def gamble(noise: float) -> Law:
    """Return a law with a sure value 1 for the first action and a noisy 5/4 for the second.

    The noise has mean zero: it is 15 z/4 with probability 1/4 and -5 z/4 otherwise, if z is
    `noise`.
    """
    return Law.of((0.75, (1.0, 1.25 * (1 - noise))), (0.25, (1.0, 1.25 * (1 + 3 * noise))))


def action_sample_law(pi: ArrayLike, rewards: ArrayLike) -> Law:
    r"""Return the law of :math:`\mathbb 1_{a=A}\,r(A)/\pi(A)` if only the action taken is sampled.

    The mean of the law is r for every policy with positive entries. If the rewards are positive,
    the sampled greedy action is the action taken, so the mean step of `ce` is zero.
    """
    policy = np.asarray(pi, dtype=np.float64)
    if np.any(policy <= 0):
        raise ValueError(f"pi: an action of probability zero is never sampled, got {policy}.")
    return Law(np.diag(np.asarray(rewards, dtype=np.float64) / policy), policy)


# Bias


def bias(update: Update, theta: ArrayLike, law: Law, weight: float) -> Floats:
    r"""Return the bias :math:`E[U(\theta, \hat q)] - U(\theta, q)`, summed over the outcomes."""
    return np.asarray(
        _mean_after(update, theta, law, weight) - update.step(theta, law.mean, weight)
    )


def mean_step(update: Update, pi: ArrayLike, law: Law, weight: float = 1.0) -> Floats:
    """Return the expected change in the parameters in one step from the interior policy `pi`."""
    theta = parameters(update, pi)
    return np.asarray(_mean_after(update, theta, law, weight) - theta)


def _mean_after(update: Update, theta: ArrayLike, law: Law, weight: float) -> Floats:
    """Return the expected parameters after one step from `theta`."""
    steps = update.step(np.asarray(theta, float)[np.newaxis], law.outcomes, weight)
    return np.asarray(law.probabilities @ steps)


def measured_bias(
    update: Update,
    theta: ArrayLike,
    law: Law,
    weight: float,
    n_samples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return the bias measured in sampled steps and the half-width of its confidence interval."""
    outcomes = update.step(np.asarray(theta, float)[np.newaxis], law.outcomes, weight)
    steps = outcomes[law.indices(rng, n_samples)]
    return steps.mean(axis=0) - update.step(theta, law.mean, weight), _half_width(steps, axis=0)


def _half_width(samples: Floats, axis: int) -> Floats:
    """Return the half-width of the confidence interval of the mean along an axis."""
    spread = samples.std(axis=axis, ddof=1) / np.sqrt(samples.shape[axis])
    return np.asarray(ndtri(0.5 + LEVEL / 2) * spread)


# Limits


def ce_limit(m: ArrayLike) -> Floats:
    """Return m, the almost sure limit of `ce` under Robbins-Monro weights."""
    return np.array(m, dtype=np.float64)


def mce_limit(m: ArrayLike) -> Floats:
    r"""Return :math:`\mu(a) = \max(0, 1 - c/m(a))`, the almost sure limit of `mce`.

    The constant c makes the probabilities sum to one. With the entries of m sorted in decreasing
    order, :math:`c = (k-1)/\sum_{j\le k} 1/m_j` for the largest k such that :math:`m_k > c`.
    """
    law = np.asarray(m, dtype=np.float64)
    descending = -np.sort(-law)
    descending = descending[descending > 0]
    levels = np.arange(len(descending)) / np.cumsum(1.0 / descending)
    c = levels[np.count_nonzero(descending > levels) - 1]
    safe = np.where(law > 0, law, 1.0)
    limit = np.where(law > c, 1.0 - c / safe, 0.0)
    return np.asarray(limit / limit.sum())


def power_schedule(power: float = 0.6) -> Schedule:
    """Return the schedule (t + 1)^-power, which is Robbins-Monro for a power in (1/2, 1]."""
    return lambda t: (t + 1.0) ** -power


@dataclass(frozen=True)
class Runs:
    """The policies of independent runs at selected times.

    Attributes
    ----------
    times : ndarray of int, shape (n_times,)
        The number of steps before each recorded policy.
    policies : ndarray, shape (n_times, n_runs, n_actions)
        The policy of each run at each time.
    """

    times: NDArray[np.int_]
    policies: Floats

    @property
    def mean(self) -> Floats:
        """The mean policy at each time, as an array of shape (n_times, n_actions)."""
        return np.asarray(self.policies.mean(axis=1))

    def interval(self) -> Floats:
        """Return the half-width of the confidence interval of `mean`."""
        return _half_width(self.policies, axis=1)


def sample_runs(
    update: Update,
    law: Law,
    schedule: Schedule,
    n_steps: int = 4000,
    n_runs: int = 100,
    averaged: bool = False,
) -> Runs:
    """Run an update on sampled values in `n_runs` runs from the uniform policy.

    If `averaged` is true, the update uses the mean of all samples up to the current one, like a
    critic, instead of the current sample. The policies are recorded at up to 41 times,
    which are roughly evenly spaced on a logarithmic scale.
    """
    rng, n_actions = np.random.default_rng(0), law.outcomes.shape[1]
    times = np.unique(np.r_[0, np.round(np.geomspace(1, n_steps, 40))].astype(int))
    q = law.sample(rng, n_steps * n_runs).reshape(n_steps, n_runs, n_actions)
    if averaged:
        q = np.cumsum(q, axis=0) / np.arange(1, n_steps + 1)[:, np.newaxis, np.newaxis]
    weights = [schedule(t) for t in range(n_steps)]
    path = follow(update, q, weights, theta0=update.initial(n_runs, n_actions))
    return Runs(times, update.policy(path[times]))


# The direct parametrization


def stuck_probability(
    rewards: Sequence[Number], schedule: Callable[[int], Fraction], max_steps: int = 100
) -> tuple[Fraction, int]:
    r"""Return the probability that `di` always takes the first action, and the number of steps.

    The steps are those until the first action has probability one. There are two actions, the
    initial policy is uniform, and only the action taken is sampled, so :math:`\hat q = \mathbb
    1_{a=A} r/\pi(A)`. At the vertex of the first action the other action has probability zero and
    is never sampled again. The result is zero and `max_steps` if the policy does not reach the
    vertex within `max_steps` steps.
    """
    reward, pi, probability = exact(rewards[0]), Fraction(1, 2), Fraction(1)
    for t in range(max_steps):
        probability *= pi
        pi = min(Fraction(1), pi + schedule(t) * reward / pi / 2)
        if pi == 1:
            return probability, t + 1
    return Fraction(0), max_steps


# Constant weights


def escort_threshold(law: Law, radius: float = 2.0**0.5) -> float:
    r"""Return the weight below which sampled PG-ES with p = 2 converges to the better action.

    There are two actions, and :math:`\xi = \hat q(2) - \hat q(1)` has a positive mean. The
    threshold is :math:`w^\star = k^\star r_0^2/2` with :math:`E\log(1 + k^\star\xi) = 0`, or the
    weight with :math:`k\max|\xi| = 1`, at which a step can reach zero, if this weight is smaller.
    The default radius :math:`r_0 = \|\theta_0\|_2` belongs to the initial parameters (1, 1).
    """
    gap, chance = _gap(law), law.probabilities
    # A power of two, so that the division is exact.
    largest = 2.0 ** math.frexp(float(np.abs(gap).max()))[1]
    gap = gap / largest
    most = (1 - 1e-12) / float(np.abs(gap).max())

    def growth(k: float) -> float:
        return float(chance @ np.log1p(k * gap))

    scale = radius**2 / 2 / largest
    if growth(most) >= 0:
        return most * scale
    low = most / 2
    while growth(low) <= 0:
        low /= 2
    return float(brentq(growth, low, 2 * low, xtol=1e-15 * low)) * scale


def _gap(law: Law) -> Floats:
    """Return q(2) - q(1) for each outcome, or raise an error unless the second action is better."""
    if law.outcomes.shape[1] != 2 or law.mean[1] <= law.mean[0]:
        raise ValueError(f"law: expected two actions, the second one better, got {law.mean}.")
    return np.asarray(law.outcomes[:, 1] - law.outcomes[:, 0])


def escort_growth(law: Law, k: ArrayLike, pi: ArrayLike) -> Floats:
    r"""Return the mean change in :math:`\log|\theta_2/\theta_1|` in one step of sampled PG-ES.

    The exponent p is 2. The argument k is :math:`2w/\|\theta\|^2` and must be so small that no step
    reaches zero. The argument pi is :math:`\pi(2)`, and both arguments are broadcast.
    """
    gap, rate = _gap(law), np.asarray(k, dtype=np.float64)[..., np.newaxis]
    second = np.asarray(pi, dtype=np.float64)[..., np.newaxis]
    logs = np.log1p(rate * (1 - second) * gap) - np.log1p(-rate * second * gap)
    return np.asarray(logs @ law.probabilities)


def drift(update: Update, law: Law, weight: float, grid: ArrayLike) -> Floats:
    r"""Return the mean change :math:`E[\pi'(2)] - \pi(2)` in one step, at each pi(2) in `grid`."""
    second = np.asarray(grid, dtype=np.float64)
    theta = parameters(update, np.column_stack([1 - second, second]))
    after = update.policy(update.step(theta[:, np.newaxis], law.outcomes, weight))[..., 1]
    return np.asarray(after @ law.probabilities - second)


def drift_zero(update: Update, law: Law, weight: float) -> float:
    """Return the probability pi(2) at which `drift` has a zero in (0.001, 0.999)."""
    return float(brentq(lambda x: drift(update, law, weight, [x])[0], 1e-3, 1 - 1e-3, xtol=1e-12))


# Groups of samples: rewards 0 or 1

Factor = Callable[[float], float]
"""The factor of the expected step as a function of the success probability."""

MOST_STEPS = 1_000_000
"""The largest number of steps in which an answer is followed back."""

TIE = 1e-12
"""A probability that is less than one half by this much counts as one half."""

ADVANTAGES: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "RLOO": lambda s, size: ((size - s) / (size - 1), -s / (size - 1)),
    "GRPO": lambda s, size: (
        ((size - s) / s) ** 0.5 if s else 0,
        -((s / (size - s)) ** 0.5) if s < size else 0,
    ),
    "MaxRL": lambda s, size: ((size - s) / s, -1) if s else (0, 0),
    "rejection sampling": lambda s, size: (size / s if s else 0, 0),
}
"""Advantages of a correct and of a failing sample, by the number of successes and the group size.

RLOO subtracts the mean reward of the other samples. GRPO subtracts the mean of the group and
divides by its standard deviation, MaxRL divides by the mean instead. Rejection sampling is the mean
gradient of the cross-entropy on the correct samples.
"""


@formula
def maxrl_factor(p: Any, size: Any) -> Any:
    """Return the factor of MaxRL's expected step with groups of `size` samples."""
    return 1 - (1 - p) ** (size - 1)


@formula
def rejection_factor(p: Any, size: Any) -> Any:
    """Return the factor of the expected step of rejection sampling with `size` samples."""
    return 1 - (1 - p) ** size


def group_factor(advantage: str, p: Any, size: int) -> Any:
    r"""Return :math:`\varphi(p)`, summed over the number of successes among the other samples.

    The result is a Fraction if p is one and the advantage is not that of GRPO.
    """
    total, others, one = p * 0, size - 1, p * 0 + 1
    for s in range(size):
        chance = math.comb(others, s) * p**s * (1 - p) ** (others - s)
        right, _ = ADVANTAGES[advantage](s + 1, size * one)
        _, wrong = ADVANTAGES[advantage](s, size * one)
        total += chance * (right - wrong)
    return p * total


def factor(advantage: str, size: int) -> Factor:
    """Return the factor of an advantage as a function of the success probability."""
    if advantage == "MaxRL":
        return lambda p: float(maxrl_factor(p, size))
    return lambda p: float(group_factor(advantage, p, size))


def toward_correct(pi: ArrayLike, correct: ArrayLike) -> Floats:
    r"""Return :math:`\pi^\star - \pi`; zero if no correct answer has positive probability."""
    policy = np.asarray(pi, dtype=np.float64)
    kept = np.where(correct, policy, 0.0)
    p = float(kept.sum())
    return kept / p - policy if p > 0 else np.zeros_like(policy)


def group_step(pi: ArrayLike, answers: ArrayLike, correct: ArrayLike, advantage: str) -> Floats:
    """Return the step of unit weight from the sampled `answers` of one group.

    `correct` has a truth value for each answer of the policy.
    """
    policy, drawn = np.asarray(pi, dtype=np.float64), np.asarray(answers)
    rewards = np.asarray(correct, dtype=bool)[drawn]
    right, wrong = ADVANTAGES[advantage](float(rewards.sum()), float(len(drawn)))
    each = np.where(rewards, right, wrong)
    counted = np.bincount(drawn, each, minlength=len(policy))
    return np.asarray((counted - each.sum() * policy) / len(drawn))


def train(
    theta: Sequence[float], answers: Iterable[int], factor_of: Factor, weight: float = 1.0
) -> list[float]:
    """Return the parameters after expected steps, each with its only correct answer."""
    row = list(theta)
    for answer in answers:
        pi = softmax_of_list(row)
        kernels.ce(row, pi, None, answer, weight * factor_of(pi[answer]), len(row))
    return row


def updates_back(
    theta: Sequence[float], answer: int, factor_of: Factor, weight: float = 1.0
) -> int:
    """Return the expected steps until the only correct answer has probability one half.

    Raises
    ------
    ValueError
        If more than a million steps are needed.
    """
    row = list(theta)
    for n in range(MOST_STEPS):
        if softmax_of_list(row)[answer] >= 0.5 - TIE:
            return n
        row = train(row, [answer], factor_of, weight)
    raise ValueError(f"answer {answer} does not reach probability 1/2 in {MOST_STEPS} steps.")


def period_counts(size: int, period: int, n_counts: int, weight: float = 1.0) -> list[int]:
    """Return MaxRL's counts n' in periods in which three answers are correct in turn."""
    maxrl, theta, counts = factor("MaxRL", size), [0.0] * 3, []
    for answer in range(n_counts):
        theta = train(theta, [answer % 3] * period, maxrl, weight)
        counts.append(updates_back(theta, (answer + 1) % 3, maxrl, weight))
    return counts


@formula
def return_least(odds: Any, w: Any, size: Any) -> Any:
    """Return the lower bound on MaxRL's count from `odds` against the better of two answers."""
    return (odds - 1) / (2 * w * (size - 1))


@formula
def return_most(odds: Any, w: Any, size: Any) -> Any:
    """Return the upper bound on MaxRL's count from `odds` against the better of two answers."""
    return 1 + log(1 + odds) + (1 + log(odds) + (odds + 2 * log(odds)) / (size - 1)) / (2 * w)


@formula
def learned_least(n: Any, w: Any) -> Any:
    """Return the lower bound on the odds after n steps of MaxRL towards one of two answers."""
    return 1 + 2 * w * n - 2 * w - 8 * log(1 + w * n / 4)


@formula
def learned_most(n: Any, w: Any) -> Any:
    """Return the upper bound on the odds after n steps of MaxRL towards one of two answers."""
    return 1 + 2 * w * n + w * exp(w) * (w + 4 * log(1 + w * n / 4))


@formula
def wait_least(eps: Any, size: Any) -> Any:
    """Return the lower bound on the median number of groups up to the first success."""
    return (1 - eps) * log(2) / (size * eps)


@formula
def wait_most(eps: Any, size: Any) -> Any:
    """Return the upper bound on the median number of groups up to the first success."""
    return 1 + log(2) / (size * eps)


def alternation_odds(weight: float, size: int) -> float:
    r"""Return the solution y of :math:`y = w\,\sigma(y)\,(1 - \sigma(y)^{G-1})`.

    If two answers are correct in turn, y is the log-odds of the one that was just correct against
    the other one. The alternation is stable if :math:`G\,\sigma(y)^{G-1} < 1`.
    """

    def excess(y: float) -> float:
        p = 1.0 / (1.0 + math.exp(-y))
        return weight * p * (1.0 - p ** (size - 1)) - y

    return float(brentq(excess, 0.0, weight, xtol=1e-15))


def _alternation_factor(weight: float, size: int) -> tuple[float, float]:
    """Return y and the factor of a step of the alternation, divided by cosh(y/2)."""
    y = alternation_odds(weight, size)
    p = 1.0 / (1.0 + math.exp(-y))
    return y, (1.0 - p ** (size - 1)) / math.cosh(y / 2)


def alternation_share(weight: float, size: int) -> float:
    """Return the limit of n'/n for a third answer after two others were correct in turn."""
    y, scale = _alternation_factor(weight, size)
    slope = math.sinh(y / 2)
    mean, _ = quad(lambda x: 3 * x**2 * math.sqrt(1 + (slope * x) ** 2), 0, 1)
    return float(scale * mean / (size - 1))


def half_history_share(weight: float, size: int) -> float:
    r"""Return the limit of :math:`n'/n^{3/2}` if only the first half alternates."""
    _, scale = _alternation_factor(weight, size)
    return 3 / 16 * math.sqrt(weight) * scale / (size - 1)


@formula
def period_limit(size: Any) -> Any:
    """Return the share of a long period that MaxRL needs to return, with three answers in turn."""
    return 12 / (5 * size + 7)


def period_shares(size: int, n_periods: int) -> list[float]:
    r"""Return the limits :math:`\rho_1, \rho_2, \dots` of n'/N at the ends of periods of N updates.

    The list ends at the first share of 1 or more, at which an answer is not back in its period.
    """
    x = y = 3 ** (1 / 3)
    shares: list[float] = []
    while len(shares) < n_periods:
        shares.append(x * y**2 / (2 * (size - 1)))
        if shares[-1] >= 1:
            break
        last = x

        def excess(z: float, last: float = last, rest: float = 1 - shares[-1]) -> float:
            return z**3 / 3 + last * z**2 / 2 - rest

        x = float(brentq(excess, 0.0, 3.0, xtol=1e-15))
        y = last + x
    return shares
