"""Cells: the settings of an experiment. A cell is a process, an update and all other choices.

The runs of a cell are numbered from 0. The random stream of run r is seeded by
``SeedSequence(seed, spawn_key=(crc32(name), r))`` with the name of the process. The stream does not
depend on the parameters of the process, the update, the step size, the scheme, the thread or the
machine, so settings can be compared run by run. Random domains such as ``random-mdp`` also sample a
process for each run, with ``spawn_key=(crc32(name), r, 1)``.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from pu_lib.domains import (
    Baseline,
    Domain,
    ProcessLike,
    as_process,
    is_domain,
    is_path,
    read_domain,
)
from pu_lib.experiments.options import Options, Scheme
from pu_lib.experiments.problem import Problem, make_problem
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update, name_of

__all__ = ["Cell", "Chunk", "Process", "digest_of", "mdp_of", "problem_of", "read_process"]
__all__ += ["naming_run"]

IN_COLUMNS = ("n_states", "n_actions", "beta")
"""Parameters of domains that have their own columns in tables of runs."""

_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Process:
    """A process with the name that identifies it in tables and in seeds.

    Processes are equal if they have the same name, parameters and content.

    Attributes
    ----------
    name : str
        The name of a domain, the id of an environment, or ``mdp-`` and a digest of the content.
    source : FiniteMDP or Domain
        The process itself, or the domain that constructs it.
    parameters : dict of str to value
        All parameters of the domain. The dictionary is empty if `source` is a process.
    """

    name: str
    source: FiniteMDP | Domain
    parameters: dict[str, Any]

    @property
    def label(self) -> str:
        """The name, followed by each parameter that has no column and differs from its default."""
        if isinstance(self.source, FiniteMDP):
            return self.name
        others = {key: x for key, x in self.parameters.items() if key not in IN_COLUMNS}
        return self.source.label(**others)

    @property
    def baseline(self) -> Baseline:
        """The policy with normalised performance 0."""
        return self.source.baseline if isinstance(self.source, Domain) else "uniform"

    @property
    def target(self) -> float:
        """The default normalised performance to reach."""
        return self.source.target if isinstance(self.source, Domain) else 0.95

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        if isinstance(self.source, FiniteMDP):
            return self.name, self.source.digest
        parameters = tuple(sorted(self.parameters.items()))
        return self.name, self.source.make, self.source.baseline, self.source.drawn, parameters

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Process) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


def read_process(process: ProcessLike | Process, **parameters: Any) -> Process:
    """Return a process with its name.

    Files and environment objects are named after a digest of their content, so that different
    processes have different names.

    Parameters
    ----------
    process : FiniteMDP, gymnasium.Env, str or path
        A process; an environment or its id; a domain with its parameters, as in
        ``chain beta=0.7``; or the path of an ``.npz`` file written by `FiniteMDP.save`.
    **parameters
        Further parameters of a domain.

    Returns
    -------
    Process
        The process with its name.

    Raises
    ------
    ValueError
        If the argument is none of these, or cannot be read.
    """
    if isinstance(process, Process):
        return process
    if isinstance(process, str) and is_domain(process):
        domain, in_name = read_domain(process)
        return Process(domain.name, domain, {**domain.parameters, **in_name, **parameters})
    mdp = as_process(process)
    if isinstance(process, str) and not is_path(process):
        return Process(process, mdp, {})
    return Process(f"mdp-{mdp.digest[:16]}", mdp, {})


@dataclass(frozen=True)
class Cell:
    """A setting of an experiment.

    Attributes
    ----------
    process : Process
        The process.
    update : Update
        The policy update with its options.
    step_size : float
        Step size of the actor.
    scheme : Scheme
        The exploration scheme.
    options : Options
        The details that the paper leaves open.
    max_steps : int
        Cap on the steps of a run.
    target : float
        Normalised performance to reach.
    seed : int
        Root seed.
    experiment : str
        The name of the panel or sweep in tables of runs.
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
    """The runs `first` to `first + count - 1` of a cell.

    If `curves` is true, their performance is kept at the `checkpoints` of the cap, too.
    """

    cell: Cell
    first: int
    count: int
    curves: bool = False


@contextmanager
def naming_run(cell: Cell, run: int) -> Iterator[None]:
    """Add the update, the step size and the number of a run to its `ValueError`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(
            f"run {run} of {name_of(cell.update)} with step size {cell.step_size:g} on "
            f"{cell.process.label}: {error}"
        ) from None


@dataclass(frozen=True)
class _Made:
    """The values that determine the process of a run."""

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
    """Return the process of a run; a random domain has a different process for each run."""
    return _mdp(_made(cell, run))


def _mdp(made: _Made) -> FiniteMDP:
    source = made.process.source
    return source if isinstance(source, FiniteMDP) else _from_domain(made)


@lru_cache(maxsize=32)  # the same process is used for its digest, several targets and schemes
def _from_domain(made: _Made) -> FiniteMDP:
    """Return the process of a run of a domain."""
    domain, values = made.process.source, {**made.process.parameters, **dict(made.details)}
    assert isinstance(domain, Domain)
    if not domain.drawn:
        return domain.make(**values)
    key = (zlib.crc32(made.process.name.encode()), made.run, 1)
    rng = np.random.default_rng(np.random.SeedSequence(made.seed, spawn_key=key))
    return domain.make(rng, **values)


def problem_of(cell: Cell, run: int) -> Problem:
    """Return the arrays of the process of a run for the compiled loop, and the threshold."""
    with _lock:  # so that two threads do not construct the same process twice
        return _problem(_made(cell, run), cell.target)


@lru_cache(maxsize=2048)
def _problem(made: _Made, target: float) -> Problem:
    return make_problem(_mdp(made), target, made.process.baseline)


def digest_of(cell: Cell) -> str:
    """Return a digest of the process of run 0 of a cell.

    The digest consists of sixteen digits of `FiniteMDP.digest`, followed by the baseline unless the
    baseline is the uniform policy. Databases compare digests; seeds do not depend on digests.
    """
    return _digest(_made(cell, 0))


@lru_cache(maxsize=2048)
def _digest(made: _Made) -> str:
    baseline = made.process.baseline
    return _mdp(made).digest[:16] + ("" if baseline == "uniform" else f"-{baseline}")
