r"""The steps of the seven updates in ball arithmetic, and exact values of small processes.

The checks of the library compare it with these formulas, which share no code with it. A step
changes the parameters by :math:`w` times

- `pg-sm`: :math:`\pi(a)\,\mathrm{adv}(a)`;
- `pg-es`: :math:`\sigma_a\,\frac{p}{\|\theta\|_p}\,\pi(a)^{1-1/p}\,\mathrm{adv}(a)`, or without the
  factor :math:`p/\|\theta\|_p`;
- `ce`: :math:`1 - \pi(a)` for the greedy action and :math:`-\pi(a)` for all others;
- `mce`: :math:`1 - \pi(a_q)` for the greedy action and :math:`-\frac{1 - \pi(a_q)}{|A| - 1}` for
  all others;
- `npg`: :math:`q(a) - \max_b q(b)`, as in the library; only differences matter;
- `sce`: as `ce` for the greedy action and the actions with negative advantage, with their
  probabilities divided by the sum of these, and 0 for all others.

`di` projects :math:`\theta + wq` onto the simplex.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from flint import arb, fmpq, fmpq_mat

from pu_lib.arrays import Floats
from pu_lib.mdp import FiniteMDP


def draws(seed: int, n: int) -> Iterator[tuple[Floats, Floats, float]]:
    """Yield random policies, values and weights of 2 to 9 actions.

    Weights go from 1e-6 to 1e6. In half of the draws the values have a size from 1e-3 to 1e6, and
    in the others the size of 1 / weight, so that the step is neither lost nor saturated.
    """
    rng = np.random.default_rng(seed)
    for i in range(n):
        actions = int(rng.integers(2, 10))
        weight = float(10 ** rng.uniform(-6, 6))
        size = 1 / weight if i % 2 else 10 ** rng.uniform(-3, 6)
        yield rng.dirichlet(np.ones(actions)), rng.uniform(-size, size, actions), weight


def direction(
    name: str, theta: Sequence[Any], q: Sequence[float], p: float = 2.0, factor: str = "keep"
) -> list[Any]:
    """Return the change of the parameters per unit of weight, at the current precision of flint."""
    best, others = int(np.argmax(q)), len(q) - 1
    if name == "npg":
        return [arb(x) - arb(q[best]) for x in q]
    powers = [arb(abs(x)) ** arb(p) if name == "pg-es" else arb(x).exp() for x in theta]
    pi = [x / sum(powers) for x in powers]
    if name == "ce":
        return [(a == best) - x for a, x in enumerate(pi)]
    if name == "mce":
        return [(1 - pi[best]) * (1 if a == best else arb(-1) / others) for a in range(len(q))]
    mean = sum(x * arb(y) for x, y in zip(pi, q, strict=True))
    gains = [arb(x) - mean for x in q]
    if name == "pg-sm":
        return [x * y for x, y in zip(pi, gains, strict=True)]
    if name == "sce":
        mask = [a == best or bool(gain < 0) for a, gain in enumerate(gains)]
        total = sum(x for x, inside in zip(pi, mask, strict=True) if inside)
        return [((a == best) - x / total) * mask[a] for a, x in enumerate(pi)]
    scale = arb(p) / sum(powers) ** (1 / arb(p)) if factor == "keep" else arb(1)
    return [
        ((t > 0) - (t < 0)) * scale * x ** (1 - 1 / arb(p)) * y
        for t, x, y in zip(theta, pi, gains, strict=True)
    ]


def projected(pi: Sequence[float], q: Sequence[float], weight: float) -> list[float]:
    """Return the step of `di`, computed in rational arithmetic and rounded once."""
    point = [Fraction(x) + Fraction(weight) * Fraction(y) for x, y in zip(pi, q, strict=True)]
    ordered = sorted(point, reverse=True)
    levels = [(sum(ordered[: k + 1]) - 1) / (k + 1) for k in range(len(point))]
    level = next(x for k, x in reversed(list(enumerate(levels))) if ordered[k] > x)
    return [float(max(x - level, Fraction(0))) for x in point]


def two_action_path(name: str, n: int, steps: int, weight: Fraction) -> list[float]:
    """Return pi_t(a_1) over n updates with the values (1, 0) and then `steps` with (0, 1).

    The start is the uniform policy, with parameters of norm sqrt(2) under `pg-es`.
    """
    theta: list[Any] = [arb(int(name == "pg-es"))] * 2
    pi, probabilities = [Fraction(1, 2)] * 2, [0.5]
    for t in range(n + steps):
        q = [1.0, 0.0] if t < n else [0.0, 1.0]
        if name == "di":
            moved = min(max(pi[0] + weight * (1 if t < n else -1) / 2, Fraction(0)), Fraction(1))
            pi = [moved, 1 - moved]
            probabilities.append(float(moved))
            continue
        w = arb(fmpq(weight.numerator, weight.denominator))
        theta = [x + w * y for x, y in zip(theta, direction(name, theta, q), strict=True)]
        powers = [abs(x) ** 2 if name == "pg-es" else x.exp() for x in theta]
        probabilities.append(float(powers[0] / sum(powers)))
    return probabilities


def exact_values(mdp: FiniteMDP, pi: Floats) -> tuple[list[fmpq], list[fmpq]]:
    """Return the state values and the visits of a policy as fractions."""
    n = mdp.n_states
    chain, paid, gamma = fmpq_mat(n, n), fmpq_mat(n, 1), _fraction(mdp.discount)
    transitions = np.asarray(mdp.transitions)
    for s in range(n):
        for a in range(mdp.n_actions):
            share = _fraction(pi[s, a])
            paid[s, 0] += share * _fraction(mdp.rewards[s, a])
            for after in range(n):
                chain[s, after] += share * gamma * _fraction(transitions[s, a, after])
    system = fmpq_mat(n, n, [int(i == j) for i in range(n) for j in range(n)]) - chain
    start = fmpq_mat(n, 1, [_fraction(x) for x in mdp.initial])
    values, visits = system.solve(paid), system.transpose().solve(start)
    return [values[s, 0] for s in range(n)], [visits[s, 0] for s in range(n)]


def exact_optimum(mdp: FiniteMDP) -> list[fmpq]:
    """Return the optimal values as fractions: the best of all deterministic policies."""
    rows = product(np.eye(mdp.n_actions), repeat=mdp.n_states)
    return max((exact_values(mdp, np.array(row))[0] for row in rows), key=sum)


def _fraction(x: float) -> fmpq:
    """Return a float as a fraction, without rounding."""
    return fmpq(*float(x).as_integer_ratio())
