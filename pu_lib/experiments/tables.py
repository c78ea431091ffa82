"""The array layout of a decision process in the simulation.

The pair (s, a) has the index :math:`i = s|A| + a`, and the k-th possible successor of this pair has
the index :math:`i K + k`, with K the largest number of successors of any pair. The index of a
successor identifies a transition, so a replay buffer needs 2 bytes per step (4 for large
processes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pu_lib.mdp import FiniteMDP

if TYPE_CHECKING:
    from pu_lib.engine.loop import Process

Floats = NDArray[np.float64]

_MAX_ENTRIES = 100_000_000  # of the tables, which then have 3.6 GB


@dataclass(frozen=True)
class Tables:
    """The arrays of a process for the simulation.

    Attributes
    ----------
    n_states, n_actions, n_successors : int
        The number of states, the number of actions, and K.
    discount : float
        The discount factor.
    cumulative : ndarray, shape (n_states * n_actions, n_successors)
        Cumulative probabilities of the successors.
    probability : ndarray, shape (n_states * n_actions, n_successors)
        Probabilities of the successors; zero if a pair has fewer successors.
    successor : ndarray of uint16 or uint32, shape (n_states * n_actions * n_successors,)
        The next state of each transition.
    reward : ndarray, shape (n_states * n_actions * n_successors,)
        The reward of each transition.
    expected_reward : ndarray, shape (n_states * n_actions,)
        The expected reward of each pair.
    terminal : ndarray of uint8, shape (n_states,)
        One if the state is terminal.
    starts : ndarray of uint16 or uint32
        The initial states.
    start_cumulative : ndarray
        Cumulative probabilities of the initial states.
    order : ndarray of uint16 or uint32
        The states that are not terminal, with successors first if the process is acyclic.
    acyclic : bool
        Whether every successor of a state precedes it in `order`.
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
        """The smallest integer type that can index all transitions."""
        return _smallest_type(len(self.successor))

    @cached_property
    def process(self) -> Process:
        """The arrays as an argument of the compiled functions."""
        from pu_lib.engine.loop import Process  # imports numba
        from pu_lib.engine.values import static_solver

        return Process(
            probability=self.probability,
            cumulative=self.cumulative,
            successor=self.successor,
            reward=self.reward,
            expected_reward=self.expected_reward,
            gamma=self.discount,
            terminal=self.terminal,
            order=self.order,
            solver=static_solver(self.acyclic, len(self.order)),
            starts=self.starts,
            start_cumulative=self.start_cumulative,
        )


def _smallest_type(count: int) -> type[np.unsignedinteger]:
    """Return the smallest integer type with at least `count` values."""
    return np.uint16 if count <= 1 << 16 else np.uint32


def lay_out(mdp: FiniteMDP) -> Tables:
    """Return the arrays of a process for the simulation."""
    S, A = mdp.n_states, mdp.n_actions
    transitions = scipy.sparse.csr_array(mdp._matrix, copy=True)
    transitions.eliminate_zeros()
    transitions.sort_indices()
    counts = np.diff(transitions.indptr)
    K = max(1, int(counts.max()))
    if S * A * K > _MAX_ENTRIES:
        widest = int(np.argmax(counts))
        raise ValueError(
            f"transitions: {mdp._where(widest)} has {K:,} successors. A "
            f"simulation stores as many for each state and action, which makes {S * A * K:,} "
            f"entries; at most {_MAX_ENTRIES:,} are allowed."
        )
    state_type = _smallest_type(S)
    probability, successor = np.zeros((S * A, K)), np.zeros((S * A, K), dtype=state_type)
    reward = np.zeros((S * A, K))
    pair = np.repeat(np.arange(S * A), counts)
    entry = pair, np.arange(len(pair)) - np.repeat(transitions.indptr[:-1], counts)
    probability[entry], successor[entry] = transitions.data, transitions.indices
    paid = mdp.transition_rewards
    reward[entry] = (
        mdp.rewards.ravel()[pair]
        if paid is None
        else paid.reshape(S * A, S)[pair, transitions.indices]
    )
    cumulative = np.cumsum(probability, axis=1)
    # Make the cumulative sums end at exactly 1, so that unused entries are never sampled.
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
    """Return the non-terminal states in the order of evaluation, and whether there is no cycle.

    Without cycles, the successors of a state precede it. With cycles, the remaining states are
    sorted by their distance to a terminal state.
    """
    S = len(terminal)
    pair, _ = np.nonzero(reachable)
    # Row s of `leading` has the states that have s as a successor.
    leading = scipy.sparse.csr_array(
        (np.ones(len(pair), np.bool_), (successor[reachable], pair // n_actions)), shape=(S, S)
    )
    placed = terminal.copy()
    order: list[NDArray[Any]] = [np.empty(0, np.intp)]
    unplaced = np.bincount(leading.indices, minlength=S)  # number of successors
    layer: NDArray[Any] = np.flatnonzero(terminal)
    while len(layer):
        before, times = np.unique(leading[layer].indices, return_counts=True)
        unplaced[before] -= times
        layer = before[unplaced[before] == 0]
        placed[layer] = True
        order.append(layer)
    acyclic = bool(placed.all())
    # With cycles, sweeps converge fastest in the order of the distance to a terminal state.
    layer = np.flatnonzero(placed)
    while not placed.all():
        before = np.unique(leading[layer].indices)
        layer = before[~placed[before]]
        if len(layer) == 0:
            layer = np.flatnonzero(~placed)
        placed[layer] = True
        order.append(layer)
    return np.concatenate(order), acyclic
