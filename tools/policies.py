"""The policy of each parametrization at one state, in the subset of Python that translate.py reads.

The explorers compute policies with these functions and obtain the same bits as the compiled loop
(`pu_lib.engine`). The loop's exponential reads the bits of a float, which JavaScript cannot do.
"""

from __future__ import annotations

import math
from typing import Any

ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it to a float rounds the float to an integer
LOWEST = -708.0  # smaller arguments of the exponential are replaced by this value
PER_STEP = 92.33248261689366  # 64 / ln 2
STEP_HIGH = 0.010830424695996044  # the sum of these two floats represents ln 2 / 64
STEP_LOW = 2.5310172166650877e-13
SMALLEST = 2.2250738585072014e-308  # 2^-1022
LARGE = 1.3407807929942597e154  # 2^512


def power_of_two(n: float) -> float:
    """Return 2^(n/64) for an integer n from -64 * 1022 to 0.

    The factors are 2^512, 2^256, ..., 2 and the roots 2^(1/2), ..., 2^(1/64). Only the product of
    the roots is rounded.
    """
    n += 65408  # 64 * 1022
    power, root, bit = SMALLEST, LARGE, 32768.0  # 64 * 512
    while bit >= 1:
        if n >= bit:
            power *= root
            n -= bit
        root = math.sqrt(root)
        bit /= 2
    return power


def exponential(x: float) -> float:
    """Return e^x for x <= 0, bit for bit as `pu_lib.engine.arithmetic.exponential` does."""
    x = max(x, LOWEST)
    n = (x * PER_STEP + ROUND) - ROUND
    r = (x - n * STEP_HIGH) - n * STEP_LOW
    r2 = r * r
    value = (1.0 + r) + ((1 / 2 + 1 / 6 * r) + (1 / 24 + 1 / 120 * r) * r2) * r2
    return value * power_of_two(n)


def softmax(theta: Any, pi: Any, n_actions: int) -> None:
    """Set `pi` to the softmax of `theta`."""
    top = theta[0]
    for a in range(1, n_actions):
        top = max(top, theta[a])
    total = 0
    for a in range(n_actions):
        pi[a] = exponential(theta[a] - top)
        total += pi[a]
    scale = 1.0 / total
    for a in range(n_actions):
        pi[a] *= scale


def escort(theta: Any, pi: Any, n_actions: int) -> None:
    """Set `pi` to the escort policy of `theta` with p = 2."""
    top = 1.0
    for a in range(n_actions):
        top = max(top, abs(theta[a]))
    # The square of a large parameter would overflow. Division by a power of two is exact.
    unit = 1.0
    while unit < top:
        unit *= 2
    total = 0
    for a in range(n_actions):
        pi[a] = theta[a] / unit * (theta[a] / unit)
        total += pi[a]
    scale = 1.0 / total
    for a in range(n_actions):
        pi[a] *= scale


def direct(theta: Any, pi: Any, n_actions: int) -> None:
    """Set `pi` to `theta`, which is a policy."""
    for a in range(n_actions):
        pi[a] = theta[a]
