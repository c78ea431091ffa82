"""The checks of the chapter on the gravity well; those on PG-ES are in `gravity_well_escort`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pu_lib.chapters.gravity_well import checks_escort as gravity_well_escort
from pu_lib.chapters.gravity_well.escape import (
    DEPTHS,
    corner_bound,
    escape_bound,
    escape_exponent,
    escape_steps,
    well,
)
from pu_lib.chapters.gravity_well.quantities import (
    CE_CASE,
    ESCORT_CASE,
    SOFTMAX_CASE,
    UNIFORM_CASE,
    Case,
    Integers,
    certified_increase,
    certified_margin,
    clip_and_renormalise,
    convexity_slope,
    margin,
    parameters,
    project_integers,
    signed_change,
)
from pu_lib.exact import Number, ball, certified, exact, sign
from pu_lib.trajectories import follow
from pu_lib.updates import PAPER, Update, as_update
from pu_lib.verdict import Status, Verdict, Worst, check, judged

__all__ = ["gravity_well_escort"]
"""Importing this module registers the checks of the other one as well."""

Projection = Callable[[Integers, int], tuple[Integers, Integers]]
Moves = Callable[[np.random.Generator, int, int], Integers]

PROPOSITION_1: tuple[tuple[Number, ...], tuple[Number, ...]] = ((10, 0, 0), ("0.99", 1, 0))
"""The paper's example that `ce` may decrease the value: parameters and values."""

WEIGHTS: tuple[Number, ...] = ("0.001", "0.01", "0.1", 1, 10, 100)


# Examples


@check(
    "thm:gravitywell/pg-sm",
    moved={
        "MCE in PG-SM's place": {"update": "mce"},
        "the uniform policy in the example's": {"case": UNIFORM_CASE},
    },
    update="pg-sm",
    case=SOFTMAX_CASE,
)
@check(
    "thm:gravitywell/ce",
    moved={
        "MCE in CE's place": {"update": "mce"},
        "weight 10 beside the others, at which the example ends": {"weights": WEIGHTS[:5]},
    },
    update="ce",
    case=CE_CASE,
    weights=WEIGHTS[:4],
)
@check(
    "thm:gravitywell/pg-es",
    moved={
        "DI in PG-ES's place": {"update": "di"},
        "the uniform policy in the example's": {"case": UNIFORM_CASE},
    },
    update="pg-es",
    case=ESCORT_CASE,
    weights=WEIGHTS[:3],
)
def check_violation(
    update: str | Update, case: Case, weights: Sequence[Number] = WEIGHTS
) -> Verdict:
    """Judge "may fail": at one policy the condition must fail, with certainty, at every weight.

    Parameters
    ----------
    update : str or Update
        The update.
    case : Case
        The policy and the values.
    weights : sequence of numbers
        The weights of the step.
    """
    ours = Worst("the gain of another action minus that of the greedy one")
    rows = []
    for weight in weights:
        proved, lead = certified_margin(update, case, weight)
        gain = certified(partial(certified_increase, update, case, weight))
        ours.add(-float(lead) if proved else -np.finfo(float).tiny, weight=str(weight))
        rows.append(
            {
                "weight": str(weight),
                "increase of the greedy action": float(gain[case.greedy]),
                "largest increase": max(map(float, gain)),
                "margin": float(lead),
            }
        )
    return judged(ours, evidence=rows)


@check(
    "thm:gravitywell/pg-sm-decrease",
    moved={
        "MCE in PG-SM's place": {"update": "mce"},
        "PG-ES in PG-SM's place": {"update": "pg-es"},
        "the uniform policy in the example's": {"case": UNIFORM_CASE},
    },
)
def check_pg_sm_decrease(update: str | Update = "pg-sm", case: Case = SOFTMAX_CASE) -> Verdict:
    r"""Theorem 3: `pg-sm` may decrease the greedy action; proved for all weights, shown at six.

    Parameters
    ----------
    update : str or Update
        The update.
    case : Case
        The policy and the values; the slope of :math:`1/\pi'` at weight zero, from which the
        decrease at every weight follows for `pg-sm`, must be positive there.
    """
    ours = Worst("the loss of the greedy action")
    rows = []
    for weight in WEIGHTS:
        change = certified(partial(signed_change, update, case, weight))
        ours.add(-change or -np.finfo(float).tiny, weight=str(weight))
        rows.append({"weight": str(weight), "change of the greedy action": change})
    slope = convexity_slope(case)
    if slope <= 0:
        ours.add(float(slope), slope=str(slope))
    return judged(ours, evidence=rows)


@check(
    "sec:gravity/pg-sm-sufficient",
    moved={
        "a weight of 2 in place of 1/10, where the condition can be met": {"weight": 2.0},
        "a threshold of 1.05 in place of 1": {"threshold": 1.05},
    },
)
def check_pg_sm_sufficient(
    threshold: float = 1.0, weight: float = 0.1, n_samples: int = 200_000
) -> Verdict:
    r"""Judge the printed condition for a decrease: it needs :math:`w\cdot\mathrm{range}(q) > 1`.

    The proof asks for :math:`\pi(b) \ge e^{w(\mathrm{adv}(a_q)\pi(a_q) - \mathrm{adv}(b)\pi(b))}`,
    said to be easy with :math:`\pi(b)` near one. As :math:`\mathrm{adv}(b) \le R(1-\pi(b))` with R
    the range of q, it implies :math:`1 - \pi(b) \le -\log\pi(b) < wR\,\pi(b)(1-\pi(b))`, hence
    :math:`wR > 1`: it says nothing for small weights, where the decrease happens all the same.

    Parameters
    ----------
    threshold : float
        The number that the weight times the range of q has to exceed.
    weight : float
        A weight for which the printed condition should be easy to meet; the range of q is 1.
    n_samples : int
        Random policies and values; a part of them close to the corner where :math:`\pi(b) = 1`.
    """
    rng = np.random.default_rng(3)
    pi = rng.dirichlet([0.02, 1.0, 0.1], n_samples) * (1 - 1e-9) + 1e-9 / 3
    q = np.column_stack([np.ones(n_samples), rng.uniform(0.0, 1.0, n_samples), np.zeros(n_samples)])
    adv = q - np.sum(pi * q, axis=1, keepdims=True)
    drive = adv[:, 1] * pi[:, 1] - adv[:, 0] * pi[:, 0]
    possible = drive > 0
    needed = -np.log(pi[possible, 1]) / drive[possible]
    easiest = int(np.argmin(needed))
    where = {"pi": pi[possible][easiest].tolist(), "q": q[possible][easiest].tolist()}
    ours = Worst("the weight that the printed condition needs minus the threshold")
    ours.add(float(needed[easiest]) - threshold, **where)
    printed = Worst(f"the weight {weight:g} less the one that the condition needs at its easiest")
    printed.add(weight - float(needed[easiest]), **where)
    return judged(ours, printed)


@check(
    "sec:gravity/pg-sm-easy",
    moved={
        "MCE in PG-SM's place": {"update": "mce"},
        "a greedy action with probability 1/2": {"epsilon": 0.5},
        "a greedy action with probability 1/10": {"epsilon": 0.1},
    },
)
@check(
    "sec:gravity/ce-easy",
    update="ce",
    moved={
        "MCE in CE's place": {"update": "mce"},
        "a greedy action with probability 1/10": {"epsilon": 0.1},
    },
    blind={
        "PG-SM and PG-ES in CE's place: they violate it there as well": {"update": "pg-sm"},
    },
)
def check_pg_sm_easy(
    update: str | Update = "pg-sm",
    epsilon: float = 1e-4,
    share: float = 0.98,
    n_samples: int = 20_000,
) -> Verdict:
    r"""Count how often the condition fails where the greedy action is rare.

    As :math:`\pi(a_q)\to0` it fails under `pg-sm` at every other policy at which the others'
    :math:`h_b` are not all equal: some b has :math:`h_b>\sum_j\pi(j)h_j`, gains, and :math:`a_q`
    gains nothing. Under `ce` the same is true with :math:`h_b=-\pi(b)`, wherever the others are not
    equally probable.

    Parameters
    ----------
    update : str or Update
        The update.
    epsilon : float
        :math:`\pi(a_q)`.
    share : float
        What part of the policies and values counts as "rather easy".
    n_samples : int
        How many to draw, four actions, weight 1/10.
    """
    rng = np.random.default_rng(13)
    others = rng.dirichlet(np.ones(3), n_samples) * (1.0 - epsilon)
    pi = np.column_stack([np.full(n_samples, epsilon), others])
    q = np.column_stack([np.ones(n_samples), rng.uniform(0.0, 1.0, (n_samples, 3))])
    failing = float(np.mean(margin(update, pi, q, 0.1) < 0.0))
    ours = Worst(f"the share of failing policies less {share:g}")
    ours.add(failing - share, epsilon=epsilon, share=failing)
    return judged(ours)


@check(
    "thm:gravitywell/ce-example",
    moved={
        "another example": {"theta": ("-6.9", "-1.2", "-0.36"), "q": (1, 0, 0)},
    },
)
def check_ce_example(
    theta: tuple[Number, ...] = PROPOSITION_1[0],
    q: tuple[Number, ...] = PROPOSITION_1[1],
    update: str | Update = "ce",
) -> Verdict:
    """Judge the proof's example for `ce`, that of Proposition 1: it violates nothing.

    Parameters
    ----------
    theta : tuple of numbers
        Softmax parameters.
    q : tuple of numbers
        Values.
    update : str or Update
        A softmax update with a kernel.
    """
    chosen = as_update(update)
    if chosen.kernel is None or chosen.parametrization != "softmax":
        raise ValueError(f"update: expected a softmax update with a kernel, got {chosen.name!r}.")
    values = [exact(x) for x in q]
    greedy, kernel, n = values.index(max(values)), chosen.kernel, len(q)

    def compute() -> list[float]:
        levels = [ball(x) for x in theta]
        powers = [x.exp() for x in levels]
        pi = [x / sum(powers) for x in powers]
        kernel(levels, pi, [ball(x) for x in q], greedy, ball(1), n)
        after = [x.exp() for x in levels]
        gain = [x / sum(after) - y for x, y in zip(after, pi, strict=True)]
        for a, x in enumerate(gain):
            if a != greedy:
                sign(gain[greedy] - x)
        return [float(x) for x in gain]

    gain = certified(compute)
    best = max(x for a, x in enumerate(gain) if a != greedy)
    ours = Worst("the gain of another action minus that of the greedy one")
    ours.add(best - gain[greedy], theta=theta, q=q)
    rows = [{"action": a, "increase": x, "greedy": a == greedy} for a, x in enumerate(gain)]
    return judged(ours, evidence=rows)


# Guarantees


def _compositions(rng: np.random.Generator, n: int, n_actions: int, unit: int) -> Integers:
    """Draw integer vectors that sum to `unit`; many have zeros and repeated entries."""
    parts = rng.multinomial(unit, rng.dirichlet(np.full(n_actions, 0.4), n))
    return np.asarray(parts, dtype=np.int64)


def _any_moves(rng: np.random.Generator, n: int, n_actions: int) -> Integers:
    span = rng.choice([2, 10, 60, 600], n)[:, np.newaxis]
    return rng.integers(-span, span + 1, (n, n_actions), dtype=np.int64)


def _weighted_values(rng: np.random.Generator, n: int, n_actions: int) -> Integers:
    weight = rng.integers(1, 200, (n, 1), dtype=np.int64)
    return weight * rng.integers(-5, 6, (n, n_actions), dtype=np.int64)


@check(
    "lem:direct_update",
    moved={"clipping and scaling instead of projecting": {"project": clip_and_renormalise}},
    draw=_any_moves,
)
@check(
    "thm:gravitywell/di",
    moved={"clipping and scaling instead of projecting": {"project": clip_and_renormalise}},
    draw=_weighted_values,
)
def check_projection(
    draw: Moves, project: Projection = project_integers, n_samples: int = 40_000
) -> Verdict:
    """Project random rational points: the coordinate with the largest move must gain most.

    Every coordinate that is tied at the largest move must; nothing is rounded.

    Parameters
    ----------
    draw : callable
        Draws the moves: any for the lemma, the weight times the values for `di`.
    project : callable
        The projection, from points and their denominator.
    n_samples : int
        How many points for each of 2, 3, 4, 6 and 9 coordinates.
    """
    rng = np.random.default_rng(10)
    ours = Worst("the lead of the coordinate with the largest move")
    for n_actions in (2, 3, 4, 6, 9):
        unit = 60
        theta = _compositions(rng, n_samples, n_actions, unit)
        delta = draw(rng, n_samples, n_actions)
        moved, scale = project(theta + delta, unit)
        gain = moved - scale * theta
        top = delta == delta.max(axis=1, keepdims=True)
        lead = np.where(top, gain, np.iinfo(np.int64).max).min(axis=1) - gain.max(axis=1)
        row = int(np.argmin(lead / scale[:, 0]))
        ours.add(
            float(Fraction(int(lead[row]), int(scale[row, 0]) * unit)),
            theta=", ".join(str(Fraction(int(x), unit)) for x in theta[row]),
            moves=", ".join(str(Fraction(int(x), unit)) for x in delta[row]),
            points=n_samples,
            ties=int(np.count_nonzero(top.sum(axis=1) > 1)),
        )
    return judged(ours)


def _random_cases(rng: np.random.Generator, n: int, sizes: Sequence[int]) -> list[Case]:
    """Draw rational policies, many close to a corner, and values with one digit."""
    cases = []
    for i in range(n):
        n_actions = sizes[i % len(sizes)]
        draws = rng.dirichlet(np.full(n_actions, rng.choice([0.2, 1.0, 5.0])))
        parts = [1 + int(10_000 * x) for x in draws]
        policy = tuple(Fraction(x, sum(parts)) for x in parts)
        best, *rest = (int(x) for x in rng.integers(0, 10, n_actions))
        q = [Fraction(best + 10, 10), *(Fraction(x, 10) for x in rest)]
        rng.shuffle(q)
        cases.append(Case(policy, tuple(q)))
    return cases


def _words(case: Case, weight: Number) -> dict[str, Any]:
    pi, q = (", ".join(map(str, row)) for row in (case.pi, case.q))
    return {"pi": pi, "q": q, "weight": str(weight)}


@check(
    "thm:gravitywell/mce",
    moved={"CE in MCE's place": {"update": "ce"}, "PG-SM in MCE's place": {"update": "pg-sm"}},
    blind={"DI in MCE's place: it has the same guarantee": {"update": "di"}},
    update="mce",
)
@check(
    "sec:gravity/ce-two-actions",
    moved={"three or four actions in place of two": {"sizes": (3, 4)}},
    update="ce",
    sizes=(2,),
)
def check_condition(
    update: str | Update,
    sizes: Sequence[int] = (2, 3, 4, 6),
    n_samples: int = 2_000,
    seed: int = 5,
) -> Verdict:
    """Judge "always satisfies the condition" on random cases, each comparison certified.

    Parameters
    ----------
    update : str or Update
        The update to judge.
    sizes : sequence of int
        Numbers of actions.
    n_samples, seed : int
        How many cases, and from which random stream.
    """
    rng = np.random.default_rng(seed)
    ours = Worst("the lead of the greedy action")
    for case in _random_cases(rng, n_samples, sizes):
        weight = Fraction(int(10 ** rng.uniform(0, 5)), 1000)
        _, lead = certified_margin(update, case, weight)
        ours.add(float(lead), **_words(case, weight))
    return judged(ours)


@check("sec:gravity/ce-argmax", moved={"PG-SM in CE's place": {"update": "pg-sm"}})
def check_ce_most_probable(update: str | Update = "ce", n_samples: int = 2_000) -> Verdict:
    r"""Section 3.3 on `ce`: the action that overtakes is never the most probable one.

    Stronger: the most probable action, if it is not greedy, never gains at all, and the greedy
    action never loses.

    Parameters
    ----------
    update : str or Update
        The update.
    n_samples : int
        How many random cases.
    """
    rng = np.random.default_rng(7)
    ours = Worst("the top action's loss or the greedy one's gain, whichever is less,")
    for case in _random_cases(rng, n_samples, (3, 4, 6)):
        weight = Fraction(int(10 ** rng.uniform(0, 5)), 1000)
        ours.add(certified(partial(_least_loss, update, case, weight)), **_words(case, weight))
    return judged(ours)


def _least_loss(update: str | Update, case: Case, weight: Number) -> float:
    """Return the smaller of the most probable action's loss and the greedy action's gain."""
    policy = [exact(x) for x in case.pi]
    top = policy.index(max(policy))
    gain = certified_increase(update, case, weight)
    parts = [gain[case.greedy]] + ([-gain[top]] if top != case.greedy else [])
    for part in parts:
        sign(part)
    return min(map(float, parts))


@check(
    "sec:gravity/condition",
    moved={"PG-SM beside DI and MCE": {"updates": ("di", "mce", "pg-sm")}},
    blind={
        "CE beside them: it never lets a corner that is not the best one attract it": {
            "updates": ("di", "mce", "ce")
        }
    },
)
def check_condition_keeps_away(
    updates: Sequence[str | Update] = ("di", "mce"), n_runs: int = 200, n_steps: int = 200
) -> Verdict:
    r"""Follow updates that satisfy the condition: none is drawn to a suboptimal corner.

    :math:`\pi_T(b)` never exceeds :math:`(1+\pi_0(b)-\pi_0(a_q))/2`.

    Parameters
    ----------
    updates : sequence of str or Update
        Updates that satisfy the condition.
    n_runs, n_steps : int
        How many random starts and values with three actions, and how many steps from each.
    """
    rng = np.random.default_rng(14)
    start = 0.999 * rng.dirichlet([0.5] * 3, n_runs) + 0.001 / 3
    start[0], q = (0.01, 0.6, 0.39), rng.uniform(0.0, 1.0, (n_runs, 3))
    q[0] = 1.0, 0.9, 0.0
    bound = corner_bound(start, q)
    ours = Worst("what the condition allows minus what the others reach")
    for update in updates:
        chosen = as_update(update)
        path = chosen.policy(follow(chosen, q, 0.3, n_steps, parameters(chosen, start)))
        room = (bound - path[1:].max(axis=0)).min(axis=1)
        worst = int(np.argmin(room))
        ours.add(
            float(room[worst]),
            update=chosen.name,
            start=np.round(start[worst], 4).tolist(),
            q=np.round(q[worst], 4).tolist(),
        )
    return judged(ours)


# How long a well holds

WELL_VALUES = ((1.0, 0.9, 0.0), (1.0, 0.5, 0.0), (1.0, 0.8, 0.6))


@check(
    "sec:gravity/escape",
    moved={
        "lower bounds three times as large": {"low": 3.0, "weights": (1.0,)},
        "upper bounds half as large": {"high": 0.5, "weights": (1.0,)},
    },
    updates=tuple(name for name in PAPER if name != "pg-es"),
    weights=(1.0, 3.0),
)
@check(
    "sec:gravity/pg-es-weak",
    moved={
        "an upper bound that is a third as large": {"high": 1 / 3},
        "weights at which parameters cross zero, of which nothing is proved": {"weights": (2.0,)},
    },
    updates=("pg-es",),
    weights=(0.1, 0.25, 0.5),
)
def check_escape(
    updates: Sequence[str | Update],
    weights: Sequence[float],
    low: float = 1.0,
    high: float = 1.0,
    values: Sequence[Sequence[float]] = WELL_VALUES,
) -> Verdict:
    r"""Measure how the time to leave a well grows with its depth, against the proved bounds.

    Parameters
    ----------
    updates : sequence of str or Update
        The updates, of the paper's five.
    weights : sequence of float
        The weights of each step.
    low, high : float
        Multiply the lower and upper bounds.
    values : sequence of sequences of float
        The values, with the second action the second best.
    """
    ours = Worst("the distance in steps from the closest bound")
    rows = []
    for update in updates:
        for weight in weights:
            for q in values:
                starts = np.array([well(depth) for depth in DEPTHS])
                repeated = np.broadcast_to(np.array(q), starts.shape)
                steps = escape_steps(update, starts, repeated, weight)
                row: dict[str, Any] = {"update": as_update(update).name, "weight": weight, "q": q}
                for depth, start, count in zip(DEPTHS, starts, steps, strict=True):
                    least, most = escape_bound(update, start, q, weight)
                    if least == 0.0 and np.isinf(most):
                        return Verdict(Status.OPEN, None, f"Nothing is proved of {row}.")
                    room = min(count - low * least, high * most - count)
                    ours.add(float(room), **row, epsilon=depth)
                rows.append(
                    row
                    | {f"{d:g}": int(n) for d, n in zip(DEPTHS, steps, strict=True)}
                    | {"exponent": escape_exponent(steps)}
                )
    return judged(ours, evidence=rows)
