"""The checks of the chapter on stochastic updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.exact import Number, exact
from pu_lib.theory.gravity_well import parameters
from pu_lib.theory.stochastic_updates import (
    GAMBLE,
    THREE,
    Floats,
    Law,
    Schedule,
    bias,
    ce_limit,
    mce_limit,
    measured_bias,
    power_schedule,
    sample_runs,
    stuck_probability,
)
from pu_lib.updates import UPDATES
from pu_lib.verdict import Status, Verdict, check


@check("sec:expected/pg")
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
        Status.HOLDS if holds else Status.FALSE,
        1e-13 - worst,
        f"Over {200 * len(names)} random laws the largest exact bias of a parameter step is "
        f"{worst:.2g} (rounding; 1e-13 allowed); the intervals from {n_samples} sampled updates "
        f"{'cover' if holds else 'do not all cover'} zero.",
        tuple(rows),
    )


def _random_law(rng: np.random.Generator, n_actions: int) -> Law:
    return Law(rng.normal(size=(5, n_actions)), rng.dirichlet(np.ones(5)))


@check("sec:expected/symmetric")
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
        Status.HOLDS if worst < 1e-13 else Status.FALSE,
        1e-13 - worst,
        f"Over {500 * len(names)} random parameters and values the steps for q and -q sum to at "
        f"most {worst:.2g}.",
    )


@check("sec:expected/asymmetric")
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
        status if least > 1e-9 else Status.FALSE,
        least,
        f"With 3, 4 and 6 actions the steps for q and -q sum to at least {least:.3g} (12000 draws);"
        f" with two actions and the uniform policy they sum to {uniform:.2g}.",
        counterexample={"|A|": 2, "pi": "(1/2, 1/2)"} if symmetric_somewhere else None,
    )


@check("sec:expected/gaps")
def check_ignores_gaps(names: Sequence[str] = ("ce", "mce")) -> Verdict:
    """Section 3.5: `ce` and `mce` ignore the gaps of q, exactly."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for name in names:
        theta, q = rng.normal(size=(2, 5000, 4))
        near, far = (UPDATES[name].step(theta, f(q)) for f in (np.arctan, lambda x: 1e3 * x**3))
        worst = max(worst, float(np.abs(near - far).max()))
    return Verdict(
        Status.HOLDS if worst == 0.0 else Status.FALSE,
        -worst,
        f"Steps for arctan(q) and 1000 q^3, which have the same order, differ by {worst:.3g}.",
    )


@check("sec:expected/ce")
@check("sec:expected/mce", name="mce")
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
        Status.HOLDS if holds else Status.FALSE,
        float(room),
        f"With sampled values {name} ends at probability "
        + " and ".join(f"{row['measured']:.3f} (proved {row['its limit']:.3f})" for row in rows)
        + " of the best action; with averaged values at "
        + " and ".join(f"{row['with averaged values']:.3f}" for row in rows)
        + ".",
        tuple(rows),
    )


@check("sec:expected/di-sampled-action")
def check_sampled_action(rewards: tuple[Number, Number] = ("1/2", 1), power: int = 1) -> Verdict:
    """`di` under Robbins-Monro weights 1/(t+1), only the action taken sampled: it may get stuck."""
    probability, steps = stuck_probability(rewards, lambda t: Fraction(1, (t + 1) ** power))
    wrong = exact(rewards[0]) < exact(rewards[1])
    stuck = float(probability) if wrong else 0.0
    return Verdict(
        Status.FALSE if stuck > 0 else Status.HOLDS,
        -stuck,
        f"With rewards {rewards} DI is at the {'worse' if wrong else 'better'} vertex for ever "
        f"after {steps} step(s) with probability at least {probability}.",
        counterexample={"rewards": rewards, "weights": "1/(t+1)", "probability": str(probability)}
        if stuck > 0
        else None,
    )


@check("sec:expected/di")
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
        status if right and min(ends) > 0.9 else Status.FALSE,
        min(ends) - 0.9,
        f"Bias inside at most {inside:.1g}; after {n_steps} steps the best action has probability "
        f"at least {min(ends):.4f} in each of 200 runs. With only the action taken sampled the "
        f"claim fails: {stuck.summary}",
        tuple(rows),
    )


@check("sec:expected/necessary")
def check_necessary(name: str = "pg-sm", weight: float = 0.5, n_steps: int = 4000) -> Verdict:
    """Section 3.5: with constant rates expected updates are said to be necessary for all updates.

    `pg-sm` with a constant weight and sampled values converges all the same; `ce`, `mce` and `di`
    do need expected values.
    """
    runs = sample_runs(UPDATES[name], GAMBLE, lambda t: weight, n_steps, n_runs=200)
    at_best = runs.policies[-1][:, 1]
    converged = bool(at_best.min() > 0.9)
    return Verdict(
        Status.FALSE if converged else Status.HOLDS,
        0.9 - float(at_best.min()),
        f"With the constant weight {weight:g} and sampled values, {name} has probability "
        f"{at_best.mean():.4f} (worst of 200 runs {at_best.min():.4f}) of the best action after "
        f"{n_steps} steps.",
        counterexample={"update": name, "weight": weight, "values": "1 against 5 w.p. 1/4"}
        if converged
        else None,
    )
