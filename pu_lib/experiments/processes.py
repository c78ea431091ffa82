"""The process of a run: a domain with its parameters, an environment, or one that is held here.

A `Cell` knows its process by a word, its `domain`:

- the name of an entry of `pu_lib.domains.DOMAINS`, followed by the parameters that are not as
  usual and have no column of their own, as in ``random-mdp branching=4``;
- the id of a Gymnasium environment with a transition table;
- ``mdp-`` and a digest of its content for any other process. `domain_of` makes the word from a
  `FiniteMDP`, an environment or a file, and holds the process, so that neither the place of a file
  nor what it is overwritten with later can confuse two processes.

The columns `n_states`, `n_actions` and `beta` of a cell are parameters of its domain where that has
parameters of these names; elsewhere the first two are the size of the process.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from pu_lib.domains import DOMAINS, Baseline, as_process, is_domain, read_domain
from pu_lib.experiments.actors import details_of
from pu_lib.experiments.cells import Cell
from pu_lib.experiments.problem import Problem, make_problem
from pu_lib.mdp import FiniteMDP

__all__ = [
    "IN_COLUMNS",
    "aims_of",
    "digest_of",
    "domain_of",
    "held",
    "hold",
    "problem_of",
    "process_of",
    "sized",
    "stream_of",
]

IN_COLUMNS = ("n_states", "n_actions", "beta")
"""Parameters of domains that have a column of their own."""

_HELD: dict[str, FiniteMDP] = {}
_ENVIRONMENTS: dict[str, FiniteMDP] = {}
_PREFIX = "mdp-"
_lock = threading.Lock()


def hold(mdp: FiniteMDP) -> str:
    """Hold a process and return the word by which cells know it, made from its content."""
    label = _PREFIX + mdp.digest[:16]
    _HELD.setdefault(label, mdp)
    return label


def held(label: str) -> FiniteMDP | None:
    """Return the process that is held under a word, if there is one."""
    return _HELD.get(label)


def domain_of(process: Any) -> str:
    """Return the word by which cells know a process, after reading it.

    Parameters
    ----------
    process : FiniteMDP, gymnasium.Env, str or path
        A process; an environment or its id; a domain with its parameters, as in
        ``chain beta=0.7``; or the path of an ``.npz`` file of `FiniteMDP.save`.

    Returns
    -------
    str
        The label of a domain, the id of an environment, or a word made from the content.

    Raises
    ------
    ValueError
        If it is none of these, or cannot be read.
    """
    if isinstance(process, str) and not process.endswith(".npz"):
        if is_domain(process):
            domain, parameters = read_domain(process)
            return domain.label(**parameters)
        _ENVIRONMENTS[process] = as_process(process)  # anew: an id may have been registered again
        return process
    return hold(as_process(process))


def _environment(env_id: str) -> FiniteMDP:
    if env_id not in _ENVIRONMENTS:
        _ENVIRONMENTS[env_id] = as_process(env_id)
    return _ENVIRONMENTS[env_id]


def aims_of(label: str) -> tuple[Baseline, float]:
    """Return the baseline and the usual target of a domain; those of no entry are general."""
    domain = DOMAINS.get(label.split(" ")[0])
    return ("uniform", 0.95) if domain is None else (domain.baseline, domain.target)


def stream_of(cell: Cell) -> str:
    """Return the word that seeds the streams of a cell: its domain whatever the parameters."""
    return cell.domain.split(" ")[0]


@dataclass(frozen=True)
class _Key:
    """What decides on the problem of a run."""

    domain: str
    parameters: tuple[tuple[str, Any], ...]
    baseline: Baseline
    target: float
    seed: int
    run: int
    make: Callable[..., FiniteMDP] | None = None  # a domain that is defined anew has another one


def _key(cell: Cell, run: int) -> _Key:
    baseline, _ = aims_of(cell.domain)
    if cell.domain.startswith(_PREFIX):
        return _Key(cell.domain, (), baseline, cell.target, 0, 0)
    if stream_of(cell) not in DOMAINS:
        content = (("digest", _environment(cell.domain).digest),)
        return _Key(cell.domain, content, baseline, cell.target, 0, 0)
    domain, parameters = read_domain(cell.domain)
    parameters.update(
        {name: getattr(cell, name) for name in IN_COLUMNS if name in domain.parameters}
    )
    options = details_of(cell.preset)
    parameters.update({name: getattr(options, name) for name in domain.details})
    seed, number = (cell.seed, run) if domain.drawn else (0, 0)
    usual = tuple(sorted(parameters.items()))
    return _Key(domain.name, usual, baseline, cell.target, seed, number, domain.make)


def process_of(cell: Cell, run: int) -> FiniteMDP:
    """Return the process of a run.

    Parameters
    ----------
    cell : Cell
        The setting.
    run : int
        Number of the run, from 0; where processes are drawn, it draws its own.

    Returns
    -------
    FiniteMDP
        The process.

    Raises
    ------
    ValueError
        If the domain is unknown, a parameter is out of range, or the process is not held here.
    """
    return _process(_key(cell, run))


def _process(key: _Key) -> FiniteMDP:
    if key.domain.startswith(_PREFIX):
        if key.domain not in _HELD:
            raise ValueError(
                f"{key.domain}: this process is not at hand; read it again with `domain_of`."
            )
        return _HELD[key.domain]
    if key.make is None:
        return _environment(key.domain)
    if not DOMAINS[key.domain].drawn:
        return key.make(**dict(key.parameters))
    return _drawn(replace(key, baseline="uniform", target=0.0))


@lru_cache(maxsize=8)
def _drawn(key: _Key) -> FiniteMDP:
    """Draw the process of a run. The last few are kept: they are asked for with several goals."""
    assert key.make is not None
    words = np.random.SeedSequence(
        key.seed, spawn_key=(zlib.crc32(key.domain.encode()), key.run, 1)
    )
    return key.make(np.random.default_rng(words), **dict(key.parameters))


def digest_of(cell: Cell) -> str:
    """Return what a cell's process is known by in a database, whatever its name.

    Parameters
    ----------
    cell : Cell
        The setting; where each run draws its own process, that of run 0 stands for all.

    Returns
    -------
    str
        Sixteen digits of `FiniteMDP.digest`, and the baseline if it is not the uniform policy.

    Raises
    ------
    ValueError
        As `process_of`.
    """
    return _digest(replace(_key(cell, 0), target=0.0))


@lru_cache(maxsize=2048)
def _digest(key: _Key) -> str:
    other = "" if key.baseline == "uniform" else f"-{key.baseline}"
    return _process(key).digest[:16] + other


def problem_of(cell: Cell, run: int) -> Problem:
    """Return the process of a run and the performance it has to reach.

    Parameters
    ----------
    cell : Cell
        The setting.
    run : int
        Number of the run, from 0; where processes are drawn, it draws its own.

    Returns
    -------
    Problem
        The process, as the compiled loop reads it, with its threshold.

    Raises
    ------
    ValueError
        As `process_of`, or as `pu_lib.experiments.problem.make_problem`.
    """
    # One thread at a time, so that two threads do not draw the same process twice.
    with _lock:
        return _problem(_key(cell, run))


@lru_cache(maxsize=2048)
def _problem(key: _Key) -> Problem:
    return make_problem(_process(key), key.target, key.baseline)


def sized(cell: Cell) -> Cell:
    """Return the cell with the size its process really has.

    Raises
    ------
    ValueError
        If the process has another size than the parameters of its domain say.
    """
    problem = problem_of(cell, 0)
    found = {"n_states": problem.n_states, "n_actions": problem.n_actions}
    if stream_of(cell) in DOMAINS:
        for name in read_domain(cell.domain)[0].parameters:
            if name in found and found[name] != getattr(cell, name):
                raise ValueError(
                    f"{name}: the domain {cell.domain!r} has {found[name]} where its parameter "
                    f"says {getattr(cell, name)}; give the parameter another name."
                )
    return replace(cell, n_states=problem.n_states, n_actions=problem.n_actions)
