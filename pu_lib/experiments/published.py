r"""The learning-rate curve that the predecessor published, and ours for the same settings.

Laroche and Tachet des Combes (2021), figure 11(a): softmax policy gradient on the chain with 10
states and :math:`\beta=0.8`, four schedules, mean of the number of trajectories until the
normalised performance passes 0.5, cut at 150 000, the cap in the configuration that goes with the
figure. ``data/published_curve.csv`` holds the points as read off the public vector figure, whose
coordinates have six decimals, so that a point is read to less than `READING` trajectories.

Their program looks at the performance in every 150th trajectory from the first on. A run that
passes therefore counts :math:`1+150k` trajectories, and one that is lost counts 150 000. The mean
over n runs of which c are lost is

.. math:: 1+\frac{150K-c}n

with some integer K. The reading is so much finer than the distance 150/n between such means that
the points themselves tell n and c (`possible_runs`): 60 runs up to a rate of 4, then 59 or 57, and
100 from 158 on, where some are lost. The configuration asks for 100.

With :math:`m, s` the mean and standard deviation of our runs, N in number, and supposing that their
n have the same deviation, the difference of the two means has the standard error
:math:`s\sqrt{1/N + 1/n}`, and z is the difference over it. If both programs do the same, z is close
to standard normal, and the sum of its squares over the points of a curve close to chi-squared; the
points share runs, though, in ours and in theirs, so that a curve may be off as a whole. Our rates
are within 0.1 % of theirs, which shifts z by less than a half.
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

__all__ = ["CAP", "LOOK", "READING", "comparison", "possible_runs", "published", "runs_behind"]

CAP = PREDECESSOR.max_episodes
"""Trajectories after which a run of theirs is cut."""

LOOK = CAP // 1000
"""From one of their looks at the performance to the next there are so many trajectories."""

READING = 1e-3
"""No point is read off the figure with a larger error, in trajectories."""

_CONFIGURED = 100  # runs that their configuration asks for
_NEAR = 2e-3  # our rates are those of an earlier, coarser reading


@cache
def published() -> pd.DataFrame:
    """Return the published points: schedule, actor_learning_rate, episodes_to_half_gap."""
    import pandas as pd

    path = resources.files("pu_lib.experiments") / "data" / "published_curve.csv"
    with path.open(encoding="utf-8") as lines:
        return pd.read_csv(lines)


def possible_runs(means: ArrayLike, most: int = _CONFIGURED) -> dict[int, int]:
    """Return the numbers of runs that published means may have, with those of them that were lost.

    Parameters
    ----------
    means : array_like
        Means of curves that have the same number of runs, such as four schedules at one rate.
    most : int
        The largest number of runs to think of.

    Returns
    -------
    dict of int to int
        The numbers n for which every mean is one of n runs to within `READING`; with each, how many
        of these runs were lost, over all means. Empty if there is none.
    """
    excess, found = np.asarray(means, dtype=np.float64) - 1.0, {}
    for n in range(1, most + 1):
        lacking = -excess * n % LOOK  # to the next whole number of looks: the runs that were lost
        lost = np.round(lacking)
        if np.all((np.abs(lacking - lost) <= n * READING) & (lost % LOOK <= n)):
            found[n] = int((lost % LOOK).sum())
    return found


@cache
def runs_behind() -> dict[float, int]:
    """Return the number of runs behind the published points of each rate.

    Of the possible numbers the ones with the fewest lost runs; of these, the one that is possible
    at the most rates: a mean of 60 runs may look like one of 30.

    Returns
    -------
    dict of float to int
        The number by the rate.
    """
    at_rates = published().groupby("actor_learning_rate")["episodes_to_half_gap"]
    likely = {float(str(rate)): _fewest_lost(possible_runs(means)) for rate, means in at_rates}
    rates_of = Counter(n for numbers in likely.values() for n in numbers)
    return {rate: max(numbers, key=rates_of.__getitem__) for rate, numbers in likely.items()}


def _fewest_lost(possible: dict[int, int]) -> Iterable[int]:
    fewest = min(possible.values())
    return [n for n, lost in possible.items() if lost == fewest]


def comparison(table: Runs = None) -> pd.DataFrame:
    """Set our runs beside the published points.

    Returns
    -------
    pandas.DataFrame
        One row a point: schedule, eta, theirs, ours (the mean of the trajectories, cut at the
        cap), their runs and runs (ours), their lost and lost, low and high (95 % interval of ours),
        z.
    """
    return _comparison(results_of(table)).copy()


@lru_cache(maxsize=2)
def _comparison(results: Results) -> pd.DataFrame:
    import pandas as pd

    runs = results.table[results.table["experiment"] == "published-curve"]
    rows = []
    points = published()
    for schedule, rate, theirs in zip(
        points["schedule"].astype(str),
        points["actor_learning_rate"].to_numpy(dtype=np.float64),
        points["episodes_to_half_gap"].to_numpy(dtype=np.float64),
        strict=True,
    ):
        mine = runs[(runs["scheme"] == schedule) & np.isclose(runs["eta"], rate, rtol=_NEAR)]
        if len(mine) > 1:
            rows.append(_row(schedule, float(rate), float(theirs), mine))
    if not rows:
        raise ValueError("table: there are no runs of the published curve.")
    return pd.DataFrame(rows)


def _row(schedule: str, eta: float, theirs: float, mine: pd.DataFrame) -> dict[str, object]:
    episodes = np.minimum(mine["episodes"].to_numpy(dtype=np.float64), CAP)
    n, their_n, mean = len(episodes), runs_behind()[eta], episodes.mean()
    low, high = interval(episodes[draws(n)].mean(axis=1))
    scale = episodes.std(ddof=1) * np.sqrt(1.0 / n + 1.0 / their_n)
    return {
        "schedule": schedule,
        "eta": eta,
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
