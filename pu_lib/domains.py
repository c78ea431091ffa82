r"""The domains of the paper (section 4, appendix B.1), and any tabular Gymnasium environment.

Chain
    States :math:`s_0,\dots,s_{n-1}`, the last one terminal. Action :math:`a_1` jumps to the end and
    pays :math:`\beta\gamma^{n-2}`; :math:`a_2` walks, and the last walk pays 1. Hence
    :math:`\mathcal J(\pi_\star)=\gamma^{n-2}` and the policy that always jumps earns
    :math:`\beta\gamma^{n-2}`. The paper's figure 1 has :math:`\beta=0.8`, its appendix 0.7.
Cliff
    The chain with :math:`a_3`, which ends the trajectory and pays nothing.
Duplicated chain
    The chain with :math:`|A|-1` copies of the walking action, all optimal.
Random MDP
    A Garnet: each state-action pair has `branching` distinct successors, drawn uniformly, with the
    lengths of a uniform partition of [0, 1] as probabilities. One goal state is terminal and
    entering it pays 1. Among the goals with :math:`v_\star(s_0) > \gamma^{50}` (the start is not
    too far from the goal), the one with the smallest :math:`v_\star(s_0)` is taken.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.mdp import FiniteMDP

__all__ = ["bandit", "chain", "cliff", "duplicated_chain", "from_gymnasium", "random_mdp"]

Floats = NDArray[np.float64]
IfNone = Literal["redraw", "last", "raise"]


def bandit(rewards: ArrayLike) -> FiniteMDP:
    """Return a one-state problem that ends after one action, so that q equals the rewards.

    Parameters
    ----------
    rewards : array_like, shape (n_actions,)
        Reward of each action, at least two.

    Raises
    ------
    ValueError
        If there are fewer than two finite rewards.
    """
    paid = np.asarray(rewards, dtype=np.float64)
    if paid.ndim != 1 or len(paid) < 2:
        raise ValueError(
            f"rewards: expected at least two numbers in a row, got shape {paid.shape}."
        )
    transitions = np.zeros((2, len(paid), 2))
    transitions[0, :, 1] = 1.0
    return FiniteMDP(
        transitions, np.stack([paid, np.zeros_like(paid)]), [1.0, 0.0], 0.0, np.array([False, True])
    )


def chain(
    n_states: int = 10, beta: float = 0.8, discount: float = 0.99, last_state_tie: bool = False
) -> FiniteMDP:
    r"""Return the chain of the paper's figure 1; see the module's text.

    Parameters
    ----------
    n_states : int
        :math:`|S| \ge 2`, the terminal state included.
    beta : float
        What jumping earns at :math:`s_0`, relative to walking to the end.
    discount : float
        Discount factor in (0, 1).
    last_state_tie : bool
        If true both actions pay 1 in the last state before the end, as in the code that goes with
        the paper's predecessor; in the paper's figure jumping pays the same everywhere.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    return _walk(n_states, beta, discount, copies=1, cliff=False, last_state_tie=last_state_tie)


def cliff(
    n_states: int = 7, beta: float = 0.8, discount: float = 0.99, last_state_tie: bool = False
) -> FiniteMDP:
    """Return the chain with a third action that ends the trajectory and pays nothing.

    The parameters are those of `chain`.
    """
    return _walk(n_states, beta, discount, copies=1, cliff=True, last_state_tie=last_state_tie)


def duplicated_chain(
    n_states: int = 10,
    n_actions: int = 3,
    beta: float = 0.8,
    discount: float = 0.99,
    last_state_tie: bool = False,
) -> FiniteMDP:
    """Return the chain whose optimal action stands `n_actions` - 1 times.

    The other parameters are those of `chain`; with two actions it is the chain.
    """
    if n_actions < 2:
        raise ValueError(f"n_actions: expected at least two, got {n_actions}.")
    return _walk(
        n_states, beta, discount, copies=n_actions - 1, cliff=False, last_state_tie=last_state_tie
    )


def _walk(
    n_states: int, beta: float, discount: float, copies: int, cliff: bool, last_state_tie: bool
) -> FiniteMDP:
    """Build a chain: action 0 jumps, the next `copies` walk, then one falls if `cliff`."""
    if n_states < 2:
        raise ValueError(f"n_states: expected at least two, got {n_states}.")
    if not np.isfinite(beta):
        raise ValueError(f"beta: expected a finite number, got {beta}.")
    if not 0.0 < discount < 1.0:
        raise ValueError(f"discount: expected a number in (0, 1), got {discount}.")
    end, n_actions = n_states - 1, 1 + copies + int(cliff)
    transitions = np.zeros((n_states, n_actions, n_states))
    rewards = np.zeros((n_states, n_actions))
    for state in range(end):
        transitions[state, :, end] = 1.0
        transitions[state, 1 : 1 + copies] = np.eye(n_states)[state + 1]
    rewards[:end, 0] = beta * _power(discount, n_states - 2)
    rewards[end - 1, 1 : 1 + copies] = 1.0
    if last_state_tie:
        rewards[end - 1, 0] = 1.0
    return FiniteMDP(
        transitions, rewards, np.eye(n_states)[0], discount, np.arange(n_states) == end
    )


def _power(base: float, exponent: int) -> float:
    """Return the correctly rounded power: that of the system's library may differ by a bit."""
    return float(Fraction(base) ** exponent)


def random_mdp(
    rng: np.random.Generator | int,
    n_states: int = 100,
    n_actions: int = 4,
    branching: int = 2,
    discount: float = 0.99,
    horizon: float = 50.0,
    if_none: IfNone = "redraw",
) -> FiniteMDP:
    r"""Return a Random MDP (paper, section 4.1; Laroche et al. 2019, appendix B.1.3).

    Parameters
    ----------
    rng : numpy.random.Generator or int
        Source of randomness, or a seed for one.
    n_states, n_actions : int
        The paper has 100 states and 4 actions.
    branching : int
        Successors of each state-action pair, between 1 and `n_states`.
    discount : float
        Discount factor in (0, 1).
    horizon : float
        The goal is the hardest state with :math:`v_\star(s_0) > \gamma^{\text{horizon}}`.
    if_none : {"redraw", "last", "raise"}
        What to do when no state is near enough: draw new transitions, take the last state (what
        the predecessor's code does without saying), or raise.

    Returns
    -------
    FiniteMDP
        Starts in state 0; its goal is terminal; `transition_rewards` is set.

    Raises
    ------
    ValueError
        If a parameter is out of range, or no goal qualifies and `if_none` is ``"raise"``.
    """
    if not 1 <= branching <= n_states:
        raise ValueError(f"branching: expected 1 to {n_states} successors, got {branching}.")
    if n_states < 2:
        raise ValueError(f"n_states: expected at least two, got {n_states}.")
    if if_none not in get_args(IfNone):
        raise ValueError(f"if_none: expected one of {get_args(IfNone)}, got {if_none!r}.")
    generator = np.random.default_rng(rng)
    while True:
        transitions = _garnet(generator, n_states, n_actions, branching)
        candidates = [_with_goal(transitions, goal, discount) for goal in range(1, n_states)]
        values = np.array([candidate.optimal().v[0] for candidate in candidates])
        near = values > discount**horizon
        if np.any(near):
            return candidates[int(np.argmin(np.where(near, values, np.inf)))]
        if if_none == "last":
            return candidates[-1]
        if if_none == "raise":
            raise ValueError(
                f"random_mdp: no goal has v*(s_0) > {discount**horizon:.4g}; the best has "
                f"{values.max():.4g}."
            )


def _garnet(rng: np.random.Generator, n_states: int, n_actions: int, branching: int) -> Floats:
    """Draw transitions, shape (n_states, n_actions, n_states)."""
    transitions = np.zeros((n_states, n_actions, n_states))
    for state in range(n_states):
        for action in range(n_actions):
            successors = rng.choice(n_states, size=branching, replace=False)
            cuts = np.sort(rng.random(branching - 1))
            transitions[state, action, successors] = np.diff(cuts, prepend=0.0, append=1.0)
    return transitions


def _with_goal(transitions: Floats, goal: int, discount: float) -> FiniteMDP:
    """Return the process that ends, and pays 1, on entering `goal`."""
    n_states, n_actions, _ = transitions.shape
    outgoing = transitions.copy()
    outgoing[goal] = 0.0
    paid = np.zeros((n_states, n_actions, n_states))
    paid[:, :, goal] = 1.0
    return FiniteMDP(outgoing, paid, np.eye(n_states)[0], discount, np.arange(n_states) == goal)


def from_gymnasium(env: Any, discount: float = 0.99) -> FiniteMDP:
    """Return the process of a Gymnasium environment that has a transition table.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment, wrapped or not, or its id (FrozenLake-v1, CliffWalking-v1, Taxi-v4, ...).
    discount : float
        Discount factor in [0, 1); Gymnasium has none.

    Returns
    -------
    FiniteMDP
        Outcomes with the same successor are merged: probabilities add, rewards are averaged.
        Outcomes flagged as terminated lead to one extra, terminal state, the last one. Time limits
        of wrappers cut trajectories without ending them, so they have no counterpart here.

    Raises
    ------
    ValueError
        If the id is unknown, or the environment has no table of transitions or no distribution of
        the initial state.
    """
    if isinstance(env, str):
        env = _make(env)
    inner = getattr(env, "unwrapped", env)
    table, initial = getattr(inner, "P", None), getattr(inner, "initial_state_distrib", None)
    if not isinstance(table, dict) or initial is None:
        raise ValueError(
            f"env: {inner!r} has no transition table with an initial distribution "
            "(attributes P and initial_state_distrib); its dynamics cannot be read exactly."
        )
    n_states, n_actions = len(table), len(table[0])
    probability = np.zeros((n_states + 1, n_actions, n_states + 1))
    earned = np.zeros_like(probability)
    for state, actions in table.items():
        for action, outcomes in actions.items():
            for chance, successor, reward, terminated in outcomes:
                target = n_states if terminated else int(successor)
                probability[state, action, target] += chance
                earned[state, action, target] += chance * float(reward)
    rewards = np.divide(earned, probability, out=np.zeros_like(earned), where=probability > 0.0)
    return FiniteMDP(
        probability,
        rewards,
        np.append(np.asarray(initial, dtype=np.float64), 0.0),
        discount,
        np.arange(n_states + 1) == n_states,
    )


def _make(env_id: str) -> Any:
    """Make an environment, or raise `ValueError` with Gymnasium's own reason."""
    try:
        import gymnasium
    except ImportError:
        raise ValueError(
            "env: reading an environment by its id needs the package gymnasium "
            "(pip install gymnasium)."
        ) from None
    try:
        return gymnasium.make(env_id)
    except (gymnasium.error.Error, ImportError) as error:
        raise ValueError(f"env: {env_id!r} cannot be made: {error}") from None
