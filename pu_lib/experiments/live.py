"""Runs made on the spot: what a chapter recomputes in seconds, and tables of times cannot say.

They are runs of the paper's experiments, named as in its tables: PG-ES drops its factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pu_lib.experiments.cells import Cell, mdp_of, problem_of, read_process
from pu_lib.experiments.database import cell_of
from pu_lib.experiments.jekyll_hyde import RunBuffers, seed_state
from pu_lib.experiments.options import PAPER, SCHEMES, configured, program
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.results import FIXED_RATES
from pu_lib.experiments.sweep import run_cell

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Flips",
    "final_memories",
    "flip_times",
    "live_cell",
    "policies_along",
    "rerun",
    "twins",
    "walking",
]

Floats = NDArray[np.float64]


def live_cell(domain: str, update: str, eta: float, scheme: str, n_states: int, steps: int) -> Cell:
    """Return the setting of a run that goes on to its last step.

    Parameters
    ----------
    domain : {"chain", "cliff", "random-mdp"}
        The process.
    update, eta, scheme, n_states
        As in a `Cell` of the paper's experiments, so that ``pg-es`` is the paper's program.
    steps : int
        Length of the run.

    Returns
    -------
    Cell
        With a target that is out of reach.
    """
    return Cell(
        process=read_process(domain, n_states=n_states),
        update=configured(program(update), PAPER),
        step_size=eta,
        scheme=SCHEMES[scheme],
        options=PAPER,
        max_steps=steps,
        target=1.0,  # not reached: the runs go on to the last step
        seed=0,
        experiment="live",
    )


def final_memories(
    update: str, eta: float, scheme: str, runs: int, steps: int
) -> Iterator[tuple[RunBuffers, NDArray[np.bool_]]]:
    """Yield the state of some runs on Random MDPs after `steps` steps, and which states moved.

    Parameters
    ----------
    update, eta, scheme
        As in a `Cell`.
    runs : int
        Number of runs, from run 0.
    steps : int
        Length of a run.

    Yields
    ------
    memory : RunBuffers
        The state at the end of a run.
    moved : ndarray of bool, shape (n_states,)
        The states whose parameters differ from those at the start.
    """
    cell = live_cell("random-mdp", update, eta, scheme, 100, steps)
    for run in range(runs):
        memory = RunBuffers()
        memory.prepare(problem_of(cell, run), cell.update, PAPER, steps)
        start = memory.theta.copy()
        run_cell(cell, run, memory)
        yield memory, (memory.theta != start).any(axis=1)


def policies_along(
    domain: str, update: str, run: int, caps: NDArray[np.int64], n_states: int
) -> Floats:
    """Return the policy on the chain or the cliff at growing numbers of steps.

    HiOffPol, at the paper's fixed rate of the update.

    Parameters
    ----------
    domain : {"chain", "cliff"}
        The process.
    update, run
        As in a `Cell`.
    caps : ndarray, shape (caps,)
        Numbers of steps, at least 1.
    n_states : int
        The terminal state included.

    Returns
    -------
    ndarray, shape (caps, n_states - 1, n_actions)
        Probabilities, without the terminal state.
    """
    cell = live_cell(domain, update, FIXED_RATES[update], "HiOffPol", n_states, int(caps[-1]))
    memory = RunBuffers(record_at=caps)
    run_cell(cell, run, memory)
    return memory.recorded[:, :-1]


def walking(update: str, run: int, caps: NDArray[np.int64], n_states: int = 10) -> Floats:
    """Return the probability of walking in each state of the chain, see `policies_along`.

    Parameters
    ----------
    update, run, caps, n_states
        As for `policies_along`.

    Returns
    -------
    ndarray, shape (caps, n_states - 1)
        Probabilities.
    """
    return np.asarray(policies_along("chain", update, run, caps, n_states)[:, :, 1])


@dataclass(frozen=True)
class Flips:
    """When the states of a chain come to prefer walking for good.

    Attributes
    ----------
    times : ndarray, shape (n_states - 1,)
        Steps after which walking has more than half of the probability until the last cap;
        infinite where it has not then.
    jumping : int
        The largest number of states that preferred jumping at the same time.
    """

    times: Floats
    jumping: int

    @property
    def ordered_share(self) -> float:
        """The share of pairs of states of which the one nearer to the end flipped no later."""
        i, j = np.triu_indices(len(self.times), 1)
        return float(np.mean(self.times[i] >= self.times[j]))


def flip_times(update: str, run: int, last: int = 100_000, n_states: int = 10) -> Flips:
    """Return when each state of the chain comes to prefer walking for good.

    Looked at on a grid of 50 numbers of steps, each about a sixth above the one before.

    Parameters
    ----------
    update : str
        One of the paper's five, at its fixed rate.
    run : int
        Number of the run, from 0.
    last : int
        The last number of steps looked at, above 30.
    n_states : int
        Number of states, the terminal one included.

    Returns
    -------
    Flips
        When each state flips, and how many preferred jumping at once.
    """
    caps = np.unique(np.geomspace(30, last, 50).astype(np.int64))
    probability = walking(update, run, caps, n_states)
    walks = probability > 0.5
    for_good = np.flip(np.logical_and.accumulate(np.flip(walks, axis=0), axis=0), axis=0)
    times = np.where(for_good.any(axis=0), caps[for_good.argmax(axis=0)], np.inf)
    return Flips(times, int((probability < 0.5).sum(axis=1).max()))


def rerun(table: pd.DataFrame, n: int, at_most: int = 200_000, seed: int = 0) -> pd.DataFrame:
    """Recompute some rows of a table of runs, drawn at random, and set both side by side.

    Parameters
    ----------
    table : pandas.DataFrame
        Runs, with the columns of `pu_lib.experiments.database`.
    n : int
        How many to recompute.
    at_most : int
        Only runs with no more steps than this are drawn.
    seed : int
        Of the draw.

    Returns
    -------
    pandas.DataFrame
        The rows, with ``steps again``, and ``same``: whether steps, trajectories, censoring and
        final performance all are what the table says, to the last bit.
    """
    rows = table[table["steps"] <= at_most].sample(n, random_state=seed).copy()
    again = [run_cell(cell_of(row), row["run"]) for row in rows.to_dict("records")]
    rows["steps again"] = [run.steps for run in again]
    columns = ["steps", "episodes", "censored", "final_performance"]
    found = [tuple(getattr(run, name) for name in columns) for run in again]
    held = list(rows[columns].itertuples(index=False, name=None))
    rows["same"] = [a == b for a, b in zip(found, held, strict=True)]
    return rows


def twins(
    domain: str, update: str, eta: float, scheme: str, steps: int, run: int = 0
) -> tuple[Floats, Floats]:
    """Return the parameters after the same run by the plain reference and by the compiled loop.

    Parameters
    ----------
    domain : {"chain", "random-mdp"}
        The process: a chain of 10 states, or a Random MDP of 100.
    update : str
        One of the paper's five.
    eta : float
        Learning rate of the actor, positive.
    scheme : {"NoExplo", "LowOffPol", "HiOffPol"}
        The exploration scheme.
    steps : int
        Length of the run.
    run : int
        Number of the run, from 0.

    Returns
    -------
    reference, compiled : ndarray, shape (n_states, n_actions)
        The parameters after either.

    Raises
    ------
    ValueError
        If the domain is another one.
    """
    if domain not in ("chain", "random-mdp"):
        raise ValueError(f"domain: expected 'chain' or 'random-mdp', got {domain!r}.")
    cell = live_cell(domain, update, eta, scheme, 10 if domain == "chain" else 100, steps)
    memory = RunBuffers()
    run_cell(cell, run, memory)
    reference = run_reference(
        mdp_of(cell, run),
        np.inf,
        cell.update,
        eta,
        cell.scheme,
        seed_state(cell.seed, domain, run),
        cell.options,
        steps,
    )
    return np.array(reference.theta, np.float64), memory.theta.copy()
