"""Compiled runs of updates with exact values on deterministic MDPs.

Each step updates all states with the exact values of the current policy. States may have different
numbers of actions, and the successor -1 denotes the end. Policies are softmax policies computed
with the exponential of the C library, because these runs, unlike the experiments, do not need the
same bits on all machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pu_lib.compiling import allocating, allocating_in_memory, compiled
from pu_lib.engine.rows import advance
from pu_lib.engine.values import solve

CHUNK = 1000
"""The number of steps that `scan` runs at a time; it limits the memory of `scan`."""


@compiled
def _softmax(theta: Any, pi: Any, n_actions: int) -> None:
    """Set `pi` to the softmax of the first `n_actions` parameters."""
    top = theta[0]
    for a in range(1, n_actions):
        top = max(top, theta[a])
    total = 0.0
    for a in range(n_actions):
        pi[a] = np.exp(theta[a] - top)
        total += pi[a]
    for a in range(n_actions):
        pi[a] /= total


@compiled
def _system(
    rewards: Any, successors: Any, n_actions: Any, discount: float, pi: Any, matrix: Any, v: Any
) -> None:
    """Set `matrix` to I - gamma P and `v` to r, the linear system of the state values."""
    matrix[:] = 0.0
    for s in range(len(v)):
        matrix[s, s] += 1.0
        v[s] = 0.0
        for a in range(n_actions[s]):
            v[s] += pi[s, a] * rewards[s, a]
            if successors[s, a] >= 0:
                matrix[s, successors[s, a]] -= discount * pi[s, a]


@compiled
def _occupancy(matrix: Any, flow: Any, visits: Any) -> None:
    """Set `visits` to the discounted occupancy from a uniform initial state, scaled to mean 1."""
    n = len(visits)
    for s in range(n):
        visits[s] = 1.0
        for x in range(n):
            flow[s, x] = matrix[x, s]
    solve(flow, visits)
    total = 0.0
    for s in range(n):
        total += visits[s]
    scale = n / total
    for s in range(n):
        visits[s] *= scale


@compiled
def _look_ahead(
    rewards: Any, successors: Any, discount: float, v: Any, q: Any, n_actions: int
) -> Any:
    """Set `q` to the action values of one state; return the greedy action and its action gap."""
    best, second, greedy = -np.inf, -np.inf, 0
    for a in range(n_actions):
        q[a] = rewards[a]
        if successors[a] >= 0:
            q[a] += discount * v[successors[a]]
        if q[a] > best:
            best, second, greedy = q[a], best, a
        elif q[a] > second:
            second = q[a]
    return greedy, best - second


def process(
    update: Any,
    rewards: Any,
    successors: Any,
    n_actions: Any,
    discount: float,
    theta: Any,
    weights: Any,
    on_policy: bool,
    values: Any,
    greedy: Any,
    gaps: Any,
) -> None:
    """Run one step for each row of `values`; see `pu_lib.deterministic.run_process`.

    Parameters
    ----------
    update : tuple of int
        The static argument of a kernel (`pu_lib.engine.rows.static_kernel`).
    rewards : ndarray, shape (n_states, most actions)
        The reward of each action.
    successors : ndarray of int, shape (n_states, most actions)
        The next state, or -1 for the end.
    n_actions : ndarray of int, shape (n_states,)
        The number of actions of each state.
    discount : float
        Discount factor in [0, 1).
    theta : ndarray, shape (n_states, most actions)
        Softmax parameters, updated in place.
    weights : ndarray, shape (period, n_states)
        The weights of one period.
    on_policy : bool
        Whether the weights are multiplied by the occupancy, scaled to mean 1.
    values : ndarray, shape (n_steps, n_states)
        Output: state values before each step.
    greedy : ndarray of int, shape (n_steps, n_states)
        Output: greedy actions.
    gaps : ndarray, shape (n_steps, n_states)
        Output: differences in value between the greedy and the second best action.
    """
    n = rewards.shape[0]
    pi, q = np.zeros(rewards.shape), np.zeros(rewards.shape[1])
    matrix, flow = np.zeros((n, n)), np.zeros((n, n))
    v, visits = np.zeros(n), np.ones(n)
    for t in range(values.shape[0]):
        for s in range(n):
            _softmax(theta[s], pi[s], n_actions[s])
        _system(rewards, successors, n_actions, discount, pi, matrix, v)
        if on_policy:
            _occupancy(matrix, flow, visits)
        solve(matrix, v)
        for s in range(n):
            A = n_actions[s]
            values[t, s] = v[s]
            best, gaps[t, s] = _look_ahead(rewards[s], successors[s], discount, v, q, A)
            greedy[t, s] = best
            weight = weights[t % weights.shape[0], s] * visits[s]
            if weight > 0.0:
                advance(update, theta[s], pi[s], q, best, weight, A)


process_cached = allocating(process)
process_in_memory = allocating_in_memory(process)


@allocating
def scan(
    update: Any,
    rewards: Any,
    successors: Any,
    n_actions: Any,
    discounts: Any,
    theta: Any,
    weights: Any,
    on_policy: bool,
    steps: int,
    first: Any,
    last: Any,
) -> None:
    """Run a batch of MDPs and compute the largest fall of a state value in each half of each run.

    The arguments are those of `process` with a leading axis for the n MDPs of the batch, except
    that `n_actions` is shared by all MDPs, `discounts` has shape (n,) and `weights`, which are
    constant in time, has shape (n, n_states). Each half of `steps` is rounded down to whole chunks.
    The outputs `first` and `last`, of shape (n,), are for the first and the last half: the largest
    distance of a state value below the highest value of the same state so far in that half.
    """
    n, states = weights.shape
    values, gaps = np.empty((CHUNK, states)), np.empty((CHUNK, states))
    greedy = np.empty((CHUNK, states), dtype=np.int64)
    for i in range(n):
        for part in range(2):
            drop = 0.0
            high = np.full(states, -np.inf)
            for _ in range(steps // (2 * CHUNK)):
                process_cached(
                    update,
                    rewards[i],
                    successors[i],
                    n_actions,
                    discounts[i],
                    theta[i],
                    weights[i : i + 1],
                    on_policy,
                    values,
                    greedy,
                    gaps,
                )
                for s in range(states):
                    for t in range(CHUNK):
                        high[s] = max(high[s], values[t, s])
                        drop = max(drop, high[s] - values[t, s])
            if part == 0:
                first[i] = drop
            else:
                last[i] = drop
