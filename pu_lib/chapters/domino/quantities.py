r"""The domino setting (paper, section 3.4.3; Theorem 6, Lemma 13): flip times and their bounds.

There are states :math:`s_1, \dots, s_h`, :math:`h = |\mathcal S|`, with two actions each, and the
values are set by hand. The last state always has :math:`q = (0, 1)`. Any other state has
:math:`q = (0, 1)` if the next one has *flipped*, that is if :math:`\pi_t(a_2) > \pi_0(a_2)` there,
and :math:`q = (1, 0)` otherwise. State :math:`s_k` first flips at time :math:`n_k`; the setting is
solved at time :math:`n_1`. Starts are uniform unless said otherwise.

`simulate` updates every state at every step. `recursion` is faster but relies on a theorem of the
chapter: no state flips back under DI, PG-SM, CE, MCE, nor under PG-ES with :math:`p \ge 2`, and so

.. math:: n_h = 1, \qquad n_k = n_{k+1} + n'_s(n_{k+1}),

where :math:`n'_s(n)` is the number of updates that more than undo :math:`n` updates (the *strict*
count of `pu_lib.chapters.unlearning.quantities`). If that count is too long for single steps, it is
taken from a theorem (DI) or enclosed in blocks of steps (PG-SM). `domino` uses the recursion if it
is proved, and the simulation otherwise: for PG-ES with :math:`p < 2` and for updates registered by
a user.

All counts are exact (rational or ball arithmetic), except those of an update that a user has
registered, which are computed in floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from fractions import Fraction
from itertools import count as count_from
from itertools import islice
from typing import Any

import numpy as np
from flint import arb

from pu_lib.chapters.unlearning.quantities import (
    FARTHEST,
    MAX_STEPS,
    QUICK,
    direct_decaying,
    in_reach,
    linked_count,
    recover,
    unwalked,
    walkable,
)
from pu_lib.claims.formulas import exp, floor, formula, log
from pu_lib.domains import chain
from pu_lib.exact import Number, certified
from pu_lib.two_action_dynamics import (
    CrossEntropyWalker,
    DirectWalker,
    EscortWalker,
    OutOfReach,
    Setting,
    SoftmaxWalker,
    StepWalker,
    require_count,
    setting,
)
from pu_lib.updates import Update, as_update

__all__ = [
    "amplitude",
    "board",
    "chain_flips",
    "domino",
    "linked_recursion",
    "recursion",
    "simulate",
]

HALF = Fraction(1, 2)

_AT_A_TIME = 20
"""Up to so many states are simulated for `max_steps` steps; more states share that work."""

FlipTimes = list[int | float]
"""When each state flips, the first state first; infinity if it never does."""


# Bounds. Each is written once: the checks call it, and claims.toml prints it.


@formula
def bound_pg(h: int) -> Any:
    """Theorem 6(i), as printed: a lower bound on the steps of policy gradients."""
    return 2 ** (h - 1)


@formula
def bound_pg_sharp(h: int) -> Any:
    """Theorem 6(i), improved: attained by short steps."""
    return 2**h - 1


@formula
def bound_di(h: int, w: Any) -> Any:
    """Theorem 6(ii), as printed: an upper bound on the steps of DI."""
    return 1 + (h - 1) / w


@formula
def bound_di_sharp(h: int, w: Any) -> Any:
    """Theorem 6(ii), corrected."""
    return 1 + (h - 1) * (floor(1 / w) + 1)


@formula
def bound_ce(m: Any, w: Any) -> Any:
    """Theorem 6(iii) with m = h - 1, and Lemma 13 with m = n, as printed."""
    return 32 * exp(8 * w + 3) / w**3 * m * log(m)


@formula
def bound_ce_sharp(m: int, w: Any) -> Any:
    """Theorem 6(iii) with m = h - 1, and Lemma 13 with m = n, improved, with 0 log 0 = 0."""
    if m == 0:
        return 2 + 1 / (2 * w)
    return 4 * m + 2 + 1 / (2 * w) + 2 * m / w * (log(4 * m) - 1)


# Flip times


def domino(
    states: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    factor: str = "keep",
    max_steps: int = MAX_STEPS,
    schedule: str = "constant",
) -> int | float:
    """Return the number of steps that solve the domino setting; infinity if none does.

    `eta` is the weight (learning rate times d) of every state; `p`, `factor` and `schedule` are as
    for `pu_lib.chapters.unlearning.quantities.count`. At most `max_steps` steps are simulated.

    Raises
    ------
    OutOfReach
        If it would take more steps and no theorem gives the number.
    """
    states, max_steps = _checked(states, max_steps)
    chosen = setting(update, eta, schedule, p, factor)
    constant = chosen.schedule == "constant"
    if constant and chosen.kind is DirectWalker and solved_di(states, chosen.eta) > QUICK:
        return solved_di(states, chosen.eta)
    if chosen.killing_step() == 1:
        return math.inf if states > 1 else 1
    _refuse_hopeless(states, chosen, max_steps)
    never_flips_back = chosen.kind is not StepWalker and (
        chosen.kind is not EscortWalker or (chosen.p >= 2 and constant)
    )
    method = recursion if never_flips_back else simulate
    return method(states, update, eta, p, factor=factor, schedule=schedule, max_steps=max_steps)[0]


def _checked(states: int, max_steps: int) -> tuple[int, int]:
    return require_count("states", states, 1), require_count("max_steps", max_steps, 0)


def recursion(
    states: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    *,
    strict: bool = True,
    max_steps: int = MAX_STEPS,
    **options: Any,
) -> FlipTimes:
    """Return the flip times by the recursion; `strict=False` counts as the paper's proof does.

    `options` are `factor`, `schedule` and `start`, the first probability of a_1 at every state.
    """
    states, max_steps = _checked(states, max_steps)
    chosen = setting(update, eta, p=p, **options)
    if chosen.kind is EscortWalker and chosen.start != HALF:
        raise ValueError(
            "start: a state of pg-es may flip back unless it starts at 1/2; use simulate."
        )
    if chosen.start in (0, 1):
        raise ValueError(
            f"start: expected a number inside (0, 1), got {chosen.start}; use simulate."
        )
    return certified(lambda: _recursion(states, chosen, strict, max_steps))


def _recursion(states: int, chosen: Setting, strict: bool, max_steps: int) -> FlipTimes:
    # All states make the same updates until the next state flips, so one path serves them all.
    forward, weights, made = chosen.walker(), chosen.weights(), 0
    times: FlipTimes = [1]
    while len(times) < states:
        later = times[-1]
        if isinstance(later, float) or chosen.killing_step() <= later:
            times.append(math.inf)
            continue
        _refuse_hopeless(states - len(times) + 1, chosen, max_steps, later)
        if later > walkable(chosen, in_reach(max_steps)):
            back = unwalked(later, chosen, strict, max_steps)
        elif chosen.has_root_weights:
            back = direct_decaying(later, chosen, strict)
        else:
            chosen.require_resolved(later)
            for weight in islice(weights, later - made):
                forward.forward(weight)
            made = later
            back = recover(copy(forward), later, chosen, strict, max_steps)
        times.append(later + back)
    return times[::-1]


def linked_recursion(states: int, eta: Number, density: Callable[[arb], arb]) -> list[int]:
    """Return the flip times of the policy gradient for a policy with that (positive) density."""
    states, times = require_count("states", states, 1), [1]
    while len(times) < states:
        times.append(times[-1] + linked_count(times[-1], eta, density, strict=True))
    return times[::-1]


def simulate(
    states: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    *,
    max_steps: int = MAX_STEPS,
    **options: Any,
) -> FlipTimes:
    """Return the flip times by updating every state at every step; `options` as for `recursion`."""
    states, max_steps = _checked(states, max_steps)
    chosen = setting(update, eta, p=p, **options)
    if chosen.has_root_weights:
        raise ValueError("schedule: di is walked with rational weights; `recursion` counts others.")
    times, _ = certified(lambda: _simulate(states, chosen, max_steps))
    return times


def board(
    states: int, update: str | Update = "pg-sm", eta: Number = 1
) -> tuple[FlipTimes, list[list[float]]]:
    """Return the flip times, and the probability of a_2 at each time (row) and state (column)."""
    states, _ = _checked(states, MAX_STEPS)
    chosen = setting(update, eta)
    return certified(lambda: _simulate(states, chosen, MAX_STEPS, record=True))


def _simulate(
    states: int, chosen: Setting, max_steps: int, record: bool = False
) -> tuple[FlipTimes, list[list[float]]]:
    most = in_reach(max_steps) * _AT_A_TIME // max(_AT_A_TIME, states)
    if states > most:
        raise OutOfReach(
            f"the domino setting takes at least {states} steps with {states} states; at most "
            f"{most} are walked"
        )
    chosen.require_resolved(1)
    row, weights = chosen.row(states), chosen.weights()
    times: FlipTimes = [math.inf] * states
    history: list[list[float]] = []
    for t in count_from(0):
        flipped = [side < 0 for side in row.sides()]
        if record:
            history.append([1 - first for first in row.probabilities()])
        times = [min(time, t) if now else time for time, now in zip(times, flipped, strict=True)]
        if flipped[0] or row.stuck(sum(map(math.isinf, times))):
            return times, history
        if t == most:
            break
        row.move([*(not now for now in flipped[1:]), False], next(weights))
    raise OutOfReach(f"the domino setting is not solved after {most} steps")


def _refuse_hopeless(states: int, chosen: Setting, max_steps: int, solved: int = 1) -> None:
    """Raise OutOfReach if the bounds say that the states left take too many steps.

    `solved` is the flip time of the last of them, 1 if it is the last of all.
    """
    if chosen.schedule != "constant":
        return
    name, softmax = chosen.update.name, chosen.kind is SoftmaxWalker
    escort = chosen.kind is EscortWalker and chosen.p >= 2 and chosen.factor == "keep"
    if softmax or escort:
        # n_k + 1 at least doubles with every state; blocks of steps of PG-SM reach farther.
        most = FARTHEST if softmax else max_steps
        if (most + 1) >> (states - 1) <= solved:
            least = f"2^{states} - 1" if solved == 1 else f"{(solved + 1) * 2 ** (states - 1) - 1}"
            raise OutOfReach(
                f"{name} takes at least {least} steps to solve this domino setting (Theorem 6(i), "
                f"corrected); at most {most} are counted"
            )
    elif states > max_steps:  # each state flips at least one step after the next one
        above = ""
        if chosen.kind is CrossEntropyWalker and chosen.has_float_size:
            above = f" and at most {bound_ce_sharp(states - 1, float(chosen.eta)):.9g}"
        raise OutOfReach(
            f"{name} takes at least {states}{above} steps to solve {states} states; at most "
            f"{max_steps} are walked"
        )


def exact_di(states: int, weight: Fraction) -> list[int]:
    r"""Return DI's flip times: :math:`n_k = n_{k+1} + \min\{n_{k+1}, \lfloor 1/w\rfloor\} + 1`."""
    times = [1]
    while len(times) < states:
        times.insert(0, times[0] + min(times[0], math.floor(1 / weight)) + 1)
    return times


def solved_di(states: int, weight: Fraction) -> int:
    """Return the first of `exact_di` without a list: it doubles, then grows linearly."""
    wall, solved, made = math.floor(1 / weight), 1, 1
    while made < states and solved < wall:
        solved, made = 2 * solved + 1, made + 1
    return solved + (states - made) * (wall + 1)


# Lemma 13, and the domino setting as a decision process


def worst_sequence(n: int, w: float) -> list[float]:
    """Return X_0, ..., X_n if Lemma 13's hypothesis holds with equality."""
    values = [1.0]
    for _ in range(n):
        values.append(values[-1] + 2 + math.log1p(2 * w * values[-1]) / w)
    return values


def amplitude(states: int, start: Fraction = HALF) -> Fraction:
    r"""Return the final reward R of a domino chain whose rewards at s_1 are one apart.

    In state :math:`s_k`, :math:`a_1` ends the episode with reward :math:`r_k` and :math:`a_2` leads
    to :math:`s_{k+1}`, from :math:`s_h` to R; :math:`r_h = 0`, and there is no discount. If all
    later states have flipped, the preference at :math:`s_k` changes when :math:`\pi(a_2|s_{k+1})`
    passes its start x, if and only if :math:`r_k = (1-x) r_{k+1} + xR`.
    """
    return 1 / (1 - start) ** (states - 1)


def chain_flips(
    states: int, update: str | Update, eta: float, max_steps: int = 10_000
) -> list[int]:
    """Return when each state of the chain (equation 2) prefers walking for good, values exact."""
    process, chosen = chain(states + 1), as_update(update)
    theta = np.asarray(chosen.initial(states + 1, 2), dtype=np.float64)
    times = np.zeros(states, dtype=np.int64)
    for step in range(1, max_steps + 1):
        theta = chosen.step(theta, process.evaluate(chosen.policy(theta)).q, eta)
        walks = chosen.policy(theta)[:-1, 1] > 0.5
        times = np.where(walks, np.where(times > 0, times, step), 0)
        if walks.all():
            return [int(time) for time in times]
    raise ValueError(f"max_steps: {chosen.name} does not walk everywhere after {max_steps}.")
