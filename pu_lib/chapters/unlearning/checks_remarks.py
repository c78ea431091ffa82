"""The checks of the chapter on unlearning: remarks on the causes, and steps of the proofs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pu_lib.chapters.unlearning import bounds
from pu_lib.chapters.unlearning.counting import CONVEX, ETAS, LINKS, UNIFORM, Density
from pu_lib.chapters.unlearning.quantities import count, counts, linked_count
from pu_lib.exact import Number
from pu_lib.updates import Update, as_update
from pu_lib.verdict import Verdict, Worst, check, judged


@check(
    "sec:symmetry/cause",
    moved={
        "symmetric updates alone whose step does not grow": {"growing": {}, "exponents": ()},
        "symmetric updates are slow, growing steps too": {"links": CONVEX},
        "PG-SM is asymmetric, and fast": {"asymmetric": ("pg-sm",)},
        "CE is symmetric": {"symmetric": ("ce",)},
    },
)
def check_cause(
    links: Mapping[str, Density] | None = None,
    growing: Mapping[str, Density] = CONVEX,
    exponents: Sequence[Number] = ("3/2",),
    symmetric: Sequence[str | Update] = ("pg-sm", "pg-es"),
    asymmetric: Sequence[str | Update] = ("di", "ce", "mce"),
) -> Verdict:
    r"""Check that a symmetric update is slow if its step does not grow, and an asymmetric one fast.

    The steps of policy gradients for q and -q cancel. Where they do not grow with
    :math:`\pi(a_1)`, :math:`n' \ge n`; a constant step, what is left of CE and MCE once they are
    made symmetric, attains n. DI, CE and MCE need fewer. With steps that grow, or PG-ES with p < 2,
    a symmetric update needs fewer, too.

    Parameters
    ----------
    links : mapping, optional
        Densities of symmetric updates that are to need n updates; by default those that do not
        grow.
    growing : mapping
        Densities that grow: symmetry alone is to be enough there, as printed.
    exponents : sequence
        Escort exponents where symmetry alone is to be enough, as printed.
    symmetric, asymmetric : sequence of str or Update
        The updates whose steps for q and -q cancel, and those that are to need fewer than n.
    """
    ours, printed = Worst("the room"), Worst("n' minus n")
    rng = np.random.default_rng(3)
    for update in map(as_update, symmetric):
        for _ in range(50):
            theta, q = update.parameters(rng.dirichlet([2.0, 2.0])), rng.normal(size=2)
            both = sum(update.step(theta, sign * q) - theta for sign in (1, -1))
            ours.add(1e-12 - float(np.abs(both).max()), part=f"{update.name}: steps for q and -q")
    for name, density in (LINKS | UNIFORM if links is None else links).items():
        # the uniform density is one up to |x| = 2 only
        for eta in ("1/64",) if name in UNIFORM else ("0.1", "1"):
            ours.add(linked_count(20, eta, density) - 20, part=f"{name}: n' - 20", eta=eta)
    for update in map(as_update, asymmetric):
        for eta in ("0.1", "1", "5"):
            ours.add(99 - count(100, update, eta), part=f"{update.name}: n - 1 - n'", eta=eta)
    for name, density in growing.items():
        printed.add(linked_count(20, "1", density) - 20, part=name, eta="1", n=20)
    for p in exponents:
        printed.add(count(100, "pg-es", "1", p=p) - 100, part=f"PG-ES, p = {p}", eta="1", n=100)
    return judged(ours, printed if printed.count else None)


@check(
    "sec:symmetry/concavity",
    moved={
        "p = 2 in place of p = 1, where it does": {"p": 2.0},
        "softmax from pi(a_1) = 1/4 on": {"start": 0.25},
    },
)
def check_shrinks(p: float = 1.0, start: float = 0.5) -> Verdict:
    r"""Check whether the gradient of a policy diminishes as :math:`\pi(a_1)` grows to 1.

    Softmax's does from one half on. The escort policy with p = 1 is a map from
    :math:`\mathbb R^2` to [0, 1], too, and reaches 1 at a finite parameter: at
    :math:`\theta = (x, 1 - x)` its gradient grows as x goes to 1.

    Parameters
    ----------
    p : float
        The escort exponent, at least 1.
    start : float
        The :math:`\pi(a_1)` from which the gradients are followed; escort parameters have norm 1.
    """
    unit = "the length of the gradient before a step minus that after"
    ours, printed = Worst(unit), Worst(unit)
    pi = np.linspace(start, 1.0, 201)
    _fall(ours, pi, math.sqrt(2.0) * pi * (1.0 - pi), policy="softmax")
    components = np.array([bounds.escort_components(x, p) for x in pi])
    _fall(printed, pi, p * np.hypot(*components.T), policy=f"escort, p = {p:g}")
    return judged(ours, printed)


def _fall(worst: Worst, pi: np.ndarray, length: np.ndarray, **where: object) -> None:
    for k in range(len(pi) - 1):
        worst.add(length[k] - length[k + 1], **where, **{"pi(a_1)": float(pi[k + 1])})


@check(
    "thm:unlearn/i/pg-es-threshold",
    moved={
        "from one half on": {"threshold": lambda p: 0.5},
        "from (p - 1)/(2p - 1) on": {"threshold": lambda p: (p - 1) / (2 * p - 1)},
        "only from 0.01 above on": {"threshold": lambda p: p / (2 * p - 1) + 0.01},
    },
)
def check_escort_threshold(
    threshold: Callable[[float], float] = lambda p: p / (2 * p - 1),
) -> Verdict:
    r"""Check from where on the printed components decrease and increase: exactly a threshold.

    The first component is to decrease, the second to increase above it, and one of both to do the
    contrary just below.

    Parameters
    ----------
    threshold : callable
        The smallest :math:`\pi(a_1)`, a function of p.
    """
    worst, step = Worst("the change in the right direction"), 1e-3
    for p in (1.1, 1.5, 2.0, 3.0, 5.0, 20.0):
        first = threshold(p)
        grid = np.linspace(first, 1.0, 200)
        values = np.array([bounds.escort_components(x, p) for x in grid])
        falls, rises = -np.diff(values[:, 0]), np.diff(values[:, 1])
        worst.add(float(falls.min()), p=p, part="first component, above")
        worst.add(float(rises.min()), p=p, part="second component, above")
        below = [bounds.escort_components(first - k * step, p)[1] for k in (1, 0)]
        worst.add(below[0] - below[1], p=p, part="second component, below")
    return judged(worst)


@check(
    "lem:Xn</Y",
    moved={
        "without the first c": {"bound": lambda n, c: math.log1p(c * (n - 1))},
        "1.1 times the lower bound": {"factor": 1.1},
    },
    power=0.0,
    bound=bounds.bound_lemma_11_sharp,
    below=lambda n, c: math.log1p(c * n),
)
@check(
    "lem:Xn<sqrt/Y",
    moved={
        "without the first c": {"bound": lambda n, c: math.log1p(2 * c * (math.sqrt(n) - 1))},
        "1.1 times the lower bound": {"factor": 1.1},
        "the solution of the printed equation, weight c/(t + 1), from above": {
            "bound": lambda n, c: c + math.log1p(c * math.log(n + 1))
        },
    },
    power=0.5,
    bound=bounds.bound_lemma_12_sharp,
    below=lambda n, c: math.log1p(2 * c * (math.sqrt(n + 1) - 1)),
)
def check_equality_sequence(
    power: float,
    bound: Callable[[int, float], float],
    below: Callable[[int, float], float],
    factor: float = 1.0,
) -> Verdict:
    """Check that the sequence with equality lies between the solution z and the bound.

    Parameters
    ----------
    power : float
        The weights decay like the index to this power, negated.
    bound, below : callable
        The bounds from above and from below, functions of n and c.
    factor : float
        Multiplies the lower bound.
    """
    worst = Worst("room to the nearer of the two bounds")
    for c in (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0):
        terms = bounds.equality_sequence(2000, c, lambda k: float((k + 1.0) ** -power))
        for n, term in enumerate(terms[1:], 1):
            room = min(bound(n, c) - term, term - factor * below(n, c))
            worst.add(room + 1e-12, c=c, n=n, Y_n=term)
    return judged(worst)


@check(
    "sec:chainexp/unlearns-slower",
    moved={
        "after few short updates, too": {"ns": (10,), "etas": ("0.1",)},
        "PG-SM is as fast as CE": {"slower": "pg-sm"},
        "DI and CE exchanged": {"slower": "di", "faster": "ce"},
    },
)
def check_slower(
    slower: str | Update = "ce",
    faster: str | Update = "di",
    ns: Sequence[int] = (1000, 3000),
    etas: Sequence[Number] = ETAS,
) -> Verdict:
    """Check that CE needs no fewer updates than DI after many, and at most a logarithm of n.

    Parameters
    ----------
    slower, faster : str or Update
        The two updates compared.
    ns, etas : sequences
        Numbers of forward updates, and weights.
    """
    worst = Worst("room")
    for eta in etas:
        pairs = zip(ns, counts(ns, slower, eta), counts(ns, faster, eta), strict=True)
        for n, long, short in pairs:
            where = {"eta": eta, "n": n, "n' of the slower": long, "of the faster": short}
            worst.add(long - short, part="difference of the counts", **where)
            room = bounds.bound_ce_sharp(n, float(eta)) - long
            worst.add(room, part="2 + log(1 + 2 eta (n - 1))/eta less the count", **where)
    return judged(worst)
