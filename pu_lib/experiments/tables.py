r"""A decision process laid out for simulation.

The pair (s, a) has number :math:`i = s|A| + a`, and its k-th possible successor makes transition
number :math:`i K + k`, with K the largest number of successors of any pair. This one number says
everything about a transition, so that a replay buffer needs 2 bytes a step (4 for large processes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pu_lib.mdp import FiniteMDP

if TYPE_CHECKING:
    from pu_lib.engine.loop import Process

__all__ = ["Tables", "lay_out"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tables:
    """A process as the simulation reads it.

    Attributes
    ----------
    n_states, n_actions, n_successors : int
        The numbers of states, of actions, and K.
    discount : float
        The discount factor.
    cumulative : ndarray, shape (n_states * n_actions, n_successors)
        Running sums of the probabilities of the successors.
    probability : ndarray, shape (n_states * n_actions, n_successors)
        Their probabilities; zero where a pair has fewer successors.
    successor : ndarray of uint16 or uint32, shape (n_states * n_actions * n_successors,)
        The state each transition enters.
    reward : ndarray, shape (n_states * n_actions * n_successors,)
        What it pays.
    expected_reward : ndarray, shape (n_states * n_actions,)
        Mean reward of each pair.
    terminal : ndarray of uint8, shape (n_states,)
        One where a trajectory ends.
    starts : ndarray of uint16 or uint32
        States a trajectory can begin in.
    start_cumulative : ndarray
        Running sums of their probabilities.
    order : ndarray of uint16 or uint32
        The states that are not terminal, successors first as far as possible.
    acyclic : bool
        Whether every successor of a state comes before it in `order`.
    """

    n_states: int
    n_actions: int
    n_successors: int
    discount: float
    cumulative: Floats
    probability: Floats
    successor: NDArray[np.unsignedinteger]
    reward: Floats
    expected_reward: Floats
    terminal: NDArray[np.uint8]
    starts: NDArray[np.unsignedinteger]
    start_cumulative: Floats
    order: NDArray[np.unsignedinteger]
    acyclic: bool

    @property
    def code_type(self) -> type[np.unsignedinteger]:
        """The smallest type that numbers every transition."""
        return _smallest_type(len(self.successor))

    @cached_property
    def process(self) -> Process:
        """The arrays as the compiled functions take them."""
        from pu_lib.engine.loop import Process  # imports numba

        return Process(
            probability=self.probability,
            cumulative=self.cumulative,
            successor=self.successor,
            reward=self.reward,
            expected_reward=self.expected_reward,
            gamma=self.discount,
            terminal=self.terminal,
            order=self.order,
            acyclic=self.acyclic,
            starts=self.starts,
            start_cumulative=self.start_cumulative,
        )


def _smallest_type(count: int) -> type[np.unsignedinteger]:
    """Return the smallest type that numbers so many things from zero."""
    return np.uint16 if count <= 1 << 16 else np.uint32


def lay_out(mdp: FiniteMDP) -> Tables:
    """Return the tables of a process.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.

    Returns
    -------
    Tables
        The process as the simulation reads it.
    """
    S, A = mdp.n_states, mdp.n_actions
    transitions = scipy.sparse.csr_array(mdp._matrix, copy=True)
    transitions.eliminate_zeros()
    transitions.sort_indices()
    start = transitions.indptr
    K = max(1, int(np.diff(start).max()))
    state_type = _smallest_type(S)
    probability, successor = np.zeros((S * A, K)), np.zeros((S * A, K), dtype=state_type)
    reward = np.zeros((S * A, K))
    paid = mdp.transition_rewards
    for i in range(S * A):
        reached = transitions.indices[start[i] : start[i + 1]]
        probability[i, : len(reached)] = transitions.data[start[i] : start[i + 1]]
        successor[i, : len(reached)] = reached
        reward[i, : len(reached)] = (
            mdp.rewards[i // A, i % A] if paid is None else paid[i // A, i % A, reached]
        )
    cumulative = np.cumsum(probability, axis=1)
    # The last successor takes what rounding left, and unused places are never drawn.
    counts = np.count_nonzero(probability, axis=1)
    cumulative[np.arange(K) >= np.maximum(counts, 1)[:, np.newaxis] - 1] = 1.0
    expected = np.zeros(S * A)
    for k in range(K):
        expected += probability[:, k] * reward[:, k]
    starts = np.flatnonzero(mdp.initial)
    order, acyclic = _order(successor, probability > 0.0, mdp.terminal, A)
    return Tables(
        n_states=S,
        n_actions=A,
        n_successors=K,
        discount=mdp.discount,
        cumulative=cumulative,
        probability=probability,
        successor=successor.ravel(),
        reward=reward.ravel(),
        expected_reward=expected,
        terminal=mdp.terminal.astype(np.uint8),
        starts=starts.astype(state_type),
        start_cumulative=np.cumsum(mdp.initial[starts]),
        order=order.astype(state_type),
        acyclic=acyclic,
    )


def _order(
    successor: NDArray[np.unsignedinteger],
    reachable: NDArray[np.bool_],
    terminal: NDArray[np.bool_],
    n_actions: int,
) -> tuple[NDArray[np.intp], bool]:
    """Return the live states, each after all its successors if possible, else by distance."""
    S = len(terminal)
    ahead = [
        set(successor[s * n_actions : (s + 1) * n_actions][reachable[s * n_actions :][:n_actions]])
        for s in range(S)
    ]
    placed, order, waiting = set(np.flatnonzero(terminal)), [], set(np.flatnonzero(~terminal))
    while ready := sorted(s for s in waiting if ahead[s] <= placed):
        order += ready
        placed.update(ready)
        waiting.difference_update(ready)
    acyclic = not waiting
    # Where there are cycles, sweeps converge fastest when values flow back from the end.
    while waiting:
        near = sorted(s for s in waiting if ahead[s] & placed) or sorted(waiting)
        order += near
        placed.update(near)
        waiting.difference_update(near)
    return np.array(order, dtype=np.intp), acyclic
