r"""The learning-rate curve that the predecessor published, and ours for the same settings.

Laroche and Tachet des Combes (2021), figure 11(a): softmax policy gradient on the chain with 10
states and :math:`\beta=0.8`, four schedules, mean over 100 runs of the number of trajectories until
the normalised performance passes 0.5, cut at 150 000, the cap in the configuration that goes with
the figure. ``data/published_curve.csv`` holds the points as read off the figure, good to about 25
trajectories.

With :math:`m, s` the mean and standard deviation of our n runs, and supposing that theirs have the
same deviation, the difference of the two means has the standard error
:math:`\sqrt{s^2/n + s^2/100 + r^2}` with :math:`r=25`, and z is the difference over it. If both
programs do the same, z is close to standard normal, and the sum of its squares over the points of a
curve close to chi-squared; the points share runs, though, in ours and in theirs, so that a curve
may be off as a whole.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from pu_lib.empirical.bootstrap import draws, interval
from pu_lib.empirical.options import PRESETS
from pu_lib.empirical.results import Results, Runs, results_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CAP", "READING", "comparison", "published"]

CAP = PRESETS["predecessor"].max_episodes
"""Trajectories after which a run of theirs is cut."""

RUNS, READING = 100, 25.0


@cache
def published() -> pd.DataFrame:
    """Return the published points: schedule, actor_learning_rate, episodes_to_half_gap."""
    import pandas as pd

    path = resources.files("pu_lib.empirical") / "data" / "published_curve.csv"
    with path.open(encoding="utf-8") as lines:
        return pd.read_csv(lines)


def comparison(table: Runs = None) -> pd.DataFrame:
    """Set our runs beside the published points.

    Returns
    -------
    pandas.DataFrame
        One row a point: schedule, eta, theirs, ours (the mean of the trajectories, cut at the
        cap), runs, standard error of ours, low and high (95 % interval of ours), z.
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
        mine = runs[(runs["scheme"] == schedule) & np.isclose(runs["eta"], rate)]
        if len(mine) > 1:
            rows.append(_row(schedule, float(rate), float(theirs), mine))
    if not rows:
        raise ValueError("table: there are no runs of the published curve.")
    return pd.DataFrame(rows)


def _row(schedule: str, eta: float, theirs: float, mine: pd.DataFrame) -> dict[str, object]:
    episodes = np.minimum(mine["episodes"].to_numpy(dtype=np.float64), CAP)
    n, mean, deviation = len(episodes), episodes.mean(), episodes.std(ddof=1)
    low, high = interval(episodes[draws(n)].mean(axis=1))
    scale = np.sqrt(deviation**2 / n + deviation**2 / RUNS + READING**2)
    return {
        "schedule": schedule,
        "eta": eta,
        "theirs": theirs,
        "ours": mean,
        "runs": n,
        "low": low,
        "high": high,
        "z": (mean - theirs) / scale,
    }
