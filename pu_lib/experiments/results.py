r"""The committed results, and the statistics of a time to threshold.

A run ends when its policy passes the threshold, or is *censored* at the cap. All runs of an
experiment share one cap :math:`c` and nothing else censors them. The Kaplan-Meier estimate of the
distribution of the time T is then the empirical distribution of the recorded times below the cap,
so that

- its quantile of order p is the empirical one, and is only known to be at least :math:`c` when a
  share above :math:`1-p` is censored; a test holds it equal to `thresholds.quantile`, which makes
  no such assumption;
- the restricted mean :math:`\mathbb E\min(T,c)` is the mean of the recorded times.

Run number r of an experiment has the same random stream, and on Random MDPs the same process, for
every update, rate and scheme. The bootstrap therefore draws *runs*, the same ones for all curves:
what two curves have in common drops out of their ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

from pu_lib.arrays import Floats
from pu_lib.domains import DOMAINS
from pu_lib.experiments.bootstrap import (
    RESAMPLES,
    draws,
    interval,
    lower_quantile,
    resampled_mean,
    resampled_quantile,
)
from pu_lib.updates import PAPER, UPDATES

__all__ = [
    "FIXED_RATES",
    "IN_FLOATS",
    "MORE",
    "PANELS",
    "PAPER_PANELS",
    "STATISTICS",
    "TIED",
    "Altered",
    "Curves",
    "Panel",
    "Results",
    "Runs",
    "committed",
    "fixed_rate",
    "random_tie_runs",
    "results_of",
    "scale_times",
    "swap_labels",
]

FIXED_RATES = {"pg-sm": 10.0, "pg-es": 1.0, "di": 1.0, "ce": 1.0, "mce": 1.0}
"""The rates at which the paper lets the chain grow."""

MORE = " more"
"""What an experiment's name ends with where its updates are not the paper's."""

IN_FLOATS = " in floats"
"""What an experiment's name ends with where the escort update's parameters are plain floats."""

TIED = "random-ties"
"""The experiment on Random MDPs in which tied actions are drawn at random."""


def fixed_rate(update: str) -> float:
    """Return the rate at which the chain grows: the paper's, or 1 for another update.

    Parameters
    ----------
    update : str
        The update's name.

    Returns
    -------
    float
        The learning rate.
    """
    return FIXED_RATES.get(update, 1.0)


STATISTICS = MappingProxyType(
    {
        "median": "median",
        "mean": "restricted mean",
        "decile": "90 % quantile",
        "censored": "censored share",
    }
)
"""The statistics of a panel, with their names in words."""

_ORDERS = {"median": 0.5, "decile": 0.9}


_DOMAIN_OF = {
    "chain-length": "chain",
    "chain-compared": "chain",
    "greedy-limit": "random-mdp",
    "critic-rate": "random-mdp",
    TIED: "random-mdp",
}  # experiments that are not called as their domain


@dataclass(frozen=True)
class Panel:
    """One panel of the paper's figures, or one more of ours.

    Attributes
    ----------
    experiment, scheme : str
        The values of these columns.
    axis : {"eta", "n_states", "n_actions"}
        The column on the horizontal axis.
    words : str
        What it is, in words.
    n_states : int or None
        The value of this column, where it is not the axis.
    beta : float or None
        The value of this column; ``None`` where there is none.
    n_actions : int or None
        The value of this column, where it matters.
    fixed_rates : bool
        Whether only runs at the paper's fixed rates, `FIXED_RATES`, belong to it.
    preset : str
        The value of this column: the setting of the open details.
    """

    experiment: str
    scheme: str
    axis: str
    words: str
    n_states: int | None = None
    beta: float | None = 0.8
    n_actions: int | None = None
    fixed_rates: bool = False
    preset: str = "paper"

    @property
    def title(self) -> str:
        """The group of panels it belongs to, in words: its domain, and what else grows in it."""
        grows = " length" if self.axis == "n_states" else ""
        return DOMAINS[self._domain].title + grows

    @property
    def axis_words(self) -> str:
        """What is on its axis, in words."""
        domain = DOMAINS[self._domain]
        return {"eta": "learning rate η", **domain.axes}[self.axis]

    @property
    def _domain(self) -> str:
        plain = self.experiment.removesuffix(MORE).removesuffix(IN_FLOATS)
        return _DOMAIN_OF.get(plain, plain)

    @property
    def in_floats(self) -> Panel:
        """The same panel with the escort update in plain floats."""
        floats = f"{self.preset} precision=float64"
        return replace(self, experiment=self.experiment + IN_FLOATS, preset=floats)

    @property
    def more(self) -> Panel:
        """The same panel with the updates that are not the paper's."""
        return replace(self, experiment=self.experiment + MORE)

    @property
    def tied(self) -> Panel:
        """The same panel of Random MDPs with ties broken at random."""
        return replace(self, experiment=TIED, preset=f"{self.preset} ties=random")

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the runs of this panel."""
        chosen = (
            (table["experiment"] == self.experiment)
            & (table["scheme"] == self.scheme)
            & (table["preset"] == self.preset)
        )
        for column in ("n_states", "n_actions", "beta"):
            if getattr(self, column) is not None:
                chosen &= table[column] == getattr(self, column)
        rows = table[chosen]
        if self.fixed_rates:
            rows = rows[rows["eta"] == rows["update"].astype(str).map(fixed_rate)]
        return rows


def _panels() -> dict[str, Panel]:
    panels = {
        f"random-mdp/{scheme}": Panel(
            "random-mdp", scheme, "eta", f"Random MDPs, {scheme}", 100, None
        )
        for scheme in ("NoExplo", "LowOffPol", "HiOffPol")
    }
    for beta in (0.8, 0.7):
        mark = "" if beta == 0.8 else "/beta=0.7"
        note = "" if beta == 0.8 else ", β = 0.7"
        for scheme, n in (("NoExplo", 5), ("LowOffPol", 7), ("HiOffPol", 10)):
            panels[f"chain/{scheme}{mark}"] = Panel(
                "chain", scheme, "eta", f"Chain, {scheme}, |S| = {n}{note}", n, beta
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
        fixed_rates=True,
    )
    panels["cliff"] = Panel("cliff", "HiOffPol", "eta", "Cliff, HiOffPol, |S| = 7", 7)
    panels["cliff/beta=0.7"] = replace(
        panels["cliff"], beta=0.7, words="Cliff, HiOffPol, |S| = 7, β = 0.7"
    )
    for n_actions in (2, 3, 5, 9):
        panels[f"duplicates/{n_actions}"] = Panel(
            "duplicated-chain",
            "HiOffPol",
            "eta",
            f"Chain with {n_actions - 1} optimal action{'s' * (n_actions > 2)}, HiOffPol, |S| = 10",
            10,
            n_actions=n_actions,
        )
    for scheme, n in (("NoExplo", 10), ("HiOffPol", 7)):
        panels[f"chain/{scheme}/{n}"] = Panel(
            "chain-compared", scheme, "eta", f"Chain, {scheme}, |S| = {n}", n
        )
    return panels


PANELS: Mapping[str, Panel] = MappingProxyType(_panels())
"""The panels of the paper, those of chains also with beta = 0.7, and more to compare with."""

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
"""The ten panels of the paper, in its order."""


@dataclass(frozen=True, eq=False)
class Curves:
    """The times of a panel: run by update by position on the axis.

    Attributes
    ----------
    axis : ndarray
        The positions: rates, lengths or numbers of actions.
    updates : tuple of str
        The updates, in the order of the second axis.
    steps : ndarray, shape (runs, updates, positions)
        Recorded times.
    censored : ndarray of bool, same shape
        Whether the cap ended the run.
    counts : ndarray of int, shape (updates, positions), optional
        How many runs a point has, the first ones; all of them if missing. An adaptive sweep makes
        fewer far from the best.
    """

    axis: Floats
    updates: tuple[str, ...]
    steps: Floats
    censored: NDArray[np.bool_]
    counts: NDArray[np.int64] | None = None

    @property
    def n_runs(self) -> int:
        """The largest number of runs behind a point."""
        return len(self.steps)

    @property
    def fewest_runs(self) -> int:
        """The smallest number of runs behind a point."""
        return self.n_runs if self.counts is None else int(self.counts.min())

    @property
    def runs_in_words(self) -> str:
        """The number of runs behind each point, or the least and the largest."""
        least = self.fewest_runs
        return f"{self.n_runs}" if least == self.n_runs else f"{least} to {self.n_runs}"

    @property
    def made(self) -> NDArray[np.bool_]:
        """Whether a run is there, in the shape of `steps`."""
        counts = np.full(self.steps.shape[1:], self.n_runs) if self.counts is None else self.counts
        return np.asarray(np.arange(self.n_runs)[:, np.newaxis, np.newaxis] < counts)

    @property
    def cap(self) -> float:
        """The cap of the censored runs; infinite if there is none."""
        return float(self.steps[self.censored].min()) if self.censored.any() else np.inf

    @cached_property
    def draws(self) -> NDArray[np.int64]:
        """The runs of each bootstrap resample, the same for every panel with as many runs."""
        return draws(self.n_runs)

    def point(self, statistic: str) -> Floats:
        """Return a statistic of every curve, shape (updates, positions)."""
        return self._of(statistic, _mean, lower_quantile)

    @cached_property
    def _resampled(self) -> dict[str, Floats]:
        return {}

    def resampled(self, statistic: str) -> Floats:
        """Return a statistic of every resample, shape (resamples, updates, positions)."""
        if statistic not in self._resampled:
            found = self._of(statistic, resampled_mean, resampled_quantile, RESAMPLES)
            self._resampled[statistic] = found
        return self._resampled[statistic]

    def estimates(self, statistic: str) -> Floats:
        """Return the statistic and, after it on the first axis, all its resampled values."""
        return np.concatenate([self.point(statistic)[None], self.resampled(statistic)])

    def interval(self, statistic: str) -> Floats:
        """Return the ends of the 95 % bootstrap interval, shape (2, updates, positions)."""
        return interval(self.resampled(statistic))

    @cached_property
    def _alike(self) -> list[tuple[NDArray[np.bool_], Floats, NDArray[np.bool_]]]:
        """The points with as many runs each: where they are, and their runs, one column a point."""
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
        """Return a statistic of every curve by a mean and a quantile of columns of runs."""
        found = np.empty((*rows, *self.steps.shape[1:]))
        for here, steps, censored in self._alike:
            if statistic in _ORDERS:
                found[..., here] = quantile(steps, _ORDERS[statistic])
            else:
                found[..., here] = mean(censored if statistic == "censored" else steps)
        return found


def _mean(recorded: NDArray[Any]) -> Floats:
    """Return the mean of each column of runs."""
    return np.asarray(recorded.mean(axis=0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Results:
    """A table of runs with the curves of its panels, made when asked for.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a run; the columns of `pu_lib.experiments.database`.
    """

    table: pd.DataFrame
    _curves: dict[Panel, Curves] = field(default_factory=dict, repr=False)

    def curves(self, name: str) -> Curves:
        """Return the curves of a panel of `PANELS`.

        Raises
        ------
        ValueError
            If the panel is unknown, or no run in the table has all updates at all positions.
        """
        if name not in PANELS:
            raise ValueError(f"panel: expected one of {', '.join(PANELS)}, got {name!r}.")
        curves = self.of(PANELS[name])
        if curves.updates != PAPER:
            raise ValueError(f"table: {PANELS[name].words} has runs of {curves.updates} only.")
        return curves

    def has(self, name: str) -> bool:
        """Return whether the table has runs of a panel, with all updates at all positions."""
        try:
            self.curves(name)
        except ValueError:
            return False
        return True

    def ranks(self, name: str) -> dict[str, list[str]]:
        """Return the updates of a panel from the fastest to the slowest at their best rates.

        By each of `STATISTICS`.
        """
        curves, order = self.curves(name), {}
        for statistic in STATISTICS:
            best = curves.point(statistic).min(axis=1)
            order[statistic] = [curves.updates[i] for i in np.argsort(best, kind="stable")]
        return order

    def of(self, panel: Panel) -> Curves:
        """Return the curves of any panel; raises as `curves` does."""
        if panel not in self._curves:
            self._curves[panel] = _curves(panel, panel.rows(self.table))
        return self._curves[panel]


def _curves(panel: Panel, rows: pd.DataFrame) -> Curves:
    """Arrange the first runs of each update at each position.

    A run that is lacking somewhere, though later ones are there, is left out everywhere.
    """
    if rows.empty:
        raise ValueError(f"table: there is no run of {panel.words}.")
    named, names = rows["update"].factorize()
    updates = tuple(u for u in UPDATES if u in names)
    axis, x = np.unique(rows[panel.axis].to_numpy(dtype=np.float64), return_inverse=True)
    runs, r = np.unique(rows["run"].to_numpy(), return_inverse=True)
    u = np.array([updates.index(name) for name in names])[named]
    shape = (len(runs), len(updates), len(axis))
    held = np.zeros(shape, dtype=np.int64)
    np.add.at(held, (r, u, x), 1)
    if held.max() > 1:
        raise ValueError(f"table: a run of {panel.words} stands in it more than once.")
    steps, censored = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    steps[r, u, x] = rows["steps"].to_numpy()
    censored[r, u, x] = rows["censored"].to_numpy()
    later = np.maximum.accumulate(held[::-1])[::-1]
    whole = (held == later).all(axis=(1, 2))
    counts = held[whole].sum(axis=0)
    if not counts.all():
        raise ValueError(f"table: no run of {panel.words} has all updates at all positions.")
    return Curves(axis, updates, steps[whole], censored[whole], counts)


@cache
def committed() -> Results:
    """Return the results that come with the library."""
    import pandas as pd

    file = resources.files("pu_lib.experiments") / "data" / "runs.parquet"
    return Results(pd.read_parquet(str(file)))


@dataclass(frozen=True)
class Altered:
    """The committed runs with something changed, to see whether a verdict notices.

    Attributes
    ----------
    column : str
        A column of names.
    names : tuple of pairs of str
        Values of the column and what to call them instead.
    slow : str
        A value of the column whose runs take `factor` times as many steps and trajectories; empty
        for none.
    factor : float
        How many times.
    """

    column: str
    names: tuple[tuple[str, str], ...] = ()
    slow: str = ""
    factor: float = 1.0

    def apply(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the change made."""
        column = table[self.column]
        if self.slow:
            factor = np.where(column == self.slow, self.factor, 1.0)
            longer = {name: table[name] * factor for name in ("steps", "episodes")}
            return table.assign(
                **longer | {"censored": table["censored"] | (longer["steps"] > table["max_steps"])}
            )
        return table.assign(**{self.column: column.cat.rename_categories(dict(self.names))})


def swap_labels(column: str, names: Mapping[str, str]) -> Altered:
    """Return the committed runs with values of a column exchanged, as a check takes them.

    Parameters
    ----------
    column : str
        A column of names: update, scheme...
    names : mapping of str to str
        Values and what to call them instead; each name is called something else by one other.

    Returns
    -------
    Altered
        What a check takes as its table.
    """
    return Altered(column, names=tuple(names.items()))


def scale_times(column: str, value: str, factor: float) -> Altered:
    """Return the committed runs with some made slower, as a check takes them.

    Parameters
    ----------
    column, value : str
        Which: those with this value in this column.
    factor : float
        How many times as many steps they take; those that would pass the cap are lost.

    Returns
    -------
    Altered
        What a check takes as its table.
    """
    return Altered(column, slow=value, factor=factor)


@lru_cache(maxsize=4)
def _altered(change: Altered) -> Results:
    return Results(change.apply(committed().table))


def results_of(table: Runs) -> Results:
    """Return the results in a table of runs, by default those that come with the library."""
    if isinstance(table, Results):
        return table
    if isinstance(table, Altered):
        return _altered(table)
    return committed() if table is None else Results(table)


if TYPE_CHECKING:
    Runs = pd.DataFrame | Results | Altered | None
    """What a check takes for its runs."""
else:
    Runs = object


def random_tie_runs() -> pd.DataFrame:
    """Return the committed runs with ties of the cross-entropy updates drawn on Random MDPs.

    Returns
    -------
    pandas.DataFrame
        The table, in which these runs take the place of those with the first of tied actions; they
        are fewer.
    """
    import pandas as pd

    table = committed().table
    drawn = table[table["experiment"] == TIED]
    replaced = table["update"].isin(drawn["update"].unique())
    replaced &= (table["experiment"] == "random-mdp") & (table["preset"] == "paper")
    called = {
        name: pd.Series(value, drawn.index, table[name].dtype)
        for name, value in (("experiment", "random-mdp"), ("preset", "paper"))
    }
    return pd.concat([table[~replaced], drawn.assign(**called)], ignore_index=True)
