"""Figures of the chapter on the literature: the ladder, and where the fit of DI stands."""

from __future__ import annotations

from typing import cast

import numpy as np

from pu_lib.show.explorers import Explorer, Slider
from pu_lib.show.style import INK, BookFigure, figure, line, styled
from pu_lib.theory.fitted_direct import FittedRun, Place, fitted_run, ladder
from pu_lib.theory.function_approximation import contexts
from pu_lib.theory.literature import ladder_times
from pu_lib.updates import UPDATES

__all__ = ["EXPLORERS", "alt_fit", "draw_fit", "draw_ladder"]


@styled
def draw_ladder(copies: float = 200.0) -> BookFigure:
    """Draw when each rung of the ladder has learnt, for all updates.

    Parameters
    ----------
    copies : float
        For how many states each of the two lowest rungs stands.
    """
    fig, ax = figure(height=3.6)
    rungs = np.arange(1, 9)
    for name in UPDATES:
        ax.plot(rungs, ladder_times(name, copies), **line(name))
    ax.set(yscale="log", xlabel="rung of the ladder", ylabel="updates until it has learnt")
    ax.legend(ncols=3)
    return fig


def _fit(place: str, growth: float) -> FittedRun:
    return fitted_run(contexts(), ladder(0.5, growth, 40), cast(Place, place))


@styled
def draw_fit(growth: float = 1.0, place: str = "before") -> BookFigure:
    """Draw the gap of linear DI on the contexts, as long as there is one, and what is allowed.

    Parameters
    ----------
    growth : float
        The ratio of one weight to the one before; the first is 0.5.
    place : {"before", "after"}
        Where the fit stands.
    """
    run = _fit(place, growth)
    fig, ax = figure(height=3.0, width=5.4)
    times = np.arange(len(run.gaps))
    left = run.gaps > 0
    ax.plot(times[left], run.gaps[left], **(line("di") | {"label": "linear DI"}))
    ax.plot(times[1:], run.bounds[1:], color=INK, label="allowed by the theorem")
    ax.set(yscale="log", ylim=(3e-6, 6.0), xlabel="update", ylabel="distance from the optimum")
    ax.legend(loc="lower left")
    return fig


def alt_fit(growth: float = 1.0, place: str = "before") -> str:
    """Say what `draw_fit` shows for the same parameters.

    Parameters
    ----------
    growth : float
        The ratio of one weight to the one before.
    place : {"before", "after"}
        Where the fit stands.

    Returns
    -------
    str
        A sentence for those who do not see the figure.
    """
    run = _fit(place, growth)
    left = int(np.flatnonzero(run.gaps > 0)[-1]) + 1
    end = (
        f"{run.gaps[-1]:.3g} in the end"
        if left == len(run.gaps)
        else f"0 from update {left} on, where its line ends"
    )
    return (
        f"Linear DI on the contexts from the uniform policy, fitted {place} the projection, with "
        f"weights 0.5 times {growth:g} to the power t: the distance from the optimum is {end}. "
        f"After 40 updates the theorem allows {run.bounds[-1]:.3g}."
    )


EXPLORERS = {
    "fit": Explorer(
        draw=draw_fit,
        alt=alt_fit,
        grid={
            "growth": Slider("growth of the weights", [1.0, 1.05, 1.1, 1.2, 1.4], "{:g}", start=0),
            "place": Slider("fit", ["before", "after"], "{}", start=0),
        },
    )
}
