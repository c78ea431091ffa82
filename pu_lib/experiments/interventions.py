"""What the experiments do not measure: runs and exact processes in which one thing is changed.

Each function returns plain numbers, in seconds, so that a sentence on a cause can be asked of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.domains import cliff, random_mdp
from pu_lib.experiments.cells import mdp_of
from pu_lib.experiments.jekyll_hyde import RunBuffers
from pu_lib.experiments.live import final_memories, live_cell
from pu_lib.experiments.sweep import run_cell
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update, as_update

__all__ = ["climb_from_jumping", "greedy_with_noise", "stopped", "walled", "wrong_share"]


@lru_cache(maxsize=8)
def _random_process(seed: int) -> FiniteMDP:
    return random_mdp(seed)


def greedy_with_noise(noise: float, runs: int = 8) -> Floats:
    """Return what greedy policies earn on Random MDPs if the optimal values are noisy.

    Parameters
    ----------
    noise : float
        The standard deviation of the noise, in that of the optimal values of a state's actions.
    runs : int
        How many Random MDPs.

    Returns
    -------
    ndarray, shape (runs,)
        Normalised performances.
    """
    rng, earned = np.random.default_rng(0), []
    for seed in range(runs):
        process = _random_process(seed)
        q = process.optimal().q
        noisy = q + noise * q.std(axis=1, keepdims=True) * rng.normal(size=q.shape)
        greedy = np.eye(q.shape[1])[noisy.argmax(axis=1)]
        earned.append(process.normalised_performance(greedy))
    return np.array(earned)


def wrong_share(scheme: str, update: str = "ce", eta: float = 0.0316, runs: int = 5) -> Floats:
    """Return in which share of states the critic prefers a wrong action, on Random MDPs.

    Wrong: not the best one by the exact values of the policy, after 10 000 steps.

    Parameters
    ----------
    scheme, update, eta
        As in a `Cell`.
    runs : int
        How many runs.

    Returns
    -------
    ndarray, shape (runs,)
        Shares of the states, in [0, 1].
    """
    shares = []
    for run, (memory, _) in enumerate(final_memories(update, eta, scheme, runs, 10_000)):
        process = mdp_of(live_cell("random-mdp", update, eta, scheme, 100, 1), run)
        q = process.evaluate(memory.pi).q
        wrong = memory.q.argmax(axis=1) != q.argmax(axis=1)
        shares.append(float(wrong[~process.terminal].mean()))
    return np.array(shares)


def walled(update: str, eta: float, runs: int, last: int = 50_000) -> Floats:
    """Return which runs met the wall: a probability that is exactly zero, NoExplo, chain of 5.

    Looked at after 20 numbers of steps, up to the last or to where the run reaches its goal.

    Parameters
    ----------
    update : str
        The update.
    eta : float
        The learning rate.
    runs, last : int
        How many runs, and their length.

    Returns
    -------
    ndarray, shape (runs,)
        1.0 if some probability was zero at one of these times, else 0.0.
    """
    caps = np.geomspace(50, last, 20).astype(np.int64)
    met = [
        any((pi == 0.0).any() for pi in _policies(update, eta, run, caps)) for run in range(runs)
    ]
    return np.array(met, dtype=np.float64)


def stopped(update: str, eta: float, runs: int, last: int = 50_000) -> Floats:
    """Return which runs have stopped exploring in some state at the end, NoExplo, chain of 5.

    Parameters
    ----------
    update, eta, runs, last
        As for `walled`.

    Returns
    -------
    ndarray, shape (runs,)
        1.0 if the probability of walking is exactly zero somewhere, else 0.0.
    """
    ends = [pi for run in range(runs) for pi in _policies(update, eta, run, [last])]
    return np.array([(pi[:, 1] == 0.0).any() for pi in ends], dtype=np.float64)


def _policies(update: str, eta: float, run: int, caps: Iterable[int]) -> Iterator[Floats]:
    """Yield the policy of a run after some numbers of steps, or where it reached its goal."""
    for cap in caps:
        cell, memory = live_cell("chain", update, eta, "NoExplo", 5, int(cap)), RunBuffers()
        run_cell(replace(cell, target=0.5), run, memory)
        yield memory.pi[:-1]


def climb_from_jumping(
    update: str | Update, eta: float, lead: float = 4.0, max_steps: int = 5000
) -> tuple[int, int]:
    """Return how a softmax update climbs on the cliff from a policy that jumps, values exact.

    Seven states, d = 1 everywhere; until half of the gap between jumping and walking is made good.

    Parameters
    ----------
    update : str or Update
        An update of softmax parameters.
    eta : float
        The learning rate.
    lead : float
        The first parameter of jumping; the others are zero.
    max_steps : int
        Stop after so many.

    Returns
    -------
    steps : int
        Updates taken.
    falls : int
        After how many the performance was lower than before.
    """
    process, chosen = cliff(7), as_update(update)
    theta = np.tile([lead, 0.0, 0.0], (7, 1))
    low = process.performance(np.tile([1.0, 0.0, 0.0], (7, 1)))
    goal = (low + process.performance(process.optimal().policy)) / 2
    before, falls = -np.inf, 0
    for step in range(max_steps):
        found = process.evaluate(chosen.policy(theta))
        falls += found.performance < before - 1e-12
        if found.performance >= goal:
            return step, falls
        before = found.performance
        theta = chosen.step(theta, found.q, eta)
    return max_steps, falls
