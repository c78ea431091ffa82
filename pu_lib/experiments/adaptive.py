"""Adaptive sweeps, which drop settings that are far from the best setting of the same update.

A full sweep spends most of its time on step sizes at which nearly every run is censored. An
adaptive sweep computes the same rounds of runs and *drops* settings between rounds: it computes no
more runs of a dropped setting. Settings form a group if they differ only in the step size.

**Rule.** After a round with n runs of each setting, an interval is computed for the median and for
the restricted mean of each setting, with error probability at most `ERROR` on either side. A
setting is dropped if, for both statistics, its interval lies above `RANGE` times the smallest upper
end in its group. Such a setting is outside the range of its update for both statistics.

**Error.** If every interval contains its statistic, every dropped setting has a median and a mean
above `RANGE` times the minimum of its group. The sweep makes one decision per round and setting,
from four ends of intervals. By the union bound, the probability that the sweep drops any setting
incorrectly is at most four times `ERROR` times the number of decisions. This bound is below 5 % for
``sweep paper``. The intervals of medians are computed from order statistics and are valid for any
distribution. The intervals of means are Student's intervals, which are asymptotic. A few censored
runs can dominate a mean without appearing among the first n runs, so one run at the cap is added
for the upper end, and one run of zero steps for the lower end. These runs do not suffice for every
distribution: if a heavy tail is too rare to appear in n runs, the error probability of the interval
of the mean exceeds `ERROR`, and only the bound for medians remains. Tests resample the committed
table and count incorrect decisions.

**Effect on the results.** A run depends only on its setting and its number, so the runs of an
adaptive sweep are a subset of the runs of the full sweep. Statistics of dropped settings are
computed from fewer runs and have wider intervals; all other statistics are the same as in the full
table. CE and MCE are both run even if there are two actions: their runs have the same numbers of
steps but differ in the last bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.experiments.bootstrap import median_rank
from pu_lib.experiments.cells import Chunk
from pu_lib.experiments.curves import RANGE
from pu_lib.experiments.database import CELL_COLUMNS, words_of

if TYPE_CHECKING:
    import pandas as pd

ERROR = 1.8e-6
"""Error probability of each side of an interval. It bounds the error of ``sweep paper`` by 5 %."""

Setting = tuple[tuple[str, ...], float]
"""The columns of a cell without the step size, as strings, and the step size."""

_STEP_SIZE = CELL_COLUMNS.index("step_size")
_CAP = [name for name in CELL_COLUMNS if name != "step_size"].index("max_steps")


def setting_of(values: Iterable[Any]) -> Setting:
    """Return the setting with these column values.

    The values become strings, so that a missing value (NaN) equals itself.
    """
    words = list(values)
    step_size = float(words.pop(_STEP_SIZE))
    return tuple(map(str, words)), step_size


def limits(times: Floats, cap: float) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of the intervals of the median and the restricted mean.

    `times` has shape (runs, settings). Both results have shape (2, settings): the first row is for
    medians and the second for means. If there are too few runs, the interval of a median is
    [0, inf].
    """
    from scipy.special import stdtrit

    n, ordered = len(times), np.sort(times, axis=0)
    k = median_rank(n, ERROR)
    medians = (ordered[k - 1], ordered[n - k]) if k else (0.0 * ordered[0], ordered[0] + np.inf)
    means = []
    for end, sign in ((0.0, -1.0), (cap, 1.0)):
        more = np.concatenate([times, np.full((1, times.shape[1]), end)])
        width = stdtrit(n, 1.0 - ERROR) * more.std(axis=0, ddof=1) / np.sqrt(n + 1)
        means.append(more.mean(axis=0) + sign * width)
    return np.stack([medians[0], means[0]]), np.stack([medians[1], means[1]])


def far_from_best(times: Floats, cap: float) -> NDArray[np.bool_]:
    """Return, for each setting of a group, whether the rule of this module drops it.

    `times` has shape (runs, settings).
    """
    low, high = limits(times, cap)
    return np.asarray((low > RANGE * high.min(axis=1, keepdims=True)).all(axis=0))


def rounds(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Yield each round of a sweep, a list of successive chunks with the same first run."""
    for _, together in groupby(chunks, key=lambda chunk: chunk.first):
        yield list(together)


class EarlyStopping:
    """The rule of this module, applied to the times recorded so far.

    Parameters
    ----------
    runs : pandas.DataFrame
        The runs that are already computed, with the columns of the database.
    """

    def __init__(self, runs: pd.DataFrame) -> None:
        self._times: dict[tuple[str, ...], dict[float, dict[int, float]]] = {}
        self._left: set[Setting] = set()
        for values, group in runs.groupby(CELL_COLUMNS, dropna=False, observed=True):
            self._note(setting_of(values), group)

    def note(self, chunk: Chunk, measured: Mapping[str, NDArray[Any]]) -> None:
        """Record the times of a chunk, from its measured columns ``run`` and ``steps``."""
        self._note(setting_of(words_of(chunk.cell).values()), measured)

    def _note(self, setting: Setting, measured: Mapping[str, Any] | pd.DataFrame) -> None:
        times = self._times.setdefault(setting[0], {}).setdefault(setting[1], {})
        times.update(zip(np.asarray(measured["run"]), np.asarray(measured["steps"]), strict=True))

    def needed(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return the chunks of a round whose settings are not dropped."""
        settings = [setting_of(words_of(chunk.cell).values()) for chunk in chunks]
        for others in {setting[0] for setting in settings}:
            self._left |= self._far(others, chunks[0].first)
        pairs = zip(chunks, settings, strict=True)
        return [chunk for chunk, setting in pairs if setting not in self._left]

    def left_early(self) -> set[Setting]:
        """Return the settings with fewer runs than the rest of their group that the rule drops."""
        dropped = set()
        for others, sizes in self._times.items():
            most = max(map(len, sizes.values()))
            for n in {len(times) for times in sizes.values()} - {most}:
                dropped |= {(o, size) for o, size in self._far(others, n) if len(sizes[size]) == n}
        return dropped

    def _far(self, others: tuple[str, ...], n: int) -> set[Setting]:
        """Return the settings of a group that the rule drops after n runs."""
        held = {
            step_size: [times[run] for run in range(n)]
            for step_size, times in self._times.get(others, {}).items()
            if times.keys() >= set(range(n))
        }
        if n == 0 or len(held) < 2:
            return set()
        times = np.array(list(held.values()), dtype=np.float64).T
        far = far_from_best(times, float(others[_CAP]))
        return {(others, step_size) for step_size, beyond in zip(held, far, strict=True) if beyond}
