r"""Escape times from a gravity well, with bounds (paper, section 3.3).

**Escape times.** Let :math:`r = \pi(a_q)/\pi(b)` for the second best action b, and R the range of
q. Under `pg-sm` :math:`1/r` decreases by at most :math:`2wR` per step, so the number of steps to
escape from :math:`\pi(a_q) = \varepsilon` is at least of the order :math:`1/\varepsilon`. Under
`ce` and `mce` the odds against :math:`a_q` shrink at least by the factor :math:`e^{-w/2}` per step
if the odds exceed one, so :math:`O(\log 1/\varepsilon)` steps are enough. Under `di`
:math:`\pi(a_q)` gains at least :math:`w\Delta/2` per step, with :math:`\Delta` the gap of q, so the
number of steps has a bound that does not depend on :math:`\varepsilon`.
Under `pg-es` with p = 2, parameters of norm one and :math:`wR\le1/2`, no parameter crosses zero;
with :math:`N=\|\theta\|^2` a step multiplies :math:`|\theta_{a_q}/\theta_b|` by
:math:`1+\frac{k\,(\mathrm{adv}(a_q)-\mathrm{adv}(b))}{1+k\,\mathrm{adv}(b)}\ge1+w\Delta/N`, and
:math:`N'=N+4w^2V/N` implies :math:`N_t^2\le1+\frac94w^2R^2t`, so
:math:`O(\log^2 1/\varepsilon)` steps are enough.

**Effect of p.** To first order :math:`\pi(a_q)` increases in proportion to
:math:`\mathrm{adv}(a_q)\,\pi(a_q)^{2-2/p}` under `pg-es`, and to
:math:`\mathrm{adv}(a_q)\,\pi(a_q)^2` under `pg-sm`. If :math:`\pi(a_q)` is small and p > 2,
:math:`\pi(a_q)^{-(1-2/p)}` therefore decreases at a constant rate, and an escape takes about
:math:`\varepsilon^{-(1-2/p)}` steps (measured, not proved). As :math:`p\to\infty` this number tends
to the :math:`1/\varepsilon` of `pg-sm`.

**Corner bound.** If :math:`a_q` stays the same and gains most in each step, then
:math:`\pi_T(b)-\pi_0(b)\le\pi_T(a_q)-\pi_0(a_q)`, so that :math:`\pi_T(b)` never exceeds
:math:`(1+\pi_0(b)-\pi_0(a_q))/2`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import as_float, as_float_array, as_int, require_distributions
from pu_lib.chapters.gravity_well.quantities import parameters
from pu_lib.trajectories import follow
from pu_lib.updates import UPDATES, Update, as_update, softmax

_MOST_STEPS = 10_000_000

Floats = NDArray[np.float64]


def well_policy(epsilon: float) -> Floats:
    r"""Return the policy :math:`(\varepsilon, 1 - 2\varepsilon, \varepsilon)`."""
    epsilon = as_float("epsilon", epsilon)
    if not 0.0 < epsilon < 0.5:
        raise ValueError(f"epsilon: expected a number in (0, 1/2), got {epsilon}.")
    return np.array([epsilon, 1.0 - 2.0 * epsilon, epsilon])


def corner_bound(pi: ArrayLike, q: ArrayLike) -> Floats:
    """Return an upper bound on the probability of each action if the condition always holds.

    The bound of the greedy action is infinite.
    """
    policies, values = np.asarray(pi, dtype=np.float64), np.asarray(q, dtype=np.float64)
    greedy = np.arange(values.shape[-1]) == np.argmax(values, axis=-1)[..., np.newaxis]
    best = np.sum(np.where(greedy, policies, 0.0), axis=-1, keepdims=True)
    return np.where(greedy, np.inf, (1.0 + policies - best) / 2.0)


def escape_steps(
    update: str | Update, pi: ArrayLike, q: ArrayLike, weight: float = 1.0, cap: int = 200_000
) -> Floats:
    """Return the number of steps until the greedy action has probability 1/2.

    The number is infinite if it exceeds `cap`. Policies and values have shape (..., n_actions) and
    are broadcast. Steps are computed in floating point, so a probability of exactly 1/2 may be
    rounded to a smaller number and not count.
    """
    chosen = as_update(update)
    values, cap = as_float_array("q", q, axes=1), as_int("cap", cap, low=0, high=_MOST_STEPS)
    greedy = np.argmax(values, axis=-1)[..., np.newaxis]
    theta, values = (x.copy() for x in np.broadcast_arrays(parameters(chosen, pi), values))
    steps, done, chunk = np.full(theta.shape[:-1], np.inf), 0, min(64, cap)
    while True:
        path = follow(chosen, values, weight, chunk, theta)
        best = np.take_along_axis(
            chosen.policy(path), np.broadcast_to(greedy, path[..., :1].shape), -1
        )
        out = best[..., 0] >= 0.5
        first = done + np.argmax(out, axis=0)
        steps = np.where(np.isinf(steps) & out.any(axis=0), first, steps)
        theta, done = path[-1], done + chunk
        chunk = min(2 * chunk, 4096, cap - done)
        if chunk == 0 or not np.isinf(steps).any():
            return np.asarray(steps)


def greedy_path(
    update: str | Update, pi: ArrayLike, q: ArrayLike, weight: float, n_steps: int
) -> Floats:
    """Return the probability of the greedy action before each step, up to probability 0.99."""
    chosen, best = as_update(update), int(np.argmax(q))
    theta, chunk = parameters(chosen, pi), 64
    pieces = [chosen.policy(theta)[best : best + 1]]
    while n_steps > 0 and not (pieces[-1] >= 0.99).any():
        path = follow(chosen, q, weight, min(chunk, n_steps), theta)[1:]
        pieces.append(chosen.policy(path)[:, best])
        theta, n_steps, chunk = path[-1], n_steps - len(path), 2 * chunk
    probabilities = np.concatenate(pieces)
    there = np.flatnonzero(probabilities >= 0.99)
    return np.asarray(probabilities[: there[0] + 1] if len(there) else probabilities)


def lost_steps(
    theta0: ArrayLike, q: ArrayLike, weight: float = 1.0
) -> dict[str, tuple[float, float]]:
    """Return the escape times of each update from an initial policy and from the uniform policy.

    The softmax parameters `theta0` define the initial policy, which is the same for all updates.
    """
    pi = softmax(theta0)
    starts = np.stack([pi, np.full(pi.shape, 1.0 / pi.size)])
    values = np.broadcast_to(np.asarray(q, dtype=np.float64), starts.shape)
    counts = {name: escape_steps(name, starts, values, weight) for name in UPDATES}
    return {name: (float(lost), float(even)) for name, (lost, even) in counts.items()}


def escape_bound(
    update: str | Update, pi: ArrayLike, q: ArrayLike, weight: float
) -> tuple[float, float]:
    """Return proved lower and upper bounds on `escape_steps`, derived in the module docstring.

    A bound is 0 or infinity if no better bound is proved.
    """
    chosen = as_update(update)
    policy = as_float_array("pi", pi, axes=1)
    values = as_float_array("q", q, shape=policy.shape)
    if policy.ndim != 1 or len(policy) < 2:
        raise ValueError(f"pi: expected a policy of at least two actions, got {policy.shape}.")
    require_distributions("pi", policy)
    if not as_float("weight", weight) > 0.0:
        raise ValueError(f"weight: expected a number > 0, got {weight}.")
    greedy = int(np.argmax(values))
    second = int(np.argmax(np.where(np.arange(len(values)) == greedy, -np.inf, values)))
    gap, span = float(values[greedy] - values[second]), float(np.ptp(values))
    weight = float(weight)
    if not 0.0 < weight * gap <= weight * span < np.inf:
        raise ValueError(
            f"q: expected one best action, with a gap that is positive in floats, got {values}."
        )
    if policy[greedy] == 0.0 and chosen.name != "di":
        raise ValueError(f"pi: expected a positive probability of the best action, got {policy}.")
    if policy[greedy] >= 0.5:
        return 0.0, 0.0
    odds = (1.0 - policy[greedy]) / policy[greedy] if policy[greedy] > 0.0 else np.inf
    if chosen.name == "pg-sm":
        lead = float(policy[second] / policy[greedy])
        return max(0.0, (lead - 1.0) / (2.0 * weight * span)), np.inf
    if chosen.name in ("ce", "mce"):
        return 0.0, float(np.ceil(2.0 * float(np.log(odds)) / weight))
    if chosen.name == "di":
        return 0.0, float(np.ceil(float(1.0 - 2.0 * policy[greedy]) / (weight * gap)))
    if chosen == UPDATES["pg-es"]:
        return 0.0, _escort_escape(odds, weight * gap, weight * span)
    raise ValueError(
        f"update: no escape bound is proved for {chosen.name!r} with {chosen.options}."
    )


def _escort_escape(odds: float, lead: float, span: float) -> float:
    """Return an upper bound on the escape time of `pg-es` if no parameter crosses zero (wR <= 1/2).

    The bound is infinite if the sum has more than a million terms.
    """
    if span > 0.5:
        return np.inf
    steps, needed = 0, 0.5 * np.log(odds)
    while needed > 0.0:
        if steps == 1_000_000:
            return np.inf
        needed -= np.log1p(lead / np.sqrt(1.0 + 2.25 * span**2 * steps))
        steps += 1
    return float(steps)
