"""A figure of the performance of runs with exact values on an MDP."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pu_lib.drawing.style import GREY, BookFigure, figure, line, styled
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import Trajectory

__all__ = ["draw_performance"]


@styled
def draw_performance(process: FiniteMDP, runs: Mapping[str, Trajectory]) -> BookFigure:
    """Draw the performance of each run against the number of updates.

    The keys of `runs` are the names of the updates. A dotted line shows the optimal performance of
    `process`, the process of the runs.
    """
    fig, ax = figure(height=3.4)
    for name, trajectory in runs.items():
        # The axis shows t + 1, because it is logarithmic and the first point has t = 0.
        ax.plot(np.arange(1, len(trajectory.performance) + 1), trajectory.performance, **line(name))
    best = process.optimal().performance
    ax.axhline(best, color=GREY, linestyle=":", linewidth=1.0, label="optimum")
    ax.set(xscale="log", xlabel="$t + 1$, with $t$ the number of updates", ylabel=r"$\mathcal{J}$")
    fig.legend(loc="outside upper center", ncols=4)
    return fig
