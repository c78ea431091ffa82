r"""The domino setting (paper, section 3.4.3; Theorem 6, Lemma 13).

States :math:`s_1, \dots, s_h`, two actions each, :math:`h = |\mathcal S|`. The values are set by
hand: :math:`q(s_h, \cdot) = (0, 1)` always, and for :math:`k < h`, :math:`q(s_k, \cdot) = (0, 1)`
if :math:`s_{k+1}` has *flipped*, that is if :math:`\pi_t(a_2|s_{k+1}) > \pi_0(a_2|s_{k+1})`, else
:math:`(1, 0)`. The setting is solved at :math:`n_1`, where
:math:`n_k = \min\{t : \pi_t(a_2|s_k) > \pi_0(a_2|s_k)\}`.

`simulate` updates all states at every step. `recursion` uses that no state un-flips (proved in the
chapter for DI, PG-SM, CE, MCE and for PG-ES with :math:`p \ge 2`):

.. math:: n_h = 1, \qquad n_k = n_{k+1} + n'_s(n_{k+1}),

with the *strict* count :math:`n'_s` of `pu_lib.theory.unlearning`. Every start is uniform.
"""

from __future__ import annotations

import math
from copy import copy
from itertools import count as count_from
from itertools import islice

from pu_lib.exact import Number, certified
from pu_lib.theory.unlearning import MAX_STEPS, Setting, recover, setting

__all__ = ["domino", "recursion", "simulate"]


def domino(
    states: int,
    update: str = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    factor: str = "keep",
    max_steps: int = MAX_STEPS,
) -> int | float:
    """Return the number of steps that solve the domino setting, exactly (math.inf if none does).

    Parameters
    ----------
    states : int
        The number of states, at least 1.
    update, eta, p, factor, max_steps :
        As in `pu_lib.theory.unlearning.count`; `eta` is the weight eta * d of every state.
    """
    proved = update != "pg-es" or setting(p=p).p >= 2
    solve = recursion if proved else simulate
    return solve(states, update, eta, p, factor, max_steps)[0]


def _check_states(states: int) -> None:
    if states != int(states) or states < 1:
        raise ValueError(f"states must be an integer, at least 1; it is {states!r}")


def recursion(
    states: int,
    update: str = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    factor: str = "keep",
    max_steps: int = MAX_STEPS,
    strict: bool = True,
) -> list[int | float]:
    """Return [n_1, ..., n_h] from n_h = 1 and n_k = n_{k+1} + n'_s(n_{k+1}).

    With ``strict=False`` the non-strict count is used, as the paper's proof does.
    """
    _check_states(states)
    chosen = setting(update, eta, "constant", p, factor)
    return certified(lambda: _recursion(states, chosen, max_steps, strict))


def _recursion(states: int, chosen: Setting, max_steps: int, strict: bool) -> list[int | float]:
    # all states walk the same forward path, state k up to n_{k+1}
    forward, weights, made = chosen.walker(), chosen.weights(), 0
    times: list[int | float] = [1]
    while len(times) < states:
        later = times[0]
        if isinstance(later, float) or chosen.first_step_kills():
            times.insert(0, math.inf)
            continue
        for w in islice(weights, later - made):
            forward.forward(w)
        made = later
        times.insert(0, later + recover(copy(forward), chosen.weights(), strict, max_steps))
    return times


def simulate(
    states: int,
    update: str = "pg-sm",
    eta: Number = 1,
    p: Number = 2,
    factor: str = "keep",
    max_steps: int = MAX_STEPS,
) -> list[int | float]:
    """Return [n_1, ..., n_h] by updating every state at every step."""
    _check_states(states)
    chosen = setting(update, eta, "constant", p, factor)
    times, _ = certified(lambda: _simulate(states, chosen, max_steps))
    return times


def board(
    states: int, update: str = "pg-sm", eta: Number = 1, p: Number = 2, factor: str = "keep"
) -> tuple[list[int | float], list[list[float]]]:
    """Return the flip times and pi_t(a_2|s_k) for t = 0..n_1 (rows) and k = 1..h (columns)."""
    _check_states(states)
    chosen = setting(update, eta, "constant", p, factor)
    return certified(lambda: _simulate(states, chosen, MAX_STEPS, record=True))


def _simulate(
    states: int, chosen: Setting, max_steps: int, record: bool = False
) -> tuple[list[int | float], list[list[float]]]:
    walkers = [chosen.walker() for _ in range(states)]
    weight = next(chosen.weights())
    kills = chosen.first_step_kills()
    times: list[int | float] = [math.inf] * states
    history: list[list[float]] = []
    # a first forward update that makes a parameter zero freezes every state but the last
    if kills and states > 1:
        return [math.inf] * (states - 1) + [1], history
    for t in count_from(0):
        flipped = [walker.side() < 0 for walker in walkers]
        if record:
            history.append([1 - walker.probability() for walker in walkers])
        for k in range(states):
            if flipped[k]:
                times[k] = min(times[k], t)
        if flipped[0]:
            return times, history
        if walkers[0].stuck():
            return times, history
        if t == max_steps:
            break
        for k, walker in enumerate(walkers):
            if k == states - 1 or flipped[k + 1]:
                walker.backward(weight)
            else:
                walker.forward(weight)
    raise RuntimeError(f"the domino setting is not solved after {max_steps} steps")
