r"""One step of each update at one state, in plain arithmetic: the scalar form of the updates.

A kernel changes the parameters of one state in place:

    kernel(theta, pi, q, best, weight, n_actions)

`theta`, `pi` and `q` are rows (anything indexed by action), `best` is the greedy action and
`weight` is :math:`w = \eta\,d(s)`. Only ``+ - * /``, `max` and comparisons are used, so that the
same function runs on floats, on rationals and on balls (`pu_lib.exact`), and is compiled for the
experiments and for the search for cycles (`pu_lib.engine`). What
needs an exponential, the softmax policy, is left to the caller, who recomputes `pi` from the new
parameters.

Sums start from the integer 0 and run from left to right: adding it changes no number of any kind,
and the compiled loops give the same bits on x86-64 and 64-bit ARM. On balls a comparison that is
not decided counts as false; only `di` makes any, so that it is a proof on rationals and not on
balls.

These are the definitions of `pu_lib.updates` written a second time, on purpose: that module is
vectorised and states the formulas, this one is what loops and certificates run. A test holds the
two equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = [
    "GREEDY",
    "KERNELS",
    "MULTIPLICATIVE",
    "Kernel",
    "ce",
    "choose",
    "di",
    "greedy",
    "mce",
    "mean",
    "npg",
    "pg_es",
    "pg_es_drop",
    "pg_sm",
]

Kernel = Callable[[Any, Any, Any, int, Any, int], None]


def choose(condition: Any, one: Any, other: Any) -> Any:
    """Return one of two numbers; compiled, both are computed and no branch is taken.

    Parameters
    ----------
    condition : bool
        Which.
    one, other : number
        What is returned if it holds, and if not.

    Returns
    -------
    number
        `one` or `other`.
    """
    return one if condition else other


def mean(pi: Any, q: Any, n_actions: int) -> Any:
    r"""Return the value of a state, :math:`\sum_a \pi(a)\,q(a)`.

    Parameters
    ----------
    pi : sequence of numbers, length n_actions
        The policy of the state.
    q : sequence of numbers, length n_actions
        The values of the actions.
    n_actions : int
        The number of actions.

    Returns
    -------
    number
        The value, in the arithmetic of the arguments.
    """
    v = 0
    for a in range(n_actions):
        v += pi[a] * q[a]
    return v


def greedy(q: Any, n_actions: int) -> int:
    """Return the first action of largest value.

    Parameters
    ----------
    q : sequence of numbers, length n_actions
        The values of the actions.
    n_actions : int
        The number of actions.

    Returns
    -------
    int
        The index of the action, from 0.
    """
    best = 0
    for a in range(1, n_actions):
        if q[a] > q[best]:
            best = a
    return best


def pg_sm(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Softmax policy gradient: :math:`\theta_a + w\,\pi(a)\,\mathrm{adv}(a)`."""
    v = 0
    for a in range(n_actions):
        v += pi[a] * q[a]
    for a in range(n_actions):
        theta[a] += weight * pi[a] * (q[a] - v)


def pg_es(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Escort policy gradient, p = 2: :math:`\theta_a (1 + 2w\,\mathrm{adv}(a)/\|\theta\|^2)`.

    For :math:`p = 2`, :math:`\mathrm{sign}(\theta_a)\,\pi(a)^{1/2} = \theta_a/\|\theta\|`.
    """
    v, square = 0, 0
    for a in range(n_actions):
        v += pi[a] * q[a]
    for a in range(n_actions):
        square += theta[a] * theta[a]
    scale = weight * 2 / square
    for a in range(n_actions):
        theta[a] += scale * theta[a] * (q[a] - v)


def pg_es_drop(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Take the step of `pg_es` without its factor :math:`2/\|\theta\|`; for floats only."""
    v, square = 0, 0
    for a in range(n_actions):
        v += pi[a] * q[a]
    for a in range(n_actions):
        square += theta[a] * theta[a]
    scale = weight / math.sqrt(square)
    for a in range(n_actions):
        theta[a] += scale * theta[a] * (q[a] - v)


def di(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Direct parametrization: :math:`\mathrm{Proj}_\Delta(\theta + w q)`.

    Actions below the threshold are dropped until none is (Michelot). The largest value is
    subtracted first so that large weights do not swallow the 1.
    """
    top = q[0]
    for a in range(1, n_actions):
        top = max(top, q[a])
    total = 0
    for a in range(n_actions):
        theta[a] += weight * (q[a] - top)
        total += theta[a]
    threshold = (total - 1) / n_actions
    kept = 0
    for a in range(n_actions):
        kept += theta[a] > threshold
    # A turn drops an action or is the last; where one is left there is a closed form below.
    for _ in range(n_actions - 2):
        if kept == 1:
            break
        total = 0
        for a in range(n_actions):
            total += choose(theta[a] > threshold, theta[a], 0)
        # It only grows; rounding must not let a dropped action back.
        threshold = max(threshold, (total - 1) / kept)
        n_above = 0
        for a in range(n_actions):
            n_above += theta[a] > threshold
        if n_above == kept:
            break
        kept = n_above
    if kept == 1:
        largest = theta[0]
        for a in range(1, n_actions):
            largest = max(largest, theta[a])
        threshold = max(threshold, largest - 1)
    for a in range(n_actions):
        theta[a] = max(theta[a] - threshold, 0)


def ce(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Cross-entropy: :math:`\theta_a + w\,(\mathbb 1_{a=a_q} - \pi(a))`."""
    for a in range(n_actions):
        theta[a] += weight * choose(a == best, 1 - pi[a], -pi[a])


def mce(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Move by the modified cross-entropy: the greedy action gains, all others lose alike."""
    missing = 0
    for a in range(n_actions):
        missing += choose(a == best, 0, pi[a])
    gain = weight * missing
    loss = gain / (n_actions - 1)
    for a in range(n_actions):
        theta[a] += choose(a == best, gain, -loss)


def npg(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Natural policy gradient: :math:`\theta_a + w\,(q(a) - \max q)`.

    Softmax ignores a common shift, and with this one the parameters do not drift upwards.
    """
    top = q[0]
    for a in range(1, n_actions):
        top = max(top, q[a])
    for a in range(n_actions):
        theta[a] += weight * (q[a] - top)


KERNELS: tuple[Kernel, ...] = (pg_sm, pg_es, pg_es_drop, di, ce, mce, npg)
"""The kernels above: those whose compiled form is kept on disk; others are compiled when used."""

GREEDY: tuple[Kernel, ...] = (ce, mce)
"""Kernels that move the greedy action in another way than the others."""

MULTIPLICATIVE: tuple[Kernel, ...] = (pg_es, pg_es_drop)
"""Kernels that multiply each parameter by a number of its own: powers of two commute with them, so
that a parameter can be kept as a mantissa and an exponent (`pu_lib.engine.rows.rescale`)."""
