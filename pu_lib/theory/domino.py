r"""The domino setting (paper, section 3.4.3; Theorem 6, Lemma 13).

States :math:`s_1, \dots, s_h`, two actions each, :math:`h = |\mathcal S|`. The values are set by
hand: :math:`q(s_h, \cdot) = (0, 1)` always, and for :math:`k < h`, :math:`q(s_k, \cdot) = (0, 1)`
if :math:`s_{k+1}` has *flipped*, that is if :math:`\pi_t(a_2|s_{k+1}) > \pi_0(a_2|s_{k+1})`, else
:math:`(1, 0)`. The setting is solved at :math:`n_1`, where
:math:`n_k = \min\{t : \pi_t(a_2|s_k) > \pi_0(a_2|s_k)\}`.

`simulate` updates all states at every step. `recursion` uses that no state un-flips (proved in the
chapter for DI, PG-SM, CE, MCE and for PG-ES with :math:`p \ge 2`):

.. math:: n_h = 1, \qquad n_k = n_{k+1} + n'_s(n_{k+1}),

with the *strict* count :math:`n'_s` of `pu_lib.theory.unlearning`. The starts are
uniform unless said otherwise.
"""

from __future__ import annotations

import math
from copy import copy
from fractions import Fraction
from itertools import count as count_from
from itertools import islice

from pu_lib.exact import Number, certified
from pu_lib.theory.unlearning import MAX_STEPS, Setting, recover, setting

__all__ = ["board", "domino", "recursion", "simulate"]


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
    start: Number = "1/2",
    strict: bool = True,
) -> list[int | float]:
    """Return [n_1, ..., n_h] from n_h = 1 and n_k = n_{k+1} + n'_s(n_{k+1}).

    Every state starts at pi_0(a_1) = `start`. With ``strict=False`` the non-strict count is used,
    as the paper's proof does.
    """
    _check_states(states)
    chosen = setting(update, eta, "constant", p, factor, start)
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


# The checks


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
    """
    gap = Fraction(1)
    for _ in range(states - 1):
        gap /= 1 - start
    return gap
