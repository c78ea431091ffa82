r"""The learning-rate curve published by the predecessor, compared with runs in the same settings.

Figure 11(a) of Laroche and Tachet des Combes (2021) shows the softmax policy gradient on the chain
with 10 states and :math:`\beta=0.8` under four schedules. Its vertical axis is the mean number of
trajectories until the normalised performance passes 0.5. The cap is 150 000 trajectories, as in the
configuration of the figure. ``data/published_curve.csv`` contains the points, which were read off
the public vector figure. The coordinates in the figure have six decimals, so the error of a point
is below `READING` trajectories.

Their program evaluates the performance in the first and then in every 150th trajectory. A run that
passes therefore counts :math:`1+150k` trajectories, and a censored run counts 150 000. The mean
over n runs, of which c are censored, is

.. math:: 1+\frac{150K-c}n

with an integer K. The reading error is much smaller than the spacing 150/n of such means, so the
points determine n and c (`possible_runs`). There are 60 runs up to a step size of 4, then 59 or
57 runs, and 100 runs from 158 on; some of these 100 runs are censored. The configuration specifies
100 runs.

Let :math:`s` be the standard deviation of N runs of this library. If the n published runs have the
same standard deviation, the difference between the two means has the standard error
:math:`s\sqrt{1/N + 1/n}`, and z is the difference divided by the standard error. If both programs
have the same distribution, z is approximately standard normal, and the sum of the squares of z over
the points of a curve is approximately chi-squared. In both programs, however, the points of a curve
share random numbers, so a curve may be shifted as a whole. The step sizes agree to 0.1 %. This
error shifts z by less than 0.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.experiments.bootstrap import draws, interval
from pu_lib.experiments.options import PREDECESSOR
from pu_lib.experiments.results import Results, Runs, results_of

if TYPE_CHECKING:
    import pandas as pd

CAP = PREDECESSOR.max_episodes
"""Cap of the published runs, in trajectories."""

LOOK = CAP // 1000
"""Number of trajectories between two evaluations in the predecessor's program."""

READING = 1e-3
"""Bound on the reading error of a point of the figure, in trajectories."""

_CONFIGURED = 100  # number of runs in the predecessor's configuration
_NEAR = 2e-3  # relative; the step sizes come from an earlier, coarser reading of the figure


@cache
def published() -> pd.DataFrame:
    """Return a table of the published points: their schedules, step sizes and mean times."""
    import pandas as pd

    path = resources.files("pu_lib.experiments") / "data" / "published_curve.csv"
    with path.open(encoding="utf-8") as lines:
        return pd.read_csv(lines)


def possible_runs(means: ArrayLike, most: int = _CONFIGURED) -> dict[int, int]:
    """Return each number of runs that is consistent with published means, and its censored runs.

    Parameters
    ----------
    means : array_like
        Means over the same number of runs, such as the means of the four schedules at one learning
        rate.
    most : int
        Upper bound on the number of runs.

    Returns
    -------
    dict of int to int
        The numbers n such that each mean can be a mean of n runs up to `READING`, mapped to the
        total number of censored runs over all means.
    """
    excess, possible = np.asarray(means, dtype=np.float64) - 1.0, {}
    for n in range(1, most + 1):
        lacking = -excess * n % LOOK  # c modulo 150 in the formula of the module
        lost = np.round(lacking)
        if np.all((np.abs(lacking - lost) <= n * READING) & (lost % LOOK <= n)):
            possible[n] = int((lost % LOOK).sum())
    return possible


@cache
def runs_behind() -> dict[float, int]:
    """Return the number of runs of the published points, by step size.

    Among the possible numbers, the numbers with the fewest censored runs are selected, and among
    these the number that is possible at the most step sizes, because a mean over 60 runs may
    also be a possible mean over 30 runs.
    """
    by_size = published().groupby("step_size")["episodes_to_half_gap"]
    likely = {float(str(size)): _fewest_lost(possible_runs(means)) for size, means in by_size}
    sizes_of = Counter(n for numbers in likely.values() for n in numbers)
    return {size: max(numbers, key=sizes_of.__getitem__) for size, numbers in likely.items()}


def _fewest_lost(possible: dict[int, int]) -> Iterable[int]:
    fewest = min(possible.values())
    return [n for n, lost in possible.items() if lost == fewest]


def comparison(table: Runs = None) -> pd.DataFrame:
    """Compare the runs with the published points.

    Returns
    -------
    pandas.DataFrame
        One row per point: schedule, step_size, theirs and ours (capped mean numbers of
        trajectories), their runs and runs (numbers of runs), their lost and lost (numbers of
        censored runs), low and high (95 % interval of the mean of this library's runs), and z.
    """
    return _comparison(results_of(table)).copy()


@lru_cache(maxsize=2)
def _comparison(results: Results) -> pd.DataFrame:
    import pandas as pd

    runs = results.table[results.table["experiment"] == "published-curve"]
    rows = []
    points = published()
    for schedule, step_size, theirs in zip(
        points["schedule"].astype(str),
        points["step_size"].to_numpy(dtype=np.float64),
        points["episodes_to_half_gap"].to_numpy(dtype=np.float64),
        strict=True,
    ):
        near = np.isclose(runs["step_size"], step_size, rtol=_NEAR)
        mine = runs[(runs["scheme"] == schedule) & near]
        if len(mine) > 1:
            rows.append(_row(schedule, float(step_size), float(theirs), mine))
    if not rows:
        raise ValueError(
            "table: there are no runs of the published curve; include the experiment "
            "'published-curve'."
        )
    return pd.DataFrame(rows)


def _row(schedule: str, step_size: float, theirs: float, mine: pd.DataFrame) -> dict[str, object]:
    episodes = np.minimum(mine["episodes"].to_numpy(dtype=np.float64), CAP)
    n, their_n, mean = len(episodes), runs_behind()[step_size], episodes.mean()
    low, high = interval(episodes[draws(n)].mean(axis=1))
    scale = episodes.std(ddof=1) * np.sqrt(1.0 / n + 1.0 / their_n)
    return {
        "schedule": schedule,
        "step_size": step_size,
        "theirs": theirs,
        "ours": mean,
        "their runs": their_n,
        "runs": n,
        "their lost": possible_runs([theirs])[their_n],
        "lost": int((episodes >= CAP).sum()),
        "low": low,
        "high": high,
        "z": (mean - theirs) / scale,
    }
