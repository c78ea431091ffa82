"""Checks of the claims about stochastic and expected updates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pu_lib.chapters.gravity_well.quantities import parameters
from pu_lib.chapters.stochastic_updates.quantities import (
    ADVANTAGES,
    GAMBLE,
    THREE,
    Floats,
    Law,
    Schedule,
    action_sample_law,
    alternation_odds,
    alternation_share,
    bias,
    ce_limit,
    escort_growth,
    escort_threshold,
    factor,
    group_factor,
    group_step,
    half_history_share,
    learned_least,
    learned_most,
    maxrl_factor,
    mce_limit,
    mean_step,
    measured_bias,
    period_counts,
    period_limit,
    period_shares,
    power_schedule,
    rejection_factor,
    return_least,
    return_most,
    sample_runs,
    stuck_probability,
    toward_correct,
    train,
    updates_back,
    wait_least,
    wait_most,
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
    """The steps of policy gradients for q and -q sum to zero, and those for (1, 0) and (0, 1).

    With two actions the step for (1, 0) is the gradient of pi(a_1).
    """
    rng = np.random.default_rng(1)
    for update in map(as_update, updates):
        for draw in range(500):
            q, two = rng.normal(size=4), np.array([1.0, 0.0])
            for values, opposite in ((q, -q), (two, two[::-1])):
                theta = parameters(update, rng.dirichlet(np.ones(len(values))))
                there, back = (update.step(theta, x, 1.0) - theta for x in (values, opposite))
                largest = float(np.abs(there + back).max())
                at = {"update": update.name, "actions": len(values), "draw": draw}
                compare.equal(
                    "sum of the two steps", largest, 0, tolerance=ROUNDING, limit="0", at=at
                )
            # theta and `there` are those of the values (1, 0)
            h, unit = 1e-6, np.eye(2)
            policies = [[update.policy(theta + s * h * x)[0] for x in unit] for s in (1.0, -1.0)]
            slope = np.subtract(policies[0], policies[1]) / (2 * h)
            error = float(np.abs(there - slope).max() / (1.0 + np.abs(slope).max()))
            compare.equal(
                "step for (1, 0) less the slope of pi(a_1), relative", error, 0,
                tolerance=1e-5, limit="0", at={"update": update.name, "draw": draw},
            )  # fmt: skip


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
    _compare_constant_weights(compare, needing, without)


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
    _compare_constant_weights(compare, needing, without)


def _compare_constant_weights(compare: Recorder, needing: Updates, without: Updates) -> None:
    """Compare with 0.9 what the worst run reaches at constant weights; of `without` as printed."""
    # The weights are below the threshold of PG-ES on this law.
    for updates, as_printed in ((needing, False), (without, True)):
        for update, weight in product(map(as_update, updates), (0.05, 0.1)):
            least = _worst_run(update, GAMBLE, weight, 1500)
            at = {"update": update.name, "weight": weight}
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


# Groups of samples


def _prompts(n_draws: int) -> Iterator[tuple[int, Floats, Any]]:
    """Yield random policies of two to five answers with some correct and some failing answers."""
    rng = np.random.default_rng(7)
    for draw in range(n_draws):
        n_answers = 2 + draw % 4
        correct = np.zeros(n_answers, dtype=bool)
        correct[rng.permutation(n_answers)[: rng.integers(1, n_answers)]] = True
        yield draw, rng.dirichlet(np.ones(n_answers)), correct


@check(
    "samples:step",
    wrong={
        "MaxRL has the factor of rejection sampling": {"less": 0},
        "rewards of 1 and 2": {"advantage": "MaxRL, shifted"},
    },
)
def groups_step_toward_the_correct_answers(
    compare: Recorder, less: int = 1, advantage: str = "MaxRL"
) -> None:
    """The expected step of a group is a factor times pi* - pi; MaxRL's is rejection sampling's.

    The expectation is a sum over all groups.
    """
    for (draw, pi, correct), size in product(_prompts(8), (2, 3, 4)):
        p, direction = float(pi[correct].sum()), toward_correct(pi, correct)
        factors = {name: group_factor(name, p, size) for name in ADVANTAGES}
        factors |= {"MaxRL": rejection_factor(p, size - less), "RLOO": p}
        factors["rejection sampling"] = rejection_factor(p, size)
        factors["MaxRL, shifted"] = factors["MaxRL"]
        groups = list(product(range(len(pi)), repeat=size))
        chances = pi[np.array(groups)].prod(axis=1)
        for name in dict.fromkeys((*ADVANTAGES, advantage)):
            steps = [_group_step(pi, group, correct, name) for group in groups]
            off = float(np.abs(chances @ np.array(steps) - factors[name] * direction).max())
            at = {"draw": draw, "G": size, "advantage": name}
            compare.equal("error of the step", off, 0, tolerance=ROUNDING, limit="0", at=at)
    for size, p in product((2, 8, 64), (0.001, 0.1, 0.9)):
        off = abs(group_factor("MaxRL", p, size) - maxrl_factor(p, size))
        at = {"G": size, "p": p}
        compare.equal("error of the factor", off, 0, tolerance=ROUNDING, limit="0", at=at)


def _group_step(pi: Floats, group: Sequence[int], correct: Any, name: str) -> Floats:
    """Return the step of a group; rewards are 1 and 2 for the wrong variant "MaxRL, shifted"."""
    if name in ADVANTAGES:
        return group_step(pi, group, correct, name)
    rewards = 1.0 + correct[list(group)]
    each = rewards / rewards.mean() - 1
    return np.asarray(np.bincount(group, each, minlength=len(pi)) / len(group))


@check(
    "samples:rises",
    wrong={"single groups of rejection sampling, too": {"single": tuple(ADVANTAGES)}},
)
def success_never_falls(
    compare: Recorder, single: Sequence[str] = ("MaxRL", "RLOO", "GRPO")
) -> None:
    """No step lowers the success probability, however large.

    Under the advantages that sum to zero this is true of each sampled step.
    """
    rng = np.random.default_rng(8)
    for draw, pi, correct in _prompts(200):
        size, weight = int(rng.integers(2, 9)), float(10 ** rng.uniform(-2, 4))
        p, at = float(pi[correct].sum()), {"draw": draw, "G": size}
        for name in ADVANTAGES:
            step = group_factor(name, p, size) * toward_correct(pi, correct)
            change = _change_of_odds(pi, correct, weight * step)
            quantity = "change of the log-odds, expected step"
            compare.at_least(quantity, change, 0.0, limit="0", at={**at, "advantage": name})
        group = rng.choice(len(pi), size=size, p=pi)
        for name in single:
            step = weight * group_step(pi, group, correct, name)
            change = _change_of_odds(pi, correct, step)
            quantity = "change of the log-odds, sampled step"
            compare.at_least(quantity, change, 0.0, limit="0", at={**at, "advantage": name})


def _change_of_odds(pi: Floats, correct: Any, step: Floats) -> float:
    """Return the change of the log-odds of success; rounding below 1e-13 is zero."""
    up = logsumexp(step[correct], b=pi[correct] / pi[correct].sum())
    down = logsumexp(step[~correct], b=pi[~correct] / pi[~correct].sum())
    change = float(up - down)
    return 0.0 if abs(change) < ROUNDING else change


@check(
    "samples:way-back",
    wrong={
        "rejection sampling in place of MaxRL": {"advantage": "rejection sampling"},
        "RLOO in place of MaxRL": {"advantage": "RLOO"},
    },
)
def maxrl_returns_in_a_share_of_n(compare: Recorder, advantage: str = "MaxRL") -> None:
    """Between two answers MaxRL needs n/(G - 1) updates and a logarithm; others as stated."""
    for size, weight in product((2, 8, 64), (0.1, 1.0, 3.0)):
        factor_of = factor(advantage, size)
        for n in (1, 10, 100, 1000):
            theta = train([0.0, 0.0], [0] * n, factor_of, weight)
            odds, count = math.exp(theta[0] - theta[1]), updates_back(theta, 1, factor_of, weight)
            at: dict[str, Any] = {"G": size, "weight": weight, "n": n}
            least, most = learned_least(n, weight), learned_most(n, weight)
            compare.at_least("odds after n updates", odds, least, at=at)
            compare.at_most("odds after n updates", odds, most, at=at)
            compare.at_least("n'", count, return_least(odds, weight, size), at=at)
            compare.at_most("n'", count, return_most(odds, weight, size), at=at)
    for name, share in {"RLOO": 1.0, "GRPO": 1.0, "rejection sampling": 1 / 8}.items():
        few, many = (_count_for_the_last([0] * n, 2, name, 8) for n in (500, 1500))
        off, at = abs(many - few - 1000 * share), {"G": 8, "advantage": name}
        compare.at_most("error of the count of 1000 updates more", off, 5.0, limit="5", at=at)
    counts = {size: _count_for_the_last([0] * 1000, 2, "MaxRL", size) for size in (8, 64)}
    compare.report(**{f"steps at {size}": count for size, count in counts.items()})


def _count_for_the_last(
    history: Sequence[int], n_answers: int, advantage: str, size: int, weight: float = 1.0
) -> int:
    """Return the updates of the last answer to one half after others were correct."""
    factor_of = factor(advantage, size)
    theta = train([0.0] * n_answers, history, factor_of, weight)
    return updates_back(theta, n_answers - 1, factor_of, weight)


@check(
    "samples:alternate",
    wrong={
        "n/(G - 1) after two in turn": {"share": lambda weight, size: 1 / (size - 1)},
        "in proportion to n if only the first half alternates": {"power": 1.0},
    },
)
def a_third_answer_returns(
    compare: Recorder,
    share: Callable[[float, int], float] = alternation_share,
    power: float = 1.5,
) -> None:
    """MaxRL's count for a third answer is as stated after two histories of the others."""
    for weight, size in ((1.0, 8), (1.0, 64), (0.1, 8), (2.0, 64)):
        at: dict[str, Any] = {"weight": weight, "G": size}
        theta = train([0.0] * 3, [0, 1] * 2000, factor("MaxRL", size), weight)
        off = abs(theta[1] - theta[0] - alternation_odds(weight, size))
        compare.at_most("distance of the log-odds from y", off, 0.001, limit="0.001", at=at)
        few, many = (
            _count_for_the_last([0, 1] * (n // 2), 3, "MaxRL", size, weight) for n in (4000, 8000)
        )
        expected, quantity = 4000 * share(weight, size), "error of the count of 4000 updates more"
        off, limit = abs(many - few - expected), "a fiftieth of it"
        compare.at_most(quantity, off, expected / 50, limit=limit, at=at)
    for n, size in product((4000, 16_000), (8, 64)):
        count = _count_for_the_last([0, 1] * (n // 4) + [1] * (n // 2), 3, "MaxRL", size)
        expected = half_history_share(1.0, size) * n**power * 4000 ** (1.5 - power)
        off, at = abs(count / expected - 1), {"weight": 1.0, "G": size, "n": n}
        compare.at_most("relative error, half alternating", off, 0.1, limit="0.1", at=at)
    turns, half = [0, 1] * 500, [0, 1] * 250 + [1] * 500
    for size in (8, 64):
        in_turn, mixed = (_count_for_the_last(h, 3, "MaxRL", size) for h in (turns, half))
        compare.report(**{f"steps at {size}": in_turn, f"half at {size}": mixed})


@check(
    "samples:three-in-turn",
    wrong={
        "in proportion to 1/(G - 1)": {"limit": lambda size: 2.4 / (size - 1)},
        "a share for groups of one sample more": {"more": 1},
    },
)
def three_in_turn(
    compare: Recorder, limit: Callable[[int], float] = period_limit, more: int = 0
) -> None:
    """In long periods of three answers in turn MaxRL's counts follow the stated shares."""
    period = 4000
    for size in (3, 8, 64):
        counts, shares = period_counts(size, period, 5), period_shares(size + more, 5)
        for number, (count, share) in enumerate(zip(counts, shares, strict=True), start=1):
            at = {"G": size, "period": number}
            off = abs(count - share * period)
            compare.at_most("error of n'", off, period / 200, limit="N/200", at=at)
    for size in (3, 4, 8, 16, 64, 256, 1024):
        last = period_shares(size, 100)[-1]
        off = abs(last / limit(size) - 1)
        compare.at_most("relative error of the limit", off, 1e-9, limit="1e-9", at={"G": size})
    first, *_, settled = period_counts(8, 1000, 8)
    compare.report(first=first, settled=settled)


@check(
    "samples:waiting",
    wrong={
        "half as many samples": {"share": 0.5},
        "the mean in place of the median": {"scale": 1 / math.log(2)},
    },
)
def nothing_is_learned_before_the_first_success(
    compare: Recorder, share: float = 1.0, scale: float = 1.0
) -> None:
    """No advantage moves the policy before the first success; the median wait is as stated."""
    for eps, size in product((Fraction(1, 10), Fraction(1, 50), Fraction(1, 500)), (2, 8, 64)):
        chance, median = (1 - eps) ** size, 1
        while chance**median > Fraction(1, 2):
            median += 1
        least, most = (f(float(eps), size * share) * scale for f in (wait_least, wait_most))
        at = {"eps": eps, "G": size}
        compare.at_least("median of the first success", median, least, at=at)
        compare.at_most("median of the first success", median, most, at=at)
    failing, pi = np.array([False, False, True]), np.array([0.7, 0.29, 0.01])
    for name, size in product(ADVANTAGES, (2, 8)):
        for first in range(size + 1):
            group = [0] * first + [1] * (size - first)
            moved = float(np.abs(group_step(pi, group, failing, name)).max())
            at = {"G": size, "advantage": name}
            compare.equal("step of a group that fails", moved, 0.0, limit="0", at=at)
