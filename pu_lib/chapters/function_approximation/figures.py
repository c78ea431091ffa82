"""Figures of the chapter on function approximation: learning curves."""

from __future__ import annotations

import numpy as np

from pu_lib.chapters.function_approximation.quantities import (
    NEURD,
    SPARSEMAX,
    contexts,
    fitted_direct,
    learn,
    linear,
    neural,
)
from pu_lib.drawing.style import ABOVE, GREY, INK, BookFigure, figure, line, styled
from pu_lib.updates import UPDATES, style_of


@styled
def draw_learning(n_steps: int = 300, step_size: float = 1.0) -> BookFigure:
    """Draw the gap of each update and of NeuRD on the contexts, for linear and neural scores."""
    task = contexts()
    fig, axes = figure(2, 1, height=5.8)
    for name, update in UPDATES.items():
        if update.parametrization == "direct":
            continue
        offset = float(update.parametrization == "escort")  # escort scores must not start at zero
        for ax, model in zip(axes, task.models(offset), strict=True):
            run = learn(update, task, model, n_steps, step_size)
            ax.plot(np.arange(1, n_steps + 2), 1 - run.performance, **line(name))
    for ax, model in zip(axes, task.models(), strict=True):
        run = learn(NEURD, task, model, n_steps, step_size)
        ax.plot(np.arange(1, n_steps + 2), 1 - run.performance, color=GREY, label="NeuRD")
        ax.set(xscale="log", yscale="log", ylabel=f"gap, {model.name} policy")
    axes[-1].set_xlabel("update (counted from 1)")
    axes[0].legend()
    return fig


@styled
def draw_crossings(step_size: float = 0.1, n_steps: int = 300, seed: int = 9) -> BookFigure:
    """Draw the performance of PG-SM and PG-ES with a network, and PG-ES scores that cross zero."""
    task = contexts()
    fig, (top, bottom) = figure(2, 1, height=3.8, sharex=True)
    for name in ("pg-sm", "pg-es"):
        model = neural(task.features, 3, float(name == "pg-es"), seed=seed)
        run = learn(name, task, model, n_steps, step_size)
        top.plot(run.performance, **line(name))
        if name == "pg-es":
            bottom.vlines(np.arange(1, n_steps + 1), 0, run.crossings, color=style_of(name).colour)
    top.set_ylabel("performance")
    top.legend(loc="lower right")
    bottom.set(xlabel="update", ylabel="PG-ES scores\ncrossing zero")
    return fig


@styled
def draw_reversal(reversed_steps: int = 100, n_steps: int = 400) -> BookFigure:
    """Draw linear policies that learn first from reversed values and then from true values."""
    task = contexts()
    model = linear(task.features, 3)
    fig, ax = figure(height=3.3)
    for name in ("pg-sm", "ce", "mce"):
        run = learn(name, task, model, n_steps, 1.0, reversed_steps)
        ax.plot(run.performance, **line(name))
    stuck = learn(SPARSEMAX, task, model, n_steps, 1.0, reversed_steps)
    ax.plot(stuck.performance, color=INK, label="sparsemax")
    fitted = fitted_direct(task, n_steps, 0.5, None, reversed_steps)
    ax.plot(fitted.performance, **(line("di") | {"label": "fitted DI"}))
    ax.axvline(reversed_steps, color=GREY, linewidth=1)
    ax.set(xlabel="update", ylabel="performance (1 is the optimum)")
    ax.legend(ncols=5, **ABOVE)
    return fig
