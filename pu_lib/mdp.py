r"""Finite Markov decision processes and their exact values (paper, section 2, appendix A.1).

For a policy :math:`\pi` the values solve the linear system

.. math:: v = r_\pi + \gamma P_\pi v, \qquad q(s,a) = r(s,a) + \gamma \sum_{s'} p(s'|s,a)\,v(s'),

with :math:`r_\pi(s)=\sum_a\pi(a|s)r(s,a)` and :math:`P_\pi(s,s')=\sum_a\pi(a|s)p(s'|s,a)`. The
discounted occupancy :math:`d(s)=\sum_{t\ge0}\gamma^t\,\mathbb P(S_t=s)` solves the transposed
system, :math:`d = p_0 + \gamma P_\pi^\top d`, and the objective of the paper's equation 1 is
:math:`\mathcal J(\pi)=p_0^\top v=\sum_s d(s)\,r_\pi(s)`. A terminal state ends the trajectory: its
value is 0, its row of :math:`P` is empty, and its occupancy is set to 0.

Optimal values come from policy iteration. If no action improves on the values of the current
policy by more than :math:`\varepsilon`, these values are within :math:`\varepsilon/(1-\gamma)` of
the optimal ones; `Optimum.message` gives that bound.

Dense systems are solved by LAPACK, with one factorisation for values and occupancy. Large sparse
processes are solved by `pu_lib.sparse` up to rounding at every state, and their occupancy is
computed only if it is read. `Evaluation` records the method and the residual.
"""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dgetrf, dgetrs

from pu_lib.arrays import (
    Floats,
    as_bool_array,
    as_csr,
    as_float,
    as_float_array,
    as_int,
    as_names,
    underflow_to_zero,
)
from pu_lib.files import replacing
from pu_lib.other_libraries import as_quantecon, read_quantecon, read_toolbox
from pu_lib.world import read_json, to_text

__all__ = ["Evaluation", "FiniteMDP", "Optimum"]

# Probabilities read from text or from other libraries sum to 1 up to a few ulp. A larger error is
# taken for a mistake and raises; nothing is normalised. If all sums are off by e, values change by
# a factor of about 1 + e / (1 - discount), which may be at most 1 + 1e-6.
_SUM_TOLERANCE = 1e-9
_VALUE_TOLERANCE = 1e-6
_NAMES = ("states", "actions")
_OPTIONAL = {"terminal", *_NAMES}
_ARRAYS = ("transitions", "rewards", "initial", "discount", "terminal", *_NAMES)  # in a saved file
_CSR_ARRAYS = ("format", "shape", "data", "indices", "indptr")  # of `scipy.sparse.save_npz`
_KNOWN = {*_ARRAYS, *_CSR_ARRAYS, "_is_array"}
_LARGEST_ITEM = 32  # bytes of a number in a file; the largest is a complex long double
# An archive whose arrays are larger than 100 MB may expand to 1000 times its size. Arrays of zeros
# expand to 1030 times their compressed size, the densest processes with zero rewards to about 800.
_LARGEST_EXPANSION, _SMALL_ARCHIVE = 1000, 10**8
# The largest value is max |reward| / (1 - discount). Up to 1e150, products of two values are still
# below the largest float, 1.8e308.
_LARGEST_VALUE = 1e150
# A smaller or denser matrix is stored and factorised dense, which is then faster.
_SPARSE_FROM_STATES = 500
_SPARSE_BELOW_DENSITY = 0.05
# Errors that NumPy, zipfile and zlib raise on a file that is truncated, damaged or no archive. A
# damaged header may describe an array larger than the available memory.
_UNREADABLE = (
    OSError, ValueError, AttributeError, TypeError, KeyError, IndexError, EOFError, SyntaxError,
    NotImplementedError, RuntimeError, MemoryError, OverflowError, RecursionError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The exact values, performance and occupancy of a policy.

    Attributes
    ----------
    v : ndarray, shape (n_states,)
        State values.
    q : ndarray, shape (n_states, n_actions)
        State-action values.
    performance : float
        Expected discounted return from the initial distribution (paper, eq. 1).
    residual : float
        Largest error of the Bellman equation at `v`.
    method : str
        The method by which the equations were solved.
    """

    v: Floats
    q: Floats
    performance: float
    residual: float
    method: str
    _occupancy: Callable[[], Floats]

    def __repr__(self) -> str:
        return f"Evaluation(performance={self.performance:.6g}, n_states={len(self.v)})"

    @cached_property
    @underflow_to_zero
    def occupancy(self) -> Floats:
        """Expected discounted number of visits to each state; shape (n_states,).

        The sum is at most 1 / (1 - discount). If the process is sparse, the numbers are computed
        when they are first read.
        """
        return self._occupancy()

    @property
    def message(self) -> str:
        """The method and the residual of the solution as a sentence."""
        return f"Solved {self.method}; the Bellman equation holds to {self.residual:.1e}."


@dataclass(frozen=True, eq=False, repr=False)
class Optimum:
    """Optimal values and an optimal policy.

    Attributes
    ----------
    v : ndarray, shape (n_states,)
        Optimal state values.
    q : ndarray, shape (n_states, n_actions)
        Optimal state-action values.
    policy : ndarray, shape (n_states, n_actions)
        A deterministic optimal policy.
    performance : float
        The performance of `policy`.
    iterations : int
        The number of policy evaluations.
    converged : bool
        Whether no action improves on the policy.
    message : str
        The reason why policy iteration ended, with a bound on the distance to the optimal values.
    """

    v: Floats
    q: Floats
    policy: Floats
    performance: float
    iterations: int
    converged: bool
    message: str

    def __repr__(self) -> str:
        ending = "" if self.converged else ", not converged"
        return f"Optimum(performance={self.performance:.6g}, n_states={len(self.v)}{ending})"

    def require(self) -> Optimum:
        """Return this optimum, or raise a `ValueError` if policy iteration has not converged."""
        if not self.converged:
            raise ValueError(
                f"Policy iteration has not converged. {self.message} Call "
                "optimal(max_iterations=...) with a larger number first."
            )
        return self


_FIXED = {
    "n_states", "n_actions", "discount", "terminal", "initial", "rewards", "transition_rewards",
    "states", "actions", "_matrix",
}  # fmt: skip


class FiniteMDP:
    """A finite Markov decision process with discounted rewards.

    Arguments are copied and checked but not normalised, and an instance cannot be changed.

    Parameters
    ----------
    transitions : array_like, shape (n_states, n_actions, n_states), or scipy sparse
        ``transitions[s, a, s']`` is the probability of s' after action a in s. A sparse matrix has
        shape (n_states * n_actions, n_states), and row ``s * n_actions + a``.
    rewards : array_like, shape (n_states, n_actions) or (n_states, n_actions, n_states)
        Expected rewards of state-action pairs, or rewards of transitions.
    initial : array_like, shape (n_states,)
        Distribution of the initial state.
    discount : float
        Discount factor in [0, 1).
    terminal : array_like of bool, shape (n_states,), optional
        States that end a trajectory. By default there are none. Their rows of `transitions` must be
        zero or a loop to the state itself, and their expected rewards zero. Rewards of transitions
        out of terminal states are ignored.
    states, actions : sequence of str, optional
        Names of the n_states states and of the n_actions actions, for errors, tables and pages.
        Indices alone identify states and actions, so that names may repeat.

    Raises
    ------
    ValueError
        If an argument has an invalid shape or a value out of range; the message names the argument,
        the state and the value.

    Examples
    --------
    A process with one state, discount 0.9 and two actions, of which the first pays 1:

    >>> mdp = FiniteMDP([[[1.0], [1.0]]], [[1.0, 0.0]], [1.0], 0.9)
    >>> round(mdp.performance([[0.5, 0.5]]), 6)
    5.0
    >>> mdp.optimal()
    Optimum(performance=10, n_states=1)

    Names appear in errors:

    >>> named = FiniteMDP([[[1], [1]]], [[1, 0]], [1], 0.9, states=["shop"], actions=["buy", "go"])
    >>> named.performance([[0.5, 0.6]])
    Traceback (most recent call last):
    ...
    ValueError: pi: expected non-negative probabilities that sum to 1, got [0.5 0.6] (sum 1.1) at \
state 0 (shop).
    """

    @underflow_to_zero
    def __init__(
        self,
        transitions: ArrayLike | scipy.sparse.spmatrix | scipy.sparse.sparray,
        rewards: ArrayLike,
        initial: ArrayLike,
        discount: float,
        terminal: ArrayLike | None = None,
        *,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
    ) -> None:
        rewards = as_float_array("rewards", rewards, copy=True)
        if rewards.ndim not in (2, 3) or rewards.size == 0:
            raise ValueError(
                "rewards: expected shape (n_states, n_actions) or (n_states, n_actions, n_states) "
                f"with at least one of each, got {rewards.shape}."
            )
        self.n_states, self.n_actions = rewards.shape[:2]
        self.states = as_names("states", states, self.n_states)
        self.actions = as_names("actions", actions, self.n_actions)
        self._ones = np.ones(self.n_actions)
        self.discount = _discount(discount)
        self._policy_tolerance = _sum_tolerance(self.discount, self.n_actions)
        self._check_size(rewards)
        self.terminal = self._terminal_mask(terminal)
        self._matrix = self._transition_matrix(transitions)
        self.initial = self._initial_distribution(initial)
        self.transition_rewards = self._transition_rewards(rewards)
        self.rewards = self._expected_rewards(rewards)
        self._freeze()

    # Instances are immutable, so that cached results such as the optimum stay valid.

    _frozen = False

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen and name in _FIXED:
            raise AttributeError(f"{name}: a FiniteMDP is immutable; make another one.")
        super().__setattr__(name, value)

    def __setstate__(self, state: Any) -> None:
        """Restore a copy with read-only arrays; a subclass with slots has a state of two parts."""
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in (part or {}).items():
                object.__setattr__(self, name, value)
        self._freeze()

    def _freeze(self) -> None:
        known = vars(self._optimum) if self._optimum else {}
        fields = (value for name, value in vars(self).items() if name in _FIXED)
        for value in (*fields, *known.values()):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self._frozen = True

    # Reading the arguments

    def _check_size(self, rewards: Floats) -> None:
        """Raise a `ValueError` if rewards / (1 - discount) exceeds `_LARGEST_VALUE`."""
        most = float(np.abs(rewards).max())
        if most > _LARGEST_VALUE * (1.0 - self.discount):
            raise ValueError(
                f"rewards: rewards up to {most:g} with discount {self.discount:g} make values "
                f"beyond {_LARGEST_VALUE:g}; measure them in a larger unit."
            )

    def _terminal_mask(self, terminal: ArrayLike | None) -> NDArray[np.bool_]:
        if terminal is None:
            return np.zeros(self.n_states, dtype=np.bool_)
        try:
            return as_bool_array("terminal", terminal, (self.n_states,))
        except ValueError as error:
            raise ValueError(
                f"{error} For zeros and ones, use np.asarray(terminal) == 1; for the indices of "
                "states, use np.isin(np.arange(n_states), terminal)."
            ) from None

    def _transition_matrix(
        self, transitions: ArrayLike | scipy.sparse.spmatrix | scipy.sparse.sparray
    ) -> Floats | scipy.sparse.csr_array:
        """Validate the transitions and return them as a (states * actions, states) matrix."""
        flat_shape = (self.n_states * self.n_actions, self.n_states)
        matrix: Floats | scipy.sparse.csr_array
        most_entries = self.n_states
        if scipy.sparse.issparse(transitions):
            if transitions.dtype.kind not in "fiu":
                raise ValueError(
                    f"transitions: expected a sparse matrix of numbers, got {transitions.dtype}."
                )
            if transitions.shape != flat_shape:
                raise ValueError(
                    f"transitions: expected a sparse matrix of shape {flat_shape} as the rewards "
                    f"say, got {transitions.shape}."
                )
            matrix = as_csr("transitions", transitions)
            matrix.sum_duplicates()
            most_entries = int(np.diff(matrix.indptr).max())
            if self.n_states < _SPARSE_FROM_STATES:
                matrix = matrix.toarray()  # too small to be kept sparse
        elif isinstance(transitions, (list, tuple)) and any(
            map(scipy.sparse.issparse, transitions)
        ):
            raise ValueError(
                "transitions: expected an array or one sparse matrix, got a list; for a matrix of "
                "each action, use FiniteMDP.from_pymdptoolbox(transitions, rewards, discount)."
            )
        else:
            dense = as_float_array("transitions", transitions, copy=True)  # type: ignore[arg-type]
            shape = (self.n_states, self.n_actions, self.n_states)
            if dense.shape != shape:
                swapped = dense.shape == (self.n_actions, self.n_states, self.n_states)
                raise ValueError(
                    f"transitions: expected shape {shape} as the rewards say, got {dense.shape}"
                    + ("; use np.moveaxis(transitions, 0, 1)." if swapped else ".")
                )
            matrix = dense.reshape(flat_shape)
        entries = matrix.ravel() if isinstance(matrix, np.ndarray) else np.asarray(matrix.data)
        least, most = np.min(entries, initial=0.0), np.max(entries, initial=0.0)
        if not (least >= 0.0 and most < np.inf):  # as NaN would be
            first = int(np.argmin(np.isfinite(entries) & (entries >= 0.0)))
            row = (
                first // self.n_states
                if isinstance(matrix, np.ndarray)
                else int(np.searchsorted(matrix.indptr, first, side="right")) - 1
            )
            raise ValueError(
                f"transitions: expected probabilities, got {entries[first]} at {self._where(row)}."
            )
        self._check_row_sums(matrix, most_entries)
        return self._without_terminal_rows(matrix)

    def _check_row_sums(self, matrix: Floats | scipy.sparse.csr_array, most_entries: int) -> None:
        """Raise a `ValueError` unless rows sum to 1; rows of terminal states may be zero.

        `most_entries` is the largest number of entries that a row was given with.
        """
        sums = np.asarray(matrix @ np.ones(self.n_states))
        ends = np.repeat(self.terminal, self.n_actions)
        tolerance = _sum_tolerance(self.discount, most_entries)
        off = np.abs(sums - 1.0) > tolerance
        wrong = np.where(ends, off & (sums != 0.0), off)
        if np.any(wrong):
            row = int(np.argmax(wrong))
            raise ValueError(
                f"transitions: the probabilities at {self._where(row)} sum to {sums[row]:.12g}, "
                "not 1; nothing is normalised, so divide each row by its sum."
                + _sum_advice(sums[row], self.discount, tolerance)
            )
        if self.discount * sums.max() >= 1.0:
            row = int(np.argmax(sums))
            raise ValueError(
                f"transitions: the probabilities at {self._where(row)} exceed 1 by "
                f"{sums[row] - 1.0:.1g}; times the discount {self.discount!r} that is not below 1."
            )
        rows = np.flatnonzero(ends)
        states = rows // self.n_actions
        if isinstance(matrix, np.ndarray):
            stays = matrix[rows, states]
        else:
            entries = scipy.sparse.coo_array(matrix[rows])
            loops = entries.data * (entries.col == states[entries.row])
            stays = np.bincount(entries.row, loops, len(rows))
        leaves = (sums[rows] != 0.0) & (stays < 1.0 - _SUM_TOLERANCE)
        if np.any(leaves):
            row = int(rows[np.argmax(leaves)])
            raise ValueError(
                f"transitions: terminal {self._where(row)} leads to another state; "
                "give a zero row or a loop."
            )

    def _without_terminal_rows(
        self, matrix: Floats | scipy.sparse.csr_array
    ) -> Floats | scipy.sparse.csr_array:
        """Return the matrix with zero rows for terminal states, whose values are then 0.

        The result has sparse form if the matrix is large and has few non-zero entries, and dense
        form otherwise, regardless of the form of the argument.
        """
        if isinstance(matrix, np.ndarray):
            matrix[np.repeat(self.terminal, self.n_actions)] = 0.0
            density = float(np.count_nonzero(matrix)) / matrix.size
        else:
            begins = matrix.indptr[:: self.n_actions]  # of the entries of each state
            for state in np.flatnonzero(self.terminal):
                matrix.data[begins[state] : begins[state + 1]] = 0.0
            matrix.eliminate_zeros()
            density = matrix.nnz / (matrix.shape[0] * matrix.shape[1])
        if self.n_states >= _SPARSE_FROM_STATES and density < _SPARSE_BELOW_DENSITY:
            return scipy.sparse.csr_array(matrix)
        return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())

    def _initial_distribution(self, initial: ArrayLike) -> Floats:
        p0 = as_float_array("initial", initial, copy=True)
        if p0.shape != (self.n_states,):
            raise ValueError(f"initial: expected {self.n_states} probabilities, got {p0.shape}.")
        if np.any(p0 < 0.0):
            state = int(np.argmax(p0 < 0.0))
            raise ValueError(
                f"initial: expected probabilities, got {p0[state]} at {self._state(state)}."
            )
        if abs(p0.sum() - 1.0) > _SUM_TOLERANCE:
            raise ValueError(
                f"initial: the probabilities sum to {p0.sum():.12g}, not 1; divide them by it."
                + _sum_advice(p0.sum())
            )
        return p0

    def _transition_rewards(self, rewards: Floats) -> Floats | None:
        if rewards.ndim == 2:
            return None
        if rewards.shape[2] != self.n_states:
            raise ValueError(
                f"rewards: expected {self.n_states} successors on the last axis, "
                f"got shape {rewards.shape}."
            )
        return rewards

    def _expected_rewards(self, rewards: Floats) -> Floats:
        if rewards.ndim == 3:
            return np.asarray(np.einsum("sax,sax->sa", self.transitions, rewards))
        paying = self.terminal & np.any(rewards != 0.0, axis=1)
        if np.any(paying):
            state = int(np.argmax(paying))
            raise ValueError(
                f"rewards: terminal {self._state(state)} pays {rewards[state]}; a trajectory ends "
                "there, so give zeros."
            )
        return rewards

    def _state(self, state: int) -> str:
        """Return a state for a message, as in ``state 3 (low stock)``."""
        return _with_name("state", state, self.states)

    def _where(self, row: int) -> str:
        """Return the state and the action of a row of the matrix for a message."""
        state, action = divmod(row, self.n_actions)
        return f"{self._state(state)}, {_with_name('action', action, self.actions)}"

    # Storage

    @property
    def transitions(self) -> Floats:
        """Transition probabilities as a dense array of shape (n_states, n_actions, n_states)."""
        matrix = self._matrix if isinstance(self._matrix, np.ndarray) else self._matrix.toarray()
        dense = np.asarray(matrix).reshape(self.n_states, self.n_actions, self.n_states)
        dense.setflags(write=False)  # writing to a copy would silently have no effect
        return dense

    @cached_property
    def digest(self) -> str:
        """A SHA-256 digest of the process, which is equal for dense and sparse transitions."""
        rewards = self.rewards if self.transition_rewards is None else self.transition_rewards
        reached = scipy.sparse.csr_array(self._matrix)
        reached.eliminate_zeros()
        reached.sort_indices()
        text = hashlib.sha256(f"{rewards.shape} {self.discount!r}".encode())
        for array in (
            reached.data,
            reached.indices.astype(np.int64),
            reached.indptr.astype(np.int64),
            rewards + 0.0,  # -0.0 becomes 0.0
            self.initial + 0.0,
            self.terminal,
        ):
            text.update(np.ascontiguousarray(array).tobytes())
        return text.hexdigest()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the process to a NumPy archive, which `load` reads.

        The transitions of a large sparse process are written in SciPy's sparse form, without
        compression; `scipy.sparse.load_npz` reads them from the same file.

        Parameters
        ----------
        path : path
            The path of the file; no suffix is added.

        Raises
        ------
        OSError
            If the file cannot be written. An existing file is then unchanged.
        """
        rewards = self.rewards if self.transition_rewards is None else self.transition_rewards
        arrays: dict[str, Any] = {
            "rewards": rewards,
            "initial": self.initial,
            "discount": self.discount,
            "terminal": self.terminal,
            **{name: value for name in _NAMES if (value := getattr(self, name)) is not None},
        }
        with replacing(path) as file:  # given a path, NumPy would append .npz
            if isinstance(self._matrix, np.ndarray):
                np.savez_compressed(file, transitions=self.transitions, **arrays)
            else:
                scipy_arrays: dict[str, Any] = {
                    "format": np.array(b"csr"),
                    "shape": np.array(self._matrix.shape),
                    "data": self._matrix.data,
                    "indices": self._matrix.indices,
                    "indptr": self._matrix.indptr,
                    "_is_array": np.array(True),
                }
                np.savez(file, **scipy_arrays, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> FiniteMDP:
        """Read a process from a NumPy archive (``.npz``) or a JSON file.

        Parameters
        ----------
        path : path
            The JSON file that the page *Build a world* downloads, or an archive of the arrays
            `transitions`, `rewards`, `initial`, `discount` and, optionally, `terminal`, `states`
            and `actions`, in the shapes of the constructor. Instead of `transitions` the archive
            may have the arrays of a matrix that `scipy.sparse.save_npz` writes in format "csr".
            Files of other languages may have zeros and ones for `terminal`, one column or row for
            `initial` and `terminal`, and an array of one number for `discount`.

        Returns
        -------
        FiniteMDP
            The process.

        Raises
        ------
        ValueError
            If the file has neither format, or its arrays do not describe a process.
        """
        try:
            arrays = read_json(path)
        except _UNREADABLE as error:
            raise ValueError(f"{path}: not a file of numbers that can be read ({error}).") from None
        try:
            if arrays is not None:
                _require_names(path, set(arrays), "file")
            else:
                with np.load(path, allow_pickle=False) as archive:
                    names = set(archive.files)
                    headers = {name: _read_header(archive, name) for name in names & _KNOWN}
                    _require_names(path, names)
                    _require_sizes(path, headers)
                    arrays = {name: archive[name] for name in names}
        except _BadContentError as error:
            raise ValueError(str(error)) from None
        except _UNREADABLE as error:
            # NumPy takes a file of another format for pickled objects and advises an unsafe option.
            reason = "it is not an archive of numbers" if "pickle" in str(error) else error
            raise ValueError(f"{path}: not a NumPy archive that can be read ({reason}).") from None
        if "transitions" not in arrays:
            arrays["transitions"] = _pop_csr(path, arrays)
        _reshape_foreign(arrays)
        try:
            return cls(
                arrays["transitions"],
                arrays["rewards"],
                arrays["initial"],
                arrays["discount"],
                arrays.get("terminal"),
                **{name: arrays.get(name) for name in _NAMES},
            )
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_quantecon(
        cls,
        ddp: Any,
        initial: ArrayLike | None = None,
        terminal: ArrayLike | None = None,
        *,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
    ) -> FiniteMDP:
        """Return the process of a `DiscreteDP` of QuantEcon.

        Parameters
        ----------
        ddp : quantecon.markov.DiscreteDP
            The problem, in any of its forms: dense or sparse, by state and action or by pair.
        initial, terminal, states, actions
            As for the constructor, because QuantEcon has no initial state and no ends. The default
            of `initial` is the uniform distribution of the states that are not terminal.

        Returns
        -------
        FiniteMDP
            The process. Large sparse problems stay sparse.

        Raises
        ------
        ValueError
            If an action is infeasible in a state; the message names both. Also if the constructor
            refuses the arrays, as at a discount of 1.
        """
        transitions, rewards = read_quantecon(ddp)
        if (infeasible := np.argwhere(np.isneginf(rewards))).size:
            states = as_names("states", states, rewards.shape[0])
            actions = as_names("actions", actions, rewards.shape[1])
            state, action = infeasible[0]
            raise ValueError(
                f"ddp: {_with_name('action', action, actions)} is infeasible in "
                f"{_with_name('state', state, states)} (reward -inf), but in a FiniteMDP all "
                "states have all actions; give the pair the reward and the transitions of a "
                "feasible action of the state."
            )
        return cls._imported(transitions, rewards, ddp.beta, initial, terminal, states, actions)

    @classmethod
    def from_pymdptoolbox(
        cls,
        transitions: Any,
        rewards: Any,
        discount: float,
        initial: ArrayLike | None = None,
        terminal: ArrayLike | None = None,
        *,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
    ) -> FiniteMDP:
        """Return the process of arrays in the order of pymdptoolbox, with the actions first.

        Parameters
        ----------
        transitions : array_like, shape (n_actions, n_states, n_states), or sequence of matrices
            Transition probabilities, or a dense or sparse matrix for each action.
        rewards : array_like or sequence of matrices
            Rewards of shape (n_states,), (n_states, n_actions) or (n_actions, n_states, n_states),
            or a dense or sparse matrix for each action.
        discount : float
            Discount factor in [0, 1).
        initial, terminal, states, actions
            As for the constructor. The default of `initial` is the uniform distribution of the
            states that are not terminal.

        Returns
        -------
        FiniteMDP
            The process. If some matrix is sparse, rewards of transitions are replaced by their
            expectations.

        Raises
        ------
        ValueError
            If the shapes do not agree, or the constructor refuses the arrays.
        """
        arrays = read_toolbox(transitions, rewards)
        return cls._imported(*arrays, discount, initial, terminal, states, actions)

    @classmethod
    def _imported(
        cls,
        transitions: Any,
        rewards: Floats,
        discount: float,
        initial: ArrayLike | None,
        terminal: ArrayLike | None,
        states: Sequence[str] | None,
        actions: Sequence[str] | None,
    ) -> FiniteMDP:
        """Return a process that starts evenly in the states that do not end, if `initial` is None.

        Other libraries have no initial distribution.
        """
        if initial is None:
            n = len(rewards)
            ends = np.zeros(n, bool)
            if terminal is not None:
                ends = as_bool_array("terminal", terminal, (n,))
            initial = np.where(ends, 0.0, 1.0 / max(1, int((~ends).sum())))
        return cls(
            transitions, rewards, initial, discount, terminal, states=states, actions=actions
        )

    def to_quantecon(self) -> Any:
        """Return the process as a `quantecon.markov.DiscreteDP`.

        Terminal states become loops without a reward, so that their value stays 0. Rewards of
        transitions are replaced by their expectations. The initial distribution and the names are
        left out: give them to `from_quantecon` on the way back.

        Returns
        -------
        quantecon.markov.DiscreteDP
            The problem by state and action, or by pair with a sparse matrix if the process is
            sparse.

        Raises
        ------
        ModuleNotFoundError
            If quantecon is not installed.
        """
        return as_quantecon(self)

    def to_world(self) -> str:
        """Return the text that opens the process in the page *Build a world*, after ``#``.

        Rewards of transitions are written as their expectations. The page runs the same numbers,
        without rounding.

        Returns
        -------
        str
            Names and values, as in ``world=1&graph=1*2&...``.

        Raises
        ------
        ValueError
            If there are more than 150 states, or not 2 to 8 actions, or the discount exceeds
            0.999999, or the text is too long for an address.

        Examples
        --------
        >>> FiniteMDP([[[1.0], [1.0]]], [[1.0, 0.0]], [1.0], 0.9).to_world()
        'world=1&graph=1*2&move=0_0&pay=0*1&start=0&discount=0.9'
        """
        return to_text(self)

    def __repr__(self) -> str:
        return (
            f"FiniteMDP({self.n_states} states, {self.n_actions} actions, "
            f"discount {self.discount:g}, {int(self.terminal.sum())} terminal)"
        )

    # Values

    @underflow_to_zero
    def evaluate(self, pi: ArrayLike) -> Evaluation:
        """Return the exact values, performance and occupancy of a policy.

        Parameters
        ----------
        pi : array_like, shape (n_states, n_actions)
            A policy: non-negative rows that sum to 1.

        Returns
        -------
        Evaluation
            The values, performance and occupancy, with the method and the residual of the solution.

        Raises
        ------
        ValueError
            If `pi` is not a policy.
        """
        return self._evaluate(self._checked_policy(pi))

    def _evaluate(self, policy: Floats) -> Evaluation:
        """Return the `Evaluation` of a policy that has been checked."""
        chain, rewards = self._under(policy)
        v, visits, method = self._solve(chain, rewards)
        return Evaluation(
            v=v,
            q=self._backup(v),
            performance=float(self.initial @ v),
            residual=_largest(v - rewards - self.discount * (chain @ v)),
            method=method,
            _occupancy=partial(_occupancy, visits, self.terminal),
        )

    def _solve(
        self, chain: Floats | scipy.sparse.csr_array, rewards: Floats
    ) -> tuple[Floats, Callable[[], Floats], str]:
        """Return the values of a Markov chain, a function that returns the visits, and the method.

        The visits include visits to terminal states.
        """
        if isinstance(chain, np.ndarray):
            v, visits = _solve_dense(chain, rewards, self.initial, self.discount)
            # rounding can make zero visits negative
            return v, partial(np.maximum, visits, 0.0), "directly"
        from pu_lib import sparse  # imports numba

        v, roundings, method = sparse.evaluate(chain, rewards, self.discount)
        method = f"by {method}, to {roundings:.1f} roundings of the terms of each state"
        return v, partial(_sparse_visits, chain, self.initial, self.discount), method

    @underflow_to_zero
    def backup(self, v: ArrayLike) -> Floats:
        r"""Return :math:`q(s,a) = r(s,a) + \gamma\sum_{s'}p(s'|s,a)v(s')`.

        Parameters
        ----------
        v : array_like, shape (n_states,)
            State values.

        Returns
        -------
        ndarray, shape (n_states, n_actions)
            State-action values.

        Raises
        ------
        ValueError
            If `v` is not an array of n_states finite numbers.
        """
        return self._backup(as_float_array("v", v, shape=(self.n_states,)))

    def _backup(self, v: Floats) -> Floats:
        ahead = np.asarray(self._matrix.dot(v)).reshape(self.n_states, self.n_actions)
        return np.asarray(self.rewards + self.discount * ahead)

    @underflow_to_zero
    def performance(self, pi: ArrayLike) -> float:
        r"""Return the expected discounted return of a policy (paper, eq. 1).

        Parameters
        ----------
        pi : array_like, shape (n_states, n_actions)
            A policy.

        Returns
        -------
        float
            :math:`\mathcal J(\pi)` for the initial distribution.
        """
        return self.evaluate(pi).performance

    @cached_property
    def uniform_performance(self) -> float:
        """The performance of the uniform policy."""
        return self.performance(np.full((self.n_states, self.n_actions), 1.0 / self.n_actions))

    @underflow_to_zero
    def normalised_performance(self, pi: ArrayLike, baseline: float | None = None) -> float:
        r"""Return :math:`(\mathcal J(\pi)-\mathcal J_b)/(\mathcal J_\star-\mathcal J_b)`.

        Parameters
        ----------
        pi : array_like, shape (n_states, n_actions)
            A policy.
        baseline : float, optional
            :math:`\mathcal J_b`. The default is the performance of the uniform policy (paper,
            section 4.1).

        Returns
        -------
        float
            The normalised performance: at most 1 up to rounding, and negative below the baseline.

        Raises
        ------
        ValueError
            If the baseline is at least the optimum, or policy iteration has not converged.
        """
        return self._normalised(self.performance(pi), baseline)

    def _normalised(self, performance: float, baseline: float | None = None) -> float:
        """Return the normalised performance of a given performance."""
        low = self.uniform_performance if baseline is None else as_float("baseline", baseline)
        gap = self.optimal().require().performance - low
        if not gap > 0.0:
            raise ValueError(f"baseline: expected less than the optimal performance, got {low}.")
        return (performance - low) / gap

    @underflow_to_zero
    def optimal(self, max_iterations: int | None = None) -> Optimum:
        """Compute optimal values and an optimal policy by policy iteration.

        The result is cached once it has converged; its arrays are read-only.

        Parameters
        ----------
        max_iterations : int, optional
            The largest number of policy evaluations, at least 1. The default is 1000 or 2 n_states,
            whichever is larger.

        Returns
        -------
        Optimum
            Optimal values and a deterministic optimal policy. `Optimum.converged` is true if the
            iterations were sufficient.

        Raises
        ------
        ValueError
            If `max_iterations` is less than 1.
        """
        most = max(1000, 2 * self.n_states) if max_iterations is None else max_iterations
        as_int("max_iterations", most, low=1)
        if self._optimum is None or not self._optimum.converged:
            self._optimum = self._policy_iteration(most)
        return self._optimum

    _optimum: Optimum | None = None

    def _policy_iteration(self, max_iterations: int) -> Optimum:
        """Improve the policy with the largest rewards greedily until no action improves.

        An action replaces another only if the relative improvement exceeds 1e-13, the rounding of
        the values of the state. The error of the solution can exceed 1e-13 if values cancel, and
        iteration could then continue forever. In exact arithmetic no evaluation lowers a value.
        Iteration therefore also ends if the last evaluation lowered a value and all improvements
        are within the rounding of the largest value.
        """
        if not isinstance(self._matrix, np.ndarray):
            return self._sparse_optimum(self._matrix, max_iterations)
        states = np.arange(self.n_states)
        actions = np.argmax(self.rewards, axis=1)
        iteration, converged, before = 0, False, np.full(self.n_states, -np.inf)
        while not converged and iteration < max_iterations:
            iteration += 1
            policy = np.zeros((self.n_states, self.n_actions))
            policy[states, actions] = 1.0
            evaluation = self._evaluate(policy)
            q = evaluation.q
            most, current = q.max(axis=1), q[states, actions]
            rounding, gain = 1e-13 * np.maximum(np.abs(most), np.abs(current)), most - current
            better, lowered = gain > rounding, evaluation.v < before - rounding
            small = bool((gain <= rounding.max()).all())
            converged = not better.any() or (small and bool(lowered.any()))
            actions, before = np.where(better, np.argmax(q, axis=1), actions), evaluation.v
        # The residual of the optimality equation bounds the distance to its solution. `rounded`
        # bounds the rounding error of q, so that the bound covers it.
        rounded = 4.0 * self.n_states * np.spacing(np.abs(self.rewards) + _largest(evaluation.v))
        above = (q + rounded).max(axis=1) - evaluation.v
        below = evaluation.v - (q - rounded).max(axis=1)
        bound = max(above.max(), below.max()) / (1.0 - self.discount)
        if not converged:
            ending = f"stopped after {max_iterations} evaluations"
        else:
            ending = "the remaining gains are rounding" if better.any() else "no action improves"
        for array in (evaluation.v, q, policy):
            array.setflags(write=False)
        return Optimum(
            v=evaluation.v,
            q=q,
            policy=policy,
            performance=evaluation.performance,
            iterations=iteration,
            converged=converged,
            message=f"Policy iteration: {ending}; values within {bound:.1e} of the optimal ones.",
        )

    def _sparse_optimum(self, matrix: scipy.sparse.csr_array, max_evaluations: int) -> Optimum:
        """Return the optimum of a large sparse process."""
        from pu_lib import sparse  # imports numba

        solution = sparse.optimal(matrix, self.rewards, self.discount, max_evaluations)
        bounds = sparse.bounds(matrix, self.rewards, self.discount, solution)
        policy = np.zeros((self.n_states, self.n_actions))
        policy[np.arange(self.n_states), solution.actions] = 1.0
        ending = "no action improves by more than rounding"
        if not solution.converged:
            ending = f"stopped after {max_evaluations} evaluations"
        where = "in proportion to the terms of each state" if bounds.per_state else "at every state"
        trust = "certified up to rounding" if bounds.certified else "unless values underflow"
        distance = f"values within {bounds.error.max():.1e} of the optimal ones, {where}, {trust}"
        if np.isinf(bounds.error).any():
            distance = "no bound on the distance from the optimal values is known"
        for array in (solution.v, solution.q, policy):
            array.setflags(write=False)
        return Optimum(
            v=solution.v,
            q=solution.q,
            policy=policy,
            performance=float(self.initial @ solution.v),
            iterations=solution.evaluations,
            converged=solution.converged,
            message=f"Modified policy iteration: {ending}; {distance}; {bounds.undecided} states "
            "with undecided ties.",
        )

    def _under(self, policy: Floats) -> tuple[Floats | scipy.sparse.csr_array, Floats]:
        """Return the transition matrix and the expected rewards of the Markov chain of a policy."""
        rewards = (policy * self.rewards).sum(axis=1)
        if isinstance(self._matrix, np.ndarray):
            blocks = self._matrix.reshape(self.n_states, self.n_actions, self.n_states)
            return np.matmul(policy[:, np.newaxis, :], blocks)[:, 0, :], rewards
        # Row s of `mixing` has pi(.|s) at the rows s * n_actions + a of the matrix.
        mixing = scipy.sparse.csr_array(
            (
                policy.ravel(),
                np.arange(policy.size),
                np.arange(0, policy.size + 1, self.n_actions),
            ),
            shape=(self.n_states, policy.size),
        )
        return scipy.sparse.csr_array(mixing @ self._matrix), rewards

    def _is_policy(self, policy: Floats) -> bool:
        """Return whether an array of the correct shape is a policy; NaN is not accepted."""
        # Runs call this at every step: the sum of squares is the cheaper test and is tried first.
        gaps = policy.dot(self._ones) - 1.0
        tolerance = self._policy_tolerance
        small = gaps.dot(gaps) <= tolerance**2 or np.abs(gaps).max() <= tolerance
        return bool(small and np.minimum.reduce(policy, axis=None) >= 0.0)

    def _checked_policy(self, pi: ArrayLike) -> Floats:
        """Return `pi` as floats; raise a `ValueError` that names the first invalid state."""
        policy = as_float_array("pi", pi, shape=(self.n_states, self.n_actions))
        if self._is_policy(policy):
            if self.discount * (1.0 + _SUM_TOLERANCE) ** 2 >= 1.0:
                self._require_contraction(policy)
            return policy
        tolerance, gaps = self._policy_tolerance, np.abs(policy.dot(self._ones) - 1.0)
        off = np.any(policy < 0.0, axis=1) | (gaps > tolerance)
        state = int(np.argmax(off))
        raise ValueError(
            f"pi: expected non-negative probabilities that sum to 1, got {policy[state]} "
            f"(sum {policy[state].sum():.12g}) at {self._state(state)}."
            + _sum_advice(policy[state].sum(), self.discount, tolerance)
        )

    def _require_contraction(self, policy: Floats) -> None:
        """Raise a `ValueError` if the discount times a row sum slightly above 1 is not below 1."""
        heaviest = float(self._under(policy)[0].sum(axis=1).max())
        if self.discount * heaviest >= 1.0:
            raise ValueError(
                f"pi: the probabilities after a state exceed 1 by {heaviest - 1.0:.1g}; times the "
                f"discount {self.discount!r} that is not below 1."
            )


def _with_name(kind: str, index: int, names: Sequence[str] | None) -> str:
    """Return a state or an action for a message, as in ``state 3 (low stock)``."""
    return f"{kind} {index}" + ("" if names is None else f" ({names[index]})")


def _largest(errors: Floats) -> float:
    return float(np.abs(errors).max())


def _solve_dense(
    chain: Floats, rewards: Floats, initial: Floats, discount: float
) -> tuple[Floats, Floats]:
    """Return the values and visits of a Markov chain, computed with one factorisation."""
    # A transposed array in C order is in the Fortran order of LAPACK, which then copies nothing.
    columns = np.multiply(chain.T, -discount, order="C")
    diagonal = columns.reshape(-1)[:: len(chain) + 1]
    diagonal += 1.0
    factors, pivots, _ = dgetrf(columns.T, overwrite_a=True)
    v, _ = dgetrs(factors, pivots, rewards)
    visits, _ = dgetrs(factors, pivots, initial, trans=1)
    return v, visits


def _sparse_visits(chain: scipy.sparse.csr_array, initial: Floats, discount: float) -> Floats:
    from pu_lib import sparse  # imports numba

    return sparse.visits(chain, initial, discount).x


def _occupancy(visits: Callable[[], Floats], terminal: NDArray[np.bool_]) -> Floats:
    return np.where(terminal, 0.0, visits())


class _BadContentError(Exception):
    """Raised if the names or headers of an archive do not describe a process."""


def _require_names(path: str | PathLike[str], names: set[str], kind: str = "archive") -> None:
    """Raise an error unless an archive or a file has the arrays of a process and no others."""
    sparse = "transitions" not in names and names >= set(_CSR_ARRAYS)
    known = _KNOWN - {"transitions"} if sparse else set(_ARRAYS)
    missing = known.intersection(_ARRAYS) - names - _OPTIONAL
    if missing:
        raise _BadContentError(f"{path}: the {kind} lacks {', '.join(sorted(missing))}.")
    if names - known:
        raise _BadContentError(
            f"{path}: the {kind} has {', '.join(sorted(names - known))}, where only "
            f"{', '.join(_ARRAYS)} are expected."
        )


def _read_header(archive: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the dtype of an array in an archive without unpacking the array."""
    with archive.zip.open(f"{name}.npy") as file:
        first = np.lib.format.read_magic(file) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    return shape, dtype


def _require_sizes(
    path: str | PathLike[str], headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
) -> None:
    """Raise an error if an array, or all of them, are larger than the rewards or the file allow.

    A small file can unpack to many gigabytes. Other mistakes are found by the constructor.
    """
    shape = headers["rewards"][0]
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] != shape[0]):
        raise _BadContentError(
            f"{path}: rewards: expected shape (n_states, n_actions) or (n_states, n_actions, "
            f"n_states), got {shape}."
        )
    pairs = shape[0] * shape[1]
    full = pairs * shape[0]
    most = {"rewards": full, "transitions": full, "data": full, "indices": full}
    most |= {"initial": shape[0], "terminal": shape[0], "indptr": pairs + 1}
    most |= {"states": shape[0], "actions": shape[1]}
    for name, (got, dtype) in headers.items():
        limit = max(most.get(name, 1), 100)  # so that messages on small arrays are the same
        kind = "names" if name in _NAMES else "numbers"
        large = dtype.itemsize > _LARGEST_ITEM and kind == "numbers"
        if math.prod(got) > limit or large:
            raise _BadContentError(
                f"{path}: {name}: expected {kind}, at most {limit} as the rewards of shape "
                f"{shape} say, got shape {got} of type {dtype}."
            )
    total = sum(math.prod(got) * dtype.itemsize for got, dtype in headers.values())
    if total > max(_LARGEST_EXPANSION * os.path.getsize(path), _SMALL_ARCHIVE):
        raise _BadContentError(
            f"{path}: the arrays take {total / 1e6:.0f} MB, more than {_LARGEST_EXPANSION} times "
            "the size of the file; save large arrays without compression."
        )


def _reshape_foreign(arrays: dict[str, Any]) -> None:
    """Give arrays of other languages, which may have only matrices, the shapes of Python."""
    if arrays["discount"].size == 1:
        arrays["discount"] = arrays["discount"].reshape(())
    for name in {"initial", "terminal"} & arrays.keys():
        if arrays[name].ndim == 2 and 1 in arrays[name].shape:
            arrays[name] = arrays[name].ravel()
    flags = arrays.get("terminal")
    if flags is not None and flags.dtype.kind in "iuf" and np.isin(flags, (0, 1)).all():
        arrays["terminal"] = flags == 1


def _pop_csr(path: str | PathLike[str], arrays: dict[str, Any]) -> scipy.sparse.csr_array:
    """Remove the arrays of a sparse matrix from `arrays` and return the matrix."""
    kind, shape, data, indices, indptr = (arrays.pop(name) for name in _CSR_ARRAYS)
    arrays.pop("_is_array", None)
    try:
        if kind.item() not in (b"csr", "csr"):
            raise ValueError(f"format: expected 'csr', got {kind.item()!r}")
        matrix = scipy.sparse.csr_array((data, indices, indptr), shape=tuple(shape))
    except _UNREADABLE as error:
        raise ValueError(f"{path}: no sparse matrix of transitions ({error}).") from None
    return matrix


def _discount(discount: float) -> float:
    value = as_float("discount", discount)
    if not 0.0 <= value < 1.0:
        raise ValueError(f"discount: expected a number in [0, 1), got {value!r}.")
    return value + 0.0  # -0.0 becomes 0.0


def _sum_tolerance(discount: float, n: int) -> float:
    """Return the largest error of a sum of n probabilities that is taken for rounding.

    The error is at least the rounding of the sum, n units in the last place.
    """
    most = min(_SUM_TOLERANCE, _VALUE_TOLERANCE * (1.0 - discount))
    return max(most, n * float(np.finfo(np.float64).eps))


def _sum_advice(total: float, discount: float = 0.0, tolerance: float = _SUM_TOLERANCE) -> str:
    """Return advice on probabilities with a sum close to 1, or an empty string."""
    error = abs(total - 1.0)
    if _SUM_TOLERANCE < error < 1e-5:
        return " Convert probabilities of type float32 to float64 before you divide."
    if tolerance < error <= _SUM_TOLERANCE:
        return (
            f" The sum is off by {error:.1e}; with discount {discount!r} at most {tolerance:.1e} "
            "is accepted, because values change in proportion to the error / (1 - discount)."
        )
    return ""
