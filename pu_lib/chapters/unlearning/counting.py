"""What the checks of counts share: weights, densities, and the comparison with a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from pu_lib.chapters.unlearning.quantities import counts
from pu_lib.exact import Number, exact
from pu_lib.updates import Update, as_update
from pu_lib.verdict import Worst

__all__ = ["CONVEX", "ETAS", "LINKS", "SMALL_NS", "UNIFORM", "Density", "compare", "named"]

Density = Callable[[arb], arb]

SMALL_NS = (1, 2, 3, 5, 10, 30, 100, 300)

ETAS = ("0.01", "0.1", "0.3", "1", "2", "5")

LINKS: dict[str, Density] = {
    "logistic": lambda x: 1 / (2 + x.exp() + (-x).exp()),
    "normal": lambda x: (-x * x / 2).exp() / (2 * arb.pi()).sqrt(),
    "Cauchy": lambda x: 1 / (arb.pi() * (1 + x * x)),
    "Laplace": lambda x: (-x).exp() / 2,
}
r"""Densities :math:`F'` on :math:`[0, \infty)` of policies :math:`\pi_\theta(a_1) = F(\theta_1 -
\theta_2)` that satisfy the three assumptions of Theorem 4(i) there."""

UNIFORM: dict[str, Density] = {"uniform": lambda x: arb(1) / 4 + 0 * x}
"""A constant density, that of the policy 1/2 + x/4 for abs(x) <= 2: counts are the least."""

CONVEX: dict[str, Density] = {"convex": lambda x: (1 + x) / 10}
"""An increasing density, against the third assumption."""


def named(update: str | Update, **options: Any) -> dict[str, Any]:
    """Return how an instance is told: by its update, and those of some options that it has.

    Parameters
    ----------
    update : str or Update
        The update.
    **options
        Options, such as the exponent p, that other updates beside it may have.

    Returns
    -------
    dict
        What `pu_lib.verdict.Worst.add` takes.
    """
    own = as_update(update)
    had = {name: str(value) for name, value in options.items() if name in own.options}
    return {"update": own.name, **had}


def compare(
    worst: Worst,
    bound: Callable[[int, Fraction, Fraction], float],
    ns: Sequence[int],
    *,
    upper: bool = False,
    etas: Iterable[Number] = ETAS,
    starts: Iterable[Number] = ("1/2",),
    **process: Any,
) -> None:
    """Note in `worst` how far each count stays on its side of a bound.

    Parameters
    ----------
    worst : Worst
        Where to note it.
    bound : callable
        The bound, a function of n, eta and the start.
    ns : sequence of int
        Numbers of forward updates.
    upper : bool
        Whether the bound is one from above.
    etas, starts : iterables
        Weights, and first pi(a_1).
    **process
        What else `pu_lib.chapters.unlearning.quantities.count` takes.
    """
    shown = dict(process)
    if "update" in shown:
        shown["update"] = as_update(shown["update"]).name
    for eta, start in product(etas, starts):
        found = counts(ns, eta=eta, start=start, **process)
        for n, back in zip(ns, found, strict=True):
            claimed = bound(n, exact(eta), exact(start))
            room = claimed - back if upper else back - claimed
            where = {"n": n, "eta": str(eta), "start": str(start), "n'": back, "bound": claimed}
            worst.add(room, **shown, **where)
