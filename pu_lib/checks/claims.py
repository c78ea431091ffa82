r"""Table 1 of the paper, recomputed: five updates by six axes, one measurement an axis.

The paper fills its table from theorems, its own and others'. Here each column is one measurement
that is applied to all five updates alike, so that the entries can be compared:

convergence
    The exact process is run on a set of problems; the gap to the optimum must keep falling at least
    as fast as :math:`1/t`. Two attacks follow: the schedule under which CE cycles for ever, and a
    weight with which the escort update takes a parameter exactly to zero, where it stays.
rates
    The exponent :math:`\alpha` of a gap that behaves like :math:`t^{-\alpha}`.
gravity-well
    How often the greedy action does not gain most, whether it can lose, and how long it takes
    an update to leave a corner of the simplex, compared with MCE.
unlearning
    The exact number :math:`n'` of steps that undo :math:`n = 1000`.
stochastic
    Where the policy settles when :math:`q` is sampled and the weights obey Robbins and Monro.
deep
    Whether the direction of the update, pulled back through a parametric policy, reaches the
    optimum from a policy that has given the best action probability zero or nearly zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pu_lib.domains import chain, cliff, duplicated_chain, random_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.theory.cycles import THREE_STATES, simulate
from pu_lib.theory.gravity_well import parameters
from pu_lib.theory.unlearning import count
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, Update, project_simplex
from pu_lib.verdict import Status, Verdict, check

Floats = NDArray[np.float64]

PRINTED = {
    "pg-sm": ("yes", "O(1/t)", "strong", "slow", "yes", "yes"),
    "pg-es": ("yes", "O(1/t)", "weak", "slow", "yes", "yes"),
    "di": ("yes", "exact", "none", "fast", "no", "no"),
    "ce": ("no", "O(1/t)", "none", "fast", "no", "yes"),
    "mce": ("yes", "O(1/t)", "none", "fast", "no", "yes"),
}
"""What the paper prints, in the order of `AXES`."""


@dataclass(frozen=True)
class Cell:
    """What one measurement found: the entry, how far it was from another entry, and a sentence."""

    entry: str
    margin: float
    summary: str


def check_cell(update: str, axis: str, measure: Callable[[str], Cell] | None = None) -> Verdict:
    """Compare an entry of Table 1 with our measurement.

    Parameters
    ----------
    update : {"pg-sm", "pg-es", "di", "ce", "mce"}
        The row.
    axis : str
        The column, one of `AXES`.
    measure : callable, optional
        Another measurement than the column's own.

    Raises
    ------
    ValueError
        If there is no such row or column.
    """
    if update not in PRINTED:
        raise ValueError(f"update: expected one of {', '.join(PRINTED)}, got {update!r}.")
    if axis not in AXES:
        raise ValueError(f"axis: expected one of {', '.join(AXES)}, got {axis!r}.")
    printed = PRINTED[update][list(AXES).index(axis)]
    cell = (measure or AXES[axis])(update)
    agrees = cell.entry == printed
    return Verdict(
        Status.HOLDS if agrees else Status.CORRECTED,
        cell.margin if agrees else -cell.margin,
        f"Printed: {printed}; measured: {cell.entry}. {cell.summary}",
    )


_STEPS = 1000


# A gap like 1/t halves when t doubles; a gap that stalls keeps its size.
_HALVED = 0.6


def _convergence(name: str) -> Cell:
    update = UPDATES[name]
    worst = max(_stalling(problem, update, 1.0) for problem in _problems())
    margin = _HALVED - worst
    if name in ("ce", "mce") and (below := _cycling(name)) > 0.0:
        return Cell(
            "no",
            below,
            "It converges on every problem at constant weights, but under the schedule of the "
            f"three-state cycle the start is worth {below:.3g} less than the optimum for ever.",
        )
    stuck = _stalling(chain(3, beta=0.75, discount=0.5), update, 64.0)
    if stuck > _HALVED:
        return Cell(
            "yes, for small steps",
            margin,
            f"Gaps fall by {worst:.2g} or faster when t doubles, at weight 1; at weight 64 on a "
            "chain of three states one parameter lands on zero, where it never moves again, and "
            "the gap stays.",
        )
    return Cell("yes", margin, f"When t doubles every gap falls to {worst:.2g} of it or less.")


@cache
def _problems() -> tuple[FiniteMDP, ...]:
    rng = np.random.default_rng(0)
    garnets = tuple(random_mdp(rng, 12, 3, discount=0.9, horizon=20.0) for _ in range(4))
    return (chain(6), cliff(5), duplicated_chain(5, 4), *garnets)


def _stalling(problem: FiniteMDP, update: Update, weight: float) -> float:
    """Return the factor by which the largest gap falls in the second half of the run."""
    v = run(problem, update, _STEPS, weight, "uniform").v
    gap = np.max(problem.optimal().v - v, axis=1)
    # Below the rounding of the linear solves there is no gap left to compare.
    return 0.0 if gap[-1] < 1e-10 else float(gap[-1] / gap[_STEPS // 2])


def _cycling(name: str) -> float:
    """Return how far below the optimum the first state stays in the last of 500 periods."""
    values = simulate(THREE_STATES, 500, update=name).values
    last = values[-len(THREE_STATES.weights) :, 0]
    gap = float(THREE_STATES.optimum()[1][0]) - float(last.max())
    return gap if gap > 1.0 else 0.0


_BANDIT = np.array([1.0, 0.6, 0.0])


def _rates(name: str) -> Cell:
    update = UPDATES[name]
    theta, gaps = update.initial(1, 3), []
    for t in range(1, 2001):
        theta = update.step(theta, _BANDIT, 0.05)
        gaps.append(float(np.sum(update.policy(theta) * (_BANDIT[0] - _BANDIT))))
        if gaps[-1] == 0.0:
            return Cell("exact", 1.0, f"The optimum is reached after {t} updates of weight 0.05.")
    exponent = math.log2(gaps[999] / gaps[1999])
    speed = "geometric, faster than any power" if exponent > 10.0 else f"t^-{exponent:.3f}"
    entry = "O(1/t)" if exponent > 0.9 else f"slower than 1/t: {speed}"
    return Cell(
        entry, exponent - 0.9, f"Between t = 1000 and t = 2000 the gap of a bandit is {speed}."
    )


_CORNER = np.array([0.01, 0.98, 0.01])


_PULL = np.array([1.0, 0.9, 0.0])


def _gravity_well(name: str) -> Cell:
    update = UPDATES[name]
    failing, losing = _condition_failures(update)
    steps, reference = _escape(update), _escape(UPDATES["mce"])
    entry, margin = "weak", failing
    if failing == 0.0 or steps <= reference:
        entry, margin = "none", max(1.0 - failing, reference / steps)
    elif losing > 0.0 and steps > 100 * reference:
        entry, margin = "strong", losing
    return Cell(
        entry,
        margin,
        f"The greedy action does not gain most in {failing:.1%} of random states and loses in "
        f"{losing:.1%}; leaving a corner takes {steps} steps (MCE: {reference}).",
    )


def _condition_failures(update: Update, n: int = 20_000) -> tuple[float, float]:
    """Return how often the greedy action does not gain most, and how often it loses."""
    rng = np.random.default_rng(0)
    pi, q = rng.dirichlet([0.5, 0.5, 0.5], n), rng.random((n, 3))
    theta = parameters(update, pi)
    gains = update.policy(update.step(theta, q, 1.0)) - update.policy(theta)
    greedy = np.take_along_axis(gains, q.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
    # Differences of probabilities carry a few ulp of rounding.
    return float(np.mean(gains.max(axis=1) > greedy + 1e-12)), float(np.mean(greedy < -1e-12))


def _escape(update: Update) -> int:
    """Count the steps of weight 1 from a corner until the best action has probability 1/2."""
    theta, steps = parameters(update, _CORNER), 0
    while update.policy(theta)[0] < 0.5:
        theta, steps = update.step(theta, _PULL, 1.0), steps + 1
    return steps


_N = 1000


def _unlearning(name: str) -> Cell:
    n = count(_N, name, 1)
    if n < _N:
        return Cell("fast", _N / n - 1.0, f"{_N} steps of weight 1 are undone in {n}.")
    if name != "pg-es":
        return Cell("slow", n / _N - 1.0, f"{_N} steps of weight 1 are undone in {n}.")
    small, dropped = count(_N, name, 1, p="1.5"), count(_N, name, 5, factor="drop")
    return Cell(
        "slow at p = 2 with its exact gradient",
        1.0 - small / _N,
        f"{_N} steps of weight 1 are undone in {n} at p = 2, but in {small} at p = 3/2, and in "
        f"{dropped} at p = 2 and weight 5 when the factor of the gradient is dropped.",
    )


def _stochastic(name: str, runs: int = 40, n_steps: int = 20_000) -> Cell:
    """Sample q(a_2) = 3 with probability 0.4, else 0 (mean 1.2), against q(a_1) = 1."""
    update, rng = UPDATES[name], np.random.default_rng(1)
    theta = np.repeat(update.initial(1, 2), runs, axis=0)
    for t in range(1, n_steps + 1):
        sampled = np.stack([np.ones(runs), np.where(rng.random(runs) < 0.4, 3.0, 0.0)], axis=1)
        theta = update.step(theta, sampled, 0.5 * t**-0.75)
    best = update.policy(theta)[:, 1]
    entry = "yes" if best.min() > 0.5 else "no"
    return Cell(
        entry,
        abs(float(best.min()) - 0.5),
        f"The better action, best in the mean but rarely in a sample, ends with probability "
        f"{best.mean():.3f} on average and {best.min():.3f} at worst over {runs} runs.",
    )


def _deep(name: str, n_steps: int = 4000, rate: float = 0.05) -> Cell:
    """Follow the update through a linear policy with features, from a wrong, certain start.

    The outputs f = W x of the policy play the part of the tabular parameters, and W moves by the
    chain rule. For DI the only differentiable form there is, sparsemax, stands in.
    """
    rng = np.random.default_rng(3)
    features = rng.normal(size=(6, 8))
    # No near ties: this column is not about gravity wells.
    q = rng.permuted(np.tile([1.0, 0.5, 0.0], (6, 1)), axis=1)
    worst = np.argmin(q, axis=1)
    update = UPDATES[name]
    start = _outputs_preferring(update, worst)
    weights = np.linalg.lstsq(features, start, rcond=None)[0]
    for _ in range(n_steps):
        weights = weights + rate * features.T @ _direction(update, features @ weights, q)
    pi = _parametric_policy(update, features @ weights)
    best = pi[np.arange(6), np.argmax(q, axis=1)]
    return Cell(
        "yes" if best.min() > 0.5 else "no",
        abs(float(best.min()) - 0.5),
        f"From a policy that prefers the worst action, a linear policy ends with probability "
        f"{best.min():.3f} or more on the best one in all six states.",
    )


def _outputs_preferring(update: Update, actions: NDArray[np.int64]) -> Floats:
    chosen = np.eye(3)[actions]
    return 0.5 + chosen if update.name == "pg-es" else 1.5 * chosen


def _parametric_policy(update: Update, outputs: Floats) -> Floats:
    return project_simplex(outputs) if update.name == "di" else update.policy(outputs)


def _direction(update: Update, outputs: Floats, q: Floats) -> Floats:
    """Return the direction of the update in the space of the policy's outputs."""
    if update.name != "di":
        return update.step(outputs, q, 1.0) - outputs
    support = project_simplex(outputs) > 0.0
    mean = np.sum(q * support, axis=1, keepdims=True) / support.sum(axis=1, keepdims=True)
    return np.where(support, q - mean, 0.0)


AXES: dict[str, Callable[[str], Cell]] = {
    "convergence": _convergence,
    "rates": _rates,
    "gravity-well": _gravity_well,
    "unlearning": _unlearning,
    "stochastic": _stochastic,
    "deep": _deep,
}
"""The columns of Table 1 and their measurements, in the paper's order."""

for _update in PRINTED:
    for _axis in AXES:
        check(f"tab:analysis/{_update}/{_axis}", update=_update, axis=_axis)(check_cell)
