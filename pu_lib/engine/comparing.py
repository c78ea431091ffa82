"""Comparison of the kernel of an own update with its hooks, before the kernel is compiled.

Compiled code neither checks indices nor calls `advance`. A kernel with an index outside its row
would change the parameters of another state, and a kernel with another formula would run under the
name of the update. The kernel therefore takes a few steps in plain Python first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.engine.compiling import code_digest
from pu_lib.parametrizations import scaled_escort, unchecked_softmax
from pu_lib.updates import Update

__all__ = ["require_kernel"]

_WEIGHTS = (0.0, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_TOLERANCE = 1e-8  # relative to the largest parameter; well above the rounding of one step
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
    """Compare a few steps from random policies, with weights from 0 to 30."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(n_actions), size=len(_WEIGHTS))
    theta = update.parameters(0.9 * shares + 0.1 / n_actions)
    pi, q = update.policy(theta), rng.normal(size=theta.shape)
    _require_close(update, "to_policy", _loop_policy(update, theta), pi, theta, q)
    expected = update.step(theta, q, _WEIGHTS, seed=0)
    taken = [_step(update, *rows) for rows in zip(theta, pi, q, _WEIGHTS, strict=True)]
    difference = np.array(taken) - expected
    if update.parametrization == "softmax":  # a common shift does not change the policy
        difference -= difference.mean(axis=-1, keepdims=True)
    _require_close(update, "advance", expected + difference, expected, theta, q)


def _loop_policy(update: Update, theta: Floats) -> Floats:
    """Return the policy that the compiled loop computes from parameters."""
    if update.parametrization == "softmax":
        return unchecked_softmax(theta)
    return theta if update.parametrization == "direct" else scaled_escort(theta, 2.0)[0]


def _step(update: Update, theta: Floats, pi: Floats, q: Floats, weight: float) -> Floats:
    """Return the parameters after one step of the kernel in plain Python."""
    n = len(theta)
    # The rows have margins of other numbers, because a compiled function that the kernel calls
    # would not raise an IndexError.
    rows = np.random.default_rng(1).normal(size=(3, 3 * n))
    inside, margins = rows[:, n : 2 * n], np.delete(rows, range(n, 2 * n), axis=1)
    inside[:] = theta, pi, q
    kernel: Any = getattr(update.kernel, "py_func", update.kernel)
    try:
        kernel(*inside, int(np.argmax(q)), weight, n)
    except Exception as error:
        what = "uses an index outside its row" if isinstance(error, IndexError) else "fails"
        raise ValueError(
            f"update: the kernel of {update.name} {what} with {n} actions: {error!r}"
        ) from None
    if not np.array_equal(np.delete(rows, range(n, 2 * n), axis=1), margins):
        raise ValueError(
            f"update: the kernel of {update.name} writes outside its row with {n} actions."
        )
    if not np.array_equal(inside[2], q):
        raise ValueError(f"update: the kernel of {update.name} changes q; it may change theta.")
    return np.asarray(inside[0])


def _require_close(
    update: Update, hook: str, got: Floats, expected: Floats, theta: Floats, q: Floats
) -> None:
    """Raise a `ValueError` that shows the first row in which a hook and the loop differ."""
    scale = 1.0 + np.maximum(np.abs(theta), np.abs(expected)).max(axis=-1)
    close = np.abs(got - expected).max(axis=-1) <= _TOLERANCE * scale
    if not close.all():
        row = int(np.argmin(close))
        source = "the kernel" if hook == "advance" else f"parametrization {update.parametrization}"
        raise ValueError(
            f"update: {source} of {update.name} differs from its {hook}: for theta {theta[row]}, "
            f"q {q[row]} and weight {_WEIGHTS[row]} they give {got[row]} and {expected[row]}."
        )
