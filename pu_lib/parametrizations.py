"""Parametrizations of policies and functions that several updates use.

Arrays have shape ``(..., n_actions)`` and leading axes broadcast. Functions check their arguments,
except functions named ``unchecked_...``, which the updates call on arrays that have been checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import (
    Floats,
    Seed,
    as_float,
    as_float_array,
    as_generator,
    first_index,
    underflow_to_zero,
)

__all__ = [
    "Ties",
    "advantage",
    "as_rows",
    "as_weights",
    "escort",
    "greedy_mask",
    "project_simplex",
    "require_escort",
    "scaled_escort",
    "softmax",
    "softmax_of_list",
    "unchecked_greedy_mask",
    "unchecked_projection",
    "unchecked_softmax",
]

Ties = Literal["first", "random", "leave"]
Mask = NDArray[np.bool_]
_BLOCK = 4_000_000  # numbers in a block of differences, 32 MB
_MOST_COMPARED = 4000  # actions of which all pairs are compared, in some 0.1 s


@underflow_to_zero
def softmax(theta: ArrayLike) -> Floats:
    r"""Return :math:`\pi(a) = e^{\theta_a} / \sum_{a'} e^{\theta_{a'}}` (paper, eq. 4) of each row.

    The row's maximum is subtracted first, so that no finite parameter overflows; probabilities that
    underflow are zero. Raises a `ValueError` if `theta` is not an array of finite numbers.
    """
    with np.errstate(over="ignore"):
        return unchecked_softmax(as_rows("theta", theta))


def softmax_of_list(theta: Sequence[float]) -> list[float]:
    """Return the softmax of a few finite floats, faster than that of an array."""
    top = max(theta)
    powers = [math.exp(x - top) for x in theta]
    total = sum(powers)
    return [x / total for x in powers]


def unchecked_softmax(theta: Floats) -> Floats:
    """Return the softmax of finite rows.

    A difference below -1.8e308 overflows to minus infinity, and the exponential is correctly zero.
    The caller must silence the warning.
    """
    weights = np.exp(theta - np.maximum.reduce(theta, axis=-1, keepdims=True))
    return np.asarray(weights / np.add.reduce(weights, axis=-1, keepdims=True))


@underflow_to_zero
def escort(theta: ArrayLike, p: float = 2.0) -> Floats:
    r"""Return :math:`\pi(a) = |\theta_a|^p / \|\theta\|_p^p` (paper, section 2.1) of each row.

    Rows are divided by their largest modulus before the power is taken, so that the power does not
    overflow and not every term underflows. Raises a `ValueError` if `theta` is not an array of
    finite numbers, a row is zero, or p < 1.
    """
    theta = as_rows("theta", theta)
    require_escort(theta)
    return scaled_escort(theta, as_float("p", p, low=1.0))[0]


def scaled_escort(theta: Floats, p: float) -> tuple[Floats, Floats, Floats]:
    r"""Return the escort policy of finite non-zero rows and two numbers that give their p-norms.

    Returns
    -------
    policy : ndarray, shape (..., n_actions)
        The policy.
    scale, total : ndarray, shape (..., 1)
        The largest modulus m of each row, and the sum of :math:`(|\theta_a|/m)^p`. The p-norm,
        :math:`m\,\mathrm{total}^{1/p}`, is not computed because it may overflow.
    """
    modulus = np.abs(theta)
    scale = np.maximum.reduce(modulus, axis=-1, keepdims=True)
    powers = (modulus / scale) ** p
    total = np.add.reduce(powers, axis=-1, keepdims=True)
    return np.asarray(powers / total), scale, total


@underflow_to_zero
def project_simplex(x: ArrayLike) -> Floats:
    r"""Return the Euclidean projection of each row on the probability simplex.

    The projection is :math:`\max(0, x_a - \lambda)`, where :math:`\lambda` makes the row sum to 1.
    With the entries in decreasing order :math:`u_1 \ge u_2 \ge \dots`,
    :math:`\lambda = (u_1 + \dots + u_k - 1)/k` for the largest :math:`k` such that
    :math:`u_k > \lambda`. Raises a `ValueError` if `x` is not an array of finite numbers.
    """
    with np.errstate(over="ignore"):
        return unchecked_projection(as_rows("x", x))


def unchecked_projection(points: Floats) -> Floats:
    """Return the projection of rows of entries that are finite or minus infinity.

    The caller must silence the warning if a difference of entries overflows.
    """
    # A common shift does not change the projection. Without it, large entries would absorb the 1
    # in the sum below. With the largest entry at 0 the threshold is at least -1, so that entries
    # below -1 project to 0 wherever they are: they are raised to -2 to keep the sum finite.
    points = np.maximum(points - points.max(axis=-1, keepdims=True), -2.0)
    descending = -points
    descending.sort(axis=-1)
    np.negative(descending, out=descending)
    counts = np.arange(1, points.shape[-1] + 1)
    thresholds = (descending.cumsum(axis=-1) - 1.0) / counts
    support = (descending > thresholds).sum(axis=-1, keepdims=True)
    threshold = np.where(counts == support, thresholds, -np.inf).max(axis=-1, keepdims=True)
    return np.asarray(np.maximum(points - threshold, 0.0))


# Quantities shared by the updates


@underflow_to_zero
def advantage(pi: Floats, q: Floats) -> Floats:
    r"""Return the advantages :math:`\mathrm{adv}(a) = q(a) - \sum_b \pi(b) q(b)`.

    The advantages are computed as :math:`\sum_b \pi(b)\,(q(a) - q(b))`, which avoids cancellation
    when the policy is nearly deterministic. The time is quadratic in the number of actions; if
    there are more than 4000, sorting gives the same sums without all differences.
    """
    if pi.shape[-1] > _MOST_COMPARED:
        return _advantage_by_sorting(pi, q)
    n_actions, size = pi.shape[-1], max(pi.size, q.size, 1)
    block = max(1, _BLOCK // size)  # the differences of all actions at once are quadratic in memory
    parts = [
        np.add.reduce(
            pi[..., np.newaxis, :]
            * (q[..., first : first + block, np.newaxis] - q[..., np.newaxis, :]),
            axis=-1,
        )
        for first in range(0, n_actions, block)
    ]
    return np.asarray(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1))


def _advantage_by_sorting(pi: Floats, q: Floats) -> Floats:
    r"""Return the advantages as differences of two sums of non-negative terms.

    The sum of :math:`\pi(b)\,(q(a) - q(b))` over the actions b with smaller values grows, from one
    value to the next larger one, by the probability of all smaller values times the gap. The sum
    over the larger values is computed from the largest one in the same way.
    """
    pi, q = np.broadcast_arrays(pi, q)
    order = q.argsort(axis=-1)
    shares = np.take_along_axis(pi, order, axis=-1)
    gaps = np.diff(np.take_along_axis(q, order, axis=-1), axis=-1)
    result = np.zeros(q.shape)
    result[..., 1:] = (shares[..., :-1].cumsum(axis=-1) * gaps).cumsum(axis=-1)
    larger = shares[..., :0:-1].cumsum(axis=-1) * gaps[..., ::-1]
    result[..., :-1] -= larger.cumsum(axis=-1)[..., ::-1]
    advantages = np.empty(q.shape)
    np.put_along_axis(advantages, order, result, axis=-1)
    return advantages


def below_average(theta: Floats, q: Floats) -> Mask:
    r"""Return a boolean array that marks the actions of a softmax policy with negative advantage.

    With b the most probable action, :math:`\mathrm{adv}(a) < 0` if :math:`q(a) - q(b)` is less than
    :math:`\sum_c \pi(c)\,(q(c) - q(b))`. The difference :math:`q(a) - v` would be rounded to 0
    where all other actions are improbable.
    """
    largest = theta.argmax(axis=-1)[..., np.newaxis]
    gaps = q - np.take_along_axis(q, largest, axis=-1)
    mean_gap = np.add.reduce(unchecked_softmax(theta) * gaps, axis=-1, keepdims=True)
    # If q(a) = q(b), only the sign of the sum matters. It is the same if all terms are multiplied
    # by one number, which is chosen such that they do not all underflow.
    logits = np.where(gaps == 0.0, -np.inf, theta)
    top = np.where(gaps.any(axis=-1, keepdims=True), logits.max(axis=-1, keepdims=True), 0.0)
    sign = np.add.reduce(np.exp(logits - top) * gaps, axis=-1, keepdims=True)
    return np.asarray(np.where(gaps == 0.0, sign > 0.0, gaps < mean_gap))


def greedy_mask(q: ArrayLike, ties: Ties = "first", seed: Seed = None) -> Mask:
    r"""Return a boolean array that marks the greedy action :math:`\arg\max_a q(a)` of each row.

    If several actions have the largest value, `ties` decides: ``"first"`` marks the first,
    ``"random"`` draws one uniformly, ``"leave"`` marks none. `seed` is None, an integer or a numpy
    Generator. Raises a `ValueError` if `q` is not an array of finite numbers or `ties` is unknown.
    """
    if ties not in get_args(Ties):
        raise ValueError(f"ties: expected one of {get_args(Ties)}, got {ties!r}.")
    return unchecked_greedy_mask(as_rows("q", q), ties, as_generator(seed))


def unchecked_greedy_mask(q: Floats, ties: Ties, rng: np.random.Generator) -> Mask:
    """Return the `greedy_mask` of finite rows."""
    if ties == "first":
        return np.asarray(np.arange(q.shape[-1]) == q.argmax(axis=-1)[..., np.newaxis])
    best = q == q.max(axis=-1, keepdims=True)
    if ties == "leave":
        return np.asarray(best & (best.sum(axis=-1, keepdims=True) == 1))
    chosen = np.argmax(np.where(best, rng.random(q.shape), -1.0), axis=-1)
    return np.asarray(np.arange(q.shape[-1]) == chosen[..., np.newaxis])


# Checks of arguments


def as_rows(name: str, value: ArrayLike) -> Floats:
    """Return an argument as finite floats of shape (..., n_actions), or raise a `ValueError`."""
    array = as_float_array(name, value)
    if array.ndim == 0 or array.shape[-1] == 0:
        got = f"the single number {array}" if array.ndim == 0 else f"shape {array.shape}"
        raise ValueError(f"{name}: expected shape (..., n_actions), got {got}.")
    return array


def as_weights(name: str, value: ArrayLike, theta: Floats, q: Floats) -> Floats:
    r"""Return an argument as an array of weights :math:`w = \eta\,d(s) \ge 0` for the rows.

    Raises a `ValueError` if a weight is negative or not finite, if `theta` and `q` have different
    numbers of actions, or if leading axes do not broadcast.
    """
    array = as_float_array(name, value)
    if q.shape[-1] != theta.shape[-1]:
        raise ValueError(
            f"q: expected {theta.shape[-1]} actions on the last axis as theta has, "
            f"got shape {q.shape}."
        )
    if (array < 0).any():
        row = first_index(array < 0)
        raise ValueError(f"{name}: expected eta * d(s) >= 0, got {array[row]} at index {row}.")
    if theta.shape[:-1] == q.shape[:-1] == array.shape:
        return array
    try:
        np.broadcast_shapes(theta.shape[:-1], q.shape[:-1], array.shape)
    except ValueError:
        raise ValueError(
            f"theta, q and {name} do not broadcast: leading shapes {theta.shape[:-1]}, "
            f"{q.shape[:-1]} and {array.shape}."
        ) from None
    return array


def require_escort(theta: Floats) -> None:
    """Raise a `ValueError` if a row is zero, because its escort policy is undefined."""
    dead = ~np.asarray(theta.any(axis=-1))
    if dead.any():
        raise ValueError(
            "theta: the escort policy is undefined where every parameter is zero, as at row "
            f"{first_index(dead)}."
        )
