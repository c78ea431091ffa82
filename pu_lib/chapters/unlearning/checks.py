"""The checks of the chapter on unlearning.

Lower and upper bounds are compared with exact counts; every margin is the room that a count leaves
to the bound, in updates. The part on decaying weights, and the lemmas, stand in
`pu_lib.chapters.unlearning.checks_decaying`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from pu_lib import kernels
from pu_lib.chapters.unlearning import bounds
from pu_lib.chapters.unlearning import checks_decaying as unlearning_decaying
from pu_lib.chapters.unlearning import checks_remarks as unlearning_remarks
from pu_lib.chapters.unlearning.counting import CONVEX, LINKS, SMALL_NS, UNIFORM, Density, compare
from pu_lib.chapters.unlearning.quantities import (
    count,
    counts,
    escape_ratio,
    linked_count,
)
from pu_lib.exact import Number, exact
from pu_lib.updates import Update, as_update
from pu_lib.verdict import Verdict, Worst, check, judged

__all__ = ["unlearning_decaying", "unlearning_remarks"]

# The introduction


@check(
    "sec:intro/unlearning",
    moved={
        "n + 1 in place of n": {"claimed": lambda n: n + 1},
        "ten actions are still few": {"few": 10},
    },
    blind={"up to eight actions are few: nine are, too": {"few": 8}},
)
def check_intro(claimed: Callable[[int], float] = lambda n: n, few: int = 9) -> Verdict:
    """Check that undoing n PG-SM updates takes n, with more than two actions.

    With q = (1, 0, ..., 0), then its opposite, the other K - 1 actions stay equally likely, and the
    first one moves exactly as with two actions, start 1/K and weight eta K / (2(K - 1)).

    Parameters
    ----------
    claimed : callable
        The lower bound on n', a function of n.
    few : int
        The largest number of actions with which it is to hold.
    """
    ours, printed = Worst("n' minus the bound", keep=12), Worst("n' minus the bound", keep=12)
    etas = ("0.1", "0.14", "0.25", "0.5", "1", "1.25", "2", "5")
    for actions, eta in product(range(2, 13), etas):
        weight = exact(eta) * Fraction(actions, 2 * (actions - 1))
        ns = (1, 2, 3, 5, 10, 30, 79)
        for n, back in zip(
            ns, counts(ns, "pg-sm", weight, start=Fraction(1, actions)), strict=True
        ):
            worst = ours if actions <= few else printed
            worst.add(back - claimed(n), actions=actions, eta=eta, n=n, **{"n'": back})
    return judged(ours, printed)


@check(
    "sec:intro/unlearning/threshold",
    moved={
        "a deficit of 0.9 is enough": {"needed": 0.9},
        "a deficit of 1.1 is needed": {"needed": 1.1},
    },
)
def check_threshold(needed: float = 1.0, eta: Number = "0.02") -> Verdict:
    """Check that short steps gain on n exactly from ten actions on, where log(K^2/4(K-1)) > 1.

    With a small weight, n' - n at the n at which the first action passes one half is minus the
    integer part of that logarithm.

    Parameters
    ----------
    needed : float
        The deficit from which fewer than n updates are enough.
    eta : int, Fraction, str or float
        The weight; the smaller, the nearer n' - n is to its limit.
    """
    worst = Worst("minus the distance of the number saved from the integer part")
    for actions in range(3, 16):
        start, deficit = Fraction(1, actions), bounds.small_step_deficit(actions)
        # travel time from the log-odds of 1/K to 0, in steps
        log_odds = math.log(actions - 1)
        n = round((log_odds + math.sinh(log_odds)) / float(exact(eta)))
        gained = n - int(count(n, "pg-sm", eta, start=start))
        predicted = math.floor(deficit / needed)
        right = gained == predicted
        worst.add(
            0.0 if right else -abs(gained - predicted),
            actions=actions,
            n=n,
            deficit=deficit,
            **{"n - n'": gained},
        )
    return judged(worst)


# Theorem 4


@check(
    "thm:unlearn/i",
    moved={
        "n + 1 in place of n (a constant density attains n)": {"extra": 1},
        "without concavity": {"links": CONVEX},
    },
)
@check(
    "thm:unlearndecay/i",
    moved={
        "3n in place of 3n - 4 sqrt(n) + 1": {"claimed": lambda n: 3 * n},
        "without concavity": {"links": {"convex": lambda x: (1 + 9 * x) / 10}},
    },
    blind={
        "3n - 3 sqrt(n): of the order of the remainder": {"claimed": lambda n: 3 * n - 3 * n**0.5}
    },
    schedule="inverse-sqrt",
    claimed=bounds.bound_decaying_pg,
)
def check_generic(
    links: Mapping[str, Density] | None = None,
    extra: int = 0,
    schedule: str = "constant",
    claimed: Callable[[int], float] = lambda n: n,
) -> Verdict:
    """Check the lower bound of the generic policy gradient under its three assumptions.

    A constant policy satisfies them as printed, and has n' = 0; a constant density attains the
    bound n' >= n.

    Parameters
    ----------
    links : mapping, optional
        The densities F' of the policies to try; by default four that the assumptions allow.
    extra : int
        Added to the bound.
    schedule : {"constant", "inverse-sqrt"}
        The weights.
    claimed : callable
        The bound, a function of n.
    """
    ours, printed = Worst("n' minus the bound"), Worst("n' minus the bound")
    chosen = LINKS if links is None else links

    def note(worst: Worst, name: str, density: Density, eta: str, n: int) -> None:
        back = linked_count(n, eta, density, schedule)
        worst.add(back - claimed(n) - extra, link=name, eta=eta, n=n, **{"n'": back})

    for (name, density), eta, n in product(chosen.items(), ("0.1", "1", "3"), (1, 2, 5, 20, 50)):
        note(ours, name, density, eta, n)
    for n in (1, 2, 5, 20) if links is None else ():
        note(ours, "uniform", UNIFORM["uniform"], "1/64", n)
    for n in (1, 10):
        note(printed, "constant policy", lambda x: 0 * x, "1", n)
    return judged(ours, printed)


@check(
    "thm:unlearn/i/pg-sm",
    moved={
        "n + 2 in place of n + 1": {"extra": 2},
        "n, but from pi_0(a_1) = 1/20": {"extra": 0, "starts": ("1/20",)},
        "CE in place of PG-SM": {"update": "ce"},
    },
    blind={"n in place of n + 1: a weaker bound": {"extra": 0}},
)
def check_theorem_4_i_softmax(
    extra: int = 1,
    starts: Sequence[Number] = ("1/2", "3/4", "0.99"),
    update: str | Update = "pg-sm",
) -> Verdict:
    """Check n' >= n + 1 for PG-SM from pi_0(a_1) >= 1/2, and that n' >= n can fail below.

    Parameters
    ----------
    extra : int
        The claim checked is n' >= n + extra.
    starts : sequence
        The starts that the corrected statement covers.
    update : str or Update
        The update that is to obey it.
    """
    ours, printed = Worst(f"n' minus n + {extra}"), Worst("n' minus n")
    compare(ours, lambda n, *_: n + extra, SMALL_NS, update=update, starts=starts)
    compare(printed, lambda n, *_: n, (2, 3, 10), update=update, etas=("5",), starts=("1/20",))
    return judged(ours, printed)


Instance = tuple[Number, str, Number, int, Number]

VARIANTS: tuple[Instance, ...] = (
    ("3/2", "keep", "0.1", 2000, "1/2"),
    ("1.9", "keep", "1", 100, "1/2"),
    ("1", "keep", "3", 2, "1/2"),
    ("2", "keep", "1.8", 10, Fraction(10000, 10001)),  # theta_0 proportional to (1, 0.01)
)
"""Escort updates (p, factor, eta, n, start) that unlearn faster than they learnt."""

RETRACING: tuple[Instance, ...] = (
    ("2", "keep", "0.1", 100, "1/2"),
    ("2", "keep", "1.8", 10, "1/2"),
    ("3", "keep", "3", 50, "1/2"),
)


@check(
    "thm:unlearn/i/pg-es",
    moved={"only with p >= 2 and the uniform start": {"instances": RETRACING}},
)
@check(
    "app:unlearning/pg-es-dropped",
    moved={"only with short steps": {"instances": (("2", "drop", "0.5", 100, "1/2"),)}},
    instances=(("2", "drop", "5", 10, "1/2"), ("2", "drop", "8", 100, "1/2")),
)
def check_escort(instances: Sequence[Instance] = VARIANTS) -> Verdict:
    """Check n' >= n for escort updates.

    Parameters
    ----------
    instances : sequence of (p, factor, eta, n, start)
        Where to count.
    """
    worst = Worst("n' minus n")
    for p, factor, eta, n, start in instances:
        process: dict[str, Any] = {"p": p, "factor": factor, "starts": (start,)}
        compare(worst, lambda n, *_: n, (n,), etas=(eta,), update="pg-es", **process)
    return judged(worst)


@check(
    "book:pg-es-retraces",
    moved={
        "n + 2 in place of n + 1": {"extra": 2},
        "p = 1.9, too": {"exponents": ("1.9",)},
        "p = 3/2, too": {"exponents": ("1.5",)},
        "p = 2 with the factor dropped": {"exponents": (2,), "factor": "drop"},
        "from pi_0(a_1) = 10000/10001, too": {"starts": (Fraction(10000, 10001),)},
    },
    blind={
        "n, with p = 3 and the factor dropped: no instance is known that fails": {
            "exponents": (3,),
            "factor": "drop",
            "extra": 0,
        }
    },
)
def check_escort_retraces(
    extra: int = 1,
    exponents: Sequence[Number] = (2, "2.5", 3, 5),
    factor: str = "keep",
    starts: Sequence[Number] = ("1/2",),
) -> Verdict:
    r"""Check n' >= n + 1 for PG-ES, p >= 2, exact gradient, uniform start, every eta.

    At :math:`\eta = 4/p` the first update sets :math:`\theta_2` to zero and the count is infinite.

    Parameters
    ----------
    extra, exponents, factor, starts :
        The claim checked, n' >= n + extra, and the escort updates it is checked on.
    """
    worst = Worst(f"n' minus n + {extra}")
    ns, etas = (1, 2, 3, 10, 50, 100), ("0.05", "0.5", "1.5", "1.8", "3", "5", "20")
    for p in exponents:
        dead = (4 / exact(p),) if factor == "keep" else ()
        process: dict[str, Any] = {"update": "pg-es", "p": p, "factor": factor}
        compare(worst, lambda n, *_: n + extra, ns, etas=(*etas, *dead), starts=starts, **process)
    return judged(worst)


@check(
    "book:pg-es-window",
    moved={
        "inside and outside of the window exchanged": {"sign_of_limit": -1},
        "the window ends at 13": {"end": 13.0},
    },
    blind={"the window ends at 11.5: no weight tried lies between": {"end": 11.5}},
)
def check_window(tolerance: float = 0.01, sign_of_limit: int = 1, end: float = 11.06) -> Verdict:
    r"""Check the window where PG-ES, p = 2, factor dropped, unlearns faster than it learnt.

    The count over n = 2000 updates is compared with the limit of :math:`n'/n` (`escape_ratio`):
    below 1 for :math:`2 < \eta/\|\theta_0\| < 11.06`, above 1 for smaller and for larger weights.

    Parameters
    ----------
    tolerance : float
        Allowed between the ratio at n = 2000 and its limit; the remainder is O(1/n).
    sign_of_limit : {1, -1}
        With -1 inside and outside are exchanged, which is wrong.
    end : float
        Where the window ends.
    """
    n, norm = 2000, math.sqrt(2)
    worst = Worst(f"{tolerance:g} minus the distance to the limit", keep=13)
    for x in (0.1, 0.5, 1.0, 1.3, 1.9, 2.2, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0, 25.0):
        eta, side = Fraction(x * norm).limit_denominator(1000), -1 if 2.0 < x < end else 1
        kappa, limit = escape_ratio(eta)
        ratio = count(n, "pg-es", eta, factor="drop") / n
        right_side = sign_of_limit * side * (limit - 1) > 0
        margin = tolerance - abs(ratio - limit) if right_side else -abs(limit - 1)
        worst.add(margin, **{"eta / |theta_0|": x, "kappa": kappa, "limit": limit, "n'/n": ratio})
    return judged(worst)


@check(
    "thm:unlearn/ii",
    moved={
        "the integer part of 1/eta": {
            "claimed": lambda n, eta, x: min(n, math.floor(2 * (1 - x) / eta))
        },
        "1/eta from every start, as printed": {
            "claimed": lambda n, eta, x: bounds.bound_di(n, eta)
        },
        "half the weight a step": {"claimed": lambda n, eta, x: bounds.bound_di(n, eta / 2, x)},
    },
)
def check_theorem_4_ii(
    claimed: Callable[[int, Fraction, Fraction], int] = bounds.bound_di, trials: int = 400
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
    unit = "minus the distance to the formula"
    ours, printed = Worst(unit), Worst(unit)
    for _ in range(trials):
        n, a, b = (int(rng.integers(*span)) for span in ((0, 40), (1, 40), (1, 40)))
        eta = Fraction(a, b)
        for start in (Fraction(1, 2), Fraction(int(rng.integers(0, 11)), 10)):
            back = count(n, "di", eta, start=start)
            where = {"n": n, "eta": str(eta), "start": str(start), "n'": back}
            ours.add(0.0 - abs(back - claimed(n, eta, start)), **where)
            printed.add(0.0 - abs(back - bounds.bound_di(n, eta)), **where)
    return judged(ours, printed)


@check(
    "thm:unlearn/iii",
    moved={
        "PG-SM in place of CE": {"update": "pg-sm"},
        "half the logarithm": {"bound": lambda n, eta: 1 + bounds.bound_ce_sharp(n, eta) / 2},
    },
    blind={
        "n in place of n - 1, as printed: a weaker bound": {"bound": bounds.bound_ce},
        "1 in place of 2: no instance is known that needs the 2": {
            "bound": lambda n, eta: bounds.bound_ce_sharp(n, eta) - 1
        },
    },
)
def check_theorem_4_iii(
    bound: Callable[[int, float], float] = bounds.bound_ce_sharp, update: str | Update = "ce"
) -> Verdict:
    """Check the logarithmic bound of CE and MCE, strict recovery included.

    Parameters
    ----------
    bound : callable
        The bound on the strict count, a function of n and eta.
    update : str or Update
        The update that is to obey it.
    """
    ours, printed = Worst("the bound minus n'"), Worst("the bound minus n'")
    wide = as_update(update) is as_update("ce")
    # another update need only be seen to fail, and may take long at an extreme weight
    starts = ("1/2", "0.9", "0.999") if wide else ("1/2",)
    etas = ("0.001", "0.01", "0.1", "0.7", "1", "10", "1000") if wide else ("0.1", "1")
    shared: dict[str, Any] = {"upper": True, "update": update}
    compare(
        ours,
        lambda n, eta, _: bound(n, float(eta)),
        (0, *SMALL_NS),
        etas=etas,
        starts=starts,
        strict=True,
        **shared,
    )
    printed_starts = ("0.12", "1/20000") if wide else ()
    compare(
        printed,
        lambda n, eta, _: bounds.bound_ce(n, float(eta)),
        (3, 6),
        etas=("1",),
        starts=printed_starts,
        **shared,
    )
    return judged(ours, printed)


@check(
    "sec:symmetry/asymptotic",
    moved={
        "PG-SM in place of CE": {"logarithmic": "pg-sm"},
        "CE in place of DI": {"bounded": "ce"},
        "a logarithm twice as large from below": {"factor": 2.1},
    },
)
def check_asymptotic(
    bounded: str | Update = "di", logarithmic: str | Update = "ce", factor: float = 1.0
) -> Verdict:
    r"""Check that DI's count is bounded in n and that of CE and MCE is logarithmic, not less.

    From one half, CE's log-odds after n updates are at least :math:`\log(1+\eta n)`, and no
    backward step is longer than :math:`2\eta`.

    Parameters
    ----------
    bounded, logarithmic : str or Update
        The updates that are to behave so.
    factor : float
        Multiplies the lower bound on the logarithmic count.
    """
    worst, ns = Worst("room to the bounds"), (1, 3, 10, 100, 1000, 3000)
    etas = ("0.05", "0.5", "1", "3")
    compare(
        worst,
        lambda n, eta, x: math.ceil(2 * (1 - x) / eta),
        ns,
        upper=True,
        etas=etas,
        update=bounded,
    )
    compare(
        worst,
        lambda n, eta, _: bounds.bound_ce_sharp(n, float(eta)),
        ns,
        upper=True,
        etas=etas,
        update=logarithmic,
    )
    compare(
        worst,
        lambda n, eta, _: factor * bounds.bound_ce_below(n, float(eta)),
        ns,
        etas=etas,
        update=logarithmic,
    )
    return judged(worst)


@check(
    "app:unlearning/di-one-step",
    moved={"with half of the sum": {"share": Fraction(1, 2)}},
)
def check_direct_in_one(share: Fraction = Fraction(1)) -> Verdict:
    """Check that n updates of DI with fixed values equal one with the sum of their weights.

    Two actions and q = (1, 0), rationals: random starts and weights, the wall included.

    Parameters
    ----------
    share : Fraction
        The part of the sum that is taken at once.
    """
    rng, q = np.random.default_rng(8), [Fraction(1), Fraction(0)]
    worst = Worst("minus the distance of the two policies")
    for _ in range(300):
        start = Fraction(int(rng.integers(0, 21)), 20)
        weights = [Fraction(int(k), 12) for k in rng.integers(1, 12, int(rng.integers(1, 9)))]
        slowly, at_once = [start, 1 - start], [start, 1 - start]
        for weight in weights:
            kernels.di(slowly, slowly, q, 0, weight, 2)
        kernels.di(at_once, at_once, q, 0, share * sum(weights), 2)
        worst.add(0.0 - float(abs(slowly[0] - at_once[0])), start=str(start), n=len(weights))
    return judged(worst)
