"""The chain walker: how each update plans backwards along the paper's chain (figure 1).

The exact process runs on the chain, each state updated in proportion to its visits (nine parts) and
uniformly (one part, what off-policy updates add). A frame shows, for each state, the probability to
walk on and whether walking is the better action under the current values: the first states learn to
jump and have to unlearn it, while the optimal policy spreads back from the end of the chain.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pu_lib.domains import chain
from pu_lib.show.explorers import Explorer, Slider
from pu_lib.show.style import GREY, INK, BookFigure, figure, styled
from pu_lib.trajectories import Trajectory, mixture, run
from pu_lib.updates import UPDATES, label_of, look_of

__all__ = ["EXPLORERS", "alt_chain", "draw_chain", "walk"]

N_STATES = 10
STEPS = (0, 2, 5, 10, 20, 40, 80, 160, 320, 640)


@cache
def walk(update: str) -> Trajectory:
    """Run the exact process on the chain with ten states, eta = 1, 90 % of d by visits."""
    return run(chain(N_STATES), UPDATES[update], STEPS[-1], eta=1.0, weighting=mixture(0.9))


@cache
def _optimum() -> float:
    return chain(N_STATES).optimal().performance


@styled
def draw_chain(update: str, step: int) -> BookFigure:
    """Draw the probability to walk in each state after `step` updates.

    Parameters
    ----------
    update : str
        A registered update.
    step : int
        Number of updates made.

    Returns
    -------
    BookFigure
        The figure.
    """
    trajectory = walk(update)
    walking = trajectory.policies[step, :-1, 1]
    q = trajectory.q[step, :-1]
    right = q[:, 1] > q[:, 0]
    states = np.arange(N_STATES - 1)
    fig, ax = figure(width=6.4, height=2.7)
    ax.bar(states, walking, color=look_of(update).colour, width=0.7)
    ax.plot(states[right], np.full(right.sum(), 1.12), ">", color=INK, markersize=8)
    ax.plot(states[~right], np.full((~right).sum(), 1.12), "^", color=GREY, markersize=8)
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.set(
        xlabel="state $s_i$ (triangle: what the current values prefer; right is walk, up is jump)",
        ylabel=r"$\pi(a_2\,|\,s)$, walk",
        ylim=(0.0, 1.22),
        xticks=states,
        yticks=[0.0, 0.5, 1.0],
    )
    ax.set_title(
        f"{label_of(update)}, after {step} updates: "
        f"performance {trajectory.performance[step]:.3f} of {_optimum():.3f}",
        fontsize=10,
        color=INK,
        loc="left",
    )
    return fig


def alt_chain(update: str, step: int) -> str:
    """Say what `draw_chain` shows.

    Parameters
    ----------
    update : str
        A registered update.
    step : int
        Number of updates made.

    Returns
    -------
    str
        A sentence for those who do not see the figure.
    """
    trajectory = walk(update)
    walking = trajectory.policies[step, :-1, 1]
    awake = int(np.count_nonzero(walking > 0.5))
    return (
        f"Chain of {N_STATES} states under {label_of(update)} after {step} updates: walking has "
        f"more than half of the probability in {awake} of {N_STATES - 1} states, "
        f"{walking[0]:.2f} in the first; performance {trajectory.performance[step]:.3f}."
    )


EXPLORERS = {
    "chain-walker": Explorer(
        draw=draw_chain,
        alt=alt_chain,
        grid={
            "update": Slider("update", list(UPDATES)),
            "step": Slider("updates $t$", STEPS, start=4),
        },
    )
}
