r"""The comparison lemma (section 3.4): the weight of a step and the flow time that it covers.

An update with small weights is a flow along a line. The flow time between two points is the time
that the flow takes from one point to the other; the book calls it travel time. Under PG-SM, and
under PG-ES with :math:`p \ge 2`, a forward step of weight w covers a flow time of at least w, and a
backward step covers a flow time of at most w.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

from pu_lib.chapters.unlearning.quantities import count
from pu_lib.exact import Number
from pu_lib.two_action_dynamics import (
    EscortProcess,
    OutOfReach,
    SoftmaxProcess,
    TwoActionProblem,
    parse_problem,
)
from pu_lib.updates import Update

__all__ = ["escort_flow_time", "step_flow_times"]

MAX_FLOW_STEPS = 2000
"""The largest number of steps whose flow times are computed, which takes a few seconds."""


def step_flow_times(
    n: int,
    step_size: Number,
    update: str | Update = "pg-sm",
    schedule: str = "constant",
    p: Number = 2,
) -> list[dict[str, Any]]:
    r"""Return t, phase, weight and flow time of each step of a run from the uniform policy.

    For PG-SM the flow time of a step from :math:`\delta` to :math:`\delta'` is
    :math:`|\int dx / 2g|` with :math:`\int dx/2g = x + \sinh x`; for PG-ES it is
    :math:`R^2|\int d\psi / h|` with :math:`R = \|\theta_n\|_2`, where
    :math:`\tan\psi = x = |\theta_2/\theta_1|` and :math:`\frac{d\psi}h =
    \frac{(1+x^p)^2}{p\,x^{p-1}(1+x^2)^2}\,dx`. The last step ends at the uniform
    policy. `OutOfReach` is raised if there are more than `MAX_FLOW_STEPS` steps.
    """
    problem = parse_problem(update, step_size, schedule, p)
    if n > MAX_FLOW_STEPS:
        raise OutOfReach(f"n: at most {MAX_FLOW_STEPS} steps are followed, got {n}")
    process: Any = problem.process()
    clock = _flow_clock(problem)
    rows, times, steps = [], [clock(process)], []
    back = count(n, update, step_size, schedule, p)
    if math.isinf(back):
        raise ValueError(
            f"n = {n}, step_size = {step_size}: the policy never recovers from these updates"
        )
    total = n + int(back)
    if total > MAX_FLOW_STEPS:
        raise OutOfReach(
            f"n: at most {MAX_FLOW_STEPS} steps are followed, but {n} updates and the {back} that "
            f"undo them are {total}"
        )
    scale = 1.0
    for t, w in enumerate(islice(problem.weights(), total), start=1):
        (process.forward if t <= n else process.backward)(w)
        times.append(clock(process) if t < total else clock(problem.process()))
        steps.append(float(w))
        if t == n and problem.kind is EscortProcess:
            scale = float(process.u1**2 + process.u2**2)
    for t, w in enumerate(steps, start=1):
        covered = scale * abs(times[t] - times[t - 1])
        phase = "forward" if t <= n else "backward"
        rows.append({"t": t, "phase": phase, "weight": w, "flow time": covered})
    return rows


def _flow_clock(problem: TwoActionProblem) -> Callable[[Any], float]:
    """Return the function that computes the flow time of a process from its initial policy."""
    if problem.kind is SoftmaxProcess:
        return lambda process: float(process.y + process.y.sinh())
    if problem.kind is EscortProcess and problem.factor == "keep":
        return lambda process: escort_flow_time(
            float(abs(process.u2 / process.u1).log()), float(problem.p)
        )
    dropped = " factor=drop" if problem.kind is EscortProcess else ""
    raise ValueError(
        f"update: expected pg-sm, or pg-es with its factor, got {problem.update.name}{dropped}."
    )


def escort_flow_time(log_ratio: float, p: float) -> float:
    r"""Return :math:`\int d\psi/h` from :math:`\log x` = `log_ratio` to x = 1.

    If :math:`x = e^u`, the integrand is :math:`x^{2-p}(1+x^p)^2/(p(1+x^2)^2)\,du`, which is
    :math:`\frac12\,du` for p = 2. The relative accuracy is 1e-12.
    """
    from scipy.integrate import quad  # here, because it is slow to import

    def slowness(u: float) -> float:
        return math.exp((2 - p) * u) * (1 + math.exp(p * u)) ** 2 / (1 + math.exp(2 * u)) ** 2 / p

    value, _ = quad(slowness, log_ratio, 0.0, epsabs=0.0, epsrel=1e-12)
    return float(value)
