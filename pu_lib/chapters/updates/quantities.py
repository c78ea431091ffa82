r"""The five updates: their gradients, their limits and their paths (paper, section 2, app. A.1).

There is one state with parameters :math:`\theta`, policy :math:`\pi`, values :math:`q` and weight
:math:`w = \eta\,d(s)`. We write :math:`v = \sum_a \pi(a) q(a)` and :math:`\mathrm{adv} = q - v`.

**Gradients.** With scores :math:`f_\theta(s,\cdot)` that depend on parameters in any differentiable
way, the softmax policy has :math:`\nabla\pi(a) = \pi(a)\,[\nabla f(a) - \sum_b \pi(b)\nabla f(b)]`
and the escort policy

.. math::
    \nabla\pi(a) = \tfrac{p}{\|f\|_p}\,\pi(a)^{1-1/p}\,\big[\sigma_a\nabla f(a)
    - \pi(a)^{1/p}\textstyle\sum_b \pi(b)^{1-1/p}\,\sigma_b\nabla f(b)\big],
    \qquad \sigma_a = \mathrm{sign} f(a).

If :math:`f = \theta`, the step :math:`\sum_a q(a)\nabla\pi(a)` is :math:`\pi(b)\,\mathrm{adv}(b)`
for softmax, and :math:`\sigma_b\frac{p}{\|\theta\|_p}\pi(b)^{1-1/p}\mathrm{adv}(b)` for escort.
The checks differentiate the policies by a complex step, :math:`f'(x) = \Im f(x + ih)/h + O(h^2)`.
This formula has no subtraction, so that rounding is the only error at :math:`h = 10^{-30}`.

**Conserved quantities.** A step conserves :math:`\sum_a\theta_a` under `pg-sm`, `ce`, `mce` (and
`di`, for which it is 1); under `pg-es` the step is orthogonal to :math:`\theta`, since
:math:`\sum_a\theta_a\sigma_a\pi(a)^{1-1/p}\mathrm{adv}(a) \propto \sum_a\pi(a)\mathrm{adv}(a) = 0`,
so that :math:`\|\theta\|_2` never decreases.

**Large weights.** `ce` and `mce` increase the difference between the parameter of the greedy action
and any other parameter by :math:`w(1-\pi(a_q)+\pi(b))` and
:math:`w\frac{|A|}{|A|-1}(1-\pi(a_q))`, so that the policy converges to the greedy policy
exponentially in :math:`w`. `di` returns the greedy policy if the weight is at least
:math:`\max_b (1 - \pi(a_q) + \pi(b))/(q(a_q) - q(b))`. The policy gradients have other limits:
`pg-sm` tends to the action with the largest :math:`\pi(a)\,\mathrm{adv}(a)`, and `pg-es` to
:math:`\pi' \propto \pi^{p-1}|\mathrm{adv}|^p`, which is not deterministic.

**Paths.** `mce` conserves all odds between actions other than :math:`a_q`, so that the policy
follows the straight line to the greedy vertex for all weights. Under `di` with small weights the
policy changes in the direction :math:`q - \bar q` while it is inside the simplex. Under `pg-es`
with :math:`p = 2` and small weights the policy follows the replicator equation
:math:`\dot\pi = \frac{4}{\|\theta\|^2}\pi\,\mathrm{adv}`, that is, the curve
:math:`\pi \propto \pi_0 e^{\tau q}` of the natural policy gradient. `ce` reduces the parameter of
each action other than :math:`a_q` in proportion to the probability of that action, which makes
these probabilities more equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.claims.formulas import exp, formula
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import (
    EscortPolicyGradient,
    ModifiedCrossEntropy,
    Update,
    advantage,
    as_update,
    greedy_mask,
    softmax,
)

Policy = Callable[[NDArray[Any]], NDArray[Any]]


# The paper's policies, for real or complex scores (leading axes broadcast)


def softmax_of(f: NDArray[Any]) -> NDArray[Any]:
    """Return the softmax policy of the scores `f` (paper, eq. 4)."""
    weights = np.exp(f)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def escort_of(f: NDArray[Any], p: float = 2.0) -> NDArray[Any]:
    """Return the escort policy of the nonzero scores `f` (paper, section 2.1)."""
    weights = (np.sign(np.real(f)) * f) ** p
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def complex_step(function: Policy, x: Floats, h: float = 1e-30) -> Floats:
    """Return the Jacobian of an analytic function at `x`.

    Row i is the derivative with respect to ``x[i]``. The function maps each row of a complex (n, k)
    array to a row of an (n, m) array.
    """
    return np.asarray(np.imag(function(x + 1j * h * np.eye(len(x)))) / h)


# The formulas of the paper


def softmax_gradient(f: Floats, grad_f: Floats) -> Floats:
    r"""Return the gradient :math:`\nabla\pi` of the softmax policy (eq. 5).

    The gradient is an (n_parameters, n_actions) array.
    """
    pi = softmax_of(f)
    return np.asarray(pi * (grad_f - (grad_f * pi).sum(axis=-1, keepdims=True)))


def escort_gradient(f: Floats, grad_f: Floats, p: float, signed: bool = True) -> Floats:
    r"""Return the gradient :math:`\nabla\pi` of the escort policy (eq. 7 with factor, app. A.1.2).

    The printed formula is for :math:`f \ge 0`; it corresponds to ``signed=False``.
    """
    pi = escort_of(f, p)
    grad = np.sign(f) * grad_f if signed else grad_f
    mean = (grad * pi ** (1 - 1 / p)).sum(axis=-1, keepdims=True)
    norm = np.sum(np.abs(f) ** p) ** (1 / p)
    return np.asarray(p / norm * pi ** (1 - 1 / p) * (grad - pi ** (1 / p) * mean))


def softmax_step(theta: Floats, q: Floats) -> Floats:
    r"""Return the softmax step :math:`\pi(a)\,\mathrm{adv}(a)`, the last line of appendix A.1.1."""
    pi = softmax_of(theta)
    return np.asarray(pi * advantage(pi, q))


def middle_line(theta: Floats, q: Floats) -> Floats:
    r"""Return :math:`\pi(a) q(a) - \sum_b \pi(b) q(b)`, the second-to-last line of appendix A.1.1.

    This expression is not equal to the softmax step.
    """
    pi = softmax_of(theta)
    return np.asarray(pi * q - np.sum(pi * q, axis=-1, keepdims=True))


def escort_step(theta: Floats, q: Floats, p: float, signed: bool = True) -> Floats:
    r"""Return the escort step, the last line of appendix A.1.2.

    The step has the factor :math:`\mathrm{sign}(\theta_a)` if `signed`. The printed line is for
    positive parameters and does not have this factor.
    """
    pi = escort_of(theta, p)
    norm = np.sum(np.abs(theta) ** p) ** (1 / p)
    step = p / norm * pi ** (1 - 1 / p) * advantage(pi, q)
    return np.asarray(np.sign(theta) * step if signed else step)


# A small network: scores that are not the parameters themselves


class Network:
    r"""A network with scores :math:`f_\theta = B\tanh(C\theta)` and standard normal B and C."""

    def __init__(self, rng: np.random.Generator, n_actions: int, n_parameters: int) -> None:
        self.output = rng.normal(size=(n_actions, 6))
        self.hidden = rng.normal(size=(6, n_parameters))

    def scores(self, theta: NDArray[Any]) -> NDArray[Any]:
        """Return the (..., n_actions) scores for an array of (..., n_parameters) parameters."""
        return np.asarray(np.tanh(theta @ self.hidden.T) @ self.output.T)

    def then(self, policy: Policy) -> Policy:
        """Return the function that maps parameters to the policy of the scores."""
        return lambda theta: policy(self.scores(theta))

    def gradient(self, theta: Floats) -> Floats:
        """Return the gradients of all scores as an (n_parameters, n_actions) array."""
        slope = 1 - np.tanh(self.hidden @ theta) ** 2
        return np.asarray((self.output * slope @ self.hidden).T)


# MCE without the step of the other parameters


class GreedyAlone(ModifiedCrossEntropy):
    r"""A variant of MCE that adds :math:`w(1-\pi(a_q))` to :math:`\theta_{a_q}` only (sec. 2.4)."""

    name = "mce, greedy action alone"

    def advance(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        """Return the parameters after one step."""
        mask = greedy_mask(q, self.ties, rng)
        missing = np.sum(np.where(mask, 0.0, softmax(theta)), axis=-1, keepdims=True)
        return np.asarray(theta + weight * np.where(mask, missing, 0.0))


# Huge weights


def direct_greedy_weight(pi: Floats, q: Floats) -> Floats:
    """Return the least weight at which a `di` step gives the greedy policy.

    The greedy action must be unique.
    """
    greedy = greedy_mask(q)
    best = np.where(greedy, pi, 0.0).sum(axis=-1, keepdims=True)
    gap = np.where(greedy, np.inf, q.max(axis=-1, keepdims=True) - q)
    return np.asarray(np.max((1 - best + pi) / gap, axis=-1))


def cross_entropy_leftover(update: str | Update, pi: Floats, q: Floats, weight: Floats) -> Floats:
    r"""Return upper bounds on the probabilities of the actions after a step of `ce` or `mce`.

    The bound is :math:`\frac{\pi(b)}{\pi(a_q)}e^{-x}` if the step changes the difference between
    the parameters of :math:`a_q` and b by :math:`x`. The bound is infinite at the greedy
    action.
    """
    name = as_update(update).name
    if name not in ("ce", "mce"):
        raise ValueError(f"update: expected ce or mce, got {name!r}.")
    greedy, n_actions = greedy_mask(q), pi.shape[-1]
    best = np.where(greedy, pi, 0.0).sum(axis=-1, keepdims=True)
    rate = 1 - best + pi if name == "ce" else n_actions / (n_actions - 1) * (1 - best)
    bound = pi / best * np.exp(-np.asarray(weight)[..., np.newaxis] * rate)
    return np.asarray(np.where(greedy, np.inf, bound))


def large_weight_limit(update: str | Update, pi: Floats, q: Floats) -> Floats:
    r"""Return the limit of the policy after one step of an update as :math:`w\to\infty`."""
    chosen = as_update(update)
    if isinstance(chosen, EscortPolicyGradient):
        limit = pi ** (chosen.p - 1) * np.abs(advantage(pi, q)) ** chosen.p
        return np.asarray(limit / limit.sum(axis=-1, keepdims=True))
    if chosen.name == "pg-sm":
        return np.asarray(greedy_mask(pi * advantage(pi, q)), dtype=np.float64)
    if chosen.name in ("di", "ce", "mce"):
        return np.asarray(greedy_mask(q), dtype=np.float64)
    raise ValueError(f"update: no limit is known for {chosen.name!r}.")


# The objective, and the time of halvings


def truncated_objective(
    mdp: FiniteMDP, pi: Floats, n_steps: int, growth: float = 1.0
) -> tuple[Floats, Floats]:
    r"""Return the sums of the first 0 to `n_steps` rewards (eq. 1) and bounds on the remainders.

    After T rewards the bound is :math:`\gamma^T\max|r|/(1-\gamma)`. The reward at time t is
    multiplied by `growth` to the power t; `growth` is 1 in the paper.
    """
    chain = np.einsum("sa,sab->sb", pi, mdp.transitions)
    rewards = np.sum(pi * mdp.rewards, axis=1)
    state, terms = mdp.initial, [0.0]
    for t in range(n_steps):
        terms.append((growth * mdp.discount) ** t * float(state @ rewards))
        state = state @ chain
    largest = float(np.abs(mdp.rewards).max())
    bounds = mdp.discount ** np.arange(n_steps + 1.0) * largest / (1.0 - mdp.discount)
    return np.cumsum(terms), bounds


def halving_times(masses: Floats) -> Floats:
    """Return the number of steps that each halving of a decreasing mass takes.

    The logarithm of the mass is interpolated linearly between steps. Zeros, which are due to
    underflow, are left out.
    """
    levels = -np.log2(masses[masses > 0.0] / masses[0])
    return np.diff(np.interp(np.arange(np.floor(levels[-1]) + 1), levels, np.arange(len(levels))))


# MCE as a mixture with the greedy policy


@formula
def mixture_share(greedy: Any, exponent: Any) -> Any:
    """Return the share of the greedy policy in the mixture that a step of MCE makes.

    `greedy` is the probability of the greedy action before the step, and `exponent` is the rise
    of its log-odds in the step.
    """
    return greedy * (1 - exp(-exponent)) / (greedy + (1 - greedy) * exp(-exponent))
