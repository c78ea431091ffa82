r"""One step of each update at one state, in plain arithmetic.

A kernel changes the parameters of one state in place:

    kernel(theta, pi, q, best, weight, n_actions)

`theta`, `pi` and `q` are rows (anything indexed by action), `best` is the greedy action and
`weight` is :math:`w = \eta\,d(s)`. Nothing but ``+ - * /`` and comparisons is used, so that the
same function runs on floats, on rationals and on balls (`pu_lib.exact`), and compiles with numba;
what needs an exponential, the softmax policy, is left to the caller, which recomputes `pi` from the
new parameters.

These are the definitions of `pu_lib.updates` written a second time, on purpose: that module is
vectorised and states the formulas, this one is what loops and certificates run. A test holds the
two equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Kernel", "ce", "di", "greedy", "mce", "mean", "pg_es", "pg_sm"]

Kernel = Callable[[Any, Any, Any, int, Any, int], None]


def mean(pi: Any, q: Any, n_actions: int) -> Any:
    r"""Return the value of a state, :math:`\sum_a \pi(a)\,q(a)`."""
    total = pi[0] * q[0]
    for a in range(1, n_actions):
        total += pi[a] * q[a]
    return total


def greedy(q: Any, n_actions: int) -> int:
    """Return the first action of largest value."""
    best = 0
    for a in range(1, n_actions):
        if q[a] > q[best]:
            best = a
    return best


def pg_sm(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Softmax policy gradient: :math:`\theta_a + w\,\pi(a)\,\mathrm{adv}(a)`."""
    v = mean(pi, q, n_actions)
    for a in range(n_actions):
        theta[a] += weight * pi[a] * (q[a] - v)


def pg_es(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Escort policy gradient, p = 2: :math:`\theta_a (1 + 2w\,\mathrm{adv}(a)/\|\theta\|^2)`.

    For :math:`p = 2`, :math:`\mathrm{sign}(\theta_a)\,\pi(a)^{1/2} = \theta_a/\|\theta\|`.
    """
    v = mean(pi, q, n_actions)
    total = theta[0] * theta[0]
    for a in range(1, n_actions):
        total += theta[a] * theta[a]
    scale = weight * 2 / total
    for a in range(n_actions):
        theta[a] += scale * theta[a] * (q[a] - v)


def di(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Direct parametrization: :math:`\mathrm{Proj}_\Delta(\theta + w q)`.

    Actions below the threshold are dropped until none is (Michelot). The largest value is
    subtracted first so that large weights do not swallow the 1.
    """
    total = theta[0] * 0
    for a in range(n_actions):
        theta[a] += weight * (q[a] - q[best])
        total += theta[a]
    kept = n_actions
    threshold = (total - 1) / n_actions
    while True:
        count = 0
        total = total * 0
        for a in range(n_actions):
            if theta[a] > threshold:
                count += 1
                total += theta[a]
        if count == kept:
            break
        kept = count
        # It only grows; rounding must not let a dropped action back, or the loop may never end.
        threshold = max(threshold, (total - 1) / count)
    for a in range(n_actions):
        theta[a] = theta[a] - threshold if theta[a] > threshold else theta[a] * 0


def ce(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Cross-entropy: :math:`\theta_a + w\,(\mathbb 1_{a=a_q} - \pi(a))`."""
    for a in range(n_actions):
        theta[a] += weight * ((1 if a == best else 0) - pi[a])


def mce(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Move by the modified cross-entropy: the greedy one gains what all others lose alike."""
    missing = pi[0] * 0
    for a in range(n_actions):
        if a != best:
            missing += pi[a]
    gain = weight * missing
    loss = gain / (n_actions - 1)
    for a in range(n_actions):
        theta[a] += gain if a == best else -loss
