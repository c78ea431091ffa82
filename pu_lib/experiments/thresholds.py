r"""Statistics of censored times to threshold.

A run that has not passed the threshold at its cap T is **right-censored**: the time is known to be
at least T. Four statistics are reported together, because they can disagree:

- quantiles of the Kaplan-Meier estimate of the distribution of the time, which are infinite if too
  few runs passed;
- the **restricted mean** :math:`\mathbb E[\min(X, \tau)]`, the area under the Kaplan-Meier survival
  curve up to a horizon :math:`\tau` no larger than any cap. If all runs have the cap T and
  :math:`\tau = T`, the restricted mean is the mean of the recorded times;
- the interquartile mean, the mean of the recorded times without the lowest and the highest quarter,
  which is defined here if all runs have the same cap;
- the censored share.

The interval of a median consists of order statistics of the runs. Its coverage is at least the
stated level for any distribution, by the binomial distribution. At 95 % it needs `MEDIAN_RUNS`
runs.

The interval of a mean or an interquartile mean is the percentile interval of the bootstrap over
runs, with a fixed seed. Its coverage is asymptotic, and no interval is given for fewer than
`MEAN_RUNS` runs. Settings that share the random streams of their runs (and, on Random MDPs, their
processes) are compared run by run: `compare` resamples pairs.

Applicability and issues
------------------------
Coverage of the 95 % percentile interval of the restricted mean, simulated at a cap of 20,000 steps:

==============================================  =====  ======  ======  =======  =======
Law of the time                                 5      20      60      100      400
==============================================  =====  ======  ======  =======  =======
exponential, mean 1000                          0.79   0.90    0.93    0.94     0.95
log-normal, exp(7 + 1.5 z)                      0.69   0.86    0.93    0.93     0.94
exponential, mean 100; 5 % never pass           0.23   0.63    0.92    0.93     0.94
==============================================  =====  ======  ======  =======  =======

The last row limits all methods: there are no runs at the cap among 20 runs with probability 0.36,
and no statistic of these runs then shows that there are any. With 100 runs, Student's interval
covers 0.88 in the last row and BCa's 0.97. One added run at the cap, as in
`pu_lib.experiments.adaptive`, gives a coverage of 1.00 in all rows if there are 20 runs, with
intervals that are up to four times as long. If only 1 % of the runs never pass, 100 runs are too
few: the percentile interval covers 0.63. A test simulates parts of the table.

An end of an interval is infinite if it is a run, or a mean, beyond the cap. Restricted means are
comparable only if they have the same horizon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import Floats, as_bool_array, as_float, as_float_array
from pu_lib.experiments.bootstrap import (
    LEVEL,
    draws,
    interquartile_mean,
    interval,
    lower_quantile,
    median_rank,
    resampled_interquartile_mean,
    resampled_mean,
)

__all__ = [
    "MEAN_RUNS",
    "MEDIAN_RUNS",
    "Comparison",
    "Summary",
    "compare",
    "estimate",
    "quantile",
    "restricted_mean",
    "summarise",
]

MEDIAN_RUNS = 6
"""Smallest number of runs for a 95 % interval of a median."""

MEAN_RUNS = 100
"""Smallest number of runs for the interval of a mean, or of a ratio of means."""


@dataclass(frozen=True)
class Summary:
    """Summary statistics of the times of one setting.

    An interval from minus infinity to infinity means that there are too few runs for an interval.

    Attributes
    ----------
    runs : int
        Number of runs.
    censored : float
        Share of censored runs.
    median, median_low, median_high : float
        Kaplan-Meier median and its interval. They are infinite if too few runs passed.
    lower, upper : float
        First and ninth deciles.
    mean, mean_low, mean_high : float
        Restricted mean and its interval.
    iqm, iqm_low, iqm_high : float
        Interquartile mean of the recorded times and its interval. It is NaN if runs were censored
        before the last recorded time.
    horizon : float
        Horizon of the restricted mean.
    """

    runs: int
    censored: float
    median: float
    median_low: float
    median_high: float
    lower: float
    upper: float
    mean: float
    mean_low: float
    mean_high: float
    iqm: float
    iqm_low: float
    iqm_high: float
    horizon: float


@dataclass(frozen=True)
class Comparison:
    """Two settings compared run by run.

    Attributes
    ----------
    pairs : int
        Number of pairs of runs.
    ratio, ratio_low, ratio_high : float
        Ratio of the restricted means, first to second, and its interval, which is from minus
        infinity to infinity if there are fewer than `MEAN_RUNS` pairs.
    wins, ties : float
        Share of pairs in which the first setting passed earlier, and share of tied pairs.
    """

    pairs: int
    ratio: float
    ratio_low: float
    ratio_high: float
    wins: float
    ties: float


def quantile(times: ArrayLike, censored: ArrayLike, probability: float = 0.5) -> float:
    """Return a quantile of the Kaplan-Meier estimate of the distribution of the time.

    Parameters
    ----------
    times : array_like, shape (runs,)
        Recorded times at which each run passed or was censored.
    censored : array_like of bool, shape (runs,)
        Whether each run was censored.
    probability : float
        Order of the quantile, in (0, 1).

    Returns
    -------
    float
        The quantile, or infinity if too few runs passed.

    Raises
    ------
    ValueError
        If the arrays are empty or differ in shape, or the order is out of range.
    """
    if not 0.0 < as_float("probability", probability) < 1.0:
        raise ValueError(f"probability: expected a level in (0, 1), got {probability}.")
    curve = _distribution(*_checked(times, censored))
    # Products of survival fractions are off by a few ulp; one run in 10^9 is below any resolution.
    reached = np.flatnonzero(curve.probabilities >= probability - 1e-9)
    return float(curve.quantiles[reached[0]]) if len(reached) else np.inf


def restricted_mean(times: ArrayLike, censored: ArrayLike, horizon: float | None = None) -> float:
    r"""Return the area under the Kaplan-Meier survival curve up to a horizon.

    Parameters
    ----------
    times, censored
        As for `quantile`.
    horizon : float, optional
        The horizon :math:`\tau`. The default is the largest recorded time.

    Returns
    -------
    float
        The area, in the unit of the times.

    Raises
    ------
    ValueError
        If the arrays differ in shape, or the survival curve is unknown before the horizon because a
        run was censored at the last recorded time.
    """
    recorded, cut = _checked(times, censored)
    last = float(recorded.max())
    tau = _horizon(recorded, horizon)
    if tau > last and np.any(cut[recorded == last]):
        raise ValueError(
            f"horizon: the survival curve is unknown from {last:g} to {tau:g}; give a horizon of "
            f"at most {last:g}."
        )
    return _area(recorded, cut, tau)


def summarise(
    times: ArrayLike, censored: ArrayLike, horizon: float | None = None, confidence: float = LEVEL
) -> Summary:
    """Return the summary statistics of one setting, with intervals.

    Parameters
    ----------
    times, censored, horizon
        As for `restricted_mean`.
    confidence : float
        Level of the intervals, in (0, 1).

    Returns
    -------
    Summary
        The statistics.

    Raises
    ------
    ValueError
        As for `restricted_mean`, or if the level is out of range.
    """
    recorded, cut = _checked(times, censored)
    tau, confidence = _horizon(recorded, horizon), _as_confidence(confidence)
    low, high = _median_interval(recorded, cut, confidence)
    mean_low, mean_high = -np.inf, np.inf
    iqm, iqm_low, iqm_high = np.nan, -np.inf, np.inf
    one_cap = np.all(recorded[cut] >= recorded.max())
    if one_cap:
        times = np.minimum(recorded, tau)[:, np.newaxis]
        iqm, iqm_low, iqm_high = estimate(times, "iqm", confidence)[:, 0].tolist()
    if len(recorded) >= MEAN_RUNS:
        index = draws(len(recorded))
        if one_cap:
            # With one cap the restricted mean is the mean of the times: no loop is needed.
            means = np.minimum(recorded, tau)[index].mean(axis=1)
        else:
            # If the last time of a resample is censored, its survival curve is extended.
            means = np.array([_area(recorded[i], cut[i], tau) for i in index])
        mean_low, mean_high = map(float, interval(means, confidence))
    return Summary(
        runs=len(recorded),
        censored=float(np.mean(cut)),
        median=quantile(recorded, cut, 0.5),
        median_low=low,
        median_high=high,
        lower=quantile(recorded, cut, 0.1),
        upper=quantile(recorded, cut, 0.9),
        mean=restricted_mean(recorded, cut, tau),
        mean_low=mean_low,
        mean_high=mean_high,
        iqm=iqm,
        iqm_low=iqm_low,
        iqm_high=iqm_high,
        horizon=tau,
    )


def estimate(values: Floats, statistic: str, confidence: float = LEVEL) -> Floats:
    """Return a statistic of each column of runs, with its interval.

    Parameters
    ----------
    values : ndarray, shape (runs, columns)
        Values of the runs, none of them censored.
    statistic : {"median", "mean", "iqm"}
        The median (the lower one of two), the mean or the interquartile mean.
    confidence : float
        Level of the intervals, in (0, 1).

    Returns
    -------
    ndarray, shape (3, columns)
        The statistic and the ends of its interval, as in `Summary`.
    """
    n = len(values)
    low, high = np.float64(-np.inf), np.float64(np.inf)
    if statistic == "median":
        centre = lower_quantile(values, 0.5)
        if k := median_rank(n, (1.0 - confidence) / 2.0):
            ordered = np.sort(values, axis=0)
            low, high = ordered[k - 1], ordered[-k]
    else:
        means, resample = _MEANS[statistic]
        centre = means(values)
        if n >= MEAN_RUNS:
            low, high = interval(resample(values), confidence)
    return np.stack(np.broadcast_arrays(centre, low, high))


_MEANS: dict[str, tuple[Callable[[Floats], Any], Callable[[Floats], Floats]]] = {
    "mean": (lambda values: values.mean(axis=0), resampled_mean),
    "iqm": (interquartile_mean, resampled_interquartile_mean),
}


def compare(
    first: ArrayLike,
    first_censored: ArrayLike,
    second: ArrayLike,
    second_censored: ArrayLike,
    confidence: float = LEVEL,
) -> Comparison:
    """Compare two settings run by run.

    Parameters
    ----------
    first, first_censored, second, second_censored : array_like, shape (runs,)
        Times and censoring of both settings. Entry i is the same run in both settings, and all runs
        have the same cap.
    confidence : float
        Level of the interval, in (0, 1).

    Returns
    -------
    Comparison
        The ratio of the restricted means with its interval, and the shares of wins and ties.

    Raises
    ------
    ValueError
        If the numbers of runs differ, or a run is censored before the largest recorded time, so
        that the restricted means are not the means of the times.
    """
    x, x_cut = _checked(first, first_censored)
    y, y_cut = _checked(second, second_censored)
    if len(x) != len(y):
        raise ValueError(f"second: expected {len(x)} runs as in the first, got {len(y)}.")

    last = max(x.max(), y.max())
    for name, recorded, cut in (("first", x, x_cut), ("second", y, y_cut)):
        if np.any(recorded[cut] < last):
            raise ValueError(
                f"{name}: a run is censored at {recorded[cut].min():g}, before {last:g}; run both "
                "settings with the same cap."
            )
    confidence = _as_confidence(confidence)
    low, high = -np.inf, np.inf
    if len(x) >= MEAN_RUNS:
        index = draws(len(x))
        ratios = x[index].mean(axis=1) / y[index].mean(axis=1)
        low, high = map(float, interval(ratios, confidence))
    return Comparison(
        pairs=len(x),
        ratio=float(x.mean() / y.mean()),
        ratio_low=low,
        ratio_high=high,
        wins=float(np.mean(~x_cut & ((x < y) | ((x == y) & y_cut)))),
        ties=float(np.mean((x == y) & (x_cut == y_cut))),
    )


def _area(recorded: Floats, cut: NDArray[np.bool_], tau: float) -> float:
    """Return the area under the survival curve, which is constant after the last recorded time."""
    curve = _distribution(recorded, cut)
    inside = curve.quantiles < tau
    corners = np.concatenate(([0.0], curve.quantiles[inside], [tau]))
    survival = np.concatenate(([1.0], 1.0 - curve.probabilities[inside]))
    return float(np.sum(np.diff(corners) * survival))


def _as_confidence(value: float) -> float:
    confidence = as_float("confidence", value)
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence: expected a share in (0, 1), got {confidence}.")
    return confidence


def _median_interval(
    recorded: Floats, cut: NDArray[np.bool_], confidence: float
) -> tuple[float, float]:
    """Return the interval of the median from order statistics.

    The time of a censored run is unknown, but not below the recorded time. It is therefore replaced
    by the recorded time for the lower end and by infinity for the upper end. A run that is censored
    at the last recorded time is replaced by infinity for both ends.
    """
    k = median_rank(len(recorded), (1.0 - confidence) / 2.0)
    if k == 0:
        return -np.inf, np.inf
    latest = np.where(cut, np.inf, recorded)
    earliest = np.where(recorded < recorded.max(), recorded, latest)
    return float(np.sort(earliest)[k - 1]), float(np.sort(latest)[-k])


def _horizon(recorded: Floats, horizon: float | None) -> float:
    """Validate and return the horizon; if it is None, return the last recorded time."""
    tau = float(recorded.max()) if horizon is None else as_float("horizon", horizon)
    if not tau > 0.0:
        raise ValueError(f"horizon: expected a time > 0, got {tau}.")
    return tau


def _distribution(times: Floats, censored: NDArray[np.bool_]) -> Any:
    import scipy.stats  # slow to import, and rarely needed

    data = scipy.stats.CensoredData.right_censored(times, censored)
    return scipy.stats.ecdf(data).cdf


def _checked(times: ArrayLike, censored: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    recorded = as_float_array("times", times)
    if recorded.ndim != 1 or len(recorded) == 0:
        raise ValueError(f"times: expected a row of positive length, got shape {recorded.shape}.")
    if np.any(recorded <= 0.0):
        raise ValueError(f"times: expected positive times, got {recorded.min():g}.")
    return recorded, as_bool_array("censored", censored, recorded.shape)
