"""The compiled loops of CE and MCE on deterministic MDPs (imported on the first use only).

One step is one update of `pu_lib.updates`, with the exact values of the policy; a test holds the
two equal. Compiled code is kept in the package's cache folder.
"""

# mypy: ignore-errors

import numba
import numpy as np

CHUNK = 1000
"""`scan` runs this many steps at a time."""


@numba.njit(cache=True)
def solve(matrix, v):  # pragma: no cover - compiled
    """Solve in place a system that is diagonally dominant by rows or columns."""
    # I - gamma P and its transpose are diagonally dominant: elimination needs no pivoting.
    n = matrix.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            f = matrix[i, k] / matrix[k, k]
            if f != 0.0:
                for j in range(k, n):
                    matrix[i, j] -= f * matrix[k, j]
                v[i] -= f * v[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            v[k] -= matrix[k, j] * v[j]
        v[k] /= matrix[k, k]


@numba.njit(cache=True)
def process(  # pragma: no cover - compiled
    rewards,
    successors,
    n_actions,
    discount,
    theta,
    weights,
    modified,
    on_policy,
    values,
    greedy,
    gaps,
):
    n = rewards.shape[0]
    pi = np.zeros(rewards.shape)
    matrix = np.zeros((n, n))
    flow = np.zeros((n, n))
    v = np.zeros(n)
    visits = np.ones(n)
    for t in range(values.shape[0]):
        matrix[:] = 0.0
        for s in range(n):
            top = theta[s, 0]
            for a in range(1, n_actions[s]):
                top = max(top, theta[s, a])
            total = 0.0
            for a in range(n_actions[s]):
                pi[s, a] = np.exp(theta[s, a] - top)
                total += pi[s, a]
            matrix[s, s] += 1.0
            v[s] = 0.0
            for a in range(n_actions[s]):
                pi[s, a] /= total
                v[s] += pi[s, a] * rewards[s, a]
                if successors[s, a] >= 0:
                    matrix[s, successors[s, a]] -= discount * pi[s, a]
        if on_policy:
            flow[:] = matrix.T
            visits[:] = 1.0
            solve(flow, visits)
            visits *= n / visits.sum()
        solve(matrix, v)
        for s in range(n):
            values[t, s] = v[s]
            best, second, g = -np.inf, -np.inf, 0
            for a in range(n_actions[s]):
                q = rewards[s, a]
                if successors[s, a] >= 0:
                    q += discount * v[successors[s, a]]
                if q > best:
                    best, second, g = q, best, a
                elif q > second:
                    second = q
            greedy[t, s] = g
            gaps[t, s] = best - second
            w = weights[t % weights.shape[0], s] * visits[s]
            if w > 0.0:
                others = 1.0 - pi[s, g]
                for a in range(n_actions[s]):
                    if a == g:
                        theta[s, a] += w * others
                    elif modified:
                        theta[s, a] -= w * others / (n_actions[s] - 1)
                    else:
                        theta[s, a] -= w * pi[s, a]


@numba.njit(cache=True)
def scan(  # pragma: no cover - compiled
    rewards, successors, n_actions, discounts, theta, weights, on_policy, steps, first, last
):
    n, states = weights.shape
    values = np.empty((CHUNK, states))
    greedy = np.empty((CHUNK, states), dtype=np.int64)
    gaps = np.empty((CHUNK, states))
    chunks = steps // (2 * CHUNK)
    for i in range(n):
        for part in range(2):
            drop = 0.0
            high = np.full(states, -np.inf)
            for _ in range(chunks):
                process(
                    rewards[i],
                    successors[i],
                    n_actions,
                    discounts[i],
                    theta[i],
                    weights[i : i + 1],
                    False,
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
