"""The checks of the chapter on domino."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from pu_lib.checks.unlearning import Case, rule
from pu_lib.exact import Number, exact
from pu_lib.theory.domino import (
    amplitude,
    bound_ce_sharp,
    bound_di,
    bound_di_sharp,
    bound_lemma_13,
    bound_pg,
    bound_pg_sharp,
    domino,
    exact_di,
    log_bound_ce,
    recursion,
    simulate,
    worst_sequence,
)
from pu_lib.verdict import Status, Verdict, check

ETAS = ("0.05", "0.3", "1", "2.5", "8")


@check("sec:domino/recursion")
def check_recursion(
    strict: bool = True,
    processes: Sequence[tuple[str, Number, str]] = (
        ("pg-sm", 2, "keep"),
        ("di", 2, "keep"),
        ("ce", 2, "keep"),
        ("pg-es", 2, "keep"),
        ("pg-es", 3, "keep"),
        ("pg-es", 2, "drop"),
        ("pg-es", 4, "drop"),
    ),
) -> Verdict:
    """Check that the recursion gives the flip times of the simulation, for every state.

    Parameters
    ----------
    strict : bool
        Which recovery the recursion uses; the strict one is right.
    processes : sequence of (update, p, factor)
        The updates compared.
    """

    def cases() -> Iterator[Case]:
        for (update, p, factor), eta, states in product(processes, ETAS, (1, 2, 3, 6)):
            direct = simulate(states, update, eta, p, factor)
            short = recursion(states, update, eta, p, factor, strict=strict)
            apart = sum(a != b for a, b in zip(direct, short, strict=True))
            row = {"update": update, "p": str(p), "factor": factor, "eta": eta, "states": states}
            yield {**row, "n_1": direct[0], "recursion": short[0]}, 0.0 - apart

    return rule("minus the number of flip times that differ", cases())


def _solved(
    bound: Callable[[int, Fraction], float],
    states: Iterable[int],
    etas: Iterable[Number] = ETAS,
    *,
    upper: bool = False,
    **process: Any,
) -> Iterator[Case]:
    for eta, h in product(etas, states):
        steps = domino(h, eta=eta, **process)
        room = steps - bound(h, exact(eta))
        row = {**process, "eta": str(eta), "states": h, "steps": steps}
        yield row, float(-room if upper else room)


@check("thm:domino/i")
def check_theorem_6_i(
    bound: Callable[[int], int] = bound_pg_sharp, update: str = "pg-sm"
) -> Verdict:
    """Check 2^h - 1 <= n_1 for PG-SM from the uniform start, and that a lower start breaks it.

    Parameters
    ----------
    bound, update :
        The lower bound, a function of the number of states, and the update that is to obey it.
    """
    ours = _solved(lambda h, _: bound(h), (1, 2, 3, 5, 8, 11), update=update)

    def low() -> Iterator[Case]:
        steps = recursion(3, "pg-sm", 5, start="1/20")[0]
        row = {"update": "pg-sm", "start": "1/20", "eta": "5", "states": 3, "steps": steps}
        yield row, float(steps - bound_pg(3))

    unit = "steps - (2^h - 1)"
    return rule(unit, ours, low() if update == "pg-sm" else ())


@check("thm:domino/i/pg-es")
def check_theorem_6_i_escort(
    bound: Callable[[int], int] = bound_pg_sharp, factor: str = "keep"
) -> Verdict:
    """Check 2^h - 1 <= n_1 for PG-ES, p >= 2, exact gradient; and the variants that fail.

    Parameters
    ----------
    bound, factor :
        The lower bound, and whether the gradient's factor is kept (it must be).
    """
    states = (1, 2, 3, 5, 7)
    shared: dict[str, Any] = {"update": "pg-es", "factor": factor}

    def ours() -> Iterator[Case]:
        for p in ("2", "3"):
            yield from _solved(lambda h, _: bound(h), states, ("0.3", "1", "2", "5"), p=p, **shared)

    def theirs() -> Iterator[Case]:
        for p, kind, eta, h in (
            ("2", "drop", "5", 7),
            ("2", "drop", "5", 12),
            ("3/2", "keep", "1", 12),
        ):
            process: dict[str, Any] = {"update": "pg-es", "p": p, "factor": kind}
            yield from _solved(lambda h, _: bound_pg(h), (h,), (eta,), **process)

    unit = "steps - bound"
    return rule(unit, ours(), theirs(), Status.FALSE)


@check("thm:domino/ii")
def check_theorem_6_ii(
    bound: Callable[[int, Fraction], Fraction] = bound_di_sharp,
) -> Verdict:
    """Check DI's exact recursion and bound; the printed bound fails at two states already.

    Parameters
    ----------
    bound : callable
        The upper bound, a function of the number of states and of eta.
    """
    etas = ("0.05", "0.1", "0.3", "0.5", "0.7", "1", "2", "5")

    def ours() -> Iterator[Case]:
        for eta, h in product(etas, (1, 2, 3, 5, 9, 21)):
            weight, steps = exact(eta), domino(h, "di", eta)
            wrong = steps != exact_di(h, weight)[0]
            row = {"eta": eta, "states": h, "steps": steps}
            yield row, -1.0 if wrong else float(bound(h, weight) - steps)

    theirs = _solved(
        lambda h, eta: float(bound_di(h, eta)), (2, 3, 21), etas, upper=True, update="di"
    )
    return rule("bound - steps", ours(), theirs, Status.FALSE)


@check("thm:domino/iii")
def check_theorem_6_iii(
    bound: Callable[[int, float], float] = bound_ce_sharp, update: str = "ce"
) -> Verdict:
    """Check a bound for CE and MCE that holds for every h, and the printed one for h >= 3.

    Parameters
    ----------
    bound, update :
        The upper bound, a function of the number of states and of eta, and who is to obey it.
    """
    etas: Sequence[Number] = ("0.01", "0.1", "1", "10", "100") if update == "ce" else ("1",)
    states = (1, 2, 3, 5, 9, 20, 60) if update == "ce" else (8,)

    def ours() -> Iterator[Case]:
        for eta, h in product(etas, states):
            steps = domino(h, update, eta)
            rooms = [bound(h, float(exact(eta))) - steps]
            if h >= 3:
                rooms.append(log_bound_ce(h, float(exact(eta))) - math.log(steps))
            yield {"update": update, "eta": eta, "states": h, "steps": steps}, min(rooms)

    theirs = [
        ({"eta": "1", "states": 2, "steps": steps, "printed bound": 0}, 0.0 - steps)
        for steps in [domino(2, "ce", 1)]
    ]
    return rule("bound - steps", ours(), theirs, Status.FALSE)


@check("lem:XXn<")
def check_lemma_13(
    first: int = 2, bound: Callable[[int, float], float] = bound_lemma_13
) -> Verdict:
    """Check the printed bound (in logarithms) from n = first on, and ours from n = 0 on.

    Parameters
    ----------
    first : int
        The first n at which the printed bound is asked to hold; it fails at 0 and 1.
    bound : callable
        The sharper bound, a function of n and eta.
    """

    def cases() -> Iterator[Case]:
        for eta in (0.01, 0.1, 0.295, 1.0, 3.0, 20.0, 100.0):
            for n, largest in enumerate(worst_sequence(1500, eta)):
                rooms = [math.log(bound(n, eta) / largest)]
                if n >= first:
                    rooms.append(log_bound_ce(n + 1, eta) - math.log(largest))
                yield {"eta": eta, "n": n, "largest X_n": largest}, min(rooms)

    return rule("log(bound / X_n)", cases())


@check("sec:domino/amplitude")
def check_amplitude(start: Fraction = Fraction(1, 2)) -> Verdict:
    """Check that the domino chain with a unit gap at s_1 needs the reward 2^(h-1).

    The thresholds are computed backward from the last state by exact arithmetic, and the chain with
    them is asked in which direction every state is pushed when the next one stands just before and
    just after its start.

    Parameters
    ----------
    start : Fraction
        pi_0(a_2) at every state; the amplitude is 2^(h-1) for 1/2.
    """

    def cases() -> Iterator[Case]:
        nudge = Fraction(1, 1000)
        for h in range(1, 21):
            R = amplitude(h, start)
            r = [Fraction(0)]
            while len(r) < h:
                r.insert(0, (1 - start) * r[0] + start * R)
            # q(s_k, a_2) is the value of s_{k+1}, whose own a_2 leads to R by then
            turns = all(
                (1 - x) * r[k + 1] + x * R > r[k] if later else (1 - x) * r[k + 1] + x * R < r[k]
                for k in range(h - 1)
                for later, x in ((True, start + nudge), (False, start - nudge))
            )
            apart = abs(R - 2 ** (h - 1)) + abs(R - r[0] - 1)
            yield {"states": h, "R": str(R)}, -1.0 if not turns else 0.0 - float(apart)

    return rule("minus the distance of R to 2^(h-1)", cases())
