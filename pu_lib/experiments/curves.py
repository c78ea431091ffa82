"""Numbers read off the curves of a panel: best values, ranges of rates, factors between curves.

The functions that take `values` want what `Curves.estimates` returns: a statistic on the axes
(1 + resamples, updates, positions), the point estimate first. What they return has the resamples on
its first axis again, so that a number read off curves comes with its interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.experiments.results import PANELS, Curves, Runs, results_of
from pu_lib.updates import PAPER

__all__ = [
    "CENTRES",
    "LONG",
    "RANGE",
    "after_shift",
    "alike",
    "apart_in_range",
    "bandwidth",
    "best_of",
    "bests",
    "betas",
    "both_centres",
    "curve_of",
    "factor_apart",
    "gains_of_drawing",
    "greedy_times",
    "in_range",
    "long_chains",
    "over",
    "over_di",
    "value_at",
]

RANGE = 3.0
"""The range of an update is where its curve is within this factor of its best."""

LONG = 10
"""From this number of states a chain counts as long."""

CENTRES = {"median": "median", "mean": "mean"}
"""The statistics that a statement is asked of, with their names in words."""


def both_centres(table: Runs, *panels: str) -> Iterator[tuple[str, list[Curves], list[Floats]]]:
    """Go through the median and the mean of the curves of some panels.

    Parameters
    ----------
    table : Runs
        The runs, or `None` for the committed ones.
    *panels : str
        Panels, by their names in `PANELS`.

    Yields
    ------
    words : str
        The statistic in words.
    curves : list of Curves
        One entry a panel.
    values : list of ndarray, shape (1 + resamples, n_updates, n_positions)
        The statistic of each panel's curves.
    """
    results = results_of(table)
    curves = [results.curves(name) for name in panels]
    for statistic, words in CENTRES.items():
        yield words, curves, [c.estimates(statistic) for c in curves]


def betas(table: Runs, *panels: str) -> list[tuple[str, str]]:
    """Return panels, each with its twin for beta = 0.7 if there is one, and marks for the words.

    Parameters
    ----------
    table : Runs
        The runs, or `None` for the committed ones.
    *panels : str
        Panels by their names in `PANELS`.

    Returns
    -------
    list of (str, str)
        Pairs of a mark, such as ``"β=0.8, "``, and the name of a panel; one or two for each.
    """
    found = []
    for panel in panels:
        twins = [("β=0.8, ", panel), ("β=0.7, ", f"{panel}/beta=0.7")]
        found += twins if results_of(table).has(twins[1][1]) else twins[:1]
    return found


def curve_of(values: Floats, update: str) -> Floats:
    """Return the curve of one update, with its resamples.

    Parameters
    ----------
    values : ndarray, shape (1 + resamples, n_updates, n_positions)
        A statistic of all updates.
    update : str
        One of the paper's five.

    Returns
    -------
    ndarray, shape (1 + resamples, n_positions)
        Its part of `values`.
    """
    return np.asarray(values[:, PAPER.index(update)])


def best_of(values: Floats, update: str) -> Floats:
    """Return the smallest value of one update over the positions.

    Parameters
    ----------
    values : ndarray, shape (1 + resamples, n_updates, n_positions)
        A statistic of all updates.
    update : str
        One of the paper's five.

    Returns
    -------
    ndarray, shape (1 + resamples,)
        Its smallest value, in each resample.
    """
    return np.asarray(curve_of(values, update).min(axis=1))


def bests(values: Floats, updates: Sequence[str]) -> Floats:
    """Return the smallest values of several updates over the positions.

    Parameters
    ----------
    values : ndarray, shape (1 + resamples, n_updates, n_positions)
        A statistic of all updates.
    updates : sequence of str
        Some of the paper's five.

    Returns
    -------
    ndarray, shape (len(updates), 1 + resamples)
        What `best_of` returns, one row an update.
    """
    return np.stack([best_of(values, update) for update in updates])


def value_at(values: Floats, curves: Curves, update: str, position: float) -> Floats:
    """Return an update's value at one position.

    Parameters
    ----------
    values : ndarray, shape (1 + resamples, n_updates, n_positions)
        A statistic of `curves`.
    curves : Curves
        The curves, for their axis.
    update : str
        One of the paper's five.
    position : float
        A positive position; the nearest one in the logarithm is taken.

    Returns
    -------
    ndarray, shape (1 + resamples,)
        The values there.
    """
    x = int(np.argmin(np.abs(np.log(curves.axis / position))))
    return np.asarray(curve_of(values, update)[:, x])


def over(a: Floats, b: Floats, cap: float) -> Floats:
    """Return the bounds of a ratio of times, of which some are only known to be at least the cap.

    Parameters
    ----------
    a, b : ndarray, broadcastable
        Positive times, the larger ones cut at the cap.
    cap : float
        The cap; infinite if no run was cut.

    Returns
    -------
    ndarray, shape (2, ...)
        The least and the largest that ``a / b`` can be: the ratio twice where neither is at the
        cap, no upper bound where a is, no lower one but 0 where b is.
    """
    ratio = a / b
    return np.stack([np.where(b >= cap, 0.0, ratio), np.where(a >= cap, np.inf, ratio)])


def factor_apart(a: Floats, b: Floats) -> Floats:
    """Return by what factor two curves differ, at least 1.

    Parameters
    ----------
    a, b : ndarray, broadcastable
        Positive values.

    Returns
    -------
    ndarray
        The larger of the two over the smaller one, entry by entry.
    """
    return np.asarray(np.maximum(a / b, b / a))


def bandwidth(axis: Floats, curve: Floats, factor: float = RANGE) -> Floats:
    """Return the decades of rate over which curves are within `factor` of their own best.

    Parameters
    ----------
    axis : ndarray, shape (positions,)
        The rates, increasing.
    curve : ndarray, shape (..., positions)
        Values, positive.
    factor : float
        Where the range ends.

    Returns
    -------
    ndarray, shape (...)
        Decades, with curves taken as straight between rates on logarithmic axes.
    """
    x, y = np.log10(axis), np.log10(curve)
    wall = y.min(axis=-1, keepdims=True) + np.log10(factor)
    low, high = np.minimum(y[..., 1:], y[..., :-1]), np.maximum(y[..., 1:], y[..., :-1])
    rise = np.where(high > low, high - low, 1.0)
    inside = np.where(high <= wall, 1.0, np.clip((wall - low) / rise, 0.0, 1.0))
    return np.asarray((inside * np.diff(x)).sum(axis=-1))


def gains_of_drawing(table: Runs = None) -> tuple[list[float], float]:
    """Return how many times faster CE and MCE are where tied actions are drawn, on Random MDPs.

    Parameters
    ----------
    table : Runs
        The runs, or `None` for the committed ones.

    Returns
    -------
    best : list of float
        The ratio of medians at their best rates, one entry a scheme and update; the same runs.
    largest : float
        The largest ratio at one rate; where the first of tied actions is lost, a lower bound.
    """
    results, best, largest = results_of(table), [], 0.0
    for scheme in ("NoExplo", "LowOffPol", "HiOffPol"):
        panel = PANELS[f"random-mdp/{scheme}"]
        drawn = results.of(panel.tied)
        first = alike(results.of(panel), drawn)
        rows = [first.updates.index(update) for update in drawn.updates]
        before, after = first.point("median")[rows], drawn.point("median")
        best += (before.min(axis=1) / after.min(axis=1)).tolist()
        largest = max(largest, float((before / after)[after < drawn.cap].max()))
    return best, largest


def in_range(curve: Floats, factor: float = RANGE) -> NDArray[np.bool_]:
    """Return at which positions the point estimate of a curve is within `factor` of its best.

    Parameters
    ----------
    curve : ndarray, shape (1 + resamples, n_positions)
        Positive values, the point estimate first.
    factor : float
        How many times the best is still in range, at least 1.

    Returns
    -------
    ndarray of bool, shape (n_positions,)
        Where it is in range.
    """
    return np.asarray(curve[0] <= factor * curve[0].min())


def apart_in_range(one: Floats, other: Floats, cap: float) -> Floats:
    """Return the geometric mean of `factor_apart` over the rates in the range of either curve.

    Parameters
    ----------
    one, other : ndarray, shape (1 + resamples, n_rates)
        Two curves at the same rates.
    cap : float
        Their cap; infinite if there is none.

    Returns
    -------
    ndarray, shape (2, 1 + resamples)
        The least and the largest that the mean factor can be, both at least 1; they differ where a
        time is at the cap.
    """
    near = in_range(one) | in_range(other)
    one, other = one[:, near], other[:, near]
    factor, cut = factor_apart(one, other), np.maximum(one, other) >= cap
    bounds = np.stack([factor, np.where(cut, np.inf, factor)])
    return np.asarray(10 ** np.log10(bounds).mean(axis=-1))


def alike(curves: Curves, other: Curves) -> Curves:
    """Return `curves` at the positions of `other`, and as many runs.

    Parameters
    ----------
    curves : Curves
        What is cut to size.
    other : Curves
        What sets the positions and the number of runs.

    Returns
    -------
    Curves
        The curves at the nearest of their positions, of the first runs.
    """
    n = min(curves.n_runs, other.n_runs)
    at = [int(np.argmin(np.abs(curves.axis - x))) for x in other.axis]
    counts = curves.made[:n, :, at].sum(axis=0)
    return Curves(
        curves.axis[at],
        curves.updates,
        curves.steps[:n, :, at],
        curves.censored[:n, :, at],
        counts,
    )


def after_shift(ce: Floats, di: Floats) -> Floats:
    """Return the worst factor between CE's range and DI's curve after the best shift.

    Parameters
    ----------
    ce, di : ndarray, shape (1 + resamples, n_rates)
        The curves of CE and DI at the same rates, in increasing order.

    Returns
    -------
    ndarray, shape (1 + resamples,)
        The factor, at least 1, with the shift that makes it smallest.
    """
    near, n = in_range(ce), ce.shape[1]
    found = []
    for k in range(n // 2):  # DI needs larger rates: at k steps higher it does what CE does
        both = near[: n - k]
        if both.sum() >= 3:
            found.append(factor_apart(ce[:, : n - k], di[:, k:])[:, both].max(axis=1))
    return np.asarray(np.min(found, axis=0))


def long_chains(curves: Curves, values: Floats, updates: Sequence[str]) -> Floats:
    """Return the values of some updates on long chains, those of `LONG` states or more.

    Parameters
    ----------
    curves : Curves
        The curves, for their axis of numbers of states.
    values : ndarray, shape (1 + resamples, n_updates, n_positions)
        A statistic of these curves.
    updates : sequence of str
        Some of the paper's five.

    Returns
    -------
    ndarray, shape (len(updates), 1 + resamples, n_long)
        The values, one row an update.
    """
    return np.stack([curve_of(values, u)[:, curves.axis >= LONG] for u in updates])


def greedy_times(table: Runs, scheme: str) -> Iterator[tuple[str, Floats, float]]:
    """Go through the median and the mean of DI, CE and MCE at the largest rate of the greedy limit.

    Parameters
    ----------
    table : Runs
        The runs, or `None` for the committed ones.
    scheme : str
        The exploration scheme, by its name, as in ``"NoExplo"``.

    Yields
    ------
    words : str
        The statistic in words.
    values : ndarray, shape (1 + resamples, 3)
        The statistic of each update's steps.
    cap : float
        The cap of these runs.
    """
    panel = replace(PANELS[f"random-mdp/{scheme}"], experiment="greedy-limit")
    curves = results_of(table).of(panel)
    for statistic, words in CENTRES.items():
        yield words, curves.estimates(statistic)[..., -1], curves.cap


def over_di(table: Runs, update: str) -> Iterator[tuple[str, float, Floats]]:
    """Go through an update's time over DI's on chains with several optimal actions.

    Parameters
    ----------
    table : Runs
        The runs, or `None` for the committed ones.
    update : str
        One of the paper's five.

    Yields
    ------
    words : str
        The statistic in words: median or mean.
    n_optimal : float
        The number of optimal actions, at least 2.
    ratio : ndarray, shape (1 + resamples,)
        The update's time over DI's.
    """
    for s, (curves,), (values,) in both_centres(table, "duplicates"):
        for x, n_actions in enumerate(curves.axis):
            if n_actions > 2:
                ratio = curve_of(values, update)[:, x] / curve_of(values, "di")[:, x]
                yield s, n_actions - 1, ratio
