r"""More than two actions: unlearning after changes of the best action, and sign-masked CE.

The process has one state. In the first n steps some actions take turns as the best one. Then the
last action becomes the best one, and the count n' is the number of steps until it has the uniform
probability :math:`1/|A|`. The *deficit* is its distance from the largest parameter.

**MCE.** Each step adds :math:`\frac{|A|}{|A|-1}\,w\,(1-\pi(a_q))` to
:math:`\theta_{a_q}-\theta_b` for every other action b and leaves all other differences as they are.
Nothing that the actions gain over an action that is never greedy is lost again.

**CE and SCE.** A step moves parameters from some actions of a set D to one of them, as softmax over
D prescribes. Let :math:`S_m` be the sum of the m largest parameters. If the m-th largest parameter
exceeds the next one by h, the step adds at most :math:`\min\{w, C e^{-h}\}` to :math:`S_m`, with
:math:`C = w\max(|A|-1, e^w)`. Therefore all :math:`S_m` grow at most like a logarithm, and the
range of the parameters at most like :math:`(|A|-1)\log n`. Under CE the set D has all actions. Then
the largest parameter may take the place of the m-th one in the gap h, and the factor of the
logarithm is :math:`H_{|A|-1} = 1 + \frac12 + \dots + \frac1{|A|-1}`. Both factors are sharp.

**Variants.** With :math:`m = 1-\pi(a_q)` and N the actions below average, three relatives of SCE
raise the greedy action by :math:`u` and lower :math:`b\in N` by :math:`y\,\pi(b)`:

- `unbalanced`: :math:`u = w m`, :math:`y = w`;
- `balanced`: :math:`u = w\,\pi(N)`, :math:`y = w`;
- `renormalised`: :math:`u = w m`, :math:`y = u/\pi(N)`.

**A monotone update without the sign condition.** `SquareTransfer` moves probability to the greedy
action g from each other action b, in proportion to :math:`\pi(b)^2`. With
:math:`s = \sum_{b\ne g}\pi(b)^2` and
:math:`\alpha = \min\{1-e^{-w}, \pi(g)(e^w-1)/s\}` the new policy is

.. math:: \pi'(b) = \pi(b)\,(1-\alpha\,\pi(b)), \qquad \pi'(g) = \pi(g) + \alpha s.

As :math:`1/\pi(a)` grows by at most :math:`e^w-1` in a step, it forgets as CE does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle, islice
from typing import Any, Literal, get_args

import numpy as np
from flint import arb, fmpq
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar

from pu_lib import kernels
from pu_lib.arrays import Floats
from pu_lib.chapters.updates.exact_steps import direction
from pu_lib.claims.formulas import ceil, exp, formula, log
from pu_lib.deterministic import DeterministicMDP, run_process
from pu_lib.exact import precision
from pu_lib.interface import Update
from pu_lib.mdp import FiniteMDP
from pu_lib.parametrizations import (
    below_average,
    softmax,
    softmax_of_list,
    unchecked_greedy_mask,
    unchecked_softmax,
)
from pu_lib.trajectories import follow
from pu_lib.two_action_dynamics import OutOfReach
from pu_lib.updates import CrossEntropy, MaskedCrossEntropy, as_update

__all__ = [
    "HISTORIES",
    "SAMPLES",
    "SquareTransfer",
    "Variant",
    "adversary",
    "adversary_bound",
    "cascade",
    "ce_constant",
    "ce_step_bound",
    "changes_bound",
    "count",
    "deficit",
    "escape_bound",
    "escape_floor",
    "exact_count",
    "exact_mean_step",
    "floor_constant",
    "gap_bound",
    "gap_pace",
    "harmonic",
    "largest_change",
    "late_reward_mdp",
    "limit_leads",
    "mce_share",
    "pair_constant",
    "pair_range",
    "pair_values",
    "range_bound",
    "range_constant",
    "range_floor",
    "rate_run",
    "return_bound",
    "return_floor",
    "rotation_share",
    "rotation_spacing",
    "slow_corner",
    "stages",
    "step_bound",
    "steps_back",
    "sums",
    "transfer_bound",
    "transfer_odds",
    "transfer_rise",
    "turn_share",
    "where_the_mean_step_ends",
]

MAX_STEPS = 100_000
"""The largest number of steps in which an update is followed to the uniform probability."""

TIE = 1e-12
"""Probabilities that are this close count as equal."""

HISTORIES: dict[str, list[list[float]]] = {
    "two in turn, of three": [[1, 0.98, 0], [0.98, 1, 0]],
    "three in turn, of four": [[1, 0.98, 0.98, 0], [0.98, 1, 0.98, 0], [0.98, 0.98, 1, 0]],
    "three in turn, second at 0.6": [[1, 0.6, 0, 0], [0, 1, 0.6, 0], [0.6, 0, 1, 0]],
}
"""Values of one period, before the last action becomes the best one."""

SAMPLES: dict[tuple[float, float, float], float] = {
    (4.0, 0.5, 3.0): 0.05,
    (4.0, 0.5, 0.0): 0.2,
    (0.0, 0.5, 3.0): 0.15,
    (0.0, 0.5, 0.0): 0.6,
}
"""Sampled values of three actions with their probabilities; the means are 1, 0.5 and 0.6."""


# Bounds: the checks call them and claims.toml prints them.


@formula
def changes_bound(changes: Any, n_actions: Any) -> Any:
    """Return the lower bound on MCE's count after changes between other greedy actions."""
    return changes / (2 * (n_actions - 1))


@formula
def range_bound(n: Any, factor: Any, constant: Any) -> Any:
    """Return the upper bound on the range of the parameters after n steps."""
    return factor * (log(n + 1) + constant)


@formula
def range_floor(rounds: Any, factor: Any, constant: Any) -> Any:
    """Return the lower bound on the range after as many steps of each pair or in each phase."""
    return factor * (log(rounds + 1) - constant)


@formula
def return_bound(n_actions: Any, w: Any, spread: Any) -> Any:
    """Return the upper bound on CE's count from parameters with a given range."""
    return ceil(n_actions * spread / ((n_actions - 1) * w))


@formula
def return_floor(n_actions: Any, w: Any, spread: Any) -> Any:
    """Return the lower bound on the count if the last action is the lowest by a given range."""
    return (spread - log(n_actions - 1)) / (2 * w)


@formula
def adversary_bound(n: Any, n_actions: Any, least: Any, most: Any) -> Any:
    """Return the lower bound on the count under the sign condition, if the escape is quick.

    One step raises the greedy action over actions below average by at least `least`, if its
    probability is at most one half, and changes no difference of parameters by more than `most`.
    """
    return (least * n / 2 - log(n_actions - 1)) / most


@formula
def gap_bound(n: Any, n_actions: Any, least: Any, most: Any, gap: Any) -> Any:
    """Return the lower bound on the count if the best value leads by the gap in each step."""
    return (min(least * n / 2, log((1 - gap) / (2 * gap))) - log(n_actions - 1)) / most


@formula
def gap_pace(w: Any, gap: Any) -> Any:
    """Return the least rise of SCE's greedy action over those below average, up to one half.

    The values are between 0 and 1, and the best value leads by the gap.
    """
    return w * min(1 / 2, gap)


@formula
def escape_bound(odds: Any, stages: Any, w: Any, gap: Any, spread: Any) -> Any:
    """Return the upper bound on SCE's steps to probability one half under constant values.

    `odds` are the odds against the best action, `gap` is its distance from the second best action,
    and `spread` is the range of the values. The function `stages` has the other factor.
    """
    return ceil(2 / w * log(odds)) + stages * (1 + 2 * spread / (w * gap))


@formula
def escape_floor(w: Any, gap: Any, spread: Any) -> Any:
    """Return the lower bound on SCE's steps to one half from the policy of `slow_corner`."""
    return (spread / gap - 2) / (2 * (exp(w) - 1))


@formula
def transfer_rise(n_actions: Any, w: Any) -> Any:
    """Return the least rise of the greedy parameter under `SquareTransfer`, up to one half."""
    return log(1 + (1 - exp(-w)) / (2 * (n_actions - 1)))


@formula
def transfer_odds(n: Any, n_actions: Any, w: Any) -> Any:
    """Return the upper bound on the odds against an action after n steps of `SquareTransfer`."""
    return n_actions - 1 + n * (exp(w) - 1)


@formula
def transfer_bound(odds: Any, rise: Any) -> Any:
    """Return the upper bound on the count of `SquareTransfer` from the odds against an action."""
    return ceil(log(odds) / rise)


def harmonic(m: int) -> float:
    """Return 1 + 1/2 + ... + 1/m."""
    return sum(1 / j for j in range(1, m + 1))


def stages(n_actions: int, w: float) -> int:
    """Return the factor of the gap's term in `escape_bound`: at most 2 for weights up to 2."""
    return min(n_actions - 2, 2) if w <= 2 else n_actions - 2


def _rise(n_actions: int, w: float) -> float:
    """Return C of the bound C e^-h on the rise of a sum of largest parameters in one step."""
    return w * max(n_actions - 1, math.exp(w))


def _ce_rise(n_actions: int, w: float) -> float:
    """Return C for CE, where h is the distance to the largest parameter."""
    return w * (n_actions - 1) * (1 + math.exp(w))


def range_constant(n_actions: int, w: float) -> float:
    r"""Return :math:`B = \max\{0, 2w + \log(4C/(|A|-1))\}` of the bound on the range."""
    return max(0.0, 2 * w + math.log(4 * _rise(n_actions, w) / (n_actions - 1)))


def ce_constant(n_actions: int, w: float) -> float:
    r"""Return :math:`\max\{0, 2w + \log(4w(|A|-1)(1+e^w))\}`, the constant of CE's range."""
    return max(0.0, 2 * w + math.log(4 * _ce_rise(n_actions, w)))


def floor_constant(n_actions: int, w: float) -> float:
    r"""Return :math:`\max\{2w, 2w(|A|-1) + \log(|A|/w)\}`, for the lower bound on CE's range."""
    return max(2 * w, 2 * w * (n_actions - 1) + math.log(n_actions / w))


def pair_constant(n_actions: int, w: float) -> float:
    r"""Return :math:`B' = \max_m \log(1 + \frac{2c_m}{w} e^{2c_m})`, :math:`2c_m = m(|A|-m)`."""
    twice = [m * (n_actions - m) for m in range(1, n_actions)]
    return max(math.log1p(c / w * math.exp(c)) for c in twice)


def step_bound(n_actions: int, w: float, gap: ArrayLike) -> Floats:
    """Return the bound min(w, C e^-h) on the rise of a sum of largest parameters in one step."""
    return np.minimum(w, _rise(n_actions, w) * np.exp(-np.asarray(gap, dtype=np.float64)))


def ce_step_bound(n_actions: int, w: float, gap: ArrayLike) -> Floats:
    """Return the bound for CE, where the gap is that to the largest parameter."""
    return np.minimum(w, _ce_rise(n_actions, w) * np.exp(-np.asarray(gap, dtype=np.float64)))


# Counts


def _rows(history: Sequence[Sequence[float]], n: int) -> Floats:
    """Return the values of n steps, one period after the other."""
    n_actions = len(history[0])
    return np.array(list(islice(cycle(history), n)), dtype=np.float64).reshape(n, n_actions)


def deficit(
    update: str | Update, history: Sequence[Sequence[float]], n: int, weight: float = 1.0
) -> float:
    """Return the largest parameter minus the last one after n steps from the uniform policy.

    `history` has the values of one period, with shape (period, n_actions). The update must have
    softmax parameters.
    """
    theta = follow(update, _rows(history, n), weight, n)[-1]
    return float(theta.max() - theta[-1])


def count(
    update: str | Update,
    history: Sequence[Sequence[float]],
    n: int,
    weight: float = 1.0,
    final: Sequence[float] | None = None,
) -> int:
    """Return the steps until the last action has the uniform probability, after n steps.

    `history` has the values of one period, with shape (period, n_actions). `final` has the values
    afterwards; the last should be the largest. By default it is 1 and all others are 0.

    Raises
    ------
    OutOfReach
        If more than 100 000 steps are needed.
    """
    chosen, n_actions = as_update(update), len(history[0])
    theta = (
        follow(chosen, _rows(history, n), weight, n)[-1] if n else chosen.initial(1, n_actions)[0]
    )
    return steps_back(chosen, theta, weight, final)


def steps_back(
    update: Update, theta: Floats, weight: float, final: Sequence[float] | None = None
) -> int:
    """Return the steps until the last action has the uniform probability, from given parameters.

    `final` has the values; by default the last one is 1 and all others are 0.
    """
    n_actions, done, chunk = len(theta), 0, 16
    last = np.eye(n_actions)[-1] if final is None else np.array(final)
    while done <= MAX_STEPS:
        path = follow(update, last, weight, chunk, theta)
        there = np.flatnonzero(update.policy(path)[:, -1] >= 1.0 / n_actions - TIE)
        if len(there):
            return done + int(there[0])
        theta, done, chunk = path[-1], done + chunk, 2 * chunk
    raise OutOfReach(f"{update.name}: the last action is not back after {done} steps")


def exact_count(
    name: str, history: Sequence[Sequence[float]], n: int, weight: str = "1", bits: int = 1200
) -> tuple[int, arb]:
    """Return the count and the deficit of `ce`, `mce` or `sce` in ball arithmetic.

    The formulas are those of `pu_lib.chapters.updates.exact_steps`, which share no code with the
    library. Comparisons that balls do not decide raise an error.
    """
    w, n_actions = arb(fmpq(*map(int, (weight + "/1").split("/")[:2]))), len(history[0])
    last = [0.0] * (n_actions - 1) + [1.0]

    def step(theta: list[arb], q: Sequence[float]) -> list[arb]:
        moves = direction(name, theta, list(q))
        return [x + w * y for x, y in zip(theta, moves, strict=True)]

    with precision(bits):
        theta = [arb(0)] * n_actions
        for q in islice(cycle(history), n):
            theta = step(theta, q)
        lag, steps = max(theta, key=float) - theta[-1], 0
        while not _is_back(theta):
            theta, steps = step(theta, last), steps + 1
        return steps, lag


def _is_back(theta: Sequence[arb]) -> bool:
    """Return whether the last action has at least the uniform probability."""
    excess = sum(((x - theta[-1]).exp() for x in theta), arb(-len(theta)))
    if excess.contains(0) and not excess.is_zero():
        if float(excess.rad()) < 1e-20:  # a tie up to the rounding of the balls
            return True
        raise ArithmeticError("the balls do not decide whether the last action is back")
    return bool(excess <= 0)


# MCE remembers


def mce_share(weight: float, n_actions: int) -> float:
    r"""Return the limit of n'/n under MCE after two actions took turns as the best one.

    The limit is :math:`\sigma(y)/2` with :math:`y = \frac{cw}{2}\sigma(y)`,
    :math:`c = |A|/(|A|-1)`.
    """
    return rotation_share(weight, n_actions, 2)


def rotation_share(weight: float, n_actions: int, rotating: int) -> float:
    """Return n'/n on MCE's orbit on which m actions take turns as the best one."""
    total = n_actions / (n_actions - 1) * weight
    return rotation_spacing(total, rotating) / total


def rotation_spacing(total: float, rotating: int) -> float:
    r"""Return the distance s of neighbouring parameters on MCE's orbit with m actions in turn.

    Before each step the parameters of the m actions are s apart, and the greedy one is the lowest.
    With `total` for cw, :math:`ms = cw(1-p)` and :math:`1/p = \sum_{j<m}e^{js}`.
    """

    def excess(s: float) -> float:
        greedy = 1.0 / np.exp(s * np.arange(rotating)).sum()
        return float(rotating * s - total * (1.0 - greedy))

    return float(brentq(excess, 1e-9 * total, total / rotating, xtol=1e-16))


def limit_leads(order: Sequence[int], total: float, leads: ArrayLike, n: int) -> Floats:
    """Return the leads of the actions in turn under MCE without any other action, (n + 1, m).

    `order` has the greedy actions of a period, and `total` is cw. With other actions MCE tends to
    this map while they become rare.
    """
    path = [np.array(leads, dtype=np.float64)]
    for g in islice(cycle(order), n):
        new = path[-1].copy()
        new[g] += total * (1.0 - softmax(new)[g])
        path.append(new)
    return np.array(path)


def turn_share(order: Sequence[int], total: float, periods: int = 300) -> float:
    """Return the limit of n'/n under MCE in a periodic order of greedy actions.

    It is the mean growth of the largest lead in the second half of a run, divided by `total`.
    """
    half = periods * len(order)
    top = limit_leads(order, total, np.zeros(max(order) + 1), 2 * half).max(axis=1)
    return float(top[-1] - top[half]) / (half * total)


# Sums of the largest parameters


def sums(theta: ArrayLike) -> Floats:
    """Return the sums of the 1, 2, ..., K largest entries along the last axis."""
    return np.asarray(np.cumsum(-np.sort(-np.asarray(theta, dtype=np.float64)), axis=-1))


def pair_range(n_actions: int, n: int, weight: float = 1.0) -> Floats:
    """Return the parameters of SCE if each step involves two neighbours, shape (n + 1, n_actions).

    Step t raises action m = t mod (K - 1) and lowers action m + 1. This is the step of SCE at the
    values 1 for action m, 0 for action m + 1, and above average for all others.
    """
    row, path = [0.0] * n_actions, [[0.0] * n_actions]
    for t in range(n):
        m = t % (n_actions - 1)
        moved = weight / (1.0 + math.exp(row[m] - row[m + 1]))
        row[m] += moved
        row[m + 1] -= moved
        path.append(row.copy())
    return np.array(path)


def pair_values(theta: Floats, m: int) -> Floats:
    """Return values at which SCE raises action m and lowers action m + 1, and no other action.

    The two have the values 1 and 0. All others are halfway between 1 and the mean of the two.
    """
    mean = 1.0 / (1.0 + math.exp(theta[m + 1] - theta[m]))
    q = np.full(len(theta), (1.0 + mean) / 2)
    q[[m, m + 1]] = 1.0, 0.0
    return q


def cascade(n_actions: int, rounds: int, weight: float = 1.0) -> Floats:
    """Return CE's parameters after phases of equal length in which its range becomes largest.

    In the first phase the greedy action is the lowest of all actions but the last, in the next one
    the lowest of all but the last two, and so on; in the last one it is the first action.
    """
    theta = [0.0] * n_actions
    for m in range(n_actions - 1, 0, -1):
        for _ in range(rounds):
            greedy = theta.index(min(theta[:m]))
            kernels.ce(theta, softmax_of_list(theta), None, greedy, weight, n_actions)
    return np.array(theta)


def slow_corner(gap: float, n_actions: int = 3) -> tuple[Floats, Floats]:
    """Return a policy and values from which SCE needs at least `escape_floor` steps.

    The second action has the value 1 - gap and nearly all the mass. The best action, with value 1,
    is as rare as all others together, which have value 0.
    """
    others = n_actions - 2
    pi = np.array([gap, 1.0, *[gap / others] * others])
    return pi / pi.sum(), np.array([1.0, 1.0 - gap, *[0.0] * others])


def late_reward_mdp() -> FiniteMDP:
    """Return an MDP whose optimal action is not greedy if the second state has no weight.

    At the first state one action leads to the second state with reward 0, and the other one ends
    the episode with reward 6. At the second state both actions end the episode, with rewards 10 and
    0. The discount is 9/10. The first action has the value 9 in the optimum, and 4.5 while the
    policy of the second state is uniform.
    """
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    transitions[1:, :, 2] = 1.0
    rewards = [[0.0, 6.0], [10.0, 0.0], [0.0, 0.0]]
    return FiniteMDP(transitions, rewards, [1.0, 0.0, 0.0], 0.9, np.array([False, False, True]))


# The sign condition


def adversary(
    update: str | Update, n: int, n_actions: int = 3, weight: float = 1.0, gap: float = 0.0
) -> tuple[int, float, float]:
    """Return the count after n steps against the update, and the extremes of its steps.

    Each step makes the less probable of the first two actions the best one, with value 1. The other
    one has a value so near to 1 that its advantage is positive, and the rest has value 0. With a
    `gap` the other one has the value 1 - gap, and the steps end when the rest has less probability
    than that. The extremes are the smallest amount by which a step raised the greedy action over an
    action below average, and the largest change of a difference of parameters.
    """
    chosen = as_update(update)
    theta, least, most = chosen.initial(1, n_actions)[0], math.inf, 0.0
    for _ in range(n):
        pi = softmax(theta)
        best, rest = int(pi[1] < pi[0]), pi[2:].sum()
        if rest < gap:
            break
        q = np.zeros(n_actions)
        q[best] = 1.0
        q[1 - best] = 1.0 - (gap or 0.5 * rest / (1.0 - pi[1 - best]))
        new = chosen.step(theta, q, weight)
        moved = new - theta
        least = min(least, float(moved[best] - moved[2:].max()))
        most, theta = max(most, float(np.ptp(moved))), new
    return steps_back(chosen, theta, weight), least, most


def largest_change(weight: float) -> float:
    r"""Return :math:`\max_p\,\sigma(\mathrm{logit}\,p + 2w(1-p)) - p`.

    This is the largest change of a probability in one step of CE or SCE with two actions.
    """

    def change(log_odds: float) -> float:
        p, rest = 1 / (1 + math.exp(-log_odds)), 1 / (1 + math.exp(log_odds))
        return p - 1 / (1 + math.exp(-log_odds - 2 * weight * rest))

    return -float(minimize_scalar(change, bounds=(-30, 10), options={"xatol": 1e-12}).fun)


def where_the_mean_step_ends(
    update: str | Update, start: Sequence[float], n_steps: int = 3000, weight: float = 0.3
) -> tuple[Floats, float]:
    """Return the parameters after many mean steps with `SAMPLES`, and the size of the last one.

    The size is the largest change of a parameter per unit of weight.
    """
    chosen, theta = as_update(update), np.array(start, dtype=np.float64)
    values, chances = np.array(list(SAMPLES)), np.array(list(SAMPLES.values()))
    for _ in range(n_steps):
        change = chances @ (chosen.step(np.tile(theta, (len(values), 1)), values, weight) - theta)
        theta = theta + change
    return theta, float(np.abs(change).max()) / weight


def exact_mean_step(masked: bool, policy: Sequence[Fraction]) -> list[Fraction]:
    """Return the mean step of CE or, if `masked`, of SCE with `SAMPLES`, for a unit weight.

    The formulas are written out for fractions and share no code with the updates.
    """
    total = [Fraction(0)] * len(policy)
    for values, chance in SAMPLES.items():
        q, p = [Fraction(x) for x in values], Fraction(str(chance))
        mean = sum((x * y for x, y in zip(policy, q, strict=True)), Fraction(0))
        best = max(range(len(q)), key=lambda a: q[a])
        actions = [a for a in range(len(q)) if a == best or not masked or q[a] < mean]
        size = sum((policy[a] for a in actions), Fraction(0))
        for a in actions:
            total[a] += p * ((a == best) - policy[a] / size)
    return total


def rate_run(update: str | Update, cycles: int = 4) -> list[tuple[int, float]]:
    """Return (t, t pi_t(3)) at the ends of the phases in which two best actions draw near a tie.

    There are three actions, the third has value 0, and the weights are 1. In each phase the less
    probable of the first two actions becomes the best one, by a lead that is half of the one
    before. When it has probability one half, the phase lasts another pi(3)^-1.75 steps, with pi(3)
    at the start of the phase. The pairs are those when the best action has reached one half.
    """
    chosen, ends, t = as_update(update), [], 0
    q, lead = np.array([0.5, 0.5, 0.0]), 0.12
    theta = chosen.initial(1, 3)[0]
    for cycle_ in range(cycles):
        best = cycle_ % 2
        q[best] = q.max() + lead
        last = softmax(theta)[2] ** -1.75
        while softmax(theta)[best] < 0.5:
            theta, t = chosen.step(theta, q), t + 1
        ends.append((t, t * float(softmax(theta)[2])))
        if cycle_ == cycles - 1:
            break
        one = DeterministicMDP(q[np.newaxis], np.full((1, 3), -1), np.array([3]), 0.5)
        theta = run_process(one, chosen, theta[np.newaxis], np.ones((1, 1)), int(last)).theta[0]
        t, lead = t + int(last), lead / 2
    return ends


# Variants

Kind = Literal["unbalanced", "balanced", "renormalised"]


@dataclass(frozen=True)
class Variant(MaskedCrossEntropy):
    """One of three relatives of SCE, see the module; `kind` is its name there."""

    name = "variant"
    title = "variant of sign-masked cross-entropy"
    label = "variant"
    kind: Kind = "unbalanced"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind: expected one of {get_args(Kind)}, got {self.kind!r}.")

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        mask, pi = unchecked_greedy_mask(q, self.ties, rng), unchecked_softmax(theta)
        lowered = below_average(theta, q) & ~mask
        gain = np.where(lowered if self.kind == "balanced" else ~mask, pi, 0.0)
        raised = np.where(lowered.any(axis=-1), gain.sum(axis=-1), 0.0)[..., np.newaxis]
        loss = np.where(lowered, pi, 0.0)
        if self.kind == "renormalised":  # softmax over the lowered actions cannot underflow
            some = lowered | ~lowered.any(axis=-1, keepdims=True)
            shares = unchecked_softmax(np.where(some, theta, -np.inf))
            loss = raised * np.where(lowered, shares, 0.0)
        return np.asarray(theta + weight * self._moving(mask, np.where(mask, raised, -loss)))


@dataclass(frozen=True)
class SquareTransfer(CrossEntropy):
    """The monotone update without the sign condition, see the module.

    `power` and `capped` are for wrong variants: the other actions lose in proportion to this power
    of their probability, and `capped` limits the rise of the greedy parameter to the weight.
    """

    name = "square-transfer"
    title = "transfer in proportion to squared probabilities"
    label = "transfer"
    power: int = 2
    capped: bool = True

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        mask = unchecked_greedy_mask(q, self.ties, rng)
        shifted = theta - theta.max(axis=-1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        greedy = np.where(mask, logs, -np.inf).max(axis=-1, keepdims=True)
        share, most = -np.expm1(-weight), np.expm1(weight)
        with np.errstate(over="ignore"):  # the gain over the greedy probability, before the cap
            gains = np.where(mask, 0.0, np.exp(self.power * logs - greedy))
            gain = share * gains.sum(axis=-1, keepdims=True)
        cap = np.minimum(1.0, most / np.maximum(gain, np.finfo(float).tiny))
        cap = cap if self.capped else np.ones_like(cap)
        with np.errstate(divide="ignore"):  # a loss that rounds to the whole probability
            lost = np.maximum(np.log1p(-cap * share * np.exp((self.power - 1) * logs)), -weight)
        raised = np.log1p(np.minimum(gain, most) if self.capped else gain)
        return np.asarray(theta + self._moving(mask, np.where(mask, raised, lost)))
