"""The figure of the ladder in the chapter on the literature."""

from __future__ import annotations

import numpy as np

from pu_lib.chapters.literature.quantities import ladder_times
from pu_lib.drawing.style import BookFigure, figure, line, styled
from pu_lib.updates import UPDATES


@styled
def draw_ladder(copies: float = 200.0) -> BookFigure:
    """Draw the number of steps until each rung of the ladder has learned, for all updates.

    Parameters
    ----------
    copies : float
        The number of states that each of the two lowest rungs represents.
    """
    fig, ax = figure(height=3.6)
    rungs = np.arange(1, 9)
    for name in UPDATES:
        ax.plot(rungs, ladder_times(name, copies), **line(name))
    ax.set(yscale="log", xlabel="rung of the ladder", ylabel="updates until it has learnt")
    ax.legend(ncols=3)
    return fig
