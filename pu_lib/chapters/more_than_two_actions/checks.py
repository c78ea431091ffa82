"""Checks of the claims on more than two actions, each of which runs in at most a few seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from flint import arb

from pu_lib.arrays import Floats
from pu_lib.chapters.convergence.quantities import instances, structure, tied_limit_mdp
from pu_lib.chapters.cross_entropy.cycles import simulate
from pu_lib.chapters.gravity_well.escape import escape_steps, well_policy
from pu_lib.chapters.more_than_two_actions.quantities import (
    HISTORIES,
    SquareTransfer,
    Variant,
    adversary,
    adversary_bound,
    changes_bound,
    count,
    deficit,
    escape_bound,
    exact_count,
    exact_mean_step,
    largest_change,
    mce_share,
    pair_constant,
    pair_floor,
    pair_range,
    range_bound,
    range_constant,
    rate_run,
    return_bound,
    rotation_share,
    step_bound,
    sums,
    transfer_bound,
    transfer_rise,
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

    Balls confirm the limit and the counts for n = 200. The orbits with more actions in turn have no
    proof that runs converge to them.
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


@check(
    "more:range",
    wrong={
        "MCE in its place": {"update": "mce"},
        "half of the factor": {"share": 0.5},
        "the lower bound without its constant": {"constant": False},
    },
)
def sums_of_largest_parameters_grow_slowly(
    compare: Recorder, update: str = "", share: float = 1.0, constant: bool = True
) -> None:
    """A step adds at most min(w, C e^-h) to a sum of largest parameters; ranges are logarithmic.

    If neighbouring pairs take turns, the range is at least the lower bound.
    """
    rng = np.random.default_rng(0)
    for draw in range(1000):
        n_actions, weight = int(rng.integers(2, 8)), float(10 ** rng.uniform(-2, 1.5))
        theta = rng.normal(size=n_actions) * 10 ** rng.uniform(-1, 1.5)
        if draw % 4 == 0:
            theta[1] = theta[0]
        support = rng.random(n_actions) < rng.uniform(0.2, 1)
        best = int(rng.integers(n_actions))
        support[best] = True
        pi = np.where(support, np.exp(theta - theta[support].max()), 0.0)
        new = theta + weight * rng.random() * (np.eye(n_actions)[best] - pi / pi.sum())
        gap = -np.diff(-np.sort(-theta))
        rise = (sums(new) - sums(theta))[:-1]
        room = float((step_bound(n_actions, weight, gap) - rise).min())
        compare.at_least(
            "room in the step",
            room,
            -ROUNDING * (1 + np.ptp(theta)),
            limit="0, up to rounding",
            at={"draw": draw},
        )
    for n_actions, weight, n in product((3, 5), (0.3, 3.0), (100, 1000)):
        bound = share * range_bound(n, n_actions, range_constant(n_actions, weight))
        runs = {"pairs in turn": pair_range(n_actions, n, weight)}
        for name in (update,) if update else ("ce", "sce"):
            for history, rows in histories(n_actions, 1):
                values = np.resize(rows, (n, n_actions))
                runs[f"{name}, {history}"] = follow(name, values, weight, n)
        for name, path in runs.items():
            at = {"actions": n_actions, "weight": weight, "n": n, "history": name}
            compare.at_most("range", float(np.ptp(path, axis=1).max()), bound, at=at)
    for n_actions, weight in product((2, 3, 4, 6), (0.1, 1.0, 10.0)):
        path = np.ptp(pair_range(n_actions, 6000, weight), axis=1)
        less = pair_constant(n_actions, weight) if constant else 0.0
        for n in (60, 600, 6000):
            bound = pair_floor(n // (n_actions - 1), n_actions, less)
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
    compare.report(**{"slope": f"{slopes[0]:.3f}", "slope of four": f"{slopes[1]:.3f}"})


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
    },
)
def ce_forgets(compare: Recorder, update: str = "ce", range_term: bool = True) -> None:
    """CE's count is at most the bound, after every history."""
    counts = []
    for at, history, n, weight in all_histories():
        spread = range_bound(n, at["actions"], range_constant(at["actions"], weight))
        counts.append(count(update, history, n, weight))
        bound = return_bound(at["actions"], weight, spread if range_term else 0.0)
        compare.at_most("n'", float(counts[-1]), float(bound), at=at)
    steps, _ = exact_count("ce", TWO, 200, bits=600)
    compare.equal("count in balls", count(update, TWO, 200), steps, limit="4", at={"n": 200})
    compare.report(most=max(counts))


@check(
    "more:sce-forgets",
    wrong={
        "MCE in its place": {"update": "mce"},
        "bound without the term of the gap": {"gap_term": False},
    },
)
def sce_forgets(compare: Recorder, update: str = "sce", gap_term: bool = True) -> None:
    """SCE's count is at most the bound, after every history, with several gaps and ranges.

    In the end all other actions but one are nearly as good as the last one.
    """
    counts = []
    for at, history, n, weight in all_histories():
        n_actions = at["actions"]
        spread = range_bound(n, n_actions, range_constant(n_actions, weight))
        odds = n_actions * math.exp(spread)
        bound = escape_bound(odds, n_actions, weight, 1.0, 1.0)
        counts.append(count(update, history, n, weight))
        compare.at_most("n'", float(counts[-1]), float(bound), at=at)
        for gap, size in ((0.3, 1.0), (0.1, 5.0), (0.003 / weight, 1.0)) if n == 100 else ():
            final = [1 - gap] * (n_actions - 2) + [1 - size, 1.0]
            bound = escape_bound(odds, n_actions if gap_term else 2, weight, gap, size)
            steps = count(update, history, n, weight, final)
            here = {**at, "gap": gap, "range": size}
            compare.at_most("n'", float(steps), float(bound), at=here)
    steps, lag = exact_count("sce", TWO, 200)
    compare.equal("count in balls", count(update, TWO, 200), steps, limit="5", at={"n": 200})
    ours, theirs = deficit(update, TWO, 200), float(lag)
    compare.equal("deficit", ours, theirs, tolerance=1e-9, limit="that in balls", at={"n": 200})
    compare.report(most=max(counts))


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
        lost = float(np.log(softmax(path.theta[-1]) / softmax(path.theta[0])).min())
        compare.at_least("log of probability over the first one", lost, -150.0, limit="-W", at=at)
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
        return float(transfer_bound(n, n_actions, weight, rise) if logarithm else 1 + 1 / rise)

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
    The rate needs values that tend to the optimal ones: if the second state of `tied_limit_mdp` has
    no weight, the values of the first state tie, and its policy stays uniform.
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
    path = run(tied_limit_mdp(), update, 5_000, 1.0, [1.0, successor_weight, 0.0])
    scaled = float(path.policies[-1, 0, 1] * path.weights[:, 0].sum())
    at = {"MDP": "tied_limit_mdp()", "weight of the second state": successor_weight}
    compare.equal("(1 - π) W", scaled, 0.5, tolerance=0.01, limit="(|A| - 1)/|A|", at=at)
    compare.report(updates=updates, shortfall=shortfall)


@check(
    "more:sce-escape",
    wrong={
        "without the term of the gap": {"gap_term": False},
        "the balanced variant in its place": {"update": Variant(kind="balanced")},
    },
)
def sce_leaves_corners(
    compare: Recorder, update: str | Update = "sce", gap_term: bool = True
) -> None:
    """SCE reaches one half within the bound, from corners with one other action and with more."""
    rng = np.random.default_rng(4)
    cases = [
        (well_policy(depth), np.array([1.0, second, 0.0]), weight)
        for depth, second, weight in product((1e-2, 1e-4, 1e-8), (0.5, 0.9, 0.99), (0.3, 1.0, 4.0))
    ]
    for _ in range(80):
        n_actions = int(rng.integers(2, 8))
        pi = rng.dirichlet(np.full(n_actions, 0.1)) + 1e-6
        cases.append((pi / pi.sum(), rng.random(n_actions), float(10 ** rng.uniform(-1, 1))))
    for pi, q, weight in cases:
        best = int(q.argmax())
        odds = (1 - pi[best]) / pi[best]
        if odds < 1:
            continue
        gap, spread = float(q[best] - np.sort(q)[-2]), float(np.ptp(q))
        bound = escape_bound(odds, len(q) if gap_term else 2, weight, gap, spread)
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
    near = [1.0, 0.99, 0.0]
    counts = {u: int(escape_steps(u, well_policy(1e-8), near)) for u in ("sce", "ce", "mce")}
    compare.report(**{f"steps of {u.upper()}": n for u, n in counts.items()})


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
