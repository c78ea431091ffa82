"""Processes in the forms of QuantEcon and pymdptoolbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from pu_lib.arrays import Floats, as_csr, as_float_array, safe_repr
from pu_lib.extras import naming_the_extra

if TYPE_CHECKING:
    from pu_lib.mdp import FiniteMDP


def as_quantecon(process: FiniteMDP) -> Any:
    """Return a `quantecon.markov.DiscreteDP`, in which terminal states have loops."""
    with naming_the_extra():
        from quantecon.markov import DiscreteDP

    n_states, n_actions = process.n_states, process.n_actions
    pairs = np.arange(n_states * n_actions)
    if isinstance(process._matrix, np.ndarray):
        transitions = process.transitions.copy()
        transitions[process.terminal] = np.eye(n_states)[process.terminal][:, np.newaxis]
        return DiscreteDP(process.rewards.copy(), transitions, process.discount)
    ends = pairs[np.repeat(process.terminal, n_actions)]
    loops = scipy.sparse.csr_array(
        (np.ones(len(ends)), (ends, ends // n_actions)), shape=process._matrix.shape
    )
    matrix = scipy.sparse.csr_matrix(process._matrix + loops)
    where = pairs // n_actions, pairs % n_actions
    return DiscreteDP(process.rewards.ravel(), matrix, process.discount, *where)


def read_quantecon(ddp: Any) -> tuple[Any, Floats]:
    """Return the transitions and rewards of a `quantecon.markov.DiscreteDP` for `FiniteMDP`.

    Rewards of infeasible pairs are -inf. Transitions have a row for each feasible pair.
    """
    if not all(hasattr(ddp, name) for name in ("R", "Q", "beta", "num_states")):
        raise ValueError(f"ddp: expected a quantecon.markov.DiscreteDP, got {safe_repr(ddp)}.")
    rewards, transitions = np.asarray(ddp.R), ddp.Q
    if rewards.ndim == 1:  # one entry for each feasible pair, in the order of the pairs
        states, actions = np.asarray(ddp.s_indices), np.asarray(ddp.a_indices)
        n_actions = int(actions.max()) + 1
        listed = np.full((ddp.num_states, n_actions), -np.inf)
        listed[states, actions] = rewards
        if not scipy.sparse.issparse(transitions) and len(rewards) == listed.size:
            transitions = transitions.reshape(*listed.shape, ddp.num_states)
        rewards = listed
    return transitions, rewards


def read_toolbox(transitions: Any, rewards: Any) -> tuple[Any, Floats]:
    """Return transitions and rewards in the forms of pymdptoolbox in those of `FiniteMDP`."""
    matrices, paid = _by_action("transitions", transitions), _by_action("rewards", rewards)
    if isinstance(matrices, np.ndarray) and matrices.ndim != 3:
        raise ValueError(
            "transitions: expected shape (n_actions, n_states, n_states) or a matrix of each "
            f"action, got {matrices.shape}."
        )
    n_actions, n_states = len(matrices), matrices[0].shape[0]
    if isinstance(matrices, np.ndarray):
        by_state: Any = np.moveaxis(matrices, 0, 1)
    else:
        try:
            by_action = scipy.sparse.vstack(matrices, "csr")
        except ValueError as error:
            raise ValueError(f"transitions: the matrices do not fit together ({error}).") from None
        by_state = by_action[np.arange(n_actions * n_states).reshape(n_actions, -1).T.ravel()]
    shape = np.shape(paid) if isinstance(paid, np.ndarray) else ()
    if shape == (n_states,):
        return by_state, np.tile(paid, (n_actions, 1)).T
    if shape == (n_states, n_actions):
        return by_state, np.asarray(paid)
    if [matrix.shape for matrix in paid] != [matrix.shape for matrix in matrices]:
        raise ValueError(
            f"rewards: expected shape {(n_states,)}, {(n_states, n_actions)} or "
            f"{(n_actions, n_states, n_states)} or a matrix of each action, got "
            f"{shape or [matrix.shape for matrix in paid]}."
        )
    if isinstance(paid, np.ndarray) and isinstance(matrices, np.ndarray):
        return by_state, np.moveaxis(paid, 0, 1)
    pairs = zip(matrices, paid, strict=True)
    columns = [
        (scipy.sparse.csr_array(p) * scipy.sparse.csr_array(r)).sum(axis=1) for p, r in pairs
    ]
    return by_state, np.stack(columns, axis=1)


def _by_action(name: str, argument: Any) -> Floats | list[Any]:
    """Return an argument as an array, or as a list of matrices if some of them are sparse."""
    if scipy.sparse.issparse(argument):
        return np.asarray(as_csr(name, argument).toarray())
    if isinstance(argument, np.ndarray) and argument.dtype == object:
        argument = list(argument)
    if isinstance(argument, (list, tuple)) and any(map(scipy.sparse.issparse, argument)):
        return [as_csr(name, matrix) for matrix in argument]
    return as_float_array(name, argument, axes=1)
