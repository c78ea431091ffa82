r"""Compiled computation of exact values and of the performance.

If the states can be ordered so that successors come first, one backward sweep computes the values.
Otherwise Gauss-Seidel sweeps start from the last values. If a sweep raises no value by more than u
and lowers no value by more than d, then :math:`v_\pi \le v + \frac{\gamma}{1-\gamma}u` and
:math:`v_\pi \ge v - \frac{\gamma}{1-\gamma}d`. Sweeps stop as soon as these bounds decide
whether the performance is above or below the threshold. If the bounds do not decide, elimination
computes the performance, or BiCGSTAB (`pu_lib.sparse`) if there are many states.

The argument `process` is a `pu_lib.engine.loop.Process`, and `actions` and `successors` are static
(`pu_lib.engine.rows`): tuples of zeros with one entry for each action or successor. Empty
`successors` mean that there are too many to unroll.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_lib.compiling import allocating, compiled
from pu_lib.sparse import VALUE_TOLERANCE, solve_by_bicgstab, solve_by_sweeps

_MAX_SWEEPS = 100  # after this many sweeps elimination or BiCGSTAB decides
_MAX_ELIMINATED = 500  # states; the time of elimination grows with their cube
_MARGIN = 1e-12  # relative to the threshold, larger than rounding: bounds decide only beyond it


def static_solver(acyclic: bool, n_states: int) -> tuple[int, ...]:
    """Return the static argument of the method that evaluates the policies of a process.

    It has no entry for a backward sweep, one for elimination and two for BiCGSTAB. The method is
    static because BiCGSTAB, which few processes need, would take a third of the compile time.
    """
    return () if acyclic else (0,) * (1 + (n_states > _MAX_ELIMINATED))


@compiled
def solve(matrix: Any, v: Any) -> None:
    r"""Solve a linear system by elimination, overwriting `matrix`; `v` becomes the solution.

    No pivoting is performed, so `matrix` must be diagonally dominant by rows or by columns, as
    :math:`I - \gamma P` and its transpose are.
    """
    n = len(v)
    for x in range(n):
        for y in range(x + 1, n):
            factor = matrix[y, x] / matrix[x, x]
            if factor != 0.0:
                for z in range(x + 1, n):
                    matrix[y, z] -= factor * matrix[x, z]
                v[y] -= factor * v[x]
    for x in range(n - 1, -1, -1):
        total = v[x]
        for y in range(x + 1, n):
            total -= matrix[x, y] * v[y]
        v[x] = total / matrix[x, x]


@compiled
def _backup(
    s: Any,
    pi: Any,
    v: Any,
    probability: Any,
    successor: Any,
    reward: Any,
    gamma: float,
    actions: Any,
    successors: Any,
) -> float:
    """Return the expected reward plus discounted next value of the policy at state s."""
    A, unrolled = len(actions), len(successors)
    K = unrolled if unrolled > 0 else probability.shape[1]
    total = 0.0
    for a in range(A):
        i = s * A + a
        ahead = 0.0
        for k in range(K):
            ahead += probability[i, k] * v[successor[i * K + k]]
        total += pi[s, a] * (reward[i] + gamma * ahead)
    return total


@allocating
def _eliminate(
    pi: Any, v: Any, probability: Any, successor: Any, reward: Any, gamma: float, order: Any, A: int
) -> None:
    """Set v to the solution of v = r + gamma P v at the states that are not terminal."""
    K = probability.shape[1]
    n = len(order)
    row = np.full(len(v), -1, np.int64)
    for x in range(n):
        row[order[x]] = x
    matrix, right = np.zeros((n, n)), np.zeros(n)
    for x in range(n):
        s = order[x]
        matrix[x, x] = 1.0
        for a in range(A):
            i = s * A + a
            right[x] += pi[s, a] * reward[i]
            for k in range(K):
                y = row[successor[i * K + k]]
                if y >= 0:
                    matrix[x, y] -= gamma * (pi[s, a] * probability[i, k])
    solve(matrix, right)
    for x in range(n):
        v[order[x]] = right[x]


@allocating
def _solve_large(
    pi: Any, v: Any, probability: Any, successor: Any, reward: Any, gamma: float, A: int
) -> None:
    """Improve v to the solution of v = r + gamma P v, with memory linear in the transitions."""
    n, K = len(v), probability.shape[1]
    start, count = np.zeros(n + 1, np.int32), 0
    for s in range(n):
        for i in range(s * A, (s + 1) * A):
            for k in range(K):
                count += pi[s, i - s * A] * probability[i, k] > 0.0
        start[s + 1] = count
    index, chance, paid = np.empty(count, np.int32), np.empty(count), np.zeros(n)
    count = 0
    for s in range(n):
        for i in range(s * A, (s + 1) * A):
            paid[s] += pi[s, i - s * A] * reward[i]
            for k in range(K):
                share = pi[s, i - s * A] * probability[i, k]
                if share > 0.0:
                    index[count], chance[count] = successor[i * K + k], share
                    count += 1
    chain = start, index, chance, np.arange(n), paid, gamma, v, VALUE_TOLERANCE
    relative, _ = solve_by_bicgstab(*chain)
    if relative > VALUE_TOLERANCE:
        solve_by_sweeps(*chain)


@compiled
def _sweep(
    pi: Any,
    v: Any,
    probability: Any,
    successor: Any,
    reward: Any,
    gamma: float,
    order: Any,
    actions: Any,
    successors: Any,
) -> Any:
    """Back up all states once, in place; return the largest increase and decrease of a value."""
    up, down = 0.0, 0.0
    for x in range(len(order)):
        s = order[x]
        new = _backup(s, pi, v, probability, successor, reward, gamma, actions, successors)
        up = max(up, new - v[s])
        down = max(down, v[s] - new)
        v[s] = new
    return up, down


@compiled
def _from_starts(v: Any, starts: Any, cumulative: Any) -> float:
    """Return the expected value of the initial state."""
    total, before = 0.0, 0.0
    for x in range(len(starts)):
        total += (cumulative[x] - before) * v[starts[x]]
        before = cumulative[x]
    return total


@compiled
def performance(pi: Any, v: Any, process: Any, actions: Any, successors: Any) -> float:
    """Return the exact, unnormalised performance of a policy, and set `v` to its values."""
    starts, shares = process.starts, process.start_cumulative
    _evaluate(process.solver, pi, v, process, actions, successors)
    return _from_starts(v, starts, shares)


@compiled
def _evaluate(solver: Any, pi: Any, v: Any, process: Any, actions: Any, successors: Any) -> None:
    """Set `v` to the values of a policy; `solver` is static, so only one method is compiled."""
    probability, _, successor, _, reward, gamma, _, order, _, _, _ = process
    if len(solver) == 0:
        _sweep(pi, v, probability, successor, reward, gamma, order, actions, successors)
    elif len(solver) == 1:
        _eliminate(pi, v, probability, successor, reward, gamma, order, len(actions))
    else:
        _solve_large(pi, v, probability, successor, reward, gamma, len(actions))


@compiled
def reaches_threshold(
    pi: Any, v: Any, process: Any, actions: Any, successors: Any, threshold: float
) -> bool:
    """Return whether the unnormalised performance of a policy is at least `threshold`.

    Sweeps start from `v`, which is overwritten.
    """
    probability, _, successor, _, reward, gamma, _, order, solver, starts, shares = process
    if len(solver) > 0:
        reach, margin = gamma / (1.0 - gamma), _MARGIN * abs(threshold)
        for _ in range(_MAX_SWEEPS):
            up, down = _sweep(
                pi, v, probability, successor, reward, gamma, order, actions, successors
            )
            estimate = _from_starts(v, starts, shares)
            if estimate - reach * down > threshold + margin:
                return True
            if estimate + reach * up < threshold - margin:
                return False
    return bool(threshold <= performance(pi, v, process, actions, successors))
