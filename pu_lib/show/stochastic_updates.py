"""Figures of the chapter on stochastic updates: biases, and where sampled updates go."""

from __future__ import annotations

import numpy as np

from pu_lib.show.explorers import Explorer, Slider
from pu_lib.show.style import GREY, BookFigure, figure, line, styled
from pu_lib.theory.stochastic_updates import (
    GAMBLE,
    THREE,
    Law,
    drift,
    gamble,
    power_schedule,
    sample_runs,
)
from pu_lib.updates import UPDATES, label_of

__all__ = ["EXPLORERS", "alt_drift", "draw_drift", "draw_runs"]


@styled
def draw_runs(n_steps: int = 1000, n_runs: int = 60) -> BookFigure:
    """Draw the mean probability of the best action under sampled values, with its interval.

    Parameters
    ----------
    n_steps : int
        Length of each run.
    n_runs : int
        Number of runs of each update.

    Returns
    -------
    BookFigure
        The figure.
    """
    fig, axes = figure(2, 1, height=5.6, sharex=True)
    for ax, law, caption in zip(
        axes, (GAMBLE, THREE), ("two actions", "three actions"), strict=True
    ):
        best = int(np.argmax(law.mean))
        for name, update in UPDATES.items():
            runs = sample_runs(update, law, power_schedule(), n_steps, n_runs)
            mean, half = runs.mean[1:, best], runs.interval()[1:, best]
            ax.plot(runs.times[1:], mean, **line(name))
            ax.fill_between(
                runs.times[1:], mean - half, mean + half, color=line(name)["color"], alpha=0.15
            )
        ax.set(xscale="log", ylim=(-0.02, 1.02), ylabel=f"best of {caption}")
    axes[-1].set_xlabel("step")
    axes[0].legend(loc="upper left", ncols=2, fontsize=8.5)
    return fig


@styled
def draw_drift(noise: float = 1.0, eta: float = 0.1) -> BookFigure:
    """Draw the mean change of the policy at the better action, from sampled and true values.

    It is not the mean step of the parameters: the policy is a nonlinear function of them.

    Parameters
    ----------
    noise : float
        The better action is worth 5/4 + 15/4 noise with probability 1/4, else 5/4 - 5/4 noise.
    eta : float
        The weight.
    """
    law, grid = gamble(noise), np.linspace(0.005, 0.995, 199)
    fig, axes = figure(1, 2, height=3.1, sharey=True)
    true = Law.of((1.0, tuple(law.mean)))
    for ax, values, caption in zip(axes, (law, true), ("sampled", "expected"), strict=True):
        for name, update in UPDATES.items():
            ax.plot(grid, drift(update, values, eta, grid), **line(name))
        ax.axhline(0.0, color=GREY, linewidth=1)
        ax.set_xlabel(rf"$\pi(2)$, {caption} values")
    span = max(0.3 * eta, 0.004)
    axes[0].set(ylabel=r"mean change of $\pi(2)$", ylim=(-span, span))
    axes[1].legend(fontsize=8, ncols=2, loc="lower center")
    return fig


def alt_drift(noise: float = 1.0, eta: float = 0.1) -> str:
    """Say what `draw_drift` shows for the same parameters.

    Parameters
    ----------
    noise : float
        How far the sampled values are from their mean, as `gamble` takes it.
    eta : float
        The weight of the step.

    Returns
    -------
    str
        A sentence for those who do not see the figure.
    """
    law, grid = gamble(noise), np.linspace(0.005, 0.995, 199)
    parts, true = [], Law.of((1.0, tuple(law.mean)))
    rises = all(np.all(drift(update, true, eta, grid) >= 0) for update in UPDATES.values())
    for name, update in UPDATES.items():
        down = grid[drift(update, law, eta, grid) < -1e-9]
        where = "nowhere" if not down.size else f"for probabilities from {down[0]:.2f}"
        parts.append(f"{label_of(name)} {where}")
    return (
        f"Mean change of the better action's probability at noise {noise:g} and weight {eta:g}. "
        f"From sampled values it is negative under {', '.join(parts)}. From expected values it is "
        f"{'positive' if rises else 'not always positive'} under all of them."
    )


EXPLORERS = {
    "drift": Explorer(
        draw=draw_drift,
        alt=alt_drift,
        grid={
            "noise": Slider("noise", [0.0, 0.1, 0.25, 0.5, 1.0], "{:g}", start=4),
            "eta": Slider(r"$\eta$", [0.1, 0.5, 2.0], "{:g}"),
        },
    )
}
