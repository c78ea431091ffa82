"""The checks of the chapter on unlearning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, product
from typing import Any, TypeAlias

import numpy as np
from flint import arb

from pu_lib.exact import Number, exact
from pu_lib.theory.unlearning import (
    bound_ce,
    bound_ce_sharp,
    bound_decaying_ce,
    bound_decaying_ce_sharp,
    bound_decaying_di,
    bound_decaying_pg,
    bound_di,
    bound_lemma_11,
    bound_lemma_12,
    comparison,
    count,
    counts,
    escape_ratio,
    linked_count,
    worst_sequence,
)
from pu_lib.verdict import Status, Verdict, check

Case: TypeAlias = tuple[dict[str, Any], float]


SMALL_NS = (1, 2, 3, 5, 10, 30, 100, 300)


ETAS = ("0.01", "0.1", "0.3", "1", "2", "5")


def rule(
    unit: str,
    corrected: Iterable[Case],
    printed: Iterable[Case] = (),
    counterexample: Status = Status.CORRECTED,
    evidence: Sequence[dict[str, Any]] = (),
    corrected_unit: str = "",
) -> Verdict:
    """Turn margins into a verdict.

    Parameters
    ----------
    claim, unit : str
        The claim's identifier; what a margin is.
    corrected : iterable of (instance, margin)
        Instances of the corrected statement (of the printed one, where it needs no correction).
    printed : iterable of (instance, margin)
        Instances that the printed statement covers and the corrected one excludes.
    counterexample : Status
        The status when an instance of `printed` has a negative margin.
    evidence : sequence of dict
        The table to show; by default the worst instances.
    corrected_unit : str
        What a margin of the corrected statement is, where it differs from `unit`.
    """
    ours_unit = corrected_unit or unit
    ours = sorted(corrected, key=lambda case: case[1])
    theirs = sorted(printed, key=lambda case: case[1])
    worst, margin = ours[0]
    table = tuple(evidence) or tuple({**case, "margin": m} for case, m in ours[:4])
    if margin < 0:
        summary = f"Violated, also as corrected: {ours_unit} is {margin:.4g} at {_words(worst)}."
        return Verdict(Status.FALSE, margin, summary, table, worst)
    found = f"over {len(ours)} instances {ours_unit} is at least {margin:.4g} (at {_words(worst)})"
    if theirs and theirs[0][1] < 0:
        instance, violation = theirs[0]
        summary = f"As printed, {unit} is {violation:.4g}; corrected, {found}."
        table = tuple(evidence) or tuple({**case, "margin": m} for case, m in theirs[:6])
        return Verdict(counterexample, violation, summary, table, instance)
    return Verdict(Status.HOLDS, margin, found[0].upper() + found[1:] + ".", table)


def _words(instance: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in instance.items())


def _cases(
    bound: Callable[[int, Fraction, Fraction], float],
    ns: Sequence[int],
    *,
    upper: bool = False,
    etas: Iterable[Number] = ETAS,
    starts: Iterable[Number] = ("1/2",),
    **process: Any,
) -> Iterator[Case]:
    """Yield how far each count stays on its side of `bound(n, eta, start)`."""
    for eta, start in product(etas, starts):
        found = counts(ns, eta=eta, start=start, **process)
        for n, back in zip(ns, found, strict=True):
            room = back - bound(n, exact(eta), exact(start))
            instance = {"n": n, "eta": str(eta), "start": str(start), "n'": back}
            yield {**process, **instance}, float(-room if upper else room)


@check("sec:intro/unlearning")
def check_intro(claimed: Callable[[int], float] = lambda n: n) -> Verdict:
    """Check that undoing n PG-SM updates takes n, with more than two actions.

    With q = (1, 0, ..., 0), then its opposite, the other K - 1 actions stay equally likely, and the
    first one moves exactly as with two actions, start 1/K and weight eta K / (2(K - 1)).
    """

    def cases(actions: Iterable[int]) -> Iterator[Case]:
        ns = (1, 2, 3, 5, 10)
        for K, eta in product(actions, ("0.25", "0.5", "1", "1.25", "2", "5")):
            weight = exact(eta) * Fraction(K, 2 * (K - 1))
            found = counts(ns, "pg-sm", weight, start=Fraction(1, K))
            for n, back in zip(ns, found, strict=True):
                yield {"actions": K, "eta": eta, "n": n, "n'": back}, float(back - claimed(n))

    return rule("n' - n", cases(range(2, 9)), cases((10, 12)), Status.FALSE)


LINKS: dict[str, Callable[[arb], arb]] = {
    "logistic": lambda x: 1 / (2 + x.exp() + (-x).exp()),
    "normal": lambda x: (-x * x / 2).exp() / (2 * arb.pi()).sqrt(),
    "Cauchy": lambda x: 1 / (arb.pi() * (1 + x * x)),
    "Laplace": lambda x: (-x).exp() / 2,
}
r"""Densities :math:`F'` on :math:`[0, \infty)` of policies :math:`\pi_\theta(a_1) = F(\theta_1 -
\theta_2)` that satisfy the three assumptions of Theorem 4(i) there."""


@check("thm:unlearn/i")
def check_theorem_4_i(links: Mapping[str, Callable[[arb], arb]] | None = None) -> Verdict:
    """Check n' >= n under the three assumptions; a constant policy satisfies them and has n' = 0.

    Parameters
    ----------
    links : mapping
        The densities F' of the policies to try; by default four that the assumptions allow.
    """
    chosen = LINKS if links is None else links

    def cases() -> Iterator[Case]:
        for (name, density), eta, n in product(chosen.items(), ("0.1", "1", "3"), (1, 2, 5, 20)):
            back = linked_count(n, eta, density)
            yield {"link": name, "eta": eta, "n": n, "n'": back}, float(back - n)

    still = [
        ({"link": "constant policy", "eta": "1", "n": n, "n'": back}, float(back - n))
        for n in (1, 10)
        for back in [linked_count(n, 1, lambda x: 0 * x)]
    ]
    return rule("n' - n", cases(), still)


@check("thm:unlearn/i/pg-sm")
def check_theorem_4_i_softmax(
    extra: int = 1, starts: Sequence[Number] = ("1/2", "3/4", "0.99")
) -> Verdict:
    """Check n' >= n + 1 for PG-SM from pi_0(a_1) >= 1/2, and that n' >= n can fail below.

    Parameters
    ----------
    extra : int
        The claim checked is n' >= n + extra.
    starts : sequence
        The starts that the corrected statement covers.
    """
    ours = _cases(lambda n, *_: n + extra, SMALL_NS, update="pg-sm", starts=starts)
    theirs = _cases(lambda n, *_: n, (2, 3, 10), update="pg-sm", etas=("5",), starts=("1/20",))
    return rule(f"n' - (n + {extra})", ours, theirs)


@check("thm:unlearn/i/pg-es")
def check_theorem_4_i_escort(
    extra: int = 1,
    exponents: Sequence[Number] = (2, "2.5", 3, 5),
    factor: str = "keep",
) -> Verdict:
    r"""Check n' >= n + 1 for PG-ES, p >= 2, exact gradient, uniform start, every eta.

    At :math:`\eta = 4/p` the first update sets :math:`\theta_2` to zero and the count is infinite.

    Parameters
    ----------
    extra, exponents, factor :
        The claim checked, n' >= n + extra, and the escort updates it is checked on.
    """
    ns, etas = (1, 2, 3, 10, 50), ("0.05", "0.5", "1.5", "3", "5", "20")

    def ours() -> Iterator[Case]:
        for p in exponents:
            process: dict[str, Any] = {"update": "pg-es", "p": str(p), "factor": factor}
            dead = (4 / exact(p),) if factor == "keep" else ()
            yield from _cases(lambda n, *_: n + extra, ns, etas=(*etas, *dead), **process)

    def theirs() -> Iterator[Case]:
        for p, kind, eta, n in (
            ("3/2", "keep", "0.1", 2000),
            ("1.9", "keep", "1", 100),
            ("1", "keep", "3", 2),
            ("2", "drop", "5", 10),
        ):
            process: dict[str, Any] = {"update": "pg-es", "p": p, "factor": kind}
            yield from _cases(lambda n, *_: n, (n,), etas=(eta,), **process)
        far = Fraction(10000, 10001)  # theta_0 proportional to (1, 0.01)
        process = {"update": "pg-es", "p": "2", "factor": "keep"}
        yield from _cases(lambda n, *_: n, (10,), etas=("1.8",), starts=(far,), **process)

    return rule(f"n' - (n + {extra})", ours(), theirs(), Status.FALSE)


@check("thm:unlearn/i/pg-es-dropped")
def check_escort_dropped(tolerance: float = 0.01, sign_of_limit: int = 1) -> Verdict:
    r"""Check the window where PG-ES, p = 2, factor dropped, unlearns faster than it learnt.

    The count over n = 2000 updates is compared with the limit of :math:`n'/n` (`escape_ratio`):
    below 1 for :math:`2 < \eta/\|\theta_0\| < 11.06`, above 1 beyond.

    Parameters
    ----------
    tolerance : float
        Allowed between the ratio at n = 2000 and its limit; the remainder is O(1/n).
    sign_of_limit : {1, -1}
        With -1 the two sides are exchanged, which is wrong.
    """
    n, norm = 2000, math.sqrt(2)
    ours: list[Case] = []
    for x, side in ((2.2, -1), (3, -1), (5, -1), (8, -1), (10, -1), (12, 1), (15, 1), (25, 1)):
        eta = Fraction(x * norm).limit_denominator(1000)
        kappa, limit = escape_ratio(eta)
        ratio = count(n, "pg-es", eta, factor="drop") / n
        right_side = sign_of_limit * side * (limit - 1) > 0
        margin = tolerance - abs(ratio - limit) if right_side else -abs(limit - 1)
        row = {"eta / |theta_0|": x, "kappa": kappa, "limit": limit, f"n'/n at {n}": ratio}
        ours.append((row, margin))
    theirs = _cases(lambda n, *_: n, (n,), update="pg-es", etas=("5",), factor="drop")
    room = f"{tolerance:g} minus the distance to the limit"
    return rule("n' - n", ours, theirs, Status.FALSE, [row for row, _ in ours], room)


@check("thm:unlearn/ii")
def check_theorem_4_ii(
    claimed: Callable[[int, Fraction, Fraction], int] = bound_di, trials: int = 400
) -> Verdict:
    """Check DI's exact count on random rational weights and starts.

    Parameters
    ----------
    claimed : callable
        The count expected, a function of n, eta and the start.
    trials : int
        How many random instances.
    """
    rng = np.random.default_rng(4)

    def cases() -> Iterator[Case]:
        for i in range(trials):
            n, a, b = (int(rng.integers(*span)) for span in ((0, 40), (1, 40), (1, 40)))
            start = Fraction(1, 2) if i % 2 else Fraction(int(rng.integers(0, 11)), 10)
            back = count(n, "di", Fraction(a, b), start=start)
            instance = {"n": n, "eta": f"{a}/{b}", "start": str(start), "n'": back}
            yield instance, 0.0 - abs(float(back - claimed(n, Fraction(a, b), start)))

    return rule("minus the distance to the formula", cases())


@check("thm:unlearn/iii")
def check_theorem_4_iii(
    bound: Callable[[int, float], float] = bound_ce_sharp, update: str = "ce"
) -> Verdict:
    """Check the logarithmic bound of CE and MCE, strict recovery included.

    Parameters
    ----------
    bound : callable
        The bound on the strict count, a function of n and eta.
    update : str
        The update that is claimed to obey it.
    """
    starts = ("1/2", "0.9", "0.999") if update == "ce" else ("1/2",)
    etas = ("0.001", "0.01", "0.1", "1", "10", "1000") if update == "ce" else ("0.1", "1")
    shared: dict[str, Any] = {"upper": True, "update": update, "strict": True}
    ours = _cases(
        lambda n, eta, _: bound(n, float(eta)),
        (0, *SMALL_NS),
        etas=etas,
        starts=starts,
        **shared,
    )
    theirs = _cases(
        lambda n, eta, _: bound_ce(n, float(eta)),
        (3, 6),
        upper=True,
        etas=("1",),
        starts=("0.12", "1/20000"),
        update="ce",
    )
    return rule("bound - n'", ours, theirs)


@check("thm:unlearndecay/i")
def check_theorem_5_i(
    bound: Callable[[int], float] = bound_decaying_pg,
    update: str = "pg-sm",
    etas: Sequence[Number] = ETAS,
) -> Verdict:
    """Check the lower bound for PG-SM with decaying weights; at n = 0 it says 0 >= 1.

    Parameters
    ----------
    bound, update, etas :
        The lower bound on the count, and where it is checked.
    """
    shared: dict[str, Any] = {"update": update, "schedule": "inverse-sqrt"}
    starts = ("1/2", "0.9")
    ours = _cases(lambda n, *_: bound(n), SMALL_NS, etas=etas, starts=starts, **shared)
    none = _cases(lambda n, *_: bound(n), (0,), etas=("1",), **shared)
    low = _cases(lambda n, *_: bound(n), (2,), etas=("8.9",), starts=("1/20",), **shared)
    return rule("n' - (3n - 4 sqrt(n) + 1)", ours, chain(none, low))


@check("thm:unlearndecay/i/pg-es")
def check_theorem_5_i_escort(
    exponents: Sequence[Number] = (2, 3, 5), factor: str = "keep"
) -> Verdict:
    """Check the same bound for PG-ES: it holds for p >= 2 and fails for p < 2.

    Parameters
    ----------
    exponents, factor :
        The escort updates on which the bound is checked.
    """
    shared: dict[str, Any] = {"update": "pg-es", "schedule": "inverse-sqrt", "factor": factor}

    def cases(ps: Iterable[Number], etas: Iterable[Number], ns: Sequence[int]) -> Iterator[Case]:
        for p in ps:
            yield from _cases(lambda n, *_: bound_decaying_pg(n), ns, etas=etas, p=str(p), **shared)

    ours = cases(exponents, ("0.1", "1", "5"), (1, 2, 10, 100))
    theirs = cases(("3/2",), ("0.1", "1"), (10, 100, 1000))
    unit = "n' - (3n - 4 sqrt(n) + 1)"
    return rule(unit, ours, theirs, Status.FALSE)


@check("thm:unlearndecay/ii")
def check_theorem_5_ii(bound: Callable[[int, float], float] = bound_decaying_di) -> Verdict:
    """Check the upper bound for DI with decaying weights, from any start."""
    cases = _cases(
        lambda n, eta, _: bound(n, float(eta)),
        (0, *SMALL_NS),
        upper=True,
        starts=("0", "1/4", "1/2", "9/10", "1"),
        update="di",
        schedule="inverse-sqrt",
    )
    return rule("bound - n'", cases)


@check("thm:unlearndecay/iii")
def check_theorem_5_iii(
    bound: Callable[[int, float], float] = bound_decaying_ce_sharp,
) -> Verdict:
    """Check the upper bound for CE and MCE with decaying weights, strict recovery included."""
    shared: dict[str, Any] = {"upper": True, "update": "ce", "schedule": "inverse-sqrt"}
    ours = _cases(
        lambda n, eta, _: bound(n, float(eta)),
        (0, *SMALL_NS),
        starts=("1/2", "0.9"),
        strict=True,
        **shared,
    )
    theirs = _cases(
        lambda n, eta, _: bound_decaying_ce(n, float(eta)),
        (30,),
        etas=("1",),
        starts=("1/150",),
        **shared,
    )
    return rule("bound - n'", ours, theirs)


def _check_lemma(
    decay: Callable[[int], float],
    bound: Callable[[int, float], float],
    dip: float,
) -> Verdict:
    def ours() -> Iterator[Case]:
        for c in (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0):
            for n, largest in enumerate(worst_sequence(2000, c, decay)):
                if n:
                    yield {"c": c, "n": n, "largest X_n": largest}, bound(n, c) - largest

    last = dip + decay(1) * math.exp(-dip)
    row = {"c": 1.0, "X_0, X_1, X_2": f"0, {dip:g}, {last:.6f}", "bound": bound(2, 1.0)}
    return rule("bound - X_n", ours(), [(row, bound(2, 1.0) - last)], Status.FALSE)


@check("lem:Xn<")
def check_lemma_11(
    bound: Callable[[int, float], float] = bound_lemma_11, dip: float = -3.0
) -> Verdict:
    """Check Lemma 11 on the extremal non-negative sequence, and break it with a negative term.

    Parameters
    ----------
    bound : callable
        The bound on X_n, a function of n and c.
    dip : float
        X_1 of the sequence that is allowed to be negative.
    """
    return _check_lemma(lambda _: 1.0, bound, dip)


@check("lem:Xn<sqrt")
def check_lemma_12(
    bound: Callable[[int, float], float] = bound_lemma_12, dip: float = -3.0
) -> Verdict:
    """Check Lemma 12 in the same way as Lemma 11."""
    return _check_lemma(lambda k: 1 / math.sqrt(k + 1), bound, dip)


@check("lem:comparison")
def check_comparison(
    runs: Sequence[tuple[int, Number, str, str]] = (
        (20, "0.3", "pg-sm", "constant"),
        (20, "3", "pg-sm", "inverse-sqrt"),
        (20, "1", "pg-es", "constant"),
        (20, "5", "pg-es", "constant"),
        (20, "5", "pg-es", "inverse-sqrt"),
    ),
) -> Verdict:
    """Check the comparison lemma term by term: forward travel >= weight >= backward travel.

    Float arithmetic: the terms are compared to a relative accuracy of 1e-9, far above the rounding
    of their sum of at most a few hundred numbers.
    """
    cases: list[Case] = []
    for n, eta, update, schedule in runs:
        for row in comparison(n, eta, update, schedule):
            excess = row["travel time"] / row["weight"] - 1
            room = excess if row["phase"] == "forward" else -excess
            instance = {"update": update, "eta": str(eta), "schedule": schedule, "t": row["t"]}
            cases.append((instance, room + 1e-9))
    return rule("relative room", cases)
