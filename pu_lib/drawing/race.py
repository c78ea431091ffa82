"""The figure of a race, which shows the steps to the target against the step size."""

from __future__ import annotations

from matplotlib.figure import Figure

from pu_lib.drawing import style
from pu_lib.experiments.race import Race

__all__ = ["draw_race"]


@style.styled
def draw_race(race: Race) -> Figure:
    """Draw each update's restricted mean against the step size, in the style of the book."""
    fig, ax = style.figure()
    race.plot(ax)
    return fig
