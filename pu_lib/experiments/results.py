r"""The committed results, and the statistics of times to threshold.

A run ends when its policy passes the threshold, or is *censored* at the cap. All runs of an
experiment share one cap :math:`c`, and there is no other censoring. The Kaplan-Meier estimate of
the distribution of the time T is then the empirical distribution of the recorded times below the
cap. Hence

- the quantile of order p is the empirical quantile, which is only known to be at least :math:`c` if
  a share above :math:`1-p` of the runs is censored; a test compares the quantile with
  `thresholds.quantile`, which does not assume a common cap;
- the restricted mean :math:`\mathbb E\min(T,c)` is the mean of the recorded times.

Run number r of an experiment has the same random stream, and on Random MDPs the same process, for
every update, step size and scheme. The bootstrap therefore resamples *runs*, jointly for all
curves, and the common noise of two curves cancels in the ratio of the curves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

from pu_lib.arrays import Floats, underflow_to_zero
from pu_lib.domains import DOMAINS
from pu_lib.experiments import lines
from pu_lib.experiments.bootstrap import (
    RESAMPLES,
    draws,
    interval,
    lower_quantile,
    resampled_mean,
    resampled_quantile,
)
from pu_lib.experiments.thresholds import Summary, summarise
from pu_lib.extras import naming_the_extra
from pu_lib.records import Record, axes_of
from pu_lib.settings import find_name
from pu_lib.updates import PAPER, UPDATES, label_of

__all__ = [
    "FIXED_STEP_SIZES",
    "IN_FLOATS",
    "MORE",
    "PANELS",
    "PAPER_PANELS",
    "STATISTICS",
    "TIED",
    "Curves",
    "Panel",
    "Results",
    "Runs",
    "TableChange",
    "committed",
    "committed_file",
    "critic_runs",
    "fixed_step_size",
    "random_tie_runs",
    "read_results",
    "results_of",
    "scale_times",
    "swap_labels",
]

FIXED_STEP_SIZES = {"pg-sm": 10.0, "pg-es": 1.0, "di": 1.0, "ce": 1.0, "mce": 1.0}
"""The step sizes of the paper's experiments with growing chains."""

MORE = " more"
"""Suffix of the names of experiments with updates that are not in the paper."""

IN_FLOATS = " in floats"
"""Suffix of the names of experiments that store the escort update's parameters as plain floats."""

_AS_FLOATS = " precision=float64"
"""Suffix of the options of these experiments."""

TIED = "random-ties"
"""The experiment on Random MDPs with ties between actions broken at random."""


SARSA_LIMIT = "sarsa-limit"
"""The experiment on the chain and the cliff at step sizes so large that policies are greedy."""


def fixed_step_size(update: str) -> float:
    """Return the step size of an update on growing chains, or 1 if it is not in the paper."""
    return FIXED_STEP_SIZES.get(update, 1.0)


STATISTICS = MappingProxyType(
    {
        "median": "median",
        "mean": "restricted mean",
        "decile": "90 % quantile",
        "censored": "censored share",
    }
)
"""The label of each statistic of a panel."""

_ORDERS = {"median": 0.5, "decile": 0.9}


_DOMAIN_OF = {
    "chain-length": "chain",
    "chain-compared": "chain",
    "greedy-limit": "random-mdp",
    "critic-rate": "random-mdp",
    TIED: "random-mdp",
}  # experiments with another name than their domain


@dataclass(frozen=True)
class Panel:
    """A panel of the paper's figures, or an additional panel.

    Attributes
    ----------
    experiment, scheme : str
        Values of these columns of the table of runs.
    axis : {"step_size", "n_states", "n_actions"}
        The column on the horizontal axis.
    words : str
        The caption.
    n_states : int or None
        Value of this column, unless it is the axis.
    beta : float or None
        Value of this column, or ``None`` if the domain has no such parameter.
    n_actions : int or None
        Value of this column, or ``None`` if the panel does not select runs by this column.
    fixed_step_sizes : bool
        Whether the panel is limited to runs at the paper's `FIXED_STEP_SIZES`.
    options : str
        Value of this column, a description of the options.
    """

    experiment: str
    scheme: str
    axis: str
    words: str
    n_states: int | None = None
    beta: float | None = 0.8
    n_actions: int | None = None
    fixed_step_sizes: bool = False
    options: str = "paper"

    @property
    def title(self) -> str:
        """The heading of the panel's group: the title of the domain, with "length" if it varies."""
        grows = " length" if self.axis == "n_states" else ""
        return DOMAINS[self._domain].title + grows

    @property
    def axis_words(self) -> str:
        """The label of the horizontal axis."""
        domain = DOMAINS[self._domain]
        return {"step_size": "step size η", **domain.axes}[self.axis]

    @property
    def _domain(self) -> str:
        plain = self.experiment.removesuffix(MORE).removesuffix(IN_FLOATS)
        return _DOMAIN_OF.get(plain, plain)

    @property
    def in_floats(self) -> Panel:
        """The same panel with the escort update's parameters stored as plain floats."""
        floats = self.options + _AS_FLOATS
        return replace(self, experiment=self.experiment + IN_FLOATS, options=floats)

    @property
    def more(self) -> Panel:
        """The same panel with the updates that are not in the paper."""
        return replace(self, experiment=self.experiment + MORE)

    @property
    def tied(self) -> Panel:
        """The same panel of Random MDPs with ties broken at random."""
        return replace(self, experiment=TIED, options=f"{self.options} ties=random")

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the runs of this panel."""
        chosen = (
            (table["experiment"] == self.experiment)
            & (table["scheme"] == self.scheme)
            & (table["options"] == self.options)
        )
        for column in ("n_states", "n_actions", "beta"):
            if getattr(self, column) is not None:
                chosen &= table[column] == getattr(self, column)
        rows = table[chosen]
        if self.fixed_step_sizes:
            rows = rows[rows["step_size"] == rows["update"].astype(str).map(fixed_step_size)]
        return rows


def _panels() -> dict[str, Panel]:
    panels = {
        f"random-mdp/{scheme}": Panel(
            "random-mdp", scheme, "step_size", f"Random MDPs, {scheme}", 100, None
        )
        for scheme in ("NoExplo", "LowOffPol", "HiOffPol")
    }
    for beta in (0.8, 0.7):
        mark = "" if beta == 0.8 else "/beta=0.7"
        note = "" if beta == 0.8 else ", β = 0.7"
        for scheme, n in (("NoExplo", 5), ("LowOffPol", 7), ("HiOffPol", 10)):
            panels[f"chain/{scheme}{mark}"] = Panel(
                "chain", scheme, "step_size", f"Chain, {scheme}, |S| = {n}{note}", n, beta
            )
        for scheme in ("LowOffPol", "HiOffPol"):
            panels[f"length/{scheme}{mark}"] = Panel(
                "chain-length", scheme, "n_states", f"Chain length, {scheme}{note}", beta=beta
            )
    panels["duplicates"] = Panel(
        "duplicated-chain",
        "HiOffPol",
        "n_actions",
        "Duplicated optimal actions, HiOffPol, |S| = 10",
        10,
        fixed_step_sizes=True,
    )
    panels["cliff"] = Panel("cliff", "HiOffPol", "step_size", "Cliff, HiOffPol, |S| = 7", 7)
    panels["cliff/beta=0.7"] = replace(
        panels["cliff"], beta=0.7, words="Cliff, HiOffPol, |S| = 7, β = 0.7"
    )
    for n_actions in (2, 3, 5, 9):
        panels[f"duplicates/{n_actions}"] = Panel(
            "duplicated-chain",
            "HiOffPol",
            "step_size",
            f"Chain with {n_actions - 1} optimal action{'s' * (n_actions > 2)}, HiOffPol, |S| = 10",
            10,
            n_actions=n_actions,
        )
    for scheme, n in (("NoExplo", 10), ("HiOffPol", 7)):
        panels[f"chain/{scheme}/{n}"] = Panel(
            "chain-compared", scheme, "step_size", f"Chain, {scheme}, |S| = {n}", n
        )
    return panels


PANELS: Mapping[str, Panel] = MappingProxyType(_panels())
"""The panels of the paper, their variants with beta = 0.7, and panels for comparison."""

PAPER_PANELS = (
    "random-mdp/NoExplo",
    "random-mdp/LowOffPol",
    "random-mdp/HiOffPol",
    "chain/NoExplo",
    "chain/LowOffPol",
    "chain/HiOffPol",
    "length/LowOffPol",
    "length/HiOffPol",
    "duplicates",
    "cliff",
)
"""The ten panels of the paper, in the paper's order."""


@dataclass(frozen=True, eq=False)
class Curves:
    """The times of the runs of a panel, by run, update and position on the axis.

    Attributes
    ----------
    axis : ndarray
        The positions: step sizes, lengths or numbers of actions.
    updates : tuple of str
        The updates, in the order of the second axis.
    steps : ndarray, shape (runs, updates, positions)
        Recorded times.
    censored : ndarray of bool, shape (runs, updates, positions)
        Whether the run was censored at the cap.
    counts : ndarray of int, shape (updates, positions), optional
        Number of runs at each point. By default each point has all runs. An adaptive sweep computes
        only the first runs at points that are far from the best.
    """

    axis: Floats
    updates: tuple[str, ...]
    steps: Floats
    censored: NDArray[np.bool_]
    counts: NDArray[np.int64] | None = None

    @property
    def n_runs(self) -> int:
        """The largest number of runs at a point."""
        return len(self.steps)

    @property
    def fewest_runs(self) -> int:
        """The smallest number of runs at a point."""
        return self.n_runs if self.counts is None else int(self.counts.min())

    @property
    def runs_in_words(self) -> str:
        """The number of runs at each point, or its range."""
        least = self.fewest_runs
        return f"{self.n_runs}" if least == self.n_runs else f"{least} to {self.n_runs}"

    @property
    def made(self) -> NDArray[np.bool_]:
        """Whether each run was computed, as an array with the shape of `steps`."""
        counts = np.full(self.steps.shape[1:], self.n_runs) if self.counts is None else self.counts
        return np.asarray(np.arange(self.n_runs)[:, np.newaxis, np.newaxis] < counts)

    @property
    def cap(self) -> float:
        """The cap of the censored runs, or infinity if no run was censored."""
        return float(self.steps[self.censored].min()) if self.censored.any() else np.inf

    @cached_property
    def draws(self) -> NDArray[np.int64]:
        """The runs in each bootstrap resample; they depend only on the number of runs."""
        return draws(self.n_runs)

    def point(self, statistic: str) -> Floats:
        """Return an array of shape (updates, positions) with the value of a statistic."""
        return self._of(statistic, _mean, lower_quantile)

    @cached_property
    def _resampled(self) -> dict[str, Floats]:
        return {}

    def resampled(self, statistic: str) -> Floats:
        """Return an array of shape (resamples, updates, positions) with resampled statistics."""
        if statistic not in self._resampled:
            values = self._of(statistic, resampled_mean, resampled_quantile, RESAMPLES)
            self._resampled[statistic] = values
        return self._resampled[statistic]

    def estimates(self, statistic: str) -> Floats:
        """Return the statistic followed by its bootstrap resamples along the first axis."""
        return np.concatenate([self.point(statistic)[None], self.resampled(statistic)])

    def interval(self, statistic: str) -> Floats:
        """Return an array of shape (2, updates, positions) with 95 % bootstrap intervals."""
        return interval(self.resampled(statistic))

    @cached_property
    def _groups(self) -> list[tuple[NDArray[np.bool_], Floats, NDArray[np.bool_]]]:
        """The points grouped by number of runs: the mask, times and censoring of each group."""
        counts = self.made.sum(axis=0)
        return [
            (here, self.steps[:n, here], self.censored[:n, here])
            for n in np.unique(counts)
            for here in [counts == n]
        ]

    def _of(
        self,
        statistic: str,
        mean: Callable[[NDArray[Any]], Floats],
        quantile: Callable[[Floats, float], Floats],
        *rows: int,
    ) -> Floats:
        """Return a statistic at each point from functions for the mean and the quantile."""
        values = np.empty((*rows, *self.steps.shape[1:]))
        for here, steps, censored in self._groups:
            if statistic in _ORDERS:
                values[..., here] = quantile(steps, _ORDERS[statistic])
            else:
                values[..., here] = mean(censored if statistic == "censored" else steps)
        return values


def _mean(recorded: NDArray[Any]) -> Floats:
    """Return the mean of each column of runs."""
    return np.asarray(recorded.mean(axis=0), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Results(Record):
    """A table of runs, with the curves of its panels; each curve is computed once.

    When printed, or shown by a notebook, results are a table of the best step size of each update
    and other setting.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per run, with the columns of `pu_lib.experiments.database`, and ``performances`` if
        the sweep kept curves: the normalised performance at the `checkpoints` of the cap.
    computed : int
        Number of chunks that the sweep computed which returned these results.
    about : mapping
        What made the runs: the values of each column of the setting, the engines and the digests of
        the processes, the sources of updates that are not of the library, and versions. It is empty
        if the results were made from a table alone.
    """

    table: pd.DataFrame
    computed: int = 0
    about: Mapping[str, Any] = field(default_factory=dict)
    _curves: dict[Panel, Curves] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Results({len(self.table):,} runs)"

    def __str__(self) -> str:
        return f"{self!r}\n{self._best().to_string(index=False)}"

    def _repr_html_(self) -> str:
        """Return the printed table as HTML, which notebooks show."""
        return f"<p>{self!r}</p>{self._best().to_html(index=False)}"

    def _best(self) -> pd.DataFrame:
        """Return the statistics at the best step size of each line that `plot` draws."""
        import pandas as pd

        frame = self.to_frame()
        if frame.empty:
            return frame
        best = [
            line["mean"].idxmin()
            for _, group in frame.groupby("update", sort=False, observed=True)
            for _, line in _groups(group, _settings("step_size"))
        ]
        varying = _varying(frame, _settings("step_size"))
        frame, rows = frame.loc[best], []
        for (_, row), summary in zip(frame.iterrows(), _summaries(frame), strict=True):
            size = f"{row['step_size']:g}"
            rows.append([row["update"], *row[varying], size, *lines.words_of_times(summary)])
        return pd.DataFrame(rows, columns=["update", *varying, "best step size", *lines.TIMES])

    def plot(self, ax: Axes | None = None, x: str = "step_size", statistic: str = "median") -> Axes:
        """Draw times to the target against step sizes, or learning curves; return the axes.

        There is a line for each update and each combination of the other settings that vary. Bands
        are 95 % intervals of each point: of medians from 6 runs, of means from 100. A learning
        curve is the normalised performance at the best step size, whose restricted mean time on the
        same runs is the smallest; runs go on after the target.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes. The default is axes in a new figure.
        x : {"step_size", "n_states", "n_actions", "step"}
            What the horizontal axis has: a setting, or steps, which need ``curves=True``.
        statistic : {"median", "mean", "iqm"}
            The median, the mean, which is restricted to the cap if it is of times, or the
            interquartile mean.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        ValueError
            If an argument is unknown, or there are no runs or no curves.
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        statistic = find_name("statistic", statistic, lines.STATISTICS)
        x = find_name("x", x, lines.AXES)
        runs = _not_empty(self.table)
        if x == "step":
            if "performances" not in runs or runs["performances"].isna().all():
                raise ValueError("x: there are no curves; run the sweep with curves=True.")
            runs = runs[runs["performances"].notna()]
        ax = axes_of(ax)
        rows = runs if x == "step" else self.to_frame()
        across = "step_size" if x == "step" else x
        for name, group in rows.groupby("update", sort=False, observed=True):
            label = label_of(str(name)) if name in UPDATES else str(name)
            for place, (words, line) in enumerate(_groups(group, _settings(across))):
                style: dict[str, Any] = {"label": ", ".join([label, *words])}
                if words:
                    style["linestyle"] = _DASHES[place % len(_DASHES)]
                if x == "step":
                    best = line.groupby("step_size")["steps"].mean().idxmin()
                    chosen = line[line["step_size"] == best]
                    cap = int(chosen["max_steps"].iloc[0])
                    style["label"] += rf", $\eta$ = {best:g}"
                    curves = np.stack(chosen["performances"].tolist())
                    lines.draw_curve(ax, str(name), curves, cap, statistic, **style)
                else:
                    line = line.sort_values(x)
                    lines.draw_times(ax, str(name), line[x], _summaries(line), statistic, **style)
        lines.label_axes(ax, x, statistic)
        return ax

    def _arrays(self) -> dict[str, Any]:
        return {"table": np.frombuffer(self.table.to_parquet(), np.uint8)}

    @classmethod
    def _of(cls, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> Results:
        return cls(_read(BytesIO(arrays["table"].tobytes())), about=about)

    @underflow_to_zero
    def to_frame(self) -> pd.DataFrame:
        """Return a table with the statistics of each setting.

        Returns
        -------
        pandas.DataFrame
            One row per setting, with the columns of the setting and the attributes of
            `pu_lib.experiments.thresholds.Summary`. The horizon of the restricted mean is the cap,
            or the last recorded time if runs were censored earlier.
        """
        import pandas as pd

        from pu_lib.experiments.database import CELL_COLUMNS

        groups = self.table.groupby(CELL_COLUMNS, sort=False, dropna=False, observed=True)
        rows = []
        for setting, runs in groups:
            named = dict(zip(CELL_COLUMNS, setting, strict=True))
            steps, censored = runs["steps"].to_numpy(), runs["censored"].to_numpy()
            one_cap = (steps[censored] >= named["max_steps"]).all()
            horizon = float(named["max_steps"]) if one_cap else None
            rows.append({**named, **asdict(summarise(steps, censored, horizon))})
        return pd.DataFrame(rows)

    @cached_property
    def in_floats(self) -> Results:
        """The same results with PG-ES in plain floats, wherever the table has such runs."""
        floats = self.table[self._are_floats]
        if floats.empty:
            return self
        names = floats["experiment"].astype(str).str.removesuffix(IN_FLOATS)
        options = floats["options"].astype(str).str.removesuffix(_AS_FLOATS)
        return Results(_replace_runs(self.with_exponents.table, floats, names, options))

    @cached_property
    def with_exponents(self) -> Results:
        """The same results without the runs of PG-ES in plain floats."""
        return Results(self.table[~self._are_floats])

    @cached_property
    def _are_floats(self) -> pd.Series:
        """Whether each row is a run of PG-ES in plain floats."""
        names = self.table["experiment"]
        return names.isin([name for name in names.unique() if str(name).endswith(IN_FLOATS)])

    def curves(self, name: str) -> Curves:
        """Return the curves of the paper's updates in a panel of `PANELS`.

        Raises
        ------
        ValueError
            If the panel is unknown, the table has no runs of a paper's update in the panel, or no
            run has all updates at all positions.
        """
        if name not in PANELS:
            raise ValueError(f"panel: expected one of {', '.join(PANELS)}, got {name!r}.")
        curves = self.of(PANELS[name])
        if curves.updates != PAPER:
            raise ValueError(
                f"table: expected runs of {', '.join(PAPER)} for {PANELS[name].words}, "
                f"got {', '.join(curves.updates)}."
            )
        return curves

    def has(self, name: str) -> bool:
        """Return whether the table has runs of a panel with all updates at all positions."""
        try:
            self.curves(name)
        except ValueError:
            return False
        return True

    def ranks(self, name: str) -> dict[str, list[str]]:
        """Return the updates of a panel by increasing best value, for each statistic."""
        curves, order = self.curves(name), {}
        for statistic in STATISTICS:
            best = curves.point(statistic).min(axis=1)
            order[statistic] = [curves.updates[i] for i in np.argsort(best, kind="stable")]
        return order

    def of(self, panel: Panel) -> Curves:
        """Return the curves of any panel; raise as `curves` does."""
        if panel not in self._curves:
            self._curves[panel] = _curves(panel, panel.rows(self.table))
        return self._curves[panel]


def _curves(panel: Panel, rows: pd.DataFrame) -> Curves:
    """Return the curves of a panel from the rows of its runs.

    A run that is missing at a point with later runs is dropped at all points.
    """
    if rows.empty:
        raise ValueError(f"table: there is no run of {panel.words}; make its runs first.")
    named, names = rows["update"].factorize()
    # Updates that are not registered, or not any more, follow in the order of the table.
    updates = tuple([u for u in UPDATES if u in names] + [u for u in names if u not in UPDATES])
    axis, x = np.unique(rows[panel.axis].to_numpy(dtype=np.float64), return_inverse=True)
    runs, r = np.unique(rows["run"].to_numpy(), return_inverse=True)
    u = np.array([updates.index(name) for name in names])[named]
    shape = (len(runs), len(updates), len(axis))
    held = np.zeros(shape, dtype=np.int64)
    np.add.at(held, (r, u, x), 1)
    if held.max() > 1:
        raise ValueError(f"table: a run of {panel.words} is listed more than once.")
    steps, censored = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    steps[r, u, x] = rows["steps"].to_numpy()
    censored[r, u, x] = rows["censored"].to_numpy()
    later = np.maximum.accumulate(held[::-1])[::-1]
    whole = (held == later).all(axis=(1, 2))
    counts = held[whole].sum(axis=0)
    if not counts.all():
        raise ValueError(
            f"table: no run of {panel.words} has all updates at all positions; run the sweep on."
        )
    return Curves(axis, updates, steps[whole], censored[whole], counts)


_DASHES = ("-", "--", ":", "-.")


def _not_empty(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of runs; raise a `ValueError` if it is empty."""
    if table.empty:
        raise ValueError("table: there are no runs; run the sweep first.")
    return table


def _settings(*across: str) -> list[str]:
    """Return the columns of the setting without the update and the columns `across`."""
    from pu_lib.experiments.database import CELL_COLUMNS

    return [name for name in CELL_COLUMNS if name not in ("update", *across)]


def _varying(rows: pd.DataFrame, names: list[str]) -> list[str]:
    """Return the columns that have several values."""
    return [name for name in names if rows[name].nunique(dropna=False) > 1]


def _groups(rows: pd.DataFrame, names: list[str]) -> Iterator[tuple[list[str], pd.DataFrame]]:
    """Yield the rows with equal values in the columns `names`, and what varies among them."""
    if not (varying := _varying(rows, names)):
        yield [], rows
        return
    for values, group in rows.groupby(varying, sort=False, dropna=False, observed=True):
        yield [f"{name}={value}" for name, value in zip(varying, values, strict=True)], group


def _summaries(rows: pd.DataFrame) -> list[Summary]:
    """Return the statistics in rows of `Results.to_frame`."""
    names = [column.name for column in fields(Summary)]
    return [Summary(*values) for values in rows[names].itertuples(index=False)]


def panels_of(results: Results, x: str | None = None) -> list[tuple[str, str, Results]]:
    """Return the title, the horizontal axis and the runs of each panel of a sweep.

    In a panel only the update, the step size and the axis vary. The default axis is the step size,
    or the number of states or actions if the step size of an update does not vary.
    """
    sizes, panels = ["n_states", "n_actions"], []
    for words, runs in _groups(_not_empty(results.table), _settings("step_size", *sizes)):
        axis = x
        if axis is None:
            counts = runs.groupby("update", observed=True)[["step_size", *sizes]].nunique().max()
            axis = next((str(name) for name, count in counts.items() if count > 1), "step_size")
        for more, part in _groups(runs, [name for name in sizes if name != axis]):
            title = ", ".join([*words, *more]) or str(runs["domain"].iloc[0])
            panels.append((title, axis, Results(part)))
    return panels


def read_results(directory: str | os.PathLike[str], computed: int = 0) -> Results:
    """Return the results of a directory from its ``runs.parquet``, which sweeps write.

    The attribute `about` also has what the sweeps wrote to ``about.json``.
    """
    from pu_lib.experiments.database import CELL_COLUMNS, read_about

    path = Path(directory) / "runs.parquet"
    if not path.is_file():
        raise ValueError(f"{directory}: has no {path.name}; give the directory of a sweep.")
    table = _read(path)
    columns = [*CELL_COLUMNS, "engine", "process"]
    settings = {name: table[name].unique().tolist() for name in columns if name in table}
    about = {"runs": len(table), **settings, **read_about(Path(directory))}
    return Results(table, computed, about)


@cache
def committed() -> Results:
    """Return the results of the book.

    Raises a `FileNotFoundError` if the library was installed from a wheel, which leaves them out.
    """
    return Results(_read(committed_file("runs.parquet")))


@cache
def critic_runs() -> pd.DataFrame:
    """Return the runs on Random MDPs with another critic, at step sizes near each update's best.

    They are distributed in a table of their own, which has the columns of the committed table.
    """
    return _read(committed_file("critic.parquet"))


def committed_file(name: str) -> Path:
    """Return the path of a committed table; raise a `FileNotFoundError` if it is not installed."""
    path = Path(str(resources.files("pu_lib.experiments") / "data" / name))
    if not path.exists():
        raise FileNotFoundError(
            f"{name}: the wheel leaves out the runs of the book (5 MB). Install the library in a "
            "clone of the book: pip install --editable '.[empirical]'."
        )
    return path


def _read(path: Path | BytesIO) -> pd.DataFrame:
    with naming_the_extra():
        import pandas as pd

        return pd.read_parquet(path)


@dataclass(frozen=True)
class TableChange:
    """A change to the committed runs, used to test that a check detects the change.

    Attributes
    ----------
    column : str
        A categorical column of the table.
    names : tuple of pairs of str
        Values of the column and their replacements.
    slow : str
        The runs with this value of the column are slowed down. If empty, no runs are.
    factor : float
        Factor by which the steps and trajectories of these runs are multiplied.
    """

    column: str
    names: tuple[tuple[str, str], ...] = ()
    slow: str = ""
    factor: float = 1.0

    def apply(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with the change applied."""
        column = table[self.column]
        if self.slow:
            factor = np.where(column == self.slow, self.factor, 1.0)
            longer = {name: table[name] * factor for name in ("steps", "episodes")}
            return table.assign(
                **longer | {"censored": table["censored"] | (longer["steps"] > table["max_steps"])}
            )
        return table.assign(**{self.column: column.cat.rename_categories(dict(self.names))})


def swap_labels(column: str, names: Mapping[str, str]) -> TableChange:
    """Return a change to the committed runs that permutes the values of a column.

    Parameters
    ----------
    column : str
        A categorical column, such as ``"update"``.
    names : mapping of str to str
        Values and their replacements. The mapping is a permutation.

    Returns
    -------
    TableChange
        A value for the `table` of a check.
    """
    return TableChange(column, names=tuple(names.items()))


def scale_times(column: str, value: str, factor: float) -> TableChange:
    """Return a change to the committed runs that multiplies the times of some runs by a factor.

    Parameters
    ----------
    column, value : str
        The runs with this value in this column.
    factor : float
        The factor. Runs that then exceed the cap are censored.

    Returns
    -------
    TableChange
        A value for the `table` of a check.
    """
    return TableChange(column, slow=value, factor=factor)


@lru_cache(maxsize=4)
def _changed(change: TableChange) -> Results:
    return Results(change.apply(committed().table))


def results_of(table: Runs) -> Results:
    """Return the results in a table of runs, or the committed results if `table` is ``None``."""
    if isinstance(table, Results):
        return table
    if isinstance(table, TableChange):
        return _changed(table)
    return committed() if table is None else Results(table)


if TYPE_CHECKING:
    Runs = pd.DataFrame | Results | TableChange | None
    """The type of the `table` of a check."""
else:
    Runs = object


def random_tie_runs() -> pd.DataFrame:
    """Return the committed runs, with random tie-breaking for CE and MCE on Random MDPs.

    The result has fewer runs than the committed table.
    """
    import pandas as pd

    table = committed().table
    drawn = table[table["experiment"] == TIED]
    names, options = (pd.Series(value, drawn.index) for value in ("random-mdp", "paper"))
    return _replace_runs(table, drawn, names, options)


def _replace_runs(
    table: pd.DataFrame, runs: pd.DataFrame, experiments: pd.Series, options: pd.Series
) -> pd.DataFrame:
    """Return a table in which `runs`, under other names, replace those of the same updates.

    Each run gets the given experiment and options. The runs of the table with the same experiment,
    options and update as one of them are left out.
    """
    import pandas as pd

    runs = runs.assign(
        experiment=experiments.astype(table["experiment"].dtype),
        options=options.astype(table["options"].dtype),
    )
    columns = ["experiment", "options", "update"]
    kept = np.ones(len(table), dtype=np.bool_)
    for setting in runs[columns].drop_duplicates().itertuples(index=False):
        same = [table[name] == value for name, value in zip(columns, setting, strict=True)]
        kept &= ~np.logical_and.reduce(same)
    return pd.concat([table[kept], runs], ignore_index=True)
