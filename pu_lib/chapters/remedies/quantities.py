r"""Effects of entropy bonuses, penalties, clipping, Adam and critics on the time to unlearn.

The process has one state. A policy learns for n steps; then the values change, and the count n' is
the number of steps until the new best action has probability one half. The *regret* is the loss of
the policy at the moment of the change: :math:`\max_a q(a)-\sum_a\pi(a)q(a)` for the old values.

With two actions that are a gap of 1 apart, the log-odds d of the action that was best follow
:math:`d_{t+1}=d_t-f(d_t)` after the change. If, between 0 and D, f is positive and at most F, and
log f changes by at most 1 where d changes by 1, the count from D is close to
:math:`T(D)=\int_0^Ddx/f(x)`:

.. math:: T(D)-\kappa(D+F)\le n'\le T(D)+D+1,\qquad\kappa=(e^F-1)/F.

For PG-SM with an entropy bonus :math:`\tau` and the weight w, :math:`f(x)=w(1+\tau
x)/(1+\cosh x)`, with the penalty :math:`\beta` as k3 in the loss towards the uniform policy
:math:`f(x)=w(1+\beta\sinh x)/(1+\cosh x)`, and with the weight decay :math:`\lambda`
:math:`f(x)=w/(1+\cosh x)+w\lambda x`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from flint import acb, arb
from scipy.special import comb, expit

from pu_lib.arrays import Floats
from pu_lib.chapters.unlearning.quantities import counts, steps_to_half
from pu_lib.chapters.what_came_after.later import mirror_ascent_growth
from pu_lib.experiments.bootstrap import median_rank
from pu_lib.parametrizations import softmax_of_list
from pu_lib.updates import UPDATES

__all__ = [
    "CHANGES",
    "REMEDIES",
    "Learner",
    "Median",
    "Outcome",
    "Remedy",
    "SampledRemedy",
    "count_after",
    "count_from",
    "count_limits",
    "decay_time",
    "decaying_bonus",
    "entropy_time",
    "fixed_odds",
    "group_outcome",
    "k3",
    "many_actions_regret",
    "median_of",
    "moving_reference",
    "no_sample",
    "normalised_threshold",
    "outcomes",
    "penalty_time",
    "sampled_counts",
    "sampled_median",
    "sampled_outcomes",
    "soft_npg_count",
    "table",
    "target_entropy",
    "varied_outcome",
]

MAX_STEPS = 100_000
"""The largest number of steps in which a policy is followed after the change."""

CHANGES: dict[str, tuple[list[float], list[float]]] = {
    "swap": ([1.0, 0.0], [0.0, 1.0]),
    "good turns bad": ([1.0, 0.5], [0.0, 0.5]),
    "bad turns good": ([0.5, 0.0], [0.5, 1.0]),
}
"""The values of two actions before and after the change."""

THREE = ([1.0, 0.5, 0.0], [0.0, 0.5, 1.0])
"""The values of three actions before and after the change."""


@dataclass(frozen=True)
class Remedy:
    r"""An update with its remedies.

    Attributes
    ----------
    update : str
        The name of an update of the library, or "spma". All remedies but `critic`, `sampled` and
        `exploration` require "pg-sm", except that "npg" allows `entropy`, too (soft NPG).
    weight : float
        The weight of each step.
    entropy : float
        The coefficient :math:`\tau` of the entropy bonus.
    penalty : float
        The coefficient :math:`\beta` of the divergence from a reference policy.
    estimator : bool
        Whether the penalty is k3 in the loss, as in DeepSeekMath and in TRL before 1.10: the
        expected gradient of :math:`\rho-1-\log\rho` with :math:`\rho=\pi_{\rm ref}/\pi` for
        samples of the batch's first policy. False is the gradient of
        :math:`KL(\pi\|\pi_{\rm ref})`, which k3 times the ratio of the policies has.
    cap : float
        The value above which k3 is cut, so that it has no gradient; 10 in verl and in OpenRLHF.
    reference : float or None
        The probability of the first action under the reference; the others share the rest. None
        is the uniform policy.
    epochs : int
        The number of gradient steps per batch; advantages and ratios refer to its first policy.
    clip : float
        The largest change of a ratio of probabilities, or 0 for no clipping.
    clip_higher : float or None
        The largest increase of a ratio, as in DAPO, if it is not `clip`.
    normalised : bool
        Whether advantages are divided by their standard deviation under the policy.
    adam : float
        The step size of Adam with the usual constants, or 0 for plain gradient steps.
    decay : float
        The coefficient of the decay of parameters.
    critic : float
        The rate :math:`\alpha` at which learned values follow the values.
    sampled : bool
        Whether the rate for an action is multiplied by the probability with which it is taken.
    exploration : float
        The probability with which the action taken is uniformly random, if `sampled`.
    """

    update: str = "pg-sm"
    weight: float = 1.0
    entropy: float = 0.0
    penalty: float = 0.0
    estimator: bool = False
    cap: float = math.inf
    reference: float | None = None
    epochs: int = 1
    clip: float = 0.0
    clip_higher: float | None = None
    normalised: bool = False
    adam: float = 0.0
    decay: float = 0.0
    critic: float = 1.0
    sampled: bool = False
    exploration: float = 0.0

    def __post_init__(self) -> None:
        """Raise a `ValueError` for an unknown update or a remedy that it does not allow."""
        if self.update not in (*UPDATES, "spma"):
            raise ValueError(f"update: unknown update {self.update!r}.")
        allowed = {"update", "weight", "critic", "sampled", "exploration"}
        allowed |= {"entropy"} if self.update == "npg" else set()
        changed = [name for name, value in vars(self).items() if value != getattr(Remedy, name)]
        if self.update != "pg-sm" and not allowed.issuperset(changed):
            raise ValueError(f"{self.update}: does not allow {sorted(set(changed) - allowed)}.")

    def start(self, policy: Sequence[float], q: Sequence[float] | None = None) -> Learner:
        """Return a learner with a policy of full support and learned values, 0 if not given."""
        return Learner(self, policy, q)


def k3(ratio: float) -> float:
    """Return the estimator k3, ratio - 1 - log(ratio), for a ratio of probabilities."""
    return ratio - 1 - math.log(ratio)


def _gradient(
    remedy: Remedy, theta: list[float], pi: list[float], old: list[float], adv: list[float]
) -> list[float]:
    """Return the gradient of the surrogate, with a bonus and a penalty, at the policy pi."""
    higher = remedy.clip if remedy.clip_higher is None else remedy.clip_higher
    rise, fall = 1 + higher, 1 - remedy.clip
    scores = [
        0.0 if remedy.clip and ((c > 0 and p > rise * o) or (c < 0 and p < fall * o)) else p * c
        for p, o, c in zip(pi, old, adv, strict=True)
    ]
    total = sum(scores)
    gradient = [s - p * total for s, p in zip(scores, pi, strict=True)]
    actions = range(len(pi))
    if remedy.entropy:
        for a in actions:
            mean = sum(pi[b] * (theta[a] - theta[b]) for b in actions)
            gradient[a] -= remedy.entropy * pi[a] * mean
    if remedy.penalty:
        first = 1 / len(pi) if remedy.reference is None else remedy.reference
        ref = [first] + [(1 - first) / (len(pi) - 1)] * (len(pi) - 1)
        # per action: the probability under the policy that sampled, times 1 - ref / pi
        sampled = [
            p - r if o == p else o * (1 - r / p) for p, o, r in zip(pi, old, ref, strict=True)
        ]
        if remedy.cap < math.inf:
            excess = (k3(r / p) > remedy.cap for p, r in zip(pi, ref, strict=True))
            sampled = [0.0 if cut else x for x, cut in zip(sampled, excess, strict=True)]
        for a in actions:
            if remedy.estimator:
                gradient[a] -= remedy.penalty * (sampled[a] - pi[a] * sum(sampled))
            else:
                mean = sum(
                    pi[b] * (theta[a] - theta[b] - math.log(ref[a] / ref[b])) for b in actions
                )
                gradient[a] -= remedy.penalty * pi[a] * mean
    return [g - remedy.decay * x for g, x in zip(gradient, theta, strict=True)]


class Learner:
    """The state of a policy under a remedy: parameters, learned values and Adam's averages."""

    def __init__(self, remedy: Remedy, policy: Sequence[float], q: Sequence[float] | None) -> None:
        self.remedy = remedy
        k = len(policy)
        if remedy.update in UPDATES:
            self.theta = [float(x) for x in UPDATES[remedy.update].parameters(policy)]
        else:
            self.theta = [math.log(p) for p in policy]
        self.q = [0.0] * k if q is None else list(q)
        self.first, self.second, self.steps = [0.0] * k, [0.0] * k, 0

    def policy(self) -> list[float]:
        """Return the probabilities of the actions."""
        if self.remedy.update in ("di", "pg-es"):
            return [float(p) for p in UPDATES[self.remedy.update].policy(np.array(self.theta))]
        return softmax_of_list(self.theta)

    def step(self, values: Sequence[float]) -> None:
        """Update the learned values towards `values`, and then the parameters."""
        remedy, theta = self.remedy, self.theta
        if remedy.critic < 1 or remedy.sampled:
            rates = [remedy.critic] * len(values)
            if remedy.sampled:
                pi, epsilon = self.policy(), remedy.exploration
                rates = [remedy.critic * (epsilon / len(pi) + (1 - epsilon) * p) for p in pi]
            self.q = [q + r * (v - q) for q, r, v in zip(self.q, rates, values, strict=True)]
        else:
            self.q = list(values)
        q, w = self.q, remedy.weight
        if remedy.update == "npg":
            self.theta = [
                x + w * (v - remedy.entropy * x) - w * max(q) for x, v in zip(theta, q, strict=True)
            ]
            return
        if remedy.update not in ("pg-sm", "spma"):
            self.theta = UPDATES[remedy.update].step(np.array(theta), np.array(q), w).tolist()
            return
        old = softmax_of_list(theta)
        if remedy.update == "spma":
            self.theta = (theta + np.log1p(mirror_ascent_growth(old, q, w))).tolist()
            return
        adv = [sum(p * (v - u) for p, u in zip(old, q, strict=True)) for v in q]
        if remedy.normalised:
            spread = math.sqrt(sum(p * c * c for p, c in zip(old, adv, strict=True)))
            adv = [c / spread if spread else 0.0 for c in adv]
        for epoch in range(remedy.epochs):
            pi = softmax_of_list(self.theta) if epoch else old
            slope = _gradient(remedy, self.theta, pi, old, adv)
            if remedy.adam:
                slope = self._adam(slope)
            size = remedy.adam or w
            self.theta = [x + size * g for x, g in zip(self.theta, slope, strict=True)]

    def _adam(self, slope: list[float]) -> list[float]:
        self.steps += 1
        self.first = [0.9 * m + 0.1 * g for m, g in zip(self.first, slope, strict=True)]
        self.second = [0.999 * v + 0.001 * g * g for v, g in zip(self.second, slope, strict=True)]
        bias, spread = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        return [
            m / bias / (math.sqrt(v / spread) + 1e-8)
            for m, v in zip(self.first, self.second, strict=True)
        ]


@dataclass(frozen=True)
class Outcome:
    """The count n' after n steps, and the regret at the change.

    Attributes
    ----------
    n : int
        The number of steps before the change.
    regret : float
        The regret at the change.
    count : int or float
        The number of steps until the new best action has probability one half, or infinity.
    """

    n: int
    regret: float
    count: float


def _finish(
    learner: Learner, n: int, before: Sequence[float], after: Sequence[float], most: int
) -> Outcome:
    pi, best, steps = learner.policy(), max(before), 0
    regret = sum(p * (best - v) for p, v in zip(pi, before, strict=True))
    target = after.index(max(after))
    while learner.policy()[target] < 0.5 - 1e-12:
        if steps == most:
            return Outcome(n, regret, math.inf)
        learner.step(after)
        steps += 1
    return Outcome(n, regret, steps)


def outcomes(
    remedy: Remedy,
    ns: Sequence[int],
    change: tuple[list[float], list[float]] = CHANGES["swap"],
    most: int = MAX_STEPS,
) -> list[Outcome]:
    """Return the outcomes after each of the numbers of steps from the uniform policy."""
    before, after = change
    learner, steps, results = remedy.start([1 / len(before)] * len(before)), 0, {}
    for n in sorted(set(ns)):
        for _ in range(n - steps):
            learner.step(before)
        steps = n
        results[n] = _finish(copy.deepcopy(learner), n, before, after, most)
    return [results[n] for n in ns]


def count_after(remedy: Remedy, n: int, **options: Any) -> float:
    """Return the count n' after n steps; the options are those of `outcomes`."""
    return outcomes(remedy, [n], **options)[0].count


def varied_outcome(
    remedy_at: Callable[[int, list[float]], Remedy],
    n: int,
    gap: float = 1.0,
    most: int = MAX_STEPS,
) -> Outcome:
    """Return the outcome after n steps under a remedy that may change in each step.

    `remedy_at` returns the remedy of PG-SM in a step, given the steps made so far and the policy,
    before the change and after it. Two values a gap apart are swapped.
    """
    learner, before, after = Remedy().start([0.5, 0.5]), [gap, 0.0], [0.0, gap]

    def step(t: int, values: list[float]) -> None:
        learner.remedy = remedy_at(t, learner.policy())
        learner.step(values)

    for t in range(n):
        step(t, before)
    regret, count = gap * learner.policy()[1], 0
    while learner.policy()[1] < 0.5 - 1e-12:
        if count == most:
            return Outcome(n, regret, math.inf)
        step(n + count, after)
        count += 1
    return Outcome(n, regret, count)


def decaying_bonus(entropy: float, steps: float) -> Callable[[int, list[float]], Remedy]:
    """Return the remedy of each step with a bonus that falls linearly to 0 in the given steps."""
    return lambda t, _: Remedy(entropy=entropy * max(0.0, 1 - t / steps))


def target_entropy(
    target: float, change: float = 0.005, most: float = 1.0, normalised: bool = False
) -> Callable[[int, list[float]], Remedy]:
    """Return the remedy of each step with an entropy bonus that follows a target, in nats.

    The bonus grows by `change` in each step in which the entropy is at most the target, and falls
    by as much otherwise, between 0 and `most`. It applies while the entropy of the step before is
    at most the target. This is the rule of TRL with `use_adaptive_entropy`; the values of `change`
    and `most` are its defaults.
    """
    bonus, low = 0.0, False

    def remedy_at(_: int, policy: list[float]) -> Remedy:
        nonlocal bonus, low
        remedy = Remedy(entropy=bonus if low else 0.0, normalised=normalised)
        low = -sum(p * math.log(p) for p in policy if p > 0) <= target
        bonus = min(max(bonus + (change if low else -change), 0.0), most)
        return remedy

    return remedy_at


def moving_reference(
    penalty: float, estimator: bool, every: int = 512, share: float = 0.6
) -> Callable[[int, list[float]], Remedy]:
    """Return the remedy of each step with a reference that moves towards the policy.

    After each `every` steps the parameters of the reference are the given share of the policy's and
    the rest of its own, from the uniform policy on. The values are TRL's with `sync_ref_model`.
    """
    odds = 0.0

    def remedy_at(t: int, policy: list[float]) -> Remedy:
        nonlocal odds
        if t and t % every == 0:
            odds = share * math.log(policy[0] / policy[1]) + (1 - share) * odds
        return Remedy(penalty=penalty, estimator=estimator, reference=float(expit(odds)))

    return remedy_at


def group_outcome(
    n: int, size: int, penalty: float, masked: bool, normalised: bool = False
) -> Outcome:
    """Return the outcome after n expected steps of a group, with k3 in the loss towards uniform.

    Two rewards, 1 and 0, are swapped. If `masked`, the penalty counts only in groups that have both
    rewards.
    """
    number = np.arange(size + 1)
    ways = comb(size, number)
    share = number / size
    mixed = (number > 0) & (number < size)
    gain = share * (1 - share)
    advantage = 2 * (np.sqrt(gain) if normalised else gain)

    def move(odds: float, sign: int) -> float:
        """Return the mean change of the log-odds of the action that was best."""
        pi, other = float(expit(odds)), float(expit(-odds))
        chances = ways * pi**number * other ** (size - number)
        pull = 2 * (share * (1 - 0.5 / pi) * other - (1 - share) * (1 - 0.5 / other) * pi)
        return float(chances @ (sign * advantage - penalty * pull * (mixed if masked else 1.0)))

    odds, count = 0.0, 0
    for _ in range(n):
        odds += move(odds, 1)
    regret = float(expit(-odds))
    while odds > 1e-11:
        odds, count = odds + move(odds, -1), count + 1
    return Outcome(n, regret, count)


def many_actions_regret(entropy: float, n_actions: int) -> float:
    r"""Return the regret at which PG-SM with a bonus stops, with one value of 1 and all others 0.

    The policy is in proportion to :math:`e^{q/\tau}`.
    """
    others = (n_actions - 1) * math.exp(-1 / entropy)
    return others / (1 + others)


def count_from(
    remedy: Remedy,
    probability: float,
    change: tuple[list[float], list[float]] = CHANGES["swap"],
    most: int = MAX_STEPS,
) -> float:
    """Return the count from a policy that gives the first action a probability.

    The other actions share the rest. Learned values are those before the change, and Adam has seen
    no gradient.
    """
    before, after = change
    rest = (1 - probability) / (len(before) - 1)
    learner = remedy.start([probability] + [rest] * (len(before) - 1), before)
    return _finish(learner, 0, before, after, most).count


# Exact facts on two actions


def count_limits(time: Any, odds: Any, most: Any) -> tuple[Any, Any]:
    """Return the lower and the upper bound on the count from log-odds D, given T(D) and F."""
    kappa = (arb(most).exp() - 1) / most
    return time - kappa * (odds + most), time + odds + 1


def entropy_time(tau: Any, odds: Any, w: Any = 1, reference: Any = 0) -> arb:
    """Return T(D) for PG-SM with an entropy bonus, in balls.

    For the divergence from a reference, `reference` is its log-odds and `tau` the coefficient. The
    time is positive if ``tau * reference < 1``.
    """
    return _integral(lambda x: 1 + arb(tau) * (x - arb(reference)), odds, w)


def penalty_time(beta: Any, odds: Any, w: Any = 1) -> arb:
    """Return T(D) for PG-SM with k3 in the loss, towards the uniform policy."""
    return _integral(lambda x: 1 + arb(beta) * x.sinh(), odds, w)


def decay_time(decay: Any, odds: Any, w: Any = 1) -> arb:
    """Return T(D) for PG-SM with weight decay."""
    return _integral(lambda x: 1 + arb(decay) * x * (1 + x.cosh()), odds, w)


def _integral(factor: Callable[[acb], acb], odds: Any, w: Any) -> arb:
    """Return the integral of (1 + cosh x) / (w factor(x)) from 0 to the log-odds."""
    top = arb(odds).exp()  # taken out, since the tolerance of the integral is absolute
    integral = acb.integral(lambda x, _: (1 + x.cosh()) / top / factor(x), 0, arb(odds))
    return integral.real * top / arb(w)


def fixed_odds(kind: Literal["entropy", "estimator", "decay"], coefficient: Any) -> arb:
    r"""Return the log-odds at which learning stops.

    They are :math:`1/\tau`, arsinh of :math:`1/\beta`, and the root D of
    :math:`\lambda D(1+\cosh D)=1`.
    """
    odds = 1 / arb(coefficient)
    if kind == "decay":
        return _decay_odds(odds)
    return odds if kind == "entropy" else odds.asinh()


def _decay_odds(inverse: arb) -> arb:
    """Return the root D of D (1 + cosh D) = 1 / decay."""

    def excess(x: arb) -> arb:
        return (x * (1 + x.cosh()) / inverse).log()

    root = (1 + inverse).log()
    for _ in range(60):
        root = arb((root - excess(root) / (1 / root + (root / 2).tanh())).mid())
    # the derivative of the logarithm, 1/x + tanh(x/2), is above 1
    return arb(root, abs(excess(root)).upper())


def normalised_threshold() -> arb:
    r"""Return the least bonus with a fixed point if advantages are normalised.

    The log-odds d stay if :math:`\tau d=2\cosh(d/2)`; the minimum of the right side over d is at
    :math:`y\tanh y=1` with :math:`y=d/2`.
    """
    y = arb("1.19967864025773383392")
    y = arb(y.mid(), "1e-15")
    slope = y.tanh() + y * (1 - y.tanh() ** 2)
    y = y.mid() - (y.mid() * arb(y.mid()).tanh() - 1) / slope  # interval Newton: encloses the root
    return y.cosh() / y


def soft_npg_count(tau: Any, w: Any = 1) -> int:
    """Return the largest count of soft NPG over all n: ceil(log 2 / -log(1 - w tau))."""
    ratio = arb(2).log() / -(1 - arb(w) * arb(tau)).log()
    return int(ratio.ceil().unique_fmpz() or 0)


def no_sample(odds: float, weight: float, group: int, steps: int = 2000) -> float:
    """Return a bound on the probability that NPG never takes the action that turned good.

    It starts at the given log-odds of the other action, which is worth `weight` more per step in
    log-odds. After `steps` steps a geometric series bounds the rest.
    """
    chances = expit(-(odds + weight * np.arange(steps)))
    rest = chances[-1] * math.exp(-weight) / -math.expm1(-weight)
    return float(math.exp(group * (np.log1p(-chances).sum() - 2 * rest)))


# Samples


@dataclass(frozen=True)
class SampledRemedy:
    r"""An update that sees the rewards of G sampled actions per step.

    Attributes
    ----------
    update : {"pg-sm", "npg", "ce", "di", "group"}
        The update; "group" is the policy gradient of the group's advantages.
    critic : float
        The rate of the learned values per sample; not used by "group".
    exploration : float
        The probability with which an action is uniformly random.
    ratio : bool
        Whether the gradient of "group" weights each sample by the probability of its action under
        the policy, divided by that under the policy that explores.
    entropy : float
        The coefficient of the entropy bonus, for "pg-sm", "group" and "npg" (soft NPG).
    penalty : float
        The coefficient of k3 in the loss, towards the uniform policy, for "group".
    expected : bool
        Whether the penalty is the mean over actions of the policy, and not that of the samples.
    redraws : int
        How often "group" draws again if all rewards agree, as in DAPO's dynamic sampling.
    normalised : bool
        Whether the group's advantages are divided by their standard deviation. It is that of the
        G rewards; GRPO programs may divide by G - 1 in the variance, as ``torch.std`` does.
    group : int
        The number of sampled actions per step.
    decay : float
        The coefficient of the decay of parameters, for "pg-sm" and "group".
    """

    update: str
    critic: float = 0.1
    exploration: float = 0.0
    ratio: bool = False
    entropy: float = 0.0
    penalty: float = 0.0
    expected: bool = False
    redraws: int = 0
    normalised: bool = False
    group: int = 8
    decay: float = 0.0


@dataclass
class _Runs:
    """The state of many independent runs with two actions."""

    odds: Floats
    values: Floats

    def policy(self, update: str) -> Floats:
        return self.odds if update == "di" else np.asarray(expit(self.odds))


def _sampled_step(
    remedy: SampledRemedy, runs: _Runs, values: Sequence[float], rng: np.random.Generator
) -> None:
    pi = runs.policy(remedy.update)
    tried = remedy.exploration / 2 + (1 - remedy.exploration) * pi
    taken = rng.binomial(remedy.group, tried).astype(np.float64)
    for _ in range(remedy.redraws):
        agree = (taken == 0) | (taken == remedy.group)
        if not agree.any():
            break
        taken[agree] = rng.binomial(remedy.group, tried[agree])
    numbers = np.stack([taken, remedy.group - taken])
    if remedy.update == "group":
        share = taken / remedy.group
        gap = values[0] - values[1]
        # sum of the advantages of the samples of each action; rewards have no noise
        slope = share * (1 - share) * gap
        if remedy.normalised:
            slope = np.sign(gap) * np.sqrt(share * (1 - share))
        other = expit(-runs.odds)
        first, second = np.ones_like(pi), np.ones_like(pi)
        if remedy.ratio:
            first, second = pi / tried, other / (1 - tried)
            slope = slope * (first * other + second * pi)
        if remedy.penalty:
            pull = pi - 0.5
            if not remedy.expected:
                pull = share * first * (1 - 0.5 / pi) * other
                pull -= (1 - share) * second * (1 - 0.5 / other) * pi
            slope = slope - remedy.penalty * pull
        bonus = 2 * remedy.entropy * pi * other
        runs.odds = runs.odds + 2 * slope - (bonus + remedy.decay) * runs.odds
        return
    rates = 1 - (1 - remedy.critic) ** numbers
    runs.values = runs.values + rates * (np.array(values)[:, None] - runs.values)
    gap = runs.values[0] - runs.values[1]
    if remedy.update == "di":
        runs.odds = np.clip(runs.odds + gap / 2, 0.0, 1.0)
    elif remedy.update == "npg":
        runs.odds = runs.odds + gap - remedy.entropy * runs.odds
    elif remedy.update == "ce":
        runs.odds = runs.odds + 2 * np.where(gap > 0, expit(-runs.odds), -pi) * (gap != 0)
    else:
        variance = pi * expit(-runs.odds)
        step = 2 * variance * (gap - remedy.entropy * runs.odds)
        runs.odds = runs.odds + step - remedy.decay * runs.odds


def sampled_outcomes(
    remedy: SampledRemedy,
    change: str,
    n: int = 0,
    probability: float = 0.5,
    n_runs: int = 100,
    most: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> tuple[Floats, Floats]:
    """Return the regrets at the change and the counts of independent runs with noise-free rewards.

    The runs learn for n steps of weight 1 from the probability of the first action. Without such
    steps the learned values are those before the change. Counts above `most` are infinite.
    """
    before, after = CHANGES[change]
    rng = np.random.default_rng(seed)
    known = before if n == 0 else [0.0, 0.0]
    direct = remedy.update == "di"
    start = probability if direct else math.log(probability / (1 - probability))
    runs = _Runs(np.full(n_runs, start), np.tile(np.array(known)[:, None], n_runs))
    for _ in range(n):
        _sampled_step(remedy, runs, before, rng)
    regrets = (before[0] - before[1]) * (1 - runs.odds if direct else expit(-runs.odds))
    counts = np.full(n_runs, math.inf)
    half = 0.5 if direct else 0.0
    for step in range(most + 1):
        counts[(runs.odds <= half) & np.isinf(counts)] = step
        # at the vertex only the first action is sampled, and its learned value tends to the new one
        stays = (runs.odds == 1) & (np.minimum(runs.values[0], after[0]) >= runs.values[1])
        stuck = direct and remedy.exploration == 0 and bool(stays.all())
        if np.isfinite(counts).all() or stuck:
            break
        _sampled_step(remedy, runs, after, rng)
    return regrets, counts


def sampled_counts(remedy: SampledRemedy, change: str, n: int = 0, **options: Any) -> Floats:
    """Return the counts of independent runs; the options are those of `sampled_outcomes`."""
    return sampled_outcomes(remedy, change, n, **options)[1]


def sampled_median(remedy: SampledRemedy, change: str, n: int = 0, **options: Any) -> float:
    """Return the median of the counts of `sampled_counts`."""
    return float(np.median(sampled_counts(remedy, change, n, **options)))


@dataclass(frozen=True)
class Median:
    """A median of counts with a 95 % interval that holds for any distribution.

    Attributes
    ----------
    value : float
        The median of the runs.
    low, high : float
        The ends of the interval, which are counts of runs.
    regret : float
        The median regret at the change.
    """

    value: float
    low: float
    high: float
    regret: float

    def __str__(self) -> str:
        """Return the median with its interval, as in 36 [35, 37]."""
        return f"{self.value:.0f} [{self.low:.0f}, {self.high:.0f}]".replace("inf", "∞")


def median_of(remedy: SampledRemedy, change: str, n: int = 0, **options: Any) -> Median:
    """Return the median of the counts of `sampled_outcomes` with its interval and the regret."""
    regrets, counts = sampled_outcomes(remedy, change, n, **options)
    ordered, k = np.sort(counts), median_rank(len(counts), 0.025)
    return Median(
        float(np.median(counts)),
        float(ordered[k - 1]),
        float(ordered[-k]),
        float(np.median(regrets)),
    )


# The table

REMEDIES: dict[str, Remedy] = {
    "PG-SM": Remedy(),
    "+ entropy 0.01": Remedy(entropy=0.01),
    "+ entropy 0.1": Remedy(entropy=0.1),
    "+ entropy 0.2": Remedy(entropy=0.2),
    "+ entropy 0.5": Remedy(entropy=0.5),
    "+ KL to uniform 0.1": Remedy(penalty=0.1),
    "+ KL to (0.9, 0.1) 0.1": Remedy(penalty=0.1, reference=0.9),
    "+ k3 in the loss 0.001": Remedy(penalty=0.001, estimator=True),
    "+ k3 in the loss 0.04": Remedy(penalty=0.04, estimator=True),
    "+ weight decay 0.001": Remedy(decay=0.001),
    "normalised advantages": Remedy(normalised=True),
    "normalised, entropy 0.1": Remedy(normalised=True, entropy=0.1),
    "normalised, k3 in the loss 0.04": Remedy(normalised=True, penalty=0.04, estimator=True),
    "normalised, k3 in the loss 0.001": Remedy(normalised=True, penalty=0.001, estimator=True),
    "4 epochs, clipped": Remedy(epochs=4, clip=0.2),
    "10 epochs, clipped": Remedy(epochs=10, clip=0.2),
    "Adam 0.0003": Remedy(adam=0.0003),
    "Adam 0.01": Remedy(adam=0.01),
    "Adam 0.1": Remedy(adam=0.1),
    "all of these": Remedy(epochs=10, clip=0.2, normalised=True, adam=0.01, entropy=0.01),
    "critic 0.1": Remedy(critic=0.1),
    "critic 0.01": Remedy(critic=0.01),
    "SPMA, weight 0.5": Remedy("spma", weight=0.5),
    "NPG": Remedy("npg"),
    "soft NPG 0.1": Remedy("npg", entropy=0.1),
    "soft NPG 0.2": Remedy("npg", entropy=0.2),
    "CE": Remedy("ce"),
    "CE, critic 0.01": Remedy("ce", critic=0.01),
    "MCE": Remedy("mce"),
    "SCE": Remedy("sce"),
    "DI": Remedy("di"),
    "DI, critic 0.01": Remedy("di", critic=0.01),
}
"""The rows of the table for two actions; "all of these" has ten epochs, Adam 0.01, entropy 0.01."""


def table(
    ns: Sequence[int] = (10, 100, 1000, 10_000),
    policies: Sequence[float] = (0.9, 0.99, 0.999),
    three: bool = False,
) -> dict[str, dict[str, float]]:
    """Return the counts after each n and from each policy, and the regret at the largest n.

    The values are swapped; with `three` actions they change from (1, 1/2, 0) to (0, 1/2, 1).
    """
    change, rows = THREE if three else CHANGES["swap"], {}
    for label, remedy in REMEDIES.items():
        after = outcomes(remedy, ns, change)
        row = {f"n = {x.n}": x.count for x in after} | {"regret": after[-1].regret}
        rows[label] = row | {f"from {p}": count_from(remedy, p, change) for p in policies}
    if not three:  # its parameters fall below the smallest number, so exact counts replace the run
        rows["PG-ES, weight 0.5"] = {
            **{f"n = {n}": x for n, x in zip(ns, counts(ns, "pg-es", 0.5), strict=True)},
            "regret": 0.0,
            **{f"from {p}": float(steps_to_half("pg-es", p, 0.5)) for p in policies},
        }
    return rows
