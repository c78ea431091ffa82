r"""Parametrizations: how policies come from parameters, and what updates have in common.

Arrays have shape ``(..., n_actions)``, and all leading axes broadcast. Functions check
their arguments; those called ``unchecked_...`` are what the updates call on checked arrays.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import Floats, first_index, number, numbers

__all__ = [
    "Ties",
    "advantage",
    "escort",
    "greedy_mask",
    "project_simplex",
    "require_escort",
    "rows",
    "scaled_escort",
    "softmax",
    "unchecked_greedy_mask",
    "unchecked_projection",
    "unchecked_softmax",
    "weights",
]

Ties = Literal["first", "random", "leave"]
Mask = NDArray[np.bool_]


def softmax(theta: ArrayLike) -> Floats:
    r"""Return :math:`\pi(a) = e^{\theta_a} / \sum_{a'} e^{\theta_{a'}}` (paper, eq. 4).

    Parameters
    ----------
    theta : array_like, shape (..., n_actions)
        Parameters; shifted by their maximum, so that any finite value is safe.

    Returns
    -------
    ndarray, shape (..., n_actions)
        The policy, summing to one along the last axis; what underflows is zero.

    Raises
    ------
    ValueError
        If `theta` is not an array of finite numbers.
    """
    with np.errstate(over="ignore"):
        return unchecked_softmax(rows("theta", theta))


def unchecked_softmax(theta: Floats) -> Floats:
    """Return the softmax of finite rows.

    A difference beyond 1.8e308 overflows and has exponential zero, rightly: who calls ignores it.

    Parameters
    ----------
    theta : ndarray, shape (..., n_actions)
        Finite parameters.

    Returns
    -------
    ndarray, shape (..., n_actions)
        The policy.
    """
    weights = np.exp(theta - np.maximum.reduce(theta, axis=-1, keepdims=True))
    return np.asarray(weights / np.add.reduce(weights, axis=-1, keepdims=True))


def escort(theta: ArrayLike, p: float = 2.0) -> Floats:
    r"""Return :math:`\pi(a) = |\theta_a|^p / \|\theta\|_p^p` (paper, section 2.1).

    Parameters
    ----------
    theta : array_like, shape (..., n_actions)
        Parameters, not all zero in any row; scaled by their largest modulus before the power is
        taken, so that it neither overflows nor makes every term underflow.
    p : float
        The exponent of the escort transform, at least 1.

    Returns
    -------
    ndarray, shape (..., n_actions)
        The policy: non-negative, summing to one along the last axis.

    Raises
    ------
    ValueError
        If `theta` is not an array of finite numbers, a row is zero, or p is below 1.
    """
    theta = rows("theta", theta)
    require_escort(theta)
    return scaled_escort(theta, number("p", p, low=1.0))[0]


def scaled_escort(theta: Floats, p: float) -> tuple[Floats, Floats, Floats]:
    r"""Return the escort transform of finite rows that are not zero, and the parts of their norm.

    Parameters
    ----------
    theta : ndarray, shape (..., n_actions)
        Finite parameters, not all zero in any row.
    p : float
        The exponent, at least 1.

    Returns
    -------
    policy : ndarray, shape (..., n_actions)
        The policy.
    scale, total : ndarray, shape (..., 1)
        The largest modulus m of each row, and the sum of :math:`(|\theta_a|/m)^p`. The p-norm is m
        times the p-th root of the sum, which may leave the range of floats.
    """
    modulus = np.abs(theta)
    scale = np.maximum.reduce(modulus, axis=-1, keepdims=True)
    powers = (modulus / scale) ** p
    total = np.add.reduce(powers, axis=-1, keepdims=True)
    return np.asarray(powers / total), scale, total


def project_simplex(x: ArrayLike) -> Floats:
    r"""Return the Euclidean projection of each row of `x` on the probability simplex.

    The projection is :math:`\max(0, x_a - \lambda)` with the one :math:`\lambda` that makes the
    row sum to one. With the entries sorted in decreasing order :math:`u_1 \ge u_2 \ge \dots`, it is
    :math:`\lambda = (u_1 + \dots + u_k - 1)/k` for the largest :math:`k` such that
    :math:`u_k > \lambda`.

    Parameters
    ----------
    x : array_like, shape (..., n_actions)
        Finite points.

    Returns
    -------
    ndarray, shape (..., n_actions)
        The projections: non-negative, summing to one along the last axis.

    Raises
    ------
    ValueError
        If `x` is not an array of finite numbers.
    """
    with np.errstate(over="ignore"):
        return unchecked_projection(rows("x", x))


def unchecked_projection(points: Floats) -> Floats:
    """Return the projection of rows that are finite, or minus infinity in some entries.

    Parameters
    ----------
    points : ndarray, shape (..., n_actions)
        The rows; that a difference of theirs overflows is for the caller to ignore.

    Returns
    -------
    ndarray, shape (..., n_actions)
        The projections.
    """
    # A common shift of a row does not change its projection; without it, large entries would
    # swallow the 1 in the sum below. With the largest entry at zero the threshold is at least -1:
    # what is below -1 is not kept, wherever it is, and must not overflow the sum.
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


def advantage(pi: Floats, q: Floats) -> Floats:
    r"""Return the advantages :math:`\mathrm{adv}(a) = q(a) - \sum_b \pi(b) q(b)`.

    They are computed as :math:`\sum_b \pi(b)\,(q(a) - q(b))`, which keeps its digits where the
    policy is nearly deterministic and the two terms of the definition nearly equal.

    Parameters
    ----------
    pi : ndarray, shape (..., n_actions)
        Policies.
    q : ndarray, shape (..., n_actions)
        Values; the leading axes broadcast with those of `pi`.

    Returns
    -------
    ndarray, shape (..., n_actions)
        The advantages, whose mean under `pi` is zero.
    """
    gaps = q[..., :, np.newaxis] - q[..., np.newaxis, :]
    return np.asarray(np.add.reduce(pi[..., np.newaxis, :] * gaps, axis=-1))


def greedy_mask(q: ArrayLike, ties: Ties = "first", rng: np.random.Generator | None = None) -> Mask:
    r"""Mark the greedy action :math:`a_q = \arg\max_a q(a)` of each row.

    Parameters
    ----------
    q : array_like, shape (..., n_actions)
        Values.
    ties : {"first", "random", "leave"}
        Which action is greedy where several have the largest value: the first one, one drawn
        uniformly with `rng`, or none (the row is left unmarked).
    rng : numpy.random.Generator, optional
        Needed when `ties` is ``"random"``.

    Returns
    -------
    ndarray of bool, shape (..., n_actions)
        At most one mark a row.

    Raises
    ------
    ValueError
        If `q` is not an array of finite numbers, if `ties` is unknown, or is ``"random"`` and `rng`
        is missing.
    """
    if ties not in get_args(Ties):
        raise ValueError(f"ties: expected one of {get_args(Ties)}, got {ties!r}.")
    return unchecked_greedy_mask(rows("q", q), ties, rng)


def unchecked_greedy_mask(q: Floats, ties: Ties, rng: np.random.Generator | None) -> Mask:
    """Mark the greedy action of finite rows.

    Parameters
    ----------
    q : ndarray, shape (..., n_actions)
        Values.
    ties, rng
        See `greedy_mask`.

    Returns
    -------
    ndarray of bool, shape (..., n_actions)
        At most one mark a row.

    Raises
    ------
    ValueError
        If a greedy action is to be drawn and `rng` is missing.
    """
    if ties == "first":
        return np.asarray(np.arange(q.shape[-1]) == q.argmax(axis=-1)[..., np.newaxis])
    best = q == q.max(axis=-1, keepdims=True)
    if ties == "leave":
        return np.asarray(best & (best.sum(axis=-1, keepdims=True) == 1))
    if rng is None:
        raise ValueError("rng: ties='random' draws the greedy action; give a numpy Generator.")
    chosen = np.argmax(np.where(best, rng.random(q.shape), -1.0), axis=-1)
    return np.asarray(np.arange(q.shape[-1]) == chosen[..., np.newaxis])


# Checks of arguments


def rows(name: str, value: ArrayLike) -> Floats:
    """Return an argument as an array of finite floats with an axis of actions.

    Parameters
    ----------
    name : str
        What the argument is called, for the sentence.
    value : array_like, shape (..., n_actions)
        What was given.

    Returns
    -------
    ndarray, shape (..., n_actions)
        The numbers, at least one a row.

    Raises
    ------
    ValueError
        If it is a single number, has an empty last axis, or holds anything but finite real numbers.
    """
    array = numbers(name, value)
    if array.ndim == 0 or array.shape[-1] == 0:
        got = f"the single number {array}" if array.ndim == 0 else f"shape {array.shape}"
        raise ValueError(f"{name}: expected shape (..., n_actions), got {got}.")
    return array


def weights(name: str, value: ArrayLike, theta: Floats, q: Floats) -> Floats:
    r"""Return the weights of a step: at least 0, and one a row.

    Parameters
    ----------
    name : str
        What the argument is called, for the sentence.
    value : array_like, shape (...)
        The weights :math:`w = \eta\,d(s)`.
    theta : ndarray, shape (..., n_actions)
        The parameters that are to be moved.
    q : ndarray, shape (..., n_actions)
        The values.

    Returns
    -------
    ndarray, shape (...)
        The weights; they broadcast with the leading axes of `theta` and `q`.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, if `theta` and `q` differ in their numbers of
        actions, or if the leading axes do not broadcast.
    """
    array = numbers(name, value)
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
    """Refuse escort parameters of which a whole row is zero.

    Parameters
    ----------
    theta : ndarray, shape (..., n_actions)
        Escort parameters.

    Raises
    ------
    ValueError
        If every parameter of a row is zero.
    """
    dead = ~np.asarray(theta.any(axis=-1))
    if dead.any():
        raise ValueError(
            "theta: the escort policy is undefined where every parameter is zero, as at row "
            f"{first_index(dead)}."
        )
