"""Sweeps: many runs of many cells, computed by threads or on a cluster.

Sweeps can be resumed and reproduced. Chunks of runs are computed independently and written by the
thread that calls `sweep` (see `pu_lib.experiments.database`). The compiled loop releases the global
interpreter lock, so threads use all cores. A Dask scheduler receives the same chunks, with their
processes and updates.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats, as_float, as_int, underflow_to_zero
from pu_lib.domains import Domain, ProcessLike
from pu_lib.experiments.cells import (
    Cell,
    Chunk,
    Process,
    digest_of,
    naming_run,
    problem_of,
    read_process,
)
from pu_lib.experiments.jekyll_hyde import (
    Run,
    RunBuffers,
    checkpoints,
    engine_of,
    seed_state,
    simulate,
)
from pu_lib.experiments.options import (
    PAPER,
    Options,
    Scheme,
    configured,
    program,
    require_options,
    scheme_of,
)
from pu_lib.experiments.panels import STEP_SIZES
from pu_lib.experiments.problem import exact_performance
from pu_lib.experiments.results import Results, read_results
from pu_lib.extras import naming_the_extra
from pu_lib.progress import progress_bar
from pu_lib.records import made_by
from pu_lib.settings import as_list
from pu_lib.updates import UPDATES, Update, name_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "base_cell",
    "chunks_of",
    "compiled_updates",
    "grid",
    "merge_parts",
    "part_of",
    "performances",
    "require_repeatable",
    "run_cell",
    "run_chunk",
    "run_chunks",
    "run_missing",
    "sweep",
]

Measured = dict[str, NDArray[Any]]

CHUNK = 20
"""Number of runs in a chunk."""

_MOST_STEPS = 10**9  # of a run, whose buffer then has up to 4 GB
_MOST_CHUNKS = 10**6
_SHORT = 10.0  # seconds; the time of a sweep that takes less is not estimated
_PATIENCE = "10s"  # time to wait for the scheduler and its workers
_local = threading.local()


# Selection of the runs


@underflow_to_zero
def grid(
    process: ProcessLike,
    updates: str | Update | Sequence[str | Update] | None = None,
    step_sizes: float | Sequence[float] = STEP_SIZES,
    schemes: str | Sequence[str] = ("HiOffPol",),
    runs: int = 20,
    max_steps: int = 1_000_000,
    target: float | None = None,
    options: Options = PAPER,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    experiment: str | None = None,
    curves: bool = False,
) -> list[Chunk]:
    """Return the runs of a grid of settings on one process, in chunks.

    Parameters
    ----------
    process, step_sizes, schemes, runs, max_steps, target, options, seed, parameters
        As for `sweep`.
    experiment, curves
        As for `sweep`.
    updates : str, Update or sequence of these, optional
        Updates with a kernel, or strings accepted by `pu_lib.updates.as_update`: ``pg-es`` has its
        exact factor, and ``pg-es factor=drop`` is the update of the paper's program. The default is
        `compiled_updates`.

    Returns
    -------
    list of Chunk
        The chunks, in order of computation.

    Raises
    ------
    ValueError
        If the process cannot be read or its baseline is already optimal, an update has no kernel or
        keeps state in its attributes, a name is unknown, or an argument is out of range or
        repeated.
    """
    with naming_the_extra():
        from pu_lib.experiments.database import setting_text, update_words, words_of

    first, options = read_process(process), require_options(options)
    chosen = [
        configured(update, options)
        for update in as_list(compiled_updates() if updates is None else updates)
    ]
    for update in chosen:
        update_words(update, options)  # raises if an option has no column in tables
        if update.kernel is None:
            raise ValueError(
                f"updates: {name_of(update)} has no compiled kernel; use `race`, which is slow."
            )
    _require_once("updates", list(map(name_of, chosen)))
    sizes = _require_once("step_sizes", as_list(step_sizes))
    for step_size in sizes:
        if not as_float("step_sizes", step_size) > 0.0:
            raise ValueError(f"step_sizes: expected finite numbers > 0, got {step_size}.")
    chosen_schemes = [scheme_of(name) for name in _require_once("schemes", as_list(schemes))]
    title = _title(process, first) if experiment is None else experiment
    cells = [
        base_cell(each, chosen[0], chosen_schemes[0], options, max_steps, target, seed, title)
        for each in _variants(first, process, dict(parameters or {}))
    ]
    for update in chosen:
        require_repeatable(update, cells[0])
    for cell in cells:
        setting_text(words_of(cell))  # raises if a database cannot store the setting
    return chunks_of(
        [
            replace(cell, scheme=scheme, step_size=float(step_size), update=update)
            for cell in cells
            for scheme in chosen_schemes
            for step_size in sizes
            for update in chosen
        ],
        runs,
        CHUNK,
        curves,
    )


def compiled_updates() -> list[str]:
    """Return the names of the updates that have a kernel, the default updates of a sweep.

    The name of ``pg-es`` is ``pg-es factor=drop``, because the paper's program drops its factor.
    """
    return [program(name) for name, update in UPDATES.items() if update.kernel]


def _require_once(name: str, values: Sequence[Any]) -> Sequence[Any]:
    """Return the values; raise an error if there are no values or a value is repeated."""
    if not len(values):
        raise ValueError(f"{name}: expected at least one, got none.")
    twice = sorted({str(value) for value in values if list(values).count(value) > 1})
    if twice:
        raise ValueError(f"{name}: given twice: {', '.join(twice)}.")
    return values


def _title(argument: Any, process: Process) -> str:
    """Return the name of a process, or of its file (without the directory) if it was given."""
    is_file = isinstance(argument, (str, os.PathLike)) and process.name.startswith("mdp-")
    if not is_file:
        return process.name
    return Path(argument).name.encode("utf-8", "backslashreplace").decode()  # it may be no Unicode


def _variants(
    process: Process, argument: Any, values: dict[str, Sequence[Any]]
) -> Iterator[Process]:
    """Yield the process with each combination of the values of its parameters."""
    values = {name: as_list(chosen) for name, chosen in values.items()}
    for name, chosen in values.items():
        if not isinstance(process.source, Domain):
            raise ValueError(f"{name}: {_title(argument, process)} has no parameters.")
        process.source.label(**{name: None})  # raises if the domain has no such parameter
        _require_once(name, chosen)
        if f" {name}=" in str(argument):
            raise ValueError(f"{name}: given twice, in {argument!r} and as a parameter.")
    for combination in product(*values.values()):
        chosen_values = dict(zip(values, combination, strict=True))
        yield replace(process, parameters={**process.parameters, **chosen_values})


def base_cell(
    process: Process,
    update: Update,
    scheme: Scheme,
    options: Options,
    max_steps: int,
    target: float | None,
    seed: int,
    experiment: str,
) -> Cell:
    """Return a cell with step size 1; the default of `target` is the target of the process.

    Raises a `ValueError` if the seed is out of range, or if the size of the process differs from
    the parameters of its domain.
    """
    cell = Cell(
        process=process,
        update=update,
        step_size=1.0,
        scheme=scheme,
        options=options,
        max_steps=as_int("max_steps", max_steps, low=1, high=_MOST_STEPS),
        target=as_float("target", process.target if target is None else target),
        seed=as_int("seed", seed, low=0, high=2**63 - 1),
        experiment=experiment,
    )
    _require_size(cell)
    return cell


def require_repeatable(update: Update, cell: Cell) -> None:
    """Raise a `ValueError` if repeated steps of an update differ at a state of the process."""
    update._require_repeatable(update.initial(1, problem_of(cell, 0).n_actions)[0])


def _require_size(cell: Cell) -> None:
    """Raise a `ValueError` if the size of a process differs from the parameters of its domain."""
    problem = problem_of(cell, 0)
    sizes = {"n_states": problem.n_states, "n_actions": problem.n_actions}
    for name, expected in cell.process.parameters.items():
        if name in sizes and sizes[name] != expected:
            raise ValueError(
                f"{name}: the domain {cell.process.label!r} has {sizes[name]} where its parameter "
                f"says {expected}; rename the parameter of the domain."
            )


def chunks_of(cells: Iterable[Cell], runs: int, size: int, curves: bool = False) -> list[Chunk]:
    """Return runs 0 to `runs` - 1 of all cells, in chunks of at most `size` runs.

    The list begins with the first chunk of every cell, so that an interrupted sweep has some runs
    of each cell.

    Raises
    ------
    ValueError
        If `runs` or `size` is not positive, or there are too many chunks.
    """
    as_int("size", size, low=1)
    cells = list(cells)
    runs = as_int("runs", runs, low=1)
    if len(cells) * (runs // size) > _MOST_CHUNKS:
        raise ValueError(
            f"runs: {runs} runs of {len(cells)} settings make more than {_MOST_CHUNKS} chunks; "
            "split the sweep."
        )
    return [
        Chunk(cell, start, min(size, runs - start), curves)
        for start in range(0, runs, size)
        for cell in cells
    ]


# Computation of the runs


def run_cell(cell: Cell, run: int, memory: RunBuffers | None = None) -> Run:
    """Compute one run of a cell and return its outcome; `memory` then contains the final state."""
    problem, seeds = problem_of(cell, run), seed_state(cell.seed, cell.process.name, run)
    with naming_run(cell, run):
        return simulate(
            problem,
            cell.update,
            cell.step_size,
            cell.scheme,
            seeds,
            cell.options,
            cell.max_steps,
            memory,
        )


def performances(chunk: Chunk) -> Floats:
    """Return the normalised performance of the runs of a chunk at the checkpoints of the cap.

    The runs are computed again up to the cap, because a run ends when it passes the threshold. The
    result has shape (count, checkpoints).
    """
    cell, steps = chunk.cell, checkpoints(chunk.cell.max_steps)
    memory, rows = RunBuffers(record_at=steps), np.empty((chunk.count, len(steps)))
    for row, run in zip(rows, range(chunk.first, chunk.first + chunk.count), strict=True):
        run_cell(cell, run, memory)
        problem = problem_of(cell, run)
        row[:] = [exact_performance(problem, policy) for policy in memory.recorded]
        row[:] = problem.normalised(row)
    return rows


@underflow_to_zero
def run_chunk(chunk: Chunk) -> Measured:
    """Compute the runs of a chunk and return their measured columns.

    The columns are run, steps, episodes, censored and final_performance, performances if the chunk
    has curves, and seconds, which is not stored.
    """
    memory: RunBuffers = _local.__dict__.setdefault("memory", RunBuffers())
    runs = np.arange(chunk.first, chunk.first + chunk.count, dtype=np.int32)
    results, times = [], [time.perf_counter()]
    for run in runs:
        results.append(run_cell(chunk.cell, int(run), memory))
        times.append(time.perf_counter())
    measured: Measured = {
        "seconds": np.diff(times),
        "run": runs,
        "steps": np.array([result.steps for result in results], np.int64),
        "episodes": np.array([result.episodes for result in results], np.int64),
        "censored": np.array([result.censored for result in results], np.bool_),
        "final_performance": np.array([result.final_performance for result in results]),
    }
    if chunk.curves:
        measured["performances"] = performances(chunk)
    return measured


def sweep(
    process: ProcessLike,
    directory: str | os.PathLike[str],
    *,
    updates: str | Update | Sequence[str | Update] | None = None,
    step_sizes: float | Sequence[float] = STEP_SIZES,
    schemes: str | Sequence[str] = ("HiOffPol",),
    runs: int = 20,
    max_steps: int = 1_000_000,
    target: float | None = None,
    options: Options = PAPER,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    experiment: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool | None = None,
    known: pd.DataFrame | None = None,
    adaptive: bool = False,
    curves: bool = False,
    part: str | None = None,
) -> Results:
    """Compute the runs of a grid of settings that are missing in a directory.

    Parameters
    ----------
    process : FiniteMDP, gymnasium.Env, str or path
        A process; an environment or its id; a domain with its parameters, as in
        ``chain beta=0.7``; or the path of an ``.npz`` file written by `FiniteMDP.save`.
    directory : path
        Directory of the runs. The sweep adds runs to the database ``runs.sqlite``, which an earlier
        sweep may have created, and then writes all runs to the table ``runs.parquet``, which
        `pandas.read_parquet` can read, and the sources of updates that are not of the library to
        ``about.json``.
    updates : str, Update or sequence of these, optional
        Updates with a kernel, or strings accepted by `pu_lib.updates.as_update`. The default is all
        registered updates with a kernel, with ``pg-es factor=drop``, the update of the paper's
        program, instead of ``pg-es``.
    step_sizes : float or sequence of float
        Step sizes of the actor.
    schemes : str or sequence of str
        Names of exploration schemes.
    runs, max_steps : int
        Number of runs of each setting, and the cap on their steps, at most 1e9.
    target : float, optional
        Normalised performance to reach. The default is the target of the domain, or 0.95 if the
        process is not from a domain.
    options : Options
        The details that the paper leaves open, such as ``dataclasses.replace(PAPER, cut=0)``.
    seed : int
        Root seed.
    parameters : mapping of str to value or sequence, optional
        Values of parameters of the domain. Each combination is run.
    experiment : str, optional
        Name of the runs in tables. The default is the name of the process or its file.
    workers : int, optional
        Number of threads. The default is the number of processors.
    scheduler : str, optional
        Address of a running Dask scheduler to use instead of threads.
    progress : bool, optional
        Whether to show progress and the remaining time on standard error. By default progress is
        shown in terminals and notebooks.
    known : pandas.DataFrame, optional
        A table of runs. Runs of the current engine and the same process in the table are not
        computed again. A table without the column `process` counts only for the domains of the
        paper and for processes that are named after their content.
    adaptive : bool
        Whether to drop settings that are far from the best setting of the same update.
    curves : bool
        Whether to keep learning curves: the normalised performance of each run after each of the
        first 20 steps, and then whenever the number of steps has grown by 10 %, in a column
        ``performances``. Runs are then computed up to `max_steps`, also after they have reached the
        target. Other columns do not change.
    part : str, optional
        The part of the runs to compute, such as ``2/3``, in a directory of its own in `directory`.
        Parts can be computed on different machines; `merge_parts` joins them.

    Returns
    -------
    Results
        All runs in the directory, or of the part, with the number of chunks that this sweep
        computed. The method `to_frame` returns the statistics of each setting.

    Raises
    ------
    DatabaseError
        If the database is damaged, has runs of another engine or process, or cannot be written.
    ValueError
        If the process cannot be read or its baseline is already optimal, an argument is out of
        range, an update keeps state in its attributes, or the scheduler cannot be used.
    ModuleNotFoundError
        If pandas or pyarrow is not installed.
    """
    chunks = grid(
        process,
        updates,
        step_sizes,
        schemes,
        runs,
        max_steps,
        target,
        options,
        seed,
        parameters,
        experiment,
        curves,
    )
    chunks, directory = part_of(chunks, directory, part, adaptive)
    computed = run_missing(
        chunks, directory, workers, scheduler, progress, known, adaptive, exclusive=part is not None
    )
    return read_results(directory, computed)


def part_of(
    chunks: list[Chunk],
    directory: str | os.PathLike[str],
    part: str | None,
    adaptive: bool = False,
) -> tuple[list[Chunk], Path]:
    """Return the chunks and the directory of a part, or of the whole sweep if `part` is None.

    Raises a `ValueError` if `part` is malformed, or if the sweep is adaptive.
    """
    if part is None:
        return chunks, Path(directory)
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", part) if isinstance(part, str) else None
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        raise ValueError(f"part: expected i/n with 1 <= i <= n, as in '2/3', got {part!r}.")
    if adaptive:
        raise ValueError(
            "part: an adaptive sweep compares all runs while it computes; sweep the parts in full."
        )
    # Each round of n chunks begins one part later, so that no part has all chunks of one update.
    chosen = [chunk for k, chunk in enumerate(chunks) if (k + k // count) % count == number - 1]
    return chosen, Path(directory) / f"part-{number}-of-{count}"


def merge_parts(directory: str | os.PathLike[str]) -> Results:
    """Write the runs of all parts in a directory to the database and the table of the directory.

    Parameters
    ----------
    directory : path
        The directory that was given to `sweep` with each `part`. Runs that are already in its
        database are kept.

    Returns
    -------
    Results
        All runs in the directory, in the same order as those of a sweep without parts.

    Raises
    ------
    ValueError
        If there are no parts, or some are missing or not finished; the message names them.
    DatabaseError
        If the parts are of different engines or processes, or the database cannot be written.
    ModuleNotFoundError
        If pandas or pyarrow is not installed.
    """
    with naming_the_extra():
        from pu_lib.experiments.database import Database, read_about

    folder = Path(directory)
    names = [re.fullmatch(r"part-\d+-of-(\d{1,6})", path.name) for path in folder.glob("part-*")]
    counts = sorted({int(name[1]) for name in names if name})
    if not counts:
        raise ValueError(f"{folder}: there are no parts in it; compute them with part='1/3' etc.")
    parts = {
        f"{number}/{count}": folder / f"part-{number}-of-{count}"
        for count in counts
        for number in range(1, count + 1)
    }
    lacking = [
        part
        for part, path in parts.items()
        if not (path / "runs.parquet").exists() or (path / "runs.sqlite-wal").exists()
    ]
    if lacking:
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        raise ValueError(
            f"{folder}: parts {', '.join(lacking[:5])}{more} are missing or not finished; sweep "
            "each with the same settings, which resumes it."
        )
    about: dict[str, Any] = {"sources": {}}
    with Database(folder, exclusive=True) as database:
        for path in parts.values():
            with Database(path, read_only=True) as one:
                database.add(one.read())
            of_part = read_about(path)
            about |= {**of_part, "sources": {**about["sources"], **of_part.get("sources", {})}}
        database.export(about)
    return read_results(folder)


def run_missing(
    chunks: Sequence[Chunk],
    directory: str | os.PathLike[str],
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool | None = None,
    known: pd.DataFrame | None = None,
    adaptive: bool = False,
    exclusive: bool = False,
    estimate: bool = False,
) -> int:
    """Compute the runs of the chunks that are not in a directory yet.

    Parameters
    ----------
    chunks : sequence of Chunk
        The runs, in order of computation.
    directory, workers, scheduler, progress, known, adaptive
        As for `sweep`. `pu_lib.experiments.adaptive` states the rule of adaptive sweeps and the
        error of this rule.
    exclusive : bool
        Whether no other program may use the database meanwhile; it may then be on a network disk.
    estimate : bool
        Whether to print, after the first chunk, how long the others take on standard error, if
        there is no progress bar and threads compute the runs.

    Returns
    -------
    int
        The number of chunks that were computed.

    Raises
    ------
    DatabaseError
        If the database is damaged, has runs of another engine or process, or cannot be written.
    ValueError
        If the number of workers is not positive, or the scheduler cannot be used.
    """
    with naming_the_extra():
        from pu_lib.experiments.adaptive import EarlyStopping, rounds
        from pu_lib.experiments.database import Database

    threads = _threads(workers)
    left, computed = sum(chunk.count for chunk in chunks), 0
    with (
        Database(directory, exclusive=exclusive) as database,
        progress_bar(left, progress) as bar,
    ):
        if known is not None:
            database.take_over(known, [chunk.cell for chunk in chunks])
        stopping = EarlyStopping(database.read()) if adaptive else None
        for part in [chunks] if stopping is None else rounds(chunks):
            todo = database.missing(part if stopping is None else stopping.needed(part))
            computed += len(todo)
            known_runs = sum(chunk.count for chunk in part) - sum(chunk.count for chunk in todo)
            bar.n += known_runs
            left -= known_runs
            for chunk, measured in _computing(todo, threads, scheduler):
                database.write(chunk, measured)
                if stopping is not None:
                    stopping.note(chunk, measured)
                bar.update(chunk.count)
                left -= chunk.count
                if estimate and bar.disable and scheduler is None:
                    _print_estimate(measured["seconds"], left, threads)
                    estimate = False
        updates = {id(chunk.cell.update): chunk.cell.update for chunk in chunks}
        database.export(made_by(list(updates.values())))
    return computed


def _print_estimate(seconds: NDArray[np.float64], left: int, threads: int) -> None:
    """Print how long the other runs take if each takes as long as the median of the given runs.

    The median leaves out the first run, which compiles.
    """
    needed = float(np.median(seconds)) * left / threads
    if needed < _SHORT:
        return
    unit, size = next(x for x in _UNITS if needed >= 2 * x[1])
    print(
        f"About {needed / size:.0f} {unit} for the other {left} runs, at the pace of the first "
        f"{len(seconds)}.",
        file=sys.stderr,
        flush=True,
    )


_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def _computing(
    todo: Sequence[Chunk], threads: int, scheduler: str | None
) -> Iterator[tuple[Chunk, Measured]]:
    """Yield chunks with their measured columns, from threads or from a cluster."""
    return run_chunks(todo, threads) if scheduler is None else _on_cluster(scheduler, todo)


def _threads(workers: int | None) -> int:
    return (os.cpu_count() or 1) if workers is None else as_int("workers", workers, low=1)


def run_chunks(
    chunks: Sequence[Chunk],
    workers: int | None = None,
    compute: Callable[[Chunk], Measured] | None = None,
) -> Iterator[tuple[Chunk, Measured]]:
    """Yield chunks with their measured columns, in the order in which threads finish the chunks.

    The function `compute`, which is `run_chunk` by default, returns the measured columns of a
    chunk. An exception in a thread is raised in the thread that iterates.
    """
    computing = run_chunk if compute is None else compute
    tasks: SimpleQueue[Chunk | None] = SimpleQueue()
    finished: SimpleQueue[tuple[Chunk, Measured | BaseException]] = SimpleQueue()

    def work() -> None:
        while (chunk := tasks.get()) is not None:
            try:
                finished.put((chunk, computing(chunk)))
            except BaseException as error:  # raised in the thread that iterates
                finished.put((chunk, error))

    # Daemon threads, because an interrupt must not wait for runs that may take minutes.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(_threads(workers))]
    for thread in threads:
        thread.start()
    waiting = iter(chunks)

    def hand_out(count: int) -> int:
        next_chunks = list(islice(waiting, count))
        for chunk in next_chunks:
            tasks.put(chunk)
        return len(next_chunks)

    try:
        # Compute one chunk per thread at a time: an error or a kill then loses few chunks.
        running = hand_out(len(threads))
        while running:
            done, measured = finished.get()
            if isinstance(measured, BaseException):
                raise measured
            running += hand_out(1) - 1  # before the yield, so that no thread waits for the disk
            yield done, measured
    finally:
        for _ in threads:
            tasks.put(None)


def _on_cluster(address: str, todo: Sequence[Chunk]) -> Iterator[tuple[Chunk, Measured]]:
    """Yield chunks with their measured columns, from the workers of a Dask scheduler."""
    try:
        import cloudpickle
        import distributed
    except ImportError:
        raise ValueError(
            "scheduler: needs the package distributed; run pip install 'pu-lib[cluster]'."
        ) from None

    dask: Any = distributed
    try:
        client = dask.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"scheduler: {address} cannot be reached ({error}); start it, or omit scheduler."
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise ValueError(f"scheduler: {address} has no workers; start a worker.") from None
        futures = {
            # As bytes, so that the scheduler needs no modules, and a worker can name what it lacks.
            client.submit(
                _run_on_worker, cloudpickle.dumps(chunk), _content_of(chunk.cell), pure=False
            ): chunk
            for chunk in todo
        }
        for future in dask.as_completed(list(futures)):
            try:
                measured = future.result()
            except ModuleNotFoundError as error:
                raise ValueError(_advice_on_module(error)) from None
            except ValueError as error:
                raise ValueError(
                    f"scheduler: a worker refused runs ({error}). Start the workers with the same "
                    "packages and with the modules of your own updates and domains on PYTHONPATH, "
                    "define these in the program that calls sweep, or omit scheduler."
                ) from None
            yield futures.pop(future), measured
            future.release()


def _advice_on_module(error: ModuleNotFoundError) -> str:
    """Return a sentence that says where the module is that a worker lacks."""
    name = str(error.name).partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None)
    folder = "the folder of the module"
    if file is not None:
        path = Path(file).resolve()
        folder = str(path.parents[1] if path.name == "__init__.py" else path.parent)
    return (
        f"scheduler: a worker has no module {name!r}. Start the workers with PYTHONPATH={folder}, "
        "define its updates and domains in the program that calls sweep, or omit scheduler."
    )


def _content_of(cell: Cell) -> tuple[str, str]:
    """Return the digest of the process of a cell and the engine of its update."""
    return digest_of(cell), engine_of(cell.update, cell.options)


def _run_on_worker(pickled: bytes, content: tuple[str, str]) -> Measured:
    """Compute the runs of a chunk; raise a `ValueError` if this machine would compute others."""
    import cloudpickle

    try:
        chunk: Chunk = cloudpickle.loads(pickled)
    except ModuleNotFoundError:
        raise
    except (ImportError, AttributeError) as error:  # no such name in a module
        raise ValueError(str(error)) from None
    digest, engine = _content_of(chunk.cell)
    if digest != content[0]:
        raise ValueError(f"{chunk.cell.process.label!r} is another process here")
    if engine != content[1]:
        raise ValueError(f"the engine of {name_of(chunk.cell.update)} is another one here")
    return run_chunk(chunk)
