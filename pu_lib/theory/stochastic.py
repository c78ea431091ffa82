r"""Stochastic or expected updates: what sampled values do to the five updates (paper, section 3.5).

One state, true values :math:`q`, and instead of them independent samples :math:`\hat q_t` with mean
:math:`q`, drawn from a *law* with finitely many outcomes, so that every expectation below is a
finite sum. The *bias* of an update is :math:`E[U(\theta, \hat q)] - U(\theta, q)`. Let :math:`m(a)
= P(a_{\hat q} = a)`, the law of the sampled greedy action. Robbins-Monro weights are :math:`w_t >
0` with :math:`\sum w_t = \infty`, :math:`\sum w_t^2 < \infty`.

**Policy gradients** are linear in q: no bias, whatever the law. With two actions, `pg-sm` and any
constant weight, sampled values even suffice to converge: :math:`\delta = \theta_2 - \theta_1` moves
by :math:`2 w g(\delta) \xi`, with :math:`g = \pi(1)\pi(2)` and :math:`\xi` bounded of mean
:math:`\Delta > 0`. For small :math:`\lambda > 0` the variable :math:`M = e^{-\lambda\delta}` has
:math:`E[M_{t+1}] \le M_t (1 - c\,w g(\delta_t))`, so it converges; its limit is zero, because a
positive limit would keep g away from zero. Hence :math:`\pi_t(2) \to 1` almost surely.

**Cross-entropy updates** are biased: :math:`E[\hat a]` has coordinates m, so the mean step of `ce`
is :math:`w(m - \pi)` and that of `mce` is :math:`w\frac{|A| g_a - \sum_b g_b}{|A|-1}` with
:math:`g_a = m(a)(1-\pi(a))`. Under Robbins-Monro weights

- `ce` converges almost surely to :math:`\pi = m`, which minimises :math:`\sum_a (\pi(a) - m(a))^2`;
- `mce` converges almost surely to the policy :math:`\mu` that minimises
  :math:`\sum_a m(a) (1-\pi(a))^2` on the simplex: :math:`\mu(a) = \max(0, 1 - c/m(a))`.

Proof of both. Let :math:`\pi^\star` be the limit named and :math:`L(\theta) = \log\sum_a
e^{\theta_a} - \sum_a \pi^\star(a)\theta_a`, which is :math:`KL(\pi^\star \| \pi)` plus a constant,
smooth and convex, with gradient :math:`\pi - \pi^\star`. The mean step F has :math:`\langle\nabla
L, F\rangle = -\|\pi - m\|^2` under `ce` and :math:`\le -\frac{|A|}{|A|-1}\sum_a
m(a)(\pi(a)-\mu(a))^2` under `mce` (first-order optimality of :math:`\mu`). Steps are bounded, so
:math:`E[L_{t+1}] \le L_t - w_t D_t + C w_t^2`: by Robbins and Siegmund :math:`L_t` converges and
:math:`\sum w_t D_t < \infty`, hence :math:`D_t \to 0` along a subsequence, there :math:`L_t` tends
to its minimum, and so does the whole sequence.

**Direct parametrization** has no bias unless a sampled step reaches the boundary. Under
Robbins-Monro weights it converges almost surely to an optimal policy: the projection contracts, so
:math:`E\|\pi_{t+1} - \pi^\star\|^2 \le \|\pi_t - \pi^\star\|^2 - 2 w_t (v^\star - v_t) + w_t^2
E\|\hat q\|^2`. This needs a sample of *every* action with bounded variance. If only the action
taken is sampled, with :math:`\hat q = \mathbb 1_{a = A}\, r/\pi(A)`, an action of probability zero
is never tried again, and `di` stays at a wrong vertex with positive probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from pu_lib.exact import Number, exact
from pu_lib.theory.gravity_well import parameters
from pu_lib.updates import UPDATES, Update
from pu_lib.verdict import Status, Verdict

__all__ = [
    "GAMBLE",
    "THREE",
    "Law",
    "Runs",
    "bias",
    "ce_limit",
    "check_asymmetric",
    "check_biased",
    "check_di",
    "check_ignores_gaps",
    "check_necessary",
    "check_sampled_action",
    "check_symmetric",
    "check_unbiased",
    "gamble",
    "mce_limit",
    "mean_step",
    "measured_bias",
    "power_schedule",
    "sample_runs",
    "stuck_probability",
    "taken_law",
]

Floats = NDArray[np.float64]
Schedule = Callable[[int], float]


@dataclass(frozen=True)
class Law:
    """A law of sampled values with finitely many outcomes.

    Attributes
    ----------
    outcomes : ndarray, shape (n_outcomes, n_actions)
        The possible values of all actions.
    probabilities : ndarray, shape (n_outcomes,)
        Non-negative, summing to one.
    """

    outcomes: Floats
    probabilities: Floats

    def __post_init__(self) -> None:
        if self.outcomes.ndim != 2 or self.probabilities.shape != self.outcomes.shape[:1]:
            raise ValueError(
                "outcomes and probabilities: expected shapes (n, n_actions) and (n,), got "
                f"{self.outcomes.shape} and {self.probabilities.shape}."
            )
        if np.any(self.probabilities < 0) or abs(float(self.probabilities.sum()) - 1) > 1e-12:
            raise ValueError(f"probabilities: expected a law, got {self.probabilities.tolist()}.")

    @classmethod
    def of(cls, *rows: tuple[float, Sequence[float]]) -> Law:
        """Return the law given as pairs (probability, values)."""
        return cls(np.array([row[1] for row in rows], float), np.array([row[0] for row in rows]))

    @property
    def mean(self) -> Floats:
        """The true values q."""
        return np.asarray(self.probabilities @ self.outcomes)

    @property
    def greedy(self) -> Floats:
        r"""The law m of the sampled greedy action (the first of tied ones)."""
        best = np.argmax(self.outcomes, axis=1)
        return np.asarray(
            np.bincount(best, self.probabilities, minlength=self.outcomes.shape[1]), np.float64
        )

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw `n` values of all actions, shape (n, n_actions)."""
        return np.asarray(self.outcomes[self.indices(rng, n)])

    def indices(self, rng: np.random.Generator, n: int) -> NDArray[np.intp]:
        """Draw `n` indices of outcomes."""
        cumulated = np.cumsum(self.probabilities)
        return np.minimum(np.searchsorted(cumulated, rng.random(n), "right"), len(cumulated) - 1)


GAMBLE = Law.of((0.75, (1.0, 0.0)), (0.25, (1.0, 5.0)))
"""A sure 1 against 5 with probability 1/4: the second action is better (5/4) and looks worse."""

THREE = Law.of((0.5, (1.0, 0.0, 0.0)), (0.3, (0.0, 2.0, 0.0)), (0.2, (0.0, 0.0, 4.0)))
"""Three actions with means 0.5, 0.6, 0.8; the better an action, the less often it looks best."""


def gamble(noise: float) -> Law:
    """Return a sure 1 against 5/4 plus or minus a noise of mean zero, 5 z or -5 z/3."""
    return Law.of((0.75, (1.0, 1.25 * (1 - noise))), (0.25, (1.0, 1.25 * (1 + 3 * noise))))


def taken_law(pi: ArrayLike, rewards: ArrayLike) -> Law:
    r"""Return the law of :math:`\mathbb 1_{a=A}\,r(A)/\pi(A)`, only the action taken being sampled.

    Its mean is r for every policy with positive entries; with positive rewards the sampled greedy
    action is the action taken, so that the mean step of `ce` is zero whatever the rewards are.
    """
    policy = np.asarray(pi, dtype=np.float64)
    if np.any(policy <= 0):
        raise ValueError(f"pi: an action of probability zero is never sampled, got {policy}.")
    return Law(np.diag(np.asarray(rewards, dtype=np.float64) / policy), policy)


# Bias


def bias(update: Update, theta: ArrayLike, law: Law, weight: float) -> Floats:
    r"""Return :math:`E[U(\theta, \hat q)] - U(\theta, q)`, the expectation summed exactly."""
    steps = update.step(np.asarray(theta, float)[np.newaxis], law.outcomes, weight)
    return np.asarray(law.probabilities @ steps - update.step(theta, law.mean, weight))


def mean_step(update: Update, pi: ArrayLike, law: Law, weight: float = 1.0) -> Floats:
    """Return the expected step of the parameters from the interior policy `pi`, summed exactly."""
    theta = parameters(update, pi)
    steps = update.step(theta[np.newaxis], law.outcomes, weight)
    return np.asarray(law.probabilities @ steps - theta)


def measured_bias(
    update: Update,
    theta: ArrayLike,
    law: Law,
    weight: float,
    n_samples: int,
    rng: np.random.Generator,
    level: float = 0.999,
) -> tuple[Floats, Floats]:
    """Return the bias seen in samples and the half-width of its confidence interval.

    Parameters
    ----------
    update, theta, law, weight
        As for `bias`.
    n_samples : int
        Sampled updates from the same parameters.
    rng : numpy.random.Generator
        The source of the samples.
    level : float
        Confidence, one interval a coordinate, by the central limit theorem.
    """
    outcomes = update.step(np.asarray(theta, float)[np.newaxis], law.outcomes, weight)
    steps = outcomes[law.indices(rng, n_samples)]
    half = norm.ppf(0.5 + level / 2) * steps.std(axis=0, ddof=1) / np.sqrt(n_samples)
    return steps.mean(axis=0) - update.step(theta, law.mean, weight), np.asarray(half)


def check_unbiased(names: Sequence[str] = ("pg-sm", "pg-es"), n_samples: int = 200_000) -> Verdict:
    """Section 3.5: the policy gradients are unbiased under sampled values, and linear in q.

    Exact sums over the outcomes of random laws, and intervals from sampled updates.
    """
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    worst = 0.0
    for name in names:
        update = UPDATES[name]
        for _ in range(200):
            pi, law = rng.dirichlet(np.ones(4)), _random_law(rng, 4)
            worst = max(worst, float(np.abs(bias(update, parameters(update, pi), law, 1.0)).max()))
        theta = parameters(update, [0.5, 0.3, 0.2])
        seen, half = measured_bias(update, theta, THREE, 1.0, n_samples, rng)
        rows.append(
            {
                "update": name,
                "measured bias": float(np.abs(seen).max()),
                "half-width (99.9 %)": float(half.max()),
                "covers zero": bool(np.all(np.abs(seen) <= half)),
            }
        )
    holds = worst < 1e-13 and all(row["covers zero"] for row in rows)
    return Verdict(
        "sec:expected/pg",
        Status.HOLDS if holds else Status.FALSE,
        1e-13 - worst,
        f"Over {200 * len(names)} random laws the largest exact bias of a parameter step is "
        f"{worst:.2g} (rounding; 1e-13 allowed); the intervals from {n_samples} sampled updates "
        f"{'cover' if holds else 'do not all cover'} zero.",
        tuple(rows),
    )


def _random_law(rng: np.random.Generator, n_actions: int) -> Law:
    return Law(rng.normal(size=(5, n_actions)), rng.dirichlet(np.ones(5)))


def check_symmetric(names: Sequence[str] = ("pg-sm", "pg-es")) -> Verdict:
    r"""Section 3.5: the step of a policy gradient is odd in q: :math:`-q` undoes its direction."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for name in names:
        update = UPDATES[name]
        for _ in range(500):
            theta, q = parameters(update, rng.dirichlet(np.ones(4))), rng.normal(size=4)
            there, back = (update.step(theta, sign * q, 1.0) - theta for sign in (1, -1))
            worst = max(worst, float(np.abs(there + back).max()))
    return Verdict(
        "sec:expected/symmetric",
        Status.HOLDS if worst < 1e-13 else Status.FALSE,
        1e-13 - worst,
        f"Over {500 * len(names)} random parameters and values the steps for q and -q sum to at "
        f"most {worst:.2g}.",
    )


def check_asymmetric(names: Sequence[str] = ("ce", "mce")) -> Verdict:
    r"""Section 3.5: `ce` and `mce` are asymmetric everywhere, but for one policy.

    The `ce` steps for q and -q sum to :math:`w(e_{a_q} + e_{a_{-q}} - 2\pi)`, zero only if
    :math:`\pi` is one half at two actions; a softmax policy is that only with two actions, uniform.
    With three or more the `mce` steps sum to something negative at every other action.
    """
    rng = np.random.default_rng(2)
    least, uniform = np.inf, 0.0
    for name in names:
        update = UPDATES[name]
        for n_actions in (3, 4, 6):
            theta, q = rng.normal(size=(2, 2000, n_actions))
            both = update.step(theta, q) + update.step(theta, -q) - 2 * theta
            least = min(least, float(np.abs(both).max(axis=1).min()))
        there, back = (update.step([0.0, 0.0], [s, 0.0]) for s in (1.0, -1.0))
        uniform = max(uniform, float(np.abs(there + back).max()))
    symmetric_somewhere = uniform < 1e-15
    status = Status.CORRECTED if symmetric_somewhere else Status.HOLDS
    return Verdict(
        "sec:expected/asymmetric",
        status if least > 1e-9 else Status.FALSE,
        least,
        f"With 3, 4 and 6 actions the steps for q and -q sum to at least {least:.3g} (12000 draws);"
        f" with two actions and the uniform policy they sum to {uniform:.2g}.",
        counterexample={"|A|": 2, "pi": "(1/2, 1/2)"} if symmetric_somewhere else None,
    )


def check_ignores_gaps(names: Sequence[str] = ("ce", "mce")) -> Verdict:
    """Section 3.5: `ce` and `mce` ignore the gaps of q, exactly."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for name in names:
        theta, q = rng.normal(size=(2, 5000, 4))
        near, far = (UPDATES[name].step(theta, f(q)) for f in (np.arctan, lambda x: 1e3 * x**3))
        worst = max(worst, float(np.abs(near - far).max()))
    return Verdict(
        "sec:expected/gaps",
        Status.HOLDS if worst == 0.0 else Status.FALSE,
        -worst,
        f"Steps for arctan(q) and 1000 q^3, which have the same order, differ by {worst:.3g}.",
    )


# Limits


def ce_limit(m: ArrayLike) -> Floats:
    """Return the almost sure limit of `ce` under Robbins-Monro weights: the law m itself."""
    return np.array(m, dtype=np.float64)


def mce_limit(m: ArrayLike) -> Floats:
    r"""Return the almost sure limit of `mce`: :math:`\mu(a) = \max(0, 1 - c/m(a))`, summing to one.

    With the entries of m sorted in decreasing order, :math:`c = (k-1)/\sum_{j\le k} 1/m_j` for the
    largest k such that :math:`m_k > c`.
    """
    law = np.asarray(m, dtype=np.float64)
    descending = -np.sort(-law)
    descending = descending[descending > 0]
    levels = np.arange(len(descending)) / np.cumsum(1.0 / descending)
    c = levels[np.count_nonzero(descending > levels) - 1]
    safe = np.where(law > 0, law, 1.0)
    limit = np.where(law > c, 1.0 - c / safe, 0.0)
    return np.asarray(limit / limit.sum())


def power_schedule(scale: float = 1.0, power: float = 0.6) -> Schedule:
    """Return the weights scale * (t + 1)^-power; Robbins-Monro for a power in (1/2, 1]."""
    return lambda t: scale * (t + 1.0) ** -power


@dataclass(frozen=True)
class Runs:
    """Policies of independent runs at some times, shape (n_times, n_runs, n_actions)."""

    times: NDArray[np.int_]
    policies: Floats

    @property
    def mean(self) -> Floats:
        """The mean policy at each time, shape (n_times, n_actions)."""
        return np.asarray(self.policies.mean(axis=1))

    def interval(self, level: float = 0.999) -> Floats:
        """Return the half-width of the confidence interval of `mean`."""
        spread = self.policies.std(axis=1, ddof=1) / np.sqrt(self.policies.shape[1])
        return np.asarray(norm.ppf(0.5 + level / 2) * spread)


def sample_runs(
    update: Update,
    law: Law,
    schedule: Schedule,
    n_steps: int = 4000,
    n_runs: int = 100,
    seed: int = 0,
    averaged: bool = False,
    n_times: int = 40,
) -> Runs:
    """Run an update on sampled values from the uniform policy, many runs at once.

    Parameters
    ----------
    update : Update
        The update.
    law : Law
        The law of the samples.
    schedule : callable
        The weight of step t = 0, 1, ...
    n_steps, n_runs : int
        Length and number of runs.
    seed : int
        Of the random stream.
    averaged : bool
        Feed the update the mean of all samples so far, a critic, instead of the last sample.
    n_times : int
        How many times to record, evenly spaced in the logarithm.
    """
    rng = np.random.default_rng(seed)
    n_actions = law.outcomes.shape[1]
    times = np.unique(np.r_[0, np.round(np.geomspace(1, n_steps, n_times))].astype(int))
    theta = update.initial(n_runs, n_actions)
    total, recorded = np.zeros((n_runs, n_actions)), [update.policy(theta)]
    for t in range(n_steps):
        q = law.sample(rng, n_runs)
        if averaged:
            total += q
            q = total / (t + 1)
        theta = update.step(theta, q, schedule(t))
        if t + 1 in times:
            recorded.append(update.policy(theta))
    return Runs(times, np.stack(recorded))


def check_biased(
    name: str = "ce", limit: Callable[[ArrayLike], Floats] | None = None, n_steps: int = 2000
) -> Verdict:
    """Section 3.5: `ce` and `mce` are biased under sampled values; where they go instead.

    Parameters
    ----------
    name : str
        ``"ce"`` or ``"mce"``.
    limit : callable, optional
        Maps the law of the sampled greedy action to the limit; the proved one if missing.
    n_steps : int
        Updates a run.
    """
    limit = limit or (ce_limit if name == "ce" else mce_limit)
    update, room = UPDATES[name], np.inf
    rows: list[dict[str, Any]] = []
    for label, law in (("two actions", GAMBLE), ("three actions", THREE)):
        runs = sample_runs(update, law, power_schedule(), n_steps)
        critic = sample_runs(update, law, power_schedule(), n_steps, averaged=True)
        best, target = int(np.argmax(law.mean)), limit(law.greedy)
        # what is left of the start, of order w_T, besides the sampling error
        allowed = runs.interval()[-1].max() + 5 * power_schedule()(n_steps)
        error = float(np.abs(runs.mean[-1] - target).max())
        uniform = np.zeros(law.outcomes.shape[1])
        room = min(room, allowed - error, 1 - float(target[best]))
        rows.append(
            {
                "law": label,
                "exact bias of a step": float(np.abs(bias(update, uniform, law, 1.0)).max()),
                "best action": best + 1,
                "its limit": float(target[best]),
                "measured": float(runs.mean[-1, best]),
                "with averaged values": float(critic.mean[-1, best]),
            }
        )
    biased = min(row["exact bias of a step"] for row in rows) > 1e-9
    holds = biased and room > 0 and min(row["with averaged values"] for row in rows) > 0.95
    return Verdict(
        f"sec:expected/{name}",
        Status.HOLDS if holds else Status.FALSE,
        float(room),
        f"With sampled values {name} ends at probability "
        + " and ".join(f"{row['measured']:.3f} (proved {row['its limit']:.3f})" for row in rows)
        + " of the best action; with averaged values at "
        + " and ".join(f"{row['with averaged values']:.3f}" for row in rows)
        + ".",
        tuple(rows),
    )


# The direct parametrization


def stuck_probability(
    rewards: Sequence[Number], schedule: Callable[[int], Fraction], max_steps: int = 100
) -> tuple[Fraction, int]:
    r"""Return the exact probability that `di` goes straight to the first action and stays there.

    Two actions, uniform start, only the action taken sampled: :math:`\hat q = \mathbb 1_{a=A}
    r/\pi(A)`. The path on which the first action is always taken reaches the vertex after some
    steps with the probability returned; there the other action has probability zero and is never
    sampled.

    Returns
    -------
    probability : Fraction
        Zero if the vertex is not reached within `max_steps`.
    steps : int
        After how many steps it is.
    """
    reward, pi, probability = exact(rewards[0]), Fraction(1, 2), Fraction(1)
    for t in range(max_steps):
        probability *= pi
        pi = min(Fraction(1), pi + schedule(t) * reward / pi / 2)
        if pi == 1:
            return probability, t + 1
    return Fraction(0), max_steps


def check_sampled_action(rewards: tuple[Number, Number] = ("1/2", 1), power: int = 1) -> Verdict:
    """`di` under Robbins-Monro weights 1/(t+1), only the action taken sampled: it may get stuck."""
    probability, steps = stuck_probability(rewards, lambda t: Fraction(1, (t + 1) ** power))
    wrong = exact(rewards[0]) < exact(rewards[1])
    stuck = float(probability) if wrong else 0.0
    return Verdict(
        "sec:expected/di-sampled-action",
        Status.FALSE if stuck > 0 else Status.HOLDS,
        -stuck,
        f"With rewards {rewards} DI is at the {'worse' if wrong else 'better'} vertex for ever "
        f"after {steps} step(s) with probability at least {probability}.",
        counterexample={"rewards": rewards, "weights": "1/(t+1)", "probability": str(probability)}
        if stuck > 0
        else None,
    )


def check_di(schedule: Schedule | None = None, n_steps: int = 4000) -> Verdict:
    """Section 3.5: `di` is biased near the boundary only, and converges with Robbins-Monro.

    Parameters
    ----------
    schedule : callable, optional
        The weights; a constant weight does not converge.
    n_steps : int
        Updates a run.
    """
    schedule = schedule or power_schedule(power=0.75)
    update, rng = UPDATES["di"], np.random.default_rng(4)
    rows: list[dict[str, Any]] = []
    inside = max(
        float(np.abs(bias(update, rng.dirichlet(np.full(3, 50.0)), THREE, 0.05)).max())
        for _ in range(200)
    )
    for point in ([0.34, 0.33, 0.33], [0.05, 0.05, 0.9], [0.0, 0.05, 0.95]):
        seen, half = measured_bias(update, point, THREE, 0.2, 100_000, rng)
        true = bias(update, point, THREE, 0.2)
        rows.append(
            {
                "policy": str(tuple(point)),
                "exact bias": float(true[2]),
                "measured": float(seen[2]),
                "half-width (99.9 %)": float(half[2]),
                "covers": bool(np.all(np.abs(seen - true) <= half + 1e-12)),
            }
        )
    ends = [
        float(
            sample_runs(update, law, schedule, n_steps).policies[-1][:, np.argmax(law.mean)].min()
        )
        for law in (GAMBLE, THREE)
    ]
    at_boundary = abs(rows[-1]["exact bias"]) > 1e-3
    right = inside < 1e-14 and at_boundary and all(row["covers"] for row in rows)
    stuck = check_sampled_action()
    status = Status.HOLDS if stuck.status is Status.HOLDS else Status.CORRECTED
    return Verdict(
        "sec:expected/di",
        status if right and min(ends) > 0.9 else Status.FALSE,
        min(ends) - 0.9,
        f"Bias inside at most {inside:.1g}; after {n_steps} steps the best action has probability "
        f"at least {min(ends):.4f} in each of 200 runs. With only the action taken sampled the "
        f"claim fails: {stuck.summary}",
        tuple(rows),
    )


# Are expected updates necessary?


def check_necessary(name: str = "pg-sm", weight: float = 0.5, n_steps: int = 4000) -> Verdict:
    """Section 3.5: with constant rates expected updates are said to be necessary for all updates.

    `pg-sm` with a constant weight and sampled values converges all the same; `ce`, `mce` and `di`
    do need expected values.
    """
    runs = sample_runs(UPDATES[name], GAMBLE, lambda t: weight, n_steps, n_runs=200)
    at_best = runs.policies[-1][:, 1]
    converged = bool(at_best.min() > 0.9)
    return Verdict(
        "sec:expected/necessary",
        Status.FALSE if converged else Status.HOLDS,
        0.9 - float(at_best.min()),
        f"With the constant weight {weight:g} and sampled values, {name} has probability "
        f"{at_best.mean():.4f} (worst of 200 runs {at_best.min():.4f}) of the best action after "
        f"{n_steps} steps.",
        counterexample={"update": name, "weight": weight, "values": "1 against 5 w.p. 1/4"}
        if converged
        else None,
    )
