r"""Densities of policies for the checks of the unlearning and domino chapters.

The density of a policy :math:`\pi_\theta(a_1) = F(\theta_1 - \theta_2)` is :math:`F'` on
:math:`[0, \infty)`, a function that maps balls to balls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb

from pu_lib.updates import Update, as_update

Density = Callable[[arb], arb]

LINKS: dict[str, Density] = {
    "logistic": lambda x: 1 / (2 + x.exp() + (-x).exp()),
    "normal": lambda x: (-x * x / 2).exp() / (2 * arb.pi()).sqrt(),
    "Cauchy": lambda x: 1 / (arb.pi() * (1 + x * x)),
    "Laplace": lambda x: (-x).exp() / 2,
}
"""Densities that satisfy the three assumptions of Theorem 4(i)."""

UNIFORM: dict[str, Density] = {"uniform": lambda x: arb(1) / 4 + 0 * x}
"""The constant density of the policy 1/2 + x/4 for abs(x) <= 2, which has the smallest counts."""

CONVEX: dict[str, Density] = {"convex": lambda x: (1 + x) / 10}
"""An increasing density, which violates the third assumption."""


def instance_of(update: str | Update, **options: Any) -> dict[str, Any]:
    """Return a dictionary of the name of an update and the given options that the update has."""
    chosen = as_update(update)
    had = {name: str(value) for name, value in options.items() if name in chosen.options}
    return {"update": chosen.name, **had}
