"""Tabular Gymnasium environments as finite MDPs, with exact dynamics."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pu_lib.arrays import as_float, as_float_array, as_int, safe_repr
from pu_lib.mdp import FiniteMDP
from pu_lib.settings import naming_place

if TYPE_CHECKING:
    import gymnasium

_MAX_DENSE = 10_000_000  # entries, 80 MB in each of several arrays
_PLAYED_STEPS, _PLAYED_LENGTH = 500, 25  # steps played against the table, and steps of an episode
# Wrappers of Gymnasium that change neither dynamics nor rewards before the end of a trajectory.
_HARMLESS = {
    "Autoreset", "DtypeObservation", "FlattenObservation", "HumanRendering", "OrderEnforcing",
    "PassiveEnvChecker", "RecordEpisodeStatistics", "RecordVideo", "RenderCollection",
    "ReshapeObservation", "TimeLimit", "TransformObservation",
}  # fmt: skip


def from_gymnasium(env: gymnasium.Env[Any, Any] | str, discount: float = 0.99) -> FiniteMDP:
    """Return the MDP of a Gymnasium environment that has a transition table.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment or its id (FrozenLake-v1, CliffWalking-v1, Taxi-v4, ...). Gymnasium's
        wrappers that limit the time, check, record, render or transform observations are allowed.
        A copy of the environment is played for 500 steps with random actions, to check that its
        methods `step` and `reset` agree with the table; the environment itself is not changed.
        An object that has only the attributes ``P`` and ``initial_state_distrib`` is not played.
    discount : float
        Discount factor in [0, 1); Gymnasium does not define a discount.

    Returns
    -------
    FiniteMDP
        The MDP with an additional terminal state, which is the last state. Outcomes with the flag
        ``terminated`` lead to the terminal state. Outcomes with the same successor are merged:
        their probabilities are added and their rewards are averaged. Transitions with more than 10
        million entries, zeros included, are stored in sparse form, and rewards are then averaged
        over all outcomes of a state and an action. Time limits of wrappers are ignored, because
        they truncate trajectories without ending them.

    Raises
    ------
    ValueError
        If the id is unknown, the environment has no transition table or no distribution of the
        initial state, the table is malformed, a wrapper or an option of the environment changes
        dynamics or rewards that the table does not contain, or a played step or start has
        probability 0 in the table.

    Examples
    --------
    >>> from_gymnasium("FrozenLake-v1")
    FiniteMDP(17 states, 4 actions, discount 0.99, 1 terminal)
    """
    if isinstance(env, str):
        env = make_environment(env)
    if isinstance(env, type):
        raise ValueError(f"env: {env.__name__} is a class; make one: {env.__name__}().")
    inner = getattr(env, "unwrapped", env)
    name = getattr(getattr(env, "spec", None), "id", None) or safe_repr(inner)
    _require_table_only(env, inner, name)
    table, initial = getattr(inner, "P", None), getattr(inner, "initial_state_distrib", None)
    if table is not None and not isinstance(table, dict):
        raise ValueError(
            f"env: {name}: expected a dict P with P[state][action] = [(probability, successor, "
            f"reward, terminated), ...], got a {type(table).__name__}."
        )
    if not table or initial is None:
        lacking = "initial_state_distrib" if table else "P"
        raise ValueError(
            f"env: {name} has no transition table with an initial distribution (attributes P "
            f"and initial_state_distrib, of which {lacking} is missing); its dynamics cannot be "
            "read exactly."
        )
    n_states, n_actions = len(table), _count_actions(table)
    pairs: list[int] = []
    successors: list[int] = []
    probabilities: list[float] = []
    earned: list[float] = []  # probability times reward
    for state, action, outcome in _outcomes(table):
        where = f"env: state {state}, action {action}"
        try:
            chance, successor, reward, terminated = outcome
        except (TypeError, ValueError):
            raise ValueError(
                f"{where}: expected (probability, successor, reward, terminated), got "
                f"{safe_repr(outcome)}."
            ) from None
        after = as_int(f"{where}: successor", successor, low=0, high=n_states - 1)
        share = as_float(f"{where}: probability", chance, low=0.0, high=1.0)
        if not isinstance(terminated, (bool, np.bool_)):
            raise ValueError(
                f"{where}: terminated: expected True or False, got {safe_repr(terminated)}."
            )
        pairs.append(state * n_actions + action)
        successors.append(n_states if terminated else after)
        probabilities.append(share)
        earned.append(share * as_float(f"{where}: reward", reward))
    initial = as_float_array("env: initial_state_distrib", initial, shape=(n_states,))
    _require_played(inner, name, table, initial)
    shape = ((n_states + 1) * n_actions, n_states + 1)
    transitions: NDArray[np.float64] | scipy.sparse.csr_array
    rewards: NDArray[np.float64]
    if shape[0] * shape[1] > _MAX_DENSE:
        transitions = scipy.sparse.csr_array((probabilities, (pairs, successors)), shape=shape)
        rewards = np.zeros(shape[0])
        np.add.at(rewards, pairs, earned)
        rewards = rewards.reshape(n_states + 1, n_actions)
    else:
        dense, total = np.zeros(shape), np.zeros(shape)
        np.add.at(dense, (pairs, successors), probabilities)
        np.add.at(total, (pairs, successors), earned)
        rewards = np.divide(total, dense, out=np.zeros(shape), where=dense > 0.0)
        rewards = rewards.reshape(n_states + 1, n_actions, n_states + 1)
        transitions = dense.reshape(rewards.shape)
    return FiniteMDP(
        transitions,
        rewards,
        np.append(initial, 0.0),
        discount,
        np.arange(n_states + 1) == n_states,
    )


def _count_actions(table: Mapping[Any, Any]) -> int:
    """Return the number of actions; raise a `ValueError` unless states and actions count from 0."""
    n_actions = len(table[0]) if isinstance(table.get(0), dict) else 0
    if n_actions == 0:
        raise ValueError(
            f"env: expected states 0 to {len(table) - 1} in the table P, each with a dict of "
            f"actions, got {safe_repr(table.get(0))} for state 0."
        )
    for state in range(len(table)):
        actions = table.get(state)
        if not isinstance(actions, dict) or set(actions) != set(range(n_actions)):
            raise ValueError(
                f"env: the table of transitions has no actions 0 to {n_actions - 1} in state "
                f"{state}; each of its {len(table)} states needs the same ones."
            )
    return n_actions


def _require_table_only(env: Any, inner: Any, name: str) -> None:
    """Raise a `ValueError` if the environment has dynamics or rewards that are not in its table."""
    while env is not inner:
        kind = type(env)
        if kind.__module__.partition(".")[0] != "gymnasium" or kind.__name__ not in _HARMLESS:
            raise ValueError(
                f"env: the wrapper {kind.__name__} of {name} may change dynamics or rewards, which "
                "are read from the table of the inner environment; pass env.unwrapped to ignore "
                "all wrappers."
            )
        env = env.env
    if getattr(inner, "fickle_passenger", False) and getattr(inner, "fickle_probability", 1.0) > 0:
        raise ValueError(
            f"env: {name} has the option fickle_passenger, whose dynamics are not in its table P."
        )


def _require_played(
    env: Any, name: str, table: Mapping[Any, Any], initial: NDArray[np.float64]
) -> None:
    """Play a copy of an environment; raise a `ValueError` if an outcome is not in the table.

    A subclass may override `step` or `reset` and inherit a table that does not describe them.
    """
    usual = getattr(sys.modules.get("gymnasium"), "Env", object)
    if getattr(type(env), "step", None) in (None, getattr(usual, "step", None)):
        return  # an object without dynamics of its own
    copy, rng = _copy(env, table), np.random.default_rng(0)
    state, taken = None, 0
    for step in range(_PLAYED_STEPS):
        action = int(rng.integers(len(table[0])))
        call = "reset" if state is None else f"step in state {state} with action {action}"
        try:
            if state is None:
                observed, _ = copy.reset(**({} if step else {"seed": 0}))
            else:
                observed, reward, terminated, truncated, _ = copy.step(action)
        except Exception as error:
            raise _unlike_table(name, f"{call} raises {type(error).__name__}: {error}") from None
        after = as_int(f"env: {name}: observation of {call}", observed, low=0, high=len(table) - 1)
        if state is None:
            if not initial[after] > 0.0:
                raise _unlike_table(name, f"{call} gives state {after}, no start of its table")
            state, taken = after, 0
            continue
        reward = as_float(f"env: {name}: reward of {call}", reward)
        for chance, successor, paid, ends in table[state][action]:
            same = successor == after and bool(ends) == bool(terminated)
            if same and chance > 0.0 and math.isclose(paid, reward, rel_tol=1e-6):
                break
        else:
            result = f"state {after}, reward {reward} and terminated={terminated}"
            raise _unlike_table(name, f"{call} gives {result}, no outcome of its table")
        taken += 1
        over = terminated or truncated or taken == _PLAYED_LENGTH
        state = None if over else after


def _unlike_table(name: str, difference: str) -> ValueError:
    return ValueError(
        f"env: {name}: {difference}. The process is read from the table P; to read the table "
        "alone, pass types.SimpleNamespace(P=..., initial_state_distrib=...) with the attributes "
        "of the environment."
    )


def _copy(env: Any, table: Mapping[Any, Any]) -> Any:
    """Return a copy of an environment that shares the table and what cannot be copied.

    The copy does not render. Gymnasium's own way to copy would construct a new environment.
    """
    copy = object.__new__(type(env))
    memo = {id(env): copy, id(table): table}
    for name, value in vars(env).items():
        try:
            vars(copy)[name] = deepcopy(value, memo)
        except Exception:  # a window, for example
            vars(copy)[name] = value
    copy.render_mode = None
    return copy


def _outcomes(table: Mapping[Any, Any]) -> Iterator[tuple[int, int, Any]]:
    """Yield each outcome of each state-action pair."""
    for state, actions in table.items():
        for action, outcomes in actions.items():
            for outcome in outcomes:
                yield state, action, outcome


def make_environment(env_id: str) -> gymnasium.Env[Any, Any]:
    """Return the environment with the given id, or raise a `ValueError` with the reason."""
    try:
        import gymnasium
    except ImportError:
        raise ValueError(
            "env: an environment's id needs the package gymnasium: pip install 'pu-lib[empirical]'."
        ) from None
    with naming_place("env", env_id, "cannot be made"):
        return gymnasium.make(env_id)
