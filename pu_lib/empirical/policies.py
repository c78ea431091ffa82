"""What policies look like after some steps, live: shares of parameters and of states."""

from __future__ import annotations

import numpy as np

from pu_lib.empirical.jekyll_hyde import Memory
from pu_lib.empirical.live import final_memories
from pu_lib.empirical.results import PANELS, committed
from pu_lib.empirical.store import Cell
from pu_lib.empirical.sweep import run_cell

__all__ = ["bounced_share", "greedy_share", "vanished"]


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


def vanished(panel: str, eta: float = 100.0, runs: int = 20) -> tuple[int, int]:
    """Return how many runs of PG-ES were censored, and how many of these had a parameter at zero.

    An escort parameter that is exactly zero stays zero, and its action has the probability zero for
    good. The update never takes one there in exact arithmetic; underflow does.

    Parameters
    ----------
    panel : str
        A key of `PANELS`; its first runs are computed again.
    eta : float
        A learning rate of the panel.
    runs : int
        How many runs.

    Returns
    -------
    censored, at_zero : int
        The numbers of runs.
    """
    table = PANELS[panel].rows(committed().table)
    rows = table[(table["update"] == "pg-es") & (table["eta"] == eta) & (table["run"] < runs)]
    censored = at_zero = 0
    for row in rows.to_dict("records"):
        memory, cell = Memory(), Cell(**{name: row[name] for name in Cell.__dataclass_fields__})
        if run_cell(cell, row["run"], memory).censored:
            censored += 1
            at_zero += bool((memory.theta == 0.0).any())
    return censored, at_zero
