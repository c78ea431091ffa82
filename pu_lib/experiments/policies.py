"""What policies look like after some steps, live: shares of parameters and of states."""

from __future__ import annotations

import numpy as np

from pu_lib.experiments.live import final_memories

__all__ = ["bounced_share", "greedy_share"]


def bounced_share(eta: float, runs: int = 4, steps: int = 2000) -> float:
    """Return the share of PG-ES's parameters that are negative after some steps, live.

    Counted over the states of Random MDPs visited under NoExplo; every parameter starts at 1.

    Parameters
    ----------
    eta : float
        Learning rate of the actor, positive.
    runs : int
        Number of runs, each on a Random MDP of its own.
    steps : int
        Length of each run.

    Returns
    -------
    float
        The share, between 0 and 1.
    """
    ends = final_memories("pg-es", eta, "NoExplo", runs, steps)
    return float(np.mean(np.concatenate([memory.theta[moved] for memory, moved in ends]) < 0.0))


def greedy_share(update: str, eta: float = 1e9, runs: int = 4, steps: int = 20_000) -> float:
    """Return in which share of states the policy is greedy for the critic, live.

    Counted over the states of Random MDPs that were updated under LowOffPol and whose critic has
    one best action.

    Parameters
    ----------
    update : str
        One of the paper's five.
    eta : float
        Learning rate of the actor, positive.
    runs : int
        Number of runs, each on a Random MDP of its own.
    steps : int
        Length of each run.

    Returns
    -------
    float
        The share of states in which the critic's best action has a probability above 0.999.
    """
    hits = []
    for memory, moved in final_memories(update, eta, "LowOffPol", runs, steps):
        ranked = np.sort(memory.q, axis=1)
        clear = moved & (ranked[:, -1] > ranked[:, -2])
        greedy = memory.pi[np.arange(len(memory.pi)), memory.q.argmax(axis=1)]
        hits.append(greedy[clear] > 0.999)
    return float(np.mean(np.concatenate(hits)))
