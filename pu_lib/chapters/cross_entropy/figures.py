"""Figures of the chapter on the cross-entropy update."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.chapters.cross_entropy.cycles import FOUR_STATES, THREE_STATES, simulate
from pu_lib.chapters.cross_entropy.hexagon import hexagon_swings
from pu_lib.chapters.cross_entropy.quantities import one_period, pattern_margin, race
from pu_lib.drawing.style import ABOVE, GREY, INK, BookFigure, figure, line, styled
from pu_lib.updates import PAPER, label_of, style_of

Floats = NDArray[np.float64]

ACTIONS = (INK, "#6f42c1", "#8c564b")
"""The colours of a_0, a_1 and a_2 in this chapter's figures; no update has one of these colours."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)))
ERROR_STEP = 5
"""The step of the period at which the worst action becomes the most probable."""


@styled
def draw_cycle(periods: int = 3) -> BookFigure:
    """Draw the value of the first state over several periods and its parameters over one."""
    parameters, values, _ = one_period()
    best = float(THREE_STATES.optimum()[1][0])
    fig, (top, bottom) = figure(2, 1, height=6.0)
    steps = np.arange(8 * periods + 1)
    top.step(steps, np.tile(values[:, 0], periods + 1)[: len(steps)], where="post", **line("ce"))
    top.axhline(best, color=INK, linewidth=1, linestyle=(0, (4, 2)))
    top.text(0.3, best - 0.3, r"$v_\star(s_0)$", va="top")
    for k in range(periods):
        top.axvline(8 * k + ERROR_STEP + 1, color=GREY, linewidth=0.8, linestyle=":")
    top.set(xlabel="step", ylabel="$v_t(s_0)$ under CE", ylim=(-7, 17), xticks=steps[::4])
    levels = np.array([rows[0] for rows in parameters])
    for a in range(3):
        bottom.plot(
            levels[:, a], color=ACTIONS[a], linestyle=DASHES[a], marker="o", label=f"$a_{a}$"
        )
    bottom.axvspan(ERROR_STEP, ERROR_STEP + 1, color=GREY, alpha=0.18, linewidth=0)
    bottom.annotate(
        "greedy: $a_2$\non top: $a_1$",
        (ERROR_STEP + 1, levels[ERROR_STEP + 1, 1]),
        (2.2, -4.0),
        fontsize=9,
        arrowprops={"arrowstyle": "-", "color": GREY},
        va="top",
    )
    bottom.set(xlabel="step within the period", ylabel=r"$\theta_t(s_0,\cdot)$", xticks=range(9))
    bottom.legend(ncols=3, loc="lower center", columnspacing=1.2, handlelength=2.6)
    bottom.set_ylim(-24, 20)
    return fig


@styled
def draw_race(periods: int = 200) -> BookFigure:
    """Draw the distance of each update's values to the optimum on the cycle's MDP and schedule.

    The upper axes show the first five periods. The lower axes show all periods and draw CE as a
    band from its smallest distance to its largest, because its oscillation would hide the other
    lines.
    """
    best = np.array([float(v) for v in THREE_STATES.optimum()[1]])
    fig, (first, whole) = figure(2, 1, height=6.2)
    for name in PAPER:
        v, _ = race(THREE_STATES, name, periods)
        gap = (best - v).max(axis=1)
        t = np.arange(len(gap))
        first.step(t[:41], gap[:41], where="post", **line(name), linewidth=1.5)
        if name == "ce":
            low, high = gap.min(), gap.max()
            whole.axhspan(low, high, color=style_of(name).colour, alpha=0.2, linewidth=0)
            whole.text(1.1, high * 1.2, f"{label_of(name)}, in every period", fontsize=9)
        else:
            whole.plot(t + 1, np.maximum(gap, 1e-6), **line(name), linewidth=1.5)
    distance = r"$\max_s\,v_\star(s)-v_t(s)$"
    first.set(xlabel="step $t$, the first five periods", ylabel=distance, xticks=range(0, 41, 8))
    whole.set(xscale="log", yscale="log", xlabel="step $t+1$", ylabel=distance, ylim=(1e-4, 60))
    first.legend(ncols=len(PAPER), **ABOVE)
    return fig


@styled
def draw_pattern() -> BookFigure:
    """Draw the largest margin of the cycle's pattern over all rewards as a function of discount."""
    discounts = np.append(np.linspace(0.4, 0.74, 5), np.linspace(0.75, 0.99, 25))
    margins = [max(0.0, pattern_margin(float(g))) for g in discounts]
    root = max(np.roots([1, 1, 0, -1]).real)
    fig, ax = figure(height=2.9)
    ax.plot(discounts, margins, color=style_of("ce").colour)
    ax.axvspan(0.4, 0.5, color=GREY, alpha=0.18, linewidth=0)
    ax.text(0.45, 0.25, "convergence proved", fontsize=9.5, rotation=90, ha="center", va="center")
    ax.axvline(root, color=GREY, linestyle=":")
    ax.text(root - 0.005, 0.5, r"$\gamma^3+\gamma^2=1$", ha="right", fontsize=9.5)
    ax.set(xlabel=r"discount $\gamma$", ylabel="margin of the cycle", xlim=(0.4, 1))
    return fig


@styled
def draw_four_states() -> BookFigure:
    """Draw the value of the first state in the last 420 steps of the four-state cycle's period."""
    orbit = simulate(FOUR_STATES, 3)
    tail = orbit.values[-420:, 0]
    updated_states = FOUR_STATES.updated_states[-420:]
    fig, ax = figure(height=3.1)
    t = FOUR_STATES.period - 420 + np.arange(420)
    ax.plot(t, tail, **line("ce"))
    first = updated_states == 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], first.astype(np.int64), [0]])))
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        ax.axvspan(t[0] + start, t[0] + end, color=GREY, alpha=0.18, linewidth=0)
    ax.set(
        xlabel=f"step within the period of {FOUR_STATES.period:_}".replace("_", " "),
        ylabel="$v_t(s_0)$ under CE",
    )
    return fig


@styled
def draw_hexagon(discount: float = 0.51) -> BookFigure:
    """Draw the hexagon with the actions on top in the middle of a block, and the values of a round.

    An arrow is the action on top of its state when action 0 becomes greedy in state 0.
    """
    fig, (graph, ax) = figure(1, 2, height=3.4, width_ratios=(1, 1.5))
    angle = np.pi / 2 - np.pi / 3 * np.arange(6)
    x, y = np.cos(angle), np.sin(angle)
    tops = {0: 1, 1: 2, 2: 1, 3: 2, 4: 5, 5: 4}
    for s in range(6):
        t = (s + 1) % 6
        pays = s % 2 == 0  # the states 0 and 1, 2 and 3, 4 and 5 are linked by the paying actions
        graph.plot(
            x[[s, t]], y[[s, t]], color=GREY, linewidth=3 if pays else 1,
            linestyle="-" if pays else (0, (3, 2)), zorder=1,
        )  # fmt: skip
    for s, t in tops.items():
        bend = 0.35 if tops[t] == s else 0.25
        graph.annotate(
            "", (x[t], y[t]), (x[s], y[s]), zorder=2,
            arrowprops={
                "arrowstyle": "-|>", "color": INK, "shrinkA": 12, "shrinkB": 12,
                "connectionstyle": f"arc3,rad={bend}",
            },
        )  # fmt: skip
    graph.scatter(x, y, s=420, color=["white"] * 6, edgecolors=INK, zorder=3)
    for s in range(6):
        graph.text(x[s], y[s], f"${s}$", ha="center", va="center", zorder=4)
    graph.set(aspect="equal", xlim=(-1.45, 1.45), ylim=(-1.45, 1.45))
    graph.axis("off")
    path = hexagon_swings(discount, 2).path[42:]
    best = 1.0 / (1.0 - discount)
    for s in range(6):
        ax.step(
            np.arange(len(path)),
            path[:, s] / best + 1.25 * (5 - s),
            where="post",
            color=style_of("ce").colour,
            linewidth=1.5,
        )
        ax.axhline(1.25 * (5 - s), color=GREY, linewidth=0.6)
    ax.set(xlabel="update within the round", yticks=1.25 * np.arange(6)[::-1] + 0.5)
    ax.set_yticklabels([f"$v_t({s})$" for s in range(6)])
    ax.set_xticks(range(0, 43, 7))
    return fig
