"""What races and sweeps print and draw: times to the target, and learning curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.arrays import Floats
from pu_lib.experiments.jekyll_hyde import checkpoints
from pu_lib.experiments.thresholds import Summary, estimate
from pu_lib.records import TOO_FEW_RUNS, draw_band, style_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {
    "step_size": r"step size $\eta$",
    "n_states": "number of states",
    "n_actions": "number of actions",
    "step": "steps",
}
"""The label of each horizontal axis."""

STATISTICS = {"median": "median", "mean": "mean", "iqm": "interquartile mean"}
"""The label of each statistic."""

_MOST_LABELS = 7  # of step sizes on an axis of half the width of a page

TIMES = ("median", "95 %", "mean", "95 %", "censored")
"""The head of `words_of_times` in printed tables."""


def words_of_times(summary: Summary) -> list[str]:
    """Return the median and the mean with their intervals and the censored share as text."""
    return [
        _time(summary.median, summary),
        _range(summary.median_low, summary.median_high, summary),
        f"{summary.mean:,.0f}",
        _range(summary.mean_low, summary.mean_high, summary),
        f"{summary.censored:.0%}",
    ]


def _time(time: float, summary: Summary) -> str:
    """Return a time as text; an infinite time is shown as longer than the cap."""
    return f"{time:,.0f}" if math.isfinite(time) else f"> {summary.horizon:,.0f}"


def _range(low: float, high: float, summary: Summary) -> str:
    if low == -math.inf:
        return "too few runs"
    return f"{_time(low, summary)} to {_time(high, summary)}"


def draw_times(
    ax: Axes, name: str, x: ArrayLike, rows: Sequence[Summary], statistic: str, **style: Any
) -> bool:
    """Draw times to the target with markers and a band; times beyond the cap are at the cap.

    Return whether there are intervals.
    """
    ends = (statistic, f"{statistic}_low", f"{statistic}_high")
    times = np.array([[min(getattr(row, end), row.horizon) for row in rows] for end in ends])
    marks = {"marker": style_on(ax, name).marker, "fillstyle": "none" if "=" in name else "full"}
    return draw_band(ax, name, x, times, **marks, **style)


def draw_curve(
    ax: Axes, name: str, performances: Floats, max_steps: int, statistic: str, **style: Any
) -> bool:
    """Draw the performance of runs, of shape (runs, checkpoints); return if there are intervals."""
    curve = estimate(np.asarray(performances), statistic)
    return draw_band(ax, name, checkpoints(max_steps), curve, **style)


def label_axes(ax: Axes, x: str, statistic: str, ticks: Sequence[float], bands: bool) -> None:
    """Set scales, labels and ticks of the axes, and add the legend.

    `ticks` are the step sizes, of which at most seven have a label. Without `bands` the label of
    the vertical axis says why.
    """
    ax.set(xscale="log", xlabel=AXES[x])
    missing = "" if bands else TOO_FEW_RUNS
    if x == "step":
        ax.set(ylabel=f"normalised performance ({STATISTICS[statistic]}){missing}")
    else:
        label = f"steps to the target ({STATISTICS[statistic]}, capped){missing}"
        ax.set(yscale="log", ylabel=label)
    if x == "step_size":
        ticks, every = sorted(set(ticks)), -(-len(set(ticks)) // _MOST_LABELS)
        ax.set_xticks(ticks, [f"{t:g}" * (i % every == 0) for i, t in enumerate(ticks)])
        ax.set_xticks([], minor=True)
    ax.legend()
