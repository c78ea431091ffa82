"""Races: all updates over a grid of step sizes on one process.

All updates and step sizes share the same random streams. An update is ranked by the smallest
restricted mean time to the target over its step sizes. The step size is selected on the same runs,
which biases this mean downward slightly for every update. If the best step size is the smallest or
the largest of the default grid, the grid of this update is extended. If the best step size remains
at the edge, a note reports this.

The policy is evaluated after each of the first 67 steps and then at step t + floor(0.03 t). The
grid of evaluations in the paper's experiments is coarser and begins at step 25 or 100.

Updates with a kernel run in the compiled loop. Other updates run in the plain loop of
`pu_lib.experiments.reference`, which is hundreds of times slower.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats, as_float, as_int, underflow_to_zero
from pu_lib.domains import ProcessLike
from pu_lib.experiments.cells import (
    Cell,
    Chunk,
    digest_of,
    mdp_of,
    naming_run,
    problem_of,
    read_process,
)
from pu_lib.experiments.jekyll_hyde import RunBuffers, checkpoints, seed_state, simulate
from pu_lib.experiments.lines import (
    STATISTICS,
    TIMES,
    draw_curve,
    draw_times,
    label_axes,
    words_of_times,
)
from pu_lib.experiments.options import PAPER, SCHEMES, Options, configured, require_options
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.sweep import (
    Measured,
    base_cell,
    performances,
    require_repeatable,
    run_chunks,
)
from pu_lib.experiments.thresholds import MEAN_RUNS, MEDIAN_RUNS, Summary, summarise
from pu_lib.extras import naming_the_extra
from pu_lib.progress import progress_bar
from pu_lib.records import Record, axes_of, described
from pu_lib.settings import as_list, find_name
from pu_lib.updates import UPDATES, Update, label_of, name_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["RACE_STEP_SIZES", "Race", "RaceEntry", "race"]

RACE_STEP_SIZES = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0, 31.6, 100.0)
"""Default step sizes of a race, with two step sizes per decade."""

_MOST_RUNS = 10**6

_FIRST_GAP = 1
"""Steps between the early evaluations of a race."""

_LONGER = 4
"""Maximal number of step sizes added at an end of the default grid; four span two decades."""


@dataclass(frozen=True)
class RaceEntry:
    """The times of one update in a race.

    Attributes
    ----------
    update : str
        The update as a string, such as ``pg-es factor=drop``.
    summaries : dict of float to Summary
        The statistics at each step size.
    own_label : str
        The label of an update that is not registered, or an empty text.
    performances : dict of float to ndarray, shape (runs, checkpoints)
        The normalised performance of each run at the `checkpoints` of the cap, at each step size;
        empty without ``curves=True``.
    """

    update: str
    summaries: dict[float, Summary] = field(repr=False)
    own_label: str = field(default="", repr=False)
    performances: dict[float, Floats] = field(default_factory=dict, repr=False, compare=False)

    @property
    def label(self) -> str:
        """The label of the update, with its options."""
        name, space, options = self.update.partition(" ")
        if self.update in UPDATES or (name in UPDATES and "=" in options):
            return label_of(self.update) + (space + options) * (self.update not in UPDATES)
        return self.own_label or self.update

    @property
    def best_step_size(self) -> float:
        """The step size with the smallest restricted mean; ties select the smallest step size."""
        return min(self.summaries, key=lambda size: (self.summaries[size].mean, size))

    @property
    def best(self) -> Summary:
        """The statistics at the best step size."""
        return self.summaries[self.best_step_size]

    @property
    def finished(self) -> bool:
        """Whether any run at any step size reached the target."""
        return any(summary.censored < 1.0 for summary in self.summaries.values())

    @property
    def edge(self) -> str:
        """The end of the grid that is best: "lowest", "highest", or "" if it is neither.

        The value is also "" if no run reached the target, or if the two lowest step sizes
        are tied.
        """
        sizes = sorted(self.summaries)
        if not self.finished or self.best_step_size not in (sizes[0], sizes[-1]):
            return ""
        if self.best_step_size == sizes[-1]:  # then no smaller one is tied with it
            return "highest"
        return "" if self.summaries[sizes[1]].mean == self.best.mean else "lowest"


@dataclass(frozen=True, repr=False)
class Race(Record, Sequence[RaceEntry]):
    """The results of a race: a sequence of entries from the fastest to the slowest.

    When printed, or shown by a notebook, a race is a table of the best step sizes and times,
    followed by the notes. Instead of an interval, the table has "too few runs" if there are fewer
    than 6 runs for a median, or fewer than 100 for a mean. `pu_lib.experiments.thresholds` has the
    reason.

    Attributes
    ----------
    entries : tuple of RaceEntry
        One entry per update; updates that never reached the target come last.
    max_steps : int
        The cap of a run.
    about : mapping
        What made the race: the updates with the source of those that are not of the library, the
        settings, the seed, the digest of the process, and versions.
    """

    entries: tuple[RaceEntry, ...]
    max_steps: int
    about: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @overload
    def __getitem__(self, index: int) -> RaceEntry: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RaceEntry]: ...

    def __getitem__(self, index: int | slice) -> RaceEntry | Sequence[RaceEntry]:
        return self.entries[index]

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def notes(self) -> list[str]:
        """Warnings about the ranking. Each warning is one sentence."""
        lost = [entry.label for entry in self if not entry.finished]
        sentences = []
        if lost:
            who = "No update" if len(lost) == len(self) else f"No run of {', '.join(lost)}"
            sentences.append(
                f"{who} reached the target within {self.max_steps:,} steps at any step size: "
                "allow more steps, lower the target, or explore more (another scheme)."
            )
        for end, advice in (("lowest", "lower"), ("highest", "higher")):
            names = [entry.label for entry in self if entry.edge == end]
            if names:
                sentences.append(
                    f"The best step size of {', '.join(names)} is the {end} of the grid: "
                    f"{advice} ones may be better still."
                )
        if any(entry.finished and entry.best.mean_low == -math.inf for entry in self):
            sentences.append(
                f"A 95 % interval needs {MEDIAN_RUNS} runs for a median and {MEAN_RUNS} for a mean."
            )
        return sentences

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each update and step size, from the fastest update.

        Returns
        -------
        pandas.DataFrame
            A table with the columns ``update``, ``step_size`` and the attributes of `Summary`.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        with naming_the_extra():
            import pandas as pd
        rows = [
            {"update": entry.update, "step_size": step_size, **asdict(summary)}
            for entry in self
            for step_size, summary in entry.summaries.items()
        ]
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None, x: str = "step_size", statistic: str = "median") -> Axes:
        """Draw times to the target against step sizes, or learning curves; return the axes.

        Bands are 95 % intervals of each point: of medians from 6 runs, of means from 100. Hollow
        markers denote updates with options that differ from those of the registered update. A
        learning curve is the normalised performance at the update's best step size, whose
        restricted mean time on the same runs is the smallest; runs go on after the target.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes. The default is axes in a new figure.
        x : {"step_size", "step"}
            What the horizontal axis has: step sizes, or steps, which need ``curves=True``.
        statistic : {"median", "mean", "iqm"}
            The median, the mean, which is restricted to the cap if it is of times, or the
            interquartile mean.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with one curve for each update.

        Raises
        ------
        ValueError
            If an argument is unknown, or the race has no curves.
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        statistic = find_name("statistic", statistic, STATISTICS)
        x = find_name("x", x, ("step_size", "step"))
        if x == "step" and not all(entry.performances for entry in self):
            raise ValueError("x: the race has no curves; run it with curves=True.")
        ax = axes_of(ax)
        for entry in self:
            if x == "step":
                best = entry.best_step_size
                label = f"{entry.label}, $\\eta$ = {best:g}"
                runs = entry.performances[best]
                draw_curve(ax, entry.update, runs, self.max_steps, statistic, label=label)
            else:
                sizes, rows = list(entry.summaries), list(entry.summaries.values())
                draw_times(ax, entry.update, sizes, rows, statistic, label=entry.label)
        label_axes(ax, x, statistic)
        return ax

    def _arrays(self) -> dict[str, Any]:
        rows = [
            (entry.update, step_size, *asdict(summary).values())
            for entry in self
            for step_size, summary in entry.summaries.items()
        ]
        names, *numbers = zip(*rows, strict=True)
        curves = [entry.performances[x] for entry in self for x in entry.performances]
        return {
            "updates": names,
            "own_labels": [entry.own_label for entry in self for _ in entry.summaries],
            "numbers": np.array(numbers),
            "max_steps": self.max_steps,
            "performances": np.array(curves),
        }

    @classmethod
    def _of(cls, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> Race:
        entries: dict[str, RaceEntry] = {}
        columns = arrays["updates"], arrays["own_labels"], arrays["numbers"].T
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, (name, label, (step_size, runs, *others)) in enumerate(rows):
            entry = entries.setdefault(name, RaceEntry(name, {}, label))
            entry.summaries[step_size] = Summary(int(runs), *others)
            if len(arrays["performances"]):
                entry.performances[step_size] = arrays["performances"][row]
        return cls(tuple(entries.values()), int(arrays["max_steps"]), about)

    def _rows(self) -> list[list[str]]:
        """Return the cells of the printed table; the first row is the head."""
        head = ["update", "best step size", *TIMES]
        return [head, *([entry.update, *_cells(entry)] for entry in self)]

    def __repr__(self) -> str:
        return f"Race({', '.join(entry.update for entry in self)}; fastest first)"

    def _repr_html_(self) -> str:
        """Return the printed table as HTML, which notebooks show."""
        head, *rows = [[html.escape(cell) for cell in row] for row in self._rows()]
        lines = ["<table><thead><tr>", *(f"<th>{cell}</th>" for cell in head), "</tr></thead>"]
        for first, *others in rows:
            span = f' colspan="{len(head) - 1}"' if len(others) == 1 else ""
            cells = "".join(f"<td{span}>{cell}</td>" for cell in others)
            lines.append(f"<tr><td>{first}</td>{cells}</tr>")
        notes = [f"<p>{html.escape(note)}</p>" for note in self.notes]
        return "".join([*lines, "</table>", *notes])

    def __str__(self) -> str:
        rows = self._rows()
        head = rows[0]
        # The sentence on an update without a finished run spans columns and sets no widths.
        whole = [row for row in rows if len(row) == len(head)]
        widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
        widths[0] = max(len(row[0]) for row in rows)
        lines = []
        for first, *others in rows:
            padded = [first.ljust(widths[0])]
            if len(others) == 1:
                padded += others
            else:
                padded += [x.rjust(n) for x, n in zip(others, widths[1:], strict=True)]
            lines.append("  ".join(padded))
        return "\n".join([*lines, *self.notes])


@underflow_to_zero
def race(
    process: ProcessLike,
    scheme: str = "HiOffPol",
    step_sizes: float | Sequence[float] | None = None,
    runs: int = 20,
    max_steps: int = 200_000,
    target: float | None = None,
    options: Options = PAPER,
    seed: int = 0,
    workers: int | None = None,
    updates: str | Update | Sequence[str | Update] | None = None,
    progress: bool | None = None,
    curves: bool = False,
) -> Race:
    """Race updates on a process.

    The time of a run is the number of steps until an evaluation of the policy passes the target.
    The policy is evaluated after each of the first 67 steps, and then whenever the number of steps
    has grown by 3 %. Times up to 67 are therefore exact, and longer times are at most 3 % too long
    unless the policy passes and fails again between two evaluations. With
    ``Options(stop="episodes")`` the policy is evaluated after trajectories instead.

    Parameters
    ----------
    process : FiniteMDP, gymnasium.Env, str or path
        A process; an environment or its id; a domain with its parameters, as in
        ``chain n_states=7``; or the path of an ``.npz`` file written by `FiniteMDP.save`.
    scheme : str
        Exploration scheme.
    step_sizes : float or sequence of float, optional
        Step sizes of the actor. The default is `RACE_STEP_SIZES`, extended for each update for
        which the best step size is at the edge of the grid.
    runs, max_steps : int
        Number of runs of each setting, at most a million, and the cap on their steps, at most 1e9.
    target : float, optional
        Normalised performance to reach. The default is the target of the domain, or 0.95 if the
        process is not from a domain.
    options : Options
        The details that the paper leaves open, such as ``dataclasses.replace(PAPER, cut=0)``.
    seed : int
        Root seed.
    workers : int, optional
        Number of threads. The default is the number of processors.
    updates : str, Update or sequence of these, optional
        Updates, or strings accepted by `pu_lib.updates.as_update`. The default is all registered
        updates, `UPDATES`. ``pg-es`` is the escort policy gradient with its exact factor, and
        ``pg-es factor=drop`` is the update of the paper's program. If a string has no option
        ``ties``, `options.ties` applies.
    progress : bool, optional
        Whether to show progress and the remaining time on standard error. By default progress is
        shown in terminals and notebooks.
    curves : bool
        Whether to keep learning curves, which ``race.plot(x="step")`` draws: the normalised
        performance of each run after each of the first 20 steps, and then whenever the number of
        steps has grown by 10 %. Runs are then computed up to `max_steps`, also after they have
        reached the target. The times do not change.

    Returns
    -------
    Race
        The entries from the fastest to the slowest. When printed, they form a table with notes.

    Raises
    ------
    ValueError
        If the process cannot be read or its baseline is already optimal, a name is unknown, an
        argument is out of range or repeated, or an update keeps state in its attributes.
    """
    scheme = find_name("scheme", scheme, SCHEMES)
    runs, options = as_int("runs", runs, low=1, high=_MOST_RUNS), require_options(options)
    chosen = as_list(RACE_STEP_SIZES if step_sizes is None else step_sizes)
    if not chosen or any(not as_float("step_sizes", x) > 0.0 for x in chosen):
        raise ValueError(f"step_sizes: expected finite numbers > 0, got {chosen}.")
    racers = [configured(u, options) for u in as_list(UPDATES if updates is None else updates)]
    if not racers:
        raise ValueError("updates: expected at least one, got none.")
    names = [name_of(update) for update in racers]
    for argument, values in (("step_sizes", chosen), ("updates", names)):
        if len(set(values)) < len(values):
            hint = " A second setting needs a class with its own `name`."
            raise ValueError(
                f"{argument}: expected each once, got {list(values)}.{hint * (values is names)}"
            )
    named = read_process(process)
    entries = {
        name_of(update): RaceEntry(name_of(update), {}, _own_label(update)) for update in racers
    }
    todo: Mapping[str, Sequence[float]] = dict.fromkeys(names, chosen)
    with progress_bar(runs * len(names) * len(chosen), progress) as bar:
        cell = base_cell(
            named, racers[0], SCHEMES[scheme], options, max_steps, target, seed, experiment="race"
        )
        for update in racers:
            require_repeatable(update, cell)
        for longer in range(1 + _LONGER * (step_sizes is None)):
            chunks = [
                Chunk(replace(cell, update=update, step_size=float(step_size)), 0, runs, curves)
                for name, update in zip(names, racers, strict=True)
                for step_size in todo.get(name, ())
            ]
            if longer:
                bar.total = (bar.total or 0) + runs * len(chunks)
                bar.refresh()
            for chunk, measured in run_chunks(chunks, workers, _run_chunk):
                entry = entries[name_of(chunk.cell.update)]
                entry.summaries[chunk.cell.step_size] = _summary(chunk.cell, measured)
                if curves:
                    entry.performances[chunk.cell.step_size] = measured["performances"]
                bar.update(chunk.count)
            for entry in entries.values():  # in the order of step sizes, not of threads
                _sort(entry.summaries)
                _sort(entry.performances)
            todo = {entry.update: _beyond(entry) for entry in entries.values() if entry.edge}
            if not todo:
                break
    order = sorted(entries.values(), key=lambda entry: (not entry.finished, entry.best.mean))
    about = described(
        racers,
        digest_of(cell),
        scheme=scheme,
        step_sizes=list(map(float, chosen)),
        runs=runs,
        max_steps=cell.max_steps,
        target=cell.target,
        options=vars(options),
        seed=seed,
    )
    return Race(tuple(order), cell.max_steps, about)


def _own_label(update: Update) -> str:
    """Return the label of an update with its options, or "" if the update is registered.

    A label that its class inherits is that of another update.
    """
    if update.name in UPDATES:
        return ""
    label = vars(type(update)).get("label") or update.name.upper()
    return label + name_of(update).removeprefix(update.name)


def _sort(by_step_size: dict[float, Any]) -> None:
    """Sort a dictionary by its keys, in place."""
    for step_size in sorted(by_step_size):
        by_step_size[step_size] = by_step_size.pop(step_size)


def _beyond(entry: RaceEntry) -> tuple[float, ...]:
    """Return the next step size beyond the edge at which the best one lies, half a decade away."""
    sizes = list(entry.summaries)
    factor = math.sqrt(10.0) if entry.edge == "highest" else 1.0 / math.sqrt(10.0)
    edge = max(sizes) if entry.edge == "highest" else min(sizes)
    return (float(f"{edge * factor:.3g}"),)


def _summary(cell: Cell, measured: Measured) -> Summary:
    """Return the statistics of the runs of a cell."""
    if (measured["steps"] < cell.max_steps)[measured["censored"]].any():
        raise ValueError(
            f"options: max_episodes ended runs of {name_of(cell.update)} before max_steps; a race "
            "compares steps: increase max_episodes, or decrease max_steps."
        )
    return summarise(measured["steps"], measured["censored"], horizon=cell.max_steps)


@underflow_to_zero
def _run_chunk(chunk: Chunk) -> Measured:
    """Compute the runs of a chunk, in the compiled loop if the update has a kernel."""
    cell, steps, censored, memory = chunk.cell, [], [], RunBuffers()
    for run in range(chunk.first, chunk.first + chunk.count):
        problem = problem_of(cell, run)
        seeds = seed_state(cell.seed, cell.process.name, run)
        setting = cell.update, cell.step_size, cell.scheme, seeds, cell.options, cell.max_steps
        with naming_run(cell, run):
            if cell.update.kernel is not None:
                ended = simulate(problem, *setting, memory, _FIRST_GAP)
                steps.append(ended.steps)
                censored.append(ended.censored)
            else:
                plain = run_reference(mdp_of(cell, run), problem.threshold, *setting, _FIRST_GAP)
                steps.append(plain.steps)
                censored.append(not plain.passed)
    measured = {"steps": np.array(steps, np.int64), "censored": np.array(censored, np.bool_)}
    if not chunk.curves:
        return measured
    compiled = cell.update.kernel is not None
    curves = performances(chunk) if compiled else _plain_performances(chunk)
    return measured | {"performances": curves}


def _plain_performances(chunk: Chunk) -> Floats:
    """Return what `performances` returns, from the plain loop."""
    cell, steps, rows = chunk.cell, checkpoints(chunk.cell.max_steps), []
    options = replace(cell.options, stop="steps", max_episodes=0)
    for run in range(chunk.first, chunk.first + chunk.count):
        seeds = seed_state(cell.seed, cell.process.name, run)
        setting = cell.update, cell.step_size, cell.scheme, seeds, options, cell.max_steps
        plain = run_reference(
            mdp_of(cell, run), math.inf, *setting, cell.max_steps, record_at=steps.tolist()
        )
        rows.append(problem_of(cell, run).normalised(np.array(plain.recorded)))
    return np.array(rows)


def _cells(entry: RaceEntry) -> list[str]:
    """Return the cells of a row of the table that follow the name of the update."""
    if not entry.finished:
        return ["no run reached the target"]
    return [f"{entry.best_step_size:g}", *words_of_times(entry.best)]
