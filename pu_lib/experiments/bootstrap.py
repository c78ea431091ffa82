"""The bootstrap over runs: one way to resample, one way to read off an interval.

Resamples draw run numbers with replacement, seeded by the number of runs alone. Curves with as many
runs are therefore resampled alike, and where their runs share random numbers, what they have in
common drops out of a comparison. The ends of an interval are values of resamples, never between
two of them: a resample may be infinite where its runs were censored, and a mean of a time and
infinity says nothing.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import Floats, as_float, as_float_array

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "draws",
    "interval",
    "lower_quantile",
    "resampled_mean",
    "resampled_quantile",
]

RESAMPLES = 1000
"""Bootstrap resamples, everywhere in this library."""

LEVEL = 0.95
"""Level of every interval that does not say another."""

_SEED = 2022


@lru_cache(maxsize=32)
def draws(n_runs: int) -> NDArray[np.int64]:
    """Return the runs of each resample.

    Parameters
    ----------
    n_runs : int
        How many runs there are, at least one.

    Returns
    -------
    ndarray of int64, shape (RESAMPLES, n_runs)
        Numbers of runs, from 0; read-only.
    """
    index = np.random.default_rng([_SEED, n_runs]).integers(n_runs, size=(RESAMPLES, n_runs))
    index.setflags(write=False)
    return index


def interval(values: ArrayLike, level: float = LEVEL) -> Floats:
    """Return the ends of the percentile interval of resampled values.

    Parameters
    ----------
    values : array_like, shape (resamples, ...)
        A statistic of each resample; infinite values are allowed.
    level : float
        Share of the resamples inside, in (0, 1).

    Returns
    -------
    ndarray, shape (2, ...)
        With n resamples and k the largest integer up to (n - 1)(1 - level)/2, the (k + 1)-th lowest
        and the (k + 1)-th highest value.

    Raises
    ------
    ValueError
        If the level is out of range, or there is no value, or one that is not a number.

    Examples
    --------
    >>> interval(range(1, 1001))
    array([ 25., 976.])
    """
    level = as_float("level", level)
    ordered = np.sort(as_float_array("values", values, axes=1, infinite=True), axis=0)
    if not len(ordered):
        raise ValueError("values: expected at least one.")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level: expected a share in (0, 1), got {level}.")
    k = int((len(ordered) - 1) * (1.0 - level) / 2.0)
    return np.stack([ordered[k], ordered[len(ordered) - 1 - k]])


def lower_quantile(times: Floats, order: float) -> Floats:
    """Return the smallest time with at least a share `order` of the runs at or below it.

    Parameters
    ----------
    times : ndarray, shape (runs, ...)
        Times; those of runs that never ended may be infinite.
    order : float
        Share, in (0, 1].

    Returns
    -------
    ndarray, shape (...)
        One of the times in each column, never a number between two.
    """
    k = _rank(order, len(times))
    return np.asarray(np.partition(times, k, axis=0)[k])


def resampled_quantile(times: Floats, order: float) -> Floats:
    """Return the `lower_quantile` of every resample.

    Parameters
    ----------
    times : ndarray, shape (runs, curves)
        Times; those of runs that never ended may be infinite.
    order : float
        Share, in (0, 1].

    Returns
    -------
    ndarray, shape (RESAMPLES, curves)
        For each resample one of the times in each column.
    """
    k, counts = _rank(order, len(times)), _counts(len(times))
    found = np.empty((RESAMPLES, times.shape[1]))
    for column, quantiles in zip(times.T, found.T, strict=True):
        # The runs are sorted once: where their counts add up to more than k stands the quantile.
        ranking = np.argsort(column)
        quantiles[:] = column[ranking[_places(counts, ranking, k)]]
    return found


def resampled_mean(times: Floats) -> Floats:
    """Return the mean of every resample; exact but for the division where times are whole numbers.

    Parameters
    ----------
    times : ndarray, shape (runs, curves)
        Finite times, or marks.

    Returns
    -------
    ndarray, shape (RESAMPLES, curves)
        The mean of each column.
    """
    return np.asarray(_counts(len(times)).T @ times.astype(np.float64) / len(times))


def _rank(order: float, n_runs: int) -> int:
    """Return the place of a quantile among sorted runs, from 0."""
    return int(np.ceil(order * n_runs)) - 1


def _places(counts: NDArray[np.int32], ranking: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the place of a ranking at which counts come to more than k, for each resample."""
    # That is near k in nearly every resample: only there are counts added up run by run.
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
    """Return how often each run is in each resample, shape (n_runs, RESAMPLES)."""
    places = draws(n_runs) * RESAMPLES + np.arange(RESAMPLES)[:, np.newaxis]
    counts = np.bincount(places.ravel(), minlength=places.size).astype(np.int32)
    counts.setflags(write=False)
    return counts.reshape(n_runs, RESAMPLES)
