"""Summaries of the curves of a panel: minima, ranges of step sizes, factors between curves.

`values` is the result of `Curves.estimates`, an array of shape (1 + resamples, updates, positions)
that contains the point estimate followed by the bootstrap resamples. Summaries retain the axis of
resamples, so that each summary has a bootstrap interval. `table` is the table of runs, or `None`
for the committed runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.experiments.results import PANELS, Curves, Results, Runs, critic_runs, results_of
from pu_lib.updates import PAPER

RANGE = 3.0
"""The range of an update has the step sizes with values up to this factor times its minimum."""

LONG = 10
"""The smallest number of states of a long chain."""

CENTRES = {"median": "median", "mean": "mean"}
"""The label of each measure of location of a time to threshold."""


def median_and_mean(table: Runs, *panels: str) -> Iterator[tuple[str, list[Curves], list[Floats]]]:
    """Yield the label of the median with the curves and estimates of each panel; then the mean.

    The parameters of PG-ES are plain floats wherever the table has such runs.
    """
    results = results_of(table).in_floats
    curves = [results.curves(name) for name in panels]
    for statistic, words in CENTRES.items():
        yield words, curves, [c.estimates(statistic) for c in curves]


def curve_of(values: Floats, update: str) -> Floats:
    """Return the curve of one update, an array of shape (1 + resamples, positions)."""
    return np.asarray(values[:, PAPER.index(update)])


def best_of(values: Floats, update: str) -> Floats:
    """Return an array of shape (1 + resamples,) with the minimum of one update's curve."""
    return np.asarray(curve_of(values, update).min(axis=1))


def best_of_each(values: Floats, updates: Sequence[str]) -> Floats:
    """Return an array of shape (len(updates), 1 + resamples) with the minimum of each curve."""
    return np.stack([best_of(values, update) for update in updates])


def value_at(values: Floats, curves: Curves, update: str, position: float) -> Floats:
    """Return an update's values at the position nearest to `position` on a logarithmic axis.

    The result has shape (1 + resamples,).
    """
    x = int(np.argmin(np.abs(np.log(curves.axis / position))))
    return np.asarray(curve_of(values, update)[:, x])


def ratio_bounds(a: Floats, b: Floats, cap: float) -> Floats:
    """Return the lower and upper bounds on a / b for times censored at a cap.

    The result has shape (2, ...). If neither time is censored, both bounds are equal to the ratio.
    The upper bound is infinite if `a` is censored. The lower bound is 0 if `b` is censored.
    """
    ratio = a / b
    return np.stack([np.where(b >= cap, 0.0, ratio), np.where(a >= cap, np.inf, ratio)])


def factor_apart(a: Floats, b: Floats) -> Floats:
    """Return the elementwise ratio of the larger value to the smaller value."""
    return np.asarray(np.maximum(a / b, b / a))


def bandwidth(
    axis: Floats, curve: Floats, factor: float = RANGE, best: Floats | None = None
) -> Floats:
    """Return the width of the range of each curve, in decades of step size.

    The curves have shape (..., positions) and are interpolated linearly on logarithmic axes. A
    range ends at a factor of `best`, by default the minimum of the curve. `best` and the result
    have shape (...).
    """
    x, y = np.log10(axis), np.log10(curve)
    lowest = y.min(axis=-1) if best is None else np.log10(best)
    wall = (lowest + np.log10(factor))[..., np.newaxis]
    low, high = np.minimum(y[..., 1:], y[..., :-1]), np.maximum(y[..., 1:], y[..., :-1])
    rise = np.where(high > low, high - low, 1.0)
    inside = np.where(high <= wall, 1.0, np.clip((wall - low) / rise, 0.0, 1.0))
    return np.asarray((inside * np.diff(x)).sum(axis=-1))


def gains_of_drawing(table: Runs = None) -> tuple[list[float], float]:
    """Return the speed-up of CE and MCE on Random MDPs if ties are broken at random.

    Returns
    -------
    best : list of float
        Ratio of the median times at the best step sizes, for each scheme and update. The ratio
        is over the runs computed with both tie rules.
    largest : float
        The largest ratio at a single step size. It is a lower bound if the median is censored
        when ties select the first action.
    """
    results, best, largest = results_of(table), [], 0.0
    for scheme in ("NoExplo", "LowOffPol", "HiOffPol"):
        panel = PANELS[f"random-mdp/{scheme}"]
        drawn = results.of(panel.tied)
        first = restrict_to(results.of(panel), drawn)
        rows = [first.updates.index(update) for update in drawn.updates]
        before, after = first.point("median")[rows], drawn.point("median")
        best += (before.min(axis=1) / after.min(axis=1)).tolist()
        largest = max(largest, float((before / after)[after < drawn.cap].max()))
    return best, largest


def critic_gains(
    updates: Sequence[str], critic: str, table: Runs = None
) -> dict[str, dict[str, Floats]]:
    """Return by how much another critic speeds updates up on Random MDPs under NoExplo.

    Parameters
    ----------
    updates : sequence of str
        Names of updates.
    critic : str
        The description of the options with the other critic.
    table : DataFrame, Results, TableChange or None
        The table with the runs of the paper's critic.

    Returns
    -------
    dict of dict of ndarray, shape (2, 1 + resamples)
        For each statistic and update, bounds on the best time with the paper's critic over the best
        time with the other critic. Both times are the best over the step sizes and runs that
        were computed with both critics.
    """
    import pandas as pd

    results, base = results_of(table), PANELS["random-mdp/NoExplo"]
    panel = replace(base, options=critic)
    unlabelled = replace(panel, experiment="critic-rate").rows(results.table)
    rows = pd.concat([panel.rows(critic_runs()), unlabelled.assign(experiment=base.experiment)])
    gains: dict[str, dict[str, Floats]] = {statistic: {} for statistic in CENTRES}
    for update in updates:
        after = Results(rows[rows["update"] == update]).of(panel)
        before = restrict_to(results.of(base), after)
        after = restrict_to(after, before)
        for statistic in CENTRES:
            times = best_of(before.estimates(statistic), update)
            shorter = after.estimates(statistic)[:, 0].min(axis=1)
            gains[statistic][update] = ratio_bounds(times, shorter, before.cap)
    return gains


def in_range(curve: Floats, factor: float = RANGE) -> NDArray[np.bool_]:
    """Return, by position, whether the point estimate is at most `factor` times its minimum."""
    return np.asarray(curve[0] <= factor * curve[0].min())


def mean_factor_in_range(one: Floats, other: Floats, cap: float) -> Floats:
    """Return bounds on the geometric mean of `factor_apart` over the union of the curves' ranges.

    The result has shape (2, 1 + resamples). The two bounds differ if a time is censored at the cap.
    """
    near = in_range(one) | in_range(other)
    one, other = one[:, near], other[:, near]
    factor, cut = factor_apart(one, other), np.maximum(one, other) >= cap
    bounds = np.stack([factor, np.where(cut, np.inf, factor)])
    return np.asarray(10 ** np.log10(bounds).mean(axis=-1))


def restrict_to(curves: Curves, other: Curves) -> Curves:
    """Return `curves` restricted to the positions and the number of runs of `other`."""
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


def factor_after_shift(ce: Floats, di: Floats) -> Floats:
    """Return the largest factor between CE and DI over CE's range, after the best shift of DI.

    Both curves have shape (1 + resamples, step sizes); the result has shape (1 + resamples,).
    """
    near, n = in_range(ce), ce.shape[1]
    factors = []
    for k in range(n // 2):  # DI requires larger step sizes than CE, here by k positions
        overlap = near[: n - k]
        if overlap.sum() >= 3:
            factors.append(factor_apart(ce[:, : n - k], di[:, k:])[:, overlap].max(axis=1))
    return np.asarray(np.min(factors, axis=0))


def long_chains(curves: Curves, values: Floats, updates: Sequence[str]) -> Floats:
    """Return an array of shape (updates, 1 + resamples, lengths) with the values on long chains."""
    return np.stack([curve_of(values, u)[:, curves.axis >= LONG] for u in updates])


def greedy_times(table: Runs, scheme: str) -> Iterator[tuple[str, Floats, float]]:
    """Yield the statistics of DI, CE and MCE at a step size so large that policies are greedy.

    Yields
    ------
    words : str
        The name of the statistic.
    values : ndarray, shape (1 + resamples, 3)
        The times of the three updates.
    cap : float
        The cap of the runs.
    """
    panel = replace(PANELS[f"random-mdp/{scheme}"], experiment="greedy-limit")
    curves = results_of(table).of(panel)
    for statistic, words in CENTRES.items():
        yield words, curves.estimates(statistic)[..., -1], curves.cap


def ratios_to_di(table: Runs, update: str) -> Iterator[tuple[str, float, Floats]]:
    """Yield the ratio of an update's time to DI's time on chains with several optimal actions.

    Yields
    ------
    words : str
        The name of the statistic.
    n_optimal : float
        The number of optimal actions, at least 2.
    ratio : ndarray, shape (1 + resamples,)
        The ratio of times.
    """
    for s, (curves,), (values,) in median_and_mean(table, "duplicates"):
        for x, n_actions in enumerate(curves.axis):
            if n_actions > 2:
                ratio = curve_of(values, update)[:, x] / curve_of(values, "di")[:, x]
                yield s, n_actions - 1, ratio
