"""Sweeps: many runs of many settings, on threads or a cluster, resumable, the same every time.

A `Cell` is one setting; its runs are numbered from 0. Run r of a domain starts from the words of
``SeedSequence(seed, spawn_key=(crc32(domain), r))``, whatever the update, the learning rate, the
scheme, the thread or the machine; run r of the Random MDP domain also has its own process, drawn
from ``spawn_key=(crc32("random-mdp"), r, 1)``. Settings can therefore be compared run by run.

Chunks of runs are computed independently and written by `pu_lib.empirical.store`. The compiled loop
releases the interpreter lock, so that threads use all cores; a Dask scheduler gets the same chunks.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pu_lib import domains
from pu_lib.empirical.jekyll_hyde import Memory, Run, seed_state, simulate
from pu_lib.empirical.options import PUBLISHED_SCHEMES, SCHEMES, parse
from pu_lib.empirical.problem import Baseline, Problem, make_problem
from pu_lib.empirical.store import Cell, Chunk, Store
from pu_lib.mdp import FiniteMDP

__all__ = [
    "CHAINS",
    "chunks_of",
    "problem_of",
    "process_of",
    "run_cell",
    "run_chunk",
    "sized",
    "sweep",
]

Measured = dict[str, NDArray[Any]]

CHAINS = ("chain", "cliff", "duplicated-chain")
"""Domains whose baseline is the policy that always jumps."""

_PATIENCE = "10s"  # for the scheduler to answer
_lock = threading.Lock()


def problem_of(cell: Cell, run: int) -> Problem:
    """Return the process of a run and the performance it has to reach."""
    # One thread at a time, so that two threads do not draw the same process twice.
    with _lock:
        return _cached_problem(_key(cell, run))


def process_of(cell: Cell, run: int) -> FiniteMDP:
    """Return the process of a run."""
    return _process(_key(cell, run))


def _key(cell: Cell, run: int) -> _ProblemKey:
    return _ProblemKey(
        cell.domain,
        cell.n_states,
        cell.n_actions,
        None if np.isnan(cell.beta) else cell.beta,
        parse(cell.preset).last_state_tie,
        cell.target,
        cell.seed if cell.domain == "random-mdp" else 0,
        run if cell.domain == "random-mdp" else 0,
    )


@dataclass(frozen=True)
class _ProblemKey:
    domain: str
    n_states: int
    n_actions: int
    beta: float | None
    last_state_tie: bool
    target: float
    seed: int
    run: int


@lru_cache(maxsize=2048)
def _cached_problem(key: _ProblemKey) -> Problem:
    baseline: Baseline = "first" if key.domain in CHAINS else "uniform"
    return make_problem(_process(key), key.target, baseline)


def _process(key: _ProblemKey) -> FiniteMDP:
    if key.domain == "random-mdp":
        words = np.random.SeedSequence(
            key.seed, spawn_key=(zlib.crc32(key.domain.encode()), key.run, 1)
        )
        return domains.random_mdp(np.random.default_rng(words), key.n_states, key.n_actions)
    tie = key.last_state_tie
    if key.beta is not None:
        if key.domain == "chain":
            return domains.chain(key.n_states, key.beta, last_state_tie=tie)
        if key.domain == "cliff":
            return domains.cliff(key.n_states, key.beta, last_state_tie=tie)
        if key.domain == "duplicated-chain":
            return domains.duplicated_chain(
                key.n_states, key.n_actions, key.beta, last_state_tie=tie
            )
    return load_process(key.domain)


def load_process(name: str) -> FiniteMDP:
    """Return the process in an ``.npz`` file, or of a Gymnasium environment.

    Raises
    ------
    ValueError
        If the file or the environment cannot be read as a finite process.
    """
    if name.endswith(".npz"):
        if not Path(name).is_file():
            raise ValueError(f"{name}: there is no such file.")
        return FiniteMDP.load(name)
    return domains.from_gymnasium(name)


def sized(cell: Cell) -> Cell:
    """Return the cell with the size its domain really has."""
    problem = problem_of(cell, 0)
    return replace(cell, n_states=problem.n_states, n_actions=problem.n_actions)


_local = threading.local()


def run_cell(cell: Cell, run: int, memory: Memory | None = None) -> Run:
    """Compute one run of a cell; `memory`, if given, holds its final state afterwards."""
    return simulate(
        problem_of(cell, run),
        cell.update,
        cell.eta,
        {**SCHEMES, **PUBLISHED_SCHEMES}[cell.scheme],
        seed_state(cell.seed, cell.domain, run),
        parse(cell.preset),
        cell.max_steps,
        memory,
    )


def run_chunk(chunk: Chunk) -> Measured:
    """Compute the runs of a chunk; return their measured columns."""
    memory: Memory = _local.__dict__.setdefault("memory", Memory())
    runs = np.arange(chunk.first, chunk.first + chunk.count, dtype=np.int32)
    results = [run_cell(chunk.cell, int(run), memory) for run in runs]
    return {
        "run": runs,
        "steps": np.array([result.steps for result in results], np.int64),
        "episodes": np.array([result.episodes for result in results], np.int64),
        "censored": np.array([result.censored for result in results], np.bool_),
        "final_performance": np.array([result.final_performance for result in results]),
    }


def chunks_of(cells: Iterable[Cell], runs: int, size: int, first: int = 0) -> list[Chunk]:
    """Return the runs `first` to `runs` - 1 of all cells in chunks of at most `size` runs.

    All cells' first chunks come first, so that an interrupted sweep has some runs of everything.

    Raises
    ------
    ValueError
        If there are no runs.
    """
    if runs < 1:
        raise ValueError(f"runs: expected at least one, got {runs}.")
    cells = list(cells)
    return [
        Chunk(cell, start, min(size, runs - start))
        for start in range(first, runs, size)
        for cell in cells
    ]


def sweep(
    chunks: Sequence[Chunk],
    directory: str | os.PathLike[str],
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> int:
    """Compute the chunks that a directory lacks; return how many there were.

    Parameters
    ----------
    chunks : sequence of Chunk
        What the dataset should hold, in the order of computation.
    directory : path
        The dataset; continued where an earlier sweep ended.
    workers : int, optional
        Threads; as many as there are processors if missing.
    scheduler : str, optional
        Address of a running Dask scheduler to use instead.
    progress : bool
        Whether to show progress and the time left on standard error.

    Raises
    ------
    StoreError
        If the directory holds a torn or foreign file, or a chunk cannot be written.
    ValueError
        If the number of workers is not positive, or the scheduler cannot be used.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers: expected at least one, got {workers}.")
    store = Store(directory)
    todo = store.missing(chunks)
    done = sum(chunk.count for chunk in chunks) - sum(chunk.count for chunk in todo)
    compute = _on_cluster(scheduler) if scheduler else _on_threads(workers or os.cpu_count() or 1)
    bar = tqdm(
        total=done + sum(chunk.count for chunk in todo),
        initial=done,
        unit="run",
        disable=not progress,
        smoothing=0.02,
    )
    with bar:
        for chunk, measured in compute(todo):
            store.write(chunk, measured)
            bar.update(chunk.count)
    return len(todo)


_Compute = Callable[[Sequence[Chunk]], Iterator[tuple[Chunk, Measured]]]


def _on_threads(workers: int) -> _Compute:
    def compute(todo: Sequence[Chunk]) -> Iterator[tuple[Chunk, Measured]]:
        waiting, running = iter(todo), dict[Future[Measured], Chunk]()
        pool = ThreadPoolExecutor(workers)
        try:
            while True:
                # Only as much in flight as there are workers: an error or a kill loses no more.
                while len(running) < workers and (chunk := next(waiting, None)) is not None:
                    running[pool.submit(run_chunk, chunk)] = chunk
                if not running:
                    return
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    return compute


def _on_cluster(address: str) -> _Compute:
    try:
        import distributed
    except ImportError:
        raise ValueError(
            "scheduler: needs the package distributed (pip install 'pu-lib[cluster]')."
        ) from None

    dask: Any = distributed

    def compute(todo: Sequence[Chunk]) -> Iterator[tuple[Chunk, Measured]]:
        try:
            client = dask.Client(address, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            raise ValueError(f"scheduler: {address} cannot be reached ({error}).") from None
        with client:
            futures = {client.submit(run_chunk, chunk, pure=False): chunk for chunk in todo}
            for future in dask.as_completed(list(futures)):
                measured = future.result()
                yield futures.pop(future), measured
                future.release()

    return compute
