r"""Functions that compute one step of each update at one state in scalar arithmetic.

A kernel changes the parameters of one state in place:

    kernel(theta, pi, q, best, weight, n_actions)

`theta`, `pi` and `q` are indexed by action, `best` is the greedy action and `weight` is
:math:`w = \eta\,d(s)`. The kernel of an update with memory takes a seventh argument, `memory`, the
row of its state in the memory (`Update.initial_memory`), and changes this row in place, too.
Kernels use only ``+ - * /``, `max` and comparisons, so that the same function runs on floats, on
rationals and on balls (`pu_lib.exact`), and can be compiled (`pu_lib.engine`) for the experiments
and the search for cycles. The caller recomputes `pi` from the new parameters, since softmax needs
an exponential.

Sums start from the integer 0, which does not change a number of any type, and run from left to
right, so that compiled loops give the same bits on x86-64 and 64-bit ARM. An undecided comparison
of balls counts as false. Only `di` and `sce` compare values; the results of `di` are proved with
rationals, not with balls.

`pu_lib.updates` has the same formulas in a vectorised form that is easier to read; this module is
for loops and certificates. A test checks that the two agree.
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
    "sce",
]

Kernel = Callable[..., None]


def choose(condition: Any, one: Any, other: Any) -> Any:
    """Return `one` if `condition` holds, else `other`.

    Compiled code evaluates both arguments and does not branch.
    """
    return one if condition else other


def mean(pi: Any, q: Any, n_actions: int) -> Any:
    r"""Return the value of a state, :math:`\sum_a \pi(a)\,q(a)`, in the type of the arguments."""
    v = 0
    for a in range(n_actions):
        v += pi[a] * q[a]
    return v


def greedy(q: Any, n_actions: int) -> int:
    """Return the index of the first action with the largest value."""
    best = 0
    for a in range(1, n_actions):
        if q[a] > q[best]:
            best = a
    return best


def pg_sm(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Take a softmax policy gradient step to :math:`\theta_a + w\,\pi(a)\,\mathrm{adv}(a)`."""
    v = 0
    for a in range(n_actions):
        v += pi[a] * q[a]
    for a in range(n_actions):
        theta[a] += weight * pi[a] * (q[a] - v)


def pg_es(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Take an escort step (p = 2) to :math:`\theta_a (1 + 2w\,\mathrm{adv}(a)/\|\theta\|^2)`.

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
    r"""Take the step of `pg_es` without :math:`2/\|\theta\|`; the square root requires floats."""
    v, square = 0, 0
    for a in range(n_actions):
        v += pi[a] * q[a]
    for a in range(n_actions):
        square += theta[a] * theta[a]
    scale = weight / math.sqrt(square)
    for a in range(n_actions):
        theta[a] += scale * theta[a] * (q[a] - v)


def di(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Take a direct step to :math:`\mathrm{Proj}_\Delta(\theta + w q)` by Michelot's algorithm.

    Actions at or below the threshold are dropped and the threshold is computed again, until no
    action is dropped. The largest value is subtracted from `q` first, which does not change the
    projection: otherwise the 1 in the threshold would be lost to rounding if the weight is large.
    """
    top = q[0]
    for a in range(1, n_actions):
        top = max(top, q[a])
    total = 0
    for a in range(n_actions):
        theta[a] += weight * (q[a] - top)
        total += theta[a]
    threshold = (total - 1) / n_actions
    n_kept = 0
    for a in range(n_actions):
        n_kept += theta[a] > threshold
    # Each pass drops an action or is the last one; one remaining action has a closed form below.
    for _ in range(n_actions - 2):
        if n_kept == 1:
            break
        total = 0
        for a in range(n_actions):
            total += choose(theta[a] > threshold, theta[a], 0)
        # The exact threshold never decreases; with rounding, a dropped action could come back.
        threshold = max(threshold, (total - 1) / n_kept)
        n_above = 0
        for a in range(n_actions):
            n_above += theta[a] > threshold
        if n_above == n_kept:
            break
        n_kept = n_above
    if n_kept == 1:  # it gets probability 1
        largest = theta[0]
        for a in range(1, n_actions):
            largest = max(largest, theta[a])
        threshold = max(threshold, largest - 1)
    for a in range(n_actions):
        theta[a] = max(theta[a] - threshold, 0)


def ce(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Take a cross-entropy step to :math:`\theta_a + w\,(\mathbb 1_{a=a_q} - \pi(a))`."""
    for a in range(n_actions):
        theta[a] += weight * choose(a == best, 1 - pi[a], -pi[a])


def mce(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Take a step of modified cross-entropy.

    The step adds :math:`w\,(1-\pi(a_q))` to :math:`\theta_{a_q}` and subtracts
    :math:`\frac{w}{|A|-1}(1-\pi(a_q))` from every other parameter.
    """
    missing = 0
    for a in range(n_actions):
        missing += choose(a == best, 0, pi[a])
    gain = weight * missing
    loss = gain / (n_actions - 1)
    for a in range(n_actions):
        theta[a] += choose(a == best, gain, -loss)


def npg(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Take a natural policy gradient step to :math:`\theta_a + w\,(q(a) - \max q)`.

    In a table a common shift does not change a softmax policy. Subtracting the maximum keeps the
    parameters from growing.
    """
    top = q[0]
    for a in range(1, n_actions):
        top = max(top, q[a])
    for a in range(n_actions):
        theta[a] += weight * (q[a] - top)


def sce(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    r"""Take a step of sign-masked cross-entropy.

    With D the greedy action and the actions with negative advantage, the step adds
    :math:`w\,(\mathbb 1_{a=a_q} - \pi(a)/\pi(D))` to the parameters of D. If all probabilities of D
    underflow to 0, the action of D with the largest parameter has the whole of :math:`\pi(D)`. The
    step differs from that of `pu_lib.updates` only in this case, and only if parameters of D are
    close.
    """
    # adv(a) < 0 if q(a) - q(b) < sum_c pi(c) (q(c) - q(b)), for any b. If b is the most probable
    # action, its own large term is an exact 0 and does not absorb the others.
    largest, level = pi[0], q[0]
    for a in range(1, n_actions):
        level = choose(pi[a] > largest, q[a], level)
        largest = choose(pi[a] > largest, pi[a], largest)
    mean_gap, second = 0, -1
    for a in range(n_actions):
        mean_gap += pi[a] * (q[a] - level)
        if q[a] != level and (second < 0 or theta[a] > theta[second]):
            second = a
    # If all its terms underflow, the sum has the sign of the term with the largest parameter.
    level_below = mean_gap > 0 or (mean_gap == 0 and second >= 0 and q[second] > level)
    missing, total, likeliest = 0, 0, best
    for a in range(n_actions):
        below = level_below if q[a] == level else q[a] - level < mean_gap
        lowered = choose(below, pi[a], 0)
        missing += choose(a == best, 0, lowered)
        total += choose(a == best, pi[a], lowered)
        if below and theta[a] > theta[likeliest]:
            likeliest = a
    # The sums are divided, not the weight: weight / total would overflow where total is subnormal.
    positive, divisor = total > 0, choose(total > 0, total, 1)
    gain = choose(positive, missing / divisor, choose(likeliest == best, 0, 1))
    for a in range(n_actions):
        below = level_below if q[a] == level else q[a] - level < mean_gap
        lowered = choose(below, pi[a], 0)
        share = choose(positive, lowered / divisor, choose(a == likeliest, 1, 0))
        theta[a] += weight * choose(a == best, gain, -share)


KERNELS: tuple[Kernel, ...] = (pg_sm, pg_es, pg_es_drop, di, ce, mce, npg, sce)
"""The kernels above, with compiled code on disk; other kernels are compiled at first use."""

GREEDY: tuple[Kernel, ...] = (ce, mce, sce)
"""Kernels whose step at an action depends on whether the action is greedy."""

MULTIPLICATIVE: tuple[Kernel, ...] = (pg_es, pg_es_drop)
"""Kernels that multiply each parameter by a factor. The product commutes with scaling by a power of
two, so that a parameter can be stored as mantissa and exponent (`pu_lib.engine.rows.rescale`)."""
