"""Checks of the claims about stochastic and expected updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.chapters.gravity_well.quantities import parameters
from pu_lib.chapters.stochastic_updates.quantities import (
    GAMBLE,
    THREE,
    Floats,
    Law,
    Schedule,
    action_sample_law,
    bias,
    ce_limit,
    escort_growth,
    escort_threshold,
    mce_limit,
    mean_step,
    measured_bias,
    power_schedule,
    sample_runs,
    stuck_probability,
)
from pu_lib.chapters.unlearning.quantities import counts
from pu_lib.claims.recorder import Recorder, check
from pu_lib.domains import chain
from pu_lib.exact import Number, exact
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import PAPER, Update, as_update

Updates = Sequence[str | Update]

POLICY_GRADIENTS = ("pg-sm", "pg-es")
"""The policy gradients, which have steps that are linear in the values."""

CROSS_ENTROPY = ("ce", "mce")

ROUNDING = 1e-13
"""Tolerance on the difference between two sums of a few numbers of order one."""

LAWS = (
    GAMBLE,
    Law.of((0.6, (0.0, 1.0)), (0.4, (1.0, 0.0))),
    Law.of((0.9, (1, 1.3)), (0.1, (1, 0))),
)
"""Laws with two actions, of which the second has the larger mean value.

In the first law the second action usually has the smaller sampled value.
"""


@check(
    "sec:expected/pg",
    wrong={
        "CE": {"updates": ("ce",)},
        "MCE": {"updates": ("mce",)},
        "DI, near the boundary": {"updates": ("di",)},
    },
)
def policy_gradients_are_unbiased(compare: Recorder, updates: Updates = POLICY_GRADIENTS) -> None:
    """The steps of policy gradients are unbiased under sampled values."""
    rng = np.random.default_rng(0)
    for update in map(as_update, updates):
        for draw in range(200):
            pi, law = rng.dirichlet(np.ones(4)), _random_law(rng, 4)
            largest = float(np.abs(bias(update, parameters(update, pi), law, 1.0)).max())
            at: dict[str, Any] = {"update": update.name, "draw": draw}
            compare.equal("largest bias", largest, 0, tolerance=ROUNDING, limit="0", at=at)
        theta = parameters(update, [0.5, 0.3, 0.2])
        seen, half = measured_bias(update, theta, THREE, 1.0, 200_000, rng)
        for action in range(3):
            at = {"update": update.name, "action": action + 1}
            size, limit = float(abs(seen[action])), "the 99.9 % interval"
            compare.at_most("bias seen in samples", size, float(half[action]), limit=limit, at=at)


def _random_law(rng: np.random.Generator, n_actions: int) -> Law:
    return Law(rng.normal(size=(5, n_actions)), rng.dirichlet(np.ones(5)))


@check(
    "sec:expected/symmetric",
    wrong={
        "CE": {"updates": ("ce",)},
        "MCE": {"updates": ("mce",)},
        "DI, which meets its wall": {"updates": ("di",)},
    },
)
def policy_gradients_are_symmetric(compare: Recorder, updates: Updates = POLICY_GRADIENTS) -> None:
    """The steps of policy gradients for q and -q sum to zero."""
    rng = np.random.default_rng(1)
    for update in map(as_update, updates):
        for draw in range(500):
            theta, q = parameters(update, rng.dirichlet(np.ones(4))), rng.normal(size=4)
            there, back = (update.step(theta, sign * q, 1.0) - theta for sign in (1, -1))
            largest = float(np.abs(there + back).max())
            at = {"update": update.name, "draw": draw}
            compare.equal("sum of the two steps", largest, 0, tolerance=ROUNDING, limit="0", at=at)


@check(
    "sec:expected/asymmetric",
    wrong={
        "PG-SM": {"updates": ("pg-sm",)},
        "with three actions and more alone, where it holds as printed": {"two": False},
    },
)
def greedy_updates_are_asymmetric(
    compare: Recorder, updates: Updates = CROSS_ENTROPY, two: bool = True
) -> None:
    """The steps of CE and MCE for q and -q cancel only at the uniform policy of two actions."""
    rng, quantity = np.random.default_rng(2), "size of the sum of the steps for q and -q"
    for update in map(as_update, updates):
        for n_actions in (3, 4, 6):
            theta, q = rng.normal(size=(2, 2000, n_actions))
            total = update.step(theta, q) + update.step(theta, -q) - 2 * theta
            least = float(np.abs(total).max(axis=1).min())
            at: dict[str, Any] = {"update": update.name, "actions": n_actions, "draws": 2000}
            compare.at_least(quantity, least, 1e-9, limit="1e-9", at=at)
        if two:
            theta = update.initial(1, 2)[0]
            there, back = (update.step(theta, [sign, 0.0]) - theta for sign in (1.0, -1.0))
            size = float(np.abs(there + back).max())
            at = {"update": update.name, "actions": 2, "policy": "uniform"}
            compare.at_least(quantity, size, 1e-9, limit="1e-9", as_printed=True, at=at)


@check(
    "sec:expected/gaps",
    wrong={"PG-SM": {"updates": ("pg-sm",)}, "DI": {"updates": ("di",)}},
)
def greedy_updates_ignore_gaps(compare: Recorder, updates: Updates = CROSS_ENTROPY) -> None:
    """The steps of CE and MCE depend only on the greedy action, not on the gaps.

    The check compares the steps for arctan(q) and 1000 q^3, which give the actions the same order.
    """
    rng = np.random.default_rng(3)
    for update in map(as_update, updates):
        theta, q = parameters(update, rng.dirichlet(np.ones(4), 5000)), rng.normal(size=(5000, 4))
        near, far = (update.step(theta, f(q)) for f in (np.arctan, lambda x: 1e3 * x**3))
        for draw, apart in enumerate(np.abs(near - far).max(axis=1).tolist()):
            at = {"update": update.name, "draw": draw}
            compare.equal("distance of the two steps", apart, 0, tolerance=0, limit="0", at=at)


def is_biased(compare: Recorder, update: str, limit: Callable[[ArrayLike], Floats]) -> None:
    """The update converges to a suboptimal policy under sampled values.

    With averaged values the probability of the best action reaches 0.95.
    """
    chosen, schedule, n_steps = as_update(update), power_schedule(), 2000
    for law in (GAMBLE, THREE):
        runs = sample_runs(chosen, law, schedule, n_steps)
        critic = sample_runs(chosen, law, schedule, n_steps, averaged=True)
        best, target = int(np.argmax(law.mean)), limit(law.greedy)
        uniform = parameters(chosen, np.full(len(target), 1 / len(target)))
        size = float(np.abs(bias(chosen, uniform, law, 1.0)).max())
        # The sampling error plus the remaining influence of the initial policy, of order w_T.
        allowed = float(runs.interval()[-1].max() + 5 * schedule(n_steps))
        error = float(np.abs(runs.mean[-1] - target).max())
        at = {"actions": len(target)}
        compare.at_least("bias of a step", size, 1e-9, limit="1e-9", at=at)
        compare.at_most("distance to the limit", error, allowed, limit="what is allowed", at=at)
        lost = 1 - float(target[best])
        compare.at_least("what the limit leaves to others", lost, 1e-9, limit="1e-9", at=at)
        averaged = float(critic.mean[-1, best])
        compare.at_least("best action with averaged values", averaged, 0.95, limit="0.95", at=at)
    sampled = float(runs.mean[-1, best])
    compare.report(sampled=sampled, limit=float(target[best]), averaged=averaged)


ce_is_biased = check(
    "sec:expected/ce",
    arguments={"update": "ce", "limit": ce_limit},
    wrong={
        "the limit of MCE": {"limit": mce_limit},
        "PG-SM, which has no such limit": {"update": "pg-sm"},
    },
)(is_biased)

mce_is_biased = check(
    "sec:expected/mce",
    arguments={"update": "mce", "limit": mce_limit},
    wrong={
        "the limit of CE": {"limit": ce_limit},
        "DI, which has no such limit": {"update": "di"},
    },
)(is_biased)


@check(
    "book:sampled-action",
    wrong={"the first action is the better one": {"rewards": (1, "1/2")}},
)
def sampled_actions_may_trap_di(
    compare: Recorder, rewards: tuple[Number, Number] = ("1/2", 1)
) -> None:
    """If only the action taken is sampled, DI may stop at the worse action.

    The mean step of CE is zero for any positive rewards.
    """
    probability, steps = stuck_probability(rewards, lambda t: Fraction(1, t + 1))
    stuck = probability if exact(rewards[0]) < exact(rewards[1]) else Fraction(0)
    compare.at_least(
        "probability to be stuck at the worse action",
        stuck,
        Fraction(1, 2),
        limit="1/2",
        at={"rewards": rewards},
        note={"probability": str(probability), "steps": steps},
    )
    rng = np.random.default_rng(6)
    for _ in range(20):
        pi, paid = rng.dirichlet(np.ones(3)), rng.uniform(1, 9, 3)
        step = float(np.abs(mean_step(as_update("ce"), pi, action_sample_law(pi, paid))).max())
        at = {"rewards": paid.round(2).tolist()}
        compare.equal("mean step of CE", step, 0, tolerance=1e-12, limit="0", at=at)


ROBBINS_MONRO = power_schedule(power=0.75)
"""The weights (t + 1)^-0.75, which satisfy the Robbins-Monro conditions."""


@check(
    "sec:expected/di",
    wrong={
        "a constant weight 1/2": {"schedule": lambda t: 0.5, "n_steps": 500},
        "unbiased as soon as the policy is inside": {"inside": 1.0},
    },
)
def direct_is_biased_near_the_boundary_only(
    compare: Recorder,
    schedule: Schedule = ROBBINS_MONRO,
    n_steps: int = 4000,
    inside: float = 50.0,
) -> None:
    """DI is biased only near the boundary, and converges with Robbins-Monro weights."""
    update, rng = as_update("di"), np.random.default_rng(4)
    near, outside = [0.05, 0.05, 0.9], [0.0, 0.05, 0.95]
    for draw in range(200):
        pi = rng.dirichlet(np.full(3, inside))  # nearer the uniform policy for larger `inside`
        size = float(np.abs(bias(update, pi, THREE, 0.05)).max())
        compare.equal("bias inside", size, 0, tolerance=1e-14, limit="0", at={"draw": draw})
    for policy in ([0.34, 0.33, 0.33], near, outside):
        seen, half = measured_bias(update, policy, THREE, 0.2, 100_000, rng)
        apart = np.abs(seen - bias(update, policy, THREE, 0.2))
        at: dict[str, Any] = {"policy": policy}
        for off, width in zip(apart.tolist(), half.tolist(), strict=True):
            limit = "the 99.9 % interval"
            compare.at_most("error of the sampled bias", off, width + 1e-12, limit=limit, at=at)
    size = float(np.abs(bias(update, outside, THREE, 0.2)).max())
    compare.at_least("bias at the boundary", size, 1e-3, limit="0.001", at={"policy": outside})
    for law in (GAMBLE, THREE):
        last = sample_runs(update, law, schedule, n_steps).policies[-1]
        least = float(last[:, np.argmax(law.mean)].min())
        actions = {"actions": len(law.mean)}
        compare.at_least("best action in the worst run", least, 0.9, limit="0.9", at=actions)
    size = float(np.abs(bias(update, near, THREE, 0.2)).max())
    at = {"policy": near, "weight": 0.2}
    compare.equal("bias inside", size, 0, tolerance=1e-14, limit="0", as_printed=True, at=at)


# Constant weights

WORST_RUN = "better action in the worst run"


def _worst_run(update: str | Update, law: Law, weight: float, n_steps: int) -> float:
    """Return the smallest final probability of the second action in 100 runs."""
    runs = sample_runs(as_update(update), law, lambda _: weight, n_steps)
    return float(runs.policies[-1][:, 1].min())


@check(
    "book:constant-rate/pg-sm",
    wrong={
        "CE in place of PG-SM": {"update": "ce", "n_steps": 400},
        "DI in place of PG-SM": {"update": "di", "n_steps": 400},
    },
)
def softmax_converges_at_constant_rates(
    compare: Recorder, update: str = "pg-sm", n_steps: int = 4000
) -> None:
    """PG-SM converges to the better of two actions from samples at every constant weight."""
    for weight in (0.05, 0.1, 0.2, 0.5, 1.0):
        least = _worst_run(update, GAMBLE, weight, n_steps)
        compare.at_least(WORST_RUN, least, 0.9, limit="0.9", at={"weight": weight})


@check(
    "book:constant-rate/pg-es",
    wrong={
        "at four times the threshold": {"shares": (4.0,), "n_steps": 1000, "laws": LAWS[:1]},
        "CE in place of PG-ES": {"update": "ce", "n_steps": 500, "laws": LAWS[:1]},
    },
)
def escort_converges_below_its_threshold(
    compare: Recorder,
    update: str = "pg-es",
    shares: Sequence[float] = (0.3, 0.9),
    n_steps: int = 4000,
    laws: Sequence[Law] = LAWS,
) -> None:
    """PG-ES with p = 2 converges to the better of two actions if the weight is below a threshold.

    The values are sampled, and the threshold is `escort_threshold`.
    """
    second, quantity = np.linspace(0.0, 1.0, 41), "least excess of the mean logarithm"
    for (number, law), share in product(enumerate(laws, start=1), shares):
        weight = share * escort_threshold(law)  # equals the initial k, as the squared radius is 2
        at = {"law": number, "share": share, "weight": weight}
        least = _worst_run(update, law, weight, n_steps)
        compare.at_least(WORST_RUN, least, 0.9, limit="0.9", at=at)
        if share < 1:
            # The inequality of the proof on a grid of k up to its initial value: the mean change in
            # log|theta_2/theta_1| is at least a linear function of k, with equality at the
            # suboptimal vertex and the initial k.
            k = weight * np.linspace(0.02, 1.0, 25)[:, np.newaxis]
            floor = k * escort_growth(law, weight, 0.0) / weight
            excess = float((escort_growth(law, k, second) - floor).min())
            compare.equal(quantity, excess, 0, tolerance=1e-15, limit="0", at=at)


@check(
    "sec:expected/necessary",
    wrong={
        "PG-SM needs expected values, too": {"needing": ("pg-sm",), "without": ()},
        "only for DI, CE and MCE, as corrected": {"without": ()},
    },
)
def not_every_update_needs_expected_values(
    compare: Recorder,
    needing: Updates = tuple(name for name in PAPER if name not in POLICY_GRADIENTS),
    without: Updates = POLICY_GRADIENTS,
) -> None:
    """DI, CE and MCE do not reach the better action from samples at constant weights.

    The printed claim says the same of the policy gradients.
    """
    # The weights are below the threshold of PG-ES on this law.
    for updates, as_printed in ((needing, False), (without, True)):
        for update, weight in product(map(as_update, updates), (0.05, 0.1)):
            least, at = (
                _worst_run(update, GAMBLE, weight, 1500),
                {"update": update.name, "weight": weight},
            )
            compare.at_most(WORST_RUN, least, 0.9, limit="0.9", as_printed=as_printed, at=at)


@check(
    "sec:expected/decay",
    wrong={
        "PG-SM needs a decaying rate, too": {"needing": ("pg-sm",), "without": ()},
        "of DI alone, for which it is true": {"without": ()},
        "weights 1/2 decay enough": {"schedule": lambda t: 0.5},
    },
)
def not_every_sampled_update_needs_decay(
    compare: Recorder,
    needing: Updates = ("di",),
    without: Updates = POLICY_GRADIENTS,
    schedule: Schedule = ROBBINS_MONRO,
) -> None:
    """On samples DI reaches the better action with decaying weights and not with constant ones.

    The printed claim says the same of the policy gradients.
    """
    for update in map(as_update, needing):
        decaying = sample_runs(update, GAMBLE, schedule, 2000).policies[-1][:, 1].min()
        at: dict[str, Any] = {"update": update.name, "weight": "decaying"}
        compare.at_least(WORST_RUN, float(decaying), 0.9, limit="0.9", at=at)
    for updates, as_printed in ((needing, False), (without, True)):
        for update, weight in product(map(as_update, updates), (0.05, 0.1)):
            least, at = (
                _worst_run(update, GAMBLE, weight, 1500),
                {"update": update.name, "weight": weight},
            )
            compare.at_most(WORST_RUN, least, 0.9, limit="0.9", as_printed=as_printed, at=at)


@check(
    "sec:expected/visits-fall",
    wrong={
        "every state is a first state": {"everywhere": True},
        "the visits of the first state fall, too": {"falling": slice(0, 9)},
    },
)
def visits_fall_as_the_policy_settles(
    compare: Recorder, everywhere: bool = False, falling: slice = slice(1, 9)
) -> None:
    """On the chain, with visits as weights, all states but the first lose nearly all visits.

    The policy settles on jumping under each update, and the first state keeps its visits.
    """
    like = chain(10)
    initial = np.append(np.full(9, 1 / 9), 0.0) if everywhere else like.initial
    mdp = FiniteMDP(like.transitions, like.rewards, initial, like.discount, like.terminal)
    for name in PAPER:
        visits = run(mdp, name, 1200, 1.0, "occupancy").weights[:, :9]
        for state in range(9)[falling]:
            left, at = float(visits[-1, state] / visits[0, state]), {"update": name, "state": state}
            compare.at_most("share of the first visits left", left, 0.1, limit="1/10", at=at)
        least = float(visits[:, 0].min() / visits[0, 0])
        at = {"update": name, "state": 0}
        compare.equal(
            "least share of the visits of the first state", least, 1.0, tolerance=1e-12,
            limit="1", at=at,
        )  # fmt: skip


@check(
    "sec:symmetry/argument",
    wrong={
        "decaying weights in place of constant ones": {"schedule": "inverse-sqrt"},
        "constant weights save every update nine tenths": {"factor": 10.0},
        "PG-SM in place of PG-ES at its peak": {"peaked": "pg-sm"},
    },
)
def constant_weights_recover_sooner(
    compare: Recorder, schedule: str = "constant", factor: float = 1.0, peaked: str = "pg-es"
) -> None:
    """Every update recovers in fewer steps with constant weights than with decaying weights.

    This holds at step sizes up to 1. PG-ES at 2.1 recovers in fewer steps with decaying weights.
    """
    # A weight w is the step size times the state's share d of the updates. Expected updates
    # allow a constant step size, and off-policy updates allow a constant d, so w is constant.
    ns = (10, 100, 1000)
    for update, eta in (*product(PAPER, ("0.1", "0.5", "1")), (peaked, "2.1")):
        fast, slow = (counts(ns, update, eta, kind) for kind in (schedule, "inverse-sqrt"))
        for n, few, many in zip(ns, fast, slow, strict=True):
            compare.at_least(
                "updates under decaying weights",
                many,
                factor * few + 1,
                limit="one more than under constant ones",
                as_printed=eta == "2.1",
                at={"update": update, "eta": eta, "n": n},
                note={"constant": few, "decaying": many},
            )
