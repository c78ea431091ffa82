"""Interventions that test explanations of the results: runs and exact processes with one change.

Each function runs for seconds and returns plain numbers for the checks of the chapter.
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


@lru_cache(maxsize=32)
def _random_process(seed: int) -> FiniteMDP:
    return random_mdp(seed)


def greedy_with_noise(noise: float, runs: int = 24) -> Floats:
    """Return the normalised performance of greedy policies for noisy optimal values of Random MDPs.

    `noise` is the standard deviation of the Gaussian noise divided by the standard deviation of the
    optimal values over the actions of a state. The result has one entry per Random MDP.
    """
    rng, earned = np.random.default_rng(0), []
    for seed in range(runs):
        process = _random_process(seed)
        q = process.optimal().q
        noisy = q + noise * q.std(axis=1, keepdims=True) * rng.normal(size=q.shape)
        greedy = np.eye(q.shape[1])[noisy.argmax(axis=1)]
        earned.append(process.normalised_performance(greedy))
    return np.array(earned)


def less_likely_successor(runs: int = 24) -> Floats:
    """Return the mean probability that the next state is not the most likely one.

    The mean is over states and actions. The result has one entry per Random MDP.
    """
    likely = [_random_process(seed).transitions.max(axis=2).mean() for seed in range(runs)]
    return 1.0 - np.array(likely)


def planned(process: FiniteMDP, sweeps: int, baseline: float | None = None) -> Floats:
    """Return the normalised performance of the greedy policy after 1, 2, ... sweeps.

    A sweep is one of value iteration, and the first one starts from values of zero.
    """
    v, earned = np.zeros(process.n_states), []
    for _ in range(sweeps):
        q = process.backup(v)
        greedy = np.eye(process.n_actions)[q.argmax(axis=1)]
        earned.append(process.normalised_performance(greedy, baseline))
        v = q.max(axis=1)
    return np.array(earned)


def planned_on_random_mdps(sweeps: int, runs: int = 6) -> Floats:
    """Return the mean of `planned` over Random MDPs, for each number of sweeps."""
    earned = [planned(_random_process(seed), sweeps) for seed in range(runs)]
    return np.asarray(np.mean(earned, axis=0))


def wrong_share(
    scheme: str, update: str = "ce", step_size: float = 0.0316, runs: int = 20
) -> Floats:
    """Return the share of states in which the critic's best action is suboptimal, for each run.

    The runs are on Random MDPs and last 10 000 steps. An action is suboptimal if it does not
    maximise the exact action values of the current policy. Terminal states are not counted.
    """
    shares = []
    for run, (memory, _) in enumerate(final_memories(update, step_size, scheme, runs, 10_000)):
        process = mdp_of(live_cell("random-mdp", update, step_size, scheme, 100, 1), run)
        q = process.evaluate(memory.pi).q
        wrong = memory.q.argmax(axis=1) != q.argmax(axis=1)
        shares.append(float(wrong[~process.terminal].mean()))
    return np.array(shares)


def reached_zero(update: str, step_size: float, runs: int, last: int = 50_000) -> Floats:
    """Return 1.0 for each run in which an action has probability zero at some time, else 0.0.

    The runs are on the chain of 5 states under NoExplo. The policy is inspected after 20 numbers of
    steps, up to `last` or until the run passes its threshold.
    """
    caps = np.geomspace(50, last, 20).astype(np.int64)
    met = [
        any((pi == 0.0).any() for pi in _policies(update, step_size, run, caps))
        for run in range(runs)
    ]
    return np.array(met, dtype=np.float64)


def stopped_exploring(update: str, step_size: float, runs: int, last: int = 50_000) -> Floats:
    """Return 1.0 for each run that ends with probability zero of walking in some state, else 0.0.

    The runs are on the chain of 5 states under NoExplo. They end after `last` steps or when the
    policy passes the threshold.
    """
    ends = [pi for run in range(runs) for pi in _policies(update, step_size, run, [last])]
    return np.array([(pi[:, 1] == 0.0).any() for pi in ends], dtype=np.float64)


def _policies(update: str, step_size: float, run: int, caps: Iterable[int]) -> Iterator[Floats]:
    """Yield the policy of a run after each number of steps, or at the end of a shorter run."""
    for cap in caps:
        cell, memory = live_cell("chain", update, step_size, "NoExplo", 5, int(cap)), RunBuffers()
        run_cell(replace(cell, target=0.5), run, memory)
        yield memory.pi[:-1]


def climb_from_jumping(
    update: str | Update, step_size: float, lead: float = 4.0, max_steps: int = 5000
) -> tuple[int, int]:
    """Run a softmax update from a policy that jumps, on the cliff of 7 states with exact values.

    The run stops when the performance is at least the mean of the performance of jumping and the
    optimal performance. The weight d(s) is 1 in every state.

    Parameters
    ----------
    update : str or Update
        An update with softmax parameters.
    step_size : float
        Step size.
    lead : float
        Initial parameter of jumping; the other parameters are zero.
    max_steps : int
        Cap on the number of steps.

    Returns
    -------
    steps : int
        Number of steps taken.
    falls : int
        Number of steps that decreased the performance.
    """
    process, chosen = cliff(7), as_update(update)
    theta = np.tile([lead, 0.0, 0.0], (7, 1))
    low = process.performance(np.tile([1.0, 0.0, 0.0], (7, 1)))
    goal = (low + process.performance(process.optimal().policy)) / 2
    before, falls = -np.inf, 0
    for step in range(max_steps):
        evaluation = process.evaluate(chosen.policy(theta))
        falls += evaluation.performance < before - 1e-12
        if evaluation.performance >= goal:
            return step, falls
        before = evaluation.performance
        theta = chosen.step(theta, evaluation.q, step_size)
    return max_steps, falls
