"""A cell is one setting of an experiment: a process, an update and all other choices.

The runs of a cell are numbered from 0. The random numbers of run r start from the words of
``SeedSequence(seed, spawn_key=(crc32(name), r))`` with the name of the process, whatever its
parameters, the update, the step size, the scheme, the thread or the machine. A domain that is
drawn, such as ``random-mdp``, also gives each run its own process, from
``spawn_key=(crc32(name), r, 1)``. Settings can therefore be compared run by run.
"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pu_lib.domains import Baseline, Domain, as_process, is_domain, read_domain
from pu_lib.experiments.options import Options, Scheme
from pu_lib.experiments.problem import Problem, make_problem
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update

__all__ = ["Cell", "Chunk", "Process", "digest_of", "mdp_of", "problem_of", "read_process"]

IN_COLUMNS = ("n_states", "n_actions", "beta")
"""Parameters of domains that have a column of their own in tables."""

_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Process:
    """A process with the name that it has in tables and in seeds.

    Two are equal if they have the same name, parameters and content.

    Attributes
    ----------
    name : str
        The name of a domain, the id of an environment, or ``mdp-`` and a digest of the content.
    source : FiniteMDP or Domain
        The process of all runs, or the domain that makes it.
    parameters : dict of str to value
        All parameters of the domain; empty for a process without a domain.
    """

    name: str
    source: FiniteMDP | Domain
    parameters: dict[str, Any]

    @property
    def label(self) -> str:
        """The name with the parameters that differ from the defaults and have no column."""
        if isinstance(self.source, FiniteMDP):
            return self.name
        others = {key: x for key, x in self.parameters.items() if key not in IN_COLUMNS}
        return self.source.label(**others)

    @property
    def baseline(self) -> Baseline:
        """The policy of normalised performance 0."""
        return self.source.baseline if isinstance(self.source, Domain) else "uniform"

    @property
    def target(self) -> float:
        """The normalised performance to reach if no other is given."""
        return self.source.target if isinstance(self.source, Domain) else 0.95

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        if isinstance(self.source, FiniteMDP):
            return self.name, self.source.digest
        given = tuple(sorted(self.parameters.items()))
        return self.name, self.source.make, self.source.baseline, self.source.drawn, given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Process) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


def read_process(process: Any, **parameters: Any) -> Process:
    """Return a process with its name.

    Parameters
    ----------
    process : FiniteMDP, gymnasium.Env, str or path
        A process; an environment or its id; a domain with its parameters, as in
        ``chain beta=0.7``; or the path of an ``.npz`` file of `FiniteMDP.save`.
    **parameters
        More parameters of a domain.

    Returns
    -------
    Process
        The process. A file and an environment are named after their content, so that neither the
        place of a file nor its next version can confuse two processes.

    Raises
    ------
    ValueError
        If it is none of these, or cannot be read.
    """
    if isinstance(process, Process):
        return process
    if isinstance(process, str) and is_domain(process):
        domain, given = read_domain(process)
        return Process(domain.name, domain, {**domain.parameters, **given, **parameters})
    mdp = as_process(process)
    by_id = isinstance(process, str) and not process.endswith(".npz")
    return Process(process if by_id else f"mdp-{mdp.digest[:16]}", mdp, {})


@dataclass(frozen=True)
class Cell:
    """One setting, to be run many times.

    Attributes
    ----------
    process : Process
        The process.
    update : Update
        The policy update, with its own options.
    step_size : float
        Step size of the actor.
    scheme : Scheme
        The exploration scheme.
    options : Options
        What the paper leaves open.
    max_steps : int
        Cap on the steps of a run.
    target : float
        Normalised performance to reach.
    seed : int
        Root of all randomness.
    experiment : str
        The panel or sweep that the runs belong to, for tables.
    """

    process: Process
    update: Update
    step_size: float
    scheme: Scheme
    options: Options
    max_steps: int
    target: float
    seed: int
    experiment: str


@dataclass(frozen=True)
class Chunk:
    """The runs `first` to `first + count - 1` of a cell."""

    cell: Cell
    first: int
    count: int


@dataclass(frozen=True)
class _Made:
    """Everything that the process of a run depends on."""

    process: Process
    details: tuple[tuple[str, Any], ...]
    seed: int
    run: int


def _made(cell: Cell, run: int) -> _Made:
    source = cell.process.source
    if isinstance(source, FiniteMDP):
        return _Made(cell.process, (), 0, 0)
    details = tuple((name, getattr(cell.options, name)) for name in source.details)
    return _Made(cell.process, details, *((cell.seed, run) if source.drawn else (0, 0)))


def mdp_of(cell: Cell, run: int) -> FiniteMDP:
    """Return the process of a run.

    Parameters
    ----------
    cell : Cell
        The setting.
    run : int
        Number of the run, from 0; a domain that is drawn has another process for each.

    Returns
    -------
    FiniteMDP
        The process.

    Raises
    ------
    ValueError
        If a parameter of the domain is out of range.
    """
    return _mdp(_made(cell, run))


def _mdp(made: _Made) -> FiniteMDP:
    source = made.process.source
    return source if isinstance(source, FiniteMDP) else _from_domain(made)


@lru_cache(maxsize=8)  # the same process is digested and run with several targets
def _from_domain(made: _Made) -> FiniteMDP:
    """Make the process of a run from its domain."""
    domain, values = made.process.source, {**made.process.parameters, **dict(made.details)}
    assert isinstance(domain, Domain)
    if not domain.drawn:
        return domain.make(**values)
    key = (zlib.crc32(made.process.name.encode()), made.run, 1)
    rng = np.random.default_rng(np.random.SeedSequence(made.seed, spawn_key=key))
    return domain.make(rng, **values)


def problem_of(cell: Cell, run: int) -> Problem:
    """Return the process of a run as the compiled loop reads it, with the performance to reach.

    Parameters
    ----------
    cell : Cell
        The setting.
    run : int
        Number of the run, from 0.

    Returns
    -------
    Problem
        The process and its threshold.

    Raises
    ------
    ValueError
        As `mdp_of`, or as `pu_lib.experiments.problem.make_problem`.
    """
    with _lock:  # so that two threads do not draw the same process twice
        return _problem(_made(cell, run), cell.target)


@lru_cache(maxsize=2048)
def _problem(made: _Made, target: float) -> Problem:
    return make_problem(_mdp(made), target, made.process.baseline)


def digest_of(cell: Cell) -> str:
    """Return a digest of the content of a cell's process; a database compares it.

    It is no part of a seed. If each run draws its own process, run 0 stands for all.

    Parameters
    ----------
    cell : Cell
        The setting.

    Returns
    -------
    str
        Sixteen digits of `FiniteMDP.digest`, and the baseline if it is not the uniform policy.
    """
    return _digest(_made(cell, 0))


@lru_cache(maxsize=2048)
def _digest(made: _Made) -> str:
    baseline = made.process.baseline
    return _mdp(made).digest[:16] + ("" if baseline == "uniform" else f"-{baseline}")
