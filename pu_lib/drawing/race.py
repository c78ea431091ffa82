"""The figure of a race, which shows the steps to the target against the step size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from pu_lib.drawing import style
from pu_lib.experiments.race import RaceEntry
from pu_lib.updates import UPDATES, style_of

__all__ = ["draw_race"]


@style.styled
def draw_race(entries: Sequence[RaceEntry]) -> Figure:
    """Draw each update's restricted mean against the step size.

    The figure has the intervals of the means if there are enough runs for them.
    """
    fig, ax = style.figure()
    for entry in entries:
        sizes = sorted(entry.summaries)
        summaries = [entry.summaries[size] for size in sizes]
        ax.plot(
            sizes,
            [summary.mean for summary in summaries],
            marker=style_of(entry.update).marker,
            # Hollow markers denote updates with options that differ from the registered ones.
            fillstyle="full" if entry.update in UPDATES else "none",
            **style.line(entry.update) | {"label": entry.label},
        )
        low = np.array([summary.mean_low for summary in summaries])
        if np.isfinite(low).all():  # otherwise there are too few runs for an interval
            ax.fill_between(
                sizes,
                low,
                np.array([summary.mean_high for summary in summaries]),
                color=style_of(entry.update).colour,
                alpha=0.15,
                linewidth=0,
            )
    ax.set(
        xscale="log",
        yscale="log",
        xlabel=r"step size $\eta$",
        ylabel="steps to the target (mean, capped)",
    )
    ax.legend()
    return fig
