"""Figures and the explorer of the chapter on monotonicity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pu_lib.show.explorers import Explorer, Slider
from pu_lib.show.style import GREY, INK, figure, line, styled
from pu_lib.show.updates import place, simplex_axes, starts
from pu_lib.theory.monotonicity import (
    decrease_frequency,
    search_drop,
    value_change,
    worst_drop_any,
    worst_drop_three,
)
from pu_lib.updates import UPDATES, label_of, look_of, softmax

__all__ = [
    "EXPLORERS",
    "alt_counterexample",
    "draw_counterexample",
    "draw_decrease_region",
    "draw_frequency",
    "draw_mass_moved",
    "draw_worst_decrease",
]

Floats = NDArray[np.float64]
SHADES = (INK, GREY, "#a8aeb6")


@styled
def draw_mass_moved() -> Figure:
    """Draw what CE and MCE add to each probability at the paper's example."""
    fig, axes = figure(1, 2, height=3.0, sharey=True)
    theta, q = np.array([10.0, 0.0, 0.0]), np.array([0.99, 1.0, 0.0])
    for ax, name in zip(axes, ("ce", "mce"), strict=True):
        moved = 1e4 * (softmax(UPDATES[name].step(theta, q, 1.0)) - softmax(theta))
        bars = ax.bar([0, 1, 2], moved, color=look_of(name).colour, width=0.55)
        ax.bar_label(bars, fmt="%+.4f", padding=2)
        ax.axhline(0, color=INK, lw=0.8)
        ax.set_xticks([0, 1, 2], [f"$a_{a + 1}$\n$q={value:g}$" for a, value in enumerate(q)])
        ax.set_xlabel(label_of(name))
        ax.margins(y=0.16)
        ax.grid(axis="x", visible=False)
    axes[0].set_ylabel(r"$10^4\,(\pi'-\pi)$")
    return fig


@styled
def draw_decrease_region(
    weights: Sequence[float] = (0.1, 0.5, 1.5), q: Sequence[float] = (0.9, 1.0, 0.0)
) -> Figure:
    """Shade the policies at which one CE step lowers the value, for several weights.

    Parameters
    ----------
    weights : sequence of float
        The weights, one panel each.
    q : sequence of three numbers
        The values.
    """
    fig, axes = figure(1, len(weights), height=2.9)
    pi = starts(120)
    for ax, weight in zip(axes, weights, strict=True):
        drop = -value_change("ce", np.log(pi), np.asarray(q), weight)
        top = max(float(drop.max()), 1e-6)
        shades = ax.tricontourf(*place(pi), drop, levels=np.linspace(0, top, 9), cmap="YlOrBr")
        simplex_axes(ax, list(q), size=8.5)
        ax.text(0.98, 0.80, f"$w = {weight:g}$", ha="center", size=10)
        bar = fig.colorbar(shades, ax=ax, orientation="horizontal", shrink=0.8, pad=0.02)
        bar.set_ticks([0, top])
        bar.ax.set_xticklabels(["0", f"{top:.2g}"])
    return fig


@styled
def draw_worst_decrease() -> Figure:
    """Draw the largest decrease that CE can cause against the weight, and what a search finds."""
    fig, ax = figure()
    weights = np.geomspace(0.01, 100, 120)
    three, many = (
        np.array([bound(w) for w in weights]) for bound in (worst_drop_three, worst_drop_any)
    )
    ax.plot(weights, many, color=GREY, ls="--", label=r"$D_\infty(w)$: any number of actions")
    ax.plot(weights, three, color=look_of("ce").colour, label="$D_3(w)$: three actions")
    tried = [0.03, 0.1, 0.3, 1, 2, 5, 10]
    for k, marker in ((3, "o"), (6, "s")):
        found = [search_drop("ce", k, w, rounds=250).value for w in tried]
        ax.plot(tried, found, marker, color=INK, mfc="none", label=f"found by search, {k} actions")
    ax.set(xscale="log", yscale="log", xlabel=r"weight $w=\eta\,d(s)$")
    ax.set_ylabel("largest decrease of $v$ (values of range 1)")
    ax.legend()
    return fig


@styled
def draw_frequency(
    n_actions: Sequence[int] = (3, 4, 10), weights: Sequence[float] = (0.01, 1.0, 10.0)
) -> Figure:
    """Draw how often a CE step lowers the value of a random state, against the policy's spread.

    Parameters
    ----------
    n_actions : sequence of int
        Numbers of actions, one curve each.
    weights : sequence of float
        The weights, one panel each.
    """
    fig, axes = figure(1, len(weights), height=2.9, sharey=True)
    scales = np.linspace(0, 10, 11)
    for ax, weight in zip(axes, weights, strict=True):
        for k, marker, shade in zip(n_actions, "osD", SHADES, strict=True):
            rates = [decrease_frequency("ce", k, weight, s, n=3000) for s in scales]
            ax.plot(scales, rates, color=shade, marker=marker, markevery=2, label=f"$|A| = {k}$")
        ax.set_xlabel(f"spread of $\\theta$   ($w = {weight:g}$)")
    axes[0].set_ylabel("share of CE steps that lower $v$")
    axes[0].legend()
    return fig


# The counterexample lab

THETA_1 = np.linspace(0, 20, 401)


def _example(theta1: Floats | float, q1: float, eta: float, name: str) -> Floats:
    """Return v' - v at theta = (theta1, 0, 0), q = (q1, 1, 0)."""
    top = np.atleast_1d(np.asarray(theta1, dtype=np.float64))
    theta = np.stack([top, np.zeros_like(top), np.zeros_like(top)], axis=-1)
    q = np.array([q1, 1.0, 0.0])
    return value_change(name, theta, q, eta)


@styled
def draw_counterexample(q1: float, eta: float) -> Figure:
    """Draw v' - v against theta_1 for theta = (theta_1, 0, 0) and q = (q_1, 1, 0).

    Parameters
    ----------
    q1 : float
        The value of the first action, below 1.
    eta : float
        The weight of the step.
    """
    fig, ax = figure(height=3.6)
    for name in ("ce", "mce"):
        ax.plot(THETA_1, _example(THETA_1, q1, eta, name), **line(name))
    if (q1, eta) == (0.99, 1.0):
        ax.plot(10, _example(10.0, q1, eta, "ce")[0], "o", color=INK, label="the paper's example")
    ax.axhline(0, color=INK, lw=0.9)
    ax.axhline(-worst_drop_three(eta), color=GREY, ls="--", lw=1.2, label=r"$-D_3(\eta)$")
    ax.set_yscale("symlog", linthresh=1e-5)
    ax.set(xlabel=r"$\theta_1$", ylim=(-2, 60))
    ax.set_yticks([-1, -1e-2, -1e-4, 0, 1e-4, 1e-2, 1])
    ax.minorticks_off()
    ax.set_ylabel("$v' - v$")
    ax.legend(loc="upper right", ncols=2)
    return fig


def alt_counterexample(q1: float, eta: float) -> str:
    """Say what `draw_counterexample` shows for the same parameters.

    Parameters
    ----------
    q1 : float
        The value of the first action; the others have 1 and 0.
    eta : float
        The weight of the step.

    Returns
    -------
    str
        A sentence for those who do not see the figure.
    """
    change = _example(THETA_1, q1, eta, "ce")
    lower = THETA_1[change < 0]
    where = (
        f"CE lowers the value for theta_1 from {lower[0]:.1f} to {lower[-1]:.1f}, "
        f"by up to {-change.min():.2g}"
        if len(lower)
        else "CE lowers the value for no theta_1 between 0 and 20"
    )
    return (
        f"Change of the value after one step against theta_1, for q_1 = {q1:g} and eta = {eta:g}: "
        f"{where}; MCE never lowers it."
    )


ETAS: list[Any] = [0.1, 0.3, 1.0, 3.0, 10.0]

EXPLORERS = {
    "counterexample": Explorer(
        draw=draw_counterexample,
        alt=alt_counterexample,
        grid={
            "q1": Slider("$q(a_1)$", [0.0, 0.5, 0.9, 0.99], fmt="{:g}", start=3),
            "eta": Slider(r"$\eta$", ETAS, fmt="{:g}", start=2),
        },
    ),
}
