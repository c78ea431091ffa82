"""Figures of the domino chapter."""

from __future__ import annotations

import math
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pu_lib.chapters.domino.quantities import (
    ce_bound,
    ce_bound_printed,
    di_bound,
    di_bound_printed,
    domino,
    history,
    pg_bound,
    pg_bound_printed,
)
from pu_lib.chapters.unlearning.figures import update_groups
from pu_lib.drawing.style import GREY, INK, figure, line, styled
from pu_lib.exact import exact
from pu_lib.updates import Update, as_update, style_of

MAX_SHOWN = 10_000
"""The largest number of steps in the figure of counts."""


@styled
def draw_counts(step_size: str = "0.5") -> Figure:
    """Draw the number of steps that solve the domino setting against the number of states."""
    fig, ax = figure(height=4.6)
    weight, grid = exact(step_size), range(1, 17)
    step = float(weight)
    for name, label in update_groups().items():
        counts = list(
            takewhile(lambda steps: steps < MAX_SHOWN, (domino(h, name, step_size) for h in grid))
        )
        states = range(1, len(counts) + 1)
        ax.plot(states, counts, style_of(name).marker, color=style_of(name).colour, label=label)
    printed: dict[str, Any] = {
        "pg-sm": [pg_bound_printed(h) for h in grid],
        "di": [float(di_bound_printed(h, weight)) for h in grid],
        "mce": [ce_bound_printed(h - 1, step) if h > 2 else math.nan for h in grid],
    }
    right: dict[str, Any] = {
        "pg-sm": [pg_bound(h) for h in grid],
        "di": [float(di_bound(h, weight)) for h in grid],
        "mce": [ce_bound(h - 1, step) for h in grid],
    }
    for name in printed:
        ax.plot(grid, printed[name], linestyle=":", color=style_of(name).colour, linewidth=1.3)
        ax.plot(grid, right[name], linestyle="-", color=style_of(name).colour, linewidth=1)
    ax.plot([], [], ":", color=INK, linewidth=1.3, label="bound as printed")
    ax.plot([], [], "-", color=INK, linewidth=1, label="bound as proved here")
    ax.set_yscale("log")
    ax.set_xlabel(r"number of states $|\mathcal{S}|$")
    ax.set_ylabel("steps")
    fig.legend(loc="outside upper center", ncols=3)
    return fig


@cache
def _times_and_probabilities(
    states: int, update: Update, step_size: str
) -> tuple[list[int | float], Any]:
    times, probabilities = history(states, update, step_size)
    return times, np.array(probabilities).T


def _draw_history(ax: Any, states: int, update: str, step_size: str) -> Any:
    times, probabilities = _times_and_probabilities(states, as_update(update), step_size)
    last = probabilities.shape[1] - 1
    extent = (-0.5, last + 0.5, states + 0.5, 0.5)
    image = ax.imshow(
        probabilities,
        aspect="auto",
        extent=extent,
        cmap="RdBu_r",
        vmin=0,
        vmax=1,
        interpolation="none",
    )
    ax.plot([t - 0.5 for t in times], range(1, states + 1), "k|", markersize=14, markeredgewidth=2)
    ax.set_yticks(range(1, states + 1), [f"$s_{{{k}}}$" for k in range(1, states + 1)])
    ax.annotate(
        f"{update_groups()[update]}: {times[0]} steps",
        (0.98, 0.06),
        xycoords="axes fraction",
        ha="right",
        bbox={"facecolor": "white", "edgecolor": GREY, "linewidth": 0.5, "pad": 3},
    )
    ax.grid(False)
    return image


@styled
def draw_boards(states: int = 6, step_size: str = "0.5") -> Figure:
    """Draw pi_t(a_2) at every state over time in one panel per update, and mark the flips."""
    names = list(update_groups())
    rows = math.ceil(len(names) / 2)
    fig, axes = figure(rows, 2, height=2.7 * rows)
    for ax, name in zip(axes.flat, names, strict=False):
        image = _draw_history(ax, states, name, step_size)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    for ax in axes[-1]:
        ax.set_xlabel("step $t$")
    fig.colorbar(image, ax=axes, label=r"$\pi_t(a_2)$", shrink=0.7)
    return fig


@styled
def draw_lines(states: int = 6, update: str = "pg-sm", step_size: str = "0.5") -> Figure:
    """Draw one curve of pi_t(a_2) over time per state."""
    _, probabilities = _times_and_probabilities(states, update, step_size)
    fig, ax = figure(height=3.6)
    for k, values in enumerate(probabilities, start=1):
        shade = 0.6 + 0.4 * k / states
        style = line(update) | {"alpha": shade, "label": None, "linestyle": "-"}
        ax.plot(values, **style)
        turn = int(values.argmin())
        ax.annotate(
            f"$s_{{{k}}}$", (turn, values[turn]), (-4, -9), textcoords="offset points", ha="right"
        )
    ax.axhline(0.5, color=GREY, linewidth=1, linestyle=":")
    ax.set_ylim(-0.06, 1.03)
    ax.set_xlabel("step $t$")
    ax.set_ylabel(r"$\pi_t(a_2)$")
    return fig
