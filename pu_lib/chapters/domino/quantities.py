r"""The domino setting (paper, section 3.4.3; Theorem 6, Lemma 13): flip times and their bounds.

There are :math:`h = |\mathcal S|` states :math:`s_1, \dots, s_h` with two actions each, and the
values are prescribed. The last state always has :math:`q = (0, 1)`. Any other state has
:math:`q = (0, 1)` if the next state has *flipped*, that is if :math:`\pi_t(a_2) > \pi_0(a_2)` at
the next state, and :math:`q = (1, 0)` otherwise. State :math:`s_k` first flips at time
:math:`n_k`, and the setting is solved at time :math:`n_1`. The initial policy is uniform by
default.

`simulate` updates every state at every step. `recursion` is faster and uses a theorem of the
chapter: no state flips back under DI, PG-SM, CE, MCE and PG-ES with :math:`p \ge 2`, so that

.. math:: n_h = 1, \qquad n_k = n_{k+1} + n'_s(n_{k+1}),

where :math:`n'_s(n)` is the *strict* count of `pu_lib.chapters.unlearning.quantities`. If the
count is too large for single steps, a theorem (DI) or blocks of steps (PG-SM) give the count.
`domino` uses the recursion if the theorem applies. It uses the simulation for PG-ES with
:math:`p < 2` and for updates that a user has registered.

All counts are exact (rational or ball arithmetic), except those of updates that a user has
registered, which are computed in floats.
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
    MAX_BLOCK_N,
    MAX_QUICK_STEPS,
    MAX_STEPS,
    count_beyond_reach,
    count_direct_decaying,
    count_recovery,
    linked_count,
    max_forward_steps,
    max_steps_at_precision,
)
from pu_lib.claims.formulas import exp, floor, formula, log
from pu_lib.domains import chain
from pu_lib.exact import Number, certified
from pu_lib.two_action_dynamics import (
    CrossEntropyProcess,
    DirectProcess,
    EscortProcess,
    FloatProcess,
    OutOfReach,
    SoftmaxProcess,
    TwoActionProblem,
    parse_problem,
    require_count,
)
from pu_lib.updates import Update, as_update

HALF = Fraction(1, 2)
"""The initial probability of the uniform policy."""

FULL_LENGTH_STATES = 20
"""The largest number of states for which `simulate` performs up to `max_steps` steps.

The limit on the steps is inversely proportional to the number of states for more states.
"""

MAX_RECORDED = 100_000
"""The largest number of probabilities that `history` returns, which takes a few seconds."""

FlipTimes = list[int | float]
"""The type of the flip times of s_1, s_2, ..., which are infinite if a state never flips."""


# Bounds: the checks call them and claims.toml prints them.


@formula
def pg_bound_printed(h: int) -> Any:
    """Return the lower bound on the steps of policy gradients as printed in Theorem 6(i)."""
    return 2 ** (h - 1)


@formula
def pg_bound(h: int) -> Any:
    """Return the improved lower bound of Theorem 6(i), which short steps reach."""
    return 2**h - 1


@formula
def di_bound_printed(h: int, w: Any) -> Any:
    """Return the upper bound on the steps of DI as printed in Theorem 6(ii)."""
    return 1 + (h - 1) / w


@formula
def di_bound(h: int, w: Any) -> Any:
    """Return the corrected upper bound of Theorem 6(ii)."""
    return 1 + (h - 1) * (floor(1 / w) + 1)


@formula
def ce_bound_printed(m: Any, w: Any) -> Any:
    """Return the printed bound of Theorem 6(iii) with m = h - 1, and of Lemma 13 with m = n."""
    return 32 * exp(8 * w + 3) / w**3 * m * log(m)


@formula
def ce_bound(m: int, w: Any) -> Any:
    """Return the improved bound of Theorem 6(iii) with m = h - 1, and of Lemma 13 with m = n.

    The term m log(4m) is 0 if m = 0.
    """
    if m == 0:
        return 2 + 1 / (2 * w)
    return 4 * m + 2 + 1 / (2 * w) + 2 * m / w * (log(4 * m) - 1)


# Flip times


def domino(
    states: int,
    update: str | Update = "pg-sm",
    step_size: Number = 1,
    p: Number = 2,
    factor: str = "keep",
    max_steps: int = MAX_STEPS,
    schedule: str = "constant",
) -> int | float:
    """Return the number of steps to solve the domino setting, or infinity if it is never solved.

    `step_size` is the weight of every state, the step size times d. `p`, `factor` and `schedule`
    have the same meaning as in `pu_lib.chapters.unlearning.quantities.count`. `OutOfReach` is
    raised if the computation takes more than `max_steps` steps and no theorem gives the number.
    """
    states, max_steps = _require_counts(states, max_steps)
    problem = parse_problem(update, step_size, schedule, p, factor)
    constant = problem.schedule == "constant"
    if constant and problem.kind is DirectProcess:
        steps = direct_flip_time(states, problem.step_size)
        if steps > MAX_QUICK_STEPS:
            return steps
    if problem.step_hitting_zero() == 1:
        return math.inf if states > 1 else 1
    _require_feasible(states, problem, max_steps)
    never_flips_back = problem.kind is not FloatProcess and (
        problem.kind is not EscortProcess or (problem.p >= 2 and constant)
    )
    method = recursion if never_flips_back else simulate
    return method(
        states, update, step_size, p, factor=factor, schedule=schedule, max_steps=max_steps
    )[0]


def _require_counts(states: int, max_steps: int) -> tuple[int, int]:
    return require_count("states", states, 1), require_count("max_steps", max_steps, 0)


def recursion(
    states: int,
    update: str | Update = "pg-sm",
    step_size: Number = 1,
    p: Number = 2,
    *,
    strict: bool = True,
    max_steps: int = MAX_STEPS,
    **options: Any,
) -> FlipTimes:
    """Return the flip times computed by the recursion.

    `strict=False` uses the count in the proof of the paper. `options` are `factor`, `schedule` and
    `start`, the initial probability of a_1 at every state.
    """
    states, max_steps = _require_counts(states, max_steps)
    problem = parse_problem(update, step_size, p=p, **options)
    if problem.kind is EscortProcess and problem.start != HALF:
        raise ValueError(
            "start: a state of pg-es may flip back unless it starts at 1/2; use simulate."
        )
    if problem.start in (0, 1):
        raise ValueError(
            f"start: expected a number inside (0, 1), got {problem.start}; use simulate."
        )
    return certified(lambda: _recursion(states, problem, strict, max_steps))


def _recursion(states: int, problem: TwoActionProblem, strict: bool, max_steps: int) -> FlipTimes:
    # All states have the same updates until the next state flips, so one process is enough.
    process, weights, made = problem.process(), problem.weights(), 0
    times: FlipTimes = [1]
    while len(times) < states:
        later = times[-1]
        if isinstance(later, float) or problem.step_hitting_zero() <= later:
            times.append(math.inf)
            continue
        _require_feasible(states - len(times) + 1, problem, max_steps, solved=later)
        if later > max_forward_steps(problem, max_steps_at_precision(max_steps)):
            back = count_beyond_reach(later, problem, strict, max_steps)
        elif problem.has_root_weights:
            back = count_direct_decaying(later, problem, strict)
        else:
            problem.require_resolved(later)
            for weight in islice(weights, later - made):
                process.forward(weight)
            made = later
            back = count_recovery(copy(process), later, problem, strict, max_steps)
        times.append(later + back)
    return times[::-1]


def linked_recursion(states: int, step_size: Number, density: Callable[[arb], arb]) -> list[int]:
    """Return the flip times under the policy gradient of a policy with a positive density."""
    states, times = require_count("states", states, 1), [1]
    while len(times) < states:
        times.append(times[-1] + linked_count(times[-1], step_size, density, strict=True))
    return times[::-1]


def simulate(
    states: int,
    update: str | Update = "pg-sm",
    step_size: Number = 1,
    p: Number = 2,
    *,
    max_steps: int = MAX_STEPS,
    **options: Any,
) -> FlipTimes:
    """Return the flip times computed by updating every state at every step.

    `options` are the same as in `recursion`.
    """
    states, max_steps = _require_counts(states, max_steps)
    problem = parse_problem(update, step_size, p=p, **options)
    if problem.has_root_weights:
        raise ValueError("schedule: simulate takes rational weights for di only; use recursion.")

    def flip_times() -> FlipTimes:
        shared = max(FULL_LENGTH_STATES, states)
        most = max_steps_at_precision(max_steps) * FULL_LENGTH_STATES // shared
        return _simulate(states, problem, most)[0]

    return certified(flip_times)


def history(
    states: int, update: str | Update = "pg-sm", step_size: Number = 1
) -> tuple[FlipTimes, list[list[float]]]:
    """Return the flip times and the probabilities of a_2, one list of all states per time.

    `OutOfReach` is raised if there are more than `MAX_RECORDED` probabilities.
    """
    states = require_count("states", states, 1)
    problem = parse_problem(update, step_size)
    most = MAX_RECORDED // states - 1
    _require_feasible(states, problem, most, most)
    return certified(lambda: _simulate(states, problem, most, record=True))


def _simulate(
    states: int, problem: TwoActionProblem, most: int, record: bool = False
) -> tuple[FlipTimes, list[list[float]]]:
    if states > most:
        raise OutOfReach(
            f"the domino setting takes at least {states} steps with {states} states; at most "
            f"{most} are simulated"
        )
    problem.require_resolved(1)
    batch, weights = problem.batch(states), problem.weights()
    times: FlipTimes = [math.inf] * states
    probabilities: list[list[float]] = []
    for t in count_from(0):
        flipped = [sign < 0 for sign in batch.signs_of_change()]
        if record:
            probabilities.append([1 - first for first in batch.probabilities()])
        times = [min(time, t) if now else time for time, now in zip(times, flipped, strict=True)]
        if flipped[0] or batch.are_fixed_points(sum(map(math.isinf, times))):
            return times, probabilities
        if t == most:
            break
        batch.move([*(not now for now in flipped[1:]), False], next(weights))
    raise OutOfReach(f"the domino setting is not solved after {most} steps")


def _require_feasible(
    states: int,
    problem: TwoActionProblem,
    max_steps: int,
    max_softmax_steps: int = MAX_BLOCK_N,
    solved: int = 1,
) -> None:
    """Raise OutOfReach if a proved lower bound on the steps of `states` states is too large.

    PG-SM is counted in blocks of steps and therefore has a limit of its own. `solved` is the flip
    time of the last of these states, which is 1 for the whole setting.
    """
    if problem.schedule != "constant":
        return
    name, softmax = problem.update.name, problem.kind is SoftmaxProcess
    escort = problem.kind is EscortProcess and problem.p >= 2 and problem.factor == "keep"
    if softmax or escort:
        # n_k + 1 at least doubles with every state.
        most = max_softmax_steps if softmax else max_steps
        if (most + 1) >> (states - 1) <= solved:
            least = f"2^{states} - 1" if solved == 1 else f"{(solved + 1) * 2 ** (states - 1) - 1}"
            raise OutOfReach(
                f"{name} takes at least {least} steps to solve this domino setting (Theorem 6(i), "
                f"corrected); at most {most} are counted"
            )
    elif states > max_steps:  # each state flips at least one step after the next one
        above = ""
        if problem.kind is CrossEntropyProcess and problem.has_float_weight:
            above = f" and at most {ce_bound(states - 1, float(problem.step_size)):.9g}"
        raise OutOfReach(
            f"{name} takes at least {states}{above} steps to solve {states} states; at most "
            f"{max_steps} are simulated"
        )


def direct_flip_times(states: int, weight: Fraction) -> list[int]:
    r"""Return DI's flip times :math:`n_k = n_{k+1} + \min\{n_{k+1}, \lfloor 1/w\rfloor\} + 1`."""
    times = [1]
    while len(times) < states:
        times.insert(0, times[0] + min(times[0], math.floor(1 / weight)) + 1)
    return times


def direct_flip_time(states: int, weight: Fraction) -> int:
    """Return the first of `direct_flip_times`, which doubles per state and then grows linearly."""
    cap, steps, solved = math.floor(1 / weight), 1, 1
    while solved < states and steps < cap:
        steps, solved = 2 * steps + 1, solved + 1
    return steps + (states - solved) * (cap + 1)


# Lemma 13, and the domino setting as a decision process


def rest_term(log_n: float, w: float) -> float:
    r"""Return :math:`\kappa(n)` of the proof of Lemma 13, which depends on :math:`\log n > 1`."""
    sums = 3 * math.log(2) + 4 * w - math.log(w) + 1 + math.log(log_n)
    return sums / (log_n - 1)


def largest_sequence(n: int, w: float) -> list[float]:
    """Return X_0, ..., X_n if the recursion of Lemma 13 is an equality."""
    values = [1.0]
    for _ in range(n):
        values.append(values[-1] + 2 + math.log1p(2 * w * values[-1]) / w)
    return values


def amplitude(states: int, start: Fraction = HALF) -> Fraction:
    r"""Return the final reward R of a domino chain with rewards at s_1 that differ by one.

    In state :math:`s_k`, :math:`a_1` ends the episode with the reward :math:`r_k` and :math:`a_2`
    leads to :math:`s_{k+1}`, or to R in :math:`s_h`. The reward :math:`r_h` is 0 and there is no
    discount. If all later states have flipped, the preference at :math:`s_k` changes when
    :math:`\pi(a_2|s_{k+1})` passes its initial value x if and only if
    :math:`r_k = (1-x) r_{k+1} + xR`.
    """
    return 1 / (1 - start) ** (states - 1)


def chain_flips(
    states: int, update: str | Update, step_size: float, max_steps: int = 10_000
) -> list[int]:
    """Return the step after which each state of the chain (equation 2) always prefers walking."""
    process, chosen = chain(states + 1), as_update(update)
    theta = np.asarray(chosen.initial(states + 1, 2), dtype=np.float64)
    times = np.zeros(states, dtype=np.int64)
    for step in range(1, max_steps + 1):
        theta = chosen.step(theta, process.evaluate(chosen.policy(theta)).q, step_size)
        walks = chosen.policy(theta)[:-1, 1] > 0.5
        times = np.where(walks, np.where(times > 0, times, step), 0)
        if walks.all():
            return [int(time) for time in times]
    raise ValueError(f"max_steps: {chosen.name} does not walk everywhere after {max_steps}.")


def steps_to_half(
    states: int, update: str | Update, step_size: float, optimal: bool, max_steps: int = 10_000
) -> int:
    """Return the number of steps from jumping halfway to walking in performance, from uniform.

    The values are those of the policy, or the optimal ones in their place.
    """
    process, chosen = chain(states + 1), as_update(update)
    theta = np.asarray(chosen.initial(states + 1, 2), dtype=np.float64)
    jumping, walking = (process.performance(np.tile(row, (states + 1, 1))) for row in np.eye(2))
    best = process.optimal().q
    for step in range(max_steps):
        policy = chosen.policy(theta)
        if process.performance(policy) >= (jumping + walking) / 2:
            return step
        theta = chosen.step(theta, best if optimal else process.evaluate(policy).q, step_size)
    raise ValueError(f"max_steps: {chosen.name} is not halfway after {max_steps}.")
