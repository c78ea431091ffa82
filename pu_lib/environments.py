"""Gymnasium environments: exact finite MDPs from their tables, and estimated ones from samples.

`from_gymnasium` reads an environment that has a table of transitions. Any other environment with
discrete actions is played by `reset` and `step`: `estimate` counts a finite MDP out of the
transitions, and `pu_lib.learn` learns a policy. Observations are states if they consist of
integers, booleans or text. Other observations are converted by a function `encode`, such as the
result of `bins`.
"""

from __future__ import annotations

import math
import sys
import warnings
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pu_lib.arrays import as_float, as_float_array, as_int, safe_repr
from pu_lib.extras import naming_the_extra
from pu_lib.mdp import FiniteMDP
from pu_lib.progress import steps as shown_steps
from pu_lib.settings import naming_place

if TYPE_CHECKING:
    import gymnasium

__all__ = ["Estimate", "bins", "estimate", "from_gymnasium"]

Environment = Any  # a Gymnasium environment, its id, or a function that makes one
Encoder = Callable[[Any], Hashable]

_MAX_DENSE = 10_000_000  # entries, 80 MB in each of several arrays
_PLAYED_STEPS, _PLAYED_LENGTH = 500, 25  # steps played against the table, and steps of an episode
# Wrappers of Gymnasium that change neither dynamics nor rewards before the end of a trajectory.
_HARMLESS = {
    "Autoreset", "DtypeObservation", "FlattenObservation", "HumanRendering", "OrderEnforcing",
    "PassiveEnvChecker", "RecordEpisodeStatistics", "RecordVideo", "RenderCollection",
    "ReshapeObservation", "TimeLimit", "TransformObservation",
}  # fmt: skip


def from_gymnasium(
    env: gymnasium.Env[Any, Any] | str, discount: float = 0.99, **kwargs: Any
) -> FiniteMDP:
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
    **kwargs
        Options of the environment with this id, such as ``map_name="8x8"`` of FrozenLake-v1.

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
        If the id or an option is unknown, the environment has no transition table or no
        distribution of the initial state, the table is malformed, a wrapper or an option of the
        environment changes dynamics or rewards that the table does not contain, or a played step or
        start has probability 0 in the table.

    Examples
    --------
    >>> from_gymnasium("FrozenLake-v1")
    FiniteMDP(17 states, 4 actions, discount 0.99, 1 terminal)
    """
    if isinstance(env, str):
        env = make_environment(env, **kwargs)
    elif kwargs:
        raise ValueError(
            f"{next(iter(kwargs))}: options are for the id of an environment, got "
            f"{safe_repr(env)}; set them where the environment is made."
        )
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
            "read exactly. Learn from samples with pu_lib.learn(env, update, steps) or "
            "pu_lib.compare(env, updates), or estimate the table with "
            "pu_lib.estimate(env, steps).process."
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
    terminal = np.zeros(n_states, np.bool_)
    return _process_of(
        pairs, successors, probabilities, earned, initial, terminal, n_actions, discount
    )


def _process_of(
    pairs: Sequence[int],
    successors: Sequence[int],
    probabilities: Sequence[float],
    earned: Sequence[float],
    initial: NDArray[np.float64],
    terminal: NDArray[np.bool_],
    n_actions: int,
    discount: float,
) -> FiniteMDP:
    """Return the process of a list of outcomes, with an additional terminal state.

    An outcome has a pair (the state times `n_actions`, plus the action), a successor, a
    probability, and this probability times the reward.
    """
    n_states = len(initial)
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
    ends = np.append(terminal, True)
    return FiniteMDP(transitions, rewards, np.append(initial, 0.0), discount, ends)


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


def make_environment(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Return the environment with the given id and options; raise a `ValueError` if it has none."""
    try:
        import gymnasium
    except ImportError:
        raise ValueError(
            "env: an environment's id needs the package gymnasium: pip install 'pu-lib[empirical]'."
        ) from None
    with naming_place("env", env_id, "cannot be made"):
        return gymnasium.make(env_id, **kwargs)


# Environments that are played


class Player:
    """An environment that is played by `reset` and `step`, with hashable states.

    Episodes end as the environment says or after `cut` steps.

    Parameters
    ----------
    env : gymnasium.Env, str or callable
        An environment with discrete actions, of which a copy is played; its id; or a function
        without arguments that makes it.
    encode : callable, optional
        Converts an observation to a state.
    cut : int
        Largest number of steps of an episode.

    Attributes
    ----------
    n_actions : int
        Number of actions, which are counted from 0.
    name : str
        The id of the environment, or the name of its class.
    options : dict of str to str
        The options with which the environment was made, as text.
    threshold : float or None
        The return at which the environment is considered solved, if it has one.
    """

    def __init__(self, env: Environment, encode: Encoder | None, cut: int) -> None:
        self._env = _fresh(env)
        self._encode, self._cut, self._taken = encode, cut, 0
        inner = getattr(self._env, "unwrapped", self._env)
        spec = getattr(self._env, "spec", None)
        self.name: str = getattr(spec, "id", None) or type(inner).__name__
        self.options = {key: repr(x) for key, x in (getattr(spec, "kwargs", None) or {}).items()}
        self.threshold: float | None = getattr(spec, "reward_threshold", None)
        with naming_the_extra():
            from gymnasium.spaces import Discrete
        space = getattr(self._env, "action_space", None)
        if not isinstance(space, Discrete):
            raise ValueError(
                f"env: {self.name}: expected discrete actions, gymnasium.spaces.Discrete, got "
                f"{safe_repr(space)}."
            )
        self.n_actions, self._first = int(space.n), int(space.start)
        if self.n_actions < 2:
            raise ValueError(f"env: {self.name}: expected at least two actions, got 1.")

    def reset(self, seed: int | None = None) -> Hashable:
        """Begin an episode and return its first state; `seed` seeds the environment."""
        made = self._env.reset(seed=seed) if seed is not None else self._env.reset()
        self._require(made, 2, "reset", "(observation, info)")
        self._taken = 0
        return self._state(made[0])

    def step(self, action: int) -> tuple[Hashable, float, bool, bool]:
        """Take an action; return the state, the reward, and whether state and episode end."""
        made = self._env.step(self._first + action)
        self._require(made, 5, "step", "(observation, reward, terminated, truncated, info)")
        observation, reward, terminated, truncated, _ = made
        self._taken += 1
        reward = as_float(f"env: {self.name}: reward", reward)
        over = bool(terminated or truncated or self._taken == self._cut)
        return self._state(observation), reward, bool(terminated), over

    def _require(self, made: Any, count: int, method: str, expected: str) -> None:
        if not isinstance(made, tuple) or len(made) != count:
            raise ValueError(
                f"env: {self.name}: {method} must return {expected}, got {safe_repr(made)}."
            )

    def _state(self, observation: Any) -> Hashable:
        return _as_key(observation if self._encode is None else self._encode(observation), self)


def _as_key(value: Any, player: Player) -> Hashable:
    """Return a state as nested tuples of numbers and text, which are hashable and can be saved."""
    if type(value) in (int, str, bool):
        return value  # type: ignore[no-any-return]
    if isinstance(value, (tuple, list)):
        return tuple([_as_key(each, player) for each in value])
    if isinstance(value, (np.ndarray, np.generic)):
        return _as_key(value.tolist(), player)
    if isinstance(value, Mapping):
        return tuple([(key, _as_key(value[key], player)) for key in sorted(value)])
    if isinstance(value, float) and player._encode is not None and math.isfinite(value):
        return value
    if player._encode is None:
        raise ValueError(
            f"env: {player.name}: an observation has {safe_repr(value)}, but states are integers, "
            "booleans, text, and tuples or arrays of these; give encode, such as "
            "bins(env.observation_space, 10)."
        )
    raise ValueError(
        f"encode: expected a number, text, or a tuple or array of these, got {safe_repr(value)}."
    )


def _fresh(env: Environment) -> Any:
    """Return a new environment, or a copy of an environment that was made by the user."""
    if isinstance(env, str):
        return make_environment(env)
    if callable(env) and (isinstance(env, type) or not hasattr(env, "step")):
        with naming_place("env", getattr(env, "__name__", repr(env)), "failed without arguments"):
            env = env()
    else:
        try:
            env = deepcopy(env)
        except Exception as error:
            raise ValueError(
                f"env: {safe_repr(env)} cannot be copied ({error}); give a function that makes it, "
                "such as lambda: gymnasium.make(...)."
            ) from None
    if not (hasattr(env, "reset") and hasattr(env, "step")):
        raise ValueError(
            "env: expected a Gymnasium environment, its id or a function that makes one, got "
            f"{safe_repr(env)}."
        )
    return env


@dataclass(frozen=True)
class _Bins:
    """The places of the numbers of an observation among the edges of each dimension."""

    edges: tuple[tuple[float, ...], ...]

    def __call__(self, observation: Any) -> tuple[int, ...]:
        """Return the number of the bin in each dimension, counted from 0."""
        numbers = np.ravel(observation).tolist()
        if len(numbers) != len(self.edges) or any(x != x for x in numbers):
            raise ValueError(
                f"encode: expected an observation of {len(self.edges)} numbers, got "
                f"{safe_repr(observation)}."
            )
        return tuple(map(bisect, self.edges, numbers))


def bins(space: gymnasium.spaces.Box, counts: int | Sequence[int]) -> Encoder:
    r"""Return a function that converts observations in a box to tuples of bins.

    The bins of a dimension with finite bounds have equal width. A dimension without an upper or a
    lower bound is measured by :math:`\arctan x`, so that the edges of 6 bins of the real line are
    -1.73, -0.58, 0, 0.58 and 1.73. For other edges, give the box
    ``gymnasium.spaces.Box(low, high)`` in which the observations mostly are: numbers outside of the
    bounds are in the first or the last bin.

    Parameters
    ----------
    space : gymnasium.spaces.Box
        The box, such as ``env.observation_space``.
    counts : int or sequence of int
        The number of bins of each dimension, or one number for all dimensions.

    Returns
    -------
    callable
        A value for the argument `encode` of `learn`, `compare` and `estimate`.

    Raises
    ------
    ValueError
        If the space is not a box, or the counts are not positive or not one for each dimension.

    Examples
    --------
    >>> import gymnasium
    >>> encode = bins(gymnasium.spaces.Box(0.0, 1.0, (2,)), [2, 10])
    >>> encode([0.7, 0.05]), encode([-3.0, 3.0])
    ((1, 0), (0, 9))
    """
    with naming_the_extra():
        from gymnasium.spaces import Box
    if not isinstance(space, Box):
        raise ValueError(f"space: expected a gymnasium.spaces.Box, got {safe_repr(space)}.")
    low, high = (np.ravel(bound).astype(np.float64) for bound in (space.low, space.high))
    each = [counts] * len(low) if isinstance(counts, (int, np.integer)) else list(counts)
    if len(each) != len(low):
        raise ValueError(f"counts: expected {len(low)} numbers of bins, got {len(each)}.")
    edges = []
    for start, end, count in zip(low, high, each, strict=True):
        shares = np.arange(1, as_int("counts", count, low=1)) / count
        # Gymnasium also writes the largest float for a missing bound.
        if max(-start, end) < 1e30:
            edges.append(tuple((start + shares * (end - start)).tolist()))
        else:
            first, last = np.arctan(start), np.arctan(end)
            edges.append(tuple(np.tan(first + shares * (last - first)).tolist()))
    return _Bins(tuple(edges))


# Estimates


@dataclass(frozen=True, eq=False)
class Estimate:
    """A finite MDP that was counted out of the transitions of an environment.

    Attributes
    ----------
    process : FiniteMDP
        The process. State number i is ``states[i]``, and the last state is the end of a
        trajectory. Its probabilities are relative frequencies and its rewards are means.
    states : tuple
        The states that were seen, in the order in which they were first seen.
    counts : ndarray of int, shape (n_states, n_actions)
        The number of times each action was taken in each of `states`.
    unseen : tuple of pairs
        The states and actions that were never tried.
    """

    process: FiniteMDP
    states: tuple[Hashable, ...]
    counts: NDArray[np.int64] = field(repr=False)
    unseen: tuple[tuple[Hashable, int], ...]

    def __repr__(self) -> str:
        named = ", ".join(f"state {state} action {action}" for state, action in self.unseen[:5])
        more = f" and {len(self.unseen) - 5} more" * (len(self.unseen) > 5)
        return (
            f"Estimate({len(self.states)} states, {self.counts.shape[1]} actions, "
            f"{self.counts.sum()} steps; unseen: {named or 'none'}{more})"
        )


def estimate(
    env: Environment,
    steps: int,
    *,
    discount: float = 0.99,
    encode: Encoder | None = None,
    cut: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Estimate the finite MDP of an environment from steps with random actions.

    Every action is uniformly random. A pair of state and action that was never tried has the mean
    outcome of the pairs of its state that were tried, so that no policy gains by it. A state in
    which no action was tried is terminal. An interrupt (Ctrl-C) ends the steps with a warning.

    Parameters
    ----------
    env : gymnasium.Env, str or callable
        An environment with discrete actions, of which a copy is played; its id; or a function
        without arguments that makes it.
    steps : int
        Number of steps, at least 1.
    discount : float
        Discount factor in [0, 1).
    encode : callable, optional
        Converts an observation to a state: numbers, text, or tuples of these. Required if
        observations have floats. The process is a good model only if the state is all that matters
        for the future.
    cut : int
        Largest number of steps of an episode. Episodes that are cut or truncated do not end in a
        terminal state.
    seed : int
        Seed of the environment and the actions.

    Returns
    -------
    Estimate
        The process, with its states, counts and unseen pairs.

    Raises
    ------
    ValueError
        If the environment cannot be made or played, its actions are not discrete, an observation
        is no state, or an argument is out of range.

    Examples
    --------
    >>> cliff = estimate("CliffWalking-v1", 5000)
    >>> cliff.process
    FiniteMDP(38 states, 4 actions, discount 0.99, 1 terminal)
    """
    steps = as_int("steps", steps, low=1)
    player = Player(env, encode, as_int("cut", cut, low=1))
    rng = np.random.default_rng(as_int("seed", seed, low=0))
    rows: dict[Hashable, int] = {}
    starts: Counter[int] = Counter()
    outcomes: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    earned: dict[tuple[int, int, int], float] = defaultdict(float)

    def row(state: Hashable) -> int:
        return rows.setdefault(state, len(rows))

    state, taken = row(player.reset(int(rng.integers(2**31)))), 0
    starts[state] += 1
    try:
        for taken in shown_steps(steps):  # noqa: B007
            action = int(rng.integers(player.n_actions))
            key, reward, terminated, over = player.step(action)
            after = -1 if terminated else row(key)
            outcomes[state, action][after] += 1
            earned[state, action, after] += reward
            state = after
            if over:
                state = row(player.reset())
                starts[state] += 1
    except KeyboardInterrupt:
        if not outcomes:
            raise
        warnings.warn(f"estimate: interrupted after {taken} of {steps} steps.", stacklevel=2)
    return _counted(rows, starts, outcomes, earned, player.n_actions, discount)


def _counted(
    rows: Mapping[Hashable, int],
    starts: Mapping[int, int],
    outcomes: Mapping[tuple[int, int], Mapping[int, int]],
    earned: Mapping[tuple[int, int, int], float],
    n_actions: int,
    discount: float,
) -> Estimate:
    """Return the estimate of counted outcomes and sums of rewards; the successor -1 is the end."""
    states, counts = tuple(rows), np.zeros((len(rows), n_actions), np.int64)
    for (state, action), successors in outcomes.items():
        counts[state, action] = sum(successors.values())
    entries: list[tuple[int, int, float, float]] = []
    for state, action in np.ndindex(*counts.shape):
        tried = [action] if counts[state, action] else np.flatnonzero(counts[state]).tolist()
        total = sum(counts[state, tried].tolist())
        entries += [
            (
                state * n_actions + action,
                after % (len(states) + 1),
                count / total,
                earned[state, other, after] / total,
            )
            for other in tried
            for after, count in outcomes[state, other].items()
        ]
    pairs, after, shares, rewards = zip(*entries, strict=True)
    initial = np.array([starts.get(state, 0) for state in range(len(states))])
    initial = initial / initial.sum()
    terminal = counts.sum(axis=1) == 0
    return Estimate(
        process=_process_of(pairs, after, shares, rewards, initial, terminal, n_actions, discount),
        states=states,
        counts=counts,
        unseen=tuple((states[s], a) for s, a in np.argwhere(counts == 0).tolist()),
    )
