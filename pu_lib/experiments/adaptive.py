r"""Adaptive sweeps: no more runs where an update is certainly far from its best.

Most of the work of a full sweep goes to learning rates at which nearly every run is lost. An
adaptive sweep goes through the same rounds and, after each of them, *leaves* settings: it makes no
more runs of them. Two settings belong together if they differ in the learning rate alone.

**The rule.** After a round in which each setting has n runs, the median and the restricted mean of
every setting get an interval that misses with probability at most `ERROR` on either side. A setting
is left if both its intervals lie wholly beyond `RANGE` times the smallest upper end among the
settings that belong to it: it is outside its update's range, whichever of the two is asked.

**Its error.** As long as no interval misses, no setting is left whose median or whose mean is
within `RANGE` times its update's smallest. A sweep decides once a round on every setting, from four
ends of intervals, so that the probability that it leaves any wrongly is at most four times `ERROR`
times the number of decisions: below 5 % for ``sweep paper``. Intervals of medians are those of
order statistics, which hold for any distribution. Those of means are Student's, which hold in the
limit only; runs that are lost at the cap are rare where an update does well, and might not have
been met yet. To the upper end one lost run is therefore added, and to the lower end one that takes
no step. That is not enough for every law: where a loss of great weight is so rare that none of n
runs has met it, the interval of the mean misses more often, and the bound is that of the medians
alone. Tests resample the committed table and count wrong decisions.

**What it changes.** Runs are numbered, and depend on their number alone: the runs of an adaptive
sweep are among those of the full one. Statistics of settings that are left come from fewer runs and
have wider intervals; the others are what they are in the full table. CE and MCE are both run where
there are two actions: they end after the same steps, but not with the same last bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.experiments.cells import Chunk
from pu_lib.experiments.curves import RANGE
from pu_lib.experiments.database import CELL_COLUMNS, words_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ERROR", "EarlyStopping", "Setting", "far_from_best", "limits", "rounds", "setting_of"]

ERROR = 2e-6
"""Largest probability that an interval misses on one side."""

Setting = tuple[tuple[str, ...], float]
"""The columns of a cell but the learning rate, in words, and the learning rate."""

_ETA = CELL_COLUMNS.index("eta")
_CAP = [name for name in CELL_COLUMNS if name != "eta"].index("max_steps")


def setting_of(values: Iterable[Any]) -> Setting:
    """Return a cell such that something that is no number equals itself.

    Parameters
    ----------
    values : iterable
        The values of its fields, in order.

    Returns
    -------
    (tuple of str, float)
        The other fields in words, and the learning rate.
    """
    found = list(values)
    eta = float(found.pop(_ETA))
    return tuple(map(str, found)), eta


def limits(times: Floats, cap: float) -> tuple[Floats, Floats]:
    """Return lower and upper ends of the intervals of medians and means.

    Parameters
    ----------
    times : ndarray, shape (runs, settings)
        Recorded times, in [0, cap].
    cap : float
        Where runs were cut.

    Returns
    -------
    low, high : ndarray, shape (2, settings)
        The ends, first of the medians; 0 and infinity where there are too few runs to say anything.
    """
    from scipy.special import bdtr, stdtrit

    n, ordered = len(times), np.sort(times, axis=0)
    # fewer than k of n runs are below the median with the probability of fewer than k heads
    k = int(np.sum(bdtr(np.arange(n), n, 0.5) <= ERROR))
    medians = (ordered[k - 1], ordered[n - k]) if k else (0.0 * ordered[0], ordered[0] + np.inf)
    means = []
    for end, sign in ((0.0, -1.0), (cap, 1.0)):
        more = np.concatenate([times, np.full((1, times.shape[1]), end)])
        width = stdtrit(n, 1.0 - ERROR) * more.std(axis=0, ddof=1) / np.sqrt(n + 1)
        means.append(more.mean(axis=0) + sign * width)
    return np.stack([medians[0], means[0]]), np.stack([medians[1], means[1]])


def far_from_best(times: Floats, cap: float) -> NDArray[np.bool_]:
    """Return which settings are certainly outside the range of the best of them.

    Parameters
    ----------
    times : ndarray, shape (runs, settings)
        Recorded times of settings that differ in the learning rate alone.
    cap : float
        Where runs were cut.

    Returns
    -------
    ndarray of bool, shape (settings,)
        Whether the intervals of median and mean both lie beyond `RANGE` times the best.
    """
    low, high = limits(times, cap)
    return np.asarray((low > RANGE * high.min(axis=1, keepdims=True)).all(axis=0))


def rounds(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Cut chunks into rounds: stretches that begin with the same number of a run.

    Parameters
    ----------
    chunks : sequence of Chunk
        The chunks, in the order in which they should be run.

    Yields
    ------
    list of Chunk
        A round.
    """
    for _, together in groupby(chunks, key=lambda chunk: chunk.first):
        yield list(together)


class EarlyStopping:
    """The times of a sweep so far, and what they leave to do.

    Parameters
    ----------
    runs : pandas.DataFrame
        The runs that are there already, with the columns of a dataset.
    """

    def __init__(self, runs: pd.DataFrame) -> None:
        self._times: dict[tuple[str, ...], dict[float, dict[int, float]]] = {}
        self._left: set[Setting] = set()
        for values, group in runs.groupby(CELL_COLUMNS, dropna=False, observed=True):
            self._note(setting_of(values), group)

    def note(self, chunk: Chunk, measured: Mapping[str, NDArray[Any]]) -> None:
        """Take in the measured columns of a chunk.

        Parameters
        ----------
        chunk : Chunk
            Runs of one setting.
        measured : mapping of str to ndarray, shape (runs,)
            Their columns, of which the numbers of the runs and their steps are used.
        """
        self._note(setting_of(words_of(chunk.cell).values()), measured)

    def _note(self, setting: Setting, measured: Mapping[str, Any] | pd.DataFrame) -> None:
        times = self._times.setdefault(setting[0], {}).setdefault(setting[1], {})
        times.update(zip(np.asarray(measured["run"]), np.asarray(measured["steps"]), strict=True))

    def needed(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return the chunks of a round whose settings have not been left.

        Parameters
        ----------
        chunks : sequence of Chunk
            A round: all begin with the same run.

        Returns
        -------
        list of Chunk
            Those to run.
        """
        settings = [setting_of(words_of(chunk.cell).values()) for chunk in chunks]
        for others in {setting[0] for setting in settings}:
            self._left |= self._far(others, chunks[0].first)
        pairs = zip(chunks, settings, strict=True)
        return [chunk for chunk, setting in pairs if setting not in self._left]

    def left_early(self) -> set[Setting]:
        """Return the settings that have fewer runs than another rate because the rule left them."""
        found = set()
        for others, rates in self._times.items():
            most = max(map(len, rates.values()))
            for n in {len(times) for times in rates.values()} - {most}:
                found |= {(o, eta) for o, eta in self._far(others, n) if len(rates[eta]) == n}
        return found

    def _far(self, others: tuple[str, ...], n: int) -> set[Setting]:
        """Return which settings are far from the best of their rates, by their first n runs."""
        held = {
            eta: [times[run] for run in range(n)]
            for eta, times in self._times.get(others, {}).items()
            if times.keys() >= set(range(n))
        }
        if n == 0 or len(held) < 2:
            return set()
        times = np.array(list(held.values()), dtype=np.float64).T
        far = far_from_best(times, float(others[_CAP]))
        return {(others, eta) for eta, beyond in zip(held, far, strict=True) if beyond}
