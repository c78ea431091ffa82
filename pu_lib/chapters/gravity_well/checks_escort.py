"""The checks of the chapter on the gravity well that are about PG-ES."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from pu_lib.chapters.gravity_well.escape import escape_steps, well
from pu_lib.chapters.gravity_well.quantities import (
    ESCORT_CASE,
    MANY_CASE,
    UNIFORM_CASE,
    Case,
    certified_margin,
    escort_remainders,
    escort_step_exact,
    failing_share,
    margin,
    parameters,
    signed_change,
)
from pu_lib.exact import Number, certified, exact
from pu_lib.updates import Update, as_update, make_update
from pu_lib.verdict import Status, Verdict, Worst, check, judged


@check(
    "sec:gravity/pg-es-p",
    moved={"the uniform policy in the example's place": {"case": UNIFORM_CASE}},
)
def check_pg_es_only_p_above_one(
    p: float = 1.0, weight: Number = "0.01", case: Case = ESCORT_CASE
) -> Verdict:
    """Section 3.3: `pg-es` is said to fail only when p > 1; it fails at p = 1 as well.

    Parameters
    ----------
    p : float
        The exponent.
    weight : number
        The weight; no parameter may cross zero, which would be another reason to fail.
    case : Case
        The policy and the values.
    """
    update = make_update("pg-es", p=p)
    pi, q = case.floats()
    if np.any(update.step(parameters(update, pi), q, float(exact(weight))) <= 0):
        return Verdict(Status.OPEN, None, f"With p = {p:g} a parameter crosses zero.")
    _, lead = certified_margin(update, case, weight)
    ours = Worst("the gain of the best action minus that of any other")
    ours.add(float(lead), p=p, pi=case.pi, q=case.q, weight=weight)
    return judged(ours)


@check(
    "sec:gravity/pg-es-decrease",
    moved={
        "p = 2 beside them": {"exponents": (2.0, 3.0, 4.0)},
        "p = 1 with the three actions of the other example": {"many": ESCORT_CASE},
    },
)
def check_pg_es_decrease(
    exponents: Sequence[float] = (3.0, 4.0), weight: Number = "0.1", many: Case = MANY_CASE
) -> Verdict:
    """Escort, too, may decrease the greedy action; the paper says so of `pg-sm` only.

    Parameters
    ----------
    exponents : sequence of float
        Exponents with which it does so with three actions, with and without the factor.
    weight : number
        The weight of the step.
    many : Case
        A policy and values at which it does so with p = 1.
    """
    ours = Worst("the loss of the greedy action")
    cases = [(p, factor, ESCORT_CASE) for p in exponents for factor in ("keep", "drop")]
    rows = []
    for p, factor, case in [*cases, (1.0, "keep", many)]:
        update = make_update("pg-es", p=p, factor=factor)
        change = certified(partial(signed_change, update, case, weight))
        row = {"p": p, "factor": factor, "actions": len(case.pi)}
        ours.add(-change, **row)
        rows.append(row | {"change of the greedy action": change})
    return judged(ours, evidence=rows)


@check(
    "sec:gravity/pg-es-no-crossing",
    moved={"steps that take a parameter across zero": {"allow_crossing": True}},
)
def check_pg_es_no_crossing(allow_crossing: bool = False, n_samples: int = 4_000) -> Verdict:
    """With p = 2 and no parameter crossing zero, escort never decreases the greedy action.

    Parameters
    ----------
    allow_crossing : bool
        Also judge steps that take a parameter across zero, where the statement is false.
    n_samples : int
        Exact rational steps.
    """
    rng = np.random.default_rng(11)
    ours = Worst("the change of the greedy action")
    numbers = rng.integers(1, 100, (n_samples, 9)).tolist()
    for i, row in enumerate(numbers):
        n = 2 + i % 3
        theta = [Fraction(x, 10) for x in row[:n]]
        q = [Fraction(x, 10) for x in row[4 : 4 + n]]
        greedy = q.index(max(q))
        before = theta[greedy] ** 2 / sum(x * x for x in theta)
        after, crossed = escort_step_exact(theta, q, Fraction(row[8], 5))
        if crossed and not allow_crossing:
            continue
        ours.add(
            float(after[greedy] - before),
            theta=", ".join(map(str, theta)),
            q=", ".join(map(str, q)),
            weight=row[8] / 5,
        )
    return judged(ours)


@check(
    "sec:gravity/pg-es-restricted",
    moved={
        "more restricted by any factor at all, which holds as it stands": {"times": 1.0},
        "PG-SM's set in place of PG-ES's, and the other way round": {
            "weaker": "pg-sm",
            "stronger": "pg-es",
        },
    },
)
def check_pg_es_restricted(
    weaker: str | Update = "pg-es",
    stronger: str | Update = "pg-sm",
    weight: float = 0.1,
    times: float = 2.0,
) -> Verdict:
    """Section 3.3: the failing set of `pg-es` is said to be much more restricted than `pg-sm`'s.

    Parameters
    ----------
    weaker, stronger : str or Update
        The failing set of the first should be the smaller one.
    weight : float
        The weight of the step.
    times : float
        "Much more" is read as: by this factor of the simplex's area, at every q(b).
    """
    ours = Worst("the failing area relative to the other one, less 1,")
    printed = Worst(f"the failing area relative to the other one, less {times:g},")
    few, many = as_update(weaker).name, as_update(stronger).name
    rows = []
    for middle in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
        q = (1.0, middle, 0.0)
        (fails, loses), (larger, sinks) = (failing_share(u, q, weight) for u in (weaker, stronger))
        ratio = larger / max(fails, 1e-4)
        ours.add(ratio - 1.0, middle=middle)
        printed.add(ratio - times, middle=middle)
        rows.append(
            {
                "q(b)": middle,
                f"{few} fails": fails,
                f"{many} fails": larger,
                f"{few} loses": loses,
                f"{many} loses": sinks,
            }
        )
    return judged(ours, printed, evidence=rows)


@check(
    "sec:gravity/pg-es-contained",
    moved={
        "PG-SM's set in PG-ES's": {"inner": "pg-sm", "outer": "pg-es"},
        "CE's set in PG-SM's": {"inner": "ce"},
    },
)
def check_pg_es_contained(
    inner: str | Update = "pg-es", outer: str | Update = "pg-sm", weight: float = 1e-3
) -> Verdict:
    """Where `pg-es` (p = 2) fails with a small weight, `pg-sm` fails as well.

    Parameters
    ----------
    inner, outer : str or Update
        The failing set of the first should lie in that of the second.
    weight : float
        The statement is about infinitesimal weights: a margin of the other update is allowed to
        be positive by the square of the weight.
    """
    rng = np.random.default_rng(12)
    pi = rng.dirichlet([0.6] * 4, 200_000)
    pi = pi[pi.min(axis=1) > 1e-6]
    q = rng.uniform(0.0, 1.0, pi.shape)
    fails = margin(inner, pi, q, weight) < -1e-6 * weight
    lead = margin(outer, pi, q, weight)[fails]
    ours = Worst("the failure of the other one there, relative to the weight,")
    worst = int(np.argmax(lead))
    ours.add(
        float(weight - lead[worst] / weight),
        pi=np.round(pi[fails][worst], 4).tolist(),
        failing=int(lead.size),
    )
    return judged(ours)


@check(
    "sec:gravity/pg-es-dampened",
    moved={
        "the power 1 - 1/p in place of its square": {"shift": 0.5, "exponents": (4.0,)},
        "exponents p that are larger by half": {"factor": 1.5, "exponents": (4.0,)},
        "PG-SM in PG-ES's place": {"update": "pg-sm"},
    },
)
def check_pg_es_dampened(
    update: str | Update | None = None,
    exponents: Sequence[float] = (2.0, 3.0, 4.0, 6.0),
    factor: float = 1.0,
    shift: float = 0.0,
    tolerance: float = 0.11,
) -> Verdict:
    r"""Measure how the time to leave a well grows with its depth: like a power 1 - 2/p.

    Parameters
    ----------
    update : str or Update, optional
        The update to follow; `pg-es` with each exponent if missing.
    exponents : sequence of float
        Values of p, at least 2.
    factor, shift : float
        Multiplies p in the claimed power; added to that power.
    tolerance : float
        How far the power measured between wells of depth 1e-4 and 1e-5 may be from the claimed
        one; the logarithm of p = 2 is still worth 0.095 there.

    Returns
    -------
    Verdict
    """
    ours, rows = Worst(f"{tolerance:g} less the distance from the claimed power"), []
    depths = (1e-4, 1e-5) if update is None else (1e-2, 1e-3)
    starts = np.array([well(depth) for depth in depths])
    values = np.tile([1.0, 0.5, 0.0], (2, 1))
    for p in exponents:
        chosen = make_update("pg-es", p=p) if update is None else as_update(update)
        steps = escape_steps(chosen, starts, values, 0.1)
        power = float(np.log10(steps[1] / steps[0]))
        claimed = 1.0 - 2.0 / (factor * p) + shift
        ours.add(tolerance - abs(power - claimed), p=p, power=power)
        rows.append({"p": p, "measured power": power, "1 - 2/p": 1.0 - 2.0 / p})
    return judged(ours, evidence=rows)


@check(
    "thm:gravitywell/pg-es-expansion",
    moved={
        "half of the second terms": {"factor": 0.5},
        "remainders of one order more": {"extra": 1.0},
        "p = 3/2 and above, for which it holds as printed": {"below": (1.5,)},
    },
)
def check_escort_expansion(
    factor: float = 1.0, extra: float = 0.0, below: Sequence[float] = (1.1, 1.2, 1.4)
) -> Verdict:
    r"""Compare the remainders of the proof's expansions with the orders that it prints.

    At c the next term of the binomial series is of order :math:`\varepsilon^{5-4/p}`, more than the
    printed :math:`\varepsilon^{3-1/p}` for :math:`1<p<3/2`; at b it is of order
    :math:`\varepsilon^2`, always less than the printed :math:`\varepsilon^{2-1/p}`.

    Parameters
    ----------
    factor : float
        On the second terms of the expansions.
    extra : float
        Added to the orders of the corrected remainders.
    below : sequence of float
        More values of p for which the printed order at c is tried.

    Returns
    -------
    Verdict
        A remainder is of the order of x if it is at most 10 x down to
        :math:`\varepsilon=10^{-16}`.
    """
    ours = Worst("10 less the remainder relative to its order")
    printed = Worst("10 less the remainder at c relative to its printed order")
    for p in (1.0, *below, 1.5, 2.0, 3.0, 4.0):
        for digits in (2, 4, 8, 16):
            for times in (2, 6):
                epsilon, delta = 10.0**-digits, 10.0 ** (-times * digits)
                b, c = escort_remainders(p, f"1e-{digits}", f"1e-{times * digits}", factor)
                row = {"p": p, "epsilon": epsilon, "delta": delta}
                order = min(3.0 - 1.0 / p, 5.0 - 4.0 / p)
                ours.add(10.0 - b / (epsilon ** (2.0 - 1.0 / p + extra) + delta), at="b", **row)
                ours.add(10.0 - c / (epsilon ** (order + extra) + delta), at="c", **row)
                printed.add(10.0 - c / (epsilon ** (3.0 - 1.0 / p) + delta), **row)
    return judged(ours, printed)
