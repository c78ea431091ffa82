"""Comparison of the kernel of an own update with its hooks, before the kernel is compiled.

Compiled code neither checks indices nor calls `advance`. A kernel with an index outside its row
would change the parameters of another state, and a kernel with another formula would run under the
name of the update. The kernel therefore takes a few steps in plain Python first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.compiling import code_digest
from pu_lib.engine.rows import takes_memory
from pu_lib.parametrizations import scaled_escort, unchecked_softmax
from pu_lib.updates import Update

_WEIGHTS = (0.0, 1e-6, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e6)
_TOLERANCE = 1e-8  # relative to the largest parameter; well above the rounding of one step
_RANGE = 600.0  # between the parameters of a softmax policy without underflow, below 708
_MARGIN = 64  # entries on either side of a row, at least; a write to them is an error
_compared: set[tuple[object, ...]] = set()


def require_kernel(update: Update, n_actions: int) -> None:
    """Raise a `ValueError` unless the kernel of an update takes the steps of its `advance`.

    The updates of the library are not compared at run time; tests compare them.
    """
    if type(update).__module__.startswith("pu_lib."):
        return
    key = type(update), repr(update.options), code_digest(update.kernel), n_actions
    if key not in _compared:
        _compare(update, n_actions)
        _compared.add(key)


def _compare(update: Update, n_actions: int) -> None:
    """Compare steps from random policies and from the parameters after a huge step.

    All weights are combined with values for which each action is the best once, and with ties.
    """
    kernel: Any = update.kernel
    if update.has_memory and not takes_memory(kernel):
        raise ValueError(
            f"update: the kernel of {update.name} must take the memory as its seventh argument, "
            "kernel(theta, pi, q, best, weight, n_actions, memory)."
        )
    if takes_memory(kernel) and not update.has_memory:
        raise ValueError(
            f"update: the kernel of {update.name} must take six arguments, because the update "
            "defines no initial_memory."
        )
    q = _values(n_actions)
    shares = np.random.default_rng(0).dirichlet(np.ones(n_actions), size=len(q))
    theta = update.parameters(0.9 * shares + 0.1 / n_actions)
    pi, memory = update.policy(theta), update._memory(len(q), n_actions=n_actions)
    with np.errstate(all="ignore"):  # raises unless `advance` returns finite parameters
        update._move(theta, q, np.asarray(1.0), np.random.default_rng(0), memory)
    if memory is None:
        memory = np.empty((len(q), 0))
    _require_close(update, "to_policy", _loop_policy(update, theta), pi, theta, q)
    with np.errstate(all="ignore"):
        later = _advanced(update, theta, q, memory, 1.0)[1]
    for kept in (memory, later)[: 1 + update.has_memory]:
        for weight in _WEIGHTS:
            _compare_steps(update, theta, pi, q, kept, weight)
    # Large parameters, corners of the simplex and parameters of either sign: the policy is nearly
    # deterministic, and most often its action is not the best one.
    with np.errstate(all="ignore"):
        theta, memory = _advanced(update, theta, q, memory, _WEIGHTS[-1])
        if update.parametrization == "softmax":
            # If all probabilities but one underflow, kernels cannot compute their ratios.
            theta *= np.minimum(1.0, _RANGE / np.ptp(theta, axis=-1, keepdims=True))
    usable = np.array([_has_policy(update, row) for row in theta], dtype=bool)
    usable &= np.isfinite(memory).all(axis=-1)
    theta, memory = theta[usable], memory[usable]
    pi, q = _loop_policy(update, theta), np.roll(q, 1, axis=0)[: len(theta)]
    for weight in _WEIGHTS:
        _compare_steps(update, theta, pi, q, memory, weight)


def _values(n_actions: int) -> Floats:
    """Return rows of values in which each action is the best once, and rows with ties."""
    rows = np.random.default_rng(1).random((n_actions + 4, n_actions))
    rows[-4] = 0.0  # the critic starts with these values
    for a in range(n_actions):
        rows[a, a] = 2.0
    if n_actions == 2:
        return rows[:-3]
    for row, pair in zip(rows[-3:], ((0, 1), (0, -1), (-2, -1)), strict=True):
        row[list(pair)] = 2.0
    return rows


def _advanced(
    update: Update, theta: Floats, q: Floats, memory: Floats, weight: float
) -> tuple[Floats, Floats]:
    """Return the parameters and memory after `advance`, which may be infinite or NaN."""
    weights = np.full((len(theta), 1), weight)
    given = memory if update.has_memory else None
    new, kept = update._call_advance(theta, q, weights, np.random.default_rng(0), given)
    return new, memory if kept is None else kept


def _has_policy(update: Update, theta: Floats) -> bool:
    """Return whether these are parameters of the update."""
    try:
        update.policy(theta)
    except ValueError:
        return False
    return True


def _compare_steps(
    update: Update, theta: Floats, pi: Floats, q: Floats, memory: Floats, weight: float
) -> None:
    """Compare steps of one weight, except where `advance` leaves the range of floats."""
    with np.errstate(all="ignore"):
        expected, kept = _advanced(update, theta, q, memory, weight)
        finite = np.isfinite(expected).all(axis=-1) & np.isfinite(kept).all(axis=-1)
        theta, pi, q, memory = theta[finite], pi[finite], q[finite], memory[finite]
        expected, kept = expected[finite], kept[finite]
        taken, taken_memory = np.empty_like(expected), np.empty_like(kept)
        for row, each in enumerate(zip(theta, pi, q, memory, expected, kept, strict=True)):
            taken[row], taken_memory[row] = _step(update, weight, *each)
        difference = taken - expected
        if update.parametrization == "softmax":  # a common shift does not change the policy
            difference -= difference.mean(axis=-1, keepdims=True)
    _require_close(update, "advance", expected + difference, expected, theta, q, weight)
    _require_close(update, "advance", taken_memory, kept, theta, q, weight, memory)


def _step(
    update: Update,
    weight: float,
    theta: Floats,
    pi: Floats,
    q: Floats,
    memory: Floats,
    expected: Floats,
    expected_memory: Floats,
) -> tuple[Floats, Floats]:
    """Return parameters and memory after a step of the loop.

    If ties are random, the step nearest to the expected one is returned. The loop has the same rule
    for ties (`pu_lib.engine.loop`).
    """
    ties, best = update.options.get("ties", "first"), np.flatnonzero(q == q.max())
    if ties == "leave" and len(best) > 1:
        return theta, memory
    steps = [
        _kernel_step(update, theta, pi, q, memory, int(a), weight)
        or (expected, expected_memory)  # if the kernel overflows
        for a in (best if ties == "random" else best[:1])
    ]
    return min(steps, key=lambda new: float(np.ptp(new[0] - expected)))


def _kernel_step(
    update: Update,
    theta: Floats,
    pi: Floats,
    q: Floats,
    memory: Floats,
    best: int,
    weight: float,
) -> tuple[Floats, Floats] | None:
    """Return the parameters and memory after one step of the kernel in plain Python.

    The result is None if the kernel overflows in plain Python, which raises where compiled code
    computes infinity.
    """
    n = len(theta)
    # The rows have margins of other numbers, because a compiled function that the kernel calls
    # would not raise an IndexError.
    inside, margins = _with_margins(np.array([theta, pi, q]))
    rows, margins_of_memory = _with_margins(memory[np.newaxis])
    kernel: Any = getattr(update.kernel, "py_func", update.kernel)
    try:
        kernel(*inside, best, weight, n, *(rows if update.has_memory else ()))
    except OverflowError:
        return None
    except Exception as error:
        fault = "uses an index outside its row" if isinstance(error, IndexError) else "fails"
        raise ValueError(
            f"update: the kernel of {update.name} {fault} with {n} actions: {error!r}"
        ) from None
    for now, before in (*margins, *margins_of_memory):
        if not np.array_equal(now, before):
            raise ValueError(
                f"update: the kernel of {update.name} writes outside its row with {n} actions."
            )
    if not np.array_equal(inside[2], q):
        raise ValueError(
            f"update: the kernel of {update.name} changes q; it may change theta"
            f"{' and memory' * update.has_memory}."
        )
    return np.asarray(inside[0]), np.asarray(rows[0])


def _with_margins(rows: Floats) -> tuple[Floats, list[tuple[Floats, Floats]]]:
    """Return rows in an array with margins of random numbers, and the margins with their copies."""
    n = rows.shape[1]
    margin = max(n, _MARGIN)
    padded = np.random.default_rng(2).normal(size=(len(rows), n + 2 * margin))
    before, inside, after = np.split(padded, (margin, margin + n), axis=1)
    inside[:] = rows
    return inside, [(before, before.copy()), (after, after.copy())]


def _loop_policy(update: Update, theta: Floats) -> Floats:
    """Return the policy that the compiled loop computes from parameters."""
    if update.parametrization == "softmax":
        return unchecked_softmax(theta)
    return theta if update.parametrization == "direct" else scaled_escort(theta, 2.0)[0]


def _require_close(
    update: Update,
    hook: str,
    got: Floats,
    expected: Floats,
    theta: Floats,
    q: Floats,
    weight: float | None = None,
    memory: Floats | None = None,
) -> None:
    """Raise a `ValueError` that shows the first row in which a hook and the loop differ."""
    before = theta if memory is None else memory
    scale = 1.0 + np.maximum(np.abs(before), np.abs(expected)).max(axis=-1, initial=0.0)
    close = np.abs(got - expected).max(axis=-1, initial=0.0) <= _TOLERANCE * scale
    if close.all():
        return
    row = int(np.argmin(close))
    if hook == "to_policy":
        source, case = f"parametrization {update.parametrization}", f"theta {theta[row]}"
    else:
        source = "the kernel"
        case = f"theta {theta[row]}, q {q[row]} and weight {weight:g}"
    if memory is not None:
        case += f" and memory {memory[row]}"
    raise ValueError(
        f"update: {source} of {update.name} differs from its {hook}: for {case} they give "
        f"{got[row]} and {expected[row]}."
    )
