"""Figures of the effect of rounding on the escort update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pu_lib.chapters.empirical.figures import band, legend_below
from pu_lib.drawing.style import GREY, INK, BookFigure, figure, line, styled
from pu_lib.experiments.results import PANELS, Results
from pu_lib.experiments.rounding import ROUNDED_PANELS, shares, smallest_along
from pu_lib.updates import style_of

_SMALLEST = float(np.log10(5e-324))


@styled
def draw_lost_run(
    panel: str = "chain/HiOffPol", step_size: float = 100.0, run: int = 0, points: int = 40
) -> BookFigure:
    """Draw the smallest parameter of each state along a run, in plain floats and with exponents.

    The function performs the run, with the setting of a panel that shows step sizes. A line
    ends if the parameter is rounded to 0.
    """
    steps, floats, scaled = smallest_along(panel, step_size, run, points)
    fig, axes = figure(1, 2, height=3.0, width=7.2, sharey=True)
    for ax, rows, words in zip(
        axes, (floats, scaled), ("in plain floats", "with exponents"), strict=True
    ):
        for row in rows.T:
            there = np.isfinite(row)
            ax.plot(steps[there], row[there], color=style_of("pg-es").colour, linewidth=1.2)
            if not there.all():
                last = np.flatnonzero(there)[-1]
                ax.plot(steps[last], row[last], "X", color=INK, markersize=7)
        ax.axhline(_SMALLEST, color=GREY, linewidth=0.9, linestyle=":")
        ax.set(xlabel="steps")
        ax.text(0.0, 1.03, words, transform=ax.transAxes, fontsize=9.5)
    axes[0].set_ylabel(r"$\log_{10}$ of the smaller $|\theta|$")
    axes[0].annotate(
        "the smallest float", (0.02, _SMALLEST - 8.0), xycoords=("axes fraction", "data"),
        va="top", fontsize=8.5, color=INK,
    )  # fmt: skip
    return fig


@styled
def draw_lost_shares(
    panels: Sequence[str] = ROUNDED_PANELS, results: Results | None = None
) -> BookFigure:
    """Draw the share of censored runs of PG-ES in plain floats and with separate exponents.

    The area between the two lines is the effect of rounding.
    """
    n_rows = (len(panels) + 1) // 2
    fig, axes = figure(n_rows, 2, height=1.9 * n_rows + 0.7, width=7.2, sharey=True, squeeze=False)
    table = None if results is None else results.table
    for ax, name in zip(axes.flat, panels, strict=False):
        rates, floats, scaled = shares(name, table)
        ax.plot(rates, floats, color=INK, linestyle=":", marker="x", label="in plain floats")
        ax.plot(rates, scaled, **{**line("pg-es"), "label": "with exponents"}, marker="s")
        band(ax, rates, scaled, floats, style_of("pg-es").colour)
        ax.set(xscale="log", ylim=(-0.04, 1.04))
        ax.text(0.0, 1.03, PANELS[name].words, transform=ax.transAxes, fontsize=8.5)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax in axes[:, 0]:
        ax.set_ylabel("never pass")
    for ax in axes.flat[max(0, len(panels) - 2) : len(panels)]:
        ax.set_xlabel(r"step size $\eta$")
    legend_below(fig, axes[0, 0], 2)
    return fig
