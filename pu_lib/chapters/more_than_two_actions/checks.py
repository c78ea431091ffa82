"""Checks of the claims on more than two actions, each of which runs in at most a few seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from flint import arb

from pu_lib.arrays import Floats
from pu_lib.chapters.convergence.quantities import instances, structure
from pu_lib.chapters.cross_entropy.cycles import simulate
from pu_lib.chapters.gravity_well.escape import escape_steps, well_policy
from pu_lib.chapters.more_than_two_actions.quantities import (
    HISTORIES,
    SquareTransfer,
    Variant,
    adversary,
    adversary_bound,
    cascade,
    ce_constant,
    ce_step_bound,
    changes_bound,
    count,
    deficit,
    escape_bound,
    escape_floor,
    exact_count,
    exact_mean_step,
    floor_constant,
    gap_bound,
    gap_pace,
    harmonic,
    largest_change,
    late_reward_mdp,
    limit_leads,
    mce_share,
    pair_constant,
    pair_range,
    pair_values,
    range_bound,
    range_constant,
    range_floor,
    rate_run,
    return_bound,
    return_floor,
    rotation_share,
    rotation_spacing,
    slow_corner,
    stages,
    step_bound,
    steps_back,
    sums,
    transfer_bound,
    transfer_odds,
    transfer_rise,
    turn_share,
    where_the_mean_step_ends,
)
from pu_lib.chapters.updates.exact_steps import direction
from pu_lib.claims.recorder import Recorder, Status, check
from pu_lib.cycle_examples import THREE_STATES
from pu_lib.exact import precision
from pu_lib.parametrizations import below_average, softmax
from pu_lib.trajectories import follow, run
from pu_lib.updates import UPDATES, Update, as_update

ROUNDING = 1e-12

TWO, THREE, SECOND = HISTORIES.values()


def compare_use(compare: Recorder, quantity: str, use: float, stated: float) -> None:
    """Compare the largest ratio of a quantity to its bound with the ratio that is stated.

    A bound with a constant that no instance comes near would hold with smaller constants, too.
    """
    label = f"largest {quantity} over the bound"
    compare.equal(label, use, stated, tolerance=0.01, limit="the share stated, within 0.01")


def turns(n_actions: int, rotating: int) -> list[list[float]]:
    """Return the values of one period in which the first actions take turns as the best one."""
    return [[float(a == best) for a in range(n_actions)] for best in range(rotating)]


# MCE remembers


@check(
    "more:mce-remembers",
    wrong={"CE in its place": {"update": "ce"}, "the share without c": {"factor": False}},
)
def mce_needs_a_share_of_n(compare: Recorder, update: str = "mce", factor: bool = True) -> None:
    """After two actions took turns, MCE needs n' updates with n'/n near the limit.

    Balls confirm the limit and the counts for n = 200.
    """
    for weight, n_actions in product((0.1, 1.0, 2.0, 10.0), (3, 4, 6)):
        share = mce_share(weight if factor else weight * (1 - 1 / n_actions), n_actions)
        for n in (300, 1500):
            off = abs(count(update, turns(n_actions, 2), n, weight) - share * n)
            at = {"weight": weight, "actions": n_actions, "n": n}
            most = 2 + 1 / (2 * weight)
            compare.at_most("distance of n' from share n", off, most, limit="2 + 1/(2w)", at=at)
    for n_actions, rotating in ((4, 3), (5, 4), (10, 9)):
        off = abs(
            count(update, turns(n_actions, rotating), 1500)
            - 1500 * rotation_share(1.0, n_actions, rotating)
        )
        at = {"actions": n_actions, "in turn": rotating}
        compare.at_most("distance of n' from the orbit", off, 3.0, limit="3 updates", at=at)
    for weight, n_actions in ((0.1, 3), (1.0, 3), (2.0, 5), (10.0, 4)):
        with precision(100):
            scale = arb(n_actions) / (n_actions - 1) * weight / 2
            share = mce_share(weight, n_actions)

            def excess(y: arb, scale: arb = scale) -> arb:
                return y - scale / (1 + (-y).exp())

            y, width = scale * 2 * share, scale * 2 * ROUNDING
            within = bool(excess(y - width) < 0) and bool(excess(y + width) > 0)
        compare.true("limit in balls", within, at={"weight": weight, "actions": n_actions})
    steps, lag = exact_count("mce", TWO, 200, bits=300)
    compare.equal("count in balls", count(update, TWO, 200), steps, limit="62", at={"n": 200})
    measured, limit = deficit(update, TWO, 200), float(lag)
    compare.equal("deficit", measured, limit, tolerance=1e-9, limit="that in balls", at={"n": 200})
    compare.report(
        share=mce_share(1.0, 3),
        steps=count(update, TWO, 1600),
        **{"steps of CE": count("ce", TWO, 1600)},
    )


UNEQUAL = (0, 1) * 10 + (2,)
"""An order in which the third action is greedy so rarely that it falls behind without bound."""


@check(
    "more:mce-orbit",
    wrong={
        "CE in its place": {"update": "ce"},
        "300 rounds with cw = 16": {"total": 16.0},
        "an orbit for unequal turns": {"order": UNEQUAL},
    },
)
def mce_approaches_its_orbit(
    compare: Recorder,
    update: str = "mce",
    total: float | None = None,
    order: Sequence[int] | None = None,
) -> None:
    """MCE with actions in turn approaches its orbit if cw is at most 4, from any start.

    In other periodic orders its leads stay near those of the limit map, by the sum of what the
    other actions add to the steps, and n'/n is near the growth of this map.
    """
    rng, starts_tried = np.random.default_rng(0), 0
    for n_actions, rotating, cw in ((4, 3, 0.3), (4, 3, 4.0), (6, 3, 2.0), (5, 4, 4.0)):
        turn, size = order or range(rotating), total or cw
        starts = np.vstack([np.zeros(n_actions), 10 * rng.standard_normal((4, n_actions))])
        starts_tried += len(starts)
        n = 300 * len(turn)
        path = _leads(update, turn, n_actions, size, n, starts)
        steps = np.diff(path[[n - len(turn), n]], axis=-1)
        for start, (before, after) in enumerate(zip(*steps, strict=True)):
            at: dict[str, Any] = {
                "actions": n_actions,
                "in turn": rotating,
                "cw": size,
                "start": start,
            }
            spacing = rotation_spacing(size, rotating)
            for limit, off in (
                ("those one round before", np.abs(after - before).max()),
                ("$s$", np.abs(after - spacing).max()),
            ):
                compare.at_most("distance of the differences to " + limit, off, 1e-6, at=at)
    for turn, cw in product(((0, 0, 1), (0, 1, 0, 2), UNEQUAL), (0.5, 4.0)):
        n_actions, size = max(turn) + 2, total or cw
        start = 3 * rng.standard_normal(n_actions)
        path = _leads(update, turn, n_actions, size, 210, start)
        near = limit_leads(turn, size, path[0], 210)
        apart = np.abs(path - near).max(axis=1)[1:]
        added = np.cumsum(size * np.exp(-path.max(axis=1)))[:-1]
        at = {"order": str(turn), "cw": size}
        for distance, most in zip(apart, added, strict=True):
            compare.at_most(
                "distance of the leads to the limit map", distance, most + ROUNDING * 210 * size,
                limit="what the last action adds", at=at,
            )  # fmt: skip
        values = np.eye(n_actions)[list(turn)].tolist()
        measured = count(update, values, 1050, size * (1 - 1 / n_actions))
        compare.at_most(
            "distance of n' from its limit times n", abs(measured - 1050 * turn_share(turn, size)),
            3.0, limit="3 updates", at=at,
        )  # fmt: skip
    compare.report(starts=starts_tried)


def _leads(
    update: str, order: Sequence[int], n_actions: int, total: float, n: int, theta: Floats
) -> Floats:
    """Return the leads of the actions in turn over the last action, with shape (n + 1, ..., m)."""
    rows = np.resize(np.eye(n_actions)[list(order)], (n, n_actions))
    rows = rows.reshape(n, *[1] * (theta.ndim - 1), n_actions) + 0 * theta
    path = follow(update, rows, total * (1 - 1 / n_actions), n, theta)
    return np.asarray(path[..., : max(order) + 1] - path[..., -1:])


def histories(n_actions: int, seed: int) -> Iterator[tuple[str, list[list[float]]]]:
    """Yield random values and rotations in which the last action is never the best one."""
    rng = np.random.default_rng(seed)
    for draw in range(3):
        rows = rng.random((40 * (draw + 1), n_actions))
        rows[:, -1] = -0.01
        yield f"random {draw}", rows.tolist()
    for rotating in range(2, n_actions):
        yield f"{rotating} in turn", turns(n_actions, rotating)


@check(
    "more:mce-changes",
    wrong={"CE in its place": {"update": "ce"}, "twice the bound": {"times": 2.0}},
)
def mce_pays_for_changes(compare: Recorder, update: str = "mce", times: float = 1.0) -> None:
    """MCE's count is at least the bound by the number of changes of its greedy action."""
    for n_actions, weight, n in product((3, 4, 7), (0.3, 5.0), (100, 600)):
        for name, history in histories(n_actions, n_actions):
            best = np.resize(np.argmax(history, axis=1), n)
            changes = int((np.diff(best) != 0).sum())
            steps = count(update, history, n, weight)
            bound = changes_bound(times * changes, n_actions)
            at = {"actions": n_actions, "weight": weight, "n": n, "history": name}
            compare.at_least("n'", float(steps), bound, at=at)


# CE and SCE forget


Constant = Callable[[int, float], float]
"""A function of the number of actions and the weight."""


@check(
    "more:range",
    wrong={
        "MCE in its place": {"update": "mce"},
        "half of the factor": {"share": 0.5},
        "the constant without 2w": {"constant": lambda k, w: range_constant(k, w) - 2 * w},
        "the lower bound without its constant": {"lower_constant": lambda k, w: 0.0},
    },
)
def sums_of_largest_parameters_grow_slowly(
    compare: Recorder,
    update: str = "",
    share: float = 1.0,
    constant: Constant = range_constant,
    lower_constant: Constant = pair_constant,
) -> None:
    """A step adds at most min(w, C e^-h) to a sum of largest parameters; ranges are logarithmic.

    If neighbouring pairs take turns, the range is at least the lower bound.
    """
    for draw, (theta, new, weight) in enumerate(cross_entropy_steps(0, masked=True)):
        gap = -np.diff(-np.sort(-theta))
        _compare_rise(compare, theta, new, step_bound(len(theta), weight, gap), draw)
    use = 0.0
    for n_actions, weight, n in product((3, 5), (0.3, 3.0), (100, 1000)):
        bound = range_bound(n, share * (n_actions - 1), constant(n_actions, weight))
        runs = {"pairs in turn": pair_range(n_actions, n, weight)}
        for name in (update,) if update else ("ce", "sce"):
            for history, rows in histories(n_actions, 1):
                values = np.resize(rows, (n, n_actions))
                runs[f"{name}, {history}"] = follow(name, values, weight, n)
        for name, path in runs.items():
            at = {"actions": n_actions, "weight": weight, "n": n, "history": name}
            largest = float(np.ptp(path, axis=1).max())
            use = max(use, largest / bound)
            compare.at_most("range", largest, bound, at=at)
    compare_use(compare, "range", use, 0.65)
    for n_actions, weight in product((2, 3, 4, 6), (0.1, 1.0, 10.0)):
        path = np.ptp(pair_range(n_actions, 6000, weight), axis=1)
        for n in (60, 600, 6000):
            less = lower_constant(n_actions, weight)
            bound = range_floor(n // (n_actions - 1), n_actions - 1, less)
            at = {"actions": n_actions, "weight": weight, "n": n, "history": "pairs in turn"}
            compare.at_least("range", float(path[n]), bound, limit="the lower bound", at=at)
    slopes = []
    for n_actions in (3, 4):
        ranges = np.ptp(pair_range(n_actions, 20_000)[[2000, 20_000]], axis=1)
        slopes.append(float(np.diff(ranges)[0] / math.log(10)))
        at = {"actions": n_actions}
        compare.at_least(
            "growth of the range per log n",
            slopes[-1],
            0.98 * (n_actions - 1),
            limit="98 % of the factor",
            at=at,
        )
    compare.report(
        use=f"{100 * use:.0f} %",
        **{"slope": f"{slopes[0]:.3f}", "slope of four": f"{slopes[1]:.3f}"},
    )


def cross_entropy_steps(seed: int, masked: bool) -> Iterator[tuple[Floats, Floats, float]]:
    """Yield random parameters, those after a step of cross-entropy, and the largest weight.

    If `masked` is true, the softmax is that over a random set of actions.
    """
    rng = np.random.default_rng(seed)
    for draw in range(1000):
        n_actions, weight = int(rng.integers(2, 8)), float(10 ** rng.uniform(-2, 1.5))
        theta = rng.normal(size=n_actions) * 10 ** rng.uniform(-1, 1.5)
        if draw % 4 == 0:
            theta[1] = theta[0]
        support = rng.random(n_actions) < (rng.uniform(0.2, 1) if masked else 1.0)
        best = int(rng.integers(n_actions))
        support[best] = True
        pi = np.where(support, np.exp(theta - theta[support].max()), 0.0)
        step = np.eye(n_actions)[best] - pi / pi.sum()
        yield theta, theta + weight * rng.random() * step, weight


def _compare_rise(compare: Recorder, theta: Floats, new: Floats, bound: Floats, draw: int) -> None:
    """Compare what a step adds to the sums of largest parameters with a bound."""
    room = float((bound - (sums(new) - sums(theta))[:-1]).min())
    compare.at_least(
        "room in the step",
        room,
        -ROUNDING * (1 + np.ptp(theta)),
        limit="0, up to rounding",
        at={"draw": draw},
    )


@check(
    "more:ce-range",
    wrong={
        "SCE in its place": {"masked": True},
        "the factor of one action less": {"factor": lambda k: harmonic(k - 2)},
        "K - 1 in place of the harmonic number": {"factor": lambda k: k - 1.0},
        "the constant without 2w": {"constant": lambda k, w: ce_constant(k, w) - 2 * w},
        "the lower bound without its constant": {"lower_constant": lambda k, w: 0.0},
    },
)
def ce_has_the_harmonic_range(
    compare: Recorder,
    masked: bool = False,
    factor: Callable[[int], float] = lambda k: harmonic(k - 1),
    constant: Constant = ce_constant,
    lower_constant: Constant = floor_constant,
) -> None:
    """CE's range is between the two bounds, and grows by its factor of log n in the cascade.

    A step adds at most min(w, C e^-D) to a sum of m largest parameters, with the distance D of the
    next one from the largest.
    """
    for draw, (theta, new, weight) in enumerate(cross_entropy_steps(1, masked=masked)):
        ordered = -np.sort(-theta)
        bound = ce_step_bound(len(theta), weight, ordered[0] - ordered[1:])
        _compare_rise(compare, theta, new, bound, draw)
    use, at = 0.0, dict[str, Any]()
    for n_actions, weight, n in product((2, 3, 5), (0.1, 1.0), (100, 1000)):
        bound = range_bound(n, factor(n_actions), constant(n_actions, weight))
        for history, rows in histories(n_actions, 1):
            path = follow("ce", np.resize(rows, (n, n_actions)), weight, n)
            at = {"actions": n_actions, "weight": weight, "n": n, "history": history}
            compare.at_most("range", float(np.ptp(path, axis=1).max()), bound, at=at)
    slopes = {}
    for n_actions, weight in product((3, 4, 5), (0.03, 0.3, 1.0)):
        spreads: list[float] = []
        for rounds in (300, 3000):
            spread, n = float(np.ptp(cascade(n_actions, rounds, weight))), rounds * (n_actions - 1)
            bound = range_bound(n, factor(n_actions), constant(n_actions, weight))
            least = range_floor(rounds, factor(n_actions), lower_constant(n_actions, weight))
            at = {"actions": n_actions, "weight": weight, "n": n, "history": "cascade"}
            compare.at_most("range", spread, bound, at=at)
            compare.at_least("range", spread, least, limit="the lower bound", at=at)
            use = max(use, spread / bound)
            spreads.append(spread)
        if weight == 1.0:
            slope = (spreads[1] - spreads[0]) / math.log(10)
            slopes[n_actions] = slope
            compare.equal(
                "growth of the range per log n over the factor",
                slope / factor(n_actions),
                1.0,
                tolerance=0.08,
                at={"actions": n_actions, "weight": weight},
            )
    compare_use(compare, "range", use, 0.63)
    compare.report(
        use=f"{100 * use:.0f} %",
        **{"slope": f"{slopes[3]:.2f}", "slope of four": f"{slopes[4]:.2f}"},
    )


@check(
    "more:sce-range",
    wrong={
        "CE in its place": {"update": "ce"},
        "the harmonic number in place of K - 1": {"factor": lambda k: harmonic(k - 1)},
    },
)
def sce_attains_the_largest_range(
    compare: Recorder, update: str = "sce", factor: Callable[[int], float] = lambda k: k - 1.0
) -> None:
    """At given values each step of SCE is that of a pair, and afterwards it returns slowly.

    The second best value is within the probability of the lowered action in its pair of the best.
    """
    chosen = as_update(update)
    for n_actions, weight in product((3, 4, 5), (0.3, 1.0)):
        path, rounds = pair_range(n_actions, 6000, weight), 6000 // (n_actions - 1)
        for t in (*range(0, 60), *range(5900, 5960)):
            m = t % (n_actions - 1)
            new = chosen.step(path[t], pair_values(path[t], m), weight)
            error = float(np.abs(new - path[t + 1]).max())
            at: dict[str, Any] = {"actions": n_actions, "weight": weight, "t": t}
            compare.at_most(
                "distance from the step of a pair", error, ROUNDING, limit="rounding", at=at
            )
        theta, at = path[-1], {"actions": n_actions, "weight": weight, "n": 6000}
        growth = float(np.ptp(theta) - np.ptp(path[600])) / math.log(10)
        compare.equal(
            "growth of the range per log n over the factor",
            growth / factor(n_actions),
            1.0,
            tolerance=0.06,
            at=at,
        )
        least = range_floor(rounds, n_actions - 1, pair_constant(n_actions, weight))
        steps = steps_back(chosen, theta, weight)
        bound = return_floor(n_actions, weight, least)
        compare.at_least("n'", float(steps), bound, at=at)
        spread = float(np.ptp(theta))
        bound = return_floor(n_actions, weight, spread)
        compare.at_least("n'", float(steps), bound, limit="that from the range of the run", at=at)
    ce = float(np.ptp(cascade(5, 1500)))
    compare.report(**{"range": float(np.ptp(pair_range(5, 6000)[-1])), "range of CE": ce})


def all_histories() -> Iterator[tuple[dict[str, Any], list[list[float]], int, float]]:
    """Yield the settings of the checks of updates that forget."""
    for n_actions, weight, n in product((3, 6), (0.3, 3.0), (100, 1000)):
        for name, history in histories(n_actions, 2):
            yield (
                {"actions": n_actions, "weight": weight, "n": n, "history": name},
                history,
                n,
                weight,
            )


@check(
    "more:ce-forgets",
    wrong={
        "MCE in its place": {"update": "mce"},
        "bound without the range": {"range_term": False},
        "half of the bound": {"times": 0.5},
        "a factor of 1 in place of the harmonic number": {"factor": lambda k: 1.0},
    },
)
def ce_forgets(
    compare: Recorder,
    update: str = "ce",
    range_term: bool = True,
    times: float = 1.0,
    factor: Callable[[int], float] = lambda k: harmonic(k - 1),
) -> None:
    """CE's count is at most the bound, after every history, and at least the lower bound.

    From a given range the bound is nearly attained if there are many actions, of which one is below
    all others, which are equal.
    """
    counts, use = [], 0.0
    for at, history, n, weight in all_histories():
        n_actions = at["actions"]
        spread = range_bound(n, factor(n_actions), ce_constant(n_actions, weight))
        counts.append(count(update, history, n, weight))
        bound = times * return_bound(n_actions, weight, spread if range_term else 0.0)
        compare.at_most("n'", float(counts[-1]), float(bound), at=at)
    for n_actions, weight in product((3, 50), (0.1, 0.5)):
        theta = np.array([0.0] * (n_actions - 1) + [-20.0])
        steps = steps_back(as_update(update), theta, weight)
        bound = times * return_bound(n_actions, weight, 20.0)
        at = {"actions": n_actions, "weight": weight, "range": 20.0}
        compare.at_most("n' from a given range", float(steps), float(bound), at=at)
        least = return_floor(n_actions, weight, 20.0)
        compare.at_least("n' from a given range", float(steps), least, at=at)
        use = max(use, steps / bound)
    compare_use(compare, "n' from a given range", use, 0.98)
    use = 0.0
    for n_actions, weight in product((3, 4), (0.1, 1.0)):
        theta = cascade(n_actions, 3000, weight)
        steps = steps_back(as_update(update), theta, weight)
        n = 3000 * (n_actions - 1)
        spread = range_bound(n, factor(n_actions), ce_constant(n_actions, weight))
        bound = times * return_bound(n_actions, weight, spread)
        floor = range_floor(3000, factor(n_actions), floor_constant(n_actions, weight))
        at = {"actions": n_actions, "weight": weight, "n": n, "history": "cascade"}
        compare.at_most("n'", float(steps), float(bound), at=at)
        least = return_floor(n_actions, weight, floor)
        compare.at_least("n'", float(steps), least, limit="the lower bound", at=at)
        use = max(use, steps / bound)
    compare_use(compare, "n' after a cascade", use, 0.21)
    steps, _ = exact_count("ce", TWO, 200, bits=600)
    compare.equal("count in balls", count(update, TWO, 200), steps, limit="4", at={"n": 200})
    compare.report(most=max(counts), use=f"{100 * use:.0f} %")


@check(
    "more:sce-forgets",
    wrong={
        "MCE in its place": {"update": "mce"},
        "bound without the term of the gap": {"factor": lambda k, w: 0},
        "half of the term of the gap": {"factor": lambda k, w: stages(k, w) / 2},
    },
)
def sce_forgets(
    compare: Recorder, update: str = "sce", factor: Callable[[int, float], float] = stages
) -> None:
    """SCE's count is at most the bound, after every history, with several gaps and ranges.

    In the end all other actions but one are nearly as good as the last one.
    """
    counts, use = [], {3: 0.0, 6: 0.0}
    for at, history, n, weight in all_histories():
        n_actions = at["actions"]
        spread = range_bound(n, n_actions - 1, range_constant(n_actions, weight))
        odds = (n_actions - 1) * math.exp(spread)
        bound = escape_bound(odds, factor(n_actions, weight), weight, 1.0, 1.0)
        counts.append(count(update, history, n, weight))
        compare.at_most("n'", float(counts[-1]), float(bound), at=at)
        for gap, size in ((0.3, 1.0), (0.1, 5.0), (0.003 / weight, 1.0)) if n == 100 else ():
            final = [1 - gap] * (n_actions - 2) + [1 - size, 1.0]
            bound = escape_bound(odds, factor(n_actions, weight), weight, gap, size)
            steps = count(update, history, n, weight, final)
            here = {**at, "gap": gap, "range": size}
            compare.at_most("n'", float(steps), float(bound), at=here)
            use[n_actions] = max(use[n_actions], steps / bound)
    for n_actions, stated in ((3, 0.24), (6, 0.11)):
        quantity = f"n' with {n_actions} actions and a small gap"
        compare_use(compare, quantity, use[n_actions], stated)
    steps, lag = exact_count("sce", TWO, 200)
    compare.equal("count in balls", count(update, TWO, 200), steps, limit="5", at={"n": 200})
    ours, theirs = deficit(update, TWO, 200), float(lag)
    compare.equal("deficit", ours, theirs, tolerance=1e-9, limit="that in balls", at={"n": 200})
    compare.report(most=max(counts), use=f"{100 * max(use.values()):.0f} %")


# The sign condition

SAFE: dict[str, Update] = {
    "MCE": as_update("mce"),
    "unbalanced": Variant(kind="unbalanced"),
    "renormalised": Variant(kind="renormalised"),
}


@check(
    "more:impossible",
    wrong={
        "SCE in their place": {"update": as_update("sce")},
        "CE in their place": {"update": as_update("ce")},
        "six fifths of the bound": {"times": 1.2},
    },
)
def safe_updates_that_escape_remember(
    compare: Recorder, update: Update | None = None, times: float = 1.0
) -> None:
    """Against the adversary the count is at least the bound, for updates with the three properties.

    For MCE the smallest step is cw/2 and the largest is cw; for the variants they are w/2 and 2w.
    """
    for n_actions, weight, n in product((3, 5), (0.03, 0.1, 0.5), (40, 400)):
        if weight * n > 40:  # the values of the adversary would tie in floats
            continue
        for label, safe in SAFE.items():
            c = n_actions / (n_actions - 1) if label == "MCE" else 2.0
            least, most = (
                (c * weight / 2, c * weight) if label == "MCE" else (weight / 2, c * weight)
            )
            steps, rise, move = adversary(update or safe, n, n_actions, weight)
            at = {"actions": n_actions, "weight": weight, "n": n, "update": label}
            compare.at_least("rise over the rest", rise / least, 1 - 1e-9, limit="κ", at=at)
            compare.at_most("change of a difference", move / most, 1 + 1e-9, limit="L", at=at)
            bound = times * adversary_bound(n, n_actions, least, most)
            compare.at_least("n'", float(steps), bound, at=at)
    compare.report(**{"count of MCE": adversary("mce", 400, 3, 0.1)[0]})


GAPS = (1e-1, 1e-2, 1e-4)


@check(
    "more:impossible-gap",
    wrong={
        "CE in their place": {"update": as_update("ce")},
        "a share of n in spite of the gap": {"bound": lambda *given: adversary_bound(*given[:4])},
        "SCE at the pace of MCE": {"pace": lambda w, gap: w / 2},
    },
)
def safe_updates_remember_gaps(
    compare: Recorder,
    update: Update | None = None,
    bound: Callable[..., float] = gap_bound,
    pace: Callable[[float, float], float] = gap_pace,
) -> None:
    """With a gap the count is at least the bound, and SCE satisfies the three conditions.

    The pace of SCE is nearly attained with many actions below average.
    """
    compared, settings = {**SAFE, "SCE": as_update("sce")}, 0
    for n_actions, weight, n, gap in product((3, 5), (0.1, 0.5), (40, 400), GAPS):
        for label, safe in compared.items():
            most = n_actions / (n_actions - 1) * weight if label == "MCE" else 2 * weight
            least = {"MCE": most / 2, "SCE": pace(weight, gap)}.get(label, weight / 2)
            steps, rise, move = adversary(update or safe, n, n_actions, weight, gap)
            at = {"actions": n_actions, "weight": weight, "n": n, "gap": gap, "update": label}
            settings += 1
            compare.at_least("rise over the rest", rise / least, 1 - 1e-9, limit="κ", at=at)
            compare.at_most("change of a difference", move / most, 1 + 1e-9, limit="L", at=at)
            compare.at_least("n'", float(steps), bound(n, n_actions, least, most, gap), at=at)
    use, draw = 0.0, 0
    for draw, (pi, q, weight, gap) in enumerate(states_with_a_gap()):
        best, moved = int(q.argmax()), as_update("sce").step(np.log(pi), q, weight) - np.log(pi)
        advantage, least, at = q - pi @ q, pace(weight, gap), {"draw": draw}
        above = moved[np.flatnonzero(advantage > ROUNDING)]
        compare.at_least("rise above average", float(above.min()), -ROUNDING, limit="0", at=at)
        below = moved[np.flatnonzero(advantage < -ROUNDING)]
        compare.at_most("rise below average", float(below.max()), ROUNDING, limit="0", at=at)
        most = float(np.ptp(moved)) / (2 * weight)
        compare.at_most("change of a difference", most, 1 + 1e-9, limit="L", at=at)
        rise = float(moved[best] - below.max())
        compare.at_least("rise over the rest", rise / least, 1 - 1e-9, limit="κ", at=at)
        use = max(use, least / rise)
    compare_use(compare, "pace of SCE", use, 0.98)
    counts = {
        label: [adversary(safe, n, 3, 0.1, 1e-2)[0] for n in (400, 1600)]
        for label, safe in compared.items()
    }
    compare.report(
        settings=settings,
        states=draw + 1,
        **{f"counts of {k}": " and ".join(map(str, v)) for k, v in counts.items()},
    )


def states_with_a_gap() -> Iterator[tuple[Floats, Floats, float, float]]:
    """Yield policies, values in [0, 1], weights and gaps, with the best action at most at one half.

    In the last states one action has a value of 1 minus the gap and nearly all the mass, and the
    best action is as frequent as the bound on SCE's odds allows, beside many of value 0.
    """
    rng = np.random.default_rng(9)
    for _ in range(300):
        n_actions, gap = int(rng.integers(3, 8)), float(10 ** rng.uniform(-3, -0.3))
        q = np.minimum(rng.random(n_actions), 1 - gap)
        q[0], pi = 1.0, rng.dirichlet(np.full(n_actions, 0.3)) + 1e-6
        pi[0] = min(pi[0], pi[1:].sum())
        yield pi / pi.sum(), q, float(10 ** rng.uniform(-2, 1)), gap
    for gap in (0.4, 0.1, 0.01):
        rare = 1e-6
        q = np.array([1.0, 1.0 - gap, *[0.0] * 50])
        odds = (1 / gap - 1) * (1 - 1e-6)
        pi = np.array([rare * odds, 1.0, *[rare / 50] * 50])
        yield pi / pi.sum(), q, 1.0, gap


def transfer_states() -> Iterator[tuple[Floats, Floats, float]]:
    """Yield random parameters, values and weights of 3 to 7 actions, with ties in every third."""
    rng = np.random.default_rng(7)
    for draw in range(1000):
        n_actions = int(rng.integers(3, 8))
        theta = rng.normal(size=n_actions) * rng.choice([0.3, 1.0, 5.0, 15.0])
        q = rng.integers(0, 3, n_actions) / 2 if draw % 3 == 0 else rng.random(n_actions)
        yield theta, q, float(10 ** rng.uniform(-2, math.log10(20)))


@check(
    "more:outside-sign-condition",
    wrong={
        "a constant in place of π(b) in the factor": {"update": SquareTransfer(power=1)},
        "without the cap": {"update": SquareTransfer(capped=False)},
        "SCE in its place": {"update": as_update("sce")},
        "bound without the logarithm": {"logarithm": False},
    },
)
def a_monotone_update_forgets(
    compare: Recorder, update: Update | None = None, logarithm: bool = True
) -> None:
    """The transfer of squares is monotone, bounded, escapes and forgets, and breaks the condition.

    The inequalities of one step are compared in floats; balls have the sign of the gain and the
    step by the formula of the page.
    """
    chosen = update or SquareTransfer()
    balls = 0
    for draw, (theta, q, weight) in enumerate(transfer_states()):
        at: dict[str, Any] = {"draw": draw}
        best, pi = int(q.argmax()), softmax(theta)
        moved = chosen.step(theta, q, weight) - theta
        _compare_transfer(compare, pi, moved, best, weight, at)
        gain = float(softmax(theta + moved) @ (q - pi @ q))
        compare.at_least("gain in floats", gain, -1e-14, limit="0, up to rounding", at=at)
        if draw >= 200 or np.ptp(q) == 0:
            continue
        balls += 1
        with precision(1000):
            steps, exact_gain, growth = _transfer_in_balls(theta, q, best, weight)
            compare.true("gain in balls is positive", exact_gain > 0, at=at)
            compare.at_most("growth of 1/π in balls", growth, 1.0, limit="e^w - 1", at=at)
            off = max(abs(float(x - arb(y))) for x, y in zip(steps, moved.tolist(), strict=True))
        size = 1 + weight + float(np.abs(theta).max())
        compare.at_most("error of the step", off / size, 1e-12, limit="rounding", at=at)
    _compare_transfer_at_its_limits(compare, chosen)
    theta, q = np.log([1 / 8, 5 / 8, 1 / 4]), np.array([1.0, 0.9, 0.0])
    moved = chosen.step(theta, q, 1.0) - theta
    compare.true("lowers an action above average more than one below", moved[1] < moved[2])
    figures = _compare_transfer_counts(compare, chosen, logarithm)
    for name, mdp in instances().items():
        path = run(mdp, chosen, 150, 1.0, "uniform")
        gaps, at = np.max(structure(mdp).v - path.v, axis=1), {"MDP": name}
        end = float(gaps[-1] / gaps[0])
        compare.at_most("gap at the end over the first", end, 0.1, limit="0.1", at=at)
        fall, size = float(np.diff(path.v, axis=0).min()), float(np.ptp(path.v))
        room = -ROUNDING * (1 + size)
        compare.at_least("change of a value", fall, room, limit="0, up to rounding", at=at)
    compare.report(balls=balls, **figures)


def _compare_transfer(
    compare: Recorder, pi: Floats, moved: Floats, best: int, weight: float, at: dict[str, Any]
) -> None:
    """Compare one step with the inequalities of the theorem on the transfer of squares."""
    room, others = 1e-9 * (1 + weight), np.delete(moved, best)
    rise = float(moved[best])
    compare.at_least("rise of the greedy action", rise, -room, limit="0", at=at)
    compare.at_most("rise of the greedy action", rise, weight + room, limit="w", at=at)
    compare.at_most("rise of the others", float(others.max()), room, limit="0", at=at)
    compare.at_most("fall of the others", -float(others.min()), weight + room, limit="w", at=at)
    if pi[best] <= 0.5:
        least = transfer_rise(len(pi), weight)
        compare.at_least(
            "rise over the rest", float(rise - others.max()), least - room, limit="κ", at=at
        )
    growth = float((np.expm1(-moved) - pi * math.expm1(weight)).max())
    room *= math.exp(weight)
    compare.at_most("π times the growth of 1/π, minus π (e^w - 1)", growth, room, limit="0", at=at)


def _compare_transfer_at_its_limits(compare: Recorder, update: Update) -> None:
    """Compare the transfer with its bounds where they are attained or nearly attained.

    At one half with all others equal the greedy parameter rises by κ. With small weights the odds
    against an action that is never greedy grow as the bound does. A step of large weight lowers an
    action with nearly all the mass by nearly the weight, if the greedy one has the rest.
    """
    use = {"odds": 0.0, "fall": 0.0}
    for n_actions, weight in product((3, 6), (0.02, 1.0)):
        at: dict[str, Any] = {"actions": n_actions, "weight": weight}
        theta = np.array([math.log(n_actions - 1)] + [0.0] * (n_actions - 1))
        rise = float((update.step(theta, np.eye(n_actions)[0], weight) - theta)[0])
        least = transfer_rise(n_actions, weight) * (1 - 1e-9)
        compare.at_least("rise of the greedy action at one half", rise, least, limit="κ", at=at)
        use["rise"] = least / rise
        path = follow(update, np.eye(n_actions)[0], weight, 3000)
        odds = float(np.exp(path[-1] - path[-1, -1]).sum() - 1)
        most = transfer_odds(3000, n_actions, weight)
        compare.at_most("odds against an action", odds, most, at=at)
        use["odds"] = max(use["odds"], odds / most)
    for weight in (5.0, 20.0):
        theta = np.array([-weight, 0.0])
        new = update.step(theta, [1.0, 0.0], weight)
        fall = -float(np.log(softmax(new) / softmax(theta))[1])
        compare.at_most("fall of the logarithm", fall, weight, limit="w", at={"weight": weight})
        use["fall"] = max(use["fall"], fall / weight)
    compare_use(compare, "κ", use["rise"], 1.0)
    compare_use(compare, "odds against an action", use["odds"], 0.99)
    compare_use(compare, "fall of the logarithm", use["fall"], 0.96)


def _transfer_in_balls(
    theta: Floats, q: Floats, best: int, weight: float
) -> tuple[list[arb], arb, float]:
    """Return the step, the gain and the growth of 1/π over e^w - 1, by the page's formula."""
    w, raw = arb(weight), [arb(x).exp() for x in theta.tolist()]
    total = sum(raw, arb(0))
    pi = [x / total for x in raw]
    squares = sum((p * p for a, p in enumerate(pi) if a != best), arb(0))
    alpha = (1 - (-w).exp()).min(pi[best] * (w.exp() - 1) / squares)
    new = [p + alpha * squares if a == best else p - alpha * p * p for a, p in enumerate(pi)]
    gain = sum(((x - p) * arb(y) for x, p, y in zip(new, pi, q.tolist(), strict=True)), arb(0))
    growth = max(float((1 / x - 1 / p) / (w.exp() - 1)) for x, p in zip(new, pi, strict=True))
    return [(x / p).log() for x, p in zip(new, pi, strict=True)], gain, growth


def _compare_transfer_counts(
    compare: Recorder, update: Update, logarithm: bool
) -> dict[str, int | str]:
    """Compare counts with the bound of the theorem, and those of the adversary with both bounds."""

    def bound(n: int, n_actions: int, weight: float) -> float:
        rise = transfer_rise(n_actions, weight)
        odds = transfer_odds(n, n_actions, weight)
        return float(transfer_bound(odds, rise) if logarithm else 1 + 1 / rise)

    figures: dict[str, int | str] = {}
    for n_actions, weight, n in ((3, 0.1, 4000), (3, 1.0, 400), (5, 1.0, 400)):
        steps, _, _ = adversary(update, n, n_actions, weight)
        at: dict[str, Any] = {
            "actions": n_actions,
            "weight": weight,
            "n": n,
            "history": "adversary",
        }
        compare.at_most("n'", float(steps), bound(n, n_actions, weight), at=at)
        refuted = adversary_bound(n, n_actions, transfer_rise(n_actions, weight), 2 * weight)
        limit = "the lower bound under the sign condition"
        compare.at_most("n' against the adversary", float(steps), refuted, limit=limit, at=at)
        if n == 4000:
            figures = {"adversary": steps, "lower bound": f"{refuted:.0f}"}
    most = 0
    for at, history, n, weight in all_histories():
        steps = count(update, history, n, weight)
        most = max(most, steps)
        compare.at_most("n'", float(steps), bound(n, at["actions"], weight), at=at)
    return {"most": most, **figures}


# SCE


def states(seed: int, n: int) -> Iterator[tuple[Floats, Floats, float]]:
    """Yield random parameters, values and weights of 2 to 7 actions, with ties in every third."""
    rng = np.random.default_rng(seed)
    for draw in range(n):
        n_actions = int(rng.integers(2, 8))
        theta = rng.normal(size=n_actions) * rng.choice([0.3, 1.0, 5.0, 15.0])
        q = rng.integers(0, 3, n_actions) / 2 if draw % 3 == 0 else rng.random(n_actions)
        yield theta, q, float(10 ** rng.uniform(-2, 2))


@check(
    "more:sce-monotone",
    wrong={"CE in its place": {"update": "ce"}},
)
def sce_never_decreases_the_value(compare: Recorder, update: str = "sce") -> None:
    """The advantage of the new policy is positive in balls, and in floats up to rounding.

    In floats each of the tied greedy actions is chosen in turn, by a change of the order.
    """
    balls, floats, least, chosen = 0, 3000, math.inf, as_update(update)
    for draw, (theta, q, weight) in enumerate(states(0, floats)):
        for greedy in np.flatnonzero(q == q.max()):
            order = np.roll(np.arange(len(q)), -int(greedy))
            logits, values = theta[order], q[order]
            pi, new = softmax(logits), chosen.policy(chosen.step(logits, values, weight))
            gain = float(new @ (values - pi @ values))
            at: dict[str, Any] = {"draw": draw, "greedy": int(greedy)}
            least = min(least, gain)
            compare.at_least("advantage in floats", gain, -1e-14, limit="0, up to rounding", at=at)
        if draw >= 400 or np.ptp(q) == 0:
            continue
        balls += 1
        with precision(600):
            moves = direction(update, theta.tolist(), q.tolist())
            old = [arb(x).exp() for x in theta.tolist()]
            mean = sum(x * arb(y) for x, y in zip(old, q.tolist(), strict=True)) / sum(old)
            gain_ball = sum(
                x * (arb(weight) * y).exp() * (arb(z) - mean)
                for x, y, z in zip(old, moves, q.tolist(), strict=True)
            )
            compare.true("advantage in balls is positive", gain_ball > 0, at={"draw": draw})
    for (name, mdp), ties in product(instances().items(), ("first", "random")):
        values = run(mdp, f"{update} ties={ties}", 300, 1.0, "uniform", seed=0).v
        fall, size = float(np.diff(values, axis=0).min()), float(np.ptp(values))
        at = {"MDP": name, "ties": ties}
        room = -1e-12 * (1 + size)
        compare.at_least("change of a value", fall, room, limit="0, up to rounding", at=at)
    compare.report(balls=balls, floats=floats, least=min(least, 0.0))


@check("more:sce-approximate", wrong={"seven tenths of the bound": {"factor": 0.7}})
def approximate_values_cost_little(compare: Recorder, factor: float = 1.0) -> None:
    """Total variation is at most tanh(w/2), and a step costs at most 2 eps times that.

    The last instances are two actions whose values are off by eps in opposite directions.
    """
    sce, rng = as_update("sce"), np.random.default_rng(1)
    for draw, (theta, q, weight) in enumerate(states(1, 2000)):
        eps = float(10 ** rng.uniform(-3, 0))
        approximate = q + rng.uniform(-eps, eps, len(q))
        _compare_step(compare, theta, q, approximate, eps, weight, factor, {"draw": draw})
    for weight in (0.01, 0.1, 1.0, 3.0):
        for p in np.linspace(0.01, 0.5, 200):
            theta = np.log([p, 1 - p])
            q, approximate = np.array([-1.0, 1.0]), np.array([1e-13, 0.0])
            at = {"weight": weight, "p": float(p)}
            _compare_step(compare, theta, q, approximate, 1.0, weight, factor, at)
    for name, mdp in instances().items():
        path = run(mdp, sce, 20, 1.0, "uniform")
        pi = softmax(path.theta[-1])
        true = mdp.evaluate(pi)
        for draw in range(10):
            approximate = true.q + rng.uniform(-0.3, 0.3, true.q.shape)
            new = sce.policy(sce.step(path.theta[-1], approximate, 1.0))
            fall = float((mdp.evaluate(new).v - true.v).min())
            bound = -factor * 0.6 * math.tanh(0.5) / (1 - mdp.discount)
            compare.at_least(
                "change of a value",
                fall,
                bound,
                limit="minus the bound",
                at={"MDP": name, "draw": draw},
            )
    compare.report(**{"change": largest_change(1.0), "bound at 1": math.tanh(0.5)})


def _compare_step(
    compare: Recorder,
    theta: Floats,
    q: Floats,
    approximate: Floats,
    eps: float,
    weight: float,
    factor: float,
    at: dict[str, Any],
) -> None:
    """Compare the change and the loss of one step of SCE at given values with their bounds."""
    pi, new = softmax(theta), softmax(UPDATES["sce"].step(theta, approximate, weight))
    bound = factor * math.tanh(weight / 2) + ROUNDING
    change = float(np.abs(new - pi).sum() / 2)
    compare.at_most("total variation", change, bound, limit="tanh(w/2)", at=at)
    loss = float(-(new - pi) @ (q - q.mean())) / (2 * eps)
    compare.at_most("loss over 2ε", loss, bound, limit="tanh(w/2)", at=at)


@check(
    "more:sce-converges",
    wrong={
        "CE in its place": {"update": "ce"},
        "a floor of e^-M": {"exponent": 1.0},
        "values that do not tend to the optimal ones": {"successor_weight": 0.0},
    },
)
def sce_converges(
    compare: Recorder, update: str = "sce", exponent: float = 2.0, successor_weight: float = 1.0
) -> None:
    """SCE converges on every process, keeps its floors and has the rate of CE.

    On the schedule on which CE cycles, SCE does not decrease the value and comes near the optimum.
    The rate needs values that tend to the optimal ones: if the second state of `late_reward_mdp`
    has no weight, the optimal action of the first state never becomes the greedy one.
    """
    for (name, mdp), ties in product(instances().items(), ("first", "random")):
        chosen = f"{update} ties={ties}"
        path = run(mdp, chosen, 400, lambda t: 8 * (t + 1.0) ** -0.25, "uniform", seed=0)
        gaps = np.max(structure(mdp).v - path.v, axis=1)
        at: dict[str, Any] = {"MDP": name, "ties": ties}
        end = float(gaps[-1] / gaps[0])
        compare.at_most("gap at the end over the first", end, 0.01, limit="0.01", at=at)
    periods = 500
    best = np.array([float(v) for v in THREE_STATES.optimum()[1]])
    values = simulate(THREE_STATES, periods, update=update).values
    shortfall, updates = float((best - values[-1]).max()), len(values)
    compare.at_most(
        "shortfall on CE's cycle", shortfall, 0.01, limit="0.01", at={"updates": updates}
    )
    rng = np.random.default_rng(3)
    pi = softmax(follow(update, [1.0, 0.0], 200.0, 1, [-5.0, 5.0]))
    fall = float(np.log(pi[-1] / pi[0]).min())
    at = {"draw": "one step", "M": 200.0}
    least = -200.0 * exponent - 1e-9
    compare.at_least("log of probability over the first one", fall, least, limit="-2M", at=at)
    for draw in range(60):
        n_actions, total = int(rng.integers(2, 5)), float(10 ** rng.uniform(-2, 1))
        theta, q = rng.normal(size=n_actions) * 5, rng.random(n_actions)
        weights = rng.dirichlet(np.ones(20)) * total if draw % 3 else np.array([total])
        theta = np.array([-12.0, *theta[1:]]) if draw % 3 == 0 else theta
        q[0] += 1.0
        pi = softmax(follow(update, q, weights, len(weights), theta))
        fall = float(np.log(pi[-1] / pi[0]).min())
        at = {"draw": draw, "M": total}
        compare.at_least(
            "log of probability over the first one",
            fall + exponent * total,
            -1e-9,
            limit="-2M",
            at=at,
        )
    for n_actions, weight in product((2, 4), (0.5, 2.0)):
        q, n = np.linspace(1.0, 0.0, n_actions), 5_000
        theta = follow(update, q, weight, n, np.linspace(-1.0, 1.0, n_actions))[-1]
        limit = (n_actions - 1) / n_actions
        scaled = float(softmax(theta)[1:].sum() * weight * n)
        at = {"actions": n_actions, "weight": weight}
        compare.equal("(1 - π) W", scaled, limit, tolerance=0.01, limit="(|A| - 1)/|A|", at=at)
    path = run(late_reward_mdp(), update, 5_000, 1.0, [1.0, successor_weight, 0.0])
    scaled = float(path.policies[-1, 0, 1] * path.weights[:, 0].sum())
    at = {"MDP": "late_reward_mdp()", "weight of the second state": successor_weight}
    compare.equal("(1 - π) W", scaled, 0.5, tolerance=0.01, limit="(|A| - 1)/|A|", at=at)
    compare.report(updates=updates, shortfall=shortfall)


@check(
    "more:sce-escape",
    wrong={
        "without the term of the gap": {"factor": lambda k, w: 0},
        "half of the term of the gap": {"factor": lambda k, w: stages(k, w) / 2},
        "the balanced variant in its place": {"update": Variant(kind="balanced")},
        "CE in its place": {"update": "ce"},
    },
)
def sce_leaves_corners(
    compare: Recorder,
    update: str | Update = "sce",
    factor: Callable[[int, float], float] = stages,
) -> None:
    """SCE reaches one half within the bound, from corners with one other action and with more.

    From slow corners of three actions it needs at least the lower bound.
    """
    for pi, q, weight in corners():
        best = int(q.argmax())
        odds = (1 - pi[best]) / pi[best]
        gap, spread = float(q[best] - np.sort(q)[-2]), float(np.ptp(q))
        bound = escape_bound(odds, factor(len(q), weight), weight, gap, spread)
        steps = float(escape_steps(update, pi, q, weight, cap=5000))
        at = {"π": round(float(pi[best]), 8), "actions": len(q), "weight": weight, "gap": gap}
        compare.at_most("steps", steps, float(bound), at=at)
        quick = float(escape_steps("ce", pi, q, weight, cap=5000))
        compare.at_most(
            "steps of CE",
            quick,
            math.ceil(2 / weight * math.log(odds)),
            limit="the bound of CE",
            at=at,
        )
    use = {3: 0.0, 6: 0.0}
    for n_actions, gap, weight in product(use, (1e-2, 1e-3), (0.2, 2.0)):
        pi, q = slow_corner(gap, n_actions)
        at = {"gap": gap, "weight": weight, "actions": n_actions}
        steps = float(escape_steps(update, pi, q, weight, cap=20_000))
        least = escape_floor(weight, gap, 1.0)
        compare.at_least("steps", steps, least, limit="the lower bound", at=at)
        odds = (1 - pi[0]) / pi[0]
        bound = escape_bound(odds, factor(n_actions, weight), weight, gap, 1.0)
        compare.at_most("steps", steps, float(bound), at=at)
        use[n_actions] = max(use[n_actions], steps / bound)
    for n_actions, stated in ((3, 0.25), (6, 0.2)):
        compare_use(compare, f"steps with {n_actions} actions", use[n_actions], stated)
    near = [1.0, 0.99, 0.0]
    counts = {u: int(escape_steps(u, well_policy(1e-8), near)) for u in ("sce", "ce", "mce")}
    compare.report(
        **{f"steps of {u.upper()}": n for u, n in counts.items()},
        use=f"{100 * use[3]:.0f} %",
        **{"use of more": f"{100 * use[6]:.0f} %"},
    )


def corners() -> Iterator[tuple[Floats, Floats, float]]:
    """Yield policies whose odds against the best action are at least 1, values and weights."""
    rng = np.random.default_rng(4)
    for depth, second, weight in product((1e-2, 1e-4, 1e-8), (0.5, 0.9, 0.99), (0.3, 1.0, 4.0)):
        yield well_policy(depth), np.array([1.0, second, 0.0]), weight
    for _ in range(80):
        n_actions = int(rng.integers(2, 8))
        pi = rng.dirichlet(np.full(n_actions, 0.1)) + 1e-6
        pi, q = pi / pi.sum(), rng.random(n_actions)
        weight = float(10 ** rng.uniform(-1, 1))
        if pi[q.argmax()] <= 0.5:
            yield pi, q, weight


@check(
    "more:sce-gradient",
    wrong={"CE in its place": {"update": "ce"}, "MCE in its place": {"update": "mce"}},
)
def sce_is_a_gradient(compare: Recorder, update: str = "sce") -> None:
    """The step is minus the derivative of the cross-entropy over D, by central differences."""
    for draw, (theta, q, weight) in enumerate(states(5, 100)):
        mask = below_average(theta, q)
        best = int(q.argmax())
        mask[best] = True
        direction = (as_update(update).step(theta, q, weight) - theta) / weight
        with precision(400):
            slopes = []
            for a in range(len(q)):
                ends = []
                for shift in (arb(2) ** -100, -(arb(2) ** -100)):
                    moved = [arb(x) + shift * (b == a) for b, x in enumerate(theta.tolist())]
                    total = sum((moved[b].exp() for b in np.flatnonzero(mask)), arb(0))
                    ends.append(total.log() - moved[best])
                slopes.append(float((ends[1] - ends[0]) * arb(2) ** 99))
        error = float(np.abs(direction - np.array(slopes)).max()) * min(1.0, weight)
        size = 1 + float(np.abs(theta).max())
        compare.at_most(
            "error of the step", error, 1e-14 * size, limit="rounding", at={"draw": draw}
        )


@check("more:sce-two-actions", wrong={"three actions": {"n_actions": 3}})
def sce_is_ce_with_two_actions(compare: Recorder, n_actions: int = 2) -> None:
    """SCE and CE make the same step, bit by bit, and MCE the same up to rounding."""
    rng = np.random.default_rng(6)
    sce, ce, mce = map(as_update, ("sce", "ce", "mce"))
    for draw in range(500):
        theta, q = rng.normal(size=n_actions) * 10, rng.normal(size=n_actions)
        weight = float(10 ** rng.uniform(-3, 3))
        new, at = sce.step(theta, q, weight), {"draw": draw}
        expected = ce.step(theta, q, weight).tolist()
        compare.equal("step of SCE", new.tolist(), expected, limit="that of CE", at=at)
        error = float(np.abs(new - mce.step(theta, q, weight)).max()) / (1 + weight)
        compare.at_most("distance from MCE", error, 1e-14, limit="1e-14", at=at)
    still = sce.step([1.0, 0.0], [2.0, 2.0], 3.0).tolist()
    compare.equal("step at equal values", still, [1.0, 0.0], limit="none")


ROWS: dict[str, Update] = {
    "CE": as_update("ce"),
    "MCE": as_update("mce"),
    "SCE": as_update("sce"),
    "unbalanced": Variant(kind="unbalanced"),
    "balanced": Variant(kind="balanced"),
    "renormalised": Variant(kind="renormalised"),
    "transfer": SquareTransfer(),
}
"""The updates in the table of variants."""

TABLE: dict[str, tuple[int, ...]] = {
    "CE": (5, 5, 3, 4, 26),
    "MCE": (307, 258, 4, 5, 108),
    "SCE": (5, 5, 7, 9, 31),
    "unbalanced": (5, 70, 5, 6, 79),
    "balanced": (4, 5, 203, 2005, 26),
    "renormalised": (5, 5, 4, 5, 209),
    "transfer": (6, 6, 4, 7, 27),
}
"""The counts of the table on the page, in the columns of `measured`."""


def measured(update: str | Update) -> tuple[int, ...]:
    """Return the counts of an update in the table of variants.

    They are n' after 1000 updates with two of three and with three of four actions in turn, the
    steps from corners of 1e-2 and 1e-3, and n' after 400 updates of weight 0.1 of the adversary.
    """
    q = [1.0, 0.9, 0.0]
    return (
        count(update, TWO, 1000),
        count(update, SECOND, 1000),
        int(escape_steps(update, well_policy(1e-2), q, cap=5000)),
        int(escape_steps(update, well_policy(1e-3), q, cap=5000)),
        adversary(update, 400, 3, 0.1)[0],
    )


@check(
    "more:variants",
    wrong={"the unbalanced variant is SCE": {"changed": {"unbalanced": as_update("sce")}}},
)
def counts_of_variants(compare: Recorder, changed: Mapping[str, Update] | None = None) -> None:
    """The counts in the table of variants are as stated."""
    for label, update in {**ROWS, **(changed or {})}.items():
        counts = measured(update)
        compare.equal("counts", counts, TABLE[label], limit="those stated", at={"update": label})


ENDS: dict[str, tuple[Fraction, ...]] = {
    "sce": (Fraction(80, 323), Fraction(192, 323), Fraction(51, 323)),
    "ce": (Fraction(1, 4), Fraction(3, 5), Fraction(3, 20)),
}
"""The policies at which the mean step with `SAMPLES` vanishes."""


@check(
    "more:sce-samples",
    wrong={"PG-SM in its place": {"update": "pg-sm"}, "CE in its place": {"update": "ce"}},
)
def the_mask_does_not_help_with_samples(compare: Recorder, update: str = "sce") -> None:
    """The mean step with sampled values vanishes far from the best action, as under CE.

    It is exactly zero at the policies in `ENDS`, and the runs end there. For CE the probabilities
    are those of being the best sample.
    """
    starts = [[0.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 5.0]]
    means = [Fraction(1), Fraction(1, 2), Fraction(3, 5)]
    performances = {}
    for name, policy in ENDS.items():
        at: dict[str, Any] = {"update": name}
        step = exact_mean_step(name == "sce", policy)
        compare.equal("exact mean step", step, [0, 0, 0], limit="0", at=at)
        performances[name] = sum(x * y for x, y in zip(policy, means, strict=True))
        for start in starts:
            at = {"update": name, "start": start}
            run_of = update if name == "sce" else name
            theta, size = where_the_mean_step_ends(run_of, start)
            compare.at_most("size of the mean step", size, 1e-12, limit="0, up to rounding", at=at)
            off = float(np.abs(softmax(theta) - np.array([float(x) for x in policy])).max())
            compare.at_most(
                "distance from the policy", off, 1e-12, limit="0, up to rounding", at=at
            )
    compare.equal("value of SCE", performances["sce"], Fraction(1033, 1615), limit="1033/1615")
    compare.report(
        starts=len(starts),
        value=f"{float(performances['sce']):.4f}",
        **{"value of CE": f"{float(performances['ce']):.4f}"},
    )


@check("more:sce-rate", wrong={"SCE behaves like MCE": {"update": "mce"}}, kept=Status.OPEN)
def rate_at_limiting_ties_is_open(compare: Recorder, update: str = "sce") -> None:
    """At one state whose best actions draw near a tie, t pi_t(3) grows under SCE.

    A rate of 1/t at each state would keep it bounded. The question is open, because the values of
    the run are given and do not come from a decision process.
    """
    for name in (update, "ce"):
        (early, first), (late, last) = rate_run(name)[-2:]
        growth, at = last / first, {"update": name}
        compare.at_least("growth of t π in the last phase", growth, 10.0, limit="10", at=at)
        if name == update:
            figures = {"early": early, "first": f"{first:.2f}", "late": late, "last": f"{last:.1f}"}
    time, third = rate_run("mce", 3)[-1]
    compare.report(**figures, **{"early of MCE": time, "first of MCE": f"{third:.3f}"})
