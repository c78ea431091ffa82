r"""Exact values, visits and optimal values of large sparse processes.

For a chain with transition matrix :math:`P`, rewards :math:`r` and discount :math:`\gamma`, the
values solve :math:`v = r + \gamma P v`. A solution is accepted if at every state s

.. math:: |r + \gamma P v - v|(s) \;\le\; 8u \,\bigl(|r| + \gamma P|v| + |v|\bigr)(s),
   \qquad u = 2^{-53},

that is, if the equation of each state holds up to a few rounding errors of the terms in the
equation. A bound relative to the largest value would accept incorrect values, and then incorrect
actions, at all states with much smaller values, such as states far from the only reward. The
accepted error :math:`e` solves :math:`e = \rho + \gamma P e` with the residual :math:`\rho`. If no
reward is negative, the error is at most about 16u times v(s) times the mean number of steps to the
reward.

**Values.** Dividing each row of :math:`I - \gamma P` by its diagonal gives :math:`x = b + Jx` with
a zero diagonal, where L and U are the parts of :math:`J = L + U` below and above the diagonal.
BiCGSTAB solves for the error of the current values in units of w, a scale of the values (a Doob
transform):

.. math:: W^{-1}(I - J)W\,y = W^{-1}\rho, \qquad v \leftarrow v + Wy.

The initial scale is 1. A solution with errors of :math:`10^{-10}w` gives the sizes of all larger
values, and therefore the scale of the next solution: each restart resolves values that are ten
decades smaller. Sweeps keep the scale of a state from falling far below the scales of its
successors, because BiCGSTAB would stall. The preconditioner is symmetric Gauss-Seidel. One product
with :math:`(I-L)^{-1}(I-L-U)(I-U)^{-1}` takes only two triangular solves (Eisenstat's trick),
because :math:`I-L-U = (I-L) + (I-U) - I`. If BiCGSTAB does not converge, SuperLU factorises the
system, with refinement, unless the factors may be large. Otherwise Gauss-Seidel sweeps continue,
which converge for every chain. Values below 1e-280 may underflow.

**Visits** solve the adjoint equation :math:`d = p_0 + \gamma P^\top d`. Visits are
not scaled, and only their sum must be accurate. A solution is accepted if
:math:`\sum_s|p_0 + \gamma P^\top d - d|(s) \le 8u\sum_s d(s)`; the sum of the errors is then at
most :math:`8u\sum_s d(s)/(1-\gamma)`.

**Optimal values.** Modified policy iteration with Gauss-Seidel sweeps runs until no action changes.
Policy iteration, with values computed as above, then runs until no action improves by more than
rounding.

**Bounds.** Let q be the action values of v, and let :math:`e \ge 0` satisfy at every state s
:math:`v - q_\pi \le e - \gamma P_\pi e` for the policy found, and
:math:`q_a - v \le e - \gamma P_a e` for every action a. Then
:math:`T_\pi(v - e) \ge v - e` and :math:`T(v + e) \le v + e`, so that :math:`|v - v_\star| \le e`
at every state. Here e is a multiple of an approximate solution of :math:`h = m + \gamma P_\pi h`,
where m(s) is the size of the terms of s. Both inequalities are checked with bounds for the rounding
of each sum, so that the result also holds for computed numbers, except for underflow. A state is
undecided if such errors could change its best action.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from numpy.typing import NDArray

from pu_lib.compiling import allocating, compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_U = 2.0**-53
_TINY = 1e-280  # the smallest size of terms that an error is measured by; less may underflow
_ROUNDINGS = 8.0
VALUE_TOLERANCE = _ROUNDINGS * _U  # of a residual relative to the terms of its state
_RESTARTS = 20  # of BiCGSTAB
_FLOOR = 1e-10  # a restart resolves values down to this times the scale, or their errors
_CLOSE = 1e-6  # below this relative residual, a restart that does not halve it is the last
_KRYLOV_STEPS = 400  # in each of them
_REFINEMENTS = 5
_LARGEST_FACTORS = 4e7  # entries, half a gigabyte
_SWEEPS = 745.0  # at most, times 1 / (1 - discount): errors shrink by e^-745, the smallest float
_PARTIAL_SWEEPS = 20  # at most, between two improvements of the policy
_SPAN_LEFT = 0.2  # of the span of the changes of the first sweep
# After 20 improvements, sweeps end when ten in a row reach no new minimum of changes.
_AT_LEAST = 20
_SETTLED_AFTER = 10
_ATTEMPTS = 6  # at a solution of h that satisfies the inequalities, each 100 times as exact


class Solution(NamedTuple):
    """The solution of a linear system.

    Attributes
    ----------
    x : ndarray, shape (n_states,)
        The values or visits.
    roundings : float
        The residual in units of 2^-53. For values, the largest residual of a state relative to the
        terms of the state; for visits, the sum of residuals relative to the sum of the visits.
    method : str
        The method by which the system was solved.
    """

    x: Floats
    roundings: float
    method: str


class Bounds(NamedTuple):
    """Bounds on the errors of optimal values.

    Attributes
    ----------
    error : ndarray, shape (n_states,)
        A bound on the error of each value.
    per_state : bool
        Whether the bound is relative to the terms of each state, as opposed to equal at all states.
    undecided : int
        The number of states at which another action may be the best within these errors, including
        exact ties.
    certified : bool
        Whether the bound covers all rounding errors: the terms of no state are below 1e-280, which
        may underflow.
    """

    error: Floats
    per_state: bool
    undecided: int
    certified: bool


class Optimal(NamedTuple):
    """Optimal values and an optimal policy.

    Attributes
    ----------
    v : ndarray, shape (n_states,)
        Optimal values.
    q : ndarray, shape (n_states, n_actions)
        Optimal action values.
    actions : ndarray, shape (n_states,)
        An optimal action for each state.
    converged : bool
        Whether no action improves by more than rounding.
    improvements, evaluations : int
        The numbers of modified policy iterations and of policies evaluated up to rounding.
    solution : Solution
        The solution of the last policy evaluation.
    """

    v: Floats
    q: Floats
    actions: Integers
    converged: bool
    improvements: int
    evaluations: int
    solution: Solution


class _Triangles(NamedTuple):
    """The parts below and above the diagonal of the matrix J in x = b + J x.

    Entries next to the diagonal come last in each row: a triangular solve has
    only just computed the number that they multiply, and can add the other entries meanwhile.
    """

    lower_start: Any
    lower_index: Any
    lower_value: Any
    upper_start: Any
    upper_index: Any
    upper_value: Any


# Kernels. The chain of a deterministic policy is read from the process, as its rows `rows`.


@allocating
def _split(indptr: Any, indices: Any, data: Any, rows: Any, discount: float) -> Any:
    """Return J and the inverse diagonal of I - discount P."""
    n = len(rows)
    lower_start, upper_start = np.zeros(n + 1, indptr.dtype), np.zeros(n + 1, indptr.dtype)
    inverse = np.empty(n)
    for s in range(n):
        below, above, loop = 0, 0, 0.0
        for k in range(indptr[rows[s]], indptr[rows[s] + 1]):
            if indices[k] == s:
                loop += data[k]
            elif indices[k] < s:
                below += 1
            else:
                above += 1
        lower_start[s + 1] = lower_start[s] + below
        upper_start[s + 1] = upper_start[s] + above
        inverse[s] = 1.0 / (1.0 - discount * loop)
    lower_index = np.empty(lower_start[n], indices.dtype)
    upper_index = np.empty(upper_start[n], indices.dtype)
    lower_value, upper_value = np.empty(lower_start[n]), np.empty(upper_start[n])
    for s in range(n):
        i, j = lower_start[s], upper_start[s + 1]
        for k in range(indptr[rows[s]], indptr[rows[s] + 1]):
            if indices[k] < s:
                lower_index[i], lower_value[i] = indices[k], discount * data[k] * inverse[s]
                i += 1
            elif indices[k] > s:
                j -= 1
                upper_index[j], upper_value[j] = indices[k], discount * data[k] * inverse[s]
    return (
        _Triangles(lower_start, lower_index, lower_value, upper_start, upper_index, upper_value),
        inverse,
    )


@compiled
def _rescale(start: Any, index: Any, value: Any, scale: Any, out: Any) -> None:
    """Store W^-1 M W in `out`, with W = diag(`scale`); rows with scale 0 become 0."""
    for s in range(len(scale)):
        for k in range(start[s], start[s + 1]):
            out[k] = value[k] * (scale[index[k]] / scale[s]) if scale[s] > 0.0 else 0.0


@allocating
def _scaled(J: Any, scale: Any) -> Any:
    """Return W^-1 J W, with W = diag(`scale`)."""
    lower, upper = np.empty_like(J.lower_value), np.empty_like(J.upper_value)
    _rescale(J.lower_start, J.lower_index, J.lower_value, scale, lower)
    _rescale(J.upper_start, J.upper_index, J.upper_value, scale, upper)
    return _Triangles(J.lower_start, J.lower_index, lower, J.upper_start, J.upper_index, upper)


@compiled
def _sweep(J: Any, b: Any, x: Any, backward: bool) -> Any:
    """Set each x(s) to b(s) + (J x)(s), in the order of the states or backward.

    Returns the largest change minus the smallest change.
    """
    low, high = np.inf, -np.inf
    if backward:
        for s in range(len(b) - 1, -1, -1):
            total = b[s]
            for k in range(J.lower_start[s], J.lower_start[s + 1]):
                total += J.lower_value[k] * x[J.lower_index[k]]
            for k in range(J.upper_start[s], J.upper_start[s + 1]):
                total += J.upper_value[k] * x[J.upper_index[k]]
            low, high = min(low, total - x[s]), max(high, total - x[s])
            x[s] = total
    else:
        for s in range(len(b)):
            total = b[s]
            for k in range(J.upper_start[s], J.upper_start[s + 1]):
                total += J.upper_value[k] * x[J.upper_index[k]]
            for k in range(J.lower_start[s], J.lower_start[s + 1]):
                total += J.lower_value[k] * x[J.lower_index[k]]
            low, high = min(low, total - x[s]), max(high, total - x[s])
            x[s] = total
    return high - low


@compiled
def _shift(J: Any, b: Any, x: Any) -> None:
    """Add the constant that minimises the squared residuals to all x(s) with successors."""
    top, bottom = 0.0, 0.0
    for s in range(len(b)):
        total, left = b[s] - x[s], 1.0
        for k in range(J.upper_start[s], J.upper_start[s + 1]):
            total += J.upper_value[k] * x[J.upper_index[k]]
            left -= J.upper_value[k]
        for k in range(J.lower_start[s], J.lower_start[s + 1]):
            total += J.lower_value[k] * x[J.lower_index[k]]
            left -= J.lower_value[k]
        if left < 1.0:
            top += total * left
            bottom += left * left
    if bottom > 0.0:
        for s in range(len(b)):
            if J.lower_start[s] < J.lower_start[s + 1] or J.upper_start[s] < J.upper_start[s + 1]:
                x[s] += top / bottom


@compiled
def _residual(
    indptr: Any, indices: Any, data: Any, rows: Any, b: Any, discount: float, x: Any, out: Any
) -> Any:
    """Store b + discount P x - x and return its largest entry relative to the state's terms."""
    most = 0.0
    for s in range(len(b)):
        total, size = 0.0, 0.0
        for k in range(indptr[rows[s]], indptr[rows[s] + 1]):
            term = data[k] * x[indices[k]]
            total += term
            size += abs(term)
        out[s] = b[s] + discount * total - x[s]
        relative = abs(out[s]) / max(abs(b[s]) + discount * size + abs(x[s]), _TINY)
        if not relative < np.inf:
            return np.inf
        most = max(most, relative)
    return most


@compiled
def _solve_upper(J: Any, x: Any, out: Any) -> None:
    """Store (I - U)^-1 x in `out`, which may be x."""
    for s in range(len(x) - 1, -1, -1):
        total = x[s]
        for k in range(J.upper_start[s], J.upper_start[s + 1]):
            total += J.upper_value[k] * out[J.upper_index[k]]
        out[s] = total


@compiled
def _apply(J: Any, x: Any, out: Any, y: Any, work: Any) -> Any:
    """Store Ax in `out`, with A = (I-L)^-1 (I-L-U) (I-U)^-1; return (Ax)'y and (Ax)'Ax."""
    _solve_upper(J, x, work)
    product, square = 0.0, 0.0
    for s in range(len(x)):
        total = x[s] - work[s]
        for k in range(J.lower_start[s], J.lower_start[s + 1]):
            total += J.lower_value[k] * work[J.lower_index[k]]
        out[s] = total + work[s]
        work[s] = total
        product += out[s] * y[s]
        square += out[s] * out[s]
    return product, square


@allocating
def _bicgstab(J: Any, b: Any, tolerance: float, max_steps: int) -> Any:
    """Return an approximate solution of (I - J) x = b and the number of steps.

    The iteration ends early if the preconditioned residual is at most `tolerance` times the initial
    residual, or at a breakdown. Sums are computed here in a fixed order, because the order in BLAS
    depends on its threads.
    """
    n = len(b)
    shadow, x, work = b.copy(), np.zeros(n), np.empty(n)
    rho = 0.0
    for s in range(n):
        for k in range(J.lower_start[s], J.lower_start[s + 1]):
            shadow[s] += J.lower_value[k] * shadow[J.lower_index[k]]
        rho += shadow[s] * shadow[s]
    r, p, v, t = shadow.copy(), shadow.copy(), np.empty(n), np.empty(n)
    goal, step = tolerance * math.sqrt(rho), 0
    while step < max_steps and rho != 0.0:
        step += 1
        along, _ = _apply(J, p, v, shadow, work)
        alpha = rho / along
        for s in range(n):
            r[s] -= alpha * v[s]
        product, square = _apply(J, r, t, r, work)
        omega = product / square if square > 0.0 else 0.0
        size, new = 0.0, 0.0
        for s in range(n):
            x[s] += alpha * p[s] + omega * r[s]
            r[s] -= omega * t[s]
            size += r[s] * r[s]
            new += r[s] * shadow[s]
        if not goal < math.sqrt(size) < np.inf or omega == 0.0:
            break
        beta, rho = new / rho * (alpha / omega), new
        for s in range(n):
            p[s] = r[s] + beta * (p[s] - omega * v[s])
    _solve_upper(J, x, x)
    return x, step


@compiled
def _smooth(J: Any, b: Any, size: Any) -> None:
    """Update sizes of values by Gauss-Seidel sweeps on |b|; sizes that may underflow become 0."""
    for _ in range(2):
        _sweep(J, b, size, False)
        _sweep(J, b, size, True)
    for s in range(len(size)):
        if size[s] < _TINY:
            size[s] = 0.0


@allocating
def solve_by_bicgstab(
    indptr: Any, indices: Any, data: Any, rows: Any, rewards: Any, discount: float, x: Any,
    tolerance: float, max_restarts: int = _RESTARTS,
) -> Any:  # fmt: skip
    """Improve the values x of the chain with the rows `rows` of a matrix by BiCGSTAB.

    The iteration ends if the largest residual relative to the terms of its state is at most
    `tolerance`, or if restarts no longer reduce the residual. Returns this residual and the number
    of steps.
    """
    n, steps = len(x), 0
    J, inverse = _split(indptr, indices, data, rows, discount)
    b = rewards * inverse
    sizes, residual, per_scale = np.abs(b), np.empty(n), np.empty(n)
    scale, started, before = np.ones(n), False, np.inf
    for s in range(n):
        started = started or x[s] != 0.0
    relative = _residual(indptr, indices, data, rows, rewards, discount, x, residual)
    for restart in range(max_restarts):
        if relative <= tolerance or 0.5 * before < relative < _CLOSE:
            break
        # The initial scale is that of the given values. If the first restart does not reduce the
        # residual, these say nothing about the sizes of the solution.
        if restart > 0 or started:
            if restart == 1 and started and not relative < 0.5 * before:
                scale[:] = 1.0
            else:
                for s in range(n):
                    scale[s] = abs(x[s]) if restart == 0 else max(abs(x[s]), _FLOOR * scale[s])
                _smooth(J, sizes, scale)
        for s in range(n):
            per_scale[s] = residual[s] * inverse[s] / scale[s] if scale[s] > 0.0 else 0.0
        reduction = min(0.1, max(_FLOOR, tolerance / relative / 8.0))
        y, taken = _bicgstab(_scaled(J, scale), per_scale, reduction, _KRYLOV_STEPS)
        steps += taken
        before, finite = relative, True
        for s in range(n):
            finite = finite and np.isfinite(y[s])
        if finite:
            for s in range(n):
                x[s] += scale[s] * y[s]
            _sweep(J, b, x, False)
            _sweep(J, b, x, True)
            relative = _residual(indptr, indices, data, rows, rewards, discount, x, residual)
    return relative, steps


@allocating
def solve_by_sweeps(
    indptr: Any, indices: Any, data: Any, rows: Any, rewards: Any, discount: float, x: Any,
    tolerance: float,
) -> Any:  # fmt: skip
    """Improve the values x by Gauss-Seidel sweeps; otherwise as `solve_by_bicgstab`."""
    J, inverse = _split(indptr, indices, data, rows, discount)
    b, residual, sweeps, relative = rewards * inverse, np.empty(len(x)), 0, 1.0
    while tolerance < relative < np.inf and sweeps < _SWEEPS / (1.0 - discount):
        for _ in range(10):
            _sweep(J, b, x, False)
            _sweep(J, b, x, True)
        sweeps += 20
        relative = _residual(indptr, indices, data, rows, rewards, discount, x, residual)
    return relative, sweeps


@compiled
def _improve(
    indptr: Any, indices: Any, data: Any, rewards: Any, discount: float, v: Any, actions: Any,
    backward: bool,
) -> Any:  # fmt: skip
    """Set each v(s) in turn to its best action value; return the number of changed `actions`."""
    n, n_actions = rewards.shape
    changed = 0
    for i in range(n):
        s = n - 1 - i if backward else i
        best, first, current = -np.inf, 0, -np.inf
        for a in range(n_actions):
            total, loop = 0.0, 0.0
            for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                if indices[k] == s:
                    loop += data[k]
                else:
                    total += data[k] * v[indices[k]]
            value = (rewards[s, a] + discount * total) / (1.0 - discount * loop)
            if value > best:
                best, first = value, a
            if a == actions[s]:
                current = value
        v[s] = best
        if best - current > 1e-14 * abs(best):  # a tie is left as it is
            actions[s] = first
            changed += 1
    return changed


@compiled
def _backup(
    indptr: Any, indices: Any, data: Any, rewards: Any, discount: float, v: Any, actions: Any,
    q: Any, size: Any, gain: Any,
) -> Any:  # fmt: skip
    """Store action values, the sizes of their terms, and the gains of improved actions.

    A gain is relative to the terms of the state. An action in `actions` changes if the gain exceeds
    rounding. Returns the number of changed actions.
    """
    n, n_actions = rewards.shape
    changed = 0
    for s in range(n):
        best, first, most = -np.inf, 0, abs(v[s])
        for a in range(n_actions):
            total, terms = 0.0, 0.0
            for k in range(indptr[s * n_actions + a], indptr[s * n_actions + a + 1]):
                total += data[k] * v[indices[k]]
                terms += data[k] * abs(v[indices[k]])
            q[s, a] = rewards[s, a] + discount * total
            most = max(most, abs(rewards[s, a]) + discount * terms)
            if q[s, a] > best:
                best, first = q[s, a], a
        size[s] = most
        gain[s] = (best - q[s, actions[s]]) / max(most, _TINY)
        if gain[s] > 8.0 * _ROUNDINGS * _U:
            actions[s] = first
            changed += 1
        else:
            gain[s] = 0.0
    return changed


@compiled
def _multiple(
    indptr: Any, indices: Any, data: Any, rewards: Any, discount: float, v: Any, q: Any,
    actions: Any, h: Any, wanting: Any,
) -> Any:  # fmt: skip
    """Return the smallest c such that e = c h satisfies the inequalities of the bounds.

    The result is infinity if there is no such c, or if h is not a number >= 0 at a state. The
    function sets `wanting[s]` to an action of state s for which no c is sufficient, or to -1.
    """
    n, n_actions = rewards.shape
    c, valid = 0.0, True
    for s in range(n):
        valid = valid and h[s] >= 0.0  # a discount next to 1 can make the computed h negative
        wanting[s] = -1
        least = 0.0
        for a in range(n_actions):
            ahead, terms = 0.0, 0.0
            begin, end = indptr[s * n_actions + a], indptr[s * n_actions + a + 1]
            for k in range(begin, end):
                ahead += data[k] * h[indices[k]]
                terms += data[k] * abs(v[indices[k]])
            # A sum of m products has at most m + 1 roundings of the sizes of its terms.
            rounding = (end - begin + 4) * _U
            error = rounding * (abs(rewards[s, a]) + discount * terms + abs(v[s]))
            slack = h[s] - discount * ahead - rounding * (h[s] + discount * ahead)
            gap = (abs(q[s, a] - v[s]) if a == actions[s] else q[s, a] - v[s]) + error
            if gap > 0.0:
                if slack > 0.0:
                    c = max(c, gap / slack)
                elif wanting[s] < 0 or slack < least:
                    wanting[s], least = a, slack
    for s in range(n):
        if wanting[s] >= 0:
            return np.inf
    return c if valid else np.inf


@allocating
def _undecided(
    indptr: Any, indices: Any, data: Any, rewards: Any, discount: float, v: Any, q: Any,
    actions: Any, e: Any,
) -> Any:  # fmt: skip
    """Return the number of states at which an action not in `actions` may be the best.

    The values v have errors up to e. States without successors are not counted.
    """
    n, n_actions = rewards.shape
    count, highest = 0, np.empty(n_actions)
    for s in range(n):
        floor = -np.inf
        for a in range(n_actions):
            error, terms = 0.0, abs(rewards[s, a])
            begin, end = indptr[s * n_actions + a], indptr[s * n_actions + a + 1]
            for k in range(begin, end):
                error += discount * data[k] * e[indices[k]]
                terms += discount * data[k] * abs(v[indices[k]])
            error += (end - begin + 4) * _U * terms
            highest[a] = q[s, a] + error
            if a == actions[s]:
                floor = q[s, a] - error
        others = 0
        for a in range(n_actions):
            if a != actions[s] and highest[a] >= floor:
                others += 1
        if others > 0 and indptr[s * n_actions] < indptr[(s + 1) * n_actions]:
            count += 1
    return count


# Solvers


def evaluate(
    chain: scipy.sparse.csr_array, rewards: Floats, discount: float, start: Floats | None = None
) -> Solution:
    """Return the values of a Markov chain, which are accurate at every state.

    Parameters
    ----------
    chain : csr_array, shape (n_states, n_states)
        Transition probabilities; rows may be empty.
    rewards : ndarray, shape (n_states,)
        Expected rewards.
    discount : float
        Discount factor in [0, 1).
    start : ndarray, shape (n_states,), optional
        Initial values. The default is zeros.

    Returns
    -------
    Solution
        The values.
    """
    chain.check_format(full_check=True)  # compiled code does not check indices
    return _values(chain, np.arange(len(rewards)), rewards, discount, start, VALUE_TOLERANCE)


def _values(
    matrix: scipy.sparse.csr_array,
    rows: Integers,
    rewards: Floats,
    discount: float,
    start: Floats | None,
    tolerance: float,
) -> Solution:
    """Return the values of the Markov chain with the rows `rows` of a matrix."""
    equation = (matrix.indptr, matrix.indices, matrix.data, rows, rewards, discount)
    x = np.zeros(len(rewards)) if start is None else start.copy()
    relative, steps = solve_by_bicgstab(*equation, x, tolerance, _RESTARTS)
    method = f"BiCGSTAB in {steps} steps"
    if relative > tolerance and _envelope(matrix, rows) <= _LARGEST_FACTORS:
        method = "SuperLU"
        factors, residual = _factors(matrix, rows, discount), np.empty_like(x)
        x = factors.solve(rewards)
        relative = _residual(*equation, x, residual)
        for _ in range(_REFINEMENTS):
            if relative <= tolerance:
                break
            x += factors.solve(residual)
            relative = _residual(*equation, x, residual)
    if relative > tolerance:
        relative, sweeps = solve_by_sweeps(*equation, x, tolerance)
        method = f"{sweeps} Gauss-Seidel sweeps"
    return Solution(x, relative / _U, method)


def _envelope(matrix: scipy.sparse.csr_array, rows: Integers) -> int:
    """Return the size of the factors if states are ordered by reverse Cuthill-McKee.

    The factors in SuperLU's order are usually much smaller.
    """
    chain = matrix[rows]
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(chain, symmetric_mode=False)
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows))
    row, column = np.repeat(place, np.diff(chain.indptr)), place[chain.indices]
    first = np.arange(len(rows))
    np.minimum.at(first, np.maximum(row, column), np.minimum(row, column))
    return 2 * int((np.arange(len(rows)) - first).sum()) + len(rows)


def _factors(matrix: scipy.sparse.csr_array, rows: Integers, discount: float) -> Any:
    """Return the factors of I - discount P, without pivoting because it is diagonally dominant."""
    system = scipy.sparse.eye_array(len(rows)) - discount * matrix[rows]
    return scipy.sparse.linalg.splu(
        scipy.sparse.csc_array(system), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )  # fmt: skip


def visits(chain: scipy.sparse.csr_array, initial: Floats, discount: float) -> Solution:
    """Return the expected discounted visits of a Markov chain, which are accurate in sum.

    Parameters
    ----------
    chain : csr_array, shape (n_states, n_states)
        Transition probabilities; rows may be empty.
    initial : ndarray, shape (n_states,)
        Distribution of the initial state.
    discount : float
        Discount factor in [0, 1).

    Returns
    -------
    Solution
        The visits, which are non-negative.
    """
    chain.check_format(full_check=True)
    adjoint = scipy.sparse.csr_array(chain.T)
    initial = initial.copy()  # read-only arrays would be compiled for once more
    rows, x, residual = np.arange(len(initial)), np.zeros(len(initial)), np.empty(len(initial))
    equation = (adjoint.indptr, adjoint.indices, adjoint.data, rows, initial, discount)
    J, inverse = _split(*equation[:4], discount)
    b, relative, before, n_steps = initial * inverse, np.inf, np.inf, 0
    for restart in range(_RESTARTS + 1):
        _residual(*equation, x, residual)
        relative = float(np.abs(residual).sum() / max(x.sum(), 1.0))
        if restart == _RESTARTS or relative <= _ROUNDINGS * _U or not relative < 0.5 * before:
            break
        before = relative
        reduction = min(0.1, max(1e-10, _ROUNDINGS * _U / relative / 2.0))
        y, steps = _bicgstab(J, residual * inverse, reduction, _KRYLOV_STEPS)
        n_steps += steps
        if not np.isfinite(y).all():
            break
        x = np.maximum(x + y, 0.0)  # rounding can make zero visits negative
        _sweep(J, b, x, False)
        _sweep(J, b, x, True)
    if relative <= _ROUNDINGS * _U:
        return Solution(x, relative / _U, f"BiCGSTAB in {n_steps} steps")
    return _values(adjoint, rows, initial, discount, x, VALUE_TOLERANCE)


def optimal(
    matrix: scipy.sparse.csr_array, rewards: Floats, discount: float, max_evaluations: int = 50
) -> Optimal:
    """Return optimal values, which are accurate at every state, and an optimal policy.

    Parameters
    ----------
    matrix : csr_array, shape (n_states * n_actions, n_states)
        Transition probabilities, row ``s * n_actions + a``; rows may be empty.
    rewards : ndarray, shape (n_states, n_actions)
        Expected rewards.
    discount : float
        Discount factor in [0, 1).
    max_evaluations : int, optional
        The largest number of policies that are evaluated up to rounding.

    Returns
    -------
    Optimal
        Values, action values and actions.
    """
    matrix.check_format(full_check=True)
    n_states, n_actions = rewards.shape
    rewards = rewards.copy()  # read-only arrays would be compiled for once more
    process = (matrix.indptr, matrix.indices, matrix.data, rewards, discount)
    first, states = np.arange(n_states) * n_actions, np.arange(n_states)
    v = np.full(n_states, min(0.0, float(rewards.min()) / (1.0 - discount)))
    actions = np.zeros(n_states, np.int64)
    improvements, fewest, since = 0, n_states + 1, 0
    while since < _SETTLED_AFTER:
        improvements += 1
        changed = _improve(*process, v, actions, improvements % 2 == 0)
        if changed == 0 and improvements > 2:
            break
        fewer = changed < fewest or improvements < _AT_LEAST
        fewest, since = (min(changed, fewest), 0) if fewer else (fewest, since + 1)
        J, inverse = _split(*process[:3], first + actions, discount)
        b = rewards[states, actions] * inverse
        span = _sweep(J, b, v, improvements % 2 == 1)
        for i in range(1, _PARTIAL_SWEEPS):
            if _sweep(J, b, v, (improvements + i) % 2 == 1) <= _SPAN_LEFT * span:
                break  # up to a shift, these are the values of the policy
        _shift(J, b, v)
    q, size, gain = np.empty_like(rewards), np.empty(n_states), np.zeros(n_states)
    evaluations, converged = 0, False
    while not converged and evaluations < max_evaluations:
        evaluations += 1
        chosen_rewards = rewards[states, actions]
        solution = _values(matrix, first + actions, chosen_rewards, discount, v, VALUE_TOLERANCE)
        rise, v, evaluated, moved = solution.x - v, solution.x, actions.copy(), gain > 0.0
        # Exact values rise by at least the gains. If they do not, the gains were rounding.
        rounding = bool((rise[moved] / size[moved]).sum() < 0.5 * gain[moved].sum())
        changed = _backup(*process, v, actions, q, size, gain)
        converged = changed == 0 or rounding
    return Optimal(v, q, evaluated, converged, improvements, evaluations, solution)


def bounds(
    matrix: scipy.sparse.csr_array, rewards: Floats, discount: float, optimum: Optimal
) -> Bounds:
    """Return bounds on the errors of optimal values.

    Parameters
    ----------
    matrix, rewards, discount
        The process, as for `optimal`.
    optimum : Optimal
        The optimal values and actions.

    Returns
    -------
    Bounds
        A bound for each state, and the number of states at which another action may be the best.
    """
    matrix.check_format(full_check=True)
    n_states, n_actions = rewards.shape
    rewards = rewards.copy()  # read-only arrays would be compiled for once more
    process = (matrix.indptr, matrix.indices, matrix.data, rewards, discount)
    first = np.arange(n_states) * n_actions
    v, q, size, wanting = optimum.v, optimum.q, np.empty(n_states), np.empty(n_states, np.int64)
    _backup(*process, v, optimum.actions.copy(), np.empty_like(q), size, np.empty(n_states))
    h, terms, actions, c = size, size, optimum.actions, np.inf
    for attempt in range(_ATTEMPTS):
        tolerance = max((1.0 - discount) * 0.1 ** (1 + 2 * attempt), _ROUNDINGS * _U)
        h = _values(matrix, first + actions, size, discount, h, tolerance).x
        c = _multiple(*process, v, q, optimum.actions, h, wanting)
        if c < np.inf:
            break
        # Among actions that are equally good, h needs those after which the errors are largest.
        actions = np.where(wanting >= 0, wanting, actions)
    per_state = c < np.inf
    if not per_state:
        h = np.ones(n_states)
        c = _multiple(*process, v, q, optimum.actions, h, wanting)
    error = c * h
    certified = not bool(((terms > 0.0) & (terms < _TINY)).any())
    return Bounds(error, per_state, _undecided(*process, v, q, optimum.actions, error), certified)
