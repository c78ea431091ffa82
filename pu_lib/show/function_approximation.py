"""Figures of the chapter on function approximation: learning curves, sparsemax beside DI."""

from __future__ import annotations

import numpy as np

from pu_lib.show.explorers import Explorer, Slider
from pu_lib.show.style import GREY, INK, BookFigure, figure, line, styled
from pu_lib.theory.function_approximation import (
    SPARSEMAX,
    contexts,
    fitted_direct,
    learn,
    linear,
    neural,
    reversal_paths,
)
from pu_lib.updates import UPDATES, look_of

__all__ = [
    "EXPLORERS",
    "alt_return",
    "draw_crossings",
    "draw_learning",
    "draw_return",
    "draw_reversal",
]


@styled
def draw_learning(n_steps: int = 300, eta: float = 1.0) -> BookFigure:
    """Draw the gap of all updates of free scores with a linear and a neural policy on the contexts.

    Parameters
    ----------
    n_steps : int
        Number of updates.
    eta : float
        The rate.
    """
    task = contexts()
    fig, axes = figure(2, 1, height=5.8)
    for name, update in UPDATES.items():
        if update.parametrization == "direct":
            continue
        offset = float(update.parametrization == "escort")  # escort scores must not start at zero
        for ax, model in zip(axes, task.models(offset), strict=True):
            run = learn(update, task, model, n_steps, eta)
            ax.plot(np.arange(1, n_steps + 2), 1 - run.performance, **line(name))
            ax.set(xscale="log", yscale="log", ylabel=f"gap, {model.name} policy")
    axes[-1].set_xlabel("update (counted from 1)")
    axes[0].legend()
    return fig


@styled
def draw_crossings(eta: float = 0.1, n_steps: int = 300, seed: int = 2) -> BookFigure:
    """Draw one run of escort with a network: performance, and scores crossing zero.

    Parameters
    ----------
    eta : float
        The rate.
    n_steps : int
        Number of updates.
    seed : int
        Seed of the network.
    """
    task = contexts()
    fig, (top, bottom) = figure(2, 1, height=3.8, sharex=True)
    for name in ("pg-sm", "pg-es"):
        model = neural(task.features, 3, float(name == "pg-es"), seed=seed)
        run = learn(name, task, model, n_steps, eta)
        top.plot(run.performance, **line(name))
        if name == "pg-es":
            bottom.vlines(np.arange(1, n_steps + 1), 0, run.crossings, color=look_of(name).colour)
    top.set_ylabel("performance")
    top.legend(loc="lower right")
    bottom.set(xlabel="update", ylabel="PG-ES scores\ncrossing zero")
    return fig


@styled
def draw_reversal(reversed_steps: int = 100, n_steps: int = 400) -> BookFigure:
    """Draw linear policies that see reversed values first and the right ones afterwards.

    Parameters
    ----------
    reversed_steps, n_steps : int
        Number of updates with reversed values, and of all.
    """
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
    ax.legend(ncols=2)
    return fig


@styled
def draw_return(n: int = 20, eta: float = 0.1) -> BookFigure:
    """Draw the probability of action 1 when the better action changes after n updates.

    Parameters
    ----------
    n : int
        Updates with q = (1, 0) before q = (0, 1).
    eta : float
        The weight.
    """
    paths = reversal_paths(n, eta)
    fig, ax = figure(height=3.0, width=5.4)
    ax.plot(paths["sparsemax"], color=INK, label="sparsemax")
    for name in ("di", "mce"):
        ax.plot(paths[name], **line(name))
    ax.axvline(n, color=GREY, linewidth=1)
    ax.set(xlabel="update", ylabel="probability of action 1", ylim=(-0.03, 1.03))
    ax.legend(loc="lower left", ncols=3)
    return fig


def alt_return(n: int = 20, eta: float = 0.1) -> str:
    """Say what `draw_return` shows for the same parameters.

    Parameters
    ----------
    n : int
        Number of updates before the values are exchanged.
    eta : float
        The weight of every step.

    Returns
    -------
    str
        A sentence for those who do not see the figure.
    """
    names = {"sparsemax": "Sparsemax", "di": "DI", "mce": "MCE"}
    ends = []
    for name, path in reversal_paths(n, eta).items():
        below = np.flatnonzero(path[n:] < 0.5)
        ends.append(
            f"{names[name]} "
            + (
                f"is below one half {below[0]} updates later"
                if below.size
                else "does not come back"
            )
        )
    return (
        f"Probability of action 1 over 60 updates at weight {eta:g}; after update {n} the other "
        f"action is the better one. {', '.join(ends)}."
    )


EXPLORERS = {
    "sparsemax": Explorer(
        draw=draw_return,
        alt=alt_return,
        grid={
            "n": Slider("$n$", [1, 3, 5, 10, 20], "{}", start=4),
            "eta": Slider(r"$\eta$", [0.03, 0.1, 0.5], "{:g}", start=1),
        },
    )
}
