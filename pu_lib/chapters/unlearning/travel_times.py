r"""The comparison lemma (section 3.4): the weight of a step and the travel time it covers.

With small weights an update is a flow along a line; the travel time between two points is how long
the flow takes. Under PG-SM, and under PG-ES with :math:`p \ge 2`, a forward step of weight w covers
at least w of it, a backward step at most w.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

from pu_lib.chapters.unlearning.quantities import count
from pu_lib.exact import Number
from pu_lib.two_action_dynamics import EscortWalker, Setting, SoftmaxWalker, setting
from pu_lib.updates import Update

__all__ = ["comparison", "escort_travel"]


def comparison(
    n: int,
    eta: Number,
    update: str | Update = "pg-sm",
    schedule: str = "constant",
    p: Number = 2,
) -> list[dict[str, Any]]:
    r"""Return t, phase, weight and travel time of each step of a run from the uniform start.

    For PG-SM the travel time of a step from :math:`\delta` to :math:`\delta'` is
    :math:`|\int dx / 2g|` with :math:`\int dx/2g = x + \sinh x`; for PG-ES it is
    :math:`R^2|\int d\psi / h|` with :math:`R = \|\theta_n\|_2`, where
    :math:`\tan\psi = x = |\theta_2/\theta_1|` and :math:`\frac{d\psi}h =
    \frac{(1+x^p)^2}{p\,x^{p-1}(1+x^2)^2}\,dx`. The last step is cut at the start.
    """
    chosen = setting(update, eta, schedule, p)
    walker: Any = chosen.walker()
    clock = _travel_clock(chosen)
    rows, times, steps = [], [clock(walker)], []
    back = count(n, update, eta, schedule, p)
    if math.isinf(back):
        raise ValueError(f"n = {n}, eta = {eta}: the policy never recovers from these updates")
    total = n + int(back)
    scale = 1.0
    for t, w in enumerate(islice(chosen.weights(), total), start=1):
        (walker.forward if t <= n else walker.backward)(w)
        times.append(clock(walker) if t < total else clock(chosen.walker()))
        steps.append(float(w))
        if t == n and chosen.kind is EscortWalker:
            scale = float(walker.u1**2 + walker.u2**2)
    for t, w in enumerate(steps, start=1):
        travel = scale * abs(times[t] - times[t - 1])
        phase = "forward" if t <= n else "backward"
        rows.append({"t": t, "phase": phase, "weight": w, "travel time": travel})
    return rows


def _travel_clock(chosen: Setting) -> Callable[[Any], float]:
    """Return the function of a walker that is the travel time from its start."""
    if chosen.kind is SoftmaxWalker:
        return lambda walker: float(walker.y + walker.y.sinh())
    if chosen.kind is EscortWalker and chosen.factor == "keep":
        return lambda walker: escort_travel(
            float(abs(walker.u2 / walker.u1).log()), float(chosen.p)
        )
    raise ValueError(
        f"update must be pg-sm, or pg-es with its factor; it is {chosen.update.name}"
        + (", factor dropped" if chosen.kind is EscortWalker else "")
    )


def escort_travel(log_ratio: float, p: float) -> float:
    r"""Return :math:`\int d\psi/h` from :math:`\log x` = `log_ratio` to the start, x = 1.

    With :math:`x = e^u` the integrand is :math:`x^{2-p}(1+x^p)^2/(p(1+x^2)^2)\,du`; for p = 2 it is
    one half. The relative accuracy is 1e-12.
    """
    from scipy.integrate import quad  # here, because it is slow to import

    def slowness(u: float) -> float:
        return math.exp((2 - p) * u) * (1 + math.exp(p * u)) ** 2 / (1 + math.exp(2 * u)) ** 2 / p

    value, _ = quad(slowness, log_ratio, 0.0, epsabs=0.0, epsrel=1e-12)
    return float(value)
