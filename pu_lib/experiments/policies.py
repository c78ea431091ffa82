"""Properties of the policies and parameters of short runs."""

from __future__ import annotations

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.experiments.live import final_memories


def bounced_share(step_size: float, runs: int = 4, steps: int = 2000) -> float:
    """Return the share of negative parameters of PG-ES after `steps` steps.

    The initial parameters are 1. The share is over the updated states of `runs` Random MDPs under
    NoExplo.
    """
    ends = final_memories("pg-es", step_size, "NoExplo", runs, steps)
    return float(np.mean(np.concatenate([memory.theta[moved] for memory, moved in ends]) < 0.0))


def greedy_share(update: str, step_size: float = 1e9, runs: int = 4, steps: int = 20_000) -> float:
    """Return the share of states in which the policy is greedy for the critic after `steps` steps.

    The policy is greedy if the critic's best action has a probability above 0.999. The share is
    over the updated states of `runs` Random MDPs under LowOffPol whose critic has a unique best
    action.
    """
    hits = []
    for memory, moved in final_memories(update, step_size, "LowOffPol", runs, steps):
        ranked = np.sort(memory.q, axis=1)
        clear = moved & (ranked[:, -1] > ranked[:, -2])
        greedy = memory.pi[np.arange(len(memory.pi)), memory.q.argmax(axis=1)]
        hits.append(greedy[clear] > 0.999)
    return float(np.mean(np.concatenate(hits)))


def greedy_probability(update: str, eta: float, runs: int = 10, steps: int = 20_000) -> Floats:
    """Return the mean probability of the critic's best action after `steps` steps, for each run.

    The mean is over the updated states of a Random MDP under LowOffPol whose critic has a unique
    best action.
    """
    means = []
    for memory, moved in final_memories(update, eta, "LowOffPol", runs, steps):
        ranked = np.sort(memory.q, axis=1)
        clear = moved & (ranked[:, -1] > ranked[:, -2])
        greedy = memory.pi[np.arange(len(memory.pi)), memory.q.argmax(axis=1)]
        means.append(float(greedy[clear].mean()))
    return np.array(means)
