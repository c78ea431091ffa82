"""Figures of the chapter on the five updates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pu_lib.arrays import Floats
from pu_lib.chapters.updates.quantities import large_weight_limit
from pu_lib.drawing.style import GREY, INK, figure, line, styled
from pu_lib.trajectories import follow
from pu_lib.updates import UPDATES, label_of, softmax, style_of

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
FLOW_Q = (0.6, 1.0, 0.0)


def place(pi: Floats) -> tuple[Floats, Floats]:
    """Return the plane coordinates x and y of policies with three actions."""
    points = pi @ CORNERS
    return points[..., 0], points[..., 1]


def simplex_axes(ax: Axes, q: Sequence[float] | None = None, size: float = 9.5) -> None:
    """Draw the simplex of three actions and write the values `q` at its corners."""
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.fill(*CORNERS.T, facecolor="none", edgecolor=GREY, lw=1, zorder=1)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.16, 1.0))
    for a, (x, y) in enumerate(CORNERS):
        value = "" if q is None else f", $q = {q[a]:g}$"
        below = a < 2
        ax.text(
            x,
            y + (-0.035 if below else 0.035),
            f"$a_{a + 1}${value}",
            ha="center",
            va="top" if below else "bottom",
            size=size,
            color=INK,
        )


def starts(rows: int = 7) -> Floats:
    """Return positive policies on a triangular grid of the simplex as an (n, 3) array."""
    grid = [
        (i + 1 / 3, j + 1 / 3, rows - 1 - i - j + 1 / 3)
        for i in range(rows)
        for j in range(rows - i)
    ]
    return np.array(grid) / rows


@styled
def draw_flows(q: Sequence[float] = FLOW_Q, weight: float = 0.05, n_steps: int = 1500) -> Figure:
    """Draw the paths of all updates from a grid of policies for small steps and fixed values."""
    rows = len(UPDATES) // 3 + 1  # the last panel is for the values
    fig, axes = figure(rows, 3, height=2.5 * rows)
    values = np.asarray(q, dtype=np.float64)
    for ax in axes.flat[len(UPDATES) + 1 :]:
        ax.set_axis_off()
    for ax, (name, update) in zip(axes.flat, UPDATES.items(), strict=False):
        simplex_axes(ax)
        paths = follow(update, values, weight, n_steps, update.parameters(starts()))
        for path in update.policy(paths).swapaxes(0, 1):
            _flow_line(ax, path, style_of(name).colour)
        ax.text(
            0.0,
            0.93,
            label_of(name),
            size=11,
            weight="bold",
            color=style_of(name).colour,
            ha="center",
        )
    _value_panel(axes.flat[len(UPDATES)], values)
    return fig


def _flow_line(ax: Axes, path: Floats, colour: str) -> None:
    """Draw one path with an arrow head near its beginning."""
    x, y = place(path)
    ax.plot(x, y, color=colour, lw=1)
    length = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    i = int(np.searchsorted(length, 0.05))
    if 0 < i < len(x) - 1:
        ax.annotate(
            "",
            (x[i], y[i]),
            (x[i - 1], y[i - 1]),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 0, "mutation_scale": 7},
        )


def _value_panel(ax: Axes, q: Floats) -> None:
    """Draw the contour lines of the value of a policy."""
    simplex_axes(ax, list(q))
    pi = starts(60)
    lines = ax.tricontour(
        *place(pi),
        pi @ q,
        levels=np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        colors=GREY,
    )
    lines.set_linewidth(0.9)
    ax.clabel(lines, [0.2, 0.4, 0.8], fmt="%.1f", fontsize=8)
    ax.text(0.0, 0.93, "value", size=11, weight="bold", color=INK, ha="center")


@styled
def draw_replicator(q: Sequence[float] = FLOW_Q, seed: int = 3) -> Figure:
    """Draw escort paths with p = 2 and the curves pi e^(tau q) from seven random policies."""
    fig, ax = figure(width=5.0, height=4.2)
    values = np.asarray(q, dtype=np.float64)
    simplex_axes(ax, list(q))
    pi, update = np.random.default_rng(seed).dirichlet(np.ones(3), size=7), UPDATES["pg-es"]
    tau = np.concatenate([[0], np.geomspace(1e-2, 60, 200)])
    paths = update.policy(follow(update, values, 0.02, 2500, update.parameters(pi)))
    for k, (start, path) in enumerate(zip(pi, paths.swapaxes(0, 1), strict=True)):
        curve = softmax(np.log(start) + tau[:, np.newaxis] * values)
        ax.plot(*place(curve), color="#949aa1", lw=4, label=r"$\pi_0 e^{\tau q}$" if k == 0 else "")
        ax.plot(*place(path), **(line("pg-es") | {"label": "PG-ES, p = 2" if k == 0 else ""}))
        ax.plot(*place(start), "o", color=INK)
    ax.legend(loc="upper right")
    return fig


@styled
def draw_huge_steps(
    pi: Sequence[float] = (0.55, 0.1, 0.35), q: Sequence[float] = (0.7, 1.0, 0.0)
) -> Figure:
    """Draw the probability of all suboptimal actions after one step against the weight.

    Triangles mark the limits for the paper's updates.
    """
    fig, ax = figure(height=3.6)
    policy, values = np.asarray(pi), np.asarray(q)
    weights = np.geomspace(0.1, 1e4, 400)
    best = int(values.argmax())
    for name, update in UPDATES.items():
        theta = np.tile(update.parameters(policy), (len(weights), 1))
        new = update.policy(update.step(theta, values, weights))
        missing = np.delete(new, best, axis=1).sum(axis=1)
        ax.plot(weights, missing, **line(name))
        if update.in_paper:
            limit = np.delete(large_weight_limit(update, policy, values), best).sum()
            mark = {"color": style_of(name).colour, "clip_on": False, "markersize": 7}
            ax.plot(weights[-1] * 1.25, limit, "<", **mark)
    ax.set(xscale="log", xlabel=r"weight $w = \eta\,d(s)$", ylim=(-0.03, 1.03))
    ax.set_ylabel(r"$1-\pi'(a_q)$ after one step")
    ax.legend(ncols=2)
    return fig
