r"""Deterministic MDPs whose states may have different numbers of actions, exactly.

One representation for the cycles, the search for them, and certificates. Everything that evaluates
a policy here works on floats, rationals and balls alike; the compiled process, in floats, is
`run_process`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.exact import solve
from pu_lib.updates import Update, as_update

__all__ = ["DeterministicMDP", "Record", "action_values", "policy_values", "run_process"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Number = Any
"""A float, a Fraction or a ball."""


@dataclass(frozen=True)
class DeterministicMDP:
    """Tables of a deterministic MDP.

    Attributes
    ----------
    rewards : ndarray, shape (..., n_states, most actions)
        What each action pays; leading axes count MDPs of a batch.
    successors : ndarray of int, shape (..., n_states, most actions)
        Where each action leads; -1 ends the episode with value 0.
    n_actions : ndarray of int, shape (n_states,)
        The number of actions of each state; later columns mean nothing.
    discount : float or ndarray, shape (...)
        The discount factor.
    """

    rewards: Floats
    successors: Ints
    n_actions: Ints
    discount: Any

    @property
    def real(self) -> NDArray[np.bool_]:
        """Which columns are actions, shape (n_states, most actions)."""
        return np.arange(self.rewards.shape[-1]) < self.n_actions[:, np.newaxis]

    def __getitem__(self, rows: Any) -> DeterministicMDP:
        """Return some MDPs of a batch."""
        discount = self.discount[rows] if np.ndim(self.discount) else self.discount
        return DeterministicMDP(self.rewards[rows], self.successors[rows], self.n_actions, discount)

    def values(self, theta: Floats) -> Floats:
        """Return the values of softmax policies, shape (..., n_states).

        Parameters
        ----------
        theta : ndarray, shape (..., n_states, most actions)
            Parameters; columns that are no actions count for nothing.

        Returns
        -------
        ndarray, shape (..., n_states)
            The values, from one linear system for each MDP.
        """
        scores = np.where(self.real, theta, -np.inf)
        pi = np.exp(scores - scores.max(axis=-1, keepdims=True))
        pi /= pi.sum(axis=-1, keepdims=True)
        states = np.arange(self.rewards.shape[-2])
        onto = self.successors[..., np.newaxis] == states
        flow = np.einsum("...sa,...sat->...st", pi, onto)
        matrix = np.eye(len(states)) - np.asarray(self.discount)[..., None, None] * flow
        reward = (pi * np.where(self.real, self.rewards, 0.0)).sum(axis=-1)
        return np.asarray(np.linalg.solve(matrix, reward[..., np.newaxis])[..., 0])

    def optimum(self, sweeps: int = 3000) -> Floats:
        """Return the optimal values by value iteration to rounding error, shape (..., n_states).

        Parameters
        ----------
        sweeps : int
            Number of sweeps; 3000 are enough for a discount of 0.99.

        Returns
        -------
        ndarray, shape (..., n_states)
            The optimal values.
        """
        *batch, n_states, _ = self.rewards.shape
        # The last column stands for the end, which index -1 reaches; it stays zero.
        v = np.zeros((*batch, n_states + 1))
        first = np.arange(0, v.size, n_states + 1).reshape(*batch, 1, 1)
        # The axis of actions stands first: to compare whole arrays is quicker than rows of three.
        places = np.moveaxis(first + self.successors % (n_states + 1), -1, 0)
        rewards = np.moveaxis(np.where(self.real, self.rewards, -np.inf), -1, 0)
        discount = np.asarray(self.discount)[..., None]
        for _ in range(sweeps):
            v[..., :-1] = (rewards + discount * v.take(places)).max(axis=0)
        return v[..., :-1]


@dataclass(frozen=True)
class Record:
    """What a run of the exact process looked like before each step.

    Attributes
    ----------
    values : ndarray, shape (T, n_states)
    greedy : ndarray of int, shape (T, n_states)
    gaps : ndarray, shape (T, n_states)
        How far the greedy action was ahead of the second best.
    theta : ndarray, shape (n_states, most actions)
        The parameters after the last step.
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
) -> Record:
    r"""Run the exact process of an update, compiled.

    Parameters
    ----------
    mdp : DeterministicMDP
        One MDP.
    update : str or Update
        An update of softmax parameters with a kernel; of tied actions the first is greedy.
    theta : ndarray, shape (n_states, most actions)
        Parameters at the start.
    weights : ndarray, shape (period, n_states)
        One period of the weights :math:`w_t(s)`.
    steps : int
        Number of updates.
    on_policy : bool
        Whether each weight is multiplied by the discounted occupancy of its state under the
        current policy, from uniform starts, with mean one.

    Returns
    -------
    Record
        Values, greedy actions and their leads at every step, and the last parameters.

    Raises
    ------
    ValueError
        If the update has no kernel, or other parameters than softmax ones.
    """
    from pu_lib.engine import exact  # imports numba
    from pu_lib.kernels import KERNELS

    chosen = as_update(update)
    shape = (steps, len(mdp.n_actions))
    values, gaps, greedy = np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.int64)
    theta = np.array(theta, dtype=np.float64)
    run = exact.process_kept if chosen.kernel in KERNELS else exact.process_fresh
    run(
        softmax_token(chosen),
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
    return Record(values, greedy, gaps, theta)


def softmax_token(update: Update) -> tuple[int, ...]:
    """Return what the compiled process knows an update by.

    Raises
    ------
    ValueError
        If the update has no kernel, or other parameters than softmax ones.
    """
    from pu_lib.engine.rows import token

    if update.kernel is None or update.parametrization != "softmax":
        raise ValueError(
            "update: the compiled process knows updates of softmax parameters with a kernel, "
            f"got {update!r}."
        )
    return token(update.kernel)


# In any arithmetic


def policy_values(
    rewards: Sequence[Sequence[Number]],
    successors: Sequence[Sequence[int | None]],
    discount: Number,
    pi: Sequence[Sequence[Number]],
) -> list[Number]:
    r"""Return the values :math:`(I - \gamma P_\pi)^{-1} r_\pi` in the arithmetic of the arguments.

    Parameters
    ----------
    rewards : sequence of sequences of numbers
        One row a state, one entry an action.
    successors : sequence of sequences of (int or None)
        Where each action leads; ``None`` ends the episode.
    discount : number
        The discount factor.
    pi : sequence of sequences of numbers
        The policy.

    Returns
    -------
    list of numbers, one a state
        The values of the states.
    """
    n = len(rewards)
    matrix: list[list[Number]] = [[int(s == j) for j in range(n)] for s in range(n)]
    right: list[Number] = [0] * n
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
    """Return the values of the actions of one state, in the arithmetic of the arguments.

    Parameters
    ----------
    rewards : sequence of numbers
        One entry an action.
    successors : sequence of (int or None)
        Where each action leads.
    discount : number
        The discount factor.
    values : sequence of numbers
        The values of the states.

    Returns
    -------
    list of numbers
        One value an action.
    """
    return [
        reward + (0 if j is None else discount * values[j])
        for reward, j in zip(rewards, successors, strict=True)
    ]
