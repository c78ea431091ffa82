"""What is run: a `Cell` is one setting, a `Chunk` some of its numbered runs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cell", "Chunk"]


@dataclass(frozen=True)
class Cell:
    """One setting, to be run many times; see `pu_lib.experiments.sweep` for the words it takes.

    Attributes
    ----------
    experiment : str
        Panel or sweep the runs belong to.
    domain : str
        The process, as `pu_lib.experiments.processes.domain_of` writes it.
    scheme : str
        Exploration scheme.
    update : str
        Policy update, without options.
    eta : float
        Learning rate of the actor.
    n_states, n_actions : int
        Size of the process.
    beta : float
        Parameter of chains; not a number where the domain has none.
    preset : str
        Description of the open details, and with it the update's options; see
        `pu_lib.experiments.actors`.
    max_steps : int
        Cap on the steps of a run.
    target : float
        Normalised performance to reach.
    seed : int
        Root of all randomness.
    """

    experiment: str
    domain: str
    scheme: str
    update: str
    eta: float
    n_states: int
    n_actions: int
    beta: float
    preset: str
    max_steps: int
    target: float
    seed: int


@dataclass(frozen=True)
class Chunk:
    """The runs `first` to `first + count - 1` of a cell.

    Attributes
    ----------
    cell : Cell
        The setting.
    first : int
        Number of its first run, from 0.
    count : int
        How many runs it has.
    """

    cell: Cell
    first: int
    count: int
