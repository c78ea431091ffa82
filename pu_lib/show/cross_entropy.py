"""Figures and explorer of the chapter on the cross-entropy update."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

from pu_lib.show.explorers import Explorer, Slider
from pu_lib.show.style import GREY, INK, BookFigure, figure, line, styled
from pu_lib.theory.cross_entropy import one_period, pattern_margin, race
from pu_lib.theory.cycles import FOUR_STATES, THREE_STATES, simulate
from pu_lib.updates import PAPER, look_of, softmax

__all__ = [
    "EXPLORERS",
    "alt_cycle_step",
    "draw_cycle",
    "draw_cycle_step",
    "draw_four_states",
    "draw_pattern",
    "draw_race",
]

Floats = NDArray[np.float64]

ACTIONS = (INK, "#6f42c1", "#8c564b")
"""The colours of a_0, a_1 and a_2 in this chapter's figures; none is that of an update."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)))
ERROR = 5
"""The step of the period at which the worst action overtakes."""


@styled
def draw_cycle(periods: int = 3) -> BookFigure:
    """Draw the value of the first state over some periods, and its parameters over one.

    Parameters
    ----------
    periods : int
        How many.
    """
    parameters, values, _ = one_period()
    best = float(THREE_STATES.optimum()[1][0])
    fig, (left, right) = figure(1, 2, height=3.6, gridspec_kw={"width_ratios": [1.15, 1]})
    steps = np.arange(8 * periods + 1)
    left.step(steps, np.tile(values[:, 0], periods + 1)[: len(steps)], where="post", **line("ce"))
    left.axhline(best, color=INK, linewidth=1, linestyle=(0, (4, 2)))
    left.text(0.3, best - 0.3, r"$v_\star(s_0)$", va="top")
    for k in range(periods):
        left.axvline(8 * k + ERROR + 1, color=GREY, linewidth=0.8, linestyle=":")
    left.set(xlabel="step", ylabel="$v_t(s_0)$ under CE", ylim=(-7, 17), xticks=steps[::4])
    levels = np.array([rows[0] for rows in parameters])
    for a in range(3):
        right.plot(
            levels[:, a], color=ACTIONS[a], linestyle=DASHES[a], marker="o", label=f"$a_{a}$"
        )
    right.axvspan(ERROR, ERROR + 1, color=GREY, alpha=0.18, linewidth=0)
    right.annotate(
        "greedy: $a_2$\non top: $a_1$",
        (ERROR + 1, levels[ERROR + 1, 1]),
        (2.2, -4.0),
        fontsize=9,
        arrowprops={"arrowstyle": "-", "color": GREY},
        va="top",
    )
    right.set(xlabel="step within the period", ylabel=r"$\theta_t(s_0,\cdot)$", xticks=range(9))
    right.legend(ncols=3, loc="lower center", columnspacing=1.2, handlelength=2.6)
    right.set_ylim(-24, 20)
    return fig


@styled
def draw_race(periods: int = 200) -> BookFigure:
    """Draw how far each update stays from the optimum on the cycle's MDP and schedule.

    Parameters
    ----------
    periods : int
        How many periods of the schedule.
    """
    best = np.array([float(v) for v in THREE_STATES.optimum()[1]])
    fig, ax = figure(height=3.4)
    for name in PAPER:
        v, _ = race(THREE_STATES, name, periods)
        gap = (best - v).max(axis=1)
        ax.plot(np.arange(len(gap)) + 1, np.maximum(gap, 1e-6), **line(name), linewidth=1.5)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="step $t$",
        ylabel=r"$\max_s\,v_\star(s)-v_t(s)$",
        ylim=(1e-4, 60),
    )
    ax.legend(ncols=len(PAPER), loc="lower left", columnspacing=1.2)
    return fig


@styled
def draw_pattern() -> BookFigure:
    """Draw the largest margin with which rewards can make the pattern a cycle, by discount."""
    discounts = np.append(np.linspace(0.4, 0.74, 5), np.linspace(0.75, 0.99, 25))
    margins = [max(0.0, pattern_margin(float(g))) for g in discounts]
    root = max(np.roots([1, 1, 0, -1]).real)
    fig, ax = figure(height=2.9)
    ax.plot(discounts, margins, color=look_of("ce").colour)
    ax.axvspan(0.4, 0.5, color=look_of("di").colour, alpha=0.18, linewidth=0)
    ax.text(0.405, 0.42, "convergence\nproved", fontsize=9.5)
    ax.axvline(root, color=GREY, linestyle=":")
    ax.text(root - 0.005, 0.5, r"$\gamma^3+\gamma^2=1$", ha="right", fontsize=9.5)
    ax.set(xlabel=r"discount $\gamma$", ylabel="margin of the cycle", xlim=(0.4, 1))
    return fig


@styled
def draw_four_states() -> BookFigure:
    """Draw the value of the first state at the end of the constant-step cycle's period."""
    orbit = simulate(FOUR_STATES, 3)
    tail = orbit.values[-420:, 0]
    updated = FOUR_STATES.updated[-420:]
    fig, ax = figure(height=3.1)
    t = FOUR_STATES.period - 420 + np.arange(420)
    ax.plot(t, tail, **line("ce"))
    first = updated == 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], first.astype(np.int64), [0]])))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        ax.axvspan(t[0] + start, t[0] + end, color=GREY, alpha=0.18, linewidth=0)
    ax.set(
        xlabel=f"step within the period of {FOUR_STATES.period:_}".replace("_", " "),
        ylabel="$v_t(s_0)$ under CE",
    )
    return fig


# The explorer

_PLACES: dict[int | None, tuple[float, float]] = {
    0: (0.0, 0.0),
    1: (2.2, 1.35),
    2: (2.2, -1.35),
    None: (4.2, 0.0),
}


@styled
def draw_cycle_step(step: int) -> BookFigure:
    """Draw the policy as arrows on the MDP, and the first state's parameters, before a step.

    Parameters
    ----------
    step : int
        From 0, the start of the period, to 8, its end.
    """
    parameters, values, greedy = one_period()
    rows = parameters[step]
    t = step % 8
    updated = THREE_STATES.phases[t].state
    fig, (left, right) = figure(1, 2, width=6.6, height=3.0, gridspec_kw={"width_ratios": [1.7, 1]})
    left.set(xlim=(-1.5, 4.7), ylim=(-2.0, 2.0), aspect="equal")
    left.axis("off")
    for s, row in enumerate(rows):
        pi = softmax(row)
        for a, j in enumerate(THREE_STATES.successors[s]):
            chosen = s == updated and a == greedy[t, s]
            _arrow(left, s, j, a, float(pi[a]), chosen)
    for place, (x, y) in _PLACES.items():
        colour = look_of("mce").colour if place == updated else INK
        left.scatter([x], [y], s=560, facecolor="white", edgecolor=colour, zorder=3, linewidth=1.8)
        label = "end" if place is None else f"$s_{place}$\n{values[t, place]:.1f}"
        left.text(x, y, label, ha="center", va="center", fontsize=8, zorder=4)
    levels = rows[0]
    right.bar(range(3), levels, color=ACTIONS, width=0.6)
    right.axhline(0, color=GREY, linewidth=0.8)
    right.set(ylim=(-22, 18), ylabel=r"$\theta(s_0,\cdot)$")
    right.set_xticks(range(3), [f"$a_{a}$" for a in range(3)])
    return fig


def _arrow(ax: Any, s: int, j: int | None, a: int, probability: float, greedy: bool) -> None:
    """Draw one action: its width is its probability, the greedy one is marked by its name."""
    x0, x1 = np.array(_PLACES[s]), np.array(_PLACES[j])
    bend = 0.25
    style: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 9,
        "color": ACTIONS[a],
        "linewidth": 0.6 + 3.4 * probability,
        "linestyle": "-" if probability > 0.02 else ":",
    }
    if s == j:
        arrow = FancyArrowPatch(
            (-0.26, 0.2), (-0.26, -0.2), connectionstyle="arc3,rad=2.0", **style
        )
        middle = np.array([-1.05, 0.0])
    else:
        style |= {"shrinkA": 13, "shrinkB": 13}
        arrow = FancyArrowPatch(tuple(x0), tuple(x1), connectionstyle=f"arc3,rad={bend}", **style)
        across = np.array([x1[1] - x0[1], x0[0] - x1[0]])
        middle = (x0 + x1) / 2 + (bend / 2 + 0.09) * across
    ax.add_patch(arrow)
    name = f"$a_{a}$" + (" greedy" if greedy else "")
    weight = "bold" if greedy else "normal"
    ax.text(
        *middle,
        name,
        color=ACTIONS[a],
        fontsize=8,
        ha="center",
        va="center",
        weight=weight,
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )


def alt_cycle_step(step: int) -> str:
    """Say what a frame of the explorer shows."""
    parameters, values, greedy = one_period()
    t = step % 8
    phase = THREE_STATES.phases[t]
    best = float(THREE_STATES.optimum()[1][0])
    policy = ", ".join(f"a{int(np.argmax(row))} at s{s}" for s, row in enumerate(parameters[step]))
    return (
        f"Step {step} of the cycle: the policy takes {policy}; the value of s0 is "
        f"{values[t, 0]:.2f} where {best:.2f} is possible. Next, s{phase.state} is updated with "
        f"weight {phase.weight} towards its greedy action a{greedy[t, phase.state]}."
    )


EXPLORERS = {
    "cycle": Explorer(
        draw=draw_cycle_step,
        alt=alt_cycle_step,
        grid={"step": Slider("step", list(range(9)))},
    )
}
