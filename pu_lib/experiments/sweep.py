"""Sweeps: many runs of many settings, on threads or a cluster, resumable, the same every time.

A `Cell` is one setting; its runs are numbered from 0. Run r of a domain starts from the words of
``SeedSequence(seed, spawn_key=(crc32(domain), r))``, whatever the parameters, the update, the
learning rate, the scheme, the thread or the machine; run r of a domain that is drawn, such as
``random-mdp``, also has its own process, from ``spawn_key=(crc32(domain), r, 1)``. Settings can
therefore be compared run by run.

Chunks of runs are computed independently, and written by the thread that calls `sweep` (see
`pu_lib.experiments.database`). The compiled loop releases the interpreter lock, so that threads use
all cores; a Dask scheduler gets the same chunks.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pu_lib.arrays import as_float, as_int
from pu_lib.domains import DOMAINS, read_domain
from pu_lib.experiments.actors import columns_of, configured, label_in_table, run_of
from pu_lib.experiments.adaptive import Needed, rounds
from pu_lib.experiments.cells import Cell, Chunk
from pu_lib.experiments.database import Database
from pu_lib.experiments.jekyll_hyde import Memory, Run, seed_state, simulate
from pu_lib.experiments.options import describe, parse, scheme_of
from pu_lib.experiments.panels import RATES
from pu_lib.experiments.processes import (
    IN_COLUMNS,
    aims_of,
    digest_of,
    domain_of,
    held,
    hold,
    problem_of,
    process_of,
    sized,
    stream_of,
)
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES, as_update, name_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "chunks_of",
    "compiled_updates",
    "grid",
    "problem_of",
    "process_of",
    "run_cell",
    "run_chunk",
    "run_chunks",
    "sweep",
]

Measured = dict[str, NDArray[Any]]

CHUNK = 20
"""Runs in a chunk."""

_MOST_STEPS, _MOST_CHUNKS = 10**10, 10**6
_PATIENCE = "10s"  # for the scheduler to answer
_local = threading.local()


# What to run


def grid(
    process: Any,
    updates: Sequence[str] | None = None,
    rates: Sequence[float] = RATES,
    schemes: Sequence[str] = ("HiOffPol",),
    runs: int = 20,
    max_steps: int = 1_000_000,
    target: float | None = None,
    preset: str = "paper",
    seed: int = 0,
    parameters: Mapping[str, Sequence[Any]] | None = None,
    experiment: str | None = None,
) -> list[Chunk]:
    """Return the runs of a grid of settings on one process, in chunks.

    Parameters
    ----------
    process : FiniteMDP, gymnasium.Env, str or path
        What `pu_lib.experiments.processes.domain_of` takes: an entry of `DOMAINS` with its
        parameters, a Gymnasium environment or id, a file, a process.
    updates : sequence of str, optional
        Updates with a kernel, as `pu_lib.updates.as_update` takes them: ``pg-es`` has its exact
        factor, ``pg-es factor=drop`` is the paper's program. If missing, everything in `UPDATES`
        as the paper's experiments run it, that is with ``pg-es factor=drop``.
    rates : sequence of float
        Learning rates of the actor.
    schemes : sequence of str
        Exploration schemes.
    runs, max_steps : int
        Runs of each setting, and their cap.
    target : float, optional
        Normalised performance to reach; that of the domain if missing.
    preset : str
        The open details, as `pu_lib.experiments.options.parse` reads them.
    seed : int
        Root of all randomness.
    parameters : mapping of str to sequence, optional
        Values of parameters of the domain; all combinations are run.
    experiment : str, optional
        What the runs are called in tables; the domain or the file if missing.

    Returns
    -------
    list of Chunk
        As `sweep` takes them.

    Raises
    ------
    ValueError
        If the process cannot be read or has nothing to learn, a name is unknown, or a number is
        out of range or given twice.
    """
    label = domain_of(process)
    options = parse(preset)
    names = compiled_updates() if updates is None else list(updates)
    for name in names:
        if as_update(name).kernel is None:
            raise ValueError(f"update: {name} has no compiled kernel; `race` takes it, slowly.")
    _once("update", [name_of(configured(name, options)) for name in names])
    for eta in _once("eta", rates):
        if not as_float("eta", eta) > 0.0:
            raise ValueError(f"eta: expected a finite number > 0, got {eta}.")
    schemes = _once("scheme", [scheme_of(scheme).name for scheme in schemes])
    first = Cell(
        experiment=experiment or _called(process, label),
        domain=label,
        scheme="",
        update="",
        eta=0.0,
        n_states=0,
        n_actions=0,
        beta=math.nan,
        preset=describe(options),
        max_steps=as_int("max_steps", max_steps, low=1, high=_MOST_STEPS),
        target=float(aims_of(label)[1] if target is None else target),
        seed=as_int("seed", seed, low=0, high=2**63 - 1),
    )
    columns = [columns_of(name, options) for name in names]
    cells = [
        replace(cell, scheme=scheme, update=update, preset=noted, eta=float(eta))
        for cell in _settings(first, dict(parameters or {}))
        for scheme in schemes
        for eta in rates
        for update, noted in columns
    ]
    return chunks_of(cells, runs, CHUNK)


def compiled_updates() -> list[str]:
    """Return the updates of a sweep that names none: those with a kernel, as the paper runs them.

    Returns
    -------
    list of str
        Strings as `pu_lib.updates.as_update` takes them.
    """
    return [label_in_table(name, "paper") for name, update in UPDATES.items() if update.kernel]


def _once(name: str, values: Sequence[Any]) -> Sequence[Any]:
    """Return the values, if there are some and none twice."""
    if not len(values):
        raise ValueError(f"{name}: expected at least one.")
    twice = sorted({str(value) for value in values if list(values).count(value) > 1})
    if twice:
        raise ValueError(f"{name}: given twice: {', '.join(twice)}.")
    return values


def _called(process: Any, label: str) -> str:
    """Return what the runs of a process are called, without the place of a file."""
    if isinstance(process, (str, os.PathLike)) and held(label) is not None:
        return Path(process).name
    return label.split(" ")[0]


def _settings(first: Cell, values: dict[str, Sequence[Any]]) -> list[Cell]:
    """Return a cell for each combination of the parameters of its domain, with its size."""
    if stream_of(first) not in DOMAINS:
        for name in values:
            raise ValueError(f"{name}: {first.experiment} has no parameters.")
        return [sized(first)]
    domain, given = read_domain(first.domain)
    for name, chosen in values.items():
        domain.label(**{name: None})  # speaks up about a parameter that the domain has not
        _once(name, chosen)
        if name in given:
            raise ValueError(f"{name}: given twice, in {first.domain!r} and as a parameter.")
    cells = []
    for combination in product(*values.values()):
        found = {**domain.parameters, **given, **dict(zip(values, combination, strict=True))}
        columns = {name: found.pop(name) for name in IN_COLUMNS if name in found}
        cells.append(sized(replace(first, domain=domain.label(**found), **columns)))
    return cells


def chunks_of(cells: Iterable[Cell], runs: int, size: int) -> list[Chunk]:
    """Return `runs` runs of all cells in chunks of at most `size` runs.

    All cells' first chunks come first, so that an interrupted sweep has some runs of everything.

    Parameters
    ----------
    cells : iterable of Cell
        The settings.
    runs : int
        The number of runs of each cell, at least 1.
    size : int
        The largest number of runs in a chunk, at least 1.

    Returns
    -------
    list of Chunk
        The chunks, in the order in which they should be run.

    Raises
    ------
    ValueError
        If there are no runs, or too many to number.
    """
    as_int("size", size, low=1)
    cells = list(cells)
    runs = as_int("runs", runs, low=1)
    if len(cells) * (runs // size) > _MOST_CHUNKS:
        raise ValueError(
            f"runs: {runs} runs of {len(cells)} settings make more than {_MOST_CHUNKS} chunks."
        )
    return [
        Chunk(cell, start, min(size, runs - start))
        for start in range(0, runs, size)
        for cell in cells
    ]


# Running it


def run_cell(cell: Cell, run: int, memory: Memory | None = None) -> Run:
    """Compute one run of a cell.

    Parameters
    ----------
    cell : Cell
        The setting.
    run : int
        Number of the run, from 0.
    memory : Memory, optional
        If given, it holds the final state of the run afterwards.

    Returns
    -------
    Run
        Steps, trajectories, whether the run was censored, and the performance at its end.
    """
    update, options = run_of(cell.update, cell.preset)
    return simulate(
        problem_of(cell, run),
        update,
        cell.eta,
        scheme_of(cell.scheme),
        seed_state(cell.seed, stream_of(cell), run),
        options,
        cell.max_steps,
        memory,
    )


def run_chunk(
    chunk: Chunk, process: FiniteMDP | None = None, digest: str | None = None
) -> Measured:
    """Compute the runs of a chunk; return their measured columns.

    Parameters
    ----------
    chunk : Chunk
        What to run.
    process : FiniteMDP, optional
        The process, where cells know it by its content and this machine may not hold it.
    digest : str, optional
        What `pu_lib.experiments.processes.digest_of` has to return on this machine.

    Returns
    -------
    dict of str to ndarray, shape (count,)
        The columns run, steps, episodes, censored and final_performance.

    Raises
    ------
    ValueError
        If the process has another digest, or is unknown.
    """
    if process is not None:
        hold(process)
    if digest not in (None, digest_of(chunk.cell)):
        raise ValueError(
            f"{chunk.cell.domain!r} is another process here; install the same versions"
        )
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


def sweep(
    what: Any,
    directory: str | os.PathLike[str],
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool = False,
    known: pd.DataFrame | None = None,
    adaptive: bool = False,
    **settings: Any,
) -> int:
    """Compute the runs that a directory lacks; return how many chunks there were.

    Parameters
    ----------
    what : process, or sequence of Chunk
        A process as `grid` takes it, or the chunks that the database should have, in the order of
        computation.
    directory : path
        Where the runs go: to the database ``runs.sqlite``, continued where an earlier sweep ended,
        and at the end to ``runs.parquet``, which `pandas.read_parquet` reads.
    workers : int, optional
        Threads; as many as there are processors if missing.
    scheduler : str, optional
        Address of a running Dask scheduler to use instead.
    progress : bool
        Whether to show progress and the time left on standard error.
    known : pandas.DataFrame, optional
        A table of runs, such as the committed one: those of the present engine are taken over and
        not computed again.
    adaptive : bool
        Whether to make no more runs of settings that are certainly far from their update's best;
        the rule, and how often it errs, stand in `pu_lib.experiments.adaptive`.
    **settings
        Updates, rates and so on, for `grid`, where `what` is a process.

    Returns
    -------
    int
        The number of chunks that were computed.

    Raises
    ------
    DatabaseError
        If the database is damaged, has runs of another engine or process, or cannot be written.
    ValueError
        If a setting is out of range, the number of workers is not positive, or the scheduler
        cannot be used.
    """
    if isinstance(what, (list, tuple)):
        if settings:
            raise ValueError(f"{next(iter(settings))}: the chunks say this already.")
        chunks: Sequence[Chunk] = what
    else:
        chunks = grid(what, **settings)
    threads = _threads(workers)
    total, computed = sum(chunk.count for chunk in chunks), 0
    with (
        Database(directory) as database,
        tqdm(total=total, unit="run", disable=not progress, smoothing=0.02) as bar,
    ):
        if known is not None:
            database.take_over(known, {chunk.cell for chunk in chunks})
        needed = Needed(database.read()) if adaptive else None
        for part in [chunks] if needed is None else rounds(chunks):
            todo = database.missing(part if needed is None else needed.of(part))
            computed += len(todo)
            done = sum(chunk.count for chunk in part) - sum(chunk.count for chunk in todo)
            bar.n += done
            for chunk, measured in _computing(todo, threads, scheduler):
                database.write(chunk, measured)
                if needed is not None:
                    needed.note(chunk, measured)
                bar.update(chunk.count)
        database.export()
    return computed


def _computing(
    todo: Sequence[Chunk], threads: int, scheduler: str | None
) -> Iterator[tuple[Chunk, Measured]]:
    """Yield chunks with what was measured, from threads or from a cluster."""
    return run_chunks(todo, threads) if scheduler is None else _on_cluster(scheduler, todo)


def _threads(workers: int | None) -> int:
    return (os.cpu_count() or 1) if workers is None else as_int("workers", workers, low=1)


def run_chunks(
    chunks: Sequence[Chunk],
    workers: int | None = None,
    compute: Callable[[Chunk], Measured] | None = None,
) -> Iterator[tuple[Chunk, Measured]]:
    """Yield chunks with what was measured, as they are finished by threads.

    Parameters
    ----------
    chunks : sequence of Chunk
        What to run.
    workers : int, optional
        Threads; as many as there are processors if missing.
    compute : callable, optional
        What returns the measured columns of a chunk; `run_chunk` if missing.

    Yields
    ------
    chunk : Chunk
        A chunk, in the order in which they end.
    measured : mapping of str to ndarray
        Its measured columns.

    Raises
    ------
    BaseException
        Whatever `compute` raises, in the thread that waits for the result.
    """
    computing = run_chunk if compute is None else compute
    tasks: SimpleQueue[Chunk | None] = SimpleQueue()
    finished: SimpleQueue[tuple[Chunk, Measured | BaseException]] = SimpleQueue()

    def work() -> None:
        while (chunk := tasks.get()) is not None:
            try:
                finished.put((chunk, computing(chunk)))
            except BaseException as error:  # for the thread that waits for the result
                finished.put((chunk, error))

    # Daemons: an interrupt must not wait for runs that may take minutes.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(_threads(workers))]
    for thread in threads:
        thread.start()
    waiting = iter(chunks)

    def hand_out(count: int) -> int:
        given = list(islice(waiting, count))
        for chunk in given:
            tasks.put(chunk)
        return len(given)

    try:
        # Only as much in flight as there are threads, and what is being written: an error or a
        # kill loses no more.
        running = hand_out(len(threads))
        while running:
            done, measured = finished.get()
            if isinstance(measured, BaseException):
                raise measured
            running += hand_out(1) - 1  # at once: no thread waits for the disk
            yield done, measured
    finally:
        for _ in threads:
            tasks.put(None)


def _on_cluster(address: str, todo: Sequence[Chunk]) -> Iterator[tuple[Chunk, Measured]]:
    """Yield what the workers of a Dask scheduler measured."""
    try:
        import distributed
    except ImportError:
        raise ValueError(
            "scheduler: needs the package distributed (pip install 'pu-lib[cluster]')."
        ) from None

    dask: Any = distributed
    try:
        client = dask.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(f"scheduler: {address} cannot be reached ({error}).") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise ValueError(f"scheduler: {address} has no workers.") from None
        futures = {}
        for chunk in todo:
            given = chunk, held(chunk.cell.domain), digest_of(chunk.cell)
            futures[client.submit(run_chunk, *given, pure=False)] = chunk
        for future in dask.as_completed(list(futures)):
            try:
                measured = future.result()
            except ValueError as error:
                raise ValueError(
                    f"scheduler: a worker refused runs ({error}). Workers do not know updates, "
                    "domains and environments that were registered in this program; name an update "
                    "as module:NAME, pass a process itself, or sweep without a scheduler."
                ) from None
            yield futures.pop(future), measured
            future.release()
