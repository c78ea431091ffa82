"""The bootstrap over runs, and percentile intervals.

A resample consists of runs sampled with replacement. The seed depends only on the number of runs,
so curves with the same number of runs are resampled jointly: if their runs share random numbers,
the common noise cancels in a comparison. The ends of an interval are values of resamples and are
not interpolated, because the value of a resample is infinite if too many of its runs are censored.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import Floats, as_float, as_float_array

RESAMPLES = 1000
"""Number of bootstrap resamples."""

LEVEL = 0.95
"""Default level of intervals."""

_SEED = 2022


@lru_cache(maxsize=32)
def draws(n_runs: int) -> NDArray[np.int64]:
    """Return a read-only array of shape (RESAMPLES, n_runs) with the runs of each resample."""
    index = np.random.default_rng([_SEED, n_runs]).integers(n_runs, size=(RESAMPLES, n_runs))
    index.setflags(write=False)
    return index


def interval(values: ArrayLike, level: float = LEVEL) -> Floats:
    """Return an array of shape (2, ...) with the percentile interval of resampled values.

    With n resamples, and k the integer part of (n - 1)(1 - level)/2, the ends are the (k + 1)-th
    smallest and the (k + 1)-th largest value. Infinite values are allowed.

    Raises
    ------
    ValueError
        If the level is not in (0, 1), or the values are empty or contain NaN.

    Examples
    --------
    >>> interval(range(1, 1001))
    array([ 25., 976.])
    """
    level = as_float("level", level)
    ordered = np.sort(as_float_array("values", values, axes=1, infinite=True), axis=0)
    if not len(ordered):
        raise ValueError("values: expected at least one, got none.")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level: expected a share in (0, 1), got {level}.")
    k = int((len(ordered) - 1) * (1.0 - level) / 2.0)
    return np.stack([ordered[k], ordered[len(ordered) - 1 - k]])


def interquartile_mean(values: ArrayLike) -> Any:
    """Return the mean along the first axis without the lowest and the highest quarter.

    The number of values in a quarter is rounded down.

    Examples
    --------
    >>> float(interquartile_mean([1, 2, 3, 100]))
    2.5
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=0)
    cut = len(ordered) // 4
    return ordered[cut : len(ordered) - cut].mean(axis=0)


def lower_quantile(times: Floats, order: float) -> Floats:
    """Return the smallest time such that a share `order` of the runs is at or below it.

    The quantile is taken along the first axis and is one of the times, which may be infinite.
    """
    k = _rank(order, len(times))
    return np.asarray(np.partition(times, k, axis=0)[k])


def median_rank(n_runs: int, error: float) -> int:
    """Return the largest k such that the k-th smallest of the runs is a lower end for the median.

    The k-th smallest run exceeds the median with a probability of at most `error`, for any
    distribution, and by symmetry the k-th largest run is an upper end. The result is 0 if there are
    too few runs.
    """
    from scipy.special import bdtr

    # The number of runs below the median is binomial (n, 1/2) if the distribution is continuous.
    return int(np.sum(bdtr(np.arange(n_runs), n_runs, 0.5) <= error))


def resampled_quantile(times: Floats, order: float) -> Floats:
    """Return an array of shape (RESAMPLES, columns) with the `lower_quantile` of each resample."""
    k, counts = _rank(order, len(times)), _counts(len(times))
    resampled = np.empty((RESAMPLES, times.shape[1]))
    for column, quantiles in zip(times.T, resampled.T, strict=True):
        # Sort the runs once: the quantile is the first run with a cumulative count above k.
        ranking = np.argsort(column)
        quantiles[:] = column[ranking[_places(counts, ranking, k)]]
    return resampled


def resampled_mean(times: Floats) -> Floats:
    """Return an array of shape (RESAMPLES, columns) with the mean of each resample.

    The sums are exact if the times are integers.
    """
    return np.asarray(_counts(len(times)).T @ times.astype(np.float64) / len(times))


def resampled_interquartile_mean(values: Floats) -> Floats:
    """Return an array of shape (RESAMPLES, columns) with the interquartile means of resamples."""
    n = len(values)
    ends = n // 4, n - n // 4
    resampled = np.empty((RESAMPLES, values.shape[1]))
    for column, means in zip(values.T, resampled.T, strict=True):
        ordered = np.partition(column[draws(n)], (ends[0], ends[1] - 1), axis=1)
        means[:] = ordered[:, slice(*ends)].mean(axis=1)
    return resampled


def _rank(order: float, n_runs: int) -> int:
    """Return the index of a quantile among sorted runs."""
    return int(np.ceil(order * n_runs)) - 1


def _places(counts: NDArray[np.int32], ranking: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return, for each resample, the first index of the ranking with a cumulative count above k."""
    # The index is near k in nearly every resample, so cumulative counts are needed only there.
    n_runs, reach = len(ranking), 2 * int(np.sqrt(len(ranking))) + 1
    while True:
        low, high = max(0, k - reach), min(n_runs, k + reach)
        met = counts[ranking[low:high]]
        met[0] += counts[ranking[:low]].sum(axis=0, dtype=counts.dtype)
        np.cumsum(met, axis=0, out=met)
        if (low == 0 or np.all(met[0] <= k)) and np.all(met[-1] > k):
            return np.asarray(low + np.count_nonzero(met <= k, axis=0))
        reach *= 2


@lru_cache(maxsize=32)
def _counts(n_runs: int) -> NDArray[np.int32]:
    """Return an array of shape (n_runs, RESAMPLES): how often each run is in each resample."""
    places = draws(n_runs) * RESAMPLES + np.arange(RESAMPLES)[:, np.newaxis]
    counts = np.bincount(places.ravel(), minlength=places.size).astype(np.int32)
    counts.setflags(write=False)
    return counts.reshape(n_runs, RESAMPLES)
