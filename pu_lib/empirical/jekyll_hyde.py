r"""Jekyll & Hyde, compiled (paper, appendix B.2).

Each step t = 1, 2, ... of a run

1. lets the personality in control act: Jekyll draws from his policy :math:`\pi`, Hyde takes a best
   action of her own values :math:`\tilde q`, ties broken uniformly at random;
2. appends the transition to the buffer of that personality;
3. draws, with probability :math:`o_t` from Hyde's buffer and else from Jekyll's, one stored
   transition :math:`(s,a,r,s')`, and with it updates Hyde's values by Q-learning on the bonus,
   :math:`\tilde q(s,a) \mathrel{+}= \alpha(b(s,a)+\gamma\max\tilde q(s',\cdot)-\tilde q(s,a))`,
   Jekyll's critic by SARSA, :math:`q(s,a) \mathrel{+}= \alpha(r+\gamma q(s',a')-q(s,a))` with
   :math:`a'\sim\pi(\cdot|s')`, and Jekyll's policy in s by the expected update with
   :math:`q(s,\cdot)` and weight :math:`\eta`;
4. if the trajectory has ended, starts another, controlled by Hyde with probability
   :math:`\epsilon_t`.

The run ends when the exact performance of Jekyll's policy passes the threshold.
`pu_lib.empirical.reference` is the same loop for reading; `pu_lib.empirical.options` lists the
details that the paper leaves open.

Same bits everywhere
--------------------
All randomness is one xoshiro256++ stream seeded from (root seed, experiment, run). Beyond
:math:`+,-,\times,/,\sqrt{\ }`, which IEEE 754 fixes, the loop uses its own exponential and
logarithm. No sum is reordered and no product fused with a sum, so a run has the same bits on every
processor.

Exact performance
-----------------
Where the states have an order, one backward sweep. Otherwise Gauss-Seidel sweeps from the last
values: if a sweep moves no value up by more than u, nor down by more than d, then
:math:`v_\pi \le v + \frac{\gamma}{1-\gamma}u` and :math:`v_\pi \ge v - \frac{\gamma}{1-\gamma}d`.
The sweeps stop as soon as this decides on which side of the threshold the performance is;
should they not, elimination decides.

Speed
-----
The arguments `actions`, `successors` and `update` of the compiled functions are tuples of zeros:
only their lengths matter. A length is part of the type, so that each combination is compiled, and
cached on disk, as code of its own with every small loop unrolled. All compiled functions are in
this one file because numba's cache looks at the time stamp of one file only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from pu_lib.empirical.options import PRESETS, Options, Scheme
from pu_lib.empirical.problem import Problem

__all__ = ["ENGINE", "UPDATE_CODES", "Memory", "Run", "exact_performance", "seed_state", "simulate"]

ENGINE = "1"
"""Version of the results: changes whenever the same seed gives a different run."""

UPDATE_CODES = {"pg-sm": 1, "pg-es": 2, "di": 3, "ce": 4, "mce": 5}

Floats = NDArray[np.float64]
_F = TypeVar("_F", bound=Callable[..., Any])
_compiled = cast(Callable[[_F], _F], numba.njit(cache=True, nogil=True, error_model="numpy"))

_MAX_UNROLLED_SUCCESSORS = 8
_FIRST_GAP = (100, 25)  # steps between early evaluations: with cycles, without
_MAX_SWEEPS = 100
_MARGIN = 1e-12  # room for rounding when sweeps decide on a side

# Random numbers

_R11, _R17, _R19, _R23, _R41, _R45 = (np.uint64(n) for n in (11, 17, 19, 23, 41, 45))
_UNIT = 2.0**-53


def seed_state(root: int, experiment: str, run: int) -> NDArray[np.uint64]:
    """Return the four words that start the random stream of a run."""
    key = zlib.crc32(experiment.encode())
    words = np.random.SeedSequence(root, spawn_key=(key, run)).generate_state(4, np.uint64)
    return words.astype(np.uint64)


@_compiled
def _uniform(x0: Any, x1: Any, x2: Any, x3: Any) -> Any:
    """Draw from [0, 1) by xoshiro256++ (Blackman and Vigna); return the draw and the new state."""
    total = x0 + x3
    word = ((total << _R23) | (total >> _R41)) + x0
    shifted = x1 << _R17
    x2 ^= x0
    x3 ^= x1
    x1 ^= x2
    x0 ^= x3
    x2 ^= shifted
    x3 = (x3 << _R45) | (x3 >> _R19)
    return np.float64(np.int64(word >> _R11)) * _UNIT, x0, x1, x2, x3


# Elementary functions


def _bitcast(source: Any, target: Any) -> Any:
    """Return a compiled function that reinterprets 64 bits."""

    def reinterpret(typing: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return intrinsic(reinterpret)


_bits: Callable[[float], int] = _bitcast(types.float64, types.int64)
_float: Callable[[int], float] = _bitcast(types.int64, types.float64)


# Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits of the sum.
_ROUND = 6755399441055744.0
_ROUND_BITS = 0x4338000000000000
_LOWEST = -708.0
_BIAS = 1023 << 52
# 64 / ln 2, and ln 2 / 64 in two parts, the first short enough for exact products.
_PER_STEP = 92.33248261689366
_STEP_HIGH, _STEP_LOW = 0.010830424695996044, 2.5310172166650877e-13
_C2, _C3, _C4, _C5 = 1 / 2, 1 / 6, 1 / 24, 1 / 120


def _binary_powers() -> Floats:
    """Return 2^(j/64) for j < 64 from square roots, which have the same bits everywhere."""
    powers, root = np.ones(64), 2.0
    for bit in (32, 16, 8, 4, 2, 1):
        root = float(np.sqrt(root))
        powers[(np.arange(64) & bit) != 0] *= root
    return powers


_POWERS = _binary_powers()


@_compiled
def _exp(x: float) -> float:
    """Exponential of x <= 0 to a few units in the last place; e^-708 for anything lower.

    With x = (64 k + j) ln(2)/64 + r and |r| <= ln(2)/128: the Taylor polynomial of degree 5 in r,
    times 2^(j/64) from a table, times 2^k.
    """
    if x < _LOWEST:
        x = _LOWEST
    rounded = x * _PER_STEP + _ROUND
    n = _bits(rounded) - _ROUND_BITS
    count = rounded - _ROUND
    r = (x - count * _STEP_HIGH) - count * _STEP_LOW
    r2 = r * r
    value = (1.0 + r) + ((_C2 + _C3 * r) + (_C4 + _C5 * r) * r2) * r2
    power: float = _POWERS[n & 63]
    return value * power * _float(((n >> 6) << 52) + _BIAS)


@_compiled
def _log(n: float) -> float:
    """Logarithm of a number from 1 up: exponent times ln 2 plus 2 artanh((m - 1) / (m + 1))."""
    bits = _bits(n)
    exponent = (bits >> 52) - 1023
    mantissa = _float((bits & ((1 << 52) - 1)) | _BIAS)
    if mantissa > 1.4142135623730951:
        mantissa *= 0.5
        exponent += 1
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = 0.0
    for power in range(21, 0, -2):
        series = series * square + 1.0 / power
    return exponent * 0.6931471805599453 + 2.0 * ratio * series


# The row kernels of the five updates: theta(s, .) and pi(s, .) in place. They are compared with
# pu_lib.updates by a property test.


@_compiled
def _softmax_row(theta: Any, pi: Any, s: Any, actions: Any) -> None:
    A = len(actions)
    if A == 2:
        # One exponential is enough, and gives the same bits: that of the larger one is 1.
        difference = theta[s, 0] - theta[s, 1]
        small = _exp(-abs(difference))
        large_share = 1.0 / (1.0 + small)
        small_share = small * large_share
        pi[s, 0] = large_share if difference >= 0.0 else small_share
        pi[s, 1] = small_share if difference >= 0.0 else large_share
        return
    top = theta[s, 0]
    for a in range(1, A):
        top = max(top, theta[s, a])
    total = 0.0
    for a in range(A):
        pi[s, a] = _exp(theta[s, a] - top)
    for a in range(A):
        total += pi[s, a]
    scale = 1.0 / total
    for a in range(A):
        pi[s, a] *= scale


@_compiled
def _mean(pi: Any, q: Any, s: Any, actions: Any) -> float:
    total = 0.0
    for a in range(len(actions)):
        total += pi[s, a] * q[s, a]
    return total


@_compiled
def _step_pg_sm(theta: Any, pi: Any, q: Any, s: Any, weight: float, actions: Any) -> None:
    v = _mean(pi, q, s, actions)
    for a in range(len(actions)):
        theta[s, a] += weight * pi[s, a] * (q[s, a] - v)
    _softmax_row(theta, pi, s, actions)


@_compiled
def _escort_row(theta: Any, pi: Any, s: Any, actions: Any) -> None:
    total = 0.0
    for a in range(len(actions)):
        total += theta[s, a] * theta[s, a]
    scale = 1.0 / total
    for a in range(len(actions)):
        pi[s, a] = theta[s, a] * theta[s, a] * scale


@_compiled
def _step_pg_es(
    theta: Any, pi: Any, q: Any, s: Any, weight: float, keep_factor: bool, actions: Any
) -> None:
    # For p = 2: sign(theta) pi^(1/2) = theta / |theta|.
    v = _mean(pi, q, s, actions)
    total = 0.0
    for a in range(len(actions)):
        total += theta[s, a] * theta[s, a]
    scale = weight * 2.0 / total if keep_factor else weight / np.sqrt(total)
    for a in range(len(actions)):
        theta[s, a] += scale * theta[s, a] * (q[s, a] - v)
    _escort_row(theta, pi, s, actions)


@_compiled
def _step_di(theta: Any, pi: Any, q: Any, s: Any, weight: float, actions: Any) -> None:
    # Project by dropping actions below the threshold until none is (Michelot). The largest value
    # is subtracted first so that large weights do not swallow the 1.
    A = len(actions)
    top = q[s, 0]
    for a in range(1, A):
        top = max(top, q[s, a])
    total = 0.0
    for a in range(A):
        theta[s, a] += weight * (q[s, a] - top)
        total += theta[s, a]
    kept = A
    threshold = (total - 1.0) / A
    while True:
        count, total = 0, 0.0
        for a in range(A):
            above = theta[s, a] > threshold
            count += above
            total += theta[s, a] if above else 0.0
        if count == kept:
            break
        kept = count
        # It only grows; rounding must not let a dropped action back, or the loop may never end.
        threshold = max(threshold, (total - 1.0) / count)
    for a in range(A):
        theta[s, a] = max(theta[s, a] - threshold, 0.0)
        pi[s, a] = theta[s, a]


@_compiled
def _step_ce(theta: Any, pi: Any, s: Any, best: Any, weight: float, actions: Any) -> None:
    for a in range(len(actions)):
        aim = 1.0 if a == best else 0.0
        theta[s, a] += weight * (aim - pi[s, a])
    _softmax_row(theta, pi, s, actions)


@_compiled
def _step_mce(theta: Any, pi: Any, s: Any, best: Any, weight: float, actions: Any) -> None:
    A = len(actions)
    missing = 0.0
    for a in range(A):
        missing += 0.0 if a == best else pi[s, a]
    gain = weight * missing
    loss = gain / (A - 1)
    for a in range(A):
        theta[s, a] += gain if a == best else -loss
    _softmax_row(theta, pi, s, actions)


@_compiled
def _greedy(q: Any, s: Any, actions: Any) -> Any:
    """Return the first best action and the number of best actions."""
    best, ties = 0, 1
    for a in range(1, len(actions)):
        if q[s, a] > q[s, best]:
            best, ties = a, 1
        elif q[s, a] == q[s, best]:
            ties += 1
    return best, ties


@_compiled
def _nth_best(q: Any, s: Any, best: Any, n: Any, actions: Any) -> Any:
    """Return the n-th action (from 0) whose value equals that of `best`."""
    chosen = best
    for a in range(len(actions)):
        if q[s, a] == q[s, best]:
            if n == 0:
                chosen = a
            n -= 1
    return chosen


# Exact performance. The argument `process` is that of `Problem.process`.


@_compiled
def _backup(s: Any, pi: Any, v: Any, process: Any, actions: Any, successors: Any) -> float:
    """Return the mean over the policy of reward plus discounted next value."""
    A, unrolled = len(actions), len(successors)
    probability, successor, reward, gamma = process[:4]
    total = 0.0
    for a in range(A):
        i = s * A + a
        ahead = 0.0
        if unrolled > 0:
            for k in range(unrolled):
                ahead += probability[i, k] * v[successor[i * unrolled + k]]
        else:
            K = probability.shape[1]
            for k in range(K):
                ahead += probability[i, k] * v[successor[i * K + k]]
        total += pi[s, a] * (reward[i] + gamma * ahead)
    return total


@_compiled
def _eliminate(pi: Any, v: Any, process: Any, A: int) -> None:
    """Solve v = r + gamma P v by elimination in place.

    The matrix I - gamma P is an M-matrix with dominant diagonal: no pivoting is needed.
    """
    probability, successor, reward, gamma, order = process[:5]
    K = probability.shape[1]
    n = len(order)
    row = np.full(len(v), -1, np.int64)
    for x in range(n):
        row[order[x]] = x
    M = np.zeros((n, n + 1))
    for x in range(n):
        s = order[x]
        M[x, x] = 1.0
        for a in range(A):
            i = s * A + a
            M[x, n] += pi[s, a] * reward[i]
            for k in range(K):
                y = row[successor[i * K + k]]
                if y >= 0:
                    M[x, y] -= gamma * (pi[s, a] * probability[i, k])
    for x in range(n):
        for y in range(x + 1, n):
            factor = M[y, x] / M[x, x]
            if factor != 0.0:
                for z in range(x + 1, n + 1):
                    M[y, z] -= factor * M[x, z]
    for x in range(n - 1, -1, -1):
        total = M[x, n]
        for y in range(x + 1, n):
            total -= M[x, y] * v[order[y]]
        v[order[x]] = total / M[x, x]


@_compiled
def _from_starts(v: Any, process: Any) -> float:
    starts, start_cumulative = process[6:]
    total, before = 0.0, 0.0
    for x in range(len(starts)):
        total += (start_cumulative[x] - before) * v[starts[x]]
        before = start_cumulative[x]
    return total


@_compiled
def _performance(pi: Any, v: Any, process: Any, actions: Any, successors: Any) -> float:
    """Return the exact performance of a policy; its values are left in `v`."""
    order, acyclic = process[4:6]
    if acyclic:
        for x in range(len(order)):
            v[order[x]] = _backup(order[x], pi, v, process, actions, successors)
    else:
        _eliminate(pi, v, process, len(actions))
    return _from_starts(v, process)


@_compiled
def _passes(pi: Any, v: Any, process: Any, actions: Any, successors: Any, threshold: float) -> bool:
    """Return whether the performance is at least the threshold; `v` is a start for sweeps."""
    gamma, order, acyclic = process[3:6]
    if not acyclic:
        reach = gamma / (1.0 - gamma)
        for _ in range(_MAX_SWEEPS):
            up, down = 0.0, 0.0
            for x in range(len(order)):
                s = order[x]
                new = _backup(s, pi, v, process, actions, successors)
                up = max(up, new - v[s])
                down = max(down, v[s] - new)
                v[s] = new
            estimate = _from_starts(v, process)
            if estimate - reach * down > threshold + _MARGIN:
                return True
            if estimate + reach * up < threshold - _MARGIN:
                return False
    return bool(threshold <= _performance(pi, v, process, actions, successors))


# The loop


@_compiled
def _schedule(c: float, alpha: float, t: Any) -> Any:
    """Return min(1, c / t^alpha) for alpha 0, 1/2 or 1."""
    if alpha == 0.0:
        return min(1.0, c)
    if alpha == 0.5:
        return min(1.0, c / np.sqrt(t))
    return min(1.0, c / t)


@_compiled
def _cumulate(pi: Any, running: Any, s: Any, actions: Any) -> None:
    total = 0.0
    for a in range(len(actions)):
        total += pi[s, a]
        running[s, a] = total


@_compiled
def _loop(
    actions: Any,
    successors: Any,
    update: Any,
    process: Any,
    tables: Any,
    scheme: Any,
    switches: Any,
    numbers: Any,
    limits: Any,
    memory: Any,
    seeds: Any,
) -> Any:
    """Run until the threshold or a cap; return steps, episodes, whether passed, performance.

    The tuples are unpacked in the first lines; `simulate` packs them.
    """
    A = len(actions)
    unrolled = len(successors)
    U = len(update)
    cumulative, reward, terminal = tables
    successor, gamma = process[1], process[3]
    starts, start_cumulative = process[6:]
    epsilon_c, epsilon_alpha, off_c, off_alpha = scheme
    expected_sarsa, log_bonus, model, discounted, ties, keep_factor = switches
    eta, critic_rate, hyde_rate, hyde_clip, threshold = numbers
    max_steps, max_episodes, every, cut, gap = limits
    theta, pi, running, q, hyde, visits, bonus, seen, v, v_hyde, greedy, buffer = memory
    x0, x1, x2, x3 = seeds[0], seeds[1], seeds[2], seeds[3]
    K = cumulative.shape[1]

    explores = epsilon_c > 0.0 or off_c > 0.0
    n_jekyll, n_hyde, last = 0, 0, len(buffer) - 1
    hyde_acts, length, episodes, passed = False, 0, 0, False
    discounting, discounted_sum, log_episodes = 1.0, 0.0, 0.0
    next_check = gap
    t = 0
    s: Any = np.int64(starts[0])
    if len(starts) > 1:
        u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
        s = _start(u, starts, start_cumulative)

    while t < max_steps:
        t += 1
        # Act
        u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
        a: Any = 0
        if hyde_acts:
            a, n_best = _greedy(hyde, s, actions)
            if n_best > 1:
                a = _nth_best(hyde, s, a, np.int64(u * n_best), actions)
        else:
            for b in range(A - 1):
                a += u >= running[s, b]
        i: Any = s * A + a
        k = 0
        if K > 1:
            u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
            if unrolled > 0:
                for j in range(unrolled - 1):
                    k += u >= cumulative[i, j]
            else:
                while k < K - 1 and u >= cumulative[i, k]:
                    k += 1
        code: Any = i * unrolled + k if unrolled > 0 else i * K + k
        entered = np.int64(successor[code])

        # Remember
        if hyde_acts:
            buffer[last - n_hyde] = code
            n_hyde += 1
        else:
            buffer[n_jekyll] = code
            n_jekyll += 1
        if explores:
            visits[i] += 1
            if not log_bonus:
                bonus[i] = 1.0 / np.sqrt(np.float64(visits[i]))
        if model:
            seen[code] += 1
            if not explores:
                visits[i] += 1

        # Replay
        from_hyde = False
        if explores:
            u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
            from_hyde = n_hyde > 0 and u < _schedule(off_c, off_alpha, np.float64(t))
        u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
        place = np.int64(u * (n_hyde if from_hyde else n_jekyll))
        code = np.int64(buffer[last - place if from_hyde else place])
        i = code // unrolled if unrolled > 0 else code // K
        if model and K > 1:
            u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
            left = np.int64(u * visits[i])
            code = i * K
            while left >= seen[code]:
                left -= seen[code]
                code += 1
        after = np.int64(successor[code])
        x: Any = i // A

        # Hyde's values
        if explores:
            top = hyde[after, 0]
            for b in range(1, A):
                top = max(top, hyde[after, b])
            gift = np.sqrt(log_episodes / (0.001 + visits[i])) if log_bonus else bonus[i]
            a = i - x * A
            hyde[x, a] += hyde_rate * (gift + gamma * top - hyde[x, a])
            hyde[x, a] = min(hyde[x, a], hyde_clip)

        # Jekyll's critic
        a = i - x * A
        if expected_sarsa:
            ahead = _mean(pi, q, after, actions)
        else:
            u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
            b = 0
            for j in range(A - 1):
                b += u >= running[after, j]
            ahead = q[after, b]
        q[x, a] += critic_rate * (reward[code] + gamma * ahead - q[x, a])

        # Jekyll's actor
        weight = eta
        if discounted:
            discounted_sum += discounting
            weight = eta * (discounting * (episodes / discounted_sum))
            discounting *= gamma
        if U == 1:
            _step_pg_sm(theta, pi, q, x, weight, actions)
        elif U == 2:
            _step_pg_es(theta, pi, q, x, weight, keep_factor, actions)
        elif U == 3:
            _step_di(theta, pi, q, x, weight, actions)
        else:
            best, n_best = _greedy(q, x, actions)
            if n_best > 1 and ties == 1:
                u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
                best = _nth_best(q, x, best, np.int64(u * n_best), actions)
            if n_best == 1 or ties != 2:
                if U == 4:
                    _step_ce(theta, pi, x, best, weight, actions)
                else:
                    _step_mce(theta, pi, x, best, weight, actions)
        _cumulate(pi, running, x, actions)

        # End of the trajectory
        s = entered
        length += 1
        ended = terminal[s] != 0 or length == cut
        if ended:
            episodes += 1
            length = 0
            discounting = 1.0
            if log_bonus:
                log_episodes = _log(episodes + 1.0)
            s = np.int64(starts[0])
            if len(starts) > 1:
                u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
                s = _start(u, starts, start_cumulative)
            if explores:
                u, x0, x1, x2, x3 = _uniform(x0, x1, x2, x3)
                hyde_acts = u < _schedule(epsilon_c, epsilon_alpha, np.float64(t))

        # Evaluate
        if every == 0:
            if t >= next_check or t == max_steps:
                next_check = t + max(gap, np.int64(0.03 * t))
                passed = _passes(pi, v, process, actions, successors, threshold)
        elif ended and ((episodes - 1) % every == 0 or episodes == max_episodes):
            J = _performance(pi, v, process, actions, successors)
            if J - threshold > 0.0:
                for state in range(len(greedy)):
                    best, n_best = _greedy(hyde, state, actions)
                    for b in range(A):
                        greedy[state, b] = 1.0 if b == best else 0.0
                J_hyde = _performance(greedy, v_hyde, process, actions, successors)
                share = _schedule(epsilon_c, epsilon_alpha, np.float64(t))
                passed = (1.0 - share) * J + share * J_hyde > threshold
        if passed or (max_episodes > 0 and episodes == max_episodes):
            break

    return t, episodes, passed, _performance(pi, v, process, actions, successors)


@_compiled
def _start(u: float, starts: Any, start_cumulative: Any) -> Any:
    x = 0
    while x < len(starts) - 1 and u >= start_cumulative[x]:
        x += 1
    return np.int64(starts[x])


# The wrapper in Python


@dataclass(frozen=True)
class Run:
    """How a run ended.

    Attributes
    ----------
    steps, episodes : int
        Steps taken and trajectories finished.
    censored : bool
        True if a cap ended the run before the threshold was passed.
    final_performance : float
        Normalised exact performance of the last policy.
    """

    steps: int
    episodes: int
    censored: bool
    final_performance: float


class Memory:
    """The arrays of one run; reusable, one object a thread.

    After a run they hold its final state: `theta`, `pi`, `q`, `hyde`, `visits` and the replay
    `buffer` (Jekyll's transitions from the left, Hyde's from the right).
    """

    def __init__(self) -> None:
        self._shape: tuple[int, ...] = ()
        self.buffer: NDArray[np.unsignedinteger] = np.empty(0, np.uint16)

    def prepare(self, problem: Problem, update: str, options: Options, steps: int) -> None:
        """Set every array to its value at the start of a run."""
        S, A = problem.n_states, problem.n_actions
        shape = (S, A, problem.n_successors)
        if shape != self._shape:
            self._shape = shape
            self.theta, self.pi, self.running, self.q, self.hyde, self.greedy = (
                np.empty((S, A)) for _ in range(6)
            )
            self.visits, self.bonus = np.empty(S * A, np.int64), np.empty(S * A)
            self.seen = np.empty(S * A * problem.n_successors, np.int64)
            self.v, self.v_hyde = np.empty(S), np.empty(S)
        if len(self.buffer) != steps or self.buffer.dtype != problem.code_type:
            self.buffer = np.empty(steps, problem.code_type)
        start = {"pg-es": options.escort_start, "di": 1.0 / A}.get(update, 0.0)
        self.theta.fill(start)
        self.pi.fill(1.0 / A)
        self.running[:] = np.cumsum(self.pi, axis=1)
        bound = 1.0 / (1.0 - problem.discount)
        self.q.fill(options.critic_start)
        self.hyde.fill(bound if options.hyde_start == "bound" else options.hyde_start)
        self.q[problem.terminal != 0] = 0.0
        self.hyde[problem.terminal != 0] = 0.0
        for array in (self.visits, self.bonus, self.seen, self.v, self.v_hyde):
            array.fill(0)

    def _arrays(self) -> tuple[Any, ...]:
        return (
            self.theta, self.pi, self.running, self.q, self.hyde, self.visits, self.bonus,
            self.seen, self.v, self.v_hyde, self.greedy, self.buffer,
        )  # fmt: skip


def _successor_token(n_successors: int) -> tuple[int, ...]:
    """Return the tuple whose length the compiled functions unroll by; empty for a plain loop."""
    return (0,) * (n_successors if n_successors <= _MAX_UNROLLED_SUCCESSORS else 0)


def exact_performance(problem: Problem, policy: Floats) -> float:
    """Return the exact performance of a policy, with the same bits on every machine."""
    return float(
        _performance(
            np.ascontiguousarray(policy),
            np.zeros(problem.n_states),
            problem.process,
            (0,) * problem.n_actions,
            _successor_token(problem.n_successors),
        )
    )


def simulate(
    problem: Problem,
    update: str,
    eta: float,
    scheme: Scheme,
    seeds: NDArray[np.uint64],
    options: Options = PRESETS["paper"],
    max_steps: int = 1_000_000,
    memory: Memory | None = None,
) -> Run:
    """Run Jekyll & Hyde until the performance passes the threshold of the problem.

    Parameters
    ----------
    problem : Problem
        Process and threshold.
    update : {"pg-sm", "pg-es", "di", "ce", "mce"}
        Update of the actor; the escort exponent is 2.
    eta : float
        Learning rate of the actor.
    scheme : Scheme
        Exploration and off-policy scheme.
    seeds : ndarray of uint64, shape (4,)
        Start of the random stream; see `seed_state`.
    options : Options
        The open details.
    max_steps : int
        Cap; a run that reaches it is censored.
    memory : Memory, optional
        Arrays to use; holds the final state of the run afterwards.

    Raises
    ------
    ValueError
        If the update is unknown or a number is out of range.
    """
    if update not in UPDATE_CODES:
        raise ValueError(f"update: expected one of {', '.join(UPDATE_CODES)}, got {update!r}.")
    if not (np.isfinite(eta) and eta > 0.0):
        raise ValueError(f"eta: expected a finite number > 0, got {eta}.")
    if max_steps < 1:
        raise ValueError(f"max_steps: expected at least 1, got {max_steps}.")
    memory = Memory() if memory is None else memory
    memory.prepare(problem, update, options, max_steps)
    by_episodes = options.stop == "episodes"
    steps, episodes, passed, J = _loop(
        (0,) * problem.n_actions,
        _successor_token(problem.n_successors),
        (0,) * UPDATE_CODES[update],
        problem.process,
        (problem.cumulative, problem.reward, problem.terminal),
        (scheme.epsilon.c, scheme.epsilon.alpha, scheme.off_policy.c, scheme.off_policy.alpha),
        (
            options.sarsa == "expected",
            options.bonus == "log",
            options.replay == "model",
            options.actor_weight == "discounted",
            ("first", "random", "leave").index(options.ties),
            options.escort_factor == "keep",
        ),
        (
            float(eta),
            options.critic_rate,
            options.hyde_rate,
            options.hyde_clip,
            problem.threshold,
        ),
        (
            max_steps,
            options.max_episodes,
            max(1, options.max_episodes // 1000) if by_episodes else 0,
            options.cut,
            _FIRST_GAP[problem.acyclic],
        ),
        memory._arrays(),
        seeds,
    )
    low, high = problem.baseline_performance, problem.optimal_performance
    return Run(int(steps), int(episodes), not passed, (J - low) / (high - low))
