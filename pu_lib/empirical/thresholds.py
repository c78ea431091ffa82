r"""Times to threshold: statistics that respect censoring.

A run that has not passed the threshold at its cap T is **right-censored**: all that is known is
that its time is more than T. Three summaries are used together, because they can disagree:

- quantiles of the Kaplan-Meier estimate of the distribution of the time. A quantile is infinite
  where fewer runs than it needs have passed;
- the **restricted mean** :math:`\mathbb E[\min(X, \tau)]`, the area under the Kaplan-Meier survival
  curve up to a horizon :math:`\tau` no larger than any cap. With one cap for all runs and
  :math:`\tau = T` it is the mean of the recorded times, which curves with a hidden cap show;
- the censored share.

Intervals come from the bootstrap over runs, seeded. Settings that share their runs' random streams
(and, on Random MDPs, their processes) are compared run by run: `compare` bootstraps the pairs.

Applicability and issues
------------------------
Bootstrap intervals of quantiles are coarse below some twenty runs, and an interval is infinite on
the side where resamples are censored. The restricted mean depends on its horizon: compare only
values with the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray

__all__ = ["Comparison", "Summary", "compare", "quantile", "restricted_mean", "summarise"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """Times to threshold of one setting.

    Attributes
    ----------
    runs : int
        Number of runs.
    censored : float
        Share of runs that did not pass.
    median, median_low, median_high : float
        Kaplan-Meier median and its interval; infinite where too few runs passed.
    lower, upper : float
        First and ninth deciles.
    mean, mean_low, mean_high : float
        Restricted mean and its interval.
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
    horizon: float


@dataclass(frozen=True)
class Comparison:
    """Two settings compared run by run.

    Attributes
    ----------
    pairs : int
        Number of runs in common.
    ratio, ratio_low, ratio_high : float
        Ratio of the restricted means, first to second, with its interval.
    wins, ties : float
        Shares of runs in which the first passed earlier, and in which it cannot be told.
    """

    pairs: int
    ratio: float
    ratio_low: float
    ratio_high: float
    wins: float
    ties: float


def quantile(times: ArrayLike, censored: ArrayLike, probability: float = 0.5) -> float:
    """Return a quantile of the Kaplan-Meier estimate.

    Parameters
    ----------
    times : array_like, shape (runs,)
        Recorded times, of passing or of censoring.
    censored : array_like of bool, shape (runs,)
        Which are of censoring.
    probability : float
        Level in (0, 1).

    Returns
    -------
    float
        The first time by which at least this share has passed; infinite if there is none.

    Raises
    ------
    ValueError
        If the arrays do not match, are empty, or the level is out of range.
    """
    if not 0.0 < probability < 1.0:
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
        :math:`\tau`; the largest recorded time if missing.

    Raises
    ------
    ValueError
        If the arrays do not match, or a run was censored before the horizon as the last one, so
        that the curve is unknown beyond.
    """
    recorded, cut = _checked(times, censored)
    last = float(recorded.max())
    tau = last if horizon is None else float(horizon)
    if tau > last and np.all(cut[recorded == last]):
        raise ValueError(f"horizon: the survival curve is unknown from {last:g} to {tau:g}.")
    return _area(recorded, cut, tau)


def summarise(
    times: ArrayLike,
    censored: ArrayLike,
    horizon: float | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Summary:
    """Return the summaries of one setting with bootstrap intervals.

    Parameters
    ----------
    times, censored, horizon
        As for `restricted_mean`.
    confidence : float
        Level of the percentile intervals.
    resamples : int
        Bootstrap resamples.
    seed : int
        Seed of the bootstrap.
    """
    recorded, cut = _checked(times, censored)
    tau = float(recorded.max()) if horizon is None else float(horizon)

    beyond = 2.0 * float(
        recorded.max()
    )  # stands for infinity in the bootstrap, which needs numbers
    if np.all(recorded[cut] >= recorded.max()):
        # One cap: Kaplan-Meier is the empirical distribution, and a whole batch of resamples is
        # quick to evaluate.
        known = np.where(cut, beyond, recorded)
        middle = int(np.ceil(0.5 * len(recorded))) - 1

        def medians(index: NDArray[np.intp], axis: int = -1) -> Floats:
            return np.asarray(np.take(np.sort(known[index], axis=axis), middle, axis=axis))

        def means(index: NDArray[np.intp], axis: int = -1) -> Floats:
            return np.asarray(np.minimum(recorded, tau)[index].mean(axis=axis))

    else:

        def median(index: NDArray[np.intp]) -> float:
            return min(quantile(recorded[index], cut[index], 0.5), beyond)

        def mean(index: NDArray[np.intp]) -> float:
            # A resample may end in censored runs, and the curve is then taken to stay level.
            return _area(recorded[index], cut[index], tau)

        def medians(index: NDArray[np.intp], axis: int = -1) -> Floats:
            return np.asarray(np.apply_along_axis(median, axis, index))

        def means(index: NDArray[np.intp], axis: int = -1) -> Floats:
            return np.asarray(np.apply_along_axis(mean, axis, index))

    low, high = _interval(len(recorded), medians, confidence, resamples, seed)
    mean_low, mean_high = _interval(len(recorded), means, confidence, resamples, seed)
    return Summary(
        runs=len(recorded),
        censored=float(np.mean(cut)),
        median=quantile(recorded, cut, 0.5),
        median_low=low if low < beyond else np.inf,
        median_high=high if high < beyond else np.inf,
        lower=quantile(recorded, cut, 0.1),
        upper=quantile(recorded, cut, 0.9),
        mean=restricted_mean(recorded, cut, tau),
        mean_low=mean_low,
        mean_high=mean_high,
        horizon=tau,
    )


def compare(
    first: ArrayLike,
    first_censored: ArrayLike,
    second: ArrayLike,
    second_censored: ArrayLike,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Compare two settings run by run; entry i of both must be the same run.

    Parameters
    ----------
    first, first_censored, second, second_censored : array_like, shape (runs,)
        Times and censoring of both settings, censored at one common cap.
    confidence, resamples, seed
        As for `summarise`.

    Raises
    ------
    ValueError
        If the numbers of runs differ.
    """
    x, x_cut = _checked(first, first_censored)
    y, y_cut = _checked(second, second_censored)
    if len(x) != len(y):
        raise ValueError(f"second: expected {len(x)} runs as in the first, got {len(y)}.")

    def ratios(index: NDArray[np.intp], axis: int = -1) -> Floats:
        return np.asarray(x[index].mean(axis=axis) / y[index].mean(axis=axis))

    low, high = _interval(len(x), ratios, confidence, resamples, seed)
    return Comparison(
        pairs=len(x),
        ratio=float(x.mean() / y.mean()),
        ratio_low=low,
        ratio_high=high,
        wins=float(np.mean((x < y) & ~x_cut)),
        ties=float(np.mean((x == y) | (x_cut & y_cut))),
    )


def _area(recorded: Floats, cut: NDArray[np.bool_], tau: float) -> float:
    """Return the area under the survival curve, level after the last recorded time."""
    curve = _distribution(recorded, cut)
    inside = curve.quantiles < tau
    corners = np.concatenate(([0.0], curve.quantiles[inside], [tau]))
    survival = np.concatenate(([1.0], 1.0 - curve.probabilities[inside]))
    return float(np.sum(np.diff(corners) * survival))


def _interval(
    n: int,
    statistic: Callable[..., Floats],
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[float, float]:
    """Return a percentile bootstrap interval of a statistic of resampled indices."""
    if n == 1:
        return -np.inf, np.inf
    result = scipy.stats.bootstrap(
        (np.arange(n),),
        lambda index, axis: statistic(index.astype(np.intp), axis),
        n_resamples=resamples,
        vectorized=True,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    # Order statistics rather than interpolation, which would mix times with the stand-in.
    ordered = np.sort(result.bootstrap_distribution)
    tail = (1.0 - confidence) / 2.0
    low = int(np.floor(tail * (resamples - 1)))
    return float(ordered[low]), float(ordered[resamples - 1 - low])


def _distribution(times: Floats, censored: NDArray[np.bool_]) -> Any:
    data = scipy.stats.CensoredData.right_censored(times, censored)
    return scipy.stats.ecdf(data).cdf


def _checked(times: ArrayLike, censored: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    recorded = np.asarray(times, dtype=np.float64)
    cut = np.asarray(censored, dtype=np.bool_)
    if recorded.ndim != 1 or len(recorded) == 0 or cut.shape != recorded.shape:
        raise ValueError(
            f"times, censored: expected two rows of the same positive length, got shapes "
            f"{recorded.shape} and {cut.shape}."
        )
    if not np.all(np.isfinite(recorded)) or np.any(recorded <= 0.0):
        raise ValueError("times: expected finite positive times.")
    return recorded, cut
