"""The checks of the chapter on gravity well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pu_lib.exact import Number, ball, certified, exact, sign
from pu_lib.theory.gravity_well import (
    _DEPTHS,
    Ball,
    Case,
    Floats,
    Integers,
    _after_ce,
    certified_increase,
    certified_margin,
    convexity_slope,
    escape_bound,
    escape_exponent,
    escape_steps,
    escort_step_exact,
    failing_share,
    margin,
    parameters,
    project_integers,
    well,
)
from pu_lib.updates import (
    UPDATES,
    Update,
    make_update,
)
from pu_lib.verdict import Status, Verdict, check

Projection = Callable[[Integers, int], tuple[Integers, Integers]]


SOFTMAX_CASE = Case(("0.01", "0.6", "0.39"), (1, "0.9", 0))
"""Under `pg-sm` the greedy action loses and the second best gains, whatever the weight."""


ESCORT_CASE = Case(("0.01", "0.98", "0.01"), (0, "0.999999", 1))
"""The construction in the paper's proof for `pg-es`, with numbers."""


CE_CASE = Case(("0.001", "0.3", "0.699"), (1, 0, 0))
"""Under `ce` the most probable action pays, and the middle one gains more than the greedy one."""


PROPOSITION_1: tuple[tuple[Number, ...], tuple[Number, ...]] = ((10, 0, 0), ("0.99", 1, 0))
"""The paper's example that `ce` may decrease the value: parameters and values."""


@check("thm:gravitywell/pg-sm")
def check_pg_sm(update: Update | None = None, case: Case = SOFTMAX_CASE) -> Verdict:
    """Theorem 3: `pg-sm` may give another action the largest increase; here at every weight."""
    return _violations(update or UPDATES["pg-sm"], case, _WEIGHTS)


@check("thm:gravitywell/ce")
def check_ce(update: Update | None = None, case: Case = CE_CASE) -> Verdict:
    """Theorem 3: `ce` may give another action the largest increase."""
    return _violations(update or UPDATES["ce"], case, _WEIGHTS[:4])


@check("thm:gravitywell/pg-es")
def check_pg_es(update: Update | None = None, case: Case = ESCORT_CASE) -> Verdict:
    """Theorem 3: `pg-es` may give another action the largest increase (p = 2)."""
    return _violations(update or UPDATES["pg-es"], case, _SHORT)


_WEIGHTS: tuple[Number, ...] = ("0.001", "0.01", "0.1", 1, 10, 100)


_SHORT: tuple[Number, ...] = ("0.001", "0.01", "0.1")


def _violations(update: Update, case: Case, weights: Sequence[Number]) -> Verdict:
    """Judge a "may fail": the case must fail, with certainty, at every weight."""
    rows: list[dict[str, Any]] = []
    for w in weights:
        proved, lead = certified_margin(update, case, w)
        gain = certified(partial(certified_increase, update, case, w))
        rows.append(
            {
                "weight": str(w),
                "increase of the greedy action": float(gain[case.greedy]),
                "largest increase": max(map(float, gain)),
                "margin": float(lead),
                "fails": proved < 0,
            }
        )
    excess = min(-row["margin"] for row in rows)
    failing = all(row["fails"] for row in rows)
    pi, q = case.floats()
    return Verdict(
        Status.HOLDS if failing else Status.FALSE,
        excess,
        f"At pi = {tuple(pi.tolist())}, q = {tuple(q.tolist())} the condition "
        + (
            f"provably fails at every weight of {len(rows)} tried; another action gains at least "
            f"{excess:.3g} more."
            if failing
            else "does not fail at every weight tried: no example."
        ),
        tuple(rows),
    )


@check("thm:gravitywell/pg-sm-decrease")
def check_pg_sm_decrease(update: Update | None = None, case: Case = SOFTMAX_CASE) -> Verdict:
    """Theorem 3: `pg-sm` may decrease the greedy action; proved for all weights, shown at six."""
    update = update or UPDATES["pg-sm"]
    slope = convexity_slope(case)
    rows: list[dict[str, Any]] = []
    for w in _WEIGHTS:
        change = certified(partial(_signed_change, update, case, w))
        rows.append({"weight": str(w), "change of the greedy action": change})
    holds = slope > 0 and all(r["change of the greedy action"] < 0 for r in rows)
    least = min(-r["change of the greedy action"] for r in rows)
    return Verdict(
        Status.HOLDS if holds else Status.FALSE,
        least,
        f"The greedy action loses at least {least:.3g} at six weights from 0.001 to 100, and, as "
        f"F'(0) = {slope} > 0 with F convex, at every positive weight."
        if holds
        else "The greedy action does not lose at every weight: no example.",
        tuple(rows),
    )


def _signed_change(update: Update, case: Case, weight: Number) -> float:
    """Return the change of the greedy action's probability, once its sign is proved."""
    change = certified_increase(update, case, weight)[case.greedy]
    sign(change)
    return float(change)


@check("sec:gravity/pg-sm-sufficient")
def check_pg_sm_sufficient(
    bound: Callable[[Floats], Floats] = lambda span: 1.0 / span, n_samples: int = 200_000
) -> Verdict:
    r"""Judge the printed condition for a decrease: it needs :math:`w\cdot\mathrm{range}(q) > 1`.

    The proof asks for :math:`\pi(b) \ge e^{w(\mathrm{adv}(a_q)\pi(a_q) - \mathrm{adv}(b)\pi(b))}`,
    said to be easy with :math:`\pi(b)` near one. As :math:`\mathrm{adv}(b) \le R(1-\pi(b))` with R
    the range of q, it implies :math:`1 - \pi(b) \le -\log\pi(b) < wR\,\pi(b)(1-\pi(b))`, hence
    :math:`wR > 1`: it says nothing for small weights, where the decrease happens all the same.

    Parameters
    ----------
    bound : callable
        Maps the range of q to the weight below which the printed condition should never be met.
    n_samples : int
        Random policies and values; a part of them close to the corner where :math:`\pi(b) = 1`.
    """
    rng = np.random.default_rng(3)
    pi = rng.dirichlet([0.02, 1.0, 0.1], n_samples) * (1 - 1e-9) + 1e-9 / 3
    q = np.column_stack([np.ones(n_samples), rng.uniform(0.0, 1.0, n_samples), np.zeros(n_samples)])
    adv = q - np.sum(pi * q, axis=1, keepdims=True)
    drive = adv[:, 1] * pi[:, 1] - adv[:, 0] * pi[:, 0]
    needed = np.where(drive > 0, -np.log(pi[:, 1]) / np.where(drive > 0, drive, 1.0), np.inf)
    excess = float(np.min(needed - bound(np.ptp(q, axis=1))))
    small = certified(lambda: _signed_change(UPDATES["pg-sm"], SOFTMAX_CASE, "0.001"))
    holds = excess > 0 and small < 0
    return Verdict(
        Status.CORRECTED if holds else Status.FALSE,
        excess,
        f"Over {n_samples} policies and values with range 1 the printed condition needs a weight "
        f"of at least {1 + excess:.4g}, yet at weight 0.001 the greedy action already loses "
        f"{-small:.3g}.",
    )


@check("thm:gravitywell/ce-example")
def check_ce_example(
    theta: tuple[Number, ...] = PROPOSITION_1[0], q: tuple[Number, ...] = PROPOSITION_1[1]
) -> Verdict:
    """Judge the proof's example for `ce`, that of Proposition 1: it violates nothing."""

    def compute() -> list[Ball]:
        powers = [ball(x).exp() for x in theta]
        pi = [x / sum(powers) for x in powers]
        greedy = [exact(x) for x in q].index(max(exact(x) for x in q))
        after = _after_ce(None, pi, [ball(x) for x in q], ball(1), greedy)
        gain = [x / sum(after) - y for x, y in zip(after, pi, strict=True)]
        for a, x in enumerate(gain):
            if a != greedy:
                sign(gain[greedy] - x)
        return [gain[greedy], *(x for a, x in enumerate(gain) if a != greedy)]

    own, *others = map(float, certified(compute))
    excess = max(others) - own
    return Verdict(
        Status.HOLDS if excess > 0 else Status.FALSE,
        excess,
        f"At theta = {theta}, q = {q} the greedy action gains {own:.6g}, the others "
        f"{others[0]:.6g} and {others[1]:.6g}: the condition is "
        + ("violated." if excess > 0 else "satisfied."),
        counterexample=None if excess > 0 else {"theta": theta, "q": q, "eta d": 1},
    )


@check("sec:gravity/pg-es-p")
def check_pg_es_only_p_above_one(p: float = 1.0, weight: Number = "0.01") -> Verdict:
    """Section 3.3: `pg-es` is said to fail only when p > 1; it fails at p = 1 as well."""
    update = make_update("pg-es", p=p)
    lead_sign, lead = certified_margin(update, ESCORT_CASE, weight)
    pi, q = ESCORT_CASE.floats()
    theta = parameters(update, pi)
    crossed = bool(np.any(update.step(theta, q, float(exact(weight))) <= 0))
    false = lead_sign < 0 and not crossed and p <= 1
    return Verdict(
        Status.FALSE if false else Status.HOLDS,
        float(lead),
        f"With p = {p:g} and weight {weight}, no parameter crossing zero, the margin at "
        f"pi = (0.01, 0.98, 0.01), q = (0, 0.999999, 1) is {float(lead):.4g}.",
        counterexample={"p": p, "pi": ESCORT_CASE.pi, "q": ESCORT_CASE.q, "weight": weight}
        if false
        else None,
    )


@check("sec:gravity/pg-es-decrease")
def check_pg_es_decrease(
    exponents: tuple[float, ...] = (3.0, 4.0), weight: Number = "0.1"
) -> Verdict:
    """With p > 2 escort, too, may decrease the greedy action; the paper says so of `pg-sm` only."""
    rows = []
    for p in exponents:
        for factor in ("keep", "drop"):
            update = make_update("pg-es", p=p, factor=factor)
            change = certified(partial(_signed_change, update, ESCORT_CASE, weight))
            rows.append({"p": p, "factor": factor, "change of the greedy action": change})
    least = min(-float(row["change of the greedy action"]) for row in rows)
    return Verdict(
        Status.HOLDS if least > 0 else Status.FALSE,
        least,
        f"At weight {weight} the greedy action's probability changes by "
        + ", ".join(f"{row['change of the greedy action']:.4g}" for row in rows)
        + " (p, factor as in the table).",
        tuple(rows),
    )


def _compositions(rng: np.random.Generator, n: int, n_actions: int, unit: int) -> Integers:
    """Draw integer vectors that sum to `unit`; many have zeros and repeated entries."""
    parts = rng.multinomial(unit, rng.dirichlet(np.full(n_actions, 0.4), n))
    return np.asarray(parts, dtype=np.int64)


def _direct_trials(
    project: Projection, draw: Callable[[np.random.Generator, int, int], Integers], n_samples: int
) -> tuple[int, int, Fraction, dict[str, Any] | None]:
    """Project random rational points; return cases, ties, worst margin and a violation."""
    rng = np.random.default_rng(10)
    worst, broken, ties, cases = Fraction(1), None, 0, 0
    for n_actions in (2, 3, 4, 6, 9):
        unit = 60
        theta = _compositions(rng, n_samples, n_actions, unit)
        delta = draw(rng, n_samples, n_actions)
        moved, scale = project(theta + delta, unit)
        gain = moved - scale * theta
        top = delta == delta.max(axis=1, keepdims=True)
        # the condition must hold for every coordinate tied at the largest delta
        lead = np.where(top, gain, np.iinfo(np.int64).max).min(axis=1) - gain.max(axis=1)
        cases, ties = cases + n_samples, ties + int(np.count_nonzero(top.sum(axis=1) > 1))
        row = int(np.argmin(lead / scale[:, 0]))
        value = Fraction(int(lead[row]), int(scale[row, 0]) * unit)
        if value < worst:
            worst = value
        if value < 0 and broken is None:
            broken = {
                "theta": [str(Fraction(int(x), unit)) for x in theta[row]],
                "delta": [str(Fraction(int(x), unit)) for x in delta[row]],
            }
    return cases, ties, worst, broken


@check("lem:direct_update")
def check_lemma_10(project: Projection = project_integers, n_samples: int = 40_000) -> Verdict:
    """Lemma 10 on random rational points, with zeros and ties, without any rounding."""

    def draw(rng: np.random.Generator, n: int, n_actions: int) -> Integers:
        span = rng.choice([2, 10, 60, 600], n)[:, np.newaxis]
        return rng.integers(-span, span + 1, (n, n_actions), dtype=np.int64)

    return _direct_verdict(project, draw, n_samples)


@check("thm:gravitywell/di")
def check_di(project: Projection = project_integers, n_samples: int = 40_000) -> Verdict:
    """Theorem 3 for `di`: random rational policies, values and weights, without any rounding."""

    def draw(rng: np.random.Generator, n: int, n_actions: int) -> Integers:
        weight = rng.integers(1, 200, (n, 1), dtype=np.int64)
        return weight * rng.integers(-5, 6, (n, n_actions), dtype=np.int64)

    return _direct_verdict(project, draw, n_samples)


def _direct_verdict(
    project: Projection,
    draw: Callable[[np.random.Generator, int, int], Integers],
    n_samples: int,
) -> Verdict:
    cases, ties, worst, broken = _direct_trials(project, draw, n_samples)
    return Verdict(
        Status.HOLDS if broken is None else Status.FALSE,
        float(worst),
        f"{cases} exact rational projections on simplices of 2 to 9 actions, {ties} of them with "
        f"ties at the maximum: the worst lead of the maximal coordinate is {worst}.",
        counterexample=broken,
    )


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


def check_condition(
    update: Update,
    claim: str,
    sizes: Sequence[int] = (2, 3, 4, 6),
    n_samples: int = 2_000,
    seed: int = 5,
) -> Verdict:
    """Judge "always satisfies the condition" on random cases, each comparison certified.

    Parameters
    ----------
    update : Update
        The update to judge (any but `di`, which has its exact check).
    claim : str
        The claim's identifier.
    sizes : sequence of int
        Numbers of actions.
    n_samples, seed : int
        How many cases, and from which random stream.
    """
    rng = np.random.default_rng(seed)
    worst, broken = np.inf, None
    for case in _random_cases(rng, n_samples, sizes):
        weight = Fraction(int(10 ** rng.uniform(0, 5)), 1000)
        lead_sign, lead = certified_margin(update, case, weight)
        if float(lead) < worst:
            worst = float(lead)
            if lead_sign < 0:
                broken = {"pi": case.pi, "q": case.q, "weight": str(weight)}
    return Verdict(
        Status.HOLDS if broken is None else Status.FALSE,
        worst,
        f"{n_samples} random rational policies, values and weights from 0.001 to 100: the worst "
        f"certified lead of the greedy action is {worst:.3g}.",
        counterexample=broken,
    )


@check("thm:gravitywell/mce")
def check_mce(update: Update | None = None) -> Verdict:
    """Theorem 3 for `mce`: the condition holds, every comparison certified."""
    return check_condition(update or UPDATES["mce"], "thm:gravitywell/mce")


@check("sec:gravity/ce-two-actions")
def check_two_actions(update: Update | None = None, sizes: Sequence[int] = (2,)) -> Verdict:
    """With two actions `ce` is `mce`: no example with |A| = 2 exists."""
    return check_condition(update or UPDATES["ce"], "sec:gravity/ce-two-actions", sizes)


@check("sec:gravity/ce-argmax")
def check_ce_most_probable(update: Update | None = None, n_samples: int = 2_000) -> Verdict:
    r"""Section 3.3 on `ce`: the action that overtakes is never the most probable one.

    Stronger: the most probable action, if it is not greedy, never gains at all. With b that action,
    the normaliser is :math:`Z \ge \sum_j \pi(j) e^{-w\pi(j)} \ge e^{-w\sum_j \pi(j)^2} \ge
    e^{-w\pi(b)}` (Jensen), and :math:`\pi'(b) = \pi(b) e^{-w\pi(b)}/Z`. The greedy action never
    loses.
    """
    update = update or UPDATES["ce"]
    rng = np.random.default_rng(7)
    worst, broken = np.inf, None
    for case in _random_cases(rng, n_samples, (3, 4, 6)):
        weight = Fraction(int(10 ** rng.uniform(0, 5)), 1000)
        loss = _certified_loss(update, case, weight)
        if loss < worst:
            worst = loss
            if loss < 0:
                broken = {"pi": case.pi, "q": case.q, "weight": str(weight)}
    return Verdict(
        Status.HOLDS if broken is None else Status.FALSE,
        worst,
        f"In {n_samples} random cases the loss of the most probable action, where it is not "
        f"greedy, and the gain of the greedy one are at least {worst:.3g}, certified.",
        counterexample=broken,
    )


def _certified_loss(update: Update, case: Case, weight: Number) -> float:
    """Return the smaller of the most probable action's loss and the greedy action's gain."""
    policy = [exact(x) for x in case.pi]
    top = policy.index(max(policy))

    def compute() -> float:
        gain = certified_increase(update, case, weight)
        parts = [gain[case.greedy]] + ([-gain[top]] if top != case.greedy else [])
        for part in parts:
            sign(part)
        return min(map(float, parts))

    return certified(compute)


@check("sec:gravity/pg-es-no-crossing")
def check_pg_es_no_crossing(allow_crossing: bool = False, n_samples: int = 10_000) -> Verdict:
    """With p = 2 and no parameter crossing zero, escort never decreases the greedy action.

    Parameters
    ----------
    allow_crossing : bool
        Also judge steps that take a parameter across zero, where the statement is false.
    n_samples : int
        Exact rational steps.
    """
    rng = np.random.default_rng(11)
    worst, broken, judged = Fraction(1), None, 0
    numbers = rng.integers(1, 100, (n_samples, 9)).tolist()
    for i, row in enumerate(numbers):
        n = 2 + i % 3
        theta = [Fraction(x, 10) for x in row[:n]]
        q = [Fraction(x, 10) for x in row[4 : 4 + n]]
        pi_greedy = theta[q.index(max(q))] ** 2 / sum(x * x for x in theta)
        after, crossed = escort_step_exact(theta, q, Fraction(row[8], 5))
        if crossed and not allow_crossing:
            continue
        judged += 1
        change = after[q.index(max(q))] - pi_greedy
        worst = min(worst, change)
        if change < 0 and broken is None:
            broken = {"theta": list(map(str, theta)), "q": list(map(str, q)), "w": row[8] / 5}
    return Verdict(
        Status.HOLDS if broken is None else Status.FALSE,
        float(worst),
        f"{judged} exact rational steps{'' if allow_crossing else ' without a zero crossing'}: the "
        f"greedy action's smallest change is {float(worst):.3g}.",
        counterexample=broken,
    )


@check("sec:gravity/pg-es-restricted")
def check_pg_es_restricted(
    weaker: Update | None = None, stronger: Update | None = None, weight: float = 0.1
) -> Verdict:
    """Section 3.3: the failing set of `pg-es` is said to be much more restricted than `pg-sm`'s.

    "Much more" is read as a factor of two of the simplex's area, at every q(b).
    """
    weaker, stronger = weaker or UPDATES["pg-es"], stronger or UPDATES["pg-sm"]
    rows = []
    for middle in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
        q = (1.0, middle, 0.0)
        (few, loses), (many, sinks) = (failing_share(u, q, weight) for u in (weaker, stronger))
        rows.append(
            {
                "q(b)": middle,
                f"{weaker.name} fails": few,
                f"{stronger.name} fails": many,
                f"{weaker.name} loses": loses,
                f"{stronger.name} loses": sinks,
            }
        )
    ratio = min(
        float(row[f"{stronger.name} fails"]) / max(float(row[f"{weaker.name} fails"]), 1e-4)
        for row in rows
    )
    status = Status.FALSE if ratio <= 1 else Status.CORRECTED if ratio < 2 else Status.HOLDS
    return Verdict(
        status,
        ratio - 1,
        f"Over six values of q(b), at weight {weight:g}, the condition fails on at least "
        f"{ratio:.3g} times as much of the simplex under {stronger.name} as under {weaker.name}.",
        tuple(rows),
    )


@check("sec:gravity/pg-es-contained")
def check_pg_es_contained(
    inner: Update | None = None, outer: Update | None = None, weight: float = 1e-3
) -> Verdict:
    """Where `pg-es` (p = 2) fails with a small weight, `pg-sm` fails as well; proved above.

    Parameters
    ----------
    inner, outer : Update, optional
        The failing set of the first should lie in that of the second.
    weight : float
        The statement is about infinitesimal weights.
    """
    inner, outer = inner or UPDATES["pg-es"], outer or UPDATES["pg-sm"]
    rng = np.random.default_rng(12)
    pi = rng.dirichlet([0.6] * 4, 200_000)
    pi = pi[pi.min(axis=1) > 1e-6]
    q = rng.uniform(0.0, 1.0, pi.shape)
    fails = margin(inner, pi, q, weight) < -1e-6 * weight
    lead = margin(outer, pi, q, weight)[fails]
    # a second-order term may turn margins of the size of the weight squared
    outside = int(np.count_nonzero(lead > weight**2))
    return Verdict(
        Status.HOLDS if outside == 0 else Status.FALSE,
        -float(np.max(lead)) / weight,
        f"Of {len(pi)} random policies and values with four actions {inner.name} fails at "
        f"{lead.size}; at {outside} of these {outer.name} does not (weight {weight:g}).",
    )


_WELL_Q = np.array([1.0, 0.9, 0.0])


@check("sec:gravity/escape")
def check_escape(
    names: Sequence[str] = ("pg-sm", "pg-es", "di", "ce", "mce"),
    bound: Callable[[Update, Floats, Floats, float], tuple[float, float]] = escape_bound,
) -> Verdict:
    """Measure how the time to leave a well grows with its depth, against the proved bounds."""
    rows, room = [], np.inf
    for name in names:
        steps = [escape_steps(UPDATES[name], well(depth), _WELL_Q) for depth in _DEPTHS]
        for depth, count in zip(_DEPTHS, steps, strict=True):
            low, high = bound(UPDATES[name], well(depth), _WELL_Q, 1.0)
            room = min(room, count - low, high - count)
        rows.append(
            {"update": name}
            | {f"{d:g}": int(n) for d, n in zip(_DEPTHS, steps, strict=True)}
            | {"exponent": escape_exponent(steps)}
        )
    return Verdict(
        Status.HOLDS if room >= 0 else Status.FALSE,
        float(room),
        "Steps from the well (eps, 1 - 2 eps, eps) to probability 1/2 at weight 1, against the "
        f"proved bounds; the closest bound is {room:.3g} steps away.",
        tuple(rows),
    )
