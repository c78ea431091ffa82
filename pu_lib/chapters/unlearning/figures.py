"""Figures of the unlearning chapter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pu_lib.chapters.unlearning.flow_times import step_flow_times
from pu_lib.chapters.unlearning.quantities import (
    ce_bound_printed,
    count,
    counts,
    decaying_ce_bound_printed,
    decaying_di_bound,
    decaying_pg_bound,
    di_bound,
    escort_differences,
    path,
)
from pu_lib.drawing.style import GREY, INK, figure, line, styled
from pu_lib.exact import exact
from pu_lib.trajectories import follow
from pu_lib.two_action_dynamics import OutOfReach, equivalent_updates
from pu_lib.updates import PAPER, label_of, style_of

MAX_SCHEDULES_N = 300
"""The largest n of `draw_schedules`, which then makes 190 exact counts in about ten seconds."""

NS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def update_groups() -> dict[str, str]:
    """Return a label for each group of equivalent updates, by the name of one of them.

    The name is that of the last update of the paper in the group, or else of the last update.
    """
    groups = {}
    for names in equivalent_updates():
        printed = [name for name in names if name in PAPER]
        groups[(printed or names)[-1]] = " = ".join(map(label_of, names))
    return groups


def _draw_recoveries(ax: Any, n: int, step_size: str, schedule: str) -> None:
    """Draw pi_t(a_1) for every update until it recovers."""
    horizon = max(4, int(3.5 * n))
    for name, label in update_groups().items():
        back = count(n, name, step_size, schedule)
        steps = int(min(back, horizon))
        values = path(n, steps, name, step_size, schedule)
        ax.plot(values, **(line(name) | {"label": f"{label}: {back}"}))
        if back <= horizon:
            ax.plot(
                n + steps,
                values[-1],
                style_of(name).marker,
                color=style_of(name).colour,
                markersize=6,
            )
    ax.axvline(n, color=GREY, linewidth=1)
    ax.axhline(0.5, color=GREY, linewidth=1, linestyle=":")
    ax.set_xlim(0, n + horizon)
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel("update $t$")


@styled
def draw_races(n: int = 20, step_size: str = "0.5") -> Figure:
    """Draw pi_t(a_1) over n forward updates and recovery for constant and decaying step sizes."""
    fig, axes = figure(1, 2, height=3.9, sharey=True)
    for ax, schedule in zip(axes, ("constant", "inverse-sqrt"), strict=True):
        _draw_recoveries(ax, n, step_size, schedule)
        sizes = r"w_t=\eta" if schedule == "constant" else r"w_t=\eta/\sqrt{t}"
        legend = f"$n'$, step sizes ${sizes}$"
        ax.legend(title=legend, loc="lower right", fontsize=8, title_fontsize=8.5)
    axes[0].set_ylabel(r"$\pi_t(a_1)$")
    return fig


@styled
def draw_counts(step_size: str = "0.5") -> Figure:
    """Draw the exact counts of every update and the bounds of the paper on logarithmic axes."""
    fig, axes = figure(1, 2, height=4.3, sharey=True)
    step = float(exact(step_size))
    grid = np.geomspace(1, NS[-1], 120)
    printed: dict[str, dict[str, Any]] = {
        "constant": {
            "pg-sm": grid,
            "di": [di_bound(math.ceil(n), exact(step_size)) for n in grid],
            "mce": [ce_bound_printed(n, step) for n in grid],
        },
        "inverse-sqrt": {
            "pg-sm": [decaying_pg_bound(n) for n in grid],
            "di": [decaying_di_bound(n, step) for n in grid],
            "mce": [decaying_ce_bound_printed(n, step) for n in grid],
        },
    }
    for ax, (schedule, bounds) in zip(axes, printed.items(), strict=True):
        for name, label in update_groups().items():
            steps = counts(NS, name, step_size, schedule)
            ax.plot(NS, steps, style_of(name).marker, color=style_of(name).colour, label=label)
        for name, values in bounds.items():
            positive = np.maximum(np.asarray(values, dtype=float), 0.5)
            ax.plot(grid, positive, **(line(name) | {"label": None, "linewidth": 1.2}))
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        ax.set_ylim(0.8, 4096)
        ax.set_xlabel("$n$")
    axes[0].set_ylabel("$n'$ and its bound")
    axes[0].legend(loc="upper left")
    return fig


@styled
def draw_schedules(n: int = 100) -> Figure:
    """Draw n' against the step size for constant step sizes (filled) and decaying ones (open)."""
    if n > MAX_SCHEDULES_N:
        raise OutOfReach(f"n: at most {MAX_SCHEDULES_N} updates are drawn, got {n}")
    step_sizes = [f"{size:.4g}" for size in np.geomspace(0.02, 5, 19)]
    x = [float(size) for size in step_sizes]
    fig, ax = figure(height=4.0)
    for name, label in update_groups().items():
        for schedule, face in (("constant", style_of(name).colour), ("inverse-sqrt", "white")):
            steps = [count(n, name, size, schedule) for size in step_sizes]
            style = line(name) | {"label": label if face != "white" else None}
            ax.plot(
                x, steps, marker=style_of(name).marker, markerfacecolor=face, linewidth=1, **style
            )
    for level, words in ((n, "$n$"), (decaying_pg_bound(n), f"${decaying_pg_bound.latex()}$")):
        ax.axhline(level, color=INK, linewidth=0.8, linestyle=":")
        ax.text(1.01, level, words, transform=ax.get_yaxis_transform(), va="center", fontsize=9)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(r"$\eta$")
    ax.set_ylabel(f"$n'$ at $n={n}$")
    ax.legend(loc="lower left")
    return fig


MAP_STEP_SIZES = tuple(f"{size:.3g}" for size in np.geomspace(0.05, 50, 37))
MAP_NS = tuple(sorted({round(n) for n in np.geomspace(1, 100, 16)}))
"""The values of n in the escort map."""


@styled
def draw_escort_map() -> Figure:
    """Draw a map over step size and n of the sign and size of n' - n for PG-ES."""
    variants = (("2", "keep"), ("2", "drop"), ("3/2", "keep"), ("3", "drop"))
    fig, axes = figure(2, 2, height=5.6, sharex=True, sharey=True)
    edges = [-1e9, -0.5, 0.5, 10.5, 1e9]
    colours = ("#d0450f", "#f2e5c8", "#9fc7e3", "#0072b2")
    for ax, (p, factor) in zip(axes.flat, variants, strict=True):
        table = escort_differences(p, factor, MAP_STEP_SIZES, MAP_NS)
        finite, x = np.where(np.isinf(table), 1e8, table), [float(size) for size in MAP_STEP_SIZES]
        cmap, norm = ListedColormap(colours), BoundaryNorm(edges, 4)
        ax.pcolormesh(x, MAP_NS, finite, cmap=cmap, norm=norm, shading="nearest")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.grid(False)
        kind = "exact gradient" if factor == "keep" else "factor dropped"
        ax.annotate(
            f"$p={p}$, {kind}",
            (0.03, 0.93),
            xycoords="axes fraction",
            va="top",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2},
        )
    for ax in axes[1]:
        ax.set_xlabel(r"$\eta$")
    for ax in axes[:, 0]:
        ax.set_ylabel("$n$")
    handles = [fig.add_artist(_patch(colour)) for colour in colours]
    words = ["$n'<n$", "$n'=n$", "$n<n'\\leq n+10$", "$n'>n+10$"]
    fig.legend(handles, words, loc="outside upper center", ncols=4)
    return fig


def _patch(colour: Any) -> Any:
    return Rectangle((0, 0), 0, 0, facecolor=colour)


@styled
def draw_polar_steps(n: int = 4, back: int = 7, step_size: float = 0.5) -> Figure:
    """Draw `n` forward and `back` backward updates of PG-ES in the plane of the parameters.

    Each step is perpendicular to the parameters, so that the norm of the parameters increases.
    """
    there = follow("pg-es", [1.0, 0.0], step_size, n, [1.0, 1.0])
    home = follow("pg-es", [0.0, 1.0], step_size, back, there[-1])
    fig, ax = figure(width=5.0, height=3.9)
    ends = (
        (there, style_of("pg-es").colour, "forward"),
        (home, style_of("mce").colour, "backward"),
    )
    for points, colour, label in ends:
        face = colour if label == "forward" else "white"
        ax.plot(*points.T, marker="o", color=colour, markerfacecolor=face, label=label)
        for point in points[1:]:
            ax.plot(*zip((0, 0), point, strict=True), color=GREY, linewidth=0.6)
    ax.plot([0, 2.2], [0, 2.2], color=INK, linewidth=0.9, linestyle=":")
    ax.set_xlim(0, 2.4)
    ax.set_ylim(0, 1.9)
    ax.set_aspect("equal")
    ax.set_xlabel(r"$\theta_1$")
    ax.set_ylabel(r"$\theta_2$")
    ax.legend(loc="upper left")
    return fig


@styled
def draw_comparison(n: int = 8, step_size: str = "1", update: str = "pg-sm") -> Figure:
    """Draw the weight and the flow time of each step of PG-SM or PG-ES."""
    rows = step_flow_times(n, step_size, update)
    fig, ax = figure(height=3.4)
    t = [row["t"] for row in rows]
    colours = [
        style_of("pg-sm").colour if row["phase"] == "forward" else style_of("mce").colour
        for row in rows
    ]
    ax.bar(t, [row["flow time"] for row in rows], width=0.7, color=colours, alpha=0.75)
    ax.step(
        [0.5, *(x + 0.5 for x in t)],
        [rows[0]["weight"], *(r["weight"] for r in rows)],
        where="pre",
        color=INK,
        linewidth=1.4,
        label="weight $w_t$",
    )
    ax.axvline(n + 0.5, color=GREY, linewidth=1)
    ax.set_xticks(t)
    ax.set_xlabel("update $t$")
    ax.set_ylabel("travel time of the step")
    ax.legend(loc="upper right")
    ax.set_ylim(0, 1.35 * max(row["flow time"] for row in rows))
    return fig
