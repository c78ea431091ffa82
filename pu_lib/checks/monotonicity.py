"""The checks of the chapter on monotonicity."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from flint import arb, arb_mat, ctx
from numpy.typing import NDArray

from pu_lib.exact import Number, Undecided, ball, sign
from pu_lib.mdp import FiniteMDP
from pu_lib.theory.monotonicity import (
    ROUNDING,
    Floats,
    ball_direction,
    ball_softmax,
    certified_step,
    escort_safe_weight,
    search_drop,
    small_mdp,
    step_advantage,
    strict_states,
    worst_drop_any,
    worst_drop_three,
)
from pu_lib.updates import UPDATES, Update, softmax
from pu_lib.verdict import Status, Verdict, check

PAPER_THETA = (10, 0, 0)


PAPER_Q = ("0.99", 1, 0)


@check("prop:non-monotonicity")
def check_proposition_1(
    name: str = "ce",
    theta: Sequence[Number] = PAPER_THETA,
    q: Sequence[Number] = PAPER_Q,
    weight: Number = 1,
) -> Verdict:
    """Certify that one update lowers the value at the paper's example.

    Parameters
    ----------
    name : {"ce", "mce"}
        The update.
    theta, q, weight
        The example: parameters, values and weight of the one state.

    Returns
    -------
    Verdict
        The margin is the decrease.
    """
    with ctx.workprec(256):
        step = certified_step(name, theta, q, weight)
        drop = step.v - step.new_v
        lowered, margin = sign(drop) > 0, float(drop.mid())
        v, new_v = step.v.str(22, radius=False), step.new_v.str(22, radius=False)
    return Verdict(
        Status.HOLDS if lowered else Status.FALSE,
        margin,
        f"v = {v} before and {new_v} after the update: a "
        f"{'decrease' if lowered else 'change'} of {margin:.12e}, certified by ball arithmetic.",
        tuple(
            {"action": f"a_{a + 1}", "policy": float(p), "new policy": float(n), "q": str(value)}
            for a, (p, n, value) in enumerate(zip(step.pi, step.new_pi, q, strict=True))
        ),
    )


@check("prop:non-monotonicity/example")
def check_example_digits(
    before: str = "0.98996", after: str = "0.98988", name: str = "ce"
) -> Verdict:
    """Certify the two values that the proof of Proposition 1 prints with five digits.

    Parameters
    ----------
    before, after : str
        The printed values.
    name : {"ce", "mce"}
        The update.

    Returns
    -------
    Verdict
        The margin is half a unit of the last digit minus the larger error.
    """
    with ctx.workprec(256):
        step = certified_step(name, PAPER_THETA, PAPER_Q, 1)
        errors = [
            abs(value - ball(printed)) for value, printed in ((step.v, before), (step.new_v, after))
        ]
        half_unit = ball("5e-6")
        right = all(bool(error < half_unit) for error in errors)
        margin = min(float((half_unit - error).mid()) for error in errors)
    return Verdict(
        Status.HOLDS if right else Status.FALSE,
        margin,
        f"The values rounded to five digits are {float(step.v):.5f} and {float(step.new_v):.5f}; "
        f"printed: {before} and {after}.",
    )


@check("sec:ce/imbalance")
def check_imbalance(name: str = "ce") -> Verdict:
    """Certify that the worst action gains probability at the paper's example.

    Parameters
    ----------
    name : {"ce", "mce"}
        The update.

    Returns
    -------
    Verdict
        The margin is what action 3, whose value is 0, gains.
    """
    with ctx.workprec(256):
        step = certified_step(name, PAPER_THETA, PAPER_Q, 1)
        gain = step.new_pi[2] - step.pi[2]
        gains, margin = sign(gain) > 0, float(gain.mid())
    return Verdict(
        Status.HOLDS if gains else Status.FALSE,
        margin,
        f"The worst of the three actions goes from probability {float(step.pi[2]):.6e} to "
        f"{float(step.new_pi[2]):.6e}, certified.",
    )


def check_two_actions(n_actions: int = 2, n: int = 300, seed: int = 11) -> Verdict:
    """Certify that CE and MCE are one update when there are two actions, so that none decreases.

    Parameters
    ----------
    n_actions : int
        Number of actions; from three on the two updates differ.
    n, seed : int
        Number of random rational cases and their seed.

    Returns
    -------
    Verdict
        The margin is 1e-30 minus the largest distance between the two steps.
    """
    rng, worst = np.random.default_rng(seed), arb(0)
    with ctx.workprec(256):
        for _ in range(n):
            theta = [Fraction(int(x), 100) for x in rng.integers(-2000, 2000, n_actions)]
            pi = ball_softmax([ball(x) for x in theta])
            greedy = int(rng.integers(n_actions))
            pairs = zip(
                ball_direction("ce", pi, greedy), ball_direction("mce", pi, greedy), strict=True
            )
            worst = max([worst, *((x - y).abs_upper() for x, y in pairs)], key=float)
    distance = float(worst)
    return Verdict(
        Status.HOLDS if distance <= 1e-30 else Status.FALSE,
        1e-30 - distance,
        f"With {n_actions} actions the steps of CE and MCE differ by at most {distance:.2g} over "
        f"{n} random cases.",
    )


def check_worst_decrease(
    update: Update = UPDATES["ce"], weights: Sequence[float] = (0.1, 1.0, 2.0, 5.0), seed: int = 12
) -> Verdict:
    r"""Check :math:`D_3(w)` and :math:`D_\infty(w)` against a search over policies and values.

    Parameters
    ----------
    update : Update
        The update attacked.
    weights : sequence of float
        Weights at which to search.
    seed : int
        Seed of the search.

    Returns
    -------
    Verdict
        The margin is 1e-4 minus the largest distance, over the weights, between :math:`D_3` and
        what the search found with three actions; with five actions the search must stay between
        :math:`D_3` and :math:`D_\infty`.
    """
    rng, tolerance = np.random.default_rng(seed), 1e-4
    rows: list[dict[str, float]] = []
    for w in weights:
        found = [search_drop(update, n_actions, w, rng).value for n_actions in (3, 5)]
        rows.append(
            {
                "weight": w,
                "found, 3 actions": found[0],
                "D_3": worst_drop_three(w),
                "found, 5 actions": found[1],
                "D_infinity": worst_drop_any(w),
            }
        )
    distance = max(abs(row["found, 3 actions"] - row["D_3"]) for row in rows)
    inside = all(
        row["found, 3 actions"] <= row["D_3"] + ROUNDING
        and row["D_3"] - tolerance <= row["found, 5 actions"] <= row["D_infinity"] + ROUNDING
        for row in rows
    )
    holds = inside and distance <= tolerance
    return Verdict(
        Status.HOLDS if holds else Status.FALSE,
        tolerance - distance,
        f"The search reaches D_3 to {distance:.2g} and "
        f"{'never' if inside else 'does not stay between D_3 and D_infinity: it'} "
        f"{'exceeds the bounds' if inside else 'leaves them'}.",
        tuple(rows),
    )


@check("prop:monotonicity")
def check_proposition_2(update: Update = UPDATES["mce"], n: int = 3000, seed: int = 15) -> Verdict:
    """Check on random MDPs that one update lowers the value of no state.

    Parameters
    ----------
    update : Update
        The update under test.
    n, seed : int
        Number of random MDPs, each with a random policy and weights from 1e-3 to 1e4, and the seed.

    Returns
    -------
    Verdict
        The margin is the smallest change of any state's value, relative to the largest value, plus
        the tolerance of 1e-12 / (1 - discount) that solving for the values allows.
    """
    rng, margin, example = np.random.default_rng(seed), np.inf, None
    lowered = 0
    for _ in range(n):
        mdp = small_mdp(rng)
        shape = (mdp.n_states, mdp.n_actions)
        theta = rng.choice([1.0, 3.0, 8.0]) * rng.normal(size=shape)
        theta = update.parameters(softmax(theta))
        weight = 10.0 ** rng.uniform(-3, 4, size=mdp.n_states)
        before = mdp.evaluate(update.policy(theta))
        after = mdp.evaluate(update.policy(update.step(theta, before.q, weight)))
        scale = 1 + np.abs(before.v).max()
        room = float(((after.v - before.v) / scale).min()) + ROUNDING / (1 - mdp.discount)
        lowered += room < 0
        if room < margin:
            margin, example = room, {"states": mdp.n_states, "actions": mdp.n_actions}
    holds = margin >= 0
    return Verdict(
        Status.HOLDS if holds else Status.FALSE,
        margin,
        f"{lowered} of {n} updates of random MDPs lowered the value of some state; weights 1e-3 to "
        f"1e4, discounts up to 0.99. The smallest change, relative to the values and with the "
        f"tolerance for rounding added, is {margin:.2g}.",
        counterexample=None if holds else example,
    )


@check("prop:monotonicity/attack")
def check_proposition_2_attack(
    update: Update = UPDATES["mce"],
    weights: Sequence[float] = (1e-3, 0.1, 1.0, 10.0, 1e3, 1e4),
    seed: int = 16,
) -> Verdict:
    """Search policies and values, at each weight, for a decrease that one update causes.

    Parameters
    ----------
    update : Update
        The update attacked.
    weights : sequence of float
        Weights at which to search.
    seed : int
        Seed of the search.

    Returns
    -------
    Verdict
        The margin is 1e-12 minus the largest decrease found (values of range one).
    """
    rng = np.random.default_rng(seed)
    found = [search_drop(update, k, w, rng, rounds=200) for w in weights for k in (3, 5)]
    worst = max(found, key=lambda drop: drop.value)
    holds = worst.value <= ROUNDING
    return Verdict(
        Status.HOLDS if holds else Status.FALSE,
        ROUNDING - worst.value,
        f"The largest decrease found by {len(found)} searches, with weights {min(weights):g} to "
        f"{max(weights):g} and values of range one, is {max(worst.value, 0.0):.3g}.",
        counterexample=None
        if holds
        else {"policy": worst.policy.round(6).tolist(), "q": worst.q.round(6).tolist()},
    )


@check("prop:monotonicity/certified")
def check_proposition_2_certified(name: str = "mce", n: int = 400, seed: int = 17) -> Verdict:
    """Certify in ball arithmetic that one update raises the value of random states.

    Parameters
    ----------
    name : {"ce", "mce"}
        The update.
    n, seed : int
        Number of random rational cases (3 to 6 actions, weights 1e-3 to 1e4), and their seed.

    Returns
    -------
    Verdict
        The margin is the smallest rise, certified.
    """
    rng, smallest, lowered = np.random.default_rng(seed), np.inf, 0
    with ctx.workprec(640):
        for _ in range(n):
            k = int(rng.integers(3, 7))
            theta = [Fraction(int(x), 100) for x in rng.integers(-1000, 1000, k)]
            q = [Fraction(int(x), 1000) for x in rng.choice(1000, k, replace=False)]
            weight = Fraction(int(10 ** rng.uniform(0, 7)), 1000)
            step = certified_step(name, theta, q, weight)
            rise = step.new_v - step.v
            lowered += sign(rise) < 0
            smallest = min(smallest, float(rise.mid()))
    return Verdict(
        Status.HOLDS if lowered == 0 else Status.FALSE,
        smallest,
        f"{lowered} of {n} certified updates lowered the value; the smallest change is "
        f"{smallest:.3g} (values between 0 and 1, weights 1e-3 to 1e4).",
    )


@check("prop:monotonicity/strict")
def check_strict_increase(only_moving: bool = False, n: int = 150, seed: int = 18) -> Verdict:
    """Certify which values rise strictly, by solving small MDPs in ball arithmetic.

    States with identical actions (equal values) and states of weight zero are frequent, so that
    many values do not move.

    Parameters
    ----------
    only_moving : bool
        Passed to `strict_states`: with true the predicted set leaves out what is reached.
    n, seed : int
        Number of random MDPs and their seed.

    Returns
    -------
    Verdict
        The margin counts wrong predictions, negatively.
    """
    rng, wrong, rising, still = np.random.default_rng(seed), 0, 0, 0
    with ctx.workprec(256):
        for _ in range(n):
            mdp, equal = _mdp_with_equal_actions(rng)
            idle = rng.random(mdp.n_states) < 0.4
            weight = np.where(idle, 0.0, 2.0 ** rng.integers(-3, 4, mdp.n_states))
            theta = rng.integers(-8, 9, (mdp.n_states, mdp.n_actions)) / 4
            change = _ball_change(mdp, theta, weight, equal)
            predicted = strict_states(mdp, np.asarray(~(idle | equal)), only_moving)
            rises = [bool(x > 0) for x in change]
            # equality cannot be certified; a change enclosed in +-1e-40 is taken to be none
            stays = [float(x.abs_upper()) < 1e-40 for x in change]
            if not all(a != b for a, b in zip(rises, stays, strict=True)):
                raise Undecided("256 bits do not decide whether a value rose")
            rising, still = rising + sum(rises), still + sum(stays)
            wrong += int(np.sum(np.array(rises) != predicted))
    return Verdict(
        Status.CORRECTED if wrong == 0 else Status.FALSE,
        float(-wrong),
        f"In {n} random MDPs {rising} values rose, certified, and {still} did not move; the "
        f"condition predicts {rising + still - wrong} of these {rising + still}.",
    )


def _mdp_with_equal_actions(rng: np.random.Generator) -> tuple[FiniteMDP, NDArray[np.bool_]]:
    """Draw an MDP with dyadic numbers; return it and where all actions are the same."""
    n_states, n_actions = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    successors = rng.integers(0, n_states, (n_states, n_actions, 4))
    # distinct rewards within a state, so that with discount 0 no two actions tie by accident
    rewards = np.argsort(rng.random((n_states, 129)), axis=1)[:, :n_actions] / 64.0 - 1
    equal = rng.random(n_states) < 0.5
    successors[equal], rewards[equal] = successors[equal, :1], rewards[equal, :1]
    transitions = np.eye(n_states)[successors].mean(axis=2)
    discount = float(rng.choice([0.0, 0.5, 0.875]))
    initial = np.eye(n_states)[0]
    return FiniteMDP(transitions, rewards, initial, discount), equal


def _ball_change(
    mdp: FiniteMDP, theta: Floats, weight: Floats, equal: NDArray[np.bool_]
) -> list[arb]:
    """Return v' - v after one MCE update, in balls; every number given is dyadic, so exact."""
    pi = [ball_softmax([arb(x) for x in row]) for row in theta.tolist()]
    v = _ball_values(mdp, pi)
    new = []
    for s, row in enumerate(theta.tolist()):
        q = [_ball_q(mdp, v, s, a) for a in range(mdp.n_actions)]
        greedy = 0 if equal[s] else _certified_argmax(q)
        direction = ball_direction("mce", pi[s], greedy)
        step = [arb(x) + arb(float(weight[s])) * d for x, d in zip(row, direction, strict=True)]
        new.append(ball_softmax(step) if weight[s] > 0 else pi[s])
    return [after - before for before, after in zip(v, _ball_values(mdp, new), strict=True)]


def _ball_values(mdp: FiniteMDP, pi: list[list[arb]]) -> list[arb]:
    """Solve (I - gamma P) v = r in balls."""
    n, gamma = mdp.n_states, arb(mdp.discount)
    matrix = [[arb(int(s == x)) for x in range(n)] for s in range(n)]
    right = [arb(0)] * n
    for s, a in product(range(n), range(mdp.n_actions)):
        right[s] = right[s] + pi[s][a] * arb(float(mdp.rewards[s, a]))
        for x in np.flatnonzero(mdp.transitions[s, a]):
            chance = arb(float(mdp.transitions[s, a, x]))
            matrix[s][x] = matrix[s][x] - gamma * pi[s][a] * chance
    solution = arb_mat(matrix).solve(arb_mat([[x] for x in right]))
    return [solution[s, 0] for s in range(n)]


def _ball_q(mdp: FiniteMDP, v: list[arb], s: int, a: int) -> arb:
    chances = mdp.transitions[s, a]
    following = sum((arb(float(chances[x])) * v[x] for x in np.flatnonzero(chances)), arb(0))
    return arb(float(mdp.rewards[s, a])) + arb(mdp.discount) * following


def _certified_argmax(q: list[arb]) -> int:
    """Return the action whose ball lies above all others, or raise."""
    for a, value in enumerate(q):
        if all(value > other for b, other in enumerate(q) if b != a):
            return a
    raise Undecided("the balls of two values overlap: the greedy action is not decided")


def check_sign_condition(
    names: Sequence[str] = ("pg-sm", "di", "mce"),
    weights: Sequence[float] = (0.1, 1.0, 10.0, 1e3),
    stretch: float = 1.0,
    seed: int = 19,
) -> Verdict:
    """Check that the updates called `names` never lower the value, nor `pg-es` up to its limit.

    Parameters
    ----------
    names : sequence of str
        Updates attacked by a search at every weight.
    weights : sequence of float
        The weights.
    stretch : float
        `pg-es` is tried with this multiple of the weight up to which it is safe.
    seed : int
        Seed of the searches.

    Returns
    -------
    Verdict
        The margin is 1e-12 minus the largest decrease found (values of range one).
    """
    rng = np.random.default_rng(seed)
    drops = {
        name: max(
            search_drop(UPDATES[name], k, w, rng, 200, 150).value for w in weights for k in (3, 5)
        )
        for name in names
    }
    pi, q = rng.dirichlet(np.full(4, 0.4), size=20_000), rng.random((20_000, 4))
    update, pi = UPDATES["pg-es"], np.maximum(pi, 1e-12)
    theta = update.parameters(pi / pi.sum(axis=-1, keepdims=True))
    weight = stretch * escort_safe_weight(theta, q) * rng.uniform(0.5, 1, size=len(q))
    new = update.policy(update.step(theta, q, weight))
    drops[f"pg-es up to {stretch:g} x its limit"] = float(
        -step_advantage(update.policy(theta), new, q).min()
    )
    worst = max(drops.values())
    return Verdict(
        Status.HOLDS if worst <= ROUNDING else Status.FALSE,
        ROUNDING - worst,
        f"The largest decrease found is {max(worst, 0.0):.3g} (values of range one, weights "
        f"{min(weights):g} to {max(weights):g}).",
        tuple(
            {"update": name, "largest decrease found": abs(max(x, 0.0))}
            for name, x in drops.items()
        ),
    )
