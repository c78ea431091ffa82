"""The figures of a race and of a sweep."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pu_lib.drawing import style
from pu_lib.experiments.race import Race
from pu_lib.experiments.results import Results, panels_of

__all__ = ["draw_race", "draw_results"]

_ACROSS = 2  # panels side by side


@style.styled
def draw_race(race: Race) -> Figure:
    """Draw each update's restricted mean against the step size, in the style of the book."""
    fig, ax = style.figure()
    race.plot(ax, statistic="mean")
    return fig


@style.styled
def draw_results(results: Results, x: str | None = None, statistic: str = "median") -> Figure:
    """Draw a panel for each setting of a sweep.

    The default of `x` is the step size, or the numbers of states or of actions if only these vary.
    """
    panels = panels_of(results, x)
    across = min(_ACROSS, len(panels))
    rows = -(-len(panels) // across)
    fig, axes = style.figure(rows, across, height=0.8 + 2.6 * rows, squeeze=False)
    lines: dict[str, Line2D] = {}
    for ax, (title, axis, panel) in zip(axes.flat, panels, strict=False):
        panel.plot(ax, axis, statistic)
        ax.set_title(title, fontsize="small")
        if ax not in axes[:, 0]:
            ax.set_ylabel("")
        if axis != "step":  # labels of learning curves have the step size, which varies
            ax.get_legend().remove()
            lines |= {str(line.get_label()): line for line in ax.lines}
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    if lines:
        fig.legend(handles=list(lines.values()), loc="outside upper center", ncols=4)
    return fig
