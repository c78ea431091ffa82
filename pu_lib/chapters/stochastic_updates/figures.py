"""The figure of the chapter on stochastic updates: learning from sampled values."""

from __future__ import annotations

import numpy as np

from pu_lib.chapters.stochastic_updates.quantities import (
    GAMBLE,
    THREE,
    power_schedule,
    sample_runs,
)
from pu_lib.drawing.style import ABOVE, BookFigure, figure, line, styled
from pu_lib.updates import UPDATES


@styled
def draw_runs(n_steps: int = 1000, n_runs: int = 60) -> BookFigure:
    """Draw the mean probability of the best action from sampled values with an interval."""
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
    axes[0].legend(ncols=6, **ABOVE)
    return fig
