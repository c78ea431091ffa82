r"""The domino setting (paper, section 3.4.3; Theorem 6, Lemma 13).

States :math:`s_1, \dots, s_h`, two actions each, :math:`h = |\mathcal S|`. The values are set by
hand: :math:`q(s_h, \cdot) = (0, 1)` always, and for :math:`k < h`, :math:`q(s_k, \cdot) = (0, 1)`
if :math:`s_{k+1}` has *flipped*, that is if :math:`\pi_t(a_2|s_{k+1}) > \pi_0(a_2|s_{k+1})`, else
:math:`(1, 0)`. The setting is solved at :math:`n_1`, where
:math:`n_k = \min\{t : \pi_t(a_2|s_k) > \pi_0(a_2|s_k)\}`.

`simulate` updates all states at every step. `recursion` uses that no state un-flips (proved in the
chapter for DI, PG-SM, CE, MCE and for PG-ES with :math:`p \ge 2`):

.. math:: n_h = 1, \qquad n_k = n_{k+1} + n'_s(n_{k+1}),

with the *strict* count :math:`n'_s` of `pu_lib.chapters.unlearning.quantities`; where a count is too long to
walk it is taken from a theorem (DI) or enclosed in blocks of steps (PG-SM). `domino` takes the
recursion where it is proved and the simulation elsewhere: for PG-ES with :math:`p < 2`, and for an
update registered by a user, in floats. The starts are uniform unless said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from fractions import Fraction
from itertools import count as count_from
from itertools import islice

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

_AT_A_TIME = 20
"""How many states may be walked as many steps as asked for; more share these."""


def domino(
    states: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    factor: str = "keep",
    max_steps: int = MAX_STEPS,
    schedule: str = "constant",
) -> int | float:
    """Return the number of steps that solve the domino setting (math.inf if none does).

    It is exact for the paper's five updates, and that of floating point for any other.

    Parameters
    ----------
    states : int
        The number of states, at least 1.
    update, eta, p, factor
        As for `pu_lib.chapters.unlearning.quantities.count`; `eta` is the weight eta * d of every state.
    max_steps : int
        The most steps to walk; where every state is walked, more than twenty of them share as many.
    schedule : str
        As for `pu_lib.chapters.unlearning.quantities.count`.

    Returns
    -------
    int or math.inf
        The number of steps after which every state prefers :math:`a_2`.

    Raises
    ------
    OutOfReach
        A ValueError: if stepping would take longer, and no theorem gives the number.
    ValueError
        If an argument is unknown or out of range.
    """
    states, max_steps = _checked(states, max_steps)
    chosen = setting(update, eta, schedule, p, factor)
    constant = chosen.schedule == "constant"
    if constant and chosen.kind is DirectWalker and solved_di(states, chosen.eta) > QUICK:
        return solved_di(states, chosen.eta)  # the theorem is quicker than a long walk
    if chosen.killing_step() == 1:
        return math.inf if states > 1 else 1
    _refuse_hopeless(states, chosen, max_steps)
    proved = chosen.kind is not StepWalker and (
        chosen.kind is not EscortWalker or (chosen.p >= 2 and constant)
    )
    if proved:
        return recursion(states, update, eta, p, factor, max_steps, schedule=schedule)[0]
    return simulate(states, update, eta, p, factor, max_steps, schedule)[0]


def _checked(states: int, max_steps: int) -> tuple[int, int]:
    return require_count("states", states, 1), require_count("max_steps", max_steps, 0)


def _refuse_hopeless(states: int, chosen: Setting, max_steps: int, solved: int = 1) -> None:
    """Raise OutOfReach where the theorems say that the states left take too long to walk.

    `solved` is the flip time of the state after the `states`-th from the front, 1 at the last.
    """
    name = chosen.update.name
    if chosen.schedule != "constant":
        return
    retraces = chosen.kind is SoftmaxWalker or (
        chosen.kind is EscortWalker and chosen.p >= 2 and chosen.factor == "keep"
    )
    # n_k + 1 doubles at least; the blocks of steps in which PG-SM is counted reach farther
    most = FARTHEST if chosen.kind is SoftmaxWalker else max_steps
    if retraces and (most + 1) >> (states - 1) <= solved:
        least = f"2^{states} - 1" if solved == 1 else f"{(solved + 1) * 2 ** (states - 1) - 1}"
        raise OutOfReach(
            f"{name} takes at least {least} steps to solve this domino setting (Theorem 6(i), "
            f"corrected); at most {most} are counted"
        )
    # each state turns one step at least after the next one
    if not retraces and states > max_steps:
        above = ""
        if chosen.kind is CrossEntropyWalker and chosen.has_float_size:
            above = f" and at most {bound_ce_sharp(states, float(chosen.eta)):.9g}"
        raise OutOfReach(
            f"{name} takes at least {states}{above} steps to solve {states} states; at most "
            f"{max_steps} are walked"
        )


def recursion(
    states: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    factor: str = "keep",
    max_steps: int = MAX_STEPS,
    start: Number = "1/2",
    strict: bool = True,
    schedule: str = "constant",
) -> list[int | float]:
    """Return [n_1, ..., n_h] from n_h = 1 and n_k = n_{k+1} + n'_s(n_{k+1}).

    Parameters
    ----------
    states, update, eta, p, factor, max_steps
        As for `domino`.
    start : int, Fraction, str or float
        pi_0(a_1) at every state: 1/2 for PG-ES, inside (0, 1) for DI.
    strict : bool
        Whether the strict count is used; the paper's proof uses the other one.
    schedule : str
        As for `domino`; no state un-flips with any weights, but for PG-ES.

    Returns
    -------
    list of int or math.inf
        When each state turns, the first state first.

    Raises
    ------
    OutOfReach, ValueError
        As for `domino`.
    """
    states, max_steps = _checked(states, max_steps)
    chosen = setting(update, eta, schedule, p, factor, start)
    if chosen.kind is EscortWalker and chosen.start != Fraction(1, 2):
        raise ValueError(
            "start: a state of pg-es may flip back unless it starts at 1/2; use simulate."
        )
    if chosen.start in (0, 1):
        raise ValueError(f"start: expected a number inside (0, 1), got {start}; use simulate.")
    return certified(lambda: _recursion(states, chosen, max_steps, strict))


def _recursion(states: int, chosen: Setting, max_steps: int, strict: bool) -> list[int | float]:
    # all states walk the same forward path, state k up to n_{k+1}
    forward, weights, made = chosen.walker(), chosen.weights(), 0
    times: list[int | float] = [1]
    while len(times) < states:
        later = times[-1]
        if isinstance(later, float) or chosen.killing_step() <= later:
            times.append(math.inf)
            continue
        _refuse_hopeless(states - len(times) + 1, chosen, max_steps, later)
        if later > walkable(chosen, in_reach(max_steps)):
            times.append(later + unwalked(later, chosen, strict, max_steps))
            continue
        if chosen.has_root_weights:
            times.append(later + direct_decaying(int(later), chosen, strict))
            continue
        chosen.require_resolved(later)
        for w in islice(weights, later - made):
            forward.forward(w)
        made = later
        times.append(later + recover(copy(forward), later, chosen, strict, max_steps))
    return times[::-1]


def linked_recursion(
    states: int, eta: Number, density: Callable[[arb], arb], strict: bool = True
) -> list[int]:
    """Return [n_1, ..., n_h] for the policy gradient of a link with that density.

    Parameters
    ----------
    states, eta
        As for `domino`.
    density : callable
        The positive density F' on [0, infinity), of and to balls.
    strict : bool
        Whether the strict count is used.

    Returns
    -------
    list of int
        When each state turns, the first state first.

    Raises
    ------
    OutOfReach, ValueError
        As for `pu_lib.chapters.unlearning.quantities.linked_count`.
    """
    states, times = require_count("states", states, 1), [1]
    while len(times) < states:
        times.append(times[-1] + linked_count(times[-1], eta, density, strict=strict))
    return times[::-1]


def simulate(
    states: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    factor: str = "keep",
    max_steps: int = MAX_STEPS,
    schedule: str = "constant",
    start: Number = "1/2",
) -> list[int | float]:
    """Return [n_1, ..., n_h] by updating every state at every step.

    Parameters
    ----------
    states, update, eta, p, factor, max_steps, schedule
        As for `domino`.
    start
        As for `recursion`.

    Returns
    -------
    list of int or math.inf
        When each state turns, the first state first.

    Raises
    ------
    OutOfReach, ValueError
        As for `domino`; and for DI with weights eta / sqrt(t), for which `recursion` counts.
    """
    states, max_steps = _checked(states, max_steps)
    chosen = setting(update, eta, schedule, p, factor, start)
    if chosen.has_root_weights:
        raise ValueError("schedule: di is walked with rational weights; `recursion` counts others.")
    times, _ = certified(lambda: _simulate(states, chosen, max_steps))
    return times


def board(
    states: int,
    update: str | Update = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    factor: str = "keep",
) -> tuple[list[int | float], list[list[float]]]:
    """Return the flip times and pi_t(a_2|s_k) for t = 0..n_1 (rows) and k = 1..h (columns).

    Parameters
    ----------
    states, update, eta, p, factor
        As for `domino`.

    Returns
    -------
    times : list of int or math.inf
        n_1, ..., n_h.
    history : list of list of float
        The probabilities.
    """
    states, _ = _checked(states, MAX_STEPS)
    chosen = setting(update, eta, "constant", p, factor)
    return certified(lambda: _simulate(states, chosen, MAX_STEPS, record=True))


def _simulate(
    states: int, chosen: Setting, max_steps: int, record: bool = False
) -> tuple[list[int | float], list[list[float]]]:
    most = in_reach(max_steps) * _AT_A_TIME // max(_AT_A_TIME, states)
    if states > most:
        raise OutOfReach(
            f"the domino setting takes at least {states} steps with {states} states; at most "
            f"{most} are walked"
        )
    chosen.require_resolved(1)
    row = chosen.row(states)
    weights = chosen.weights()
    times: list[int | float] = [math.inf] * states
    history: list[list[float]] = []
    for t in count_from(0):
        flipped = [side < 0 for side in row.sides()]
        if record:
            history.append([1 - first for first in row.probabilities()])
        for k in range(states):
            if flipped[k]:
                times[k] = min(times[k], t)
        if flipped[0]:
            return times, history
        if row.stuck(states - sum(map(math.isfinite, times))):
            return times, history
        if t == most:
            break
        row.move([*(not turned for turned in flipped[1:]), False], next(weights))
    raise OutOfReach(f"the domino setting is not solved after {most} steps")


# The bounds


def bound_pg(states: int) -> int:
    """Return Theorem 6(i)'s lower bound, 2^(h-1)."""
    return int(2 ** (states - 1))


def bound_pg_sharp(states: int) -> int:
    """Return 2^h - 1, the lower bound that PG-SM and PG-ES (p >= 2) obey from the uniform start."""
    return int(2**states - 1)


def bound_di(states: int, eta: Fraction) -> Fraction:
    """Return Theorem 6(ii)'s bound, 1 + (h-1)/eta."""
    return 1 + Fraction(states - 1) / eta


def bound_di_sharp(states: int, eta: Fraction) -> Fraction:
    """Return 1 + (h-1)(floor(1/eta) + 1), which DI's count obeys."""
    return Fraction(1 + (states - 1) * (math.floor(1 / eta) + 1))


def exact_di(states: int, eta: Fraction) -> list[int]:
    r"""Return :math:`n_k = n_{k+1} + \min\{n_{k+1}, \lfloor 1/\eta\rfloor\} + 1`, n_1 first."""
    times = [1]
    while len(times) < states:
        times.insert(0, times[0] + min(times[0], math.floor(1 / eta)) + 1)
    return times


def solved_di(states: int, eta: Fraction) -> int:
    r"""Return :math:`n_1` of `exact_di` without a list: past the wall the terms are equal."""
    wall, solved, made = math.floor(1 / eta), 1, 1
    while made < states and solved < wall:
        solved, made = 2 * solved + 1, made + 1
    return solved + (states - made) * (wall + 1)


def log_bound_ce(states: int, eta: float) -> float:
    r"""Return the logarithm of Theorem 6(iii)'s bound (it overflows from :math:`\eta = 90` on)."""
    m = states - 1
    if m < 2:
        return -math.inf
    return math.log(32 * m * math.log(m)) + 8 * eta + 3 - 3 * math.log(eta)


def bound_ce_sharp(states: int, eta: float) -> float:
    r"""Return :math:`4m + 2 + \frac1{2\eta} + \frac{2m}\eta(\log 4m - 1)` with :math:`m = h-1`."""
    m = states - 1
    tail = 2 * m / eta * (math.log(4 * m) - 1) if m else 0.0
    return 4 * m + 2 + 1 / (2 * eta) + tail


def bound_lemma_13(n: int, eta: float) -> float:
    r"""Return :math:`4n + 2 + \frac1{2\eta} + \frac{2n}\eta(\log 4n - 1)`, valid for every n."""
    return bound_ce_sharp(n + 1, eta)


def worst_sequence(n: int, eta: float) -> list[float]:
    r"""Return the largest sequence that Lemma 13's recursion allows (it takes equality)."""
    values = [1.0]
    for _ in range(n):
        values.append(values[-1] + 2 + math.log1p(2 * eta * values[-1]) / eta)
    return values


def amplitude(states: int, start: Fraction = Fraction(1, 2)) -> Fraction:
    r"""Return the reward that a domino chain needs for a unit gap at s_1.

    In state :math:`s_k`, :math:`a_1` ends the episode with reward :math:`r_k`, :math:`a_2` goes on
    to :math:`s_{k+1}` (and from :math:`s_h` to the reward :math:`R`); no discount. The preference
    at :math:`s_k` turns when :math:`\pi(a_2|s_{k+1})` passes its start :math:`x` if and only if
    :math:`r_k = (1-x)\,r_{k+1} + xR`, once all later states have turned; :math:`r_h = 0`. The gap
    is :math:`R - r_1`.

    Parameters
    ----------
    states : int
        The number of states h, at least 1.
    start : Fraction
        The probability x of :math:`a_2` at every state, in (0, 1).

    Returns
    -------
    Fraction
        The reward R, with :math:`R - r_1 = 1`.
    """
    gap = Fraction(1)
    for _ in range(states - 1):
        gap /= 1 - start
    return gap


def chain_flips(
    states: int, update: str | Update, eta: float, max_steps: int = 10_000
) -> list[int]:
    """Return when each state of the chain comes to prefer walking for good, with exact values.

    The process of equation 2 with d = 1 everywhere, from the uniform policy.

    Parameters
    ----------
    states : int
        Number of states in which to decide, at least 1; the chain has one more, terminal.
    update : str or Update
        The update.
    eta : float
        The learning rate.
    max_steps : int
        Give up after so many.

    Returns
    -------
    list of int
        Steps, from the first state to the last.

    Raises
    ------
    ValueError
        If some state does not prefer walking by the end.
    """
    process, chosen = chain(states + 1), as_update(update)
    theta = np.asarray(chosen.initial(states + 1, 2), dtype=np.float64)
    times = np.zeros(states, dtype=np.int64)
    for step in range(1, max_steps + 1):
        theta = chosen.step(theta, process.evaluate(chosen.policy(theta)).q, eta)
        walks = chosen.policy(theta)[:-1, 1] > 0.5
        times = np.where(walks, np.where(times > 0, times, step), 0)
        if walks.all():
            return [int(t) for t in times]
    raise ValueError(f"max_steps: {chosen.name} does not walk everywhere after {max_steps}.")
