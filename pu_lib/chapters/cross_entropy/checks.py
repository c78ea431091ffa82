"""Checks of the claims about the cross-entropy update."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib import kernels
from pu_lib.chapters.cross_entropy import constant_weights as constant
from pu_lib.chapters.cross_entropy import hexagon, one_half
from pu_lib.chapters.cross_entropy import quantities as ce
from pu_lib.chapters.cross_entropy.cycles import (
    FOUR_STATES,
    THREE_STATES,
    CycleExample,
    NotCertifiedError,
    Phase,
)
from pu_lib.chapters.cross_entropy.quantities import Floats, Levels
from pu_lib.chapters.random_search import quantities as search
from pu_lib.claims.recorder import Recorder, Status, check
from pu_lib.deterministic import DeterministicMDP, run_process
from pu_lib.exact import ball, precision
from pu_lib.formatting import percent
from pu_lib.trajectories import follow
from pu_lib.updates import UPDATES, Update, as_update

SPREADS = ("0", "1/100", "1/10", "1/5")
"""Weights added to the schedule of the three-state cycle at every state and step."""

ROUNDING = 1e-9
"""Tolerance between the two sides of an identity, relative to its terms."""

LATE_GAP = 3e-3
"""Tolerance on the final distance to the optimum of a convergent run, in units of the discounted
sum of the largest reward. It is twice the largest distance measured.
"""

FINAL_GAP = 1e-4
"""Tolerance on the distance to the optimum in the last tenth of a run with large constant weights,
in units of the range of the action values.
"""

Draw = Callable[[np.random.Generator, float], DeterministicMDP]


# The conjecture


@check(
    "sec:conv/ce-conjecture",
    wrong={
        "the same weight at every step": {"example": ce.with_equal_weights(), "spreads": ("0",)},
        "a discount of 2/5": {
            "example": replace(THREE_STATES, discount=Fraction(2, 5)),
            "spreads": ("0",),
        },
        "a spread of 2/5 as well, with which the cycle no longer attracts": {
            "spreads": ("0", "2/5")
        },
        "a first update of the other kind": {
            "example": replace(
                THREE_STATES, phases=(Phase(2, Fraction(10), 1), *THREE_STATES.phases[1:])
            ),
            "spreads": ("0",),
        },
    },
    kept=Status.FALSE,
)
def cross_entropy_cycles(
    compare: Recorder, example: CycleExample = THREE_STATES, spreads: Sequence[str] = SPREADS
) -> None:
    """CE with bounded weights has attracting cycles that stay below the optimum."""
    for spread in spreads:
        _compare_cycle(compare, example.with_spread(spread))
    first = ce.certificate(example.with_spread(spreads[0]))
    compare.report(**{"distance at s_0": first.shortfall[0]})


@check(
    "sec:conv/ce-conjecture/constant-step",
    wrong={
        "the other cycle, whose step sizes vary": {"example": THREE_STATES},
        "a discount of 9/10": {"example": replace(FOUR_STATES, discount=Fraction(9, 10))},
    },
)
def cross_entropy_cycles_at_a_constant_step(
    compare: Recorder, example: CycleExample = FOUR_STATES
) -> None:
    """CE with a constant step size has an attracting cycle that stays below the optimum."""
    sizes = {phase.weight for phase in example.phases}
    compare.require(
        len(sizes) == 1, f"The step sizes {', '.join(map(str, sorted(sizes)))} are not constant."
    )
    _compare_cycle(compare, example)


def _compare_cycle(compare: Recorder, example: CycleExample) -> None:
    """Certify a cycle in ball arithmetic and record its distance to the optimum."""
    try:
        cycle = ce.certificate(example)
    except NotCertifiedError as error:
        compare.require(False, f"No cycle was certified. {error}")
        return
    nearest = min(cycle.shortfall)
    compare.require(cycle.attracting, f"{example.name}: the cycle does not attract.")
    updated = (example.weights.sum(axis=0) > 0).all()
    compare.require(updated, f"{example.name}: a state is never updated.")
    compare.require(nearest > 0, f"{example.name}: the cycle may not stay below the optimum.")
    compare.at_least(
        "distance to the optimum", nearest, 0, limit="0", at={"least weight": str(example.spread)},
        note={
            "period": cycle.steps,
            "distance at s_0": cycle.shortfall[0],
            "lead of the greedy action": cycle.smallest_gap,
            "largest multiplier": max(max(moduli) for moduli in cycle.multipliers),
        },
    )  # fmt: skip


@check(
    "sec:conv/ce-conjecture/others",
    wrong={
        "CE beside them": {"updates": ("mce", "pg-sm", "di", "ce")},
        "after 50 of the 200 periods": {"periods": 50},
    },
)
def other_updates_approach_the_optimum(
    compare: Recorder, updates: Sequence[str | Update] = ("mce", "pg-sm", "di"), periods: int = 200
) -> None:
    """MCE, PG-SM and DI approach the optimum on the MDP and schedule of the cycle of CE.

    The runs start from the cycle's policy. The check shows that the MDP and the schedule alone do
    not cause a cycle. It does not prove convergence; for MCE the proof is Theorem 1.
    """
    best = np.array([float(v) for v in THREE_STATES.optimum()[1]])
    for update in updates:
        v, _ = ce.race(THREE_STATES, update, periods)
        compare.at_most(
            "gap at the end", float((best - v[-1]).max()), 0.02, limit="1/50",
            at={"update": as_update(update).name},
            note={"largest drop": float(-np.diff(v, axis=0).min())},
        )  # fmt: skip


# Convergence in special cases


Schedule = Callable[[Floats], Floats]

INFINITE_SUMS: dict[str, Schedule] = {
    "constant": lambda t: 1.0 + 0.0 * t,
    "decaying": lambda t: 10.0 * (t + 1.0) ** -0.5,
    "unbounded": lambda t: 1.0 + t,
}
"""Weights with an infinite sum, by name, as functions of the steps."""


@check(
    "sec:conv/ce-conjecture/elimination",
    wrong={
        "a factor of 1/2 in place of 2": {"factor": 0.5},
        "PG-SM in place of CE": {"update": "pg-sm"},
        "weights whose sum is finite": {"schedules": {"finite sum": lambda t: 0.9**t}},
        "an action that is greedy in every tenth step": {"last": None},
    },
)
def actions_that_are_greedy_finitely_often_vanish(
    compare: Recorder,
    factor: float = 2.0,
    update: str = "ce",
    schedules: Mapping[str, Schedule] = INFINITE_SUMS,
    last: int | None = 100,
) -> None:
    r"""Under CE an action vanishes if it is greedy only finitely often.

    Two of four actions take turns at being greedy, in random order, and a third one, with the
    largest mean value, is greedy in every tenth step before the step `last`.

    The inequalities of the proof hold, too: a step decreases :math:`\log\pi(a)` of an action a
    that is not greedy by at most 2w. Hence the sum of :math:`w\pi(a)` over a window is at least
    :math:`e^{-2}` times the first :math:`\pi(a)` if the weights of the window sum to at least 1,
    and to less than 1 without the last weight.
    """
    _compare_vanishing(compare, update, schedules, last)
    rng = np.random.default_rng(0)
    ce_update, q = UPDATES["ce"], np.array([1.0, 0.5, 0.0])
    for _ in range(60):
        theta = 4.0 * rng.standard_normal(3)
        scale = 10.0 ** rng.uniform(-2, 1)
        weights = scale * rng.exponential(size=300)
        probabilities = ce_update.policy(follow(ce_update, q, weights, 300, theta))
        changes = np.diff(np.log(probabilities[:, 1:]), axis=0)
        where = {"inequality": "one step", "scale": scale}
        for weight, change in zip(weights, changes, strict=True):
            for each in change:
                compare.at_least(
                    r"change of $\log\pi(a)$", each, -factor * weight, limit="$-2w$", at=where
                )
        where = {"inequality": "a window", "scale": scale}
        for loss in _window_losses(weights, probabilities[:, 1:]):
            floor = float(np.exp(-factor))
            compare.at_least(
                r"$\sum w\pi(a)$ over the first $\pi(a)$", loss, floor, limit="$e^{-2}$", at=where
            )


def _compare_vanishing(
    compare: Recorder, update: str, schedules: Mapping[str, Schedule], last: int | None
) -> None:
    """Compare the final probabilities of two actions that are greedy until `last` or never."""
    n_steps, n_starts, rng = 2_000, 20, np.random.default_rng(1)
    steps, starts = np.arange(n_steps), np.arange(n_starts)
    first = rng.integers(0, 2, (n_steps, n_starts))
    q = np.zeros((n_steps, n_starts, 4))
    q[..., 2] = 0.9
    q[steps[:, np.newaxis], starts, first] = 1.0
    q[: n_steps if last is None else last : 10, :, 2] = 1.1
    theta = 4.0 * rng.standard_normal((n_starts, 4))
    for words, schedule in schedules.items():
        path = follow(update, q, schedule(steps.astype(float)), n_steps, theta)
        final = as_update(update).policy(path[-1])
        for start in starts:
            compare.at_most(
                "final probability of an action that is greedy finitely often",
                float(final[start, 2:].max()), 0.01, limit="1/100",
                at={"weights": words, "start": int(start)},
            )  # fmt: skip


def _window_losses(weights: Floats, probabilities: Floats) -> list[float]:
    r"""Return :math:`\sum w\pi(a)` divided by the first :math:`\pi(a)`, for windows of weight 1."""
    spent = np.concatenate([[0.0], np.cumsum(weights)])
    products = weights[:, None] * probabilities[:-1]
    loss = np.vstack([np.zeros_like(products[0]), np.cumsum(products, axis=0)])
    losses: list[float] = []
    for t in range(0, len(weights), 10):
        end = int(np.searchsorted(spent, spent[t] + 1.0))
        if end <= len(weights):
            losses += ((loss[end] - loss[t]) / probabilities[t]).tolist()
    return losses


def _ring(rng: np.random.Generator, discount: float) -> DeterministicMDP:
    """Draw a ring of three states, in which an action leads to the next state or to the end."""
    following = np.repeat(np.array([[1], [2], [0]]), 3, axis=1)
    successors = np.where(rng.random((3, 3)) < 0.7, following, -1)
    return DeterministicMDP(rng.uniform(-2.0, 2.0, (3, 3)), successors, np.full(3, 3), discount)


TOO_WEAK: dict[str, dict[str, Any]] = {
    "a policy that never moves": {"scale": 0.0, "n_mdps": 20},
    "a tenth of the run": {"periods": 160},
}


GROWING_UNITS = tuple(6 * math.log(n) for n in range(4, 34))
"""Units of the rounds whose weights grow like log t."""

CONSTANT_UNITS = tuple((unit,) * 30 for unit in (5.0, 6.0, 7.0))
"""Units of the rounds whose weights are bounded."""


@check(
    "sec:conv/ce-conjecture/small-discount",
    wrong={
        "a discount of 9/10": {"discount": 0.9},
        "a discount of 1/2": {"discount": 0.5},
        **TOO_WEAK,
    },
)
def small_discounts_converge(compare: Recorder, discount: float = 0.45, **options: Any) -> None:
    """With a discount below 1/2 CE ends near the optimum, whatever the weights.

    The MDPs are random ones with the cycle's transitions, and those on which CE oscillates for ever
    at a discount of 1/2, with the schedule that makes it oscillate.
    """
    for each in (discount, 0.499):
        _compare_attack(compare, each, GROWING_UNITS)
    _run_random_mdps(compare, ce.perturbed_cycle, discount, **options)


@check(
    "sec:conv/ce-conjecture/bounded-at-one-half",
    wrong={
        "a discount of 0.51": {"discount": 0.51},
        "weights that grow like log t": {"units": (GROWING_UNITS,)},
    },
)
def bounded_weights_converge_at_one_half(
    compare: Recorder, discount: float = 0.5, units: Sequence[Sequence[float]] = CONSTANT_UNITS
) -> None:
    """With bounded weights CE ends near the optimum at a discount of 1/2.

    The schedule with which CE oscillates if its weights grow is followed for a few rounds only.
    """
    for each in units:
        rounds = _compare_attack(compare, discount, each)
        compare.report(unit=f"{each[0]:g}", rounds=rounds)
    _run_random_mdps(compare, ce.perturbed_cycle, discount, n_mdps=200)


def _compare_attack(compare: Recorder, discount: float, units: Sequence[float]) -> int:
    """Compare the last three rounds with the optimum, and return the rounds that are as planned."""
    attack = one_half.attack(discount, units)
    late = attack.values[-3 * len(one_half.ROUND) :].min()
    compare.at_most(
        "late distance to the optimum", 1 - float(late) * (1 - discount), LATE_GAP,
        limit="what is left of a convergent run", at={"discount": discount, "first unit": units[0]},
    )  # fmt: skip
    return attack.rounds


@check(
    "sec:conv/ce-conjecture/one-successor",
    wrong={
        "the transitions of the cycle in place of rings": {"draw": ce.perturbed_cycle, "seed": 0},
        **TOO_WEAK,
    },
)
def rings_converge(compare: Recorder, draw: Draw = _ring, seed: int = 1, **options: Any) -> None:
    """CE ends near the optimum if no state has two successors in its own strong component."""
    _run_random_mdps(compare, draw, 0.9, seed=seed, **options)


def _run_random_mdps(
    compare: Recorder,
    draw: Draw,
    discount: float,
    seed: int = 0,
    n_mdps: int = 400,
    periods: int = 1600,
    scale: float = 1.0,
) -> None:
    """Compare the final distances of CE to the optimum on random MDPs with a tolerance.

    Every second MDP has a random schedule, and the other MDPs have the cycle's schedule. `scale`
    multiplies the weights; a period has eight steps.
    """
    rng = np.random.default_rng(seed)
    for i in range(n_mdps):
        mdp = draw(rng, discount)
        weights = THREE_STATES.weights
        if i % 2:
            weights = np.zeros((8, len(mdp.n_actions)))
            order = rng.permutation(np.arange(8) % len(mdp.n_actions))
            weights[np.arange(8), order] = rng.integers(1, 4, 8) * 10.0 ** rng.uniform(-0.5, 1)
        theta = 15.0 * rng.standard_normal(mdp.rewards.shape)
        late = ce.late_run(mdp, scale * weights, theta, periods)
        unit = max(1.0, float(np.abs(mdp.rewards).max())) / (1.0 - discount)
        compare.at_most(
            "late distance to the optimum", float(late.shortfall.max()) / unit, LATE_GAP,
            limit="what is left of a convergent run", at={"MDP": i, "discount": discount},
            note={"moving": float(late.span.max()) / unit},
        )  # fmt: skip


@check(
    "sec:conv/ce-conjecture/contraction",
    wrong={
        "a factor of 1 in place of 2": {"factor": 1.0},
        "a factor of 1.99 in place of 2": {"factor": 1.99},
    },
)
def swings_are_bounded_by_those_of_the_successors(compare: Recorder, factor: float = 2.0) -> None:
    r"""The ranges D of the values of the certified cycles satisfy :math:`D\le2\gamma\max_aPD`.

    The runs on the hexagon, whose states all have the same range, come close to equality as the
    discount approaches 1/2.
    """
    for discount in (0.9, 0.6, 0.51, 0.501):
        swings = hexagon.hexagon_swings(discount, 4)
        ranges = swings.highest - swings.lowest
        for s, swing in enumerate(ranges):
            compare.at_most(
                "$D(s)$", float(swing), factor * discount * float(ranges.min()),
                limit=r"$2\gamma\max_aPD$", at={"hexagon, discount": discount, "state": s},
            )  # fmt: skip
    for spread in SPREADS:
        cycle = ce.certificate(THREE_STATES.with_spread(spread))
        example, D = cycle.example, ce.value_ranges(cycle)
        for s, row in enumerate(example.successors):
            largest = max(0.0 if j is None else D[j] for j in row)
            compare.at_most(
                "$D(s)$", D[s], factor * float(example.discount) * largest,
                limit=r"$2\gamma\max_aPD$", at={"spread": spread, "state": s},
            )  # fmt: skip


# Discounts above one half


SHARP_DISCOUNTS = ("0.5001", "0.505", "0.51", "0.55", "0.7", "0.9", "0.99")
"""Discounts of the runs on the hexagon."""


@check(
    "sec:conv/ce-conjecture/above-one-half",
    wrong={
        "one half itself": {"discounts": ("1/2",)},
        "a discount below one half": {"discounts": ("0.49",)},
        "MCE in place of CE": {"kernel": kernels.mce},
        "weights from 1 to 14, too small a unit": {"unit": 1},
        "no tie to break, but without the bandits": {"mixing": Fraction(0)},
        "bandits that are reached with a chance of one half": {"mixing": Fraction(1, 2)},
    },
)
def cross_entropy_oscillates_above_one_half(
    compare: Recorder,
    discounts: Sequence[str] = SHARP_DISCOUNTS,
    kernel: kernels.Kernel = kernels.ce,
    unit: int | None = None,
    mixing: Fraction | None = None,
) -> None:
    """On the hexagon CE oscillates forever, for each discount above one half.

    The hardened system is periodic, exactly, and its leads are those of the proof. Three rounds of
    CE in balls stay as close to it as the proof says, with ties of actions 1 and 2 broken by the
    schedule, and with bandits that make each greedy action strictly the best.
    """
    rounds = 3
    for text in discounts:
        discount = Fraction(text)
        steps = hexagon.hardened_steps(discount, rounds)
        compare.require(
            len(steps) == len(hexagon.ROUND) * rounds,
            f"At discount {text} an action of the schedule is not greedy.",
        )
        compare.equal(
            "least lead in the hardened system", min(step.lead for step in steps),
            hexagon.least_lead(discount), limit="that of the proof", at={"discount": text},
        )  # fmt: skip
        compare.equal(
            "levels after the last round", steps[-1].levels, steps[-1 - len(hexagon.ROUND)].levels,
            limit="those one round before", at={"discount": text},
        )  # fmt: skip
        size = hexagon.unit_for(discount) if unit is None else unit
        chance = hexagon.mixing_for(discount) if mixing is None else mixing
        with precision(256):
            for bandits in (Fraction(0), chance):
                run = hexagon.steps_in_balls(discount, rounds, size, bandits, kernel)
                where = {"discount": text, "chance of the bandits": bandits}
                _compare_oscillation(compare, steps, run, discount, size, where)
            _compare_preferences(compare, run, {"discount": text})


def _compare_oscillation(
    compare: Recorder,
    steps: Sequence[hexagon.Step],
    run: Sequence[hexagon.Step],
    discount: Fraction,
    unit: int,
    where: Mapping[str, Any],
) -> None:
    """Compare a run in balls with the hardened system."""
    compare.equal("updates whose action is greedy", len(run), len(steps), limit="all", at=where)
    chance = where["chance of the bandits"]
    error = ce.lead_error(ball(discount), ball(unit)) + ce.mixing_error(
        ball(discount), ball(chance)
    )
    for step, soft in zip(steps, run, strict=False):
        compare.at_least(
            "lead of the greedy action", soft.lead, ball(step.lead) - error,
            limit="that of the hardened system minus its error", at=where,
        )  # fmt: skip
        compare.at_least("weight", float(soft.weight), unit - 1, limit="$U-1$", at=where)
        compare.at_most("weight", float(soft.weight), 14 * unit + 1, limit="$14U+1$", at=where)
        apart = [
            abs(ours - unit * ball(level))
            for row, levels in zip(soft.levels, step.levels, strict=True)
            for ours, level in zip(row, levels, strict=True)
        ]
        compare.at_most(
            "distance of a parameter to its hardened level", max(apart, key=float),
            ce.level_error(ball(unit)), at=where,
        )  # fmt: skip
    best = ball(1 / (1 - discount))
    for s in range(6):
        values = [step.values[s] for step in run[len(hexagon.ROUND) :]]
        swing = (error / 2 + 0 * best) / best
        compare.at_most(
            "least value, relative to the optimum", min(values, key=float) / best, swing, at=where
        )
        compare.at_least(
            "largest value, relative to the optimum", max(values, key=float) / best, 1 - swing,
            at=where,
        )  # fmt: skip


def _compare_preferences(
    compare: Recorder, run: Sequence[hexagon.Step], where: Mapping[str, Any]
) -> None:
    """Require that action 1 or 2 is strictly better than the other one whenever it is greedy."""
    for move, step in zip(hexagon.ROUND * 3, run, strict=False):
        if move.action:
            compare.true("one action is strictly the best", step.preference > 0, at=where)


@check(
    "sec:conv/ce-conjecture/growing-at-one-half",
    wrong={
        "a discount of 0.499": {"discount": "0.499"},
        "weights that do not grow": {"growing": False},
        "without the fourth action": {"fourth": -(10**6)},
        "MCE in place of CE": {"kernel": kernels.mce},
    },
)
def cross_entropy_oscillates_at_one_half(
    compare: Recorder,
    discount: str = "1/2",
    growing: bool = True,
    fourth: int = 0,
    kernel: kernels.Kernel = kernels.ce,
) -> None:
    """At a discount of 1/2 CE follows the schedule of the proof, in certified rounds.

    The first forty rounds are one run. Three rounds start late, from the levels of the proof.
    """
    for first, rounds in ((4, 40), (100, 3), (10**6, 3)):
        with precision(220):
            numbers = [first + growing * k for k in range(rounds)]
            units = [one_half.unit_of(n) for n in numbers]
            run = list(one_half.follow_in_balls(Fraction(discount), units, fourth, kernel))
            at = {"first round": first}
            size = len(one_half.ROUND)
            compare.equal(
                "updates whose action is greedy", len(run), size * rounds, limit="all", at=at
            )
            for k, n in enumerate(numbers):
                steps = run[size * k : size * (k + 1)]
                _compare_round(compare, steps, n, units[k], at)


def _compare_round(
    compare: Recorder, steps: Sequence[hexagon.Step], n: int, unit: Any, at: Mapping[str, Any]
) -> None:
    """Compare round n with the leads, the weights and the values of the proof."""
    small = ball(Fraction(1, n**4))
    for move, step in zip(one_half.ROUND, steps, strict=False):
        if move.action:
            compare.at_least(
                "lead of an action that pays 1", step.lead, ball("3/4") - small,
                limit="$3/4-n^{-4}$", at=at,
            )  # fmt: skip
        else:
            compare.at_least(
                "lead of the detour", step.lead, small / 2, limit=r"$\frac12n^{-4}$", at=at
            )
        compare.at_least("weight", step.weight, unit, limit="$U$", at=at)
        compare.at_most("weight", step.weight, 4 * unit + 1, limit="$4U+1$", at=at)
        least = min((levels[3] for levels in step.levels), key=float)
        compare.at_least("fourth parameter", least, -1, limit="-1", at=at)
    for values in zip(*(step.values for step in steps), strict=True):
        lowest, highest = min(values, key=float), max(values, key=float)
        compare.at_most("least value of a state in a round", lowest, 0, limit="0", at=at)
        compare.at_least("any value", lowest, -4 * small, limit="$-4n^{-4}$", at=at)
        compare.at_least(
            "largest value of a state in a round", highest, 2 - small, limit="$2-n^{-4}$", at=at
        )


@check(
    "sec:conv/ce-conjecture/two-actions",
    wrong={"three actions in place of two": {"n_actions": 3}},
)
def ce_is_mce_for_two_actions(compare: Recorder, n_actions: int = 2, n_points: int = 2000) -> None:
    """With two actions the steps of CE and MCE are equal up to rounding."""
    rng = np.random.default_rng(0)
    theta = 5.0 * rng.standard_normal((n_points, n_actions))
    q = rng.standard_normal((n_points, n_actions))
    weight = 10.0 ** rng.uniform(-3, 2, n_points)
    steps = [as_update(name).step(theta, q, weight) for name in ("ce", "mce")]
    apart = np.abs(steps[0] - steps[1]).max(axis=1)
    # Both steps round numbers of at most |theta| + w a few times.
    allowed = 8 * np.finfo(float).eps * (np.abs(theta).max(axis=1) + weight)
    for point, w, difference, most in zip(theta, weight, apart, allowed, strict=True):
        compare.at_most(
            "difference of the steps", difference, most, limit="a few roundings",
            at={"theta": point.tolist(), "weight": float(w)},
        )  # fmt: skip


# The hardened system


def _random_levels(rng: np.random.Generator, n_actions: int) -> Levels:
    """Draw levels with distinct fractional parts, so that no two levels differ by an integer."""
    return tuple(Fraction(a, n_actions) + int(rng.integers(-4, 5)) for a in range(n_actions))


@check(
    "sec:conv/ce-conjecture/hardened",
    wrong={
        "weights 1, 2 and 3, chosen by the adversary": {"weights": (1, 2, 3)},
        "the schedule of the cycle, whose weights vary": {"cycle": THREE_STATES},
    },
)
def the_hardened_system_reaches_the_optimum(
    compare: Recorder, weights: Sequence[int] = (1,), cycle: CycleExample | None = None
) -> None:
    r"""With a constant weight the hardened system ends at the optimum.

    An update does not change :math:`\Psi` if the greedy action becomes the top action. Otherwise
    the update decreases :math:`\Psi` by at least the amount in the proof, whichever action is
    greedy. If the actions are greedy for the exact values, the final policies of random MDPs are
    optimal, whichever states are updated.
    """
    rng = np.random.default_rng(0)
    for _ in range(100):
        levels = _random_levels(rng, int(rng.integers(3, 6)))
        for _ in range(60):
            weight, greedy = int(rng.choice(list(weights))), int(rng.integers(len(levels)))
            if greedy != ce.top_action(levels):
                _compare_potential(compare, levels, greedy, weight, weights[0])
            levels = ce.hardened_step(levels, greedy, weight)
    for trial in range(40):
        example = _random_example(rng)
        starts = [_random_levels(rng, n) for n in example.n_actions]
        schedule = rng.integers(0, 2, (60, example.n_states)).tolist()
        _, gap = ce.hardened_run(example, starts, schedule)[-1]
        compare.equal("distance to the optimum at the end", gap, 0, limit="0", at={"MDP": trial})
    compare.report(tests=sum(tally.comparisons for tally in compare.tallies.values()))
    if cycle is not None:
        period = [[Fraction(int(w), 10) for w in row] for row in cycle.weights]
        path = ce.hardened_run(cycle, _cycle_levels(), period * 25)
        gap = max(gap for _, gap in path[-8:])
        compare.equal("distance to the optimum at the end", gap, 0, limit="0", at={"MDP": "cycle"})


def _compare_potential(
    compare: Recorder, levels: Levels, greedy: int, weight: int, unit: int
) -> None:
    """Compare the decrease of the potential in one update with the proof, in units of `unit`."""
    after = ce.hardened_step(levels, greedy, weight)
    fall, new = ce.potential(levels, unit) - ce.potential(after, unit), ce.top_action(after)
    at = {"levels": ", ".join(map(str, levels)), "greedy": greedy, "weight": weight}
    if new == greedy:
        compare.equal(
            r"change of $\Psi$ if the greedy action becomes the top", fall, 0, limit="0", at=at
        )
    else:
        kappa = ce.reduced_levels(levels, unit)
        least = 2 * (kappa[new] - kappa[greedy] - 1)
        compare.at_least(
            r"fall of $\Psi$ at an error", fall, least, limit="that of the proof", at=at
        )


def _cycle_levels() -> tuple[Levels, ...]:
    """Return the levels of the three-state cycle at the beginning of its period, divided by 10."""
    half = Fraction(1, 2)
    return (Fraction(0), -3 * half, 3 * half), (-half, half), (-half, half)


def _random_example(rng: np.random.Generator) -> CycleExample:
    """Draw a deterministic MDP with three states, three actions per state, and discount 9/10."""
    rewards = rng.integers(-4, 5, (3, 3)).tolist()
    successors = [
        [None if j == 3 else j for j in row] for row in rng.integers(0, 4, (3, 3)).tolist()
    ]
    return CycleExample(
        name="random",
        discount=Fraction(9, 10),
        rewards=tuple(map(tuple, rewards)),
        successors=tuple(map(tuple, successors)),
        phases=(),
        start=((0.0,) * 3,) * 3,
    )


# The open cases


@check(
    "sec:conv/ce-constant",
    wrong={"one more run that is still far from the optimum": {"added": ("three", 0, 3)}},
    kept=Status.OPEN,
)
def no_cycle_with_constant_weights_was_found(
    compare: Recorder, added: tuple[str, int, int] | None = None
) -> None:
    """The random search with constant weights found no run that continues to oscillate."""
    _compare_search(compare, search.load("constant"), "three", added)


@check(
    "sec:conv/ce-on-policy",
    wrong={
        "one more run that is still far from the optimum": {"added": ("near", 0, 3)},
        "one of the late runs not followed": {"n_forgotten": 1},
    },
    kept=Status.OPEN,
)
def no_cycle_with_the_policy_s_visits_was_found(
    compare: Recorder, added: tuple[str, int, int] | None = None, n_forgotten: int = 0
) -> None:
    """Every suspect of the random search with on-policy weights settled when it was continued."""
    result = search.load("on-policy")
    result["followed"] = result["followed"][n_forgotten:]
    _compare_search(compare, result, "near", added)


def _compare_search(
    compare: Recorder, result: dict[str, Any], again: str, added: tuple[str, int, int] | None
) -> None:
    """Compare the late drops of a search with the threshold for suspects.

    The drop of a suspect is the drop of its continued run, or infinity if the run was not continued
    or did not settle. `again` is the family for which the first block is recomputed and compared
    with the committed counts. `added` is an additional suspect.
    """
    families = result["families"]
    block = _search_first_block(again, result["seed"], result["weighting"])
    _require_same_counts(block, families[again]["first_block"])
    suspects = [(family, *place) for family, row in families.items() for place in row["suspects"]]
    suspects += [added] if added else []
    followed = [row for row in result.get("followed", []) if not row["suspect"]]
    settled = {(row["family"], row["block"], row["index"]): row["drop"] for row in followed}
    for where in suspects:
        compare.at_most(
            "late drop of a run followed for longer",
            settled.get(where, math.inf), search.SUSPECT_DROP,
            limit="that of a suspect", at={"run": where},
        )  # fmt: skip
    if not suspects:
        for family, row in families.items():
            compare.at_most(
                "largest late drop", row["largest_drop"], search.SUSPECT_DROP,
                limit="that of a suspect", at={"family": family},
                note={"with a drop": row["dropping"], "still moving": row["late"]},
            )  # fmt: skip
    compare.report(MDPs=families[again]["mdps"])


@cache
def _search_first_block(family: str, seed: int, weighting: str) -> search.SearchCounts:
    return search.search_block(family, seed, 0, weighting)


def _require_same_counts(block: search.SearchCounts, committed: Mapping[str, Any]) -> None:
    """Raise an error if a block does not reproduce the committed counts."""
    repeated = {**asdict(block), "late": list(block.late), "suspects": list(block.suspects)}
    counts = ("mdps", "dropping", "late", "suspects")
    if differ := [key for key in counts if repeated[key] != committed[key]]:
        raise ValueError(f"The committed search differs in {differ}: {committed}, not {block}.")


# Weights that are constant in time


@check(
    "sec:conv/ce-constant/balance",
    wrong={
        "weights that alternate between w and 2w": {"factors": (1.0, 2.0)},
        "the probability before the update in place of the one after it": {"after": False},
        "(|A| - 1) e^(-w) for every weight": {"allowance": 0.0},
    },
)
def excess_entropy_pays_for_what_greedy_actions_lack(
    compare: Recorder,
    factors: Sequence[float] = (1.0,),
    after: bool = True,
    allowance: float = 1.0,
) -> None:
    """The sum of a state's log losses minus its excess entropies is bounded (the balance).

    The bound depends on the initial parameters and the weight; one large step among many actions
    comes near it. The largest excess entropy obeys its bound.
    """
    theta, large = np.zeros((1, 50)), np.array([1000.0])
    new = UPDATES["ce"].step(theta, np.eye(50)[:1], large)
    owed = -constant.log_softmax(new)[0, 0] - constant.excess_entropy(theta, large)[0]
    compare.at_most(
        "what the start pays", float(owed), float(constant.start_budget(theta, large)[0]),
        limit="what it can pay", at={"actions": 50, "weight": 1000.0},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for n_actions in (2, 3, 5):
        for weight, log_loss, excess, paid, funds in _simulate_balances(
            rng, n_actions, factors, after
        ):
            where = {"actions": n_actions, "weight": weight}
            compare.at_most(
                "relative difference of the two sides",
                abs(log_loss - excess - paid) / (1.0 + log_loss + funds), ROUNDING,
                limit="what rounding may leave", at=where,
            )  # fmt: skip
            compare.at_most(
                "what the start pays", log_loss - excess, funds, limit="what it can pay", at=where
            )
        for rare, weight, top in _largest_excess_entropies(n_actions):
            rare_mass = allowance * min(0.5, ce.rare_mass(weight, n_actions))
            compare.at_most(
                "excess entropy", top, ce.excess_bound(weight, n_actions, rare_mass),
                at={"actions": n_actions, "rare actions": rare, "weight": weight},
            )  # fmt: skip


def _simulate_balances(
    rng: np.random.Generator, n_actions: int, factors: Sequence[float], after: bool
) -> NDArray[np.float64]:
    """Return the terms of the balance for 50 runs at one state with random greedy actions.

    A new greedy action is drawn with probability 1/5 in each step, so that actions become nearly
    certain between draws. The columns are the weight, the sum of the log losses, the sum of the
    excess entropies, the decrease of the potential divided by the weight, and the bound from the
    initial parameters. The weights are multiplied by `factors` in turn. If `after` is true, the log
    loss uses the greedy action's probability after the update, and otherwise the probability before
    the update.
    """
    n_runs = 50
    weight = 10.0 ** rng.uniform(-1.5, 1.5, n_runs)
    start = weight[:, None] ** 0.5 * 3.0 * rng.standard_normal((n_runs, n_actions))
    theta, log_loss, excess = start.copy(), np.zeros(n_runs), np.zeros(n_runs)
    rows, greedy = np.arange(n_runs), np.zeros(n_runs, dtype=np.int64)
    for t in range(200):
        redraw = rng.random(n_runs) < 0.2
        greedy = np.where(redraw, rng.integers(n_actions, size=n_runs), greedy)
        w = weight * factors[t % len(factors)]
        new = UPDATES["ce"].step(theta, np.eye(n_actions)[greedy], w)
        excess += constant.excess_entropy(theta, w)
        log_loss -= constant.log_softmax(new if after else theta)[rows, greedy]
        theta = new
    paid = constant.potential(start, weight) - constant.potential(theta, weight)
    return np.column_stack(
        [weight, log_loss, excess, paid / weight, constant.start_budget(start, weight)]
    )


def _largest_excess_entropies(n_actions: int) -> Iterator[tuple[int, float, float]]:
    """Yield the number of rare actions, the weight and the largest excess entropy, if positive.

    The policies have k equally rare actions, and the other actions are equally probable, because a
    stationary point of the excess entropy on the simplex has at most two different probabilities.
    """
    rare = np.logspace(-10, -1e-9, 1000)
    for k in range(1, n_actions):
        pi = np.empty((len(rare), n_actions))
        pi[:, :k] = rare[:, None] / k
        pi[:, k:] = np.maximum(1.0 - rare[:, None], 1e-300) / (n_actions - k)
        for w in np.linspace(0.1, 18.0, 180):
            top = float(constant.excess_entropy(np.log(pi), np.full(len(rare), w)).max())
            if top > 0:
                yield k, float(w), top


def _random_mdps(
    rng: np.random.Generator, n: int, n_states: int, discount: float
) -> DeterministicMDP:
    """Draw n MDPs with three actions per state and with uniform rewards and successors."""
    shape = (n, n_states, 3)
    return DeterministicMDP(
        rng.uniform(-1.0, 1.0, shape),
        rng.integers(-1, n_states, shape),
        np.full(n_states, 3),
        np.full(n, discount),
    )


SIZES = ((3, 0.5), (3, 0.9), (8, 0.9))
"""Numbers of states and discounts of the random MDPs."""


@check(
    "sec:conv/ce-constant/excess",
    wrong={"policy iteration's step without an allowance for what is lacking": {"allowance": 0.0}},
)
def failures_cost_excess_entropy(compare: Recorder, allowance: float = 1.0) -> None:
    r"""The inequalities of the proof hold along runs with small and with large constant weights.

    - The distance to the optimum after a step is at most the discounted distance before the step
      plus :math:`B/(1-\gamma)` times the largest value of 1 minus a greedy action's probability.
    - If a greedy action is not optimal, the distance is at least :math:`\Delta/\gamma`.
    - After J + 1 consecutive steps that give every greedy action a probability of at least
      :math:`1-\varepsilon`, all later greedy actions are optimal.
    - The log losses minus the excess entropies are at most the bound from the initial parameters.
    """
    for run in _constant_runs():
        known, gamma = run.known, run.known.discount
        far = (run.best - run.values).max(axis=-1) / known.q_range
        missing = (-np.expm1(-run.log_loss)).max(axis=-1)
        reach, ahead = gamma * far[:-1], known.gap / known.q_range
        allowed = reach + allowance * missing / (1 - gamma) + ROUNDING
        for after, most in zip(far[1:], allowed, strict=True):
            compare.at_most(
                "distance after a step", after, most, limit="the discounted one with an allowance",
                at={"part": "a step", **run.where},
            )  # fmt: skip
        for distance in reach[(run.greedy != known.policy).any(axis=-1)]:
            compare.at_least(
                "discounted distance if a greedy action is not optimal", distance, ahead,
                limit=r"$\Delta/B$", at={"part": "an action that is not optimal", **run.where},
            )  # fmt: skip
        left = gamma**known.window / (1 - gamma) + known.tolerance / (1 - gamma) ** 2
        compare.at_most(
            "distance that J + 1 good steps may leave", left, ahead + ROUNDING,
            limit=r"$\Delta/B$", at={"part": "a step", **run.where},
        )  # fmt: skip
        for distance in reach[_after_good_steps(missing <= known.tolerance, known.window + 1)]:
            compare.at_most(
                "discounted distance after J + 1 good steps", distance, ahead,
                limit=r"$\Delta/B$", at={"part": "after J + 1 good steps", **run.where},
            )  # fmt: skip
        paid = run.log_loss.sum(axis=0) - run.excess.sum(axis=0)
        for used, budget in zip(paid, run.budget, strict=True):
            compare.at_most(
                "what is owed beyond the excess entropy", used, budget,
                limit="what the start can pay", at={"part": "the balance", **run.where},
            )  # fmt: skip


class _ConstantRun(NamedTuple):
    """A run of `constant.run_constant` on one MDP, with the bound of the balance of each state."""

    where: Mapping[str, Any]
    known: constant.Constants
    best: Floats
    budget: Floats
    values: Floats
    greedy: NDArray[np.int64]
    log_loss: Floats
    excess: Floats


@cache
def _constant_runs() -> list[_ConstantRun]:
    """Run CE with small and with large constant weights from random initial parameters."""
    rng, runs, n_mdps = np.random.default_rng(0), [], 8
    for n_states, discount in SIZES:
        mdps = _random_mdps(rng, n_mdps, n_states, discount)
        best = mdps.optimum(400)
        for size, low, high in (("small", -1.0, 0.5), ("large", 0.5, 2.0)):
            weights = 10.0 ** rng.uniform(low, high, (n_mdps, n_states))
            theta = 2.0 * weights[..., None] * rng.standard_normal(mdps.rewards.shape)
            budget = constant.start_budget(theta, weights)
            course = constant.run_constant(mdps, theta, weights, 100)
            for i in range(n_mdps):
                where = {"states": n_states, "discount": discount, "weights": size, "MDP": i}
                known = constant.constants(mdps[i])
                runs.append(
                    _ConstantRun(
                        where, known, best[i], budget[i], course.values[:, i],
                        course.greedy[:, i], course.log_loss[:, i], course.excess[:, i],
                    )
                )  # fmt: skip
    return runs


def _after_good_steps(good: NDArray[np.bool_], n: int) -> NDArray[np.bool_]:
    """Return, for each step, whether n consecutive good steps precede the step."""
    runs, row = np.zeros(len(good), dtype=bool), 0
    for t, fine in enumerate(good[:-1]):
        row = row + 1 if fine else 0
        runs[t + 1] = runs[t] or row >= n
    return runs


@check(
    "sec:conv/ce-constant/large-weights",
    wrong={
        "the weights of the cycle, which vary": {"varying": True},
        "after one update in two hundred": {"n_steps": 20},
    },
)
def large_constant_weights_converge(
    compare: Recorder,
    varying: bool = False,
    n_steps: int = 4_000,
    n_mdps: int = 40,
    factor: float = 1.0,
) -> None:
    """CE ends at the optimum if its constant weights are above the threshold.

    At the threshold the bound on the excess entropies of all states is what the theorem allows. The
    runs do not test it: they end at the optimum at half of it (`factor`), too.
    The initial parameters are Gaussian with a scale of up to three times the weights. If `varying`
    is true, the check also runs the cycle, which has weights that vary in time.
    """
    rng = np.random.default_rng(0)
    for n_states, discount in SIZES:
        mdps = _random_mdps(rng, n_mdps, n_states, discount)
        for i in range(n_mdps):
            mdp = mdps[i]
            known = constant.constants(mdp)
            rare_mass = min(0.5, ce.rare_mass(known.threshold, known.n_actions))
            excess = n_states * ce.excess_bound(known.threshold, known.n_actions, rare_mass)
            compare.equal(
                "excess entropy at the threshold over what is allowed",
                excess / known.required_excess, 1.0, tolerance=1e-4, limit="1",
                at={"states": n_states, "discount": discount, "MDP": i},
            )  # fmt: skip
            weights = factor * known.threshold * rng.uniform(1.0, 1.5, (1, n_states))
            scale = weights[0][:, None] * rng.uniform(0.0, 3.0)
            theta = scale * rng.standard_normal(mdp.rewards.shape)
            late = ce.late_run(mdp, weights, theta, n_steps).shortfall.max() / known.q_range
            where = {"states": n_states, "discount": discount, "MDP": i}
            _compare_late_distance(compare, late, where)
    if varying:
        cycle = THREE_STATES.with_spread("1/5")
        run = ce.late_run(cycle.tables, cycle.weights, cycle.parameters(), n_steps // 8)
        _compare_late_distance(compare, run.shortfall.max(), {"MDP": "the cycle's"})


def _compare_late_distance(compare: Recorder, late: float, at: Mapping[str, Any]) -> None:
    compare.at_most(
        "late distance to the optimum", float(late), FINAL_GAP, limit=f"{FINAL_GAP:g}", at=at
    )


@check(
    "sec:conv/ce-constant/late-fall",
    wrong={"MCE in place of CE": {"update": "mce"}, "two falls": {"falls": 2}},
)
def a_value_may_fall_late(
    compare: Recorder,
    horizons: Sequence[int] = (1_000, 30_000, 250_000),
    falls: int = 1,
    update: str = "ce",
) -> None:
    """A value of CE may fall once by 9/10 of the rewards' range at about any chosen step.

    The MDPs are constructed, and each run lasts twice as long as its chosen step.
    """
    for horizon in horizons:
        mdp, theta, weights = constant.late_fall(horizon)
        value = run_process(mdp, update, theta, weights, 2 * horizon).values[:, 0]
        below, unit = np.maximum.accumulate(value) - value, np.ptp(mdp.rewards[mdp.is_action])
        begins = np.flatnonzero(np.diff((below >= 0.9 * unit).astype(int)) == 1) + 1
        when = int(below.argmax())
        where = {"horizon": horizon, "when": when}
        compare.at_least(
            "fall in units of the rewards' range", float(below.max() / unit), 0.9, limit="9/10",
            at=where,
        )  # fmt: skip
        compare.equal("falls", len(begins), falls, limit=str(falls), at=where)
        compare.true("fall on time", 0.5 * horizon < when < 1.5 * horizon, at=where)
        compare.true("fall made up for at the end", below[-1] <= 0, at=where)


@check(
    "sec:conv/ce-constant/chatter",
    wrong={"one of the two actions pays a hundredth more": {"extra": 0.01}},
)
def ties_may_chatter(compare: Recorder, extra: float = 0.0, n_steps: int = 500_000) -> None:
    """The greedy action of CE may alternate forever between two optimal actions.

    In the second half of each horizon the greedy action changes in at least three of ten steps, and
    no value falls by more than 30 divided by the horizon. The final policy is mixed.
    """
    mdp, theta, weights = constant.chatter(extra)
    run = run_process(mdp, "ce", theta, weights, n_steps)
    for horizon in (n_steps // 500, n_steps // 50, n_steps // 5, n_steps):
        half, where = slice(horizon // 2, horizon), {"horizon": horizon}
        changes = float((np.diff(run.greedy[half, 2]) != 0).mean())
        value = run.values[half]
        fall = float((np.maximum.accumulate(value) - value).max())
        compare.at_least("share of changes", changes, 0.3, limit="3/10", at=where)
        compare.at_most("largest fall times the horizon", fall * horizon, 30, limit="30", at=where)
        compare.report(horizon=horizon, changes=percent(changes), fall=fall)
    mixed = float(constant.excess_entropy(run.theta[2], np.array(1.0)))
    compare.at_least("excess entropy at the end", mixed, 0.1, limit="1/10", at={"horizon": n_steps})
