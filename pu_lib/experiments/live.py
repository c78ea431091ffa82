"""Short runs that a chapter computes, for quantities that the tables of times do not contain.

The runs have the settings of the paper's experiments, in which ``pg-es`` drops its factor.
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
from pu_lib.experiments.results import FIXED_STEP_SIZES
from pu_lib.experiments.sweep import run_cell

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]


def live_cell(
    domain: str, update: str, step_size: float, scheme: str, n_states: int, steps: int
) -> Cell:
    """Return the setting of a run that continues to its last step.

    `domain` is ``"chain"``, ``"cliff"`` or ``"random-mdp"``. The update ``pg-es`` drops its factor,
    as in the paper's program.
    """
    return Cell(
        process=read_process(domain, n_states=n_states),
        update=configured(program(update), PAPER),
        step_size=step_size,
        scheme=SCHEMES[scheme],
        options=PAPER,
        max_steps=steps,
        target=1.0,  # out of reach, so that runs continue to the last step
        seed=0,
        experiment="live",
    )


def final_memories(
    update: str, step_size: float, scheme: str, runs: int, steps: int
) -> Iterator[tuple[RunBuffers, NDArray[np.bool_]]]:
    """Yield, for each run on Random MDPs, its final state and a mask of the updated states.

    Yields
    ------
    memory : RunBuffers
        The final state of a run.
    moved : ndarray of bool, shape (n_states,)
        Whether the parameters of a state differ from their initial values.
    """
    cell = live_cell("random-mdp", update, step_size, scheme, 100, steps)
    for run in range(runs):
        memory = RunBuffers()
        memory.prepare(problem_of(cell, run), cell.update, PAPER, steps)
        start = memory.theta.copy()
        run_cell(cell, run, memory)
        yield memory, (memory.theta != start).any(axis=1)


def policies_along(
    domain: str, update: str, run: int, caps: NDArray[np.int64], n_states: int
) -> Floats:
    """Return the policy at increasing numbers of steps, on the chain or the cliff under HiOffPol.

    The step size is the paper's fixed one of the update. The result has shape
    (caps, n_states - 1, n_actions) and omits the terminal state.
    """
    cell = live_cell(domain, update, FIXED_STEP_SIZES[update], "HiOffPol", n_states, int(caps[-1]))
    memory = RunBuffers(record_at=caps)
    run_cell(cell, run, memory)
    return memory.recorded[:, :-1]


def walking(update: str, run: int, caps: NDArray[np.int64], n_states: int = 10) -> Floats:
    """Return a (caps, n_states - 1) array of the probability of walking in states of the chain."""
    return np.asarray(policies_along("chain", update, run, caps, n_states)[:, :, 1])


@dataclass(frozen=True)
class Flips:
    """The times from which the states of a chain prefer walking.

    Attributes
    ----------
    times : ndarray, shape (n_states - 1,)
        First recorded step from which walking has a probability above 1/2 up to the end of the run,
        or infinity if there is no such step.
    jumping : int
        Largest number of states that prefer jumping at the same time.
    """

    times: Floats
    jumping: int

    @property
    def ordered_share(self) -> float:
        """The share of pairs of states in which the state nearer to the end flips no later."""
        i, j = np.triu_indices(len(self.times), 1)
        return float(np.mean(self.times[i] >= self.times[j]))


def flip_times(update: str, run: int, last: int = 100_000, n_states: int = 10) -> Flips:
    """Return the times from which the states of the chain prefer walking.

    The step size is the paper's fixed one of the update. The policy is recorded at 50 numbers
    of steps in geometric progression from 30 to `last`.
    """
    caps = np.unique(np.geomspace(30, last, 50).astype(np.int64))
    probability = walking(update, run, caps, n_states)
    walks = probability > 0.5
    for_good = np.flip(np.logical_and.accumulate(np.flip(walks, axis=0), axis=0), axis=0)
    times = np.where(for_good.any(axis=0), caps[for_good.argmax(axis=0)], np.inf)
    return Flips(times, int((probability < 0.5).sum(axis=1).max()))


def rerun(table: pd.DataFrame, n: int, at_most: int = 200_000, seed: int = 0) -> pd.DataFrame:
    """Repeat `n` runs sampled from a table, and compare the results with the table.

    Parameters
    ----------
    table : pandas.DataFrame
        Runs, with the columns of `pu_lib.experiments.database`.
    n : int
        Number of runs to repeat.
    at_most : int
        Only runs with at most this number of steps are sampled.
    seed : int
        Seed of the sample.

    Returns
    -------
    pandas.DataFrame
        The sampled rows with two more columns: ``steps again``, and ``same``, which is true if
        steps, trajectories, censoring and final performance agree to the last bit.
    """
    rows = table[table["steps"] <= at_most].sample(n, random_state=seed).copy()
    again = [run_cell(cell_of(row), row["run"]) for row in rows.to_dict("records")]
    rows["steps again"] = [run.steps for run in again]
    columns = ["steps", "episodes", "censored", "final_performance"]
    repeated = [tuple(getattr(run, name) for name in columns) for run in again]
    recorded = list(rows[columns].itertuples(index=False, name=None))
    rows["same"] = [a == b for a, b in zip(repeated, recorded, strict=True)]
    return rows


def twins(
    domain: str, update: str, step_size: float, scheme: str, steps: int, run: int = 0
) -> tuple[Floats, Floats]:
    """Return the final parameters of the same run by the reference loop and by the compiled loop.

    `domain` is ``"chain"`` with 10 states or ``"random-mdp"`` with 100 states.
    """
    if domain not in ("chain", "random-mdp"):
        raise ValueError(f"domain: expected 'chain' or 'random-mdp', got {domain!r}.")
    cell = live_cell(domain, update, step_size, scheme, 10 if domain == "chain" else 100, steps)
    memory = RunBuffers()
    run_cell(cell, run, memory)
    reference = run_reference(
        mdp_of(cell, run),
        np.inf,
        cell.update,
        step_size,
        cell.scheme,
        seed_state(cell.seed, domain, run),
        cell.options,
        steps,
    )
    return np.array(reference.theta, np.float64), memory.theta.copy()
