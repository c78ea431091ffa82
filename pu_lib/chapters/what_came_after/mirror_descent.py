r"""Bounds on policy mirror descent published since 2022, and the finite convergence of `di`.

The step is :math:`\pi_{t+1}(\cdot|s)=\arg\max_p\{\eta_t\langle q_t(s,\cdot),p\rangle
-D(p,\pi_t(\cdot|s))\}`. If D is half the squared Euclidean distance, the step is `di`; if D is the
Kullback-Leibler divergence, the step is `npg`. In both cases every state has weight :math:`\eta_t`.
The bounds are from Xiao (2022, theorems 8 and 10), from Johnson, Pike-Burke and Rebeschini (2023)
as restated by Protopapas and Barakat (2024, theorem 4.1), and from Liu et al. (2025, theorems 21
and 22). Rewards are in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES, as_update


def _half_square(p: Floats, pi: Floats) -> Floats:
    return np.asarray(0.5 * np.sum((p - pi) ** 2, axis=-1))


def _relative_entropy(p: Floats, pi: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0.0, p * np.log(p / pi), 0.0)
    return np.asarray(np.sum(terms, axis=-1))


DIVERGENCES: dict[str, Callable[[Floats, Floats], Floats]] = {
    name: divergence
    for name, divergence in (("di", _half_square), ("npg", _relative_entropy))
    if name in UPDATES
}
"""The divergence D(p, pi) of each update that is policy mirror descent."""


def bounded_mdp(
    seed: int, n_states: int = 5, n_actions: int = 3, discount: float = 0.8
) -> FiniteMDP:
    """Return a random process with dense transitions and rewards in [0, 1].

    The initial distribution of states is uniform.
    """
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.full(n_states, 0.3), (n_states, n_actions))
    rewards = rng.random((n_states, n_actions))
    return FiniteMDP(transitions, rewards, np.full(n_states, 1.0 / n_states), discount)


def optimal_visits(mdp: FiniteMDP) -> Floats:
    """Return the normalised state occupancy of an optimal policy of a process without an end."""
    return (1.0 - mdp.discount) * mdp.evaluate(mdp.optimal().policy).occupancy


def mismatch(mdp: FiniteMDP) -> float:
    """Return the distribution mismatch coefficient of Xiao (2022, eq. 53).

    It is the largest ratio of the normalised optimal occupancy to the initial probability, divided
    by 1 - discount.
    """
    return float(np.max(optimal_visits(mdp) / mdp.initial) / (1.0 - mdp.discount))


def constant_bound(mdp: FiniteMDP, name: str, pi: Floats, eta: float, k: int) -> float:
    """Return the bound of Xiao (2022, theorem 8) on the performance gap after k steps of size eta.

    `name` is a key of `DIVERGENCES`; the initial policy `pi` must be positive everywhere.
    """
    start = float(optimal_visits(mdp) @ DIVERGENCES[name](mdp.optimal().policy, pi))
    horizon = 1.0 / (1.0 - mdp.discount)
    return (start * horizon / eta + horizon**2) / (k + 1)


def geometric_bound(mdp: FiniteMDP, name: str, pi: Floats, eta: float, k: int) -> float:
    """Return the bound of Xiao (2022, theorem 10) for the step sizes eta / discount**k."""
    start = float(optimal_visits(mdp) @ DIVERGENCES[name](mdp.optimal().policy, pi))
    gap = mdp.optimal().performance - mdp.performance(pi)
    return float((1.0 - 1.0 / mismatch(mdp)) ** k * (gap + start / (eta * mdp.discount)))


def adaptive_run(mdp: FiniteMDP, name: str, n_steps: int, first: float = 1.0) -> Floats:
    r"""Run policy mirror descent with the adaptive step sizes of Johnson et al. (2023).

    The step size is :math:`\eta_k=\max_sD(p_s,\pi_k(\cdot|s))/c_k` with the greedy policy p and
    :math:`c_k=\gamma^{2(k+1)}c_0`, as in Protopapas and Barakat (2024); `first` is :math:`c_0`.
    Return the largest distance of the values from the optimal values before each step and after the
    last step.
    """
    update = as_update(name)
    if not first * mdp.discount ** (2 * (n_steps + 1)) > 1e-300:
        raise ValueError(f"n_steps: the weights of {n_steps} steps leave the range of floats.")
    theta = update.initial(mdp.n_states, mdp.n_actions)
    gaps = []
    for k in range(n_steps + 1):
        pi = update.policy(theta)
        evaluation = mdp.evaluate(pi)
        gaps.append(float(np.max(mdp.optimal().v - evaluation.v)))
        greedy = np.eye(mdp.n_actions)[np.argmax(evaluation.q, axis=1)]
        distance = float(np.max(DIVERGENCES[name](greedy, pi)))
        eta = distance / (first * mdp.discount ** (2 * (k + 1)))
        theta = update.step(theta, evaluation.q, np.full(mdp.n_states, max(eta, 1e-300)))
    return np.array(gaps)


def adaptive_bound(gap: float, discount: float, k: int, first: float = 1.0) -> float:
    r"""Return :math:`\gamma^k(g+c_0/(1-\gamma)^2)`, the bound on the gap after k adaptive steps."""
    return discount**k * (gap + first / (1.0 - discount) ** 2)


# The projected gradient, in finitely many steps


def advantage_gap(mdp: FiniteMDP) -> float:
    """Return the smallest positive gap between an optimal value and an action value.

    The definition is from Liu et al. (2025, definition 1).
    """
    lacking = mdp.optimal().v[:, np.newaxis] - mdp.optimal().q
    return float(np.min(lacking[lacking > 1e-10]))


def steps_to_optimum(mdp: FiniteMDP, step_size: float, visits: bool, most: int = 200_000) -> int:
    """Return the number of steps of `di` until the policy is optimal, or `most` if it is never so.

    The weight of a state is `step_size`. If `visits` is true, the weight is `step_size` times the
    state's occupancy, as in the projected policy gradient. The optimal policy must be unique.
    """
    update = as_update("di")
    pi, best = update.initial(mdp.n_states, mdp.n_actions), mdp.optimal().policy
    for t in range(most):
        if np.max(np.abs(pi - best)) < 1e-12:
            return t
        evaluation = mdp.evaluate(pi)
        weight = step_size * (evaluation.occupancy if visits else np.ones(mdp.n_states))
        pi = update.step(pi, evaluation.q, weight)
    return most


def finite_bound(mdp: FiniteMDP, eta: float, visits: bool) -> float:
    """Return the bound of Liu et al. (2025, theorems 21 and 22) on `steps_to_optimum`.

    `eta` is the step size.
    """
    gap, horizon = advantage_gap(mdp), 1.0 / (1.0 - mdp.discount)
    if not visits:
        return float(2.0 / gap * (1.0 + 1.0 / (eta * gap)) * (horizon / eta + horizon**2) - 1.0)
    least = float(mdp.initial.min())
    ratio = float(np.max(optimal_visits(mdp) / mdp.initial))
    spread = 1.0 + (2.0 + 5.0 * mdp.n_actions) / (eta * least)
    first = 2.0 / gap * (1.0 + 1.0 / (eta * least * gap))
    return float(first * horizon**2 * ratio * spread / least)
