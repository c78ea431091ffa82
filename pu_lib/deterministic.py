"""Deterministic MDPs whose states may have different numbers of actions.

The cycles of cross-entropy, the certificates of the cycles and the searches for further cycles use
this module. `policy_values` and `action_values` work with floats, rationals and balls.
`run_process` and `largest_falls` are compiled and use floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.exact import solve
from pu_lib.updates import Update, as_update

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Number = Any
"""A float, a Fraction or an Arb ball."""


@dataclass(frozen=True)
class DeterministicMDP:
    """The arrays of a deterministic MDP or of a batch of deterministic MDPs.

    `rewards` and `successors` have shape (..., n_states, max n_actions), and the leading axes
    are the batch. The successor -1 ends the episode with value 0. `n_actions`, shape (n_states,),
    has the number of actions of each state; later columns are padding. `discount` is a float or has
    shape (...).
    """

    rewards: Floats
    successors: Ints
    n_actions: Ints
    discount: Any

    @property
    def is_action(self) -> NDArray[np.bool_]:
        """A boolean mask of actions, without padding, of shape (n_states, max n_actions)."""
        return np.arange(self.rewards.shape[-1]) < self.n_actions[:, np.newaxis]

    def __getitem__(self, rows: Any) -> DeterministicMDP:
        """Return the given rows of the batch."""
        discount = self.discount[rows] if np.ndim(self.discount) else self.discount
        return DeterministicMDP(self.rewards[rows], self.successors[rows], self.n_actions, discount)

    def values(self, theta: Floats) -> Floats:
        """Return the state values of softmax policies as an array of shape (..., n_states).

        `theta` has shape (..., n_states, max n_actions); padding columns are ignored.
        """
        scores = np.where(self.is_action, theta, -np.inf)
        pi = np.exp(scores - scores.max(axis=-1, keepdims=True))
        pi /= pi.sum(axis=-1, keepdims=True)
        states = np.arange(self.rewards.shape[-2])
        onto = self.successors[..., np.newaxis] == states
        flow = np.einsum("...sa,...sat->...st", pi, onto)
        matrix = np.eye(len(states)) - np.asarray(self.discount)[..., None, None] * flow
        reward = (pi * np.where(self.is_action, self.rewards, 0.0)).sum(axis=-1)
        return np.asarray(np.linalg.solve(matrix, reward[..., np.newaxis])[..., 0])

    def optimum(self, sweeps: int = 3000) -> Floats:
        """Compute the optimal values of shape (..., n_states) by value iteration.

        If the discount is at most 0.99, 3000 sweeps reduce the initial error by a factor of at
        least 1e13.
        """
        *batch, n_states, _ = self.rewards.shape
        # The last column is the end of the episode, the successor -1; its value stays 0.
        v = np.zeros((*batch, n_states + 1))
        first = np.arange(0, v.size, n_states + 1).reshape(*batch, 1, 1)
        # With actions on the first axis the maximum compares whole arrays, which is faster than
        # comparing within many short rows.
        places = np.moveaxis(first + self.successors % (n_states + 1), -1, 0)
        rewards = np.moveaxis(np.where(self.is_action, self.rewards, -np.inf), -1, 0)
        discount = np.asarray(self.discount)[..., None]
        for _ in range(sweeps):
            v[..., :-1] = (rewards + discount * v.take(places)).max(axis=0)
        return v[..., :-1]


@dataclass(frozen=True)
class ProcessRun:
    """The state values, greedy actions and action gaps before each step of a run.

    The arrays have shape (n_steps, n_states). A gap is the value of the greedy action minus the
    value of the second-best action. `theta` has the parameters after the last step.
    """

    values: Floats
    greedy: Ints
    gaps: Floats
    theta: Floats


def run_process(
    mdp: DeterministicMDP,
    update: str | Update,
    theta: Floats,
    weights: Floats,
    steps: int,
    on_policy: bool = False,
) -> ProcessRun:
    """Run an update of softmax parameters with exact values and return the `ProcessRun`.

    The first of tied actions is greedy.

    `weights` has the weights of one period, shape (period, n_states). With `on_policy` each weight
    is multiplied by the discounted occupancy of its state under the current policy, from a
    uniform initial state and scaled to mean 1.
    """
    from pu_lib.engine import exact  # imports numba
    from pu_lib.kernels import KERNELS

    chosen = as_update(update)
    shape = (steps, len(mdp.n_actions))
    values, gaps, greedy = np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.int64)
    theta = np.array(theta, dtype=np.float64)
    run = exact.process_cached if chosen.kernel in KERNELS else exact.process_in_memory
    run(
        _token(chosen, int(mdp.n_actions.max())),
        np.ascontiguousarray(mdp.rewards, dtype=np.float64),
        np.ascontiguousarray(mdp.successors, dtype=np.int64),
        np.ascontiguousarray(mdp.n_actions, dtype=np.int64),
        float(mdp.discount),
        theta,
        np.ascontiguousarray(weights, dtype=np.float64),
        on_policy,
        values,
        greedy,
        gaps,
    )
    _require_finite(theta)
    return ProcessRun(values, greedy, gaps, theta)


def largest_falls(
    mdps: DeterministicMDP, theta: Floats, weights: Floats, steps: int, on_policy: bool = False
) -> tuple[Floats, Floats]:
    """Run CE on a batch and return the largest decrease in a state value in each half of each run.

    Every state is updated at every step, with constant weights of shape (n, n_states); `on_policy`
    is as in `run_process`. `theta` is changed in place, so that a second call continues the runs.
    """
    from pu_lib.engine.exact import scan  # imports numba

    first, last = np.zeros(len(weights)), np.zeros(len(weights))
    tables = mdps.rewards, mdps.successors, mdps.n_actions, mdps.discount
    ce = _token(as_update("ce"), int(mdps.n_actions.max()))
    scan(ce, *tables, theta, weights, on_policy, steps, first, last)
    _require_finite(theta)
    return first, last


def _require_finite(theta: Floats) -> None:
    """Raise a `ValueError` if final parameters are not finite; compiled runs do not check them."""
    if not np.isfinite(theta).all():
        raise ValueError(
            "weights: the parameters leave the range of floats (1.8e308); use smaller weights."
        )


def _token(update: Update, n_actions: int) -> tuple[int, ...]:
    """Return the static argument for an update's kernel, or raise a `ValueError`."""
    from pu_lib.engine.comparing import require_kernel
    from pu_lib.engine.rows import static_kernel

    if update.kernel is None or update.parametrization != "softmax":
        raise ValueError(
            "update: the compiled process needs an update of softmax parameters with a kernel, "
            f"got {update!r}."
        )
    if update.has_memory:
        raise ValueError(f"update: the compiled process has no memory, which {update.name} needs.")
    require_kernel(update, n_actions)
    return static_kernel(update.kernel)


# Values in the arithmetic of the arguments


def policy_values(
    rewards: Sequence[Sequence[Number]],
    successors: Sequence[Sequence[int | None]],
    discount: Number,
    pi: Sequence[Sequence[Number]],
) -> list[Number]:
    r"""Return :math:`(I - \gamma P_\pi)^{-1} r_\pi` in the arithmetic of the arguments.

    Arguments have one row for each state; the successor ``None`` ends the episode.
    """
    n = len(rewards)
    zero = 0 * discount  # has the type of the arguments; integers would divide to floats
    matrix: list[list[Number]] = [[zero + int(s == j) for j in range(n)] for s in range(n)]
    right: list[Number] = [zero] * n
    for s in range(n):
        for a, j in enumerate(successors[s]):
            right[s] = right[s] + pi[s][a] * rewards[s][a]
            if j is not None:
                matrix[s][j] = matrix[s][j] - discount * pi[s][a]
    return solve(matrix, right)


def action_values(
    rewards: Sequence[Number],
    successors: Sequence[int | None],
    discount: Number,
    values: Sequence[Number],
) -> list[Number]:
    """Return the action values of one state in the arithmetic of the arguments."""
    return [
        reward + (0 if j is None else discount * values[j])
        for reward, j in zip(rewards, successors, strict=True)
    ]
