"""The checks of the chapter on domino."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from pu_lib.chapters.domino.quantities import (
    amplitude,
    bound_ce_sharp,
    bound_di,
    bound_di_sharp,
    bound_lemma_13,
    bound_pg,
    bound_pg_sharp,
    chain_flips,
    domino,
    exact_di,
    linked_recursion,
    log_bound_ce,
    recursion,
    simulate,
    worst_sequence,
)
from pu_lib.chapters.unlearning.counting import LINKS, UNIFORM, Density, named
from pu_lib.domains import chain
from pu_lib.exact import Number, exact
from pu_lib.updates import PAPER, Update, as_update
from pu_lib.verdict import Verdict, Worst, check, judged

ETAS = ("0.05", "0.3", "1", "2.5", "8")
STARTS = ("1/20", "1/2", "9/10")

PROCESSES: tuple[tuple[str, Number, str], ...] = (
    ("pg-sm", 2, "keep"),
    ("di", 2, "keep"),
    ("ce", 2, "keep"),
    ("pg-es", 2, "keep"),
    ("pg-es", 3, "keep"),
    ("pg-es", 2, "drop"),
    ("pg-es", 4, "drop"),
)


def solve(
    worst: Worst,
    bound: Callable[[int, Fraction], float],
    states: Iterable[int],
    etas: Iterable[Number] = ETAS,
    *,
    upper: bool = False,
    **process: Any,
) -> None:
    """Note in `worst` how far the number of steps stays on its side of a bound.

    Parameters
    ----------
    worst : Worst
        Where to note it.
    bound : callable
        The bound, a function of the number of states and of eta.
    states, etas : iterables
        Numbers of states, and weights.
    upper : bool
        Whether the bound is one from above.
    **process
        What else `pu_lib.chapters.domino.quantities.domino` takes.
    """
    shown = {**process, "update": as_update(process["update"]).name}
    for eta, h in product(etas, states):
        steps, claimed = domino(h, eta=eta, **process), bound(h, exact(eta))
        room = claimed - steps if upper else steps - claimed
        worst.add(room, **shown, eta=str(eta), states=h, steps=steps, bound=float(claimed))


@check(
    "sec:domino/recursion",
    moved={
        "the count with <=, as in Theorem 4": {"strict": False},
        "among policy gradients alone the two counts give the same times": {
            "processes": (("pg-sm", 2, "keep"),),
        },
    },
    blind={
        "PG-ES with p = 3/2, too: no instance is known where a state flips back": {
            "processes": (*PROCESSES, ("pg-es", "3/2", "keep")),
        }
    },
)
def check_recursion(
    strict: bool = True,
    processes: Sequence[tuple[str | Update, Number, str]] = PROCESSES,
    etas: Sequence[Number] = ETAS,
) -> Verdict:
    """Check that the recursion gives the flip times of the simulation, for every state.

    PG-ES starts at the uniform policy, the others at three policies.

    Parameters
    ----------
    strict : bool
        Which recovery the recursion uses; the strict one is right.
    processes : sequence of (update, p, factor)
        The updates compared.
    etas : sequence
        The weights.
    """
    ours = Worst("minus the number of flip times that differ")
    printed = Worst("minus the number of flip times that differ")
    for (update, p, factor), eta, states, start in product(processes, etas, (1, 2, 3, 6), STARTS):
        if as_update(update).parametrization == "escort" and start != "1/2":
            continue
        direct = simulate(states, update, eta, p, factor, start=start)
        for worst, kind in ((ours, strict), (printed, False)):
            short = recursion(states, update, eta, p, factor, start=start, strict=kind)
            apart = sum(a != b for a, b in zip(direct, short, strict=True))
            row = {**named(update, p=p, factor=factor), "eta": eta, "states": states}
            worst.add(0.0 - apart, **row, start=start, n_1=direct[0], recursion=short[0])
    return judged(ours, printed)


@check(
    "thm:domino/i",
    moved={
        "2^h in place of 2^h - 1": {"bound": lambda h: 2**h},
        "3^(h-1)": {"bound": lambda h: 3 ** (h - 1)},
        "an increasing density": {"links": {"convex": lambda x: (1 + 9 * x) / 10}},
    },
    blind={"2^(h-1), as printed: a weaker bound": {"bound": bound_pg}},
)
def check_theorem_6_i(
    bound: Callable[[int], int] = bound_pg_sharp, links: Mapping[str, Density] | None = None
) -> Verdict:
    """Check 2^h - 1 <= n_1 for policy gradients of links that satisfy the three assumptions.

    The constant density attains it. A constant policy satisfies the assumptions as printed: the
    first update that would flip a state does nothing, and the setting is never solved.

    Parameters
    ----------
    bound : callable
        The lower bound, a function of the number of states.
    links : mapping, optional
        The densities F' of the policies; by default four that the assumptions allow, and the
        uniform one with a short step.
    """
    worst = Worst("the number of steps minus the bound")
    tried = [(name, link, eta) for name, link in (links or LINKS).items() for eta in ("0.3", "1")]
    if links is None:
        tried.append(("uniform", UNIFORM["uniform"], "1/1024"))
    for (name, density, eta), h in product(tried, (1, 2, 3, 5, 8)):
        steps = linked_recursion(h, eta, density)[0]
        row = {"link": name, "eta": eta, "states": h, "steps": steps, "bound": bound(h)}
        worst.add(steps - bound(h), **row)
    return judged(worst)


@check(
    "thm:domino/i/pg-sm",
    moved={
        "2^h in place of 2^h - 1": {"bound": lambda h: 2**h},
        "3^(h-1)": {"bound": lambda h: 3 ** (h - 1)},
        "CE in place of PG-SM": {"update": "ce"},
    },
    blind={"2^(h-1), as printed: a weaker bound": {"bound": bound_pg}},
)
def check_theorem_6_i_softmax(
    bound: Callable[[int], int] = bound_pg_sharp, update: str | Update = "pg-sm"
) -> Verdict:
    """Check 2^h - 1 <= n_1 for PG-SM from one half on, and that a lower start breaks it.

    Starts above one half are counted by the recursion.

    Parameters
    ----------
    bound, update :
        The lower bound, a function of the number of states, and the update that is to obey it.
    """
    ours, printed = (
        Worst("the number of steps minus the bound"),
        Worst("the number of steps minus the bound"),
    )
    solve(ours, lambda h, _: bound(h), (1, 2, 3, 5, 8, 11), ("0.001", *ETAS), update=update)
    tried = [(ours, bound, case) for case in product(("0.501", "3/4", "9/10"), ETAS, (1, 2, 3, 5))]
    for worst, claimed, (start, eta, h) in [*tried, (printed, bound_pg, ("1/20", "5", 3))]:
        steps = recursion(h, update, eta, start=start)[0]
        row = {"start": start, "eta": eta, "states": h, "steps": steps, "bound": claimed(h)}
        worst.add(steps - claimed(h), update=as_update(update).name, **row)
    return judged(ours, printed)


@check(
    "thm:domino/i/pg-es",
    moved={
        "only with p >= 2 and its factor": {
            "instances": (("2", "keep", "5", 7), ("3", "keep", "1", 7)),
        }
    },
)
def check_theorem_6_i_escort(
    instances: Sequence[tuple[Number, str, Number, int]] = (
        ("2", "drop", "5", 7),
        ("2", "drop", "5", 12),
        ("3/2", "keep", "1", 12),
    ),
) -> Verdict:
    """Check 2^(h-1) <= n_1 for escort updates that fail it.

    Parameters
    ----------
    instances : sequence of (p, factor, eta, number of states)
        Where to count.
    """
    worst = Worst("the number of steps minus $2^{h-1}$")
    for p, factor, eta, h in instances:
        process: dict[str, Any] = {"update": "pg-es", "p": p, "factor": factor}
        solve(worst, lambda h, _: bound_pg(h), (h,), (eta,), **process)
    return judged(worst)


@check(
    "book:pg-es-doubles",
    moved={
        "2^h in place of 2^h - 1": {"bound": lambda h: 2**h},
        "with the factor dropped": {"factor": "drop"},
        "p = 3/2, too": {"exponents": ("3/2",)},
    },
    blind={"2^(h-1), as printed: a weaker bound": {"bound": bound_pg}},
)
def check_escort_doubles(
    bound: Callable[[int], int] = bound_pg_sharp,
    factor: str = "keep",
    exponents: Sequence[Number] = (2, 3),
) -> Verdict:
    """Check 2^h - 1 <= n_1 for PG-ES, p >= 2, exact gradient, uniform start.

    Parameters
    ----------
    bound : callable
        The lower bound, a function of the number of states.
    factor : {"keep", "drop"}
        Whether the gradient's factor is kept (it must be).
    exponents : sequence
        The escort exponents.
    """
    worst = Worst("the number of steps minus the bound")
    etas = ("0.001", "0.3", "1", "2", "5")
    for p in exponents:
        process: dict[str, Any] = {"update": "pg-es", "p": p, "factor": factor}
        solve(worst, lambda h, _: bound(h), (1, 2, 3, 5, 7), etas, **process)
    return judged(worst)


@check(
    "thm:domino/ii",
    moved={
        "1 + (h-1)/eta, as printed": {"bound": bound_di},
        "the bound less one": {"bound": lambda h, eta: bound_di_sharp(h, eta) - 1},
        "the wall one step farther in the recursion": {
            "formula": lambda h, eta: exact_di(h, eta / 2)
        },
    },
    blind={
        "floor(2/eta) in place of floor(1/eta): a weaker bound": {
            "bound": lambda h, eta: 1 + (h - 1) * (math.floor(2 / eta) + 1)
        }
    },
)
def check_theorem_6_ii(
    bound: Callable[[int, Fraction], Fraction] = bound_di_sharp,
    formula: Callable[[int, Fraction], list[int]] = exact_di,
) -> Verdict:
    """Check DI's exact recursion and bound; the printed bound fails at two states already.

    Parameters
    ----------
    bound : callable
        The upper bound, a function of the number of states and of eta.
    formula : callable
        The flip times, a function of the same.
    """
    ours, printed = (
        Worst("the bound minus the number of steps"),
        Worst("the bound minus the number of steps"),
    )
    for eta, h in product(("0.05", "0.1", "0.3", "0.5", "0.7", "1", "2", "5"), (1, 2, 3, 5, 9, 21)):
        weight, times = exact(eta), simulate(h, "di", eta)
        row = {"eta": eta, "states": h, "steps": times[0]}
        apart = sum(a != b for a, b in zip(times, formula(h, weight), strict=True))
        ours.add(-apart if apart else float(bound(h, weight)) - times[0], **row)
        printed.add(float(bound_di(h, weight)) - times[0], **row)
    return judged(ours, printed)


@check(
    "thm:domino/iii",
    moved={
        "from two states on, as printed": {"first": 2},
        "PG-SM in place of CE": {"update": "pg-sm"},
        "a quarter of the bound": {"bound": lambda h, eta: bound_ce_sharp(h, eta) / 4},
    },
    blind={
        "twice the bound: it is not sharp": {"bound": lambda h, eta: 2 * bound_ce_sharp(h, eta)}
    },
)
def check_theorem_6_iii(
    bound: Callable[[int, float], float] = bound_ce_sharp,
    update: str | Update = "ce",
    first: int = 3,
) -> Verdict:
    """Check a bound for CE and MCE that holds for every h, and the printed one for h >= 3.

    Parameters
    ----------
    bound, update :
        The upper bound, a function of the number of states and of eta, and who is to obey it.
    first : int
        The number of states from which the printed bound is asked to hold.
    """
    ours, printed = (
        Worst("the bound minus the number of steps"),
        Worst("the bound minus the number of steps"),
    )
    wide = as_update(update) is as_update("ce")
    # another update need only be seen to fail
    etas: Sequence[Number] = ("0.01", "0.1", "1", "10", "100") if wide else ("1",)
    for eta, h in product(etas, (1, 2, 3, 5, 9, 20, 60) if wide else (8,)):
        steps, size = domino(h, update, eta), float(exact(eta))
        row = {"update": as_update(update).name, "eta": eta, "states": h, "steps": steps}
        ours.add(bound(h, size) - steps, **row)
        theirs = math.exp(min(700.0, log_bound_ce(h, size))) - steps
        (ours if h >= first else printed).add(theirs, **row)
    return judged(ours, printed if printed.count else None)


@check(
    "lem:XXn<",
    moved={
        "from n = 1 on": {"first": 1},
        "2n + 1": {"bound": lambda n, eta: 1 + 2 * n},
        "half of our bound": {"bound": lambda n, eta: bound_lemma_13(n, eta) / 2},
    },
    blind={
        "twice our bound: it is not sharp": {"bound": lambda n, eta: 2 * bound_lemma_13(n, eta)}
    },
)
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
    worst = Worst("the logarithm of a bound, the printed one or this book's, over $X_n$")
    for eta in (0.01, 0.1, 0.295, 1.0, 3.0, 20.0, 100.0):
        for n, largest in enumerate(worst_sequence(1500, eta)):
            row = {"eta": eta, "n": n, "largest X_n": largest}
            worst.add(math.log(bound(n, eta) / largest), **row)
            if n >= first:
                worst.add(log_bound_ce(n + 1, eta) - math.log(largest), **row)
    return judged(worst)


@check(
    "sec:domino/amplitude",
    moved={
        "2^h": {"claimed": lambda h: 2**h},
        "from pi_0(a_2) = 1/3": {"start": Fraction(1, 3)},
    },
)
def check_amplitude(
    claimed: Callable[[int], int] = lambda h: 2 ** (h - 1), start: Fraction = Fraction(1, 2)
) -> Verdict:
    """Check that the domino chain with a unit gap at s_1 has the reward 2^(h-1).

    The thresholds are computed backward from the last state by exact arithmetic, and the chain with
    them is asked in which direction every state is pushed when the next one stands just before and
    just after its start.

    Parameters
    ----------
    claimed : callable
        The amplitude, a function of the number of states.
    start : Fraction
        pi_0(a_2) at every state; the amplitude is 2^(h-1) for 1/2.
    """
    nudge = Fraction(1, 1000)
    worst = Worst("minus the distance of the rewards' amplitude from the one claimed")
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
        apart = abs(R - claimed(h)) + abs(R - r[0] - 1)
        worst.add(0.0 - float(apart) if turns else -1.0, states=h, R=str(R))
    return judged(worst)


@check(
    "sec:domino/order",
    moved={
        "three steps after the next state": {"gap": 3},
        "where the next state has almost converged to the other action": {"walks": 0.02},
    },
)
def check_order(gap: int = 1, walks: float = 0.4) -> Verdict:
    """Check that a state of the domino setting flips after the next one, and one of a chain before.

    On the chain with four states the values at the first are asked which action they prefer, while
    the second has not flipped.

    Parameters
    ----------
    gap : int
        The steps that are to lie between two flips.
    walks : float
        The probability of walking in the second state, at most one half.
    """
    ours = Worst("the number of steps between two flips minus the gap")
    printed = Worst("the value of jumping minus that of walking")
    for update, eta, h in product(PAPER, ETAS, (2, 4, 6)):
        times = simulate(h, update, eta)
        for k in range(h - 1):
            later = times[k + 1]
            room = math.inf if math.isinf(times[k]) else times[k] - later - gap
            ours.add(room, update=update, eta=eta, states=h, k=k + 1)
    policy = np.array([[0.5, 0.5], [1 - walks, walks], [0.0, 1.0], [0.5, 0.5]])
    jump, walk = chain(4).evaluate(policy).q[0]
    printed.add(jump - walk, process="chain of 4 states", **{"pi(a_2|s_1)": walks})
    return judged(ours, printed)


PAPER_RATES = {update: 10 if update == "pg-sm" else 1 for update in PAPER}
"""The rates of section 4.2."""


@check(
    "sec:domino/worse",
    moved={
        "at every rate: PG-SM at a thousandth of its own": {"rates": {"pg-sm": "0.01"}},
        "by a factor of 20 for DI": {"factor": 20, "rates": {"di": 1}},
    },
)
def check_worse(
    rates: Mapping[str, Number] | None = None,
    sizes: Sequence[int] = (4, 6, 9),
    factor: float = 1.0,
) -> Verdict:
    """Check that true updates flip the chain in fewer steps than the domino setting takes.

    Parameters
    ----------
    rates : mapping, optional
        The updates and their rates; those of section 4.2, if not given.
    sizes : sequence of int
        Numbers of states in which to decide.
    factor : float
        How many times as many steps the domino setting is to take.
    """
    worst = Worst("the number of steps of the domino setting minus one more than that of the chain")
    for (update, eta), h in product((rates or PAPER_RATES).items(), sizes):
        imagined, real = domino(h, update, eta), max(chain_flips(h, update, float(exact(eta))))
        row = {"update": update, "states": h, "domino": imagined, "chain": real}
        worst.add(imagined - factor * real - 1, **row)
    return judged(worst)


@check(
    "lem:XXn</proof",
    moved={
        "at the rate 1 alone, where the two constants agree": {"etas": (1.0,)},
        "the bound with exp(-2 eta) in place of exp(2 eta)": {"sign": -1.0},
    },
)
def check_lemma_13_constants(
    etas: Sequence[float] = (0.1, 0.5, 1.0, 2.0, 5.0), sign: float = 1.0
) -> Verdict:
    """Check the equation for z, as printed and with the eta cancelled, and the bound after it.

    Parameters
    ----------
    etas : sequence of float
        The weights.
    sign : float
        Of the exponent in the bound on X_n.
    """
    ours, printed = Worst("the room"), Worst("1e-9 less the relative error of the equation for z")
    for eta in etas:
        sequence = worst_sequence(1000, eta)
        for n in (8, 20, 100, 1000):
            eps = 1 / math.log(n)
            y = sequence[n]
            grow = math.exp(2 * eta * eps) / eps
            slope = grow / eta * (1 + 2 * eta * y) ** eps
            where = {"eta": eta, "n": n}
            ratio = _slope_through_z(y, eta, eps, 2 * grow) / slope
            as_printed = _slope_through_z(y, eta, eps, 2 * grow / eta) / slope
            ours.add(1e-9 - abs(ratio - 1), part="equation for z", **where)
            printed.add(1e-9 - abs(as_printed - 1), **where)
            inner = (1 + 2 * eta) ** (1 - eps) + 2 * math.exp(sign * 2 * eta) / (eta * eps) * n
            bound = inner ** (1 / (1 - eps)) / (2 * eta)
            ours.add(math.log(bound / y), part="log(bound / X_n)", **where)
    return judged(ours, printed)


def _slope_through_z(y: float, eta: float, eps: float, rate: float) -> float:
    """Return y' where z = 1 + 2 eta y solves z' = rate z^eps: the solution, differentiated."""
    step = 1e-30j  # of an analytic function an imaginary step gives the derivative without loss
    ahead = ((1 + 2 * eta * y) ** (1 - eps) + rate * (1 - eps) * step) ** (1 / (1 - eps))
    return float(ahead.imag / step.imag / (2 * eta))
