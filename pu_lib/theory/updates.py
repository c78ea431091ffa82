r"""The five updates: their gradients, their limits and their paths (paper, section 2, app. A.1).

One state, parameters :math:`\theta`, policy :math:`\pi`, values :math:`q`, weight
:math:`w = \eta\,d(s)`, :math:`v = \sum_a \pi(a) q(a)`, :math:`\mathrm{adv} = q - v`.

**Gradients.** With scores :math:`f_\theta(s,\cdot)` that depend on parameters in any differentiable
way, the softmax policy has :math:`\nabla\pi(a) = \pi(a)\,[\nabla f(a) - \sum_b \pi(b)\nabla f(b)]`
and the escort policy

.. math::
    \nabla\pi(a) = \tfrac{p}{\|f\|_p}\,\pi(a)^{1-1/p}\,\big[\sigma_a\nabla f(a)
    - \pi(a)^{1/p}\textstyle\sum_b \pi(b)^{1-1/p}\,\sigma_b\nabla f(b)\big],
    \qquad \sigma_a = \mathrm{sign} f(a).

With :math:`f = \theta` the step :math:`\sum_a q(a)\nabla\pi(a)` is :math:`\pi(b)\,\mathrm{adv}(b)`
for softmax, and :math:`\sigma_b\frac{p}{\|\theta\|_p}\pi(b)^{1-1/p}\mathrm{adv}(b)` for escort.
The checks differentiate the policies by a complex step, :math:`f'(x) = \Im f(x + ih)/h + O(h^2)`:
no difference is taken, so that :math:`h = 10^{-30}` leaves rounding as the only error.

**What a step conserves.** :math:`\sum_a\theta_a` under `pg-sm`, `ce`, `mce` (and `di`, where it
is one); under `pg-es` the step is orthogonal to :math:`\theta`, since
:math:`\sum_a\theta_a\sigma_a\pi(a)^{1-1/p}\mathrm{adv}(a) \propto \sum_a\pi(a)\mathrm{adv}(a) = 0`,
so that :math:`\|\theta\|_2` never decreases.

**Huge weights.** `ce` and `mce` separate the parameter of the greedy action from the others by
:math:`w(1-\pi(a_q)+\pi(b))` and :math:`w\frac{|A|}{|A|-1}(1-\pi(a_q))`, so their policy tends to
the greedy one exponentially in :math:`w`. `di` *is* greedy from the finite weight
:math:`\max_b (1 - \pi(a_q) + \pi(b))/(q(a_q) - q(b))` on. The policy gradients have other limits:
`pg-sm` tends to the action with the largest :math:`\pi(a)\,\mathrm{adv}(a)`, and `pg-es` to
:math:`\pi' \propto \pi^{p-1}|\mathrm{adv}|^p`, which is not even deterministic.

**Paths.** Under `mce` all odds between actions other than :math:`a_q` are conserved: the policy
moves on the straight line to the greedy vertex, whatever the weights. Under `di` with small weights
it moves in the straight direction :math:`q - \bar q` while it is inside the simplex. Under `pg-es`
with :math:`p = 2` and small weights it follows the replicator equation
:math:`\dot\pi = \frac{4}{\|\theta\|^2}\pi\,\mathrm{adv}`, that is, the curve
:math:`\pi \propto \pi_0 e^{\tau q}` of the natural policy gradient. `ce` pushes each action other
than :math:`a_q` down in proportion to its probability, so that it evens them out on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.updates import Update, advantage, greedy_mask

__all__ = [
    "complex_step",
    "direct_greedy_weight",
    "escort_gradient",
    "escort_of",
    "escort_step",
    "follow",
    "large_weight_limit",
    "middle_line",
    "softmax_gradient",
    "softmax_of",
    "softmax_step",
]

Floats = NDArray[np.float64]
Policy = Callable[[NDArray[Any]], NDArray[Any]]


# Policies as the paper prints them, for real or complex scores (leading axes broadcast)


def softmax_of(f: NDArray[Any]) -> NDArray[Any]:
    """Return the softmax policy of the scores `f` (paper, eq. 4)."""
    weights = np.exp(f)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def escort_of(f: NDArray[Any], p: float = 2.0) -> NDArray[Any]:
    """Return the escort policy of the scores `f`, none of them zero (paper, section 2.1)."""
    weights = (np.sign(np.real(f)) * f) ** p
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def complex_step(function: Policy, x: Floats, h: float = 1e-30) -> Floats:
    """Return the Jacobian of an analytic `function` at the point `x`, to rounding error.

    Parameters
    ----------
    function : callable
        Maps complex arrays ``(n, k)`` to ``(n, m)`` row by row.
    x : ndarray, shape (k,)
        Where to differentiate.
    h : float
        The imaginary step.

    Returns
    -------
    ndarray, shape (k, m)
        Row ``i`` is the derivative with respect to ``x[i]``.
    """
    return np.asarray(np.imag(function(x + 1j * h * np.eye(len(x)))) / h)


# The formulas of the paper


def softmax_gradient(f: Floats, grad_f: Floats) -> Floats:
    r"""Return :math:`\nabla\pi`, shape (k, A), from :math:`\nabla f` of the same shape (eq. 5)."""
    pi = softmax_of(f)
    return np.asarray(pi * (grad_f - (grad_f * pi).sum(axis=-1, keepdims=True)))


def escort_gradient(f: Floats, grad_f: Floats, p: float, signed: bool = True) -> Floats:
    r"""Return :math:`\nabla\pi` of the escort policy (eq. 7 with its factor, app. A.1.2).

    Without `signed` the formula is the one printed, which supposes :math:`f \ge 0`.
    """
    pi = escort_of(f, p)
    grad = np.sign(f) * grad_f if signed else grad_f
    mean = (grad * pi ** (1 - 1 / p)).sum(axis=-1, keepdims=True)
    norm = np.sum(np.abs(f) ** p) ** (1 / p)
    return np.asarray(p / norm * pi ** (1 - 1 / p) * (grad - pi ** (1 / p) * mean))


def softmax_step(theta: Floats, q: Floats) -> Floats:
    r"""Return the last line of appendix A.1.1, :math:`\pi(a)\,\mathrm{adv}(a)`."""
    pi = softmax_of(theta)
    return np.asarray(pi * advantage(pi, q))


def middle_line(theta: Floats, q: Floats) -> Floats:
    r"""Return the line printed before it, :math:`\pi(a) q(a) - \sum_b \pi(b) q(b)`."""
    pi = softmax_of(theta)
    return np.asarray(pi * q - np.sum(pi * q, axis=-1, keepdims=True))


def escort_step(theta: Floats, q: Floats, p: float, signed: bool = True) -> Floats:
    r"""Return the last line of appendix A.1.2, with :math:`\mathrm{sign}(\theta_a)` if `signed`."""
    pi = escort_of(theta, p)
    norm = np.sum(np.abs(theta) ** p) ** (1 / p)
    step = p / norm * pi ** (1 - 1 / p) * advantage(pi, q)
    return np.asarray(np.sign(theta) * step if signed else step)


# A small network: scores that are not the parameters themselves


class Network:
    r"""Scores :math:`f_\theta = B\tanh(C\theta)`: one differentiable parametrization."""

    def __init__(self, rng: np.random.Generator, n_actions: int, n_parameters: int) -> None:
        self.output = rng.normal(size=(n_actions, 6))
        self.hidden = rng.normal(size=(6, n_parameters))

    def scores(self, theta: NDArray[Any]) -> NDArray[Any]:
        """Return the scores, shape (..., A), of parameters (..., k)."""
        return np.asarray(np.tanh(theta @ self.hidden.T) @ self.output.T)

    def then(self, policy: Policy) -> Policy:
        """Return the policy of the scores as a function of the parameters."""
        return lambda theta: policy(self.scores(theta))

    def gradient(self, theta: Floats) -> Floats:
        """Return the gradient of every score, shape (k, A)."""
        slope = 1 - np.tanh(self.hidden @ theta) ** 2
        return np.asarray((self.output * slope @ self.hidden).T)


# Conserved quantities and limits


def direct_greedy_weight(pi: Floats, q: Floats) -> Floats:
    r"""Return the weight from which one `di` step is greedy, for a unique greedy action.

    It is :math:`\max_{b \ne a_q} (1 - \pi(a_q) + \pi(b)) / (q(a_q) - q(b))`.
    """
    greedy = greedy_mask(q)
    best = np.where(greedy, pi, 0.0).sum(axis=-1, keepdims=True)
    gap = np.where(greedy, np.inf, q.max(axis=-1, keepdims=True) - q)
    return np.asarray(np.max((1 - best + pi) / gap, axis=-1))


def large_weight_limit(name: str, pi: Floats, q: Floats, p: float = 2.0) -> Floats:
    r"""Return the policy to which one step of the update called `name` tends as :math:`w\to\infty`.

    Parameters
    ----------
    name : str
        The update.
    pi, q : ndarray, shape (..., n_actions)
        Policy with full support, and values.
    p : float
        The escort exponent.

    Returns
    -------
    ndarray, shape (..., n_actions)
        The greedy policy for `di`, `ce` and `mce`; the action of largest
        :math:`\pi\,\mathrm{adv}` for `pg-sm`; for `pg-es` the policy
        :math:`\propto \pi^{p-1}|\mathrm{adv}|^p`.
    """
    if name == "pg-es":
        limit = pi ** (p - 1) * np.abs(advantage(pi, q)) ** p
        return np.asarray(limit / limit.sum(axis=-1, keepdims=True))
    score = pi * advantage(pi, q) if name == "pg-sm" else q
    return np.asarray(greedy_mask(score), dtype=np.float64)


# Paths


def follow(update: Update, theta: Floats, q: Floats, weight: float, n_steps: int) -> Floats:
    """Return the policies along updates with fixed values, shape (n_steps + 1, ..., A)."""
    policies = [update.policy(theta)]
    for _ in range(n_steps):
        theta = update.step(theta, q, weight)
        policies.append(update.policy(theta))
    return np.asarray(policies)
